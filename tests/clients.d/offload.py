"""Programs that name PETSc's type for GPUs, aijcusparse, and no other:

    offload.py [-problem poisson|elasticity] [-n N] [-way offload|device] [-firedrake FILE]

The matrix is assembled as aij on the host. -way offload, as Firedrake's OffloadPC: a preconditioner converts it, with its null spaces, to aijcusparse, solves
with vectors on the GPU that share the host's arrays, and copies new values to the matrix on the GPU. With -firedrake, this is Firedrake's own class, from its
file firedrake/preconditioners/offload.py. -way device, as MFEM's PetscParMatrix with --device cuda: the type of the matrix is set to aijcusparse.

Prints the type and the format of the matrix, the iterations, the time of a KSPSolve(), numbers of the solution, and the residual after the matrix was doubled.
Run it with and without
PETSC_OPTIONS="-dll_append .../libpetscspmv.so -mat_spmv_replace aijcusparse".
"""

import contextlib
import importlib.util
import sys
import types

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402


def grid(n, comm):
    """The nodes of a cube of n^3, without its boundary x = 0; this process's rows"""
    k = np.arange(n**3).reshape(n, n, n)
    layout = PETSc.Vec().createMPI(n**3, comm=comm)
    begin, end = layout.getOwnershipRange()
    layout.destroy()
    return k, begin, end


def poisson(n, kind, comm):
    """The 7-point Laplacian"""
    k, begin, end = grid(n, comm)
    i, j, v = [k.ravel()], [k.ravel()], [np.full(n**3, 6.0)]
    for axis in range(3):
        low, high = np.take(k, range(n - 1), axis).ravel(), np.take(k, range(1, n), axis).ravel()
        i += [low, high]
        j += [high, low]
        v += [np.full(low.size, -1.0)] * 2
    i, j, v = map(np.concatenate, (i, j, v))
    own = (begin <= i) & (i < end)
    return assemble(n**3, 1, i[own], j[own], v[own], kind, comm), None


def stiffness():
    """The element matrix of linear elasticity on a unit cube, trilinear, lambda = mu = 1; corners in the order of their bits"""
    corners = np.array([[c >> 2 & 1, c >> 1 & 1, c & 1] for c in range(8)], float)
    D = np.diag([2.0, 2, 2, 1, 1, 1])
    D[:3, :3] += 1
    K = np.zeros((24, 24))
    for q in np.ndindex(2, 2, 2):
        p = 0.5 + (np.array(q) - 0.5) / np.sqrt(3)
        factor = np.where(corners == 1, p, 1 - p)
        grad = np.array([np.where(corners[:, d] == 1, 1, -1) * np.prod(np.delete(factor, d, 1), 1) for d in range(3)])
        B = np.zeros((6, 24))
        for d, (a, b) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2)]):
            B[d, a::3] += grad[b]
            if a != b:
                B[d, b::3] += grad[a]
        K += B.T @ D @ B / 8
    return K


def elasticity(n, kind, comm):
    """A cube that is held on the side x = 0 by springs"""
    k, begin, end = grid(n, comm)
    corner = [k[c >> 2 & 1 : n - 1 + (c >> 2 & 1), c >> 1 & 1 : n - 1 + (c >> 1 & 1), c & 1 : n - 1 + (c & 1)].ravel() for c in range(8)]
    dofs = (3 * np.array(corner)[:, None, :] + np.arange(3)[None, :, None]).reshape(24, -1)
    held = (3 * k[0].ravel()[:, None] + np.arange(3)).ravel()
    i = np.concatenate([np.repeat(dofs, 24, axis=0).ravel(), held])
    j = np.concatenate([np.tile(dofs, (24, 1)).ravel(), held])
    v = np.concatenate([np.repeat(stiffness().ravel(), dofs.shape[1]), np.full(held.size, 10.0)])
    own = (3 * begin <= i) & (i < 3 * end)
    A = assemble(3 * n**3, 3, i[own], j[own], v[own], kind, comm)
    points = PETSc.Vec().createMPI((3 * (end - begin), PETSc.DETERMINE), bsize=3, comm=comm)
    points.array = np.stack(np.unravel_index(np.arange(begin, end), k.shape), 1).ravel()
    return A, PETSc.NullSpace().createRigidBody(points)


def assemble(n, bs, i, j, v, kind, comm):
    A = PETSc.Mat().create(comm)
    A.setSizes((n, n), bs)
    A.setType("aij")
    A.setPreallocationCOO(i.astype(PETSc.IntType), j.astype(PETSc.IntType))
    A.setValuesCOO(v.astype(PETSc.ScalarType))
    A.setOption(PETSc.Mat.Option.SPD, True)
    if kind != "aij":
        A.setType(kind)
    return A


