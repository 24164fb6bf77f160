"""The page on the papers' experiments, from the CSV files: its words are in report.md, with the names of the values that the functions of EXPERIMENTS return.
A line is left out if a value that it names was not measured"""

import contextlib
import itertools
import math
import os
import statistics

import results
from measure import DENSITIES, NS, SIGMAS
from published import MATRICES, SMALL, TABLE_3, TABLE_I, TABLE_III
from results import mean, read
from tables import Table, value

OURS = ("sellp", "evchyb")
OTHER = ("evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both", "evchyb-sorted", "partition", *OURS)  # what is no other format
PLAIN = ("coo-segmented", "coo-balanced", "csr-scalar", "csr-vector")
FIVE = {
    "COO": ["coo", "coo-segmented", "coo-balanced"],
    "CSR": ["csr-scalar", "csr-vector"],
    "ELL": ["ell"],
    "SELL-C-sigma": ["sell-32", "sell-32-1024", "sell-32-all", "sell-8-64"],
    "CSR5": ["csr5", "csr5-8-16"],
}


def ends(values):
    """The least and the most"""
    values = list(values)
    return min(values, default=0), max(values, default=0)


def ours(data):
    """Our default kernels against every other format; on the host the published kernels do not exist, and rows with their names are of our own layouts"""
    t = data["matrices"]
    host = t.rows[0]["device"] == "host"
    others = [f for f in t.formats if f not in OTHER and not (host and f.endswith("-paper"))]
    names = [m for m in MATRICES if all(t.seconds(m, f) for f in OURS) and t.best(m, others)[0]]
    ratio = {m: t.best(m, others)[0] / t.best(m, OURS)[0] for m in names}
    blocks = [m for m in names if any("node blocks" in t.at[m, f]["kernel"] for f in OURS)]
    return dict(count=len(names), twins=sum(t.at[m, "sellp"]["origin"] == "twin" for m in names), good=sum(x >= 1 / 1.05 for x in ratio.values()), mean=mean(ratio.values()),
                least=min(ratio.values(), default=0), blocks=len(blocks), block_mean=mean([ratio[m] for m in blocks]), rest_mean=mean([ratio[m] for m in names if m not in blocks]),
                where="the host" if host else t.rows[0]["device"], **{f: mean(t.ratios(names, "cusparse:csr1", f"{f}-paper")) for f in OURS})  # fmt: skip


def sellp_table3(data):
    t = data["matrices"]
    names = [m for m in TABLE_III if m in t.matrices]
    csr, ell = (t.ratios(names, f, "sellp-paper") for f in ("csr-scalar", "ell"))
    both = [m for m in names if all(t.seconds(m, f) for f in ("hyb", "sellp-paper", "cusparse:csr1"))]
    small = [m for m in names if 12 * t.entries(m) < SMALL]
    return dict(csr=mean(csr), csr_ends=ends(csr), csr_won=sum(x > 1 for x in csr), ell=mean(ell), ell_ends=ends(ell), ell_won=sum(x > 1 for x in ell), all=len(both),
                both=sum(min(t.seconds(m, "cusparse:csr1"), t.seconds(m, "hyb")) > t.seconds(m, "sellp-paper") for m in both), size=1e-6 * SMALL,
                percent=100 * mean(t.ratios(names, "sellp", "sellp-paper")), worst=t.seconds("crankseg_2", "sellp-paper") / t.seconds("crankseg_2", "cusparse:csr1"),
                small=mean(t.ratios(small, "csr-scalar", "sellp-paper")), large=mean(t.ratios([m for m in names if m not in small], "csr-scalar", "sellp-paper")),
                rates={f: mean([t.gflops(m, f) for m in names]) for f in ("csr-scalar", "ell", "sellp-paper", "cusparse:csr1", "hyb", "sellp")},
                bandwidth=t.copy(), fewer=sum(TABLE_I[m] != t.entries(m) for m in names))  # fmt: skip


def sellp_table2(data):
    t = data["counters"]
    r = t.at["audikw_1", "sellp-paper"]
    ns, warps = value(r, NS), value(r, "smsp__warps_launched.sum")
    moved = value(r, "dram__bytes_read.sum") / ns
    return dict(ms=1e-6 * ns, rate=moved, percent=100 * moved / data["matrices"].copy(), l2=value(r, "lts__t_bytes.sum") / ns, hits=value(r, "lts__t_sector_hit_rate.pct"),
                occupancy=0.01 * value(r, "sm__warps_active.avg.pct_of_peak_sustained_active"), registers=value(r, "launch__registers_per_thread"),
                instructions=value(r, "smsp__inst_executed.sum") / warps, issued=value(r, "sm__inst_issued.avg.per_cycle_active"))  # fmt: skip


