/*
  The types devicegmres and devicefgmres: PETSc's generalized minimal residual method, KSPGMRES, and its flexible
  variant, KSPFGMRES, with their iterations on the device.
*/
#include "deviceksp.h"

/*MC
   KSPDEVICEGMRES - The generalized minimal residual method, `KSPGMRES`, with its iterations on the GPU

   Options Database Key:
.  -ksp_type devicegmres - use this type

   Intermediate Options Database Keys:
+  -ksp_gmres_restart <30> - number of iterations between two restarts, see `KSPGMRESSetRestart()`
.  -ksp_pc_side <left>     - `left`, `right` or `symmetric`, see `KSPSetPCSide()`
.  -ksp_device*            - the options of every level, see `KSPDEVICECG`
-  -ksp_device_orthogonalization <true> - for PETSc's `KSPGMRES` and its variants, see the notes

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPGMRES`, except for rounding
   errors and for the range of numbers: matrix entries above about 1e100 (single precision: 1e12) overflow. An iteration
   consists of the product and two kernels: one reads the basis for all inner products, the other
   for the new vector, its norm and the rotation of the Hessenberg matrix.

   The GPU iterations are used for matrices of type `MATSELLP` and `MATEVCHYB` on a GPU, vectors of type `VECCUDA`,
   classical Gram-Schmidt (without refinement, or with refinement always), and up to 512 iterations between
   restarts. In all other cases PETSc's `KSPGMRES` runs. `-ksp_view` after a solve shows which of the two was used, and
   why.

   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` (blocks of up to 8 rows) are applied by the kernels, on the left or right.
   Other preconditioners are applied by `PCApply()` between them; the host then waits for each iteration.

   On several processes, an iteration has one sum over processes, in the ways of `KSPDEVICECG`.

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
-  -ksp_device*            - the options of every level, see `KSPDEVICECG`

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
