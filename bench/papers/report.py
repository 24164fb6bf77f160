"""The report on the papers' experiments, from the CSV files: numbers and tables. Its words are in report.md

Each function of EXPERIMENTS gets a Part, adds its tables, and returns the values that report.md names; None if what it needs was not measured.
"""

import itertools
import math
import os
import re
import statistics

import results

from measure import DENSITIES, SIGMAS
from published import MATRICES, SMALL, TABLE_2, TABLE_3, TABLE_I, TABLE_II, TABLE_III, TABLE_III_COLUMNS
from results import mean, read
from tables import Table, correlation, key, on_host

OURS = ("sellp", "evchyb")
FIVE = {
    "COO": ["coo", "coo-segmented", "coo-balanced"],
    "CSR": ["csr-scalar", "csr-vector"],
    "ELL": ["ell"],
    "SELL-C-sigma": ["sell-32", "sell-32-1024", "sell-32-all", "sell-8-64"],
    "CSR5": ["csr5", "csr5-8-16"],
}
LIBRARY = ["cusparse:csr1", "mkl"]
SPREAD = 5  # percent
NS = "gpu__time_duration.sum"


def us(seconds):
    return "-" if seconds <= 0 else f"{1e6 * seconds:.{1 if seconds < 1e-4 else 0}f}"


def rate(gflops):
    return f"{gflops:.{0 if gflops > 20 else 1}f}"


def ends(values):
    """The least and the most"""
    values = list(values)
    return min(values, default=0), max(values, default=0)


def ratios(t, names, a, b):
    return [t.seconds(m, a) / t.seconds(m, b) for m in names if t.seconds(m, a) and t.seconds(m, b)]


