#!/usr/bin/env bash
# CuPy 14.2: eliminate_zeros() of a CSR matrix with NaN and negative entries.
# Guess: only zeros go, as in SciPy, whatever the format and the indices are.
# Seen: with 32-bit indices NaN goes, too, and so do the negative entries of this matrix; in COO, or with 64-bit
# indices, NaN stays.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages cupy-cuda13x==14.2.0 numpy==2.5.2 scipy==1.18.1
see "$python" - <<'END'
import cupy as cp, numpy as np, scipy.sparse as ss, cupyx.scipy.sparse as cs

D = np.array([[1.0, np.nan, 0], [np.inf, -5, 2], [1e-320, -1e-320, 3]])
for fmt in ("csr", "csc", "coo"):
    h = getattr(ss, fmt + "_matrix")(ss.coo_matrix(D))
    h.data[h.data == 2] = 0
    d = getattr(cs, fmt + "_matrix")(h)
    h.eliminate_zeros()
    d.eliminate_zeros()
    print("*", fmt, "scipy", h.nnz, "cupy", d.nnz)
    print("* %s then holds:" % fmt, d.get().toarray().tolist())
for idx in ("i4", "i8"):
    h = ss.csr_array((np.array([1, np.nan]), np.array([0, 1], idx), np.array([0, 1, 2], idx)), shape=(2, 2))
    d = cs.csr_array((cp.array(h.data), cp.array(h.indices.astype(idx)), cp.array(h.indptr.astype(idx))), shape=(2, 2))
    d.eliminate_zeros()
    print("* index", idx, d.indices.dtype, "entries left", d.nnz)
c = cs.csr_matrix(cp.array([[1j, complex(np.nan, 0)], [-1 - 1j, 1]]))
c.eliminate_zeros()
print("complex entries left", c.nnz, "of 4")
F = cs.csr_matrix(cp.array([[1.0, -2.0], [0.0, -3.0]]))
F.eliminate_zeros()
print("a finite matrix:", F.get().toarray().tolist())
END
behaves <<'END'
* csr scipy 7 cupy 6
* csr then holds: [[1.0, 0.0, 0.0], [inf, 0.0, 0.0], [1e-320, 0.0, 3.0]]
* csc scipy 7 cupy 6
* csc then holds: [[1.0, 0.0, 0.0], [inf, 0.0, 0.0], [1e-320, 0.0, 3.0]]
* coo scipy 7 cupy 7
* coo then holds: [[1.0, nan, 0.0], [inf, -5.0, 0.0], [1e-320, -1e-320, 3.0]]
* index i4 int32 entries left 1
* index i8 int64 entries left 2
END
