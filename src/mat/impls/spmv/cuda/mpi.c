/*
  The products of an MPI matrix on the device, with our own exchange of the halo. What a product does is decided when a
  key changes (SpMVMultPlan); MatMult() compares the key, gets the arrays, and launches.
*/
#include "matspmvcuda.h"
#include <petsc/private/vecimpl.h> /* boundtocpu */

PetscInt64 SpMVMultPlanEpoch;

/* ---------------------------------------------------------------- launching */

/* The product of a block that has no copy in its format on the device, or is bound to the CPU: this rank must not
   return before the other ranks do */
static PetscErrorCode SpMVMultPlanBlockByVec(const SpMVMultPlan *plan, int k, const SpMVCudaProduct *p)
{
  const SpMVCudaColumns one = {0, 0, 0, 1}, *columns = p->columns ? p->columns : &one;
  const Mat             block   = plan->block[k];
  const SpMVOp          op      = plan->transpose ? SPMV_TRANSPOSE : SPMV_NORMAL;
  const PetscInt        size[2] = {block->rmap->n, block->cmap->n};
  Mat_SpMV             *own;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(block, &own));
  for (PetscInt64 q = 0; q < columns->count; q++) {
    PetscScalar       *x = (PetscScalar *)p->x + q * columns->ldx, *y = p->y + q * columns->ldy;
    const PetscScalar *z = p->z ? p->z + q * columns->ldz : NULL, *result;
    Vec                xx, yy, zz = NULL;

    PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, size[!plan->transpose], x, &xx));
    PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, size[plan->transpose], y, &yy));
    if (z && z != y) PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, size[plan->transpose], z, &zz));
    if (z == y) zz = yy;
    if (block->boundtocpu)
      PetscCall(MatSpMVApply_Seq(block, own, op, xx, zz, yy));
    else
      PetscCall(MatSpMVApplyParent_Seq(block, own, op, xx, zz, yy));
    PetscCall(VecCUDAGetArrayRead(yy, &result)); /* copies the result to the device if the host has computed it */
    PetscCall(VecCUDARestoreArrayRead(yy, &result));
    PetscCall(VecDestroy(&xx));
    if (zz != yy) PetscCall(VecDestroy(&zz));
    PetscCall(VecDestroy(&yy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVMultPlanBlock(const SpMVMultPlan *plan, int k, SpMVCudaProduct p, cudaStream_t stream)
{
  const PetscLogDouble columns = p.columns ? (PetscLogDouble)p.columns->count : 1;

  PetscFunctionBegin;
  if (plan->store[k]) {
    PetscCallCUDA(SpMVCudaMult(plan->store[k], p, stream));
    PetscCall(PetscLogGpuFlops(columns * (2.0 * plan->nonzeros[k] - (p.z ? 0 : plan->rows))));
  } else
    PetscCall(SpMVMultPlanBlockByVec(plan, k, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The off-diagonal block's product runs first, so that its values are sent to their ranks during the other product */
static PetscErrorCode SpMVMultPlanLaunchTranspose(const SpMVMultPlan *plan, SpMVCudaProduct p, cudaStream_t stream)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (plan->received)
    ierr = SpMVMultPlanBlock(plan, 1, (SpMVCudaProduct){.form = p.form, .x = p.x, .y = plan->received}, stream);
  /* the other ranks must not take the values of an earlier product for these */
  if (ierr) PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloForgo(plan->exchange, PETSC_TRUE, 1, stream)));
  PetscCall(ierr);
  PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloReverseBegin(plan->exchange, stream)));
  ierr = SpMVMultPlanBlock(plan, 0, p, stream);
  PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloReverseEnd(plan->exchange, p.y, stream)));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The diagonal block's product runs while the halo arrives, followed by the off-diagonal block's product. With peers,
  the diagonal block's kernel may send to them, and may also receive from them and add the off-diagonal block's product.
  The halos of several columns are exchanged SPMV_HALO_COLUMNS at a time.

  If this rank cannot multiply, it exchanges nevertheless, because the other ranks count on it. SpMVCudaMult() fails
  before it launches the kernel that exchanges, or because the device has failed. After that, and after an error of the
  exchange itself, the other ranks cannot continue.
