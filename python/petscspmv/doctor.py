#!/usr/bin/env python3
"""Says whether a PETSc program uses PetscSpMV, and if it does not, why, and what to change.

petscspmv-doctor ./program -mat_type sellp                 one process
petscspmv-doctor mpiexec -n 2 ./program -mat_type sellp    several
petscspmv-doctor                                           the library and the GPU only

The command is run once, with more options in PETSC_OPTIONS: -dll_append if neither it nor PETSC_OPTIONS has it, and -ksp_view, -options_left, -log_view and -info, which write to files of a
temporary folder. What the program prints is shown only if it fails. The exit status is 0 if the format was used and nothing is to be changed, otherwise 1.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TYPES = ("sellp", "evchyb", "batch")
OURS = re.compile(r"(?:seq|mpi)?(?:aij)?(?:cusparse)?(" + "|".join(TYPES) + ")$")
OTHERS = {
    "sell": "is PETSc's own SELL format, one letter from `sellp`",
    "baij": "stores blocks in PETSc's own format",
    "sbaij": "stores half of a symmetric matrix in PETSc's own format",
    "shell": "has no entries: the program multiplies with a function of its own",
    "mffd": "has no entries: the product is a difference of two residuals (-snes_mf)",
    "dense": "is a dense matrix",
    "is": "is assembled from unassembled local matrices",
    "nest": "consists of other matrices, which need the type themselves",
}
DEVICE_VECTORS = "add -vec_type cuda, or -dm_vec_type cuda if a DM creates the vectors"


class Finding(NamedTuple):
    """A cause, and what to do. name is for tests and scripts."""

    name: str
    cause: str
    change: str


class Run(NamedTuple):
    """What the command printed, and what PETSc wrote about it."""

    status: int
    printed: str
    info: str | None  # None: PETSc did not write it
    view: str
    log: str


class Event(NamedTuple):
    """A line of -log_view."""

    count: int
    share: int  # of the time, in percent
    on_gpu: int | None  # percent of the flops; None: PETSc has no GPU


# ---- the library and the GPU


def find_library(given: str | None) -> Path:
    here = Path(__file__).resolve().parent
    places = [here / "libpetscspmv.so", here.parent / "lib/libpetscspmv.so", *here.parent.glob("lib/*/libpetscspmv.so"), here.parents[1] / "lib/libpetscspmv.so"]
    return Path(given) if given else next((p for p in places if p.is_file()), places[-1])


def output(*command: str) -> str:
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def library_petsc(library: Path) -> str:
    """The PETSc that the library needs, as ldd prints it."""
    found = re.search(r"^\s*(libpetsc(?!spmv)\S*) => (.*?)(?: \(0x\w+\))?$", output("ldd", str(library)), re.M)
    return f"{found[1]} ({found[2]})" if found else "unknown"


def has_gpu_code(library: Path) -> bool:
    return b"AIJCUSPARSE's own" in library.read_bytes()


def gpus() -> list[tuple[str, str]]:
    """Names and compute capabilities."""
    if not shutil.which("nvidia-smi"):
        return []
    rows = [line.rpartition(",") for line in output("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader").splitlines()]
    return [(name, cc.strip()) for name, _, cc in rows if re.fullmatch(r"\d+\.\d+", cc.strip())]


def check_library(library: Path) -> list[Finding]:
    if not library.is_file():
        return [Finding("no library", f"there is no library {library}", "run `make`, which writes lib/libpetscspmv.so, or give its path: --library /where/lib/libpetscspmv.so")]
    if "(not found" in (petsc := library_petsc(library)) or "=> not found" in petsc:
        return [Finding("petsc not found", f"the PETSc that {library} needs is not found: {petsc}", "build the library again with the PETSC_DIR and PETSC_ARCH of the program")]
    return []


def check_gpu(library: Path) -> list[Finding]:
    found = gpus()
    if not found:
        return []
    old = [f"{name} ({cc})" for name, cc in found if float(cc) < 8]
    if len(old) == len(found):
        return [Finding("old gpu", f"the kernels need compute capability 8.0, and there is {', '.join(old)}", "on this GPU aijcusparse's products are used; use another GPU, or the host: -device_enable none")]
    if not has_gpu_code(library):
        return [Finding("no gpu code", "there is a GPU, and the library has no code for it", "build it with a PETSc 3.26 that is configured --with-cuda, and with nvcc on the path: make PETSC_DIR=...")]
    return []


# ---- the command


def linked_library(command: list[str]) -> str | None:
    """The library that the program is linked with, if it is."""
    programs = (w for w in command if os.path.isfile(w) and os.access(w, os.X_OK))
    return next((m[1] for w in programs if (m := re.search(r"libpetscspmv\S* => (/\S+)", output("ldd", w)))), None)


def run(command: list[str], library: Path, options: str) -> Run:
    """Runs the command once."""
    with tempfile.TemporaryDirectory() as folder:
        more = [] if re.search(r"-dll_(append|prepend)\b", f"{options} {shlex.join(command)}") or linked_library(command) else ["-dll_append", str(library)]
        more += ["-log_view_gpu_time"] if library.is_file() and has_gpu_code(library) else []  # without it the times of products on a GPU are not known
        more += ["-options_left", "-ksp_view", f":{folder}/view::append", "-log_view", f":{folder}/log", "-info", f"{folder}/info:sys,mat,ksp"]
        env = os.environ | {"PETSC_OPTIONS": f"{options} {' '.join(more)}"}
        try:
            done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        except OSError as error:
            sys.exit(f"petscspmv-doctor: {shlex.join(command)}: {error}")

        def read(name: str) -> str | None:
            path = Path(folder, name)
            return path.read_text(errors="replace") if path.is_file() else None

        return Run(done.returncode, done.stdout, read("info.0"), done.stdout + (read("view") or ""), read("log") or "")


def events(log: str) -> dict[str, Event]:
    """The events of -log_view, of all stages together."""
    gpu, found = "GpuToCpu" in log, {}
    for line in log.splitlines():
        word = line.split()
        if len(word) > 15 and re.fullmatch(r"[A-Z]\w+", word[0]) and word[1].isdigit() and re.fullmatch(r"\d+|nan", word[10]):
            before = found.get(word[0], Event(0, 0, 0))
            on_gpu = int(word[-1]) if gpu and word[-1].isdigit() else 0
            found[word[0]] = Event(before.count + int(word[1]), before.share + int(word[10].replace("nan", "0")), max(before.on_gpu or 0, on_gpu) if gpu else None)
    return found


def given(words: list[str], ending: str) -> list[tuple[str, str]]:
    """Options whose names end like this, with their values."""
    return [(w, words[k + 1] if k + 1 < len(words) else "") for k, w in enumerate(words) if w.startswith("-") and w.endswith(ending)]


def kind(name: str) -> str:
    """seqsell, mpisellcuda -> sell"""
    return re.sub(r"^(seq|mpi)|(cuda|cusparse|hip)$", "", name)


def check_start(r: Run) -> list[Finding]:
    """Errors of the program while it loads the library, or none."""
    printed = " ".join(re.sub(r"^\[\d+\](PETSC ERROR:)?", "", line) for line in r.printed.splitlines())
    printed = re.sub(r"\s+", " ", printed)
    if found := re.search(r"built for another PETSc \((.*?)\) than the program's \((.*?)\):", printed):
        return [Finding("other petsc", f"the library is for {found[1]}, and the program uses {found[2]}", "build the library with the program's PETSc: make PETSC_DIR=... PETSC_ARCH=...")]
    if found := re.search(r"(libpetsc\S*): cannot open shared object file", printed):
        return [Finding("petsc not found", f"the library needs {found[1]}, which is not found", "build the library with the program's PETSc: make PETSC_DIR=... PETSC_ARCH=...")]
    if found := re.search(r"Unable to locate dynamic library: (\S+)", printed):
        where = "the path must be absolute or begin with ./" if found[1][0] not in "/." else "there is no such file"
        return [Finding("path", f"PETSc does not find {found[1]}: {where}", "give the whole path: -dll_append /where/lib/libpetscspmv.so")]
    if found := re.search(r"Unable to open dynamic library: (\S+)(.{0,200})", printed):
        return [Finding("not loadable", f"PETSc cannot load {found[1]}:{found[2]}", "build the library with the program's PETSc: make PETSC_DIR=... PETSC_ARCH=...")]
    if found := re.search(r"Unknown [Vv]ec(?:tor)? type(?: given)?: (\S*cuda)", printed):
        return [Finding("no gpu", f"this PETSc has no vectors of type {found[1]}", "PETSc needs CUDA (3.26, --with-cuda); without it run on the host, without this option")]
    if found := re.search(r"Unknown Mat type given: (\S+)", printed):
        close = difflib.get_close_matches(found[1], TYPES, 1)
        if close and close[0] != found[1]:
            return [Finding("type name", f"there is no matrix type `{found[1]}`", f"write -mat_type {close[0]}")]
    return []


def fails(r: Run) -> Finding:
    return Finding("fails", f"the command ends with status {r.status}", "see what it printed; try it without PetscSpMV")


def check_loaded(r: Run, options: str, command: list[str], library: Path) -> list[Finding]:
    if r.info is None and r.status:
        return [fails(r)]
    if r.info is None:
        change = "programs that read no options of the environment or start others with a clean one need -dll_append on their command line, or PetscSpMVInitializePackage(); see docs/clients.md"
        return [Finding("no petsc", "the program does not initialize PETSc with the options in PETSC_OPTIONS", change)]
    words = shlex.split(options) + command
    linked = linked_library(command) or re.search(r"Prepending \S*petscspmv", r.info)
    if not linked and not given(words, "-dll_append") + given(words, "-dll_prepend"):
        return [Finding("not loaded", "neither the command nor PETSC_OPTIONS names the library; it was added for this run", f"add -dll_append {library}, or set PETSC_OPTIONS to it")]
    return []


def check_type(r: Run, words: list[str]) -> list[Finding]:
    """Whether a matrix has one of the types."""
    used = sorted({kind(t) for t in re.findall(r"^\s*Mat Object:.*\n\s*type: (\S+)", r.view, re.M)})
    if formats(r):
        return []
    if wrong := [v for _, v in given(words, "mat_type") if kind(v) == "sell"] or [t for t in used if t == "sell"]:
        return [Finding("sell", f"the type `{wrong[0]}` {OTHERS['sell']}", "write -mat_type sellp")]
    if left := re.search(r"name:(-\S*mat_type|-mat_seqaij_type) value: (\S+)", r.printed):
        prefixes = sorted(set(re.findall(r"^\s*Mat Object: \((\w+)\)", r.view, re.M)))
        prefixed = f"-{prefixes[0]}mat_type {left[2]} for the matrix with that prefix; else " if prefixes else ""
        change = f"use {prefixed}-dm_mat_type {left[2]} if a DM creates the matrix, otherwise -mat_seqaij_type {left[2]}, which no program has to read (not on a GPU; there -mat_spmv_replace)"
        return [Finding("not read", f"the program does not read {left[1]}", change)]
    other = [f"`{t}` {OTHERS[t]}" for t in used if t in OTHERS]
    if other and not set(used) & {"aij"}:
        return [Finding("other type", f"the matrix of type {'; '.join(other)}", "the types are for assembled AIJ matrices: let the program assemble one, or leave it as it is")]
    if not any(OURS.match(v) for _, v in given(words, "mat_type") + given(words, "-mat_seqaij_type") + given(words, "-mat_spmv_replace_format")):
        return [Finding("no type", "no option chooses a type", "add -mat_type sellp")]
    return [Finding("no format", f"no matrix has the format; the matrices of the solvers are of type {', '.join(used) or 'unknown'}", "see `Choosing the type` in docs/clients.md")]


def formats(r: Run) -> list[str]:
    """The lines of views on our formats; the name alone where only the log has it."""
    lines = re.findall(rf"^\s*((?:{'|'.join(TYPES)}) format.*)$", r.view, re.M)
    return lines or (["set up, in matrices that -ksp_view does not show"] if "MatSpMVSetUp" in r.log and events(r.log).get("MatSpMVSetUp") else [])


def check_products(r: Run, words: list[str]) -> list[Finding]:
    """Whether the format multiplied."""
    lines, at = [line for line in formats(r) if "halo:" not in line], events(r.log)
    if not lines:
        return []
    if any(v in ("aij", "parent") for _, v in given(words, "mat_spmv_kernel")):
        return [Finding("switched off", "-mat_spmv_kernel aij switches the format off", "remove this option")]
    if found := re.search(r"until product (\d+) \((\d+) so far\)", lines[0]):
        change = "nothing, if the program multiplies so rarely: it runs as fast as with aij. To set the format up at once: -mat_spmv_setup_after 0"
        return [Finding("few products", f"AIJ multiplies until product {found[1]} of a matrix, because the set-up takes longer than so few products gain; there were {found[2]}", change)]
    if all("nothing stored" in line for line in lines) and "MatMult" in at:
        return [Finding("aij's product", f"AIJ's own product is used: {lines[0]}", "run with -info and look for lines on the matrix: columns that do not ascend, no values, or no memory")]
    if r.log and "MatMult" not in at:
        return [Finding("no products", "the program computes no product with a matrix (a direct solver, or functions of its own)", "use an iterative solver, or leave the program as it is")]
    return []


def check_device(r: Run, words: list[str]) -> list[Finding]:
    """What keeps the products from the GPU, and the data there."""
    found, info, at = [], r.info or "", events(r.log)
    on_gpu = at["MatMult"].on_gpu if "MatMult" in at else None
    wants = [f"{name} {value}" for name, value in given(words, "vec_type") if "cuda" in value]
    device = "cusparse" in "".join(formats(r)) or re.search(r"type: (seq|mpi)aijcusparse", r.view)
    if "library was not compiled for this GPU" in info:
        found.append(Finding("other gpu code", "the library was not compiled for this GPU", "build it on this machine, or with CUDA_ARCHS=<compute capability, as 90>"))
    elif device and on_gpu == 0:
        found.append(Finding("host vectors", "the matrix is on the GPU, and the vectors are on the host: the host multiplies", DEVICE_VECTORS))
    elif wants and not device:
        found.append(Finding("no gpu", f"{wants[0]} has no effect on the products, which run on the host", "PETSc needs CUDA (3.26) and a GPU that it can use; see -info and nvidia-smi"))
    elif on_gpu == 0 and not device and formats(r) and gpus() and ("-device_enable", "none") not in given(words, "-device_enable"):
        found.append(Finding("no gpu", "there is a GPU, and PETSc does not use it: the host multiplies", "look at CUDA_VISIBLE_DEVICES, the version of the driver, and PETSc's -info"))
    if any("device" in v for _, v in given(words, "ksp_type")) and (why := re.search(r"Iterations of PETSc's (\S+): (.*)", info)):
        found.append(Finding("host iterations", f"the iterations of {why[1]} are not on the device: {why[2]}", "see docs/krylov.md"))
    if halo := re.search(r"format, halo: (MPI on host arrays|PETSc's VecScatter)(.*)", r.view):
        found.append(Finding("halo", f"the halo goes through the host: {halo[1]}{halo[2]}", "use one process for each GPU of a host, with all GPUs visible to all processes; see docs/halo.md"))
    return found


def examine(r: Run, command: list[str], library: Path, options: str) -> list[Finding]:
    words = shlex.split(options) + command
    found = check_start(r)
    if not found:
        found = check_loaded(r, options, command, library)
        if not any(f.name in ("no petsc", "fails") for f in found):
            found += check_type(r, words) or check_products(r, words)
            found += check_device(r, words)
    if not found and r.status:
        found = [fails(r)]
    return found


def show(r: Run) -> None:
    """What was found out, one line each."""
    at = events(r.log)
    for line in formats(r)[:4]:
        print(f"format    {line}")
    if "MatMult" in at:
        products = at["MatMult"]
        where = "" if products.on_gpu is None else f", {products.on_gpu} % of their flops on the GPU"
        print(f"products  {products.count}, {products.share} % of the program's time{where}; the format was set up {at['MatSpMVSetUp'].count if 'MatSpMVSetUp' in at else 0} times")
    if "compiled with a debugging option" in r.log:
        print("note      this PETSc is a debug build: its times say nothing")


def main(arguments: list[str] | None = None, library: str | None = None) -> int:
    parser = argparse.ArgumentParser(prog="petscspmv-doctor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=library, metavar="FILE", help="libpetscspmv.so, by default the one of this installation")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program and its options")
    args = parser.parse_args(arguments)
    options, lib = os.environ.get("PETSC_OPTIONS", ""), find_library(args.library).absolute()
    names = [value for name, value in given(shlex.split(options) + args.command, "-dll_append")] or list(filter(None, [linked_library(args.command)]))
    if names:
        lib = Path(names[-1])
    found = [] if names else check_library(lib)
    print(f"library   {lib}" + (f", for {library_petsc(lib)}, {'with' if has_gpu_code(lib) else 'without'} GPU code" if lib.is_file() else ""))
    print(f"GPU       {', '.join(f'{name} ({cc})' for name, cc in gpus()) or 'none'}")
    if lib.is_file():
        found += check_gpu(lib)
    if args.command and not any(f.name == "no library" for f in found):
        r = run(args.command, lib, options)
        show(r)
        found += examine(r, args.command, lib, options)
        if [f.name for f in found] == ["fails"]:
            print("".join(f"  | {line[:200]}\n" for line in r.printed.splitlines()[-20:]), end="")
    for f in found:
        print(f"\n{f.name.upper()}: {f.cause}\n  {f.change}")
    if not found:
        print("\nOK: " + ("the format is used" if args.command else "give the program's command to look further"))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