def sellp_sweep(data):
    t = data["sweep"]
    forms = [f for f in t.formats if f.startswith("sellp-paper:")]
    best = {m: t.best(m, forms) for m in t.matrices if t.seconds(m, "sellp-paper:8:8")}
    gains = {m: t.seconds(m, "sellp-paper:8:8") / s for m, (s, _) in best.items()}
    most = max(gains, key=gains.get)
    return dict(mean=mean(gains.values()), most=gains[most], matrix=most, b=best[most][1].split(":")[1], t=best[most][1].split(":")[2])


def evchyb_table3(data):
    t = data["matrices"]
    found = {m: [int(w) for w in t.at[m, "partition"]["kernel"].split()[1::2]] for m in TABLE_3 if (m, "partition") in t.at}  # Isplit, in ELL, in vector CSR
    added = {m: 100 * (sum(x[1:]) / t.entries(m) - 1) for m, x in found.items()}
    library = {m: t.best(m, ["cusparse:csr1", "cusparse:csr2", "hyb"])[1] for m in found}
    return dict(count=len(found), exact=sum(abs(x - TABLE_3[m][3]) < 0.1 for m, x in added.items()), agree=sum((library[m] == "hyb") == (TABLE_3[m][4] == "HYB") for m in found))


def evchyb_figure3(data):
    t, library = data["matrices"], ["cusparse:csr1", "hyb"]
    names = [m for m in TABLE_3 if all(t.seconds(m, f) for f in ("evchyb-sorted", "evchyb-paper", "evchyb")) and t.best(m, library)[0]]
    speed = [t.best(m, library)[0] / t.seconds(m, "evchyb-sorted") for m in names]
    loss = {m: 100 * (1 - t.seconds(m, "evchyb-sorted") / t.seconds(m, "evchyb-paper")) for m in names}
    short, long = (statistics.mean([x for m, x in loss.items() if (t.per_row(m) < 12) == yes] or [0]) for yes in (True, False))
    return dict(count=len(names), faster=sum(x >= 1.1 for x in speed), alike=sum(0.9 < x < 1.1 for x in speed), slower=sum(x <= 0.9 for x in speed),
                loss=ends(loss.values()), short=short, long=long, ours=mean([t.best(m, library)[0] / t.seconds(m, "evchyb") for m in names]))  # fmt: skip


def counters(t):
    """matrix -> numbers, of EVC-HYB without reordering. The latencies of a Hopper GPU, rounded from published micro-benchmarks, are 33 cycles in L1, 270 in L2, 600 beyond"""
    found = {}
    for m in TABLE_3:
        r = t.at.get((m, "evchyb-sorted"))
        if r and all(value(r, k) for k in (NS, "lts__t_bytes.sum", "dram__bytes_read.sum")):
            read_, l2 = value(r, "dram__bytes_read.sum"), value(r, "lts__t_bytes.sum")
            hit1, hit2 = value(r, "l1tex__t_sector_hit_rate.pct"), value(r, "lts__t_sector_hit_rate.pct")
            cycles = 0.33 * hit1 + (1 - hit1 / 100) * (2.7 * hit2 + 6 * (100 - hit2))
            found[m] = dict(dram=read_ / value(r, NS), hit1=hit1, hit2=hit2, volume=read_ + value(r, "dram__bytes_write.sum"), l2volume=l2, cycles=cycles)
    return found


def evchyb_figure6(data):
    c, t = counters(data["profile"]), data["matrices"]
    known = [m for m in c if t.gflops(m, "evchyb-sorted")]
    rates = [math.log(t.gflops(m, "evchyb-sorted")) for m in known]
    correlation = lambda of: statistics.correlation(rates, [math.log(of(m)) for m in known])
    low, high = (f(c, key=lambda m: c[m]["hit1"]) for f in (min, max))
    return dict(dram=ends(x["dram"] for x in c.values()), least=c[low]["hit1"], low=low, most=c[high]["hit1"], high=high, l2=ends(x["hit2"] for x in c.values()),
                latency=correlation(lambda m: c[m]["cycles"]), size=correlation(t.entries))  # fmt: skip


