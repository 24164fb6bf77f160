#!/usr/bin/env bash
# PyAMG 5.4.1: ml.solve(b, tol=1e-10, accel=...) with different accelerators.
# Guess: each stops when the residual is 1e-10 times the right-hand side.
# Seen: gmres measures the preconditioned residual: it says that it converged (info 0) while the residual is tens of
# times larger than asked for.
. "$(dirname "$0")/lib.sh"
packages pyamg==5.4.1 scipy==1.17.1 numpy==2.4.6
see "$python" - <<'END'
import numpy as np, pyamg

np.random.seed(0)
A = pyamg.gallery.poisson((100, 100), format="csr")
b = np.ones(A.shape[0])
ml = pyamg.smoothed_aggregation_solver(A)
for accel in (None, "cg", "gmres", "fgmres", "bicgstab"):
    x, info = ml.solve(b, tol=1e-10, maxiter=100, accel=accel, return_info=True)
    ratio = np.linalg.norm(b - A @ x) / np.linalg.norm(b) / 1e-10
    print(
        "* accel=%s: info %d, residual %s"
        % (
            accel,
            info,
            (
                "below the tolerance"
                if ratio <= 1
                else "more than 20 times the tolerance" if ratio > 20 else "above the tolerance"
            ),
        )
    )
    print("    %.1f times the tolerance" % ratio)
END
behaves <<'END'
* accel=None: info 0, residual below the tolerance
* accel=cg: info 0, residual below the tolerance
* accel=gmres: info 0, residual more than 20 times the tolerance
* accel=fgmres: info 0, residual below the tolerance
* accel=bicgstab: info 0, residual below the tolerance
END
