"""The rows of a measurement by matrix and format"""

import os
import re


def key(name):
    """twin:cage10, cage10.mtx and tests/matrices/cage10.mtx are one matrix"""
    return re.sub(r"\.mtx$", "", re.sub(r"^twin:", "", name if ":" in name else os.path.basename(name)))


def value(row, column):
    try:
        return float(row[column])
    except (KeyError, ValueError, TypeError):
        return 0.0


class Table:
    """The rows of a measurement by matrix and format; products that were wrong have no time"""

    def __init__(self, rows):
        self.rows = rows
        self.matrices = list(dict.fromkeys(key(r["matrix"]) for r in rows))
        self.formats = list(dict.fromkeys(r["format"] for r in rows))
        self.at = {(key(r["matrix"]), r["format"]): r for r in rows}

    def number(self, matrix, form, column):
        return value(self.at.get((matrix, form)), column)

    def seconds(self, matrix, form):
        """The median; on the host, which others may use, the least"""
        r = self.at.get((matrix, form), {})
        return 0.0 if value(r, "error") > 1 else value(r, "least" if r.get("device") == "host" else "seconds")

    def entries(self, matrix):
        return next((float(r["entries"]) for r in self.rows if key(r["matrix"]) == matrix), 0.0)

    def per_row(self, matrix):
        return next(float(r["entries"]) / float(r["rows"]) for r in self.rows if key(r["matrix"]) == matrix)

    def gflops(self, matrix, form):
        s = self.seconds(matrix, form)
        return 2e-9 * self.entries(matrix) / s if s else 0.0

    def best(self, matrix, forms):
        """(seconds, format) of the fastest"""
        return min(((self.seconds(matrix, f), f) for f in forms if self.seconds(matrix, f) > 0), default=(0.0, ""))

    def ratios(self, names, a, b):
        """How many times as long a takes as b"""
        return [self.seconds(m, a) / self.seconds(m, b) for m in names if self.seconds(m, a) and self.seconds(m, b)]

    def copy(self):
        """The bandwidth of a copy on the GPU, GB/s"""
        return 1e-9 * float(self.rows[0]["copy"])
