#!/usr/bin/env bash
# SciPy 1.17.1: a sparse array divided by a number.
# Guess: each stored number is divided by it, as NumPy does, so that A / 49 of a 49 is 1.
# Seen: it is multiplied by the rounded reciprocal: 49 / 49 is 0.9999999999999999, and A / a differs from
# A.toarray() / a in the last bit of many entries.
. "$(dirname "$0")/lib.sh"
packages scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import numpy as np, scipy.sparse as ss

wrong = [k for k in range(1, 200) if (ss.csr_array([[float(k)]]) / float(k))[0, 0] != 1]
print("* k / k of a sparse array is not 1 for k =", wrong)
rng = np.random.default_rng(0)
D = rng.standard_normal((100, 100))
for divisor in (3.0, 7.0, 10.0):
    for fmt in ("csr", "coo", "dia", "bsr"):
        A = ss.csr_array(D).asformat(fmt)
        print(
            "*",
            fmt,
            "/ %g:" % divisor,
            int(((A / divisor).toarray() != D / divisor).sum()) > 1000,
            "that more than 1000 of 10000 entries differ from NumPy's",
        )
A = ss.csr_array(D)
A.data /= 3.0
print("* A.data /= 3:", int((A.toarray() != D / 3.0).sum()), "differ")
END
behaves <<'END'
* k / k of a sparse array is not 1 for k = [49, 98, 103, 107, 161, 187, 196, 197]
* csr / 3: True that more than 1000 of 10000 entries differ from NumPy's
* coo / 3: True that more than 1000 of 10000 entries differ from NumPy's
* dia / 3: True that more than 1000 of 10000 entries differ from NumPy's
* bsr / 3: True that more than 1000 of 10000 entries differ from NumPy's
* csr / 7: True that more than 1000 of 10000 entries differ from NumPy's
* coo / 7: True that more than 1000 of 10000 entries differ from NumPy's
* dia / 7: True that more than 1000 of 10000 entries differ from NumPy's
* bsr / 7: True that more than 1000 of 10000 entries differ from NumPy's
* csr / 10: True that more than 1000 of 10000 entries differ from NumPy's
* coo / 10: True that more than 1000 of 10000 entries differ from NumPy's
* dia / 10: True that more than 1000 of 10000 entries differ from NumPy's
* bsr / 10: True that more than 1000 of 10000 entries differ from NumPy's
* A.data /= 3: 0 differ
END
