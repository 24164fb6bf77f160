"""Importing the package: before and after PETSc is initialized, with a wrong PETSc, without petsc4py."""

import shutil
import sys
from pathlib import Path

import petscspmv
import pytest
from conftest import ProgramError

CHECK = """
from petsc4py import PETSc
A = PETSc.Mat().create(); A.setSizes((6, 6)); A.setType("sellp"); A.setUp(); A.assemble()
assert A.getType().endswith("aijsellp"), A.getType()
assert petscspmv.format(A) == "sellp"
assert PETSc.Mat().create().setType("batch") is None
print("works")
"""
PACKAGE = Path(petscspmv.__file__).parent


def works(python, code, *arguments, ranks=1, **options):
    out = python("-c", code + CHECK, *arguments, ranks=ranks, **options)
    assert out.count("works") == ranks and "Warning" not in out, out
    return out


@pytest.mark.parametrize("ranks", [1, 2])
def test_before_init(python, ranks):
    """Programs initialize PETSc as before, and their options are read."""
    code = "import sys, petscspmv, petsc4py; petsc4py.init(sys.argv)\nfrom petsc4py import PETSc; print(PETSc.Options().getInt('n', 0))"
    out = works(python, code, "-n", "17", "-options_left", ranks=ranks)
    assert "17" in out and "Option left: name:-dll_prepend" not in out


@pytest.mark.parametrize("ranks", [1, 2])
def test_after_init(python, ranks):
    works(python, "import sys, petsc4py; petsc4py.init(sys.argv)\nfrom petsc4py import PETSc\nimport petscspmv", ranks=ranks)


def test_initializes_nothing(python):
    code = """
import os, sys
before = dict(os.environ)
import petscspmv
assert "petsc4py.PETSc" not in sys.modules and not petscspmv._load.initialized()
assert dict(os.environ) == before  # programs that this one starts get no option
"""
    works(python, code)


def test_petsc4py_initializes_as_ever(python):
    """Without petsc4py.init(), the first import of petsc4py.PETSc initializes."""
    works(python, "import petscspmv\nassert not petscspmv._load.initialized()\nfrom petsc4py import PETSc\nassert PETSc.Sys.isInitialized()")


def test_types_without_functions(python):
    """Nothing but the import: the types are among the options' choices."""
    out = python("-c", "import petscspmv\nfrom petsc4py import PETSc\nA = PETSc.Mat().create(); A.setSizes((2, 2)); A.setType('evchyb'); print(A.getType())")
    assert "seqaijevchyb" in out


def test_program_with_such_arguments(python):
    """Arguments of a program that look like `python -m petscspmv`."""
    works(python, "import petscspmv", "-m", "petscspmv")


def test_several_imports(python):
    works(python, "import petscspmv, importlib; importlib.reload(petscspmv); petscspmv.register()\nfrom petsc4py import PETSc\nimportlib.reload(petscspmv); petscspmv.register(); petscspmv.register()")


def test_with_dll_append(python):
    """The same library by the package and by -dll_append, in any order; another one by -dll_append."""
    works(python, "import sys, petscspmv, petsc4py; petsc4py.init(sys.argv)", "-dll_append", petscspmv.library)
    works(python, "import petscspmv", env={"PETSC_OPTIONS": f"-dll_append {petscspmv.library}"})
    works(python, "from petsc4py import PETSc\nimport petscspmv", env={"PETSC_OPTIONS": f"-dll_append {petscspmv.library}"})


def test_with_another_library(python, tmp_path, command):
    """A -dll_append of the user is loaded as well."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "other.c").write_text('#include <stdio.h>\nint PetscDLLibraryRegister_other(void) { puts("other loaded"); fflush(stdout); return 0; }\n')
    command(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libother.so", tmp_path / "other.c"])
    out = works(python, "import sys, petscspmv, petsc4py; petsc4py.init(sys.argv)", "-dll_append", str(tmp_path / "libother.so"))
    assert "other loaded" in out


def test_finalize(python):
    """An error-free end, by petsc4py at the exit or by the program before it."""
    out = works(python, "import atexit; atexit.register(lambda: print('end'))\nimport petscspmv")
    assert out.rstrip().endswith("end")
    code = CHECK + "\nA.destroy(); PETSc._finalize(); print('finalized'); assert not petscspmv._load.initialized()"
    assert "finalized" in python("-c", "import petscspmv\n" + code)


def need(python, name, code):
    """Skips where the package is missing, or is for another PETSc."""
    try:
        python("-c", code)
    except ProgramError as error:
        pytest.skip(f"{name} does not work here: {str(error).splitlines()[-1]}")


def test_slepc4py(python):
    need(python, "slepc4py", "import slepc4py; slepc4py.init()\nfrom slepc4py import SLEPc")
    code = "import sys, petscspmv, slepc4py; slepc4py.init(sys.argv)\nfrom slepc4py import SLEPc"
    check = """
