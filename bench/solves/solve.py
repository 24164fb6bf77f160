#!/usr/bin/env -S python3 -B
"""Complete programs, each in a new process, with each matrix type in turn: PETSc's own tutorials, unmodified, and examples/bratu. Measures the time that a user
waits, including set-up, until the time is up. Writes <out>/solves.csv and a table (.md).
`make solve` compiles the programs and runs it (ARGS='options'). For example

  solve.py                                                    # all configurations on 1 and 2 processes, each type three times
  solve.py -quick -repeat 1                                   # tiny problems, to test that everything runs
  solve.py -configs cg-jacobi,mg-galerkin -ranks 1 -repeat 5 -limit 300
  solve.py -report a/solves.csv b/solves.csv                  # the table of several runs
"""

import argparse
import collections
import csv
import glob
import os
import re
import shlex
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import results
from results import ours
from solvereport import COLUMNS, report

SHORTEST = 15  # seconds: with less time left, no run of unknown duration begins

EX2, EX42, EX43, EX45, EX49, EX56 = (f"ksp/ksp/tutorials/ex{n}" for n in (2, 42, 43, 45, 49, 56))
EX14, EX19, EX48 = (f"snes/tutorials/ex{n}" for n in (14, 19, 48))
HEAT = "ts/tutorials/ex15"
BRATU = "examples/bratu"
# The option that sets a program's matrix type. Programs that set their DM's type to AIJ leave only -mat_type, which DMDA reads last
MAT, DM, THI, TYPES = "-mat_type", "-dm_mat_type", "-thi_mat_type", "-types"
# A smoother without triangular solves, which are slow on GPUs
SMOOTH = "-mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi"
STOKES = "-stokes_ksp_type fgmres -stokes_pc_type fieldsplit -stokes_pc_fieldsplit_type symmetric_multiplicative -stokes_ksp_converged_reason "
STOKES += "-stokes_fieldsplit_u_ksp_type preonly -stokes_fieldsplit_u_pc_type gamg -stokes_fieldsplit_u_mg_levels_pc_type jacobi "
STOKES += "-stokes_fieldsplit_p_ksp_type preonly -stokes_fieldsplit_p_pc_type jacobi"
PLANE = "-no_view -elas_ksp_type cg -elas_pc_type gamg -elas_ksp_converged_reason " + SMOOTH.replace("-mg", "-elas_mg")

Configuration = collections.namedtuple("Configuration", "name program kind options gpu host quick")


def cube(n):
    return " ".join(f"-da_grid_{d} {n}" for d in "xyz")


def square(n):
    return " ".join(f"-da_grid_{d} {n}" for d in "xy")


