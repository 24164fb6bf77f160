"""The papers' experiments, measured (bench/formats/paper.c, ncu, examples/bratu) and reported; bench/paper starts it.

Measurements are CSV files, <device>-<measurement>.csv in one folder; several experiments may draw on one measurement, and the report on those of
several devices. A measurement that was interrupted goes on with the matrices that its file lacks.
"""

import argparse
import contextlib
import csv
import glob
import io
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import results

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# ------------------------------------------------------------------------------------------------ what the papers say

# Table III of the SELL-P paper, seconds on a K40c (MKL: two Xeon E5-2670)
TABLE_III_COLUMNS = ["MKL-CSR", "CSR", "ELLPACK", "SELL-P", "CUSPARSE-CSR", "CUSPARSE-HYB"]
TABLE_III = {
    "audikw_1": [4.55e-02, 8.94e-02, 3.56e-02, 7.02e-03, 7.08e-03, 8.79e-03],
    "bone010": [2.45e-02, 5.10e-02, 5.50e-03, 4.28e-03, 6.15e-03, 3.80e-03],
    "boneS10": [1.32e-02, 4.16e-02, 5.45e-03, 3.93e-03, 5.21e-03, 3.43e-03],
    "bmw3_2": [4.70e-03, 1.19e-02, 6.62e-03, 9.93e-04, 1.50e-03, 9.86e-04],
    "bmwcra_1": [4.60e-03, 1.19e-02, 4.63e-03, 9.01e-04, 9.53e-04, 8.79e-04],
    "cage10": [4.72e-05, 7.45e-05, 3.72e-05, 3.35e-05, 3.45e-05, 6.44e-05],
    "cant": [1.48e-03, 4.61e-03, 4.56e-04, 3.44e-04, 5.51e-04, 3.94e-04],
    "crankseg_2": [5.25e-03, 1.60e-02, 2.23e-02, 1.12e-03, 1.23e-03, 1.48e-03],
    "Cube_Coup_dt0": [4.87e-02, 1.39e-01, 1.22e-02, 9.77e-03, 1.68e-02, 9.18e-03],
    "dielFilterV2real": [2.06e-02, 4.45e-02, 1.05e-02, 6.14e-03, 6.46e-03, 5.99e-03],
    "F1": [1.31e-02, 3.08e-02, 1.63e-02, 2.73e-03, 2.77e-03, 3.18e-03],
    "Fault_639": [1.08e-02, 2.92e-02, 1.51e-02, 2.53e-03, 3.48e-03, 2.12e-03],
    "Hook_1498": [2.41e-02, 5.71e-02, 1.25e-02, 6.60e-03, 7.52e-03, 6.46e-03],
    "inline_1": [1.41e-02, 4.15e-02, 3.01e-02, 3.49e-03, 3.55e-03, 3.85e-03],
    "ldoor": [1.78e-02, 4.43e-02, 6.75e-03, 4.11e-03, 5.71e-03, 4.39e-03],
    "m_t1": [3.67e-03, 1.03e-02, 2.10e-03, 8.27e-04, 8.64e-04, 1.02e-03],
    "ML_Geer": [4.23e-02, 1.29e-01, 9.62e-03, 8.60e-03, 9.62e-03, 8.19e-03],
    "pwtk": [4.47e-03, 1.30e-02, 3.37e-03, 9.31e-04, 1.53e-03, 8.94e-04],
    "shipsec1": [1.15e-03, 2.49e-03, 8.74e-04, 4.74e-04, 4.52e-04, 4.48e-04],
    "Trefethen_20000": [1.15e-04, 5.12e-04, 5.29e-05, 6.47e-05, 8.12e-05, 6.71e-05],
}
# Its Table I, entries: on 11 matrices fewer than in the collection today
TABLE_I = {
    "audikw_1": 77651847, "bone010": 47851783, "boneS10": 40878708, "bmw3_2": 11288630, "bmwcra_1": 10641602, "cage10": 150645, "cant": 4007383,
    "crankseg_2": 14148858, "Cube_Coup_dt0": 124406070, "dielFilterV2real": 48538952, "F1": 26837113, "Fault_639": 27245944, "Hook_1498": 59374451,
    "inline_1": 36816170, "ldoor": 42493817, "m_t1": 9753570, "ML_Geer": 110686677, "pwtk": 11524432, "shipsec1": 3568176, "Trefethen_20000": 554466,
}  # fmt: skip
# Table 3 of the EVC-HYB paper: Isplit, entries stored in ELL and in vCSR, zeros added in percent, the best of cuSPARSE
TABLE_3 = {
    "pdb1HYS": (19936, 1922112, 2720768, 6.86, "CSR"),
    "pwtk": (217888, 11633280, 3456, 0.02, "HYB"),
    "TSOPF_RS_b2383": (21728, 98976, 16220544, 0.92, "HYB"),
    "rma10": (46752, 2365664, 13088, 0.20, "CSR"),
    "audikw_1": (844096, 58302912, 21392800, 2.63, "CSR"),
    "cage14": (1505728, 27128544, 3648, 0.01, "HYB"),
    "shipsec1": (140864, 7813824, 1280, 0.02, "HYB"),
    "webbase-1M": (999232, 2768192, 353120, 0.51, "HYB"),
    "raefsky3": (21184, 1488384, 1536, 0.08, "HYB"),
    "cop20k_A": (121184, 2624960, 768, 0.05, "HYB"),
    "msdoor": (415840, 20239808, 2208, 0.01, "HYB"),
    "ldoor": (952192, 46522368, 1056, 0.00, "HYB"),
    "scircuit": (170944, 954272, 7744, 0.32, "HYB"),
    "torso1": (113376, 1020384, 7501152, 0.06, "CSR"),
    "Stanford": (281728, 2283392, 35040, 0.26, "HYB"),
    "pre2": (658240, 5476288, 494176, 0.19, "HYB"),
    "mac_econ_fwd500": (206496, 1273952, 256, 0.06, "HYB"),
    "dc1": (116768, 595776, 172160, 0.20, "HYB"),
    "indochina-2004": (7345728, 126110176, 69171328, 0.60, "CSR"),
    "web-Google": (916352, 5093728, 15808, 0.09, "HYB"),
    "Stanford_Berkeley": (678400, 3638208, 4028832, 1.10, "HYB"),
    "RM07R": (311776, 24249408, 13792384, 1.54, "CSR"),
}
# Table II of the SELL-P paper, audikw_1 on a K40c
TABLE_II = [
    ("time", "7.02 ms"), ("blocks", "343 x 344"), ("threads a block", "8 x 8"), ("registers a thread", "40"), ("DRAM read", "212.59 GB/s"),
    ("DRAM write", "1.34 GB/s"), ("shared memory, load", "25.78 GB/s"), ("shared memory, store", "17.19 GB/s"), ("L2 read", "24.36 GB/s"), ("L2 hits", "30.34 %"),
    ("shared memory efficiency", "100 %"), ("warp execution efficiency", "100 %"), ("issued instructions a cycle", "1.30"),
    ("executed instructions a cycle", "0.75"), ("occupancy", "0.47"), ("multiprocessors active", "99.8 %"),
]  # fmt: skip
SMALL = 60e6  # bytes of values and columns: no matrix of Table III has between 50 and 90 MB, and a device's L2 cache holds the smaller ones
# What the papers have and this report has not
MISSING = [
    "SELL-P: Figures 1 and 3 (drawings of the layouts and of the kernel) and 4 (sparsity plots); of Table II shared memory, L2 writes and instructions per warp.",
    "EVC-HYB: of Table 2 (STREAM) scale, add and triad; Table 4 (web-Google with and without the texture cache, which is one with the L1 cache on today's GPUs); Figures 1 and 2 (drawings).",
    "FrogByte: tuning CSR5's bounds r, s, t, u for a GPU (section 5.3), which are fixed here; the matrices plsk1919 and e40r5000; Figures 1 (coalescence), 3a, 3b and 4 (Nsight's durations, throughput and occupancy of the COO and CSR kernels).",
    "The paper on batched products has a page of its own, docs/results/batch.md, whose last section lists what is missing there.",
]
MATRICES = list(TABLE_III) + [m for m in TABLE_3 if m not in TABLE_III]

# ------------------------------------------------------------------------------------------------ measurements

BT = [(b, t) for b in (4, 8, 16, 32, 64) for t in (1, 2, 4, 8, 16, 32) if 32 <= b * t <= 1024]
SWEEP = ["twin:" + m for m in ("cant", "pwtk", "F1", "ldoor", "cage14", "scircuit", "webbase-1M", "crankseg_2")]
# about eight million entries each on a GPU, a million on the host, but for those that are real: by length of the rows, by place of the columns, by skew
PROFILES = {
    "device": ["tests/matrices/lns_131.mtx", "tests/matrices/cage8.mtx", "twin:cant", "tridiag:2700000", "stencil5:1260", "fem27:68:1", "lengths:4000000:2:0:1:2000",
               "lengths:1000000:8:0:1:2000", "lengths:250000:32:0:1:2000", "lengths:62500:128:0:1:2000", "lengths:16000:512:0:1:4000", "lengths:1000000:8:0:1:0",
               "lengths:250000:32:0:1:0", "lengths:250000:2:1:61:2000", "powerlaw:2000000:3.1:1.6:4700:1", "powerlaw:1500000:5.6:2.5:456:0", "random:18000",
               "twin:dc1", "arrow:200000", "tsopf:20000"],
    "host": ["tests/matrices/lns_131.mtx", "tests/matrices/cage8.mtx", "twin:cant", "tridiag:340000", "stencil5:450", "fem27:34:1", "lengths:500000:2:0:1:2000",
             "lengths:125000:8:0:1:2000", "lengths:31250:32:0:1:2000", "lengths:7800:128:0:1:2000", "lengths:4000:512:0:1:1500", "lengths:125000:8:0:1:0",
             "lengths:31250:32:0:1:0", "lengths:31250:2:1:61:2000", "powerlaw:250000:3.1:1.6:4700:1", "powerlaw:190000:5.6:2.5:456:0", "random:6400", "twin:dc1",
             "arrow:200000", "tsopf:2600"],
}  # fmt: skip
RANDOM = {"device": [5000, 10000, 20000, 35000, 50000, 65000], "host": [2500, 5000, 10000]}

METRICS = ["gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "lts__t_sector_hit_rate.pct", "l1tex__t_bytes.sum",
           "l1tex__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__grid_size", "launch__block_size",
           "launch__registers_per_thread"]  # fmt: skip