def set_up_solver(A, near, prefix, comm):
    if near:
        A.setNearNullSpace(near)
    ksp = PETSc.KSP().create(comm)
    ksp.setOptionsPrefix(prefix)
    ksp.setOperators(A)
    ksp.setType("cg")
    ksp.getPC().setType("gamg" if near else "jacobi")
    ksp.setTolerances(rtol=1e-8, max_it=2000)
    ksp.setFromOptions()
    return ksp


class Offload:
    """The preconditioner that solves on the GPU"""

    def setUp(self, pc):
        _, P = pc.getOperators()
        if hasattr(self, "P"):
            P.copy(self.P, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
            return
        self.P = P.convert("aijcusparse", PETSc.Mat())
        for get, set_ in (("getNullSpace", "setNullSpace"), ("getTransposeNullSpace", "setTransposeNullSpace"), ("getNearNullSpace", "setNearNullSpace")):
            space = getattr(P, get)()
            if space.handle:
                getattr(self.P, set_)(space)
        near = P.getNearNullSpace()
        self.ksp = set_up_solver(self.P, near if near.handle else None, "offload_", P.comm)
        self.ksp.setUp()

    def apply(self, pc, x, y):
        dx, dy = (PETSc.Vec().createCUDAWithArrays(v.array_r, None, comm=v.comm) for v in (x, y))
        self.ksp.solve(dx, dy)
        dy.getArray(True)  # copies the solution to y's array


def firedrake_offload(file):
    """Firedrake's class, from its file preconditioners/offload.py; what that imports is replaced by the parts it needs"""

    class PCBase:
        def setUp(self, pc):
            self.update(pc) if hasattr(self, "pc") else self.initialize(pc)

        ksp = property(lambda self: self.pc.getKSP())
        P = property(lambda self: self.pc.getOperators()[1])

    def module(name, **names):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)

    context = types.SimpleNamespace(reconstruct=lambda **_: None)
    for name in ("firedrake", "firedrake.preconditioners"):
        module(name)
    module("firedrake.preconditioners.assembled", PCBase=PCBase)
    module("firedrake.petsc", PETSc=PETSc)
    module("firedrake.utils", device_matrix_type=lambda warn: "aijcusparse", get_device_type=lambda: "CUDA")
    module("firedrake.dmhooks", get_appctx=lambda dm: context, add_hooks=lambda *_, **__: contextlib.nullcontext())
    spec = importlib.util.spec_from_file_location("firedrake.preconditioners.offload", file)
    offload = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(offload)
    return offload.OffloadPC()


def main():
    options = PETSc.Options()
    way, problem, n = options.getString("way", "offload"), options.getString("problem", "poisson"), options.getInt("n", 20)
    comm = PETSc.COMM_WORLD
    A, near = {"poisson": poisson, "elasticity": elasticity}[problem](n, "aij" if way == "offload" else "aijcusparse", comm)
    if way == "offload":
        if near:
            A.setNearNullSpace(near)
        outer = PETSc.KSP().create(comm)
        outer.setOperators(A)
        outer.setType("preonly")
        file = options.getString("firedrake", "")
        if file:
            for name, value in (("pc_type", "ksp"), ("ksp_ksp_type", "cg"), ("ksp_ksp_rtol", 1e-8), ("ksp_pc_type", "gamg" if near else "jacobi")):
                options["offload_" + name] = value
        offload = firedrake_offload(file) if file else Offload()
        outer.getPC().setType("python")
        outer.getPC().setPythonContext(offload)
        outer.setUp()
        inner, P = offload.ksp, offload.P
    else:
        outer = inner = set_up_solver(A, near, "device_", comm)
        outer.setUp()
        P = A
    x, b = A.createVecs()
    b.setRandom(PETSc.Random().create(comm))
    outer.solve(b, x)
    times = []
    for _ in range(3):
        x.set(0)
        comm.barrier()
        begin = PETSc.Log.getTime()
        outer.solve(b, x)
        x.norm()
        times.append(PETSc.Log.getTime() - begin)
    r = b.duplicate()

    def residual():
        A.mult(x, r)
        r.axpy(-1, b)
        return r.norm() / b.norm()

    first, norm, largest = residual(), x.norm(), x.max()[1]
    A.scale(2)
    outer.solve(b, x)
    viewer = PETSc.Viewer().createASCII("/dev/stdout", comm=comm)
    viewer.pushFormat(PETSc.Viewer.Format.ASCII_INFO)
    if options.getBool("view", False):
        P.view(viewer)
    PETSc.Sys.Print(
        f"{problem} {way}: {P.getType()}, {inner.getIterationNumber()} iterations, {1e3 * sorted(times)[1]:.3f} ms, "
        f"residual {first:.2e}, solution {norm:.10e} {largest:.10e}, after doubling {residual():.2e} {2 * x.norm():.10e}"
    )


main()