# The measurements, most important first; the last three are sizes: for a GPU, for the host (half a second to a few seconds per run), and tiny
CONFIGURATIONS = [
    Configuration(*c)
    for c in (
        ("cg-jacobi", EX45, DM, "-ksp_type cg -pc_type jacobi", cube(128), cube(80), cube(12)),
        ("mg-galerkin", EX45, DM, f"-ksp_type cg -pc_type mg -pc_mg_galerkin pmat {SMOOTH}", "-da_refine 4", "-da_refine 4", "-da_refine 1"),
        ("gamg", EX45, DM, f"-ksp_type cg -pc_type gamg {SMOOTH}", cube(96), cube(64), cube(12)),
        ("elasticity-gamg", EX56, MAT, f"-ksp_type cg -pc_type gamg -use_mat_nearnullspace {SMOOTH}", "-ne 31", "-ne 23", "-ne 5"),
        ("bratu", BRATU, TYPES, "", "-n 200", "-n 60", "-n 10"),
        ("ex14-gamg", EX14, MAT, f"-ksp_type cg -pc_type gamg {SMOOTH}", cube(80), cube(64), cube(10)),
        ("ex14-mg", EX14, MAT, f"-ksp_type cg -pc_type mg {SMOOTH}", "-da_refine 4", "-da_refine 5", "-da_refine 1"),
        ("mg", EX45, DM, f"-ksp_type cg -pc_type mg {SMOOTH}", "-da_refine 4", "-da_refine 4", "-da_refine 1"),
        ("elasticity-jacobi", EX56, MAT, "-ksp_type cg -pc_type jacobi", "-ne 39", "-ne 31", "-ne 5"),
        ("cg-none", EX45, DM, "-ksp_type cg -pc_type none", cube(128), cube(80), cube(12)),
        ("bcgs-jacobi", EX45, DM, "-ksp_type bcgs -pc_type jacobi", cube(128), cube(80), cube(12)),
        ("gmres-ilu", EX2, MAT, "-ksp_type gmres -pc_type bjacobi -sub_pc_type ilu", "-m 250 -n 250", "-m 300 -n 300", "-m 20 -n 20"),
        ("ex19-jacobi", EX19, DM, "-ksp_type gmres -pc_type jacobi", "-da_refine 6", "-da_refine 5", "-da_refine 1"),
        ("ex19-mg", EX19, DM, "-ksp_type fgmres -pc_type mg -mg_levels_pc_type pbjacobi", "-da_refine 7", "-da_refine 6", "-da_refine 1"),
        ("ex48-gamg", EX48, DM, f"-ksp_type cg -pc_type gamg {SMOOTH}", "-M 40 -P 10", "-M 32 -P 10", "-M 6 -P 3"),
        ("ex48-mg", EX48, THI, f"-ksp_type fgmres -pc_type mg {SMOOTH}", "-M 10 -P 4 -da_refine 2", "-M 8 -P 4 -da_refine 2", "-M 4 -P 2 -da_refine 1"),
        ("stokes-2d", EX43, DM, STOKES, "-mx 64 -my 64", "-mx 200 -my 200", "-mx 10 -my 10"),
        ("stokes-3d", EX42, DM, STOKES, "-mx 20", "-mx 20", "-mx 4"),
        ("heat", HEAT, MAT, "-ts_max_steps 10 -ksp_type cg -pc_type jacobi", square(700), square(250), square(16)),
        ("elasticity-2d", EX49, DM, PLANE, "-mx 300 -my 300", "-mx 160 -my 160", "-mx 10 -my 10"),
        ("hypre", EX45, DM, "-ksp_type cg -pc_type hypre", cube(96), cube(48), cube(12)),
    )
]
# The Krylov methods whose iterations stay on the GPU, for types such as sellp:device; solves with other methods are left out for these types
DEVICE = {"cg": "devicecg", "bcgs": "devicebcgs", "gmres": "devicegmres"}
# With two processes, one of them has all rows of ex56
ALONE = (EX56,)


def options():
    text = "configurations, in the order in which they run:\n" + "".join(f"  {c.name:18} {c.program} {c.options}\n" for c in CONFIGURATIONS)
    p = argparse.ArgumentParser(description=__doc__, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("-configs", type=words, help="configurations to run, by name (all)")
    p.add_argument("-types", type=words, help="matrix types (aijcusparse,sellp,evchyb,sellp:device, or without a GPU aij,sellp,evchyb); the first is the "
                   "reference. With :device, -ksp_type devicecg replaces cg, and so on")  # fmt: skip
    p.add_argument("-ranks", type=lambda s: [int(w) for w in words(s)], help="numbers of processes (1,2, as far as there are GPUs or cores)")
    p.add_argument("-repeat", type=int, help="runs of each, of which the median counts (3; 1 with -quick)")
    p.add_argument("-timed", type=int, help="further runs of each for the times of products on a GPU, with -log_view_gpu_time (1; none on the host)")
    p.add_argument("-quick", action="store_true", help="tiny problems, which show that everything runs")
    p.add_argument("-host", action="store_true", help="measure the host, even if there is a GPU")
    p.add_argument("-petsc", help="folder of PETSc's tutorials, compiled by tests/petsc.py; by default that of the latest build")
    p.add_argument("-program", help="examples/bratu; by default the one of the same build")
    p.add_argument("-lib", help="libpetscspmv.so, which the tutorials load; by default the one of the same build")
    p.add_argument("-options", type=shlex.split, default=[], help="further options of the programs, as one word: -options='-mat_spmv_halo nccl'")
    p.add_argument("-timeout", type=int, default=120, help="seconds that one run may take (120)")
    p.add_argument("-limit", type=int, default=0, help="seconds in all: no run begins that cannot end (no limit)")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(results.ROOT, "build", "results"), help="folder of the results (build/results)")
    p.add_argument("-report", metavar="CSV", nargs="+", help="measure nothing: the table of these files, next to the first")
    p.add_argument("-tutorials", action="store_true", help="print which of PETSc's tutorials are needed, as tests/petsc.py -build takes them")
    args = p.parse_args()
    wrong = [w for w in args.configs or [] if w not in [c.name for c in CONFIGURATIONS]]
    if wrong:
        p.error(f"-configs: there is no {wrong[0]}")
    return args


