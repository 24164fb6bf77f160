"""The programs of test_programs.py, which runs each alone, on one rank and on two: programs.py NAME FOLDER. It may leave files in the folder."""

import os
import sys
import traceback

import numpy as np
import petscspmv
from petsc4py import PETSc

RANK, SIZE = PETSc.COMM_WORLD.rank, PETSc.COMM_WORLD.size
INT, SCALAR = PETSc.IntType, PETSc.ScalarType
TYPES = petscspmv.Type.SELLP, petscspmv.Type.EVCHYB


def raises(kind, text, function, *args, **kwargs):
    """The call raises this kind of exception, with this text."""
    try:
        function(*args, **kwargs)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {str(error)!r}"
    else:
        raise AssertionError(f"{function.__name__} raised nothing, where '{text}' was expected")


def laplacian(n=400, shift=2.5):
    A = PETSc.Mat().createAIJ((n, n), nnz=3)
    for i in range(*A.getOwnershipRange()):
        for j in (i - 1, i, i + 1):
            if 0 <= j < n:
                A[i, j] = shift if i == j else -1 + (0.25j if SCALAR(0).dtype.kind == "c" and j > i else 0)
    A.assemble()
    return A


def random_vector(A):
    x = A.createVecRight()
    x.array[:] = np.random.default_rng(RANK).standard_normal(x.local_size)
    return x


def random_problems(count, seed=0, sizes=(1, 9)):
    import scipy.sparse as sp

    random = np.random.default_rng(seed + RANK)
    for _ in range(count):
        n = int(random.integers(*sizes))
        A = sp.random(n, n, 0.4, format="csr", random_state=random) + 4 * sp.eye(n, format="csr")
        yield sp.csr_matrix(A, dtype=SCALAR) * (1 + 2j if SCALAR(0).dtype.kind == "c" else 1)


def check_product(B, problems):
    """The product of a batch is that of each problem."""
    x = random_vector(B)
    y = B.createVecLeft()
    B.mult(x, y)
    begin = 0
    for A in problems:
        end = begin + A.shape[0]
        assert np.allclose(y.array[begin:end], A @ x.array[begin:end], rtol=1e-5, atol=1e-5)
        begin = end
    assert begin == y.local_size


# ---------------------------------------------------------------------------------------------------------------------
# sellp and evchyb


def products():
    for name in TYPES:
        A = laplacian()
        B = A.copy()
        B.convert(name)
        assert petscspmv.format(A) is None and petscspmv.format(B) == name
        x, y, z = random_vector(A), A.createVecLeft(), A.createVecLeft()
        for mult in "mult", "multTranspose", "multHermitian":
            for _ in range(12):  # AIJ multiplies first
                getattr(A, mult)(x, y)
                getattr(B, mult)(x, z)
            z.axpy(-1, y)
            assert z.norm() < 1e-5 * y.norm()


def info():
    for name in TYPES:
        A = laplacian()
        A.convert(name)
        known = petscspmv.info(A)
        assert isinstance(known, petscspmv.Info)
        r = A.getOwnershipRange()
        assert known.nonzeros == 3 * (r[1] - r[0]) - (r[0] == 0) - (r[1] == 400)
        assert 0 < known.formatted <= known.stored and known.slices > 0 and known.bytes > 0 and known.node == 1 and isinstance(known.kernel, str) and known.kernel


def view():
    from pathlib import Path

    folder = sys.argv[2]
    for name in TYPES:
        A = laplacian()
        A.convert(name)
        petscspmv.info(A)  # sets the format up
        viewer = PETSc.Viewer().createASCII(f"{folder}/{name}")
        viewer.pushFormat(PETSc.Viewer.Format.ASCII_INFO)
        A.view(viewer)
        viewer.destroy()
        if RANK == 0:
            text = Path(f"{folder}/{name}").read_text()
            assert f"{name} format" in text and "kernel" in text, text


def options():
    """-mat_type among the options, as in a program that does not know the package."""
    PETSc.Options()["mat_type"] = "evchyb"
    A = PETSc.Mat().create()
    A.setSizes((10, 10))
    A.setFromOptions()
    A.setUp()
    A.assemble()
    assert petscspmv.format(A) == "evchyb"


def solve():
    A = laplacian(shift=4)
    A.convert("sellp")
    x, b = A.createVecs()
    b.set(1)
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setType("gmres")
    ksp.getPC().setType("jacobi")
    ksp.setTolerances(rtol=1e-6)
    ksp.solve(b, x)
    assert ksp.reason > 0 and ksp.its > 3, (ksp.reason, ksp.its)
    r = b.duplicate()
    A.mult(x, r)
    r.axpy(-1, b)
    assert r.norm() < 1e-4 * b.norm()
    D = A.duplicate(copy=True)
    assert petscspmv.format(D) == "sellp"


