#!/usr/bin/env python3
"""Compares the numbers of README.md and docs with the CSV files of docs/results that they come from: checkdocs.py [folder of the repository]

numbers.txt lists for each document the sentences and table rows with the measurements of their numbers, by the functions below. What a text says must be what the CSV
files give, rounded as the format says. PAGES are the pages that the scripts of bench write from the CSV files: they are written again, and each line must be the same.
"""

import contextlib
import csv
import functools
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
sys.path += [str(BENCH / folder) for folder in (".", "lib", "products", "solves", "papers")]
import batch
import hosts as baselines
import paper
import scalingreport
import solvereport
import table
from report import Report

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parent.parent
OURS = ("sellp", "evchyb")
BASES = ("aij", "aijperm", "sell", "mkl")
PAPER = ("sellp:-mat_sellp_kernel paper", "evchyb:-mat_evchyb_kernel paper")
CG = ("aij cg none", "sellp cg none", "sellp devicecg none", "sellp devicecg jacobi")
OTHERS = ("aij bcgs", "sellp bcgs", "sellp devicebicgstab", "aij chebyshev", "sellp chebyshev", "sellp devicechebyshev")
GMRES = ("aij gmres", "sellp gmres", "sellp devicegmres")

# ---- measurements


@functools.lru_cache(None)
def read(name):
    with open(ROOT / "docs/results" / f"{name}.csv", newline="") as f:
        return list(csv.DictReader(f))


def select(query):
    """The rows of a file that have some values, and a column: see numbers.txt"""
    name, column, *words = query.split()
    pairs = [w.partition("=") for w in words]
    return [r for r in read(name) if all(r[c] == v if equals else c in r.values() for c, equals, v in pairs)], column


def get(query):
    rows, column = select(query)
    return [float(r[column]) for r in rows]


def each(query, *further):
    return [get(f"{query} {words}")[0] for words in further]


def tiles(matrix):
    us = {r["type"]: 1e6 * float(r["warm_s"]) for r in read("tiles") if r["matrix"] == f"mesh:{matrix}"}
    return [us[kind] for kind in ("aijcusparse", "sellp:-mat_spmv_reorder off", "sellp")]


def gamg(matrix):
    both = [each(f"gamg {column} {matrix}", "aij", "sellp") for column in ("setup", "again")]
    return both[0] + both[1] + [get(f"gamg {column} {matrix} sellp")[0] for column in ("first", "second")]


def small_solves(name):
    """Lock step over devicebatch, of the test set's matrices: how many, mean, least"""
    us = {(r["case"], r["solver"]): float(r["us"]) for r in read(name)}
    ratios = [us[case, "bcgs"] / us[case, "devicebatch:bcgs"] for case, solver in us if solver == "bcgs" and case != "cells" and not case.startswith("dense")]
    return len(ratios), statistics.geometric_mean(ratios), min(ratios)


def spgemm(matrix, product, column):
    return [float(r[column]) for r in read("spgemm") if (r["matrix"], r["product"]) == (matrix, product)]


def spgemm_ratios():
    ratios = [float(r["cusparse_numeric_ms"]) / float(r["numeric_ms"]) for r in read("spgemm")]
    return [min(ratios), max(ratios)]


def count(name, column):
    return len({r[column] for r in read(name)})


def grouped(query, *columns):
    """Medians of repeated measurements: values of these columns -> median"""
    at, (rows, column) = {}, select(query)
    for r in rows:
        at.setdefault(tuple(r[c] for c in columns), []).append(float(r[column]))
    return {k: statistics.median(v) for k, v in at.items()}


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def ends(values):
    values = list(values)
    return min(values), max(values)


class Products:
    """What bench/products/bench measured: a table of matrices and types"""

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

    def mean_least(self):
        return mean(self.bests()), min(self.bests())

    def ends(self, kind):
        return ends(v for v in (self.get(m, kind) for m in self.matrices) if v > 0)

    def mean(self, kind):
        return mean(v for v in (self.get(m, kind) for m in self.matrices) if v > 0)

    def refresh(self, kind, column):
        """Smallest and largest refresh, in products"""
        return ends(self.get(m, kind, column) / self.get(m, kind, "warm_s") for m in self.matrices if self.get(m, kind, column) > 0)


gpu, host, xeon, sellcuda = map(Products, ("h200", "host", "host-xeon", "sellcuda"))