class Part:
    """An experiment on the GPU or the host: the measurement that it needs (t), all others there, and its tables"""

    def __init__(self, report, role, t=None):
        self.report, self.all, self.t, self.tables = report, report.data.get(role, {}), t, []
        self.host, self.device = role == "host", report.devices.get(role)

    def table(self, columns, rows):
        self.tables.append("\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(map(str, r)) + " |" for r in rows)]))

    def copy(self, *measurements):
        """A copy's bandwidth, GB/s"""
        tables = [self.all[k] for k in measurements if k in self.all]
        return next((float(t.rows[0]["copy"]) * 1e-9 for t in tables if float(t.rows[0].get("copy") or 0)), 0.0)

    def name(self, form):
        """What a format is called in a table: on the host the papers' kernels do not exist, and what is measured there under their names is our own layout"""
        return {"sellp-paper": "sellp, b = t = 8, rows in order", "evchyb-paper": "evchyb, measured again"}.get(form, form) if self.host else form


def where(t):
    name = "host" if t.host else t.rows[0].get("device") or t.rows[0].get("machine") or "GPU"
    return "the host" if name == "host" else f"one {name}"


# ---- the SELL-P paper

GPU_COLUMNS = {"CSR": "csr-scalar", "ELLPACK": "ell", "SELL-P": "sellp-paper", "cuSPARSE CSR": "cusparse:csr1", "HYB": "hyb", "our sellp": "sellp"}
HOST_COLUMNS = {"MKL CSR": "mkl", "CSR": "csr-scalar", "ELLPACK": "ell", "SELL-P": "sellp-paper", "HYB": "hyb", "our sellp": "sellp"}


def sellp_table3(p):
    t, names, columns = p.t, [m for m in TABLE_III if m in p.t.matrices], HOST_COLUMNS if p.host else GPU_COLUMNS
    library, mkl = "mkl" if p.host else "cusparse:csr1", None if p.host else p.report.data.get("host", {}).get("matrices")
    rows = [[t.label(m)] + [us(t.seconds(m, f)) for f in columns.values()] + ([us(mkl.seconds(m, "mkl"))] if mkl else []) for m in names]
    p.table(["matrix", *columns] + (["MKL CSR, one core of another machine"] if mkl else []), rows)
    csr, ell, ours = ratios(t, names, "csr-scalar", "sellp-paper"), ratios(t, names, "ell", "sellp-paper"), ratios(t, names, "sellp", "sellp-paper")
    fits = {m: 12 * t.entries(m) < SMALL for m in names}
    both = [m for m in names if all(t.seconds(m, f) for f in ("hyb", "sellp-paper", library))]
    ahead = {c: [m for m in names if 0 < t.seconds(m, f) < t.seconds(m, "sellp-paper")] for c, f in columns.items() if f not in ("sellp", "sellp-paper")}
    return dict(csr=mean(csr), csr_ends=ends(csr), csr_paper=mean([TABLE_III[m][1] / TABLE_III[m][3] for m in names]), csr_won=sum(x > 1 for x in csr),
                ell=mean(ell), ell_ends=ends(ell), ell_paper=mean([TABLE_III[m][2] / TABLE_III[m][3] for m in names]), ell_won=sum(x > 1 for x in ell),
                both=sum(min(t.seconds(m, library), t.seconds(m, "hyb")) > t.seconds(m, "sellp-paper") for m in both), all=len(both), percent=100 * mean(ours),
                ahead="; ".join(f"{c} on {', '.join(won)}" for c, won in ahead.items() if won) or "none",
                worst=1 / max(ratios(t, ["crankseg_2"], library, "sellp-paper"), default=math.inf), size=1e-6 * SMALL,
                small=mean(ratios(t, [m for m in names if fits[m]], "csr-scalar", "sellp-paper")),
                large=mean(ratios(t, [m for m in names if not fits[m]], "csr-scalar", "sellp-paper")))  # fmt: skip


def sellp_figure5(p):
    t, names, columns = p.t, [m for m in TABLE_III if m in p.t.matrices], HOST_COLUMNS if p.host else GPU_COLUMNS
    series = {c: [t.gflops(m, f) for m in names] for c, f in columns.items()}
    times = []
    for c, f in zip(TABLE_III_COLUMNS[1:], ("csr-scalar", "ell", "sellp-paper", "cusparse:csr1", "hyb")):
        then = mean([2e-9 * TABLE_I[m] / TABLE_III[m][TABLE_III_COLUMNS.index(c)] for m in names])
        times.append(f"{c.replace('CUSPARSE-', 'cuSPARSE ')} {then:.1f} ({mean([t.gflops(m, f) for m in names]) / then:.0f} times)")
    copy = p.copy("matrices")
    return dict(rates=", ".join(f"{c} {rate(mean(v))}" for c, v in series.items()), times=", ".join(times), count=len(names), copy=copy, ratio=copy / 213,
                fewer=sum(TABLE_I[m] != t.entries(m) for m in names))  # fmt: skip


def sellp_table2(p):
    t = p.all.get("counters", p.t)  # has more of them
    r = t.at.get(("audikw_1", "sellp-paper"))
    if not r or not t.value(r, NS):
        return None
    ns = t.value(r, NS)

    def of(name, scale, digits, unit=""):
        return f"{t.value(r, name) * scale:.{digits}f}{unit}" if r.get(name) else "-"

    def gbs(name, size=1):
        return of(name, size / ns, 2, " GB/s")

    warps, cycles = t.value(r, "smsp__warps_launched.sum"), t.value(r, "sm__cycles_elapsed.max")
    here = [of(NS, 1e-6, 3, " ms"), *(of(f"launch__{x}", 1, 0) for x in ("grid_size", "block_size", "registers_per_thread")),
            gbs("dram__bytes_read.sum"), gbs("dram__bytes_write.sum"), of("launch__shared_mem_per_block", 1, 0, " B"),
            *(gbs(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{x}.sum", 128) for x in ("ld", "st")),
            f"{gbs('lts__t_sectors_op_read.sum', 32)}, {gbs('lts__t_bytes.sum')}", gbs("lts__t_sectors_op_write.sum", 32),
            of("lts__t_sector_hit_rate.pct", 1, 1, " %"), of("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", 1, 1, " %"),
            of("smsp__thread_inst_executed_per_inst_executed.ratio", 100 / 32, 1, " %"), of("smsp__inst_executed.sum", 1 / warps if warps else 0, 1),
            of("sm__inst_issued.avg.per_cycle_active", 1, 2), of("sm__inst_executed.avg.per_cycle_elapsed", 1, 2),
            of("sm__warps_active.avg.pct_of_peak_sustained_active", 0.01, 2), of("sm__cycles_active.avg", 100 / cycles if cycles else 0, 1, " %")]  # fmt: skip
    p.table(["audikw_1", "the paper (K40c)", f"{p.device} (twin)"], [(*then, now) for then, now in zip(TABLE_II, here)])
    moved = t.value(r, "dram__bytes_read.sum") / ns
    return dict(rate=moved, percent=100 * moved / (p.copy("matrices") or math.inf))


def sellp_sweep(p):
    t, base = p.t, "sellp-paper:8:8"
    forms = [f for f in t.formats if f.startswith("sellp-paper:")]
    found = [(m, t.seconds(m, base), *t.best(m, forms)) for m in t.matrices if t.seconds(m, base)]
    p.table(["matrix", "b = t = 8", "best", "b", "t", "gain", "our sellp"],
            [(t.label(m), us(s), us(best), *form.split(":")[1:], f"{s / best:.2f}", us(t.seconds(m, "sellp"))) for m, s, best, form in found])  # fmt: skip
    gains = [s / best for _, s, best, _ in found]
    return dict(mean=mean(gains), most=max(gains, default=0))


# ---- the EVC-HYB paper


def evchyb_table2(p):
    found = [t["stream"] for t in p.report.data.values() if "stream" in t]
    if not found:
        return None
    gbs = lambda t, k: 1e-9 * t.number(t.matrices[0], k, "bytes") / (t.seconds(t.matrices[0], k) or math.inf)
    p.table(["GB/s", "the paper (K20X)", *map(where, found)], [(k, f"{v:.2f}", *(f"{gbs(t, k):.0f}" for t in found)) for k, v in TABLE_2.items()])
    r = {k: gbs(found[0], k) for k in TABLE_2}
    values = dict(where=where(found[0]), ratio=r["copy"] / TABLE_2["copy"], more=100 * ((r["add"] + r["triad"]) / (r["copy"] + r["scale"]) - 1))
    full = p.report.data.get("gpu", {}).get("matrices")
    return dict(values, copy=float(full.rows[0]["copy"]) * 1e-9) if full else values


def stored(t, m):
    """Isplit, entries in ELL and in vector CSR"""
    words = t.at.get((m, "partition"), {}).get("kernel", "").split()
    return [int(words[k]) for k in (1, 3, 5)] if len(words) == 6 else None


def evchyb_table3(p):
    t, rows, exact, agree, compared = p.t, [], 0, 0, 0
    for m, (isplit, ell, vcsr, added, best) in TABLE_3.items():
        if not stored(t, m):
            continue
        i, e, c = stored(t, m)
        extra = 100 * ((e + c) / t.entries(m) - 1)
        lib = t.best(m, ["cusparse:csr1", "cusparse:csr2", "hyb"])[1] if t.seconds(m, "cusparse:csr1") else ""
        exact += abs(extra - added) < 0.1
        compared += lib != ""
        agree += lib != "" and (lib == "hyb") == (best == "HYB")
        rows.append((t.label(m), f"{isplit}, {i}", f"{ell}, {e}", f"{100 * ell / (ell + vcsr):.2f}, {100 * e / (e + c):.2f}", f"{vcsr}, {c}",
                     f"{added:.2f}, {extra:.2f}", f"{best}, {'HYB' if lib == 'hyb' else 'CSR' if lib else '-'}"))  # fmt: skip
    p.table(["matrix", "Isplit", "in ELL", "% in ELL", "in vector CSR", "% added", "better of CSR and HYB"], rows)
    differ = [sum(stored(t, m)[1:]) != t.number(m, "evchyb-paper", "stored") for m in MATRICES if stored(t, m) and t.number(m, "evchyb-paper", "stored")]
    return dict(exact=exact, count=len(rows), agree=agree, compared=compared, different=sum(differ), kernels=len(differ))


def evchyb_figure3(p):
    t, lib = p.t, ["cusparse:csr1", "hyb"]
    forms = {"without reordering": "evchyb-sorted", "with reordering": "evchyb-paper", "our evchyb": "evchyb"}
    names = [m for m in TABLE_3 if all(t.seconds(m, f) for f in forms.values()) and t.best(m, lib)[0]]
    speed = {c: [t.best(m, lib)[0] / t.seconds(m, f) for m in names] for c, f in forms.items()}
    loss = [100 * (1 - t.seconds(m, "evchyb-sorted") / t.seconds(m, "evchyb-paper")) for m in names]
    per = [t.entries(m) / float(t.at[m, "evchyb-paper"]["rows"]) for m in names]
    without, with_, ours = speed.values()
    p.table(["matrix", "CSR us", "HYB us", "EVC-HYB, sorted us", "EVC-HYB us", "loss %", "speed, sorted", "speed", "our evchyb us"],
            [(t.label(m), *(us(t.seconds(m, f)) for f in (*lib, "evchyb-sorted", "evchyb-paper")), f"{lost:.1f}", f"{a:.2f}", f"{b:.2f}", us(t.seconds(m, "evchyb")))
             for m, lost, a, b in zip(names, loss, without, with_)])  # fmt: skip
    short, long = (statistics.mean([x for x, n in zip(loss, per) if (n < 12) == yes] or [0]) for yes in (True, False))
    return dict(faster=sum(x >= 1.1 for x in without), count=len(names), alike=sum(0.9 < x < 1.1 for x in without), slower=sum(x <= 0.9 for x in without),
                loss=ends(loss), short=short, long=long, ours=mean(ours))  # fmt: skip


def latency(hit1, hit2):
    """Average cycles of a load, from hit rates in percent. The latencies of a Hopper GPU, rounded from published micro-benchmarks: L1 33, L2 270, DRAM 600"""
    h1, h2 = hit1 / 100, hit2 / 100
    return 33 * h1 + (1 - h1) * (270 * h2 + 600 * (1 - h2))


def counters(t):
    """matrix -> numbers, of EVC-HYB without reordering"""
    found = {}
    for m in TABLE_3:
        r = t.at.get((m, "evchyb-sorted"))
        if r and all(t.value(r, k) for k in (NS, "lts__t_bytes.sum", "l1tex__t_bytes.sum")) and r["dram__bytes_read.sum"] and r["dram__bytes_write.sum"]:
            ns, moved, l2 = t.value(r, NS), t.value(r, "dram__bytes_read.sum"), t.value(r, "lts__t_bytes.sum")
            found[m] = {"dram": moved / ns, "l2": l2 / ns, "l1": t.value(r, "l1tex__t_bytes.sum") / ns, "hit1": t.value(r, "l1tex__t_sector_hit_rate.pct"),
                        "hit2": t.value(r, "lts__t_sector_hit_rate.pct"), "volume": moved + t.value(r, "dram__bytes_write.sum"), "l2volume": l2}  # fmt: skip
            found[m]["cycles"] = latency(found[m]["hit1"], found[m]["hit2"])
    return found


LEVELS = {"DRAM": "dram__bytes_read.sum", "L2": "lts__t_bytes.sum", "L1": "l1tex__t_bytes.sum"}


def evchyb_figure6(p):
    t, c, full = p.t, counters(p.t), p.all.get("matrices")
    if not c or not full:
        return None
    names, column = list(c), lambda k: [c[m][k] for m in c]
    rates = [full.gflops(m, "evchyb-sorted") for m in names]
    p.table(["matrix", "DRAM read GB/s", "L2 GB/s", "L1 GB/s", "L1 hits %", "L2 hits %", "cycles a load"],
            [(m, *(f"{x[k]:.{d}f}" for k, d in (("dram", 0), ("l2", 0), ("l1", 0), ("hit1", 1), ("hit2", 1), ("cycles", 0)))) for m, x in c.items()])  # fmt: skip
    kernels = [r for r in t.rows if key(r["matrix"]) == "Stanford_Berkeley" and t.value(r, NS)]
    moved = lambda r: {k: t.value(r, what) / t.value(r, NS) for k, what in LEVELS.items()}
    p.table(["kernel", "us", "DRAM read GB/s", "L2 GB/s", "L1 GB/s"],
            [(r["kernel"], f"{t.value(r, NS) * 1e-3:.1f}", *(f"{x:.0f}" for x in moved(r).values())) for r in kernels])  # fmt: skip
    others = [moved(r) for r in kernels if r["format"] == "hyb"]
    low, high = (f(names, key=lambda m: c[m]["hit1"]) for f in (min, max))
    known = [m for m, x in zip(names, rates) if x]
    correlations = [correlation([full.gflops(m, "evchyb-sorted") for m in known], values) for values in ([c[m]["cycles"] for m in known], [full.entries(m) for m in known])]
    return dict(dram=ends(column("dram")), least=c[low]["hit1"], low=low, most=c[high]["hit1"], high=high, l2=ends(column("hit2")), latency=correlations[0],
                size=correlations[1], levels=", ".join(k for k in LEVELS if others and all(moved(kernels[0])[k] < x[k] for x in others)) or "none")  # fmt: skip


def evchyb_table4(p):
    t, m, r = p.t, "web-Google", p.all.get("counters")
    forms = {"evchyb-sorted": "read-only loads", "evchyb-load-x": "other loads, through L1", "evchyb-l2-x": "loads from L2"}
    if not t.seconds(m, "evchyb-sorted"):
        return None
    rows = [["GF/s", "5.34", "4.89", *(f"{t.gflops(m, f):.1f}" for f in forms)]]
    lines = [("DRAM read, GB/s", "146.80", "134.83", "dram__bytes_read.sum", 1), ("L2 read, GB/s", "124.15", "114.81", "lts__t_sectors_op_read.sum", 32),
             ("hits in the texture or L1 cache, %", "2.00", "0.00", "l1tex__t_sector_hit_rate.pct", 0), ("hits in L2, % (paper: of the texture cache's loads, of L1's)", "39.64, 6.48", "0.00, 29.87", "lts__t_sector_hit_rate.pct", 0)]  # fmt: skip
    if r and all((m, f) in r.at for f in forms):
        for name, on, off, what, size in lines:
            rows.append([name, on, off, *(f"{r.number(m, f, what) * size / r.number(m, f, NS):.0f}" if size else f"{r.number(m, f, what):.1f}" for f in forms)])
    p.table(["web-Google (twin)", "the paper, texture cache", "the paper, without", *forms.values()], rows)
    over = {f: mean(ratios(t, t.matrices, f"evchyb-{f}", "evchyb-sorted")) for f in ("load-x", "l2-x", "256")}
    return dict(count=len(t.matrices), l1=over["load-x"], l2=over["l2-x"], google=t.seconds(m, "evchyb-l2-x") / t.seconds(m, "evchyb-sorted"), block=over["256"])


def evchyb_figure10(p):
    full, rows, b = p.all.get("matrices"), {}, p.copy("matrices")
    for m, c in counters(p.t).items() if full else []:
        nz, places, gflops = full.entries(m), full.number(m, "evchyb-sorted", "stored"), full.gflops(m, "evchyb-sorted")
        if places and gflops:
            beta, per = nz / places, nz / float(full.at[m, "evchyb-sorted"]["rows"])
            alpha = [0.25 * (c[v] / (2 * nz) - 6 / beta - 8 / per) for v in ("volume", "l2volume")]
            balance = [(12 / beta + 8 * a + 16 / per) / (2 + 3 / per) for a in alpha]
            rows[m] = (*alpha, *balance, gflops * (2 + 3 / per) / 2, b / balance[0] if balance[0] > 0 else 0)
    if not rows:
        return None
    p.table(["matrix", "alpha by DRAM", "alpha by L2", "B by DRAM", "B by L2", "GF/s", "b / B by DRAM"],
            [(m, *(f"{x:.2f}" for x in r[:4]), f"{r[4]:.0f}", f"{r[5]:.0f}") for m, r in rows.items()])  # fmt: skip
    column = lambda k: [r[k] for r in rows.values()]
    over = {big: [r[4] / r[5] for m, r in rows.items() if r[5] and (full.number(m, "evchyb-sorted", "bytes") > 2e8) == big] for big in (True, False)}
    return dict(b=b, dram=ends(column(0)), l2=ends(column(1)), big=ends(over[True]), rest=ends(over[False]), highest=max(rows, key=lambda m: rows[m][1]),
                google=rows.get("web-Google", [0, 0])[1])  # fmt: skip


def evchyb_figure12(p):
    t, rows = p.t, {}
    for m in TABLE_3:
        whole, x, a, both = (t.seconds(m, f"evchyb-{f}") for f in ("sorted", "hold-x", "hold-a", "hold-both"))
        if whole and x and a and both:
            parts = (max(0, x - both), max(0, a - both), both)
            rows[m] = (sum(parts) / whole, *(100 * s / sum(parts) for s in parts), *(t.gflops(m, f"evchyb-{f}") for f in ("sorted", "hold-x", "hold-a")))
    if not rows:
        return None
    p.table(["matrix", "T_A + T_X + T_Y over the whole", "T_A %", "T_X %", "T_Y %", "GF/s", "x constant", "A constant"],
            [(m, f"{r[0]:.2f}", *(f"{v:.0f}" for v in r[1:])) for m, r in rows.items()])  # fmt: skip
    column = lambda k: [r[k] for r in rows.values()]
    return dict(sum=ends(column(0)), a=ends(column(1)), x=ends(column(2)), y=ends(column(3)), most=max(rows, key=lambda m: rows[m][2]),
                chain=", ".join(m for m, r in rows.items() if r[6] < 1.05 * r[4]), below=", ".join(m for m, r in rows.items() if r[0] < 0.95) or "none")  # fmt: skip


FORMS15 = {
    "EVC-HYB, sorted": "evchyb-sorted", "EVC-HYB": "evchyb-paper", "CSR, a warp a row": "csr-vector", "cuSPARSE CSR": "cusparse:csr1", "MKL CSR": "mkl",
    "AIJ": "petsc:aij", "AIJCUSPARSE": "petsc:aijcusparse", "HYB": "hyb", "our evchyb": "evchyb", "our sellp": "sellp",
}  # fmt: skip


def evchyb_figure15(p):
    t = p.t
    t.matrices.sort(key=t.entries)  # whatever was measured first
    forms = {c: f for c, f in FORMS15.items() if any(t.seconds(m, f) for m in t.matrices) and (f != "petsc:aij" or p.host)}
    names = [next(float(r["rows"]) for r in t.rows if key(r["matrix"]) == m) for m in t.matrices]
    p.table(["rows", "entries", *forms], [(f"{n:.0f}", f"{t.entries(m):.0f}", *(f"{t.gflops(m, f):.1f}" for f in forms.values())) for n, m in zip(names, t.matrices)])
    last, share = t.matrices[-1], max(1 / 3, min(1, 4096 / names[-1])) ** 2  # lengths are uniform: of the rows beyond the width, squared
    return dict(entries=t.entries(last) * 1e-6, rates=", ".join(f"{c} {rate(t.gflops(last, f))}" for c, f in forms.items()), percent=100 * share)


def evchyb_figure16(p):
    n = int(p.t.rows[0]["n"])
    flops = 1e-3 * p.t.flops * (7 * n**3 - 6 * n**2)
    p.table([f"{n}^3 points, {p.device}", "SNESSolve s", "KSPSolve s", "product us", "product GF/s", "Newton", "Krylov"],
            [(r["format"], *(f"{float(r[c]):.{d}f}" for c, d in (("solve", 3), ("ksp_s", 3), ("product_us", 1))), rate(flops / float(r["product_us"])), r["newton"], r["krylov"])
             for r in p.t.rows])  # fmt: skip
    own, base = [r for r in p.t.rows if r["format"] in OURS], [r for r in p.t.rows if r["format"].startswith("aij")]
    if not own or not base:
        return {}
    best = min(own, key=lambda r: float(r["solve"]))
    published = {f"published_{c}": float(base[0][c]) / float(r[c]) for r in p.t.rows if r["format"] == "evchyb-paper" for c in ("product_us", "solve")}
    return dict(published, product=float(base[0]["product_us"]) / float(best["product_us"]), solve=float(base[0]["solve"]) / float(best["solve"]), format=best["format"], base=base[0]["format"])


# ---- the comparison of formats


def formats(p):
    t, rows, even, paid, best = p.t, [], [], {}, {}
    for m in t.matrices:
        best[m] = {name: b for name, kinds in FIVE.items() if (b := t.best(m, kinds))[0]}
        if "CSR" not in best[m]:
            del best[m]
            continue
        base, line = best[m]["CSR"][0], [t.label(m)]
        cells = [f"{us(s)} ({form})" if s else "-" for s, form in (best[m].get(f, (0, "")) for f in FIVE)]
        rows.append((t.label(m), f"{t.entries(m):.0f}", *cells, us(t.best(m, LIBRARY)[0]), us(t.best(m, OURS)[0])))
        for name in FIVE:
            s, form = best[m].get(name, (0, ""))
            convert = t.number(m, form, "convert")
            if s and s < base and name != "CSR":
                paid.setdefault(name, []).append(convert / (base - s))
            line.append("-" if not s else "0" if name == "CSR" else f"{1e3 * convert:.2f} ms, " + (f"{convert / (base - s):.0f}" if s < base else "never"))
        even.append(line)
    lib = "MKL CSR" if p.host else "cuSPARSE CSR"
    p.table(["matrix", "entries", *FIVE, lib, "our better one"], rows)
    p.table(["matrix", *FIVE], even)
    won = [min(b, key=lambda f: b[f][0]) for b in best.values()]
    wins = sorted({f: won.count(f) for f in dict.fromkeys(won)}.items(), key=lambda x: (-x[1], list(FIVE).index(x[0])))
    sell = [b["SELL-C-sigma"][0] / b["CSR"][0] for b in best.values() if "SELL-C-sigma" in b]
    ell = [t.best(m, FIVE["SELL-C-sigma"])[0] / t.seconds(m, "ell") for m in t.matrices if t.seconds(m, "ell") and t.seconds(m, "sell-32")]
    slow = [t.best(m, LIBRARY)[0] / b["CSR"][0] for m, b in best.items() if t.best(m, LIBRARY)[0]]
    what = {f: " to ".join(dict.fromkeys(f"{n:.0f}" for n in ends(v))) + f" ({len(v)} {'matrix' if len(v) == 1 else 'matrices'})" for f, v in paid.items()}
    return dict(count=len(rows), wins=", ".join(f"{f} {n}" for f, n in wins), csr5=won.count("CSR5"), sell=sum(x < 1 for x in sell), worst=max(sell, default=0),
                ell=mean(ell), ells=len(ell), slices=sum(b["SELL-C-sigma"] < b["ELL"] for b in best.values() if {"ELL", "SELL-C-sigma"} <= b.keys()),
                lib=lib, lib_mean=mean(slow), lib_ends=ends(slow), lib_slow=sum(x > 1 for x in slow), paid=", ".join(f"{f} {x}" for f, x in what.items()),
                coo=mean(ratios(t, t.matrices, "coo", "coo-balanced")),
                cant=t.seconds("cant", "coo") / (t.best("cant", ["coo-segmented", "coo-balanced", *FIVE["CSR"]])[0] or math.inf))  # fmt: skip


def sigma_of(bounds, density):
    """Liu and Vinter's rule, with the sigma that was measured next to it"""
    r, s, t, u = bounds
    wanted = r if density <= r else density if density <= s else s if density <= t else u
    return min(SIGMAS, key=lambda x: abs(x - wanted))


def formats_csr5(p):
    """The bounds that rows of equal length give, and what they and the best sigma gain on the profiles"""
    t, others, forms = p.t, p.all.get("profiles"), {s: f"csr5:{s}" for s in SIGMAS}
    words = {m: m.split(":") for m in t.matrices if t.seconds(m, "csr5")}
    even = {int(w[2]): m for m, w in words.items() if w[0] == "lengths" and len(w) == 6 and w[3:5] == ["0", "1"] and int(w[5]) == max(2000, 4 * int(w[2]))}
    if len(even) < 4:
        return None
    choices = [b for b in itertools.product(SIGMAS, SIGMAS, DENSITIES, SIGMAS) if b[0] <= b[1] <= b[2]]
    bounds = min(choices, key=lambda b: mean([t.seconds(m, forms[sigma_of(b, n)]) for n, m in even.items()]))
    best = {m: t.best(m, forms.values()) for m in words}
    sigma = lambda m: best[m][1].partition(":")[2]
    p.table(["entries a row", *(f"sigma {s}" for s in SIGMAS), "best"], [(n, *(us(t.seconds(m, f)) for f in forms.values()), sigma(m)) for n, m in even.items()])
    names = [m for m in words if m not in even.values()]
    per = {m: t.entries(m) / float(next(r["rows"] for r in t.rows if key(r["matrix"]) == m)) for m in names}
    tuned = {m: t.seconds(m, forms[sigma_of(bounds, per[m])]) for m in names}
    p.table(["matrix", "entries a row", "published bounds, us", "bounds from above", "best sigma", "sigma"],
            [(t.label(m), f"{per[m]:.1f}", us(t.seconds(m, "csr5")), us(tuned[m]), us(best[m][0]), sigma(m)) for m in names])  # fmt: skip
    rest = {m: others.best(m, [f for name, kinds in FIVE.items() if name != "CSR5" for f in kinds])[0] for m in names} if others else {}
    return dict(zip("rstu", bounds), gain=mean([t.seconds(m, "csr5") / tuned[m] for m in names]), most=mean([t.seconds(m, "csr5") / best[m][0] for m in names]),
                wins=sum(0 < best[m][0] < s for m, s in rest.items()), count=sum(s > 0 for s in rest.values()))  # fmt: skip


def formats_figure3(p):
    t, table = p.t, {}
    for f in ("coo", "coo-segmented", "coo-balanced", "csr-scalar", "csr-vector", "ell"):
        if ("cant", f) in t.at:
            get = lambda what, f=f: t.number("cant", f, what)
            requests, sectors = (get(f"l1tex__t_{x}_pipe_lsu_mem_global_op_ld.sum") for x in ("requests", "sectors"))
            table[f] = (f"{get(NS) * 1e-3:.1f}", *(f"{get(x) / get(NS):.0f}" for x in LEVELS.values()),
                        f"{get('sm__warps_active.avg.pct_of_peak_sustained_active'):.0f}", f"{sectors / requests:.1f}" if requests else "-")  # fmt: skip
    if not {"coo", "csr-scalar", "csr-vector"} <= table.keys():
        return None
    p.table(["cant (twin)", "us", "DRAM read GB/s", "L2 GB/s", "L1 GB/s", "occupancy, %", "sectors a load"], [(f, *x) for f, x in table.items()])
    times = {f: float(x[0]) for f, x in table.items()}
    return dict(coo=times["coo"] / min(times.values()), scalar=table["csr-scalar"][5], vector=table["csr-vector"][5], gain=times["csr-scalar"] / times["csr-vector"])


# ---- this library

SAME = ("sellp-paper", "evchyb-paper")  # on the host these are our own layouts, not other formats
OTHER = ("evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both", "evchyb-sorted", "partition", *OURS)


def ours(p):
    t, same = p.t, [f for f in SAME if p.host and f in p.t.formats]
    others = [f for f in t.formats if f not in (*OTHER, *same)]
    names = [m for m in MATRICES if all(t.seconds(m, f) for f in OURS) and t.best(m, others)[0]]
    own, other = ({m: t.best(m, f) for m in names} for f in (OURS, others))
    ratio = {m: other[m][0] / own[m][0] for m in names}
    verdict = lambda x: "fastest" if x >= 1 else "within 5 %" if x >= 1 / 1.05 else "**slower**"
    p.table(["matrix", "entries", *OURS, "best other", "which", "its time over ours", "spread of ours, %", "of its, %", ""],
            [(t.label(m), f"{t.entries(m):.0f}", *(us(t.seconds(m, f)) for f in OURS), us(other[m][0]), other[m][1], f"{ratio[m]:.2f}",
              *(f"{t.above(m, x[m][1]):.1f}" for x in (own, other)), verdict(ratio[m])) for m in names])  # fmt: skip
    by = []
    for f in [*OURS, *others]:
        over = [t.seconds(m, f) / own[m][0] for m in names if t.seconds(m, f)]
        if over:
            best = sum(0 < t.seconds(m, f) <= min(own[m][0], other[m][0]) for m in names)
            by.append((mean(over), (f, len(over), f"{mean(over):.2f}", f"{min(over):.2f}", best)))
    p.table(["format", "matrices", "time over ours", "least", "fastest on"], [r for _, r in sorted(by)])
    forms = [*OURS, *same, *others]
    p.table(["matrix", *map(p.name, forms)], [(t.label(m), *(us(t.seconds(m, f)) for f in forms)) for m in names])
    above = [100 * (t.value(r, "seconds") / t.value(r, "least") - 1) for r in t.rows if t.value(r, "seconds") and t.value(r, "least")]
    missed = [f"{m} ({other[m][1]}, by {100 * (1 / x - 1):.0f} %)" for m, x in ratio.items() if x < 1 / 1.05]
    values = dict(twins=sum(t.label(m) != m for m in names), count=len(names), good=sum(x >= 1 / 1.05 for x in ratio.values()), mean=mean(ratio.values()),
                  least=min(ratio.values(), default=0), spread=statistics.mean(above or [0]), limit=SPREAD, above=sum(x > SPREAD for x in above), all=len(above),
                  exceptions=f"The exceptions, and what is faster there: {', '.join(missed)}." if missed else "There is no exception.",
                  **{f: sum(other[m][0] / t.seconds(m, f) >= 1 / 1.05 for m in names) for f in OURS})  # fmt: skip
    if p.host:  # evchyb and evchyb-paper are one layout where these are equal: what their times show is noise
        alike = [m for m in names if (m, "evchyb-paper") in t.at and all(t.at[m, "evchyb"][k] == t.at[m, "evchyb-paper"][k] for k in ("kernel", "stored", "bytes"))]
        noise = ends(ratios(t, alike, "evchyb", "evchyb-paper"))
        fewer = sum(t.number(m, "sellp-paper", "bytes") < 12 * t.number(m, "sellp-paper", "stored") for m in names)
        return dict(values, alike=len(alike), fewer=fewer, noise=noise, noise_percent=100 * max(1 / (noise[0] or 1), noise[1]) - 100)
    blocks = [m for m in names if any("node blocks" in t.at[m, f]["kernel"] for f in OURS)]
    return dict(values, blocks=len(blocks), block_twins=sum(t.at[m, "sellp"]["origin"] == "twin" for m in blocks), block_mean=mean([ratio[m] for m in blocks]),
                rest=len(names) - len(blocks), rest_mean=mean([ratio[m] for m in names if m not in blocks]),
                papers={f: mean(ratios(t, names, "cusparse:csr1", f"{f}-paper")) for f in OURS})  # fmt: skip


GPU_PAYS = ("cusparse:csr1", ("sellp", "evchyb", "sellp-paper", "evchyb-paper", "hyb", "sell-32-1024", "csr5", "cusparse:sell", "cusparse:bsr"))
HOST_PAYS = ("petsc:aij", ("sellp", "evchyb", "hyb", "sell-32-1024", "csr5-8-16", "mkl", "petsc:sell"))


def pays(p):
    t, (base, forms) = p.t, HOST_PAYS if p.host else GPU_PAYS
    forms, names = [f for f in forms if f in t.formats], [m for m in MATRICES if t.seconds(m, base)]

    def after(m, f):
        saved = t.seconds(m, base) - t.seconds(m, f) if t.seconds(m, f) else 0
        return math.ceil(t.number(m, f, "convert") / saved) if saved > 0 else 0

    at = {f: {m: after(m, f) for m in names} for f in forms}
    p.table(["matrix", *map(p.name, forms)], [(t.label(m), *(at[f][m] or "-" for f in forms)) for m in names])
    what = []
    for f in forms:
        n = [x for x in at[f].values() if x]
        if n:
            what.append(f"{p.name(f)} pays on {len(n)} of {len(names)}, after {statistics.median(n):.0f} products in the median ({min(n):.0f} to {max(n):.0f})")
    return dict(base="AIJ" if p.host else "cuSPARSE's CSR", what="; ".join(what))


def twins(p):
    t, at, column = p.t, {}, "least" if p.host else "seconds"
    for r in t.rows:
        if t.value(r, column) and t.value(r, "error") <= 1:
            at.setdefault((key(r["matrix"]), r["format"]), {})[r["origin"]] = t.value(r, column)
    both = {k: v for k, v in at.items() if {"file", "twin"} <= v.keys()}
    p.table(["matrix", "format", "real", "twin", "ratio"], [(*k, us(v["file"]), us(v["twin"]), f"{v['twin'] / v['file']:.2f}") for k, v in both.items()])
    over = [v["twin"] / v["file"] for v in both.values()]
    return dict(matrices=", ".join(dict.fromkeys(m for m, _ in both)), ends=ends(over), mean=mean(over))


def roofline(p):
    t, rows, copy = p.t, [], p.copy("stream", "matrices")
    for r in t.rows if copy else []:
        ns, moved = t.value(r, NS), t.value(r, "dram__bytes_read.sum") + t.value(r, "dram__bytes_write.sum")
        flops = sum(n * t.value(r, f"smsp__sass_thread_inst_executed_op_d{op}_pred_on.sum") for op, n in (("fma", 2), ("add", 1), ("mul", 1)))
        if r["kernel"] == "ours" and ns and moved and flops:
            rows.append((key(r["matrix"]), r["format"], ns * 1e-3, moved * 1e-6, flops / moved, flops / ns, copy * flops / moved, 100 * moved / ns / copy, moved / ns,
                         t.value(r, "lts__t_bytes.sum") / ns, t.value(r, "sm__warps_active.avg.pct_of_peak_sustained_active"),
                         t.value(r, "launch__registers_per_thread")))  # fmt: skip
    if not rows:
        return None
    head = "matrix,type,us,DRAM MB,flops a byte,GF/s,at the copy's bandwidth,% of that,DRAM GB/s,L2 GB/s,occupancy %,registers"
    p.table(head.split(","), [(*r[:2], *(f"{x:.{d}f}" for x, d in zip(r[2:], (1, 1, 3, 0, 0, 0, 0, 0, 0, 0)))) for r in rows])
    low = min(rows, key=lambda r: r[7])
    return dict(copy=copy, near=sum(r[7] >= 80 for r in rows), count=len(rows), least=low[7], low=low[0])


def single(p):
    rows, rtols = {}, list(dict.fromkeys(r["rtol"] for r in p.t.rows))
    for r in p.t.rows:
        rows.setdefault((r["matrix"], r["type"]), {})[r["rtol"]] = r
    number, first = lambda by, c: float(next(iter(by.values()))[c]), lambda by, x: f"{by[x]['iterations']} ({float(by[x]['true_residual']):.0e})" if x in by else ""
    p.table(["matrix", "type", "us", "error of a product", *(f"rtol {x}" for x in rtols)],
            [(*k, us(number(by, "seconds")), f"{number(by, 'error'):.1e}", *(first(by, x) for x in rtols)) for k, by in rows.items()])  # fmt: skip
    pairs = [(by, rows.get((m, kind.partition(":")[0]), rows.get((m, "sellp"), {}))) for (m, kind), by in rows.items() if "_single" in kind]
    pairs = [(by, base) for by, base in pairs if base]
    more = [int(r["iterations"]) / int(base[x]["iterations"]) for by, base in pairs for x, r in by.items() if x in base]
    same = f"{min(more):.2f} to {max(more):.2f} times as many iterations" if more and max(more) > min(more) else "the same number of iterations in all solves"
    return dict(gain=mean([number(base, "seconds") / number(by, "seconds") for by, base in pairs]), error=max((number(by, "error") for by, _ in pairs), default=0),
                its=same, floor=max((min(float(r["true_residual"]) for r in by.values()) for by, _ in pairs), default=0))  # fmt: skip


# What an experiment needs: a measurement of the GPU or the host, of the GPU alone (GPU), or none in particular
GPU = True
EXPERIMENTS = {
    ours: ("matrices",), sellp_table3: ("matrices",), sellp_figure5: ("matrices",), sellp_table2: ("profile", GPU),
    sellp_sweep: ("sweep",), evchyb_table2: (), evchyb_table3: ("matrices", GPU), evchyb_figure3: ("matrices", GPU),
    evchyb_figure6: ("profile", GPU), evchyb_table4: ("loads", GPU), evchyb_figure10: ("profile", GPU), evchyb_figure12: ("matrices", GPU),
    evchyb_figure15: ("random",), evchyb_figure16: ("bratu",), formats: ("profiles",), formats_csr5: ("csr5", GPU), formats_figure3: ("counters", GPU),
    pays: ("matrices",), twins: ("twins",), roofline: ("counters", GPU), single: ("single", GPU),
}  # fmt: skip


class Values(dict):
    __getattr__ = dict.__getitem__


def published():
    """What our notes on the papers say of their own numbers"""
    ell = {m: v[2] / v[3] for m, v in TABLE_III.items() if m not in ("Trefethen_20000", "cage10")}
    gflops = {c.replace("CUSPARSE-", "cuSPARSE "): ends(2e-9 * TABLE_I[m] / v[k] for m, v in TABLE_III.items()) for k, c in enumerate(TABLE_III_COLUMNS)}
    return Values(ell=ends(ell.values()), which=max(ell, key=ell.get), csr=mean([v[1] / v[3] for v in TABLE_III.values()]), count=len(TABLE_III),
                  ahead=sum(v[3] < min(v[4:]) for v in TABLE_III.values()), rates=", ".join(f"{c} {a:.1f} to {b:.1f}" for c, (a, b) in gflops.items()),
                  in_ell=sum(v[1] / (v[1] + v[2]) > 0.99 for v in TABLE_3.values()))  # fmt: skip


class Report:
    """A GPU and the host, each the first in the folder that has measurements"""

    KINDS = {"complex": "complex numbers", "single": "single precision", "64bit": "64-bit indices"}

    def __init__(self, folder, target, short=False):
        self.folder, self.target, self.short, self.data, self.devices = folder, target, short, {}, {}
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found = [m for m in (re.match(r"(.+)-([a-z0-9]+)\.csv$", name) for name in sorted(names)) if m]
        for m in sorted(found, key=lambda m: (on_host(m[1]), "-" in m[1])):
            role, rows = "host" if on_host(m[1]) else "gpu", read(os.path.join(folder, m[0]))
            if rows and self.devices.setdefault(role, m[1]) == m[1]:
                for name, part in itertools.groupby(rows, lambda r, m=m: r.get("measurement", m[2])):  # DEVICE-all.csv and DEVICE-ncu.csv hold several
                    self.data.setdefault(role, {})[name] = Table(m[1], list(part))

    def about(self, role):
        """The device, the note on it, and the commits of its measurements"""
        device, tables, commits = self.devices[role], self.data[role], {}
        where = sorted({f"{r['machine']}, PETSc {r['petsc']}" for t in tables.values() for r in t.rows if r.get("machine")})
        words = [*(where or [device]), *(what for word, what in self.KINDS.items() if word in device.split("-"))]
        if os.path.exists(os.path.join(self.folder, f"{device}.txt")):
            with open(os.path.join(self.folder, f"{device}.txt")) as f:
                words.append(f.read().strip())
        for name, t in tables.items():
            all_ = {r.get("commit") or "unknown" for r in t.rows}
            for c in sorted(all_):
                commits.setdefault(c, []).append(name + (" (in part)" if len(all_) > 1 else ""))
        which = "; ".join(f"commit {c}: {', '.join(sorted(m))}" for c, m in commits.items())
        wrong = ", ".join(x for t in tables.values() for x in t.wrong)
        return f"- {device}: {', '.join(words)}. Commits of the measurements, as the CSV files name them: {which}" + (f". **Wrong results**, left out below: {wrong}" if wrong else "")

    def parts(self, wanted):
        """role -> experiment -> the values of its words, with its tables"""
        found = Values(gpu=Values(), host=Values(), page=Values(), paper=published())
        for run, (measurement, *gpu) in ((f, need or (None,)) for f, need in EXPERIMENTS.items()):
            if run.__name__.replace("_", "-") not in wanted:
                continue
            for role in ("gpu", "host")[: 1 if gpu else 2] if measurement else ("page",):
                t = self.data.get(role, {}).get(measurement)
                part = Part(self, role, t)
                values = run(part) if t or role == "page" else None
                if values is not None:
                    found[role][run.__name__] = Values({"where": where(t), "device": part.device} if t else {}, tables=part.tables, **values)
        return found

    def write(self, wanted):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.md")) as f:
            text = f.read().partition("-->\n")[2]
        parts = self.parts(wanted)
        parts.update(devices="\n".join(self.about(role) for role in self.devices))
        sections = re.split(r"(?m)^(?=## )", text)
        named = [(re.search(r"`bench/papers/paper.py ([\w-]+)`\.$", s, re.M), s) for s in sections]
        text = "\n\n".join(section(s, name and name[1].replace("-", "_"), parts) for name, s in named if not name or name[1] in wanted)
        os.makedirs(os.path.dirname(self.target), exist_ok=True)
        with results.whole(self.target) as f:
            f.write((results.shortened(text) if self.short else text) + "\n")
        print(f"wrote {os.path.relpath(self.target, results.ROOT)}")


def section(text, name, parts):
    """A section of report.md with its values: report.md says how it is written"""
    blocks = re.split(r"(?m)^::(.*)\n", text)
    found = paragraphs(blocks[0], "page", {**parts, **parts.page.get(name, {})})
    for roles, block in zip(blocks[1::2], blocks[2::2]):
        for role in roles.split():
            if name in parts[role]:
                found += paragraphs(block, role, {**parts, **parts[role][name]})
    if len(blocks) > 1 and not any(name in parts[role] for roles in blocks[1::2] for role in roles.split()):
        found.append("Not measured.")
    return "\n\n".join(found)


def paragraphs(text, role, scope):
    tables, found = iter(scope.get("tables", ())), []
    for paragraph in text.strip().split("\n\n"):
        lines = []
        for line in paragraph.split("\n"):
            only, _, rest = line.partition("> ")
            if only in ("gpu", "host"):
                if only != role:
                    continue
                line = rest
            if line == "@":
                line = next(tables, "")
            elif "{" in line:
                try:
                    line = line.format(**scope)
                except (KeyError, IndexError):
                    continue
            lines.append(line)
        if lines:
            plain = not re.match(r"[-|@#<!]|    ", lines[0])
            found.append((" " if plain else "\n").join(lines))
    return [p for p in found if p]
