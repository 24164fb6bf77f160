#!/usr/bin/env bash
# SciPy 1.17.1: argmax() and argmin() of a sparse array in which a NaN is stored and which has a zero that is not.
# Guess: the position of the NaN, as NumPy's, since max() and min() of the same sparse array are NaN.
# Seen: the position of a zero, for both, even if larger and smaller numbers are stored; without such a zero that of the
# NaN.
. "$(dirname "$0")/lib.sh"
packages scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import numpy as np, scipy.sparse as ss

for row in ([5.0, np.nan, 0.0, -3.0], [5.0, np.nan, 1.0, -3.0]):
    D = np.array([row])
    for fmt in ("csr", "csc", "coo"):
        A = ss.csr_array(D).asformat(fmt)
        print("* %s %s: max %s, argmax %d, argmin %d" % (row, fmt, A.max(), A.argmax(), A.argmin()))
    print("* %s NumPy: max %s, argmax %d, argmin %d" % (row, D.max(), D.argmax(), D.argmin()))
END
behaves <<'END'
* [5.0, nan, 0.0, -3.0] csr: max nan, argmax 2, argmin 2
* [5.0, nan, 0.0, -3.0] csc: max nan, argmax 2, argmin 2
* [5.0, nan, 0.0, -3.0] coo: max nan, argmax 2, argmin 2
* [5.0, nan, 0.0, -3.0] NumPy: max nan, argmax 1, argmin 1
* [5.0, nan, 1.0, -3.0] csr: max nan, argmax 1, argmin 1
* [5.0, nan, 1.0, -3.0] csc: max nan, argmax 1, argmin 1
* [5.0, nan, 1.0, -3.0] coo: max nan, argmax 1, argmin 1
* [5.0, nan, 1.0, -3.0] NumPy: max nan, argmax 1, argmin 1
END
