#!/usr/bin/env bash
# pypardiso 0.4.7 (MKL 2026.2): spsolve() of a matrix that is exactly singular.
# Guess: an exception, or NaN with a warning as from SciPy's spsolve().
# Seen: finite numbers without exception or warning; pivots that are zero are replaced by tiny ones, so the numbers
# are of size 1e13, or even look right.
. "$(dirname "$0")/lib.sh"
packages pypardiso==0.4.7 mkl==2026.2.0 scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import warnings
import numpy as np, scipy.sparse as ss, scipy.sparse.linalg as sl, pypardiso

n = 6
ring = ss.csr_matrix(ss.diags([-np.ones(n - 1), np.r_[1.0, 2 * np.ones(n - 2), 1.0], -np.ones(n - 1)], [-1, 0, 1]))
rank2 = ss.csr_matrix(np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]]))
for title, A, b in (
    ("Laplacian with Neumann ends, solvable", ring, ring @ np.arange(1.0, n + 1)),
    ("Laplacian with Neumann ends, not solvable", ring, np.ones(n)),
    ("two equal rows up to a factor, not solvable", rank2, np.ones(3)),
):
    for name, solve in (("scipy", sl.spsolve), ("pypardiso", pypardiso.spsolve)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = solve(A, b)
        size = "largest about 1e%d" % np.rint(np.log10(np.abs(x).max())) if np.isfinite(x).all() else "not finite"
        print("* %s: %s: %s, %d warnings" % (title, name, size, len(caught)))
        print("    ", x)
END
behaves <<'END'
* Laplacian with Neumann ends, solvable: scipy: not finite, 1 warnings
* Laplacian with Neumann ends, solvable: pypardiso: largest about 1e1, 0 warnings
* Laplacian with Neumann ends, not solvable: scipy: not finite, 1 warnings
* Laplacian with Neumann ends, not solvable: pypardiso: largest about 1e14, 0 warnings
* two equal rows up to a factor, not solvable: scipy: not finite, 1 warnings
* two equal rows up to a factor, not solvable: pypardiso: largest about 1e13, 0 warnings
END
