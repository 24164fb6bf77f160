#!/usr/bin/env python3
"""Compares the numbers of README.md and docs with the CSV files of docs/results that they come from: checkdocs.py [folder of the repository]

CLAIMS lists for each document the sentences and table rows, with {} for each number, and the values. What the text says must be what the CSV gives, rounded as the format says.
PAGES are the pages that the scripts of bench write from the CSV files: they are written again, and each line must be the same.
"""

import contextlib
import csv
import io
import math
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import types

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import batch
import hosts as baselines
import paper
import scalingreport
import solvereport
import table
from papers.charts import NoCharts
from papers.report import Report

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parent.parent
OURS = ("sellp", "evchyb")
BASES = ("aij", "aijperm", "sell", "mkl")


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

    def refresh(self, kind, column):
        """Smallest and largest refresh, in products"""
        costs = [self.get(m, kind, column) / self.get(m, kind, "warm_s") for m in self.matrices if self.get(m, kind, column) > 0]
        return min(costs), max(costs)


gpu, host, solves = Products("h200.csv"), Products("host.csv"), read("solves.csv")
scaling, transports = read("scaling.csv"), read("scaling-transports.csv")
several_cusparse = read("columns-cusparse.csv")
cuda_aware, peers, peers_paper = read("cuda-aware.csv"), read("peers.csv"), read("peers-paper.csv")
sellcuda = Products("sellcuda.csv")
krylov, assemblies = read("krylov.csv"), read("assembly.csv")
several, several_host, several_xeon = read("columns.csv"), read("columns-host.csv"), read("columns-host-xeon.csv")
krylov2, several2 = read("krylov-2gpus.csv"), read("columns-2gpus.csv")


def by_ranks(file):
    """Whole solves: number of processes -> configuration -> type -> medians"""
    found = {1: {}, 2: {}}
    for (config, ranks, _, _), kinds in solvereport.load([str(ROOT / "docs/results" / file)]).items():
        found[ranks][config] = kinds
    return found


solves_h200, solves_epyc = by_ranks("solves-h200.csv"), by_ranks("solves-epyc.csv")
hosts, xeon, firsts_host = read("hosts.csv"), Products("host-xeon.csv"), read("first-host.csv")


def native(kinds):
    """How much faster sellp is than the fastest of these types, with the PETSc that is compiled for the processor, on one process"""
    times = {(r["matrix"], r["type"]): float(r["warm_s"]) for r in hosts if r["ranks"] == "1" and "native" in r["flags"]}
    names = {matrix for matrix, _ in times}
    return statistics.geometric_mean(min(times[m, k] for k in kinds if (m, k) in times) / times[m, "sellp"] for m in names)


def over_all(kinds):
    """How much faster sellp is than the fastest of these types with any of the PETScs, with the one compiled for the processor and with the other, on one process; on how many
    matrices the former's AIJ is slower than the other's; how far apart sellp's own times with the two are at most"""
    times = {("native" in r["flags"], r["matrix"], r["type"]): float(r["warm_s"]) for r in hosts if r["ranks"] == "1"}
    names = {matrix for _, matrix, _ in times}
    best = {m: min(times[n, m, k] for n in (True, False) for k in kinds if (n, m, k) in times) for m in names}
    apart = [times[True, m, "sellp"] / times[False, m, "sellp"] for m in names]
    return [two(mean(best[m] / times[n, m, "sellp"] for m in names)) for n in (True, False)] + [
        str(sum(times[True, m, "aij"] > times[False, m, "aij"] for m in names)), two(max(max(x, 1 / x) for x in apart))]


def product_times(ranks, kind, halo="", matrix="bratu:200", rows=scaling):
    """In all runs, us"""
    return [float(r["product_us"]) for r in rows if r["program"] == "bench" and (r["ranks"], r["matrix"], r["type"], r["halo"]) == (str(ranks), matrix, kind, halo)]


def product(*args, **kwargs):
    return min(product_times(*args, **kwargs))


def over_ours(times, others, ours):
    """Of measurements by matrix and contender: time of the best of the others over that of the best of ours, geometric mean and smallest"""
    found = [min(times[m, k] for k in others) / min(times[m, k] for k in ours) for m in dict.fromkeys(m for m, _ in times)]
    return mean(found), min(found)


def over_peer(variants, rows=peers):
    """Other products of bench/peers, the best of these variants"""
    return [two(x) for x in over_ours({(r["matrix"], r["variant"]): float(r["us"]) for r in rows}, variants, OURS)]


def over_cusparse(columns, layout=""):
    """Products with dense matrices, the best of cuSPARSE's algorithms"""
    times = {(r["matrix"], f'{r["type"]}:{r["method"]}'): float(r["us"]) for r in several_cusparse if r["columns"] == str(columns)}
    return over_ours(times, [f"cusparse:csr{k}{layout}" for k in (1, 2, 3)], [f"{t}:product" for t in OURS])


def by_mpi(mpi, kind, program, column, matrix="bratu:200"):
    """On two GPUs, by kind of MPI"""
    return next(float(r[column]) for r in cuda_aware if (r["mpi"], r["type"], r["program"], r["ranks"], r["case"]) == (mpi, kind, program, "2", matrix))