*/
PetscErrorCode SpMVMultPlanLaunch(const SpMVMultPlan *plan, SpMVCudaProduct p, cudaStream_t stream)
{
  const SpMVCudaColumns c    = p.columns ? *p.columns : (SpMVCudaColumns){0, 0, 0, 1};
  PetscErrorCode        ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!plan->exchange) {
    PetscCall(SpMVMultPlanBlock(plan, 0, p, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* before and after all work with the halo: programs may change streams between products */
  PetscCallCUDA(SpMVCudaHaloEnter(plan->exchange, stream));
  p.exchange = plan->sends;
  p.receives = plan->receives;
  if (plan->transpose) ierr = SpMVMultPlanLaunchTranspose(plan, p, stream);
  for (PetscInt64 first = 0; first < c.count && !plan->transpose; first += SPMV_HALO_COLUMNS) {
    const int       n    = (int)PetscMin(SPMV_HALO_COLUMNS, c.count - first);
    SpMVCudaColumns part = {plan->ld, c.ldy, c.ldy, n};
    PetscScalar    *y    = p.y + first * c.ldy;

    if (plan->sends) ierr = SpMVMultPlanBlock(plan, 0, p, stream);
    if (!plan->sends || ierr)
      PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloBegin(plan->exchange, n, p.x + first * c.ldx, c.ldx, stream)));
    if (!plan->sends && !first) ierr = SpMVMultPlanBlock(plan, 0, p, stream);
    if (!plan->receives || ierr) PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloEnd(plan->exchange, stream)));
    if (plan->received && !plan->receives && !ierr)
      ierr = SpMVMultPlanBlock(
          plan, 1,
          (SpMVCudaProduct){.form = p.form, .x = plan->received, .z = y, .y = y, .columns = p.columns ? &part : NULL},
          stream);
  }
  PetscCallCUDA(SpMVCudaHaloLeave(plan->exchange, stream));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVMultPlanForgo(const SpMVMultPlan *plan, PetscInt64 columns, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!plan->exchange) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(SpMVCudaHaloEnter(plan->exchange, stream));
  for (PetscInt64 first = 0; first < columns; first += SPMV_HALO_COLUMNS) {
    const int n = (int)PetscMin(SPMV_HALO_COLUMNS, columns - first);

    PetscCall(SpMVHaloCheck(plan->halo, SpMVCudaHaloForgo(plan->exchange, plan->transpose, n, stream)));
  }
  PetscCallCUDA(SpMVCudaHaloLeave(plan->exchange, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- deciding */

/* Where the vectors of a product are. The types are the same on all ranks */
typedef struct {
  PetscBool any, all; /* have device types */
  PetscBool bound;    /* one of those with device types is bound to the CPU */
  PetscBool here;     /* one of them is not */
} SpMVWhere;

static PetscErrorCode SpMVVecsWhere(Vec x, Vec y, Vec z, SpMVWhere *where)
{
  const Vec v[3] = {x, y, z};

  PetscFunctionBegin;
  *where = (SpMVWhere){.all = PETSC_TRUE};
  for (int k = 0; k < 3; k++) {
    PetscBool is;

    if (!v[k]) continue;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)v[k], &is, VECSEQCUDA, VECMPICUDA, ""));
    if (!is)
      where->all = PETSC_FALSE;
    else {
      where->any = PETSC_TRUE;
      if (v[k]->boundtocpu)
        where->bound = PETSC_TRUE;
      else
        where->here = PETSC_TRUE;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings the halo of A up to date, for vectors of device types; vecs_bound: one of them is bound to the CPU. *ours is
  false if MPIAIJ's own product is to be used. All ranks get the same result: the vectors have the same types on all
  ranks, and MPIAIJ replaces the off-diagonal blocks on all ranks together.
  However, a matrix or vector may be bound to the CPU on some ranks only, because -mat_bind_below, -vec_bind_below and
  -dm_bind_below compare with the local size. So the ranks agree on this before they create a halo, and again before
  each product while something is bound on some rank. Vectors that are bound later are copied to the device and back.
*/
PetscErrorCode MatSpMVUpdateHalo_MPICUDA(Mat A, Mat_SpMV *spmv, PetscBool vecs_bound, PetscBool *ours)
{
  SpMVExchange   *e = &spmv->cuda->exchange;
  Mat             block[2];
  const PetscInt *garray;
  PetscObjectId   id;
  int             bound = A->boundtocpu || vecs_bound;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  PetscCall(PetscObjectGetId((PetscObject)block[1], &id));
  if (e->bound || !SpMVKeyHasNonzeroState(&e->key, A) || e->offdiag != id) {
    e->key.mat = NULL; /* after an error the next product tries again */
    SpMVMultPlanEpoch++;
    PetscCall(SpMVHaloDestroy(&e->halo));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bound, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
    e->bound = (PetscBool)bound;
    if (!bound) {
      PetscCall(MatSpMVGetHaloOptions_MPI(A, spmv, &e->options));
      PetscCall(SpMVHaloCreate(PetscObjectComm((PetscObject)A), A->cmap, block[1]->cmap->n, garray, e->options.type,
                               &e->halo));
    }
    SpMVKeySet(&e->key, A);
    e->offdiag = id;
  }
  *ours = (PetscBool)(e->halo && !SpMVHaloUsesPetsc(e->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets store k of the plan if the block is to be multiplied on the device in its format */
static PetscErrorCode SpMVMultPlanSetStore(SpMVMultPlan *plan, SpMVMultPlanKind kind, int k)
{
  const Mat           block = plan->block[k];
  Mat_SpMV           *own   = NULL;
  const SpMVCudaCopy *copy;

  PetscFunctionBegin;
  if (block->boundtocpu)
    PetscCall(MatSpMVGetReady_Seq(block, PETSC_FALSE, plan->transpose));
  else
    PetscCall(MatSpMVGetReady_SeqCUDA(block, plan->transpose, &own));
  if (!own) PetscFunctionReturn(PETSC_SUCCESS);
  copy              = &own->cuda->copy[plan->transpose];
  plan->store[k]    = copy->store;
  plan->nonzeros[k] = copy->key.nz;
  if (k == 0 && kind == SPMV_PLAN_MULT) plan->rows = PetscMin(copy->key.m, copy->key.nz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Makes the plan: brings the copies of the blocks up to date, and decides who multiplies the off-diagonal block. For
  columns it has a copy of its own even if MatMult() uses one that is fused into the diagonal block's
*/
static PetscErrorCode MatSpMVMakePlan_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVMultPlanKind kind)
{
  const SpMVExchange *e    = &spmv->cuda->exchange;
  SpMVMultPlan       *plan = &spmv->cuda->plan[kind];
  Mat_SpMV           *own;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(plan, sizeof(*plan)));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &plan->block[0], &plan->block[1], NULL));
  plan->transpose = (PetscBool)(kind == SPMV_PLAN_TRANSPOSE);
  plan->halo      = e->halo;
  PetscCall(SpMVHaloGet(e->halo, (PetscBool)(kind == SPMV_PLAN_COLUMNS), &plan->exchange, &plan->received, &plan->ld));
  PetscCall(SpMVMultPlanSetStore(plan, kind, 0));
  if (kind == SPMV_PLAN_MULT && plan->store[0] && plan->exchange && SpMVCudaSends(plan->store[0]))
    plan->sends = SpMVCudaHaloGetExchange(plan->exchange);
  if (plan->sends && !plan->received)
    plan->receives = PETSC_TRUE; /* nothing but the peers' signals */
  else if (plan->sends && !plan->block[1]->boundtocpu) {
    PetscCall(MatSpMVGet(plan->block[0], &own));
    PetscCall(MatSpMVUpdateFused_SeqCUDA(own, plan->block[1], e->options.rows, &plan->receives));
    if (plan->receives) plan->nonzeros[0] += own->cuda->fused.key.nz;
  }
  if (plan->received && !plan->receives) PetscCall(SpMVMultPlanSetStore(plan, kind, 1));
  for (int k = 0; k < 2; k++) SpMVKeySet(&plan->of[k], plan->block[k]);
  plan->epoch = SpMVMultPlanEpoch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Creates everything that a product with these vectors needs before its exchange begins. Lack of memory for the copies
  of the blocks is an error of all ranks while they prepare the copies together, but not if a rank alone has changed a
  block later. Several columns are multiplied one by one instead if some rank cannot multiply them at once
*/
static PetscErrorCode MatSpMVGetReady_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVMultPlanKind kind, PetscBool ours,
                                              const SpMVWhere *where)
{
  Mat       block[2];
  Mat_SpMV *own[2];

  PetscFunctionBegin;
  PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSpMVGet(block[k], &own[k]));
    own[k]->cuda->may_lack = (PetscBool)(kind == SPMV_PLAN_COLUMNS);
  }
  if (ours) PetscCall(MatSpMVMakePlan_MPICUDA(A, spmv, kind));
  for (int k = 0; k < 2 && !ours; k++)
    PetscCall(MatSpMVGetReady_Seq(block[k], (PetscBool)(k || where->here), (PetscBool)(kind == SPMV_PLAN_TRANSPOSE)));
  for (int k = 0; k < 2; k++) own[k]->cuda->may_lack = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings a plan up to date, on all ranks or on none; the ranks communicate only if the state of A has changed. *plan is
  NULL if MPIAIJ's own product is to be used, or columns are to be multiplied one by one.
*/
static PetscErrorCode MatSpMVGetPlan_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVMultPlanKind kind, const SpMVWhere *where,
                                             const SpMVMultPlan **plan)
{
  const MPI_Comm comm     = PetscObjectComm((PetscObject)A);
  SpMVMultPlan  *p        = &spmv->cuda->plan[kind];
  SpMVAgreed    *agreed   = kind == SPMV_PLAN_COLUMNS ? &spmv->cuda->columns
                                                      : &spmv->parallel.agreed[where->any][kind == SPMV_PLAN_TRANSPOSE];
  PetscBool      together = (PetscBool)(!SpMVKeyIsCurrent(&agreed->key, A) || agreed->bound != A->boundtocpu);
  PetscBool      ours     = PETSC_FALSE;
  Mat            block[2];

  PetscFunctionBegin;
  *plan = p;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL)); /* this rank alone may have changed one of them */
  if (where->all && !together && p->epoch == SpMVMultPlanEpoch &&
      SpMVKeyHasNonzeroState(&spmv->cuda->exchange.key, A) && SpMVKeyIsCurrent(&p->of[0], block[0]) &&
      SpMVKeyIsCurrent(&p->of[1], block[1]))
    PetscFunctionReturn(PETSC_SUCCESS);
  if (where->all) PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, where->bound, &ours));
  if (ours && kind == SPMV_PLAN_COLUMNS) PetscCall(SpMVHaloSetUpColumns(spmv->cuda->exchange.halo, &ours));
  if (!ours) *plan = NULL;
  if (!ours && kind == SPMV_PLAN_COLUMNS) PetscFunctionReturn(PETSC_SUCCESS);
  if (together) {
    PetscCall(SpMVAgree(comm, MatSpMVGetReady_MPICUDA(A, spmv, kind, ours, where)));
    if (kind == SPMV_PLAN_COLUMNS) {
      int lacks = !SpMVMultPlanIsWhole(p);

      PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &lacks, 1, MPI_INT, MPI_MAX, comm));
      spmv->cuda->columns_lack = (PetscBool)lacks;
    }
    SpMVKeySet(&agreed->key, A);
    agreed->bound = A->boundtocpu;
  } else if (ours)
    PetscCall(MatSpMVMakePlan_MPICUDA(A, spmv, kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetPlan_CUDA(Mat A, SpMVMultPlanKind kind, Vec x, Vec y, SpMVMultPlan *plan)
{
  const SpMVMultPlan *made  = NULL;
  SpMVWhere           where = {.any = PETSC_TRUE, .all = PETSC_TRUE};
  Mat_SpMV           *spmv;
  PetscBool           may_lack;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(plan, sizeof(*plan)));
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVIsMPI(A)) {
    if (x) PetscCall(SpMVVecsWhere(x, NULL, y, &where));
    PetscCall(MatSpMVGetPlan_MPICUDA(A, spmv, kind, &where, &made));
    if (made && (kind != SPMV_PLAN_COLUMNS || !spmv->cuda->columns_lack)) *plan = *made;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* A may be a block of a parallel matrix that PETSc multiplies: the other ranks would wait */
  may_lack = spmv->cuda->may_lack;
  if (kind >= SPMV_PLAN_COLUMNS) spmv->cuda->may_lack = PETSC_TRUE;
  plan->block[0]       = A;
  plan->transpose      = (PetscBool)(kind == SPMV_PLAN_TRANSPOSE || kind == SPMV_PLAN_COLUMNS_TRANSPOSE);
  ierr                 = SpMVMultPlanSetStore(plan, kind, 0);
  spmv->cuda->may_lack = may_lack;
  PetscCall(ierr);
  if (!plan->store[0]) plan->block[0] = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/* Gets the operands on the device; whole: the product subtracts, for a residual */
static PetscErrorCode SpMVMultPlanOperands(SpMVOp op, PetscBool whole, Vec xx, Vec yy, Vec zz, cudaStream_t stream,
                                           SpMVCudaProduct *p, SpMVOperands *o)
{
  PetscBool staged = PETSC_TRUE;

  PetscFunctionBegin;
  p->form = op == SPMV_RESIDUAL && whole ? SPMVCUDA_RESIDUAL : SPMVCUDA_MULT;
  if (op == SPMV_RESIDUAL && !whole) {
    PetscCall(SpMVVecCopyLocal(yy, -1.0, zz));
    yy = zz;
  }
  PetscCall(SpMVOperandsBegin(xx, yy, zz, o));
  if (o->host) PetscCall(SpMVOperandsStage(o, stream, &staged));
  if (!staged) PetscCall(SpMVOperandsEnd(o));
  PetscCheck(staged, PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE, "Out of GPU memory for copies of vectors on the host");
  p->x = o->x;
  p->z = o->y;
  p->y = o->z;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a rank cannot launch yy - A xx, it computes -(-yy + A xx) */
PetscErrorCode MatSpMVApply_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz, PetscBool *done)
{
  SpMVCudaProduct     p = {.form = SPMVCUDA_MULT};
  const SpMVMultPlan *plan;
  SpMVWhere           where;
  PetscBool           whole;
  SpMVOperands        o;
  cudaStream_t        stream;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(SpMVVecsWhere(xx, yy, zz, &where));
  PetscCall(
      MatSpMVGetPlan_MPICUDA(A, spmv, op == SPMV_TRANSPOSE ? SPMV_PLAN_TRANSPOSE : SPMV_PLAN_MULT, &where, &plan));
  *done = (PetscBool) !!plan;
  if (!plan) PetscFunctionReturn(PETSC_SUCCESS);
  whole = SpMVMultPlanIsWhole(plan);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ierr = SpMVMultPlanOperands(op, whole, xx, yy, zz, stream, &p, &o);
  if (ierr) PetscCall(SpMVMultPlanForgo(plan, 1, stream));
  PetscCall(ierr);
  if (whole) PetscCall(PetscLogGpuTimeBegin()); /* otherwise the functions of the blocks call it */
  PetscCall(SpMVMultPlanLaunch(plan, p, stream));
  if (whole) PetscCall(PetscLogGpuTimeEnd());
  PetscCall(SpMVOperandsEnd(&o));
  if (op == SPMV_RESIDUAL && !whole) PetscCall(SpMVVecCopyLocal(zz, -1.0, zz));
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
