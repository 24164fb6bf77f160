#!/usr/bin/env bash
# PyTorch 2.11: triangular_solve() of a CSR matrix whose last diagonal entry is missing, so that it is singular.
# Guess: NaN or infinity, as on the CPU.
# Seen: on a GPU the missing entry counts as 1, and the solution is that of another matrix.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages torch==2.11.0
see "$python" - <<'END'
import torch

for device in ("cpu", "cuda"):
    for A in ([[2.0, 5.0], [0.0, 4.0]], [[2.0, 5.0], [0.0, 0.0]]):
        x = torch.triangular_solve(
            torch.ones(2, 1, device=device), torch.tensor(A, device=device).to_sparse_csr()
        ).solution
        print("* %s: %s x = (1, 1): x = %s" % (device, A, x.flatten().tolist()))
END
behaves <<'END'
* cpu: [[2.0, 5.0], [0.0, 4.0]] x = (1, 1): x = [-0.125, 0.25]
* cpu: [[2.0, 5.0], [0.0, 0.0]] x = (1, 1): x = [nan, nan]
* cuda: [[2.0, 5.0], [0.0, 4.0]] x = (1, 1): x = [-0.125, 0.25]
* cuda: [[2.0, 5.0], [0.0, 0.0]] x = (1, 1): x = [-2.0, 1.0]
END
