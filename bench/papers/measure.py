"""Measures the papers' experiments: bench/products/bench.c -graph, Nsight Compute (ncu) and examples/bratu.

Measurements are CSV files, <device>-<measurement>.csv in one folder. Several experiments may use one measurement. A measurement that was interrupted goes on
with the matrices that its file lacks.
"""

import csv
import glob
import os
import re
import shutil
import sys
import tempfile

import results
from published import MATRICES, TABLE_3
from results import ROOT, read
from tables import key

BT = [(b, t) for b in (4, 8, 16, 32, 64) for t in (1, 2, 4, 8, 16, 32) if 32 <= b * t <= 1024]
SWEEP = ["twin:" + m for m in ("cant", "pwtk", "F1", "ldoor", "cage14", "scircuit", "webbase-1M", "crankseg_2")]
# of the size of two matrices of the formats' comparison, plsk1919 and e40r5000, and of the one that its table has the numbers of
LIKE = ["lengths:1919:5:0:1:200", "lengths:17281:32:0:1:800", "lengths:11948:12:0:1:1200"]
# about eight million entries each, except for the real ones: by length of the rows, by place of the columns, by skew
PROFILES = [
    "tests/matrices/lns_131.mtx", "tests/matrices/cage8.mtx", "twin:cant", "tridiag:2700000", "stencil5:1260", "fem27:68:1",
    "lengths:4000000:2:0:1:2000", "lengths:1000000:8:0:1:2000", "lengths:250000:32:0:1:2000", "lengths:62500:128:0:1:2000",
    "lengths:16000:512:0:1:4000", "lengths:1000000:8:0:1:0", "lengths:250000:32:0:1:0", "lengths:250000:2:1:61:2000",
    "powerlaw:2000000:3.1:1.6:4700:1", "powerlaw:1500000:5.6:2.5:456:0", "random:18000", "twin:dc1", "arrow:200000", "tsopf:20000", *LIKE,
]  # fmt: skip

# CSR5's sigma: rows of equal lengths, from which its bounds follow, and what these are tried on
SIGMAS = [4, 8, 12, 16, 20, 24, 28, 32]
DENSITIES = [2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024]
EVEN = [f"lengths:{8000000 // n}:{n}:0:1:{max(2000, 4 * n)}" for n in DENSITIES]

TWINS_3 = ["twin:" + m for m in TABLE_3 if m != "indochina-2004"]  # which takes long
CUSPARSE = "cusparse:csr1,cusparse:csr2,cusparse:coo1,cusparse:coo2,cusparse:sell,cusparse:bsr"
FORMATS = "coo,coo-segmented,coo-balanced,csr-scalar,csr-vector,ell,hyb,sell-32,sell-32-1024,sell-32-all,csr5"
# Measurement -> matrices, and types of bench -graph; the most important first, because the time may run out
PRODUCTS = {
    "matrices": (sorted(("twin:" + m for m in MATRICES), key=lambda m: m == "twin:indochina-2004"),
                 f"sellp,evchyb,sellp-paper,evchyb-paper,evchyb-sorted,csr-adaptive,evchyb-hold-x,evchyb-hold-a,evchyb-hold-both,{FORMATS},{CUSPARSE}"),
    "random": ([f"random:{n}" for n in (5000, 10000, 20000, 35000, 50000, 65000)],
               "evchyb-sorted,evchyb-paper,evchyb,sellp,csr-adaptive,hyb,csr-scalar,csr-vector,cusparse:csr1,cusparse:coo1"),
    "profiles": (PROFILES, f"{FORMATS},sellp,evchyb,cusparse:csr1"),
    "sweep": (SWEEP, ",".join(["sellp"] + [f"sellp-paper:{b}:{t}" for b, t in BT])),
    "csr5": ([*EVEN, *(m for m in PROFILES if m not in EVEN)], ",".join(["csr5"] + [f"csr5:{s}" for s in SIGMAS])),
    "loads": (TWINS_3, "evchyb-sorted,evchyb-256,evchyb-load-x,evchyb-l2-x"),
}  # fmt: skip
HOST = "aij,aijperm,sell,sellp,evchyb"  # types on the host, of which "matrices" is measured, next to MKL

