/*
  The type devicebcgs: PETSc's stabilized biconjugate gradient method, KSPBCGS, with its iterations on the device.
*/
#include "deviceksp.h"

/*MC
   KSPDEVICEBCGS - The stabilized biconjugate gradient method, `KSPBCGS`, for nonsymmetric systems, with its
   iterations on the GPU; no iteration waits for the host

   Options Database Key:
.  -ksp_type devicebcgs - use this type

   Intermediate Options Database Keys:
+  -ksp_pc_side <left> - `left` or `right`, see `KSPSetPCSide()`
-  -ksp_device*        - the options of every level, see `KSPDEVICECG`

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPBCGS`, except for rounding
   errors: terms are added in a different but fixed order, and (r, r0) is computed before r, from the vectors that r is
   computed from.

   An iteration consists of two products and four more kernels. If their kernels support it, the products also apply a
   diagonal preconditioner on the left and compute the inner products. No scalar from the host is needed.

   The GPU iterations are used for matrices of type `MATSELLP` and `MATEVCHYB` on a GPU and vectors of type `VECCUDA`.
   In all other cases PETSc's `KSPBCGS` runs: for other matrices and vectors, with `KSPSetComputeSingularValues()`, and
   in `KSPSolveTranspose()`. `-ksp_view` after a solve shows which of the two was used, and why.

   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` (blocks of up to 8 rows) are applied by the kernels, on either side. Other
   preconditioners, and all preconditioners if there is a null space, are applied by `PCApplyBAorAB()` between the
   kernels; the host then waits for each iteration. The notes of `KSPDEVICECG` on the host, several processes and norms
   also apply to this type.

.seealso: `KSPBCGS`, `KSPDEVICECG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPSetPCSide()`
M*/
PetscErrorCode KSPCreate_DeviceBCGS(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPBCGS, KSPDeviceCUDA.bcgs);
}
