/*
  The prolongator of a level of PCGAMGAGG on the device. On one rank it is smoothed there before it becomes a matrix. On
  several ranks the tentative prolongator is a parallel matrix, which PETSc's function smooths with our products.
*/
#include "gamg.h"
#include "ksp/impls/device/cuda/krylov.h"

#if PCGAMG_DEVICE

/* ---------------------------------------------------------------- the tentative prolongator */

/* Whether the near null space is PETSc's default: unknown c of each node is constant, in column c */
static PetscBool PCGAMGHasDefaultData(const PC_GAMG *gamg, PetscInt m, PetscInt bs)
{
  if (gamg->current_level || gamg->data_cell_cols != bs || gamg->data_cell_rows != bs) return PETSC_FALSE;
  for (PetscInt c = 0; c < bs; c++) {
    const PetscReal *column = gamg->data + (size_t)c * (size_t)m;

    for (PetscInt r = 0; r < m; r += bs) {
      for (PetscInt k = 0; k < bs; k++) {
        if (column[r + k] != (PetscReal)(k == c)) return PETSC_FALSE;
      }
    }
  }
  return PETSC_TRUE;
}

/* The near null space of this level on the device, where the last level has left it, or from the host */
static PetscErrorCode PCGAMGDeviceGetData(PC_GAMGDevice *d, const PC_GAMG *gamg, PetscInt m, PetscInt bs,
                                          cudaStream_t stream)
{
  const void  *host  = gamg->data;
  const size_t bytes = (size_t)gamg->data_sz * sizeof(PetscReal);
  void        *device;

  PetscFunctionBegin;
  if (d->near || PCGAMGHasDefaultData(gamg, m, bs)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(SpMVCudaUploadTemporary(1, &device, &host, &bytes, stream, &d->memory));
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  d->near = (PetscReal *)device;
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
  level->P = (SpMVCudaCSR){.m = m, .n = stats.count * k};
  if (stats.count) {
    PetscCall(PCGAMGDeviceGetData(d, gamg, m, bs, stream));
    PetscCall(PCGAMGLevelAlloc(m, stats.count * k, stats.members * bs * k, stream, &level->memory, &level->P, array));
    bytes = (size_t)stats.count * (size_t)k * (size_t)k * sizeof(PetscReal);
    PetscCallCUDA(SpMVCudaUploadTemporary(1, &R, NULL, &bytes, stream, &memory));
    PetscCallCUDA(SpMVCudaTentative(level->aggregates, bs, k, d->near, (PetscInt *)array[0], (PetscInt *)array[1],
                                    (PetscScalar *)array[2], (PetscReal *)R, stream));
  }
  PetscCall(PCGAMGDeviceSetData(d, gamg, SpMVIsMPI(A), stats.count, &memory, (PetscReal *)R, stream));
  PetscCallCUDA(SpMVCudaAggregatesDestroy(&level->aggregates));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's matrices: all columns, or the diagonal block and an empty off-diagonal one for a matrix with n columns */
static PetscErrorCode PCGAMGCreateBlocks(const SpMVCudaCSR *csr, PetscInt bs, PetscInt columns, PetscBool mpi,
                                         PetscInt n, Mat block[2])
{
  const SpMVCudaCSR none = {.m = csr->m, .n = n};

  PetscFunctionBegin;
  PetscCall(MatSpMVCreateFrom_SeqCUDA(csr, bs, columns, &block[0]));
  if (mpi) PetscCall(MatSpMVCreateFrom_SeqCUDA(&none, bs, columns, &block[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The prolongator as a matrix of the same format as A */
static PetscErrorCode PCGAMGLevelCreateMat(Mat A, const SpMVCudaCSR *csr, PetscInt columns, Mat *P)
{
  const MPI_Comm  comm     = PetscObjectComm((PetscObject)A);
  const PetscBool mpi      = SpMVIsMPI(A);
  Mat             block[2] = {NULL, NULL};
  PetscInt        bs, size[2] = {(PetscInt)csr->m, (PetscInt)csr->n};
  PetscErrorCode  ierr;
  Mat_SpMV       *spmv;
  SpMVKeep        keep;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatGetBlockSize(A, &bs));
  if (mpi) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, size, 2, MPIU_INT, MPI_SUM, comm));
  PetscCall(SpMVKeepBegin(A, spmv, &keep));
  ierr = SpMVAgree(comm, PCGAMGCreateBlocks(csr, bs, columns, mpi, size[1], block));
  if (ierr) {
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&block[k]));
  } else if (mpi) /* the blocks become part of it */
    ierr = MatCreateMPIAIJWithSeqAIJ(comm, size[0], size[1], block[0], block[1], NULL, P);
  else
    *P = block[0];
  if (!ierr) ierr = SpMVKeepSet(&keep, *P);
  PetscCall(SpMVKeepEnd(&keep)); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGProlongator_Device(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  const PetscInt k    = PCGAMGGet(pc)->data_cell_cols;
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PC_GAMGDevice *d;
  PetscInt       bs, n;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  if (!d->level.made) {
    PetscCall((*d->ops.prolongator)(pc, A, lists, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_PROL], 0, 0, 0, 0));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(SpMVAgree(comm, PCGAMGLevelTentative(pc, d, A, bs)));
  n  = (PetscInt)d->level.P.n;
  *P = NULL;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPIU_INT, MPI_SUM, comm));
  if (n && SpMVIsMPI(A)) {
    PetscCall(PCGAMGLevelCreateMat(A, &d->level.P, k, P));
    PetscCall(PCGAMGLevelFree(&d->level)); /* PETSc smooths it */
  } else if (n) {
    PetscCall(MatCreate(comm, P));
    PetscCall(MatSetSizes(*P, A->rmap->n, n, A->rmap->n, n));
    PetscCall(MatSetBlockSizes(*P, bs, k));
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

/* Replaces level->P by (I - 1.4 / emax D^-1 A) P */
static PetscErrorCode PCGAMGLevelSmooth(Mat A, PCGAMGLevel *level, PetscReal emax)
{
  SpMVCudaSmoother  smoother;
  SpMVCudaTemporary memory = {NULL, PETSC_FALSE};
  SpMVCudaCSR       P;
  SpMVValues        v;
  PetscInt64        nonzeros;
  void             *array[3];
  cudaError_t       error = cudaSuccess;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCallCUDA(SpMVCudaSmootherCreate(&v.csr, &level->P, v.stream, &nonzeros, &smoother));
  ierr = PCGAMGLevelAlloc(level->P.m, level->P.n, nonzeros, v.stream, &memory, &P, array);
  if (!ierr)
    error = SpMVCudaSmootherFill(smoother, &v.csr, &level->P, 1.4 / emax, (PetscInt *)array[0], (PetscInt *)array[1],
                                 (PetscScalar *)array[2], v.stream);
  PetscCallCUDA(SpMVCudaSmootherDestroy(&smoother));
  PetscCallCUDA(SpMVCudaFreeTemporary(ierr || error ? &memory : &level->memory, v.stream));
  PetscCall(SpMVValuesRestore(A, &v));
  PetscCall(ierr);
  PetscCallCUDA(error);
  level->memory = memory;
  level->P      = P;
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
    PetscCall(PCGAMGLevelSmooth(A, &d->level, emax));
    PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_OPTSM], 0, 0, 0, 0));
  }
  PetscCall(PCGAMGLevelCreateMat(A, &d->level.P, gamg->data_cell_cols, &result));
  PetscCall(PCGAMGLevelFree(&d->level));
  PetscCall(MatDestroy(P));
  *P = result;
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_OPT], 0, 0, 0, 0));
  PetscCall(MatViewFromOptions(*P, NULL, "-pc_gamg_agg_view_prolongation"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
