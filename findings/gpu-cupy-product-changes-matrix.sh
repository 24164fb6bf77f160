#!/usr/bin/env bash
# CuPy 14.2: A @ x, and views of A's arrays.
# Guess: a product only reads A, as in SciPy, so a program that kept A.data can go on changing the values in place.
# Seen: the first product of a matrix with unsorted or repeated entries gives it new arrays; the kept array no
# longer belongs to it.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages cupy-cuda13x==14.2.0 numpy==2.5.2 scipy==1.18.1
see "$python" - <<'END'
import cupy as cp, numpy as np, scipy.sparse as ss, cupyx.scipy.sparse as cs

for order in ("sorted", "unsorted", "repeated"):
    ind = {"sorted": [0, 1, 2], "unsorted": [1, 0, 2], "repeated": [0, 0, 2]}[order]
    for lib, xp, sp in (("scipy", np, ss), ("cupy", cp, cs)):
        for fmt in ("csr", "csc"):
            A = getattr(sp, fmt + "_matrix")(
                (xp.array([1.0, 2.0, 3.0]), xp.array(ind, "i"), xp.array([0, 2, 3, 3], "i")), shape=(3, 3)
            )
            values = A.data
            x = xp.ones(3)
            before = (A @ x).tolist()
            values *= 10
            after = (A @ x).tolist()
            print(
                "*",
                order,
                lib,
                fmt,
                "entries",
                A.nnz,
                "A.data is the same array:",
                A.data is values,
                "before",
                before,
                "after values *= 10",
                after,
            )
END
behaves <<'END'
* sorted scipy csr entries 3 A.data is the same array: True before [3.0, 3.0, 0.0] after values *= 10 [30.0, 30.0, 0.0]
* sorted scipy csc entries 3 A.data is the same array: True before [1.0, 2.0, 3.0] after values *= 10 [10.0, 20.0, 30.0]
* sorted cupy csr entries 3 A.data is the same array: True before [3.0, 3.0, 0.0] after values *= 10 [30.0, 30.0, 0.0]
* sorted cupy csc entries 3 A.data is the same array: True before [1.0, 2.0, 3.0] after values *= 10 [10.0, 20.0, 30.0]
* unsorted scipy csr entries 3 A.data is the same array: True before [3.0, 3.0, 0.0] after values *= 10 [30.0, 30.0, 0.0]
* unsorted scipy csc entries 3 A.data is the same array: True before [2.0, 1.0, 3.0] after values *= 10 [20.0, 10.0, 30.0]
* unsorted cupy csr entries 3 A.data is the same array: False before [3.0, 3.0, 0.0] after values *= 10 [3.0, 3.0, 0.0]
* unsorted cupy csc entries 3 A.data is the same array: False before [2.0, 1.0, 3.0] after values *= 10 [2.0, 1.0, 3.0]
* repeated scipy csr entries 3 A.data is the same array: True before [3.0, 3.0, 0.0] after values *= 10 [30.0, 30.0, 0.0]
* repeated scipy csc entries 3 A.data is the same array: True before [3.0, 0.0, 3.0] after values *= 10 [30.0, 0.0, 30.0]
* repeated cupy csr entries 2 A.data is the same array: False before [3.0, 3.0, 0.0] after values *= 10 [3.0, 3.0, 0.0]
* repeated cupy csc entries 2 A.data is the same array: False before [3.0, 0.0, 3.0] after values *= 10 [3.0, 0.0, 3.0]
END
