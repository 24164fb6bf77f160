"""Draws the layouts of docs/kernels.md and docs/formats.md: python3 docs/figures/layouts.py writes the .svg files next to itself.

Each figure has the pattern of a small matrix on the left and what is stored on the right. A color is a row, everywhere. The background is white, so that
the figures read the same on light and dark pages. Text stays text, in the reader's own font, which keeps the files small. bench/lib/python prints a Python with
matplotlib if the system's has none.
"""

import os

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "layouts", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif", "figure.facecolor": "white"})
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

HERE = os.path.dirname(os.path.abspath(__file__))
COLORS = ["#4c9be8", "#f2a154", "#5fbf77", "#e57373", "#a68be0", "#c4956a", "#ec9fd0", "#b8b84f"]
EDGE, PADDING, FAINT = "#333333", "#eeeeee", "#bbbbbb"


class Figure:
    """Cells of unit size; y grows downwards, as rows do"""

    def __init__(self, name, width, height):
        self.name, self.size = name, (width, height)
        self.fig = plt.figure(figsize=(0.235 * width, 0.235 * height))
        self.ax = self.fig.add_axes([0, 0, 1, 1])
        self.ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
        self.ax.axis("off")

    def cell(self, x, y, row=None, text="", width=1, height=1, color=None):
        """An entry of a row; a padded one, or one left out, without a row"""
        fill = color or (PADDING if row is None else COLORS[row % len(COLORS)])
        self.ax.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=EDGE if row is not None else FAINT, linewidth=0.6))
        if text != "":
            self.text(x + width / 2, y + height / 2, text, ha="center", size=7)

    def text(self, x, y, text, ha="left", size=9, **how):
        self.ax.text(x, y, text, ha=ha, va="center", fontsize=size, color="black", **how)

    def frame(self, x, y, width, height):
        self.ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=EDGE, linewidth=1.4))

    def arrow(self, x, y, to_x, to_y):
        self.ax.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "->", "color": EDGE, "linewidth": 1})

    def matrix(self, x, y, rows, columns, order=None):
        """The pattern: rows is a list of the columns of each row"""
        self.frame(x, y, columns, len(rows))
        for r, row in enumerate(rows):
            for c in row:
                self.cell(x + c, y + r, r)
            self.text(x - 0.35, y + r + 0.5, str(r), ha="right", size=7)

    def save(self):
        path = os.path.join(HERE, self.name + ".svg")
        self.fig.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(self.fig)
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def slices():
    rows = [[0, 3], [1], [0, 2, 4, 6], [3, 5], [1, 4, 7], [2, 5, 6], [6], [0, 4, 7]]
    order = sorted(range(8), key=lambda r: -len(rows[r]))
    f = Figure("slices", 41, 12.6)
    f.text(1, 1, "A: rows of any length")
    f.matrix(1.6, 2, rows, 8)
    f.arrow(10.4, 6, 13, 6)
    f.text(14, 1, "sorted within a window, cut into slices")
    for s in range(2):
        mine = order[4 * s : 4 * s + 4]
        width = max(len(rows[r]) for r in mine)
        top = 2 + 5.1 * s
        for i, r in enumerate(mine):
            f.text(14.8, top + i + 0.5, str(r), ha="right", size=7)
            for k in range(width):
                filled = k < len(rows[r])
                f.cell(15.1 + k, top + i, r if filled else None, rows[r][k] if filled else "")
        f.frame(15.1, top, width, 4)
        f.text(15.1 + width + 0.4, top + 1.5, f"slice {s}: {width} steps", size=8)
        f.text(15.1 + width + 0.4, top + 2.6, "of 4 rows", size=8)
    f.text(27.2, 1, "in memory, step by step")
    for s in range(2):
        mine = order[4 * s : 4 * s + 4]
        width = max(len(rows[r]) for r in mine)
        for k in range(width):
            for i, r in enumerate(mine):
                filled = k < len(rows[r])
                f.cell(27.2 + 0.8 * (4 * k + i), 2.6 + 5.1 * s, r if filled else None, rows[r][k] if filled else "", width=0.8, height=1.2)
            f.frame(27.2 + 3.2 * k, 2.6 + 5.1 * s, 3.2, 1.2)
    f.text(27.2, 4.8, "number: column index; gray: padding", size=8)
    f.text(27.2, 5.8, "a lane per row adds up its own entries", size=8)
    f.save()


