"""The EVC-HYB paper's figure 16: products and whole solves of the Bratu problem over MPI processes, a GPU each where there are GPUs. Measures, by order
of worth and until the time is up, and draws. Started by bench/scaling."""

import argparse
import csv
import glob
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import results

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = (
    "mode ranks n points_per_rank program matrix case entries type viewed halo repeat newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s "
    "products product_us block_us gflops solve_gflops ratio error"
).split()
TEXT = "mode program matrix case type viewed halo n repeat".split()
# EVC-HYB paper, figure 16: Bratu 200^3 on four nodes of a GPU each, GF/s of the products and of the whole SNESSolve
PAPER_N, PAPER_RANKS, PAPER = 200, 4, {"mpiaijcusp": (23.1, 8.3), "EVC-HYB": (37.4, 8.4)}
# What is measured, by order of worth
PARTS = {
    "products": "MatMult of -matrices (bench/bench), all types and transports of the halo in one process",
    "solve": "examples/bratu, halo by the first transport",
    "ex14": "PETSc's ex14, unmodified",
    "large": "MatMult of -large",
    "weak": "MatMult of -matrices, as many rows a process, and examples/bratu with as many points a process",
    "halos": "examples/bratu with the other transports",
    "ex14-products": "ex14 again, with the times of its parts on the GPU (-log_view_gpu_time)",
}
SHORTEST = 15  # seconds: with less left, no run begins
CUBES = ("bratu", "stencil7", "permuted7", "fem27")  # generators whose first number is the length of a cube's edge


def gpus():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")
    except (OSError, subprocess.CalledProcessError):
        return 0


def options():
    text = "parts, in the order in which they run:\n" + "".join(f"  {k:14} {v}\n" for k, v in PARTS.items())
    p = argparse.ArgumentParser(description=__doc__, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("-parts", type=words, default=list(PARTS), help="what to measure (all)")
    p.add_argument("-program", help="examples/bratu; by default the one of the latest build")
    p.add_argument("-bench", help="bench/bench; by default the one of the same build")
    p.add_argument("-ex14", help="PETSc's own SNES ex14, compiled; by default the one that the tests of the same build compiled, if any")
    p.add_argument("-lib", help="libpetscspmv.so, which ex14 loads; by default the one of the same build")
    p.add_argument("-ranks", type=lambda s: [int(w) for w in words(s)], help="numbers of processes (1,2,4,... up to the GPUs, else the cores)")
    p.add_argument("-n", type=int, default=PAPER_N, help=f"grid points of the Bratu problem in each direction ({PAPER_N})")
    p.add_argument("-matrices", type=words, help="matrices of the products, as bench/bench has them (bratu:<n>,fem27:68:3)")
    p.add_argument("-large", type=words, help="large ones (bratu:400 on GPUs, else none). bratu:400 takes 22 GB of the host's memory and 6 for each type and transport")
    p.add_argument("-types", type=words, help="matrix types (aijcusparse,sellp,evchyb, or without a GPU aij,...); the first is the reference")
    p.add_argument("-halo", type=words, help="values of -mat_spmv_halo, each measured with our types (peer,nccl,host,petsc on GPUs)")
    p.add_argument("-options", type=shlex.split, default=[], help="further options of the programs, as one word: -options='-ksp_norm_type natural'")
    p.add_argument("-reps", type=int, default=7, help="repetitions of bench/bench, of which the median counts (7)")
    p.add_argument("-repeat", type=int, default=1, help="runs of each; tables show the median (1)")
    p.add_argument("-timeout", type=int, default=300, help="seconds that one run may take (300)")
    p.add_argument("-limit", type=int, default=0, help="seconds in all: no run begins that cannot end, and the last is cut short (no limit)")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(HERE, "build", "results"), help="folder of the results (build/results)")
    p.add_argument("-measure", action="store_true", help="measure only: scaling.csv and the logs, no charts")
    p.add_argument("-report", metavar="CSV", nargs="+", help="measure nothing: tables and charts of these figures, beside the first")
    args = p.parse_args()
    wrong = [w for w in args.parts if w not in PARTS]
    if wrong:
        p.error(f"-parts: {wrong[0]} is none of {', '.join(PARTS)}")
    return args


# ---------------------------------------------------------------- running


