#!/usr/bin/env python3
"""Compares the numbers of README.md and docs with what was measured: checkdocs.py [-write] [folder of the repository]

results.txt lists the rows of docs/results/README.md, and numbers.txt for each document the sentences and table rows with numbers, by the functions below. A text must say what that page
says, or what the CSV files give, rounded as the format says. PAGES are written again from the CSV files, and each line must be the same; -write writes them. A row of the results is
marked if what it measures (SUBJECTS) was changed after the commit that its CSV file names.
"""

import contextlib
import csv
import fnmatch
import functools
import io
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path += [str(BENCH / folder) for folder in (".", "lib", "solves", "papers")]
import batch
import report
import solvereport
from published import TABLE_III
from results import mean, shortened
from tables import key

ARGUMENTS = [a for a in sys.argv[1:] if a != "-write"]
ROOT = pathlib.Path(ARGUMENTS[0] if ARGUMENTS else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parent.parent
OURS = ("sellp", "evchyb")
PAPER = ("sellp:-mat_spmv_kernel paper", "evchyb:-mat_spmv_kernel paper")
CG = ("aij cg none", "sellp cg none", "sellp devicecg none", "sellp devicecg jacobi")
OTHERS = ("aij bcgs", "sellp bcgs", "sellp devicebcgs", "aij chebyshev", "sellp chebyshev", "sellp devicechebyshev")
GAMG = ("stencil7:96", "fem27:40:3", "elasticity:39")
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
    both = [each(f"gamg {column} ranks=1 {matrix}", "aij", "sellp") for column in ("setup", "again")]
    return both[0] + both[1] + [get(f"gamg {column} ranks=1 {matrix} sellp")[0] for column in ("first", "second")]


def small_solves(name):
    """Lock step over devicebatch, of the test set's matrices: how many, mean, least"""
    us = {(r["case"], r["solver"]): float(r["us"]) for r in read(name)}
    ratios = [us[case, "bcgs"] / us[case, "devicebatch:bcgs"] for case, solver in us if solver == "bcgs" and case != "cells" and not case.startswith("dense")]
    return len(ratios), statistics.geometric_mean(ratios), min(ratios)


def spgemm(matrix, product, column):
    return [float(r[column]) for r in read("spgemm") if (r["matrix"], r["product"]) == (matrix, product)]


def spgemm_over():
    return [float(r["cusparse_numeric_ms"]) / float(r["numeric_ms"]) for r in read("spgemm")]


def count(name, column):
    return len({r[column] for r in read(name)})


def grouped(query, *columns):
    """Medians of repeated measurements: values of these columns -> median"""
    at, (rows, column) = {}, select(query)
    for r in rows:
        at.setdefault(tuple(r[c] for c in columns), []).append(float(r[column]))
    return {k: statistics.median(v) for k, v in at.items()}


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

    def ends(self, kind):
        return ends(v for v in (self.get(m, kind) for m in self.matrices) if v > 0)

    def mean(self, kind):
        return mean(v for v in (self.get(m, kind) for m in self.matrices) if v > 0)

    def refresh(self, kind, column):
        """Smallest and largest refresh, in products"""
        return ends(self.get(m, kind, column) / self.get(m, kind, "warm_s") for m in self.matrices if self.get(m, kind, column) > 0)


gpu, host = map(Products, ("h200", "host"))


MESH_KINDS = {"multigrid": "coarse: interpolation:", "classical": "classical", "blocks": "elastic velocity", "random": "random", "stokes": "taylor-hood", "scalar": "mesh:"}


def mesh_kind(matrix):
    """The first of which the matrix's name has a word"""
    return next((k for k, words in MESH_KINDS.items() if any(w in matrix for w in words.split())), None)


def spans(column):
    return [v for t in OURS for v in gpu.refresh(t, column)]


def bytes_of_row(kind):
    """Of the 7-point stencil, without x and y, each moved once"""
    return gpu.get("stencil7:200", kind, "bytes") / int(gpu.at["stencil7:200", kind]["rows"]) - 16


def product(kind):
    """Of Bratu 200^3 on one, two and four GPUs, us; ours by peers"""
    return [min(get(f"scaling product_us program=bench ranks={n} matrix=bratu:200 type={kind} halo={'peer' if n > 1 and kind in OURS else ''}")) for n in (1, 2, 4)]


def aware(query, ranks=2):
    """A row of the table: aijcusparse with both kinds of MPI, sellp with both, sellp's speed with the second kind; the same with devicecg"""
    column, *words = query.split()
    at = lambda kind, mpi: get(f"cuda-aware {column} mpi={mpi} ranks={ranks} type={kind} {' '.join(words)}")
    times = [at(t, m)[0] for t in ("aijcusparse", "sellp") for m in ("host", "CUDA-aware")]
    more = at("sellp:devicecg", "CUDA-aware")[:1]
    return [*times, times[1] / times[3], *more, *(times[1] / x for x in more)]


def over(file, others, kind=None, ours="sellp", column="warm_s", **where):
    """Time of the fastest of the others (patterns of types) over that of ours, geometric mean and smallest, of matrices of a kind, of rows with these values"""
    times = {}
    for r in read(file):
        if kind in (None, mesh_kind(r["matrix"]), "transposed") and ("^T" in r["matrix"]) == (kind == "transposed") and all(v in r[c] for c, v in where.items()):
            times.setdefault(r["matrix"], {})[r.get("variant") or r["type"]] = float(r[column])
    found = [min(s for t, s in at.items() if any(fnmatch.fnmatch(t, o) for o in others.split())) / min(at[t] for t in ours.split()) for at in times.values()]
    return [mean(found), min(found), len(found)]


def columns(k):
    return [x for m in ("stencil7:200", "fem27:60:3", "stencil7:32") for x in each(f"columns us {m} columns={k}", "aij product", "sellp loop", "sellp product")]


def offload():
    """How much faster KSPSolve is with -mat_spmv_replace"""
    ms = {tuple(r[c] for c in ("problem", "n", "way", "ranks", "matrix")): float(r["ms"]) for r in read("offload")}
    return [s / ms[(*what, "replaced")] for (*what, matrix), s in ms.items() if matrix == "aijcusparse"]


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
    at = grouped(f"solves-host {column} where=host ranks={ranks} timed=0", "config", "type")
    return [at[c, "aij"] / at[c, kind] for c, t in at if t == "aij"]


@functools.lru_cache(None)
def by_ranks(name):
    """Whole solves: number of processes -> configuration -> type -> medians"""
    found = {1: {}, 2: {}}
    for (config, ranks, _, _), kinds in solvereport.load(read(name)).items():
        found[ranks][config] = kinds
    return found


def faster(name, ranks, kind, column="solve_gain", without=()):
    """Speeds of a type's whole solves, relative to the reference's, by configuration, where both converge"""
    return {c: types[kind][column] for c, types in by_ranks(name)[ranks].items() if c not in without and types.get(kind, {}).get(column)}


# ---- the papers, batches


@functools.lru_cache(None)
def formats(role):
    """Of the papers' matrices: on how many our types are the fastest or within 5 %, the mean ratio, and that of the matrices with node blocks and of the others"""
    found = report.ours(report.tables(ROOT / "docs/results/paper", role))
    return [found[k] for k in ("good", "mean", *(("block_mean", "rest_mean") if found["blocks"] else ()), "least")]


def formats_least(role):
    return formats(role)[-1]


def sellp_paper():
    """The matrices of SELL-P's paper, and how much faster its kernel is on them than aijcusparse"""
    times = {(key(r["matrix"]), r["format"]): float(r["seconds"]) for r in read("paper/h200-all") if r["measurement"] == "matrices"}
    return len(TABLE_III), mean(times[m, "petsc:aijcusparse"] / times[m, "sellp-paper"] for m in TABLE_III)


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


def batch_count():
    return len({r["case"] for r in batch.read(str(ROOT / "docs/results/batch.csv")) if r["figure"] == 5})


# ---- the page of results

HOST, DEVICE = "src/core/*.c src/core/*.h", "src/core/cuda/{base,layout,product}"
SUBJECTS = {  # the folders of src that a CSV file measures
    "host": f"{HOST} src/mat/impls/sellp/rules.c", "columns-host": HOST, "first-host": HOST, "meshes-host": HOST, "solves-host": HOST, "host-matrices": HOST,
    **dict.fromkeys(("h200", "meshes-h200", "gamg-levels", "tiles", "peers", "columns", "h200-all", "h200-single", "batch"), DEVICE),
    **dict.fromkeys(("krylov", "krylov-2gpus", "krylov-gmres"), "src/core/cuda/{product,krylov} src/ksp/impls/device"),
    **dict.fromkeys(("scaling", "cuda-aware", "products-2gpus"), "src/core/cuda/{product,halo,krylov} src/mat/impls/spmv/cuda"),
    "solves-gamg": f"{DEVICE} src/core/cuda/{{amg,spgemm}} src/ksp/pc", "solves-h200": f"{DEVICE} src/core/cuda/{{krylov,amg}} src/ksp src/mat/impls/spmv/cuda", "first-h200": "src/core/cuda/layout src/mat/impls/spmv/cuda",
    "smallsolves-host": "src/core/batch", "gamg": "src/core/cuda/{amg,spgemm} src/ksp/pc", "spgemm": "src/core/cuda/spgemm", "assembly": "src/core/cuda/base src/mat/impls/spmv/cusparse", "offload": "src/mat/impls/spmv",
}  # fmt: skip


def older(name, commits):
    """Whether what a CSV file measures was changed after one of these commits; None if git does not know"""
    paths = [":(glob)" + p + ("" if "*" in p else "/**") for word in SUBJECTS[name].split() for p in spread(word)]
    changed = False
    for commit in commits:
        log = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%h", f"{re.match('[0-9a-f]*', commit)[0]}..HEAD", "--", *paths], capture_output=True, text=True, check=False)
        if log.returncode:
            return None
        changed = changed or bool(log.stdout)
    return changed


def spread(word):
    """a/{b,c} -> a/b, a/c"""
    head, brace, rest = word.partition("{")
    return [head + middle + rest.partition("}")[2] for middle in rest.partition("}")[0].split(",")] if brace else [word]


def rows():
    """The rows of results.txt, with their numbers"""
    for line in re.sub(r"\n  +", " ", (pathlib.Path(__file__).parent / "results.txt").read_text().partition("\n== ")[2]).splitlines()[1:]:
        if line:
            what, figure, worst, base, matrices, command, name = (c.strip() for c in line.split("|"))
            yield what, *map(filled, (figure, worst, base, matrices)), command, name


def commit_cell(what, name, commits):
    mark = older(name.rpartition("/")[2], commits)
    if mark is None:  # as the page has it
        mark = bool(re.search(rf"^\| {re.escape(what)} \|.*, older than its code \|", (ROOT / "docs/results/README.md").read_text(), re.M))
    return ", ".join(commits) + (", older than its code" if mark else "")


def results_page(target):
    lines = [(pathlib.Path(__file__).parent / "results.txt").read_text().partition("\n-- ")[2].partition("\n== ")[0].partition("\n")[2].strip(), "",
             "| what | figure | worst | over | matrices | machine, PETSc | commit | command | file |", "|" + "---|" * 9]  # fmt: skip
    for what, figure, worst, base, matrices, command, name in rows():
        measured = {c: sorted({r[c] for r in read(name) if r.get(c)}) for c in ("machine", "petsc", "commit")}
        commit = commit_cell(what, name, measured["commit"])
        lines.append(f"| {what} | {figure} | {worst} | {base} | {matrices} | {', '.join(measured['machine'])}; {', '.join(measured['petsc'])} | {commit} | {command} | [{name}.csv]({name}.csv) |")
    target.write_text("\n".join(lines) + "\n")


def page(what, column="figure"):
    """A cell of the page, as it is there"""
    names = ["what", "figure", "worst", "over", "matrices"]
    line = next(x for x in (ROOT / "docs/results/README.md").read_text().splitlines() if x.startswith(f"| {what} |"))
    return line.split(" | ")[names.index(column)].strip("| ")


def speed_chart(target):
    """Bars: how fast sellp, and the fastest of the others, are relative to aijcusparse and aij"""
    parts = [("one H200: over aijcusparse", "h200", "aijcusparse", ("sellp", "cuSPARSE's fastest"), "cusparse:*"), ("one core: over aij", "host", "aij", ("sellp", "the fastest of aij, sell, MKL"), "aij sell mkl")]
    out, y = [], 14
    for title, name, base, labels, others in parts:
        times = {}
        for r in read(name):
            times.setdefault(r["matrix"], {})[r["type"]] = float(r["warm_s"])
        out.append(f'<text x="4" y="{y}" font-weight="bold">{title}</text>')
        for k, (label, color) in enumerate(zip(labels, ("#1f77b4", "#bbbbbb"))):
            out.append(f'<rect x="{260 + 90 * k}" y="{y - 9}" width="10" height="10" fill="{color}"/><text x="{274 + 90 * k}" y="{y}">{label}</text>')
        for matrix, at in times.items():
            if matrix.endswith(".mtx") or "sellp" not in at:
                continue
            y += 26
            out.append(f'<text x="4" y="{y}">{matrix}</text>')
            speeds = at[base] / at["sellp"], at[base] / min(s for t, s in at.items() if any(fnmatch.fnmatch(t, o) for o in f"{base} {others}".split()))
            for k, (speed, color) in enumerate(zip(speeds, ("#1f77b4", "#bbbbbb"))):
                out.append(f'<rect x="130" y="{y - 12 + 10 * k}" width="{70 * speed:.0f}" height="9" fill="{color}"/><text x="{134 + 70 * speed:.0f}" y="{y - 4 + 10 * k}" font-size="9">{speed:.2f}</text>')
        y += 34
    body = "\n".join(out)
    target.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="650" height="{y - 8}" font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')


# ---- pages


def papers(target):
    report.write(ROOT / "docs/results/paper", str(target))


def batches(target):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        batch.page(batch.read(str(ROOT / "docs/results/paper/batch.csv")))
    target.write_text(shortened(printed.getvalue(), 5))


PAGES = {"README.md": results_page, "speed.svg": speed_chart, "paper.md": papers, "batch.md": batches}


def again(name):
    """The lines of a page, written again"""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        target = pathlib.Path(folder) / name
        PAGES[name](target)
        return target.read_text().splitlines()


def compare_pages():
    """The number of pages that are not what the CSV files give"""
    wrong = 0
    for name in PAGES:
        has, gives = (ROOT / "docs/results" / name).read_text().splitlines(), again(name)
        if "-write" in sys.argv and has != gives:
            (ROOT / "docs/results" / name).write_text("\n".join(gives) + "\n")
            has = gives
        differ = [k for k in range(max(len(has), len(gives))) if has[k : k + 1] != gives[k : k + 1]]
        if differ:
            line = differ[0]
            print(f"docs/results/{name}:{line + 1}: {len(differ)} lines are not what the CSV files give, the first:")
            print(f"  has   {''.join(has[line : line + 1])[:300]}\n  gives {''.join(gives[line : line + 1])[:300]}")
            wrong += 1
    return wrong


# ---- statements

NUMBER = r"([-+]?[0-9][0-9.,]*[0-9](?:e[-+]?[0-9]+)?|[0-9](?:e[-+]?[0-9]+)?)"


def numbers(text):
    """Of {FORMAT EXPRESSION}, as numbers.txt explains it"""
    values = []
    for formats_, expression in re.findall(r"\{([^\s{}]+) ([^}]+)\}", text):
        found, forms = eval(expression), formats_.split(",")
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        values += [format(v, forms[min(k, len(forms) - 1)]) for k, v in enumerate(found)]
    return values


def filled(text):
    left = iter(numbers(text))
    return re.sub(r"\{[^}]*\}", lambda _: next(left), text)


def statements():
    """(document, its text with {} for each number, the numbers) of numbers.txt"""
    document, text = None, re.sub(r"\n  +", " ", (pathlib.Path(__file__).parent / "numbers.txt").read_text().partition("\n== ")[2])
    for line in ("== " + text).splitlines():
        if line.startswith("== "):
            document = line[3:]
        elif line:
            yield document, re.sub(r"\{[^}]*\}", "{}", line), numbers(line)


def main():
    pages = compare_pages()
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
    print(f"{number} statements compared with docs/results, {wrong} wrong; {len(PAGES)} pages written again, {pages} differ")
    return wrong + pages > 0


if __name__ == "__main__":
    sys.exit(main())
