/*
  The prolongator of a level of PCGAMGAGG on the device, where it is smoothed before it becomes a matrix. On several
  ranks, the tentative prolongator is block diagonal. A smoothing needs its rows of other ranks, and adds an off-diagonal
  block. With more than one smoothing on several ranks, PETSc does all of them.
*/
#include "gamg.h"
#include "ksp/impls/device/cuda/krylov.h"
#include <petscsf.h>

#if PCGAMG_DEVICE

/* ---------------------------------------------------------------- the tentative prolongator */

/* The vectors of A's near null space, one after the other, in memory of the device */
static PetscErrorCode PCGAMGDeviceGetVecs(Mat A, const Vec vecs[], PetscInt count, PetscReal *near, cudaStream_t stream)
{
  const size_t       m = (size_t)A->rmap->n;
  const PetscScalar *v[32];
  const void        *from[32];
  void              *to[32];
  size_t             bytes[32];
  int                host = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < count; k++) {
    PetscMemType type;

    PetscCall(VecGetArrayReadAndMemType(vecs[k], &v[k], &type));
    from[host]  = v[k];
    to[host]    = near + (size_t)k * m;
    bytes[host] = m * sizeof(PetscReal);
    if (PetscMemTypeDevice(type))
      PetscCallCUDA(cudaMemcpyAsync(to[host], v[k], bytes[host], cudaMemcpyDeviceToDevice, stream));
    else
      host++;
  }
  if (host) {
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* the memory may still be in use */
    PetscCallCUDA(SpMVCudaUpload(host, to, from, bytes));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)host * (PetscLogDouble)bytes[0]));
  }
  for (PetscInt k = 0; k < count; k++) PetscCall(VecRestoreArrayReadAndMemType(vecs[k], &v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null space of this level on the device, where the last level has left it, or from the matrix or the host;
   NULL is the default */
static PetscErrorCode PCGAMGDeviceGetData(PC_GAMGDevice *d, Mat A, const PC_GAMG *gamg, cudaStream_t stream)
{
  const void  *host  = gamg->data;
  PetscInt     count = 0;
  size_t       bytes = (size_t)gamg->data_sz * sizeof(PetscReal);
  const Vec   *vecs;
  MatNullSpace modes = NULL;
  void        *device;

  PetscFunctionBegin;
  if (d->near) PetscFunctionReturn(PETSC_SUCCESS);
  if (d->lazy) {
    PetscCall(MatGetNearNullSpace(A, &modes));
    if (!modes) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatNullSpaceGetVecs(modes, NULL, &count, &vecs));
    bytes = (size_t)A->rmap->n * (size_t)count * sizeof(PetscReal);
  }
  PetscCallCUDA(SpMVCudaUploadTemporary(1, &device, modes ? NULL : &host, &bytes, stream, &d->memory));
  d->near = (PetscReal *)device;
  if (modes)
    PetscCall(PCGAMGDeviceGetVecs(A, vecs, count, d->near, stream));
  else
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null space of the next level, R, which PETSc has on the host; the device keeps it, too */
static PetscErrorCode PCGAMGDeviceSetData(PC_GAMGDevice *d, PC_GAMG *gamg, PetscBool parallel, PetscInt64 count,
                                          SpMVCudaTemporary *memory, PetscReal *R, cudaStream_t stream)
{
  const PetscInt k     = gamg->data_cell_cols;
  const void    *from  = R;
  const size_t   bytes = (size_t)count * (size_t)k * (size_t)k * sizeof(PetscReal);
  void          *to;

  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaFreeTemporary(&d->memory, stream));
  d->memory = *memory;
  d->near   = R;
  d->lazy   = PETSC_FALSE;
  PetscCall(PetscFree(gamg->data));
  gamg->data_sz        = (PetscInt)(count * k * k);
  gamg->data_cell_rows = k;
  PetscCall(PetscMalloc1(gamg->data_sz, &gamg->data));
  to = gamg->data;
  if (count) {
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCallCUDA(SpMVCudaDownload(1, &to, &from, &bytes));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  }
  if (parallel) { /* PETSc may move it to other ranks */
    PetscCallCUDA(SpMVCudaFreeTemporary(&d->memory, stream));
    d->near = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays of a matrix with n columns */
static PetscErrorCode PCGAMGLevelAlloc(PetscInt64 m, PetscInt64 n, PetscInt64 nonzeros, cudaStream_t stream,
                                       SpMVCudaTemporary *memory, SpMVCudaCSR *csr, void *array[3])
{
  const size_t bytes[] = {(size_t)(m + 1) * sizeof(PetscInt), (size_t)nonzeros * sizeof(PetscInt),
                          (size_t)nonzeros * sizeof(PetscScalar)};

  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaUploadTemporary(3, array, NULL, bytes, stream, memory));
  *csr = (SpMVCudaCSR){m, n, nonzeros, array[0], array[1], sizeof(PetscInt), (PetscScalar *)array[2]};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The prolongator of this rank's rows, in level->P, and the near null space of the next level */
static PetscErrorCode PCGAMGLevelTentative(PC pc, PC_GAMGDevice *d, Mat A, PetscInt bs)
{
  PC_GAMG                *gamg  = PCGAMGGet(pc);
  PCGAMGLevel            *level = &d->level;
  const PetscInt          k = gamg->data_cell_cols, m = A->rmap->n;
  SpMVCudaAggregatesStats stats  = {0};
  SpMVCudaTemporary       memory = {NULL, PETSC_FALSE};
  cudaStream_t            stream;
  size_t                  bytes;
  void                   *R = NULL, *array[3];

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (level->aggregates) SpMVCudaAggregatesGet(level->aggregates, &stats);
  level->P[0] = (SpMVCudaCSR){.m = m, .n = stats.count * k};
  level->P[1] = (SpMVCudaCSR){.m = m};
  if (stats.count) {
    PetscCall(PCGAMGDeviceGetData(d, A, gamg, stream));
    PetscCall(
        PCGAMGLevelAlloc(m, stats.count * k, stats.members * bs * k, stream, &level->memory[0], &level->P[0], array));
    bytes = (size_t)stats.count * (size_t)k * (size_t)k * sizeof(PetscReal);
    PetscCallCUDA(SpMVCudaUploadTemporary(1, &R, NULL, &bytes, stream, &memory));
    PetscCallCUDA(SpMVCudaTentative(level->aggregates, bs, k, d->near, (PetscInt *)array[0], (PetscInt *)array[1],
                                    (PetscScalar *)array[2], (PetscReal *)R, stream));
  }
  PetscCall(PCGAMGDeviceSetData(d, gamg, SpMVIsMPI(A), stats.count, &memory, (PetscReal *)R, stream));
  PetscCallCUDA(SpMVCudaAggregatesDestroy(&level->aggregates));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The prolongator as a matrix of the same format as A */
static PetscErrorCode PCGAMGLevelCreateMat(Mat A, PCGAMGLevel *level, PetscInt columns, Mat *P)
{
  const MPI_Comm  comm     = PetscObjectComm((PetscObject)A);
  const PetscBool mpi      = SpMVIsMPI(A);
  Mat             block[2] = {NULL, NULL};
  PetscInt        bs, size[2] = {(PetscInt)level->P[0].m, (PetscInt)level->P[0].n};
  PetscErrorCode  ierr;
  Mat_SpMV       *spmv;
  SpMVKeep        keep;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatGetBlockSize(A, &bs));
  if (mpi) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, size, 2, MPIU_INT, MPI_SUM, comm));
  SpMVKeepBegin(spmv, &keep);
  ierr = MatSpMVCreateFrom_SeqCUDA(&level->P[0], bs, columns, &block[0]);
  if (mpi && !ierr) ierr = MatSpMVCreateFrom_SeqCUDA(&level->P[1], bs, columns, &block[1]);
  ierr = SpMVAgree(comm, ierr);
  if (ierr) {
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&block[k]));
  } else if (mpi) { /* the blocks and the array become part of it */
    ierr          = MatCreateMPIAIJWithSeqAIJ(comm, size[0], size[1], block[0], block[1], level->garray, P);
    level->garray = NULL;
  } else
    *P = block[0];
  if (!ierr) ierr = SpMVKeepSet(&keep, *P);
  SpMVKeepEnd(); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGProlongator_Device(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PC_GAMGDevice *d;
  PetscInt       bs, n, total;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  if (!d->level.made) {
    PetscCall((*d->ops.prolongator)(pc, A, lists, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(SpMVAgree(comm, PCGAMGLevelTentative(pc, d, A, bs)));
  total = n = (PetscInt)d->level.P[0].n;
  *P        = NULL;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPIU_INT, MPI_SUM, comm));
  if (total) { /* PETSc asks it for its block sizes */
    PetscCall(MatCreate(comm, P));
    PetscCall(MatSetSizes(*P, A->rmap->n, n, PETSC_DETERMINE, total));
    PetscCall(MatSetBlockSizes(*P, bs, PCGAMGGet(pc)->data_cell_cols));
  }
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the smoothed prolongator */

/* Estimates the extreme eigenvalues of D^-1 A as PETSc does, with its options */
static PetscErrorCode PCGAMGEstimate(PC pc, Mat A, PetscReal *emin, PetscReal *emax)
{
  const char *prefix;
  PetscBool   set, definite;
  KSP         ksp;
  PC          jacobi;
  Vec         b, x;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &b, &x));
  PetscCall(KSPDeviceSetNoise(A, b));
  PetscCall(KSPDeviceAllocateAtOnce(x));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetNestLevel(ksp, pc->kspnestlevel));
  PetscCall(PCGetOptionsPrefix(pc, &prefix));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPAppendOptionsPrefix(ksp, "pc_gamg_esteig_"));
  PetscCall(MatIsSPDKnown(A, &set, &definite));
  if (set && definite) PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetErrorIfNotConverged(ksp, pc->erroriffailure));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &jacobi));
  PetscCall(PCSetType(jacobi, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, PETSC_CURRENT, PETSC_CURRENT, PETSC_CURRENT, 10));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetComputeSingularValues(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPCheckSolve(ksp, pc, x));
  PetscCall(KSPComputeExtremeSingularValues(ksp, emax, emin));
  PetscCall(PetscInfo(pc, "Extreme eigenvalues with jacobi: %g and %g\n", (double)*emax, (double)*emin));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For PCGAMGLevelExchange(): all rows of a tentative prolongator with k columns for each aggregate, on the device */