class Runs:
    """What is to run where, how much time is left, and what came of it"""

    def __init__(self, args):
        self.args, self.begin, self.failed, self.cut = args, time.time(), 0, 0
        self.mpiexec = shlex.split(os.environ.get("MPIEXEC") or os.path.join(HERE, "tools", "mpiexec"))
        if not args.program:
            built = sorted(glob.glob(os.path.join(HERE, "build", "*", "examples", "bratu")), key=os.path.getmtime)
            args.program = built[-1] if built else ""
        folder = os.path.dirname(os.path.dirname(os.path.abspath(args.program)))
        args.bench = args.bench or os.path.join(folder, "bench", "bench")
        for program, name in ((args.program, "examples/bratu"), (args.bench, "bench/bench")):
            if not os.access(program, os.X_OK):
                sys.exit(f"scaling: no {name}: make programs, or name one with -program, -bench")
        args.ex14 = args.ex14 or next(iter(glob.glob(os.path.join(folder, "tests", "petsc", "snes-tutorials-ex14"))), None)
        args.lib = os.path.abspath(args.lib or os.environ.get("LIB") or os.path.join(folder, "lib", "libpetscspmv.so"))
        where = subprocess.run(self.mpiexec + ["-n", "1", args.bench, "-where"], capture_output=True, text=True, errors="replace").stdout
        self.devices = gpus() if "where:" in where and "where: host" not in where else 0
        count = self.devices or os.cpu_count()
        args.ranks = args.ranks or [r for r in (1, 2, 4, 8, 16, 32, 64) if r <= count]
        args.types = args.types or ["aijcusparse" if self.devices else "aij", "sellp", "evchyb"]
        args.matrices = args.matrices or [f"bratu:{args.n}", "fem27:68:3"]
        args.large = (["bratu:400"] if self.devices else []) if args.large is None else args.large
        args.halo = args.halo or (["peer", "nccl", "host", "petsc"] if self.devices else [])
        self.where = f"{self.devices} GPUs" if self.devices else f"{os.cpu_count()} cores"

    def halos(self, ranks):
        """Some need a GPU of its own for each process"""
        return [h for h in self.args.halo if ranks > 1 and (h not in ("peer", "nccl") or ranks <= self.devices)]

    def left(self):
        return self.args.limit - (time.time() - self.begin) if self.args.limit else 1e9

    def start(self, ranks, words):
        """Runs a program to its end or to the end of its time; what it printed, and whether it succeeded"""
        command = self.mpiexec + ["-n", str(ranks)] + words + self.args.options
        seconds, begin = min(self.args.timeout, self.left() - 5), time.time()
        print("+ " + shlex.join(command[len(self.mpiexec) - 1 :]), flush=True)
        with results.program(command) as p:
            try:
                text, late = p.communicate(timeout=seconds)[0], False
            except subprocess.TimeoutExpired:
                results.end(p)
                text, late = p.communicate()[0], True
        if late or p.returncode:
            print("".join("  " + line[:300] + "\n" for line in text.splitlines()[-25:]), end="")
            print(f"  FAILED: not done after {seconds:.0f} s" if late else f"  FAILED: exit status {p.returncode}", flush=True)
        else:
            print(f"  {time.time() - begin:.0f} s", flush=True)
        return text, not late and p.returncode == 0

    def logged(self, ranks, words):
        """start() with -log_view; what was printed and its log by stages, or None. All logs are kept in a file"""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            text, right = self.start(ranks, words + ["-log_view", ":" + log])
            if not right or not os.path.exists(log):
                return None
            with open(log, errors="replace") as f:
                self.kept.write(f"\n==== {ranks} processes: {shlex.join(words)}\n" + f.read())
            return text, log_view(log)

    # Each of the following makes rows: (columns, whether all went well)

    def products(self, ranks, matrices, mode):
        """One row a matrix, type and transport; case: the matrix that one process has"""
        types = list(self.args.types)
        if self.halos(ranks):
            types = [f"{t}:-mat_spmv_halo {h}" if ours(t) else t for t in types for h in (self.halos(ranks) if ours(t) else [""])]
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "csv")
            names = {scaled(m, ranks) if mode == "weak" else m: m for m in matrices}
            words = [self.args.bench, "-matrices", ",".join(names), "-types", ",".join(types), "-reps", str(self.args.reps)]
            text, right = self.start(ranks, words + ["-cold", "0", "-refresh", "0", "-csv", target])
            rows = []
            if os.path.exists(target):  # what there is, if the time was up
                with open(target, newline="") as f:
                    for r in csv.DictReader(f):
                        if None in r.values():  # a line that was not written to its end
                            continue
                        kind, _, option = r["type"].partition(":")
                        seconds, count = float(r["warm_s"]), int(r["rows"])
                        row = dict(mode=mode, program="bench", matrix=r["matrix"], case=names[r["matrix"]], entries=r["entries"], type=kind, viewed=r["viewed"])
                        row.update(halo=option.rpartition(" ")[2], product_us=f"{1e6 * seconds:.6g}", gflops=f"{2e-9 * float(r['entries']) / seconds:.5g}")
                        row.update(points_per_rank=count // ranks, ratio=r["warm_ratio"], error=r["error"])
                        rows.append(row)
        if right:
            print("".join("  " + line + "\n" for line in text.partition("\nspeed relative")[0].splitlines() if line), end="", flush=True)
        return rows, right

    def bratu(self, ranks, n, types, halo, mode):
        """One row a type"""
        words = [self.args.program, "-n", str(n), "-types", ",".join(types)] + (["-mat_spmv_halo", halo] if halo else [])
        result = self.logged(ranks, words)
        if not result:
            return [], False
        text, log = result
        keys = "type viewed newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s products _ product_us block_us gflops".split()
        rows = []
        for line in text.splitlines():
            w = line.split()
            if len(w) < len(keys) + 1 or not (w[2].isdigit() and w[3].isdigit()):
                continue
            row = dict(zip(keys, w), program="bratu", mode=mode, case=f"bratu:{self.args.n}", n=n, points_per_rank=n**3 // ranks, halo=halo if ours(w[0]) else "")
            mflops = log.get(f"{len(rows)}: {w[0]}", {}).get("SNESSolve", (0, 0, None))[2]
            row["solve_gflops"] = mflops / 1e3 if mflops else ""
            rows.append(row)
            print("  " + line, flush=True)
        if not rows:
            print(text + "  FAILED: no table in the output", flush=True)
        return rows, bool(rows)

    def ex14(self, ranks, n, kind, halo, timed):
        """One row. On a GPU its parts are known only to a run of its own, timed, whose every event waits for the GPU"""
        words = [self.args.ex14, "-ksp_type", "cg", "-pc_type", "none", "-mat_type", kind, "-snes_converged_reason", "-ksp_converged_reason"]
        words += [w for d in "xyz" for w in (f"-da_grid_{d}", str(n))] + (["-dm_vec_type", "cuda"] if self.devices else [])
        words += (["-dll_append", self.args.lib] if ours(kind) else []) + (["-mat_spmv_halo", halo] if halo else []) + (["-log_view_gpu_time"] if timed else [])
        result = self.logged(ranks, words)
        if not result:
            return [], False
        text, log = result
        event = lambda name: next((s[name] for s in log.values() if name in s), (0, None, None))
        times = lambda value, by: "" if value is None else f"{value * by:.6g}"
        count, seconds, mflops = event("MatMult")
        row = dict(mode="strong", program="ex14", case=f"bratu:{n}", type=kind, viewed=kind, halo=halo, n=n, points_per_rank=n**3 // ranks)
        if timed or not self.devices:
            row.update(products=count, product_us=times(seconds, 1e6 / max(count, 1)), gflops=times(mflops, 1e-3))
            row.update(function_s=times(event("SNESFunctionEval")[1], 1), jacobian_s=times(event("SNESJacobianEval")[1], 1))
        if not timed:
            norm = re.search(r"fnorm ([-+.\deE]+)", text)
            row["fnorm"] = norm[1].rstrip(".") if norm else ""
            row["newton"] = sum(int(i) for i in re.findall(r"Nonlinear solve converged .* iterations (\d+)", text))
            row["krylov"] = sum(int(i) for i in re.findall(r"Linear solve converged .* iterations (\d+)", text))
            row["solve_gflops"] = times(event("SNESSolve")[2], 1e-3)
            row.update(solve_s=times(event("SNESSolve")[1], 1), ksp_s=times(event("KSPSolve")[1], 1))
        print("  " + " ".join(f"{k}={row[k]}" for k in ("type", "newton", "krylov", "fnorm", "solve_s", "ksp_s", "product_us") if row.get(k)), flush=True)
        return [row], True

    def jobs(self, part):
        """(processes, what to call) of a part"""
        a = self.args
        first = lambda ranks: (self.halos(ranks) or [""])[0]
        if part == "products":
            return [(r, lambda r=r: self.products(r, a.matrices, "strong")) for r in a.ranks]
        if part == "solve":
            return [(r, lambda r=r: self.bratu(r, a.n, a.types, first(r), "strong")) for r in a.ranks]
        if part == "ex14" or (part == "ex14-products" and self.devices):
            return [(r, lambda r=r, t=t: self.ex14(r, a.n, t, first(r) if ours(t) else "", part != "ex14")) for r in a.ranks for t in a.types if a.ex14]
        if part == "large":
            return [(r, lambda r=r: self.products(r, a.large, "strong")) for r in sorted(a.ranks, reverse=True) if a.large]
        if part == "weak":
            scale = [m for m in a.matrices if scaled(m, 8)]
            jobs = [(r, lambda r=r: self.products(r, scale, "weak")) for r in a.ranks if r > 1 and scale]
            return jobs + [(r, lambda r=r: self.bratu(r, edge(a.n, r), a.types, first(r), "weak")) for r in a.ranks if r > 1]
        if part == "halos":
            others = [t for t in a.types if ours(t)]  # PETSc's own types know one transport
            return [(r, lambda r=r, h=h: self.bratu(r, a.n, others, h, "strong")) for r in a.ranks for h in self.halos(r)[1:] if others]
        return []

    def run(self, target):
        a = self.args
        print(f"{a.program}, {self.where}, processes {a.ranks}, {', '.join(a.parts)}")
        if not a.ex14:
            print("no ex14: name one with -ex14")
        os.makedirs(a.out, exist_ok=True)
        with results.whole(target, newline="") as f, results.whole(os.path.join(a.out, "scaling-log_view.txt")) as self.kept:
            out = csv.DictWriter(f, COLUMNS, restval="", extrasaction="ignore")
            out.writeheader()
            for repeat in range(a.repeat):
                for part in (p for p in PARTS if p in a.parts):
                    for ranks, call in self.jobs(part):
                        if self.left() < SHORTEST:
                            self.cut += 1
                            continue
                        rows, right = call()
                        self.failed += not right
                        for row in rows:
                            out.writerow(dict(row, ranks=ranks, repeat=repeat))
                        f.flush()
        if self.cut:
            print(f"{self.cut} runs were not begun: the limit of {a.limit} s")


def ours(kind):
    return not kind.startswith("aij")


def edge(n, ranks):
    return round(n * ranks ** (1 / 3))


def scaled(matrix, ranks):
    """The matrix of the same kind with about as many rows for each process, None where that is unknown"""
    name, _, arguments = matrix.partition(":")
    first, colon, rest = arguments.partition(":")
    return f"{name}:{edge(int(first), ranks)}{colon}{rest}" if name in CUBES and first.isdigit() else None


def log_view(path):
    """Stage by stage: event -> (count, seconds, Mflop/s of all processes), None where PETSc does not know what the GPU took"""
    number = lambda w: None if w == "n/a" else float(w)
    stages, name = {}, None
    with open(path, errors="replace") as f:
        for line in f:
            m = re.match(r"--- Event Stage \d+: (.*)", line)
            w = line.split()
            if m:
                name = m[1].strip()
            elif name and len(w) >= 21 and w[1].isdigit():
                try:
                    stages.setdefault(name, {})[w[0]] = (int(w[1]), number(w[3]), number(w[20]))
                except ValueError:  # a column ran into its neighbour
                    pass
    return stages


# ---------------------------------------------------------------- reporting


def load(paths):
    """mode -> list of rows with numbers, medians over the repeats, sorted by program, case, type, halo, ranks"""
    groups, rows = {}, []
    for path in paths:
        with open(path, newline="") as f:
            rows += list(csv.DictReader(f))
    grown = {(r["mode"], r["program"], r["case"]) for r in rows if r["mode"] == "weak"}
    for r in rows:
        # one process is where both begin
        for mode in ("strong", "weak"):
            if mode == r["mode"] or (r["ranks"] == "1" and (mode, r["program"], r["case"]) in grown):
                groups.setdefault((mode, *series(r), int(r["ranks"])), []).append(r)
    result = {mode: [] for mode in ("strong", "weak") if any(k[0] == mode for k in groups)}
    place = {}
    for r in rows:
        for c in ("program", "case", "type", "halo"):
            place.setdefault((c, r[c]), len(place))
    place["halo", ""] = -1
    order = lambda k: (place["program", k[1]], place["case", k[2]], place["type", k[3]], place["halo", k[4]], k[5])
    for key in sorted(groups, key=order):
        same = groups[key]
        row = {c: same[0][c] for c in TEXT} | {"ranks": key[-1]}
        for c in COLUMNS:
            if c not in row:
                values = [float(r[c]) for r in same if r[c] not in ("", None)]
                row[c] = statistics.median(values) if values else None
        row["exposed_us"] = row["product_us"] - row["block_us"] if None not in (row["product_us"], row["block_us"]) and row["ranks"] > 1 else None
        result[key[0]].append(row)
    for mode, group in result.items():
        for row in group:
            ranks, first = row["ranks"], [r for r in group if r["ranks"] == 1 and series(r)[:-1] == series(row)[:-1]]
            known = first and first[0]["product_us"] and row["product_us"]
            # the work of a process, by which a weak one's edge, an integer, may miss
            work = row["entries"] / ranks / first[0]["entries"] if known and row["entries"] else (1 / ranks if mode == "strong" else 1)
            row["efficiency"] = 100 * first[0]["product_us"] * work / row["product_us"] if known else None
    return result


def series(row):
    """What the figures of one line have in common; at the end the transport, which one process has not"""
    return row["program"], row["case"], row["type"], row["halo"]


def show(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def table(f, head, rows):
    f.write("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n" + "".join("| " + " | ".join(r) + " |\n" for r in rows) + "\n")


def figure16(f, data):
    """The paper's figures and ours, GF/s and in brackets the gain on the reference and the transport of the halo"""
    rows = [r for r in data.get("strong", []) if r["program"] != "bench" and int(r["n"]) == PAPER_N]
    if not rows:
        return
    types = list(dict.fromkeys(r["type"] for r in rows))
    gain = lambda value, base, halo="": show(value, 1) + (f" ({', '.join(w for w in (format(value / base, '.2f') if base else '', halo) if w)})" if value and (base or halo) else "")
    (base, solve), (product, whole) = PAPER.values()
    paper = {types[0]: (show(base, 1), show(solve, 1)), "evchyb": (gain(product, base), gain(whole, solve))}
    lines = [["the paper", str(PAPER_RANKS)] + [paper.get(t, ("", ""))[k] for k in (0, 1) for t in types]]
    for program, ranks in sorted({(r["program"], r["ranks"]) for r in rows}):
        best, line = {}, []
        for r in rows:
            if (r["program"], r["ranks"]) == (program, ranks):  # by the first transport, which is the best one
                best.setdefault(r["type"], r)
        for column in ("gflops", "solve_gflops"):
            reference = best.get(types[0], {}).get(column)
            line += [show(best.get(t, {}).get(column), 1) if t == types[0] else gain(best.get(t, {}).get(column), reference, best.get(t, {}).get("halo", "")) for t in types]
        lines.append([{"bratu": "examples/bratu", "ex14": "PETSc's ex14"}[program], str(ranks)] + line)
    f.write(f"\n## Figure 16: Bratu {PAPER_N}^3\n\nGF/s of the products and of the whole SNESSolve, and the gain on {types[0]} (the paper: {next(iter(PAPER))}).\n")
    if any(r["halo"] for r in rows):
        f.write("Behind a gain the transport of the halo (-mat_spmv_halo): the first of peer, nccl, host, petsc that was measured, so compare only figures of one transport.\n")
    f.write("\n")
    table(f, ["", "processes"] + [f"MatMult, {t}" for t in types] + [f"SNESSolve, {t}" for t in types], lines)


def product_tables(f, data):
    for mode, rows in data.items():
        rows = [r for r in rows if r["program"] == "bench"]
        if not rows:
            continue
        ranks, lines = sorted({r["ranks"] for r in rows}), []
        for name, line in lines_of(rows).items():
            mine = {r["ranks"]: r for r in line}
            cell = lambda column, digits: [show(mine.get(r, {}).get(column), digits) for r in ranks]
            wrong = any(not (r["error"] is not None and r["error"] <= 1) for r in mine.values())
            matrix = name[1] if mode == "strong" else ", ".join(r["matrix"] for r in line)
            lines.append([matrix, name[2] + (" **WRONG**" if wrong else ""), name[3]] + cell("product_us", 1) + cell("gflops", 0) + cell("ratio", 2))
            lines[-1] += [c for c, r in zip(cell("efficiency", 0), ranks) if r > 1]
        reference = rows[0]["type"]
        f.write(f"\n## Products, {mode}\n\nMicroseconds, GF/s, speed relative to {reference} in the same process, efficiency in % against one process.\n\n")
        head = [f"{what}, {r}" for what in ("us", "GF/s", f"x {reference}") for r in ranks] + [f"eff., {r}" for r in ranks if r > 1]
        table(f, ["matrix", "type", "halo"] + head, lines)


def solve_tables(f, data):
    for mode, rows in data.items():
        rows = [r for r in rows if r["program"] != "bench"]
        if not rows:
            continue
        f.write(f"\n## The Bratu problem, {mode}\n\n")
        f.write("us/block: the product with the diagonal block alone; exposed: what a whole product takes beyond that, the part of the halo and of the\n")
        f.write("off-diagonal block that is not hidden. Efficiency is that of the product, against one process.\n\n")
        lines = []
        for r in rows:
            cells = [r["program"], r["type"], r["halo"], str(r["ranks"]), r["n"], show(r["newton"], 0), show(r["krylov"], 0)]
            cells += [show(r[c], d) for c, d in (("product_us", 1), ("block_us", 1), ("exposed_us", 1), ("efficiency", 0), ("gflops", 1), ("function_s", 3))]
            lines.append(cells + [show(r[c], d) for c, d in (("jacobian_s", 3), ("ksp_s", 3), ("solve_s", 3), ("solve_gflops", 1))])
        head = "program, type, halo, processes, n, Newton, Krylov, us/product, us/block, exposed, efficiency %, GF/s, function s, Jacobian s, KSPSolve s, SNESSolve s, SNESSolve GF/s"
        table(f, head.split(", "), lines)


def markdown(data, target):
    with results.whole(target) as f:
        f.write("# Scaling\n\nA GPU (or a core) a process.\n")
        if any(r["type"] == "aijcusparse" and r["ranks"] > 1 for rows in data.values() for r in rows):
            f.write("aijcusparse exchanges its halo through MPI, by way of the host unless MPI is CUDA-aware; with a CUDA-aware MPI it is faster.\n")
        figure16(f, data)
        product_tables(f, data)
        solve_tables(f, data)


def lines_of(rows):
    """series -> rows by ranks; one process has no halo and begins every line"""
    names = list(dict.fromkeys(series(r) for r in rows))
    names = [x for x in names if x[-1] or not any(x[:-1] == y[:-1] and y[-1] for y in names)]
    return {x: list({r["ranks"]: r for r in rows if series(r)[:-1] == x[:-1] and (r["halo"] == x[-1] or r["ranks"] == 1)}.values()) for x in names}


def axis(ax, ranks, label, title):
    ax.set(xscale="log", xlabel="processes", ylabel=label, title=title)
    ax.set_xticks(ranks, [str(r) for r in ranks])
    ax.minorticks_off()


def product_chart(plt, data, target):
    """Time of a product and speed relative to the reference; a column a matrix"""
    data = {mode: [r for r in rows if r["program"] == "bench"] for mode, rows in data.items()}
    data = {mode: rows for mode, rows in data.items() if rows}
    if not data:
        return
    cases = list(dict.fromkeys(r["case"] for rows in data.values() for r in rows))
    types, halos = (list(dict.fromkeys(r[c] for rows in data.values() for r in rows)) for c in ("type", "halo"))
    fig, axes = plt.subplots(2 * len(data), len(cases), figsize=(4.5 * len(cases) + 2, 6 * len(data)), squeeze=False)
    for k, (mode, rows) in enumerate(data.items()):
        for column, case in enumerate(cases):
            pair, mine = axes[2 * k : 2 * k + 2, column], [r for r in rows if r["case"] == case]
            if not mine:
                for ax in pair:
                    ax.axis("off")
                continue
            for name, line in lines_of(mine).items():
                style = dict(color=f"C{halos.index(name[3])}", marker="osD^v"[types.index(name[2]) % 5], linestyle=("-", "-", "--")[types.index(name[2]) % 3])
                for ax, value in zip(pair, ("product_us", "ratio")):
                    ax.plot([r["ranks"] for r in line], [r[value] for r in line], label=" ".join(w for w in name[2:] if w), fillstyle="none", **style)
                if line[0]["ranks"] == 1 and len(line) > 1:
                    ideal = [line[0]["product_us"] / (r["ranks"] if mode == "strong" else 1) for r in line]
                    pair[0].plot([r["ranks"] for r in line], ideal, ":", linewidth=0.8, color=style["color"])
            ranks = sorted({r["ranks"] for r in mine})
            axis(pair[0], ranks, "time per product [us]", f"{case}, {mode}")
            axis(pair[1], ranks, f"speed relative to {rows[0]['type']}", "")
            pair[0].set_yscale("log")
            pair[1].set_ylim(bottom=0)
        legend = {text: handle for ax in axes[2 * k] for handle, text in zip(*ax.get_legend_handles_labels())}
        axes[2 * k][-1].legend(legend.values(), legend.keys(), loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        axes[2 * k][0].annotate("dotted: ideal", (0.02, 0.02), xycoords="axes fraction", fontsize="x-small")
    fig.tight_layout()
    results.chart(fig, target)


def solve_chart(plt, data, target):
    data = {mode: [r for r in rows if r["program"] != "bench"] for mode, rows in data.items()}
    data = {mode: rows for mode, rows in data.items() if rows}
    if not data:
        return
    panels = [("product_us", "time per product [us]"), ("gflops", "products [GF/s]"), ("solve_s", "SNESSolve [s]"), ("solve_gflops", "SNESSolve [GF/s]")]
    fig, axes = plt.subplots(len(data), len(panels), figsize=(4.5 * len(panels), 4 * len(data)), squeeze=False)
    for line, (mode, rows) in zip(axes, data.items()):
        lines, every = lines_of(rows), sorted({r["ranks"] for r in rows})
        for ax, (column, label) in zip(line, panels):
            for k, (name, whole) in enumerate(lines.items()):
                mine = [r for r in whole if r[column] is not None]
                legend = " ".join(w for w in (*name[2:], "(ex14)" if name[0] == "ex14" else "") if w)
                ax.plot([r["ranks"] for r in mine], [r[column] for r in mine], "s--" if name[0] == "ex14" else "o-", color=f"C{k % 10}", label=legend)
                block = [r for r in mine if r["block_us"] is not None]
                if column == "product_us" and block:
                    ax.plot([r["ranks"] for r in block], [r["block_us"] for r in block], ":", color=f"C{k % 10}", linewidth=0.8)
            which = {"gflops": 0, "solve_gflops": 1}.get(column)
            if which is not None and mode == "strong":
                for (name, values), marker in zip(PAPER.items(), "x+"):
                    ax.plot([PAPER_RANKS], [values[which]], marker, color="black", label=f"{name}, paper")
                every = sorted({*every, PAPER_RANKS})
            axis(ax, every, label, mode)
            ax.set_yscale("log")
        line[-1].legend(*line[-1].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        line[0].annotate("dotted: diagonal block alone", (0.02, 0.02), xycoords="axes fraction", fontsize="x-small")
    fig.tight_layout()
    results.chart(fig, target)


def charts(data, stem):
    try:
        import matplotlib
    except ImportError:
        print("scaling: no matplotlib, so no charts; bench/scaling -report draws them from the .csv elsewhere")
        return []
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    targets = [stem + ".svg", stem + "-solves.svg"]
    for draw, target in zip((product_chart, solve_chart), targets):
        draw(plt, data, target)
    return [t for t in targets if os.path.exists(t)]


def main():
    args = options()
    targets = args.report or [os.path.join(args.out, "scaling.csv")]
    runs = None if args.report else Runs(args)
    if runs:
        runs.run(targets[0])
    data = load(targets)
    if not data:
        sys.exit("scaling: no figures")
    stem = os.path.splitext(targets[0])[0]
    markdown(data, stem + ".md")
    drawn = [] if args.measure else charts(data, stem)
    print(open(stem + ".md").read())
    print(", ".join([stem + ".csv", stem + ".md", *drawn]))
    sys.exit(1 if runs and (runs.failed or runs.cut) else 0)


if __name__ == "__main__":
    results.run(main, "bench/scaling")
