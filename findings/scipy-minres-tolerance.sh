#!/usr/bin/env bash
# SciPy 1.17.1: minres(A, b, rtol=...), compared with cg() and gmres() with the same tolerance.
# Guess: as its documentation says, it "terminates when the relative residual is below rtol": |b - A x| <= rtol |b|.
# Seen: the residual is compared with rtol |A| |x|. For a matrix with small eigenvalues, whose |x| is large, minres()
# returns info 0 with a residual of up to 0.93 |b| at rtol=1e-5.
. "$(dirname "$0")/lib.sh"
packages scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import numpy as np, scipy.sparse as ss, scipy.sparse.linalg as sl

for n in (100, 1000):
    A = ss.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    for b, what in ((np.ones(n), "ones"), (np.random.default_rng(0).standard_normal(n), "random b")):
        for solver, more in ((sl.cg, {}), (sl.gmres, {"restart": n}), (sl.minres, {})):
            x, info = solver(A, b, rtol=1e-5, **more)
            residual = np.linalg.norm(b - A @ x) / np.linalg.norm(b)
            size = "below 1e-5" if residual <= 1e-5 else "above 0.001" if residual > 0.001 else "above 1e-5"
            print("* %d rows, %s, %s: info %d, relative residual %s" % (n, what, solver.__name__, info, size))
            print("    %.2g" % residual)
END
behaves <<'END'
* 100 rows, ones, cg: info 0, relative residual below 1e-5
* 100 rows, ones, gmres: info 0, relative residual below 1e-5
* 100 rows, ones, minres: info 0, relative residual above 0.001
* 100 rows, random b, cg: info 0, relative residual below 1e-5
* 100 rows, random b, gmres: info 0, relative residual below 1e-5
* 100 rows, random b, minres: info 0, relative residual above 0.001
* 1000 rows, ones, cg: info 0, relative residual below 1e-5
* 1000 rows, ones, gmres: info 0, relative residual below 1e-5
* 1000 rows, ones, minres: info 0, relative residual above 0.001
* 1000 rows, random b, cg: info 0, relative residual below 1e-5
* 1000 rows, random b, gmres: info 0, relative residual below 1e-5
* 1000 rows, random b, minres: info 0, relative residual above 0.001
END
