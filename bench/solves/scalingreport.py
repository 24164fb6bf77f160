"""Tables and charts of the measurements of bench/solves/scaling.py"""

import csv
import os
import statistics

import results
from results import show, table

COLUMNS = (
    "mode ranks n points_per_rank program matrix case entries type viewed halo repeat newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s "
    "products product_us block_us gflops solve_gflops ratio error"
).split()
TEXT = "mode program matrix case type viewed halo n repeat".split()
# EVC-HYB paper, figure 16: Bratu 200^3 on four nodes with one GPU each, GF/s of the products and of the whole SNESSolve
PAPER_N, PAPER_RANKS, PAPER = 200, 4, {"mpiaijcusp": (23.1, 8.3), "EVC-HYB": (37.4, 8.4)}


def load(paths):
    """mode -> list of rows with numbers, medians over the repeats, sorted by program, case, type, halo, ranks"""
    groups, rows = {}, []
    for path in paths:
        with open(path, newline="") as f:
            rows += list(csv.DictReader(f))
    grown = {(r["mode"], r["program"], r["case"]) for r in rows if r["mode"] == "weak"}
    for r in rows:
        # both strong and weak scaling begin with one process
        for mode in ("strong", "weak"):
            if mode == r["mode"] or (r["ranks"] == "1" and (mode, r["program"], r["case"]) in grown):
                groups.setdefault((mode, *series(r), int(r["ranks"])), []).append(r)
    result = {mode: [] for mode in ("strong", "weak") if any(k[0] == mode for k in groups)}
    place = {}
    for r in rows:
        for c in ("program", "case", "type", "halo"):
            place.setdefault((c, r[c]), len(place))
    place["halo", ""] = -1
    order = lambda k: (place["program", k[1]], place["case", k[2]], place["type", k[3]], place["halo", k[4]], k[5])
    for key in sorted(groups, key=order):
        same = groups[key]
        row = {c: same[0][c] for c in TEXT} | {"ranks": key[-1]}
        for c in COLUMNS:
            if c not in row:
                values = [float(r[c]) for r in same if r[c] not in ("", None)]
                row[c] = statistics.median(values) if values else None
        row["exposed_us"] = row["product_us"] - row["block_us"] if None not in (row["product_us"], row["block_us"]) and row["ranks"] > 1 else None
        result[key[0]].append(row)
    for mode, group in result.items():
        for row in group:
            ranks, first = row["ranks"], [r for r in group if r["ranks"] == 1 and series(r)[:-1] == series(row)[:-1]]
            known = first and first[0]["product_us"] and row["product_us"]
            # the work per process; with weak scaling it is not exactly constant, because the edge of a cube is an integer
            work = row["entries"] / ranks / first[0]["entries"] if known and row["entries"] else (1 / ranks if mode == "strong" else 1)
            row["efficiency"] = 100 * first[0]["product_us"] * work / row["product_us"] if known else None
    return result


def series(row):
    """The properties that the figures of one line have in common; the last one is the transport, which does not exist for one process"""
    return row["program"], row["case"], row["type"], row["halo"]


def gain(value, base, halo=""):
    """A figure, and in brackets its ratio to another figure and the transport of the halo"""
    notes = [format(value / base, ".2f")] if value and base else []
    notes += [halo] if value and halo else []
    return show(value, 1) + (f" ({', '.join(notes)})" if notes else "")


def figure16(f, data):
    """The paper's figures and ours, GF/s and in brackets the gain on the reference and the transport of the halo"""
    rows = [r for r in data.get("strong", []) if r["program"] != "bench" and int(r["n"]) == PAPER_N]
    if not rows:
        return
    types = list(dict.fromkeys(r["type"] for r in rows))
    (base, solve), (product, whole) = PAPER.values()
    paper = {types[0]: (show(base, 1), show(solve, 1)), "evchyb": (gain(product, base), gain(whole, solve))}
    lines = [["the paper", str(PAPER_RANKS)] + [paper.get(t, ("", ""))[k] for k in (0, 1) for t in types]]
    for program, ranks in sorted({(r["program"], r["ranks"]) for r in rows}):
        best, line = {}, []
        for r in rows:
            if (r["program"], r["ranks"]) == (program, ranks):  # with the first transport, which is the best one
                best.setdefault(r["type"], r)
        for column in ("gflops", "solve_gflops"):
            reference = best.get(types[0], {}).get(column)
            for t in types:
                value, halo = best.get(t, {}).get(column), best.get(t, {}).get("halo", "")
                line.append(show(value, 1) if t == types[0] else gain(value, reference, halo))
        lines.append([{"bratu": "examples/bratu", "ex14": "PETSc's ex14"}[program], str(ranks)] + line)
    f.write(f"\n## Figure 16: Bratu {PAPER_N}^3\n\nGF/s of the products and of the whole SNESSolve, and the gain on {types[0]} ")
    f.write(f"(the paper: {next(iter(PAPER))}).\n")
    if any(r["halo"] for r in rows):
        f.write("Behind a gain the transport of the halo (-mat_spmv_halo): the first of peer, nccl, host, petsc that was measured, ")
        f.write("so compare only figures of one transport.\n")
    f.write("\n")
    table(f, ["", "processes"] + [f"MatMult, {t}" for t in types] + [f"SNESSolve, {t}" for t in types], lines)


