"""The build hooks of the Python package: its version, and its library, which the makefile builds for the PETSc of petsc4py."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Prints where the PETSc of a Python's petsc4py is, else that of PyPI's petsc: both packages have get_config()
ASK = """
for name in ("petsc4py", "petsc"):
    try:
        print([name, __import__(name).get_config()])
        break
    except ImportError:
        pass
"""


class Refused(Exception):
    """The library cannot be built; the message says why."""


def numbers(header, prefix):
    """The three parts of a version that a header defines, as a text."""
    text = Path(header).read_text()
    return ".".join(re.search(rf"#define\s+{prefix}_VERSION_{part}\s+(\d+)", text)[1] for part in ("MAJOR", "MINOR", "SUBMINOR"))


def installed_petsc(environ):
    """Where the PETSc is that the Python packages of an environment are for: (package, PETSC_DIR, PETSC_ARCH) or None."""
    # not in the source tree, whose folders are no packages of the environment
    asked = subprocess.run([sys.executable, "-c", ASK], env=environ, cwd="/", capture_output=True, text=True)
    if asked.returncode or not asked.stdout.strip():
        return None
    package, config = ast.literal_eval(asked.stdout.strip().splitlines()[-1])
    return package, config["PETSC_DIR"], config.get("PETSC_ARCH", "").split(os.pathsep)[0]


def choose_petsc():
    """The PETSc to build for: who chose it, PETSC_DIR, PETSC_ARCH."""
    if os.environ.get("PETSC_DIR"):
        return "PETSC_DIR", os.path.abspath(os.environ["PETSC_DIR"]), os.environ.get("PETSC_ARCH", "")
    # By these two variables pip hides the packages of its own Python from an isolated build, but not all: Debian's petsc4py is seen even where another one is before it
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    isolated = "pip-build-env-" in os.environ.get("PYTHONPATH", "")
    found = installed_petsc(outside if isolated else os.environ)
    if not found:
        raise Refused(
            f"no PETSc was found: {sys.executable} has neither petsc4py nor petsc, and PETSC_DIR is not set. Install petsc4py first, or set PETSC_DIR "
            "(tools that build in an environment of their own, such as uv and build, need PETSC_DIR or --no-build-isolation)"
        )
    return found


def describe_petsc(chosen_by, petsc_dir, petsc_arch):
    """What the library is built for; petscspmv/_load.py compares it with the PETSc that petsc4py runs with."""
    include = [Path(petsc_dir) / petsc_arch / "include", Path(petsc_dir) / "include"]
    conf = next((folder / "petscconf.h" for folder in include if (folder / "petscconf.h").is_file()), None)
    if not conf or not (include[1] / "petscversion.h").is_file():
        raise Refused(
            f"PETSC_DIR={petsc_dir} PETSC_ARCH={petsc_arch} ({'from the environment' if chosen_by == 'PETSC_DIR' else 'of ' + chosen_by}) has no headers of PETSc: "
            "name another PETSC_DIR, or install the headers (Debian: libpetsc-real-dev)"
        )
    defined = set(re.findall(r"^#define\s+(PETSC_\w+)\s+1\b", conf.read_text() + (include[1] / "petscversion.h").read_text(), re.M))
    precisions = {"PETSC_USE_REAL_SINGLE": "single", "PETSC_USE_REAL___FLOAT128": "__float128", "PETSC_USE_REAL___FP16": "__fp16"}
    return {
        "petsc_dir": str(petsc_dir),
        "petsc_arch": petsc_arch,
        "version": numbers(include[1] / "petscversion.h", "PETSC"),
        "release": "PETSC_VERSION_RELEASE" in defined,
        "scalar": "complex" if "PETSC_USE_COMPLEX" in defined else "real",
        "precision": next((name for macro, name in precisions.items() if macro in defined), "double"),
        "index_bits": 64 if "PETSC_USE_64BIT_INDICES" in defined else 32,
        "debug": "PETSC_USE_DEBUG" in defined,
        "threadsafe": "PETSC_HAVE_THREADSAFETY" in defined,
    }


def check_tools(petsc):
    """Names the missing tool, where make would only say that a command was not found."""
    if not shutil.which("make"):
        raise Refused("make was not found: install make and a C compiler")
    for folder in (Path(petsc["petsc_dir"]) / petsc["petsc_arch"], Path(petsc["petsc_dir"])):
        variables = folder / "lib/petsc/conf/petscvariables"
        if variables.is_file():
            compiler = re.search(r"^CC = (\S+)", variables.read_text(), re.M)
            if compiler and not shutil.which(compiler[1]):
                raise Refused(f"{compiler[1]}, the C compiler of the PETSc in {petsc['petsc_dir']}, was not found: install it (Debian: libopenmpi-dev and gcc)")
            return


def make_library(root, petsc):
    """Builds the library in build/, which `make` uses as well, and returns its path. lib/ is left as the latest `make` made it."""
    # a make above this one, as in `make check-python`, passes its options and variables on
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "SANITIZE", "PETSC_ARCH")}
    command = ["make", "-C", str(root), "--no-print-directory", "library", f"PETSC_DIR={petsc['petsc_dir']}"]
    command += [f"PETSC_ARCH={petsc['petsc_arch']}"] if petsc["petsc_arch"] else []
    made = subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        log = "\n".join(made.stdout.splitlines()[-30:])
        raise Refused(f"the library could not be built for the PETSc in {petsc['petsc_dir']}: `{' '.join(command)}` failed:\n{log}")
    return Path(made.stdout.splitlines()[-1]).resolve()


class LibraryHook(BuildHookInterface):
    """Adds the library, the public header, and the record of the PETSc that the library is for."""

    def initialize(self, version, build_data):
        root = Path(self.root)
        try:
            petsc = describe_petsc(*choose_petsc())
            check_tools(petsc)
            library = make_library(root, petsc)
        except Refused as refused:
            self.app.abort(f"petscspmv: {refused}")
        self.app.display_info(f"petscspmv: built for PETSc {petsc['version']} in {petsc['petsc_dir']}")
        self.folder = tempfile.TemporaryDirectory(prefix="petscspmv-")
        record = Path(self.folder.name) / "_build.py"
        text = f'"""Written when the package was built."""\n\nversion = {self.metadata.version!r}\npetsc = {petsc!r}\n'
        if version == "editable":
            # The package is imported from the source tree, and the library stays in build/, where `make` refreshes it. Each environment has a record of its own
            record.write_text(text + f"library = {str(library)!r}\ninclude = {str(root / 'include')!r}\n")
            build_data["force_include_editable"] = {str(record): "_petscspmv_build.py"}
        else:
            record.write_text(text)
            build_data["force_include"] |= {
                str(record): "petscspmv/_build.py",
                str(library): "petscspmv/libpetscspmv.so",
                str(root / "include/petscspmv.h"): "petscspmv/include/petscspmv.h",
            }
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()


class VersionHook(MetadataHookInterface):
    """The version is written once, in the public header."""

    def update(self, metadata):
        metadata["version"] = numbers(Path(self.root) / "include/petscspmv.h", "PETSCSPMV")
