#!/usr/bin/env python3
"""Compares the numbers of README.md and docs with the CSV files of docs/results that they come from: checkdocs.py [folder of the repository]

CLAIMS lists for each document the sentences and table rows, with {} for each number, and the values. What the text says must be what the CSV gives, rounded as the format says.
"""

import csv
import math
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parent.parent
OURS = ("sellp", "evchyb")


def read(name):
    with open(ROOT / "docs/results" / name, newline="") as f:
        return list(csv.DictReader(f))


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


class Products:
    """What bench/bench measured: a table of matrices and types"""

    def __init__(self, name):
        rows = read(name)
        self.at = {(r["matrix"], r["type"]): r for r in rows}
        self.matrices = list(dict.fromkeys(r["matrix"] for r in rows))

    def get(self, matrix, kind, column="warm_ratio"):
        return float(self.at.get((matrix, kind), {}).get(column) or 0)

    def best(self, matrix):
        return max(self.get(matrix, t) for t in OURS)

    def bests(self):
        return [self.best(m) for m in self.matrices]

    def mean(self, kind):
        return mean(v for v in (self.get(m, kind) for m in self.matrices) if v > 0)

    def refresh(self, kind, column, least=0):
        """Smallest and largest refresh, in products"""
        costs = [self.get(m, kind, column) / self.get(m, kind, "warm_s") for m in self.matrices if int(self.at[m, kind]["entries"]) > least and self.get(m, kind, column) > 0]
        return min(costs), max(costs)


gpu, host, scaling, solves = Products("h200.csv"), Products("host.csv"), read("scaling.csv"), read("solves.csv")
krylov, firsts = read("krylov.csv"), read("first.csv")


def product(ranks, kind, halo="", matrix="bratu:200", which=min):
    return which(float(r["product_us"]) for r in scaling if r["program"] == "bench" and (r["ranks"], r["matrix"], r["type"], r["halo"]) == (str(ranks), matrix, kind, halo))


def ratios(ranks):
    """Speeds of sellp's products, relative to aijcusparse in the same run"""
    return sorted(float(r["ratio"]) for r in scaling if (r["program"], r["mode"], r["ranks"], r["matrix"], r["type"], r["halo"]) == ("bench", "strong", str(ranks), "bratu:200", "sellp", "peer"))


def solve(ranks, kind, column):
    """Speeds of a type's whole solves, relative to aij's, by configuration"""
    at = {}
    for r in solves:
        if r["where"] == "host" and r["ranks"] == str(ranks) and r["timed"] == "0":
            at.setdefault((r["config"], r["type"]), []).append(float(r[column]))
    return [statistics.median(at[c, "aij"]) / statistics.median(at[c, kind]) for c, t in at if t == "aij"]


def iteration(matrix, kind, ksp, pc="none", column="us"):
    return next(float(r[column]) for r in krylov if (r["matrix"], r["type"], r["ksp"], r["pc"]) == (matrix, kind, ksp, pc))


def iterations(matrix, digits):
    cg = [us(iteration(matrix, kind, "cg")) for kind in ("aij", "sellp")]
    return cg + [digits(iteration(matrix, "sellp", "devicecg", pc)) for pc in ("none", "jacobi")]


def others(matrix, digits):
    names = (("aij", "bcgs"), ("sellp", "bcgs"), ("sellp", "devicebicgstab"), ("aij", "chebyshev"), ("sellp", "chebyshev"), ("sellp", "devicechebyshev"))
    return [(us if ksp == "bcgs" else digits)(iteration(matrix, kind, ksp, "jacobi")) for kind, ksp in names]


def first(matrix, kind, column="first_s", unit=1e3):
    return unit * statistics.median(float(r[column]) for r in firsts if (r["matrix"], r["type"]) == (matrix, kind))


def us(value):
    return f"{value:.0f}"


def two(value):
    return f"{value:.2f}"


def one(value):
    return f"{value:.1f}"


def ones(values):
    return [one(v) for v in values]


def row(matrix_gpu, matrix_host, digits=one):
    return [digits(gpu.best(matrix_gpu)), one(host.best(matrix_host))]


def spans(source, column, **where):
    return [one(v) for t in OURS for v in source.refresh(t, column, **where)]


def whole(source, column, **where):
    return [us(v) for t in OURS for v in source.refresh(t, column, **where)]


