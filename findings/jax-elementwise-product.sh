#!/usr/bin/env bash
# JAX 0.10.2: the elementwise product of two sparse (BCOO) matrices.
# Guess: at most as many entries as the smaller factor has.
# Seen: the product of the numbers of entries, nearly all of them padding: a diagonal matrix of 1000 rows times
# itself takes a million entries.
. "$(dirname "$0")/lib.sh"
packages jax==0.10.2 jaxlib==0.10.2
see env JAX_PLATFORMS=cpu "$python" - <<'END'
import jax.numpy as jnp
from jax.experimental import sparse

A = sparse.BCOO.fromdense(jnp.eye(1000))
print("* entries of A:", A.nse, " indices known to be unique:", A.unique_indices)
P = A * A
print("* entries of A * A:", P.nse, " different from zero:", int((P.data != 0).sum()))
print("* entries of A * A after sum_duplicates():", P.sum_duplicates().nse)
print("* entries of A + A:", (A + A).nse, " of A * a dense matrix:", (A * jnp.eye(1000)).nse)
END
behaves <<'END'
* entries of A: 1000  indices known to be unique: True
* entries of A * A: 1000000  different from zero: 1000
* entries of A * A after sum_duplicates(): 1000
* entries of A + A: 2000  of A * a dense matrix: 1000
END
