/*
  Products of two or three sequential sparse matrices on the device (MatProduct), where a factor is of our types. They
  replace AIJCUSPARSE's products by cuSPARSE, also for the products of the blocks of parallel matrices, which PETSc
  (MatProductSymbolic_MPIAIJBACKEND()) computes one by one.

  The result is an AIJCUSPARSE matrix in the same state as PETSc's: the pattern is on the host, and the values are on
  the device. What the device cannot do (columns that do not ascend, too little memory) is done by PETSc.
*/
#include "matspmvcuda.h"
#include "core/cuda/spgemm/spgemm.h"

/* The factors in the order in which they are multiplied */
typedef struct {
  int       count;
  Mat       mat[3];
  PetscBool transpose[3];
} SpMVFactors;

/* The data of a product */
typedef struct {
  SpMVCudaSpGEMM    plan;   /* NULL: the result has no entries */
  SpMVKey           key[3]; /* of the factors when the plan was made */
  SpMVKey           result; /* of the product then */
  SpMVCudaTemporary values; /* on the device, of the product of these factors; or no memory */
} SpMVSpGEMM;

static PetscErrorCode SpMVFactorsGet(const Mat_Product *product, SpMVFactors *f)
{
  const Mat A = product->A, B = product->B;

  PetscFunctionBegin;
  switch (product->type) {
  case MATPRODUCT_AB: *f = (SpMVFactors){2, {A, B}, {PETSC_FALSE, PETSC_FALSE}}; break;
  case MATPRODUCT_AtB: *f = (SpMVFactors){2, {A, B}, {PETSC_TRUE, PETSC_FALSE}}; break;
  case MATPRODUCT_ABt: *f = (SpMVFactors){2, {A, B}, {PETSC_FALSE, PETSC_TRUE}}; break;
  case MATPRODUCT_PtAP: *f = (SpMVFactors){3, {B, A, B}, {PETSC_TRUE, PETSC_FALSE, PETSC_FALSE}}; break;
  case MATPRODUCT_RARt: *f = (SpMVFactors){3, {B, A, B}, {PETSC_FALSE, PETSC_FALSE, PETSC_TRUE}}; break;
  case MATPRODUCT_ABC: *f = (SpMVFactors){3, {A, B, product->C}, {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE}}; break;
  default: f->count = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether PETSc's own options choose the host */
static PetscErrorCode SpMVSpGEMMOnHost(Mat C, PetscBool *host)
{
  static const char *const names[] = {[MATPRODUCT_AB]   = "matmatmult",
                                      [MATPRODUCT_AtB]  = "mattransposematmult",
                                      [MATPRODUCT_PtAP] = "matptap",
                                      [MATPRODUCT_RARt] = "matrart",
                                      [MATPRODUCT_ABC]  = "matmatmatmult"};
  const MatProductType     type    = C->product->type;
  char                     option[64];

  PetscFunctionBegin;
  *host = PETSC_FALSE;
  if (type == MATPRODUCT_ABt) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc has no option for it */
  PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_backend_cpu",
                          C->product->api_user ? names[type] : "mat_product_algorithm"));
  PetscCall(PetscOptionsGetBool(NULL, ((PetscObject)C)->prefix, option, host, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factor may itself be a product after its symbolic phase, which has its pattern but is not assembled */
static PetscErrorCode SpMVSpGEMMUsable(Mat A, PetscBool *usable)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, usable));
  if (A->boundtocpu || A->structure_only || (!A->assembled && !A->product)) *usable = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- plans */

static PetscErrorCode SpMVFactorsBegin(const SpMVFactors *f, SpMVValues v[], SpMVCudaCSR csr[])
{
  PetscFunctionBegin;
  for (int k = 0; k < f->count; k++) {
    PetscCall(SpMVValuesGet(f->mat[k], PETSC_FALSE, &v[k]));
    csr[k] = v[k].csr;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVFactorsEnd(const SpMVFactors *f, SpMVValues v[])
{
  PetscFunctionBegin;
  for (int k = 0; k < f->count; k++) PetscCall(SpMVValuesRestore(f->mat[k], &v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors that have been replaced may not fit */
static PetscErrorCode SpMVFactorsCheckSizes(const SpMVFactors *f)
{
  PetscFunctionBegin;
  for (int k = 0; k + 1 < f->count; k++) {
    const PetscInt n = f->transpose[k] ? f->mat[k]->rmap->n : f->mat[k]->cmap->n;
    const PetscInt m = f->transpose[k + 1] ? f->mat[k + 1]->cmap->n : f->mat[k + 1]->rmap->n;

    PetscCheck(m == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
               "Factor %d of the product has %" PetscInt_FMT " columns, and the next one %" PetscInt_FMT " rows", k, n,
               m);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVSpGEMMForgetValues(SpMVSpGEMM *own)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaFreeTemporary(&own->values, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done is false if the device cannot multiply. Without entries in a factor, there is no plan */
static PetscErrorCode SpMVSpGEMMPlan(const SpMVFactors *f, SpMVSpGEMM *own, PetscBool *done)
{
  PetscInt64  bytes = 0;
  SpMVCudaCSR csr[3];
  SpMVValues  v[3];
  MatInfo     info;
  PetscBool   empty = PETSC_FALSE;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  PetscCall(SpMVFactorsCheckSizes(f));
  PetscCall(SpMVSpGEMMForgetValues(own));
  PetscCallCUDA(SpMVCudaSpGEMMDestroy(&own->plan));
  for (int k = 0; k < f->count; k++) {
    SpMVKeySet(&own->key[k], f->mat[k]);
    PetscCall(MatGetInfo(f->mat[k], MAT_LOCAL, &info));
    if (info.nz_used == 0) empty = PETSC_TRUE;
    bytes += (PetscInt64)info.nz_used * (PetscInt64)(sizeof(PetscInt) + sizeof(PetscScalar));
  }
  if (empty) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVFactorsBegin(f, v, csr));
  PetscCall(
      SpMVValuesTried(SpMVCudaSpGEMMSymbolic(f->count, csr, f->transpose, 3 * bytes, v[0].stream, &own->plan), done));
  PetscCall(SpMVFactorsEnd(f, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVSpGEMMDestroy(SpMVSpGEMM *own)
{
  PetscFunctionBegin;
  PetscCall(SpMVSpGEMMForgetValues(own));
  PetscCallCUDA(SpMVCudaSpGEMMDestroy(&own->plan));
  PetscCall(PetscFree(own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVSpGEMMDestroyCtx(SpMVCtx ctx)
{
  return SpMVSpGEMMDestroy((SpMVSpGEMM *)SpMVCtxGet(ctx));
}

/* Whether the plan has C's pattern */
static PetscErrorCode SpMVSpGEMMMatches(Mat C, SpMVCudaSpGEMM plan, PetscBool *same)
{
  const PetscInt     *device[2];
  PetscInt           *i, *j;
  SpMVCudaSpGEMMStats stats = {0};
  SpMVCSR             csr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetPattern_Seq(C, &csr));
  if (plan) SpMVCudaSpGEMMGetStats(plan, &stats);
  *same = (PetscBool)(stats.nonzeros == csr.i[csr.m] && (!plan || (stats.m == csr.m && stats.n == csr.n)));
  if (*same && stats.nonzeros) {
    SpMVCudaSpGEMMPattern(plan, &device[0], &device[1]);
    PetscCall(PetscMalloc2(csr.m + 1, &i, csr.i[csr.m], &j));
    PetscCall(SpMVDownloadIndices(csr.m + 1, device[0], i));
    PetscCall(SpMVDownloadIndices(csr.i[csr.m], device[1], j));
    PetscCall(PetscArraycmp(i, csr.i, csr.m + 1, same));
    if (*same) PetscCall(PetscArraycmp(j, csr.j, csr.i[csr.m], same));
    PetscCall(PetscFree2(i, j));
  }
  PetscCall(MatSpMVRestorePattern_Seq(C, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factor has been replaced (MatProductReplaceMats()), or a pattern has changed: AIJ's functions require that the
   product has the same pattern as before */
static PetscErrorCode SpMVSpGEMMPlanAgain(Mat C, const SpMVFactors *f, SpMVSpGEMM *own)
{
  PetscErrorCode ierr;
  PetscBool      done, same = PETSC_FALSE;

  PetscFunctionBegin;
  ierr = SpMVSpGEMMPlan(f, own, &done);
  if (!ierr && done) ierr = SpMVSpGEMMMatches(C, own->plan, &same);
  if (own->plan) SpMVCudaSpGEMMReleasePattern(own->plan);
  if (!same) own->key[0].mat = NULL; /* the plan is not to be used the next time */
  PetscCall(ierr);
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_MEM,
             "The device cannot multiply the new factors: too little memory, or columns that do not ascend. Call "
             "MatProductClear() and begin again");
  PetscCheck(
      same, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
      "The product of the factors has another nonzero pattern than in the symbolic phase: call MatProductClear() "
      "and begin again, or use MAT_INITIAL_MATRIX");
  SpMVKeySet(&own->result, C);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the numeric phase */

/* MatPtAP() and its likes multiply at once: the device does so while the host makes the pattern of the result, in
   memory of its own. Not if there is no room, or if the memory might be missed later */
static PetscErrorCode SpMVSpGEMMMultiplyEarly(const SpMVFactors *f, SpMVSpGEMM *own)
{
  const PetscInt     *i, *j;
  void               *c;
  size_t              bytes;
  SpMVCudaSpGEMMStats stats;
  SpMVCudaCSR         csr[3];
  SpMVValues          v[3];

  PetscFunctionBegin;
  for (int k = 0; k < f->count; k++)
    if (!f->mat[k]->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  SpMVCudaSpGEMMGetStats(own->plan, &stats);
  bytes = (size_t)stats.nonzeros * sizeof(PetscScalar);
  if (!bytes || bytes > ((size_t)256 << 20)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVFactorsBegin(f, v, csr));
  if (SpMVCudaUploadTemporary(1, &c, NULL, &bytes, v[0].stream, &own->values) == cudaSuccess) {
    SpMVCudaSpGEMMPattern(own->plan, &i, &j);
    PetscCallCUDA(SpMVCudaSpGEMMNumeric(own->plan, csr, i, j, (PetscScalar *)c, v[0].stream));
  } else
    (void)cudaGetLastError();
  PetscCall(SpMVFactorsEnd(f, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVSpGEMMMultiply(Mat C, const SpMVFactors *f, SpMVSpGEMM *own)
{
  const PetscInt     *i, *j;
  PetscScalar        *c;
  SpMVCudaSpGEMMStats stats;
  SpMVCudaCSR         csr[3];
  SpMVValues          v[3];
  MatInfo             info;

  PetscFunctionBegin;
  SpMVCudaSpGEMMGetStats(own->plan, &stats);
  PetscCall(MatGetInfo(C, MAT_LOCAL, &info));
  PetscCheck(info.nz_used == (PetscLogDouble)stats.nonzeros, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "The nonzero pattern of the product has been changed since the symbolic phase");
  if (!stats.nonzeros) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVFactorsBegin(f, v, csr));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(C, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(C, &c));
  PetscCall(PetscLogGpuTimeBegin());
  if (own->values.memory)
    PetscCallCUDA(cudaMemcpyAsync(c, own->values.memory, (size_t)stats.nonzeros * sizeof(PetscScalar),
                                  cudaMemcpyDeviceToDevice, v[0].stream));
  else
    PetscCallCUDA(SpMVCudaSpGEMMNumeric(own->plan, csr, i, j, c, v[0].stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)stats.terms));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(C, &c));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(C, PETSC_FALSE, &i, &j));
  PetscCall(SpMVFactorsEnd(f, v));
  PetscCall(SpMVSpGEMMForgetValues(own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_SeqSpMVCUDA(Mat C)
{
  SpMVSpGEMM *own;
  SpMVFactors f;
  PetscBool   usable, changed = PETSC_FALSE, values = PETSC_TRUE;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  own = (SpMVSpGEMM *)C->product->data;
  PetscCheck(own, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product has no data");
  PetscCall(SpMVFactorsGet(C->product, &f));
  PetscCheck(!C->boundtocpu, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "The result has been bound to the CPU since the symbolic phase");
  for (int k = 0; k < f.count; k++) {
    PetscCall(SpMVSpGEMMUsable(f.mat[k], &usable));
    PetscCheck(usable, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
               "A factor has been bound to the CPU, or has got another type, since the symbolic phase");
    if (!SpMVKeyHasNonzeroState(&own->key[k], f.mat[k])) changed = PETSC_TRUE;
    if (!SpMVKeyIsCurrent(&own->key[k], f.mat[k])) values = PETSC_FALSE;
  }
  if (!values) PetscCall(SpMVSpGEMMForgetValues(own));
  if (changed || !SpMVKeyHasNonzeroState(&own->result, C)) PetscCall(SpMVSpGEMMPlanAgain(C, &f, own));
  if (own->plan) PetscCall(SpMVSpGEMMMultiply(C, &f, own));
  /* what MatAssemblyEnd() does to a matrix with this pattern */
  C->info.nz_unneeded = 0;
  C->assembled = C->was_assembled = PETSC_TRUE;
  C->num_ass++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the symbolic phase */

/* C gets the pattern, on the host and, unless it is empty, on the device */
static PetscErrorCode SpMVSpGEMMSetPattern(Mat C, const SpMVFactors *f, SpMVCudaSpGEMM plan)
{
  const int           last    = f->count - 1;
  const PetscLayout   rows    = f->transpose[0] ? f->mat[0]->cmap : f->mat[0]->rmap;
  const PetscLayout   columns = f->transpose[last] ? f->mat[last]->rmap : f->mat[last]->cmap;
  SpMVCudaSpGEMMStats stats   = {0};
  const PetscInt     *i = NULL, *j = NULL;

  PetscFunctionBegin;
  PetscCall(MatSetSizes(C, rows->n, columns->n, rows->n, columns->n));
  PetscCall(MatSetType(C, MATSEQAIJCUSPARSE));
  if (rows->bs > 0 && columns->bs > 0) PetscCall(MatSetBlockSizes(C, rows->bs, columns->bs));
  if (plan) {
    SpMVCudaSpGEMMGetStats(plan, &stats);
    SpMVCudaSpGEMMPattern(plan, &i, &j);
  }
  PetscCall(MatSpMVSetPattern_SeqCUDA(C, stats.nonzeros, i, j));
  if (plan) SpMVCudaSpGEMMReleasePattern(plan);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done is false if PETSc has to multiply */
static PetscErrorCode MatProductSymbolic_SeqSpMVCUDA(Mat C, const SpMVFactors *f, PetscBool *done)
{
  SpMVSpGEMM    *own;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscNew(&own));
  ierr = SpMVSpGEMMPlan(f, own, done);
  if (!ierr && own->plan && C->product->api_user) ierr = SpMVSpGEMMMultiplyEarly(f, own);
  if (!ierr && *done) ierr = SpMVSpGEMMSetPattern(C, f, own->plan);
  if (!ierr && *done) SpMVKeySet(&own->result, C);
  if (ierr || !*done) {
    PetscCall(SpMVSpGEMMDestroy(own));
    PetscCall(ierr);
    PetscCall(
        PetscInfo(C, "PETSc multiplies: a factor's columns do not ascend, or the device has too little memory\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  C->product->data       = own;
  C->product->destroy    = SpMVSpGEMMDestroyCtx;
  C->ops->productnumeric = MatProductNumeric_SeqSpMVCUDA;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- parallel matrices */

#define SpMVMergeName     "MatMPIAIJGetLocalMatMerge_C"
#define SpMVMergeDataName "PetscSpMV_LocalMatMerge"

/* Composed with the second factor of a parallel product during PETSc's symbolic phase */
typedef struct {
  const Mat_SpMV *spmv; /* of the first factor of our types */
  Mat             C;    /* the product */
  PetscErrorCode (*parent)(Mat, MatReuse, IS *, Mat *);
} SpMVMerge;

/* AIJCUSPARSE's function, whose result is a factor of products of blocks: with our type, they get ours. The product has
   its type by now, and gets its format before MatSetPreallocationCOO(), by which AIJCUSPARSE sorts on the host */
static PetscErrorCode MatMPIAIJGetLocalMatMerge_SpMVCUDA(Mat A, MatReuse reuse, IS *columns, Mat *local)
{
  SpMVMerge *merge;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)A, SpMVMergeDataName, &merge));
  PetscCall((*merge->parent)(A, reuse, columns, local));
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(MatSpMVHook(*local, merge->spmv->format, merge->spmv->params));
    PetscCall(MatSpMVHook(merge->C, merge->spmv->format, merge->spmv->params));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_MPISpMVCUDA(Mat C, PetscErrorCode (*petsc)(Mat))
{
  const Mat      B = C->product->B;
  SpMVMerge      merge;
  Mat_SpMV      *spmv;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  merge.spmv = spmv;
  merge.C    = C;
  PetscCall(PetscObjectQueryFunction((PetscObject)B, SpMVMergeName, &merge.parent));
  if (!merge.parent || merge.parent == MatMPIAIJGetLocalMatMerge_SpMVCUDA) {
    PetscCall((*petsc)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVDataSet((PetscObject)B, SpMVMergeDataName, &merge, NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)B, SpMVMergeName, MatMPIAIJGetLocalMatMerge_SpMVCUDA));
  ierr = (*petsc)(C);
  /* even after an error */
  PetscCall(PetscObjectComposeFunction((PetscObject)B, SpMVMergeName, merge.parent));
  PetscCall(SpMVDataSet((PetscObject)B, SpMVMergeDataName, NULL, NULL));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The symbolic phase of any product with a factor of our types; `petsc` is PETSc's function for it */
PetscErrorCode MatProductSymbolic_SpMVCUDA(Mat C, PetscErrorCode (*petsc)(Mat))
{
  SpMVFactors f;
  PetscBool   usable, done = PETSC_FALSE, host = PETSC_FALSE, mpi;

  PetscFunctionBegin;
  usable = (PetscBool)(!C->boundtocpu || !((PetscObject)C)->type_name); /* without a type it is bound to the CPU, too */
  PetscCall(SpMVFactorsGet(C->product, &f));
  for (int k = 0; k < f.count && usable; k++) PetscCall(SpMVSpGEMMUsable(f.mat[k], &usable));
  if (usable && f.count && SpMVCudaIsSupported()) {
    PetscCall(SpMVSpGEMMOnHost(C, &host));
    if (!host) PetscCall(MatProductSymbolic_SeqSpMVCUDA(C, &f, &done));
  }
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)C->product->B, MATMPIAIJCUSPARSE, &mpi));
  if (mpi)
    PetscCall(MatProductSymbolic_MPISpMVCUDA(C, petsc));
  else
    PetscCall((*petsc)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