# ---------------------------------------------------------------- running


class Runs(results.Runs):
    """The runs and their location, the remaining time, and the results"""

    def __init__(self, args):
        super().__init__(args)
        self.given_up, self.took = {}, {}  # (configuration, ranks, type) or configuration -> why; configuration -> seconds
        if not args.petsc:
            built = sorted(glob.glob(os.path.join(results.ROOT, "build", "*", "tests", "petsc", EX45.replace("/", "-"))), key=os.path.getmtime)
            args.petsc = os.path.dirname(built[-1]) if built else ""
        args.petsc = os.path.abspath(args.petsc)
        folder = os.path.dirname(os.path.dirname(args.petsc))
        args.program = os.path.abspath(args.program or os.path.join(folder, "examples", "bratu"))
        args.lib = os.path.abspath(args.lib or os.environ.get("LIB") or os.path.join(folder, "lib", "libpetscspmv.so"))
        wanted = [c for c in CONFIGURATIONS if not args.configs or c.name in args.configs]
        self.missing = sorted({c.program for c in wanted if not os.access(self.file(c), os.X_OK)})
        self.configurations = [c for c in wanted if c.program not in self.missing]
        if not self.configurations:
            sys.exit("solve: no programs: make solve, or name a folder with -petsc")
        self.devices = 0 if args.host else results.gpus()
        if self.devices and self.warm(["aijcusparse"], True):
            print("no solve on the GPU, so the host is measured")
            self.devices = 0
        args.ranks = args.ranks or [r for r in (1, 2) if r <= (self.devices or os.cpu_count())]
        args.types = args.types or (["aijcusparse", "sellp", "evchyb", "sellp:device"] if self.devices else ["aij", "sellp", "evchyb"])
        args.timed = (1 if self.devices and not args.quick else 0) if args.timed is None else args.timed
        args.repeat = args.repeat or (1 if args.quick else 3)

    def warm(self, types, device):
        """Runs a tiny problem with each type, so that reading files for the first time is not measured. Returns the number of failures"""
        first = next((c for c in self.configurations if c.program == EX45), self.configurations[0])
        return sum(self.one(first, 1, kind, "quick", device, 0, 0)["failed"] != "" for kind in types)

    def file(self, configuration):
        return self.args.program if configuration.program == BRATU else os.path.join(self.args.petsc, configuration.program.replace("/", "-"))

    def words(self, c, kind, size, device):
        kind, _, krylov = kind.partition(":")
        if c.program == BRATU and krylov:
            kind += ":" + DEVICE["cg"]
        words = [c.kind, kind, *c.options.split(), *getattr(c, size).split()]
        if krylov and method(c) in DEVICE:
            words[words.index("-ksp_type") + 1] = DEVICE[method(c)]
        words += ["-ksp_converged_reason", "-snes_converged_reason", "-options_left", *self.args.options]
        if c.program == BRATU:  # bratu is linked with the library, and knows where a type stores its matrices
            return words
        return words + (["-vec_type", "cuda", "-dm_vec_type", "cuda"] if device else []) + (["-dll_append", self.args.lib] if ours(kind) else [])

    def one(self, c, ranks, kind, size, device, repeat, timed):
        """Runs a program and returns its row"""
        row = dict(config=c.name, program=c.program, ranks=ranks, size=size, where="device" if device else "host", type=kind, repeat=repeat, timed=timed)
        words, begin = self.words(c, kind, size, device), time.time()
        row.update(options=shlex.join(os.path.basename(w) if w == self.args.lib else w for w in words), failed="")
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.csv")
            more = ["-log_view", f":{log}:ascii_csv"] + (["-log_view_gpu_time"] if timed else [])
            seconds = min(self.args.timeout, self.left() - 5)
            text, right = results.finish(self.mpiexec, ["-n", str(ranks), self.file(c)] + words + more, seconds, cwd=folder)  # some programs write files
            row["wall_s"] = f"{time.time() - begin:.3f}"
            if not right:
                row["failed"] = complaint(text)
                return row
            row.update(printed(text))
            if re.search(rf"Option left: name:{c.kind}\b", text):
                row["failed"] = f"ignores {c.kind}"
            row["unused"] = " ".join(o for o in re.findall(r"Option left: name:(-\S+)", text) if o in c.options.split())
            row.update(times(log))
            if c.program == BRATU:
                row.update(bratu(text))
        return row

    def turns(self):
        """The runs: (repetition, whether its products are timed on the GPU, configuration, processes, type). Each repetition begins with a different type"""
        for repeat in range(self.args.repeat + self.args.timed):
            for c in self.configurations:
                for ranks in self.args.ranks:
                    if ranks == 1 or c.program not in ALONE:
                        first = repeat % len(self.args.types)
                        for kind in self.args.types[first:] + self.args.types[:first]:
                            if ":" in kind and not (c.program == BRATU or method(c) in DEVICE):
                                continue
                            yield repeat, int(repeat >= self.args.repeat), c, ranks, kind

    def run(self, target):
        a = self.args
        print(f"{a.petsc}, {self.where(self.devices)}, processes {a.ranks}, {', '.join(c.name for c in self.configurations)}")
        size, device = "quick" if a.quick else "gpu" if self.devices else "host", bool(self.devices)
        os.makedirs(a.out, exist_ok=True)
        self.warm(a.types, device)
        with results.whole(target, newline="") as f:
            source = results.source(results.gpu_name() if self.devices else "")
            out = csv.DictWriter(f, [*COLUMNS, *source], restval="")
            out.writeheader()
            for repeat, timed, c, ranks, kind in self.turns():
                if (c, ranks, kind) in self.given_up or c in self.given_up:
                    continue
                if self.left() < 1.3 * self.took.get(c, SHORTEST) + 5:
                    self.cut += 1
                    continue
                row = self.one(c, ranks, kind, size, device, repeat, timed)
                self.took[c] = max(float(row["wall_s"]), self.took.get(c, 0))
                if "requested PC type" in row["failed"]:  # this PETSc lacks the required package
                    self.given_up[c] = row["failed"]
                    continue
                if row["failed"]:
                    self.failed += 1
                    self.given_up[c, ranks, kind] = row["failed"]
                    print("  FAILED: " + row["failed"])
                print("  " + " ".join(f"{k}={row[k]}" for k in ("total_s", "setup_s", "solve_s", "krylov", "norm", "unused") if row.get(k)), flush=True)
                out.writerow(dict(row, **source))
                f.flush()
        for name in self.missing:
            print(f"left out: no program {name}")
        for key, why in self.given_up.items():
            if isinstance(key, Configuration):
                print(f"left out: {key.name}: {why}")
        if self.cut:
            print(f"{self.cut} runs were not begun: the limit of {a.limit} s")


