"""Building the package, by hatchling (without pip, so that nothing is downloaded)."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import petscspmv
import pytest

pytest.importorskip("hatchling")
PETSC = petscspmv._load.built_for
ENV = {"PETSC_DIR": PETSC["petsc_dir"], "PETSC_ARCH": PETSC["petsc_arch"], "OPT": "-O0"}


def hatchling(*arguments, cwd, fails=False, env=None):
    """Builds; OPT=-O0 compiles in a third of the time."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PETSC_DIR", "PETSC_ARCH", "PYTHONPATH")} | (ENV if env is None else env)
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", *arguments], cwd=cwd, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert bool(done.returncode) == fails, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def sdist(tmp_path_factory):
    from conftest import ROOT

    folder = tmp_path_factory.mktemp("sdist")
    hatchling("-t", "sdist", "-d", str(folder), cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture
def source(sdist, tmp_path):
    """A folder with the unpacked sdist."""
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(tmp_path)
    (folder,) = tmp_path.glob("petscspmv-*")
    return folder


def test_sdist(sdist, root):
    with tarfile.open(sdist) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames()}
    wanted = ["makefile", "packaging/rules.mk", "pyproject.toml", "LICENSE", "README.md", "include/petscspmv.h", "tools/mpiexec", "python/hatch_build.py", "python/petscspmv/_load.py"]
    wanted += [str(path.relative_to(root)) for path in (root / "src").rglob("*.*") if path.is_file()]
    assert not set(wanted) - names
    top = {name.split("/")[0] for name in names}
    assert top <= {"include", "src", "tools", "python", "docs", "makefile", "packaging", "pyproject.toml", "PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", ".gitignore"}, top
    assert not [name for name in names if "__pycache__" in name or name.endswith((".so", ".o", "_build.py")) and not name.endswith("hatch_build.py")]


def test_wheel_and_editable(source, tmp_path, python):
    """From scratch, from what the sdist holds. The source tree gets nothing but build/, and what Python keeps of the hook."""
    before = {path.relative_to(source) for path in source.rglob("*")}
    out = tmp_path / "out"
    hatchling("-t", "wheel", "-d", str(out), cwd=source)
    (wheel,) = out.glob("*.whl")
    assert wheel.name.startswith(f"petscspmv-{petscspmv.__version__}-py3-none-linux_")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {"petscspmv/libpetscspmv.so", "petscspmv/include/petscspmv.h", "petscspmv/_build.py", "petscspmv/py.typed"} <= set(names)
        assert not [name for name in names if not name.startswith("petscspmv")], names
        record = archive.read("petscspmv/_build.py").decode()
        archive.extractall(tmp_path / "installed")
    values = {}
    exec(record, values)
    assert values["petsc"] == PETSC and values["version"] == petscspmv.__version__
    after = {path.relative_to(source) for path in source.rglob("*")}
    assert {path.parts[0] for path in after - before if "__pycache__" not in path.parts} <= {"build"}, sorted(after - before)[:9]
    code = "import petscspmv\nfrom petsc4py import PETSc\nA = PETSc.Mat().create(); A.setSizes((2, 2)); A.setType('sellp'); print(A.getType(), petscspmv.__file__)"
    out = python("-c", code, env={"PYTHONPATH": str(tmp_path / "installed")})
    assert "seqaijsellp" in out and str(tmp_path / "installed") in out
    # editable: the record is in the environment, the library in build/
    hatchling("-t", "wheel:editable", "-d", str(tmp_path / "editable"), cwd=source)
    (wheel,) = (tmp_path / "editable").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    env = {"PYTHONPATH": f"{tmp_path / 'site'}:{source / 'python'}"}
    assert python("-m", "petscspmv", env=env).startswith(f"-dll_append {source}/build/")
    out = python("-c", code, env=env)
    assert "seqaijsellp" in out and str(source) in out


def refused(source, text, **env):
    out = hatchling("-t", "wheel", cwd=source, fails=True, env={**ENV, **env})
    assert re.search(text, out, re.S) and "Traceback" not in out, out


def test_no_petsc(source, tmp_path):
    refused(source, f"petscspmv: PETSC_DIR={tmp_path} PETSC_ARCH=none .from the environment. has no headers of PETSc", PETSC_DIR=str(tmp_path), PETSC_ARCH="none")


@pytest.fixture
def bare_python(tmp_path, monkeypatch):
    """The hook asks a Python without installed packages."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for name in "PETSC_DIR", "PETSC_ARCH", "PYTHONPATH":
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hook(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "python"))
    import hatch_build

    return hatch_build


def test_no_petsc_at_all(hook, bare_python):
    with pytest.raises(hook.Refused, match="no PETSc was found: .* has neither petsc4py nor petsc, and PETSC_DIR is not set"):
        hook.choose_petsc()


def test_package_petsc(hook, bare_python, tmp_path, monkeypatch):
    """PyPI's petsc, where there is no petsc4py."""
    (tmp_path / "petsc.py").write_text("def get_config(): return {'PETSC_DIR': '/somewhere'}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert hook.choose_petsc() == ("petsc", "/somewhere", "")


def test_petsc_dir_is_first(hook, bare_python, monkeypatch):
    monkeypatch.setenv("PETSC_DIR", "/some/petsc")
    monkeypatch.setenv("PETSC_ARCH", "arch")
    assert hook.choose_petsc() == ("PETSC_DIR", "/some/petsc", "arch")


def test_petsc4py(hook, monkeypatch, tmp_path):
    """The PETSc of petsc4py, also where pip has the build see other packages, by a PYTHONPATH of its own."""
    import petsc4py

    if "PETSC_DIR" in os.environ:
        pytest.skip("PETSC_DIR chooses this petsc4py")
    folders = {name: tmp_path / name for name in ("pip-build-env-1", "mine")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "petsc4py.py").write_text("def get_config(): return {'PETSC_DIR': '/somewhere'}\n")
    own = petsc4py.get_config()["PETSC_DIR"]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert hook.choose_petsc()[:2] == ("petsc4py", own)
    monkeypatch.setenv("PYTHONPATH", str(folders["pip-build-env-1"]))
    assert hook.choose_petsc()[:2] == ("petsc4py", own)
    monkeypatch.setenv("PYTHONPATH", str(folders["mine"]))
    assert hook.choose_petsc()[:2] == ("petsc4py", "/somewhere")


def test_no_compiler(source, tmp_path):
    """A machine with make, but without the compiler of PETSc."""
    for tool in ("make", "sh", "bash"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    refused(source, "the C compiler of the PETSc in", PATH=str(tmp_path))


def test_no_make(source, tmp_path):
    refused(source, "petscspmv: make was not found", PATH=str(tmp_path))


def test_make_fails(source):
    with open(source / "include/petscspmv.h", "a") as header:
        header.write("#error broken on purpose\n")
    refused(source, r"petscspmv: the library could not be built for the PETSc in .*broken on purpose")
