"""Charts of the report, as SVG, if there is matplotlib"""

import functools
import math
import os

import results


def drawing(function):
    """A method that draws a figure, which is saved as its first argument, unless there are no charts"""

    @functools.wraps(function)
    def draw(self, name, *args, **how):
        if self.plt is None:
            return
        fig = function(self, *args, **how)
        fig.tight_layout()
        os.makedirs(self.folder, exist_ok=True)
        results.chart(fig, os.path.join(self.folder, name + ".svg"), metadata={"Date": None})
        self.plt.close(fig)

    return draw


class Charts:
    def __init__(self, folder):
        """folder: None for no charts"""
        self.folder, self.plt = folder, results.pyplot("paper") if folder else None

    @drawing
    def draw(self, names, series, ylabel, kind="bar", xlabel=""):
        """series: label -> values, 0 where there is none"""
        width = min(16, max(6, 2.5 + 0.11 * len(names) * max(2, len(series)))) if kind == "bar" else 7
        fig, ax = self.plt.subplots(figsize=(width, 3.6))
        for k, (label, values) in enumerate(series.items()):
            if kind == "bar":
                width = 0.8 / len(series)
                ax.bar([x + (k - (len(series) - 1) / 2) * width for x in range(len(names))], values, width, label=label)
            elif kind == "stack":
                ax.bar(range(len(names)), values, 0.7, bottom=[sum(v[x] for v in list(series.values())[:k]) for x in range(len(names))], label=label)
            else:
                ax.plot(names, [y if y > 0 else math.nan for y in values], "o" if kind == "points" else "o-", label=label)
        if kind in ("bar", "stack"):
            ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize="small")
        if kind != "stack":
            ax.set_ylim(bottom=min([0, *(v for values in series.values() for v in values)]))
        ax.set(ylabel=ylabel, xlabel=xlabel)
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        return fig

    @drawing
    def patterns(self, grids):
        """Where the entries are: title -> counts of grid cells"""
        from matplotlib.colors import LogNorm

        columns = (len(grids) + 1) // 2
        fig, axes = self.plt.subplots(2, columns, figsize=(2.7 * columns, 5.6), squeeze=False)
        for ax in axes.flat[len(grids) :]:
            ax.axis("off")
        for ax, (title, grid) in zip(axes.flat, grids.items()):
            image = [[count or float("nan") for count in row] for row in grid]
            ax.imshow(image, cmap="Blues", norm=LogNorm(0.1, max(map(max, grid))), interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize="small")
        return fig
