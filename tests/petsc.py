#!/usr/bin/env python3
"""Runs PETSc's and SLEPc's own tests and tutorials, unmodified, with PetscSpMV's types.

    tests/petsc.py [-v] [-first N] [-ranks N] [-build] [PROGRAM ...]   such as mat/tests/ex5 or slepc/eps/tutorials/ex1; without names, all of the list
                                                            below; -first N runs no more than N of a program's tests, -ranks N tests of one rank with N
                                                            ranks, too, -build compiles and runs none, -used counts the tests that multiplied in the format
    tests/petsc.py -more | -slepc                           instead of that list, the longer one of PETSc's programs, or SLEPc's
    tests/petsc.py -replace ...                             names PETSc's type, and replaces it by ours (-mat_spmv_replace)

The programs are compiled as they are, from the sources of the PETSc in use, and load the library by -dll_append. What to run
them with is read from the comment that each carries for PETSc's own test harness. Every test runs with AIJ and with each of
our types; the outputs must agree, except for lines that name types or describe formats, and for the last digits of numbers; a test
that does not repeat its own numbers with AIJ is skipped. Where PETSc ships the expected output and AIJ meets it, our types must
meet it, too.

A failure that PETSc's own type AIJPERM has, too, is skipped: it is what PETSc does to types derived from AIJ.

On a device (DEVICE is set) our types run with CUDA's vectors, the first of them also without, AIJ on the host as ever. What differs from AIJ is
skipped, with a message, where aijcusparse with the same vectors fails, too, or prints the same. With -replace the outputs must be those of
aijcusparse with the same vectors, or those of AIJ where these are host vectors; what fails with aijcusparse is skipped.

Tests that print what PETSc does inside (-info) cannot agree and are left out. Before the comparison, every test runs with a
type that does not exist: a program that ignores it tests nothing, and is skipped.

SLEPc's programs are those of SLEPC_DIR, or of Debian's package for the PETSc in use.

Reads LIB, TESTS, MPIEXEC, PETSC_DIR, PETSC_ARCH, TYPES from the environment, as tests/run sets them; JOBS tests run at a time
(default 1; on a device programs with JOBS ranks in all), those of few ranks first, and none begins after LIMIT seconds.
"""

import concurrent.futures
import contextlib
import glob
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

MAT = "-mat_type"
DM = "-dm_mat_type"
PROGRAMS = {
    **{f"mat/tests/ex{n}": MAT for n in
       (2, 4, 5, 9, 18, 28, 37, 40, 42, 49, 62, 68, 93, 94, 96, 109, 114, 123, 125, 132, 138, 151, 176, 182, 190, 209, 226, 233, 236, 237, 249, 250,
        251, 254, 258, 301)},
    **{f"ksp/ksp/tutorials/ex{n}": MAT for n in (2, 7, 10, 23, 56)},
    "snes/tutorials/ex14": MAT,  # sets AIJ itself: -dm_mat_type does nothing there
    "ts/tutorials/ex3": MAT, "ts/tutorials/ex5": DM,
    "ksp/ksp/tutorials/ex34": DM, "ksp/ksp/tutorials/ex45": DM,
    "snes/tutorials/ex5": DM, "snes/tutorials/ex19": DM, "snes/tutorials/ex48": DM,
}

