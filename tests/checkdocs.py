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
ON_DEVICE = ("sellp", "evchyb", "sellp:device")
SHORT = ("gamg", "elasticity-2d", "mg-galerkin", "elasticity-gamg")


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
firsts, firsts_prepared = read("first.csv"), read("first-prepared.csv")
several, several_host, several_xeon = read("columns.csv"), read("columns-host.csv"), read("columns-host-xeon.csv")
krylov2, several2, groups = read("krylov-2gpus.csv"), read("columns-2gpus.csv"), read("groups.csv")


def by_ranks(file):
    """Whole solves: number of processes -> configuration -> type -> medians"""
    found = {1: {}, 2: {}}
    for (config, ranks, _, _), kinds in solvereport.load([str(ROOT / "docs/results" / file)]).items():
        found[ranks][config] = kinds
    return found


device_rows, solves_device, solves_h200 = read("solves-device.csv"), by_ranks("solves-device.csv"), by_ranks("solves-h200.csv")
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


def on_device(ranks, kind, column="solve_gain", without=()):
    return faster(solves_device, ranks, kind, column, without)


def device_means(ranks, column, without=()):
    return [two(mean(on_device(ranks, kind, column, without).values())) for kind in ON_DEVICE]


def device_totals():
    """Of the configurations on one process that converge with aijcusparse: seconds of the whole program, and the part that KSPSolve takes"""
    rows = [types["aijcusparse"] for types in solves_device[1].values()]
    rows = [r for r in rows if r["gain"]]
    return [r["total_s"] for r in rows], [r["solve_s"] / r["total_s"] for r in rows]


def slow_on_device():
    """Least and most of those configurations where KSPSolve can be slower, in the order of the text, and the least of the others, for all types and numbers of processes"""
    found = [on_device(ranks, kind) for ranks in (1, 2) for kind in ON_DEVICE]
    some = [[each[c] for each in found if c in each] for c in SHORT]
    return [two(f(v)) for v in some for f in (min, max)] + [two(min(v for each in found for c, v in each.items() if c not in SHORT))]


def short_on_device(ranks):
    """Of the same: milliseconds of KSPSolve with aijcusparse, numbers of formats and milliseconds of their set-up with our types, least and most"""
    solve = [1e3 * types["aijcusparse"]["solve_s"] for c, types in solves_device[ranks].items() if c in SHORT]
    at = {}
    for r in device_rows:
        if r["ranks"] == str(ranks) and r["config"] in SHORT and r["type"] != "aijcusparse":
            at.setdefault((r["config"], r["type"], int(r["setups"])), []).append(1e3 * float(r["format_s"]))
    counts, setup = [n for _, _, n in at], [statistics.median(v) for v in at.values()]
    return [[us(f(v)) for f in (min, max)] for v in (solve, counts, setup)]


def differ_on_device(ranks, column):
    """How much the largest and the smallest of a program's times differ, in % of the median: configuration and type -> %"""
    at = {}
    for r in device_rows:
        if r["ranks"] == str(ranks):
            at.setdefault((r["config"], r["type"]), []).append(float(r[column]))
    return {key: 100 * (max(v) - min(v)) / statistics.median(v) for key, v in at.items() if len(v) > 1}


def device_iterations(ranks, config, *kinds):
    return ["/".join(sorted({r["krylov"] for r in device_rows if (r["config"], r["ranks"], r["type"]) == (config, str(ranks), kind)})) for kind in kinds]


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


def grouped(name):
    """The microseconds of sellp and evchyb with row groups, and before"""
    rows = [r for r in groups if r["matrix"] == f"twin:{name}" and r["type"] != "aijcusparse"]
    return [us(1e6 * float(r["warm_s"])) if float(r["warm_s"]) > 1e-4 else one(1e6 * float(r["warm_s"])) for r in rows]


def column_times(matrix, count, digits, rows=several, ways=(("aij", "product"), ("sellp", "loop"), ("sellp", "product"))):
    row = {(r["type"], r["method"]): float(r["us"]) for r in rows if (r["matrix"], r["columns"]) == (matrix, str(count))}
    return [digits(row[way]) for way in ways]


