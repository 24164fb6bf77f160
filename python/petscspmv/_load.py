"""Finding, checking and loading the library. Nothing here initializes PETSc."""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def _find_build() -> ModuleType:
    """Return the module that the build wrote: in the package, or next to it for an editable installation."""
    for name in f"{__package__}._build", "_petscspmv_build":
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    raise ImportError("petscspmv is imported from its sources, where no library was built: run `pip install .` in the folder of its pyproject.toml")


_build = _find_build()
version: str = _build.version
built_for: dict[str, Any] = _build.petsc
library: str = getattr(_build, "library", str(Path(__file__).parent / "libpetscspmv.so"))
include: str = getattr(_build, "include", str(Path(__file__).parent / "include"))

_library: ctypes.PyDLL | None = None


def describe(petsc: dict[str, Any]) -> str:
    """One kind of PETSc in words."""
    kind = f"{petsc['scalar']}, {petsc['precision']}, {petsc['index_bits']}-bit indices, {'debug' if petsc['debug'] else 'optimized'}"
    return f"PETSc {petsc['version']}{'' if petsc['release'] else ' (development)'} ({kind})"


def _petsc4py() -> ctypes.PyDLL:
    """petsc4py's extension module as a library, through which the functions of its PETSc are found."""
    try:
        import petsc4py.lib
    except ImportError as error:
        raise ImportError(f"petscspmv needs petsc4py, which this Python cannot import ({error}): install petsc4py for the PETSc in {built_for['petsc_dir']}") from None
    module = sys.modules.get("petsc4py.PETSc")
    path = getattr(module, "__file__", "") or ""
    if not path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        # Importing the module would either initialize PETSc, or keep petsc4py from doing so later: it is only opened
        folder = os.path.join(*petsc4py.lib.getPathArchPETSc())
        spec = importlib.machinery.PathFinder.find_spec("petsc4py.PETSc", [folder])
        path = spec.origin if spec and spec.origin else os.path.join(folder, "PETSc.so")
    try:
        # PyDLL keeps Python's lock: PETSc is not thread-safe, and petsc4py keeps it, too
        return ctypes.PyDLL(path)
    except OSError as error:
        raise ImportError(f"petscspmv cannot open petsc4py's PETSc: {error}") from None


def _running(petsc: ctypes.PyDLL) -> dict[str, Any]:
    """The kind of PETSc that petsc4py runs with, from functions that may be called before PetscInitialize()."""
    parts = [ctypes.c_int64(0) for _ in range(4)]  # PetscInt, of either width
    petsc.PetscGetVersionNumber(*map(ctypes.byref, parts))

    def data_type(name: bytes) -> tuple[int, int]:
        kind, found, size = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_size_t(0)
        petsc.PetscDataTypeFromString(name, ctypes.byref(kind), ctypes.byref(found))
        petsc.PetscDataTypeGetSize(kind, ctypes.byref(size))
        return kind.value, size.value

    real, scalar = data_type(b"real"), data_type(b"scalar")
    return {
        "version": ".".join(str(part.value) for part in parts[:3]),
        "release": bool(parts[3].value),
        "scalar": "real" if scalar == real else "complex",
        "precision": {2: "__fp16", 4: "single", 8: "double", 16: "__float128"}[real[1]],
        "index_bits": 8 * data_type(b"int")[1],
        # the call stack that only a debug build keeps, unless it is thread-safe
        "debug": built_for["debug"] if built_for["threadsafe"] else hasattr(petsc, "petscstack"),
    }


def _check(petsc: ctypes.PyDLL) -> None:
    """Refuses a PETSc that the library was not built for."""
    running = _running(petsc)

    def kind(petsc: dict[str, Any]) -> list[Any]:
        # PETSc keeps its interface within a minor version: 3.18.1 and 3.18.5 are the same here
        return [petsc[name] if name != "version" else petsc[name].split(".")[:2] for name in running]

    if kind(running) != kind(built_for):
        raise ImportError(
            f"petscspmv was built for {describe(built_for)}, and petsc4py uses {describe(running)}: install petscspmv again with this Python, "
            "without PETSC_DIR in the environment or with the one of petsc4py"
        )


def _same_petsc(spmv: ctypes.PyDLL, petsc: ctypes.PyDLL) -> bool:
    """Whether both libraries use one PETSc, and not two of the same kind in one process."""
    address = [ctypes.cast(handle.PetscInitialize, ctypes.c_void_p).value for handle in (spmv, petsc)]
    return address[0] == address[1]


def initialized() -> bool:
    """Whether PETSc is initialized, and not finalized."""
    flag = ctypes.c_int(0)
    get().PetscInitialized(ctypes.byref(flag))
    return bool(flag.value)


def get() -> ctypes.PyDLL:
    """The library, loaded and checked once. The functions of PETSc are found through it, too."""
    global _library
    if _library is None:
        petsc = _petsc4py()
        try:
            _check(petsc)
        except AttributeError as error:
            raise ImportError(f"petscspmv needs a petsc4py that uses a shared library of PETSc: {error}") from None
        try:
            spmv = ctypes.PyDLL(library)
        except OSError as error:
            raise ImportError(f"petscspmv cannot load its library: {error}; if PETSc was moved or replaced, install petscspmv again") from None
        if not _same_petsc(spmv, petsc):
            raise ImportError(f"petscspmv was built for the PETSc in {built_for['petsc_dir']}, and petsc4py uses another one: install petscspmv again with this Python")
        _library = spmv
    return _library


def petsc4py_function(name: str, result: type | None, argument: type) -> Any:
    """A function of petsc4py's interface for C, with one argument."""
    from petsc4py import PETSc

    capsule = PETSc.__pyx_capi__[name]
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return ctypes.PYFUNCTYPE(result, argument)(get_pointer(capsule, get_name(capsule)))


def call(name: str, *args: object) -> None:
    """Calls a function that returns a PetscErrorCode, and raises petsc4py's exception, which has the text of the error."""
    code = getattr(get(), name)(*args)
    if code:
        petsc4py_function("PyPetscError_Set", ctypes.c_int, ctypes.c_int)(code)  # raises PETSc.Error


def register() -> None:
    """Register the matrix types with PETSc.

    ``import petscspmv`` does this. If PETSc is not initialized yet, `PetscInitialize` will load the library. Call it again only if PETSc was finalized and is
    initialized again.

    Raises
    ------
    ImportError
        If petsc4py is missing or uses another PETSc than the library was built for.
    """
    if initialized():
        call("PetscSpMVInitializePackage")
    else:
        if "," in library:
            raise ImportError(f"PETSc cannot load {library}, whose path has a comma: install petscspmv elsewhere, or import it after petsc4py.init()")
        # -dll_prepend, so that a -dll_append of the user (of which only the last counts) and this do not exclude each other. Unlike PETSC_OPTIONS, PETSc's
        # own table of options is not inherited by other programs that this one starts
        call("PetscOptionsSetValue", None, b"-dll_prepend", os.fsencode(library))
