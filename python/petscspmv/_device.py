"""Arrays on the host, and on the GPU, of CuPy, PyTorch, JAX, Numba, ..., which give access to their memory by DLPack or ``__cuda_array_interface__``."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _load
from ._load import initialized
from ._matrix import handle, petsc_int

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike
    from petsc4py.PETSc import Comm, InsertMode, Mat, Vec

CUDA, CUDA_MANAGED = 2, 13  # DLDeviceType
KINDS = "iufcb"  # numpy's letters for the codes of DLPack, see _KIND
_KIND = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode
LEGACY_STREAM = 1  # the default stream, as both protocols call it


class _Tensor(ctypes.Structure):  # DLManagedTensor, whose first member is a DLTensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_again = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_NAME = b"dltensor"

# ---------------------------------------------------------------------------------------------------------------------
# The CUDA runtime that PETSc uses


class _PointerAttributes(ctypes.Structure):  # cudaPointerAttributes
    _fields_ = [("type", ctypes.c_int), ("device", ctypes.c_int), ("on_device", ctypes.c_void_p), ("on_host", ctypes.c_void_p), ("reserved", ctypes.c_long * 8)]


def _cuda(name: str, *args: Any) -> None:
    code = getattr(_load.get(), name)(*args)
    if code:
        text = _load.get().cudaGetErrorString
        text.restype = ctypes.c_char_p
        raise RuntimeError(f"{name}() failed: {text(code).decode()}")


def _require_cuda() -> None:
    if not hasattr(_load.get(), "PetscGetCurrentCUDAStream"):
        raise TypeError("the array is on a GPU, and petscspmv was built for a PETSc without CUDA: copy the array to the host")


def _stream() -> int:
    """PETSc's stream, as both protocols number it."""
    stream = ctypes.c_void_p()
    _load.call("PetscGetCurrentCUDAStream", ctypes.byref(stream))
    return stream.value or LEGACY_STREAM


class _Event:
    """A point in a stream."""

    def __init__(self, stream: int) -> None:
        self.event, self.destroy = ctypes.c_void_p(), _load.get().cudaEventDestroy
        _cuda("cudaEventCreateWithFlags", ctypes.byref(self.event), ctypes.c_uint(2))  # without a time
        _cuda("cudaEventRecord", self.event, ctypes.c_void_p(stream))

    def happened(self) -> bool:
        if not _load.get().cudaEventQuery(self.event):
            return True
        _load.get().cudaGetLastError()  # it did not fail, but CUDA keeps this as the last error
        return False

    def __del__(self) -> None:
        if self.event:
            self.destroy(self.event)


def _order(first: int, then: int) -> None:
    """What is given to a stream from now on waits for what another stream has been given. The host does not wait."""
    if first != then:
        now = _Event(first)  # CUDA keeps what it needs of an event that is destroyed later
        _cuda("cudaStreamWaitEvent", ctypes.c_void_p(then), now.event, ctypes.c_uint(0))


# What PETSc's stream may still use: memory is used again as soon as its owner frees it
_pending: list[tuple[_Event, object]] = []


def _keep(owner: object) -> None:
    _pending[:] = [(event, kept) for event, kept in _pending if not event.happened()]
    _pending.append((_Event(_stream()), owner))


class _Kept:
    """What a vector of PETSc has as its memory: it is kept a while longer than the vector."""

    def __init__(self, owner: object) -> None:
        self.owner = owner

    def __del__(self) -> None:
        if initialized():
            _keep(self.owner)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays on the host, of the types that PETSc reads


def host_indices(array: ArrayLike, what: str) -> np.ndarray:
    import numpy as np
    from petsc4py import PETSc

    given, wanted = np.asarray(array), np.dtype(PETSc.IntType)
    if given.ndim != 1:
        raise ValueError(f"{what} must be an array of one dimension, not of {given.ndim}")
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers, not {given.dtype}")
    if given.size and not (np.iinfo(wanted).min <= int(given.min()) and int(given.max()) <= np.iinfo(wanted).max):
        raise OverflowError(f"{what} do not fit in a PetscInt of {8 * wanted.itemsize} bits")
    return np.ascontiguousarray(given, dtype=wanted)


def host_scalars(array: ArrayLike, what: str) -> np.ndarray:
    import numpy as np
    from petsc4py import PETSc

    given, wanted = np.asarray(array), np.dtype(PETSc.ScalarType)
    if given.dtype.kind not in "biufc" or (given.dtype.kind == "c" and wanted.kind != "c"):
        raise TypeError(f"{what} are {given.dtype}, and PetscScalar is {wanted}")
    return np.ascontiguousarray(given, dtype=wanted)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays that come in


class Given(NamedTuple):
    """An array that PETSc may read: on the host, or on the GPU in PETSc's stream."""

    address: int
    shape: tuple[int, ...]
    owner: object
    on_device: bool = False
    stream: int | None = None  #: the owner's stream, where it is known

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def used(self) -> None:
        """PETSc's stream has been given all that reads the array: it must be kept until then, and the owner's stream may write to it afterwards."""
        if self.on_device:
            _keep(self.owner)
        if self.stream is not None:
            _order(_stream(), self.stream)


