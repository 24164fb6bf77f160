/*
  The type devicebicgstab: PETSc's stabilized biconjugate gradient method, KSPBCGS, with its iterations on the device.
*/
#include "deviceksp.h"

/*MC
   KSPDEVICEBICGSTAB - The stabilized biconjugate gradient method, `KSPBCGS`, for nonsymmetric systems, with its
   iterations on the GPU; no iteration waits for the host

   Options Database Keys:
+  -ksp_type devicebicgstab   - use this type
.  -ksp_pc_side <left>        - `left` or `right`, see `KSPSetPCSide()`
.  -ksp_device <true>         - iterate on the device if possible; false for PETSc's iterations
.  -ksp_device_ahead <4>      - number of iterations that the host starts before it knows whether an earlier one was the last
.  -ksp_device_fuse <true>    - let the kernels of the products also compute inner products if they can
-  -ksp_device_early <true>   - launch each kernel before the previous one has ended (compute capability 9.0 and later)

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
PetscErrorCode KSPCreate_DeviceBiCGStab(KSP ksp)
{
  return KSPDeviceCreate(ksp, KSPBCGS, KSPDeviceCUDA.bicgstab);
}
