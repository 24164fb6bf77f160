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

    def squares(self, ax, cells, title):
        """cells: (row, column) -> (color, text)"""
        for (r, c), (color, text) in cells.items():
            ax.add_patch(self.plt.Rectangle((c, r), 1, 1, facecolor=color, edgecolor="black", linewidth=0.6))
            ax.text(c + 0.5, r + 0.5, text, ha="center", va="center", fontsize="x-small")
        ax.set(xlim=(-0.1, max(c for _, c in cells) + 1.1), ylim=(max(r for r, _ in cells) + 1.1, -0.1), aspect="equal")
        ax.axis("off")
        ax.set_title(title, fontsize="small")

    @drawing
    def cells(self, layouts):
        """The places of formats: layouts: title -> rows of booleans, an entry or padding"""
        fig, axes = self.plt.subplots(1, len(layouts), figsize=(2.6 * len(layouts), 3.2))
        look = {True: ("tab:blue", ""), False: ("lightgray", "0")}
        for ax, (title, rows) in zip(axes, layouts.items()):
            self.squares(ax, {(r, c): look[entry] for r, row in enumerate(rows) for c, entry in enumerate(row)}, title)
        return fig

    @drawing
    def threads(self, b, t, steps):
        """A slice of SELL-P and its thread block: which thread multiplies which entry, and the sums in shared memory"""
        colors = [self.plt.get_cmap("Pastel1")(k) for k in range(t)]
        fig, axes = self.plt.subplots(1, 3, figsize=(8, 2.6), width_ratios=(steps * t, t, 1))
        thread = lambda columns: {(r, c): (colors[c % t], f"{r},{c % t}") for r in range(b) for c in range(columns)}
        self.squares(axes[0], thread(steps * t), f"a slice, b = {b}, t = {t}: thread (idx, idy)")
        self.squares(axes[1], thread(t), "shared memory")
        self.squares(axes[2], {(r, 0): ("white", f"y{r}") for r in range(b)}, "sums")
        return fig

    @drawing
    def ranges(self, ranges):
        """Rows in the order of their lengths: (rows, threads a row, thread blocks) of each range"""
        fig, ax = self.plt.subplots(figsize=(8, 2.6))
        first = 0
        for k, (rows, threads, blocks) in enumerate(ranges):
            ax.bar(first, threads, rows, align="edge", color=self.plt.get_cmap("Pastel1")(k), edgecolor="black", linewidth=0.6)
            ax.vlines([first + rows * b / blocks for b in range(1, blocks)], 0, threads, color="black", linewidth=0.6)
            ax.text(first + rows / 2, threads + 0.4, str(blocks), ha="center", fontsize="small")
            first += rows
        ax.set(ylim=(0, max(threads for _, threads, _ in ranges) + 3), xlabel="rows, in the order of their lengths", ylabel="threads a row")
        ax.set_yticks([threads for _, threads, _ in ranges])
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
