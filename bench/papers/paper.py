#!/usr/bin/env -S python3 -B
"""Measures the papers' experiments on a GPU, and writes a table of them, build/results/paper.md. `make paper` runs all experiments (ARGS='options').
For example, after `make programs`

  paper.py sellp-table3 evchyb-figure15                                 # only these; BENCH=build/<tag>/bench if there are several builds
  paper.py -host ours                                                   # the papers' matrices on the host
  paper.py -report                                                      # writes the table again from the existing CSV files
  paper.py -report -out docs/results/paper -to docs/results/paper.md    # the one in git

It needs only python3 and the programs, and on the host MKL, a baseline, which it gets from PyPI in build/.
"""

import argparse
import glob
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import results
from results import ROOT
from measure import COUNTERS, PRODUCTS, Measuring
from report import EXPERIMENTS, write


def main():
    p = argparse.ArgumentParser(prog="bench/papers/paper.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="Experiments: " + ", ".join(EXPERIMENTS))  # fmt: skip
    p.add_argument("experiments", nargs="*", metavar="experiment", help="default: all")
    p.add_argument("-measure", action="store_true", help="measure only")
    p.add_argument("-report", action="store_true", help="report only, from the CSV files that are there")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/results/paper"),
                   help="where the CSV files are; those in docs/results/paper are in git")  # fmt: skip
    p.add_argument("-to", default=os.path.join(ROOT, "build/results/paper.md"), help="the report (build/results/paper.md)")
    p.add_argument("-programs", default=os.environ.get("BENCH"), help="folder of the benchmarks' programs, build/<tag>/bench (default: the latest build)")
    p.add_argument("-host", action="store_true", help="measure the host (ours)")
    p.add_argument("-again", action="store_true", help="measure again even if there are results")
    p.add_argument("-reps", type=int, default=7, help="repetitions, of which the median counts")
    p.add_argument("-limit", type=float, default=0, help="seconds for all measurements (no limit); what is missing then can be measured by another run")
    p.add_argument("-matrices", help="a folder of Matrix Market files, which are used instead of twins")
    p.add_argument("-ncu", help="Nsight Compute")
    args = p.parse_args()
    unknown = [e for e in args.experiments if e not in EXPERIMENTS]
    if unknown:
        p.error(f"no experiment is called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    if args.matrices:
        if not os.path.isdir(args.matrices):
            p.error(f"-matrices: there is no folder {args.matrices}")
        os.environ["MATRICES"] = os.path.abspath(args.matrices)
    built = sorted(glob.glob(os.path.join(ROOT, "build/*/bench/bench")), key=os.path.getmtime)
    args.programs = os.path.abspath(args.programs or (os.path.dirname(built[-1]) if built else os.path.join(ROOT, "build")))
    args.out = os.path.abspath(args.out)
    failed = False
    if not args.report:
        m, needed = Measuring(args), {n for e in args.experiments or EXPERIMENTS for n in EXPERIMENTS[e][1:]}
        for measurement in [*PRODUCTS, "bratu", *COUNTERS]:  # the most important ones first
            if measurement in needed:
                m.measure(measurement)
        failed = m.failed
    if not args.measure:
        write(args.out, os.path.abspath(args.to))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    results.run(main, "bench/papers/paper.py", "; the same command goes on with what is missing")
