#!/usr/bin/env bash
# CuPy 14.2: cg() and cgs() with the solution as initial guess.
# Guess: they return it at once with info 0, as SciPy's, and as CuPy's own gmres() and minres().
# Seen: they divide zero by zero and go on with NaN until maxiter.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages cupy-cuda13x==14.2.0 numpy==2.5.2 scipy==1.18.1
see "$python" - <<'END'
import warnings

warnings.simplefilter("ignore")
import cupy as cp, numpy as np, scipy.sparse as ss, cupyx.scipy.sparse as cs
import scipy.sparse.linalg as sl, cupyx.scipy.sparse.linalg as cl

n = 50
A = ss.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csr")
x = np.ones(n)
b = A @ x
dA = cs.csr_matrix(A)
for solver in ("cg", "cgs", "gmres", "minres"):
    h, info = getattr(sl, solver)(A, b, x0=x.copy())
    host = "error %.0e info %s" % (abs(h - x).max(), info)
    calls = []
    d, info = getattr(cl, solver)(dA, cp.array(b), x0=cp.array(x), callback=lambda v: calls.append(1))
    gpu = "error %.0e info %s iterations %d" % (float(abs(d - cp.array(x)).max()), info, len(calls))
    print("*", solver, "guess solution scipy", host, "cupy", gpu)
END
behaves <<'END'
* cg guess solution scipy error 0e+00 info 0 cupy error nan info 500 iterations 500
* cgs guess solution scipy error 0e+00 info 0 cupy error nan info 250 iterations 250
* gmres guess solution scipy error 0e+00 info 0 cupy error 0e+00 info 0 iterations 0
* minres guess solution scipy error 0e+00 info 0 cupy error 0e+00 info 0 iterations 0
END
