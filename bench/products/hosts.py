#!/usr/bin/env -S python3 -B
"""Products on the host with several PETScs, on one process and on one process for each core, so that the comparison includes a strong baseline:

  hosts.py                               # the machine's PETSc, and PETSc 3.26 compiled for the processor, which is built first (6 minutes, once)
  hosts.py -petsc DIR,DIR -ranks 1,8     # the given PETScs and numbers of processes
  hosts.py -report                       # writes the table again
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
from results import ROOT
from table import mean

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


def measure(args):
    prefixes = args.petsc.split(",") if args.petsc else [p for p in (machine_petsc(), built_native()) if p]
    os.environ.setdefault("MESHES", os.path.join(ROOT, "build/meshes/host"))
    if not glob.glob(os.path.join(os.environ["MESHES"], "*.petsc")):
        subprocess.run([os.path.join(ROOT, "bench/lib/meshes.py"), "-out", os.environ["MESHES"], "-scale", "0.25"], check=True)
    mkl = glob.glob(os.path.join(ROOT, "build/bench-venv/lib/libmkl_rt.so*"))
    rows, columns = [], []
    for prefix in prefixes:
        version, flags = about(prefix)
        folder = build(prefix)
        for ranks in map(int, args.ranks.split(",")):
            with tempfile.TemporaryDirectory() as tmp:
                target = os.path.join(tmp, "bench.csv")
                command = [*os.environ.get("MPIEXEC", "mpiexec").split(), "-n", str(ranks), os.path.join(folder, "bench"), "-csv", target, *args.options]
                command += ["-mkl", mkl[0]] if mkl and ranks == 1 else []
                print(f"PETSc {version} ({flags}), {ranks} processes", flush=True)
                with results.program(command, cwd=ROOT, env=dict(os.environ, CUDA_VISIBLE_DEVICES="")) as p:
                    said = p.communicate()[0]
                if p.returncode:
                    sys.exit(said[-2000:] + f"\nbench/products/hosts.py: exit status {p.returncode}")
                with open(target, newline="") as f:
                    found = list(csv.DictReader(f))
            columns = columns or list(dict.fromkeys(["petsc", "flags", *found[0]]))
            rows += [dict(r, petsc=version, flags=flags) for r in found]
    os.makedirs(args.out, exist_ok=True)
    with results.whole(os.path.join(args.out, "hosts.csv"), newline="") as f:
        out = csv.DictWriter(f, columns, restval="", extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def report(args):
    """For each number of processes: the speed of each type relative to the fastest baseline of any PETSc, as a geometric mean"""
    with open(os.path.join(args.out, "hosts.csv"), newline="") as f:
        rows = list(csv.DictReader(f))
    at = {(int(r["ranks"]), r["matrix"], r["petsc"], r["flags"], r["type"]): float(r["warm_s"] or 0) for r in rows}
    matrices = list(dict.fromkeys(r["matrix"] for r in rows))
    kinds = list(dict.fromkeys((r["petsc"], r["flags"], r["type"]) for r in rows))
    with results.whole(os.path.join(args.out, "hosts.md")) as f:
        where = f"{rows[0]['machine']}, commit {rows[0]['commit']}, {len(matrices)} matrices"
        f.write(f"# Baselines on the host\n\n{where}, warm products, medians. Repeat with `bench/products/hosts.py`.\n")
        for ranks in sorted({k[0] for k in at}):
            best = {}
            for m in matrices:
                best[m] = min((s for (n, x, *_, t), s in at.items() if (n, x) == (ranks, m) and t not in OURS and s > 0), default=0)
            lines = []
            for petsc, flags, kind in kinds:
                over = [best[m] / at[ranks, m, petsc, flags, kind] for m in matrices if best[m] and at.get((ranks, m, petsc, flags, kind))]
                if over:
                    lines.append([petsc, flags, kind, str(len(over)), f"{mean(over):.2f}", f"{min(over):.2f}"])
            f.write(f"\n## {ranks} process{'es' if ranks > 1 else ''}\n\n")
            f.write("Speed over the fastest of PETSc's types, with any of these PETScs, and MKL, for each matrix.\n\n")
            results.table(f, ["PETSc", "compiled with", "type", "matrices", "geometric mean", "least"], lines)
    print(f"wrote {os.path.join(args.out, 'hosts.md')}")


def main():
    p = argparse.ArgumentParser(prog="bench/products/hosts.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-petsc", help="installed PETScs, separated by commas (default: the machine's, and 3.26 compiled with " + FLAGS + ")")
    p.add_argument("-ranks", default=f"1,{os.cpu_count()}", help="numbers of processes")
    p.add_argument("-out", default=os.path.join(ROOT, "build/results"))
    p.add_argument("-report", action="store_true", help="measure nothing: the table of the results that are there")
    p.add_argument("options", nargs="*", help="after --: of bench/products/bench")
    args = p.parse_args()
    if not args.report:
        measure(args)
    report(args)


if __name__ == "__main__":
    results.run(main, "bench/products/hosts.py", mkl="-report" not in sys.argv)
