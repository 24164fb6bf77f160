"""Strong and weak scaling of examples/bratu over MPI processes, a GPU each where there are GPUs. Started by bench/scaling."""

import argparse
import csv
import glob
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = (
    "mode ranks n points_per_rank program type viewed halo repeat newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s "
    "products product_us block_us gflops solve_gflops"
).split()
# EVC-HYB paper, figure 16: Bratu 200^3 on four nodes of a GPU each, GF/s of the products and of the whole SNESSolve
PAPER_RANKS, PAPER = 4, {"mpiaijcusp": (23.1, 8.3), "EVC-HYB": (37.4, 8.4)}


def gpus():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")
    except (OSError, subprocess.CalledProcessError):
        return 0


def options():
    p = argparse.ArgumentParser(description=__doc__)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("-program", help="examples/bratu; by default the one of the latest build")
    p.add_argument("-ex14", help="PETSc's own SNES ex14, compiled, to stand beside it")
    p.add_argument("-ranks", type=lambda s: [int(w) for w in words(s)], help="numbers of processes (1,2,4,... up to the GPUs, else the cores)")
    p.add_argument("-modes", type=words, default=["strong", "weak"], help="strong: n^3 points; weak: about n^3 points a process")
    p.add_argument("-n", type=int, default=200, help="grid points in each direction (200)")
    p.add_argument("-types", type=words, default=[], help="matrix types (what bratu runs by default); the first is the reference")
    p.add_argument("-halo", type=words, default=[], help="values of -mat_spmv_halo, each run with our types, such as petsc,nccl,host")
    p.add_argument("-options", type=shlex.split, default=[], help="further options of the programs, as one word: -options='-ksp_norm_type natural'")
    p.add_argument("-repeat", type=int, default=1, help="runs of each; tables show the median (1)")
    p.add_argument("-timeout", type=int, default=300, help="seconds that one run may take (300)")
    p.add_argument("-limit", type=int, default=0, help="no run begins after so many seconds (no limit)")
    p.add_argument("-out", default=os.path.join(HERE, "build", "results"), help="folder of the results (build/results)")
    p.add_argument("-report", metavar="CSV", help="run nothing: table and chart of these figures, beside them")
    return p.parse_args()


# ---------------------------------------------------------------- running


def log_view(path):
    """Stage by stage: event -> (count, seconds, Mflop/s of all processes), None where PETSc does not know what the GPU took"""
    number = lambda w: None if w == "n/a" else float(w)
    stages, name = {}, None
    with open(path, errors="replace") as f:
        for line in f:
            m = re.match(r"--- Event Stage \d+: (.*)", line)
            w = line.split()
            if m:
                name = m[1].strip()
            elif name and len(w) >= 21 and w[1].isdigit():
                try:
                    stages.setdefault(name, {})[w[0]] = (int(w[1]), number(w[3]), number(w[20]))
                except ValueError:  # a column ran into its neighbour
                    pass
    return stages


def start(args, ranks, words):
    """Runs one program; returns what it printed and its log by stages, or None after saying why not"""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        mpiexec = shlex.split(os.environ.get("MPIEXEC") or os.path.join(HERE, "tools", "mpiexec"))
        command = mpiexec + ["-n", str(ranks)] + words + args.options + ["-log_view", ":" + log]
        print("+ " + shlex.join(command[len(mpiexec) - 1 :]), flush=True)
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=args.timeout)
        except subprocess.TimeoutExpired:
            print(f"  FAILED: not done after {args.timeout} s", flush=True)
            return None
        if done.returncode or not os.path.exists(log):
            print("".join("  " + line + "\n" for line in done.stdout.splitlines()[-25:]) + f"  FAILED: exit status {done.returncode}", flush=True)
            return None
        return done.stdout, log_view(log)


def bratu(args, ranks, n, types, halo):
    """One row a type"""
    words = [args.program, "-n", str(n)] + (["-types", ",".join(types)] if types else []) + (["-mat_spmv_halo", halo] if halo else [])
    result = start(args, ranks, words)
    if not result:
        return None
    text, log = result
    keys = "type viewed newton krylov fnorm setup_s solve_s function_s jacobian_s ksp_s products _ product_us block_us gflops".split()
    rows = []
    for line in text.splitlines():
        w = line.split()
        if len(w) < len(keys) + 1 or not (w[2].isdigit() and w[3].isdigit()):
            continue
        row = dict(zip(keys, w), program="bratu", halo="" if ranks == 1 or w[0].startswith("aij") else halo)
        mflops = log.get(f"{len(rows)}: {w[0]}", {}).get("SNESSolve", (0, 0, None))[2]
        row["solve_gflops"] = mflops / 1e3 if mflops else ""
        rows.append(row)
        print("  " + line, flush=True)
    if not rows:
        print(text + "  FAILED: no table in the output", flush=True)
    return rows or None


