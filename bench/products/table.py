"""Writes the benchmark's results as a Markdown table, one row per matrix: table.py results.csv [title] > table.md"""

import csv
import math
import sys

COLD = 1 << 20  # entries from which the table has the host's "cold" figures; for smaller matrices they depend on where code and stack are


def label(name):
    """A type's name in a table or a legend: "sellp paper" for "sellp:-mat_spmv_kernel paper" """
    kind, _, options = name.partition(":")
    return " ".join([kind] + [w for w in options.split() if not (w.startswith("-") and w[1:2].isalpha())]) if options else kind


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values and min(values) > 0 else 0


class Results:
    def __init__(self, source):
        with open(source) as f:
            self.rows = list(csv.DictReader(f))
        self.matrices = list(dict.fromkeys(r["matrix"] for r in self.rows))
        types = list(dict.fromkeys(r["type"] for r in self.rows))
        self.reference, self.types = types[0], types[1:]
        self.at = {(r["matrix"], r["type"]): r for r in self.rows}
        self.ours = [t for t in self.types if any(r["type"] == t and r["ours"] == "1" for r in self.rows)]
        self.device = self.rows[0].get("device")

    def get(self, matrix, kind, column):
        """0 if a matrix was not available in a type"""
        return float(self.at.get((matrix, kind), {}).get(column) or 0)

    def name(self, matrix):
        return matrix + ("" if self.at[matrix, self.reference]["origin"] == "file" else "*")

    def means(self, columns, first):
        """The last two rows: the geometric mean and the minimum of each column, a function of the matrix, over the matrices with a value"""
        known = [[v for v in map(c, self.matrices) if v > 0] for c in columns]
        print("| **geometric mean** |" + " |" * first + "".join(f" **{mean(k):.2f}** |" for k in known))
        print("| least |" + " |" * first + "".join(f" {min(k, default=0):.2f} |" for k in known))


def microseconds(seconds):
    us = 1e6 * seconds
    return f"{us:.{0 if us >= 100 else 2}f}"


def best_line(r):
    best = [max(r.get(m, t, "warm_ratio") for t in r.ours) for m in r.matrices]
    names = " and ".join(r.ours)
    print(f"\nThe better of {names}: {mean(best):.2f} in the geometric mean over {len(r.matrices)} matrices, {min(best):.2f} at least.")


def host(r, title):
    print(f"# MatMult on the host\n\n{title}\n")
    print("Speed over AIJ (its time divided by the type's), products one after the other, medians, all types interleaved in one run; behind the")
    print(f"slash with all caches swept before each product, for matrices of at least {COLD} entries. Below, such a product measures where code")
    print("and stack are, and AIJ's shorter code can win (the columns cold_* of the .csv); a program would have to multiply once in a while only.")
    print("Our types and MKL choose vector instructions at run time, PETSc's types have those that PETSc was compiled for. Generated matrices are marked *.\n")
    print("| matrix | rows | entries | AIJ [us] | " + " | ".join(map(label, r.types)) + " |")
    print("|---" * (4 + len(r.types)) + "|")
    for m in r.matrices:
        a = r.at[m, r.reference]
        cells = []
        for t in r.types:
            cold = f" / {r.get(m, t, 'cold_ratio'):.2f}" if float(a["entries"]) >= COLD else ""
            cells.append(f"{r.get(m, t, 'warm_ratio'):.2f}{cold}")
        print(f"| {r.name(m)} | {a['rows']} | {a['entries']} | {microseconds(float(a['warm_s']))} | " + " | ".join(cells) + " |")
    r.means([lambda m, t=t: r.get(m, t, "warm_ratio") for t in r.types], 3)
    if r.ours:
        best_line(r)


def device(r, title):
    library = [t for t in r.types if t.startswith("cusparse:")]
    others = [t for t in r.types if t not in library]

    def best(m):
        return min((r.get(m, t, "warm_s") for t in library if r.get(m, t, "warm_s") > 0), default=0)

    print(f"# MatMult on {r.device}\n\n{title}\n")
    print("Products one after the other through `MatMult()` with x and y on the GPU, by the host's clock, medians, all types interleaved in one run.")
    print(f"First the speed over {r.reference} (its time divided by the type's), behind the slash over the best of cuSPARSE's products (CSR, COO,")
    print("sliced ELL, each preprocessed). Generated matrices are marked *.\n")
    if any(label(t).endswith(" paper") for t in r.types):
        print("sellp and evchyb run this project's own kernels; \"sellp paper\" and \"evchyb paper\" are the published ones (`-mat_spmv_kernel paper`).\n")
    print(f"| matrix | rows | entries | {r.reference} [us] | best of cuSPARSE [us] | " + " | ".join(map(label, others)) + " |")
    print("|---" * (5 + len(others)) + "|")
    for m in r.matrices:
        a = r.at[m, r.reference]
        cells = []
        for t in others:
            over = f" / {r.get(m, t, 'cusparse_ratio'):.2f}" if r.get(m, t, "cusparse_ratio") else ""
            cells.append(f"{r.get(m, t, 'warm_ratio'):.2f}{over}" if (m, t) in r.at else "")
        times = [microseconds(float(a["warm_s"])), microseconds(best(m)) if best(m) else ""]
        print(f"| {r.name(m)} | {a['rows']} | {a['entries']} | " + " | ".join(times + cells) + " |")
    r.means([lambda m, t=t: r.get(m, t, "warm_ratio") for t in others], 4)
    if r.ours:
        best_line(r)

    print("\nAll figures. Share: the bytes of the format, x and y, each moved once, over the time, of the bandwidth of a large copy (more than 100 %")
    print("where the L2 keeps part of them or equal values are not read). Cold: the device's time with the L2 full of something else, and its ratio to")
    print(f"{r.reference}'s. Set-up: the first product from a freshly assembled matrix on the host. Refresh: what a product takes beyond another after the")
    print("values changed, on the host, and on the device by `MatScale()`. Memory: what the matrix holds on the GPU after its products.\n")
    print("| matrix | type | us | GF/s | share | cold us (ratio) | set-up ms | refresh host ms | refresh device us | memory MB | kernel |")
    print("|---" * 11 + "|")
    for m in r.matrices:
        for t in [r.reference] + r.types:
            if (m, t) not in r.at:
                continue
            w, c = r.get(m, t, "warm_s"), r.get(m, t, "cold_s")
            fields = [r.name(m), label(t), f"{1e6 * w:.2f}", f"{r.get(m, t, 'gflops'):.0f}", f"{100 * r.get(m, t, 'share_of_copy'):.0f} %"]
            fields += [f"{1e6 * c:.2f} ({r.get(m, t, 'cold_ratio'):.2f})", f"{1e3 * r.get(m, t, 'first_s'):.1f}"]
            if t in library:
                fields += ["", ""]
            else:
                fields += [f"{1e3 * r.get(m, t, 'refresh_s'):.2f}", f"{1e6 * r.get(m, t, 'refresh_device_s'):.1f}"]
            fields += [f"{1e-6 * r.get(m, t, 'device_memory'):.0f}", r.at[m, t]["note"].split(",")[0]]
            print("| " + " | ".join(fields) + " |")


def main(source, title=""):
    r = Results(source)
    (device if r.device else host)(r, title)


if __name__ == "__main__":
    main(*sys.argv[1:])