def evchyb_table4(data):
    t, m = data["loads"], "web-Google"
    over = {f: mean(t.ratios(t.matrices, f"evchyb-{f}", "evchyb-sorted")) for f in ("load-x", "l2-x", "256")}
    return dict(count=len(t.matrices), l1=over["load-x"], l2=over["l2-x"], google=t.seconds(m, "evchyb-l2-x") / t.seconds(m, "evchyb-sorted"), block=over["256"])


def evchyb_figure10(data):
    """alpha by DRAM and by L2, and the rate over b / B"""
    t, rows, b = data["matrices"], {}, data["matrices"].copy()
    for m, c in counters(data["profile"]).items():
        nz, places, per = t.entries(m), t.number(m, "evchyb-sorted", "stored"), t.per_row(m)
        beta = nz / places
        alpha = [0.25 * (c[v] / (2 * nz) - 6 / beta - 8 / per) for v in ("volume", "l2volume")]
        balance = (12 / beta + 8 * alpha[0] + 16 / per) / (2 + 3 / per)
        rows[m] = (*alpha, t.gflops(m, "evchyb-sorted") * (2 + 3 / per) / 2 * balance / b)
    large = [m for m in rows if t.number(m, "evchyb-sorted", "bytes") > 2e8]
    return dict(b=b, dram=ends(r[0] for r in rows.values()), l2=ends(r[1] for r in rows.values()), highest=max(rows, key=lambda m: rows[m][1]), google=rows["web-Google"][1],
                large=ends(rows[m][2] for m in large), rest=ends(r[2] for m, r in rows.items() if m not in large))  # fmt: skip


def evchyb_figure12(data):
    t, rows = data["matrices"], {}
    for m in TABLE_3:
        whole, x, a, both = (t.seconds(m, f"evchyb-{f}") for f in ("sorted", "hold-x", "hold-a", "hold-both"))
        if whole and x and a and both:
            parts = (max(0, x - both), max(0, a - both), both)
            rows[m] = (sum(parts) / whole, *(100 * s / sum(parts) for s in parts), whole / a)
    column = lambda k: ends(r[k] for r in rows.values())
    return dict(sum=column(0), a=column(1), x=column(2), y=column(3), most=max(rows, key=lambda m: rows[m][2]), chain=sum(r[4] < 1.05 for r in rows.values()), count=len(rows))


def evchyb_figure15(data):
    t = data["random"]
    last = max(t.matrices, key=t.entries)
    return dict(entries=1e-6 * t.entries(last), **{f.replace("-", "_").replace(":", "_"): t.gflops(last, f) for f in ("evchyb-sorted", "cusparse:csr1", "hyb", "sellp")})


def evchyb_figure16(data):
    rows = data["bratu"].rows
    base, best = next(r for r in rows if r["format"].startswith("aij")), min((r for r in rows if r["format"] in OURS), key=lambda r: float(r["solve"]))
    gain = lambda r: [float(base[c]) / float(r[c]) for c in ("product_us", "solve")]
    return dict(zip(("product", "solve", "published_product", "published_solve"), gain(best) + gain(next(r for r in rows if r["format"] == "evchyb-paper"))))


def formats(data):
    t, best, paid = data["profiles"], {}, {}
    for m in t.matrices:
        best[m] = {name: b for name, kinds in FIVE.items() if (b := t.best(m, kinds))[0]}
        for name, (s, form) in best[m].items():
            if name != "CSR" and s < best[m]["CSR"][0]:
                paid.setdefault(name, []).append(t.number(m, form, "convert") / (best[m]["CSR"][0] - s))
    won = [min(b, key=lambda f: b[f][0]) for b in best.values()]
    sell = [b["SELL-C-sigma"][0] / b["CSR"][0] for b in best.values() if "SELL-C-sigma" in b]
    ell = [t.best(m, FIVE["SELL-C-sigma"])[0] / t.seconds(m, "ell") for m in t.matrices if t.seconds(m, "ell") and t.seconds(m, "sell-32")]
    library = [t.seconds(m, "cusparse:csr1") / b["CSR"][0] for m, b in best.items() if t.seconds(m, "cusparse:csr1")]
    return dict(count=len(best), wins=", ".join(f"{f} {won.count(f)}" for f in sorted(FIVE, key=won.count, reverse=True) if f in won), csr5=won.count("CSR5"), sell=sum(x < 1 for x in sell),
                worst=max(sell), slices=sum(x < 1 for x in ell), ells=len(ell), library=mean(library), library_ends=ends(library), library_slow=sum(x > 1 for x in library),
                coo=mean(t.ratios(t.matrices, "coo", "coo-balanced")), cant=t.seconds("cant", "coo") / t.best("cant", PLAIN)[0],
                paid=", ".join(f"{f} {min(v):.0f} to {max(v):.0f}" for f, v in paid.items()))  # fmt: skip