# What kernels do, by ncu, in groups, each a run
BOTH = ["twin:audikw_1", "twin:Stanford_Berkeley"]
REST = [m for m in TWINS_3 if m not in BOTH]
COUNTERS = {
    "profile": [(BOTH, "evchyb-sorted,sellp-paper,hyb"), *((REST[k : k + 7], "evchyb-sorted") for k in range(0, len(REST), 7))],
    "counters": [(["twin:cant"], "coo,coo-segmented,coo-balanced,csr-scalar,csr-vector,ell,sellp"), (["twin:web-Google"], "evchyb-sorted,evchyb-load-x,evchyb-l2-x"),
                 (["twin:audikw_1"], "sellp-paper,sellp")],
}  # fmt: skip

NS = "gpu__time_duration.sum"
METRICS = [
    NS, "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "lts__t_sector_hit_rate.pct", "l1tex__t_bytes.sum",
    "l1tex__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__grid_size",
    "launch__block_size", "launch__registers_per_thread", "smsp__thread_inst_executed_per_inst_executed.ratio",
    "sm__inst_executed.avg.per_cycle_elapsed", "sm__inst_issued.avg.per_cycle_active", "sm__cycles_active.avg",
    "sm__cycles_elapsed.max", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
    "lts__t_sectors_op_write.sum", "lts__t_sectors_op_read.sum", "smsp__inst_executed.sum", "smsp__warps_launched.sum",
    "launch__shared_mem_per_block", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
]  # fmt: skip
KERNELS = {
    "evchyb-sorted": ["SpMV_EVCHYB_adaptive"], "evchyb-load-x": ["SpMV_EVCHYB_adaptive"], "evchyb-l2-x": ["SpMV_EVCHYB_adaptive"],
    "sellp-paper": ["sellp_paper"], "hyb": ["ell", "coo_segmented"], "ell": ["ell"], "coo": ["coo_scalar"], "coo-segmented": ["coo_segmented"],
    "coo-balanced": ["coo_balanced"], "csr-scalar": ["csr"], "csr-vector": ["csr"], "sellp": ["slices|diagonals"], "evchyb": ["slices|diagonals"],
}  # fmt: skip


