"""Draws the speed of each type relative to AIJ, matrix by matrix: plot.py results.csv chart.svg [title]"""

import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

sys.dont_write_bytecode = True  # no __pycache__ next to the sources
from table import Results, label, mean


def main(source, target, title=""):
    r = Results(source)
    modes = [m for m in ("warm", "cold") if any(float(row[m + "_ratio"]) > 0 for row in r.rows)]
    group = 0.1 * max(5, len(r.types))  # inches

    fig, axes = plt.subplots(len(modes), 1, figsize=(3 + group * len(r.matrices), 3.6 * len(modes)), squeeze=False, sharex=True)
    for ax, mode in zip(axes[:, 0], modes):
        for k, t in enumerate(r.types):
            ratio = [r.get(m, t, mode + "_ratio") for m in r.matrices]
            width = 0.8 / len(r.types)
            at = [x + (k - (len(r.types) - 1) / 2) * width for x in range(len(r.matrices))]
            ax.bar(at, ratio, width, label=f"{label(t)} (mean {mean([v for v in ratio if v > 0]):.2f})")
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_ylabel({"warm": "in cache if it fits", "cold": "out of cache"}[mode] + f"\nspeed relative to {r.reference if r.device else 'AIJ'}")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    axes[0, 0].set_title(title)
    axes[-1, 0].set_xticks(range(len(r.matrices)), [r.name(m) for m in r.matrices], rotation=45, ha="right", fontsize="small")
    axes[-1, 0].set_xlabel("* generated")
    fig.tight_layout()
    fig.savefig(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
