#!/usr/bin/env bash
# CuPy 14.2: the bits of the same product or conversion, twenty times.
# Guess: A @ x is the same each time, so A @ X is for a matrix X, and so are sums and conversions that do not
# multiply.
# Seen: A @ x is, but A @ X, A.T @ x, A.sum(0), sum_duplicates() and COO's tocsr() differ from run to run; A.sum(1),
# A @ A and (A.T).tocsr() @ x do not.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages cupy-cuda13x==14.2.0 numpy==2.5.2 scipy==1.18.1
see "$python" - <<'END'
import cupy as cp, numpy as np, scipy.sparse as ss, cupyx.scipy.sparse as cs, hashlib

rng = np.random.default_rng(0)
n = 20000
h = ss.random(n, n, 0.002, format="csr", random_state=1)
h.sort_indices()
A = cs.csr_matrix(h)
x = cp.array(rng.standard_normal(n))
X = cp.array(rng.standard_normal((n, 8)))


def bits(f):
    s = set()
    for _ in range(20):
        s.add(hashlib.sha1(f().get().tobytes()).hexdigest())
    return len(s)


AT = A.T
C = A.tocoo()
one = lambda v: "1" if v == 1 else "several"
for title, f in (
    ("csr @ x", lambda: A @ x),
    ("csr.T @ x", lambda: AT @ x),
    ("x @ csr", lambda: x @ A),
    ("csr @ X", lambda: A @ X),
    ("csr.T @ X", lambda: AT @ X),
    ("csr.T.tocsr() @ x", lambda: AT.tocsr() @ x),
    ("(csr @ csr).data", lambda: (A @ A).data),
    ("csr.sum(0)", lambda: A.sum(0)),
    ("csr.sum(1)", lambda: A.sum(1)),
    ("coo @ x", lambda: C @ x),
):
    print("*", title, "different results in 20 runs:", one(bits(f)))
dup = cs.coo_matrix(
    (
        cp.array(rng.standard_normal(200000)),
        (cp.array(rng.integers(0, 40, 200000)), cp.array(rng.integers(0, 40, 200000))),
    ),
    shape=(40, 40),
)


def assemble():
    c = dup.copy()
    c.sum_duplicates()
    return c.data


print("* sum_duplicates() different results in 20 runs:", one(bits(assemble)))
print("* tocsr() different results in 20 runs:", one(bits(lambda: dup.tocsr().data)))
END
behaves <<'END'
* csr @ x different results in 20 runs: 1
* csr.T @ x different results in 20 runs: several
* x @ csr different results in 20 runs: several
* csr @ X different results in 20 runs: several
* csr.T @ X different results in 20 runs: several
* csr.T.tocsr() @ x different results in 20 runs: 1
* (csr @ csr).data different results in 20 runs: 1
* csr.sum(0) different results in 20 runs: several
* csr.sum(1) different results in 20 runs: 1
* coo @ x different results in 20 runs: 1
* sum_duplicates() different results in 20 runs: several
* tocsr() different results in 20 runs: several
END