import numpy as np
A = PETSc.Mat().createAIJ((50, 50), nnz=1)
for i in range(*A.getOwnershipRange()): A[i, i] = i + 1
A.assemble(); A.convert("sellp")
E = SLEPc.EPS().create(); E.setOperators(A); E.setProblemType(SLEPc.EPS.ProblemType.HEP); E.solve()
assert E.getConverged() > 0 and abs(E.getEigenvalue(0) - 50) < 1e-4
print("eigenvalue")
"""
    for first in (code, "import sys, slepc4py; slepc4py.init(sys.argv)\nfrom slepc4py import SLEPc\nimport petscspmv"):
        assert "eigenvalue" in python("-c", first + CHECK + check)


DOLFINX = """
import petsc4py, ufl
from mpi4py import MPI
from dolfinx import fem, mesh
assert petscspmv
domain = mesh.create_unit_square(MPI.COMM_WORLD, 8, 8)
V = fem.FunctionSpace(domain, ("Lagrange", 1))
u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
A = fem.petsc.create_matrix(fem.form(ufl.inner(u, v) * ufl.dx))
fem.petsc.assemble_matrix(A, fem.form(ufl.inner(u, v) * ufl.dx)); A.assemble()
A.convert("sellp")
x, y = A.createVecs(); x.set(1); A.mult(x, y)
assert abs(y.sum() - 1) < 1e-8 and petscspmv.format(A) == "sellp"
print("assembled")
"""


@pytest.mark.parametrize("first", ["import petscspmv", "import dolfinx, petscspmv"])
def test_dolfinx(python, first):
    need(python, "DOLFINx 0.5", "import dolfinx; assert dolfinx.__version__.startswith('0.5.'), dolfinx.__version__")
    assert "assembled" in python("-c", first + DOLFINX)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused. A copy of the package with another record is used as one that was built for another PETSc


@pytest.fixture
def copy(tmp_path):
    def make(old="", new=""):
        shutil.copytree(PACKAGE, tmp_path / "petscspmv", dirs_exist_ok=True)
        record = tmp_path / "petscspmv/_build.py"
        text = record.read_text()
        assert old in text, text
        record.write_text(text.replace(old, new))
        return {"PYTHONPATH": str(tmp_path)}

    return make


def refused(python, env, text, code="import petscspmv"):
    out = python("-c", code, env=env, fails=True)
    assert "ImportError" in out and text in out.splitlines()[-1], out


RECORD = petscspmv._load.built_for
OTHER = {
    "version": (f"'{RECORD['version']}'", "'3.17.1'", "was built for PETSc 3.17.1 ("),
    "release": (f"'release': {RECORD['release']}", f"'release': {not RECORD['release']}", "(development)"),
    "scalar": (f"'scalar': '{RECORD['scalar']}'", f"'scalar': '{ {'real': 'complex', 'complex': 'real'}[RECORD['scalar']] }'", f"and petsc4py uses PETSc {RECORD['version']} ({RECORD['scalar']}"),
    "precision": ("'double'", "'single'", "single"),
    "index size": (f"'index_bits': {RECORD['index_bits']}", f"'index_bits': {96 - RECORD['index_bits']}", f"{96 - RECORD['index_bits']}-bit indices"),
    "debug": (f"'debug': {RECORD['debug']}", f"'debug': {not RECORD['debug']}", "optimized" if RECORD["debug"] else "debug"),
}


@pytest.mark.parametrize("first", ["", "from petsc4py import PETSc; "], ids=["before", "after"])
@pytest.mark.parametrize("what", OTHER)
def test_wrong_petsc(python, copy, what, first):
    old, new, text = OTHER[what]
    env = copy(old, new)
    refused(python, env, text, first + "import petscspmv")
    refused(python, env, "install petscspmv again", first + "import petscspmv")


def test_other_release_of_the_same_version(python, copy):
    """Releases that differ in the last number fit together."""
    version = RECORD["version"]
    works(python, "import petscspmv", env=copy(f"'{version}'", f"'{version.rsplit('.', 1)[0]}.99'"))


def test_threadsafe(python, copy):
    """A thread-safe debug PETSc does not show that it is one."""
    works(python, "import petscspmv", env=copy(f"'debug': {RECORD['debug']}, 'threadsafe': False", "'debug': True, 'threadsafe': True"))


def test_two_petscs(python, copy, tmp_path, command):
    """A library that uses another PETSc than petsc4py, of the same kind."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    env = copy()
    (tmp_path / "two.c").write_text("void PetscInitialize(void) {}\n")
    command(["gcc", "-shared", "-fPIC", "-o", tmp_path / "petscspmv/libpetscspmv.so", tmp_path / "two.c"])
    refused(python, env, "and petsc4py uses another one")


