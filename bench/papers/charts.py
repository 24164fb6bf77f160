"""Charts of the report, as SVG, if there is matplotlib"""

import os
import sys

import results


class NoCharts:
    """For a page without its charts, which are there already"""

    def __init__(self, folder):
        self.folder = folder

    def draw(self, _name, names, *_, **__):
        return bool(names)


class Charts:
    def __init__(self, folder):
        self.folder = folder
        try:
            import matplotlib

            matplotlib.use("svg")
            matplotlib.rcParams["svg.hashsalt"] = "paper"  # the same chart, the same file
            import matplotlib.pyplot

            self.plt = matplotlib.pyplot
        except ImportError:
            self.plt = None
            print("bench/paper: no matplotlib, no charts", file=sys.stderr)

    def draw(self, name, names, series, ylabel, log=False, kind="bar", xlabel=""):
        """series: label -> values, 0 where there is none. Returns whether there is a chart"""
        if self.plt is None or not names:
            return False
        os.makedirs(self.folder, exist_ok=True)
        width = min(16, max(6, 2.5 + 0.11 * len(names) * max(2, len(series)))) if kind == "bar" else 7
        fig, ax = self.plt.subplots(figsize=(width, 3.6))
        for k, (label, values) in enumerate(series.items()):
            if kind == "bar":
                width = 0.8 / len(series)
                ax.bar([x + (k - (len(series) - 1) / 2) * width for x in range(len(names))], values, width, label=label)
            elif kind == "stack":
                bottom = [sum(v[x] for v in list(series.values())[:k]) for x in range(len(names))]
                ax.bar(range(len(names)), values, 0.7, bottom=bottom, label=label)
            else:
                points = [(x, y) for x, y in zip(names, values) if y > 0]
                if points:
                    ax.plot(*zip(*points), "o" if kind == "points" else "o-", label=label)
        if kind in ("bar", "stack"):
            ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize="small")
        if log:
            ax.set_yscale("log")
        elif kind != "stack":
            ax.set_ylim(bottom=min([0, *(v for values in series.values() for v in values)]))
        ax.set_ylabel(ylabel)
        ax.set_xlabel(xlabel)
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        fig.tight_layout()
        results.chart(fig, os.path.join(self.folder, name + ".svg"), metadata={"Date": None})
        self.plt.close(fig)
        return True