def product_tables(f, data):
    for mode, rows in data.items():
        rows = [r for r in rows if r["program"] == "bench"]
        if not rows:
            continue
        ranks, lines = sorted({r["ranks"] for r in rows}), []
        for name, line in lines_of(rows).items():
            mine = {r["ranks"]: r for r in line}
            cell = lambda column, digits: [show(mine.get(r, {}).get(column), digits) for r in ranks]
            wrong = any(not (r["error"] is not None and r["error"] <= 1) for r in mine.values())
            matrix = name[1] if mode == "strong" else ", ".join(r["matrix"] for r in line)
            lines.append([matrix, name[2] + (" **WRONG**" if wrong else ""), name[3]] + cell("product_us", 1) + cell("gflops", 0) + cell("ratio", 2))
            lines[-1] += [c for c, r in zip(cell("efficiency", 0), ranks) if r > 1]
        reference = rows[0]["type"]
        f.write(f"\n## Products, {mode}\n\nMicroseconds, GF/s, speed relative to {reference} in the same process, efficiency in % against one process.\n\n")
        head = [f"{what}, {r}" for what in ("us", "GF/s", f"x {reference}") for r in ranks] + [f"eff., {r}" for r in ranks if r > 1]
        table(f, ["matrix", "type", "halo"] + head, lines)


def solve_tables(f, data):
    for mode, rows in data.items():
        rows = [r for r in rows if r["program"] != "bench"]
        if not rows:
            continue
        f.write(f"\n## The Bratu problem, {mode}\n\n")
        f.write("us/block: the product with the diagonal block alone; exposed: what a whole product takes beyond that, the part of the halo and of the\n")
        f.write("off-diagonal block that is not hidden. Efficiency is that of the product, against one process.\n\n")
        lines = []
        for r in rows:
            cells = [r["program"], r["type"], r["halo"], str(r["ranks"]), r["n"], show(r["newton"], 0), show(r["krylov"], 0)]
            cells += [show(r[c], d) for c, d in (("product_us", 1), ("block_us", 1), ("exposed_us", 1), ("efficiency", 0), ("gflops", 1), ("function_s", 3))]
            lines.append(cells + [show(r[c], d) for c, d in (("jacobian_s", 3), ("ksp_s", 3), ("solve_s", 3), ("solve_gflops", 1))])
        head = "program, type, halo, processes, n, Newton, Krylov, us/product, us/block, exposed, efficiency %, GF/s, "
        head += "function s, Jacobian s, KSPSolve s, SNESSolve s, SNESSolve GF/s"
        table(f, head.split(", "), lines)


def markdown(data, target):
    with results.whole(target) as f:
        f.write("# Scaling\n\nA GPU (or a core) a process.\n")
        if any(r["type"] == "aijcusparse" and r["ranks"] > 1 for rows in data.values() for r in rows):
            f.write("aijcusparse exchanges its halo through MPI, by way of the host unless MPI is CUDA-aware, with which it should be faster.\n")
        figure16(f, data)
        product_tables(f, data)
        solve_tables(f, data)


def lines_of(rows):
    """series -> rows by ranks; one process has no halo and begins every line"""
    names = list(dict.fromkeys(series(r) for r in rows))
    names = [x for x in names if x[-1] or not any(x[:-1] == y[:-1] and y[-1] for y in names)]
    return {x: list({r["ranks"]: r for r in rows if series(r)[:-1] == x[:-1] and (r["halo"] == x[-1] or r["ranks"] == 1)}.values()) for x in names}


def axis(ax, ranks, label, title):
    ax.set(xscale="log", xlabel="processes", ylabel=label, title=title)
    ax.set_xticks(ranks, [str(r) for r in ranks])
    ax.minorticks_off()