def columns(count):
    return column_times("stencil7:200", count, us) + column_times("fem27:60:3", count, us) + column_times("stencil7:32", count, one)


def over_columns(count, kind, method, rows=several):
    """How many times as fast sellp's products with so many columns are, by matrix"""
    times = {(r["matrix"], r["type"], r["method"]): float(r["us"]) for r in rows if r["columns"] == str(count)}
    return [t / times[matrix, "sellp", "product"] for (matrix, k, m), t in times.items() if (k, m) == (kind, method)]


def in_shared_memory():
    """x in shared memory: matrices, cases that have enough lines and bytes, all cases, how many times as fast these and the others are; cases without a number of lines"""
    rows = read("sharedx.csv")
    enough = [not r["lines"] or (float(r["lines"]) >= 20 and float(r["values_over_copies"]) >= 0.25) for r in rows]
    gain = [[float(r["cache_us"]) / float(r["shared_us"]) for r, e in zip(rows, enough) if e == those] for those in (True, False)]
    return [str(len({r["matrix"] for r in rows})), str(len(gain[0])), str(len(rows)), two(min(gain[0])), two(max(gain[0])), two(statistics.geometric_mean(gain[0])),
            str(len(gain[1])), two(min(gain[1])), two(max(gain[1])), str(sum(not r["lines"] for r in rows))]


def first_products(column):
    """First products of GAMG's hierarchy with the library after and before set-up waits less, with sellp and with evchyb, in ms"""
    rows = read("first-setup.csv")
    return [one(1e3 * statistics.median(float(r[column]) for r in rows if r["type"] == kind and r["library"].startswith(library)))
            for kind in ("sellp", "evchyb") for library in ("3a16324", "9477567")]


def first_again(matrix, column):
    """First products on one H200 with sellp, evchyb and aijcusparse, in ms"""
    return [1e3 * medians(read("first-h200.csv"), column)[matrix, kind] for kind in ("sellp", "evchyb", "aijcusparse")]


def fetched_ahead(matrix, kind, column):
    """With the library that fetches rows ahead and with the one before, in ms"""
    return [1e3 * medians(read("first-host-ahead.csv"), column, "commit")[matrix, kind, commit] for commit in ("64fee9d", "75c08a9")]


def copies_of_others():
    pairs = {(r["matrix"], r["type"]) for r in read("first-host-ahead.csv")} - {("webbase", "evchyb"), ("econ", "evchyb")}
    ratios = [now / before for now, before in (fetched_ahead(*p, "copy_s") for p in pairs)]
    return [two(min(ratios)), two(max(ratios))]


def times_on_one(column, *files):
    """The times of whole programs on one GPU: file, configuration and type -> seconds"""
    at = {}
    for file in files:
        for r in read(file):
            if r["ranks"] == "1" and r["timed"] != "1" and not r["failed"]:
                at.setdefault((file, r["config"], r["type"]), []).append(float(r[column]))
    return at


def slow_runs(kind):
    """How many runs take more than 1.15 times as long as the fastest one of their configuration and type, in %"""
    runs = [[x > 1.15 * min(v) for x in v]
            for (_, _, t), v in times_on_one("total_s", "solves-device.csv", "solves-h100.csv", "solves-repeated.csv", "solves-multigrid.csv").items() if t == kind]
    return us(100 * sum(map(sum, runs)) / sum(map(len, runs)))


def fastest_of_ten(kind):
    """The fastest runs of the configurations that ran ten times on H100s, over those with aijcusparse"""
    least = {}
    for (_, config, t), v in times_on_one("total_s", "solves-h100.csv", "solves-repeated.csv").items():
        least.setdefault((config, t), []).extend(v)
    return {c: min(v) / min(least[c, "aijcusparse"]) for (c, t), v in least.items() if t == kind and len(v) == 10}


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


