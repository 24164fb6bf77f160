"""Shared by the scripts of the benchmarks: files that are either complete or do not exist, and programs that do not outlive the script"""

import contextlib
import csv
import glob
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = ("petsc", "machine", "commit")  # the last columns of each results file


def commit():
    """The commit that is measured; a packed copy (tools/gpu-pack) has it in its environment"""
    try:
        p = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return p.stdout.strip() or "unknown"


os.environ.setdefault("BENCH_COMMIT", commit())  # programs read it, too: results.h


def source(gpu=""):
    """PETSc, of the folder of the programs, machine and commit, as results.h has them"""
    machine = gpu
    if not machine and os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", errors="replace") as f:
            machine = next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), "")
    built = os.environ.get("BENCH") or max(glob.glob(os.path.join(ROOT, "build/[0-9]*")), key=os.path.getmtime, default="")
    petsc = re.search(r"build/(\d+\.\d+\.\d+)", built)
    return dict(zip(SOURCE, (petsc[1] if petsc else os.environ.get("BENCH_PETSC", "unknown"), machine or "unknown", os.environ["BENCH_COMMIT"])))


def shortened(text, most=12):
    """Without what can be unfolded, and without tables of more rows, which the CSV files have"""
    text = re.sub(r"<details>.*?</details>\n*", "", text, flags=re.S)
    kept = []
    for paragraph in re.split(r"\n\n+", text):
        rows = paragraph.count("\n") - 1
        if paragraph.startswith("|") and rows > most:
            paragraph = f"(Not shown: {rows} rows, which the benchmark writes.)"
        if re.match(r"\(Not shown|Repeat with", paragraph) and kept and not re.match(r"[-#|]", kept[-1]):
            kept[-1] += f" {paragraph}"
        else:
            kept.append(paragraph)
    return "\n\n".join(kept)


def complete(row):
    """Not a line that was cut off"""
    return None not in row and None not in row.values()


def read(path):
    """The rows of a CSV file"""
    with open(path, newline="") as f:
        return [r for r in csv.DictReader(f) if complete(r)]


def mean(values):
    """The geometric mean of those that were measured, 0 if none was"""
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


def gpu_name():
    """The name of the first GPU, or nothing"""
    try:
        p = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return p.stdout.strip().split("\n")[0]


def launcher():
    """The words of the command that starts MPI programs"""
    return shlex.split(os.environ.get("MPIEXEC") or os.path.join(ROOT, "tools", "mpiexec"))


def make_meshes(*options):
    """Matrices of meshes in the folder MESHES, unless it has some; returns whether it has"""
    folder = os.environ["MESHES"]
    if not glob.glob(os.path.join(folder, "*.petsc")):
        subprocess.run([os.path.join(ROOT, "bench/lib/meshes.py"), "-out", folder, *options], check=False)
    return bool(glob.glob(os.path.join(folder, "*.petsc")))


def mkl():
    """MKL as an option of the programs, if it can be had"""
    subprocess.run([os.path.join(ROOT, "bench/lib/python"), "mkl", "sys"], stdout=subprocess.DEVNULL, check=False)
    return ["-mkl", *found[:1]] if (found := glob.glob(os.path.join(ROOT, "build/bench-venv/lib/libmkl_rt.so*"))) else []


@contextlib.contextmanager
def whole(path, **how):
    """A file to write, which replaces an older one when it is complete; if writing is interrupted, path.new is left"""
    with open(path + ".new", "w", **how) as f:
        yield f
    os.replace(path + ".new", path)


def end(p, seconds=5):
    """Ends a program started by program(): first with a signal that it can handle, because mpiexec has to end its processes, and after some seconds by force"""
    with contextlib.suppress(subprocess.TimeoutExpired):
        p.terminate()
        p.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(p.pid, signal.SIGKILL)
    p.wait()


@contextlib.contextmanager
def program(command, **how):
    """A program whose output is read, in its own session: end() reaches all processes that it starts, and an interrupt from a terminal reaches only the script.
    It does not outlive an interrupt of the block"""
    p, pending = None, []
    before = {s: signal.signal(s, lambda number, _: pending.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        try:  # an exception inside Popen() would leave a program that is not known here
            p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, **how)
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)
        if pending:
            signal.raise_signal(pending[0])
        yield p
    except BaseException:
        if p:
            end(p)
        raise


def finish(launcher, words, seconds, **how):
    """Runs a program started by program() until it ends or its time is up, and prints the outcome; returns its output, and whether it succeeded"""
    begin = time.time()
    print("+ " + shlex.join(launcher[-1:] + words), flush=True)
    with program(launcher + words, **how) as p:
        try:
            text, late = p.communicate(timeout=seconds)[0], False
        except subprocess.TimeoutExpired:
            end(p)
            text, late = p.communicate()[0], True
    if late or p.returncode:
        print("".join("  " + line[:300] + "\n" for line in text.splitlines()[-25:]), end="")
        print(f"  FAILED: not done after {seconds:.0f} s" if late else f"  FAILED: exit status {p.returncode}", flush=True)
    else:
        print(f"  {time.time() - begin:.0f} s", flush=True)
    return text, not late and p.returncode == 0


class Runs:
    """The base of the runs of a script: when they began, how many failed or were not begun, and how programs are started"""

    def __init__(self, args):
        self.args, self.begin, self.failed, self.cut = args, time.time(), 0, 0
        self.mpiexec = launcher()

    def left(self):
        """Seconds until the limit"""
        return self.args.limit - (time.time() - self.begin) if self.args.limit else 1e6

    def where(self, devices):
        return f"{devices} GPUs" if devices else f"{os.cpu_count()} cores"


def measured(name, args, runs, report):
    """Runs the measurements, unless -report names their files, and writes and prints the tables of them"""
    targets = args.report or [os.path.join(args.out, name + ".csv")]
    all_runs = None if args.report else runs(args)
    if all_runs:
        all_runs.run(targets[0])
    rows = [r for t in targets for r in read(t)]
    if not rows:
        sys.exit(f"{name}: no figures")
    page = os.path.splitext(targets[0])[0] + ".md"
    with whole(page) as f:
        report(f, rows)
    with open(page) as f:
        print(f.read())
    print(", ".join([*targets, page]))
    sys.exit(1 if all_runs and (all_runs.failed or all_runs.cut) else 0)


def gpus():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")
    except (OSError, subprocess.CalledProcessError):
        return 0


def ours(kind):
    return not kind.startswith("aij")


def show(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def table(f, head, rows):
    f.write("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n" + "".join("| " + " | ".join(r) + " |\n" for r in rows) + "\n")


def run(main, name, hint=""):
    """Calls main(). If the script is to be terminated, main() ends as after an interrupt, so that work in progress is cleaned up"""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(f"\n{name}: interrupted{hint}")
