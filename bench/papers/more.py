"""The rest of the report's experiments: drawings, patterns, STREAM, loads of x, CSR5's sigma, counters of COO and CSR, and this library's own kernels"""

import itertools
import os

from measure import DENSITIES, SIGMAS
from summary import FIVE
from tables import key, mean, on_host, read

# The matrix of the drawings: an odd number of rows, so that slices of two rows need one more
EXAMPLE = [(0, 1, 4), (1, 2), (0, 2, 3, 5, 6), (3,), (1, 4), (5,), (2, 3, 6)]
# Lengths of rows for EVC-HYB's drawing, with ELL up to SHORT entries on boundaries of BOUNDARY rows, in place of 128 and 32
LENGTHS, SHORT, BOUNDARY = (2, 1, 3, 2, 9, 1, 3, 2, 1, 4, 6, 1, 2, 3, 2), 4, 4
RANGES = ((2, 1), (3, 2), (2, 4), (1, 8), (2, 16))  # thread blocks and threads a row, as in the paper's Figure 1
TABLE_2 = {"copy": 182.75, "scale": 182.75, "add": 180.93, "triad": 180.93}  # GB/s on a K20X
TABLE_4 = {"evchyb-sorted": "read-only loads", "evchyb-load-x": "other loads, through L1", "evchyb-l2-x": "loads from L2"}
COO_CSR = ["coo", "coo-segmented", "coo-balanced", "csr-scalar", "csr-vector", "ell"]


