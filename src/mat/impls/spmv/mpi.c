/*
  The MPI matrix: MPIAIJ's own products, which overlap the halo exchange with the diagonal block's product, over blocks that are hooked.
  Between device vectors an exchange of our own takes the place of MPIAIJ's VecScatter, where halo.c finds one that is faster.

  MPIAIJ makes, replaces and rebuilds its blocks in many places (preallocation, hash and COO assembly, disassembly, products), so they
  are looked at before every product instead of in each of these places.
*/
#include "matspmv.h"

PetscErrorCode MatSpMVHookBlocks_MPI(Mat A, Mat_SpMV *spmv)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscObjectId id;

    if (!block[k]) continue;
    PetscCall(PetscObjectGetId((PetscObject)block[k], &id));
    if (id == spmv->id[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own && own->format != spmv->format) {
      PetscCall(MatSpMVUnhook(block[k]));
      own = NULL;
    }
    if (own)
      PetscCall(MatSpMVSetParams(block[k], own, spmv->params)); /* made by the type's name: it knows the format, not our options */
    else {
      /* -mat_seqaij_type may have made it something else */
      PetscCall(MatConvert(block[k], spmv->device ? MATSEQAIJCUSPARSE : MATSEQAIJ, MAT_INPLACE_MATRIX, &block[k]));
      PetscCall(MatSpMVHook(block[k], spmv->format, spmv->params));
    }
    spmv->id[k] = id;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat A)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!block[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own) PetscCall(MatSpMVUnhook(block[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_CUDA)
/*
  The halo of A, or NULL where MPIAIJ's own product is to run. All ranks come to the same answer: types of vectors are the same on all,
  and so is whether something happened to the off-diagonal blocks, which MPIAIJ replaces together. What is bound to the host is not:
  -mat_bind_below, -vec_bind_below and -dm_bind_below look at the size on each rank. So the ranks ask each other before they make a
  halo, again and again while something is bound somewhere; what is bound later, the products below take to the device and back.
*/
static PetscErrorCode MatSpMVGetHalo(Mat A, Mat_SpMV *spmv, Vec x, Vec y, Vec z, SpMVHalo *halo)
{
  const Vec       v[3] = {x, y, z};
  Mat             block[2];
  const PetscInt *garray;
  PetscObjectId   id;
  int             bound = A->boundtocpu;

  PetscFunctionBegin;
  *halo = NULL;
  if (!spmv->device) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3; k++) {
    PetscBool is;

    if (!v[k]) continue;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)v[k], &is, VECSEQCUDA, VECMPICUDA, ""));
    if (!is) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(VecBoundToCPU(v[k], &is));
    if (is) bound = 1;
  }
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  PetscCall(PetscObjectGetId((PetscObject)block[1], &id));
  if (spmv->halo_bound || spmv->halo_mat != A || spmv->halo_state != A->nonzerostate || spmv->halo_id != id) {
    SpMVHaloType type;

    spmv->halo_mat = NULL; /* should this fail, the next product tries again */
    PetscCall(SpMVHaloDestroy(&spmv->halo));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bound, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
    spmv->halo_bound = (PetscBool)bound;
    if (!bound) {
      PetscCall(SpMVHaloGetType((PetscObject)A, &type));
      PetscCall(SpMVHaloCreate(PetscObjectComm((PetscObject)A), A->cmap, block[1]->cmap->n, garray, type, &spmv->halo));
    }
    spmv->halo_mat   = A;
    spmv->halo_state = A->nonzerostate;
    spmv->halo_id    = id;
  }
  if (spmv->halo && !SpMVHaloUsesPetsc(spmv->halo)) *halo = spmv->halo;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the off-diagonal block B and a parallel vector can be multiplied where the halo is: nothing is bound to the host */