def product_chart(plt, data, target):
    """Time of a product and speed relative to the reference; one column per matrix"""
    data = {mode: [r for r in rows if r["program"] == "bench"] for mode, rows in data.items()}
    data = {mode: rows for mode, rows in data.items() if rows}
    if not data:
        return
    cases = list(dict.fromkeys(r["case"] for rows in data.values() for r in rows))
    types, halos = (list(dict.fromkeys(r[c] for rows in data.values() for r in rows)) for c in ("type", "halo"))
    fig, axes = plt.subplots(2 * len(data), len(cases), figsize=(4.5 * len(cases) + 2, 6 * len(data)), squeeze=False)
    for k, (mode, rows) in enumerate(data.items()):
        for column, case in enumerate(cases):
            pair, mine = axes[2 * k : 2 * k + 2, column], [r for r in rows if r["case"] == case]
            if not mine:
                for ax in pair:
                    ax.axis("off")
                continue
            for name, line in lines_of(mine).items():
                style = dict(color=f"C{halos.index(name[3])}", marker="osD^v"[types.index(name[2]) % 5], linestyle=("-", "-", "--")[types.index(name[2]) % 3])
                for ax, value in zip(pair, ("product_us", "ratio")):
                    ax.plot([r["ranks"] for r in line], [r[value] for r in line], label=" ".join(w for w in name[2:] if w), fillstyle="none", **style)
                if line[0]["ranks"] == 1 and len(line) > 1:
                    ideal = [line[0]["product_us"] / (r["ranks"] if mode == "strong" else 1) for r in line]
                    pair[0].plot([r["ranks"] for r in line], ideal, ":", linewidth=0.8, color=style["color"])
            ranks = sorted({r["ranks"] for r in mine})
            axis(pair[0], ranks, "time per product [us]", f"{case}, {mode}")
            axis(pair[1], ranks, f"speed relative to {rows[0]['type']}", "")
            pair[0].set_yscale("log")
            pair[1].set_ylim(bottom=0)
        legend = {text: handle for ax in axes[2 * k] for handle, text in zip(*ax.get_legend_handles_labels())}
        axes[2 * k][-1].legend(legend.values(), legend.keys(), loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        axes[2 * k][0].annotate("dotted: ideal", (0.02, 0.02), xycoords="axes fraction", fontsize="x-small")
    fig.tight_layout()
    results.chart(fig, target, metadata={"Date": None})


def solve_chart(plt, data, target):
    data = {mode: [r for r in rows if r["program"] != "bench"] for mode, rows in data.items()}
    data = {mode: rows for mode, rows in data.items() if rows}
    if not data:
        return
    panels = [("product_us", "time per product [us]"), ("gflops", "products [GF/s]"), ("solve_s", "SNESSolve [s]"), ("solve_gflops", "SNESSolve [GF/s]")]
    fig, axes = plt.subplots(len(data), len(panels), figsize=(4.5 * len(panels), 4 * len(data)), squeeze=False)
    for line, (mode, rows) in zip(axes, data.items()):
        lines, every = lines_of(rows), sorted({r["ranks"] for r in rows})
        for ax, (column, label) in zip(line, panels):
            for k, (name, whole) in enumerate(lines.items()):
                mine = [r for r in whole if r[column] is not None]
                legend = " ".join(w for w in (*name[2:], "(ex14)" if name[0] == "ex14" else "") if w)
                ax.plot([r["ranks"] for r in mine], [r[column] for r in mine], "s--" if name[0] == "ex14" else "o-", color=f"C{k % 10}", label=legend)
                block = [r for r in mine if r["block_us"] is not None]
                if column == "product_us" and block:
                    ax.plot([r["ranks"] for r in block], [r["block_us"] for r in block], ":", color=f"C{k % 10}", linewidth=0.8)
            which = {"gflops": 0, "solve_gflops": 1}.get(column)
            if which is not None and mode == "strong":
                for (name, values), marker in zip(PAPER.items(), "x+"):
                    ax.plot([PAPER_RANKS], [values[which]], marker, color="black", label=f"{name}, paper")
                every = sorted({*every, PAPER_RANKS})
            axis(ax, every, label, mode)
            ax.set_yscale("log")
        line[-1].legend(*line[-1].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        line[0].annotate("dotted: diagonal block alone", (0.02, 0.02), xycoords="axes fraction", fontsize="x-small")
    fig.tight_layout()
    results.chart(fig, target, metadata={"Date": None})


def charts(data, stem):
    plt = results.pyplot("scaling")
    if not plt:
        return []
    targets = [stem + ".svg", stem + "-solves.svg"]
    for draw, target in zip((product_chart, solve_chart), targets):
        draw(plt, data, target)
    return [t for t in targets if os.path.exists(t)]
