"""The parts of the report that look at all experiments: the abstract, what is done otherwise than in the papers, the spread, and what set-up costs"""

import math
import statistics

from published import MATRICES, TABLE_3, TABLE_III
from tables import correlation, mean, on_host

OURS = ("sellp", "evchyb")
FIVE = {
    "COO": ["coo", "coo-segmented", "coo-balanced"],
    "CSR": ["csr-scalar", "csr-vector"],
    "ELL": ["ell"],
    "SELL-C-sigma": ["sell-32", "sell-32-1024", "sell-32-all", "sell-8-64"],
    "CSR5": ["csr5", "csr5-8-16"],
}
LIBRARY = ["cusparse:csr1", "mkl"]
SPREAD = 5  # percent


def exact(table):
    """Of the partitions of Table 3: how many have the paper's zeros to 0.1 % of the entries, and how many there are"""
    found = []
    for m, (_, _, _, added, _) in TABLE_3.items():
        words = table.at.get((m, "partition"), {}).get("kernel", "").split()
        if len(words) == 6:
            found.append(abs(100 * ((int(words[3]) + int(words[5])) / table.entries(m) - 1) - added) < 0.1)
    return sum(found), len(found)


def latency(hit1, hit2):
    """Average cycles of a load, from hit rates in percent. The latencies of a Hopper GPU, rounded from published micro-benchmarks: L1 33, L2 270, DRAM 600"""
    h1, h2 = hit1 / 100, hit2 / 100
    return 33 * h1 + (1 - h1) * (270 * h2 + 600 * (1 - h2))


