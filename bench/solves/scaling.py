#!/usr/bin/env -S python3 -B
"""The EVC-HYB paper's figure 16: products and complete solves of the Bratu problem by the number of MPI processes, each with its own GPU if there are GPUs.
Measures, most important first, until the time is up, and writes <out>/scaling.csv and a table (.md). For example, after `make programs`

  scaling.py                                                  # this machine: its GPUs, or its cores
  scaling.py -ranks 1,2,4 -parts products,solve -halo nccl,host
  scaling.py -ranks 1,2 -n 60 -matrices bratu:60,fem27:12:3   # small
  scaling.py -report a/scaling.csv b/scaling.csv              # the table of several runs
"""

import argparse
import csv
import glob
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import results
from results import ours

COLUMNS = (
    "mode ranks n points_per_rank program matrix case entries type viewed halo repeat newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s "
    "products product_us block_us gflops ratio error"
).split()
PAPER_N = 200
PAPER = "EVC-HYB paper, figure 16: Bratu 200^3 on four GPUs, GF/s of products: mpiaijcusp 23.1, EVC-HYB 37.4."

# The measurements, most important first
PARTS = {
    "products": "MatMult of -matrices (bench/products/bench), all types and transports of the halo in one process",
    "solve": "examples/bratu, halo by the first transport",
    "weak": "MatMult of -matrices, as many rows a process",
}
SHORTEST = 15  # seconds: with less time left, no run begins
CUBES = ("bratu", "stencil7", "fem27")  # generators whose first number is the length of a cube's edge


def options():
    text = "parts, in the order in which they run:\n" + "".join(f"  {k:14} {v}\n" for k, v in PARTS.items())
    p = argparse.ArgumentParser(description=__doc__, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("-parts", type=words, default=list(PARTS), help="what to measure (all)")
    p.add_argument("-program", help="examples/bratu; by default the one of the latest build")
    p.add_argument("-bench", help="bench/products/bench; by default the one of the same build")
    p.add_argument("-ranks", type=lambda s: [int(w) for w in words(s)], help="numbers of processes (1,2,4,... up to the GPUs, else the cores)")
    p.add_argument("-n", type=int, default=PAPER_N, help=f"grid points of the Bratu problem in each direction ({PAPER_N})")
    p.add_argument("-matrices", type=words, help="matrices of the products, as bench/products/bench has them (bratu:<n>,fem27:68:3)")
    p.add_argument("-types", type=words,
                   help="matrix types (aijcusparse,sellp,evchyb,sellp:devicecg, or without a GPU aij,sellp,evchyb); the first is the reference. A KSP type "
                   "may follow, for solves")  # fmt: skip
    p.add_argument("-halo", type=words, help="values of -mat_spmv_halo, each measured with our types (peer,nccl,host,petsc on GPUs)")
    p.add_argument("-options", type=shlex.split, default=[], help="further options of the programs, as one word: -options='-ksp_norm_type natural'")
    p.add_argument("-reps", type=int, default=7, help="repetitions of bench/products/bench, of which the median counts (7)")
    p.add_argument("-repeat", type=int, default=1, help="runs of each; tables show the median (1)")
    p.add_argument("-timeout", type=int, default=300, help="seconds that one run may take (300)")
    p.add_argument("-limit", type=int, default=0, help="seconds in all: no run begins that cannot end, and the last is cut short (no limit)")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(results.ROOT, "build", "results"), help="folder of the results (build/results)")
    p.add_argument("-report", metavar="CSV", nargs="+", help="measure nothing: the table of these files, next to the first")
    args = p.parse_args()
    wrong = [w for w in args.parts if w not in PARTS]
    if wrong:
        p.error(f"-parts: {wrong[0]} is none of {', '.join(PARTS)}")
    return args


# ---------------------------------------------------------------- running


