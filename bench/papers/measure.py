"""Measures the papers' experiments: bench/papers/paper.c, Nsight Compute (ncu) and examples/bratu.

Measurements are CSV files, <device>-<measurement>.csv in one folder. Several experiments may use one measurement. A measurement that was interrupted goes on
with the matrices that its file lacks.
"""

import contextlib
import csv
import glob
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import results
from results import ROOT, complete, read

from published import MATRICES, TABLE_3
from tables import key, on_host


BT = [(b, t) for b in (4, 8, 16, 32, 64) for t in (1, 2, 4, 8, 16, 32) if 32 <= b * t <= 1024]
SWEEP = ["twin:" + m for m in ("cant", "pwtk", "F1", "ldoor", "cage14", "scircuit", "webbase-1M", "crankseg_2")]
# of the size of two matrices of the formats' comparison, plsk1919 and e40r5000, and of the one that its table has the numbers of
LIKE = ["lengths:1919:5:0:1:200", "lengths:17281:32:0:1:800", "lengths:11948:12:0:1:1200"]
# about eight million entries each on a GPU, a million on the host, except for the real ones: by length of the rows, by place of the columns, by skew
PROFILES = {
    "device": [
        "tests/matrices/lns_131.mtx", "tests/matrices/cage8.mtx", "twin:cant", "tridiag:2700000", "stencil5:1260", "fem27:68:1",
        "lengths:4000000:2:0:1:2000", "lengths:1000000:8:0:1:2000", "lengths:250000:32:0:1:2000", "lengths:62500:128:0:1:2000",
        "lengths:16000:512:0:1:4000", "lengths:1000000:8:0:1:0", "lengths:250000:32:0:1:0", "lengths:250000:2:1:61:2000",
        "powerlaw:2000000:3.1:1.6:4700:1", "powerlaw:1500000:5.6:2.5:456:0", "random:18000", "twin:dc1", "arrow:200000", "tsopf:20000", *LIKE,
    ],
    "host": [
        "tests/matrices/lns_131.mtx", "tests/matrices/cage8.mtx", "twin:cant", "tridiag:340000", "stencil5:450", "fem27:34:1",
        "lengths:500000:2:0:1:2000", "lengths:125000:8:0:1:2000", "lengths:31250:32:0:1:2000", "lengths:7800:128:0:1:2000",
        "lengths:4000:512:0:1:1500", "lengths:125000:8:0:1:0", "lengths:31250:32:0:1:0", "lengths:31250:2:1:61:2000",
        "powerlaw:250000:3.1:1.6:4700:1", "powerlaw:190000:5.6:2.5:456:0", "random:6400", "twin:dc1", "arrow:200000", "tsopf:2600", *LIKE,
    ],
}  # fmt: skip
RANDOM = {"device": [5000, 10000, 20000, 35000, 50000, 65000], "host": [2500, 5000, 10000]}

# CSR5's sigma: rows of equal lengths, from which its bounds follow, and what these are tried on
SIGMAS = [4, 8, 12, 16, 20, 24, 28, 32]
DENSITIES = [2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024]
EVEN = {kind: [f"lengths:{entries // n}:{n}:0:1:{max(2000, 4 * n)}" for n in DENSITIES] for kind, entries in (("device", 8000000), ("host", 1000000))}
# What the kernels of this library do, by ncu: matrices of README and of the two papers
ROOFLINE = ["stencil7:200", "bratu:200", "fem27:68:3", "fem27:68:3:0.6", "webbase", "google", "random:20000", "tsopf", "twin:F1", "twin:cage14", "twin:dc1"]

METRICS = ["gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "lts__t_sector_hit_rate.pct", "l1tex__t_bytes.sum",
           "l1tex__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__grid_size", "launch__block_size",
           "launch__registers_per_thread"]  # fmt: skip
MORE_METRICS = ["smsp__thread_inst_executed_per_inst_executed.ratio", "sm__inst_executed.avg.per_cycle_elapsed", "sm__inst_issued.avg.per_cycle_active",
                "sm__cycles_active.avg", "sm__cycles_elapsed.max", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
                "lts__t_sectors_op_write.sum", "lts__t_sectors_op_read.sum", "smsp__inst_executed.sum", "smsp__warps_launched.sum",
                "launch__shared_mem_per_block", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
                "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"]  # fmt: skip