MESH_KINDS = {  # each matrix is of the first kind of which its name has a word
    "transposed": ("^T",), "multigrid": ("coarse:", "interpolation:"), "blocks": ("elastic", "velocity"), "classical": ("classical",), "random": ("random",), "stokes": ("taylor-hood",), "scalar": ("mesh:",),
}


def mesh_kind(matrix):
    return next(k for k, words in MESH_KINDS.items() if any(w in matrix for w in words))


def meshes(kind=None, name="meshes-h200"):
    """Matrices of unstructured meshes: their number, the mean and the least speed of the better of ours; None: of all products that are not transposed"""
    measured = Products(name)
    found = [measured.best(m) for m in measured.matrices if (mesh_kind(m) == kind if kind else mesh_kind(m) != "transposed")]
    return len(found), mean(found), min(found)


def meshes_host(kind=None, native=True, others=("aij", "aijperm", "sell", "mkl")):
    """The same on one core, over the fastest of others in the same process, with the PETSc that is compiled for the processor or Debian's"""
    times = {}
    for r in read("meshes-host"):
        if ("native" in r["flags"]) == native:
            times.setdefault(r["matrix"], {})[r["type"]] = float(r["warm_s"])
    found = [min(t[k] for k in others) / min(t[k] for k in OURS) for m, t in times.items() if kind in (None, mesh_kind(m))]
    return len(found), mean(found), min(found)


def mesh_mean(kind, name="meshes-h200"):
    measured = Products(name)
    return mean(measured.get(m, kind) for m in measured.matrices if "^T" not in m)


def spans(column):
    return [v for t in OURS for v in gpu.refresh(t, column)]


def bytes_of_row(kind):
    """Of the 7-point stencil, without x and y, each moved once"""
    return gpu.get("stencil7:200", kind, "bytes") / int(gpu.at["stencil7:200", kind]["rows"]) - 16


def native(kinds):
    """How much faster sellp is than the fastest of these types, with the PETSc that is compiled for the processor, on one process"""
    times = {(r["matrix"], r["type"]): float(r["warm_s"]) for r in read("hosts") if r["ranks"] == "1" and "native" in r["flags"]}
    return mean(min(times[m, k] for k in kinds if (m, k) in times) / times[m, "sellp"] for m in {m for m, _ in times})


def over_all():
    """How much faster sellp is than the fastest other type with any of the PETScs, with the one compiled for the processor and with the other, on one process; on how many
    matrices the former's AIJ is slower than the other's; how far apart sellp's own times with the two are at most"""
    times = {("native" in r["flags"], r["matrix"], r["type"]): float(r["warm_s"]) for r in read("hosts") if r["ranks"] == "1"}
    names = {matrix for _, matrix, _ in times}
    best = {m: min(times[n, m, k] for n in (True, False) for k in BASES if (n, m, k) in times) for m in names}
    apart = [times[True, m, "sellp"] / times[False, m, "sellp"] for m in names]
    slower = sum(times[True, m, "aij"] > times[False, m, "aij"] for m in names)
    return [*(mean(best[m] / times[n, m, "sellp"] for m in names) for n in (True, False)), slower, max(max(x, 1 / x) for x in apart)]


def product(kind):
    """Of Bratu 200^3 on one, two and four GPUs, us; ours by peers"""
    return [min(get(f"scaling product_us program=bench ranks={n} matrix=bratu:200 type={kind} halo={'peer' if n > 1 and kind in OURS else ''}")) for n in (1, 2, 4)]


def over_aijcusparse():
    return [a / b for a, b in zip(product("aijcusparse"), product("sellp"))]


def transports(matrix):
    return [min(get(f"scaling-transports product_us program=bench ranks=2 matrix={matrix} type=sellp halo={t}")) for t in ("peer", "nccl")]


def two_h100s(mpi):
    aij, sellp = each(f"cuda-aware product_us mpi={mpi} bench ranks=2 bratu:200", "aijcusparse", "type=sellp")
    return aij / sellp


def aware(query):
    """A row of the table: aijcusparse with both kinds of MPI, sellp with both, sellp's speed with the second kind; the same with devicecg"""
    column, *words = query.split()
    at = lambda kind, mpi: get(f"cuda-aware {column} mpi={mpi} ranks=2 type={kind} {' '.join(words)}")
    times = [at(t, m)[0] for t in ("aijcusparse", "sellp") for m in ("host", "CUDA-aware")]
    more = at("sellp:devicecg", "CUDA-aware")[:1]
    return [*times, times[1] / times[3], *more, *(times[1] / x for x in more)]


