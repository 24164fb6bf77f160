/*
  Operations of AIJCUSPARSE that are corrected for our matrices, because they accept device vectors only or have faults;
  its products are corrected in parent.c and ../cuda/dense.c, its triangular solves in factor.c. PETSc 3.26.1 has all of
  these faults; docs/petsc-issues.md will say for each with which release its correction can go.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"

/*
  AIJCUSPARSE's function writes to device vectors only, does not check their length, and does not handle compressed
  rows. If the matrix is compressed, the host gets the diagonal: AIJCUSPARSE calls AIJ's function if the host's
  values are newer.
*/
static PetscErrorCode MatGetDiagonal_SeqSpMVCUDA(Mat A, Vec v)
{
  const PetscOffloadMask mask = A->offloadmask;
  Mat_SpMV              *spmv;
  Vec                    d;
  PetscInt               n;
  const PetscBool compressed = (PetscBool)(!A->boundtocpu && PetscOffloadDevice(mask) && MatSpMVIsCompressed_Seq(A));
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(VecGetLocalSize(v, &n));
  PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Nonconforming matrix and vector");
  PetscCall(SpMVVecOnDevice(v, &d));
  if (compressed) {
    const PetscScalar *a;

    PetscCall(MatSeqAIJGetArrayRead(A, &a)); /* copies the values to the host */
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    A->offloadmask = PETSC_OFFLOAD_CPU;
  }
  ierr = (*spmv->parent.getdiagonal)(A, d);
  if (compressed) A->offloadmask = PETSC_OFFLOAD_BOTH; /* even after an error */
  PetscCall(ierr);
  PetscCall(SpMVVecRestore(v, PETSC_TRUE, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_SeqSpMVCUDA(Mat A, Vec left, Vec right)
{
  Mat_SpMV *spmv;
  Vec       l, r;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVVecOnDevice(left, &l));
  PetscCall(SpMVVecOnDevice(right, &r));
  PetscCall((*spmv->parent.diagonalscale)(A, l, r));
  PetscCall(SpMVVecRestore(left, PETSC_FALSE, &l));
  PetscCall(SpMVVecRestore(right, PETSC_FALSE, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Setting a value marks the host's values as newer. If a new pattern has no entries, no value is set, and AIJCUSPARSE
  would keep using its previous entries: multiply by them, or copy them to the host's arrays, which are now too short.
*/
PetscErrorCode MatSpMVMarkEmpty_SeqCUDA(Mat A)
{
  MatInfo info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (info.nz_used == 0 && A->offloadmask != PETSC_OFFLOAD_UNALLOCATED) A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE zeros its values on the device and marks the host's as old. If the host's values are newer, its pattern
  may be as well, so the host's are zeroed instead.
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

/*
  AIJCUSPARSE adds on the device if both matrices have its operation. It does not handle compressed rows there, so
  matrices that have them are added on the host.
*/
static PetscErrorCode MatAXPY_SeqSpMVCUDA(Mat A, PetscScalar a, Mat X, MatStructure str)
{
  const Mat mat[2]                                               = {A, X};
  PetscErrorCode (*ours[2])(Mat, PetscScalar, Mat, MatStructure) = {A->ops->axpy, X->ops->axpy};
  const PetscObjectState nonzerostate                            = A->nonzerostate;
  const void            *data                                    = A->data;
  const PetscBool        host = (PetscBool)(str == SUBSET_NONZERO_PATTERN && !A->boundtocpu &&
                                     (MatSpMVIsCompressed_Seq(A) || MatSpMVIsCompressed_Seq(X)));
  Mat_SpMV              *spmv;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  if (host) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSpMVGet(mat[k], &spmv));
    if (spmv) mat[k]->ops->axpy = spmv->parent.axpy;
  }
  /* if the pattern changes, this replaces A's data but not its operations */
  ierr = (*A->ops->axpy)(A, a, X, str);
  for (int k = 0; k < 2; k++) mat[k]->ops->axpy = ours[k]; /* even after an error */
  /* merged, see SpMVNonzeroStateRenew() */
  if (A->data != data) A->nonzerostate = PetscMax(A->nonzerostate, nonzerostate) + 1;
  if (!ierr && host) ierr = MatBindToCPU(A, PETSC_FALSE);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE sets the operations for the host or the device; hook them again */
static PetscErrorCode MatBindToCPU_SeqSpMVCUDA(Mat A, PetscBool bind)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.bindtocpu)(A, bind));
  /* while bound, AIJ's operations change the host's values without marking them as newer */
  if (!bind && A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
#define SpMVHookAgain(op)              \
  do {                                 \
    if (A->ops->op != spmv->ours.op) { \
      spmv->parent.op = A->ops->op;    \
      A->ops->op      = spmv->ours.op; \
    }                                  \
  } while (0)
  SpMVHooks(SpMVHookAgain);
#undef SpMVHookAgain
  PetscCall(MatSpMVComposeFunctions(A, PETSC_TRUE));
  PetscCall(MatSpMVForget(A, spmv)); /* the copies belong to the other side (host or device) */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPIAIJ sums the columns into new vectors that it assumes to be zero. PETSc's new host vectors are zero, its new
   device vectors are not */
static PetscErrorCode MatNorm_MPISpMVCUDA(Mat A, NormType type, PetscReal *norm)
{
  Mat_SpMV      *spmv;
  Mat            mat[2] = {A, NULL};
  VecType        own[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &mat[1], NULL));
  for (int k = 0; k < 2; k++) {
    own[k]                 = mat[k]->defaultvectype;
    mat[k]->defaultvectype = (char *)VECSTANDARD;
  }
  ierr = (*spmv->parent.norm)(A, type, norm);
  for (int k = 0; k < 2; k++) mat[k]->defaultvectype = (char *)own[k]; /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatStoreValues() of AIJCUSPARSE stores the host's values even if the device's are newer (up to PETSc 3.26): copy them
   first */
static PetscErrorCode MatStoreValues_SeqSpMVCUDA(Mat A)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall((*SpMVParents[1][0].store)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_CUSPARSE(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  if (device && !mpi)
    PetscCall(SpMVReplaceFunction(A, "MatStoreValues_C", ours ? MatStoreValues_SeqSpMVCUDA : SpMVParents[1][0].store));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MPIAIJCUSPARSE's preallocation leaves the diagonal block with block size 1, whereas MPIAIJ's own gives it the block
  size of the matrix, which PCPBJACOBI needs.
*/
PetscErrorCode MatSpMVSetBlockSizes_MPICUDA(Mat A)
{
  Mat      diagonal;
  PetscInt rbs, cbs, own[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, NULL, NULL));
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(MatGetBlockSizes(diagonal, &own[0], &own[1]));
  if (own[0] == 1 && own[1] == 1 && (rbs > 1 || cbs > 1)) PetscCall(MatSetBlockSizes(diagonal, rbs, cbs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_USE_COMPLEX)
/*
  MPIAIJCUSPARSE compiles MPIAIJ's functions for entries in a hash table as CUDA C++, which requires a greater alignment
  of complex numbers than they have there. So such a matrix gets MPIAIJ's functions, from a matrix that is created for
  that.
*/
static PetscErrorCode MatSetUp_MPISpMVCUDA(Mat A)
{
  Mat       host;
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.setup)(A));
  if (!A->hash_active) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &host));
  PetscCall(MatSetSizes(host, 1, 1, 1, 1));
  PetscCall(MatSetType(host, MATMPIAIJ));
  PetscCall(MatSetUp(host));
  A->ops->setvalues      = host->ops->setvalues;
  A->ops->assemblybegin  = host->ops->assemblybegin;
  A->ops->assemblyend    = host->ops->assemblyend;
  A->ops->copyhashtoxaij = host->ops->copyhashtoxaij;
  PetscCall(MatDestroy(&host));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

void MatSpMVSetOps_MPICUSPARSE(Mat A)
{
  A->ops->norm = MatNorm_MPISpMVCUDA;
#if defined(PETSC_USE_COMPLEX)
  SpMVReplaceOp(A, setup, MatSetUp_MPISpMVCUDA);
#endif
}

/* Called after MatSpMVSetOps_SeqCUDA() */
void MatSpMVSetOps_SeqCUSPARSE(Mat A)
{
  SpMVReplaceOp(A, bindtocpu, MatBindToCPU_SeqSpMVCUDA);
  SpMVReplaceOp(A, getdiagonal, MatGetDiagonal_SeqSpMVCUDA);
  SpMVReplaceOp(A, diagonalscale, MatDiagonalScale_SeqSpMVCUDA);
  SpMVReplaceOp(A, zeroentries, MatZeroEntries_SeqSpMVCUDA);
  SpMVReplaceOp(A, axpy, MatAXPY_SeqSpMVCUDA);
}
