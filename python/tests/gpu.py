"""Arrays on a GPU: gpu.py runs alone, on a machine with a GPU, with petsc4py, petscspmv, and those of CuPy, PyTorch, JAX and Numba that are installed."""

import importlib
import json
import os
import sys
import tempfile

import numpy as np
import petscspmv
from petsc4py import PETSc

INT, SCALAR = PETSc.IntType, PETSc.ScalarType
N = 60000


def load(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
cupy, torch, jax = load("cupy"), load("torch"), load("jax")
cuda = load("numba.cuda")
if jax:
    jax.config.update("jax_enable_x64", True)
TO_DEVICE = {
    "cupy": cupy and cupy.asarray,
    "torch": torch and (lambda a: torch.from_numpy(a.copy()).cuda()),
    "jax": jax and jax.device_put,
    "numba": cuda and cuda.to_device,
}
TO_DEVICE = {name: f for name, f in TO_DEVICE.items() if f}


def raises(kind, text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {str(error)!r}"
    else:
        raise AssertionError(f"{function.__name__} raised nothing, where '{text}' was expected")


def coordinates(seed=0):
    """A tridiagonal matrix whose entries come twice and in no order, with some that are ignored; its values, and its product with a vector"""
    random = np.random.default_rng(seed)
    k = np.arange(N)
    i, j = np.concatenate([k, k[1:], k[:-1]]), np.concatenate([k, k[:-1], k[1:]])
    order = random.permutation(np.tile(np.arange(i.size), 2))
    i, j = i[order], j[order]
    v = np.where(i == j, 2.1, -0.5) + 0.1 * random.random(i.size)
    i[::97] *= -1
    keep = i >= 0
    x = random.random(N).astype(SCALAR)
    y = np.zeros(N, SCALAR)
    np.add.at(y, i[keep], v[keep] * x[j[keep]])
    return i.astype(INT), j.astype(INT), v.astype(SCALAR), x, y


def matrix(kind="sellp"):
    A = PETSc.Mat().create(PETSc.COMM_SELF)
    A.setSizes((N, N))
    A.setType(kind)
    return A


def host(x):
    return x.getArray(readonly=True).copy()


def assembly():
    for name, device in TO_DEVICE.items():
        i, j, v, x, y = coordinates()
        A = matrix()
        petscspmv.set_preallocation_coo(A, device(i), device(j))
        petscspmv.set_values_coo(A, device(v))
        given = device(x)
        X, Y = petscspmv.vector(given, comm=PETSc.COMM_SELF), A.createVecLeft()
        assert X.getType() == "seqcuda"
        A.mult(X, Y)
        assert np.allclose(host(Y), y), name
        petscspmv.set_values_coo(A, device(2 * v), PETSc.InsertMode.ADD)
        A.mult(X, Y)
        assert np.allclose(host(Y), 3 * y), name
        X.destroy()
        print(f"  {name}: {petscspmv.format(A)}, {petscspmv.info(A).kernel}")
    i, j, v, x, y = coordinates()  # the host's arrays, by the same functions
    A = matrix()
    petscspmv.set_preallocation_coo(A, i, j)
    petscspmv.set_values_coo(A, v)
    Y = A.createVecLeft()
    A.mult(petscspmv.vector(x, comm=PETSc.COMM_SELF), Y)
    assert np.allclose(host(Y), y)


def errors():
    i, j, v, x, y = coordinates()
    for name, device in TO_DEVICE.items():
        A = matrix()
        wrong = device(i.astype(np.int64 if INT == np.int32 else np.int32))
        raises(TypeError, "the rows are int", petscspmv.set_preallocation_coo, A, wrong, device(j))
        raises(ValueError, "columns", petscspmv.set_preallocation_coo, A, device(i), device(j[:-1].copy()))
        petscspmv.set_preallocation_coo(A, device(i), device(j))
        raises(TypeError, "the values are float32", petscspmv.set_values_coo, A, device(v.real.astype(np.float32)))
        raises(ValueError, "values for", petscspmv.set_values_coo, A, device(v[:-1].copy()))
        raises(TypeError, "the values are int", petscspmv.vector, device(i), PETSc.COMM_SELF)
        if name != "jax":  # whose slices are copies
            raises(ValueError, "not contiguous", petscspmv.set_values_coo, A, device(np.tile(v, 2))[::2])

    class Liar:
        """Says that an array of the host is on a GPU"""

        __cuda_array_interface__ = {"shape": v.shape, "typestr": v.dtype.str, "data": (v.ctypes.data, False), "version": 3, "stream": None}

    raises(ValueError, "and are not", petscspmv.vector, Liar(), PETSc.COMM_SELF)
    raises(TypeError, "of type seq:", petscspmv.array, PETSc.Vec().createSeq(3))


def streams():
    """What a stream of the program has not finished is waited for, and what is written afterwards does not change what was read."""
    i, j, v, x, y = coordinates()
    A = matrix()
    petscspmv.set_preallocation_coo(A, i, j)
    petscspmv.set_values_coo(A, np.zeros(v.size, SCALAR))
    X, Y = petscspmv.vector(torch.from_numpy(x).cuda(), comm=PETSc.COMM_SELF), A.createVecLeft()
    A.mult(X, Y)
    right = torch.from_numpy(v).cuda()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()  # does not wait for the default stream
    with torch.cuda.stream(side):
        given = torch.zeros_like(right)
        torch.cuda._sleep(100_000_000)
        given.copy_(right)
        petscspmv.set_values_coo(A, given)
        given.zero_()
        A.mult(X, Y)
        result = torch.from_dlpack(petscspmv.array(Y)).clone()  # in this stream
    side.synchronize()
    assert np.allclose(result.cpu().numpy(), y)
    if cupy:
        with cupy.cuda.Stream(non_blocking=True) as stream:
            given = cupy.zeros(v.size, SCALAR)
            with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
                torch.cuda._sleep(100_000_000)
            given[:] = 3 * cupy.from_dlpack(right)
            petscspmv.set_values_coo(A, given)
            given[:] = 0
            A.mult(X, Y)
            result = cupy.asarray(petscspmv.array(Y)).copy()
            stream.synchronize()
        assert np.allclose(result.get(), 3 * y)
    # memory that is freed while PETSc's stream has yet to read it
    torch.cuda._sleep(100_000_000)
    with torch.cuda.stream(side):
        petscspmv.set_values_coo(A, 2 * right)
        other = torch.zeros_like(right)
    A.mult(X, Y)
    assert np.allclose(host(Y), 2 * y) and not other.any()


def out():
    i, j, v, x, y = coordinates()
    A = matrix()
    petscspmv.set_preallocation_coo(A, i, j)
    petscspmv.set_values_coo(A, v)
    X, Y = petscspmv.vector(torch.from_numpy(x).cuda(), comm=PETSc.COMM_SELF), A.createVecLeft()
    A.mult(X, Y)
    values = torch.from_dlpack(petscspmv.array(A))
    assert values.is_cuda and values.numel() == int(A.getInfo()["nz_used"])
    assert values.data_ptr() == petscspmv.array(A).__cuda_array_interface__["data"][0]  # no copy
    values *= 2
    A.stateIncrease()
    A.mult(X, Y)
    t = torch.from_dlpack(petscspmv.array(Y))
    assert np.allclose(t.cpu().numpy(), 2 * y)
    Y.destroy()
    t += 1  # the memory is still there
    assert np.allclose(t.cpu().numpy(), 2 * y + 1)
    for name, view in (("cupy", cupy and cupy.from_dlpack), ("jax", jax and jax.dlpack.from_dlpack), ("numba", cuda and cuda.as_cuda_array)):
        if view:
            got = view(petscspmv.array(X))
            got = got.get() if name == "cupy" else got.copy_to_host() if name == "numba" else np.asarray(got)
            assert np.array_equal(got, x), name
    raises(BufferError, "does not copy", petscspmv.array(X).__dlpack__, copy=True)


def batches():
    random = np.random.default_rng(1)
    offsets, columns = [0, 2, 5, 7], [0, 1, 0, 1, 2, 1, 2]
    for name, device in TO_DEVICE.items():
        for shared in True, False:
            values = random.random((40, 7)).astype(SCALAR)
            if shared:
                A = petscspmv.batch_from_arrays(offsets, columns, values, comm=PETSc.COMM_SELF)
            else:
                all_offsets = np.concatenate([[0]] + [7 * p + np.array(offsets[1:]) for p in range(40)])
                A = petscspmv.batch_from_arrays(all_offsets, np.tile(columns, 40), values.ravel(), sizes=[3] * 40, comm=PETSc.COMM_SELF)
            x, y = A.createVecs()
            x.set(1)
            for multiplied in range(2):
                new = random.random((40, 7)).astype(SCALAR)
                petscspmv.set_values(A, petscspmv.ALL, device(new))
                A.mult(x, y)
                assert np.allclose(host(y).reshape(40, 3), np.add.reduceat(new, offsets[:3], axis=1)), (name, shared)
                new[17] = random.random(7)
                petscspmv.set_values(A, 17, device(new[17].copy()))
                A.mult(x, y)
                assert np.allclose(host(y).reshape(40, 3), np.add.reduceat(new, offsets[:3], axis=1)), (name, shared)
            raises(ValueError, "values for 7 entries", petscspmv.set_values, A, 0, device(np.ones(6, SCALAR)))
            A.bindToCPU(True)
            raises(PETSc.Error, "", petscspmv.set_values, A, 0, device(np.ones(7, SCALAR)))


def copies():
    """From new values to the solution: the trace has no copy to the host of more than a few scalars."""
    i, j, v, x, y = coordinates()
    A = matrix()
    petscspmv.set_preallocation_coo(A, torch.from_numpy(i).cuda(), torch.from_numpy(j).cuda())
    b, values = torch.from_numpy(y).cuda(), torch.from_numpy(v).cuda()
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(A)
    ksp.setType("devicebcgs")
    ksp.getPC().setType("none")  # PCJACOBI looks for zeros on the host
    ksp.setTolerances(rtol=1e-10)

    def solve(scale):
        petscspmv.set_values_coo(A, values * scale)
        X = A.createVecRight()
        ksp.solve(petscspmv.vector(b, comm=PETSc.COMM_SELF), X)
        return torch.from_dlpack(petscspmv.array(X))

    solve(1.0)
    torch.cuda.synchronize()
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        result = solve(1.0)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace.export_chrome_trace(f"{folder}/trace.json")
        with open(f"{folder}/trace.json") as file:
            events = [e for e in json.load(file)["traceEvents"] if e.get("cat") in ("gpu_memcpy", "kernel")]
    copied = {}
    for e in events:
        if e["cat"] == "gpu_memcpy":
            copied.setdefault(e["name"], []).append(e["args"].get("bytes", 0))
    kernels = sum(e["cat"] == "kernel" for e in events)
    print(f"  {ksp.getIterationNumber()} iterations, {kernels} kernels,", ", ".join(f"{name}: {len(b)} of at most {max(b)} bytes" for name, b in copied.items()) or "no copies")
    assert kernels > 5
    for name, sizes in copied.items():
        if "DtoH" in name or "HtoD" in name:
            assert max(sizes) <= 1024, (name, max(sizes))
    check = A.createVecLeft()
    A.mult(petscspmv.vector(result, comm=PETSc.COMM_SELF), check)
    assert np.allclose(host(check), y, rtol=1e-6)


PROGRAMS = [assembly, errors, batches] + ([streams, out, copies] if torch else [])

if __name__ == "__main__":
    failed = 0
    print("arrays of", ", ".join(TO_DEVICE))
    for program in PROGRAMS:
        if len(sys.argv) > 1 and program.__name__ not in sys.argv[1:]:
            continue
        try:
            program()
            print("passed", program.__name__)
        except Exception:
            import traceback

            failed += 1
            print("FAILED", program.__name__)
            traceback.print_exc(limit=4, file=sys.stdout)
    print(f"{len(PROGRAMS) - failed} passed, {failed} failed")
    sys.exit(bool(failed))