SPAN = "{} to {} | {} to {} |"
CLAIMS = {
    "README.md": [
        ("On an NVIDIA H200 `MatMult` is **{} times** as fast as PETSc's `aijcusparse`", [two(mean(gpu.bests()))]),
        ("one AVX-512 core of an AMD EPYC, **{} times** as fast as `aij`", [one(mean(host.bests()))]),
        ("geometric means over the benchmark's {} and {} matrices", [str(len(gpu.matrices)), str(len(host.matrices))]),
        ("| 7-point stencil, random values (200^3; one core: 160^3) | {} | {} |", row("stencil7:200", "stencil7:160")),
        ("| 7-point Bratu problem of SNES ex14 (200^3; 100^3) | {} | {} |", row("bratu:200", "bratu:100")),
        ("| finite elements, 27 neighbors x 3 unknowns (943,000 rows; 81,000) | {} | {} |", row("fem27:68:3", "fem27:30:3")),
        ("| power law like webbase, 1 million rows | {} | {} |", row("webbase", "webbase", two)),
        ("| random, rows of 1 entry to 5 % of the columns (20,000 rows; 8,000) | {} | {} |", row("random:20000", "random:8000")),
        ("| geometric mean of all matrices (smallest) | {} ({}) | {} ({}) |",
         [two(mean(gpu.bests())), two(min(gpu.bests())), two(mean(host.bests())), two(min(host.bests()))]),
        ("as fast on average ({} and {}, `sellp` {} and {})", [two(gpu.mean("evchyb")), two(host.mean("evchyb")), two(gpu.mean("sellp")), two(host.mean("sellp"))]),
        ("on the power law above one core gains {} times with it and {} times with `sellp`", [one(host.get("webbase", "evchyb")), one(host.get("webbase", "sellp"))]),
        ("they run at {} and {} times the speed of aijcusparse, our default kernels at {} and {} times",
         [two(gpu.mean("sellp:-mat_sellp_kernel paper")), two(gpu.mean("evchyb:-mat_evchyb_kernel paper")), two(gpu.mean("sellp")), two(gpu.mean("evchyb"))]),
        ("product at 200^3 takes {}, {} and {} us", [us(product(1, "sellp")), us(product(2, "sellp", "peer")), us(product(4, "sellp", "peer"))]),
        ("an iteration of that problem takes {} us, with PETSc's `cg` {} with `sellp` and {} with",
         [us(iteration("bratu:200", "sellp", "devicecg")), us(iteration("bratu:200", "sellp", "cg")), us(iteration("bratu:200", "aij", "cg"))]),
    ],
    "docs/krylov.md": [
        ("| bratu 32^3 | 33,000 | {} | {} | {} | {} |", iterations("bratu:32", one)),
        ("| bratu 100^3 | 1,000,000 | {} | {} | {} | {} |", iterations("bratu:100", one)),
        ("| bratu 200^3 | 8,000,000 | {} | {} | {} | {} |", iterations("bratu:200", us)),
        ("| stencil7 200^3 | 8,000,000 | {} | {} | {} | {} |", iterations("stencil7:200", us)),
        ("| finite elements, 27 neighbors x 3 unknowns | 943,000 | {} | {} | {} | {} |", iterations("fem27:68:3", us)),
        ("| bratu 32^3 | {} | {} | {} | {} | {} | {} |", others("bratu:32", one)),
        ("| bratu 100^3 | {} | {} | {} | {} | {} | {} |", others("bratu:100", one)),
        ("| bratu 200^3 | {} | {} | {} | {} | {} | {} |", others("bratu:200", us)),
        ("| finite elements | {} | {} | {} | {} | {} | {} |", others("fem27:68:3", us)),
        ("An iteration more of `devicebicgstab` at 200^3 takes {} us with Jacobi and {} without",
         [us(iteration("bratu:200", "sellp", "devicebicgstab", pc, "each")) for pc in ("jacobi", "none")]),
        ("and 10 passes over vectors, and take {} us", [us(2 * iteration("bratu:200", "sellp", "devicechebyshev"))]),
    ],
    "docs/types.md": [
        ("| 7-point stencil 200^3 | {} | {} | {} | {} |", [us(first("stencil7:200", t)) for t in ("aijcusparse",) + OURS] + [us(first("stencil7:200", "sellp", "refresh_s", 1e6))]),
        ("| finite elements, 125,000 nodes x 3 unknowns | {} | {} | {} | {} |", [us(first("fem27:50:3", t)) for t in ("aijcusparse",) + OURS] + [us(first("fem27:50:3", "sellp", "refresh_s", 1e6))]),
        ("| 9 matrices of a GAMG hierarchy, 96^3 | {} | {} | {} | {} |", [us(first("gamg:96", t)) for t in ("aijcusparse",) + OURS] + [us(first("gamg:96", "sellp", "refresh_s", 1e6))]),
        ("| 7-point stencil 32^3 | {} | {} | {} | {} |", [one(first("stencil7:32", t)) for t in ("aijcusparse",) + OURS] + [us(first("stencil7:32", "sellp", "refresh_s", 1e6))]),
        ("| H200, values changed on the device | " + SPAN, spans(gpu, "refresh_device_s")),
        ("| H200, values changed on the host and copied | " + SPAN, whole(gpu, "refresh_s")),
        ("| host, matrices of more than a million entries | " + SPAN, spans(host, "refresh_s", least=1e6)),
    ],
    "docs/paper-kernels.md": [
        ("| SELL-P as published | {} |", [two(gpu.mean("sellp:-mat_sellp_kernel paper"))]),
        ("| EVC-HYB as published | {} |", [two(gpu.mean("evchyb:-mat_evchyb_kernel paper"))]),
        ("`sellp` {}, `evchyb` {} |", [two(gpu.mean("sellp")), two(gpu.mean("evchyb"))]),
    ],
    "docs/halo.md": [
        ("a product of Bratu 200^3 takes {} us with peers and {} us with NCCL; one GPU takes {} us",
         [one(product(2, "sellp", "peer")), one(product(2, "sellp", "nccl")), one(product(1, "sellp"))]),
        ("(252^3), two take {} us, and {} us with NCCL", [one(product(2, "sellp", "peer", "bratu:252")), one(product(2, "sellp", "nccl", "bratu:252"))]),
    ],
    "docs/results/README.md": [
        ("The better of `sellp` and `evchyb` is {} times as fast as `aij` in the geometric mean; alone they are {} and {} times as fast, PETSc's `sell` {}, MKL {}, `aijperm` {}.",
         [two(mean(host.bests()))] + [two(host.mean(t)) for t in ("sellp", "evchyb", "sell", "mkl", "aijperm")]),
        ("The smallest ratio of ours is {}", [two(min(host.get(m, t) for m in host.matrices for t in OURS))]),
        ("The better of the two is {} times as fast as `aijcusparse` in the geometric mean and {} times at least (`sellp` alone {} and {}, `evchyb` alone {} and {})",
         [two(v) for v in (mean(gpu.bests()), min(gpu.bests()), *(f(gpu.get(m, t) for m in gpu.matrices) for t in OURS for f in (mean, min)))]),
        ("The published kernels are slower than aijcusparse in the mean: SELL-P {}, EVC-HYB {}.", [two(gpu.mean(f"{t}:-mat_{t}_kernel paper")) for t in OURS]),
        ("The Bratu product at 200^3 takes {} us on one, {} on two and {} on four: on two and four {} and {} times the speed of aijcusparse ({} and {} in two runs)",
         [us(product(1, "sellp")), us(product(2, "sellp", "peer")), us(product(4, "sellp", "peer")), *ones(ratios(2)), one(statistics.mean(ratios(4))), *ones(ratios(4))]),
        ("On one process the whole program is {} times as fast with `sellp` in the geometric mean ({} at least, where GAMG's set-up takes most of it) and KSPSolve {} times ({} at least, where ILU does); "
         "with `evchyb` {} and {}. On two processes {} and {}, {} and {}.",
         [two(v) for v in (mean(solve(1, "sellp", "total_s")), min(solve(1, "sellp", "total_s")), mean(solve(1, "sellp", "solve_s")), min(solve(1, "sellp", "solve_s")),
                           *(mean(solve(n, t, c)) for n, t in ((1, "evchyb"), (2, "sellp"), (2, "evchyb")) for c in ("total_s", "solve_s")))]),
    ],
}


def main():
    wrong = 0
    number = r"([-+]?[0-9][0-9.,]*[0-9]|[0-9])"
    for document, claims in CLAIMS.items():
        text = " ".join((ROOT / document).read_text().split())
        for template, values in claims:
            found = re.search(number.join(map(re.escape, template.split("{}"))), text)
            if not found:
                print(f"{document}: lacks '{template}': if the sentence has changed, change it in tests/checkdocs.py")
            elif list(found.groups()) != values:
                print(f"{document}: says '{found[0]}' where the CSV files give {', '.join(values)}")
            else:
                continue
            wrong += 1
    print(f"{sum(map(len, CLAIMS.values()))} statements compared with docs/results, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
