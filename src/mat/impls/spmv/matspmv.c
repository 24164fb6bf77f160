/*
  The state of a matrix of any format: the Mat_SpMV composed with the matrix, the keys that show whether stored copies
  are up to date, and freeing the copies.
*/
#include "matspmv.h"

PetscErrorCode SpMVDataSet(PetscObject A, const char name[], void *data, PetscErrorCode (*destroy)(SpMVCtx))
{
  PetscContainer container = NULL;

  PetscFunctionBegin;
  if (data) {
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container)); /* one rank alone may call this */
    PetscCall(PetscContainerSetPointer(container, data));
    if (destroy) PetscCall(PetscContainerSetCtxDestroy(container, destroy));
  }
  PetscCall(PetscObjectCompose(A, name, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVDataGet(PetscObject A, const char name[], void *data)
{
  PetscContainer container;

  PetscFunctionBegin;
  *(void **)data = NULL;
  PetscCall(PetscObjectQuery(A, name, (PetscObject *)&container));
  if (container) PetscCall(PetscContainerGetPointer(container, (void **)data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char SpMVContainer[] = "PetscSpMV";

static PetscErrorCode SpMVDestroyCtx(SpMVCtx ctx)
{
  Mat_SpMV *spmv = (Mat_SpMV *)SpMVCtxGet(ctx);

  PetscFunctionBegin;
  PetscCall(SpMVStoreDestroy(&spmv->host.store));
  (void)pthread_mutex_destroy(&spmv->host.lock);
  if (spmv->backend) PetscCall((*spmv->backend->destroy)(spmv));
  PetscCall(PetscFree(spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGet(Mat A, Mat_SpMV **spmv)
{
  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)A, SpMVContainer, spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode MatSpMVNew(Mat A, PetscBool device, Mat_SpMV **spmv)
{
  const SpMVBackend *backend = device && SpMVCUDA.bytes ? &SpMVCUDA : NULL;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  *spmv = NULL;
  /* not by SpMVAgreeOnMemory(): tests/faults knows this allocation by its file, because PETSc may lose it */
  ierr = PetscCalloc1(sizeof(**spmv) + (backend ? backend->bytes : 0), (char **)spmv);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(PetscFree(*spmv)); /* the allocation has failed on another rank */
  PetscCall(ierr);
  (*spmv)->device  = device;
  (*spmv)->backend = backend;
  if (backend) (*spmv)->cuda = (struct _n_Mat_SpMVCUDA *)(*spmv + 1);
  (void)pthread_mutex_init(&(*spmv)->host.lock, NULL); /* cannot fail without attributes */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes spmv with A, which then owns it; NULL removes A's current Mat_SpMV */
PetscErrorCode MatSpMVSet(Mat A, Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(SpMVDataSet((PetscObject)A, SpMVContainer, spmv, SpMVDestroyCtx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  If AIJ's own product is faster, it replaces ours, so that small matrices do not even pay for checking the object
  state; assembly installs ours again. AIJ's product is correct even if the matrix changes in the meantime. The
  transposed products are not replaced, see MatSpMVApplyAIJ_Seq(). Nor are any products on the device, because
  AIJCUSPARSE's accept device vectors only.
*/
void MatSpMVUseParent_Seq(Mat A, Mat_SpMV *spmv, PetscBool use)
{
  const SpMVOps *from = use ? &spmv->ours : &spmv->parent, *to = use ? &spmv->parent : &spmv->ours;

  if (spmv->device) return;
  if (A->ops->mult == from->mult) A->ops->mult = to->mult;
  if (A->ops->multadd == from->multadd) A->ops->multadd = to->multadd;
}

/* ---------------------------------------------------------------- stored copies */

PetscErrorCode MatSpMVForgetHost_Seq(Mat A, Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(SpMVStoreDestroy(&spmv->host.store));
  if (spmv->host.use_parent) MatSpMVUseParent_Seq(A, spmv, PETSC_FALSE);
  SpMVAtomicSet(&spmv->host.key.mat, NULL);
  spmv->host.use_parent = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVForget(Mat A, Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForgetHost_Seq(A, spmv));
  spmv->host.asked.key.mat = NULL;
  if (spmv->backend) PetscCall((*spmv->backend->forget)(spmv));
  spmv->parallel.hooked[0] = spmv->parallel.hooked[1] = 0;
  PetscCall(PetscMemzero(spmv->parallel.agreed, sizeof(spmv->parallel.agreed)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVSetParams(Mat A, Mat_SpMV *spmv, const void *params)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscMemcmp(spmv->params, params, spmv->format->paramssize, &same));
  if (!same) {
    PetscCall(PetscMemcpy(spmv->params, params, spmv->format->paramssize));
    PetscCall(MatSpMVForget(A, spmv));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- keys, and the pattern */

PetscBool SpMVKeyHasNonzeroState(const SpMVKey *key, Mat A)
{
  const PetscObjectState nonzerostate = SpMVAtomicGet(&key->nonzerostate);

  return (PetscBool)(SpMVAtomicGet(&key->mat) == A && SpMVAtomicGet(&key->id) == ((PetscObject)A)->id &&
                     nonzerostate == A->nonzerostate);
}

PetscBool SpMVKeyHasPattern(const SpMVKey *key, Mat A, const SpMVCSR *csr)
{
  return (PetscBool)(SpMVKeyHasNonzeroState(key, A) && key->m == csr->m && key->n == csr->n &&
                     key->nz == csr->i[csr->m] && key->i == csr->i && key->j == csr->j);
}

void SpMVKeySet(SpMVKey *key, Mat A)
{
  SpMVAtomicSet(&key->mat, A);
  SpMVAtomicSet(&key->id, ((PetscObject)A)->id);
  SpMVAtomicSet(&key->state, ((PetscObject)A)->state);
  SpMVAtomicSet(&key->nonzerostate, A->nonzerostate);
}

void SpMVKeySetPattern(SpMVKey *key, Mat A, const SpMVCSR *csr)
{
  key->m  = csr->m;
  key->n  = csr->n;
  key->nz = csr->i[csr->m];
  key->i  = csr->i;
  key->j  = csr->j;
  SpMVKeySet(key, A); /* last: another thread may then read the copy */
}

/* For matrices without rows: AIJ may have no row offsets */
static const PetscInt SpMVNoRows[1] = {0};

/* Gets AIJ's row offsets and columns on the host */
PetscErrorCode MatSpMVGetPattern_Seq(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s",
             ((PetscObject)A)->type_name);
  csr->m = A->rmap->n;
  csr->n = A->cmap->n;
  csr->a = NULL;
  if (!csr->i) {
    PetscCheck(!csr->m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s has rows but no row offsets",
               ((PetscObject)A)->type_name);
    csr->i = SpMVNoRows;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVRestorePattern_Seq(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  if (csr->i == SpMVNoRows) csr->i = NULL;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of rows with entries */
PetscInt SpMVCSRNonzeroRows(const SpMVCSR *csr)
{
  PetscInt rows = 0;

  for (PetscInt r = 0; r < csr->m; r++) rows += csr->i[r + 1] > csr->i[r];
  return rows;
}

/* A hash of an array; the sums of four lanes do not wait for each other */
static PetscInt64 SpMVHash(const PetscInt array[], PetscInt64 n, PetscInt64 seed)
{
  const uint64_t factor = 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio */
  uint64_t       h[4]   = {(uint64_t)seed, 1, 2, 3};

#define SpMVMix(h, value) ((((h) ^ (uint64_t)(value)) * factor) ^ ((h) >> 29))
  for (PetscInt64 k = 0; k < n / 4 * 4; k += 4) {
    for (int lane = 0; lane < 4; lane++) h[lane] = SpMVMix(h[lane], array[k + lane]);
  }
  for (PetscInt64 k = n / 4 * 4; k < n; k++) h[0] = SpMVMix(h[0], array[k]);
  for (int lane = 1; lane < 4; lane++) h[0] = SpMVMix(h[0], h[lane]);
#undef SpMVMix
  return (PetscInt64)h[0];
}

/*
  The arrays of MatCreateSeqAIJWithArrays() belong to the program, which may write other columns to them and assemble
  the matrix. AIJ's product then uses them, but no state shows it. In such a matrix PETSc has allocated fewer entries
  than it uses: none
*/
PetscErrorCode MatSpMVHashPattern_Seq(Mat A, Mat_SpMV *spmv, PetscBool *changed)
{
  const PetscInt64 before = spmv->pattern;
  MatInfo          info;
  SpMVCSR          csr;

  PetscFunctionBegin;
  PetscCall((*A->ops->getinfo)(A, MAT_LOCAL, &info));
  spmv->pattern = 0;
  if (info.nz_allocated < info.nz_used) {
    PetscCall(MatSpMVGetPattern_Seq(A, &csr));
    spmv->pattern = SpMVHash(csr.j, csr.i[csr.m], SpMVHash(csr.i, csr.m + 1, 0)) | 1;
    PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  }
  *changed = (PetscBool)(before && spmv->pattern && before != spmv->pattern);
  PetscFunctionReturn(PETSC_SUCCESS);
}