def dm():
    da = PETSc.DMDA().create([8, 8], stencil_width=1)
    da.setMatType(petscspmv.Type.SELLP)
    assert petscspmv.format(da.createMat()) == "sellp"


def errors():
    A = laplacian()
    raises(PETSc.Error, "is not a type of PetscSpMV", petscspmv.info, A)
    B = PETSc.Mat().create()
    B.setSizes((4, 4))
    B.setType("sellp")
    raises(PETSc.Error, "Not for unassembled matrix", petscspmv.info, B)
    raises(TypeError, "petsc4py.PETSc.Mat is needed, not Vec", petscspmv.format, A.createVecLeft())
    raises(ValueError, "not created yet, or was destroyed", petscspmv.format, PETSc.Mat())
    raises(PETSc.Error, "", petscspmv.batch_info, A)
    raises(PETSc.Error, "", petscspmv.problem_arrays, A, 0)
    raises(PETSc.Error, "", petscspmv.set_values, A, 0, [1.0])
    assert petscspmv.format(A) is None  # an error leaves all usable


# ---------------------------------------------------------------------------------------------------------------------
# batch


def batch():
    import scipy.sparse as sp

    problems = list(random_problems(7 + RANK))
    B = petscspmv.batch(problems)
    assert petscspmv.format(B) == petscspmv.Type.BATCH and B.refcount == 1 and B.assembled
    known = petscspmv.batch_info(B)
    assert known.problems == len(problems)
    assert known.smallest == min(A.shape[0] for A in problems) and known.largest == max(A.shape[0] for A in problems)
    assert known.nonzeros == sum(A.nnz for A in problems)
    check_product(B, problems)
    for p, A in enumerate(problems):
        P = petscspmv.problem(B, p)
        assert P.shape == A.shape and abs(P - A).max() == 0
        P.data[:] = 0  # a copy
    # other formats of SciPy, unsorted columns, entries twice, integers; the given matrices stay as they are
    unsorted = sp.csr_matrix((SCALAR([1, 2, 3]), [1, 0, 1], [0, 2, 3]), shape=(2, 2))
    twice = sp.csr_matrix((SCALAR([1, 2, 3]), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    others = [sp.coo_matrix(problems[0]), sp.csc_matrix(problems[1]), unsorted, twice, sp.eye(3, dtype=int, format="dia"), sp.csr_array(problems[2]), sp.csr_matrix((0, 0))]
    check_product(petscspmv.batch(others), others)
    assert list(unsorted.indices) == [1, 0, 1] and list(twice.data) == [1, 2, 3]


def batch_owns_copies():
    offsets, columns, values = np.array([0, 1, 3]), np.array([0, 0, 1]), np.ones((5, 3))
    B = petscspmv.batch_from_arrays(offsets, columns, values)
    offsets[:], columns[:], values[:] = 9, 9, 9
    x, y = B.createVecs()
    x.set(1)
    B.mult(x, y)
    assert np.array_equal(y.array, np.tile([1, 2], 5))


def batch_from_arrays():
    import scipy.sparse as sp

    problems = list(random_problems(5))
    first, n = problems[0], problems[0].shape[0]
    values = np.arange(4 * first.nnz).reshape(4, -1)
    shared = [sp.csr_matrix((SCALAR(v), first.indices, first.indptr), shape=(n, n)) for v in values]
    check_product(petscspmv.batch_from_arrays(first.indptr, first.indices, values), shared)
    check_product(petscspmv.batch_from_arrays(list(first.indptr), list(first.indices), [list(first.data)] * 3), [first] * 3)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(A.indptr) for A in problems]))])
    columns, data = np.concatenate([A.indices for A in problems]), np.concatenate([A.data for A in problems])
    B = petscspmv.batch_from_arrays(offsets, columns, data, sizes=[A.shape[0] for A in problems])
    check_product(B, problems)
    for p, A in enumerate(problems):
        i, j, v = petscspmv.problem_arrays(B, p)
        assert i.dtype == INT and j.dtype == INT and v.dtype == SCALAR
        assert np.array_equal(i, A.indptr) and np.array_equal(j, A.indices) and np.array_equal(v, A.data)


