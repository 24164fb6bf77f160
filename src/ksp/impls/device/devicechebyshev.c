/*
  The type devicechebyshev: PETSc's Chebyshev method, KSPCHEBYSHEV, with its iterations on the device.
*/
#include "deviceksp.h"

/*MC
   KSPDEVICECHEBYSHEV - The Chebyshev method, `KSPCHEBYSHEV`, with its iterations on the GPU, for the smoothers of
   `PCMG` and `PCGAMG`

   Options Database Key:
.  -mg_levels_ksp_type devicechebyshev - use this type as smoother

   Intermediate Options Database Key:
.  -ksp_device <true> - iterate on the device if possible; false for PETSc's iterations

   Advanced Options Database Key:
.  -ksp_device_early <true> - launch each kernel before the previous one has ended (compute capability 9.0 and later)

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
