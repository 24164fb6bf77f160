"""Tabulates the results of bench/batch, figure by figure of the paper: batch.py results.csv >table.md"""

import csv
import os
import sys

sys.dont_write_bytecode = True  # no __pycache__ in the sources
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from results import mean

LABELS = {"loop": "loop of calls", "graph": "the loop in a graph", "aij": "block-diagonal aij", "sellp": "block-diagonal sellp",
          "evchyb": "block-diagonal evchyb", "batch": "batch", "shared": "batch, pattern shared", "same": "batch, values shared"}
ORDER = ["loop", "graph", "aij", "sellp", "evchyb", "batch:coo", "batch:csr-scalar", "batch:csr-vector", "batch:csr-smart", "batch:csr-i", "batch:ell",
         "batch:coo-atomic", "batch:slices", "batch:sellp", "batch", "shared", "same"]


def label(t):
    return LABELS.get(t, t.removeprefix("batch:"))


def read(source):
    rows = list(csv.DictReader(open(source)))
    for r in rows:
        for k in ("figure", "problems", "rows", "nonzeros"):
            r[k] = int(r[k])
        for k in ("seconds", "gflops", "bytes", "bytes_per_s", "share_of_copy", "over_loop", "over_aij", "error"):
            r[k] = float(r[k])
    return rows


def types(rows):
    there = {r["type"] for r in rows}
    return [t for t in ORDER if t in there] + sorted(there - set(ORDER))


# The results of the paper, on an NVIDIA P100 (732 GB/s, 5.3 Tflop/s), in double precision
PAPER = {
    3: "Twelve matrices of 800 to 1024 rows, batches of growing size. The loop of library calls never exceeds 5 Gflop/s, every batched kernel is at "
       "least ten times as fast; ELL surpasses 70 on balanced matrices, CSR-I \"achieves very good performance for unbalanced problems containing "
       "many nonzero elements\", COO is the fastest in most cases and \"the second-best choice in all remaining cases\".",
    4: "1000 matrices of 1024 rows, CSR kernels. Balanced rows: CSR-scalar \"offers very good performance for low nonzero-per-row ratios\" and drops "
       "beyond four entries a row, CSR-vector continues to improve, CSR-smart gives 35 to 60 Gflop/s for most scenarios. All entries in a few rows: "
       "CSR-I is best in all cases. The loop never delivers more than 5.",
    5: "10,000 copies of each of 32 matrices, by entries a row. COO is the overall winner, ELL where rows are balanced (up to 80 Gflop/s); \"none of "
       "the CSR-based kernels is competitive to the COO kernel\".",
    6: "The matrices of Figure 3 in one batch, in random order. COO 55 Gflop/s, CSR-I 50, CSR-smart 45, ELL 40 at more than 500 GB/s (70 % of the "
       "peak).",
    7: "All 32 matrices in one batch. COO 55 Gflop/s, CSR-I 50, CSR-smart 45, ELL 30. In the summary: about 50 Gflop/s, 25 times the loop of "
       "library calls.",
}
BALANCED = ("dwt_992", "gr_30_30", "nos3")  # for which the paper says that ELL is the best where rows are balanced
KERNELS = ("batch:coo", "batch:csr-scalar", "batch:csr-vector", "batch:csr-smart", "batch:csr-i", "batch:ell", "batch:coo-atomic")


def span(values):
    least, most = min(values), max(values)
    return f"{most:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"


def compared(rows):
    """The largest number of problems with which the paper's kernels ran, and for each such case its rows by type"""
    cases = {}
    for r in rows:
        cases.setdefault((r["case"], r["problems"]), {})[r["type"]] = r
    full = [c for c in cases.values() if "batch" in c and any(k in c for k in KERNELS)]
    most = max((next(iter(c.values()))["problems"] for c in full), default=0)
    return most, [c for c in full if next(iter(c.values()))["problems"] == most]


def means(full):
    """For each kernel of the paper: (geometric mean of its Gflop/s, number of cases)"""
    found = {label(k): [c[k]["gflops"] for c in full if k in c] for k in KERNELS}
    return {name: (mean(v), len(v)) for name, v in found.items() if v}


def here(rows):
    """A summary of the measurements with the largest batches on which all kernels ran"""
    most, full = compared(rows)
    if not full:
        return ""
    best = [min((c[k] for k in KERNELS if k in c), key=lambda r: r["seconds"]) for c in full]
    wins = sorted(((sum(b["type"] == k for b in best), label(k)) for k in KERNELS), reverse=True)
    gf = [c["batch"]["gflops"] for c in full]
    text = (f"{most} problems: the best of the paper's kernels gives {span([b['gflops'] for b in best])} Gflop/s ("
            + ", ".join(f"{name} best in {n} of {len(best)}" for n, name in wins if n) + f"); batch, by its own choice, {span(gf)}, "
            f"{mean([b['seconds'] / c['batch']['seconds'] for b, c in zip(best, full)]):.1f} times the best of them in the geometric mean")
    loop = [c["loop"]["gflops"] for c in full if "loop" in c]
    if loop:
        least = min(c["batch"]["over_loop"] for c in full if "loop" in c)
        text += f"; the loop of library calls at most {max(loop):.0f}, which batch passes {least:.0f} times at least"
    text += ". The kernels' geometric means: " if len(full) > 1 else ". The kernels: "
    return text + ", ".join(f"{name} {g:.0f}" + (f" (on {n})" if n < len(full) else "") for name, (g, n) in means(full).items()) + " Gflop/s."