def batch_solves():
    """Each problem by itself, one of which is singular."""
    values = 2 * np.eye(3).ravel() + np.arange(36).reshape(4, 9) % 5 / 10
    values[2, 3:6] = 0
    B = petscspmv.batch_from_arrays([0, 3, 6, 9], [0, 1, 2] * 3, values)
    x, b = B.createVecs()
    b.set(1)
    ksp = PETSc.KSP().create()
    ksp.setOperators(B)
    ksp.setType("devicebatch")
    raises(PETSc.Error, "", petscspmv.solve_info, ksp)
    ksp.solve(b, x)
    info = petscspmv.solve_info(ksp)
    assert list(info.reasons > 0) == [True, True, False, True] and ksp.reason < 0 and info.iterations.max() == ksp.its
    for p in (0, 1, 3):
        assert abs(values[p].reshape(3, 3) @ x.array[3 * p : 3 * p + 3] - 1).max() < 1e-4 and info.norms[p] < 1e-4
    raises(TypeError, "KSP is needed", petscspmv.solve_info, B)


def batch_of_nothing():
    """Ranks without problems, problems without rows or entries."""
    problems = list(random_problems(3)) if RANK == 0 else []
    B = petscspmv.batch(problems)
    assert petscspmv.batch_info(B).problems == len(problems)
    check_product(B, problems)
    petscspmv.set_values(B, petscspmv.ALL, np.concatenate([A.data for A in problems]) if problems else [])
    check_product(B, problems)
    for B in (
        petscspmv.batch([]),
        petscspmv.batch_from_arrays([], [], [], sizes=[]),
        petscspmv.batch_from_arrays([0, 1], [0], np.empty((0, 1))),
    ):
        assert B.getSize() == (0, 0) and petscspmv.batch_info(B).problems == 0
    B = petscspmv.batch([([0], [], []), ([0, 0, 0], [], [])])
    assert B.getLocalSize() == (2, 2) and petscspmv.problem_arrays(B, 0)[0].tolist() == [0] and petscspmv.problem(B, 1).nnz == 0


def set_values():
    mixed, first = list(random_problems(5)), next(random_problems(1, sizes=(5, 8)))
    for problems in (mixed, [first.copy() for _ in range(5)]):
        B = petscspmv.batch(problems)
        check_product(B, problems)
        values = [3 * A.data for A in problems]
        petscspmv.set_values(B, petscspmv.ALL, np.concatenate(values))
        for A, v in zip(problems, values):
            A.data[:] = v
        check_product(B, problems)
        problems[3].data[:] = np.arange(problems[3].nnz)
        petscspmv.set_values(B, 3, np.arange(problems[3].nnz))
        check_product(B, problems)
        raises(ValueError, f"there are 1 values for {problems[0].nnz + (problems[0].nnz == 1)} entries", petscspmv.set_values, B, 0, [1]) if problems[0].nnz > 1 else None
        raises(ValueError, "there are 1 values for", petscspmv.set_values, B, petscspmv.ALL, [1])
        raises(PETSc.Error, "Problem 5: this process has 5 problems", petscspmv.set_values, B, 5, [1])
        raises(TypeError, "values are", petscspmv.set_values, B, 0, ["a"])


def batch_errors():
    """Invalid arguments on the last rank alone: every rank raises, and none waits."""
    A = next(random_problems(1, sizes=(3, 4)))
    cases = (
        (TypeError, "problem 1 must be a sparse matrix of SciPy or the three arrays", petscspmv.batch, ([A], [A, 1])),
        (ValueError, "problem 0 has the shape (2, 3)", petscspmv.batch, ([A], [A[:2]])),
        (ValueError, "problem 0: offsets end with 2, but there are 1 columns and 1 values", petscspmv.batch, ([A], [([0, 2], [0], [1.0])])),
        (ValueError, "problem 0: offsets must begin with 0", petscspmv.batch, ([A], [([1, 2], [0, 0], [1.0, 1.0])])),
        (TypeError, "problem 0: columns must be integers, not float64", petscspmv.batch, ([A], [([0, 1], [0.0], [1.0])])),
        (TypeError, "object", petscspmv.batch, ([A], [([0, 1], [0], [None])])),
        (PETSc.Error, "Problem 0, row 0: column 5 is not within the problem", petscspmv.batch, ([A], [([0, 1], [5], [1.0])])),
        (PETSc.Error, "columns must ascend", petscspmv.batch, ([A], [([0, 2, 2], [1, 0], [1.0, 1.0])])),
        (ValueError, "each problem: offsets decrease", petscspmv.batch_from_arrays, ([0, 1], [0], [[1.0]]), ([0, 2, 1], [0], [[1.0]])),
        (ValueError, "give either sizes", petscspmv.batch_from_arrays, ([0, 1], [0], [[1.0]]), ([0, 1], [0], [1.0])),
        (ValueError, "the sizes add up to 2 rows", petscspmv.batch_from_arrays, ([0, 1], [0], [[1.0]]), ([0, 1], [0], [1.0], [2])),
    )
    for kind, text, function, *arguments in cases:
        good, bad = ([a] for a in arguments[0]) if function is petscspmv.batch else arguments
        last = RANK == SIZE - 1
        raises(kind if last else RuntimeError, text if last else "", function, *(bad if last else good))
    if INT(0).itemsize == 4:
        raises(OverflowError, "problem 0: columns do not fit in a PetscInt of 32 bits", petscspmv.batch, [([0, 1], [2**40], [1.0])])
    if SCALAR(0).dtype.kind != "c":
        raises(TypeError, "problem 0: values are complex128, and PetscScalar is float64", petscspmv.batch, [([0, 1], [0], [1j])])