def aware(program, column, matrix="bratu:200", form="{:.3f}", device=False):
    """A row of the table: aijcusparse with both kinds of MPI, sellp with both, sellp's speed with the second kind, with KSPCG and with devicecg"""
    times = [by_mpi(m, t, program, column, matrix) for t in ("aijcusparse", "sellp") for m in ("host", "CUDA-aware")]
    values = [*map(form.format, times), two(times[1] / times[3])]
    if device:
        times.append(by_mpi("CUDA-aware", "sellp:devicecg", program, column, matrix))
        values += [form.format(times[-1]), two(times[1] / times[-1])]
    return values


def over_aijcusparse(ranks):
    """Speed of sellp's product, relative to aijcusparse"""
    return product(ranks, "aijcusparse") / product(ranks, "sellp", "peer" if ranks > 1 else "")


def solve(ranks, kind, column):
    """Speeds of a type's whole solves, relative to aij's, by configuration"""
    at = {}
    for r in solves:
        if r["where"] == "host" and r["ranks"] == str(ranks) and r["timed"] == "0":
            at.setdefault((r["config"], r["type"]), []).append(float(r[column]))
    return [statistics.median(at[c, "aij"]) / statistics.median(at[c, kind]) for c, t in at if t == "aij"]


def aij_totals(ranks):
    """The whole program with aij, in s, of each configuration"""
    at = {}
    for r in solves:
        if (r["where"], r["ranks"], r["timed"], r["type"]) == ("host", str(ranks), "0", "aij"):
            at.setdefault(r["config"], []).append(float(r["total_s"]))
    return [statistics.median(v) for v in at.values()]


def faster(solves, ranks, kind, column="solve_gain", without=()):
    """Speeds of a type's whole solves, relative to the reference's, by configuration, where both converge"""
    return {c: types[kind][column] for c, types in solves[ranks].items() if c not in without and types.get(kind, {}).get(column)}


def device_iterations(ranks, config, *kinds):
    return ["/".join(sorted({r["krylov"] for r in read("solves-h200.csv") if (r["config"], r["ranks"], r["type"]) == (config, str(ranks), kind)})) for kind in kinds]


def on_epyc():
    """KSPSolve with our types on one process, the numbers of configurations, KSPSolve on two; how much faster the whole programs are, and the least of that"""
    means = lambda ranks: [two(mean(faster(solves_epyc, ranks, kind).values())) for kind in OURS]
    totals = [faster(solves_epyc, ranks, kind, "gain").values() for ranks in (1, 2) for kind in OURS]
    return [*means(1), *(str(len(faster(solves_epyc, ranks, "sellp"))) for ranks in (1, 2)), *means(2), *(two(mean(t)) for t in totals), two(min(map(min, totals)))]


def bicgstab(ranks, kind):
    return "/".join(sorted({r["krylov"] for r in solves if (r["config"], r["ranks"], r["type"]) == ("bcgs-jacobi", str(ranks), kind)}))


def bratu_solve(ranks, kind="sellp"):
    """SNESSolve by peers, in s"""
    return min(float(r["solve_s"]) for r in scaling if (r["program"], r["mode"], r["ranks"], r["n"], r["type"]) == ("bratu", "strong", str(ranks), "200", kind))


def iteration(matrix, kind, ksp, pc="none", column="us"):
    return next(float(r[column]) for r in krylov if (r["matrix"], r["type"], r["ksp"], r["pc"]) == (matrix, kind, ksp, pc))


def iterations(matrix, digits):
    cg = [us(iteration(matrix, kind, "cg")) for kind in ("aij", "sellp")]
    return cg + [digits(iteration(matrix, "sellp", "devicecg", pc)) for pc in ("none", "jacobi")]


def iterations2(matrix):
    """On two GPUs"""
    def at(kind, ksp, pc="none", digits=us):
        return digits(next(float(r["us"]) for r in krylov2 if (r["matrix"], r["type"], r["ksp"], r["pc"]) == (matrix, kind, ksp, pc)))

    digits = one if matrix in ("stencil7:32", "stencil7:100") else us
    return [at("aij", "cg"), at("sellp", "cg"), at("sellp", "devicecg", digits=digits), at("sellp", "devicecg", "jacobi", digits),
            at("sellp", "devicebicgstab", "jacobi", digits)]


def columns2(kind, method):
    return [us(next(float(r["us"]) for r in several2 if (r["matrix"], r["ranks"], r["columns"], r["type"], r["method"]) == ("stencil7:200", "2", str(count), kind, method)))
            for count in (2, 4, 8)]


def column_times(matrix, count, digits, rows=several, ways=(("aij", "product"), ("sellp", "loop"), ("sellp", "product"))):
    row = {(r["type"], r["method"]): float(r["us"]) for r in rows if (r["matrix"], r["columns"]) == (matrix, str(count))}
    return [digits(row[way]) for way in ways]


def columns(count):
    return column_times("stencil7:200", count, us) + column_times("fem27:60:3", count, us) + column_times("stencil7:32", count, one)


def over_columns(count, kind, method, rows=several):
    """How many times as fast sellp's products with so many columns are, by matrix"""
    times = {(r["matrix"], r["type"], r["method"]): float(r["us"]) for r in rows if r["columns"] == str(count)}
    return [t / times[matrix, "sellp", "product"] for (matrix, k, m), t in times.items() if (k, m) == (kind, method)]


def first_again(matrix, column):
    """First products on one H200 with sellp, evchyb and aijcusparse, in ms"""
    return [1e3 * medians(read("first-h200.csv"), column)[matrix, kind] for kind in ("sellp", "evchyb", "aijcusparse")]