def is_on_device(array: object) -> bool:
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)
    return hasattr(array, "__cuda_array_interface__")


def _stream_of(array: Any) -> int | None:
    """The stream in which the owner of an array works now, if it says so: DLPack does not."""
    torch = sys.modules.get("torch")
    if torch and isinstance(array, torch.Tensor):
        return torch.cuda.current_stream(array.device).cuda_stream or LEGACY_STREAM
    return getattr(array, "__cuda_array_interface__", {}).get("stream")


def _from_dlpack(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, str, int, int | None, object]:
    capsule = array.__dlpack__(stream=_stream())  # the owner makes PETSc's stream wait for the array
    tensor = _Tensor.from_address(_get_pointer(capsule, _NAME))
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    kind = _KIND.get(tensor.code, "?") if tensor.lanes == 1 else "?"
    # the capsule is not consumed: it calls the owner's deleter when it is freed
    return (tensor.data or 0) + tensor.byte_offset, shape, strides, kind, tensor.bits // 8, _stream_of(array), (capsule, array)


def _from_interface(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, str, int, int | None, object]:
    interface = array.__cuda_array_interface__
    kind, size, stream = interface["typestr"][1], int(interface["typestr"][2:]), interface.get("stream")
    if interface["typestr"][0] == ">" or interface.get("mask") is not None:
        kind = "?"
    strides = interface.get("strides")
    if strides is not None:
        strides = tuple(s // size if s % size == 0 else -1 for s in strides)
    if interface.get("version", 0) < 3:  # from before the stream was part of it: the default stream
        stream = LEGACY_STREAM
    if stream is not None:
        _order(stream, _stream())
    return interface["data"][0] or 0, tuple(interface["shape"]), strides, kind, size, stream, array


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    expected = 1
    for n, stride in zip(reversed(shape), reversed(strides or ())):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True


def take(array: Any, dtype: DTypeLike, what: str) -> Given:
    """The array on the GPU as it is. Nothing is converted, as that would need a copy."""
    import numpy as np

    _require_cuda()
    wanted = np.dtype(dtype)
    address, shape, strides, kind, size, stream, owner = (_from_dlpack if hasattr(array, "__dlpack__") else _from_interface)(array)
    if (kind, size) != (wanted.kind, wanted.itemsize):
        given = f"{np.dtype(f'{kind}{size}')}" if kind in KINDS and kind != "b" else "of another type"
        raise TypeError(f"{what} are {given}, and PETSc's are {wanted}: convert the array on the GPU")
    if math.prod(shape) and not _is_contiguous(shape, strides):
        raise ValueError(f"{what} are not contiguous: strides {strides} for the shape {shape}")
    if math.prod(shape):
        attributes, device = _PointerAttributes(), ctypes.c_int()
        _cuda("cudaPointerGetAttributes", ctypes.byref(attributes), ctypes.c_void_p(address))
        _cuda("cudaGetDevice", ctypes.byref(device))
        if attributes.type not in (2, 3):
            raise ValueError(f"{what} say that they are on a GPU, and are not")
        if attributes.type == 2 and attributes.device != device.value:
            raise ValueError(f"{what} are on GPU {attributes.device}, and PETSc uses GPU {device.value} on this process")
    return Given(address, shape, owner, True, stream)


def indices(array: Any, what: str) -> Given:
    """The array on the GPU, or a copy of one on the host, to which PETSc may write."""
    from petsc4py import PETSc

    if is_on_device(array):
        return take(array, PETSc.IntType, what)
    host = host_indices(array, what).copy()
    return Given(host.ctypes.data, host.shape, host)


def scalars(array: Any, what: str) -> Given:
    """The array on the GPU, or one on the host."""
    from petsc4py import PETSc

    if is_on_device(array):
        return take(array, PETSc.ScalarType, what)
    host = host_scalars(array, what)
    return Given(host.ctypes.data, host.shape, host)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays that go out

_exported: dict[int, tuple[Any, ...]] = {}  # by the address of the tensor


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(tensor: int) -> None:
    _exported.pop(tensor, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _delete_capsule(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody has taken the tensor
        _exported.pop(_get_again(capsule, _NAME), None)


class DeviceArray:
    """Memory of PETSc on the GPU, of one dimension, for ``torch.from_dlpack()``, ``cupy.from_dlpack()``, ``jax.dlpack.from_dlpack()``, ``cupy.asarray()``, ...

    Nothing is copied: the array has the values of the vector or matrix, and is valid until PETSc moves them (to the host, or to a new pattern). The vector or
    matrix exists as long as the array.
    """

    def __init__(self, address: int, size: int, owner: object) -> None:
        import numpy as np
        from petsc4py import PETSc

        self._address, self._owner, self.shape, self.dtype = address, owner, (size,), np.dtype(PETSc.ScalarType)
        device = ctypes.c_int()
        _cuda("cudaGetDevice", ctypes.byref(device))
        self._device = device.value

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self._address, False), "strides": None, "version": 3, "stream": _stream()}

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._device

    def __dlpack__(self, stream: int | None = None, copy: bool | None = None, **_: Any) -> object:
        if copy:
            raise BufferError("petscspmv does not copy arrays: copy the result")
        if stream != -1:
            _order(_stream(), stream or LEGACY_STREAM)
        shape, strides = (ctypes.c_int64 * 1)(self.shape[0]), (ctypes.c_int64 * 1)(1)
        code = {"f": 2, "c": 5}[self.dtype.kind]
        tensor = _Tensor(self._address, CUDA, self._device, 1, code, 8 * self.dtype.itemsize, 1, shape, strides, 0, None, ctypes.cast(_delete, ctypes.c_void_p))
        address = ctypes.addressof(tensor)
        _exported[address] = tensor, shape, strides, self._owner
        return _new_capsule(address, _NAME, ctypes.cast(_delete_capsule, ctypes.c_void_p))


def array(source: Vec | Mat) -> DeviceArray:
    """Return this process's part of a vector, or the values of a matrix, on the GPU. Nothing is copied if the newest values are there. Not collective.

    Parameters
    ----------
    source
        A vector on the GPU, or a sequential matrix of one of the types: its values in the order of CSR. Of a parallel matrix, ``A.getDiagonalBlock()`` is sequential.

    Notes
    -----
    The values count as changed. After later writes through the array, call ``source.stateIncrease()``.
    """
    from petsc4py import PETSc

    _require_cuda()
    address, size = ctypes.c_void_p(), petsc_int()()
    if isinstance(source, PETSc.Vec):
        if "cuda" not in source.getType():
            raise TypeError(f"the vector is of type {source.getType()}: only those of type cuda are on the GPU")
        object_ = ctypes.c_void_p(source.handle)
        size.value = source.getLocalSize()
        get, restore = "VecCUDAGetArray", "VecCUDARestoreArray"
    else:
        object_ = handle(source)
        if source.getType() != "seqaijcusparse":
            raise TypeError(f"the matrix is of type {source.getType()}: only the values of sequential matrices are one array on the GPU")
        size.value = int(source.getInfo(PETSc.Mat.InfoType.LOCAL)["nz_used"])
        get, restore = "MatSeqAIJCUSPARSEGetArray", "MatSeqAIJCUSPARSERestoreArray"
    _load.call(get, object_, ctypes.byref(address))
    result = DeviceArray(address.value or 0, size.value, source)
    _load.call(restore, object_, ctypes.byref(address))
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Assembly and vectors


def set_preallocation_coo(A: Mat, i: Any, j: Any) -> None:
    """Give the coordinates of the entries of a matrix, from arrays on the host or on the GPU. Collective.

    Parameters
    ----------
    A
        A matrix whose sizes and type are set.
    i, j
        Rows and columns, of the type PetscInt. Entries with negative indices are ignored.
    """
    rows, columns = indices(i, "the rows"), indices(j, "the columns")
    if rows.size != columns.size:
        raise ValueError(f"there are {rows.size} rows and {columns.size} columns")
    if rows.on_device != columns.on_device:
        raise ValueError("the rows are on a GPU and the columns are not, or the other way round")
    _load.call("MatSetPreallocationCOO", handle(A), ctypes.c_int64(rows.size), ctypes.c_void_p(rows.address), ctypes.c_void_p(columns.address))
    A.setAttr("__petscspmv_coo__", rows.size)
    rows.used()
    columns.used()


def set_values_coo(A: Mat, values: Any, addv: InsertMode | bool | None = None) -> None:
    """Set the values of the entries whose coordinates were given by `set_preallocation_coo`, from an array on the host or on the GPU. Collective.

    Parameters
    ----------
    A
        The matrix.
    values
        The values, of the type PetscScalar, one for each coordinate; those with the same coordinates are added up.
    addv
        ``True`` or ``PETSc.InsertMode.ADD`` adds them to the values that the matrix has.
    """
    from petsc4py import PETSc

    given, expected = scalars(values, "the values"), A.getAttr("__petscspmv_coo__")
    if expected is not None and given.size != expected:
        raise ValueError(f"there are {given.size} values for {expected} coordinates")
    add = addv is True or addv == PETSc.InsertMode.ADD
    _load.call("MatSetValuesCOO", handle(A), ctypes.c_void_p(given.address), ctypes.c_int(int(PETSc.InsertMode.ADD if add else PETSc.InsertMode.INSERT)))
    given.used()


def vector(array: Any, comm: Comm | None = None) -> Vec:
    """Create a vector whose values on this process are those of an array, on the host or on the GPU. Nothing is copied. Collective.

    Parameters
    ----------
    array
        An array of the type PetscScalar.
    comm
        The communicator, by default that of petsc4py.

    Notes
    -----
    The vector uses the array's memory as long as it exists. `petscspmv.array` returns it again, in order with PETSc's work.
    """
    from petsc4py import PETSc

    if not is_on_device(array):
        return PETSc.Vec().createWithArray(array, comm=comm)
    given = take(array, PETSc.ScalarType, "the values")
    x = PETSc.Vec().createCUDAWithArrays(cudahandle=given.address, size=(given.size, PETSc.DETERMINE), comm=comm)
    x.setAttr("__array__", _Kept(given.owner))
    return x
