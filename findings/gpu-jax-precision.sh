#!/usr/bin/env bash
# JAX 0.11.2 on a GPU: a float32 matrix times a dense matrix, stored dense and sparse (BCOO, BCSR).
# Guess: the same precision.
# Seen: the dense product is about 100 times less precise (TF32 by default); the sparse one is float32, but differs
# from run to run.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages jax==0.11.2
see env JAX_ENABLE_X64=1 "$python" - <<'END'
import numpy as np, jax.numpy as jnp
from jax.experimental import sparse

rng = np.random.default_rng(0)
D = rng.random((256, 256)) * (rng.random((256, 256)) < 0.5)
X = rng.random((256, 64))
exact = D @ X
F, Y = jnp.array(D, jnp.float32), jnp.array(X, jnp.float32)
B, C = sparse.BCOO.fromdense(F), sparse.BCSR.fromdense(F)
for title, product in (
    ("dense", lambda: F @ Y),
    ("dense, precision='highest'", lambda: jnp.matmul(F, Y, precision="highest")),
    ("BCOO", lambda: B @ Y),
    ("BCSR", lambda: C @ Y),
):
    error = np.abs(np.asarray(product(), np.float64) - exact).max() / exact.max()
    print(
        "*",
        title,
        "error above 1e-5" if error > 1e-5 else "error below 2e-6" if error < 2e-6 else "error between 2e-6 and 1e-5",
    )
    print("    %.0e" % error)
print("* BCOO results in 20 runs:", "one" if len({np.asarray(B @ Y).tobytes() for _ in range(20)}) == 1 else "several")
END
behaves <<'END'
* dense error above 1e-5
* dense, precision='highest' error below 2e-6
* BCOO error below 2e-6
* BCSR error below 2e-6
* BCOO results in 20 runs: several
END