def over_ours(times, others, ours):
    """Of measurements by matrix and contender: time of the best of the others over that of the best of ours, geometric mean and smallest"""
    found = [min(times[m, k] for k in others) / min(times[m, k] for k in ours) for m in dict.fromkeys(m for m, _ in times)]
    return mean(found), min(found)


def over_peer(variants, name="peers"):
    """Other products of bench/products/peers, the best of these variants"""
    return over_ours(grouped(f"{name} us", "matrix", "variant"), variants.split(), OURS)


def over_cusparse(columns, layout=""):
    """Products with dense matrices, the best of cuSPARSE's algorithms"""
    times = {(m, f"{t}:{how}"): s for (m, t, how), s in grouped(f"columns-cusparse us columns={columns}", "matrix", "type", "method").items()}
    return over_ours(times, [f"cusparse:csr{k}{layout}" for k in (1, 2, 3)], [f"{t}:product" for t in OURS])


def columns2(how):
    return [get(f"columns-2gpus us stencil7:200 ranks=2 columns={k} {how}")[0] for k in (2, 4, 8)]


def columns(k):
    return [x for m in ("stencil7:200", "fem27:60:3", "stencil7:32") for x in each(f"columns us {m} columns={k}", "aij product", "sellp loop", "sellp product")]


def over_columns(columns, kind="aij", method="product", file="columns"):
    """How many times as fast sellp's products with so many columns are, by matrix"""
    times = grouped(f"{file} us columns={columns}", "matrix", "type", "method")
    return [t / times[matrix, "sellp", "product"] for (matrix, k, m), t in times.items() if (k, m) == (kind, method)]


# ---- set-up


def first_again(matrix, column):
    """First products on one H200 with sellp, evchyb and aijcusparse, in ms"""
    return [1e3 * grouped(f"first-h200 {column}", "matrix", "type")[matrix, kind] for kind in (*OURS, "aijcusparse")]


def of_aij(matrix, kind):
    """What the first product, that of a copy and a refresh take beyond a product, in products of AIJ"""
    median = lambda kind, column: grouped(f"first-host {column}", "matrix", "type")[matrix, kind]
    beyond = [median(kind, "first_s") - median(kind, "product_s"), median(kind, "copy_s"), median(kind, "refresh_s")]
    return [x / median("aij", "product_s") for x in beyond]


def first_host(matrix):
    return [1e6 * grouped("first-host product_s", "matrix", "type")[matrix, "aij"], *(x for kind in OURS for x in of_aij(matrix, kind))]


def first_host_most():
    matrices = {r["matrix"] for r in read("first-host")}
    return [len(matrices), *(max(of_aij(m, kind)[k] for m in matrices) for k in (1, 2) for kind in OURS)]


def few_products():
    """The longest that a matrix took with our types, over aij: an arrow after 12 products, and any other after 4 to 100"""
    rows = [r for r in read("few-products") if r["commit"] != "d69003d"]
    aij = {r["matrix"]: r for r in rows if r["type"] == "aij"}
    at = [k for k in rows[0] if k.startswith("us_")]
    worst = {m: max((float(r[k]) / float(aij[m][k]), k) for r in rows if r["matrix"] == m for k in at) for m in aij}
    arrow, k = worst.pop("arrow:100000")
    return [arrow, k[3:], max(worst.values())[0]]


def assembly(matrix, arrays):
    """Of aijcusparse, which was measured once, and of sellp, the best and the worst of two runs: preallocation in s, values and values with a product in ms"""
    values = []
    for column, unit in (("preallocation_s", 1), ("values_s", 1e3), ("values_product_s", 1e3)):
        times = {kind: [unit * x for x in get(f"assembly {column} {matrix} arrays={arrays} type={kind}")] for kind in ("aijcusparse", "sellp")}
        values += [max(times["aijcusparse"]), *ends(times["sellp"])]
    return values


# ---- solves


def solve(kind):
    """SNESSolve of Bratu 200^3 on one, two and four GPUs by peers, in s"""
    return [min(get(f"scaling solve_s program=bratu mode=strong ranks={n} n=200 type={kind}")) for n in (1, 2, 4)]


def gains(ranks, kind, column):
    """Speeds of a type's whole solves on the host, relative to aij's, by configuration"""
    at = grouped(f"solves {column} where=host ranks={ranks} timed=0", "config", "type")
    return [at[c, "aij"] / at[c, kind] for c, t in at if t == "aij"]


def aij_totals():
    """The whole program with aij on one process, in s, of each configuration"""
    return grouped("solves total_s where=host ranks=1 timed=0 type=aij", "config").values()


