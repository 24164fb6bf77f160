/*
  PCJACOBI without copies: PETSc (3.18 to 3.26) copies the inverse diagonal from the device to the host, where it
  replaces zeros by ones, and then back. If the device finds no zero on the diagonal, this check is switched off during
  PETSc's functions. PETSc computes the diagonal in PCSetUp(), or in the first PCApply().
*/
#include "ksp/impls/device/cuda/krylov.h"
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/csr/csr.h"

/* PETSc's functions */
static PetscErrorCode (*PCCreate_PETScJacobi)(PC);
static PetscErrorCode (*PCSetUp_PETScJacobi)(PC);
static PetscErrorCode (*PCApply_PETScJacobi)(PC, Vec, Vec);

/* Whether all entries of this rank's diagonal are known not to be zero */
static PetscErrorCode MatHasNonzeroDiagonal_SpMVCUDA(Mat A, PetscBool *nonzero)
{
  PetscInt64 zeros = 1;
  Mat_SpMV  *spmv;
  SpMVValues v;

  PetscFunctionBegin;
  *nonzero = PETSC_FALSE;
  PetscCall(MatSpMVGet(A, &spmv));
  if (!spmv || !spmv->device || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  if (SpMVIsMPI(A)) PetscCall(MatMPIAIJGetSeqAIJ(A, &A, NULL, NULL));
  PetscCall(MatSpMVOnDevice_Seq(A, nonzero));
  if (!*nonzero || !A->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesTried(SpMVCudaCSRZeroDiagonals(&v.csr, v.stream, &zeros), nonzero));
  PetscCall(SpMVValuesRestore(A, &v));
  if (zeros) *nonzero = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls PETSc's PCSetUp(), or PCApply() if there are vectors, without the check if it is not needed */
static PetscErrorCode PCJacobiWithoutCheck(PC pc, Vec x, Vec y)
{
  PCJacobiType   type;
  PetscBool      check, set, spd, nonzero = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetFixDiagonal(pc, &check));
  PetscCall(MatIsSPDKnown(pc->pmat, &set, &spd)); /* PETSc then looks for no zeros */
  if (check && type == PC_JACOBI_DIAGONAL && !(set && spd))
    PetscCall(MatHasNonzeroDiagonal_SpMVCUDA(pc->pmat, &nonzero));
  if (nonzero) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE));
  ierr = x ? (*PCApply_PETScJacobi)(pc, x, y) : (*PCSetUp_PETScJacobi)(pc);
  if (nonzero) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_TRUE)); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first PCApply() */
static PetscErrorCode PCApply_DeviceJacobi(PC pc, Vec x, Vec y)
{
  PetscFunctionBegin;
  pc->ops->apply = PCApply_PETScJacobi;
  PetscCall(PCJacobiWithoutCheck(pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_DeviceJacobi(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectStateIncrease((PetscObject)pc)); /* the methods on the device keep copies of the entries */
  if (pc->setupcalled)
    PetscCall(PCJacobiWithoutCheck(pc, NULL, NULL));
  else { /* there is no diagonal yet */
    PetscCall((*PCSetUp_PETScJacobi)(pc));
    pc->ops->apply = PCApply_DeviceJacobi;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_DeviceJacobi(PC pc)
{
  PetscFunctionBegin;
  PetscCall((*PCCreate_PETScJacobi)(pc));
  PCSetUp_PETScJacobi = pc->ops->setup;
  PCApply_PETScJacobi = pc->ops->apply;
  pc->ops->setup      = PCSetUp_DeviceJacobi;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCJacobiReplaceType(void)
{
  PetscFunctionBegin;
  PetscCall(KSPDeviceReplaceType(PCList, PCJACOBI, PCCreate_DeviceJacobi, &PCCreate_PETScJacobi));
  PetscFunctionReturn(PETSC_SUCCESS);
}