static PetscErrorCode SpMVOnDevice(Mat B, Vec v, PetscBool *device)
{
  PetscFunctionBegin;
  PetscCall(VecBoundToCPU(v, device));
  *device = (PetscBool)(!*device && !B->boundtocpu);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + A xx: the diagonal block's product while the halo comes, then the off-diagonal block's */
static PetscErrorCode MatMultAdd_MPISpMVCUDA(Mat A, SpMVHalo halo, Vec xx, Vec yy, Vec zz)
{
  Mat                block[2];
  Vec                d;
  const PetscScalar *x;
  PetscScalar       *z;
  PetscBool          device;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVVecOnDevice(xx, PETSC_TRUE, &d));
  PetscCall(VecGetArrayReadAndMemType(d, &x, NULL));
  PetscCall(SpMVHaloBegin(halo, x, stream));
  PetscCall(VecRestoreArrayReadAndMemType(d, &x));
  PetscCall(MatSpMVApply_Seq(block[0], SPMV_NORMAL, xx, yy, zz));
  PetscCall(SpMVHaloEnd(halo, stream));
  PetscCall(SpMVVecRestore(xx, PETSC_FALSE, &d));
  if (SpMVHaloGetArray(halo)) {
    PetscCall(SpMVOnDevice(block[1], zz, &device));
    if (device) {
      PetscCall(VecGetArrayAndMemType(zz, &z, NULL));
      PetscCall(MatSpMVApplyArrays_SeqCUDA(block[1], SPMV_NORMAL, SpMVHaloGetArray(halo), z, z));
      PetscCall(VecRestoreArrayAndMemType(zz, &z));
    } else {
      PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, block[1]->cmap->n, SpMVHaloGetArray(halo), &d));
      PetscCall(MatSpMVApply_Seq(block[1], SPMV_NORMAL, d, zz, zz));
      PetscCall(VecDestroy(&d));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + A^T xx: what belongs to other ranks first, so that it travels during the diagonal block's product */
static PetscErrorCode MatMultTransposeAdd_MPISpMVCUDA(Mat A, SpMVHalo halo, Vec xx, Vec yy, Vec zz)
{
  Mat                block[2];
  Vec                d;
  const PetscScalar *x;
  PetscScalar       *z;
  PetscBool          device;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  if (SpMVHaloGetArray(halo)) {
    PetscCall(SpMVOnDevice(block[1], xx, &device));
    if (device) {
      PetscCall(VecGetArrayReadAndMemType(xx, &x, NULL));
      PetscCall(MatSpMVApplyArrays_SeqCUDA(block[1], SPMV_TRANSPOSE, x, NULL, SpMVHaloGetArray(halo)));
      PetscCall(VecRestoreArrayReadAndMemType(xx, &x));
    } else {
      PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, block[1]->cmap->n, SpMVHaloGetArray(halo), &d));
      PetscCall(MatSpMVApply_Seq(block[1], SPMV_TRANSPOSE, xx, NULL, d));
      PetscCall(VecGetArrayReadAndMemType(d, &x, NULL)); /* copies what was computed on the host */
      PetscCall(VecRestoreArrayReadAndMemType(d, &x));
      PetscCall(VecDestroy(&d));
    }
  }
  PetscCall(SpMVHaloReverseBegin(halo, stream));
  PetscCall(MatSpMVApply_Seq(block[0], SPMV_TRANSPOSE, xx, yy, zz));
  PetscCall(SpMVVecOnDevice(zz, PETSC_TRUE, &d));
  PetscCall(VecGetArrayAndMemType(d, &z, NULL));
  PetscCall(SpMVHaloReverseEnd(halo, z, stream));
  PetscCall(VecRestoreArrayAndMemType(d, &z));
  PetscCall(SpMVVecRestore(zz, PETSC_TRUE, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}
  #define SpMVTryDevice(product, xx, yy, zz)                  \
    do {                                                      \
      SpMVHalo halo_;                                         \
      PetscCall(MatSpMVGetHalo(A, spmv, xx, yy, zz, &halo_)); \
      if (halo_) {                                            \
        PetscCall(product(A, halo_, xx, yy, zz));             \
        PetscFunctionReturn(PETSC_SUCCESS);                   \
      }                                                       \
    } while (0)
#else
  #define SpMVTryDevice(product, xx, yy, zz) (void)0
#endif

/* What every product begins with: our data, and blocks that are hooked */
static PetscErrorCode MatSpMVGetHooked_MPI(Mat A, Mat_SpMV **spmv)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, spmv));
  PetscCall(MatSpMVHookBlocks_MPI(A, *spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPISpMV(Mat A, Vec xx, Vec yy)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  SpMVTryDevice(MatMultAdd_MPISpMVCUDA, xx, NULL, yy);
  PetscCall((*spmv->parent.mult)(A, xx, yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_MPISpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  SpMVTryDevice(MatMultAdd_MPISpMVCUDA, xx, yy, zz);
  PetscCall((*spmv->parent.multadd)(A, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_MPISpMV(Mat A, Vec xx, Vec yy)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  SpMVTryDevice(MatMultTransposeAdd_MPISpMVCUDA, xx, NULL, yy);
  PetscCall((*spmv->parent.multtranspose)(A, xx, yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_MPISpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  SpMVTryDevice(MatMultTransposeAdd_MPISpMVCUDA, xx, yy, zz);
  PetscCall((*spmv->parent.multtransposeadd)(A, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_MPI(Mat A)
{
  A->ops->mult             = MatMult_MPISpMV;
  A->ops->multadd          = MatMultAdd_MPISpMV;
  A->ops->multtranspose    = MatMultTranspose_MPISpMV;
  A->ops->multtransposeadd = MatMultTransposeAdd_MPISpMV;
}