def registers():
    """On an EPYC, now and before kernels left no wide registers in use: how much faster KSPSolve is than with aij, with our types on one and two processes, with the
    numbers of configurations; KSPSolve of ex19-jacobi over aij's, before and after; how much faster the whole programs are, and the least of that"""
    now, before = by_ranks("solves-epyc.csv"), by_ranks("solves-epyc-before.csv")
    means = lambda ranks: [two(mean(faster(solves, ranks, kind).values())) for kind in OURS for solves in (now, before)]
    count = lambda ranks: str(len(faster(now, ranks, "sellp")))
    totals = [faster(now, ranks, kind, "gain").values() for ranks in (1, 2) for kind in OURS]
    return [*means(1), count(1), count(2), *means(2), *(two(1 / faster(solves, 1, "evchyb")["ex19-jacobi"]) for solves in (before, now)), *(two(mean(t)) for t in totals),
            two(min(map(min, totals)))]


def multigrid(kind, column, f=min):
    """Of the fastest runs, or with f = statistics.median, what this type takes over aijcusparse in each configuration"""
    file = "solves-multigrid.csv"
    times = times_on_one(column, file)
    return [f(times[file, name, kind]) / f(times[file, name, "aijcusparse"]) for name in ("gamg", "elasticity-gamg", "ex14-mg")]


def marked(matrix, kind):
    """A product with marks of node blocks and without, in microseconds"""
    old, new = [r for r in read("elements.csv") if (r["matrix"], r["type"]) == (matrix, kind)]
    return [new["product_us"], old["product_us"]]


def refilled(dense):
    """Refreshes of node blocks by a thread block over those by a warp: smallest, largest, geometric mean"""
    rows = [r for r in read("fills.csv") if "node blocks" in r["kernel"] and (r["matrix"] == "dense:3000") == dense]
    ratios = [float(new["refresh_us"]) / float(old["refresh_us"]) for old, new in zip(rows[::2], rows[1::2])]
    return [two(min(ratios)), two(max(ratios)), two(mean(ratios))]


def now_and_before(file, column, chosen):
    """What the smallest of the repeated measurements with the newer library takes over the smallest with the older one: least and most of the chosen rows"""
    times = {}
    for r in read(file):
        if chosen(r):
            times.setdefault((r["matrix"], r.get("kernel")), {}).setdefault(r["commit"], []).append(float(r[column]))
    ratios = [min(after) / min(before) for before, after in (v.values() for v in times.values())]
    return [two(min(ratios)), two(max(ratios))]


def newer_diagonals(file, constant, single):
    """Products in diagonals with constant coefficients or random values, in double or single precision"""
    return now_and_before(file, "product_us", lambda r: "diagonals" in r["kernel"] and ("single" in r["kernel"]) == single
                          and r["matrix"].startswith(("bratu", "poisson")) == constant)


def newer_ex14(file, now, before):
    """ex14's product with sellp, with the newer and the older library, in microseconds"""
    rows = [r for r in read(file) if (r["matrix"], r["kernel"]) == ("bratu:200", "sellp: diagonals")]
    return [one(min(float(r["product_us"]) for r in rows if r["commit"] == commit)) for commit in (now, before)]


def overlap(matrix):
    """A product with sellp that overlaps with the kernels before and after it, and one that does not, in microseconds"""
    at = {r["commit"]: float(r["product_us"]) for r in read("overlap.csv")
          if r["matrix"] == matrix and r["kernel"].startswith("sellp: ") and "single" not in r["kernel"]}
    return at["676f178"], at["60c85a1"]


def overlapped(matrix, now=lambda v: two(v), before=lambda v: two(v)):
    times = overlap(matrix)
    return [now(times[0]), before(times[1])]


def overlapped_small():
    ratios = [now / before for now, before in map(overlap, ("arrow:200000", "fem27:20:3", "fem27:40:1:0.9", "small:1000", "small:20000", "stencil7:32"))]
    return [two(min(ratios)), two(max(ratios))]


def others(matrix, digits):
    names = (("aij", "bcgs"), ("sellp", "bcgs"), ("sellp", "devicebicgstab"), ("aij", "chebyshev"), ("sellp", "chebyshev"), ("sellp", "devicechebyshev"))
    return [(us if ksp == "bcgs" else digits)(iteration(matrix, kind, ksp, "jacobi")) for kind, ksp in names]


