"""The types sellp and evchyb."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _load

if TYPE_CHECKING:
    from petsc4py.PETSc import KSP, Mat


class Type:
    """Names of the matrix types, for ``Mat.setType``, ``Mat.convert`` and ``DM.setMatType``."""

    SELLP = "sellp"
    SEQSELLP = "seqsellp"
    MPISELLP = "mpisellp"
    EVCHYB = "evchyb"
    SEQEVCHYB = "seqevchyb"
    MPIEVCHYB = "mpievchyb"
    BATCH = "batch"
    SEQBATCH = "seqbatch"
    MPIBATCH = "mpibatch"


class Info(NamedTuple):
    """What the calling process stores of a matrix of type ``sellp``, ``evchyb`` or ``batch``.

    For a parallel matrix these are sums over its diagonal and its off-diagonal block. The padding is ``(stored - formatted) / formatted``.
    """

    nonzeros: int  #: entries of the matrix
    formatted: int  #: entries of the matrix that the format stores; 0 where the product of AIJ is used
    stored: int  #: entries stored by the format, padding included
    slices: int  #: slices; with the paper's kernel of evchyb, row blocks
    long_rows: int  #: rows kept in the vector CSR part
    long_stored: int  #: entries stored in that part, padding included
    bytes: int  #: of the format's arrays, in addition to those of AIJ
    node: int  #: size of the node blocks of the diagonal block, 1 if there are none
    kernel: str  #: kernel of the diagonal block's product


def petsc_int() -> Any:
    """PetscInt as a type of ctypes."""
    return ctypes.c_int64 if _load.built_for["index_bits"] == 64 else ctypes.c_int32


def handle(A: Mat | KSP, kind: str = "Mat") -> ctypes.c_void_p:
    """The object behind a matrix, or a solver, of petsc4py."""
    from petsc4py import PETSc

    if not isinstance(A, getattr(PETSc, kind)):
        raise TypeError(f"a petsc4py.PETSc.{kind} is needed, not {type(A).__name__}")
    if not A.handle:
        raise ValueError(f"the {'matrix' if kind == 'Mat' else 'solver'} was not created yet, or was destroyed")
    return ctypes.c_void_p(A.handle)


def read(name: str, structure: type[ctypes.Structure], A: Mat) -> dict[str, Any]:
    """Calls a function that fills a structure, and returns its members."""
    result = structure()
    _load.call(name, handle(A), ctypes.byref(result))
    members = {field[0]: getattr(result, field[0]) for field in structure._fields_}
    return {key: value.decode() if isinstance(value, bytes) else value for key, value in members.items()}


class _Info(ctypes.Structure):  # PetscSpMVInfo
    _fields_ = [(name, ctypes.c_int64) for name in Info._fields[:7]] + [("node", petsc_int()), ("kernel", ctypes.c_char_p)]


def format(A: Mat) -> str | None:
    """Return the format of a matrix. Not collective.

    Parameters
    ----------
    A
        A matrix of any type.

    Returns
    -------
    str or None
        ``"sellp"``, ``"evchyb"``, ``"batch"``, or None if the matrix has another type. (``A.getType()`` is the name of a type derived from AIJ.)
    """
    name = ctypes.c_char_p()
    _load.call("PetscSpMVGetFormat", handle(A), ctypes.byref(name))
    return name.value.decode() if name.value is not None else None


def info(A: Mat) -> Info:
    """Return what the calling process stores of a matrix in its format; sets the format up if no product has done so. Not collective.

    Parameters
    ----------
    A
        An assembled matrix of type ``sellp``, ``evchyb`` or ``batch``.

    Raises
    ------
    petsc4py.PETSc.Error
        If the matrix has another type, or is not assembled.
    """
    return Info(**read("PetscSpMVGetInfo", _Info, A))
