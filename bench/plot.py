"""Draws the speed of each type relative to AIJ, matrix by matrix: plot.py results.csv chart.svg [title]"""

import csv
import math
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt


def main(source, target, title=""):
    with open(source) as f:
        rows = list(csv.DictReader(f))
    matrices = list(dict.fromkeys(r["matrix"] for r in rows))
    types = [t for t in dict.fromkeys(r["type"] for r in rows) if t != "aij"]
    modes = [m for m in ("warm", "cold") if any(float(r[m + "_ratio"]) > 0 for r in rows)]
    names = {r["matrix"]: r["matrix"] + ("" if r["origin"] == "file" else "*") for r in rows}

    fig, axes = plt.subplots(len(modes), 1, figsize=(3 + 0.5 * len(matrices), 3.6 * len(modes)), squeeze=False, sharex=True)
    for ax, mode in zip(axes[:, 0], modes):
        for k, t in enumerate(types):
            ratio = {r["matrix"]: float(r[mode + "_ratio"]) for r in rows if r["type"] == t}
            known = [ratio[m] for m in matrices if ratio.get(m, 0) > 0]
            mean = math.exp(sum(map(math.log, known)) / len(known)) if known else 0
            width = 0.8 / len(types)
            at = [x + (k - (len(types) - 1) / 2) * width for x in range(len(matrices))]
            ax.bar(at, [ratio.get(m, 0) for m in matrices], width, label=f"{t} (mean {mean:.2f})")
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_ylabel({"warm": "in cache if it fits", "cold": "out of cache"}[mode] + "\nspeed relative to AIJ")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    axes[0, 0].set_title(title)
    axes[-1, 0].set_xticks(range(len(matrices)), [names[m] for m in matrices], rotation=45, ha="right", fontsize="small")
    axes[-1, 0].set_xlabel("* generated")
    fig.tight_layout()
    fig.savefig(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
