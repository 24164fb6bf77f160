#!/usr/bin/env bash
# SLEPc 3.18.2: a matrix that is not symmetric, with the problem type for symmetric ones (EPS_HEP).
# Guess: an error, or no convergence.
# Seen: it "converges" to eigenvalues that the matrix does not have; only EPSComputeError(), which computes
# residuals, shows it.
. "$(dirname "$0")/lib.sh"
debian python3-slepc4py-real3.18=3.18.2-1 python3-petsc4py-real3.18=3.18.5-1 python3-scipy=1.10.1-2
export PYTHONPATH=/usr/lib/slepcdir/slepc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages
see /usr/bin/python3 - <<'END'
import numpy as np, scipy.sparse as ss
import slepc4py

slepc4py.init([])
from slepc4py import SLEPc
from petsc4py import PETSc

n = 50
S = ss.csr_matrix(ss.diags([-np.ones(n - 1), 2 * np.ones(n), -2 * np.ones(n - 1)], [-1, 0, 1]))
print("* largest eigenvalue, 2 + 2 sqrt(2) cos(pi / 51): %.4f" % (2 + 2 * np.sqrt(2) * np.cos(np.pi / (n + 1))))
for kind in (SLEPc.EPS.ProblemType.HEP, SLEPc.EPS.ProblemType.NHEP):
    E = SLEPc.EPS().create()
    E.setOperators(PETSc.Mat().createAIJ(S.shape, csr=(S.indptr, S.indices, S.data)))
    E.setProblemType(kind)
    E.setDimensions(1, 20)
    E.solve()
    print(
        "*",
        "EPS_HEP" if kind == SLEPc.EPS.ProblemType.HEP else "EPS_NHEP",
        "reason:",
        E.getConvergedReason(),
        "value: %.4f" % E.getEigenvalue(0).real,
        "error estimate below 1e-8:",
        E.getErrorEstimate(0) <= 1e-8,
        "computed error: %.0e" % E.computeError(0) if E.computeError(0) > 1e-3 else "computed error below 1e-3",
    )
END
behaves <<'END'
* largest eigenvalue, 2 + 2 sqrt(2) cos(pi / 51): 4.8231
* EPS_HEP reason: 1 value: 5.8823 error estimate below 1e-8: True computed error: 2e-01
* EPS_NHEP reason: 1 value: 4.8231 error estimate below 1e-8: True computed error below 1e-3
END
