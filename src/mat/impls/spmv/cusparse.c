/*
  Operations of AIJCUSPARSE that are corrected for our matrices: those that accept device vectors only, and faults. Each was found in PETSc 3.26.1; with a later release,
  check whether it is still needed.
*/
#include "matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)

static PetscErrorCode MatGetDiagonal_SeqSpMVCUDA(Mat A, Vec v)
{
  Mat_SpMV *spmv;
  Vec       d;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVVecOnDevice(v, PETSC_FALSE, &d));
  PetscCall((*spmv->parent.getdiagonal)(A, d));
  PetscCall(SpMVVecRestore(v, PETSC_TRUE, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_SeqSpMVCUDA(Mat A, Vec left, Vec right)
{
  Mat_SpMV *spmv;
  Vec       l, r;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVVecOnDevice(left, PETSC_TRUE, &l));
  PetscCall(SpMVVecOnDevice(right, PETSC_TRUE, &r));
  PetscCall((*spmv->parent.diagonalscale)(A, l, r));
  PetscCall(SpMVVecRestore(left, PETSC_FALSE, &l));
  PetscCall(SpMVVecRestore(right, PETSC_FALSE, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE zeros its values on the device and marks the host's as old, even if the device still has the pattern from before new entries were inserted: copying the values
  back then fails or writes past their end. If the host's values are newer, zero these.
*/
static PetscErrorCode MatZeroEntries_SeqSpMVCUDA(Mat A)
{
  Mat_SpMV    *spmv;
  SpMVCSR      csr;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (A->offloadmask != PETSC_OFFLOAD_CPU || A->structure_only) {
    PetscCall((*spmv->parent.zeroentries)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVGetPattern_Seq(A, &csr));
  PetscCall(MatSeqAIJGetArrayWrite(A, &a));
  PetscCall(PetscArrayzero(a, csr.i[csr.m]));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &a));
  PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVHasEmptyRows(Mat A, PetscBool *has)
{
  SpMVCSR csr;

  PetscFunctionBegin;
  *has = PETSC_FALSE;
  PetscCall(MatSpMVGetPattern_Seq(A, &csr));
  for (PetscInt r = 0; r < csr.m && !*has; r++) *has = (PetscBool)(csr.i[r] == csr.i[r + 1]);
  PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE adds on the device if both matrices have its operation. For a subset of the pattern it reads the row offsets of all rows, past their end if it has stored those of
  the nonempty rows only. So such matrices are added on the host.
*/
static PetscErrorCode MatAXPY_SeqSpMVCUDA(Mat A, PetscScalar a, Mat X, MatStructure str)
{
  const Mat mat[2]                                               = {A, X};
  PetscErrorCode (*ours[2])(Mat, PetscScalar, Mat, MatStructure) = {A->ops->axpy, X->ops->axpy};
  Mat_SpMV      *spmv;
  PetscBool      empty[2] = {PETSC_FALSE, PETSC_FALSE};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (str == SUBSET_NONZERO_PATTERN && !A->boundtocpu) {
    for (int k = 0; k < 2; k++) PetscCall(SpMVHasEmptyRows(mat[k], &empty[k]));
  }
  if (empty[0] || empty[1]) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSpMVGet(mat[k], &spmv));
    if (spmv) mat[k]->ops->axpy = spmv->parent.axpy;
  }
  ierr = (*A->ops->axpy)(A, a, X, str);                    /* for a new pattern it replaces A's data, but not its operations */
  for (int k = 0; k < 2; k++) mat[k]->ops->axpy = ours[k]; /* even after an error */
  if (!ierr && (empty[0] || empty[1])) ierr = MatBindToCPU(A, PETSC_FALSE);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE sets the operations for the host or the device; take these over again */
static PetscErrorCode MatBindToCPU_SeqSpMVCUDA(Mat A, PetscBool bind)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.bindtocpu)(A, bind));
  /* while bound, AIJ's operations change the host's values without marking them as newer */
  if (!bind && A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
  #define SpMVTakeOver(op)               \
    do {                                 \
      if (A->ops->op != spmv->ours.op) { \
        spmv->parent.op = A->ops->op;    \
        A->ops->op      = spmv->ours.op; \
      }                                  \
    } while (0)
  SpMVHooks(SpMVTakeOver);
  #undef SpMVTakeOver
  PetscCall(MatSpMVComposeFunctions(A, PETSC_TRUE));
  PetscCall(MatSpMVForget(A, spmv)); /* the copies, of the other side */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After MatSpMVSetOps_SeqCUDA() */
void MatSpMVSetOps_SeqCUSPARSE(Mat A)
{
  #define SpMVSet(op, f) \
    if (A->ops->op) A->ops->op = f
  SpMVSet(bindtocpu, MatBindToCPU_SeqSpMVCUDA);
  SpMVSet(getdiagonal, MatGetDiagonal_SeqSpMVCUDA);
  SpMVSet(diagonalscale, MatDiagonalScale_SeqSpMVCUDA);
  SpMVSet(zeroentries, MatZeroEntries_SeqSpMVCUDA);
  SpMVSet(axpy, MatAXPY_SeqSpMVCUDA);
  #undef SpMVSet
}
#endif