def layouts():
    """Figure 1: name -> places of the stored entries, slice by slice; what is padding"""
    width, m = max(map(len, EXAMPLE)), len(EXAMPLE)

    def padded(rows, to):
        return [[True] * len(r) + [False] * (to - len(r)) for r in rows]

    def slices(b, t):
        rows = list(EXAMPLE) + [()] * (-m % b)
        found = []
        for k in range(0, len(rows), b):
            longest = max(map(len, rows[k : k + b]))
            found += padded(rows[k : k + b], (longest + t - 1) // t * t)
        return found

    return {"CSR": padded(EXAMPLE, 0), "ELLPACK": padded(EXAMPLE, width), "SELL-2": slices(2, 1), "SELL-P, b = 2, t = 2": slices(2, 2)}


def partition():
    """Figure 2: name -> rows of the stored entries; what is padding"""
    ell, carried = [], []
    lengths = sorted(LENGTHS)
    for width in range(1, SHORT + 1):
        rows = carried + [n for n in lengths if n == width]
        whole = len(rows) // BOUNDARY * BOUNDARY
        ell += [(n, width) for n in rows[:whole]]
        carried = rows[whole:]
    csr = [(n, -(-n // BOUNDARY) * BOUNDARY) for n in carried + [n for n in lengths if n > SHORT]]

    def padded(part):
        return [[True] * n + [False] * (width - n) for n, width in part]

    return {"the matrix": padded((n, n) for n in LENGTHS), "sorted": padded((n, n) for n in lengths), "ELL": padded(ell), "vector CSR": padded(csr)}


def sigma_of(bounds, density):
    """Liu and Vinter's rule, with the sigma that was measured next to it"""
    r, s, t, u = bounds
    wanted = r if density <= r else density if density <= s else s if density <= t else u
    return min(SIGMAS, key=lambda x: abs(x - wanted))


class More:
    """What Report has in addition"""

    # ---- the SELL-P paper

    def sellp_figure1(self):
        w = self.words
        self.head()
        found = layouts()
        self.drawing("sellp-figure1", w("sellp-figure1.caption"), "cells", {name: rows for name, rows in found.items()})
        b, t, steps = 4, 2, 3
        self.drawing("sellp-figure3", w("sellp-figure3.caption"), "threads", {"b": b, "t": t, "steps": steps})
        self.table(["", *found], [["entries stored", *(sum(map(len, rows)) for rows in found.values())]])
        entries = sum(map(len, EXAMPLE))
        self.say(w("sellp-figure1.here", entries=entries, rows=len(EXAMPLE)), "")

    def drawing(self, name, caption, how, what):
        if getattr(self.charts, how)(name, what):
            self.say("", f"![{caption}]({os.path.basename(self.charts.folder)}/{name}.svg)", "")

    def sellp_figure4(self):
        w = self.words
        self.head()
        path = os.path.join(self.folder, "patterns.csv")
        rows = read(path) if os.path.exists(path) else []
        if not rows:
            self.say("Not measured yet.", "")
            return
        grids = {}
        for r in rows:
            label = key(r["matrix"]) + (" (twin)" if r["origin"] == "twin" else "")
            grids.setdefault((label, int(r["rows"]), int(r["entries"])), []).append([int(x) for x in r["counts"].split()])
        self.drawing("sellp-figure4", w("sellp-figure4.caption"), "patterns", {label: grid for (label, _, _), grid in grids.items()})

        def near(grid):
            """Share of the entries in grid cells on or next to the diagonal"""
            n = len(grid)
            return 100 * sum(grid[i][j] for i in range(n) for j in range(max(0, i - 1), min(n, i + 2))) / sum(map(sum, grid))

        self.table(["matrix", "rows", "entries", "at the diagonal, %"], [(m, rows, entries, f"{near(g):.0f}") for (m, rows, entries), g in grids.items()])
        self.say(w("sellp-figure4.here", grid=len(next(iter(grids.values())))), "")

    # ---- the EVC-HYB paper

    def evchyb_figure1(self):
        w = self.words
        self.head()
        block = 512
        ranges = [(blocks * block // threads, threads, blocks) for blocks, threads in RANGES]
        self.drawing("evchyb-figure1", w("evchyb-figure1.caption"), "ranges", ranges)
        found = partition()
        self.drawing("evchyb-figure2", w("evchyb-figure2.caption"), "cells", found)
        self.table(["", *found], [["rows", *map(len, found.values())], ["entries stored", *(sum(map(len, rows)) for rows in found.values())]])
        self.say(w("evchyb-figure1.here", block=block, short=SHORT, boundary=BOUNDARY), "")

    def evchyb_table2(self):
        w = self.words
        self.head()
        found = self.devices("stream")
        if not found:
            return
        names = [self.where(t) for _, t in found]

        def gbs(t, k):
            m = t.matrices[0]
            return 1e-9 * t.number(m, k, "bytes") / t.seconds(m, k) if t.seconds(m, k) else 0.0

        self.table(["GB/s", "the paper (K20X)", *names], [(k, f"{v:.2f}", *(f"{gbs(t, k):.0f}" for _, t in found)) for k, v in TABLE_2.items()])
        device, t = found[0]
        full = self.data[device].get("matrices")
        copy = w("evchyb-table2.copy", copy=float(full.rows[0]["copy"]) * 1e-9) if full and not on_host(device) else ""
        rates = {k: gbs(t, k) for k in TABLE_2}
        here = w("evchyb-table2.here", where=names[0], ratio=rates["copy"] / TABLE_2["copy"],
                 more=100 * ((rates["add"] + rates["triad"]) / (rates["copy"] + rates["scale"]) - 1))  # fmt: skip
        self.say(" ".join(x for x in (here, copy) if x), "")

    def evchyb_table4(self):
        w = self.words
        self.head()
        for device, t in self.devices("loads", gpu=True):
            m, counters = "web-Google", self.data[device].get("counters")
            if not t.seconds(m, "evchyb-sorted"):
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            rates = {f: t.gflops(m, f) for f in TABLE_4}
            rows = [["GF/s", "5.34", "4.89", *(f"{x:.1f}" for x in rates.values())]]
            if counters and all((m, f) in counters.at for f in TABLE_4):
                rows += self.table4_counters(counters, m)
            self.table(["web-Google (twin)", "the paper, texture cache", "the paper, without", *TABLE_4.values()], rows)
            over = {f: mean([t.seconds(x, f) / t.seconds(x, "evchyb-sorted") for x in t.matrices if t.seconds(x, f) and t.seconds(x, "evchyb-sorted")])
                    for f in ("evchyb-load-x", "evchyb-l2-x", "evchyb-256")}  # fmt: skip
            self.say(w("evchyb-table4.here", where=self.where(t), count=len(t.matrices), l1=over["evchyb-load-x"], l2=over["evchyb-l2-x"],
                       google=t.seconds(m, "evchyb-l2-x") / t.seconds(m, "evchyb-sorted"), block=over["evchyb-256"]), "")  # fmt: skip

    @staticmethod
    def table4_counters(counters, m):
        def rate(f, what, size=1):
            r = counters.at[m, f]
            return f"{counters.value(r, what) * size / counters.value(r, 'gpu__time_duration.sum'):.0f}"

        def percent(f, what):
            return f"{counters.value(counters.at[m, f], what):.1f}"

        lines = [("DRAM read, GB/s", "146.80", "134.83", lambda f: rate(f, "dram__bytes_read.sum")),
                 ("L2 read, GB/s", "124.15", "114.81", lambda f: rate(f, "lts__t_sectors_op_read.sum", 32)),
                 ("hits in the texture or L1 cache, %", "2.00", "29.87", lambda f: percent(f, "l1tex__t_sector_hit_rate.pct")),
                 ("hits in L2, %", "39.64", "", lambda f: percent(f, "lts__t_sector_hit_rate.pct"))]  # fmt: skip
        return [[name, on, off, *(get(f) for f in TABLE_4)] for name, on, off, get in lines]

    # ---- the comparison of formats

    def csr5_tuned(self, device, t):
        """The bounds that rows of equal length give, and what they and the best sigma gain on the profiles; None if there are too few of the former"""
        even = {int(m.split(":")[2]): m for m in t.matrices if self.is_even(m) and t.seconds(m, "csr5")}
        if len(even) < 4:
            return None
        bounds = min(self.bounds(), key=lambda b: mean([t.seconds(m, f"csr5:{sigma_of(b, n)}") for n, m in even.items()]))
        rows, gain, most, wins, count = [], [], [], 0, 0
        others = self.data[device].get("profiles")
        for m in t.matrices:
            if m in even.values() or not t.seconds(m, "csr5"):
                continue
            density = t.entries(m) / float(next(r["rows"] for r in t.rows if key(r["matrix"]) == m))
            tuned, best = t.seconds(m, f"csr5:{sigma_of(bounds, density)}"), t.best(m, [f"csr5:{s}" for s in SIGMAS])[0]
            gain.append(t.seconds(m, "csr5") / tuned)
            most.append(t.seconds(m, "csr5") / best)
            rows.append((t.label(m), f"{density:.1f}", self.us(t.seconds(m, "csr5")), self.us(tuned), self.us(best), self.best_sigma(t, m)))
            rest = others.best(m, [f for name, kinds in FIVE.items() if name != "CSR5" for f in kinds])[0] if others else 0
            count += rest > 0
            wins += 0 < best < rest
        return {"even": even, "bounds": bounds, "rows": rows, "gain": mean(gain), "most": mean(most), "wins": wins, "count": count}

    def formats_csr5(self):
        w = self.words
        self.head()
        for device, t in self.devices("csr5", gpu=True):
            found = self.csr5_tuned(device, t)
            if not found:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            self.say(w("formats-csr5.even"))
            self.table(["entries a row", *(f"sigma {s}" for s in SIGMAS), "best"],
                       [(n, *(self.us(t.seconds(m, f"csr5:{s}")) for s in SIGMAS), self.best_sigma(t, m)) for n, m in found["even"].items()])  # fmt: skip
            self.say(w("formats-csr5.table"))
            self.table(["matrix", "entries a row", "published bounds, us", "bounds from above", "best sigma", "sigma"], found["rows"])
            bounds = dict(zip("rstu", found["bounds"]))
            self.say(w("formats-csr5.here", where=self.where(t), **bounds, **{k: found[k] for k in ("gain", "most", "wins", "count")}), "")

    @staticmethod
    def is_even(m):
        words = m.split(":")
        return words[0] == "lengths" and len(words) == 6 and words[3] == "0" and words[4] == "1" and int(words[5]) == max(2000, 4 * int(words[2]))

    @staticmethod
    def bounds():
        return [b for b in itertools.product(SIGMAS, SIGMAS, DENSITIES, SIGMAS) if b[0] <= b[1] <= b[2]]

    @staticmethod
    def best_sigma(t, m):
        return t.best(m, [f"csr5:{s}" for s in SIGMAS])[1].partition(":")[2]

    def formats_figure3(self):
        w = self.words
        self.head()
        for device, t in self.devices("counters", gpu=True):
            rows = [(f, t.at["cant", f]) for f in COO_CSR if ("cant", f) in t.at]
            if not rows:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            table = []
            for f, r in rows:
                ns = t.value(r, "gpu__time_duration.sum")
                requests = t.value(r, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")
                sectors = f"{t.value(r, 'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum') / requests:.1f}" if requests else "-"
                rates = (f"{t.value(r, x) / ns:.0f}" for x in ("dram__bytes_read.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"))
                table.append((f, f"{ns * 1e-3:.1f}", *rates, f"{t.value(r, 'sm__warps_active.avg.pct_of_peak_sustained_active'):.0f}", sectors))
            self.table(["cant (twin)", "us", "DRAM read GB/s", "L2 GB/s", "L1 GB/s", "occupancy, %", "sectors a load"], table)
            names = [f for f, _ in rows]
            self.chart(f"{device}-formats-figure3", w("formats-figure3.caption"), names, {"us": [float(x[1]) for x in table]}, "us")
            self.chart(f"{device}-formats-figure4", w("formats-figure4.caption"), names, {"occupancy": [float(x[5]) for x in table]}, "%")
            by = {x[0]: x for x in table}
            if {"coo", "csr-scalar", "csr-vector"} <= by.keys():
                self.say(w("formats-figure3.here", coo=float(by["coo"][1]) / min(float(x[1]) for x in table), scalar=by["csr-scalar"][6],
                           vector=by["csr-vector"][6], gain=float(by["csr-scalar"][1]) / float(by["csr-vector"][1])), "")  # fmt: skip

    # ---- this library

    def twins(self):
        w = self.words
        self.head()
        for device, t in self.devices("twins"):
            at, column = {}, "least" if on_host(device) else "seconds"
            for r in t.rows:
                if t.value(r, column) and t.value(r, "error") <= 1:
                    at.setdefault((key(r["matrix"]), r["format"]), {})[r["origin"]] = t.value(r, column)
            both = {k: v for k, v in at.items() if {"file", "twin"} <= v.keys()}
            self.say(w("twins.table", where=self.where(t)))
            self.table(["matrix", "format", "real", "twin", "ratio"],
                       [(m, f, self.us(v["file"]), self.us(v["twin"]), f"{v['twin'] / v['file']:.2f}") for (m, f), v in both.items()])  # fmt: skip
            over = [v["twin"] / v["file"] for v in both.values()]
            if over:
                names = ", ".join(dict.fromkeys(m for m, _ in both))
                self.say(w("twins.here", where=self.where(t), matrices=names, least=min(over), most=max(over), mean=mean(over)), "")

    def roofline(self):
        w = self.words
        self.head()
        for device, t in self.devices("counters", gpu=True):
            rows, copy = [], self.copy(device)
            for r in t.rows:
                if r["kernel"] != "ours" or not copy:
                    continue
                ns, m = t.value(r, "gpu__time_duration.sum"), key(r["matrix"])
                moved = t.value(r, "dram__bytes_read.sum") + t.value(r, "dram__bytes_write.sum")
                fma, flops = (t.value(r, f"smsp__sass_thread_inst_executed_op_d{op}_pred_on.sum") for op in ("fma", "add"))
                flops += 2 * fma + t.value(r, "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum")
                if ns and moved and flops:
                    occupancy = t.value(r, "sm__warps_active.avg.pct_of_peak_sustained_active")
                    l2 = t.value(r, "lts__t_bytes.sum") / ns
                    rows.append((m, r["format"], ns * 1e-3, moved * 1e-6, flops / moved, flops / ns, copy * flops / moved, moved / ns, l2, occupancy,
                                 t.value(r, "launch__registers_per_thread")))  # fmt: skip
            if not rows:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            head = "matrix,type,us,DRAM MB,flops a byte,GF/s,at the copy's bandwidth,% of that,DRAM GB/s,L2 GB/s,occupancy %,registers"
            self.table(head.split(","), [(r[0], r[1], f"{r[2]:.1f}", f"{r[3]:.1f}", f"{r[4]:.3f}", f"{r[5]:.0f}", f"{r[6]:.0f}", f"{100 * r[5] / r[6]:.0f}",
                                          f"{r[7]:.0f}", f"{r[8]:.0f}", f"{r[9]:.0f}", f"{r[10]:.0f}") for r in rows])  # fmt: skip
            series = {"measured": [r[5] for r in rows], "the copy's bandwidth": [r[6] for r in rows]}
            self.chart(f"{device}-roofline", w("roofline.caption"), [r[4] for r in rows], series, "GF/s", kind="points", xlabel=w("roofline.axis"))
            share = {(r[0], r[1]): 100 * r[5] / r[6] for r in rows}
            near = [r for r in rows if 100 * r[5] / r[6] >= 80]
            low = min(share, key=share.get)
            self.say(w("roofline.here", where=self.where(t), copy=copy, near=len(near), count=len(rows), least=share[low], low=low[0]), "")

    def copy(self, device):
        """A copy's bandwidth, GB/s"""
        tables = [self.data[device][k] for k in ("stream", "matrices") if k in self.data[device]]
        return next((float(t.rows[0]["copy"]) * 1e-9 for t in tables if float(t.rows[0].get("copy") or 0)), 0.0)

    def single(self):
        w = self.words
        self.head()
        for device, t in self.devices("single", gpu=True):
            rows, rtols = {}, list(dict.fromkeys(r["rtol"] for r in t.rows))
            for r in t.rows:
                rows.setdefault((r["matrix"], r["type"]), {})[r["rtol"]] = r
            table = []
            for (m, kind), by in rows.items():
                one = next(iter(by.values()))
                cells = [f"{by[x]['iterations']} ({float(by[x]['true_residual']):.0e})" if x in by else "" for x in rtols]
                table.append((m, kind, self.us(float(one["seconds"])), f"{float(one['error']):.1e}", *cells))
            self.say(w("single.table", where=self.where(t)))
            self.table(["matrix", "type", "us", "error of a product", *(f"rtol {x}" for x in rtols)], table)
            more, gain, errors, floor = [], [], [], []
            for (m, kind), by in rows.items():
                base = rows.get((m, kind.partition(":")[0]), rows.get((m, "sellp"), {}))
                if "_single" not in kind or not base:
                    continue
                gain.append(float(next(iter(base.values()))["seconds"]) / float(next(iter(by.values()))["seconds"]))
                errors.append(float(next(iter(by.values()))["error"]))
                floor.append(min(float(r["true_residual"]) for r in by.values()))
                more += [int(r["iterations"]) / int(base[x]["iterations"]) for x, r in by.items() if x in base]
            if more:
                its = w("single.same") if min(more) == max(more) == 1 else w("single.differ", least=min(more), most=max(more))
                self.say(w("single.here", gain=mean(gain), error=max(errors), its=its, floor=max(floor)), "")
