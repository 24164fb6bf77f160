"""Writes the benchmark's results as a Markdown table, one row a matrix: table.py results.csv [title] > table.md"""

import csv
import math
import sys

COLD = 1 << 20  # entries from which the "cold" figures stand in the table: below, a product out of cache measures where code and stack are


def main(source, title=""):
    with open(source) as f:
        rows = list(csv.DictReader(f))
    matrices = list(dict.fromkeys(r["matrix"] for r in rows))
    types = [t for t in dict.fromkeys(r["type"] for r in rows) if t != "aij"]
    ours = [t for t in types if any(r["type"] == t and r["ours"] == "1" for r in rows)]
    at = {(r["matrix"], r["type"]): r for r in rows}
    logs = {t: [] for t in types + ["best"]}

    print(f"# MatMult on the host\n\n{title}\n")
    print("Speed over AIJ (its time divided by the type's), products one after the other, medians, all types interleaved in one run; behind the")
    print(f"slash with all caches swept before each product, for matrices of at least {COLD} entries. Below, such a product measures where code")
    print("and stack are, and AIJ's shorter code can win (the columns cold_* of the .csv); a program would have to multiply once in a while only.")
    print("Generated matrices are marked *.\n")
    print("| matrix | rows | entries | AIJ [us] | " + " | ".join(types) + " |")
    print("|---" * (4 + len(types)) + "|")
    for m in matrices:
        a = at[m, "aij"]
        cells = []
        for t in types:
            r = at.get((m, t))
            warm, cold = (float(r[k]) for k in ("warm_ratio", "cold_ratio"))
            logs[t].append(math.log(warm))
            cells.append(f"{warm:.2f}" + (f" / {cold:.2f}" if int(float(a["entries"])) >= COLD else ""))
        logs["best"].append(max(math.log(float(at[m, t]["warm_ratio"])) for t in ours))
        us = float(a["warm_s"]) * 1e6
        star = "" if a["origin"] == "file" else "*"
        print(f"| {m}{star} | {a['rows']} | {a['entries']} | {us:.{0 if us >= 100 else 2}f} | " + " | ".join(cells) + " |")
    mean = {t: math.exp(sum(v) / len(v)) for t, v in logs.items()}
    least = {t: math.exp(min(v)) for t, v in logs.items()}
    print("| **geometric mean** | | | | " + " | ".join(f"**{mean[t]:.2f}**" for t in types) + " |")
    print("| least | | | | " + " | ".join(f"{least[t]:.2f}" for t in types) + " |")
    print(f"\nThe better of {' and '.join(ours)}: {mean['best']:.2f} in the geometric mean over {len(matrices)} matrices, {least['best']:.2f} at least.")


if __name__ == "__main__":
    main(*sys.argv[1:])