def few_products():
    """The longest that a matrix took with our types, over aij: an arrow after 12 products, and any other after 4 to 100"""
    rows = [r for r in read("few-products.csv") if r["commit"] != "d69003d"]
    aij = {r["matrix"]: r for r in rows if r["type"] == "aij"}
    at = [k for k in rows[0] if k.startswith("us_")]
    worst = {m: max((float(r[k]) / float(aij[m][k]), k) for r in rows if r["matrix"] == m for k in at) for m in aij}
    arrow, k = worst.pop("arrow:100000")
    return [two(arrow), k[3:], two(max(worst.values())[0])]


def times_on_one(column, *files):
    """The times of whole programs on one GPU: file, configuration and type -> seconds"""
    at = {}
    for file in files:
        for r in read(file):
            if r["ranks"] == "1" and r["timed"] != "1" and not r["failed"]:
                at.setdefault((file, r["config"], r["type"]), []).append(float(r[column]))
    return at


def solves_again():
    """Of the last runs: on one and on two GPUs the number of configurations that aijcusparse solves, and how much faster KSPSolve is with our types; on one also in gamg"""
    means = lambda ranks: [str(len(faster(solves_h200, ranks, "sellp")))] + [two(mean(faster(solves_h200, ranks, kind).values())) for kind in OURS]
    return means(1) + [two(faster(solves_h200, 1, kind)["gamg"]) for kind in OURS] + means(2)


def totals_again():
    """Of the last runs without bratu: how much faster the totals are; in how many cases their medians are more than 1.03 times the reference's, of how many, and the largest"""
    gains = [[list(faster(solves_h200, n, kind, "gain", without=["bratu"]).values()) for kind in OURS] for n in (1, 2)]
    ratios = [[1 / g for values in of_ranks for g in values] for of_ranks in gains]
    counts = [str(n) for values in ratios for n in (sum(v > 1.03 for v in values), len(values))]
    return [*(two(mean(values)) for of_ranks in gains for values in of_ranks), *counts, *(two(max(values)) for values in ratios)]


def fastest_again():
    """Of the last runs on one GPU without bratu: how much the totals of a program with the same type differ in the median, in %; the ratios of the fastest, and how many are above 1.03"""
    times = {(c, t): v for (_, c, t), v in times_on_one("total_s", "solves-h200.csv").items() if c not in ("bratu", "stokes-2d")}
    ratios = [min(v) / min(times[c, "aijcusparse"]) for (c, t), v in times.items() if t in OURS]
    return [us(statistics.median(100 * (max(v) / min(v) - 1) for v in times.values())), two(min(ratios)), two(max(ratios)), str(sum(r > 1.03 for r in ratios))]


def others(matrix, digits):
    names = (("aij", "bcgs"), ("sellp", "bcgs"), ("sellp", "devicebicgstab"), ("aij", "chebyshev"), ("sellp", "chebyshev"), ("sellp", "devicechebyshev"))
    return [(us if ksp == "bcgs" else digits)(iteration(matrix, kind, ksp, "jacobi")) for kind, ksp in names]


FIRST_HOST = {"7-point stencil 100^3": "stencil7:100", "tridiagonal, 1,000,000 rows": "tridiag:1000000", "finite elements, 27,000 nodes x 3 unknowns": "fem27:30:3",
              "finite elements, 64,000 rows, 10 % of the entries missing": "fem27:40:1:0.9", "power law like webbase": "webbase", "web graph like google": "google"}  # fmt: skip


def medians(rows, column, *also):
    """Medians of repeated measurements: (matrix, type, and the columns `also`) -> value"""
    at = {}
    for r in rows:
        at.setdefault(tuple(r[c] for c in ("matrix", "type", *also)), []).append(float(r[column]))
    return {k: statistics.median(v) for k, v in at.items()}


def of_aij(matrix, kind):
    """What the first product, that of a copy and a refresh take beyond a product, in products of AIJ"""
    median = lambda kind, column: medians(firsts_host, column)[matrix, kind]
    beyond = [median(kind, "first_s") - median(kind, "product_s"), median(kind, "copy_s"), median(kind, "refresh_s")]
    return [x / median("aij", "product_s") for x in beyond]


def first_host(matrix):
    return [us(1e6 * medians(firsts_host, "product_s")[matrix, "aij"])] + ones(x for kind in OURS for x in of_aij(matrix, kind))


def first_host_most():
    matrices = {r["matrix"] for r in firsts_host}
    return [str(len(matrices))] + ones(max(of_aij(m, kind)[k] for m in matrices) for k in (1, 2) for kind in OURS)


def assembly(matrix, arrays):
    """Of aijcusparse, which was measured once, and of sellp, the best and the worst of two runs: preallocation in s, values and values with a product in ms"""
    values = []
    for column, unit, digits in (("preallocation_s", 1, 2), ("values_s", 1e3, 2), ("values_product_s", 1e3, 2)):
        for kind in ("aijcusparse", "sellp"):
            found = [unit * float(r[column]) for r in assemblies if (r["matrix"], r["arrays"], r["type"]) == (matrix, arrays, kind)]
            values += [f"{v:.{digits}f}" for v in ([max(found)] if kind == "aijcusparse" else [min(found), max(found)])]
    return values


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


