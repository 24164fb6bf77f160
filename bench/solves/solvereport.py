"""Tables of the measurements of bench/solves/solve.py"""

import statistics

from results import mean, show, table

COLUMNS = (
    "config program ranks size where type repeat timed failed wall_s total_s setup_s solve_s format_s setups fills mults mult_s adds add_s transposes "
    "transpose_s residuals residual_s newton krylov reasons norm unused options"
).split()
SLOWER = 1.03  # times the reference's total: slower solves are listed
# The allowed difference of the types' results: rounding decides in which step a tolerance is reached, and then the last norm, a residual, differs
STEPS, SAME, OTHER = 0.03, 0.25, 1.0

HEAD = """# Whole solves

PETSc's own tutorials and examples/bratu, each in a new process, types in turn; medians in seconds. `bench/solves/solve.py -h` describes the configurations, and the
CSV file has their options. The times of an event are those of the slowest process.

- *set-up*: PCSetUp and everything in it, and PCSetUpOnBlocks. *KSPSolve* comes after it.
- *products*, *n*: the times and the number of MatMult, MatMultAdd, MatMultTranspose and MatResidual, also during set-up, and with the set-up of the format by a first
  product; *format*: MatSpMVSetUp and MatSpMVFill. On a GPU all of them are from further runs (`-timed`), in which every event waits for the GPU.
- *total*: from the start of PETSc's log, in PetscInitialize(), to PetscFinalize(); for examples/bratu, which times further products, its set-up and solve.
- *spread*: the difference between the largest and the smallest total, in %.
- *x total*, *x solve*: how many times as fast as the first type, the reference, total and KSPSolve are.
- *agrees*: the same converged reasons, iterations within 1 or 3 %, and the last norm that the program prints within 25 %, or, after other iterations,
  within 100 %.
"""


def load(rows):
    """(configuration, ranks, size, where) -> type -> medians, in the order of the rows; the first type is the reference"""
    groups, cases = {}, {}
    for r in rows:
        groups.setdefault((r["config"], int(r["ranks"]), r["size"], r["where"]), {}).setdefault(r["type"], []).append(r)
    for case, types in groups.items():
        reference = next(iter(types))
        cases[case] = {kind: medians(rows) for kind, rows in types.items()}
        for row in cases[case].values():
            compare(row, cases[case][reference])
    return cases


def medians(rows):
    """One row from several; on a GPU, the times of products are known only from the runs that waited for each event"""
    right = [r for r in rows if not r["failed"]]
    plain, timed = [r for r in right if r["timed"] == "0"], [r for r in right if r["timed"] != "0"]
    row = dict(failed=next((r["failed"] for r in rows if r["failed"]), ""), runs=len(plain), unused=" ".join(sorted({r["unused"] for r in right} - {""})))
    value = lambda some, column: statistics.median(float(r[column]) for r in some) if some else None
    for column in ("total_s", "setup_s", "solve_s"):
        row[column] = value(plain, column)
    for column in "format_s setups mults mult_s adds add_s transposes transpose_s residuals residual_s".split():
        row[column] = value(timed or (plain if plain and plain[0]["where"] == "host" else []), column)
    totals = [float(r["total_s"]) for r in plain]
    row["spread"] = 100 * (max(totals) - min(totals)) / row["total_s"] if len(totals) > 1 else None
    first = (plain or timed or [dict(krylov=0, newton=0, norm="", reasons="")])[0]
    first = next((r for r in right if diverged(r)), first)
    return row | dict(krylov=int(first["krylov"]), newton=int(first["newton"]), norm=float(first["norm"]) if first["norm"] else None, reasons=first["reasons"])


def diverged(row):
    return "DIVERGED" in row["reasons"]


