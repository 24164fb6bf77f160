#!/usr/bin/env bash
# SciPy 1.17.1 and fast-matrix-market 1.7.6: a Matrix Market file whose numbers have Fortran's exponents (1.0D-01).
# Guess: 0.1, or an error as from SciPy 1.10.
# Seen: the exponent is dropped without a word: 1.0.
. "$(dirname "$0")/lib.sh"
packages scipy==1.17.1 numpy==2.4.6 fast-matrix-market==1.7.6
see "$python" - <<'END'
import io
import scipy.io, fast_matrix_market


def text(number, kind="coordinate real general"):
    return (
        "%%%%MatrixMarket matrix %s\n" % kind + ("1 1\n%s\n" if "array" in kind else "1 1 1\n1 1 %s\n") % number
    ).encode()


for number, kind in (
    ("1.0E-01", "coordinate real general"),
    ("1.0D-01", "coordinate real general"),
    ("1.0d+05", "coordinate real general"),
    ("1.0D-01", "array real general"),
    ("2.5D+00 1.0D-01", "coordinate complex general"),
):
    for name, read in (("scipy", scipy.io.mmread), ("fast_matrix_market", fast_matrix_market.mmread)):
        try:
            a = read(io.BytesIO(text(number, kind)))
            a = (a.toarray() if hasattr(a, "toarray") else a)[0, 0]
        except Exception as e:
            a = type(e).__name__
        print('* %s: %s in a file "%s" is read as %s' % (name, number, kind, a))
END
behaves <<'END'
* scipy: 1.0E-01 in a file "coordinate real general" is read as 0.1
* fast_matrix_market: 1.0E-01 in a file "coordinate real general" is read as 0.1
* scipy: 1.0D-01 in a file "coordinate real general" is read as 1.0
* fast_matrix_market: 1.0D-01 in a file "coordinate real general" is read as 1.0
* scipy: 1.0d+05 in a file "coordinate real general" is read as 1.0
* fast_matrix_market: 1.0d+05 in a file "coordinate real general" is read as 1.0
* scipy: 1.0D-01 in a file "array real general" is read as 1.0
* fast_matrix_market: 1.0D-01 in a file "array real general" is read as 1.0
* scipy: 2.5D+00 1.0D-01 in a file "coordinate complex general" is read as ValueError
* fast_matrix_market: 2.5D+00 1.0D-01 in a file "coordinate complex general" is read as ValueError
END