def spans(source, column):
    return [one(v) for t in OURS for v in source.refresh(t, column)]


def whole(source, column):
    return [us(v) for t in OURS for v in source.refresh(t, column)]


def papers_report():
    return Report(str(ROOT / "docs/results/paper"), "paper.md", NoCharts("paper"))


def formats(device):
    """Of the papers' matrices: on how many our types are the fastest or within 5 %, the mean ratio, and that of the matrices with node blocks and of the others"""
    report = papers_report()
    t = report.data[device]["matrices"]
    pairs = report.compared(t)
    over = {m: other / own for m, (own, other) in pairs.items()}
    parts = [[x for m, x in over.items() if report.blocked(t, m) == yes] for yes in (True, False)] if device != "host" else []
    return [str(report.good(pairs)), two(mean(over.values())), *(two(mean(p)) for p in parts)]


def batched():
    """Of the largest batches of figure 5: batch over the block-diagonal aij, at least, over the loop, and the share of a copy's bandwidth of large ones"""
    rows = [r for r in batch.read(str(ROOT / "docs/results/batch.csv")) if r["figure"] == 5 and r["type"] == "batch" and r["over_aij"] > 0]
    rows = [r for r in rows if r["problems"] == max(x["problems"] for x in rows)]
    over, shares = [r["over_aij"] for r in rows], [r["share_of_copy"] for r in rows if r["bytes"] > 1e8]
    return [two(mean(over)), two(min(over)), us(min(r["over_loop"] for r in rows)), us(100 * min(shares))]


def batched_by_all():
    """The number of matrices of figure 5 on which all kernels ran with 10,000 problems"""
    return [str(sum(c["batch"]["figure"] == 5 and c["batch"]["problems"] == 10000 for c in batch.cases(batch.read(str(ROOT / "docs/results/batch-10000.csv")))))]


def batch_origins():
    """How many matrices of figure 5 are from files, and twins"""
    origins = {r["case"]: r["origin"] for r in batch.read(str(ROOT / "docs/results/batch.csv")) if r["figure"] == 5}
    return [str(sum(x == kind for x in origins.values())) for kind in ("file", "twin")]


def bytes_of_row(kind):
    """Of the 7-point stencil, without x and y, each moved once"""
    rows = int(gpu.at["stencil7:200", kind]["rows"])
    return gpu.get("stencil7:200", kind, "bytes") / rows - 16


def single():
    """What single precision gains in the geometric mean, and the largest true residual at which CG stops"""
    at = {(r["matrix"], r["type"]): [] for r in read("paper/h200-single.csv")}
    for r in read("paper/h200-single.csv"):
        at[r["matrix"], r["type"]].append(r)
    pairs = [(at[m, "sellp"][0], rows) for (m, kind), rows in at.items() if "single" in kind]
    return [two(mean(float(double["seconds"]) / float(rows[0]["seconds"]) for double, rows in pairs)),
            f"{max(min(float(r['true_residual']) for r in rows) for _, rows in pairs):.0e}"]


def tests(log, section):
    """The tests that passed and that failed, of the section of a log that begins with this line"""
    text = (ROOT / "docs/results" / log).read_text()
    return list(re.search(rf"^{re.escape(section)}.*?^(\d+) passed, (\d+) failed", text, re.M | re.S).groups())


def core_checks():
    """The checks of the device core's tests in the last run: all of them, and the fewest and the most with another precision"""
    text = (ROOT / "docs/results/h200-core-tests.log").read_text().partition("# One H200, commit 3b441e0")[2]
    count = {name: int(n) for name, n in re.findall(r"^(\S+ \w+): (\d+) checks passed$", text, re.M)}
    others = [n for name, n in count.items() if name.split()[0] in ("float", "double-int64", "complex", "complex-float")]
    return [str(n) for n in (count["cuda-core full"], min(others), max(others))]


def injected(kind):
    """The allocations that failed on one rank of a GPU, and the phases"""
    return list(re.search(rf"^{kind}, 1 rank: (\d+) allocations failed in (\d+) phases, 0 failed$", (ROOT / "docs/results/h200-fuzz.log").read_text(), re.M).groups())


def unnamed():
    """The CSV files of measurements, and those without a column that names the commit"""
    files = [p.relative_to(ROOT / "docs/results").as_posix() for p in sorted((ROOT / "docs/results").rglob("*.csv")) if p.name != "patterns.csv"]
    return files, [name for name in files if "commit" not in read(name)[0]]


