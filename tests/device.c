/*
  Cases that occur only with a matrix on a device: vectors in either memory, values in device arrays, binding to the CPU
  and back, CUSPARSE's factors, graphs. Without a device the same operations run on the host, except for the parts that
  need a device.
*/
#include "parts/device.h"

PetscErrorCode CreateVec(Mat A, PetscBool rows, PetscBool host, Vec *v)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  if (!host) {
    PetscCall(MatCreateVecs(A, rows ? NULL : v, rows ? v : NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), v));
  PetscCall(VecSetSizes(*v, rows ? m : n, rows ? M : N));
  PetscCall(VecSetType(*v, VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products, twice, with each operand in either memory, and with the result in place or not. AIJCUSPARSE does not
   accept host vectors */
static PetscErrorCode Mixed(Test *t, Record *r)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  for (int again = 0; again < 2; again++) {
    for (int op = 0; op < 3; op++) {
      for (int where = 0; where < 8; where++) {
        const PetscBool trans = (PetscBool)(op != PLAIN);
        Vec             x, y, z, b;

        PetscCall(CreateVec(A, trans, (PetscBool)(where & 1), &x));
        PetscCall(CreateVec(A, (PetscBool)!trans, (PetscBool)(where >> 1 & 1), &y));
        PetscCall(CreateVec(A, (PetscBool)!trans, (PetscBool)(where >> 2 & 1), &z));
        PetscCall(VecFill(x, 1 + where));
        PetscCall(VecFill(y, 2 + where));
        PetscCall(VecSet(z, PETSC_MAX_REAL));
        PetscCall(RecordMult(r, "z = y + op(A) x at", A, (Op)op, x, y, z));
        PetscCall(RecordMult(r, "y += op(A) x at", A, (Op)op, x, y, y));
        PetscCall(RecordMult(r, "z = op(A) x at", A, (Op)op, x, NULL, z));
        PetscCall(VecDuplicate(z, &b));
        PetscCall(ProductBounds(A, x, NULL, trans, b));
        PetscCall(VecScale(x, 2.)); /* where it is now */
        PetscCall(VecScale(b, 2.));
        PetscCall(MatOpMult(A, (Op)op, x, NULL, z));
        PetscCall(RecordVec(r, "z = op(A) 2x at", z, b, 0));
        PetscCall(Destroy(&x, &y, &z, &b));
      }
    }
    PetscCall(MatScale(A, -1.5));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets a block's values through its array on the device, or through the host array if there is none */
static PetscErrorCode WriteBlock(Test *t, Mat A, PetscBool write, PetscInt seed)
{
  PetscScalar *a, *v;
  MatInfo      info;
  PetscInt     nz;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  nz = (PetscInt)info.nz_used;
  PetscCall(PetscMalloc1(nz, &v));
  for (PetscInt k = 0; k < nz; k++) v[k] = Value(k, 1, seed);
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCall((write ? MatSeqAIJCUSPARSEGetArrayWrite : MatSeqAIJCUSPARSEGetArray)(A, &a));
    if (nz) PetscCallCUDA(cudaMemcpy(a, v, nz * sizeof(PetscScalar), cudaMemcpyHostToDevice));
    PetscCall((write ? MatSeqAIJCUSPARSERestoreArrayWrite : MatSeqAIJCUSPARSERestoreArray)(A, &a));
    PetscCall(PetscFree(v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall(PetscArraycpy(a, v, nz));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Values change between products, so that the newest values are alternately on the host and on the device. The entries
  are read (which moves them) only at the end
*/
static PetscErrorCode Stale(Test *t, Record *r)
{
  Mat      A, B, Ad, Ao;
  Vec      x, y, l, d;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(A, &d, &l));
  PetscCall(VecFill(l, 8));
  PetscCall(VecFill(d, 9));
  PetscCall(VecFill(x, 10));
  Ad = A;
  Ao = NULL;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  for (PetscInt k = 0; k < 14; k++) {
    switch (k) {
    case 1: PetscCall(MatScale(A, 1.5)); break;
    case 2: PetscCall(MatDiagonalScale(A, l, d)); break;
    case 3: PetscCall(MatAXPY(A, 2., B, SAME_NONZERO_PATTERN)); break;
    case 4: PetscCall(MatZeroEntries(A)); break;
    case 5: PetscCall(FillLike(t->R, 40, A)); break;
    case 6: PetscCall(MatScale(A, -1.)); break;
    case 7: PetscCall(WriteBlock(t, Ad, PETSC_FALSE, 41)); break;
    case 8:
      if (Ao) PetscCall(WriteBlock(t, Ao, PETSC_FALSE, 42));
      break;
    case 9: PetscCall(WriteBlock(t, Ad, PETSC_TRUE, 43)); break;
    case 10: PetscCall(MatAXPY(A, -1., B, SUBSET_NONZERO_PATTERN)); break;
    case 11: PetscCall(MatDiagonalScale(A, NULL, d)); break;
    case 12: PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN)); break;
    case 13: PetscCall(MatConjugate(A)); break;
    }
    PetscCall(MatMult(A, x, y));
    PetscCall(RecordVec(r, "A x at row", y, NULL, 1e4));
    PetscCall(VecSet(y, 1.));
    PetscCall(MatMultTransposeAdd(A, y, d, d));
    PetscCall(RecordVec(r, "d += A^T 1 at column", d, NULL, 1e5));
    PetscCall(VecFill(d, 9));
  }
  PetscCall(RecordMat(t, r, "type at the end", A));
  PetscCall(Destroy(&x, &y, &l, &d, &B, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  CUSPARSE's factors, and triangular solves with them; with AIJ, PETSc's own factors. Transposed systems are solved with
  one factor from the first numeric phase on, and with another factor only from the second numeric phase on
*/
static PetscErrorCode Factor(Test *t, Record *r)
{
  const PetscBool     chol = (PetscBool)(t->arg[0] == 'i' && t->arg[1] == 'c');
  const MatFactorType ft   = chol ? MAT_FACTOR_ICC : t->arg[0] == 'i' ? MAT_FACTOR_ILU : MAT_FACTOR_LU;
  Mat                 A, F;
  Vec                 b, x;
  IS                  row, col;
  MatFactorInfo       info;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  for (int late = 0; late < (chol ? 1 : 2); late++) {
#if defined(PETSC_HAVE_CUDA)
    PetscCall(MatGetFactor(A, t->device ? MATSOLVERCUSPARSE : MATSOLVERPETSC, ft, &F));
#else
    PetscCall(MatGetFactor(A, MATSOLVERPETSC, ft, &F));
#endif
    PetscCall(MatGetOrdering(A, late && ft == MAT_FACTOR_LU ? MATORDERINGRCM : MATORDERINGNATURAL, &row, &col));
    PetscCall(MatFactorInfoInitialize(&info));
    info.levels = 0;
    info.fill   = 3;
    if (ft == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
    if (ft == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(F, A, row, col, &info));
    if (ft == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(F, A, row, &info));
    PetscCall(ISDestroy(&row)); /* the factor keeps what it needs */
    PetscCall(ISDestroy(&col));
    for (int k = 0; k < 3; k++) {
      if (chol)
        PetscCall(MatCholeskyFactorNumeric(F, A, &info));
      else
        PetscCall(MatLUFactorNumeric(F, A, &info));
      for (int bound = 0; bound < 8; bound++) { /* bind to the host: either vector, the factor */
        PetscCall(VecBindToCPU(b, (PetscBool)(bound & 1)));
        PetscCall(VecBindToCPU(x, (PetscBool)(bound >> 1 & 1)));
        PetscCall(MatBindToCPU(F, (PetscBool)(bound >> 2 & 1)));
        /* different numbers each time: otherwise a lost result would equal the previous solution */
        PetscCall(VecFill(b, 1 + bound));
        PetscCall(MatSolve(F, b, x));
        PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
        if (k < late) continue;
        PetscCall(MatSolveTranspose(F, b, x));
        PetscCall(RecordVec(r, "solution of the transposed system", x, NULL, 1e6));
      }
      PetscCall(MatBindToCPU(F, PETSC_FALSE));
      PetscCall(MatScale(A, 2.));
    }
    PetscCall(MatDestroy(&F));
  }
  PetscCall(RecordMat(t, r, "type after the factorizations", A));
  PetscCall(Destroy(&b, &x, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Whether AIJCUSPARSE multiplies with A or a part of it: cuSPARSE's default algorithm does not promise the
   same bits */
static PetscErrorCode ByCusparse(Test *t, Mat A, PetscBool *by)
{
  const char   *format;
  Mat           block[2] = {A, NULL};
  PetscSpMVInfo info;
  int           any;

  PetscFunctionBegin;
  PetscCall(PetscSpMVGetFormat(A, &format));
  any = t->device && !format;
  if (t->device && format) {
    if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int k = 0; k < 2 && block[k]; k++) {
      PetscCall(PetscSpMVGetInfo(block[k], &info));
      if (info.nonzeros && !info.stored) any = 1;
    }
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, t->comm));
  *by = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A repeated product gives the same bits, also with another matrix that has the same entries. This is not required if
   AIJCUSPARSE multiplies */
static PetscErrorCode Repeat(Test *t, Record *r)
{
  Mat       A, B;
  Vec       x, y, z;
  PetscInt  m, n;
  PetscBool same, cusparse = PETSC_FALSE;
  int       square;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(ByCusparse(t, A, &cusparse));
  for (int k = 0; k < 4; k++) {
    PetscCall(VecSet(z, 1.));
    PetscCall(MatMult(k < 3 ? A : B, x, z));
    PetscCall(VecEqual(y, z, &same));
    PetscCall(RecordInt(r, "the same bits", same || cusparse));
  }
  PetscCall(VecFill(y, 2));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(MatMultAdd(A, x, z, z));
  PetscCall(VecEqual(y, z, &same));
  PetscCall(RecordInt(r, "the same bits of a sum", same || cusparse));
  /* a chain of products gives the same result whether or not the host waits before each of them */
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetLocalSize(y, &m));
  square = m == n;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &square, 1, MPI_INT, MPI_LAND, t->comm));
  if (square) {
    Vec *chain;

    PetscCall(VecDuplicateVecs(x, 9, &chain));
    PetscCall(VecCopy(x, chain[0]));
    for (int k = 0; k < 8; k++) PetscCall(MatMult(A, chain[k], chain[k + 1]));
    for (int k = 0; k < 8; k++) {
      PetscReal norm;

      PetscCall(VecNorm(chain[k], NORM_INFINITY, &norm)); /* waits */
      PetscCall(MatMult(A, chain[k], y));
      PetscCall(VecEqual(y, chain[k + 1], &same));
      PetscCall(RecordInt(r, "the same bits in a chain", same || cusparse));
    }
    PetscCall(VecDestroyVecs(9, &chain));
  }
  PetscCall(Destroy(&x, &y, &z, &B, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A product in a CUDA graph, replayed with other numbers in x: it must neither wait for the device nor allocate memory.
  CUDA's default stream, which PETSc uses without -root_device_context_stream_type nonblocking, cannot be captured.
*/
static PetscErrorCode Graph(Test *t, Record *r)
{
  Mat A;
  Vec x, y, z, b;
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  cudaStream_t stream = NULL;
#endif

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultAdd(A, x, y, z));
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  if (t->device) PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (stream) {
    cudaGraph_t     graph = NULL;
    cudaGraphExec_t exec;
    PetscErrorCode  ierr;
    cudaError_t     error;

    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ierr = MatMult(A, x, y);
    if (!ierr) ierr = MatMultAdd(A, x, y, z);
    error = cudaStreamEndCapture(stream, &graph);
    PetscCall(ierr);
    PetscCallCUDA(error);
    PetscCallCUDA(cudaGraphInstantiate(&exec, graph, 0));
    PetscCall(VecSet(y, PETSC_MAX_REAL));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall(VecScale(x, 3.));             /* on the device, where the graph reads it */
    PetscCallCUDA(cudaDeviceSynchronize()); /* PETSc's operations on vectors need not run in this stream */
    PetscCallCUDA(cudaGraphLaunch(exec, stream));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaGraphExecDestroy(exec));
    PetscCallCUDA(cudaGraphDestroy(graph));
  } else
#endif
  {
    PetscCall(VecScale(x, 3.));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMultAdd(A, x, y, z));
  }
  PetscCall(ProductBounds(t->R, x, NULL, PETSC_FALSE, b));
  PetscCall(RecordVec(r, "A x at row", y, b, 0));
  { /* on the host: some of PETSc's own operations do not respect the order of a nonblocking stream */
    const PetscScalar *ya;
    PetscScalar       *za;
    PetscInt           m;

    PetscCall(VecGetLocalSize(z, &m));
    PetscCall(VecGetArrayRead(y, &ya));
    PetscCall(VecGetArray(z, &za));
    for (PetscInt i = 0; i < m; i++) za[i] -= 2. * ya[i];
    PetscCall(VecRestoreArray(z, &za));
    PetscCall(VecRestoreArrayRead(y, &ya));
  }
  PetscCall(VecScale(b, 2.));
  PetscCall(RecordVec(r, "(y + A x) - 2 y at row", z, b, 0));
  PetscCall(Destroy(&x, &y, &z, &b, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The free memory of the device must be the same before and after many products, refreshes, new patterns, and created
  and destroyed matrices. Each step handles megabytes, so a leak adds up to hundreds of them. Other programs also affect
  the free memory, so this test must run alone
*/
static PetscErrorCode Memory(Test *t, Record *r)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    const PetscInt n = 200000;
    PetscInt       rs, re;
    size_t         before = 0, after, total;
    Mat            A, B;
    Vec            x, y;

    for (int step = -3; step < 30; step++) {
      if (step == 0) {
        PetscCallCUDA(cudaDeviceSynchronize());
        PetscCallCUDA(cudaMemGetInfo(&before, &total));
      }
      PetscCall(MatCreateSized(t->comm, t->type, PETSC_DECIDE, PETSC_DECIDE, n, n, 8, &A));
      PetscCall(MatGetOwnershipRange(A, &rs, &re));
      PetscCall(MatCreateVecs(A, &x, &y));
      PetscCall(VecSet(x, 1.));
      for (PetscInt change = 0; change < 2; change++) {
        /* assembly has freed the unused preallocated space, which another pattern needs */
        if (change) PetscCall(MatResetPreallocation(A));
        for (PetscInt i = rs; i < re; i++) {
          const PetscInt    cols[] = {i, (i + 1) % n, (i + 77 + change) % n, (i + 5000) % n};
          const PetscScalar vals[] = {4, -1, .5, .25};

          PetscCall(MatSetValues(A, 1, &i, 4, cols, vals, INSERT_VALUES));
        }
        PetscCall(MatAssemble(A));
        for (int k = 0; k < 4; k++) {
          PetscCall(MatMult(A, x, y));
          PetscCall(MatMultAdd(A, x, y, y));
          PetscCall(MatMultTranspose(A, y, x));
          PetscCall(VecSet(x, 1.));
          PetscCall(MatScale(A, 1.01));
        }
      }
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
      PetscCall(MatMult(B, x, y));
      PetscCall(MatBindToCPU(B, PETSC_TRUE));
      PetscCall(MatMult(B, x, y));
      PetscCall(Destroy(&B, &A, &x, &y));
    }
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaMemGetInfo(&after, &total));
    PetscCall(PetscPrintf(t->comm, "%s: %.1f MB of device memory before, %.1f MB after 30 steps\n", t->type,
                          (double)(total - before) / 1e6, (double)(total - after) / 1e6));
    PetscCheck(after + ((size_t)64 << 20) > before, PETSC_COMM_SELF, PETSC_ERR_MEM,
               "%.1f MB of device memory were not freed", ((double)before - (double)after) / 1e6);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {{"mixed", Mixed, NOCUDA},
                                       {"bind", Bind, FULL},
                                       {"bindbelow", BindBelow, FULL},
                                       {"bindsome", BindSome, ONCE | PAR | NOCUDA},
                                       {"coo", COO, FULL, "own"},
                                       {"coo-away", COO, FULL, "away"},
                                       {"coo-errors", COOErrors, FULL | SEQ},
                                       {"coo-many", COOMany, ONCE},
                                       {"copies", Copies, ONCE | STRICT},
                                       {"stale", Stale, FULL},
                                       {"ilu", Factor, SOLVE | SEQ | NOCUDA, "ilu"},
                                       {"icc", Factor, SPD | SEQ | NOCUDA, "icc"},
                                       {"lu", Factor, SOLVE | SEQ | NOCUDA, "lu"},
                                       {"repeat", Repeat, STRICT},
                                       {"graph", Graph, SEQ | FULL | STRICT},
                                       {"memory", Memory, ONCE | DEVICE | ALONE},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "device", operations, 0);
}
