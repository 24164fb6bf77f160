"""Charts of the report, as SVG, if there is matplotlib"""

import itertools
import os
import sys

import results


class NoCharts:
    """For a page without its charts, which are there already"""

    def __init__(self, folder):
        self.folder = folder

    def draw(self, _name, names, *_, **__):
        return bool(names)

    def cells(self, *_):
        return True

    threads = patterns = ranges = cells


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
            print("bench/papers/paper.py: no matplotlib, no charts", file=sys.stderr)

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
        return self.save(fig, name)

    def save(self, fig, name):
        fig.tight_layout()
        results.chart(fig, os.path.join(self.folder, name + ".svg"), metadata={"Date": None})
        self.plt.close(fig)
        return True

    def squares(self, ax, cells):
        """cells: (row, column) -> (color, text)"""
        for (r, c), (color, text) in cells.items():
            ax.add_patch(self.plt.Rectangle((c, r), 1, 1, facecolor=color, edgecolor="black", linewidth=0.6))
            ax.text(c + 0.5, r + 0.5, text, ha="center", va="center", fontsize="x-small")
        ax.set_xlim(-0.1, max(c for _, c in cells) + 1.1)
        ax.set_ylim(max(r for r, _ in cells) + 1.1, -0.1)
        ax.set_aspect("equal")
        ax.axis("off")

    def cells(self, name, layouts):
        """The places of formats: layouts: title -> rows of booleans, an entry or padding"""
        if self.plt is None:
            return False
        os.makedirs(self.folder, exist_ok=True)
        fig, axes = self.plt.subplots(1, len(layouts), figsize=(2.6 * len(layouts), 3.2))
        for ax, (title, rows) in zip(axes, layouts.items()):
            look = {True: ("tab:blue", ""), False: ("lightgray", "0")}
            self.squares(ax, {(r, c): look[entry] for r, row in enumerate(rows) for c, entry in enumerate(row)})
            ax.set_title(title, fontsize="small")
        return self.save(fig, name)

    def threads(self, name, how):
        """A slice of SELL-P and its thread block: which thread multiplies which entry, and the sums in shared memory"""
        if self.plt is None:
            return False
        os.makedirs(self.folder, exist_ok=True)
        b, t, steps = how["b"], how["t"], how["steps"]
        colors = [self.plt.get_cmap("Pastel1")(k) for k in range(t)]
        fig, axes = self.plt.subplots(1, 3, figsize=(8, 2.6), width_ratios=(steps * t, t, 1))
        self.squares(axes[0], {(r, c): (colors[c % t], f"{r},{c % t}") for r in range(b) for c in range(steps * t)})
        axes[0].set_title(f"a slice, b = {b}, t = {t}: thread (idx, idy)", fontsize="small")
        self.squares(axes[1], {(r, c): (colors[c], f"{r},{c}") for r in range(b) for c in range(t)})
        axes[1].set_title("shared memory", fontsize="small")
        self.squares(axes[2], {(r, 0): ("white", f"y{r}") for r in range(b)})
        axes[2].set_title("sums", fontsize="small")
        return self.save(fig, name)

    def ranges(self, name, ranges):
        """Rows in the order of their lengths: (rows, threads a row, thread blocks) of each range"""
        if self.plt is None:
            return False
        os.makedirs(self.folder, exist_ok=True)
        fig, ax = self.plt.subplots(figsize=(8, 2.6))
        first = 0
        for k, (rows, threads, blocks) in enumerate(ranges):
            ax.bar(first, threads, rows, align="edge", color=self.plt.get_cmap("Pastel1")(k), edgecolor="black", linewidth=0.6)
            ax.vlines([first + rows * b / blocks for b in range(1, blocks)], 0, threads, color="black", linewidth=0.6)
            ax.text(first + rows / 2, threads + 0.4, str(blocks), ha="center", fontsize="small")
            first += rows
        ax.set_ylim(0, max(threads for _, threads, _ in ranges) + 3)
        ax.set_yticks([threads for _, threads, _ in ranges])
        ax.set_xlabel("rows, in the order of their lengths")
        ax.set_ylabel("threads a row")
        return self.save(fig, name)

    def patterns(self, name, grids):
        """Where the entries are: title -> counts of grid cells"""
        if self.plt is None:
            return False
        from matplotlib.colors import LogNorm

        os.makedirs(self.folder, exist_ok=True)
        fig, axes = self.plt.subplots(2, (len(grids) + 1) // 2, figsize=(2.7 * ((len(grids) + 1) // 2), 5.6), squeeze=False)
        for ax, (title, grid) in itertools.zip_longest(axes.flat, grids.items(), fillvalue=(None, None)):
            if title is None:
                ax.axis("off")
                continue
            image = [[count or float("nan") for count in row] for row in grid]
            ax.imshow(image, cmap="Blues", norm=LogNorm(0.1, max(map(max, grid))), interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(title, fontsize="small")
        return self.save(fig, name)