def sigma_of(bounds, density):
    """Liu and Vinter's rule, with the sigma that was measured next to it"""
    r, s, t, u = bounds
    wanted = r if density <= r else density if density <= s else s if density <= t else u
    return min(SIGMAS, key=lambda x: abs(x - wanted))


def formats_csr5(data):
    """The bounds that rows of equal length give, and what they and the best sigma gain on the profiles"""
    t, others, forms = data["csr5"], data["profiles"], {s: f"csr5:{s}" for s in SIGMAS}
    words = {m: m.split(":") for m in t.matrices if t.seconds(m, "csr5")}
    even = {int(w[2]): m for m, w in words.items() if w[0] == "lengths" and len(w) == 6 and w[3:5] == ["0", "1"] and int(w[5]) == max(2000, 4 * int(w[2]))}
    choices = [b for b in itertools.product(SIGMAS, SIGMAS, DENSITIES, SIGMAS) if b[0] <= b[1] <= b[2]]
    bounds = min(choices, key=lambda b: mean([t.seconds(m, forms[sigma_of(b, n)]) for n, m in even.items()]))
    names = [m for m in words if m not in even.values()]
    best = {m: t.best(m, forms.values())[0] for m in names}
    rest = {m: others.best(m, [f for name, kinds in FIVE.items() if name != "CSR5" for f in kinds])[0] for m in names}
    return dict(zip("rstu", bounds), gain=mean([t.seconds(m, "csr5") / t.seconds(m, forms[sigma_of(bounds, t.per_row(m))]) for m in names]),
                most=mean([t.seconds(m, "csr5") / best[m] for m in names]), wins=sum(best[m] < s for m, s in rest.items()), count=len(names))  # fmt: skip


def formats_figure3(data):
    t = data["counters"]
    sectors = {f: t.number("cant", f, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") / t.number("cant", f, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") for f in ("csr-scalar", "csr-vector")}
    us = {f: t.number("cant", f, NS) for f in ("coo", "ell", *PLAIN)}
    return dict(coo=us["coo"] / min(us.values()), scalar=sectors["csr-scalar"], vector=sectors["csr-vector"], gain=us["csr-scalar"] / us["csr-vector"])


# What an experiment needs, most important first
EXPERIMENTS = {
    "ours": (ours, "matrices"), "sellp-table3": (sellp_table3, "matrices"), "sellp-table2": (sellp_table2, "matrices", "counters"), "sellp-sweep": (sellp_sweep, "sweep"),
    "evchyb-table3": (evchyb_table3, "matrices"), "evchyb-figure3": (evchyb_figure3, "matrices"), "evchyb-figure6": (evchyb_figure6, "matrices", "profile"),
    "evchyb-table4": (evchyb_table4, "loads"), "evchyb-figure10": (evchyb_figure10, "matrices", "profile"), "evchyb-figure12": (evchyb_figure12, "matrices"),
    "evchyb-figure15": (evchyb_figure15, "random"), "evchyb-figure16": (evchyb_figure16, "bratu"), "formats": (formats, "profiles"),
    "formats-csr5": (formats_csr5, "csr5", "profiles"), "formats-figure3": (formats_figure3, "counters"),
}  # fmt: skip


