/*
  The types that are made from PETSc's own, with their iterations on the device.
*/
#include "deviceksp.h"

/*MC
   KSPDEVICECG - The preconditioned conjugate gradient method, `KSPCG`, with its iterations on the GPU; no iteration
   waits for the host

   Options Database Key:
.  -ksp_type devicecg - use this type

   Intermediate Options Database Keys:
+  -ksp_cg_type <hermitian> - with complex numbers, whether the matrix is `hermitian` or `symmetric`, see `KSPCGSetType()`
.  -ksp_cg_single_reduction - PETSc's variant with one reduction, with PETSc's iterations
-  -ksp_device <true>       - iterate on the device if possible; false for PETSc's iterations

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPCG`, except for rounding
   errors, because terms are added in a different but fixed order. An iteration consists of the product and two more
   kernels if the product's kernel can also compute p'Ap, otherwise three more kernels. They need no scalar from the
   host. The default convergence test is evaluated on the GPU.

   The GPU iterations are used for matrices of type `MATSELLP` and `MATEVCHYB` on a GPU and vectors of type `VECCUDA`.
   In all other cases PETSc's `KSPCG` runs:
   for other matrices and vectors, with `KSPCGSetRadius()`, `KSPCGSetObjectiveTarget()`, `KSPCGUseSingleReduction()` or
   `KSPSetComputeEigenvalues()`, and in `KSPSolveTranspose()`. `-ksp_view` after a solve shows which of the two was
   used, and why.

   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` (blocks of up to 8 rows) are applied by the kernels. Other preconditioners, and
   all preconditioners if there is a null space, are applied by `PCApply()` between the kernels; the host then waits for
   each iteration, because `PCApply()` may launch other work.

   With a user-defined convergence test (`KSPSetConvergenceTest()`) or a monitor that may read more than the norm (all
   but `-ksp_monitor`), the host waits for each iteration.

   On several processes, sums over processes are computed through the memory of the other GPUs if the halo is exchanged
   in this way (see `-mat_spmv_halo`), by NCCL, or by MPI. With the first two the host takes no part in an iteration.
   One more kernel adds the product's partial sums then, or computes the inner product if the product's kernel does not.

   The norm of a vector is the square root of the sum of squares, without scaling: a residual with entries above 1e154
   has the norm Inf.

.seealso: `KSPCG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPCGSetType()`
M*/
PetscErrorCode KSPCreate_DeviceCG(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPCG, KSPDeviceCUDA.cg);
}

/*MC
   KSPDEVICEBCGS - The stabilized biconjugate gradient method, `KSPBCGS`, for nonsymmetric systems, with its
   iterations on the GPU; no iteration waits for the host

   Options Database Key:
.  -ksp_type devicebcgs - use this type

   Intermediate Options Database Keys:
+  -ksp_pc_side <left>  - `left` or `right`, see `KSPSetPCSide()`
-  -ksp_device <true>   - iterate on the device if possible; false for PETSc's iterations

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPBCGS`, except for rounding
   errors: terms are added in a different but fixed order, and (r, r0) is computed before r, from the vectors that r is
   computed from.

   An iteration consists of two products and four more kernels. If their kernels support it, the products also apply a
   diagonal preconditioner on the left and compute the inner products.

   The notes of `KSPDEVICECG` apply, with preconditioners on either side. PETSc's `KSPBCGS` runs in the same cases, with
   `KSPSetComputeSingularValues()`, and in `KSPSolveTranspose()`.

.seealso: `KSPBCGS`, `KSPDEVICECG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPSetPCSide()`
M*/
PetscErrorCode KSPCreate_DeviceBCGS(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPBCGS, KSPDeviceCUDA.bcgs);
}