def diagonals():
    offsets = [-3, -1, 0, 1, 3]
    rows = [[r + d for d in offsets if 0 <= r + d < 8] for r in range(8)]
    f = Figure("diagonals", 41, 12.6)
    f.text(1, 1, "A: a stencil")
    f.matrix(1.6, 2, rows, 8)
    f.arrow(10.4, 6, 13, 6)
    f.text(14, 1, "one slice: lane = row, step = diagonal")
    for k, d in enumerate(offsets):
        f.text(15.5 + 1.2 * k, 2.3, f"{d:+d}" if d else "0", ha="center", size=8)
        for r in range(8):
            inside = 0 <= r + d < 8
            f.cell(15 + 1.2 * k, 3 + r, r if inside else None)
    for r in range(8):
        f.text(14.7, 3.5 + r, str(r), ha="right", size=7)
    f.text(23, 2.3, "offsets: one list, shared by all slices that have", size=8)
    f.text(23, 3.3, "the same. No column index is stored", size=8)
    f.text(23, 5.2, "gray: masked lanes, which read no x", size=8)
    f.text(23, 7.1, "a step with equal values is marked; the product then", size=8)
    f.text(23, 8.1, "reads one of them:", size=8)
    for r in range(8):
        f.cell(23 + 0.8 * r, 9, r, "-1", width=0.8, height=1.2)
    f.arrow(30, 9.6, 32, 9.6)
    f.cell(32.6, 9, 0, "-1", width=1.2, height=1.2, color="white")
    f.save()


def node_blocks():
    nodes = [[0, 1], [0, 1, 3], [2], [1, 3]]
    rows = [[2 * c + k for c in nodes[r // 2] for k in (0, 1)] for r in range(8)]
    f = Figure("node-blocks", 41, 12.6)
    f.text(1, 1, "A: dense 2 x 2 blocks")
    f.frame(1.6, 2, 8, 8)
    for r, row in enumerate(rows):
        for c in row:
            f.cell(1.6 + c, 2 + r, r // 2)
    for n, blocks in enumerate(nodes):
        f.text(1.25, 3 + 2 * n, str(n), ha="right", size=7)
        for c in blocks:
            f.frame(1.6 + 2 * c, 2 + 2 * n, 2, 2)
    f.arrow(10.4, 6, 13, 6)
    f.text(14, 1, "one index for each block")
    for n, blocks in enumerate(nodes):
        f.text(14.7, 3 + 2 * n, str(n), ha="right", size=7)
        for k in range(3):
            inside = k < len(blocks)
            f.cell(15 + 1.4 * k, 2.5 + 2 * n, n if inside else None, blocks[k] if inside else "")
    f.text(21, 1, "and s x s = 4 values, lane by lane")
    for k in range(3):
        for v in range(4):
            for n, blocks in enumerate(nodes):
                inside = k < len(blocks)
                f.cell(21 + 0.9 * n + 4.4 * k, 2.2 + 1.9 * v, n if inside else None, width=0.9, height=1.2)
            f.frame(21 + 4.4 * k, 2.2 + 1.9 * v, 3.6, 1.2)
        f.text(22.8 + 4.4 * k, 10, f"step {k}", ha="center", size=8)
    for v in range(4):
        f.text(34.3, 2.8 + 1.9 * v, f"a[{v // 2}][{v % 2}]", size=8)
    f.text(14, 11.5, "lane = node row: it reads s entries of x for a block, and adds up s rows of y", size=8)
    f.save()


def long_rows():
    f = Figure("long-rows", 41, 12.6)
    f.text(1, 1, "GPU: a warp multiplies a long row; parts of a longer one are multiplied by several warps")
    for k in range(24):
        f.cell(1 + k, 1.9, 0)
    for k in range(0, 24, 8):
        f.frame(1 + k, 1.9, 8, 1)
        f.arrow(5 + k, 3, 5 + k, 4.1)
        f.text(5 + k, 4.6, f"warp {k // 8}: partial sum {k // 8}", ha="center", size=8)
    f.text(25.6, 2.4, "one row, parts of 256 to 4096 entries", size=8)
    f.text(25.6, 4.6, "the warp that ends last adds them, in order", size=8)
    f.text(1, 6.7, "Host: vector CSR, eight entries at a time, all rows of a unit (here two) together")
    columns = [2, 3, 4, 5, 6, 7, 8, 9, 14, 20, 21, 33, 40, 41, 55, 60]
    for k, c in enumerate(columns):
        f.cell(1 + k, 7.7, None, c, color="white")
        for r in range(2):
            f.cell(1 + k, 9 + r, r + 1)
    for k in (0, 8):
        f.frame(1 + k, 7.7, 8, 1)
        f.frame(1 + k, 9, 8, 2)
    f.text(17.6, 8.2, "columns, once for the unit", size=8)
    f.text(17.6, 10, "values of its rows", size=8)
    f.text(5, 11.7, "a run of columns: x is one load", ha="center", size=8)
    f.text(13.2, 11.7, "else eight", ha="center", size=8)
    f.save()


if __name__ == "__main__":
    for draw in (slices, diagonals, node_blocks, long_rows):
        draw()