def first(matrix, kind, column="first_s", unit=1e3, before=False):
    """Of aijcusparse from the older file if the newer one lacks it. before: of the library before the thread that prepares first products"""
    now = [r for r in firsts_prepared if (r["matrix"], r["type"], r["commit"] == "688ed70") == (matrix, kind, before)]
    rows = now or [r for r in firsts if (r["matrix"], r["type"], kind) == (matrix, kind, "aijcusparse")]
    return unit * statistics.median(float(r[column]) for r in rows)


def first_row(name, matrix, digits, kinds=OURS):
    cells = [first(matrix, "aijcusparse"), first(matrix, "sellp", before=True)] + [first(matrix, t) for t in kinds]
    return f"| {name} |" + " {} |" * len(cells) + " |" * (len(OURS) - len(kinds)) + " {} |", [digits(c) for c in cells] + [digits(first(matrix, "sellp", "refresh_s", 1e6))]


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


def first_pages(machine, commit, pages, column):
    """Medians on a machine with this library: (matrix, type) -> seconds"""
    return medians([r for r in read("first-pages.csv") if r["machine"].startswith(machine) and (r["commit"], r["pages"]) == (commit, pages)], column)


def over(longer, shorter):
    """The geometric mean of these times over those"""
    return mean(v / shorter[k] for k, v in longer.items())


def huge_pages():
    """First products: by how much longer they take on a Xeon without huge pages, in %, and on an EPYC, by how many ms at most with them"""
    xeon, epyc = ([first_pages(*library, pages, "first_s") for pages in ("small", "huge")] for library in (("Intel", "70aa234"), ("AMD", "2853a99")))
    return [us(100 * over(*xeon) - 100), us(1e3 * max(epyc[1][k] - v for k, v in epyc[0].items()))]


def huge_pages_for(what):
    """Products without huge pages over those with them, in the geometric mean, on an EPYC"""
    times = medians(read("huge-pages.csv"), "product_s", "huge")
    return two(over(*({k[:2]: v for k, v in times.items() if k[2] == huge} for huge in ("none", what))))