/*MC
   KSPDEVICEGMRES - The generalized minimal residual method, `KSPGMRES`, with its iterations on the GPU

   Options Database Key:
.  -ksp_type devicegmres - use this type

   Intermediate Options Database Keys:
+  -ksp_gmres_restart <30> - number of iterations between two restarts, see `KSPGMRESSetRestart()`
.  -ksp_pc_side <left>     - `left`, `right` or `symmetric`, see `KSPSetPCSide()`
.  -ksp_device <true>      - iterate on the device if possible; false for PETSc's iterations
-  -ksp_device_orthogonalization <true> - for PETSc's `KSPGMRES` and its variants, see the notes

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPGMRES`, except for rounding
   errors and for the range of numbers: matrix entries above about 1e100 (single precision: 1e12) overflow. An iteration
   consists of the product and two kernels: one reads the basis for all inner products, the other
   for the new vector, its norm and the rotation of the Hessenberg matrix.

   The notes of `KSPDEVICECG` apply, with preconditioners on either side, and with one sum over processes an iteration.
   The GPU iterations need classical Gram-Schmidt (without refinement, or with refinement always) and up to 512
   iterations between restarts.

   The orthogonalization of PETSc's own `KSPGMRES`, `KSPFGMRES`, `KSPLGMRES` and `KSPDGMRES` also runs on the GPU, in
   two kernels with one wait for the host, if the matrix has type `MATSELLP` or `MATEVCHYB` and the vectors are on the
   GPU. `-ksp_device_orthogonalization 0` uses PETSc's.

.seealso: `KSPGMRES`, `KSPDEVICEFGMRES`, `KSPDEVICECG`, `KSPDEVICEBCGS`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`
M*/
PetscErrorCode KSPCreate_DeviceGMRES(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPGMRES, KSPDeviceCUDA.gmres);
}

/*MC
   KSPDEVICEFGMRES - The flexible generalized minimal residual method, `KSPFGMRES`, for preconditioners that change from
   iteration to iteration, with its iterations on the GPU

   Options Database Key:
.  -ksp_type devicefgmres - use this type

   Intermediate Options Database Keys:
+  -ksp_gmres_restart <30> - number of iterations between two restarts, see `KSPGMRESSetRestart()`
-  -ksp_device <true>      - iterate on the device if possible; false for PETSc's iterations

   Level: beginner

   Notes:
   It is to `KSPFGMRES` what `KSPDEVICEGMRES` is to `KSPGMRES`, whose notes apply, with the preconditioner on the right.
   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` do not change, so that with these it is `KSPDEVICEGMRES`. PETSc's `KSPFGMRES`
   also runs with `KSPFlexibleSetModifyPC()`.

.seealso: `KSPFGMRES`, `KSPDEVICEGMRES`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`
M*/
PetscErrorCode KSPCreate_DeviceFGMRES(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPFGMRES, KSPDeviceCUDA.gmres);
}

/*MC
   KSPDEVICECHEBYSHEV - The Chebyshev method, `KSPCHEBYSHEV`, with its iterations on the GPU, for the smoothers of
   `PCMG` and `PCGAMG`

   Options Database Key:
.  -mg_levels_ksp_type devicechebyshev - use this type as smoother

   Intermediate Options Database Key:
.  -ksp_device <true> - iterate on the device if possible; false for PETSc's iterations

   Level: intermediate

   Notes:
   The options are those of `KSPCHEBYSHEV`, whose set-up estimates the eigenvalues. An iteration consists of the product
   and one kernel.

   If there is a GPU, `KSPCHEBYSHEV` itself is replaced by this type, because `PCMG` and `PCGAMG` use `KSPCHEBYSHEV` for
   their smoothers, and `PCGAMG` passes its eigenvalue estimates to no other type. The type name remains chebyshev, and
   `-ksp_view` adds a line if the iterations ran on the device.

   The GPU iterations are used for matrices of type `MATSELLP` and `MATEVCHYB` on a GPU, vectors of type `VECCUDA`,
   polynomials of the first kind, no norm (`KSP_NORM_NONE`, as in smoothers), and `PCNONE`, `PCJACOBI` or `PCPBJACOBI`
   with blocks of up to 8 rows. Otherwise PETSc's iterations run, and `-ksp_view` shows why.

.seealso: `KSPCHEBYSHEV`, `KSPDEVICECG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`
M*/
PetscErrorCode KSPCreate_DeviceChebyshev(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPCHEBYSHEV, KSPDeviceCUDA.chebyshev);
}
