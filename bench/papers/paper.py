#!/usr/bin/env -S python3 -B
"""Measures the papers' experiments on the GPU or on the host, and writes a report, build/results/paper.md. `make paper` runs all experiments (ARGS='options').
For example, after `make programs`

  paper.py sellp-table3 evchyb-figure15                                 # only these; BENCH=build/<tag>/bench if there are several builds
  paper.py -report                                                      # writes the report again from the existing CSV files
  paper.py -report -short -out docs/results/paper -to docs/results/paper.md    # the report in git, without long tables

It needs only python3 and the programs, and on the host MKL, a baseline, which it gets from PyPI in build/.
"""

import argparse
import glob
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import results
from results import ROOT
from measure import Measuring
from report import Report

M = Measuring
EXPERIMENTS = {  # the measurements that each experiment of the report needs
    "ours": [M.matrices],
    "sellp-table3": [M.matrices],
    "sellp-figure5": [M.matrices],
    "sellp-table2": [M.profile, M.counters],
    "sellp-sweep": [M.sweep],
    "evchyb-table2": [M.stream],
    "evchyb-table3": [M.matrices],
    "evchyb-figure3": [M.matrices],
    "evchyb-figure6": [M.matrices, M.profile],
    "evchyb-table4": [M.loads, M.counters],
    "evchyb-figure10": [M.matrices, M.profile],
    "evchyb-figure12": [M.matrices],
    "evchyb-figure15": [M.random],
    "evchyb-figure16": [M.bratu_],
    "formats": [M.profiles],
    "formats-csr5": [M.csr5],
    "formats-figure3": [M.counters],
    "pays": [M.matrices],
    "twins": [M.twins],
    "roofline": [M.counters],
    "single": [M.single],
}
# most important first, because the time may run out
ORDER = [M.stream, M.matrices, M.random, M.profiles, M.sweep, M.csr5, M.loads, M.bratu_, M.single, M.twins, M.profile, M.counters]


def main():
    p = argparse.ArgumentParser(prog="bench/papers/paper.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="Experiments: " + ", ".join(EXPERIMENTS))  # fmt: skip
    p.add_argument("experiments", nargs="*", metavar="experiment", help="default: all")
    p.add_argument("-measure", action="store_true", help="measure only")
    p.add_argument("-report", action="store_true", help="report only, from the CSV files that are there")
    p.add_argument("-short", action="store_true", help="no long tables in the report")
    p.add_argument("-list", action="store_true", help="print the formats and the papers they are from")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/results/paper"),
                   help="where the CSV files are; those in docs/results/paper are in git")  # fmt: skip
    p.add_argument("-to", default=os.path.join(ROOT, "build/results/paper.md"), help="the report (build/results/paper.md)")
    p.add_argument("-programs", default=os.environ.get("BENCH"), help="folder of the benchmarks' programs, build/<tag>/bench (default: the latest build)")
    p.add_argument("-host", action="store_true", help="measure the host, even if there is a GPU")
    p.add_argument("-again", action="store_true", help="measure again even if there are results")
    p.add_argument("-reps", type=int, default=7, help="repetitions, of which the median counts")
    p.add_argument("-limit", type=float, default=1e9, help="seconds for all measurements; what is missing then can be measured by another run")
    p.add_argument("-max-entries", type=float, default=0, help="leave out larger matrices")
    p.add_argument("-matrices", help="a folder of Matrix Market files, which are used instead of twins")
    p.add_argument("-note", help="a remark on the machine for the report")
    p.add_argument("-ncu", help="Nsight Compute")
    args = p.parse_args()
    unknown = [e for e in args.experiments if e not in EXPERIMENTS]
    if unknown:
        p.error(f"no experiment is called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    if args.matrices:
        if not os.path.isdir(args.matrices):
            p.error(f"-matrices: there is no folder {args.matrices}")
        os.environ["MATRICES"] = os.path.abspath(args.matrices)
    built = sorted(glob.glob(os.path.join(ROOT, "build/*/bench/paper")), key=os.path.getmtime)
    args.programs = os.path.abspath(args.programs or (os.path.dirname(built[-1]) if built else os.path.join(ROOT, "build")))
    args.out = os.path.abspath(args.out)
    if args.list and os.access(os.path.join(args.programs, "paper"), os.X_OK):
        sys.exit(subprocess.run([os.path.join(args.programs, "paper"), "-list"]).returncode)
    wanted = [e for e in EXPERIMENTS if e in args.experiments or not args.experiments]
    failed = False
    if not args.report:
        m = Measuring(args)
        for step in ORDER:
            if any(step in EXPERIMENTS[e] for e in wanted):
                step(m)
        if args.note:
            with results.whole(os.path.join(args.out, f"{m.device}.txt")) as f:
                f.write(args.note + "\n")
        failed = m.failed
    if not args.measure:
        names = wanted if args.report or args.experiments else EXPERIMENTS
        Report(args.out, os.path.abspath(args.to), args.short).write(names)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    results.run(main, "bench/papers/paper.py", "; the same command goes on with what is missing")
