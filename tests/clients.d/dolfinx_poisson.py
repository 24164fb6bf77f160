"""A client of DOLFINx, as its tutorials are written: a linear Poisson problem and a nonlinear one, real or complex, on any number of ranks.

It knows nothing of PetscSpMV: the library and the type come from PETSC_OPTIONS. The mesh is distributed otherwise in each run, so the preconditioner is one
that does not depend on that.
"""

import numpy as np
import ufl
from dolfinx import fem, mesh, nls
from mpi4py import MPI
from petsc4py import PETSc


def norm(u):
    return u.vector.norm()


def show(what, A, *numbers):
    if MPI.COMM_WORLD.rank == 0:
        print(what, A.getType(), *(f"{n:.8e}" if isinstance(n, float) else n for n in numbers), flush=True)


domain = mesh.create_unit_square(MPI.COMM_WORLD, 24, 24)
V = fem.FunctionSpace(domain, ("Lagrange", 2))
tdim = domain.topology.dim
domain.topology.create_connectivity(tdim - 1, tdim)
facets = mesh.locate_entities_boundary(domain, tdim - 1, lambda x: np.full(x.shape[1], True))
bc = fem.dirichletbc(PETSc.ScalarType(0), fem.locate_dofs_topological(V, tdim - 1, facets), V)
u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(domain)
f = 10 * ufl.exp(-50 * ((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2))

problem = fem.petsc.LinearProblem(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.inner(f, v) * ufl.dx, bcs=[bc],
                                  petsc_options={"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-8})
uh = problem.solve()
show("poisson", problem.A, problem.solver.getIterationNumber(), norm(uh))

w = fem.Function(V)
w.x.array[:] = 0.1
form = ufl.inner((1 + w**2) * ufl.grad(w), ufl.grad(v)) * ufl.dx - ufl.inner(f, v) * ufl.dx
solver = nls.petsc.NewtonSolver(MPI.COMM_WORLD, fem.petsc.NonlinearProblem(form, w, bcs=[bc]))
solver.rtol = 1e-8
prefix = solver.krylov_solver.getOptionsPrefix()
for name, value in {"ksp_type": "gmres", "ksp_rtol": 1e-10, "pc_type": "jacobi"}.items():
    PETSc.Options()[f"{prefix}{name}"] = value
solver.krylov_solver.setFromOptions()
iterations, converged = solver.solve(w)
show("newton", solver.A, iterations, int(converged), norm(w))