def method(c):
    """The Krylov method of a configuration's options"""
    words = c.options.split()
    return words[words.index("-ksp_type") + 1] if "-ksp_type" in words else ""


def complaint(text):
    """PETSc's error message, or the last line"""
    lines = [line.partition("ERROR: ")[2].strip() for line in text.splitlines() if "ERROR: " in line and "----" not in line]
    return " / ".join(lines[:2] or text.strip().splitlines()[-1:] or ["no output"])[:300]


def printed(text):
    """The results of a solve that a program prints: iterations, the reason why they ended, and the last norm"""
    linear = re.findall(r"Linear (?:\S+ )?solve (?:converged|did not converge) due to (\w+) iterations (\d+)", text)
    newton = re.findall(r"Nonlinear (?:\S+ )?solve (?:converged|did not converge) due to (\w+) iterations (\d+)", text)
    norm = re.findall(r"(?:Norm of error|Residual norm|fnorm|\|b-Ax\|/\|b\|=|\|X\|_2) *([-+\d.eE]+\d)", text)
    row = dict(krylov=sum(int(n) for _, n in linear), newton=sum(int(n) for _, n in newton), norm=norm[-1] if norm else "")
    return dict(row, reasons=" ".join(sorted({why for why, _ in linear + newton})))


def bratu(text):
    """The results from the table of examples/bratu, used instead of the log, which includes the many products that the program times after the solve"""
    keys = "type viewed newton krylov norm setup solve function jacobian ksp products mult_s".split()
    row = next((dict(zip(keys, line.split())) for line in text.splitlines() if re.match(r"\S+ +\S+ +\d+ +\d+ +\d\.\d+e", line)), None)
    if not row:
        return dict(failed="no table in the output")
    number = lambda s: s if re.fullmatch(r"[\d.]+", s) else ""
    return dict(norm=row["norm"], total_s=f"{float(row['setup']) + float(row['solve']):.6g}", mults=row["products"], mult_s=number(row["mult_s"]) or "0")