RENAMED = {"dram__bytes_read.sum": "dram__bytes_op_read.sum", "dram__bytes_write.sum": "dram__bytes_op_write.sum"}  # on GPUs after Hopper
KERNELS = {
    "evchyb-sorted": ["SpMV_EVCHYB_adaptive"], "evchyb-load-x": ["SpMV_EVCHYB_adaptive"], "evchyb-l2-x": ["SpMV_EVCHYB_adaptive"],
    "sellp-paper": ["sellp_paper"], "hyb": ["ell", "coo_segmented"], "ell": ["ell"], "coo": ["coo_scalar"], "coo-segmented": ["coo_segmented"],
    "coo-balanced": ["coo_balanced"], "csr-scalar": ["csr"], "csr-vector": ["csr"], "sellp": ["slices|diagonals"], "evchyb": ["slices|diagonals"],
}  # fmt: skip


def real(matrix):
    """Whether the folder MATRICES has the matrix itself, of which bench/papers/paper otherwise generates a twin"""
    folder = os.environ.get("MATRICES")
    return bool(folder) and os.path.exists(os.path.join(ROOT, folder, matrix + ".mtx"))


class Measuring:
    def __init__(self, args):
        self.args, self.out = args, args.out
        self.program = os.path.join(args.programs, "paper")
        self.bratu = os.environ.get("BRATU") or os.path.join(os.path.dirname(args.programs), "examples", "bratu")
        self.deadline, self.failed = time.time() + args.limit, False
        if not os.access(self.program, os.X_OK):
            sys.exit(f"bench/papers/paper.py: {self.program} is missing; start me with make paper, or name the folder by -programs")
        # the program knows: a PETSc without CUDA measures the host, whatever the machine has
        p = subprocess.run([self.program, "-where"] + (["-host"] if args.host else []), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        where = re.search(r"^where: (\S+)", p.stdout, re.M)
        if p.returncode or not where:
            sys.exit(f"bench/papers/paper.py: {self.program} does not run: exit status {p.returncode}")
        self.device = where[1]
        self.kind = "host" if on_host(self.device) else "device"
        os.makedirs(self.out, exist_ok=True)

    def path(self, measurement, ext="csv"):
        return os.path.join(self.out, f"{self.device}-{measurement}.{ext}")

    def left(self):
        return self.deadline - time.time()

    def start(self, command, log, env=None):
        """Runs the program, and prints the matrices that it names. Returns the exit status, -1: the time was up, and the number of matrices measured"""
        count = 0
        if self.left() < 2:
            return -1, count
        with results.program(command, cwd=ROOT, env=env) as p:
            late = threading.Timer(min(self.left(), 1e6), results.end, (p,))
            late.daemon = True
            late.start()
            try:
                with open(log, "a") as f:
                    f.write(" ".join(command) + "\n")
                    for line in p.stdout:
                        f.write(line)
                        m = re.match(r"(\S+) \(.*\), \d+ x \d+, |(\S+) is left out", line)
                        if m:
                            count += bool(m[1])
                            print(f"  {m[0]}", flush=True)
                        if "WRONG" in line or "PETSC ERROR" in line:
                            print("\n" + line.rstrip())
                p.wait()
            finally:
                late.cancel()
        return -1 if p.returncode and self.left() <= 0 else p.returncode, count

    @staticmethod
    def replace(target, columns, rows):
        """A CSV that is there as a whole or not at all"""
        with results.whole(target, newline="") as f:
            w = csv.DictWriter(f, columns, restval="", extrasaction="ignore", lineterminator="\n")
            w.writeheader()
            w.writerows(rows)

    def kept(self, target):
        """The matrices in a file. What is to be measured again is taken out: where the last line was cut off, its matrix; a twin, where there is a file now"""
        if not os.path.exists(target) or self.args.again:
            return set()
        with open(target, newline="") as f:
            text = f.read()
        reader = csv.DictReader(io.StringIO(text))
        rows = list(reader)
        columns = [*(reader.fieldnames or []), *(c for c in results.SOURCE if c not in (reader.fieldnames or []))]  # older files lack these
        if not rows:  # the head at most: not to be kept until all is measured
            os.remove(target)
        if not rows or "matrix" not in rows[0] or "kernel" not in rows[0]:
            return set()
        drop = {key(r["matrix"]) for r in rows if r["origin"] == "twin" and real(key(r["matrix"]))}
        if not text.endswith("\n"):
            drop |= {key(r["matrix"]) for r in rows[-2:]}
        left = [r for r in rows if key(r["matrix"]) not in drop and complete(r)]
        if len(left) < len(rows) or columns != reader.fieldnames:
            self.replace(target, columns, left)
        return {key(r["matrix"]) for r in left}

    def run(self, name, matrices, options):
        """A CSV of bench/papers/paper.c; what it holds already is not measured again"""
        target, begin = self.path(name), time.time()
        have = self.kept(target)
        todo = [m for m in matrices if key(m) not in have]
        if not todo:
            print(f"{name}: {target} is complete")
            return
        what = ["-stream", todo[0].partition(":")[2]] if name == "stream" else ["-matrices", ",".join(todo)]
        command = [self.program, *what, "-csv", target, "-reps", str(self.args.reps)] + options
        command += ["-append"] if have else []
        command += ["-host"] if self.args.host else []
        command += self.limits()
        command += results.mkl() if self.kind == "host" else []
        status, count = self.start(command, self.path(name, "log"))
        how = {0: "", -1: ", then the time was up"}.get(status, f", exit status {status}")
        print(f"{name}: {count} of {len(todo)} matrices in {time.time() - begin:.0f} s{how}")
        self.failed = self.failed or status not in (0, -1)

    def limits(self):
        return ["-max_entries", str(self.args.max_entries)] if self.args.max_entries else []

    def matrices(self):
        # long ones last: if the time is up, they are missing
        order = sorted(("twin:" + m for m in MATRICES), key=lambda m: m == "twin:indochina-2004")
        self.run("matrices", order, ["-partition"])

    def sweep(self):
        self.run("sweep", SWEEP, ["-formats", ",".join(["sellp"] + [f"sellp-paper:{b}:{t}" for b, t in BT if self.kind == "device" or b == 8])])

    def random(self):
        aij = "petsc:aijcusparse" if self.kind == "device" else "petsc:aij"
        formats = f"evchyb-sorted,evchyb-paper,evchyb,sellp,csr-adaptive,hyb,csr-scalar,csr-vector,mkl,{aij},cusparse:csr1,cusparse:coo1"
        self.run("random", [f"random:{n}" for n in RANDOM[self.kind]], ["-formats", formats])

    def profiles(self):
        formats = "coo,coo-segmented,coo-balanced,csr-scalar,csr-vector,ell,hyb,sell-32,sell-32-1024,sell-32-all,sell-8-64,csr5,csr5-8-16,sellp,evchyb"
        formats += ",cusparse:csr1,mkl"
        self.run("profiles", PROFILES[self.kind], ["-formats", formats])

    def stream(self):
        self.run("stream", ["stream:20000000"], [])

    def loads(self):
        """Loads of x in EVC-HYB's kernel, and its thread blocks"""
        self.run("loads", ["twin:" + m for m in TABLE_3 if m != "indochina-2004"], ["-formats", "evchyb-sorted,evchyb-256,evchyb-load-x,evchyb-l2-x"])

    def csr5(self):
        if self.kind == "device":
            formats = ",".join(["csr5"] + [f"csr5:{s}" for s in SIGMAS])
            self.run("csr5", [*EVEN["device"], *(m for m in PROFILES["device"] if m not in EVEN["device"])], ["-formats", formats])

    def once(self, name, target, runs):
        """A CSV file that is complete or missing: by commands with their environments"""
        if os.path.exists(target) and not self.args.again:
            print(f"{name}: {target} is complete")
            return
        for command, env in runs:
            self.failed = self.start(command, self.path(name, "log"), env)[0] > 0 or self.failed

    def twins(self):
        """The real matrices at hand and their twins"""
        target, names = self.path("twins"), [m for m in MATRICES if real(m)]
        if not names:
            print("twins: left out, there are no real matrices")
            return
        command = [self.program, "-matrices", ",".join("twin:" + m for m in names), "-csv", target, "-reps", str(self.args.reps)]
        command += (["-host"] if self.args.host else []) + self.limits()
        self.once("twins", target, [(command, None), ([*command, "-append"], dict(os.environ, MATRICES=""))])

    def single(self):
        """What values in single precision cost"""
        program = os.path.join(os.path.dirname(self.program), "single")
        if not os.access(program, os.X_OK):
            print(f"single: left out, {program} is missing")
            return
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="") if self.args.host else None
        self.once("single", self.path("single"), [([program, "-csv", self.path("single")], env)])

    def bratu_(self):
        target = self.path("bratu")
        if os.path.exists(target) and not self.args.again:
            print(f"bratu: {target} is complete")
            return
        if not os.access(self.bratu, os.X_OK) or self.left() < 10:
            print(f"bratu: left out, {'no time' if self.left() < 10 else self.bratu + ' is missing'}")
            return
        n = 200 if self.kind == "device" else 60
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="") if self.args.host else None
        rows, source = [], self.source()
        columns = "matrix,format,n,newton,krylov,fnorm,setup,solve,function,jacobian,ksp_s,products,products_s,product_us".split(",")
        # the papers' kernels are for GPUs
        for kernel, more in [("", []), *([("-paper", ["-types", "sellp,evchyb", "-mat_spmv_kernel", "paper"])] if self.kind == "device" else [])]:
            try:
                p = subprocess.run([self.bratu, "-n", str(n), *more], capture_output=True, text=True, timeout=max(1, min(3600, self.left())), env=env)
            except subprocess.TimeoutExpired:
                print("bratu: the time was up")
                return
            found = [w for w in map(str.split, p.stdout.splitlines()) if len(w) >= 13 and w[0] in ("aij", "aijcusparse", "sellp", "evchyb")]
            if p.returncode or not found:
                print(f"bratu: exit status {p.returncode}\n" + p.stdout[-600:] + p.stderr[-600:])
                self.failed = True
                return
            rows += [dict(zip(columns, [f"bratu:{n}", w[0] + kernel, n] + w[2:13]), **source) for w in found]
        self.replace(target, [*columns, *source], rows)
        print(f"bratu: n = {n}")

    def source(self):
        return results.source(results.gpu_name() if self.kind == "device" else "")

    def profile(self):
        """ncu's counters for single products of the papers' kernels"""
        names = [m for m in TABLE_3 if m != "indochina-2004"]
        whole = [m for m in names if m in ("audikw_1", "Stanford_Berkeley")]
        rest = [m for m in names if m not in whole]
        groups = [(whole, "evchyb-sorted,sellp-paper,hyb")] + [(rest[k : k + 7], "evchyb-sorted") for k in range(0, len(rest), 7)]
        self.count("profile", [(["twin:" + m for m in matrices], formats) for matrices, formats in groups])

    def counters(self):
        """The same for COO and CSR, for loads of x, for SELL-P's Table II, and for this library's own kernels"""
        own = [m for m in ROOFLINE if not m.startswith("twin:")]
        twins = [m for m in ROOFLINE if m.startswith("twin:")]
        self.count("counters", [(["twin:cant"], "coo,coo-segmented,coo-balanced,csr-scalar,csr-vector,ell,sellp"),
                                (["twin:web-Google"], "evchyb-sorted,evchyb-load-x,evchyb-l2-x"), (own, "sellp"), (twins, "sellp"),
                                (["twin:audikw_1"], "sellp-paper,sellp")])  # fmt: skip

    def count(self, measurement, groups):
        """Groups of matrices and formats, each a run of ncu"""
        installed = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
        ncu = self.args.ncu or shutil.which("ncu") or next((p for p in ["/usr/local/cuda/bin/ncu"] + installed[::-1] if os.access(p, os.X_OK)), None)
        target = self.path(measurement)
        found = [r for r in read(target) if r["matrix"]] if os.path.exists(target) and not self.args.again else []
        have = {key(r["matrix"]) for r in found}
        groups = [([m for m in matrices if key(m) not in have], formats) for matrices, formats in groups]
        if not any(matrices for matrices, _ in groups):
            print(f"{measurement}: {target} is complete")
            return
        if self.kind == "host" or not ncu:
            print(f"{measurement}: left out, " + ("no GPU" if self.kind == "host" else "no ncu on this machine"))
            return
        # ncu writes when its program has ended: several runs, so that not all is lost if the time is up
        metrics = {m: m for m in METRICS + MORE_METRICS}  # by the name here: ncu's
        for matrices, formats in groups:
            if not matrices:
                continue
            for attempt in range(5):
                rows, said, status = self.ncu(ncu, measurement, metrics, matrices, formats)
                unknown = [m for m, name in metrics.items() if re.search(rf"ind metric\b.*\b{name.split('.')[0]}\b", said)]
                if rows or status == -1 or not re.search("ind metric|nvalid metric", said):
                    break
                if attempt < 3:
                    metrics = {m: RENAMED.get(m, "") if m in unknown and name == m else "" if m in unknown else name for m, name in metrics.items()}
                else:
                    metrics = {m: name for m, name in metrics.items() if m not in MORE_METRICS}
                metrics = {m: name for m, name in metrics.items() if name}
            if not rows:
                if status == -1:
                    print(f"{measurement}: the time was up")
                elif not found:
                    error = re.findall(r"==ERROR== (.*)", said)
                    print(f"{measurement}: left out, ncu gives no counters here" + (f": {error[-1]}" if error else ""))
                return
            source = self.source()
            found += [dict(r, **source) for r in rows]
            self.replace(target, ["matrix", "format", "kernel"] + METRICS + MORE_METRICS + list(source), found)

    def ncu(self, ncu, measurement, metrics, matrices, formats):
        """Counters of one kernel each, what ncu and the program said, and the exit status"""
        log, out, begin = os.path.join(self.out, "ncu.csv"), self.path(measurement, "log"), time.time()
        for path in (log, out):  # of a run before
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        command = [ncu, "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--print-units", "base", "--csv", "--page", "raw",
                   "--metrics", ",".join(metrics.values()), "--log-file", log, self.program, "-profile", "-formats", formats, "-matrices",
                   ",".join(matrices)] + self.limits()  # fmt: skip
        status, count = self.start(command, out)
        said = ["", ""]
        for k, path in enumerate((log, out)):
            if os.path.exists(path):
                with open(path, newline="", errors="replace") as f:
                    said[k] = f.read()
        rows = profiled(*said, metrics)
        print(f"{measurement}: {len(rows)} kernels of {count} matrices in {time.time() - begin:.0f} s, exit status {status}")
        return rows, said[0] + said[1], status


def profiled(counters, said, metrics):
    """ncu's rows with the matrix and the format, which the program says in the same order"""
    lines = [line for line in counters.splitlines(keepends=True) if not line.startswith("==")]
    begin = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    known = list(dict.fromkeys(name for names in KERNELS.values() for name in names))
    rows = []
    for r in csv.DictReader(lines[begin:]):
        name = next((k for k in known if re.search(rf"\b({k})\b", (r.get("Kernel Name") or "").partition("(Stored")[0])), None)
        if name and (r["ID"] or "").strip():  # the row of units has no ID
            rows.append((name, {m: (r.get(ncu) or "").replace(",", "") for m, ncu in metrics.items()}))
    found = []
    for matrix, form in re.findall(r"^profile (\S+) (\S+)$", said, re.M):
        for name in KERNELS[form]:
            if rows and rows[0][0] == name:
                found.append(dict(rows.pop(0)[1], matrix=matrix, format=form, kernel=name if "|" not in name else "ours"))
    return found
