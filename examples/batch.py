"""Draws the residuals and the numbers of iterations that examples/batch wrote: batch.py residuals.csv chart.svg (needs matplotlib)"""

import csv
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

rows = list(csv.DictReader(open(sys.argv[1])))
names = list(dict.fromkeys(r["pc"] for r in rows))
fig, axes = plt.subplots(1, len(names), figsize=(6 * len(names), 4), squeeze=False)
for ax, name in zip(axes[0], names):
    if name == "devicebatch":
        its, systems = ([int(r[k]) for r in rows if r["pc"] == name] for k in ("iteration", "total"))
        ax.bar(its, systems, width=1.0)
        ax.set_title("each system by itself")
        ax.set_xlabel("iterations of a system")
        ax.set_ylabel("systems")
        continue
    x, least, median, largest = ([float(r[k]) for r in rows if r["pc"] == name] for k in ("iteration", "least", "median", "largest"))
    ax.fill_between(x, least, largest, alpha=0.3, label="all systems")
    ax.semilogy(x, median, marker="o", markersize=3, label="median")
    ax.set_title(f"CG, {name}")
    ax.set_xlabel("iteration")
    ax.grid(alpha=0.3)
    ax.set_ylabel("|b - A x| / |b| of a system")
    ax.legend()
fig.tight_layout()
fig.savefig(sys.argv[2])