def events(path):
    """Event -> (count, seconds), the largest of all processes, summed over the stages. Unlike the table of -log_view, this log omits no times on a GPU"""
    worst, total = {}, {}
    with open(path, errors="replace", newline="") as f:
        for r in csv.reader(f):
            if len(r) > 4 and r[2].isdigit():
                key, (count, seconds) = (r[0], r[1]), worst.get((r[0], r[1]), (0, 0.0))
                worst[key] = max(count, int(r[3])), max(seconds, float(r[4]))
    for (_, event), (count, seconds) in worst.items():
        before = total.get(event, (0, 0.0))
        total[event] = before[0] + count, before[1] + seconds
    return total


def times(path):
    """The columns from a log. PCSetUp contains the set-up of a multigrid's levels, including KSPSetUp; only the set-up of blocks comes after it"""
    log = events(path)
    count = lambda *names: sum(log.get(n, (0, 0))[0] for n in names)
    seconds = lambda *names: f"{sum(log.get(n, (0, 0.0))[1] for n in names):.6g}"
    transposes = "MatMultTranspose", "MatMultTrAdd", "MatMultHermitian", "MatMultHTAdd"
    row = dict(total_s=seconds("summary"), solve_s=seconds("KSPSolve"), format_s=seconds("MatSpMVSetUp", "MatSpMVFill"))
    row["setup_s"] = f"{max(float(seconds('PCSetUp')), float(seconds('KSPSetUp'))) + float(seconds('PCSetUpOnBlocks')):.6g}"
    row.update(setups=count("MatSpMVSetUp"), fills=count("MatSpMVFill"), mults=count("MatMult"), mult_s=seconds("MatMult"))
    row.update(adds=count("MatMultAdd"), add_s=seconds("MatMultAdd"), transposes=count(*transposes), transpose_s=seconds(*transposes))
    return dict(row, residuals=count("MatResidual"), residual_s=seconds("MatResidual"))


def main():
    args = options()
    if args.tutorials:
        print(" ".join(sorted({c.program for c in CONFIGURATIONS} - {BRATU})))
        return
    results.measured("solves", args, Runs, report)


if __name__ == "__main__":
    results.run(main, "bench/solves/solve.py")