def batch_communicators():
    A = next(random_problems(1))
    B = petscspmv.batch([A], comm=PETSc.COMM_SELF)
    assert B.getComm().size == 1  # the communicator is B's
    try:
        from mpi4py import MPI
    except ImportError:
        return
    B = petscspmv.batch([A], comm=MPI.COMM_WORLD)
    assert B.getComm().size == SIZE
    check_product(B, [A])


def batch_solve():
    problems = list(random_problems(20))
    B = petscspmv.batch(problems)
    x, b = B.createVecs()
    b.set(1)
    ksp = PETSc.KSP().create()
    ksp.setOperators(B)
    ksp.setType("preonly")
    ksp.getPC().setType("vpbjacobi")
    ksp.solve(b, x)
    begin = 0
    for A in problems:
        end = begin + A.shape[0]
        assert np.allclose(A @ x.array[begin:end], 1, atol=1e-4)
        begin = end


def no_leak():
    """The matrix is freed with the last reference."""
    import gc

    import scipy.sparse as sp

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    A = sp.csr_matrix(np.ones((200, 200)))

    def some():
        for _ in range(20):
            petscspmv.batch([A] * 10).destroy()
            B = petscspmv.batch([A] * 10)
            assert B.refcount == 1
            del B
            PETSc.garbage_cleanup() if hasattr(PETSc, "garbage_cleanup") else None
        gc.collect()

    some()
    before = resident()
    some()
    # each batch has 400000 entries, 4.8 MB
    assert resident() - before < 40e6, resident() - before


def arrays():
    """Assembly from coordinates on the host, and arrays that say that they are on a GPU where PETSc has none; gpu.py tests the others."""
    A = PETSc.Mat().create()
    A.setSizes((4 * SIZE, 4 * SIZE))
    A.setType("sellp")
    i = np.repeat(np.arange(4 * RANK, 4 * RANK + 4), 2)
    petscspmv.set_preallocation_coo(A, i.astype(INT), i.astype(INT))
    petscspmv.set_values_coo(A, np.full(8, 1.5, SCALAR))
    petscspmv.set_values_coo(A, np.full(8, 0.5, SCALAR), PETSc.InsertMode.ADD)
    values = np.arange(4, dtype=SCALAR)
    x, y = petscspmv.vector(values), A.createVecLeft()
    A.mult(x, y)
    assert np.array_equal(y.array, 4 * values)
    if hasattr(petscspmv._load.get(), "PetscGetCurrentCUDAStream"):
        return

    class Device:
        __cuda_array_interface__ = {"shape": (4,), "typestr": values.dtype.str, "data": (4096, False), "version": 3}

    raises(TypeError, "for a PETSc without CUDA", petscspmv.vector, Device())
    raises(TypeError, "for a PETSc without CUDA", petscspmv.set_values_coo, A, Device())
    raises(TypeError, "for a PETSc without CUDA", petscspmv.array, x)


def without_scipy():
    sys.modules["scipy"] = sys.modules["scipy.sparse"] = None  # importing them fails
    B = petscspmv.batch([([0, 1, 2], [0, 1], [1.0, 2.0]), ([0, 1], [0], [3.0])])
    x, y = B.createVecs()
    x.set(1)
    B.mult(x, y)
    assert y.array.tolist() == [1, 2, 3]
    assert petscspmv.problem_arrays(B, 1)[2].tolist() == [3]
    raises(ImportError, "petscspmv.problem() needs SciPy", petscspmv.problem, B, 0)


def widths():
    """ctypes reads the structures with the widths of this PETSc, and the header is there."""
    from pathlib import Path

    assert petscspmv._matrix.ctypes.sizeof(petscspmv._matrix.petsc_int()) == INT(0).itemsize
    assert Path(petscspmv.library).is_file() and (Path(petscspmv.get_include()) / "petscspmv.h").is_file()
    assert (Path(petscspmv.__file__).parent / "py.typed").is_file()
    names = [getattr(petscspmv.Type, name) for name in vars(petscspmv.Type) if name.isupper()]
    header = (Path(petscspmv.get_include()) / "petscspmv.h").read_text()
    assert len(names) == 9 and all(f'"{name}"' in header for name in names)


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # without MPI_Finalize(), which would wait for the other ranks: mpiexec ends them
    print("done")
