#!/usr/bin/env bash
# petsc4py 3.18.5: a NumPy view x.array that is kept and written to later.
# Guess: the view is the vector's memory, so everything sees what is written.
# Seen: sums and products do, but norm() goes on returning the number that it computed before, since nothing said
# that the vector changed.
. "$(dirname "$0")/lib.sh"
debian python3-petsc4py-real3.18=3.18.5-1
see /usr/bin/python3 - <<'END'
import numpy as np
import petsc4py

petsc4py.init([])
from petsc4py import PETSc

x = PETSc.Vec().createSeq(2)
view = x.array
view[:] = [3, 4]
print("* [3, 4]: norm %g, sum %g, dot %g" % (x.norm(), x.sum(), x.dot(x)))
view[:] = [30, 40]
print("* [30, 40] through the kept view: norm %g, sum %g, dot %g" % (x.norm(), x.sum(), x.dot(x)))
x.array[:] = [30, 40]
print("* [30, 40] through a new x.array: norm %g" % x.norm())
A = PETSc.Mat().createDense((2, 2), array=np.eye(2))
A.assemble()
ksp = PETSc.KSP().create()
ksp.setType("preonly")
ksp.getPC().setType("lu")
ksp.setOperators(A)
b, y = PETSc.Vec().createWithArray(np.ones(2)), PETSc.Vec().createSeq(2)
ksp.solve(b, y)
d = A.getDenseArray()
print("    dense solve", y.array)
d *= 2
ksp.solve(b, y)
print("    dense solve after the kept array is doubled", y.array)
END
behaves <<'END'
* [3, 4]: norm 5, sum 7, dot 25
* [30, 40] through the kept view: norm 5, sum 70, dot 2500
* [30, 40] through a new x.array: norm 50
END
