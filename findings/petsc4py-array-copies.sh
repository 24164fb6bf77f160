#!/usr/bin/env bash
# petsc4py 3.18.5: Vec.createWithArray() of a NumPy array that is float32, of integers, or every second entry of
# another.
# Guess: the vector uses the array's memory, or an exception says that it cannot.
# Seen: it silently uses a copy, so that the array never sees the vector's values; only complex numbers raise an
# exception.
. "$(dirname "$0")/lib.sh"
debian python3-petsc4py-real3.18=3.18.5-1
see /usr/bin/python3 - <<'END'
import numpy as np
import petsc4py

petsc4py.init([])
from petsc4py import PETSc

for title, x in (
    ("float64", np.zeros(4)),
    ("float32", np.zeros(4, "f4")),
    ("int64", np.zeros(4, "i8")),
    ("every second float64", np.zeros(8)[::2]),
    ("column of a C-ordered float64 matrix", np.zeros((4, 2))[:, 0]),
    ("Fortran-ordered 2 x 2 float64", np.zeros((2, 2), order="F")),
):
    v = PETSc.Vec().createWithArray(x)
    v.set(1)
    print("* %s: the vector has %g, the array %g" % (title, v.sum(), x.sum()))
try:
    PETSc.Vec().createWithArray(np.zeros(4, complex))
    print("* complex: no exception")
except TypeError as e:
    print("* complex: TypeError")
i, j, a = np.array([0, 1, 2], "i4"), np.array([0, 1], "i4"), np.ones(2, "f4")
A = PETSc.Mat().createAIJWithArrays((2, 2), (i, j, a))
A.scale(5)
print(
    "* createAIJWithArrays() with float32 values: the matrix has trace %g, the array %g"
    % (A.getDiagonal().sum(), a.sum())
)
END
behaves <<'END'
* float64: the vector has 4, the array 4
* float32: the vector has 4, the array 0
* int64: the vector has 4, the array 0
* every second float64: the vector has 4, the array 0
* column of a C-ordered float64 matrix: the vector has 4, the array 0
* Fortran-ordered 2 x 2 float64: the vector has 4, the array 4
* complex: TypeError
* createAIJWithArrays() with float32 values: the matrix has trace 10, the array 2
END