def refreshes_before():
    """Refreshes on an EPYC in ms, before and now; on a Xeon, how many matrices, and how much longer they took before"""
    epyc = first_pages("AMD", "2853a99", "small", "refresh_s"), medians(firsts_host, "refresh_s")
    xeon = [first_pages("Intel", commit, "huge", "refresh_s") for commit in ("873100d", "70aa234")]
    return [*(one(1e3 * times[matrix, kind]) for matrix in ("fem27:30:3", "tsopf") for kind in OURS for times in epyc), str(len({m for m, _ in xeon[0]})), two(over(*xeon))]


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
    """With 10,000 problems: the matrices of figure 5 on which all kernels ran, how many of these are from files, and how many twins; batch over the best of the paper's kernels, mean and least"""
    cases = [c for c in batch.cases(batch.read(str(ROOT / "docs/results/batch-10000.csv"))) if c["batch"]["figure"] == 5 and c["batch"]["problems"] == 10000]
    over = [min(c[k]["seconds"] for k in batch.KERNELS if k in c) / c["batch"]["seconds"] for c in cases]
    return [str(sum(c["batch"]["origin"] in kinds for c in cases)) for kinds in (("file", "twin"), ("file",), ("twin",))] + [two(mean(over)), two(min(over))]


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
        ("In {} whole programs, PETSc's tutorials and `examples/bratu`, KSPSolve is {} times as fast with `sellp`",
         [str(len(on_device(1, "sellp"))), two(mean(on_device(1, "sellp").values()))]),
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
        ("for which all code has been loaded, take {} ms with `sellp`, before {}, and {} with `evchyb`, before {}; the first products of the process take {}, before {}, and {}, before {}",
         first_products("copy_s") + first_products("first_s")),
        ("with `evchyb` the power law like webbase takes {} ms for a copy, before {}, and {} for a refresh, before {}; one with 206,500 rows like econ {}, before {}, and {}, before {}. The copies of the "
         "others, and all with `sellp`, take {} to {} times as long as before.",
         [*(one(v) for m in ("webbase", "econ") for c in ("copy_s", "refresh_s") for v in fetched_ahead(m, "evchyb", c)), *copies_of_others()]),
        ("first products of copies of the 9 matrices {}, {} and {} ms, with `sellp`, `evchyb` and aijcusparse, the first products of the process {}, {} and {} ms; of two processes, SNES ex14's Jacobian "
         "with 200^3 points {}, {} and {} ms, finite elements with 68^3 nodes x 3 unknowns {}, {} and {} ms. A refresh of the last two takes {} and {} us with `sellp`.",
         [*(one(v) for c in ("copy_s", "first_s") for v in first_again("gamg:96", c)), *(us(v) for m in ("bratu:200", "fem27:68:3") for v in first_again(m, "first_s")),
          *(us(1e3 * first_again(m, "refresh_s")[0]) for m in ("bratu:200", "fem27:68:3"))]),
        ("| 7-point stencil 200^3, from the host | 56 | " + ASSEMBLY, assembly("stencil7:200", "host")),
        ("| 7-point stencil 200^3, from the GPU | 56 | " + ASSEMBLY, assembly("stencil7:200", "device")),
        ("| matrices of 67^3 elements, 3 unknowns a node, from the GPU | 173 | " + ASSEMBLY, assembly("elements:67:3", "device")),
        first_row("7-point stencil 200^3", "stencil7:200", us, ("sellp",)),
        first_row("finite elements, 125,000 nodes x 3 unknowns", "fem27:50:3", us),
        first_row("9 matrices of a GAMG hierarchy, 96^3", "gamg:96", us),
        first_row("7-point stencil 32^3", "stencil7:32", one),
        *((f"| {name} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} |", first_host(matrix)) for name, matrix in FIRST_HOST.items()),
        ("On an Intel Xeon first products take {} % longer without them in the geometric mean. On the EPYC they take up to {} ms longer with them", huge_pages()),
        ("Products take {} times as long as with huge pages for the format, and {} times as long as with huge pages for the whole program", [huge_pages_for("format"), huge_pages_for("program")]),
        ("In the finite elements of the table a refresh took {} ms with `sellp` before that and now takes {}; with `evchyb` {} and {}. In a matrix like tsopf it took {} and now takes {}, and {} and {}. "
         "On an Intel Xeon refreshes of {} matrices took {} times as long before, in the geometric mean", refreshes_before()),
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
        ("| allocations | phases | |---|---|---|---| | 1 | sellp / evchyb / batch | {} / {} / {} | {} / {} / {} |", [injected(t)[k] for k in (0, 1) for t in (*OURS, "batch")]),
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
        ("twin of msdoor takes {} us with sellp and {} with evchyb instead of {} and {}, when", grouped("msdoor")),
        ("and that of ldoor {} and {} instead of {} and {} (", grouped("ldoor")),
        *((f"| {count} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} | {{}} |", columns(count)) for count in (1, 2, 3, 4, 8, 16, 32)),
        ("On all {} matrices of the file a product with 2, 4 and 8 columns is {}, {} and {} times as fast as with aijcusparse in the geometric mean, at least {} times, and {}, {} and {} times "
         "as fast as the loop",
         [str(len({r["matrix"] for r in several})), *(two(mean(over_columns(count, "aij", "product"))) for count in (2, 4, 8)),
          two(min(min(over_columns(count, "aij", "product")) for count in (2, 4, 8))), *(two(mean(over_columns(count, "sellp", "loop"))) for count in (2, 4, 8))]),
        ("A product with 2 to 32 columns takes at most {} times as long as the loop", [f"{max(1 / x for count in (2, 3, 4, 8, 16, 32) for x in over_columns(count, 'sellp', 'loop')):.3f}"]),
        ("2 columns take {} us, and {} us in a loop, 3 columns {} and {}.", [x for count in (2, 3) for x in column_times("webbase", count, one, ways=(("sellp", "product"), ("sellp", "loop")))]),
        ("`webbase` took {} and {} us, as above, but the loop only {} and {}.",
         [x for way in ("product", "loop") for count in (2, 3) for x in column_times("webbase", count, one, several_cusparse, [("sellp", way)])]),
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
        ("{} generated matrices were measured with and without it, in `sellp`'s and `evchyb`'s slices ([results/sharedx.csv](results/sharedx.csv); `bench/cuda_core -lines 0` and "
         "`-lines 33`): in {} of these {} cases there are enough lines and bytes, and `x` in shared memory makes products {} to {} times as fast, {} times in the geometric mean. In the "
         "other {} cases it would make them {} to {} times as fast, and is not used. In {} cases the lines were not counted", in_shared_memory()),
        ("ex56 with 63^3 elements takes {} us with these marks and {} without", marked("ex56 -ne 63", "sellp")),
        ("2 to 6 unknowns per node takes {} to {} times as long as when each warp read a few columns of all rows at a time, {} times in the geometric mean", refilled(False)),
        ("but that of a dense matrix of 3000 rows {} to {} times.", refilled(True)[:2]),
        ("A dense matrix of 7200 rows, which are cut into parts, takes {} to {} times as long as when parts were copied step by step",
         now_and_before("instructions.csv", "refresh_us", lambda r: r["matrix"] == "dense:7200")),
        ("with constant coefficients and 5, 7 or 27 points take {} to {} times as long as before, with values in single precision {} to {} times",
         newer_diagonals("instructions.csv", True, False) + newer_diagonals("instructions.csv", True, True)),
        ("Jacobian with 200^3 points {} us instead of {}.", newer_ex14("instructions.csv", "354b4fa", "9f46ca8")),
        ("Products with random values take {} to {} times as long, in single precision {} to {} times", newer_diagonals("instructions.csv", False, False) + newer_diagonals("instructions.csv", False, True)),
        ("both together make products with constant coefficients take {} to {} times as long, with values in single precision {} to {} times",
         newer_diagonals("slices-per-warp.csv", True, False) + newer_diagonals("slices-per-warp.csv", True, True)),
        ("products one after the other in a graph take {} us instead of {} with a twin of dc1, {} instead of {} with one of econ, {} instead of {} with one of webbase,",
         overlapped("dc1") + overlapped("econ") + overlapped("webbase", one, one)),
        ("with one of webbase, and {} to {} times as long as before with six other matrices of less than 24 MB", overlapped_small()),
        ("constant coefficients and 27 points on 150^3 takes {} us instead of {}, that of SNES ex14's Jacobian with 100^3 and 200^3 points {} and {} us instead of {} and {}",
         overlapped("poisson27:150", one, us) + overlapped("bratu:100")[:1] + overlapped("bratu:200", one, one)[:1] + overlapped("bratu:100")[1:]
         + overlapped("bratu:200", one, one)[1:]),
        ("ex14's product with 200^3 points takes {} us instead of {}.", newer_ex14("slices-per-warp.csv", "873100d", "ae01b78")),
        ("Those with random values take {} to {} times as long, in single precision {} to {} times",
         newer_diagonals("slices-per-warp.csv", False, False) + newer_diagonals("slices-per-warp.csv", False, True)),
        ("7-point stencils take {} to {} times as long as before", now_and_before("complex-stencils.csv", "product_us", lambda r: r["matrix"].startswith("7"))),
        ("neighbors x 3 unknowns on 68^3 nodes take {} us in diagonals and {} us in slices instead of {} and {}",
         [us(float(r["refresh_us"])) for commit in ("b74f3af", "fbc0e81") for kernel in ("sellp: diagonals of node blocks", "sellp slices: SELL-P slices of node blocks")
          for r in read("fills.csv") if (r["matrix"], r["kernel"], r["commit"]) == ("fem27:68:3", kernel, commit)]),
    ],
    "docs/batch.md": [
        ("{} of the 32 matrices were read from files and {} are twins", batch_origins()),
        ("{} times as fast as the block-diagonal aijcusparse in the geometric mean and at least {} times, at least {} times as fast as the loop, and at least {} % of the",
         batched()),
        ("With 10,000 problems of each of the {} matrices ({} from files, {} twins;", batched_by_all()[:3]),
        ("`batch` is {} times as fast as the best of the paper's kernels in the geometric mean and at least {} times", batched_by_all()[3:]),
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
        ("figure 4 and all {} matrices of figure 5 with 10,000 problems", batched_by_all()[:1]),
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
        ("**Whole solves on GPUs**, {} of these configurations on one H200 and {} on two", [str(len(solves_device[n])) for n in (1, 2)]),
        ("KSPSolve is {} times as fast as with `aijcusparse` in the geometric mean with `sellp`, {} with `evchyb`, and {} with `sellp` and `devicecg` or `devicebicgstab`, for which there are {} "
         "configurations; on two processes {}, {} and {}, the last in {}.",
         [x for n in (1, 2) for x in (*device_means(n, "solve_gain"), str(len(on_device(n, "sellp:device"))))]),
        ("The totals are {}, {} and {} times as fast, on two processes {}, {} and {}, mostly because", device_means(1, "gain") + device_means(2, "gain")),
        ("without it {}, {} and {}, on two {}, {} and {}.", device_means(1, "gain", ["bratu"]) + device_means(2, "gain", ["bratu"])),
        ("They take {} to {} seconds with `aijcusparse` on one process, and in {} of {} configurations KSPSolve takes less than 15 % of that",
         [*(one(f(device_totals()[0])) for f in (min, max)), str(sum(x < 0.15 for x in device_totals()[1])), str(len(device_totals()[1]))]),
        ("the totals of the same program on one process differ by up to {} % between runs, by {} % in the median", [us(f(differ_on_device(1, "total_s").values())) for f in (max, statistics.median)]),
        ("gamg is {} to {} times as fast, elasticity-2d {} to {} times, mg-galerkin {} to {} times, elasticity-gamg {} to {} times. The others are {} times as fast at least.", slow_on_device()),
        ("In these four KSPSolve takes only {} to {} ms with `aijcusparse` on one process and {} to {} ms on two, while the set-up of {} to {} formats takes {} to {} ms on one process, and that of {} "
         "to {} formats {} to {} ms on two.",
         [x for pair in (short_on_device(1)[0], short_on_device(2)[0], *short_on_device(1)[1:], *short_on_device(2)[1:]) for x in pair]),
        ("most of all in gamg, by up to {} %", [us(max(v for n in (1, 2) for v in differ_on_device(n, "solve_s").values()))]),
        ("KSPSolve is {} times as fast as with `aij` in the geometric mean with `sellp`, before {}, and {} times with `evchyb`, before {}, in {} configurations on one process; on two, in {}, {} times, "
         "before {}, and {} times, before {}. ex19-jacobi with `evchyb` had taken {} times as long as with `aij` on one process, and now takes {} times as long. The totals are {}, {}, {} and {} times "
         "as fast; at least {} times, in hypre", registers()),
        ("of {} configurations on one H200, KSPSolve is {} times as fast with `sellp` and {} times with `evchyb`, in gamg {} and {} times; of {} on two, {} and {} times",
         solves_again()),
        ("The totals, without `examples/bratu`, are {} and {} times as fast on one and {} and {} times on two. Their medians are more than 1.03 times those of `aijcusparse` in {} of {} cases on one and "
         "in {} of {} on two, at most {} and {} times", totals_again()),
        ("Between runs of the same program and type on one GPU they differ by {} % in the median. Of the fastest runs the ratios are {} to {}, more than 1.03 in {} of", fastest_again()),
        ("the totals of gamg, elasticity-gamg and ex14-mg are {}, {} and {} times those of `aijcusparse` with `sellp` and {}, {} and {} times with `evchyb`, and KSPSolve {}, {} and {} and {}, {} and {} "
         "times. The medians of the totals are {} to {} times",
         [two(v) for c in ("total_s", "solve_s") for t in OURS for v in multigrid(t, c)] +
         [two(f(v for t in OURS for v in multigrid(t, "total_s", statistics.median))) for f in (min, max)]),
        ("in the four files {} % of the runs with `aijcusparse`, {} % with `sellp`, {} % with `evchyb` and {} % with `sellp` and `devicecg`",
         [slow_runs(t) for t in ("aijcusparse", *OURS, "sellp:device")]),
        ("the fastest take {} to {} times as long as with `aijcusparse` with `sellp`, and {} to {} times with `evchyb`, more than 1.03 in {} configurations, elasticity-2d and ex14-gamg.",
         [*(two(f(fastest_of_ten(t).values())) for t in OURS for f in (min, max)), str(sum(v > 1.03 for t in OURS for v in fastest_of_ten(t).values()))]),
        ("which stops after {} iterations, with our types after {} (", device_iterations(1, "stokes-2d", "aijcusparse", "sellp")),
        ("and ex19-mg on two, which with our types takes {}.", device_iterations(2, "ex19-mg", "sellp")),
        ("BiCGStab takes {} iterations with `aijcusparse` on one process and {} on two, {} and {} with `sellp`",
         [x for t in ("aijcusparse", "sellp") for n in (1, 2) for x in device_iterations(n, "bcgs-jacobi", t)]),
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
    "scaling-transports.md": scaled("scaling-transports"),
    "solves.md": solved("solves"),
    "solves-device.md": solved("solves-device"),
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


def core_log():
    """matrix -> label -> numbers of bench/cuda_core.cu's log: us, us one by one, GF/s, share, speed, set-up, refresh"""
    found, now = {}, None
    for line in (ROOT / "docs/results/h200-core.log").read_text().splitlines():
        if head := re.match(r"(\S+): \d+ rows,", line):
            now = found.setdefault(head[1], {})
        elif now is not None and (row := re.match(r"  (\S.*?) +([\d.]+) us  stream +([\d.]+) +([\d.]+) GF/s +([\d.]+) % of copy +x([\d.]+) .*set-up +([\d.]+) ms +refresh +([\d.]+)", line)):
            now[row[1]] = [float(x) for x in row.groups()[1:]]
    return found


def core_rows(rows):
    """What kernels.md says of a matrix: the cells of its two tables, numbers and the kernel's name"""

    def first(begin, end=""):
        return next(((label, v) for label, v in rows.items() if label.startswith(begin) and label.endswith(end)), ("", None))

    library = min(v[0] for label, v in rows.items() if label.startswith("cuSPARSE"))
    kernel, sellp = next((label, v) for label, v in rows.items() if label.startswith("sellp: ") and "," not in label)
    evchyb = next(v for label, v in rows.items() if label.startswith("evchyb: ") and "," not in label)
    name = kernel.partition(": ")[2].replace("SELL-P ", "").replace("CUDA ", "")
    ours = [rows["cuSPARSE CSR ALG1"][0], library, sellp[0], evchyb[0], sellp[1], first("sellp: ", ", measured")[1][0], first("sellp: ", "single precision")[1][0], name, sellp[3],
            sellp[5], sellp[6]]  # fmt: skip
    paper = [first(label)[1] for label in ("paper: SELL-P", "paper: EVC-HYB", "paper, 256", "EVC-HYB paper without", "paper: adaptive")]
    return ours, [v[0] if v else None for v in paper]


def compare_core():
    """The number of cells of docs/results/kernels.md, and of those that are not what the log has, rounded as they are"""
    log, cells, wrong = core_log(), 0, 0
    for line in (ROOT / "docs/results/kernels.md").read_text().splitlines():
        words = [w.strip() for w in line.strip("|").split("|")]
        if words[0] not in log:
            continue
        ours, paper = core_rows(log[words[0]])
        for cell, value in zip(words[1:], ours if len(words) == 12 else paper):
            cells += 1
            text = cell.removesuffix(" %")
            digits = len(text.partition(".")[2])
            same = cell == value if isinstance(value, str) else value is not None and abs(float(text) - value) <= 0.5001 * 10**-digits
            if not same:
                print(f"docs/results/kernels.md: {words[0]}: '{cell}' where the log has {value}")
                wrong += 1
    return cells, wrong


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
    pages, (cells, others) = compare_pages(), compare_core()
    print(f"{sum(map(len, CLAIMS.values()))} statements compared with docs/results, {wrong} wrong; {len(PAGES)} pages written again, {pages} differ; "
          f"{cells} cells of kernels.md, {others} wrong")
    return wrong + pages + others > 0


if __name__ == "__main__":
    sys.exit(main())