class Runs(results.Runs):
    """The runs and their location, the remaining time, and the results"""

    def __init__(self, args):
        super().__init__(args)
        if not args.program:
            built = sorted(glob.glob(os.path.join(results.ROOT, "build", "*", "examples", "bratu")), key=os.path.getmtime)
            args.program = built[-1] if built else ""
        folder = os.path.dirname(os.path.dirname(os.path.abspath(args.program)))
        args.bench = args.bench or os.path.join(folder, "bench", "bench")
        for program, name in ((args.program, "examples/bratu"), (args.bench, "bench/products/bench")):
            if not os.access(program, os.X_OK):
                sys.exit(f"scaling: no {name}: make programs, or name one with -program, -bench")
        where = subprocess.run(self.mpiexec + ["-n", "1", args.bench, "-where"], capture_output=True, text=True, errors="replace").stdout
        self.devices = results.gpus() if "where:" in where and "where: host" not in where else 0
        count = self.devices or os.cpu_count()
        args.ranks = args.ranks or [r for r in (1, 2, 4, 8, 16, 32, 64) if r <= count]
        args.types = args.types or (["aijcusparse", "sellp", "evchyb", "sellp:devicecg"] if self.devices else ["aij", "sellp", "evchyb"])
        args.matrices = args.matrices or [f"bratu:{args.n}", "fem27:68:3"]
        args.halo = args.halo or (["peer", "nccl", "host", "petsc"] if self.devices else [])

    def halos(self, ranks):
        """Some transports need one GPU per process"""
        return [h for h in self.args.halo if ranks > 1 and (h not in ("peer", "nccl") or ranks <= self.devices)]

    def start(self, ranks, words):
        return results.finish(self.mpiexec, ["-n", str(ranks)] + words + self.args.options, min(self.args.timeout, self.left() - 5))

    # Each of the following functions returns rows: (columns, whether everything succeeded)

    def products(self, ranks, matrices, mode):
        """One row per matrix, type and transport; case: the matrix for one process"""
        types = [t for t in self.args.types if t.partition(":")[2][:1] in ("", "-")]
        if self.halos(ranks):
            types = [f"{t}:-mat_spmv_halo {h}" if ours(t) else t for t in types for h in (self.halos(ranks) if ours(t) else [""])]
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "csv")
            names = {scaled(m, ranks) if mode == "weak" else m: m for m in matrices}
            words = [self.args.bench, "-matrices", ",".join(names), "-types", ",".join(types), "-reps", str(self.args.reps)]
            text, right = self.start(ranks, words + ["-cold", "0", "-refresh", "0", "-csv", target])
            rows = []
            if os.path.exists(target):  # the file may be incomplete if the time was up
                with open(target, newline="") as f:
                    for r in csv.DictReader(f):
                        if None in r.values():  # an incomplete line
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

    def bratu(self, ranks):
        """One row per type"""
        n, halo = self.args.n, (self.halos(ranks) or [""])[0]
        words = [self.args.program, "-n", str(n), "-types", ",".join(self.args.types)] + (["-mat_spmv_halo", halo] if halo else [])
        text, right = self.start(ranks, words)
        keys = "type viewed newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s products _ product_us block_us gflops".split()
        rows = []
        for line in text.splitlines():
            w = line.split()
            if len(w) < len(keys) + 1 or not (w[2].isdigit() and w[3].isdigit()):
                continue
            row = dict(zip(keys, w), program="bratu", mode="strong", case=f"bratu:{n}", n=n)
            row.update(points_per_rank=n**3 // ranks, halo=halo if ours(w[0]) else "")
            rows.append(row)
            print("  " + line, flush=True)
        if right and not rows:
            print(text + "  FAILED: no table in the output", flush=True)
        return rows, right and bool(rows)

    def jobs(self, part):
        """The (processes, function to call) of a part"""
        a = self.args
        if part == "solve":
            return [(r, lambda r=r: self.bratu(r)) for r in a.ranks]
        if part == "weak":
            scale = [m for m in a.matrices if scaled(m, 8)]
            return [(r, lambda r=r: self.products(r, scale, "weak")) for r in a.ranks if r > 1 and scale]
        return [(r, lambda r=r: self.products(r, a.matrices, "strong")) for r in a.ranks]

    def run(self, target):
        a = self.args
        print(f"{a.program}, {self.where(self.devices)}, processes {a.ranks}, {', '.join(a.parts)}")
        os.makedirs(a.out, exist_ok=True)
        with results.whole(target, newline="") as f:
            source = results.source(results.gpu_name() if self.devices else "")
            out = csv.DictWriter(f, [*COLUMNS, *source], restval="", extrasaction="ignore")
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
                            out.writerow(dict(row, ranks=ranks, repeat=repeat, **source))
                        f.flush()
        if self.cut:
            print(f"{self.cut} runs were not begun: the limit of {a.limit} s")


def scaled(matrix, ranks):
    """The matrix of the same kind with about the same number of rows per process, or None if that is unknown"""
    name, _, arguments = matrix.partition(":")
    first, colon, rest = arguments.partition(":")
    return f"{name}:{round(int(first) * ranks ** (1 / 3))}{colon}{rest}" if name in CUBES and first.isdigit() else None


def report(f, rows):
    """A line for each program, matrix, type and transport, with the medians of each number of processes"""
    f.write(f"# Scaling\n\nA GPU or a core a process; x: speed relative to the first type, in the same process. {PAPER}\n")
    for mode in dict.fromkeys(r["mode"] for r in rows):
        lines = {}
        for r in rows:
            if r["mode"] == mode:
                lines.setdefault((r["program"], r["case"], r["type"], r["halo"]), {}).setdefault(int(r["ranks"]), []).append(r)
        columns = [(c, n) for c in ("product_us", "ratio", "gflops", "ksp_s", "solve_s") for n in sorted({n for at in lines.values() for n in at})]

        def median(at, column, ranks):
            values = [float(r[column]) for r in at.get(ranks, []) if r[column]]
            return f"{statistics.median(values):.4g}" if values else ""

        f.write(f"\n## {mode.capitalize()}\n\n")
        head = ["program", "matrix", "type", "halo", *(f"{'x' if c == 'ratio' else c}, {n}" for c, n in columns)]
        results.table(f, head, [[*key, *(median(at, *c) for c in columns)] for key, at in lines.items()])


def main():
    results.measured("scaling", options(), Runs, report)


if __name__ == "__main__":
    results.run(main, "bench/solves/scaling.py")