def ex14(args, ranks, n, mattype, device):
    """One row. What the products cost on a GPU says a second run only, whose every event waits for the GPU"""
    words = [args.ex14, "-ksp_type", "cg", "-pc_type", "none", "-mat_type", mattype, "-snes_converged_reason", "-ksp_converged_reason"]
    for d in "xyz":
        words += [f"-da_grid_{d}", str(n)]
    if device:
        words += ["-dm_vec_type", "cuda"]
    result = start(args, ranks, words)
    timed = start(args, ranks, words + ["-log_view_gpu_time"]) if device and result else result
    if not timed:
        return None
    text, log = result
    event = lambda name, source: next((s[name] for s in source.values() if name in s), (0, None, None))
    scaled = lambda value, by: "" if value is None else f"{value * by:.6g}"
    count, seconds, mflops = event("MatMult", timed[1])
    norm = re.search(r"fnorm ([-+.\deE]+)", text)
    row = dict(program="ex14", type=mattype, viewed=mattype, halo="", products=count, fnorm=norm[1].rstrip(".") if norm else "")
    row["newton"] = sum(int(i) for i in re.findall(r"Nonlinear solve converged .* iterations (\d+)", text))
    row["krylov"] = sum(int(i) for i in re.findall(r"Linear solve converged .* iterations (\d+)", text))
    row.update(product_us=scaled(seconds, 1e6 / max(count, 1)), gflops=scaled(mflops, 1e-3), solve_gflops=scaled(event("SNESSolve", log)[2], 1e-3))
    for column, name, source in (("solve_s", "SNESSolve", log), ("ksp_s", "KSPSolve", log), ("function_s", "SNESFunctionEval", timed[1]), ("jacobian_s", "SNESJacobianEval", timed[1])):
        row[column] = scaled(event(name, source)[1], 1)
    print("  " + " ".join(f"{k}={row[k]}" for k in ("type", "newton", "krylov", "fnorm", "solve_s", "ksp_s", "product_us")), flush=True)
    return [row]