# What the papers say, and whether it holds
STATEMENTS = {
    "sellp_table3": {"faster than plain CSR": lambda v: v.csr_won == v.all, "than ELLPACK on all but two": lambda v: v.ell_won >= v.all - 2,
                     "an order of magnitude over plain CSR": lambda v: v.csr >= 9, "ahead of both cuSPARSE kernels on 40 %": lambda v: v.both >= 0.4 * v.all},
    "sellp_table2": {"bound by memory": lambda v: v.percent >= 80},
    "sellp_sweep": {"b and t for a matrix gain": lambda v: v.mean >= 1.05},
    "evchyb_table3": {"the zeros added, on most matrices": lambda v: 2 * v.exact > v.count},
    "evchyb_figure3": {"1.1 times as fast on ten matrices": lambda v: v.faster >= 10, "reordering costs most on short rows": lambda v: v.short > v.long},
    "evchyb_figure6": {"latency explains the rates": lambda v: v.latency < -0.5},
    "evchyb_table4": {"the texture cache gains on web-Google": lambda v: v.google >= 1.05},
    "evchyb_figure10": {"a large alpha on web-Google, by L2": lambda v: v.google >= 4, "rates near b / B": lambda v: v.large[0] >= 0.8},
    "evchyb_figure12": {"the parts add up to 1.21 at most": lambda v: v.sum[1] <= 1.21},
    "evchyb_figure15": {"faster than HYB": lambda v: v.evchyb_sorted > v.hyb, "slower than CSR": lambda v: v.evchyb_sorted < v.cusparse_csr1},
    "evchyb_figure16": {"the product gains 1.62": lambda v: v.published_product >= 1.62, "the whole solve hardly gains": lambda v: v.published_solve < 1.1},
    "formats": {"SELL-C-sigma faster than CSR and ELL on most": lambda v: 2 * v.sell > v.count and 2 * v.slices > v.ells, "CSR5 the fastest": lambda v: v.csr5 == v.count,
                "scalar COO the fastest on cant": lambda v: v.cant < 1, "cuSPARSE slower on most": lambda v: 2 * v.library_slow > v.count},
}  # fmt: skip


def verdict(name, v):
    """The statements that hold and those that do not"""
    found = {"Holds": [], "Does not hold": []}
    for statement, holds in STATEMENTS.get(name, {}).items():
        found["Holds" if holds(v) else "Does not hold"].append(statement)
    return " ".join(f"*{word}:* {'; '.join(statements)}." for word, statements in found.items() if statements)


class Values(dict):
    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


def published():
    """What follows from the papers' own numbers"""
    ell = {m: v[2] / v[3] for m, v in TABLE_III.items() if m not in ("Trefethen_20000", "cage10")}
    return Values(ell=ends(ell.values()), which=max(ell, key=ell.get), csr=mean([v[1] / v[3] for v in TABLE_III.values()]), count=len(TABLE_III),
                  ahead=sum(v[3] < min(v[4:]) for v in TABLE_III.values()), in_ell=sum(v[1] / (v[1] + v[2]) > 0.99 for v in TABLE_3.values()),
                  rates=[mean([2e-9 * TABLE_I[m] / v[k] for m, v in TABLE_III.items()]) for k in range(1, 6)])  # fmt: skip


def tables(folder, device):
    """The measurements of a device: DEVICE-all.csv and DEVICE-ncu.csv hold several"""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith(f"{device}-") and name.endswith(".csv"):
            part = name[len(device) + 1 : -4]
            rows = [dict(r, format=r.get("format", r.get("type"))) for r in read(os.path.join(folder, name))]
            found |= {k: Table(list(v)) for k, v in itertools.groupby(rows, lambda r, part=part: r.get("measurement", part))}
    return found


def values(folder, device):
    """The values of the experiments, by their names in report.md, where all that they need was measured"""
    data, found = tables(folder, device), Values()
    for name, (run, *needs) in EXPERIMENTS.items():
        if all(n in data for n in needs):
            with contextlib.suppress(KeyError, ValueError, ZeroDivisionError):  # of some matrices only
                v = found[name.replace("-", "_")] = Values(run(data))
                v["verdict"] = verdict(name.replace("-", "_"), v)
    return found


def sources(folder, device):
    """The commits of the measurements"""
    commits = {}
    for name, t in tables(folder, device).items():
        for commit in sorted({r.get("commit") or "unknown" for r in t.rows}):
            commits.setdefault(commit, []).append(name)
    return "; ".join(f"{commit}: {', '.join(names)}" for commit, names in commits.items())


def write(folder, target):
    gpus = [name.partition("-")[0] for name in sorted(os.listdir(folder)) if name.endswith(".csv") and not name.startswith(("host", "batch"))]
    device = gpus[0] if gpus else "no GPU"
    found, host = values(folder, device), tables(folder, "host")
    found.update(paper=published(), sources=sources(folder, device), host_sources=sources(folder, "host"))
    if "matrices" in host:
        found.host = Values(ours(host))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.md")) as f:
        lines = f.read().partition("-->\n")[2].splitlines()
    with results.whole(target) as f:
        for line in lines:
            try:
                f.write(line.format(**found) + "\n")
            except KeyError:  # not measured
                pass
    print(f"wrote {os.path.relpath(target, results.ROOT)}")