def abstract(rows):
    """The results of the paper that were reproduced, and those that were not"""
    three = [c for c in cases([r for r in rows if r["figure"] == 3]) if "batch:coo" in c]
    most = max((c["batch:coo"]["problems"] for c in three), default=0)
    three = [c for c in three if c["batch:coo"]["problems"] == most]
    four = [c for c in cases([r for r in rows if r["figure"] == 4]) if "batch:csr-i" in c]
    if not three or not four:
        return
    least = min(c[k]["over_loop"] for c in three for k in KERNELS if k in c)
    first = [max((k for k in KERNELS if k in c), key=lambda k: c[k]["gflops"]) for c in three]
    named = [c["batch:coo"]["case"] for c in three if c["batch:coo"]["case"] in BALANCED]
    balanced = sum(f == "batch:ell" for c, f in zip(three, first) if c["batch:coo"]["case"] in BALANCED)
    csr = [k for k in KERNELS if "csr" in k]
    uneven = [c for c in four if c["batch:csr-i"]["case"].startswith("unbalanced")]
    best = sum(max(csr, key=lambda k: c[k]["gflops"]) == "batch:csr-i" for c in uneven)
    print(f"\n*In short.* Reproduced: every batched kernel is at least ten times as fast as the loop of library calls (Figure 3, {most} problems: "
          f"{least:.0f} times at least); csr-i is the best CSR kernel where all entries are in a few rows ({best} of {len(uneven)} cases of Figure 4). In part: ell "
          f"is the best where rows are balanced (first on {first.count('batch:ell')} of the {len(first)} matrices of Figure 3, and on {balanced} of the "
          f"{len(named)} that the paper names for it, {', '.join(named)}). Not reproduced: coo as the fastest kernel in "
          f"most cases (first on {first.count('batch:coo')}). It adds in a fixed order here; coo-atomic adds with atomics, as the paper's does."
          + "".join(f" Of heterogeneous batches (Figure {figure}, {count} problems) {name} is the fastest of the kernels; in the paper COO." for figure, count, name in mixed(rows)))


def mixed(rows):
    """Of the heterogeneous batches: figure, problems and the fastest kernel"""
    for figure in (6, 7):
        most, full = compared([r for r in rows if r["figure"] == figure])
        if full and "batch:coo-atomic" in full[0]:
            yield figure, most, label(min((k for k in KERNELS if k in full[0]), key=lambda k: full[0][k]["seconds"]))


def cases(rows):
    found = {}
    for r in rows:
        found.setdefault((r["figure"], r["case"], r["origin"], r["problems"]), {})[r["type"]] = r
    return list(found.values())


def table(rows):
    for figure in sorted({r["figure"] for r in rows}):
        some = [r for r in rows if r["figure"] == figure]
        print(f"\n## Figure {figure}\n\n*The paper.* {PAPER[figure]}\n\n*Here.* {here(some)}\n\n"
              "Microseconds; in brackets the speed over the loop of calls and over the block-diagonal aij, where these were measured, and the share of a "
              "copy's bandwidth.\n")
        for count in sorted({r["problems"] for r in some}):
            these = [r for r in some if r["problems"] == count]
            columns = types(these)
            print(f"\n{count} problems\n\n| | origin | nonzeros | " + " | ".join(label(t) for t in columns) + " | kernel chosen |")
            print("|" + "---|" * (len(columns) + 4))
            for case in dict.fromkeys(r["case"] for r in these):
                by = {r["type"]: r for r in these if r["case"] == case}
                first = next(iter(by.values()))
                cells = []
                for t in columns:
                    r = by.get(t)
                    text = f"{1e6 * r['seconds']:.4g}" if r else ""
                    if r and t in ("batch", "shared", "same"):
                        over = [f"{r[k]:.3g}" for k in ("over_loop", "over_aij") if r[k] > 0]  # 0: not measured
                        text += f" ({', '.join(over + [format(100 * r['share_of_copy'], '.0f') + ' %'])})"
                    cells.append(text)
                print(f"| {case} | {first['origin']} | {first['nonzeros']} | " + " | ".join(cells) + f" | {by['batch']['viewed'] if 'batch' in by else ''} |")


def page(data):
    print(f"# Batched products\n\n{data[0]['device']}, by `bench/batch` and `bench/batch.py` (docs/batch.md). Problems of the set marked twin are "
          f"generated. Errors, in units of what rounding may do: at most {max(r['error'] for r in data):.2g}.")
    if any(r["type"] == "batch:slices" for r in data):
        print("\nThe type had layouts and kernels of its own when this was measured (slices and sellp, by its own choice), and the paper's kernels were among its options.")
    five = [r for r in data if r["figure"] == 5 and r["type"] == "batch" and r["over_aij"] > 0]
    if five:
        count = max(r["problems"] for r in five)
        five = [r for r in five if r["problems"] == count]
        ratio = [r["over_aij"] for r in five]
        large = [r["share_of_copy"] for r in five if r["bytes"] > 1e8]
        print(f"\n{len(five)} matrices, {count} problems each: batch over the block-diagonal aij {mean(ratio):.2f} in the geometric mean, {min(ratio):.2f} at "
              f"least; over the loop of library calls {min(r['over_loop'] for r in five):.0f} at least"
              + (f"; of a copy's bandwidth, where the batch takes more than 100 MB, {100 * min(large):.0f} % at least." if large else "."))
    abstract(data)
    table(data)


if __name__ == "__main__":
    page(read(sys.argv[1]))