def compare(row, base):
    """Adds to a row the columns that depend on the reference. How long a solve takes that does not converge says nothing about another one"""
    known = not row["failed"] and not base["failed"] and row["runs"] and base["runs"]
    solved = known and not diverged(row) and not diverged(base)
    row["gain"] = base["total_s"] / row["total_s"] if solved else None
    row["solve_gain"] = base["solve_s"] / row["solve_s"] if solved and row["solve_s"] else None
    row["agrees"] = agrees(row, base) if known else ""
    if row["mults"] is None:
        row["products"] = row["products_s"] = None
        return
    # MatResidual() calls MatMult() if a type does not replace it. The number of products that MatMult counts shows whether it does
    separate = base["mults"] is not None and abs(row["mults"] + row["residuals"] - base["mults"]) < abs(row["mults"] - base["mults"])
    row["products"] = row["mults"] + row["adds"] + row["transposes"] + (row["residuals"] if separate else 0)
    row["products_s"] = row["mult_s"] + row["add_s"] + row["transpose_s"] + (row["residual_s"] if separate else 0)


def agrees(row, base):
    if row["reasons"] != base["reasons"]:
        return f"**no**: {row['reasons']} instead of {base['reasons']}"
    if diverged(row):
        return f"**no**: {row['reasons']}"
    for what in ("newton", "krylov"):
        if abs(row[what] - base[what]) > max(1, STEPS * base[what]):
            return f"**no**: {row[what]} iterations instead of {base[what]}"
    if row["norm"] is not None and base["norm"] is not None:
        allowed = SAME if row["krylov"] == base["krylov"] else OTHER
        if abs(row["norm"] - base["norm"]) > allowed * min(abs(row["norm"]), abs(base["norm"])):
            return f"**no**: norm {row['norm']:.4g} instead of {base['norm']:.4g}"
    return "yes"


def cells(kind, row):
    if row["failed"]:
        return [kind, f"**failed**: {row['failed']}".replace("|", "/")] + [""] * 10
    seconds = [show(row[c], 4) for c in ("setup_s", "solve_s", "products_s")]
    line = [kind, str(row["krylov"])] + seconds + [show(row["products"], 0), show(row["format_s"], 4), show(row["total_s"], 3), show(row["spread"], 0)]
    return line + [show(row["gain"], 2), show(row["solve_gain"], 2), row["agrees"] + (f" (unused: {row['unused']})" if row["unused"] else "")]


def summary(f, configs):
    """Means and extremes of each type, the solves that are slower than the reference, and those that do not converge"""
    reference = next(iter(next(iter(configs.values()))))
    lines, slower = [], []
    for kind in dict.fromkeys(k for types in configs.values() for k in types if k != reference):
        known = sum(1 for types in configs.values() if kind in types and types[kind]["gain"])
        line = [f"{kind}, {known} of {len(configs)} configurations" if known < len(configs) else kind]
        for column in ("gain", "solve_gain"):
            values = {c: types[kind][column] for c, types in configs.items() if kind in types and types[kind][column]}
            least = min(values, key=values.get) if values else ""
            line += [show(mean(values.values()) or None, 3), f"{show(values.get(least), 2)} {least}"]
        lines.append(line)
        slower += [f"{c}, {kind}: {1 / t[kind]['gain']:.3f}" for c, t in configs.items() if kind in t and t[kind]["gain"] and SLOWER * t[kind]["gain"] < 1]
    table(f, ["", f"total x {reference}, mean", "least", f"KSPSolve x {reference}, mean", "least"], lines)
    f.write(f"More than {SLOWER} times {reference}'s total: {'; '.join(slower) or 'none'}.\n\n")
    lost = [f"{c}, where {kind} does not converge" for c, types in configs.items() for kind, row in types.items() if diverged(row)]
    if lost:
        f.write(f"Left out of means, extremes and the list above: {'; '.join(lost)}.\n\n")


def report(f, rows):
    f.write(HEAD)
    groups = {}
    for (config, ranks, size, where), types in load(rows).items():
        groups.setdefault((where, size, ranks), {})[config] = types
    for (where, size, ranks), configs in sorted(groups.items()):
        f.write(f"\n## {where.capitalize()}, {ranks} process{'es' if ranks > 1 else ''}{', tiny problems' if size == 'quick' else ''}\n\n")
        lines = [[config if kind == next(iter(types)) else ""] + cells(kind, row) for config, types in configs.items() for kind, row in types.items()]
        head = "configuration, type, iterations, set-up, KSPSolve, products, n, format, total, spread, x total, x solve, agrees".split(", ")
        used = [k for k in range(len(head)) if any(line[k] for line in lines)]
        table(f, [head[k] for k in used], [[line[k] for k in used] for line in lines])
        summary(f, configs)
