/*
  The type devicecg: PETSc's conjugate gradient method, KSPCG, with its iterations on the device.
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

   Advanced Options Database Keys:
+  -ksp_device_ahead <4>    - number of iterations that the host starts before it knows whether an earlier one was the last
.  -ksp_device_fuse <true>  - let the kernels of the products also compute inner products if they can
-  -ksp_device_early <true> - launch each kernel before the previous one has ended (compute capability 9.0 and later)

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
   The product's kernel computes no inner product then; a kernel more does that.

   The norm of a vector is the square root of the sum of squares, without scaling: a residual with entries above 1e154
   has the norm Inf.

.seealso: `KSPCG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPCGSetType()`
M*/
PetscErrorCode KSPCreate_DeviceCG(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPCG, KSPDeviceCUDA.cg);
}
