"""``python -m petscspmv`` prints the option that loads the library into any PETSc program; with ``--doctor`` it says whether a program uses it."""

from __future__ import annotations

import argparse
import sys

from . import _load, doctor


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m petscspmv", description="Prints the option that loads PetscSpMV into a PETSc program.")
    parser.add_argument("--info", action="store_true", help="print the version, and the PETSc that the library was built for")
    parser.add_argument("--doctor", nargs=argparse.REMAINDER, metavar="COMMAND", help="run a program, and say whether it uses the library, and if not, why")
    arguments = parser.parse_args()
    if arguments.doctor is not None:
        sys.exit(doctor.main(arguments.doctor, _load.library))
    if arguments.info:
        petsc = _load.built_for
        print(f"PetscSpMV {_load.version}\nbuilt for {_load.describe(petsc)}\nPETSC_DIR={petsc['petsc_dir']}\nPETSC_ARCH={petsc['petsc_arch']}\nlibrary {_load.library}")
    else:
        print(f"-dll_append {_load.library}")


if __name__ == "__main__":
    main()