SPAN = "{} to {} | {} to {} |"
ASSEMBLY = "{} | {} to {} | {} | {} to {} | {} | {} to {} |"
CLAIMS = {
    "README.md": [
        ("On an NVIDIA H200 `MatMult` is **{} times** as fast as PETSc's `aijcusparse`", [two(mean(gpu.bests()))]),
        ("one AVX-512 core of an AMD EPYC, **{} times** as fast as `aij`", [one(mean(host.bests()))]),
        ("`sellp` is {} times as fast as `aij` on one core", [two(native(["aij"]))]),
        ("{} times as fast as the fastest of `aij`, `aijperm`, `sell` and MKL", [two(native(["aij", "aijperm", "sell", "mkl"]))]),
        ("({} times where the best of either PETSc counts;", over_all(BASES)[:1]),
        ("{} of the {} on the host are real ones", [str(sum(m.endswith(".mtx") for m in host.matrices)), str(len(host.matrices))]),
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
        ("In {} whole programs, PETSc's tutorials and `examples/bratu`, KSPSolve is {} times as fast with `sellp`", solves_again()[:2]),
        ("an iteration of that problem takes {} us, with PETSc's `cg` {} with `sellp` and {} with",
         [us(iteration("bratu:200", "sellp", "devicecg")), us(iteration("bratu:200", "sellp", "cg")), us(iteration("bratu:200", "aij", "cg"))]),
    ],
    "docs/krylov.md": [
        ("of `examples/bratu` at 200^3 takes {} s on one H200, {} s on two and {} s on four, with aijcusparse {}, {} and {} s",
         [f"{bratu_solve(n, t):.3f}" for t in ("sellp:devicecg", "aijcusparse") for n in (1, 2, 4)]),
        *((f"| two GPUs: {name} | {{}} | {{}} | {{}} | {{}} | {{}} |", iterations2(matrix))
          for name, matrix in (("stencil7 32^3", "stencil7:32"), ("stencil7 100^3", "stencil7:100"), ("bratu 200^3", "bratu:200"), ("stencil7 200^3", "stencil7:200"),
                               ("finite elements, 27 neighbors x 3 unknowns", "fem27:68:3"))),
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
        ("the worst took {} times as long as with `aij`, an arrow after {} products, and the worst of the others {} times", few_products()),
        ("with 96^3 points take {}, {} and {} ms with `sellp`, `evchyb` and aijcusparse, those of copies {}, {} and {} ms; SNES ex14's Jacobian with 200^3 points {}, {} and {} ms, finite elements "
         "with 68^3 nodes x 3 unknowns {}, {} and {} ms. A refresh of the last two takes {} and {} us with `sellp`.",
         [*(one(v) for c in ("first_s", "copy_s") for v in first_again("gamg:96", c)), *(us(v) for m in ("bratu:200", "fem27:68:3") for v in first_again(m, "first_s")),
          *(us(1e3 * first_again(m, "refresh_s")[0]) for m in ("bratu:200", "fem27:68:3"))]),
        ("| 7-point stencil 200^3, from the host | 56 | " + ASSEMBLY, assembly("stencil7:200", "host")),
        ("| 7-point stencil 200^3, from the GPU | 56 | " + ASSEMBLY, assembly("stencil7:200", "device")),
        ("| matrices of 67^3 elements, 3 unknowns a node, from the GPU | 173 | " + ASSEMBLY, assembly("elements:67:3", "device")),
        *((f"| {name} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} |", first_host(matrix)) for name, matrix in FIRST_HOST.items()),
        ("The largest of the {} matrices of the file: a copy {} with `sellp` and {} with `evchyb`, a refresh {} and {}", first_host_most()),
        ("| H200, values changed on the device | " + SPAN, spans(gpu, "refresh_device_s")),
        ("| H200, values changed on the host and copied | " + SPAN, whole(gpu, "refresh_s")),
        ("aijcusparse itself takes {} to {} of its products if values change on the host, and at most {} if", [*map(us, gpu.refresh("aijcusparse", "refresh_s")),
                                                                                                             two(gpu.refresh("aijcusparse", "refresh_device_s")[1])]),
    ],
    "docs/testing.md": [
        ("on one H200 all {} tests passed at commit 49451cf", tests("h200-conformance.log", "# One GPU: ")[:1]),
        ("and on two {}; the other one passed when it ran alone", tests("h200-conformance.log", "# Two GPUs: ")[:1]),
        ("at 3b441e0 all {} checks of `cuda-core full` passed in double precision, and the shorter `quick` in each other precision and with 64-bit indices: {} to {} checks each.",
         core_checks()),
        ("All {} programs of `tools/gpu-run core`", tests("h200-core-tests.log", "# One H200, commit e87223d")[:1]),
        ("| allocations | phases | |---|---|---|---| | 1 | sellp / evchyb | {} / {} | {} / {} |", [injected(t)[k] for k in (0, 1) for t in OURS]),
    ],
    "docs/paper-kernels.md": [
        ("| the adaptive CSR kernel that preceded EVC-HYB | {} |", [two(gpu.mean("evchyb:-mat_evchyb_kernel csr"))]),
        ("| SELL-P as published | {} |", [two(gpu.mean("sellp:-mat_sellp_kernel paper"))]),
        ("| EVC-HYB as published | {} |", [two(gpu.mean("evchyb:-mat_evchyb_kernel paper"))]),
        ("`sellp` {}, `evchyb` {} |", [two(gpu.mean("sellp")), two(gpu.mean("evchyb"))]),
    ],
    "docs/halo.md": [
        ("With peers a product of Bratu 200^3 takes {} us on one H200, {} us on two and {} us on four; with the same number of rows per GPU (252^3), two take {} us",
         ones([product(1, "sellp"), product(2, "sellp", "peer"), product(4, "sellp", "peer"), product(2, "sellp", "peer", "bratu:252")])),
        ("which took {} us on one GPU: on two, {} us with peers and {} us with NCCL; with 252^3, {} and {} us",
         ones([product(1, "sellp", rows=transports)] + [product(2, "sellp", t, m, transports) for m in ("bratu:200", "bratu:252") for t in ("peer", "nccl")])),
    ],
    "docs/kernels.md": [
        ("the best for each matrix takes {}, {} and {} times as long as the better of our types with 2, 4 and 8 columns in the geometric mean, and at least {} times",
         [two(over_cusparse(k)[0]) for k in (2, 4, 8)] + [two(min(over_cusparse(k)[1] for k in (2, 4, 8)))]),
        ("it takes {} times as long with 8 columns, and {}, {} and {} times with 16, 32 and 64", [two(over_cusparse(k, "-rows")[0]) for k in (8, 16, 32, 64)]),
        ("for webbase by a factor of {}, {} and {}", [one(1 / over_cusparse(k, "-rows")[1]) for k in (16, 32, 64)]),
        ("in double precision takes {} bytes per row of A, 1.75 of them places for equal values, which are not read where there are none; CSR takes {}", [two(bytes_of_row("sellp")), one(bytes_of_row("cusparse:csr1"))]),
        ("on an H200 a product is {} times as fast, and CG takes as many iterations as in double precision; its true residual, ||b - A x|| / ||b||, stops at {} at the worst",
         single()),
        ("On two H200s with peers, 2, 4 and 8 columns of the 7-point matrix at 200^3 take {}, {} and {} us, a loop of `MatMult()` {}, {} and {}, aijcusparse, whose MPI is not CUDA-aware, {}, {} and {}",
         columns2("sellp", "product") + columns2("sellp", "loop") + columns2("aij", "product")),
        *((f"| {count} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} |", columns(count)) for count in (1, 2, 3, 4, 8, 16, 32)),
        ("On all {} matrices of the file a product with 2, 4 and 8 columns is {}, {} and {} times as fast as with aijcusparse in the geometric mean, at least {} times, and {}, {} and {} times "
         "as fast as the loop",
         [str(len({r["matrix"] for r in several})), *(two(mean(over_columns(count, "aij", "product"))) for count in (2, 4, 8)),
          two(min(min(over_columns(count, "aij", "product")) for count in (2, 4, 8))), *(two(mean(over_columns(count, "sellp", "loop"))) for count in (2, 4, 8))]),
        ("A product with 2 to 32 columns takes at most {} times as long as the loop", [f"{max(1 / x for count in (2, 3, 4, 8, 16, 32) for x in over_columns(count, 'sellp', 'loop')):.3f}"]),
        ("2 columns take {} us, and {} us in a loop, 3 columns {} and {}.", [x for count in (2, 3) for x in column_times("webbase", count, one, ways=(("sellp", "product"), ("sellp", "loop")))]),
        ("`MatMult()` takes {} us here and {} us in [results/h200.csv](results/h200.csv), with aijcusparse {} and {} us",
         [x for way in (("sellp", "loop"), ("aij", "product"))
          for x in (*column_times("stencil7:32", 1, one, ways=[way]), one(1e6 * gpu.get("stencil7:32", "aijcusparse" if way[0] == "aij" else "sellp", "warm_s")))]),
        ("on {} generated matrices `sellp` multiplies 8 and 16 columns {} and {} times as fast as AIJ in the geometric mean, at least {} times, and {} and {} times as fast as MKL; 2 and 4 columns "
         "{} and {} times as fast as AIJ",
         [str(len({r["matrix"] for r in several_host})), *(two(mean(over_columns(count, "aij", "product", several_host))) for count in (8, 16)),
          two(min(min(over_columns(count, "aij", "product", several_host)) for count in (8, 16))),
          *(two(mean(over_columns(count, "mkl", "product", several_host))) for count in (8, 16)),
          *(two(mean(over_columns(count, "aij", "product", several_host))) for count in (2, 4))]),
        ("`sellp` multiplies 8 columns of these matrices {} times as fast as AIJ in the geometric mean, but the tridiagonal one only {} times; all others at least {} times",
         [two(mean(over_columns(8, "aij", "product", several_xeon))), *(two(x) for x in sorted(over_columns(8, "aij", "product", several_xeon))[:2])]),
    ],
    "docs/batch.md": [
        ("{} of the 32 matrices were read from files and {} are twins", batch_origins()),
        ("{} times as fast as the block-diagonal aijcusparse in the geometric mean and at least {} times, at least {} times as fast as the loop", batched()[:3]),
    ],
    "docs/results/h200-gpus.md": [
        ("| Bratu 200^3 | {} | {} | {} | {}, {}, {} |",
         [*ones([product(1, "sellp"), product(2, "sellp", "peer"), product(4, "sellp", "peer")]), *(us(product(n, "aijcusparse")) for n in (1, 2, 4))]),
        ("| `examples/bratu`, SNESSolve, aijcusparse | {} | {} | {} |", [f"{bratu_solve(n, 'aijcusparse'):.3f}" for n in (1, 2, 4)]),
        ("| sellp | {} | {} | {} | | evchyb | {} | {} | {} | | sellp with `devicecg` | {} | {} | {} | | ex14, KSPSolve", [
            f"{bratu_solve(n, t):.3f}" for t in ("sellp", "evchyb", "sellp:devicecg") for n in (1, 2, 4)]),
        ("| Bratu 200^3, us | {} | {} | {} and {} | {} |", [*aware("bench", "product_us", form="{:.0f}")[:2], *aware("bench", "product_us", form="{:.1f}")[2:]]),
        ("| FEM 27 x 3 unknowns, us | {} | {} | {} and {} | {} |", aware("bench", "product_us", "fem27:68:3", "{:.0f}")),
        ("| `examples/bratu`, SNESSolve, s | {} | {} | {} and {} | {}; with `devicecg` ({} s) {} |", aware("bratu", "solve_s", device=True)),
        ("| ex14, KSPSolve, s | {} | {} | {} and {} | {}; with `devicecg` ({} s) {} |", aware("ex14", "ksp_s", device=True)),
        ("aijcusparse's product on four GPUs took {}, {} and {} us in the three runs", [us(x) for x in sorted(product_times(4, "aijcusparse", rows=transports))]),
    ],
    "docs/results/README.md": [
        ("the better of its two plans takes {} times as long as the better of ours in the geometric mean, at least {} times", over_peer(["spmvop1", "spmvop2"])),
        ("and the better of its two `SpMV` algorithms {} and {} times", over_peer(["csr1", "csr2"])),
        ("On twins of all {} matrices of the papers", [str(len({r["matrix"] for r in peers_paper}))]),
        ("the best of these four takes {} times as long as the better of ours in the geometric mean, at least {} times, and `aijcusparse` {} and {} times",
         over_peer(["spmvop1", "spmvop2", "csr1", "csr2"], peers_paper) + over_peer(["aijcusparse"], peers_paper)),
        ("on twins of all {} matrices of the papers |", [str(len({r["matrix"] for r in peers_paper}))]),
        ("figure 4 and all {} matrices of figure 5 with 10,000 problems", batched_by_all()),
        ("On two H100s `sellp` is {} times as fast as aijcusparse with such an MPI and {} times with a CUDA-aware one",
         [two(by_mpi(m, "aijcusparse", "bench", "product_us") / by_mpi(m, "sellp", "bench", "product_us")) for m in ("host", "CUDA-aware")]),
        ("PETSc's own `sellcuda`, on {} matrices of such kinds ([sellcuda.csv](sellcuda.csv)), is {} times as fast as `aijcusparse` in the geometric mean, {} to {}; the better of "
         "ours there {}.", [str(len(sellcuda.matrices)), two(sellcuda.mean("sellcuda")),
                            *(two(f(sellcuda.get(m, "sellcuda") for m in sellcuda.matrices)) for f in (min, max)), two(mean(sellcuda.bests()))]),
        ("or within 5 % of it, on {} of 38 on the H200 and on {} of 38 on one core", [formats("h200")[0], formats("host")[0]]),
        ("The best other format takes {} and {} times as long in the geometric mean. On the H200 the ratio is {} on the 17 matrices of dense node blocks, which the twins have by "
         "assumption, and {} on the other 21.", [formats("h200")[1], formats("host")[1], *formats("h200")[2:]]),
        ("{} times as fast as the block-diagonal aijcusparse in the geometric mean, {} times at least.", batched()[:2]),
        ("The better of `sellp` and `evchyb` is {} times as fast as `aij` in the geometric mean; alone they are {} and {} times as fast, PETSc's `sell` {}, MKL {}, `aijperm` {}.",
         [two(mean(host.bests()))] + [two(host.mean(t)) for t in ("sellp", "evchyb", "sell", "mkl", "aijperm")]),
        ("the better of the two is {} times as fast as `aij` in the geometric mean (`sellp` {}, `evchyb` {}, PETSc's `sell` {}, MKL {}). The smallest ratio of ours is {}, of `sellp` on random:8000",
         [two(mean(xeon.bests())), *(two(xeon.mean(t)) for t in ("sellp", "evchyb", "sell", "mkl")), two(min(xeon.get(m, t) for m in xeon.matrices for t in OURS))]),
        ("The smallest ratio of ours is {}", [two(min(host.get(m, t) for m in host.matrices for t in OURS))]),
        ("The better of the two is {} times as fast as `aijcusparse` in the geometric mean and {} times at least (`sellp` alone {} and {}, `evchyb` alone {} and {})",
         [two(v) for v in (mean(gpu.bests()), min(gpu.bests()), *(f(gpu.get(m, t) for m in gpu.matrices) for t in OURS for f in (mean, min)))]),
        ("The published kernels are slower than aijcusparse in the mean: SELL-P {}, EVC-HYB {}.", [two(gpu.mean(f"{t}:-mat_{t}_kernel paper")) for t in OURS]),
        ("The Bratu product at 200^3 takes {} us on one, {} on two and {} on four: {}, {} and {} times the speed of aijcusparse",
         [us(product(1, "sellp")), us(product(2, "sellp", "peer")), us(product(4, "sellp", "peer")), *(one(over_aijcusparse(n)) for n in (1, 2, 4))]),
        ("On one process that PETSc's AIJ is slower than Debian's on {} of the ten matrices. Over the fastest of `aij`, `aijperm`, `sell` and MKL with either PETSc, `sellp` is {} times as "
         "fast with that PETSc and {} times with Debian's.", [over_all(BASES)[k] for k in (2, 0, 1)]),
        ("its times differ by a factor of up to {} all the same", over_all(BASES)[3:]),
        ("problems that take {} to {} seconds with `aij` on one process", [one(f(aij_totals(1))) for f in (min, max)]),
        ("**Whole solves** on the host, {} configurations", [str(len(aij_totals(1)))]),
        ("1098 CG iterations, takes {} s on two and {} s on four, and with `devicecg` {} s on one, {} s on two and {} s on four",
         [two(bratu_solve(n)) for n in (2, 4)] + [two(bratu_solve(n, "sellp:devicecg")) for n in (1, 2, 4)]),
        ("BiCGStab takes {} iterations with `aij` on one process and {} on two, {} and {} with `sellp`", [bicgstab(n, t) for t in ("aij", "sellp") for n in (1, 2)]),
        ("hypre): KSPSolve is {} times as fast as with `aij` in the geometric mean with `sellp` and {} times with `evchyb`, in {} configurations on one process; on two, in {}, {} and {} times. The totals "
         "are {}, {}, {} and {} times as fast; at least {} times, in hypre", on_epyc()),
        ("of {} configurations on one H200, KSPSolve is {} times as fast with `sellp` and {} times with `evchyb`, in gamg {} and {} times; of {} on two, {} and {} times",
         solves_again()),
        ("The totals, without `examples/bratu`, are {} and {} times as fast on one and {} and {} times on two. Their medians are more than 1.03 times those of `aijcusparse` in {} of {} cases on one and "
         "in {} of {} on two, at most {} and {} times", totals_again()),
        ("stokes-2d on one process stops after {} iterations with `aijcusparse`, with our types after {},", device_iterations(1, "stokes-2d", "aijcusparse", "sellp")),
        ("BiCGStab takes {} iterations with `aijcusparse` on one process and {} on two, {} and {} with `sellp`",
         [x for t in ("aijcusparse", "sellp") for n in (1, 2) for x in device_iterations(n, "bcgs-jacobi", t)]),
        ("Between runs of the same program and type on one GPU they differ by {} % in the median. Of the fastest runs the ratios are {} to {}, more than 1.03 in {} of", fastest_again()),
        ("{} of the {} CSV files lack these columns", [str(len(x)) for x in reversed(unnamed())]),
        ("On one process the whole program is {} times as fast with `sellp` in the geometric mean ({} at least, where GAMG's set-up takes most of it) and KSPSolve {} times ({} at least, where ILU does); "
         "with `evchyb` {} and {}. On two processes {} and {}, {} and {}.",
         [two(v) for v in (mean(solve(1, "sellp", "total_s")), min(solve(1, "sellp", "total_s")), mean(solve(1, "sellp", "solve_s")), min(solve(1, "sellp", "solve_s")),
                           *(mean(solve(n, t, c)) for n, t in ((1, "evchyb"), (2, "sellp"), (2, "evchyb")) for c in ("total_s", "solve_s")))]),
    ],
}


