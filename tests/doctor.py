#!/usr/bin/env python3
"""petscspmv-doctor must find the cause in each of these set-ups: doctor.py LIBRARY PROGRAM

PROGRAM is tests/load, which does not refer to the library. Where a set-up needs a GPU or another PETSc, a script prints what PETSc prints there.
"""

import contextlib
import io
import os
import pathlib
import re
import stat
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python/petscspmv"))
import doctor

library, program = sys.argv[1:3]
SET = ["-mat_type", "sellp", "-mat_spmv_setup_after", "0", "-solve"]
LOAD = ["-dll_append", library]

# A program that writes what PETSc writes, to the files that the options name
STUB = """#!/bin/sh
set -- $PETSC_OPTIONS
while [ $# -gt 0 ]; do
  case $1 in
  -info) echo "[0] <sys> PetscInitialize(): started" >"${2%%:*}.0"; INFO=${2%%:*}.0 ;;
  -log_view) LOG=${2#:} ;;
  -ksp_view) VIEW=${2#:}; VIEW=${VIEW%%::*} ;;
  esac
  shift
done
"""
ON_GPU = """cat >"$VIEW" <<'END'
    Mat Object: 2 MPI processes
      type: mpiaijcusparse
        sellp format in type mpiaijcusparse, diagonal blocks: 4 slices, 10 entries stored for 10 nonzeros (padding 0.00%), 80 bytes, kernel: diagonals
        sellp format, halo: HALO
END
cat >"$LOG" <<'END'
Event                Count      Time (sec)     Flop                              --- Global ---  --- Stage ----  Total   GPU    - CpuToGpu -   - GpuToCpu - GPU
MatMult               25 1.0 3.1182e-04 1.0 3.56e+05 1.0 0.0e+00 0.0e+00 0.0e+00 41 12  0  0  0  41 12  0  0  0  1141    500      0 0.00e+00    0 0.00e+00 SHARE
END
"""


def stub(folder, text):
    path = pathlib.Path(folder, "stub")
    path.write_text(STUB + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [str(path)]


def smi(folder, printed):
    path = pathlib.Path(folder, "nvidia-smi")
    path.write_text(f"#!/bin/sh\necho '{printed}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def on_gpu(folder, halo="GPU to GPU, 1 entry", share=100, event="MatMult", info=""):
    return stub(folder, ON_GPU.replace("HALO", halo).replace("SHARE", str(share)).replace("MatMult", event) + f'echo "[0] <mat> {info}" >>"$INFO"\n')


def not_on_gpu(folder):
    """A PETSc and a library with GPU code, and products of the host"""
    path = pathlib.Path(folder, "gpulibrary.so")
    path.write_text("AIJCUSPARSE's own")
    return stub(folder, ON_GPU.replace("cusparse", "sellp").replace("SHARE", "0")) + ["-dll_append", str(path)]


def other_petsc(folder):
    text = "[0]PETSC ERROR: This libpetscspmv was built for another PETSc (3.26, real) than\\n[0]PETSC ERROR: the program's (3.18, real): build it"
    return stub(folder, f'printf "{text}\\n"; exit 1\n')


CASES = {  # what it must find; the options in the environment, the command in a folder, what to change in the environment
    "OK": ("", lambda f: [program, *LOAD, *SET]),
    "OK ": (f"-dll_append {library}", lambda f: [program, *SET]),
    "OK  ": ("", on_gpu),
    "no library": ("", lambda f: ["--library", f"{f}/libpetscspmv.so", program, *SET]),
    "path": ("", lambda f: [program, "-dll_append", "libpetscspmv.so", *SET]),
    "other petsc": ("", other_petsc),
    "not loaded": ("", lambda f: [program, *SET]),
    "no petsc": ("", lambda f: ["/bin/true"]),
    "fails": ("", lambda f: ["sh", "-c", "echo no such program; exit 3"]),
    "type name": ("", lambda f: [program, *LOAD, "-mat_type", "selp"]),
    "no type ": ("", lambda f: ["--library", f"{f}/none.so", str(pathlib.Path(program).parent / "ranks")]),  # linked with the library
    "no type": ("", lambda f: [program, *LOAD, "-solve"]),
    "not read": ("", lambda f: [program, *LOAD, "-solve", "-sub_mat_type", "sellp"]),
    "sell": ("", lambda f: [program, *LOAD, "-solve", "-mat_type", "sell"]),
    "other type": ("", lambda f: [program, *LOAD, "-solve", "-mat_type", "baij"]),
    "few products": ("", lambda f: [program, *LOAD, "-solve", "-mat_type", "sellp", "-ksp_max_it", "1"]),
    "switched off": ("", lambda f: [program, *LOAD, *SET, "-mat_spmv_kernel", "aij"]),
    "old gpu": ("", lambda f: [program, *LOAD, *SET], "Tesla V100, 7.0"),
    "host vectors": ("", lambda f: on_gpu(f, share=0)),
    "no gpu ": ("", not_on_gpu, "H200, 9.0"),
    "no products": ("", lambda f: on_gpu(f, event="MatSolve")),
    "other gpu code": ("", lambda f: on_gpu(f, info="Using the product of AIJCUSPARSE: the library was not compiled for this GPU")),
    "host iterations": ("", lambda f: on_gpu(f, info="Iterations of PETSc's cg: the preconditioner is of type ilu") + ["-ksp_type", "devicecg"]),
    "no gpu": ("", lambda f: [program, *LOAD, *SET, "-vec_type", "cuda"]),
    "halo": ("", lambda f: on_gpu(f, "MPI on host arrays, 9 entries (neither peer nor NCCL: several processes use one GPU)")),
}
if not doctor.has_gpu_code(pathlib.Path(library)):
    CASES["no gpu code"] = ("", lambda f: [program, *LOAD, *SET], "H200, 9.0")


def found(options, command, gpu=None):
    """The status and what the doctor finds"""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        os.environ["PETSC_OPTIONS"] = options
        path = os.environ["PATH"]
        if gpu:
            os.environ["PATH"] = f"{smi(folder, gpu)}:{path}"
        arguments = command(folder)
        if arguments[0] == f"{folder}/stub":  # no program to give the library to
            os.environ["PETSC_OPTIONS"] = f"-dll_append {library} {options}"
        try:
            status = doctor.main(arguments, library=library)
        finally:
            os.environ["PATH"] = path
    return status, out.getvalue()


failed = 0
for name, case in CASES.items():
    status, said = found(*case)
    names = [name.lower() for name in re.findall(r"^([A-Z' ]+): ", said, re.M)]
    if names != [name.strip().lower()] or bool(status) != (name.strip() != "OK"):
        failed += 1
        print(f"FAILED: {name}: status {status}, found {', '.join(names) or 'nothing'}\n{said}")
print(f"{len(CASES)} set-ups, {failed} failed")
sys.exit(failed > 0)