def krylov(query):
    """The iterations on one process and on two"""
    name, rest = query.split(" ", 1)
    return ["/".join(sorted({r["krylov"] for r in select(f"{name} krylov {rest} ranks={n}")[0]})) for n in (1, 2)]


@functools.lru_cache(None)
def by_ranks(name):
    """Whole solves: number of processes -> configuration -> type -> medians"""
    found = {1: {}, 2: {}}
    for (config, ranks, _, _), kinds in solvereport.load([str(ROOT / "docs/results" / f"{name}.csv")]).items():
        found[ranks][config] = kinds
    return found


def faster(name, ranks, kind, column="solve_gain", without=()):
    """Speeds of a type's whole solves, relative to the reference's, by configuration, where both converge"""
    return {c: types[kind][column] for c, types in by_ranks(name)[ranks].items() if c not in without and types.get(kind, {}).get(column)}


def on_epyc():
    """KSPSolve with our types on one process, the numbers of configurations, KSPSolve on two; how much faster the whole programs are, and the least of that"""
    one, two = ([mean(faster("solves-epyc", n, kind).values()) for kind in OURS] for n in (1, 2))
    totals = [faster("solves-epyc", n, kind, "gain").values() for n in (1, 2) for kind in OURS]
    return [*one, *(len(faster("solves-epyc", n, "sellp")) for n in (1, 2)), *two, *map(mean, totals), min(map(min, totals))]


def solves_again():
    """Of the last runs: on one and on two GPUs the number of configurations that aijcusparse solves, and how much faster KSPSolve is with our types; on one also in gamg"""
    means = lambda ranks: [len(faster("solves-h200", ranks, "sellp")), *(mean(faster("solves-h200", ranks, kind).values()) for kind in OURS)]
    return [*means(1), *(faster("solves-h200", 1, kind)["gamg"] for kind in OURS), *means(2)]


def totals_again():
    """Of the last runs without bratu: how much faster the totals are; in how many cases their medians are more than 1.03 times the reference's, of how many, and the largest"""
    found = [[list(faster("solves-h200", n, kind, "gain", without=["bratu"]).values()) for kind in OURS] for n in (1, 2)]
    ratios = [[1 / g for values in of_ranks for g in values] for of_ranks in found]
    counts = [n for values in ratios for n in (sum(v > 1.03 for v in values), len(values))]
    return [*(mean(values) for of_ranks in found for values in of_ranks), *counts, *map(max, ratios)]


def fastest_again():
    """Of the last runs on one GPU without bratu: how much the totals of a program with the same type differ in the median, in %; the ratios of the fastest, and how many are above 1.03"""
    times = {}
    for r in read("solves-h200"):
        if r["ranks"] == "1" and r["timed"] != "1" and not r["failed"] and r["config"] not in ("bratu", "stokes-2d"):
            times.setdefault((r["config"], r["type"]), []).append(float(r["total_s"]))
    ratios = [min(v) / min(times[c, "aijcusparse"]) for (c, t), v in times.items() if t in OURS]
    return [statistics.median(100 * (max(v) / min(v) - 1) for v in times.values()), *ends(ratios), sum(r > 1.03 for r in ratios)]


# ---- the papers, batches


@functools.lru_cache(None)
def formats(role):
    """Of the papers' matrices: on how many our types are the fastest or within 5 %, the mean ratio, and that of the matrices with node blocks and of the others"""
    found = Report(str(ROOT / "docs/results/paper"), "paper.md", charts=False).parts(["ours"])[role]["ours"]
    return [found[k] for k in ("good", "mean", "block_mean", "rest_mean") if k in found]


def single():
    """What single precision gains in the geometric mean, and the largest true residual at which CG stops"""
    at = {}
    for r in read("paper/h200-single"):
        at.setdefault((r["matrix"], r["type"]), []).append(r)
    pairs = [(at[m, "sellp"][0], rows) for (m, kind), rows in at.items() if "single" in kind]
    gain = mean(float(double["seconds"]) / float(rows[0]["seconds"]) for double, rows in pairs)
    return gain, max(min(float(r["true_residual"]) for r in rows) for _, rows in pairs)