def papers(target):
    Report(str(ROOT / "docs/results/paper"), str(target), NoCharts(str(target.with_suffix("")))).write({name: e[1] for name, e in paper.EXPERIMENTS.items()})


def products(name):
    def write(target):
        lines = (ROOT / "docs/results" / f"{name}.md").read_text().splitlines()
        return lambda: table.main(str(ROOT / "docs/results" / f"{name}.csv"), lines[2])  # the machine and the date are not in the CSV file

    return write


def hosts_page(target):
    shutil.copy(ROOT / "docs/results/hosts.csv", target.parent)
    baselines.report(types.SimpleNamespace(out=str(target.parent)))


def solved(name):
    return lambda target: solvereport.markdown(solvereport.load([str(ROOT / "docs/results" / f"{name}.csv")]), str(target))


def batches(_):
    return lambda: batch.page(batch.read(str(ROOT / "docs/results/batch.csv")), "batch.svg", batch.read(str(ROOT / "docs/results/batch-more.csv")))


def scaled(name):
    return lambda target: scalingreport.markdown(scalingreport.load([str(ROOT / f"docs/results/{name}.csv")]), str(target))


PAGES = {  # functions that write the page, or return what prints it
    "paper.md": papers,
    "host.md": products("host"),
    "hosts.md": hosts_page,
    "host-xeon.md": products("host-xeon"),
    "h200.md": products("h200"),
    "batch.md": batches,
    "scaling.md": scaled("scaling"),
    "solves.md": solved("solves"),
    "solves-h200.md": solved("solves-h200"),
}