MORE_METRICS = ["smsp__thread_inst_executed_per_inst_executed.ratio", "sm__inst_executed.avg.per_cycle_elapsed", "sm__inst_issued.avg.per_cycle_active",
                "sm__cycles_active.avg", "sm__cycles_elapsed.max", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"]  # fmt: skip
RENAMED = {"dram__bytes_read.sum": "dram__bytes_op_read.sum", "dram__bytes_write.sum": "dram__bytes_op_write.sum"}  # on GPUs after Hopper
KERNELS = {"evchyb-sorted": ["SpMV_EVCHYB_adaptive"], "sellp-paper": ["sellp_paper"], "hyb": ["ell", "coo_segmented"]}


def on_host(device):
    """Of the name that a device's files begin with"""
    return device.split("-")[0] == "host"


def key(name):
    """twin:cage10, cage10.mtx and tests/matrices/cage10.mtx are one matrix"""
    return re.sub(r"\.mtx$", "", re.sub(r"^twin:", "", name if ":" in name else os.path.basename(name)))


class Bar:
    """tqdm where there is one, else the same in short"""

    def __init__(self, total, what):
        self.total, self.n, self.out, self.what, self.begin = total, 0, 0, what, time.time()  # out: matrices left out
        try:
            import tqdm

            self.bar = tqdm.tqdm(total=total, desc=what)
        except ImportError:
            self.bar = None
        self.show("")

    def show(self, note):
        if self.bar is not None:
            self.bar.set_postfix_str(note)
        elif sys.stderr.isatty():
            filled = 30 * self.n // max(1, self.total)
            print(f"\r{self.what:12} [{'#' * filled}{'.' * (30 - filled)}] {self.n}/{self.total} {time.time() - self.begin:4.0f} s {note:32.32}", end="", file=sys.stderr, flush=True)

    def step(self, note):
        self.n += 1
        if self.bar is not None:
            self.bar.update(1)
        self.show(note)

    def close(self):
        if self.bar is not None:
            self.bar.close()
        elif sys.stderr.isatty():
            print(file=sys.stderr)


class Measuring:
    def __init__(self, args):
        self.args, self.out = args, args.out
        self.program = os.path.join(args.programs, "paper")
        self.bratu = os.environ.get("BRATU") or os.path.join(os.path.dirname(args.programs), "examples", "bratu")
        self.deadline, self.failed = time.time() + args.limit, False
        if not os.access(self.program, os.X_OK):
            sys.exit(f"bench/paper: {self.program} is missing; start me with make paper, or name the folder by -programs")
        # the program knows: a PETSc without CUDA measures the host, whatever the machine has
        p = subprocess.run([self.program, "-where"] + (["-host"] if args.host else []), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        where = re.search(r"^where: (\S+)", p.stdout, re.M)
        if p.returncode or not where:
            sys.exit(f"bench/paper: {self.program} does not run: exit status {p.returncode}")
        self.device = where[1]
        self.kind = "host" if on_host(self.device) else "device"
        os.makedirs(self.out, exist_ok=True)

    def path(self, measurement, ext="csv"):
        return os.path.join(self.out, f"{self.device}-{measurement}.{ext}")

    def left(self):
        return self.deadline - time.time()

    def missing(self, measurement, why):
        """What cannot be measured here, for the report"""
        print(f"{measurement}: left out, {why}")
        with results.whole(self.path(measurement, "txt")) as f:
            f.write(why + "\n")

    def start(self, command, bar, log):
        """Runs the program; a line that names a matrix is a step. Returns the exit status, -1: the time was up"""
        if self.left() < 2:
            return -1
        with results.program(command, cwd=ROOT) as p:
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
                            bar.out += bool(m[2])
                            bar.step(m[1] or m[2])
                        if "WRONG" in line or "PETSC ERROR" in line:
                            print("\n" + line.rstrip())
                p.wait()
            finally:
                late.cancel()
        return -1 if p.returncode and self.left() <= 0 else p.returncode

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
        if not rows:  # the head at most: not to be kept until all is measured
            os.remove(target)
        if not rows or "matrix" not in rows[0] or "kernel" not in rows[0]:
            return set()
        folder = os.path.join(ROOT, os.environ.get("MATRICES") or "../shared/matrices")
        drop = {key(r["matrix"]) for r in rows if r["origin"] == "twin" and os.path.exists(os.path.join(folder, key(r["matrix"]) + ".mtx"))}
        if not text.endswith("\n"):
            drop |= {key(r["matrix"]) for r in rows[-2:]}
        left = [r for r in rows if key(r["matrix"]) not in drop and complete(r)]
        if len(left) < len(rows):
            self.replace(target, reader.fieldnames, left)
        return {key(r["matrix"]) for r in left}

    def run(self, name, matrices, options):
        """A CSV of bench/formats/paper.c; what it holds already is not measured again"""
        target, begin = self.path(name), time.time()
        have = self.kept(target)
        todo = [m for m in matrices if key(m) not in have]
        if not todo:
            print(f"{name}: {target} is complete")
            return
        command = [self.program, "-matrices", ",".join(todo), "-csv", target, "-reps", str(self.args.reps)] + options
        command += ["-append"] if have else []
        command += ["-host"] if self.args.host else []
        command += self.limits()
        command += ["-mkl", os.environ["MKL_RT"]] if self.kind == "host" and os.environ.get("MKL_RT") else []
        bar = Bar(len(todo), name)
        status = self.start(command, bar, self.path(name, "log"))
        bar.close()
        print(f"{name}: {bar.n - bar.out} of {len(todo)} matrices in {time.time() - begin:.0f} s" + {0: "", -1: ", then the time was up"}.get(status, f", exit status {status}"))
        self.failed = self.failed or status not in (0, -1)

    def limits(self):
        return ["-max_entries", str(self.args.max_entries)] if self.args.max_entries else []

    def matrices(self):
        # long ones last: if the time is up, they are missing
        order = sorted(("twin:" + m for m in MATRICES), key=lambda m: m == "twin:indochina-2004")
        self.run("matrices", order, ["-partition"])

    def sweep(self):
        self.run("sweep", SWEEP, ["-formats", ",".join(["sellp"] + [f"sellp-paper:{b}:{t}" for b, t in BT])])

    def random(self):
        aij = "petsc:aijcusparse" if self.kind == "device" else "petsc:aij"
        formats = f"evchyb-sorted,evchyb-paper,evchyb,sellp,csr-adaptive,hyb,csr-scalar,csr-vector,mkl,{aij},cusparse:csr1,cusparse:coo1"
        self.run("random", [f"random:{n}" for n in RANDOM[self.kind]], ["-formats", formats])

    def profiles(self):
        formats = "coo,coo-segmented,coo-balanced,csr-scalar,csr-vector,ell,hyb,sell-32,sell-32-1024,sell-32-all,sell-8-64,csr5,csr5-8-16,sellp,evchyb,cusparse:csr1,mkl"
        self.run("profiles", PROFILES[self.kind], ["-formats", formats])

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
        try:
            p = subprocess.run([self.bratu, "-n", str(n)], capture_output=True, text=True, timeout=min(3600, self.left()), env=env)
        except subprocess.TimeoutExpired:
            print("bratu: the time was up")
            return
        rows = [w for w in map(str.split, p.stdout.splitlines()) if len(w) >= 13 and w[0] in ("aij", "aijcusparse", "sellp", "evchyb")]
        if p.returncode or not rows:
            print(f"bratu: exit status {p.returncode}\n" + p.stdout[-600:] + p.stderr[-600:])
            self.failed = True
            return
        columns = "matrix,format,n,newton,krylov,fnorm,setup,solve,function,jacobian,ksp,products,products_s,product_us".split(",")
        self.replace(target, columns, [dict(zip(columns, [f"bratu:{n}", w[0], n] + w[2:13])) for w in rows])
        print(f"bratu: n = {n}")

    def profile(self):
        """ncu's counters for single products"""
        installed = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
        ncu = self.args.ncu or shutil.which("ncu") or next((p for p in ["/usr/local/cuda/bin/ncu"] + installed[::-1] if os.access(p, os.X_OK)), None)
        target, why = self.path("profile"), self.path("profile", "txt")
        names = [m for m in TABLE_3 if m != "indochina-2004"]
        found = [r for r in read(target) if r["matrix"]] if os.path.exists(target) and not self.args.again else []
        have = {key(r["matrix"]) for r in found}
        todo = [m for m in names if m not in have]
        if not todo:
            print(f"profile: {target} is complete")
            return
        if self.kind == "host" or not ncu:
            self.missing("profile", "no GPU" if self.kind == "host" else "no ncu on this machine")
            return
        # ncu writes when its program has ended: several runs, so that not all is lost if the time is up
        whole = [m for m in todo if m in ("audikw_1", "Stanford_Berkeley")]
        rest = [m for m in todo if m not in whole]
        groups = [(whole, "evchyb-sorted,sellp-paper,hyb")] + [(rest[k : k + 7], "evchyb-sorted") for k in range(0, len(rest), 7)]
        metrics = {m: m for m in METRICS + MORE_METRICS}  # by the name here: ncu's
        for matrices, formats in groups:
            if not matrices:
                continue
            for attempt in range(5):
                rows, said, status = self.ncu(ncu, metrics, matrices, formats)
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
                    print("profile: the time was up")
                elif not found:
                    error = re.findall(r"==ERROR== (.*)", said)
                    self.missing("profile", "ncu gives no counters here" + (f": {error[-1]}" if error else ""))
                return
            found += rows
            self.replace(target, ["matrix", "format", "kernel"] + METRICS + MORE_METRICS, found)
            with contextlib.suppress(FileNotFoundError):
                os.remove(why)

    def ncu(self, ncu, metrics, matrices, formats):
        """Counters of one kernel each, what ncu and the program said, and the exit status"""
        log, out, begin = os.path.join(self.out, "ncu.csv"), self.path("profile", "log"), time.time()
        for path in (log, out):  # of a run before
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        command = [ncu, "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--print-units", "base", "--csv", "--page", "raw",
                   "--metrics", ",".join(metrics.values()), "--log-file", log, self.program, "-profile", "-formats", formats, "-matrices",
                   ",".join("twin:" + m for m in matrices)] + self.limits()  # fmt: skip
        bar = Bar(len(matrices), "profile")
        status = self.start(command, bar, out)
        bar.close()
        said = ["", ""]
        for k, path in enumerate((log, out)):
            if os.path.exists(path):
                with open(path, newline="", errors="replace") as f:
                    said[k] = f.read()
        rows = profiled(*said, metrics)
        print(f"profile: {len(rows)} kernels of {bar.n - bar.out} matrices in {time.time() - begin:.0f} s, exit status {status}")
        return rows, said[0] + said[1], status


def profiled(counters, said, metrics):
    """ncu's rows with the matrix and the format, which the program says in the same order"""
    lines = [line for line in counters.splitlines(keepends=True) if not line.startswith("==")]
    begin = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    known = [name for names in KERNELS.values() for name in names]
    rows = []
    for r in csv.DictReader(lines[begin:]):
        name = next((k for k in known if re.search(rf"\b{k}\b", r.get("Kernel Name") or "")), None)
        if name and (r["ID"] or "").strip():  # the row of units has no ID
            rows.append((name, {m: (r.get(ncu) or "").replace(",", "") for m, ncu in metrics.items()}))
    found = []
    for matrix, form in re.findall(r"^profile (\S+) (\S+)$", said, re.M):
        for name in KERNELS[form]:
            if rows and rows[0][0] == name:
                found.append(dict(rows.pop(0)[1], matrix=matrix, format=form, kernel=name))
    return found


# ------------------------------------------------------------------------------------------------ the report

def complete(row):
    """Not a line that was cut off"""
    return None not in row and None not in row.values()


def read(path):
    with open(path, newline="") as f:
        return [r for r in csv.DictReader(f) if complete(r)]


class Table:
    """The rows of a measurement by matrix and format; products that were wrong have no time"""

    def __init__(self, device, rows):
        self.rows = rows
        self.flops = 8 if "complex" in device.split("-") else 2
        self.wrong = [f"{r['format']} on {key(r['matrix'])}" for r in rows if self.value(r, "error") > 1]
        self.matrices = list(dict.fromkeys(key(r["matrix"]) for r in rows))
        self.at = {(key(r["matrix"]), r["format"]): r for r in rows}
        self.formats = list(dict.fromkeys(r["format"] for r in rows))

    @staticmethod
    def value(row, column):
        try:
            return float(row[column])
        except (KeyError, ValueError, TypeError):
            return 0.0

    def number(self, matrix, form, column):
        return self.value(self.at.get((matrix, form)), column)

    def seconds(self, matrix, form):
        """The median; on the host, which others may use, the least"""
        r = self.at.get((matrix, form), {})
        return 0.0 if self.value(r, "error") > 1 else self.value(r, "least" if r.get("device") == "host" else "seconds")

    def entries(self, matrix):
        return next((float(r["entries"]) for r in self.rows if key(r["matrix"]) == matrix), 0.0)

    def gflops(self, matrix, form):
        s = self.seconds(matrix, form)
        return 1e-9 * self.flops * self.entries(matrix) / s if s else 0.0

    def best(self, matrix, forms):
        """(seconds, format) of the fastest"""
        return min(((self.seconds(matrix, f), f) for f in forms if self.seconds(matrix, f) > 0), default=(0.0, ""))

    def label(self, matrix):
        r = next(r for r in self.rows if key(r["matrix"]) == matrix)
        return matrix + ("" if r["origin"] == "file" else " (twin)" if r["origin"] == "twin" else " *")


def mean(values):
    values = [v for v in values if v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


def correlation(a, b):
    """Of the logarithms"""
    a, b = [math.log(v) for v in a], [math.log(v) for v in b]
    p, q = sum(a) / len(a), sum(b) / len(b)
    return sum((x - p) * (y - q) for x, y in zip(a, b)) / (math.sqrt(sum((x - p) ** 2 for x in a) * sum((y - q) ** 2 for y in b)) or 1)


def us(seconds):
    return "-" if seconds <= 0 else f"{1e6 * seconds:.{1 if seconds < 1e-4 else 0}f}"


def signed(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


class Report:
    def __init__(self, folder, target):
        self.folder, self.target, self.lines = folder, target, []
        self.charts = os.path.splitext(target)[0]
        self.data = {}
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
            m = re.match(r"(.+)-(matrices|sweep|random|profiles|profile|bratu)\.csv$", name)
            if m:
                rows = read(os.path.join(folder, name))
                if rows:
                    self.data.setdefault(m[1], {})[m[2]] = Table(m[1], rows)
        try:
            import matplotlib

            matplotlib.use("svg")
            matplotlib.rcParams["svg.hashsalt"] = "paper"  # the same chart, the same file
            import matplotlib.pyplot

            self.plt = matplotlib.pyplot
        except ImportError:
            self.plt = None
            print("bench/paper: no matplotlib, no charts", file=sys.stderr)

    # ---- writing

    def say(self, *lines):
        self.lines += lines

    def head(self, title, paper, note=""):
        """paper: what the paper says, as it says it; note: what we add to that or correct"""
        self.say("", f"## {title}", "", f"*The paper.* {paper}", "", *([f"*Our note on the paper.* {note}", ""] if note else []), f"Repeat with `bench/paper {self.now}`.", "")

    def table(self, columns, rows):
        self.say("", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(map(str, r)) + " |" for r in rows), "")

    def devices(self, measurement, gpu=False):
        """Those with it, GPUs first; gpu: GPUs only"""
        found = [(d, t[measurement]) for d, t in self.data.items() if measurement in t and not (gpu and on_host(d))]
        if not found:
            why = []
            for d in self.data:
                if os.path.exists(said := os.path.join(self.folder, f"{d}-{measurement}.txt")):
                    with open(said) as f:
                        why.append(f"{d}: {f.read().strip()}")
            self.say("Not measured" + (" (" + "; ".join(why) + ")" if why else " yet, it needs a GPU" if gpu else " yet") + ".", "")
        return sorted(found, key=lambda d: on_host(d[0]))

    def where(self, table):
        name = table.rows[0].get("device", "host")
        return "the host" if name == "host" else f"one {name}"

    def chart(self, name, caption, names, series, ylabel, log=False, kind="bar", xlabel=""):
        """series: label -> values, 0 where there is none"""
        if self.plt is None or not names:
            return
        os.makedirs(self.charts, exist_ok=True)
        fig, ax = self.plt.subplots(figsize=(min(16, max(6, 2.5 + 0.11 * len(names) * max(2, len(series)))) if kind == "bar" else 7, 3.6))
        for k, (label, values) in enumerate(series.items()):
            if kind == "bar":
                width = 0.8 / len(series)
                ax.bar([x + (k - (len(series) - 1) / 2) * width for x in range(len(names))], values, width, label=label)
            elif kind == "stack":
                ax.bar(range(len(names)), values, 0.7, bottom=[sum(v[x] for v in list(series.values())[:k]) for x in range(len(names))], label=label)
            else:
                points = [(x, y) for x, y in zip(names, values) if y > 0]
                if points:
                    ax.plot(*zip(*points), "o" if kind == "points" else "o-", label=label)
        if kind in ("bar", "stack"):
            ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize="small")
        if log:
            ax.set_yscale("log")
        elif kind != "stack":
            ax.set_ylim(bottom=min([0, *(v for values in series.values() for v in values)]))
        ax.set_ylabel(ylabel)
        ax.set_xlabel(xlabel)
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        fig.tight_layout()
        results.chart(fig, os.path.join(self.charts, name + ".svg"), metadata={"Date": None})
        self.plt.close(fig)
        self.say("", f"![{caption}]({os.path.basename(self.charts)}/{name}.svg)", "")

    # ---- the SELL-P paper

    COLUMNS = {"device": [("CSR", "csr-scalar"), ("ELLPACK", "ell"), ("SELL-P", "sellp-paper"), ("cuSPARSE CSR", "cusparse:csr1"), ("HYB", "hyb"), ("our sellp", "sellp")],
               "host": [("MKL CSR", "mkl"), ("CSR", "csr-scalar"), ("ELLPACK", "ell"), ("SELL-P", "sellp-paper"), ("HYB", "hyb"), ("our sellp", "sellp")]}  # fmt: skip

    def sellp_table3(self):
        over_ell = {m: v[2] / v[3] for m, v in TABLE_III.items() if m not in ("Trefethen_20000", "cage10")}
        most = max(over_ell, key=over_ell.get)
        self.head("SELL-P paper, Table III: run times of the kernels",
                  'On a K40c, with b = t = 8, SELL-P "is superior to the ELLPACK kernel for all test cases except for the very small and very sparse TREFETHEN_20000"; without that matrix and CAGE10, '
                  '"switching from the ELLPACK to the SELL-P kernel results in speedup factors between 1.1 and 9". It "outperforms the straight-forward CSR on GPU by almost an order of magnitude", is '
                  '"able to match the CUSPARSE-CSR and CUSPARSE-HYB performance for all test cases", and for "about 40% of the test cases, SELL-P even outperforms both CUSPARSE routines"; for "the very structured matrices like '
                  'BONE010 or BONES10", HYB "is always superior". MKL runs on 16 cores of two Xeons.',
                  f"The times of Table III give {min(over_ell.values()):.1f} to {max(over_ell.values()):.1f} over ELLPACK without these two matrices ({most} is the largest), {mean([v[1] / v[3] for v in TABLE_III.values()]):.1f} over plain CSR "
                  f"in the geometric mean, and SELL-P ahead of both cuSPARSE kernels on {sum(v[3] < min(v[4:]) for v in TABLE_III.values())} of {len(TABLE_III)} matrices.")  # fmt: skip
        host = self.data.get("host", {}).get("matrices")
        for device, t in self.devices("matrices"):
            names = [m for m in TABLE_III if m in t.matrices]
            columns = list(self.COLUMNS["host" if on_host(device) else "device"])
            if not names:
                self.say(f"None of the matrices was measured on {self.where(t)}.", "")
                continue
            head = [c for c, _ in columns] + (["MKL CSR, one core of another machine"] if not on_host(device) and host and "mkl" in host.formats else [])
            rows = []
            for m in names:
                row = [t.label(m)] + [us(t.seconds(m, f)) for _, f in columns]
                if len(head) > len(columns):
                    row.append(us(host.seconds(m, "mkl")) if host and m in host.matrices else "-")
                rows.append(row)
            self.say(f"On {self.where(t)}, microseconds (-: not stored, the padding is more than 20 times the entries, or not here):")
            self.table(["matrix"] + head, rows)

            def over(a, b):
                return [t.seconds(m, a) / t.seconds(m, b) for m in names if t.seconds(m, a) and t.seconds(m, b)]

            csr, ell = over("csr-scalar", "sellp-paper"), over("ell", "sellp-paper")
            lib = [min(x for x in (t.seconds(m, "cusparse:csr1" if not on_host(device) else "mkl"), t.seconds(m, "hyb")) if x) / t.seconds(m, "sellp-paper")
                   for m in names if t.seconds(m, "hyb") and t.seconds(m, "sellp-paper") and t.seconds(m, "cusparse:csr1" if not on_host(device) else "mkl")]  # fmt: skip
            ours = over("sellp-paper", "sellp")
            ahead = [f"{c} on {', '.join(won)}" for c, f in columns if f not in ("sellp", "sellp-paper") and (won := [m for m in names if 0 < t.seconds(m, f) < t.seconds(m, "sellp-paper")])]
            published = {m: v for m, v in TABLE_III.items() if m in names}
            said = [f"{mean(x):.{d}f} times as fast as {what} in the geometric mean ({min(x):.{d}f} to {max(x):.{d}f}; the paper's figures: {mean([v[k] / v[3] for v in published.values()]):.{d}f})"
                    for x, d, what, k in ((csr, 1, "plain CSR", 1), (ell, 2, "ELLPACK", 2)) if x]  # fmt: skip
            if lib:
                said.append(f"faster than both {'MKL' if on_host(device) else 'cuSPARSE CSR'} and HYB on {sum(x > 1 for x in lib)} of {len(lib)} matrices")
            self.say("*Here.* " + (f"SELL-P {'with b = t = 8, in the order of the rows,' if on_host(device) else 'as printed'} is {', '.join(said)}. " if said else "") + (f"Faster than it: {'; '.join(ahead)}. " if ahead else "")
                     + (f"This library's own sellp takes {mean([1 / x for x in ours]) * 100:.0f} % of {'its' if on_host(device) else 'the'} time{'' if on_host(device) else ' of SELL-P as printed'}." if ours else ""))  # fmt: skip
            if not on_host(device):
                fits = {m: 12 * t.entries(m) < SMALL for m in names if t.seconds(m, "csr-scalar") and t.seconds(m, "sellp-paper")}
                small, large = (mean([t.seconds(m, "csr-scalar") / t.seconds(m, "sellp-paper") for m in fits if fits[m] == yes]) for yes in (True, False))
                self.say("*Why they differ.* Plain CSR's lanes read rows far apart, sectors of 32 bytes for 8 used at once. An L2 much larger than the K40's keeps the rest for the entries after"
                         + (f": SELL-P is {small:.1f} times as fast as plain CSR on matrices of less than {1e-6 * SMALL:.0f} MB (values and columns), {large:.1f} times on larger ones. " if small and large else ". ")
                         + "On crankseg_2 eight threads take the longest row, 3423 entries, when all others are done. cuSPARSE has dropped its HYB; the HYB here is Bell and Garland's (ELL, then COO "
                         "with atomics). Today's cuSPARSE CSR balances its load by entries and is preprocessed. And a thread block of 64 threads no longer fills a multiprocessor: the kernel here takes several slices a block.", "")  # fmt: skip
            else:
                self.say("*Why they differ.* One core here. MKL on one thread does not gain from cores that the paper's had; SELL-P on the host is this library's layout "
                         "with the paper's b, t and order, in SIMD; like sellp it leaves out indices and repeated values, which the paper's does not.", "")  # fmt: skip

    def sellp_figure5(self):
        then = {c: [2e-9 * TABLE_I[m] / v[k] for m, v in TABLE_III.items()] for k, c in enumerate(TABLE_III_COLUMNS)}
        self.head("SELL-P paper, Figure 5: the same in GF/s", '"As expected, the CSR format achieves low FLOP rates when used on GPUs." The figure is a bar chart without numbers.',
                  "Table III's times and Table I's entries give, in GF/s: " + ", ".join(f"{c.replace('CUSPARSE-', 'cuSPARSE ')} {min(v):.1f} to {max(v):.1f}" for c, v in then.items()) + ".")  # fmt: skip
        for device, t in self.devices("matrices"):
            names = [m for m in TABLE_III if m in t.matrices]
            columns = self.COLUMNS["host" if on_host(device) else "device"]
            if not names:
                self.say(f"None of the matrices was measured on {self.where(t)}.", "")
                continue
            self.chart(f"{device}-sellp-figure5", f"Performance on {self.where(t)}", names, {c: [t.gflops(m, f) for m in names] for c, f in columns}, "GF/s")
            rates = {c: mean([t.gflops(m, f) for m in names]) for c, f in columns}
            self.say(f"*Here*, on {self.where(t)}, geometric means: " + ", ".join(f"{c} {r:.{0 if r > 20 else 1}f}" for c, r in rates.items()) + " GF/s. "
                     + (self.against_k40c(t, names) if not on_host(device) else "*Why they differ.* One core."), "")  # fmt: skip

    @staticmethod
    def against_k40c(t, names):
        """Why rates differ from Figure 5's"""
        pairs = [("CSR", "csr-scalar"), ("ELLPACK", "ell"), ("SELL-P", "sellp-paper"), ("CUSPARSE-CSR", "cusparse:csr1"), ("CUSPARSE-HYB", "hyb")]
        then = {c: mean([2e-9 * TABLE_I[m] / TABLE_III[m][TABLE_III_COLUMNS.index(c)] for m in names]) for c, _ in pairs}
        other = sum(TABLE_I[m] != t.entries(m) for m in names)
        copy = float(t.rows[0]["copy"]) * 1e-9
        return ("In the paper, and how many times as much here: " + ", ".join(f"{c.replace('CUSPARSE-', 'cuSPARSE ')} {then[c]:.1f} ({mean([t.gflops(m, f) for m in names]) / then[c]:.0f} times)" for c, f in pairs) + ". "
                f"The paper's rates are of Table I's entries, which are fewer than the collection's on {other} of {len(names)} matrices; the products here have the collection's. "
                f"*Why they differ.* The paper's kernel reads 213 GB/s (Table II), a copy here moves {copy:.0f}, {copy / 213:.0f} times as much: rates grow with that, those of plain CSR by the larger L2 besides.")  # fmt: skip

    def sellp_table2(self):
        self.head("SELL-P paper, Table II: profile of the kernel on audikw_1", "The kernel reads device memory at 212.59 GB/s, of a theoretical 288; shared memory efficiency and warp execution efficiency are 100 %.",
                  "Hence we call it bound by memory. Three lines of the table are not measured here: shared memory (512 kB), L2 throughput for writes (1.07 GB/s) and instructions per warp (250,053).")
        for device, t in self.devices("profile", gpu=True):
            r = t.at.get(("audikw_1", "sellp-paper"))
            if not r or not t.value(r, "gpu__time_duration.sum"):
                self.say("The SELL-P kernel was not profiled.", "")
                continue

            def get(name):
                try:
                    return float(r[name])
                except (KeyError, ValueError, TypeError):
                    return None

            ns = get("gpu__time_duration.sum")

            def rate(name, size=1):
                v = get(name)
                return "-" if v is None or not ns else f"{v * size / ns:.2f} GB/s"

            def percent(name, scale=1.0):
                v = get(name)
                return "-" if v is None else f"{v * scale:.1f} %"

            active, elapsed = get("sm__cycles_active.avg"), get("sm__cycles_elapsed.max")
            here = [f"{ns * 1e-6:.3f} ms", signed(get("launch__grid_size")), signed(get("launch__block_size")), signed(get("launch__registers_per_thread")),
                    rate("dram__bytes_read.sum"), rate("dram__bytes_write.sum"), rate("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 128),
                    rate("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 128), rate("lts__t_bytes.sum"), percent("lts__t_sector_hit_rate.pct"),
                    percent("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"), percent("smsp__thread_inst_executed_per_inst_executed.ratio", 100 / 32),
                    signed(get("sm__inst_issued.avg.per_cycle_active"), 2), signed(get("sm__inst_executed.avg.per_cycle_elapsed"), 2),
                    signed((get("sm__warps_active.avg.pct_of_peak_sustained_active") or 0) / 100, 2), "-" if not active or not elapsed else f"{100 * active / elapsed:.1f} %"]  # fmt: skip
            self.table(["audikw_1", "the paper (K40c)", f"{device} (twin)"], [(name, value, h) for (name, value), h in zip(TABLE_II, here)])
            share = (get("dram__bytes_read.sum") or 0) / ns if ns else 0
            copy = self.data[device].get("matrices")
            self.say(f"*Here.* DRAM is read at {share:.0f} GB/s" + (f", {100 * share / (float(copy.rows[0]['copy']) * 1e-9):.0f} % of what a copy reads and writes" if copy else "") + ": still bound by memory. *Why they differ.* "
                     "Of the K40's 64 warps a multiprocessor, its limit of 16 blocks leaves half where a block has two; blocks hold several slices here, hence the occupancy. L2 throughput counts "
                     "all traffic through the L2 here, reads of the matrix included; on the K40 the profiler counted reads by the texture path apart.", "")  # fmt: skip

    def sellp_sweep(self):
        self.head("SELL-P paper: b and t", "The paper fixes b = t = 8 and says that choosing them for a matrix \"would improve the performance even further\".")
        for device, t in self.devices("sweep"):
            rows, gains = [], []
            forms = [f for f in t.formats if f.startswith("sellp-paper:")]
            for m in t.matrices:
                best, form = t.best(m, forms)
                base = t.seconds(m, "sellp-paper:8:8")
                if not best or not base:
                    continue
                gains.append(base / best)
                _, b, threads = form.split(":")
                rows.append((t.label(m), us(base), us(best), b, threads, f"{base / best:.2f}", us(t.seconds(m, "sellp"))))
            self.say(f"On {self.where(t)}, microseconds:")
            self.table(["matrix", "b = t = 8", "best", "b", "t", "gain", "our sellp"], rows)
            ts = sorted({int(f.split(":")[2]) for f in forms})
            series = {}
            for b in sorted({int(f.split(":")[1]) for f in forms}):
                series[f"b = {b}"] = [mean([t.seconds(m, "sellp-paper:8:8") / t.seconds(m, f"sellp-paper:{b}:{k}") for m in t.matrices if t.seconds(m, f"sellp-paper:{b}:{k}") and t.seconds(m, "sellp-paper:8:8")]) for k in ts]  # fmt: skip
            self.chart(f"{device}-sellp-sweep", f"Speed over b = t = 8 on {self.where(t)}", ts, series, "speed over b = t = 8, geometric mean", kind="line", xlabel="t")
            self.say(f"*Here.* The best b and t gain {mean(gains):.2f} in the geometric mean, {max(gains, default=0):.2f} at most"
                     + ("; the host's SELL-P is in SIMD and has no threads a row: t is only what widths are padded to." if on_host(device) else ": as the paper expected, and mostly by t. More threads a row where a few "
                        "rows are very long and the others wait for them (crankseg_2), fewer where rows are short and padding them to a multiple of t costs more (cage14). Where rows differ much (scircuit, webbase-1M), no b and t "
                        "make up for rows that are not sorted."), "")  # fmt: skip

    # ---- the EVC-HYB paper

    def evchyb_table3(self):
        self.head("EVC-HYB paper, Table 3: the partition", "\"Twelve matrices are dominated by the adaptive ELL format — i.e., where NNZELL is larger than 99.0%, while one matrix is dominated by the vCSR format\"; the zeros added are 0.00 to 6.86 % of the entries, "
                  "\"for most of the matrices\" less than 1.0 %.",
                  f"Table 3 itself has {sum(v[1] / (v[1] + v[2]) > 0.99 for v in TABLE_3.values())} matrices above 99.0 % in ELL.")  # fmt: skip
        found = self.devices("matrices")
        for _, t in found[:1]:  # a property of the matrix
            rows, exact, agree, compared = [], 0, 0, 0
            for m, (isplit, ell, vcsr, added, best) in TABLE_3.items():
                words = t.at.get((m, "partition"), {}).get("kernel", "").split()
                if len(words) != 6:
                    continue
                i, e, c = int(words[1]), int(words[3]), int(words[5])
                nz = t.entries(m)
                exact += abs(100 * ((e + c) / nz - 1) - added) < 0.1
                lib = t.best(m, ["cusparse:csr1", "cusparse:csr2", "hyb"])[1] if t.seconds(m, "cusparse:csr1") else ""
                compared += lib != ""
                agree += lib != "" and (lib == "hyb") == (best == "HYB")
                rows.append((t.label(m), f"{isplit}, {i}", f"{ell}, {e}", f"{100 * ell / (ell + vcsr):.2f}, {100 * e / (e + c):.2f}", f"{vcsr}, {c}", f"{added:.2f}, {100 * ((e + c) / nz - 1):.2f}",
                             f"{best}, {'HYB' if lib == 'hyb' else 'CSR' if lib else '-'}"))  # fmt: skip
            self.say("Each cell: the paper's, then ours.")
            self.table(["matrix", "Isplit", "in ELL", "% in ELL", "in vector CSR", "% added", "better of CSR and HYB"], rows)
            self.say(f"*Here.* The zeros added agree to 0.1 % of the entries on {exact} of {len(rows)} matrices" + (f", the better of cuSPARSE CSR and HYB on {agree} of {compared}" if compared else "") + ". *Why they differ.* A twin has the quartiles, the mean, the deviation and the skew of the row lengths, "
                     "not each length: what falls on the two sides of 128, and what is left over at boundaries of 32 rows, may differ. Stanford's longest row, 38606, is longer than all of the paper's vector CSR: the paper must have had the transpose. The paper's best of cuSPARSE was on a K20X, with cuSPARSE's own HYB." + self.partitions(), "")  # fmt: skip

    def partitions(self):
        """On how many matrices the paper's kernel on the device stores other counts than the partition"""
        for device, t in self.data.items():
            t = t.get("matrices")
            if on_host(device) or not t:
                continue
            pairs = []
            for m in MATRICES:
                words, stored = t.at.get((m, "partition"), {}).get("kernel", "").split(), t.number(m, "evchyb-paper", "stored")
                if len(words) == 6 and stored:
                    pairs.append(int(words[3]) + int(words[5]) != stored)
            if pairs:
                return (f" This table is of `EVCHYBPartitionCreate()`, where a row block has at least two times 32 rows, as Table 3 implies. The kernel whose times follow makes row blocks from 32 rows on, as the "
                        f"text says, so that on {sum(pairs)} of {len(pairs)} matrices it stores other counts than the partition does.")  # fmt: skip
        return ""

    def evchyb_figure3(self):
        self.head("EVC-HYB paper, Figures 3 to 5: speed over CSR and HYB, and what reordering costs",
                  "Without reordering y, EVC-HYB is 1.10 to 1.64 times as fast as the better of cuSPARSE's CSR and HYB on ten matrices, \"similar\" (0.90 to 1.10) on others, 0.90 on pwtk. Reordering costs 3.52 to 34.15 %: "
                  "18.75 to 34.15 % where rows have fewer than 12 entries. The best rate is around 24.7 GF/s, for all formats.",
                  "The kernel here differs from the paper's in three ways: its thread blocks have 512 threads (the paper used 256), since up to 512 are to share a row; 2^9 threads a row begin beyond 8 x 256 entries, which "
                  "continues the paper's series of ranges, where its text says 8 x 512; and a row block begins with 32 rows (see Table 3).")  # fmt: skip
        for device, t in self.devices("matrices", gpu=True):
            names = [m for m in TABLE_3 if all(t.seconds(m, f) for f in ("evchyb-paper", "evchyb-sorted", "evchyb")) and t.best(m, ["cusparse:csr1", "hyb"])[0]]
            if not names:
                self.say(f"None of the matrices was measured on {self.where(t)}.", "")
                continue
            base = {m: t.best(m, ["cusparse:csr1", "hyb"])[0] for m in names}
            without = [base[m] / t.seconds(m, "evchyb-sorted") for m in names]
            with_ = [base[m] / t.seconds(m, "evchyb-paper") for m in names]
            loss = [100 * (1 - t.seconds(m, "evchyb-sorted") / t.seconds(m, "evchyb-paper")) for m in names]
            per = [t.entries(m) / float(t.at[m, "evchyb-paper"]["rows"]) for m in names]
            ours = [base[m] / t.seconds(m, "evchyb") for m in names]
            self.chart(f"{device}-evchyb-figure3", "Figure 3: speed over the better of cuSPARSE CSR and HYB", names, {"without reordering": without, "with reordering": with_, "our evchyb": ours}, "speed")
            self.chart(f"{device}-evchyb-figure4", "Figure 4: loss by reordering", per, {"loss": loss}, "loss by reordering, %", kind="points", xlabel="entries a row")
            self.chart(f"{device}-evchyb-figure5", "Figure 5: rates", names, {c: [t.gflops(m, f) for m in names] for c, f in (("EVC-HYB, sorted", "evchyb-sorted"), ("EVC-HYB", "evchyb-paper"), ("cuSPARSE CSR", "cusparse:csr1"), ("HYB", "hyb"), ("our evchyb", "evchyb"))}, "GF/s")  # fmt: skip
            short = [x for x, p in zip(loss, per) if p < 12]
            self.table(["matrix", "CSR us", "HYB us", "EVC-HYB, sorted us", "EVC-HYB us", "loss %", "speed, sorted", "speed", "our evchyb us"],
                       [(t.label(m), us(t.seconds(m, "cusparse:csr1")), us(t.seconds(m, "hyb")), us(t.seconds(m, "evchyb-sorted")), us(t.seconds(m, "evchyb-paper")), f"{l:.1f}", f"{a:.2f}", f"{b:.2f}", us(t.seconds(m, "evchyb")))
                        for m, l, a, b in zip(names, loss, without, with_)])  # fmt: skip
            self.say(f"*Here*, on {self.where(t)}: without reordering EVC-HYB as printed is faster than both by 1.1 on {sum(x >= 1.1 for x in without)} of {len(names)} matrices, alike on {sum(0.9 < x < 1.1 for x in without)}, slower on {sum(x <= 0.9 for x in without)}. "
                     f"Reordering costs {min(loss, default=0):.1f} to {max(loss, default=0):.1f} %, on rows of fewer than 12 entries {mean(short):.0f} % on average. This library's evchyb, which writes y in the natural order, is {mean(ours):.2f} times as fast as the better of both. "
                     "*Why they differ.* One thread walks a row of up to 128 entries, an index and then an x at a time: 0.3 to 0.6 us for each entry of the longest, about 40 us and more where that has 128, however small the matrix, unless there are rows enough to hide it. On a K20X, with a twentieth of "
                     "the bandwidth, the same rows were work enough; here fewer than half of the warps are in use on such matrices (ncu), and only those of hundreds of megabytes come near cuSPARSE's CSR, which is balanced by entries now "
                     "instead of by rows. dc1 waits for its longest row, 114190 entries for 512 threads. Reordering costs less, as the L2 takes up y; most still on the shortest rows.", "")  # fmt: skip

    def counters(self, device, t):
        """matrix -> numbers, of EVC-HYB without reordering"""
        found = {}
        for m in TABLE_3:
            r = t.at.get((m, "evchyb-sorted"))
            if r and all(t.value(r, k) for k in ("gpu__time_duration.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum")) and r["dram__bytes_read.sum"] and r["dram__bytes_write.sum"]:
                ns = float(r["gpu__time_duration.sum"])
                found[m] = {"dram": float(r["dram__bytes_read.sum"]) / ns, "l2": float(r["lts__t_bytes.sum"]) / ns, "l1": float(r["l1tex__t_bytes.sum"]) / ns,
                            "hit1": t.value(r, "l1tex__t_sector_hit_rate.pct"), "hit2": t.value(r, "lts__t_sector_hit_rate.pct"),
                            "volume": float(r["dram__bytes_read.sum"]) + float(r["dram__bytes_write.sum"]), "l2volume": float(r["lts__t_bytes.sum"])}  # fmt: skip
        return found

    def evchyb_figure6(self):
        self.head("EVC-HYB paper, Figures 6 to 9: throughput and hit rates",
                  "DRAM is read at 119 to 207 GB/s of 183 copied; texture hits for x go from 2 % (web-Google) to 95 %, and the average latency of x explains the rates: 116 cycles for TSOPF, 444 for web-Google. "
                  "On Stanford_Berkeley every level moves more than with HYB's two kernels.")  # fmt: skip
        for device, t in self.devices("profile", gpu=True):
            c = self.counters(device, t)
            names = list(c)
            self.chart(f"{device}-evchyb-figure6", "Figure 6: throughput", names, {"DRAM read": [c[m]["dram"] for m in names], "L2": [c[m]["l2"] for m in names], "L1": [c[m]["l1"] for m in names]}, "GB/s")
            self.chart(f"{device}-evchyb-figure7", "Figure 7: hit rates", names, {"L1": [c[m]["hit1"] for m in names], "L2": [c[m]["hit2"] for m in names]}, "%")
            # the latencies of a Hopper GPU, in cycles, rounded from published micro-benchmarks: L1 33, L2 270, DRAM 600
            cycles = {m: 33 * c[m]["hit1"] / 100 + (1 - c[m]["hit1"] / 100) * (270 * c[m]["hit2"] / 100 + 600 * (1 - c[m]["hit2"] / 100)) for m in names}
            full = self.data[device].get("matrices")
            if full:
                points = {m: full.gflops(m, "evchyb-sorted") for m in names}
                self.chart(f"{device}-evchyb-figure8", "Figure 8: rate and average latency", [cycles[m] for m in names], {"matrices": [points[m] for m in names]}, "GF/s", kind="points", xlabel="cycles a load, all loads")
            self.table(["matrix", "DRAM read GB/s", "L2 GB/s", "L1 GB/s", "L1 hits %", "L2 hits %", "cycles a load"], [(m, *(f"{c[m][k]:.0f}" for k in ("dram", "l2", "l1")), *(f"{c[m][k]:.1f}" for k in ("hit1", "hit2")), f"{cycles[m]:.0f}") for m in names])
            kernels = [r for r in t.rows if key(r["matrix"]) == "Stanford_Berkeley" and t.value(r, "gpu__time_duration.sum")]
            if kernels:
                self.say("Figure 9, Stanford_Berkeley by kernel:")
                self.table(["kernel", "us", "DRAM read GB/s", "L2 GB/s", "L1 GB/s"], [(r["kernel"], f"{float(r['gpu__time_duration.sum']) * 1e-3:.1f}", *(f"{t.value(r, k) / float(r['gpu__time_duration.sum']):.0f}" for k in ("dram__bytes_read.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"))) for r in kernels])
            if names:
                low, high = min(names, key=lambda m: c[m]["hit1"]), max(names, key=lambda m: c[m]["hit1"])
                said = f"*Here.* DRAM is read at {min(c[m]['dram'] for m in names):.0f} to {max(c[m]['dram'] for m in names):.0f} GB/s; hits in L1 go from {c[low]['hit1']:.0f} % ({low}) to {c[high]['hit1']:.0f} % ({high}), in L2 from {min(c[m]['hit2'] for m in names):.0f} to {max(c[m]['hit2'] for m in names):.0f} %. "
                known = [m for m in names if full and full.gflops(m, "evchyb-sorted")]
                if len(known) > 2:
                    rate, by = [full.gflops(m, "evchyb-sorted") for m in known], {"latency": [cycles[m] for m in known], "size": [full.entries(m) for m in known]}
                    said += f"The average latency does not explain the rates here: the correlation of their logarithms is {correlation(rate, by['latency']):.2f}, where waiting would make it negative; that with the number of entries is {correlation(rate, by['size']):.2f}. "
                if kernels:
                    first, others = kernels[0], [r for r in kernels if r["format"] == "hyb"]
                    less = [k for k, what in (("DRAM", "dram__bytes_read.sum"), ("L2", "lts__t_bytes.sum"), ("L1", "l1tex__t_bytes.sum"))
                            if all(t.value(first, what) / t.value(first, "gpu__time_duration.sum") < t.value(r, what) / t.value(r, "gpu__time_duration.sum") for r in others)]  # fmt: skip
                    if others and less:
                        said += f"On Stanford_Berkeley {', '.join(less)} move less a second than with each of HYB's two kernels, not more. "
                self.say(said + "*Why they differ.* With a thread a row, matrices of a few hundred thousand rows have too few loads under way for this memory: the kernel waits, whichever cache answers, and the "
                         "larger the matrix the better. L1 and texture cache are one today, so that hits of x and of the matrix are not told apart. ncu runs a kernel once for each few counters and puts memory back in between, so that the matrix comes from DRAM "
                         "each time, also where products one after the other find it in the L2. The latencies taken for the average, of a Hopper GPU, are 33 cycles in L1, 270 in L2 and 600 beyond.", "")  # fmt: skip

    def evchyb_figure10(self):
        self.head("EVC-HYB paper, Figures 10 and 11: code balance, alpha, roofline",
                  "B = (12 / beta + 8 alpha + 16 / Nnzr) / (2 + 3 / Nnzr) bytes a flop, alpha from the measured volume: 0.37 to 1.66 (4.93 for web-Google), B 7.45 to 11.52 (21.4). Measured rates are near b / B, with b the copy's bandwidth.")  # fmt: skip
        for device, t in self.devices("profile", gpu=True):
            c, full, rows = self.counters(device, t), self.data[device].get("matrices"), []
            if not full:
                self.say("The rates were not measured.", "")
                continue
            b = float(full.rows[0]["copy"]) * 1e-9
            for m in c:
                nz, stored = full.entries(m), full.number(m, "evchyb-sorted", "stored")
                rate = full.gflops(m, "evchyb-sorted")
                if not stored or not rate:
                    continue
                n = float(full.at[m, "evchyb-sorted"]["rows"])
                beta, per = nz / stored, nz / n
                alpha = {k: 0.25 * (c[m][v] / (2 * nz) - 6 / beta - 8 / per) for k, v in (("DRAM", "volume"), ("L2", "l2volume"))}
                balance = {k: (12 / beta + 8 * a + 16 / per) / (2 + 3 / per) for k, a in alpha.items()}
                flops = rate * (2 + 3 / per) / 2
                rows.append((m, alpha["DRAM"], alpha["L2"], balance["DRAM"], balance["L2"], flops, b / balance["DRAM"] if balance["DRAM"] > 0 else 0))
            names = [r[0] for r in rows]
            self.table(["matrix", "alpha by DRAM", "alpha by L2", "B by DRAM", "B by L2", "GF/s", "b / B by DRAM"], [(r[0], *(f"{x:.2f}" for x in r[1:5]), f"{r[5]:.0f}", f"{r[6]:.0f}") for r in rows])
            self.chart(f"{device}-evchyb-figure10", "Figure 10: alpha and code balance by what the L2 moved", names, {"alpha": [r[2] for r in rows], "B, bytes a flop": [r[4] for r in rows]}, "")
            self.chart(f"{device}-evchyb-figure11", "Figure 11: measured and modelled", names, {"measured": [r[5] for r in rows], "b / B": [r[6] for r in rows]}, "GF/s")
            if rows:
                big = [r for r in rows if full.number(r[0], "evchyb-sorted", "bytes") > 2e8]
                parts = [r[5] / r[6] for r in big if r[6]]
                rest = [r[5] / r[6] for r in rows if r[6] and r not in big]
                alpha = {k: (min(r[i] for r in rows), max(r[i] for r in rows)) for k, i in (("DRAM", 1), ("L2", 2))}
                self.say(f"*Here.* b is {b:.0f} GB/s. alpha by DRAM is {alpha['DRAM'][0]:.2f} to {alpha['DRAM'][1]:.2f}, by L2 {alpha['L2'][0]:.2f} to {alpha['L2'][1]:.2f}. " + (f"On the matrices of more than 200 MB, the rate is {min(parts):.2f} to {max(parts):.2f} of b / B" + (f", on the others {min(rest):.2f} to {max(rest):.2f}" if rest else "") + ". " if parts else "")
                         + "*Why they differ.* The K20X's L2, much smaller, did not hold x, and so its DRAM traffic showed how often x was read again. Here it holds all of x, and DRAM moves little more than the matrix: alpha by DRAM is near 0, and below where y, which the model "
                         "counts with 16 bytes a row, stays in the L2 as well. alpha by L2 is what the paper's meant, sectors of 32 bytes for single entries of x, and highest on " + max(rows, key=lambda r: r[2])[0] + ". Memory is not the limit on the smaller ones: "
                         "the kernel waits for its loads (Figures 3 to 5), which the model does not know.", "")  # fmt: skip

    def evchyb_figure12(self):
        self.head("EVC-HYB paper, Figures 12 to 14: the time of A, of x, of y",
                  "With x held constant one measures T_A + T_Y, with A held T_X + T_Y, with both T_Y. The ratio of their sum to the product's time \"is less than 1.15 for most of the tested matrices, and only four matrices result in the ratios of 1.17, 1.17, 1.19 and 1.21\"; A takes 14 to 49 %, x 34 to 80 %, y 7 to 35 %; "
                  "x is most of web-Google (80 %) and Stanford (60 %).")  # fmt: skip
        for device, t in self.devices("matrices", gpu=True):
            rows = []
            for m in TABLE_3:
                whole, x, a, both = (t.seconds(m, f) for f in ("evchyb-sorted", "evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both"))
                if whole and x and a and both:
                    ta, tx, ty = max(0, x - both), max(0, a - both), both
                    rows.append((m, (ta + tx + ty) / whole, ta / (ta + tx + ty), tx / (ta + tx + ty), ty / (ta + tx + ty), t.gflops(m, "evchyb-sorted"), t.gflops(m, "evchyb-hold-x"), t.gflops(m, "evchyb-hold-a")))
            names = [r[0] for r in rows]
            self.table(["matrix", "T_A + T_X + T_Y over the whole", "T_A %", "T_X %", "T_Y %", "GF/s", "x constant", "A constant"], [(r[0], f"{r[1]:.2f}", *(f"{100 * v:.0f}" for v in r[2:5]), *(f"{v:.0f}" for v in r[5:])) for r in rows])
            self.chart(f"{device}-evchyb-figure12", "Figure 12: sum of the parts over the whole", names, {"sum over whole": [r[1] for r in rows]}, "ratio")
            self.chart(f"{device}-evchyb-figure13", "Figure 13: the parts", names, {"A": [r[2] for r in rows], "x": [r[3] for r in rows], "y": [r[4] for r in rows]}, "share", kind="stack")
            self.chart(f"{device}-evchyb-figure14", "Figure 14: rates", names, {"complete": [r[5] for r in rows], "x constant": [r[6] for r in rows], "A constant": [r[7] for r in rows]}, "GF/s")
            if rows:
                most = max(rows, key=lambda r: r[3])
                chain, below = [r[0] for r in rows if r[7] < 1.05 * r[5]], [r[0] for r in rows if r[1] < 0.95]
                self.say(f"*Here*, on {self.where(t)}: the parts add up to {min(r[1] for r in rows):.2f} to {max(r[1] for r in rows):.2f} of the whole; A takes {100 * min(r[2] for r in rows):.0f} to {100 * max(r[2] for r in rows):.0f} %, x {100 * min(r[3] for r in rows):.0f} to {100 * max(r[3] for r in rows):.0f} % (most on {most[0]}), y {100 * min(r[4] for r in rows):.0f} to {100 * max(r[4] for r in rows):.0f} %. "
                         "*Why they differ.* The indices count as x's, as in the paper, and an x is read after its index: with A held constant this chain is as long as before"
                         + (f", and the product as slow, within 5 %, on {', '.join(chain)}" if chain else "") + ", while values come beside it for nothing. What overlaps counts twice: hence sums above 1."
                         + (f" Below 1 ({', '.join(below)}), values and x stand in each other's way." if below else "") + " T_Y holds what a launch, "
                         "the search for the row block and the loop itself take.", "")  # fmt: skip

    def evchyb_figure15(self):
        self.head("EVC-HYB paper, Figure 15: random matrices of growing size", "The rows of an N x N matrix have from \"1 nonzero to 0.05N nonzeros (or 5%)\", N goes from 5000 to 65,000, the entries from 0.61 to 183.54 million, \"which is 1% to 5% of the dense matrix\". Beyond 15.0 million entries cuSPARSE's CSR stays at 20.0 GF/s "
                  "and HYB at 13.0, EVC-HYB at around 19.0.",
                  "Rows of 1 entry to 5 % of the columns hold 2.5 % of them on average: of 5000 x 5000 this is the paper's 0.6 million, of 65,000 x 65,000 it is 106 million, not 183.54. The generator here follows the row lengths.")
        for device, t in self.devices("random"):
            t.matrices.sort(key=t.entries)  # whatever was measured first
            forms = [("EVC-HYB, sorted", "evchyb-sorted"), ("EVC-HYB", "evchyb-paper"), ("CSR, a warp a row", "csr-vector"), ("cuSPARSE CSR", "cusparse:csr1"), ("MKL CSR", "mkl"), ("AIJ", "petsc:aij"), ("AIJCUSPARSE", "petsc:aijcusparse"), ("HYB", "hyb"), ("our evchyb", "evchyb"), ("our sellp", "sellp")]
            forms = [(c, f) for c, f in forms if any(t.seconds(m, f) for m in t.matrices) and (f != "petsc:aij" or on_host(device))]
            names = [f"{float(next(r['rows'] for r in t.rows if key(r['matrix']) == m)):.0f}" for m in t.matrices]
            self.table(["rows", "entries"] + [c for c, _ in forms], [(n, f"{t.entries(m):.0f}", *(f"{t.gflops(m, f):.1f}" for _, f in forms)) for n, m in zip(names, t.matrices)])
            self.chart(f"{device}-evchyb-figure15", f"Figure 15 on {self.where(t)}", [float(n) for n in names], {c: [t.gflops(m, f) for m in t.matrices] for c, f in forms}, "GF/s", kind="line", xlabel="rows")
            last = t.matrices[-1]
            share = max(1 / 3, min(1, 4096 / float(names[-1]))) ** 2  # lengths are uniform: of the rows beyond the width, squared
            behind = [n for n, m in zip(names, t.matrices) if max(t.gflops(m, "evchyb"), t.gflops(m, "sellp")) * 1.05 < max(t.gflops(m, f) for _, f in forms)]
            self.say(f"*Here*, on {self.where(t)}, GF/s: at {t.entries(last) * 1e-6:.0f} million entries " + ", ".join(f"{c} {t.gflops(last, f):.{0 if t.gflops(last, f) > 20 else 1}f}" for c, f in forms)
                     + ". *Why they differ.* " + ("Ours and those of CSR by warps rise to where x, 8 bytes a column, no longer fits the L1, and fall beyond. EVC-HYB as printed has too few rows for this GPU at first, as above, and overtakes cuSPARSE's CSR later than on a K20X. " if not on_host(device) else "")
                     + (f"Our defaults are slower by more than 5 % than another kernel at {', '.join(behind)} rows: most of these are longer than 1024 entries and multiplied in parts, by warps that read x in several places at once, while those of the others all go through x from left to right. " if behind and not on_host(device) else "")
                     + "HYB stores what is beyond its width in COO, "
                     f"which holds about {100 * share:.0f} % of the entries of the largest matrix, whose row lengths are distributed uniformly" + ("; that part is added with atomics" if not on_host(device) else "") + ".", "")  # fmt: skip

    def evchyb_figure16(self):
        self.head("EVC-HYB paper, Figure 16: Bratu through PETSc", "SNES example 14 on 200^3 points, four nodes of a GPU each: the product goes from 23.1 GF/s (aijcusp) to 37.4 (evchyb), the whole solve from 8.3 to 8.4: \"the total throughput of the nonlinear solve is limited by other "
                  "operations\".",
                  "The paper does not name these operations; it mentions PETSc's GPU vectors (vecusp).")
        for device, t in self.devices("bratu"):
            n = int(t.rows[0]["n"])
            nz = 7 * n**3 - 6 * n**2
            rows = []
            for r in t.rows:
                rows.append((r["format"], f"{float(r['solve']):.3f}", f"{float(r['ksp']):.3f}", f"{float(r['product_us']):.1f}", f"{(g := 1e-3 * t.flops * nz / float(r['product_us'])):.{0 if g > 20 else 1}f}", r["newton"], r["krylov"]))
            self.table([f"{n}^3 points, {device}", "SNESSolve s", "KSPSolve s", "product us", "product GF/s", "Newton", "Krylov"], rows)
            own = [r for r in t.rows if r["format"] in ("sellp", "evchyb")]
            base = next((r for r in t.rows if r not in own), None)
            if not own or not base:
                continue
            ours = min(own, key=lambda r: float(r["solve"]))
            self.say(f"*Here.* {ours['format']} takes {float(base['product_us']) / float(ours['product_us']):.2f} times less time for a product than {base['format']} and {float(base['solve']) / float(ours['solve']):.2f} times less for the whole solve. "
                     "*Why they differ.* The program is another: `examples/bratu` evaluates function and Jacobian where the matrix lives, so that the product's gain shows in the solve; PETSc's example 14 itself evaluates them on the host."
                     + (" The product reads no indices, and few of ex14's values, as most of a slice's are equal (docs/kernels.md). One GPU here, four in the paper; two and four are in docs/results/h200-gpus.md." if not on_host(device) else ""), "")  # fmt: skip

    # ---- the comparison of formats

    FIVE = [("COO", ["coo", "coo-segmented", "coo-balanced"]), ("CSR", ["csr-scalar", "csr-vector"]), ("ELL", ["ell"]), ("SELL-C-sigma", ["sell-32", "sell-32-1024", "sell-32-all", "sell-8-64"]), ("CSR5", ["csr5", "csr5-8-16"])]

    def formats(self):
        self.head("Comparison of formats: COO, CSR, ELL, SELL-C-sigma, CSR5 over density profiles",
                  "On an A100 SELL-C-sigma \"consistently outperformed CSR and ELL\" for structured matrices, while \"performance degraded, however, on more irregular matrices like bcsstk\"; on an L40S \"CSR5 is the clear winner, being faster than every other kernel on "
                  "every input\" (five small matrices). On the cantilever matrix \"the scalar coo kernel was by far the fastest\" of the COO and CSR kernels, \"despite being, in theory, the least optimized\"; the load-balanced COO kernel did not give accurate results. "
                  "The conversion's cost \"is negligible after a certain number of SpMV operations\". cuSPARSE's times were \"significantly worse than all of our kernels\" at these sizes, which the authors put down to the sizes.")  # fmt: skip
        for device, t in self.devices("profiles"):
            rows, even, paid, slow = [], [], {}, []
            wins = dict.fromkeys([f for f, _ in self.FIVE], 0)
            for m in t.matrices:
                cells, got = [], {}
                for name, kinds in self.FIVE:
                    s, form = t.best(m, kinds)
                    if s:
                        got[name] = (s, form)
                    cells.append(f"{us(s)} ({form})" if s else "-")
                if "CSR" not in got:
                    continue
                wins[min(got, key=lambda f: got[f][0])] += 1
                slow += [t.best(m, ["cusparse:csr1", "mkl"])[0] / got["CSR"][0]] if t.best(m, ["cusparse:csr1", "mkl"])[0] else []
                lib = t.best(m, ["cusparse:csr1", "mkl"])[0]
                rows.append((t.label(m), f"{t.entries(m):.0f}", *cells, us(lib), us(t.best(m, ["sellp", "evchyb"])[0])))
                base = got["CSR"][0]
                line = [t.label(m)]
                for name, _ in self.FIVE:
                    if name == "CSR" or name not in got:
                        line.append("-" if name not in got else "0")
                        continue
                    s, form = got[name]
                    convert = t.number(m, form, "convert")
                    if s < base:
                        paid.setdefault(name, []).append(convert / (base - s))
                    line.append(f"{1e3 * convert:.2f} ms, " + (f"{convert / (base - s):.0f}" if s < base else "never"))
                even.append(line)
            lib = "cuSPARSE CSR" if not on_host(device) else "MKL CSR"
            self.say(f"On {self.where(t)}, microseconds, the fastest kernel of each format (* generated):")
            self.table(["matrix", "entries"] + [f for f, _ in self.FIVE] + [lib, "our better one"], rows)
            self.say("Conversion from CSR, and after how many products it has paid for itself against the better CSR kernel:")
            self.table(["matrix"] + [f for f, _ in self.FIVE], even)
            self.chart(f"{device}-formats", f"Rates on {self.where(t)}", [t.label(m) for m in t.matrices], {f: [t.gflops(m, t.best(m, k)[1]) for m in t.matrices] for f, k in self.FIVE}, "GF/s")
            coo = [t.seconds(m, "coo") / t.seconds(m, "coo-balanced") for m in t.matrices if t.seconds(m, "coo-balanced") and t.seconds(m, "coo")]
            both = [t.best(m, ["sell-32", "sell-32-1024", "sell-32-all", "sell-8-64"])[0] / t.seconds(m, "ell") for m in t.matrices if t.seconds(m, "ell") and t.best(m, ["sell-32"])[0]]
            cant = {f: t.best("cant", kinds)[0] for f, kinds in (("coo", ["coo"]), ("other", ["coo-segmented", "coo-balanced", "csr-scalar", "csr-vector"]))} if "cant" in t.matrices else {}
            self.say(f"*Here*, on {self.where(t)}: of the five formats " + ", ".join(f"{f} is fastest on {n}" for f, n in sorted(wins.items(), key=lambda x: -x[1]) if n) + f" of {len(rows)} profiles"
                     + (f"; SELL-C-sigma takes {mean(both):.2f} times ELL's time where there is one. " if both else ". ")
                     + (f"{lib} takes {mean(slow):.2f} times the time of the better plain CSR kernel ({min(slow):.2f} to {max(slow):.2f}). " if slow else "")
                     + (f"Load-balanced COO, which works here, is {mean(coo):.2f} times as fast as scalar COO in the geometric mean. " if coo else "")
                     + (f"On cant scalar COO takes {cant['coo'] / cant['other']:.1f} times as long as the fastest of the other COO and CSR kernels. " if cant.get("coo") and cant.get("other") else "")
                     + ("Where a format beats CSR, its conversion has paid after " + ", ".join(f"{min(v):.0f} to {max(v):.0f} products ({f}, {len(v)} profiles)" for f, v in paid.items()) + ". " if paid else "")
                     + "*Why they differ.* The paper's sigma is C, so that its sorting, within a slice, changes no padding: its SELL-C-sigma is our sell-32. "
                     + ("One core has no launches, and no threads that one long row could hold up: plain CSR is at its best here, except for what SIMD gains on slices. CSR5's tiles of 8 x 16 are plain loops here, not intrinsics, and not tuned." if on_host(device) else "Its matrices take less time than a launch; most of those here fill the machine, and cuSPARSE is in its element. Where rows are alike, ELL and slices read the same and gain most; where they are not, one long row holds up a whole slice, while COO and CSR5 share entries out evenly. CSR5's sigma follows the published r, s, t, u = 4, 32, 256, 4 and is not tuned for this GPU, as the paper's section 5.3 describes: it may be a weaker baseline than it could be. It takes a memset "
                        "and three kernels, 7 us at least, which the smallest matrices pay for, and its structure is worked out on the host, so that its conversion takes longest. Scalar COO's atomics meet in the same rows."), "")  # fmt: skip

    # ---- this library

    # Why another format is faster by more than 5 %, where it is
    WHY = {
        ("h200", "F1"): "rows of 78 entries have 8 lanes each here, of ten steps: one batch of eight loads, then one of two; with fewer lanes more loads would be under way",
        ("h200", "inline_1"): "as F1",
        ("h200", "Trefethen_20000"): "on diagonals a row has one lane: 625 warps with up to 29 steps in four rounds of loads, on 132 multiprocessors, where SELL-P has eight threads a row",
        ("h200", "cage14"): "probably because x comes from the L2, so that what counts is how many loads are under way, and our kernel needs more registers than a plain one, a lane a row, so that a multiprocessor holds fewer warps (not profiled); sorting all rows gives the other format the rest",
        ("host", "webbase-1M"): "rows of two entries, mostly: PETSc's SELL leaves them in their order, ours are sorted among 512, and y is written row by row",
    }  # fmt: skip
    SAME = ("sellp-paper", "evchyb-paper")  # on the host these are our own layouts, not other formats
    OTHER = ("evchyb-hold-x", "evchyb-hold-a", "evchyb-hold-both", "evchyb-sorted", "partition", "sellp", "evchyb")

    @staticmethod
    def same_layout(t, names):
        """The host: what is not another format, and what that shows about the noise"""
        alike = [m for m in names if all(t.at[m, "evchyb"][k] == t.at[m, "evchyb-paper"][k] for k in ("kernel", "stored", "bytes"))]
        again = [t.seconds(m, "evchyb") / t.seconds(m, "evchyb-paper") for m in alike]
        fewer = sum(t.number(m, "sellp-paper", "bytes") < 12 * t.number(m, "sellp-paper", "stored") for m in names)
        return ("sellp-paper and evchyb-paper are not counted as other formats here: on the host they are this library's own layouts (evchyb-paper has evchyb's kernel, stored entries and bytes on "
                f"{len(alike)} of {len(names)} matrices; sellp-paper stores fewer than 12 bytes an entry on {fewer}, as sellp does, with the paper's b, t and order). "
                + (f"So evchyb was timed twice: the two times differ by a factor of {min(again):.2f} to {max(again):.2f}, and 5 % is less than this noise. " if again else ""))  # fmt: skip

    @staticmethod
    def node_blocks(t, names, ratios):
        """The device: how much of the gain is of matrices whose dense node blocks are an assumption"""
        blocks = [m for m in names if any("node blocks" in t.at[m, f]["kernel"] for f in ("sellp", "evchyb"))]
        parts = {yes: [x for m, x in zip(names, ratios) if (m in blocks) == yes] for yes in (True, False)}
        twins = sum(t.at[m, "sellp"]["origin"] == "twin" for m in blocks)
        if not all(parts.values()):
            return ""
        return (f"Much of the gain rests on dense node blocks: on {len(blocks)} matrices the products use them ({twins} of these are twins, made of exact blocks by assumption, docs/results/twins.md), and the ratio is {mean(parts[True]):.2f} in the geometric mean; "
                f"on the other {len(parts[False])} it is {mean(parts[False]):.2f}. ")  # fmt: skip

    def ours(self):
        self.head("The 38 matrices: our default kernels against every other format", "None has all formats in one run.")
        self.say("The aim: the better of sellp and evchyb, as they choose by themselves, is the fastest of all or within 5 %. By default both types run this project's own kernels; the papers' "
                  "own are sellp-paper and evchyb-paper (`-mat_sellp_kernel paper`, `-mat_evchyb_kernel paper`, on a GPU).", "")  # fmt: skip
        for device, t in self.devices("matrices"):
            same = [f for f in self.SAME if on_host(device) and f in t.formats]
            others = [f for f in t.formats if f not in (*self.OTHER, *same)]
            names = [m for m in MATRICES if t.seconds(m, "sellp") and t.seconds(m, "evchyb") and t.best(m, others)[0]]
            rows, missed, ratios, single = [], [], [], {"sellp": 0, "evchyb": 0}
            for m in names:
                own, form = t.best(m, ["sellp", "evchyb"])
                other, name = t.best(m, others)
                ratio = other / own
                ratios.append(ratio)
                for f in single:
                    single[f] += other / t.seconds(m, f) >= 1 / 1.05
                if ratio < 1 / 1.05:
                    why = self.WHY.get((device.split("-")[0], m))
                    missed.append(f"- {m}: {name}, by {100 * (1 / ratio - 1):.0f} %" + (f": {why}" if why else ""))
                rows.append((t.label(m), f"{t.entries(m):.0f}", us(t.seconds(m, "sellp")), us(t.seconds(m, "evchyb")), us(other), name, f"{ratio:.2f}", "fastest" if ratio >= 1 else "within 5 %" if ratio >= 1 / 1.05 else "**slower**"))
            if not names:
                self.say(f"None of the matrices was measured on {self.where(t)}.", "")
                continue
            self.say(f"On {self.where(t)}, microseconds, warm:")
            self.table(["matrix", "entries", "sellp", "evchyb", "best other", "which", "its time over ours", ""], rows)
            self.chart(f"{device}-ours", "Time of the best other format over ours", names, {"best other over ours": ratios}, "ratio")
            lost = [m for m in MATRICES if m not in names]
            by = []
            for f in ["sellp", "evchyb"] + others:
                over = {m: t.seconds(m, f) / t.best(m, ["sellp", "evchyb"])[0] for m in names if t.seconds(m, f)}
                best = sum(t.seconds(m, f) <= t.best(m, ["sellp", "evchyb"] + others)[0] for m in over)
                by.append((mean(over.values()), (f, len(over), f"{mean(over.values()):.2f}", f"{min(over.values(), default=0):.2f}", best)))
            self.say("By format: on how many matrices (the others are not stored, or refused), its time over our better one in the geometric mean and at least, on how many it is the fastest of all.")
            self.table(["format", "matrices", "time over ours", "least", "fastest on"], [r for _, r in sorted(by) if r[1]])
            self.say("<details><summary>All times, microseconds</summary>")
            forms = ["sellp", "evchyb"] + same + others
            self.table(["matrix"] + forms, [(t.label(m), *(us(t.seconds(m, f)) for f in forms)) for m in names])
            self.say("</details>", "")
            twins = [m for m in names if t.label(m) != m]
            self.say(f"*Here.* {len(twins)} of the {len(names)} matrices are twins. The better of sellp and evchyb is the fastest, or within 5 % of it, on {len(names) - len(missed)} of {len(names)} matrices (sellp alone on {single['sellp']}, evchyb alone on {single['evchyb']}); the best other format takes {mean(ratios):.2f} times its time in the geometric mean, {min(ratios, default=0):.2f} at least. "
                     + (self.same_layout(t, names) if same else self.node_blocks(t, names, ratios)) + ("The exceptions, and what is faster there:" if missed else "There is no exception.") + (f" Not measured here: {', '.join(lost)}." if lost else ""), "", *missed, "")  # fmt: skip

    def write(self, experiments):
        self.say("# The papers, reproduced", "",
                 "The experiments of the papers on SELL-P (Anzt, Tomov, Dongarra 2014), EVC-HYB (Guo, Gropp, Olson 2015) and on COO, CSR, ELL, SELL-C-sigma and CSR5 (FrogByte 2025), run again: their figures and tables with what the paper found, "
                 "what comes out here, and why they differ; what is missing is listed at the end. `make paper` measures all of it on the machine at hand and writes this page; the figures are in `paper/`, as CSV.", "",
                 "The formats are those of `bench/formats` (`bench/paper -list`), each tested like our own (`tests/core/formats.c`), this library's defaults and the papers' kernels in it, cuSPARSE, MKL and PETSc's types. "
                 "A matrix marked (twin) is generated from the published statistics of the real one (docs/results/twins.md): results show how a format does on such row lengths and places, not that matrix. "
                 "One marked * is generated. Times are of warm products, in turns: on a GPU medians, in a CUDA graph; on the host, one core, the least, as others may use the machine. Double precision and 32-bit indices, where a device is not said to have others.", "")  # fmt: skip
        for device in sorted(self.data, key=on_host):
            name = next((t.rows[0]["device"] for t in self.data[device].values() if "device" in t.rows[0]), device)
            note, wrong = os.path.join(self.folder, f"{device}.txt"), [w for t in self.data[device].values() for w in t.wrong]
            said = [name] + [what for word, what in (("complex", "complex numbers"), ("single", "single precision"), ("64bit", "64-bit indices")) if word in device.split("-")]
            if os.path.exists(note):
                with open(note) as f:
                    said.append(f.read().strip())
            self.say(f"- {device}: {', '.join(said)}" + (f". **Wrong results**, left out below: {', '.join(wrong)}" if wrong else ""))
        for self.now in experiments:
            EXPERIMENTS[self.now][1](self)
        self.say("", "## Not reproduced", "", *(f"- {what}" for what in MISSING), "")
        os.makedirs(os.path.dirname(self.target), exist_ok=True)
        with results.whole(self.target) as f:
            f.write(re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", "\n".join(self.lines) + "\n")).rstrip() + "\n")
        print(f"wrote {os.path.relpath(self.target, ROOT)}")


M = Measuring
EXPERIMENTS = {
    "ours": ([M.matrices], Report.ours),
    "sellp-table3": ([M.matrices], Report.sellp_table3),
    "sellp-figure5": ([M.matrices], Report.sellp_figure5),
    "sellp-table2": ([M.profile], Report.sellp_table2),
    "sellp-sweep": ([M.sweep], Report.sellp_sweep),
    "evchyb-table3": ([M.matrices], Report.evchyb_table3),
    "evchyb-figure3": ([M.matrices], Report.evchyb_figure3),
    "evchyb-figure6": ([M.matrices, M.profile], Report.evchyb_figure6),
    "evchyb-figure10": ([M.matrices, M.profile], Report.evchyb_figure10),
    "evchyb-figure12": ([M.matrices], Report.evchyb_figure12),
    "evchyb-figure15": ([M.random], Report.evchyb_figure15),
    "evchyb-figure16": ([M.bratu_], Report.evchyb_figure16),
    "formats": ([M.profiles], Report.formats),
}
ORDER = [M.matrices, M.random, M.profiles, M.sweep, M.bratu_, M.profile]  # by worth, should the time be up


def main():
    p = argparse.ArgumentParser(prog="bench/paper", description="Measures the papers' experiments and writes a report.", epilog="Experiments: " + ", ".join(EXPERIMENTS))
    p.add_argument("experiments", nargs="*", metavar="experiment", help="default: all")
    p.add_argument("-measure", action="store_true", help="measure only")
    p.add_argument("-report", action="store_true", help="report only, from the CSV files that are there")
    p.add_argument("-list", action="store_true", help="print the formats and the papers they are from")
    p.add_argument("-out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/results/paper"), help="where the CSV files are; those in docs/results/paper are kept")
    p.add_argument("-to", default=os.path.join(ROOT, "build/results/paper.md"), help="the report; its charts go to a folder beside it")
    p.add_argument("-programs", default=os.environ.get("BENCH"), help="the folder of the benchmarks' programs, build/<tag>/bench (default: the one built last)")
    p.add_argument("-host", action="store_true", help="measure the host, even if there is a GPU")
    p.add_argument("-again", action="store_true", help="measure again what is there already")
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
            if any(step in EXPERIMENTS[e][0] for e in wanted):
                step(m)
        if args.note:
            with results.whole(os.path.join(args.out, f"{m.device}.txt")) as f:
                f.write(args.note + "\n")
        failed = m.failed
    if not args.measure:
        Report(args.out, os.path.abspath(args.to)).write(wanted if args.report or args.experiments else list(EXPERIMENTS))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    results.run(main, "bench/paper", "; the same command goes on with what is missing")
