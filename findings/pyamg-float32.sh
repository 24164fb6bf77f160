#!/usr/bin/env bash
# PyAMG 5.4.1: smoothed aggregation of a float32 matrix.
# Guess: all levels are float32, so that a cycle moves half of the bytes.
# Seen: only the finest level is; all coarser operators and the interpolations are float64.
. "$(dirname "$0")/lib.sh"
packages pyamg==5.4.1 scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import numpy as np, pyamg

A = pyamg.gallery.poisson((60, 60), format="csr").astype(np.float32)
ml = pyamg.smoothed_aggregation_solver(A)
print(
    "* operators:", *[str(l.A.dtype) for l in ml.levels], " interpolations:", *[str(l.P.dtype) for l in ml.levels[:-1]]
)
END
behaves <<'END'
* operators: float32 float64 float64 float64  interpolations: float64 float64 float64
END