def run(args, target):
    begin, failed, cut = time.time(), 0, 0
    devices = gpus()
    if not args.program:
        built = sorted(glob.glob(os.path.join(HERE, "build", "*", "examples", "bratu")), key=os.path.getmtime)
        if not built:
            sys.exit("scaling: no examples/bratu: make examples, or name one with -program")
        args.program = built[-1]
    if not args.ranks:
        args.ranks = [r for r in (1, 2, 4, 8, 16, 32, 64) if r <= (devices or os.cpu_count())]
    print(f"{args.program}, {f'{devices} GPUs' if devices else f'{os.cpu_count()} cores'}, processes {args.ranks}, {', '.join(args.modes)}")
    os.makedirs(args.out, exist_ok=True)
    with open(target, "w", newline="") as f:
        out = csv.DictWriter(f, COLUMNS, restval="", extrasaction="ignore")
        out.writeheader()
        for repeat in range(args.repeat):
            for mode in args.modes:
                for ranks in args.ranks:
                    if mode == "weak" and "strong" in args.modes and ranks == 1:
                        continue  # the same run; the report takes it for both
                    n = args.n if mode == "strong" else round(args.n * ranks ** (1 / 3))
                    types = args.types
                    jobs = [("bratu", h) for h in (args.halo if ranks > 1 else args.halo[:1]) or [""]] + ([("ex14", "")] if args.ex14 else [])
                    for what, halo in jobs:
                        if args.limit and time.time() - begin > args.limit:
                            cut += 1
                            continue
                        if what == "ex14":
                            kind = (types or ["aijcusparse" if devices else "aij"])[0]
                            rows = ex14(args, ranks, n, kind, "cusparse" in kind)
                        else:  # PETSc's own types know one halo only: once is enough
                            rows = bratu(args, ranks, n, types if halo == (args.halo or [""])[0] else [t for t in types if not t.startswith("aij")], halo)
                            types = types or [r["type"] for r in rows or []]
                        failed += rows is None
                        for row in rows or []:
                            out.writerow(dict(row, mode=mode, ranks=ranks, n=n, points_per_rank=n**3 // ranks, repeat=repeat))
                        f.flush()
    if cut:
        print(f"{cut} runs were not begun: the limit of {args.limit} s")
    return failed + cut


# ---------------------------------------------------------------- reporting


def load(path):
    """mode -> list of rows with numbers, medians over the repeats, sorted by type, halo, ranks"""
    groups, modes = {}, []
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    present = list(dict.fromkeys(r["mode"] for r in rows))
    for r in rows:
        # one process is where both begin
        for mode in present if r["ranks"] == "1" else [r["mode"]]:
            groups.setdefault((mode, r["program"], r["type"], r["halo"], int(r["ranks"])), []).append(r)
    result = {mode: [] for mode in present}
    order = list(dict.fromkeys((r["program"], r["type"]) for r in rows))
    for key in sorted(groups, key=lambda k: (order.index(k[1:3]), k[3], k[4])):
        same, row = groups[key], dict(groups[key][0], ranks=key[4])
        for c in COLUMNS[COLUMNS.index("newton") :]:
            values = [float(r[c]) for r in same if r[c] not in ("", None)]
            row[c] = statistics.median(values) if values else None
        row["exposed_us"] = row["product_us"] - row["block_us"] if None not in (row["product_us"], row["block_us"]) and row["ranks"] > 1 else None
        result[key[0]].append(row)
    for mode, group in result.items():
        for row in group:
            first = [r for r in group if r["ranks"] == 1 and (r["program"], r["type"]) == (row["program"], row["type"])]
            known = first and first[0]["product_us"] and row["product_us"]
            row["efficiency"] = 100 * first[0]["product_us"] / row["product_us"] / (row["ranks"] if mode == "strong" else 1) if known else None
    return result


def markdown(data, target):
    show = lambda value, digits: "" if value is None else f"{value:.{digits}f}"
    with open(target, "w") as f:
        f.write("# Scaling of the Bratu problem\n\n")
        f.write("A GPU (or a core) a process. us/block: the product with the diagonal block alone; exposed: what a whole product takes beyond that, the\n")
        f.write("part of the halo and of the off-diagonal block that is not hidden. Efficiency is that of the product, against one process.\n")
        for mode, rows in data.items():
            f.write(f"\n## {mode.capitalize()}\n\n")
            f.write("| program | type | halo | processes | n | Newton | Krylov | us/product | us/block | exposed | efficiency % | GF/s | KSPSolve s | SNESSolve s | SNESSolve GF/s |\n")
            f.write("|---" * 15 + "|\n")
            for r in rows:
                cells = [r["program"], r["type"], r["halo"], str(r["ranks"]), r["n"], show(r["newton"], 0), show(r["krylov"], 0)]
                cells += [show(r[c], d) for c, d in (("product_us", 1), ("block_us", 1), ("exposed_us", 1), ("efficiency", 0), ("gflops", 1))]
                cells += [show(r[c], d) for c, d in (("ksp_s", 3), ("solve_s", 3), ("solve_gflops", 1))]
                f.write("| " + " | ".join(cells) + " |\n")
        f.write("\nThe EVC-HYB paper, 200^3 on four nodes of one GPU each: ")
        f.write("; ".join(f"{t} {a} GF/s in the product, {b} in SNESSolve" for t, (a, b) in PAPER.items()) + ".\n")


def chart(data, target):
    try:
        import matplotlib
    except ImportError:
        print(f"scaling: no matplotlib, so no {target}; bench/scaling -report draws it from the .csv elsewhere")
        return
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    panels = [("product_us", "time per product [us]"), ("gflops", "products [GF/s]"), ("solve_s", "SNESSolve [s]")]
    fig, axes = plt.subplots(len(data), len(panels), figsize=(5 * len(panels), 4 * len(data)), squeeze=False)
    for line, (mode, rows) in zip(axes, data.items()):
        names = list(dict.fromkeys((r["program"], r["type"], r["halo"]) for r in rows))
        names = [x for x in names if x[2] or not any(x[:2] == y[:2] and y[2] for y in names)]  # one process has no halo and begins every line
        every = sorted({r["ranks"] for r in rows})
        for ax, (column, label) in zip(line, panels):
            for k, name in enumerate(names):
                mine = [r for r in rows if (r["program"], r["type"]) == name[:2] and (r["halo"] == name[2] or r["ranks"] == 1) and r[column] is not None]
                mine = list({r["ranks"]: r for r in mine}.values())
                legend = " ".join(w for w in (name[1], name[2], "(ex14)" if name[0] == "ex14" else "") if w)
                ax.plot([r["ranks"] for r in mine], [r[column] for r in mine], "s--" if name[0] == "ex14" else "o-", color=f"C{k % 10}", label=legend)
                block = [r for r in mine if r["block_us"] is not None]
                if column == "product_us" and block:
                    ax.plot([r["ranks"] for r in block], [r["block_us"] for r in block], ":", color=f"C{k % 10}", linewidth=0.8)
            if column == "gflops":
                for (name, (product, _)), marker in zip(PAPER.items(), "x+"):
                    ax.plot([PAPER_RANKS], [product], marker, color="black", label=f"{name}, paper")
            ax.set(xscale="log", yscale="log", xlabel="processes", ylabel=label, title=mode)
            ticks = sorted({*every, PAPER_RANKS}) if column == "gflops" else every
            ax.set_xticks(ticks, [str(r) for r in ticks])
            ax.minorticks_off()
        line[-1].legend(*line[1].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
        line[0].annotate("dotted: diagonal block alone", (0.02, 0.02), xycoords="axes fraction", fontsize="x-small")
    fig.tight_layout()
    fig.savefig(target)


def main():
    args = options()
    target = args.report or os.path.join(args.out, "scaling.csv")
    failed = 0 if args.report else run(args, target)
    data = load(target)
    if not data:
        sys.exit("scaling: no figures")
    stem = os.path.splitext(target)[0]
    markdown(data, stem + ".md")
    chart(data, stem + ".svg")
    print(open(stem + ".md").read())
    print(f"{stem}.csv, .md" + (", .svg" if os.path.exists(stem + ".svg") else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
