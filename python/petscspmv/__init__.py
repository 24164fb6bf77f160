"""Faster sparse matrix-vector products for petsc4py.

Importing the package registers the matrix types ``sellp``, ``evchyb`` and ``batch`` with PETSc, before or after petsc4py initializes it. Import it on all
processes. Then choose a type as any other: ``A.setType("sellp")``, ``A.convert("evchyb")``, ``-mat_type sellp``.
"""

from __future__ import annotations

import sys as _sys

from ._batch import ALL, BatchInfo, SolveInfo, batch, batch_from_arrays, batch_info, problem, problem_arrays, set_values, solve_info
from ._device import DeviceArray, array, set_preallocation_coo, set_values_coo, vector
from ._load import include as _include
from ._load import library, register
from ._load import version as __version__
from ._matrix import Info, Type, format, info

__all__ = [
    "ALL",
    "BatchInfo",
    "DeviceArray",
    "Info",
    "SolveInfo",
    "Type",
    "array",
    "batch",
    "batch_from_arrays",
    "batch_info",
    "format",
    "get_include",
    "info",
    "library",
    "problem",
    "problem_arrays",
    "register",
    "set_preallocation_coo",
    "set_values",
    "set_values_coo",
    "solve_info",
    "vector",
]


def get_include() -> str:
    """Return the folder of ``petscspmv.h``, for C code that calls the library."""
    return _include


def _is_program() -> bool:
    """Whether this is ``python -m petscspmv``, which needs no petsc4py."""
    words = _sys.orig_argv
    # the first argument is "-m" until the module is found
    return getattr(_sys, "argv", [])[:1] == ["-m"] and any(word == "-mpetscspmv" or words[i : i + 2] == ["-m", "petscspmv"] for i, word in enumerate(words))


if not _is_program():
    register()