def again(name):
    """The lines of a page, written again"""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        target = pathlib.Path(folder) / name
        printing = PAGES[name](target)
        if printing:
            printing()
        return (said.getvalue() if printing else target.read_text()).splitlines()


def compare_pages():
    """The number of pages that are not what the CSV files give"""
    wrong = 0
    for name in PAGES:
        has, gives = (ROOT / "docs/results" / name).read_text().splitlines(), again(name)
        differ = [k for k in range(max(len(has), len(gives))) if has[k : k + 1] != gives[k : k + 1]]
        if differ:
            line = differ[0]
            print(f"docs/results/{name}:{line + 1}: {len(differ)} lines are not what the CSV files give, the first:")
            print(f"  has   {''.join(has[line : line + 1])[:300]}\n  gives {''.join(gives[line : line + 1])[:300]}")
            wrong += 1
    return wrong


def main():
    wrong = 0
    number = r"([-+]?[0-9][0-9.,]*[0-9](?:e[-+]?[0-9]+)?|[0-9](?:e[-+]?[0-9]+)?)"
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
    pages = compare_pages()
    print(f"{sum(map(len, CLAIMS.values()))} statements compared with docs/results, {wrong} wrong; {len(PAGES)} pages written again, {pages} differ")
    return wrong + pages > 0


if __name__ == "__main__":
    sys.exit(main())