static PetscErrorCode PCGAMGLevelGetRows(const SpMVCudaCSR *P, PetscInt k, PetscInt before, SpMVCudaTemporary *memory,
                                         void *array[2])
{
  const size_t bytes[] = {(size_t)P->m * sizeof(PetscInt), (size_t)(P->m * k) * sizeof(PetscScalar)};
  cudaStream_t stream;

  PetscFunctionBegin;
  if (!P->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaUploadTemporary(2, array, NULL, bytes, stream, memory));
  PetscCallCUDA(SpMVCudaTentativeRows(P, k, before, (PetscInt *)array[0], (PetscScalar *)array[1], stream));
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* PetscSF may use another stream */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The rows of other ranks that A's off-diagonal block refers to, of a tentative prolongator with k columns for each
  aggregate: the first column of each row, or -1 if it has no entries, and k values. Collective, also after an error
*/
static PetscErrorCode PCGAMGLevelExchange(Mat A, PetscInt k, const SpMVCudaCSR *P, PetscInt n, const PetscInt garray[],
                                          PetscInt received[], PetscScalar values[])
{
  const MPI_Comm    comm     = PetscObjectComm((PetscObject)A);
  PetscInt          end      = (PetscInt)P->n;
  SpMVCudaTemporary memory   = {NULL, PETSC_FALSE};
  void             *array[2] = {NULL, NULL};
  MPI_Datatype      unit;
  PetscSF           sf;
  cudaStream_t      stream;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallMPI(MPI_Scan(MPI_IN_PLACE, &end, 1, MPIU_INT, MPI_SUM, comm));
  ierr = SpMVAgree(comm, PCGAMGLevelGetRows(P, k, end - (PetscInt)P->n, &memory, array));
  if (!ierr) {
    PetscCall(PetscSFCreate(comm, &sf));
    PetscCall(PetscSFSetGraphLayout(sf, A->cmap, n, NULL, PETSC_COPY_VALUES, garray));
    PetscCallMPI(MPI_Type_contiguous((PetscMPIInt)k, MPIU_SCALAR, &unit));
    PetscCallMPI(MPI_Type_commit(&unit));
    PetscCall(PetscSFBcastWithMemTypeBegin(sf, MPIU_INT, PETSC_MEMTYPE_CUDA, array[0], PETSC_MEMTYPE_HOST, received,
                                           MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(sf, MPIU_INT, array[0], received, MPI_REPLACE));
    PetscCall(
        PetscSFBcastWithMemTypeBegin(sf, unit, PETSC_MEMTYPE_CUDA, array[1], PETSC_MEMTYPE_HOST, values, MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(sf, unit, array[1], values, MPI_REPLACE));
    PetscCallMPI(MPI_Type_free(&unit));
    PetscCall(PetscSFDestroy(&sf));
  }
  PetscCallCUDA(SpMVCudaFreeTemporary(&memory, stream)); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* These rows as a matrix on the device, in which column c is column level->garray[c] of the prolongator. Collective */
static PetscErrorCode PCGAMGLevelReceive(Mat A, PetscInt k, PCGAMGLevel *level, SpMVCudaTemporary *memory,
                                         SpMVCudaCSR *rows)
{
  PetscInt        n, nnz = 0, count = 0, *i, *j, *received, *sorted;
  const PetscInt *garray;
  PetscScalar    *a, *values;
  Mat             block;
  cudaStream_t    stream;
  cudaError_t     error;
  PetscErrorCode  ierr;
  void           *array[3];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &block, &garray));
  n = block->cmap->n;
  PetscCall(SpMVAgreeOnMemory(
      PetscObjectComm((PetscObject)A),
      2 * (size_t)(n * k) * sizeof(PetscScalar) + (size_t)(3 * n + 1 + n * k) * sizeof(PetscInt), &a));
  values   = a + n * k;
  i        = (PetscInt *)(values + n * k);
  received = i + n + 1;
  sorted   = received + n;
  j        = sorted + n;
  ierr     = PCGAMGLevelExchange(A, k, &level->P[0], n, garray, received, values);
  if (ierr) PetscCall(PetscFree(a));
  PetscCall(ierr);
  for (PetscInt r = 0; r < n; r++) {
    if (received[r] >= 0) sorted[count++] = received[r];
  }
  PetscCall(PetscSortRemoveDupsInt(&count, sorted));
  PetscCall(PetscFree(level->garray));
  PetscCall(PetscMalloc1(count * k, &level->garray));
  for (PetscInt c = 0; c < count * k; c++) level->garray[c] = sorted[c / k] + c % k;
  for (PetscInt r = 0, at; r < n; r++) {
    i[r] = nnz;
    if (received[r] < 0) continue;
    PetscCall(PetscFindInt(received[r], count, sorted, &at));
    for (PetscInt c = 0; c < k; c++, nnz++) {
      j[nnz] = at * k + c;
      a[nnz] = values[r * k + c];
    }
  }
  i[n] = nnz;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  error = SpMVCudaUploadTemporary(
      3, array, (const void *[]){i, j, a},
      (size_t[]){(size_t)(n + 1) * sizeof(PetscInt), (size_t)nnz * sizeof(PetscInt), (size_t)nnz * sizeof(PetscScalar)},
      stream, memory);
  PetscCall(PetscFree(a));
  PetscCallCUDA(error);
  *rows = (SpMVCudaCSR){n, count * k, nnz, array[0], array[1], sizeof(PetscInt), (PetscScalar *)array[2]};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  P = P0 - 1.4 / emax D^-1 A P0, where D is A's diagonal; with `diagonal`, the diagonal block, A is the off-diagonal one,
  D is the diagonal of the former, and P = - 1.4 / emax D^-1 A P0. Without entries in a factor nothing is done
*/
static PetscErrorCode PCGAMGSmooth(Mat A, Mat diagonal, const SpMVCudaCSR *P0, PetscReal emax, SpMVCudaSpGEMM *product,
                                   SpMVCudaTemporary *memory, SpMVCudaCSR *P)
{
  const PetscBool     transpose[2] = {PETSC_FALSE, PETSC_FALSE};
  SpMVValues          v, w;
  SpMVCudaSpGEMMStats stats;
  MatInfo             info;
  void               *array[3];
  cudaError_t         error = cudaSuccess;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (!info.nz_used || !P0->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  if (diagonal) PetscCall(SpMVValuesGet(diagonal, PETSC_FALSE, &w));
  PetscCallCUDA(SpMVCudaSpGEMMSymbolic(2, (const SpMVCudaCSR[]){v.csr, *P0}, transpose, 0, v.stream, product));
  SpMVCudaSpGEMMGetStats(*product, &stats);
  ierr = PCGAMGLevelAlloc(A->rmap->n, P0->n, stats.nonzeros, v.stream, memory, P, array);
  if (!ierr)
    error = SpMVCudaSmooth(*product, &v.csr, diagonal ? &w.csr : NULL, P0, 1.4 / emax, (PetscInt *)array[0],
                           (PetscInt *)array[1], (PetscScalar *)array[2], v.stream);
  if (diagonal) PetscCall(SpMVValuesRestore(diagonal, &w));
  PetscCall(SpMVValuesRestore(A, &v));
  PetscCall(ierr);
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces level->P, with k columns for each aggregate */
static PetscErrorCode PCGAMGLevelSmooth(Mat A, PetscInt k, PCGAMGLevel *level, PetscReal emax)
{
  SpMVCudaTemporary memory[2] = {{NULL, PETSC_FALSE}, {NULL, PETSC_FALSE}};
  SpMVCudaCSR       rows = {0}, P[2] = {level->P[0], level->P[1]};
  Mat               block[2] = {A, NULL};
  cudaStream_t      stream;
  PetscErrorCode    ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVIsMPI(A)) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    ierr = PCGAMGLevelReceive(A, k, level, &memory[1], &rows);
  }
  for (int b = 0; b < 2; b++) PetscCallCUDA(SpMVCudaSpGEMMDestroy(&level->product[b]));
  if (!ierr) ierr = PCGAMGSmooth(block[0], NULL, &level->P[0], emax, &level->product[0], &memory[0], &P[0]);
  if (block[1] && !ierr) {
    P[1].n = rows.n;
    ierr   = PCGAMGSmooth(block[1], block[0], &rows, emax, &level->product[1], &level->memory[1], &P[1]);
  }
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaFreeTemporary(&memory[1], stream));
  if (!ierr && memory[0].memory) {
    PetscCallCUDA(SpMVCudaFreeTemporary(&level->memory[0], stream));
    level->memory[0] = memory[0];
  } else
    PetscCallCUDA(SpMVCudaFreeTemporary(&memory[0], stream));
  PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), ierr));
  for (int b = 0; b < 2; b++) level->P[b] = P[b];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGOptProlongator_Device(PC pc, Mat A, Mat *P)
{
  PC_MG             *mg       = (PC_MG *)pc->data;
  PC_GAMG           *gamg     = PCGAMGGet(pc);
  const PC_GAMG_AGG *agg      = (const PC_GAMG_AGG *)gamg->subctx;
  const PetscInt     l        = gamg->current_level;
  const PetscBool    estimate = (PetscBool)(agg->nsmooths > 0 && gamg->use_sa_esteig);
  PetscReal          emin = gamg->emin, emax = gamg->emax;
  PC_GAMGDevice     *d;
  Mat                result;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  if (d->level.made && agg->nsmooths > 1 && SpMVIsMPI(A)) {
    PetscCall(MatDestroy(P));
    PetscCall(PCGAMGLevelCreateMat(A, &d->level, gamg->data_cell_cols, P));
    PetscCall(PCGAMGLevelFree(&d->level));
  }
  if (!d->level.made) {
    PetscCall((*d->ops.optprolongator)(pc, A, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_OPT], 0, 0, 0, 0));
  if (agg->nsmooths > 0 && emax <= 0) PetscCall(PCGAMGEstimate(pc, A, &emin, &emax));
  mg->min_eigen_DinvA[l] = estimate ? emin : 0;
  mg->max_eigen_DinvA[l] = estimate ? emax : 0;
  for (PetscInt k = 0; k < agg->nsmooths; k++) {
    PetscCheck(emax != 0, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "Computed maximum singular value as zero");
    PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_OPTSM], 0, 0, 0, 0));
    PetscCall(PCGAMGLevelSmooth(A, gamg->data_cell_cols, &d->level, emax));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_OPTSM], 0, 0, 0, 0));
  }
  PetscCall(PCGAMGLevelCreateMat(A, &d->level, gamg->data_cell_cols, &result));
  PetscCall(PCGAMGLevelFree(&d->level));
  PetscCall(MatDestroy(P));
  *P = result;
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_OPT], 0, 0, 0, 0));
  PetscCall(MatViewFromOptions(*P, NULL, "-pc_gamg_agg_view_prolongation"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