class Summary:
    """What Report has in addition to its experiments"""

    def first(self, host):
        """The first GPU, or the host: its name and tables"""
        return next(((d, t) for d, t in self.data.items() if on_host(d) == host and "-" not in d), (None, {}))

    def abstract(self):
        w = self.words
        device, t = self.first(False)
        full = t.get("matrices")
        if not full:
            return
        names = [m for m in MATRICES if full.seconds(m, "sellp") and full.seconds(m, "evchyb")]
        twins = sum(full.label(m) != m for m in names)
        lines = [w("abstract.on", where=self.where(full), twins=twins, count=len(names)), self.abstract_sellp(t), self.abstract_evchyb(t),
                 self.abstract_bratu(t), self.abstract_formats(device, t), w("abstract.batch"), self.abstract_ours(full), self.abstract_host()]  # fmt: skip
        self.say(w("abstract.title"), "", w("abstract.what"), "", *(line for line in lines if line), "")

    def abstract_sellp(self, t):
        w, full, sweep, profile = self.words, t["matrices"], t.get("sweep"), t.get("profile")
        names = [m for m in TABLE_III if all(full.seconds(m, f) for f in ("sellp-paper", "csr-scalar", "cusparse:csr1", "hyb"))]
        if not names or not sweep:
            return ""

        def over(m, form):
            return full.seconds(m, form) / full.seconds(m, "sellp-paper")

        gains = []
        for m in sweep.matrices:
            best = sweep.best(m, [f for f in sweep.formats if f.startswith("sellp-paper:")])[0]
            gains += [sweep.seconds(m, "sellp-paper:8:8") / best] if best and sweep.seconds(m, "sellp-paper:8:8") else []
        r = profile.at.get(("audikw_1", "sellp-paper"), {}) if profile else {}
        bound = ""
        if full.value(r, "gpu__time_duration.sum"):
            read = full.value(r, "dram__bytes_read.sum") / full.value(r, "gpu__time_duration.sum")
            bound = w("abstract.sellp.bound", percent=100 * read / (float(full.rows[0]["copy"]) * 1e-9))
        return w("abstract.sellp", csr=sum(over(m, "csr-scalar") > 1 for m in names), ell=sum(over(m, "ell") > 1 for m in names), count=len(names),
                 mean=mean(gains), bound=bound, both=sum(min(over(m, "cusparse:csr1"), over(m, "hyb")) > 1 for m in names),
                 then=sum(v[3] < min(v[4:]) for v in TABLE_III.values()),
                 over=mean([over(m, "csr-scalar") for m in names]), paper=mean([v[1] / v[3] for v in TABLE_III.values()]),
                 worst=1 / over("crankseg_2", "cusparse:csr1") if "crankseg_2" in names else 0)  # fmt: skip

    def abstract_evchyb(self, t):
        w, full, profile = self.words, t["matrices"], t.get("profile")
        speed = {m: full.best(m, ["cusparse:csr1", "hyb"])[0] / full.seconds(m, "evchyb-sorted") for m in TABLE_3 if full.seconds(m, "evchyb-sorted")}
        if not speed:
            return ""
        same, partitions = exact(full)
        counters = self.counters(profile) if profile else {}
        known = [m for m in counters if m in speed]
        alpha = cycles = ""
        if "web-Google" in known:
            m, nz = "web-Google", full.entries("web-Google")
            beta, per = nz / full.number(m, "evchyb-sorted", "stored"), nz / float(full.at[m, "evchyb-sorted"]["rows"])
            alpha = w("abstract.evchyb.alpha", alpha=0.25 * (counters[m]["l2volume"] / (2 * nz) - 6 / beta - 8 / per))
        if len(known) > 2:
            rates = [full.gflops(m, "evchyb-sorted") for m in known]
            cycles = w("abstract.evchyb.latency", correlation=correlation(rates, [latency(counters[m]["hit1"], counters[m]["hit2"]) for m in known]))
        short, long = self.reordering(full, list(speed))
        return w("abstract.evchyb", exact=same, partitions=partitions, short=short, long=long, alpha=alpha, faster=sum(x >= 1.1 for x in speed.values()), count=len(speed),
                 slower=sum(x <= 0.9 for x in speed.values()), latency=cycles)  # fmt: skip

    @staticmethod
    def reordering(t, names):
        """What writing y in the matrix's order costs, percent: the average of matrices with fewer than 12 entries a row, and of the others"""
        loss = {True: [], False: []}
        for m in names:
            if t.seconds(m, "evchyb-paper"):
                per = t.entries(m) / float(t.at[m, "evchyb-paper"]["rows"])
                loss[per < 12].append(100 * (1 - t.seconds(m, "evchyb-sorted") / t.seconds(m, "evchyb-paper")))
        return tuple(statistics.mean(loss[k] or [0]) for k in (True, False))

    def abstract_bratu(self, t):
        gain = self.bratu_gain(t["bratu"]) if "bratu" in t else None
        return self.words("abstract.bratu", product=gain["product"], solve=gain["solve"]) if gain else ""

    @staticmethod
    def bratu_gain(t):
        """Of our faster type over PETSc's: the names, and the factors of the product and of the solve"""
        own = [r for r in t.rows if r["format"] in OURS]
        base = next((r for r in t.rows if r not in own), None)
        if not own or not base:
            return None
        best = min(own, key=lambda r: float(r["solve"]))
        gain = {name: float(base[c]) / float(best[c]) for name, c in (("product", "product_us"), ("solve", "solve"))}
        return dict(gain, format=best["format"], base=base["format"])

    def abstract_formats(self, device, tables):
        t, csr5 = tables.get("profiles"), tables.get("csr5")
        best = {m: {f: t.best(m, kinds)[0] for f, kinds in FIVE.items()} for m in t.matrices} if t else {}
        best = {m: b for m, b in best.items() if b["CSR"] and b["SELL-C-sigma"]}
        if not best or "cant" not in best:
            return ""
        won = [min((s, f) for f, s in b.items() if s)[1] for b in best.values()]
        cant = t.seconds("cant", "coo") / t.best("cant", ["coo-segmented", "coo-balanced", *FIVE["CSR"]])[0]
        over = [b["SELL-C-sigma"] / b["CSR"] for b in best.values()]
        lib = [t.best(m, LIBRARY)[0] / b["CSR"] for m, b in best.items() if t.best(m, LIBRARY)[0]]
        tuned = self.csr5_tuned(device, csr5) if csr5 else None
        tuned = self.words("abstract.formats.tuned", **{k: tuned[k] for k in ("most", "wins", "count")}) if tuned else ""
        slices = [b["SELL-C-sigma"] < b["ELL"] for b in best.values() if b["ELL"]]
        return self.words("abstract.formats", tuned=tuned, slices=sum(slices), ells=len(slices), sell=sum(x < 1 for x in over), count=len(best), worst=max(over), csr5=won.count("CSR5"), cant=cant,
                          lib=mean(lib), slow=sum(x > 1 for x in lib))  # fmt: skip

    def compared(self, t):
        """matrix -> (our better time, the best other), of the 38"""
        others = [f for f in t.formats if f not in self.OTHER and not (t.rows[0].get("device") == "host" and f in self.SAME)]
        found = {m: (t.best(m, OURS)[0], t.best(m, others)[0]) for m in MATRICES if all(t.seconds(m, f) for f in OURS)}
        return {m: x for m, x in found.items() if x[1]}

    @staticmethod
    def good(pairs):
        return sum(other / own >= 1 / 1.05 for own, other in pairs.values())

    def blocked(self, t, m):
        return any("node blocks" in t.at[m, f]["kernel"] for f in OURS)

    def abstract_ours(self, t):
        w, pairs = self.words, self.compared(t)
        parts = {yes: [other / own for m, (own, other) in pairs.items() if self.blocked(t, m) == yes] for yes in (True, False)}
        blocks = ""
        if all(parts.values()):
            speed = {f: mean([t.seconds(m, "cusparse:csr1") / t.seconds(m, f) for m in pairs if t.seconds(m, f)]) for f in ("sellp-paper", "evchyb-paper")}
            blocks = w("abstract.ours.blocks", with_=mean(parts[True]), n=len(parts[True]), rest=mean(parts[False]), others=len(parts[False]),
                       sellp=speed["sellp-paper"], evchyb=speed["evchyb-paper"])  # fmt: skip
        older = "" if any(r.get("commit") for r in t.rows) else " " + w("abstract.ours.older")
        return w("abstract.ours", older=older, good=self.good(pairs), count=len(pairs), mean=mean([b / a for a, b in pairs.values()]), blocks=blocks)

    def abstract_host(self):
        t = self.first(True)[1].get("matrices")
        if not t:
            return ""
        pairs, noise = self.compared(t), [x for m in self.compared(t) if (x := self.again(t, m))]
        return self.words("abstract.host", where=self.where(t), good=self.good(pairs), count=len(pairs), mean=mean([b / a for a, b in pairs.values()]),
                          noise=100 * max((max(x, 1 / x) - 1 for x in noise), default=0))  # fmt: skip

    @staticmethod
    def again(t, m):
        """The host: evchyb's time over that of the same layout, which is measured a second time as evchyb-paper; 0 if the layouts differ"""
        alike = (m, "evchyb-paper") in t.at and all(t.at[m, "evchyb"][k] == t.at[m, "evchyb-paper"][k] for k in ("kernel", "stored", "bytes"))
        return t.seconds(m, "evchyb") / t.seconds(m, "evchyb-paper") if alike else 0

    def spread(self, t):
        """How far the median of the repetitions is above the smallest, over all products of a table"""
        above = [100 * (t.value(r, "seconds") / t.value(r, "least") - 1) for r in t.rows if t.value(r, "seconds") and t.value(r, "least")]
        if not above:
            return ""
        what = "spread.host" if t.rows[0].get("device") == "host" else "spread.device"
        return self.words("spread", what=self.words(what, mean=statistics.mean(above), limit=SPREAD, many=sum(x > SPREAD for x in above), all=len(above)))

    def deviations(self):
        w = self.words
        self.say("", w("deviations.title"), "", w("deviations.what"), "")
        for paper in ("sellp", "evchyb", "formats", "batch"):
            rows = [w(name).split(" | ") for name in w.texts if name.startswith(f"deviations.{paper}.")]
            self.table([w(f"deviations.{paper}"), "here"], rows)

    PAYS = {
        "device": ("cusparse:csr1", ("sellp", "evchyb", "sellp-paper", "evchyb-paper", "hyb", "sell-32-1024", "csr5", "cusparse:sell", "cusparse:bsr")),
        "host": ("petsc:aij", ("sellp", "evchyb", "hyb", "sell-32-1024", "csr5-8-16", "mkl", "petsc:sell")),
    }

    def pays(self):
        w = self.words
        self.head()
        for device, t in self.devices("matrices"):
            kind = "host" if on_host(device) else "device"
            base, forms = self.PAYS[kind]
            forms = [f for f in forms if f in t.formats]
            names = [m for m in MATRICES if t.seconds(m, base)]
            rows, counts = [], {f: [] for f in forms}
            for m in names:
                cells = []
                for f in forms:
                    saved = t.seconds(m, base) - t.seconds(m, f) if t.seconds(m, f) else 0
                    n = math.ceil(t.number(m, f, "convert") / saved) if saved > 0 else 0
                    counts[f] += [n] if n else []
                    cells.append(n or "-")
                rows.append((t.label(m), *cells))
            self.say(w("pays.how", base="AIJ" if kind == "host" else "cuSPARSE's CSR", where=w(f"pays.{kind}")))
            self.table(["matrix", *(self.name(t, f) for f in forms)], rows)
            what = []
            for f, n in counts.items():
                if n:
                    what.append(w("pays.one", form=self.name(t, f), count=len(n), all=len(names), median=statistics.median(n), least=min(n), most=max(n)))
            self.say(w("pays.here", where=self.where(t), what="; ".join(what)), "")

    HOST_NAMES = {"sellp-paper": "sellp, b = t = 8, rows in order", "evchyb-paper": "evchyb, measured again"}

    def name(self, t, form):
        """What a format is called in a table: on the host the papers' kernels do not exist, and what is measured there under their names is our own layout"""
        return self.HOST_NAMES.get(form, form) if t.rows[0].get("device") == "host" else form
