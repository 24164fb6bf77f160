/*
  The products of an MPI matrix on the device, with our own exchange of the halo.
*/
#include "matspmvcuda.h"

/* Whether one of the vectors has a device type. The result is the same on all ranks */
static PetscErrorCode SpMVVecsAreDevice(Vec x, Vec y, Vec z, PetscBool *any)
{
  const Vec v[3] = {x, y, z};

  PetscFunctionBegin;
  *any = PETSC_FALSE;
  for (int k = 0; k < 3 && !*any; k++) {
    if (v[k]) PetscCall(PetscObjectTypeCompareAny((PetscObject)v[k], any, VECSEQCUDA, VECMPICUDA, ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether one of the vectors has a device type and is not bound to the CPU */
static PetscErrorCode SpMVVecsOnDevice(Vec x, Vec y, Vec z, PetscBool *any)
{
  const Vec v[3] = {x, y, z};

  PetscFunctionBegin;
  *any = PETSC_FALSE;
  for (int k = 0; k < 3 && !*any; k++) {
    PetscBool bound = PETSC_TRUE;

    PetscCall(SpMVVecsAreDevice(v[k], NULL, NULL, any));
    if (*any) PetscCall(VecBoundToCPU(v[k], &bound));
    *any = (PetscBool)!bound;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings the halo of A up to date. *ours is false if MPIAIJ's own product is to be used. All ranks get the same result:
  the vectors have the same types on all ranks, and MPIAIJ replaces the off-diagonal blocks on all ranks together.
  However, a matrix or vector may be bound to the CPU on some ranks only, because -mat_bind_below, -vec_bind_below and
  -dm_bind_below compare with the local size. So the ranks agree on this before they create a halo, and again before
  each product while something is bound on some rank. The products below copy vectors that are bound later to the device
  and back.
*/
PetscErrorCode MatSpMVUpdateHalo_MPICUDA(Mat A, Mat_SpMV *spmv, Vec x, Vec y, Vec z, PetscBool *ours)
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
  if (spmv->cuda->exchange.bound || !SpMVKeyHasNonzeroState(&spmv->cuda->exchange.key, A) ||
      spmv->cuda->exchange.offdiag != id) {
    spmv->cuda->exchange.key.mat = NULL; /* after an error the next product tries again */
    PetscCall(SpMVHaloDestroy(&spmv->cuda->exchange.halo));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bound, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
    spmv->cuda->exchange.bound = (PetscBool)bound;
    if (!bound) {
      PetscCall(MatSpMVGetHaloOptions_MPI(A, spmv, &spmv->cuda->exchange.options));
      PetscCall(SpMVHaloCreate(PetscObjectComm((PetscObject)A), A->cmap, block[1]->cmap->n, garray,
                               spmv->cuda->exchange.options.type, &spmv->cuda->exchange.halo));
    }
    SpMVKeySet(&spmv->cuda->exchange.key, A);
    spmv->cuda->exchange.offdiag = id;
  }
  *ours = (PetscBool)(spmv->cuda->exchange.halo && !SpMVHaloUsesPetsc(spmv->cuda->exchange.halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Whether the diagonal block's kernel runs together with the exchange, which requires the peer transport, blocks that
  are up to date on the device before the exchange begins, and that nothing is bound to the CPU. own[1] is NULL if this
  kernel also adds the off-diagonal block's product, or if the off-diagonal block is empty; otherwise the off-diagonal
  block's product follows
*/
static PetscErrorCode MatSpMVGetFused_MPICUDA(Mat_SpMV *spmv, Mat block[2], Vec xx, Vec yy, Vec zz, Mat_SpMV *own[2],
                                              PetscBool *fused)
{
  const Vec       v[3]     = {xx, yy, zz};
  const PetscBool has_halo = (PetscBool) !!SpMVHaloGetArray(spmv->cuda->exchange.halo);
  PetscBool       bound, adds = PETSC_FALSE;

  PetscFunctionBegin;
  *fused = PETSC_FALSE;
  own[1] = NULL;
  if (block[0]->boundtocpu || block[1]->boundtocpu || !SpMVHaloUsesPeer(spmv->cuda->exchange.halo))
    PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3; k++) {
    if (!v[k]) continue;
    PetscCall(VecBoundToCPU(v[k], &bound));
    if (bound) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVGetReady_SeqCUDA(block[0], PETSC_FALSE, &own[0]));
  if (!own[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (has_halo) PetscCall(MatSpMVUpdateFused_SeqCUDA(own[0], block[1], spmv->cuda->exchange.options.rows, &adds));
  if (has_halo && !adds) {
    PetscCall(MatSpMVGetReady_SeqCUDA(block[1], PETSC_FALSE, &own[1]));
    if (!own[1]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  *fused = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscLogDouble MatSpMVFusedFlops(const Mat_SpMV *spmv, Mat_SpMV *own[2], PetscBool add)
{
  const SpMVCudaCopy *diagonal = &own[0]->cuda->copy[0];
  PetscLogDouble      nz       = diagonal->key.nz;

  nz += own[1]                                        ? own[1]->cuda->copy[0].key.nz
        : SpMVHaloGetArray(spmv->cuda->exchange.halo) ? own[0]->cuda->fused.key.nz
                                                      : 0;
  return 2.0 * nz - (add ? 0 : PetscMin(diagonal->key.m, diagonal->key.nz));
}

/* The exchange together with the diagonal block's product; see MatSpMVGetFused_MPICUDA() */
static PetscErrorCode MatSpMVMultAddFused_MPICUDA(Mat_SpMV *spmv, Mat_SpMV *own[2], SpMVCudaForm form, Vec xx, Vec yy,
                                                  Vec zz, cudaStream_t stream)
{
  const SpMVHalo     halo     = spmv->cuda->exchange.halo;
  const PetscScalar *received = SpMVHaloGetArray(halo);
  SpMVOperands       o;

  PetscFunctionBegin;
  PetscCall(SpMVOperandsBegin(xx, yy, zz, &o));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCall(SpMVHaloBegin(halo, o.x, stream));
  PetscCallCUDA(
      SpMVCudaMult(own[0]->cuda->copy[0].store,
                   (SpMVCudaProduct){.form  = form,
                                     .x     = o.x,
                                     .z     = o.y,
                                     .y     = o.z,
                                     .begin = spmv->cuda->exchange.options.early ? SPMVCUDA_BEGIN_WITH_EXCHANGE
                                                                                 : SPMVCUDA_BEGIN_AFTER_EXCHANGE,
                                     .halo  = own[1] ? NULL : received},
                   stream));
  if (own[1])
    PetscCallCUDA(SpMVCudaMult(own[1]->cuda->copy[0].store,
                               (SpMVCudaProduct){.form = form, .x = received, .z = o.z, .y = o.z}, stream));
  PetscCall(SpMVHaloLeave(halo, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(MatSpMVFusedFlops(spmv, own, (PetscBool) !!yy)));
  PetscCall(SpMVOperandsEnd(&o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  zz = yy + A xx, or zz = yy - A xx: the diagonal block's product runs while the halo arrives, followed by the
  off-diagonal block's product. With peers, the first two are one kernel each, and the diagonal block's kernel may add
  the off-diagonal block's product.
*/
static PetscErrorCode MatSpMVMultAdd_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVCudaForm form, Vec xx, Vec yy, Vec zz)
{
  const SpMVHalo     halo = spmv->cuda->exchange.halo;
  Mat                block[2];
  Vec                d;
  const PetscScalar *x;
  Mat_SpMV          *own[2];
  PetscBool          fused;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVHaloEnter(halo, stream));
  PetscCall(MatSpMVGetFused_MPICUDA(spmv, block, xx, yy, zz, own, &fused));
  if (fused) {
    PetscCall(MatSpMVMultAddFused_MPICUDA(spmv, own, form, xx, yy, zz, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (form == SPMVCUDA_RESIDUAL) { /* -(-yy + A xx) */
    PetscCall(SpMVVecCopyLocal(yy, -1.0, zz));
    yy = zz;
  }
  PetscCall(SpMVVecOnDevice(xx, PETSC_TRUE, &d));
  PetscCall(VecGetArrayReadAndMemType(d, &x, NULL));
  PetscCall(SpMVHaloBegin(halo, x, stream));
  PetscCall(VecRestoreArrayReadAndMemType(d, &x));
  PetscCall(MatSpMVApply_Seq(block[0], SPMV_NORMAL, xx, yy, zz));
  PetscCall(SpMVHaloEnd(halo, stream));
  PetscCall(SpMVVecRestore(xx, PETSC_FALSE, &d));
  if (SpMVHaloGetArray(halo)) {
    PetscCall(SpMVHaloGetVec(halo, &d));
    PetscCall(MatSpMVApply_Seq(block[1], SPMV_NORMAL, d, zz, zz));
  }
  if (form == SPMVCUDA_RESIDUAL) PetscCall(SpMVVecCopyLocal(zz, -1.0, zz));
  PetscCall(SpMVHaloLeave(halo, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + A^T xx: the off-diagonal block's product runs first, so that its values are sent to their ranks during the
   diagonal block's product */
static PetscErrorCode MatSpMVMultTransposeAdd_MPICUDA(Mat A, Mat_SpMV *spmv, Vec xx, Vec yy, Vec zz)
{
  const SpMVHalo     halo = spmv->cuda->exchange.halo;
  Mat                block[2];
  Vec                d;
  const PetscScalar *received;
  PetscScalar       *z;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVHaloEnter(halo, stream));
  if (SpMVHaloGetArray(halo)) {
    PetscCall(SpMVHaloGetVec(halo, &d));
    PetscCall(MatSpMVApply_Seq(block[1], SPMV_TRANSPOSE, xx, NULL, d));
    /* copies the values to the device if the host has computed them */
    PetscCall(VecGetArrayReadAndMemType(d, &received, NULL));
    PetscCall(VecRestoreArrayReadAndMemType(d, &received));
  }
  PetscCall(SpMVHaloReverseBegin(halo, stream));
  PetscCall(MatSpMVApply_Seq(block[0], SPMV_TRANSPOSE, xx, yy, zz));
  PetscCall(SpMVVecOnDevice(zz, PETSC_TRUE, &d));
  PetscCall(VecGetArrayAndMemType(d, &z, NULL));
  PetscCall(SpMVHaloReverseEnd(halo, z, stream));
  PetscCall(SpMVHaloLeave(halo, stream));
  PetscCall(VecRestoreArrayAndMemType(d, &z));
  PetscCall(SpMVVecRestore(zz, PETSC_TRUE, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates everything that a product on the device needs before its exchange begins */
static PetscErrorCode MatSpMVPrepareBlocks_MPICUDA(Mat A, Mat_SpMV *spmv, PetscBool transpose, PetscBool ours, Vec xx,
                                                   Vec yy, Vec zz)
{
  Mat       block[2];
  Mat_SpMV *own[2];
  Vec       d;
  PetscBool fused = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (ours && !transpose) PetscCall(MatSpMVGetFused_MPICUDA(spmv, block, xx, yy, zz, own, &fused));
  for (int k = 0; k < 2 && !fused; k++) {
    PetscBool device = PETSC_TRUE; /* the halo's vector is on the device */

    if (k == 0) PetscCall(SpMVVecsOnDevice(xx, yy, zz, &device));
    PetscCall(MatSpMVGetReady_Seq(block[k], device, transpose));
  }
  if (ours && !fused && SpMVHaloGetArray(spmv->cuda->exchange.halo))
    PetscCall(SpMVHaloGetVec(spmv->cuda->exchange.halo, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Lack of memory for the copies of A's blocks is an error of all ranks while they prepare the copies together, but not
  if a rank alone has changed a block later
*/
static PetscErrorCode MatSpMVSetMayLack_MPICUDA(Mat A, PetscBool may)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    Mat_SpMV *own;

    PetscCall(MatSpMVGet(block[k], &own));
    if (own) own->cuda->may_lack = may;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the copies of the two blocks that a product with these vectors uses up to date, before the exchange begins */
static PetscErrorCode MatSpMVPrepare_MPICUDA(Mat A, Mat_SpMV *spmv, PetscBool transpose, PetscBool ours, Vec xx, Vec yy,
                                             Vec zz)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
  PetscCall(MatSpMVSetMayLack_MPICUDA(A, PETSC_FALSE));
  PetscCall(MatSpMVPrepareBlocks_MPICUDA(A, spmv, transpose, ours, xx, yy, zz));
  PetscCall(MatSpMVSetMayLack_MPICUDA(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same on all ranks or on none. The ranks communicate only if the state of the parallel matrix has changed */
static PetscErrorCode MatSpMVBegin_MPICUDA(Mat A, Mat_SpMV *spmv, PetscBool transpose, Vec xx, Vec yy, Vec zz)
{
  SpMVAgreed *agreed, now = {0};
  PetscBool   device, ours;

  PetscFunctionBegin;
  SpMVKeySet(&now.key, A);
  now.bound = A->boundtocpu;
  PetscCall(SpMVVecsAreDevice(xx, yy, zz, &device));
  agreed = &spmv->parallel.agreed[device][transpose];
  if (SpMVKeyIsCurrent(&agreed->key, A) && agreed->bound == now.bound) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, xx, yy, zz, &ours));
  PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVPrepare_MPICUDA(A, spmv, transpose, ours, xx, yy, zz)));
  *agreed = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetFusedProduct_MPICUDA(Mat A, Vec x, Vec y, SpMVFusedProduct *product)
{
  Mat       block[2];
  Mat_SpMV *spmv, *own[2];
  PetscBool ours, fused;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(product, sizeof(*product)));
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVBegin_MPICUDA(A, spmv, PETSC_FALSE, x, NULL, y));
  PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, x, NULL, y, &ours));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(MatSpMVGetFused_MPICUDA(spmv, block, x, NULL, y, own, &fused));
  if (!fused || own[1]) PetscFunctionReturn(PETSC_SUCCESS);
  product->halo     = spmv->cuda->exchange.halo;
  product->store    = own[0]->cuda->copy[0].store;
  product->received = SpMVHaloGetArray(product->halo);
  product->early    = spmv->cuda->exchange.options.early;
  product->flops    = MatSpMVFusedFlops(spmv, own, PETSC_FALSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVApply_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz, PetscBool *done)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVBegin_MPICUDA(A, spmv, (PetscBool)(op == SPMV_TRANSPOSE), xx, yy, zz));
  PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, xx, yy, zz, done));
  if (*done && op == SPMV_TRANSPOSE)
    PetscCall(MatSpMVMultTransposeAdd_MPICUDA(A, spmv, xx, yy, zz));
  else if (*done)
    PetscCall(MatSpMVMultAdd_MPICUDA(A, spmv, op == SPMV_RESIDUAL ? SPMVCUDA_RESIDUAL : SPMVCUDA_MULT, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rr = bb - A xx: on the device like MatMultAdd(), otherwise like MatResidual() of any other matrix type */
static PetscErrorCode MatResidual_MPISpMVCUDA(Mat A, Vec bb, Vec xx, Vec rr)
{
  Mat_SpMV *spmv;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVApply_MPICUDA(A, spmv, SPMV_RESIDUAL, xx, bb, rr, &done));
  if (!done) {
    PetscCall((*spmv->parent.mult)(A, xx, rr));
    PetscCall(VecAYPX(rr, -1.0, bb));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_MPICUDA(Mat A)
{
  A->ops->residual = MatResidual_MPISpMVCUDA;
}
