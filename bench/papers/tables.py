"""A measurement's CSV file: rows by matrix and format, and means of them"""

import math
import os
import re


def on_host(device):
    """Of the name that a device's files begin with"""
    return device.split("-")[0] == "host"


def key(name):
    """twin:cage10, cage10.mtx and tests/matrices/cage10.mtx are one matrix"""
    return re.sub(r"\.mtx$", "", re.sub(r"^twin:", "", name if ":" in name else os.path.basename(name)))


class Table:
    """The rows of a measurement by matrix and format; products that were wrong have no time"""

    def __init__(self, device, rows):
        self.rows, self.host = rows, on_host(device)
        self.flops = 8 if "complex" in device.split("-") else 2
        self.wrong = [f"{r.get('format')} on {key(r['matrix'])}" for r in rows if self.value(r, "error") > 1]
        self.matrices = list(dict.fromkeys(key(r["matrix"]) for r in rows))
        kind = "format" if "format" in rows[0] else "type"
        self.at = {(key(r["matrix"]), r[kind]): r for r in rows}
        self.formats = list(dict.fromkeys(r[kind] for r in rows))

    @staticmethod
    def value(row, column):
        try:
            return float(row[column])
        except (KeyError, ValueError, TypeError):
            return 0.0

    def number(self, matrix, form, column):
        return self.value(self.at.get((matrix, form)), column)

    def seconds(self, matrix, form):
        """The median; on the host, which others may use, the least"""
        r = self.at.get((matrix, form), {})
        return 0.0 if self.value(r, "error") > 1 else self.value(r, "least" if r.get("device") == "host" else "seconds")

    def above(self, matrix, form):
        """How far the median is above the least, percent"""
        r = self.at.get((matrix, form))
        return 100 * (self.value(r, "seconds") / self.value(r, "least") - 1) if self.value(r, "least") else 0.0

    def entries(self, matrix):
        return next((float(r["entries"]) for r in self.rows if key(r["matrix"]) == matrix), 0.0)

    def gflops(self, matrix, form):
        s = self.seconds(matrix, form)
        return 1e-9 * self.flops * self.entries(matrix) / s if s else 0.0

    def best(self, matrix, forms):
        """(seconds, format) of the fastest"""
        return min(((self.seconds(matrix, f), f) for f in forms if self.seconds(matrix, f) > 0), default=(0.0, ""))

    def label(self, matrix):
        r = next(r for r in self.rows if key(r["matrix"]) == matrix)
        return matrix + ("" if r["origin"] == "file" else " (twin)" if r["origin"] == "twin" else " *")


def correlation(a, b):
    """Of the logarithms"""
    a, b = [math.log(v) for v in a], [math.log(v) for v in b]
    p, q = sum(a) / len(a), sum(b) / len(b)
    return sum((x - p) * (y - q) for x, y in zip(a, b)) / (math.sqrt(sum((x - p) ** 2 for x in a) * sum((y - q) ** 2 for y in b)) or 1)
