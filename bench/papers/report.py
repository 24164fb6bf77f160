"""The report on the papers' experiments: works out its numbers from the CSV files; its words are in report.txt"""

import os
import re

import results

from charts import Charts
from more import More
from published import MATRICES, TABLE_3, TABLE_I, TABLE_II, TABLE_III, TABLE_III_COLUMNS
from summary import FIVE, LIBRARY, Summary, exact, latency
from tables import Table, correlation, key, mean, on_host, read

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = 60e6  # bytes of values and columns: no matrix of Table III has between 50 and 90 MB, and a device's L2 cache holds the smaller ones


def us(seconds):
    return "-" if seconds <= 0 else f"{1e6 * seconds:.{1 if seconds < 1e-4 else 0}f}"


def signed(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


def rate(gflops):
    return f"{gflops:.{0 if gflops > 20 else 1}f}"


def ends(values):
    """The least and the most"""
    values = list(values)
    return min(values), max(values)


def side(device):
    return "host" if on_host(device) else "device"


def sentences(*texts):
    """Those that there are, one after the other"""
    return " ".join(t for t in texts if t)


class Words:
    """The texts of report.txt"""

    def __init__(self, path=os.path.join(HERE, "report.txt")):
        with open(path) as f:
            parts = re.split(r"^@(\S+)\n", f.read(), flags=re.M)
        self.texts = {name: " ".join(text.split("\n")).strip() for name, text in zip(parts[1::2], parts[2::2])}

    def __contains__(self, name):
        return name in self.texts

    def __call__(self, name, /, **values):
        return self.texts[name].format(**values)


class Report(Summary, More):
    us = staticmethod(us)

    def __init__(self, folder, target, charts=None):
        self.folder, self.target, self.lines, self.words = folder, target, [], Words()
        self.charts = charts or Charts(os.path.splitext(target)[0])
        self.data = {}
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
            m = re.match(r"(.+)-(matrices|sweep|random|profiles|profile|bratu|stream|loads|csr5|counters|single|twins)\.csv$", name)
            if m:
                rows = read(os.path.join(folder, name))
                if rows:
                    self.data.setdefault(m[1], {})[m[2]] = Table(m[1], rows)

    # ---- writing

    def say(self, *lines):
        self.lines += lines

    def head(self, **note):
        """The title, what the paper says, as it says it, and what we add to that or correct; the values are for the latter"""
        w = self.words
        remark = [w("head.note", text=w(f"{self.now}.note", **note)), ""] if f"{self.now}.note" in w else []
        self.say("", "## " + w(f"{self.now}.title"), "", w("head.paper", text=w(f"{self.now}.paper")), "", *remark, w("head.repeat", name=self.now), "")

    def table(self, columns, rows):
        self.say("", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(map(str, r)) + " |" for r in rows), "")

    def chart(self, name, caption, *args, **how):
        if self.charts.draw(name, *args, **how):
            self.say("", f"![{caption}]({os.path.basename(self.charts.folder)}/{name}.svg)", "")

    def devices(self, measurement, gpu=False):
        """Those with it, GPUs first; gpu: GPUs only"""
        found = [(d, t[measurement]) for d, t in self.data.items() if measurement in t and not (gpu and on_host(d))]
        if not found:
            why = []
            for d in self.data:
                if os.path.exists(reason := os.path.join(self.folder, f"{d}-{measurement}.txt")):
                    with open(reason) as f:
                        why.append(f"{d}: {f.read().strip()}")
            self.say("Not measured" + (" (" + "; ".join(why) + ")" if why else " yet, it needs a GPU" if gpu else " yet") + ".", "")
        return sorted(found, key=lambda d: on_host(d[0]))

    def where(self, table):
        name = "host" if table.host else table.rows[0].get("device") or table.rows[0].get("machine") or "GPU"
        return "the host" if name == "host" else f"one {name}"

    # ---- the SELL-P paper

    COLUMNS = {
        "device": {"CSR": "csr-scalar", "ELLPACK": "ell", "SELL-P": "sellp-paper", "cuSPARSE CSR": "cusparse:csr1", "HYB": "hyb", "our sellp": "sellp"},
        "host": {"MKL CSR": "mkl", "CSR": "csr-scalar", "ELLPACK": "ell", "SELL-P": "sellp-paper", "HYB": "hyb", "our sellp": "sellp"},
    }

    def sellp_table3(self):
        w = self.words
        over_ell = {m: v[2] / v[3] for m, v in TABLE_III.items() if m not in ("Trefethen_20000", "cage10")}
        least, most = ends(over_ell.values())
        self.head(least=least, most=most, which=max(over_ell, key=over_ell.get), csr=mean([v[1] / v[3] for v in TABLE_III.values()]),
                  ahead=sum(v[3] < min(v[4:]) for v in TABLE_III.values()), count=len(TABLE_III))  # fmt: skip
        host = self.data.get("host", {}).get("matrices")
        for device, t in self.devices("matrices"):
            names = [m for m in TABLE_III if m in t.matrices]
            columns = self.COLUMNS[side(device)]
            if not names:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            mkl = not on_host(device) and host and "mkl" in host.formats
            rows = []
            for m in names:
                row = [t.label(m)] + [us(t.seconds(m, f)) for f in columns.values()]
                rows.append(row + ([us(host.seconds(m, "mkl")) if m in host.matrices else "-"] if mkl else []))
            self.say(w("sellp-table3.table", where=self.where(t)))
            self.table(["matrix", *columns] + ([w("sellp-table3.mkl")] if mkl else []), rows)
            self.say(self.sellp_table3_here(device, t, names, columns))
            self.say(self.sellp_table3_why(t, names) if not on_host(device) else w("sellp-table3.why.host"), "")

    def sellp_table3_here(self, device, t, names, columns):
        def over(a, b):
            return [t.seconds(m, a) / t.seconds(m, b) for m in names if t.seconds(m, a) and t.seconds(m, b)]

        w, library = self.words, "mkl" if on_host(device) else "cusparse:csr1"
        published = {m: v for m, v in TABLE_III.items() if m in names}
        is_ = []
        for what, form, digits, k in (("plain CSR", "csr-scalar", 1, 1), ("ELLPACK", "ell", 2, 2)):
            if ratios := over(form, "sellp-paper"):
                then = mean([v[k] / v[3] for v in published.values()])
                numbers = {n: f"{x:.{digits}f}" for n, x in zip(("mean", "least", "most", "published"), (mean(ratios), *ends(ratios), then))}
                is_.append(w("sellp-table3.over", what=what, **numbers))
        both = [m for m in names if all(t.seconds(m, f) for f in ("hyb", "sellp-paper", library))]
        if both:
            count = sum(min(t.seconds(m, library), t.seconds(m, "hyb")) / t.seconds(m, "sellp-paper") > 1 for m in both)
            is_.append(w("sellp-table3.both", lib="MKL" if on_host(device) else "cuSPARSE CSR", count=count, all=len(both)))
        ahead = []
        for c, f in columns.items():
            won = [m for m in names if 0 < t.seconds(m, f) < t.seconds(m, "sellp-paper")]
            if f not in ("sellp", "sellp-paper") and won:
                ahead.append(f"{c} on {', '.join(won)}")
        ours = over("sellp-paper", "sellp")
        return sentences("*Here.*", is_ and w(f"sellp-table3.is.{side(device)}", what=", ".join(is_)), ahead and w("sellp-table3.ahead", what="; ".join(ahead)),
                         ours and w(f"sellp-table3.own.{side(device)}", percent=mean([1 / x for x in ours]) * 100))  # fmt: skip

    def sellp_table3_why(self, t, names):
        """On a GPU"""
        fits = {m: 12 * t.entries(m) < SMALL for m in names if t.seconds(m, "csr-scalar") and t.seconds(m, "sellp-paper")}
        small, large = (mean([t.seconds(m, "csr-scalar") / t.seconds(m, "sellp-paper") for m in fits if fits[m] == yes]) for yes in (True, False))
        sizes = self.words("sellp-table3.why.sizes", small=small, large=large, size=1e-6 * SMALL) if small and large else ""
        return sentences(self.words("sellp-table3.why.sectors", sizes=sizes), self.words("sellp-table3.why.device"))

    def sellp_figure5(self):
        w = self.words
        then = {c: [2e-9 * TABLE_I[m] / v[k] for m, v in TABLE_III.items()] for k, c in enumerate(TABLE_III_COLUMNS)}
        self.head(rates=", ".join(f"{c.replace('CUSPARSE-', 'cuSPARSE ')} {min(v):.1f} to {max(v):.1f}" for c, v in then.items()))
        for device, t in self.devices("matrices"):
            names = [m for m in TABLE_III if m in t.matrices]
            columns = self.COLUMNS[side(device)]
            if not names:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            series = {c: [t.gflops(m, f) for m in names] for c, f in columns.items()}
            self.chart(f"{device}-sellp-figure5", w("sellp-figure5.caption", where=self.where(t)), names, series, "GF/s")
            rates = ", ".join(f"{c} {rate(mean(v))}" for c, v in series.items())
            self.say(sentences(w("sellp-figure5.here", where=self.where(t), rates=rates),
                               w("sellp-figure5.why.host") if on_host(device) else self.against_k40c(t, names)), "")  # fmt: skip

    def against_k40c(self, t, names):
        """Why rates differ from Figure 5's"""
        pairs = {"CSR": "csr-scalar", "ELLPACK": "ell", "SELL-P": "sellp-paper", "CUSPARSE-CSR": "cusparse:csr1", "CUSPARSE-HYB": "hyb"}
        times = []
        for c, f in pairs.items():
            then = mean([2e-9 * TABLE_I[m] / TABLE_III[m][TABLE_III_COLUMNS.index(c)] for m in names])
            times.append(f"{c.replace('CUSPARSE-', 'cuSPARSE ')} {then:.1f} ({mean([t.gflops(m, f) for m in names]) / then:.0f} times)")
        copy = float(t.rows[0]["copy"]) * 1e-9
        fewer = sum(TABLE_I[m] != t.entries(m) for m in names)
        return self.words("sellp-figure5.why.device", times=", ".join(times), fewer=fewer, count=len(names), copy=copy, ratio=copy / 213)

    def sellp_table2(self):
        w = self.words
        self.head()
        for device, t in self.devices("profile", gpu=True):
            t = self.data[device].get("counters", t)  # has more of them
            r = t.at.get(("audikw_1", "sellp-paper"))
            if not r or not t.value(r, "gpu__time_duration.sum"):
                self.say(w("sellp-table2.none"), "")
                continue
            self.table(["audikw_1", "the paper (K40c)", f"{device} (twin)"], [(name, value, h) for (name, value), h in zip(TABLE_II, self.profile_of(r))])
            ns = float(r["gpu__time_duration.sum"])
            read_ = t.value(r, "dram__bytes_read.sum") / ns
            copy = self.data[device].get("matrices")
            share = w("sellp-table2.copy", percent=100 * read_ / (float(copy.rows[0]["copy"]) * 1e-9)) if copy else ""
            self.say(w("sellp-table2.here", rate=read_, copy=share), "")

    @staticmethod
    def profile_of(r):
        """The lines of Table II"""

        def get(name):
            try:
                return float(r[name])
            except (KeyError, ValueError, TypeError):
                return None

        ns = get("gpu__time_duration.sum")

        def gbs(name, size=1):
            v = get(name)
            return "-" if v is None or not ns else f"{v * size / ns:.2f} GB/s"

        def percent(name, scale=1.0):
            v = get(name)
            return "-" if v is None else f"{v * scale:.1f} %"

        active, elapsed, warps = get("sm__cycles_active.avg"), get("sm__cycles_elapsed.max"), get("smsp__warps_launched.sum")
        return [
            f"{ns * 1e-6:.3f} ms",
            signed(get("launch__grid_size")),
            signed(get("launch__block_size")),
            signed(get("launch__registers_per_thread")),
            gbs("dram__bytes_read.sum"),
            gbs("dram__bytes_write.sum"),
            signed(get("launch__shared_mem_per_block")) + " B",
            gbs("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 128),
            gbs("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 128),
            f"{gbs('lts__t_sectors_op_read.sum', 32)}, {gbs('lts__t_bytes.sum')}",
            gbs("lts__t_sectors_op_write.sum", 32),
            percent("lts__t_sector_hit_rate.pct"),
            percent("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"),
            percent("smsp__thread_inst_executed_per_inst_executed.ratio", 100 / 32),
            signed(get("smsp__inst_executed.sum") / warps if warps else None, 1),
            signed(get("sm__inst_issued.avg.per_cycle_active"), 2),
            signed(get("sm__inst_executed.avg.per_cycle_elapsed"), 2),
            signed((get("sm__warps_active.avg.pct_of_peak_sustained_active") or 0) / 100, 2),
            "-" if not active or not elapsed else f"{100 * active / elapsed:.1f} %",
        ]

    def sellp_sweep(self):
        w = self.words
        self.head()
        for device, t in self.devices("sweep"):
            rows, gains = [], []
            forms = [f for f in t.formats if f.startswith("sellp-paper:")]
            for m in t.matrices:
                best, form = t.best(m, forms)
                base = t.seconds(m, "sellp-paper:8:8")
                if not best or not base:
                    continue
                gains.append(base / best)
                _, b, threads = form.split(":")
                rows.append((t.label(m), us(base), us(best), b, threads, f"{base / best:.2f}", us(t.seconds(m, "sellp"))))
            self.say(w("sellp-sweep.table", where=self.where(t)))
            self.table(["matrix", "b = t = 8", "best", "b", "t", "gain", "our sellp"], rows)

            def gain(b, k):
                form, base = f"sellp-paper:{b}:{k}", "sellp-paper:8:8"
                return mean([t.seconds(m, base) / t.seconds(m, form) for m in t.matrices if t.seconds(m, form) and t.seconds(m, base)])

            bs, ts = (sorted({int(f.split(":")[k]) for f in forms}) for k in (1, 2))
            series = {f"b = {b}": [gain(b, k) for k in ts] for b in bs}
            self.chart(f"{device}-sellp-sweep", w("sellp-sweep.caption", where=self.where(t)), ts, series, w("sellp-sweep.axis"), kind="line", xlabel="t")
            self.say(w("sellp-sweep.here", mean=mean(gains), most=max(gains, default=0), why=w(f"sellp-sweep.why.{side(device)}")), "")

    # ---- the EVC-HYB paper

    def evchyb_table3(self):
        w = self.words
        self.head(count=sum(v[1] / (v[1] + v[2]) > 0.99 for v in TABLE_3.values()))
        for _, t in self.devices("matrices")[:1]:  # a property of the matrix
            rows, agree, compared = [], 0, 0
            for m, (isplit, ell, vcsr, added, best) in TABLE_3.items():
                words = t.at.get((m, "partition"), {}).get("kernel", "").split()
                if len(words) != 6:
                    continue
                i, e, c = int(words[1]), int(words[3]), int(words[5])
                extra = 100 * ((e + c) / t.entries(m) - 1)
                lib = t.best(m, ["cusparse:csr1", "cusparse:csr2", "hyb"])[1] if t.seconds(m, "cusparse:csr1") else ""
                compared += lib != ""
                agree += lib != "" and (lib == "hyb") == (best == "HYB")
                rows.append((t.label(m), f"{isplit}, {i}", f"{ell}, {e}", f"{100 * ell / (ell + vcsr):.2f}, {100 * e / (e + c):.2f}", f"{vcsr}, {c}",
                             f"{added:.2f}, {extra:.2f}", f"{best}, {'HYB' if lib == 'hyb' else 'CSR' if lib else '-'}"))  # fmt: skip
            self.say(w("evchyb-table3.table"))
            self.table(["matrix", "Isplit", "in ELL", "% in ELL", "in vector CSR", "% added", "better of CSR and HYB"], rows)
            better = w("evchyb-table3.better", agree=agree, compared=compared) if compared else ""
            self.say(sentences(w("evchyb-table3.here", exact=exact(t)[0], count=len(rows), better=better), w("evchyb-table3.why"), self.partitions()), "")

    def partitions(self):
        """On how many matrices the paper's kernel on the device stores other counts than the partition"""
        for device, t in self.data.items():
            t = t.get("matrices")
            if on_host(device) or not t:
                continue
            differ = []
            for m in MATRICES:
                words, stored = t.at.get((m, "partition"), {}).get("kernel", "").split(), t.number(m, "evchyb-paper", "stored")
                if len(words) == 6 and stored:
                    differ.append(int(words[3]) + int(words[5]) != stored)
            if differ:
                return self.words("evchyb-table3.partitions", different=sum(differ), count=len(differ))
        return ""

    RATES = {"EVC-HYB, sorted": "evchyb-sorted", "EVC-HYB": "evchyb-paper", "cuSPARSE CSR": "cusparse:csr1", "HYB": "hyb", "our evchyb": "evchyb"}

    def evchyb_figure3(self):
        w = self.words
        self.head()
        for device, t in self.devices("matrices", gpu=True):
            names = [m for m in TABLE_3 if all(t.seconds(m, f) for f in ("evchyb-paper", "evchyb-sorted", "evchyb")) and t.best(m, ["cusparse:csr1", "hyb"])[0]]
            if not names:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue

            def speed(form):
                return [t.best(m, ["cusparse:csr1", "hyb"])[0] / t.seconds(m, form) for m in names]

            without, with_, ours = (speed(f) for f in ("evchyb-sorted", "evchyb-paper", "evchyb"))
            loss = [100 * (1 - t.seconds(m, "evchyb-sorted") / t.seconds(m, "evchyb-paper")) for m in names]
            per = [t.entries(m) / float(t.at[m, "evchyb-paper"]["rows"]) for m in names]
            short, long = self.reordering(t, names)
            series = {"without reordering": without, "with reordering": with_, "our evchyb": ours}
            self.chart(f"{device}-evchyb-figure3", w("evchyb-figure3.caption"), names, series, "speed")
            how = {"kind": "points", "xlabel": "entries a row"}
            self.chart(f"{device}-evchyb-figure4", w("evchyb-figure4.caption"), per, {"loss": loss}, "loss by reordering, %", **how)
            rates = {c: [t.gflops(m, f) for m in names] for c, f in self.RATES.items()}
            self.chart(f"{device}-evchyb-figure5", w("evchyb-figure5.caption"), names, rates, "GF/s")
            rows = []
            for m, l, a, b in zip(names, loss, without, with_):
                times = [us(t.seconds(m, f)) for f in ("cusparse:csr1", "hyb", "evchyb-sorted", "evchyb-paper")]
                rows.append((t.label(m), *times, f"{l:.1f}", f"{a:.2f}", f"{b:.2f}", us(t.seconds(m, "evchyb"))))
            head = "matrix,CSR us,HYB us,EVC-HYB| sorted us,EVC-HYB us,loss %,speed| sorted,speed,our evchyb us"
            self.table([c.replace("|", ",") for c in head.split(",")], rows)
            self.say(w("evchyb-figure3.here", where=self.where(t), faster=sum(x >= 1.1 for x in without), count=len(names),
                       alike=sum(0.9 < x < 1.1 for x in without), slower=sum(x <= 0.9 for x in without), least=min(loss, default=0), most=max(loss, default=0),
                       short=short, long=long, ours=mean(ours)), "")  # fmt: skip

    def counters(self, t):
        """matrix -> numbers, of EVC-HYB without reordering"""
        found = {}
        for m in TABLE_3:
            r = t.at.get((m, "evchyb-sorted"))
            whole = r and all(t.value(r, k) for k in ("gpu__time_duration.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"))
            if whole and r["dram__bytes_read.sum"] and r["dram__bytes_write.sum"]:
                ns, moved = float(r["gpu__time_duration.sum"]), float(r["dram__bytes_read.sum"])
                found[m] = {"dram": moved / ns, "l2": float(r["lts__t_bytes.sum"]) / ns, "l1": float(r["l1tex__t_bytes.sum"]) / ns,
                            "hit1": t.value(r, "l1tex__t_sector_hit_rate.pct"), "hit2": t.value(r, "lts__t_sector_hit_rate.pct"),
                            "volume": moved + float(r["dram__bytes_write.sum"]), "l2volume": float(r["lts__t_bytes.sum"])}  # fmt: skip
        return found

    LEVELS = {"DRAM": "dram__bytes_read.sum", "L2": "lts__t_bytes.sum", "L1": "l1tex__t_bytes.sum"}

    def evchyb_figure6(self):
        w = self.words
        self.head()
        for device, t in self.devices("profile", gpu=True):
            c = self.counters(t)
            names = list(c)
            levels = {"DRAM read": "dram", "L2": "l2", "L1": "l1"}
            self.chart(f"{device}-evchyb-figure6", w("evchyb-figure6.caption"), names, {n: [c[m][k] for m in names] for n, k in levels.items()}, "GB/s")
            hits = {"L1": [c[m]["hit1"] for m in names], "L2": [c[m]["hit2"] for m in names]}
            self.chart(f"{device}-evchyb-figure7", w("evchyb-figure7.caption"), names, hits, "%")
            cycles = {m: latency(c[m]["hit1"], c[m]["hit2"]) for m in names}
            full = self.data[device].get("matrices")
            if full:
                how = {"kind": "points", "xlabel": w("evchyb-figure8.axis")}
                points = {"matrices": [full.gflops(m, "evchyb-sorted") for m in names]}
                self.chart(f"{device}-evchyb-figure8", w("evchyb-figure8.caption"), [cycles[m] for m in names], points, "GF/s", **how)
            head = ["matrix", "DRAM read GB/s", "L2 GB/s", "L1 GB/s", "L1 hits %", "L2 hits %", "cycles a load"]
            rates, hits = ("dram", "l2", "l1"), ("hit1", "hit2")
            self.table(head, [(m, *(f"{c[m][k]:.0f}" for k in rates), *(f"{c[m][k]:.1f}" for k in hits), f"{cycles[m]:.0f}") for m in names])
            kernels = [r for r in t.rows if key(r["matrix"]) == "Stanford_Berkeley" and t.value(r, "gpu__time_duration.sum")]
            if kernels:
                self.say(w("evchyb-figure9.table"))
                rows = [(r["kernel"], float(r["gpu__time_duration.sum"]), r) for r in kernels]
                self.table(["kernel", "us", "DRAM read GB/s", "L2 GB/s", "L1 GB/s"],
                           [(k, f"{ns * 1e-3:.1f}", *(f"{t.value(r, x) / ns:.0f}" for x in self.LEVELS.values())) for k, ns, r in rows])  # fmt: skip
            if names:
                self.say(self.evchyb_figure6_here(t, c, cycles, full, kernels), "")

    def evchyb_figure6_here(self, t, c, cycles, full, kernels):
        w, names = self.words, list(c)
        low, high = min(names, key=lambda m: c[m]["hit1"]), max(names, key=lambda m: c[m]["hit1"])
        here = w("evchyb-figure6.here", dram=ends(c[m]["dram"] for m in names), least=c[low]["hit1"], low=low, most=c[high]["hit1"], high=high,
                 l2=ends(c[m]["hit2"] for m in names))  # fmt: skip
        latency = less = ""
        known = [m for m in names if full and full.gflops(m, "evchyb-sorted")]
        if len(known) > 2:
            rates = [full.gflops(m, "evchyb-sorted") for m in known]
            by_latency, by_size = (correlation(rates, values) for values in ([cycles[m] for m in known], [full.entries(m) for m in known]))
            latency = w("evchyb-figure6.latency", latency=by_latency, size=by_size)
        if kernels:
            first, others = kernels[0], [r for r in kernels if r["format"] == "hyb"]

            def moved(r, what):
                return t.value(r, what) / t.value(r, "gpu__time_duration.sum")

            levels = [k for k, what in self.LEVELS.items() if all(moved(first, what) < moved(r, what) for r in others)]
            less = w("evchyb-figure6.less", levels=", ".join(levels)) if others and levels else ""
        return sentences(here, latency, less, w("evchyb-figure6.why"))

    def evchyb_figure10(self):
        w = self.words
        self.head()
        for device, t in self.devices("profile", gpu=True):
            full, rows = self.data[device].get("matrices"), []
            if not full:
                self.say(w("evchyb-figure10.none"), "")
                continue
            b = float(full.rows[0]["copy"]) * 1e-9
            for m, c in self.counters(t).items():
                nz, stored = full.entries(m), full.number(m, "evchyb-sorted", "stored")
                gflops = full.gflops(m, "evchyb-sorted")
                if not stored or not gflops:
                    continue
                n = float(full.at[m, "evchyb-sorted"]["rows"])
                beta, per = nz / stored, nz / n
                alpha = {k: 0.25 * (c[v] / (2 * nz) - 6 / beta - 8 / per) for k, v in (("DRAM", "volume"), ("L2", "l2volume"))}
                balance = {k: (12 / beta + 8 * a + 16 / per) / (2 + 3 / per) for k, a in alpha.items()}
                flops = gflops * (2 + 3 / per) / 2
                rows.append((m, alpha["DRAM"], alpha["L2"], balance["DRAM"], balance["L2"], flops, b / balance["DRAM"] if balance["DRAM"] > 0 else 0))
            names = [r[0] for r in rows]
            self.table(["matrix", "alpha by DRAM", "alpha by L2", "B by DRAM", "B by L2", "GF/s", "b / B by DRAM"],
                       [(r[0], *(f"{x:.2f}" for x in r[1:5]), f"{r[5]:.0f}", f"{r[6]:.0f}") for r in rows])  # fmt: skip
            series = {"alpha": [r[2] for r in rows], "B, bytes a flop": [r[4] for r in rows]}
            self.chart(f"{device}-evchyb-figure10", w("evchyb-figure10.caption"), names, series, "")
            series = {"measured": [r[5] for r in rows], "b / B": [r[6] for r in rows]}
            self.chart(f"{device}-evchyb-figure11", w("evchyb-figure11.caption"), names, series, "GF/s")
            if rows:
                big = [r for r in rows if full.number(r[0], "evchyb-sorted", "bytes") > 2e8]
                parts, rest = [r[5] / r[6] for r in big if r[6]], [r[5] / r[6] for r in rows if r[6] and r not in big]
                rest = w("evchyb-figure10.rest", least=min(rest), most=max(rest)) if rest else ""
                self.say(sentences(w("evchyb-figure10.here", b=b, dram=ends(r[1] for r in rows), l2=ends(r[2] for r in rows)),
                                   parts and w("evchyb-figure10.large", least=min(parts), most=max(parts), rest=rest),
                                   w("evchyb-figure10.why", highest=max(rows, key=lambda r: r[2])[0])), "")  # fmt: skip

    def evchyb_figure12(self):
        w = self.words
        self.head()
        for device, t in self.devices("matrices", gpu=True):
            rows = []
            for m in TABLE_3:
                whole, x, a, both = (t.seconds(m, f) for f in ("evchyb-sorted", "evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both"))
                if whole and x and a and both:
                    ta, tx, ty = max(0, x - both), max(0, a - both), both
                    total = ta + tx + ty
                    rows.append((m, total / whole, ta / total, tx / total, ty / total, *(t.gflops(m, f"evchyb-{f}") for f in ("sorted", "hold-x", "hold-a"))))
            names = [r[0] for r in rows]
            self.table(["matrix", "T_A + T_X + T_Y over the whole", "T_A %", "T_X %", "T_Y %", "GF/s", "x constant", "A constant"],
                       [(r[0], f"{r[1]:.2f}", *(f"{100 * v:.0f}" for v in r[2:5]), *(f"{v:.0f}" for v in r[5:])) for r in rows])  # fmt: skip

            def column(*which):
                return {name: [r[k] for r in rows] for name, k in which}

            self.chart(f"{device}-evchyb-figure12", w("evchyb-figure12.caption"), names, column(("sum over whole", 1)), "ratio")
            self.chart(f"{device}-evchyb-figure13", w("evchyb-figure13.caption"), names, column(("A", 2), ("x", 3), ("y", 4)), "share", kind="stack")
            self.chart(f"{device}-evchyb-figure14", w("evchyb-figure14.caption"), names, column(("complete", 5), ("x constant", 6), ("A constant", 7)), "GF/s")
            if rows:
                chain, below = [r[0] for r in rows if r[7] < 1.05 * r[5]], [r[0] for r in rows if r[1] < 0.95]
                a, x, y = (ends(100 * r[k] for r in rows) for k in (2, 3, 4))
                self.say(w("evchyb-figure12.here", where=self.where(t), sum=ends(r[1] for r in rows), a=a, x=x, y=y, most=max(rows, key=lambda r: r[3])[0],
                           chain=w("evchyb-figure12.chain", which=", ".join(chain)) if chain else "",
                           below=" " + w("evchyb-figure12.below", which=", ".join(below)) if below else ""), "")  # fmt: skip

    FORMS15 = {
        "EVC-HYB, sorted": "evchyb-sorted",
        "EVC-HYB": "evchyb-paper",
        "CSR, a warp a row": "csr-vector",
        "cuSPARSE CSR": "cusparse:csr1",
        "MKL CSR": "mkl",
        "AIJ": "petsc:aij",
        "AIJCUSPARSE": "petsc:aijcusparse",
        "HYB": "hyb",
        "our evchyb": "evchyb",
        "our sellp": "sellp",
    }

    def evchyb_figure15(self):
        w = self.words
        self.head()
        for device, t in self.devices("random"):
            t.matrices.sort(key=t.entries)  # whatever was measured first
            forms = {c: f for c, f in self.FORMS15.items() if any(t.seconds(m, f) for m in t.matrices) and (f != "petsc:aij" or on_host(device))}
            names = [f"{float(next(r['rows'] for r in t.rows if key(r['matrix']) == m)):.0f}" for m in t.matrices]
            rows = [(n, f"{t.entries(m):.0f}", *(f"{t.gflops(m, f):.1f}" for f in forms.values())) for n, m in zip(names, t.matrices)]
            self.table(["rows", "entries", *forms], rows)
            series = {c: [t.gflops(m, f) for m in t.matrices] for c, f in forms.items()}
            caption = w("evchyb-figure15.caption", where=self.where(t))
            self.chart(f"{device}-evchyb-figure15", caption, [float(n) for n in names], series, "GF/s", kind="line", xlabel="rows")
            last = t.matrices[-1]
            share = max(1 / 3, min(1, 4096 / float(names[-1]))) ** 2  # lengths are uniform: of the rows beyond the width, squared
            behind = []
            for n, m in zip(names, t.matrices):
                if max(t.gflops(m, "evchyb"), t.gflops(m, "sellp")) * 1.05 < max(t.gflops(m, f) for f in forms.values()):
                    behind.append(n)
            rates = ", ".join(f"{c} {rate(t.gflops(last, f))}" for c, f in forms.items())
            atomics = "" if on_host(device) else w("evchyb-figure15.atomics")
            self.say(sentences(w("evchyb-figure15.here", where=self.where(t), entries=t.entries(last) * 1e-6, rates=rates),
                               "" if on_host(device) else w("evchyb-figure15.why.device"),
                               w("evchyb-figure15.behind", rows=", ".join(behind)) if behind and not on_host(device) else "",
                               w("evchyb-figure15.hyb", percent=100 * share, atomics=atomics)), "")  # fmt: skip

    def evchyb_figure16(self):
        w = self.words
        self.head()
        for device, t in self.devices("bratu"):
            n = int(t.rows[0]["n"])
            nz = 7 * n**3 - 6 * n**2
            rows = []
            for r in t.rows:
                gflops = rate(1e-3 * t.flops * nz / float(r["product_us"]))
                times = [f"{float(r[c]):.{digits}f}" for c, digits in (("solve", 3), ("ksp", 3), ("product_us", 1))]
                rows.append((r["format"], *times, gflops, r["newton"], r["krylov"]))
            self.table([f"{n}^3 points, {device}", "SNESSolve s", "KSPSolve s", "product us", "product GF/s", "Newton", "Krylov"], rows)
            gain = self.bratu_gain(t)
            if gain:
                self.say(sentences(w("evchyb-figure16.here", **gain), "" if on_host(device) else w("evchyb-figure16.device")), "")

    # ---- the comparison of formats

    def formats(self):
        w = self.words
        self.head()
        for device, t in self.devices("profiles"):
            rows, even, paid, slow = [], [], {}, []
            wins = dict.fromkeys(FIVE, 0)
            for m in t.matrices:
                best = {name: t.best(m, kinds) for name, kinds in FIVE.items()}
                got = {name: b for name, b in best.items() if b[0]}
                if "CSR" not in got:
                    continue
                wins[min(got, key=lambda f: got[f][0])] += 1
                library, base = t.best(m, LIBRARY)[0], got["CSR"][0]
                slow += [library / base] if library else []
                cells = [f"{us(s)} ({form})" if s else "-" for s, form in best.values()]
                rows.append((t.label(m), f"{t.entries(m):.0f}", *cells, us(library), us(t.best(m, ["sellp", "evchyb"])[0])))
                line = [t.label(m)]
                for name in FIVE:
                    if name == "CSR" or name not in got:
                        line.append("-" if name not in got else "0")
                        continue
                    s, form = got[name]
                    convert = t.number(m, form, "convert")
                    if s < base:
                        paid.setdefault(name, []).append(convert / (base - s))
                    line.append(f"{1e3 * convert:.2f} ms, " + (f"{convert / (base - s):.0f}" if s < base else "never"))
                even.append(line)
            lib = "cuSPARSE CSR" if not on_host(device) else "MKL CSR"
            self.say(w("formats.table", where=self.where(t)))
            self.table(["matrix", "entries", *FIVE, lib, "our better one"], rows)
            self.say(w("formats.convert"))
            self.table(["matrix", *FIVE], even)
            series = {f: [t.gflops(m, t.best(m, k)[1]) for m in t.matrices] for f, k in FIVE.items()}
            self.chart(f"{device}-formats", w("formats.caption", where=self.where(t)), [t.label(m) for m in t.matrices], series, "GF/s")
            self.say(self.formats_here(device, t, wins, len(rows), paid, slow, lib), "")

    def formats_here(self, device, t, wins, count, paid, slow, lib):
        w = self.words
        coo = [t.seconds(m, "coo") / t.seconds(m, "coo-balanced") for m in t.matrices if t.seconds(m, "coo-balanced") and t.seconds(m, "coo")]
        ell = [t.best(m, FIVE["SELL-C-sigma"])[0] / t.seconds(m, "ell") for m in t.matrices if t.seconds(m, "ell") and t.best(m, ["sell-32"])[0]]
        cant = [t.best("cant", kinds)[0] for kinds in (["coo"], ["coo-segmented", "coo-balanced", "csr-scalar", "csr-vector"])] if "cant" in t.matrices else [0]
        fastest = ", ".join(f"{f} {n}" for f, n in sorted(wins.items(), key=lambda x: -x[1]) if n)
        least_most = {f: " to ".join(dict.fromkeys(f"{n:.0f}" for n in ends(v))) for f, v in paid.items()}
        after = ", ".join(f"{f} {least_most[f]} ({len(v)} {'matrix' if len(v) == 1 else 'matrices'})" for f, v in paid.items())
        return sentences(w("formats.here", where=self.where(t), wins=fastest, count=count, ell=" " + w("formats.ell", mean=mean(ell)) if ell else ""),
                         slow and w("formats.lib", lib=lib, mean=mean(slow), least=min(slow), most=max(slow)),
                         coo and w("formats.coo", mean=mean(coo)),
                         all(cant) and w("formats.cant", ratio=cant[0] / cant[1]),
                         paid and w("formats.paid", what=after),
                         w("formats.why"), w(f"formats.why.{side(device)}"))  # fmt: skip

    # ---- this library

    SAME = ("sellp-paper", "evchyb-paper")  # on the host these are our own layouts, not other formats
    OTHER = ("evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both", "evchyb-sorted", "partition", "sellp", "evchyb")

    def same_layout(self, t, names):
        """The host: what is not another format, and what that shows about the noise"""
        again = [x for m in names if (x := self.again(t, m))]
        fewer = sum(t.number(m, "sellp-paper", "bytes") < 12 * t.number(m, "sellp-paper", "stored") for m in names)
        return sentences(self.words("ours.same-layout", alike=len(again), count=len(names), fewer=fewer),
                         again and self.words("ours.noise", least=min(again), most=max(again)))  # fmt: skip

    def node_blocks(self, t, names, ratios):
        """The device: how much of the gain is of matrices whose dense node blocks are an assumption"""
        parts = {yes: [x for m, x in zip(names, ratios) if self.blocked(t, m) == yes] for yes in (True, False)}
        blocks = [m for m in names if self.blocked(t, m)]
        twins = sum(t.at[m, "sellp"]["origin"] == "twin" for m in blocks)
        if not all(parts.values()):
            return ""
        return self.words("ours.node-blocks", count=len(blocks), twins=twins, mean=mean(parts[True]), others=len(parts[False]), rest=mean(parts[False]))

    def ours(self):
        w = self.words
        self.head()
        self.say(w("ours.aim"), "")
        for device, t in self.devices("matrices"):
            same = [f for f in self.SAME if on_host(device) and f in t.formats]
            others = [f for f in t.formats if f not in (*self.OTHER, *same)]
            names = [m for m in MATRICES if t.seconds(m, "sellp") and t.seconds(m, "evchyb") and t.best(m, others)[0]]
            rows, missed, ratios, single = [], [], [], {"sellp": 0, "evchyb": 0}
            for m in names:
                own, form = t.best(m, ["sellp", "evchyb"])
                other, name = t.best(m, others)
                ratio = other / own
                ratios.append(ratio)
                for f in single:
                    single[f] += other / t.seconds(m, f) >= 1 / 1.05
                if ratio < 1 / 1.05:
                    why = f"ours.why.{device.split('-')[0]}.{m}"
                    missed.append(w("ours.missed", matrix=m, format=name, percent=100 * (1 / ratio - 1)) + (f": {w(why)}" if why in w else ""))
                verdict = "fastest" if ratio >= 1 else "within 5 %" if ratio >= 1 / 1.05 else "**slower**"
                times = [us(s) for s in (t.seconds(m, "sellp"), t.seconds(m, "evchyb"), other)]
                above = [f"{t.above(m, f):.1f}" for f in (form, name)]
                rows.append((t.label(m), f"{t.entries(m):.0f}", *times, name, f"{ratio:.2f}", *above, verdict))
            if not names:
                self.say(w("no-matrix", where=self.where(t)), "")
                continue
            self.say(w("ours.table", where=self.where(t), time="smallest times" if on_host(device) else "medians"))
            self.table(["matrix", "entries", "sellp", "evchyb", "best other", "which", "its time over ours", "spread of ours, %", "of its, %", ""], rows)
            self.chart(f"{device}-ours", "Time of the best other format over ours", names, {"best other over ours": ratios}, "ratio")
            self.by_format(t, names, others)
            self.say(w("ours.all"))
            forms = ["sellp", "evchyb"] + same + others
            self.table(["matrix", *(self.name(t, f) for f in forms)], [(t.label(m), *(us(t.seconds(m, f)) for f in forms)) for m in names])
            self.say("</details>", "", self.spread(t), "")
            twins, lost = [m for m in names if t.label(m) != m], [m for m in MATRICES if m not in names]
            counts = {"twins": len(twins), "count": len(names), "good": len(names) - len(missed), **single}
            self.say(sentences(w("ours.here", mean=mean(ratios), least=min(ratios, default=0), **counts),
                               self.same_layout(t, names) if same else self.node_blocks(t, names, ratios),
                               w("ours.exceptions") if missed else w("ours.no-exception"), lost and w("ours.lost", which=", ".join(lost))),
                     "", *missed, "")  # fmt: skip

    def by_format(self, t, names, others):
        by = []
        for f in ["sellp", "evchyb"] + others:
            over = {m: t.seconds(m, f) / t.best(m, ["sellp", "evchyb"])[0] for m in names if t.seconds(m, f)}
            best = sum(t.seconds(m, f) <= t.best(m, ["sellp", "evchyb"] + others)[0] for m in over)
            by.append((mean(over.values()), (f, len(over), f"{mean(over.values()):.2f}", f"{min(over.values(), default=0):.2f}", best)))
        self.say(self.words("ours.by-format"))
        self.table(["format", "matrices", "time over ours", "least", "fastest on"], [r for _, r in sorted(by) if r[1]])

    # ---- all of it

    KINDS = {"complex": "complex numbers", "single": "single precision", "64bit": "64-bit indices"}

    def write(self, experiments):
        """experiments: name -> function of a Report"""
        w = self.words
        self.say(w("intro.title"), "", w("intro.what"), "")
        if len(experiments) > 1:
            self.abstract()
        self.say(w("intro.how-title"), "", w("intro.how"), "")
        for device in sorted(self.data, key=on_host):
            name = next((t.rows[0]["device"] for t in self.data[device].values() if "device" in t.rows[0]), device)
            note, wrong = os.path.join(self.folder, f"{device}.txt"), [x for t in self.data[device].values() for x in t.wrong]
            about = [name] + [what for word, what in self.KINDS.items() if word in device.split("-")]
            if os.path.exists(note):
                with open(note) as f:
                    about.append(f.read().strip())
            commits = {}
            for measurement, t in self.data[device].items():
                for c in sorted({r["commit"] for r in t.rows if r.get("commit")}):
                    part = any(r.get("commit") != c for r in t.rows)
                    commits.setdefault(c, []).append(w("intro.part", name=measurement) if part else measurement)
            which = "; ".join(f"commit {c}: {', '.join(sorted(m))}" for c, m in commits.items())
            unnamed = ", ".join(sorted(name for name, t in self.data[device].items() if not any(r.get("commit") for r in t.rows)))
            more = (w("intro.commits", which=which) if which else "") + (w("intro.no-commit", which=unnamed) if unnamed else "") + (w("intro.wrong", which=", ".join(wrong)) if wrong else "")
            self.say(f"- {device}: {', '.join(about)}{more}")
        for self.now, experiment in experiments.items():
            experiment(self)
        self.deviations()
        self.say("", w("missing.title"), "", *(f"- {w(name)}" for name in w.texts if name.startswith("missing.") and name != "missing.title"), "")
        os.makedirs(os.path.dirname(self.target), exist_ok=True)
        with results.whole(self.target) as f:
            f.write(re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", "\n".join(self.lines) + "\n")).rstrip() + "\n")
        print(f"wrote {os.path.relpath(self.target, os.path.dirname(os.path.dirname(HERE)))}")
