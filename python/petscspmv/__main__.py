"""``python -m petscspmv`` prints the option that loads the library into any PETSc program."""

from __future__ import annotations

import argparse

from . import _load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m petscspmv", description="Prints the option that loads PetscSpMV into a PETSc program.")
    parser.add_argument("--info", action="store_true", help="print the version, and the PETSc that the library was built for")
    if parser.parse_args().info:
        petsc = _load.built_for
        print(f"PetscSpMV {_load.version}\nbuilt for {_load.describe(petsc)}\nPETSC_DIR={petsc['petsc_dir']}\nPETSC_ARCH={petsc['petsc_arch']}\nlibrary {_load.library}")
    else:
        print(f"-dll_append {_load.library}")


if __name__ == "__main__":
    main()