class Measuring:
    def __init__(self, args):
        self.args, self.out, self.failed = args, args.out, False
        self.runs = results.Runs(args)
        self.program = os.path.join(args.programs, "bench")
        self.bratu_program = os.path.join(os.path.dirname(args.programs), "examples", "bratu")
        if not os.access(self.program, os.X_OK):
            sys.exit(f"bench/papers/paper.py: {self.program} is missing; start me with make paper, or name the folder by -programs")
        gpu = "" if args.host else results.gpu_name()
        self.device = re.sub(r"\W", "-", gpu.removeprefix("NVIDIA ").lower()) or "host"
        self.source = results.source(gpu)
        os.makedirs(self.out, exist_ok=True)

    def path(self, measurement, ext="csv"):
        return os.path.join(self.out, f"{self.device}-{measurement}.{ext}")

    def start(self, name, command):
        """Runs a program as long as there is time; returns its output, which is also in a log, and whether it succeeded"""
        if self.runs.left() < 2:
            print(f"{name}: no time")
            return "", False
        env = dict(os.environ, **({"CUDA_VISIBLE_DEVICES": ""} if self.device == "host" else {}))
        text, right = results.finish([], command, self.runs.left(), cwd=ROOT, env=env)
        with open(self.path(name, "log"), "a") as f:
            f.write(text)
        self.failed = self.failed or not (right or self.runs.left() < 2)
        return text, right

    def write(self, measurement, rows):
        """A CSV file that is there as a whole or not at all"""
        if rows:
            with results.whole(self.path(measurement), newline="") as f:
                w = csv.DictWriter(f, list(dict.fromkeys(c for r in rows for c in r)), restval="", lineterminator="\n")
                w.writeheader()
                w.writerows(rows)
        print(f"{measurement}: {len(rows)} rows")

    def kept(self, measurement):
        """The rows of an earlier run"""
        return read(self.path(measurement)) if os.path.exists(self.path(measurement)) and not self.args.again else []

    def measure(self, measurement):
        if self.device == "host" and measurement != "matrices":
            print(f"{measurement}: left out, no GPU")
        elif measurement in COUNTERS:
            self.count(measurement)
        elif measurement == "bratu":
            self.bratu()
        else:
            self.products(measurement)

    def products(self, measurement):
        rows, (matrices, types) = self.kept(measurement), PRODUCTS[measurement]
        have = {key(r["matrix"]) for r in rows}
        todo = [m for m in matrices if key(m) not in have]
        if not todo:
            print(f"{measurement}: {self.path(measurement)} is complete")
            return
        how = ["-types", HOST, *results.mkl()] if self.device == "host" else ["-graph", "-types", types, "-target", "0.0005"]
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "csv")
            self.start(measurement, [self.program, *how, "-matrices", ",".join(todo), "-cold", "0", "-refresh", "0", "-reps", str(self.args.reps), "-csv", target])
            found = read(target) if os.path.exists(target) else []
        self.write(measurement, rows + [row for r in found for row in paper_rows(r)])

    def bratu(self):
        if self.kept("bratu"):
            return
        rows, columns = [], "matrix,format,n,newton,krylov,fnorm,setup,solve,function,jacobian,ksp_s,products,products_s,product_us".split(",")
        for kernel, more in (("", []), ("-paper", ["-types", "sellp,evchyb", "-mat_spmv_kernel", "paper"])):
            text, right = self.start("bratu", [self.bratu_program, "-n", "200", *more])
            if not right:
                return
            found = [w for w in map(str.split, text.splitlines()) if len(w) >= 13 and w[0] in ("aij", "aijcusparse", "sellp", "evchyb")]
            rows += [dict(zip(columns, ["bratu:200", w[0] + kernel, 200] + w[2:13]), **self.source) for w in found]
        self.write("bratu", rows)

    def count(self, measurement):
        """Counters of one product each"""
        ncu = self.args.ncu or shutil.which("ncu") or next(iter(sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))[::-1]), "/usr/local/cuda/bin/ncu")
        rows = self.kept(measurement)
        have = {(key(r["matrix"]), r["format"]) for r in rows}
        log = os.path.join(self.out, "ncu.csv")
        if not os.access(ncu, os.X_OK):
            print(f"{measurement}: left out, no ncu on this machine")
            return
        for matrices, types in COUNTERS[measurement]:  # ncu writes when its program has ended: several runs, so that not all is lost if the time is up
            todo = [m for m in matrices if (key(m), types.split(",")[0]) not in have]
            if not todo:
                continue
            text, right = self.start(measurement, [ncu, "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--print-units", "base", "--csv", "--page", "raw",
                                     "--metrics", ",".join(METRICS), "--log-file", log, self.program, "-graph", "-profile", "-types", types, "-matrices", ",".join(todo)])  # fmt: skip
            if right:
                with open(log, newline="", errors="replace") as f:
                    rows += [dict(r, **self.source) for r in profiled(f.read(), text)]
        self.write(measurement, rows)


def paper_rows(r):
    """A row of bench.c as the files of the papers' experiments have it, and one for EVC-HYB's partition, which is in the note of its published kernel"""
    note, _, partition = r["note"].partition("; ")
    stored = re.search(r", stored (\d+)$", note)
    vectors = 8 * (int(r["rows"]) + int(r["columns"]))  # which bench counts
    kind = "petsc:" * (r["type"] in ("aij", "aijperm", "sell", "aijcusparse")) + r["type"]
    row = {c: r[c] for c in ("matrix", "origin", "rows", "columns", "entries")}
    row.update(device=r.get("device", "host"), copy=r.get("copy_bytes_per_s", 0), format=kind, seconds=r["warm_s"], least=r["warm_least_s"], bytes=max(0, int(r.get("bytes", 0)) - vectors),
               stored=stored[1] if stored else "", convert=r["convert_s"], error=r["error"], kernel=note[: stored.start()] if stored else note)  # fmt: skip
    source = {c: r[c] for c in results.SOURCE}
    yield row | source
    if partition:
        yield row | dict(format="partition", seconds=0, least=0, bytes=0, stored=0, convert=0, error=0, kernel=partition) | source


def profiled(counters, said):
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
            rows.append((name, {m: (r.get(m) or "").replace(",", "") for m in METRICS}))
    found = []
    for matrix, form in re.findall(r"^profile (\S+) (\S+)$", said, re.M):
        for name in KERNELS[form]:
            if rows and rows[0][0] == name:
                found.append(dict(rows.pop(0)[1], matrix=matrix, format=form, kernel=name if "|" not in name else "ours"))
    return found
