"""A client of legacy FEniCS (dolfin): a linear Poisson problem and a nonlinear one, on any number of ranks.

It knows nothing of PetscSpMV: the library and the type come from PETSC_OPTIONS.
"""

from dolfin import *

set_log_level(LogLevel.ERROR)
mesh = UnitSquareMesh(24, 24)
V = FunctionSpace(mesh, "CG", 2)
bc = DirichletBC(V, Constant(0), "on_boundary")
u, v = TrialFunction(V), TestFunction(V)
f = Expression("10*exp(-50*(pow(x[0] - 0.3, 2) + pow(x[1] - 0.6, 2)))", degree=2)


def show(what, kind, *numbers):
    if MPI.comm_world.rank == 0:
        print(what, kind, *(f"{n:.8e}" if isinstance(n, float) else n for n in numbers), flush=True)


A, b = assemble_system(inner(grad(u), grad(v)) * dx, f * v * dx, bc)
uh = Function(V)
solver = PETScKrylovSolver("cg", "petsc_amg")
solver.parameters["relative_tolerance"] = 1e-8
iterations = solver.solve(as_backend_type(A), as_backend_type(uh.vector()), as_backend_type(b))
show("poisson", as_backend_type(A).mat().getType(), iterations, uh.vector().norm("l2"))

w = interpolate(Constant(0.1), V)
F = inner((1 + w**2) * grad(w), grad(v)) * dx - f * v * dx


class Nonlinear(NonlinearProblem):
    def F(self, b, x):
        assemble(F, tensor=b)
        bc.apply(b, x)

    def J(self, A, x):
        assemble(derivative(F, w, u), tensor=A)
        bc.apply(A)
        self.kind = as_backend_type(A).mat().getType()  # dolfin destroys the matrix itself


problem = Nonlinear()
newton = PETScSNESSolver()
newton.parameters["linear_solver"] = "gmres"
newton.parameters["preconditioner"] = "jacobi"
newton.parameters["krylov_solver"]["relative_tolerance"] = 1e-10
newton.parameters["krylov_solver"]["maximum_iterations"] = 2000
iterations, converged = newton.solve(problem, w.vector())
show("newton", problem.kind, iterations, int(converged), w.vector().norm("l2"))
