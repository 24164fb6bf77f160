#!/usr/bin/env bash
# CuPy 14.2: abs(), power() and sign() of a COO matrix with repeated entries.
# Guess: as in SciPy, whose functions add the repeated entries first; CuPy's own maximum() and multiply() do.
# Seen: they work on each stored entry, so that the result is that of another matrix.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages cupy-cuda13x==14.2.0 numpy==2.5.2 scipy==1.18.1
see "$python" - <<'END'
import cupy as cp, numpy as np, scipy.sparse as ss, cupyx.scipy.sparse as cs

data, row, col = np.array([3.0, -1.0, 4.0]), np.array([0, 0, 1]), np.array([0, 0, 1])  # [[2, 0], [0, 4]]
for title, f in (
    ("abs", abs),
    ("power 2", lambda a: a.power(2)),
    ("sign", lambda a: a.sign()),
    ("maximum 0", lambda a: a.maximum(0)),
    ("multiply", lambda a: a.multiply(a)),
):
    h = f(ss.coo_matrix((data.copy(), (row.copy(), col.copy())), shape=(2, 2)))
    d = f(cs.coo_matrix((cp.array(data), (cp.array(row), cp.array(col))), shape=(2, 2)))
    print("*", title, "SciPy", h.toarray().tolist(), "CuPy", d.toarray().get().tolist())
END
behaves <<'END'
* abs SciPy [[2.0, 0.0], [0.0, 4.0]] CuPy [[4.0, 0.0], [0.0, 4.0]]
* power 2 SciPy [[4.0, 0.0], [0.0, 16.0]] CuPy [[10.0, 0.0], [0.0, 16.0]]
* sign SciPy [[1.0, 0.0], [0.0, 1.0]] CuPy [[0.0, 0.0], [0.0, 1.0]]
* maximum 0 SciPy [[2.0, 0.0], [0.0, 4.0]] CuPy [[2.0, 0.0], [0.0, 4.0]]
* multiply SciPy [[4.0, 0.0], [0.0, 16.0]] CuPy [[4.0, 0.0], [0.0, 16.0]]
END
