/*
  The table of solves on the device, and the decision where a solve runs.
*/
#include "krylov.h"

PetscErrorCode KSPDeviceWhyNotVec(Vec v, char why[], size_t len)
{
  PetscBool is, bound;
  PetscInt  n;

  PetscFunctionBegin;
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, &is, VECSEQCUDA, VECMPICUDA, ""));
  if (!is) {
    PetscCall(PetscSNPrintf(why, len, "a vector is of type %s", ((PetscObject)v)->type_name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecBoundToCPU(v, &bound));
  PetscCall(VecGetLocalSize(v, &n));
  if (bound)
    PetscCall(PetscStrncpy(why, "a vector is bound to the CPU", len));
  else if (n > SPMVCUDA_MAX_SIZE)
    PetscCall(PetscStrncpy(why, "a rank has too many rows for 32-bit indices", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceWhyNot_CUDA(KSP ksp, KSP_Device *d, char why[], size_t len)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatSpMVWhyNot_CUDA(A, d->use ? NULL : "-ksp_device 0", why, len));
  if (!why[0] && ksp->transpose_solve)
    PetscCall(PetscStrncpy(why, "the system is transposed", len));
  else if (!why[0] && ksp->calc_sings)
    PetscCall(PetscStrncpy(why, "singular values or eigenvalues are computed", len));
  if (!why[0] && d->whynot) PetscCall((*d->whynot)(ksp, why, len));
  PetscCall(KSPDeviceWhyNotVec(ksp->vec_sol, why, len));
  PetscCall(KSPDeviceWhyNotVec(ksp->vec_rhs, why, len));
  for (PetscInt k = 0; k < ksp->nwork; k++) PetscCall(KSPDeviceWhyNotVec(ksp->work[k], why, len));
  if (!why[0]) PetscCall(KSPDeviceRunCreate(ksp, d, why, len));
  /* ranks may differ in the objects that are bound to the CPU and in the number of rows */
  if (!d->alone) PetscCall(SpMVAgreeOnText(PetscObjectComm((PetscObject)ksp), PETSC_TRUE, why, (int)len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceView_CUDA(const KSP_Device *d, PetscViewer viewer)
{
  static const char *const pcs[] = {"none", "in the kernels (a diagonal)", "in the kernels (blocks)", "by PCApply()"};

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "  iterations on the device, preconditioner %s%s\n", pcs[d->run->solve.pc],
                                   d->run->sums ? d->run->sums : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceReplaceTypes(void)
{
  PetscFunctionBegin;
  PetscCall(PCInitializePackage());
  PetscCall(KSPOrthogReplaceTypes());
  PetscCall(PCGAMGReplaceType());
  PetscCall(PCJacobiReplaceType());
  PetscFunctionReturn(PETSC_SUCCESS);
}

const KSPDeviceBackend KSPDeviceCUDA = {
    .cg        = KSPDeviceCreate_CG,
    .bcgs      = KSPDeviceCreate_BCGS,
    .gmres     = KSPDeviceCreate_GMRES,
    .chebyshev = KSPDeviceCreate_Chebyshev,
    .whynot    = KSPDeviceWhyNot_CUDA,
    .view      = KSPDeviceView_CUDA,
    .reset     = KSPDeviceRunReset,

    .replacetypes = KSPDeviceReplaceTypes,

    .batch      = KSPDeviceBatchSolve_CUDA,
    .batchreset = KSPDeviceBatchReset_CUDA,
};