def batched():
    """Of the largest batches of figure 5: batch over the block-diagonal aij, at least, over the loop, and the share of a copy's bandwidth of large ones"""
    rows = [r for r in batch.read(str(ROOT / "docs/results/batch.csv")) if r["figure"] == 5 and r["type"] == "batch" and r["over_aij"] > 0]
    rows = [r for r in rows if r["problems"] == max(x["problems"] for x in rows)]
    over, shares = [r["over_aij"] for r in rows], [r["share_of_copy"] for r in rows if r["bytes"] > 1e8]
    return [mean(over), min(over), min(r["over_loop"] for r in rows), 100 * min(shares)]


def batched_by_all():
    """The number of matrices of figure 5 on which all kernels ran with 10,000 problems"""
    return sum(c["batch"]["figure"] == 5 and c["batch"]["problems"] == 10000 for c in batch.cases(batch.read(str(ROOT / "docs/results/batch-10000.csv"))))


def batch_origins():
    """How many matrices of figure 5 are from files, and twins"""
    origins = {r["case"]: r["origin"] for r in batch.read(str(ROOT / "docs/results/batch.csv")) if r["figure"] == 5}
    return [sum(x == kind for x in origins.values()) for kind in ("file", "twin")]


# ---- logs, and the files themselves


def tests(log, section):
    """The tests that passed, of the section of a log that begins with this line"""
    return re.search(rf"^{re.escape(section)}.*?^(\d+) passed, \d+ failed", (ROOT / "docs/results" / log).read_text(), re.M | re.S)[1]


def core_checks():
    """The checks of the device core's tests in the last run: all of them, and the fewest and the most with another precision"""
    text = (ROOT / "docs/results/h200-core-tests.log").read_text().partition("# One H200, commit 3b441e0")[2]
    found = {name: int(n) for name, n in re.findall(r"^(\S+ \w+): (\d+) checks passed$", text, re.M)}
    return [found["cuda-core full"], *ends(n for name, n in found.items() if name.split()[0] in ("float", "double-int64", "complex", "complex-float"))]


def injected(what):
    """The allocations that failed on one rank of a GPU (0), or the phases (1), of each type"""
    text = (ROOT / "docs/results/h200-fuzz.log").read_text()
    return [re.search(rf"^{kind}, 1 rank: (\d+) allocations failed in (\d+) phases, 0 failed$", text, re.M)[1 + what] for kind in OURS]


def unnamed():
    """The number of CSV files of measurements that lack a column that names the commit, and of all"""
    files = [p.relative_to(ROOT / "docs/results").with_suffix("").as_posix() for p in (ROOT / "docs/results").rglob("*.csv") if p.name != "patterns.csv"]
    return sum("commit" not in read(name)[0] for name in files), len(files)


# ---- pages


def papers(target):
    Report(str(ROOT / "docs/results/paper"), str(target), charts=False).write(list(paper.EXPERIMENTS))


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
    return lambda: batch.page(batch.read(str(ROOT / "docs/results/batch.csv")), "batch.svg")


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


# ---- statements

NUMBER = r"([-+]?[0-9][0-9.,]*[0-9](?:e[-+]?[0-9]+)?|[0-9](?:e[-+]?[0-9]+)?)"


def statements():
    """(document, its text with {} for each number, the numbers) of numbers.txt"""
    document, text = None, re.sub(r"\n  +", " ", (pathlib.Path(__file__).parent / "numbers.txt").read_text().partition("\n== ")[2])
    for line in ("== " + text).splitlines():
        if line.startswith("== "):
            document = line[3:]
        elif line:
            values = []
            for formats_, expression in re.findall(r"\{([^\s{}]+) ([^}]+)\}", line):
                found, forms = eval(expression), formats_.split(",")
                found = list(found) if isinstance(found, (list, tuple)) else [found]
                values += [format(v, forms[min(k, len(forms) - 1)]) for k, v in enumerate(found)]
            yield document, re.sub(r"\{[^}]*\}", "{}", line), values


def main():
    wrong = number = 0
    texts = {}
    for document, template, values in statements():
        number += 1
        text = texts.setdefault(document, " ".join((ROOT / document).read_text().split()))
        found = re.search(NUMBER.join(map(re.escape, template.split("{}"))), text)
        if found and list(found.groups()) == values:
            continue
        wrong += 1
        if found:
            print(f"{document}: says '{found[0]}' where the CSV files give {', '.join(values)}")
        else:
            print(f"{document}: lacks '{template}': if the sentence has changed, change it in tests/numbers.txt")
    pages = compare_pages()
    print(f"{number} statements compared with docs/results, {wrong} wrong; {len(PAGES)} pages written again, {pages} differ")
    return wrong + pages > 0


if __name__ == "__main__":
    sys.exit(main())