# Tests that cannot agree, with the reason
EXCUSED = {
    # prints residuals beyond the point where this pipelined method breaks down: AIJ's are not those that PETSc expects either
    "ksp/ksp/tutorials/ex2 pipelcg",
    # Newton's inner solves stop by a tolerance on the way of unconverged iterates, and HYPRE coarsens by thresholds: a last bit decides
    "snes/tutorials/ex19 aspin",
    "snes/tutorials/ex19 tut_3",
    # four ranks' coarse problem is solved in parallel, in an order that changes from run to run (AIJ and AIJPERM differ as much)
    "ksp/ksp/tutorials/ex45 1",
    # refuses any type but AIJ by its exact name, AIJPERM, too
    "mat/tests/ex237 1",
    "mat/tests/ex237 basic",
    "mat/tests/ex237 maij",
    # print what is left of differences of numbers 8 to 15 digits larger: AIJ without inodes prints others, too
    "dm/impls/stag/tests/ex40 1d_test_jac",
    "ts/tutorials/ex12 2",
    "ts/tutorials/phasefield/biharmonic2 1",
    "ts/tutorials/phasefield/biharmonic3 1",
    "ts/tutorials/phasefield/heat 1",
    # each time step of this reaction trebles a difference: AIJ with -ksp_gmres_modifiedgramschmidt, and PETSc's expected output, have other numbers, too
    "ts/tutorials/advection-diffusion-reaction/ex3 1",
    "ts/tutorials/advection-diffusion-reaction/ex3 2",
    # prints the first seven letters of the matrix type
    "ts/tutorials/ex3 stringview",
    # prints the two eigenvalues of a conjugate pair, with complex numbers in the order that the last digits decide
    "slepc/pep/tutorials/ex16 1",
}
COMBINATIONS = 3  # of the values in {{a b c}}
RANKS = 4         # at most; a test for more runs with these, and without its expected output

env = os.environ
SLOWER = int(env.get("SLOWER", "1"))
TIMEOUT = 120 * SLOWER  # seconds
TYPES = env.get("TYPES", "sellp evchyb").split()
LIB = env["LIB"]
MPIEXEC = shlex.split(env.get("MPIEXEC", "mpiexec"))
BUILD = os.path.join(env["TESTS"], "petsc")
ARGS = sys.argv[1:] if __name__ == "__main__" else []  # tests/clients imports this file
VERBOSE = "-v" in ARGS
USED = "-used" in ARGS
REPLACE = "-replace" in ARGS
FIRST = int(ARGS.pop(ARGS.index("-first") + 1)) if "-first" in ARGS else None
ALSO = int(ARGS.pop(ARGS.index("-ranks") + 1)) if "-ranks" in ARGS else None
JOBS = int(env.get("JOBS", "1"))
DEVICE = bool(env.get("DEVICE"))
DEVICE_VECTORS = ["-vec_type", "cuda", "-dm_vec_type", "cuda"]  # the one that the program reads
END = time.monotonic() + float(env.get("LIMIT", "inf"))


def make_variables(*names):
    text = "include ${PETSC_DIR}/lib/petsc/conf/variables\nprint:\n" + "".join(f"\t@echo '$({n})'\n" for n in names)
    out = subprocess.run(["make", "-s", "-f", "-", "print"], input=text, capture_output=True, text=True, check=True).stdout
    return dict(zip(names, out.split("\n")))


def find_sources():
    """The folder with PETSc's sources of tests: next to an installed PETSc, in it, or where Debian installs them."""
    top = env["PETSC_DIR"]
    with open(CONF.replace("petscconf.h", "petscversion.h") if os.path.exists(CONF.replace("petscconf.h", "petscversion.h"))
              else f"{top}/include/petscversion.h") as f:
        v = dict(re.findall(r"#define PETSC_VERSION_(MAJOR|MINOR)\s+(\d+)", f.read()))
    debian = f"/usr/share/petsc/{v['MAJOR']}.{v['MINOR']}/share/petsc/examples/src"
    for folder in (env.get("PETSC_SRC", ""), f"{top}/share/petsc-src/src", f"{top}/share/petsc/examples/src", debian, f"{top}/src"):
        if os.path.isfile(f"{folder}/mat/tests/ex2.c"):
            return folder
    return None


def find_slepc():
    """SLEPc for this PETSc: its folder and the folder with the sources of its tests, or None twice."""
    top, arch = env.get("SLEPC_DIR"), os.path.basename(os.path.realpath(env["PETSC_DIR"]))
    for folder in [top] if top else sorted(glob.glob(f"/usr/lib/slepcdir/slepc3*/{arch}")):
        version = re.search(r"slepc(3\.\d+)", folder)
        for src in (env.get("SLEPC_SRC", ""), f"{folder}/src", f"/usr/share/slepc/{version.group(1)}/share/slepc/examples/src" if version else ""):
            if os.path.isfile(f"{src}/eps/tutorials/ex1.c") and os.path.isfile(f"{folder}/include/slepcconf.h"):
                return folder, src
    return None, None


