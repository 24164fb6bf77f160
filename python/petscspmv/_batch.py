"""The type batch: the block-diagonal matrix of many small problems."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _load
from ._device import host_indices as _indices
from ._device import host_scalars as _scalars
from ._device import scalars
from ._matrix import handle, petsc_int, read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike
    from petsc4py.PETSc import KSP, Comm, Mat
    from scipy.sparse import csr_array

    CSR = tuple[np.ndarray, np.ndarray, np.ndarray]  # offsets, columns, values

ALL = -1  #: for `set_values`: all problems
COPY_VALUES = 0  # PetscCopyMode


class BatchInfo(NamedTuple):
    """The problems of a batch on the calling process."""

    problems: int
    smallest: int  #: rows of the smallest problem; 0 if there is none
    largest: int  #: rows of the largest problem
    nonzeros: int  #: entries of all problems


class SolveInfo(NamedTuple):
    """How the problems of this process ended, as arrays with an entry for each."""

    iterations: np.ndarray
    norms: np.ndarray  #: of the residuals
    reasons: np.ndarray  #: as `KSP.getConvergedReason`: negative if the problem was not solved


class _BatchInfo(ctypes.Structure):  # MatBatchInfo
    _fields_ = [*((name, petsc_int()) for name in BatchInfo._fields[:3]), ("nonzeros", ctypes.c_int64)]


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _check_lengths(offsets: np.ndarray, columns: np.ndarray, entries: int, what: str) -> None:
    """What the library cannot see: that the arrays are as long as the offsets say. It checks the rest."""
    if not offsets.size or offsets[0]:
        raise ValueError(f"{what}: offsets must begin with 0 and end with the number of entries")
    if not columns.size == entries == offsets[-1]:
        raise ValueError(f"{what}: offsets end with {offsets[-1]}, but there are {columns.size} columns and {entries} values")
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{what}: offsets decrease")


def _as_csr(problem: Any, p: int) -> CSR:
    """One problem as arrays, from a matrix of SciPy or from three arrays. The matrix stays as it is."""
    what = f"problem {p}"
    if hasattr(problem, "tocsr"):
        if len(problem.shape) != 2 or problem.shape[0] != problem.shape[1]:
            raise ValueError(f"{what} has the shape {problem.shape}: the problems of a batch are square")
        csr = problem.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()  # sorts the columns, too
        problem = csr.indptr, csr.indices[: csr.nnz], csr.data[: csr.nnz]  # the arrays may be longer
    if not isinstance(problem, (tuple, list)) or len(problem) != 3:
        raise TypeError(f"{what} must be a sparse matrix of SciPy or the three arrays (offsets, columns, values), not {type(problem).__name__}")
    offsets, columns = _indices(problem[0], f"{what}: offsets"), _indices(problem[1], f"{what}: columns")
    values = _scalars(problem[2], f"{what}: values")
    _check_lengths(offsets, columns, values.size, what)
    return offsets, columns, values.ravel()


# ---------------------------------------------------------------------------------------------------------------------
# Creation


class _Arguments(NamedTuple):
    """The arguments of MatCreateBatch() on this process."""

    problems: int
    sizes: np.ndarray
    offsets: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shared: bool  # the offsets and columns are those of one problem


def _raise_everywhere(comm: Any, error: Exception | None) -> None:
    """Collective: raises the error of this process, or a RuntimeError if another process has one, so that no process is left waiting."""
    from petsc4py import PETSc

    failed = PETSc.Vec().createMPI((1, PETSc.DETERMINE), comm=comm)
    try:
        failed.set(0)
        if error:
            failed.setValue(failed.owner_range[0], 1)
        failed.assemble()
        process, any_failed = failed.max()
    finally:
        failed.destroy()
    if error:
        raise error
    if any_failed:
        raise RuntimeError(f"the problems of process {process} are invalid: its exception says why")


def _create(comm: Comm | None, prepare: Callable[[], _Arguments]) -> Mat:
    """Creates a batch of the arguments that `prepare` returns. All processes return, or all raise."""
    from petsc4py import PETSc

    given, error = None, None
    try:
        given = prepare()
    except Exception as raised:
        error = raised
    _raise_everywhere(comm, error)
    assert given is not None
    empty = PETSc.Mat().create(comm=comm)  # takes the communicators of petsc4py and of mpi4py
    try:
        # an MPI_Comm is a pointer or an int; either is passed in a register
        mpi_comm, mat = ctypes.c_void_p(0), ctypes.c_void_p(0)
        _load.call("PetscObjectGetComm", handle(empty), ctypes.byref(mpi_comm))
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in (given.sizes, given.offsets, given.columns, given.values)]
        sharing, mode = ctypes.c_int(given.shared), ctypes.c_int(COPY_VALUES)
        _load.call("MatCreateBatch", mpi_comm, petsc_int()(given.problems), *arrays, sharing, mode, ctypes.byref(mat))
    finally:
        empty.destroy()
    A: Mat = _load.petsc4py_function("PyPetscMat_New", ctypes.py_object, ctypes.c_void_p)(mat)
    _load.call("MatDestroy", ctypes.byref(mat))  # petsc4py has a reference of its own
    return A


def _prepare_problems(problems: Sequence[Any]) -> _Arguments:
    import numpy as np
    from petsc4py import PETSc

    given = [_as_csr(problem, p) for p, problem in enumerate(problems)]
    sizes = np.array([offsets.size - 1 for offsets, _, _ in given], dtype=PETSc.IntType)
    shifts = np.cumsum([0] + [columns.size for _, columns, _ in given], dtype=np.int64)
    offsets = np.concatenate([[0]] + [problem[0][1:].astype(np.int64) + shift for problem, shift in zip(given, shifts)])
    columns = np.concatenate([np.empty(0, PETSc.IntType)] + [problem[1] for problem in given])
    values = np.concatenate([np.empty(0, PETSc.ScalarType)] + [problem[2] for problem in given])
    return _Arguments(len(given), sizes, _indices(offsets.astype(np.int64), "offsets of all problems"), columns, values, False)


def batch(problems: Sequence[Any], comm: Comm | None = None) -> Mat:
    """Create the block-diagonal matrix of many small square problems. Collective.

    Parameters
    ----------
    problems
        The problems of this process, in order: sparse matrices of SciPy, or tuples ``(offsets, columns, values)`` of CSR arrays (with columns that ascend in each
        row). May be empty. All arrays are copied.
    comm
        The communicator, by default that of petsc4py. Each process owns the rows of its own problems.

    Returns
    -------
    petsc4py.PETSc.Mat
        The assembled matrix, of type ``batch`` (``A.getType()`` is ``seqaijbatch`` or ``mpiaijbatch``). Its vectors hold those of the problems, one after the other.

    Raises
    ------
    TypeError, ValueError, OverflowError, petsc4py.PETSc.Error
        If the problems of a process are invalid. All other processes raise a `RuntimeError`, of which `petsc4py.PETSc.Error` is a kind.
    """
    return _create(comm, lambda: _prepare_problems(problems))


def _prepare_arrays(offsets: ArrayLike, columns: ArrayLike, values: ArrayLike, sizes: ArrayLike | None) -> _Arguments:
    import numpy as np
    from petsc4py import PETSc

    i, j, v = _indices(offsets, "offsets"), _indices(columns, "columns"), _scalars(values, "values")
    if v.ndim not in (1, 2):
        raise ValueError(f"values must be an array of one or two dimensions, not of {v.ndim}")
    if (sizes is not None) == (v.ndim == 2):
        raise ValueError("give either sizes or values of two dimensions (one row for each problem)")
    if sizes is not None:
        n = _indices(sizes, "sizes")
        if not n.size and not i.size:
            i = np.zeros(1, PETSc.IntType)
        _check_lengths(i, j, v.size, "the batch")
        if n.sum(dtype=np.int64) != i.size - 1:
            raise ValueError(f"the sizes add up to {n.sum(dtype=np.int64)} rows, and the offsets are those of {i.size - 1}")
        return _Arguments(n.size, n, i, j, v, False)
    _check_lengths(i, j, v.shape[1], "each problem")
    return _Arguments(v.shape[0], np.array([i.size - 1], PETSc.IntType), i, j, v, True)


def batch_from_arrays(offsets: ArrayLike, columns: ArrayLike, values: ArrayLike, sizes: ArrayLike | None = None, comm: Comm | None = None) -> Mat:
    """Create a batch from arrays in CSR. Collective; all arrays are copied.

    The pattern of all problems, `offsets` and `columns`, with `values[problem, entry]`; or the arrays of all problems, one after the other, with `sizes`.

    Parameters
    ----------
    offsets
        Offset of each row in `columns`, and at the end the number of entries; continues from problem to problem.
    columns
        Column indices, which start from 0 in each problem and ascend in each row.
    values
        The values.
    sizes
        The number of rows of each problem on this process.
    comm
        The communicator, by default that of petsc4py.

    Returns
    -------
    petsc4py.PETSc.Mat
        The assembled matrix, of type ``batch``.

    Raises
    ------
    TypeError, ValueError, OverflowError, petsc4py.PETSc.Error
        If the arrays of a process are invalid. All other processes raise a `RuntimeError`, of which `petsc4py.PETSc.Error` is a kind.
    """
    return _create(comm, lambda: _prepare_arrays(offsets, columns, values, sizes))


# ---------------------------------------------------------------------------------------------------------------------
# Access


def _view(address: ctypes.c_void_p, begin: int, end: int, kind: Any) -> np.ndarray:
    import numpy as np

    dtype = np.dtype(kind)
    if begin == end:
        return np.empty(0, dtype)
    return np.frombuffer((ctypes.c_char * ((end - begin) * dtype.itemsize)).from_address(address.value + begin * dtype.itemsize), dtype)


def _arrays(A: Mat, p: int) -> CSR:
    """The arrays of a problem, which belong to the matrix; the first offset need not be 0."""
    from petsc4py import PETSc

    n = petsc_int()(0)
    offsets, columns, values = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _load.call("MatBatchGetProblem", handle(A), petsc_int()(p), ctypes.byref(n), ctypes.byref(offsets), ctypes.byref(columns), ctypes.byref(values))

    i = _view(offsets, 0, n.value + 1, PETSc.IntType)
    return i, _view(columns, int(i[0]), int(i[-1]), PETSc.IntType), _view(values, int(i[0]), int(i[-1]), PETSc.ScalarType)


def set_values(A: Mat, problem: int, values: ArrayLike) -> None:
    """Replace the values of one problem, or of all; the pattern stays the same. Logically collective with `ALL`, otherwise not collective.

    Parameters
    ----------
    A
        A matrix of type ``batch``.
    problem
        Number of the problem on this process, from 0, or `petscspmv.ALL`.
    values
        The values of the problem, row by row; with `ALL` those of all problems of this process, one after the other. They are copied, on the GPU if the array and the matrix are there.

    Notes
    -----
    If only some processes change single problems and the set-up of a preconditioner is collective (PCASM, for example), all of them must call ``A.assemble()``.
    """
    mat, given = handle(A), scalars(values, "values")
    expected = batch_info(A).nonzeros if problem == ALL else _arrays(A, problem)[1].size
    if given.size != expected:
        raise ValueError(f"there are {given.size} values for {expected} entries")
    _load.call("MatBatchSetValues", mat, petsc_int()(problem), ctypes.c_void_p(given.address))
    given.used()


def problem_arrays(A: Mat, problem: int) -> CSR:
    """Return a copy of one problem of this process as the arrays offsets, columns and values. Not collective.

    Parameters
    ----------
    A
        A matrix of type ``batch``.
    problem
        Number of the problem on this process, from 0.
    """
    offsets, columns, values = _arrays(A, problem)
    return offsets - offsets[0], columns.copy(), values.copy()


def problem(A: Mat, problem: int) -> csr_array:
    """Return a copy of one problem of this process as a matrix of SciPy. Not collective.

    Parameters
    ----------
    A
        A matrix of type ``batch``.
    problem
        Number of the problem on this process, from 0.
    """
    try:
        from scipy.sparse import csr_array
    except ImportError:
        raise ImportError("petscspmv.problem() needs SciPy; petscspmv.problem_arrays() does not") from None
    offsets, columns, values = problem_arrays(A, problem)
    return csr_array((values, columns, offsets), shape=(offsets.size - 1, offsets.size - 1))


def batch_info(A: Mat) -> BatchInfo:
    """Return the number, the sizes and the entries of the problems of this process. Not collective.

    Parameters
    ----------
    A
        A matrix of type ``batch``.
    """
    return BatchInfo(**read("MatBatchGetInfo", _BatchInfo, A))


def solve_info(ksp: KSP) -> SolveInfo:
    """Return how each problem of this process ended in the last solve with ``devicebatch``. Not collective.

    Parameters
    ----------
    ksp
        A solver of type ``devicebatch``.
    """
    from petsc4py import PETSc

    n, arrays = petsc_int()(0), [ctypes.c_void_p() for _ in SolveInfo._fields]
    _load.call("KSPDeviceBatchGetSolveInfo", handle(ksp, "KSP"), ctypes.byref(n), *map(ctypes.byref, arrays))
    return SolveInfo(*(_view(a, 0, n.value, kind).copy() for a, kind in zip(arrays, (PETSc.IntType, PETSc.RealType, "i4"))))
