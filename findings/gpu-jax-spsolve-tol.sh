#!/usr/bin/env bash
# JAX 0.11.2: jax.experimental.sparse.linalg.spsolve() of a well-conditioned matrix with small entries, on a GPU and
# on the CPU.
# Guess: the test for singularity (tol=1e-6) is relative to the matrix, so that a scale factor does not matter.
# Seen: it is absolute, and only on a GPU: in double precision a Laplacian times 1e-8 is "singular" there. With
# tol=0 it is solved.
. "$(dirname "$0")/lib.sh"
needs_gpu
packages jax==0.11.2 scipy==1.18.1
see env JAX_ENABLE_X64=1 "$python" - <<'END'
import jax, numpy as np, jax.numpy as jnp, scipy.sparse as ss
from jax.experimental.sparse.linalg import spsolve


def run(A, b, device, **options):
    with jax.default_device(jax.devices(device)[0]):
        try:
            x = np.asarray(
                spsolve(jnp.array(A.data), jnp.array(A.indices), jnp.array(A.indptr), jnp.array(b), **options)
            )
            return "solved" if np.abs(A @ x - b).max() < 1e-12 * np.abs(b).max() else "wrong"
        except Exception as e:
            return "Singular matrix" if "Singular matrix" in str(e) else type(e).__name__


n = 50
L = ss.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csr")
for scale in (1, 1e-4, 1e-8):
    A = L * scale
    for device in ("cpu", "gpu"):
        print(
            "* Laplacian times %g, %s: %s, with tol=0: %s"
            % (scale, device, run(A, A @ np.ones(n), device), run(A, A @ np.ones(n), device, tol=0.0))
        )
END
behaves <<'END'
* Laplacian times 1, cpu: solved, with tol=0: solved
* Laplacian times 1, gpu: solved, with tol=0: solved
* Laplacian times 0.0001, cpu: solved, with tol=0: solved
* Laplacian times 0.0001, gpu: solved, with tol=0: solved
* Laplacian times 1e-08, cpu: solved, with tol=0: solved
* Laplacian times 1e-08, gpu: Singular matrix, with tol=0: solved
END