def slepc_programs():
    """All of SLEPc's solvers of eigenvalues, singular values and matrix functions, its spectral transformations and bases, with what tests them."""
    names = [os.path.relpath(f, SLEPC_SRC)[:-2] for kind in ("eps", "svd", "pep", "nep", "mfn", "lme", "sys/classes/st") for f in glob.glob(f"{SLEPC_SRC}/{kind}/t*s/*.c")]
    names += [f"sys/classes/bv/tests/test{n}" for n in (3, 5, 7, 9, 11, 18)]  # products with several vectors; the others have no matrix
    return {f"slepc/{n}": MAT for n in sorted(names, key=lambda n: [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", n)])}


def more_programs():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "more.txt")) as f:
        return {f"{folder}/{name}": option for option, folder, *names in (line.split() for line in f if not line.startswith("#")) for name in names}


def source_of(name):
    """A program's source, without the suffix; None where the sources that hold it are not here."""
    folder, name = (SLEPC_SRC, name[6:]) if name.startswith("slepc/") else (SRC, name)
    return folder and f"{folder}/{name}"


class Test:
    def __init__(self, parent=None):
        self.keys = {k: list(v) for k, v in parent.keys.items()} if parent else {}

    def get(self, key, default=""):
        return " ".join(self.keys.get(key, [default]))


def parse(source):
    """The tests in a program's /*TEST comment: a testset's keys are inherited, args and requires add up."""
    with open(source, errors="replace") as f:
        block = re.search(r"/\*TEST(.*?)TEST\*/", f.read(), re.S)
    tests, scopes, key = [], [(-1, Test())], None
    for line in re.sub(r"\\[ \t]*\n", "\n", block.group(1) if block else "").split("\n"):
        if not line.strip() or line.strip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        m = re.match(r"\s*(\w+):\s*(.*)$", line)
        if m and m.group(1) in ("test", "testset", "build"):
            while scopes[-1][0] >= indent:
                scopes.pop()
            parent = scopes[-1][1]
            scopes.append((indent, parent if m.group(1) == "build" else Test(parent)))  # what the program requires, each test does
            if parent in tests:  # a testset is a test only where it has none inside
                tests.remove(parent)
            if m.group(1) != "build":
                tests.append(scopes[-1][1])
        elif m and m.group(1) in ("args", "requires", "nsize", "suffix", "filter", "output_file", "diff_args", "timeoutfactor", "TODO", "depends", "localrunfiles", "temporaries", "env", "CONVERT", "comments", "SKIP"):
            while scopes[-1][0] >= indent:
                scopes.pop()
            key = m.group(1)
            if key in ("args", "requires"):
                scopes[-1][1].keys.setdefault(key, []).append(m.group(2))
            else:
                scopes[-1][1].keys[key] = [m.group(2)]
        elif key:  # a line that continues
            scopes[-1][1].keys[key].append(line.strip())
    return tests


def satisfied(requires):
    words = re.sub(r"defined\s*\(\s*(\w+)\s*\)", r"defined(\1)", requires).split()
    for word in words:
        negate, name = word.startswith("!"), word.lstrip("!")
        if name.startswith("defined("):
            have = name[8:-1] in CONFIG
        elif name in ("complex", "real"):
            have = ("PETSC_USE_COMPLEX" in CONFIG) == (name == "complex")
        elif name in ("double", "single", "__float128", "__fp16"):
            have = {"double": "PETSC_USE_REAL_DOUBLE", "single": "PETSC_USE_REAL_SINGLE"}.get(name, "none") in CONFIG
        elif name == "datafilespath":
            have = "DATAFILESPATH" in env
        elif name == "64bitptr":
            have = True
        elif name in ("c99", "c", "cxx", "infinity"):
            have = True
        elif name == "debug":
            have = "PETSC_USE_DEBUG" in CONFIG
        else:
            have = f"PETSC_HAVE_{name.upper()}" in CONFIG
        if have == negate:
            return False
    return True


def combinations(args):
    """{{a b}} means several values; the first COMBINATIONS of all choices."""
    parts = re.split(r"\{\{(.*?)\}(?:shared output|separate output)?\}", args)
    choices = [[p] if k % 2 == 0 else p.split() or [""] for k, p in enumerate(parts)]
    # from both ends, so that every value of a short list is met
    every = ["".join(c) for c in itertools.product(*choices)]
    return every if len(every) <= COMBINATIONS else [every[k * (len(every) - 1) // (COMBINATIONS - 1)] for k in range(COMBINATIONS)]


def normalize(text):
    lines = []
    for line in text.replace("\r", "").split("\n"):
        line = re.sub(r"\b(seq|mpi)?((aij)?(sellp|evchyb)|aijperm)\b", lambda m: (m.group(1) or "") + "aij", line)
        if DEVICE:
            line = re.sub(r"\b(seq|mpi)?aijcusparse\b", lambda m: (m.group(1) or "") + "aij", line)
            line = re.sub(r"\b(seq|mpi)(dense)?cuda\b", lambda m: m.group(1) + (m.group(2) or ""), line)
        if re.search(r"\baij format\b|WARNING! There are options|^Option left|^\s*There (is|are) one unused|Unable to find|^--+$|aij(cusparse)?.*variant|-mat_spmv_replace|orthogonalization on the device|package used to perform factorization", line) or not line.strip():
            continue
        lines.append(" ".join(line.split()))
    return lines


NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def differ(a, b, tolerance=1e-2):
    """The first pair of lines that differ in more than the last digits of numbers with a decimal point."""
    for k, (x, y) in enumerate(itertools.zip_longest(a, b, fillvalue="(end)")):
        if x == y:
            continue
        if NUMBER.sub("#", x) == NUMBER.sub("#", y):
            close = True
            for u, v in zip(NUMBER.findall(x), NUMBER.findall(y)):
                if u == v:
                    continue
                if not re.search(r"[.eE]", u + v):
                    close = False
                elif abs(float(u) - float(v)) > tolerance * max(abs(float(u)), abs(float(v))) + 1e-9:
                    close = False
            if close:
                continue
        return f"line {k + 1}: '{y[:160]}' where '{x[:160]}' was due"
    return None


def run(command, folder, filters=None):
    p = subprocess.run(["timeout", "-k", "10", str(TIMEOUT), *command], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL)
    code, out, err = p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
    if code == 124:
        return 124, "", f"no end after {TIMEOUT} seconds"
    if filters:
        out = subprocess.run(filters, shell=True, input=out, capture_output=True, text=True, cwd=folder).stdout
    return code, out, err


def complaint(text):
    """The first lines of PETSc's error message, or else the last of the output."""
    lines = [line[line.index("ERROR:") + 7:] for line in text.split("\n") if "ERROR: " in line and "----" not in line]
    return " / ".join(lines[:3] + [line for line in lines if line.startswith("#1 ")][:1])[:600] if lines else text[-600:]


def compile_program(name):
    source, target = f"{source_of(name)}.c", os.path.join(BUILD, name.replace("/", "-"))
    if os.path.exists(target) and os.path.getmtime(target) > os.path.getmtime(source):
        return target, None
    os.makedirs(BUILD, exist_ok=True)
    v = make_variables("PCC", "PCC_FLAGS", "PETSC_CC_INCLUDES", "PETSC_LIB_DIR", "PETSC_LIB_BASIC")
    slepc = []
    if name.startswith("slepc/"):  # Debian's library has the scalar type in its name
        library = next(n for n in ("slepc", "slepc_real", "slepc_complex") if os.path.exists(f"{SLEPC}/lib/lib{n}.so"))
        slepc = [f"-I{SLEPC}/include", f"-L{SLEPC}/lib", f"-Wl,-rpath,{SLEPC}/lib", f"-l{library}"]
    p = subprocess.run([*shlex.split(v["PCC"]), *shlex.split(v["PCC_FLAGS"]), "-w", "-O1", *shlex.split(v["PETSC_CC_INCLUDES"]), f"-I{os.path.dirname(source)}", "-o", target, source, *slepc,
                        f"-L{v['PETSC_LIB_DIR']}", f"-Wl,-rpath,{v['PETSC_LIB_DIR']}", *shlex.split(v["PETSC_LIB_BASIC"]), "-lm"], capture_output=True, text=True)
    return target, p.stderr[-500:] if p.returncode else None


def test_cases(name, source):
    """Every run that a program's comment specifies: the test, its ranks as specified, its arguments."""
    for test in parse(source)[:FIRST]:
        given = re.findall(r"-(?:dm_)?mat_type (?:\{\{)?(\w+)", test.get("args"))
        if test.keys.get("TODO") or "-info" in test.get("args").split() or not satisfied(test.get("requires")) or any("aij" not in g or g.startswith(("baij", "sbaij", "seqbaij", "seqsbaij", "mpibaij", "mpisbaij")) for g in given):
            continue
        if test.get("filter").startswith("Error:"):
            continue  # tests of error messages
        if f"{name} {test.get('suffix').strip() or '1'}" in EXCUSED:
            continue
        sizes = [int(n) for n in re.findall(r"\d+", test.get("nsize", "1"))]
        if ALSO and sizes == [1]:
            sizes.append(ALSO)
        for size, args in itertools.product(sizes[:COMBINATIONS], combinations(test.get("args"))):
            yield test, size, args


def choose(option, kind):
    """The options by which a program's matrices get one of our types"""
    named = "aijcusparse" if DEVICE else "aij"
    return [option, named, "-mat_spmv_replace", named, "-mat_spmv_replace_format", kind] if REPLACE else [option, kind]


class Clients:
    """The ranks that use a device at the same time, JOBS at most"""
    def __init__(self):
        self.count, self.changed = 0, threading.Condition()

    @contextlib.contextmanager
    def of(self, ranks):
        with self.changed:
            self.changed.wait_for(lambda: not self.count or self.count + ranks <= JOBS)
            self.count += ranks
        try:
            yield
        finally:
            with self.changed:
                self.count -= ranks
                self.changed.notify_all()


CLIENTS = Clients()


def replaced(label, option, command, scratch, filters):
    """One test on a device with aijcusparse, replaced by our types and not: with CUDA's vectors, and with the program's own"""
    def output(*options):
        code, out, err = run([*command, *options], scratch, filters)
        return f"exit code {code}: {complaint(out + err)}" if code else None, normalize(out)

    results = []
    for given in (DEVICE_VECTORS, []):
        broken, expected = output(option, "aijcusparse", *given)
        if broken:
            results.append(("skipped", f"{label} {' '.join(given)} fails with aijcusparse: {broken}"))
            continue
        for kind in TYPES if given else TYPES[:1]:
            words = [*choose(option, kind), *given]
            error, mine = output(*words, *(["-log_view", f":used-{kind}"] if USED else []))
            why = error or differ(expected, mine)
            if why and not error and not given:  # aijcusparse loses what it writes into host vectors
                why = differ(output(option, "aij")[1], mine)
            if why and not error and any(differ(expected, output(option, "aijcusparse", *given)[1]) for _ in range(3)):
                results.append(("skipped", f"{label} does not repeat its own numbers with aijcusparse"))
            elif why:
                results.append(("failed", f"FAILED petsc {label}: {shlex.join([*command, *words])}: {why}"))
            else:
                results.append(("passed", f"  passed {shlex.join([*command, *words])}"))
                if USED and multiplied(f"{scratch}/used-{kind}"):
                    results.append(("used", ""))
    return results


def multiplied(log, event="MatSpMVSetUp"):
    """Whether a program multiplied in the format, and a further event happened, by what -log_view wrote."""
    if not os.path.exists(log):
        return False
    with open(log, errors="replace") as f:
        text = f.read()
    return "MatSpMVSetUp" in text and event in text


def one(name, option, program, test, size, args):
    """Runs one test with AIJ and with our types: returns the results to print, as pairs of a kind and a text."""
    if time.monotonic() > END:
        return [("late", "")]
    folder, suffix, results = os.path.dirname(source_of(name)), test.get("suffix").strip(), []
    more = size not in [int(n) for n in re.findall(r"\d+", test.get("nsize", "1"))]  # with more ranks than specified
    label = f"{name} suffix {suffix or '1'}{f', {size} ranks' if more else ''}"
    filters = test.get("filter") or None
    for variable, value in (("wPETSC_DIR", env["PETSC_DIR"]), ("PETSC_DIR", env["PETSC_DIR"]), ("SLEPC_DIR", SLEPC or ""), ("DATAFILESPATH", env.get("DATAFILESPATH", ""))):
        args = args.replace(f"${{{variable}}}", value)
    words = shlex.split(args)
    ranks = min(size, RANKS)
    command = [*MPIEXEC, "-n", str(ranks), program, *words, "-dll_append", LIB, "-options_left", "no",
               "-mat_spmv_setup_after", "0"]  # these programs multiply a few times only
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as held:  # some tests write files, some read them
        for file in (f for f in test.get("localrunfiles").split() if os.path.exists(f"{folder}/{f}")):
            (shutil.copytree if os.path.isdir(f"{folder}/{file}") else shutil.copy)(f"{folder}/{file}", f"{scratch}/{os.path.basename(file)}")
        code, out, err = run([*command, option, "nonesuch"], scratch)
        if "nonesuch" not in out + err:
            return [("skipped", f"{label} ignores {option}")]
        if DEVICE:
            held.enter_context(CLIENTS.of(ranks))
            if REPLACE:
                return replaced(label, option, command, scratch, filters)
        code, out, err = run([*command, option, "aij"], scratch, filters)
        if code:
            return [("skipped", f"{label} fails with AIJ")]
        aij, expected, model, broken = normalize(out), None, None, None
        path = test.get("output_file").strip() or f"output/{os.path.basename(name)}_{suffix or '1'}.out"
        if ranks == size and not more and os.path.isfile(f"{folder}/{path}"):
            with open(f"{folder}/{path}", errors="replace") as f:
                expected = normalize(f.read())
            if differ(expected, aij):
                expected = None  # AIJ itself differs: another machine, another build
        vectors = DEVICE_VECTORS if DEVICE else []
        if DEVICE:  # PETSc's own type on the device: what it does otherwise than AIJ, ours may
            code, out, err = run([*command, option, "aijcusparse", *vectors], scratch, filters)
            broken, model = (f"exit code {code}: {complaint(out + err)}" if code else None), normalize(out)
        # on a device once more with the program's own vectors, which AIJCUSPARSE would not take
        for kind, given in [(k, vectors) for k in TYPES] + ([(TYPES[0], [])] if DEVICE else []):
            code, out, err = run([*command, *choose(option, kind), *given, *(["-log_view", f":used-{kind}"] if USED else [])], scratch, filters)
            mine = normalize(out)
            why = f"exit code {code}: {complaint(out + err)}" if code else differ(aij, mine) or (expected and differ(expected, mine))
            if why and DEVICE and (broken or (not code and not differ(model, mine))):
                results.append(("skipped", f"{label} {kind}: aijcusparse does the same: {broken or why}"))
                continue
            if why and not DEVICE:  # PETSc's own type that is derived from AIJ
                theirs, out, err = run([*command, option, "aijperm"], scratch, filters)
                if (theirs and code) or not (theirs or code or differ(normalize(out), mine)):
                    results.append(("skipped", f"{label} {kind}: aijperm does the same: {why[:200]}"))
                    continue
            if why and not code:
                # some solvers, such as PCEXOTIC on several ranks, take other steps in every run
                again = [normalize(run([*command, option, "aij"], scratch, filters)[1]) for _ in range(3)]
                if any(differ(aij, a) for a in again):
                    results.append(("skipped", f"{label} does not repeat its own numbers with AIJ"))
                    break
                if DEVICE:
                    again = [normalize(run([*command, option, "aijcusparse", *vectors], scratch, filters)[1]) for _ in range(2)]
                    if any(differ(model, a) for a in again):
                        results.append(("skipped", f"{label} does not repeat its own numbers with aijcusparse"))
                        break
            text = shlex.join([*command, *choose(option, kind), *given])
            if why:
                results.append(("failed", f"FAILED petsc {label}: {text}: {why}"))
            else:
                results.append(("passed", f"  passed {text}{' (as PETSc expects)' if expected else ''}"))
            if USED and not why and multiplied(f"{scratch}/used-{kind}"):
                results.append(("used", ""))
    return results


def read_config():
    conf = f"{env['PETSC_DIR']}/{env.get('PETSC_ARCH', '')}/include/petscconf.h"
    if not os.path.exists(conf):
        conf = f"{env['PETSC_DIR']}/include/petscconf.h"
    with open(conf) as f:
        return conf, {m for m in re.findall(r"^#define (PETSC_\w+)", f.read(), re.M)}


CONF, CONFIG = read_config()
SRC = find_sources()
SLEPC, SLEPC_SRC = find_slepc()
if SLEPC:
    with open(f"{SLEPC}/include/slepcconf.h") as conf:
        CONFIG |= {m.replace("SLEPC_", "PETSC_") for m in re.findall(r"^#define (SLEPC_HAVE_\w+) 1", conf.read(), re.M)}


def keep_sessions():
    """A folder in Open MPI's folder of sessions, which keeps that from being deleted while programs run at the same time, as in tests/run"""
    sessions = os.path.join(tempfile.gettempdir(), f"ompi.{os.uname().nodename}.{os.getuid()}")
    os.makedirs(sessions, 0o700, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="tests.", dir=sessions)


def main():
    counts, late = {"passed": 0, "failed": 0, "skipped": 0}, 0
    listed = more_programs() if "-more" in ARGS else slepc_programs() if "-slepc" in ARGS else PROGRAMS
    names = [a for a in ARGS if not a.startswith("-")] or list(listed)
    if "-slepc" in ARGS and not SLEPC:
        print("  skipped SLEPc's own tests: the package for this PETSc, or its examples, are not here (SLEPC_DIR and SLEPC_SRC name their folders)")
        counts["skipped"] += 1
        names = []
    elif not SRC and "-slepc" not in ARGS:
        print("  skipped PETSc's own tests: their sources are not here (PETSC_SRC names their folder)")
        counts["skipped"] += 1
        names = []
    with keep_sessions(), concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        programs, cases = {}, {}
        for name in names:
            if not os.path.isfile(f"{source_of(name)}.c"):
                counts["skipped"] += 1
                print(f"  skipped {name}: not in this {'SLEPc' if name.startswith('slepc/') else 'PETSc'}", flush=True)
            else:  # a program without a test for this PETSc may not compile
                cases[name] = list(test_cases(name, f"{source_of(name)}.c"))
                programs[name] = pool.submit(compile_program, name) if cases[name] or "-build" in ARGS else None
        jobs, waiting = {}, []
        for name, compiled in programs.items():
            program, error = compiled.result() if compiled else (None, None)
            if error:
                counts["failed"] += 1
                print(f"FAILED petsc {name}: does not compile: {error}", flush=True)
            elif "-build" not in ARGS:
                option = {**more_programs(), **PROGRAMS}.get(name, MAT)
                waiting += [(name, option, program, *case) for case in cases[name]]
                jobs[name] = []
        for work in sorted(waiting, key=lambda w: min(w[4], RANKS)):
            jobs[work[0]].append(pool.submit(one, *work))
        for name, running in jobs.items():
            done, notes = {"passed": 0, "failed": 0, "skipped": 0, "used": 0}, set()
            for kind, text in (r for job in running for r in job.result()):
                if kind == "late":
                    late += 1
                    continue
                done[kind] += 1
                if kind == "skipped":
                    notes.add(text)
                elif text and (kind == "failed" or VERBOSE):
                    print(text, flush=True)
            if not running:
                done["skipped"] += 1
                notes.add(f"{name} has no test for this PETSc" + (" but what is excused" if any(e.split()[0] == name for e in EXCUSED) else ""))
            print(f"  {name}: {done['passed']} passed, {done['failed']} failed" + (f", {done['used']} multiplied in the format" if USED else "") + "".join(f"\n  skipped {n}" for n in sorted(notes)), flush=True)
            for kind in counts:
                counts[kind] += done[kind]
    if late:
        print(f"FAILED petsc: {late} tests were not begun when the time was up")
        counts["failed"] += 1
    if "-build" not in ARGS:
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
