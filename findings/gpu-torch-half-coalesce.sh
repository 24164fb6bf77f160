#!/usr/bin/env bash
# PyTorch 2.11: a COO tensor of half precision with 4096 repeated ones.
# Guess: coalesce() and to_dense() give the same sum, on the CPU and on a GPU.
# Seen: on the GPU coalesce() adds in float (4096), to_dense() in half precision (2048, the last whole number
# without a gap; 256 in bfloat16); on the CPU both do the latter.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages torch==2.11.0
see "$python" - <<'END'
import torch

n = 4096
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for device in ("cpu", "cuda"):
        A = torch.sparse_coo_tensor(
            torch.zeros((2, n), dtype=torch.long, device=device),
            torch.ones(n, dtype=dtype, device=device),
            (2, 2),
            check_invariants=True,
        )
        print(
            "* %s %s: coalesce() %g, to_dense() %g, to_sparse_csr() %g, torch.sparse.sum() %g"
            % (
                str(dtype)[6:],
                device,
                A.coalesce().values()[0],
                A.to_dense()[0, 0],
                A.to_sparse_csr().values()[0],
                torch.sparse.sum(A),
            )
        )
END
behaves <<'END'
* float16 cpu: coalesce() 2048, to_dense() 2048, to_sparse_csr() 2048, torch.sparse.sum() 2048
* float16 cuda: coalesce() 4096, to_dense() 2048, to_sparse_csr() 4096, torch.sparse.sum() 4096
* bfloat16 cpu: coalesce() 256, to_dense() 256, to_sparse_csr() 256, torch.sparse.sum() 256
* bfloat16 cuda: coalesce() 4096, to_dense() 256, to_sparse_csr() 4096, torch.sparse.sum() 4096
* float32 cpu: coalesce() 4096, to_dense() 4096, to_sparse_csr() 4096, torch.sparse.sum() 4096
* float32 cuda: coalesce() 4096, to_dense() 4096, to_sparse_csr() 4096, torch.sparse.sum() 4096
END
