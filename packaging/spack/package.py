# The Spack recipe of PetscSpMV (Spack 1.0 and later). Run with Spack 1.2.0.dev0 and its packages of July 2026, with PETSc, MPI and compilers as externals:
# installed for PETSc 3.18.5 and for 3.26.1 (~fortran), on Debian 12; +cuda was concretized, not installed.
#
#   spack repo create ~/spack-petscspmv petscspmv            # a repository of your own; then copy this file to its folder, as
#   spack repo add ~/spack-petscspmv/spack_repo/petscspmv    # ~/spack-petscspmv/spack_repo/petscspmv/packages/petscspmv/package.py
#   cd <folder of petscspmv-1.0.0.tar.gz>                    # from `make dist`
#   spack install --no-checksum petscspmv
import os

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Petscspmv(MakefilePackage, CudaPackage):
    """Matrix types for PETSc whose matrix-vector products are faster than AIJ's: SELL-P, EVC-HYB and batches of small problems."""

    manual_download = True
    url = f"file://{os.getcwd()}/petscspmv-1.0.0.tar.gz"

    license("BSD-2-Clause")

    version("1.0.0")

    variant("fortran", default=True, description="The Fortran module")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("gmake", type="build")

    depends_on("mpi")
    depends_on("petsc@3.18:3.26 +shared +mpi")
    depends_on("petsc+fortran", when="+fortran")
    # Without CUDA, or with an earlier PETSc, the types compute on the host
    depends_on("petsc~cuda", when="~cuda")
    depends_on("petsc@3.26 +cuda", when="+cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"petsc+cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
        if arch.isdigit() and int(arch) < 80:
            conflicts(f"cuda_arch={arch}", when="+cuda", msg="the kernels need compute capability 8.0 or later")

    def arguments(self):
        args = [f"PETSC_DIR={self.spec['petsc'].prefix}", "PETSC_ARCH=", f"prefix={self.prefix}"]
        if self.spec.satisfies("~fortran"):
            args.append("FC=")
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append("CUDA_ARCHS=" + " ".join(self.spec.variants["cuda_arch"].value))
        return args

    def build(self, spec, prefix):
        make("lib", *self.arguments())

    def install(self, spec, prefix):
        make("install", *self.arguments())
