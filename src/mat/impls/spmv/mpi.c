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
  Brings the halo of A up to date; *ours is false where MPIAIJ's own product is to run. All ranks come to the same answer: types of vectors are the same on all,
  and so is whether something happened to the off-diagonal blocks, which MPIAIJ replaces together. What is bound to the host is not:
  -mat_bind_below, -vec_bind_below and -dm_bind_below look at the size on each rank. So the ranks ask each other before they make a
  halo, again and again while something is bound somewhere; what is bound later, the products below take to the device and back.
*/
static PetscErrorCode MatSpMVUpdateHalo(Mat A, Mat_SpMV *spmv, Vec x, Vec y, Vec z, PetscBool *ours)
{
  const Vec       v[3] = {x, y, z};
  Mat             block[2];
  const PetscInt *garray;
  PetscObjectId   id;
  int             bound = A->boundtocpu;

  PetscFunctionBegin;
  *ours = PETSC_FALSE;
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
      PetscCall(MatSpMVGetHaloOptions(A, spmv, &type, &spmv->halo_rows, &spmv->halo_asked));
      PetscCall(SpMVHaloCreate(PetscObjectComm((PetscObject)A), A->cmap, block[1]->cmap->n, garray, type, &spmv->halo));
    }
    spmv->halo_mat   = A;
    spmv->halo_state = A->nonzerostate;
    spmv->halo_id    = id;
  }
  *ours = (PetscBool)(spmv->halo && !SpMVHaloUsesPetsc(spmv->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Whether the rows that read ghosts can be multiplied apart from the others: the blocks can do it, and nothing is bound to the host. The
  off-diagonal block's product must not touch the others' y, which the other stream writes at the same time.
*/
static PetscErrorCode MatSpMVGetApart(Mat_SpMV *spmv, Mat block[2], Vec xx, Vec yy, Vec zz, Mat_SpMV *own[2], PetscBool *apart)
{
  const Vec v[3] = {xx, yy, zz};
  PetscBool bound;

  PetscFunctionBegin;
  *apart = PETSC_FALSE;
  if (block[0]->boundtocpu || block[1]->boundtocpu || !SpMVHaloGetArray(spmv->halo)) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3; k++) {
    if (!v[k]) continue;
    PetscCall(VecBoundToCPU(v[k], &bound));
    if (bound) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVSetApart_SeqCUDA(block[0], block[1], spmv->halo_rows, spmv->halo_asked));
  /* Before the halo's stream goes on from the product's: neither block is refreshed on the product's after that */
  PetscCall(MatSpMVGetReady_SeqCUDA(block[0], &own[0]));
  if (!own[0] || !SpMVCudaHasApart(own[0]->cuda[0].block)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetReady_SeqCUDA(block[1], &own[1]));
  *apart = (PetscBool)(own[1] && SpMVCudaSkipsEmptyRows(own[1]->cuda[0].block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  zz = yy + A xx: the diagonal block's product while the halo comes, then the off-diagonal block's. Where few rows read ghosts, both products of these
  rows are in the halo's stream, beside that of the other rows, so that nothing has to start when both are done.
*/
static PetscErrorCode MatMultAdd_MPISpMVCUDA(Mat A, Mat_SpMV *spmv, Vec xx, Vec yy, Vec zz)
{
  const SpMVHalo     halo = spmv->halo;
  Mat                block[2];
  Vec                d;
  const PetscScalar *x, *y = NULL, *ghost = SpMVHaloGetArray(halo);
  PetscScalar       *z;
  Mat_SpMV          *own[2];
  PetscBool          apart;
  cudaStream_t       stream, halos;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatSpMVGetApart(spmv, block, xx, yy, zz, own, &apart));
  if (apart) {
    PetscCall(VecGetArrayReadAndMemType(xx, &x, NULL));
    if (yy && yy != zz) {
      PetscCall(VecGetArrayReadAndMemType(yy, &y, NULL));
      PetscCall(VecGetArrayWriteAndMemType(zz, &z, NULL));
    } else if (yy) {
      PetscCall(VecGetArrayAndMemType(zz, &z, NULL));
      y = z;
    } else
      PetscCall(VecGetArrayWriteAndMemType(zz, &z, NULL));
    PetscCall(PetscLogGpuTimeBegin());
    PetscCall(SpMVHaloBegin(halo, x, stream));
    PetscCallCUDA(SpMVCudaMultRows(own[0]->cuda[0].block, SPMVCUDA_ROWS_OTHERS, x, y, z, stream));
    PetscCall(SpMVHaloReceive(halo, &halos));
    PetscCallCUDA(SpMVCudaMultRows(own[0]->cuda[0].block, SPMVCUDA_ROWS_APART, x, y, z, halos));
    PetscCallCUDA(SpMVCudaMult(own[1]->cuda[0].block, PETSC_FALSE, ghost, z, z, halos));
    PetscCall(SpMVHaloJoin(halo, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * own[0]->cuda[0].source.nz + 2.0 * own[1]->cuda[0].source.nz -
                               (yy ? 0 : PetscMin(own[0]->cuda[0].source.m, own[0]->cuda[0].source.nz))));
    if (yy == zz)
      PetscCall(VecRestoreArrayAndMemType(zz, &z));
    else {
      PetscCall(VecRestoreArrayWriteAndMemType(zz, &z));
      if (yy) PetscCall(VecRestoreArrayReadAndMemType(yy, &y));
    }
    PetscCall(VecRestoreArrayReadAndMemType(xx, &x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVVecOnDevice(xx, PETSC_TRUE, &d));
  PetscCall(VecGetArrayReadAndMemType(d, &x, NULL));
  PetscCall(SpMVHaloBegin(halo, x, stream));
  PetscCall(VecRestoreArrayReadAndMemType(d, &x));
  PetscCall(MatSpMVApply_Seq(block[0], SPMV_NORMAL, xx, yy, zz));
  PetscCall(SpMVHaloEnd(halo, stream));
  PetscCall(SpMVVecRestore(xx, PETSC_FALSE, &d));
  if (ghost) {
    PetscCall(SpMVHaloGetVec(halo, &d));
    PetscCall(MatSpMVApply_Seq(block[1], SPMV_NORMAL, d, zz, zz));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + A^T xx: what belongs to other ranks first, so that it travels during the diagonal block's product */
static PetscErrorCode MatMultTransposeAdd_MPISpMVCUDA(Mat A, Mat_SpMV *spmv, Vec xx, Vec yy, Vec zz)
{
  const SpMVHalo     halo = spmv->halo;
  Mat                block[2];
  Vec                d;
  const PetscScalar *g;
  PetscScalar       *z;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  if (SpMVHaloGetArray(halo)) {
    PetscCall(SpMVHaloGetVec(halo, &d));
    PetscCall(MatSpMVApply_Seq(block[1], SPMV_TRANSPOSE, xx, NULL, d));
    PetscCall(VecGetArrayReadAndMemType(d, &g, NULL)); /* copies what was computed on the host */
    PetscCall(VecRestoreArrayReadAndMemType(d, &g));
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
  #define SpMVTryDevice(product, xx, yy, zz)                     \
    do {                                                         \
      PetscBool ours_;                                           \
      PetscCall(MatSpMVUpdateHalo(A, spmv, xx, yy, zz, &ours_)); \
      if (ours_) {                                               \
        PetscCall(product(A, spmv, xx, yy, zz));                 \
        PetscFunctionReturn(PETSC_SUCCESS);                      \
      }                                                          \
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