def test_broken_library(python, copy, tmp_path):
    env = copy()
    (tmp_path / "petscspmv/libpetscspmv.so").write_bytes(b"")
    refused(python, env, "petscspmv cannot load its library")


def test_comma_in_path(python, tmp_path):
    folder = tmp_path / "a,b"
    shutil.copytree(PACKAGE, folder / "petscspmv")
    env = {"PYTHONPATH": str(folder)}
    refused(python, env, "whose path has a comma")
    works(python, "from petsc4py import PETSc\nimport petscspmv", env=env)


def test_from_the_sources(python, root):
    refused(python, {"PYTHONPATH": str(root / "python")}, "no library was built", "import sys; sys.modules['_petscspmv_build'] = None\nimport petscspmv")


def test_without_petsc4py(python):
    out = python("-c", "import sys; sys.modules['petsc4py'] = None\nimport petscspmv", fails=True)
    assert "petscspmv needs petsc4py" in out.splitlines()[-1], out


def test_option(python, copy, tmp_path):
    """python -m petscspmv, also where there is no petsc4py (-S: no installed package), and with a wrong PETSc."""
    assert python("-m", "petscspmv") == f"-dll_append {petscspmv.library}\n"
    env = copy(*OTHER["version"][:2])
    assert python("-S", "-m", "petscspmv", env=env) == f"-dll_append {tmp_path}/petscspmv/libpetscspmv.so\n"
    assert python("-mpetscspmv", env=env) == f"-dll_append {tmp_path}/petscspmv/libpetscspmv.so\n"
    out = python("-S", "-m", "petscspmv", "--info", env=env)
    assert f"PetscSpMV {petscspmv.__version__}" in out and "built for PETSc 3.17.1" in out and f"PETSC_DIR={RECORD['petsc_dir']}" in out


def test_option_loads(python):
    """What it prints is what PETSc takes, in a program that does not import the package."""
    option = python("-m", "petscspmv").strip()
    code = "import sys, petsc4py; petsc4py.init(sys.argv)\nfrom petsc4py import PETSc\nA = PETSc.Mat().create(); A.setSizes((2, 2)); A.setType('sellp'); print(A.getType())"
    assert "seqaijsellp" in python("-c", code, *option.split())


def test_doctor(python):
    """tests/doctor.py has the set-ups that it must see through."""
    program = "import sys, petsc4py; petsc4py.init(sys.argv)\nfrom petsc4py import PETSc"
    assert "NO TYPE" in python("-m", "petscspmv", "--doctor", sys.executable, "-c", program, "-dll_append", petscspmv.library, fails=True)


def test_header(python, command, tmp_path):
    """C code that calls the library is linked with it, and finds it where the package is imported first."""
    include, petsc = petscspmv.get_include(), Path(RECORD["petsc_dir"])
    if not shutil.which("mpicc") or not (petsc / "include/petscmat.h").is_file():
        pytest.skip("needs mpicc and PETSc's headers")
    (tmp_path / "use.c").write_text("#include <petscspmv.h>\nint use(void *A) { const char *name; return PetscSpMVGetFormat((Mat)A, &name) || !name ? 1 : 0; }\n")
    arch = [f"-I{petsc / RECORD['petsc_arch'] / 'include'}"] if RECORD["petsc_arch"] else []
    command(["mpicc", "-shared", "-fPIC", f"-I{include}", *arch, f"-I{petsc / 'include'}", "-o", tmp_path / "libuse.so", tmp_path / "use.c", petscspmv.library, "-Wl,--allow-shlib-undefined"])
    code = "import petscspmv" + CHECK + f"import ctypes\nassert ctypes.CDLL('{tmp_path}/libuse.so').use(ctypes.c_void_p(A.handle)) == 0\nprint('called')"
    assert "called" in python("-c", code)
