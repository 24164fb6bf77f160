#!/usr/bin/env -S python3 -B
"""Products on the host with several PETScs, on one process and on one process for each core, so that the comparison includes a strong baseline:

  hosts.py                               # the machine's PETSc, and PETSc 3.26 compiled for the processor, which is built first (6 minutes, once)
  hosts.py -petsc DIR,DIR -ranks 1,8     # the given PETScs and numbers of processes
  hosts.py -report hosts.csv             # the table of a file
  hosts.py ... -- -set meshes            # options of bench/products/bench

Results: hosts.csv and hosts.md in -out (default build/results). The machine should be otherwise idle.
"""

import argparse
import csv
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import results
from results import ROOT, mean, read

NATIVE = os.path.join(os.path.expanduser("~"), ".cache/petscspmv/petsc-3.26.1-native")
FLAGS = "-O3 -march=native"
OURS = ("sellp", "evchyb")


def machine_petsc():
    """PETSC_DIR with PETSC_ARCH, or Debian's"""
    if os.environ.get("PETSC_DIR"):
        return os.path.join(os.environ["PETSC_DIR"], os.environ.get("PETSC_ARCH", "")).rstrip("/")
    found = sorted(glob.glob("/usr/lib/petscdir/petsc3*/*-real"))
    return found[-1] if found else None


def built_native():
    """PETSc compiled for this processor: its AIJ and SELL have the intrinsics of the widest vectors"""
    words = ["--COPTFLAGS=" + FLAGS, "--CXXOPTFLAGS=" + FLAGS, "--with-cuda=0"]  # configure enables CUDA if it finds nvcc
    subprocess.run([os.path.join(ROOT, "tools/build-petsc.sh"), NATIVE, "opt", *words], check=True)
    return NATIVE


def about(prefix):
    """Version and optimization of a PETSc"""
    with open(glob.glob(os.path.join(prefix, "include/petscversion.h"))[0]) as f:
        text = f.read()
    version = ".".join(re.search(rf"define PETSC_VERSION_{k} +(\d+)", text)[1] for k in ("MAJOR", "MINOR", "SUBMINOR"))
    with open(os.path.join(prefix, "lib/petsc/conf/petscvariables")) as f:
        compile_ = next((line.partition("=")[2] for line in f if line.startswith("CC_FLAGS")), "")
    return version, " ".join(w for w in compile_.split() if re.match(r"-O|-march", w)) or "unknown"


def build(prefix):
    """The folder of the programs for a PETSc"""
    p = subprocess.run(["make", "-s", f"PETSC_DIR={prefix}", "PETSC_ARCH=", "programs"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return os.path.join(ROOT, p.stdout.strip().split("\n")[-1], "bench")


class Runs(results.Runs):
    def run(self, target):
        args, rows = self.args, []
        prefixes = args.petsc.split(",") if args.petsc else [p for p in (machine_petsc(), built_native()) if p]
        os.environ.setdefault("MESHES", os.path.join(ROOT, "build/meshes/host"))
        results.make_meshes("-scale", "0.25") or sys.exit("bench/products/hosts.py: no meshes")
        mkl = results.mkl()
        for prefix in prefixes:
            version, flags = about(prefix)
            folder = build(prefix)
            for ranks in map(int, args.ranks.split(",")):
                with tempfile.TemporaryDirectory() as tmp:
                    found = os.path.join(tmp, "bench.csv")
                    command = [*self.mpiexec, "-n", str(ranks), os.path.join(folder, "bench"), "-csv", found, *args.options]
                    command += mkl if ranks == 1 else []
                    print(f"PETSc {version} ({flags}), {ranks} processes", flush=True)
                    with results.program(command, cwd=ROOT, env=dict(os.environ, CUDA_VISIBLE_DEVICES="")) as p:
                        said = p.communicate()[0]
                    if p.returncode:
                        sys.exit(said[-2000:] + f"\nbench/products/hosts.py: exit status {p.returncode}")
                    rows += [dict(r, petsc=version, flags=flags) for r in read(found)]
        os.makedirs(args.out, exist_ok=True)
        with results.whole(target, newline="") as f:
            out = csv.DictWriter(f, list(dict.fromkeys(["petsc", "flags", *rows[0]])), restval="", extrasaction="ignore", lineterminator="\n")
            out.writeheader()
            out.writerows(rows)


def report(f, rows):
    """For each number of processes: the speed of each type relative to the fastest baseline of any PETSc, as a geometric mean"""
    f.write("# Baselines on the host\n\nWarm products: speed over the fastest of PETSc's types, with any of these PETScs, and MKL, for each matrix.\n\n")
    times, best = {}, {}
    for r in rows:
        where, s = (int(r["ranks"]), r["matrix"]), float(r["warm_s"] or 0)
        if s > 0:
            times.setdefault((where[0], r["petsc"], r["flags"], r["type"]), {})[where] = s
            best[where] = min(s, best.get(where, s)) if r["type"] not in OURS else best.get(where, float("inf"))
    lines = []
    for key, at in sorted(times.items(), key=lambda item: item[0][0]):
        over = [best[where] / s for where, s in at.items() if best[where] < float("inf")]
        if over:
            lines.append([*map(str, key), str(len(over)), f"{mean(over):.2f}", f"{min(over):.2f}"])
    results.table(f, ["processes", "PETSc", "compiled with", "type", "matrices", "geometric mean", "least"], lines)


def main():
    p = argparse.ArgumentParser(prog="bench/products/hosts.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-petsc", help="installed PETScs, separated by commas (default: the machine's, and 3.26 compiled with " + FLAGS + ")")
    p.add_argument("-ranks", default=f"1,{os.cpu_count()}", help="numbers of processes")
    p.add_argument("-out", default=os.path.join(ROOT, "build/results"))
    p.add_argument("-report", metavar="CSV", nargs="+", help="measure nothing: the table of these files, next to the first")
    p.add_argument("options", nargs="*", help="after --: of bench/products/bench")
    results.measured("hosts", p.parse_args(), Runs, report)


if __name__ == "__main__":
    results.run(main, "bench/products/hosts.py")
