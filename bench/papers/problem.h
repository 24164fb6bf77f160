/*
   A matrix of paper.c, with x, the reference product, and the allowed error of each row; also on the GPU.
*/
#pragma once

#include "device.h"
#include "matrices.h"
#include "../products/formats/formats.h"

typedef struct {
  char         name[64];
  const char  *origin;
  Spec         spec;
  PetscBool    generated; /* otherwise the arrays are those of `file` */
  int          threads;
  PetscInt     m, n;
  Rows         R;
  Mat          file, A; /* A: PETSc's view of the arrays */
  PetscScalar *x, *ref;
  PetscReal   *bound; /* allowed error of each row */
  Vec          vx, vy;
#if defined(PETSCSPMV_HAVE_CUDA)
  void       *on[3];
  SpMVCudaCSR csr;
#endif
} Problem;

typedef struct {
  Problem *P;
  int      next;
} ProblemJob;

/* x and the reference, in chunks of rows */
static void *ProblemWork(void *ctx)
{
  ProblemJob *job   = (ProblemJob *)ctx;
  Problem    *P     = job->P;
  const int   parts = 256;

  for (int k; (k = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < parts;) {
    for (PetscInt r = (PetscInt)((int64_t)P->m * k / parts); r < (PetscInt)((int64_t)P->m * (k + 1) / parts); r++) {
      PetscScalar sum  = 0.0;
      PetscReal   size = 0.0;

      for (PetscInt e = P->R.i[r]; e < P->R.i[r + 1]; e++) {
        const PetscScalar term = P->R.a[e] * P->x[P->R.j[e]];

        sum += term;
        size += PetscAbsScalar(term);
      }
      P->ref[r]   = sum;
      P->bound[r] = (PetscDefined(USE_COMPLEX) ? 8 : 4) * PETSC_MACHINE_EPSILON *
                    (PetscReal)(P->R.i[r + 1] - P->R.i[r] + 1) * size;
    }
  }
  return NULL;
}

/* The work that threads may do: it does not call PETSc */
static void *ProblemPrepare(void *ctx)
{
  Problem   *P   = (Problem *)ctx;
  ProblemJob job = {P, 0};

  if (P->generated) RowsCreate(&P->spec, 0, P->m, P->threads, &P->R);
  if (!P->R.i) return NULL;
  P->x     = (PetscScalar *)PatternRealloc(NULL, ((size_t)P->n + 1) * sizeof(*P->x));
  P->ref   = (PetscScalar *)PatternRealloc(NULL, ((size_t)P->m + 1) * sizeof(*P->ref));
  P->bound = (PetscReal *)PatternRealloc(NULL, ((size_t)P->m + 1) * sizeof(*P->bound));
  for (PetscInt c = 0; c < P->n; c++) {
    uint64_t random = (uint64_t)c;

    P->x[c] = RandomReal(&random) - 0.5;
#if defined(PETSC_USE_COMPLEX)
    P->x[c] += PETSC_i * (RandomReal(&random) - 0.5);
#endif
  }
  RowsThreads(P->threads, ProblemWork, &job);
  return NULL;
}

/* entries: 0 if the number is not known before the matrix is generated */
static PetscErrorCode ProblemBegin(const char *name, int threads, Problem *P, double *entries)
{
  char       message[PETSC_MAX_PATH_LEN], file[PETSC_MAX_PATH_LEN], *slash;
  PetscBool  match;
  SpecResult result = SPEC_UNKNOWN;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  P->threads = threads;
  *entries   = 0.0;
  PetscCall(MatrixTwinFile(name, file, sizeof(file), &match));
  if (match)
    name = file;
  else
    result = SpecRead(name, &P->spec, message, sizeof(message));
  PetscCheck(result != SPEC_WRONG, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s", message);
  PetscCall(PetscStrrchr(name, '/', &slash));
  PetscCall(PetscStrncpy(P->name, slash, sizeof(P->name)));
  P->generated = (PetscBool)(result == SPEC_FOUND);
  if (P->generated) {
    P->origin = P->spec.generator == &GeneratorTwin
                    ? "twin"
                    : (P->spec.generator == &GeneratorRowLengths ? "columns generated" : "generated");
    P->m = P->n = P->spec.rows;
    if (P->spec.generator == &GeneratorTwin) *entries = (double)Twins[(int)P->spec.arg[0]].entries;
  } else {
    PetscInt  m;
    PetscBool done;

    PetscCall(MatrixCreate(PETSC_COMM_SELF, name, &P->file, &P->origin));
    PetscCall(MatGetSize(P->file, &P->m, &P->n));
    PetscCall(MatGetRowIJ(P->file, 0, PETSC_FALSE, PETSC_FALSE, &m, (const PetscInt **)&P->R.i,
                          (const PetscInt **)&P->R.j, &done));
    PetscCall(MatSeqAIJGetArray(P->file, &P->R.a));
    *entries = (double)P->R.i[P->m];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Call it after ProblemPrepare() */
static PetscErrorCode ProblemEnd(Problem *P)
{
  PetscFunctionBeginUser;
  PetscCheck(P->R.i, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s: more entries than a PetscInt counts", P->name);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, P->m, P->n, P->R.i, P->R.j, P->R.a, &P->A));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    const void *const host[3]  = {P->R.i, P->R.j, P->R.a};
    const size_t      bytes[3] = {((size_t)P->m + 1) * sizeof(PetscInt), (size_t)P->R.i[P->m] * sizeof(PetscInt),
                                  (size_t)P->R.i[P->m] * sizeof(PetscScalar)};
    Vec               v;

    for (int k = 0; k < 3; k++) PetscCallCUDA(cudaMalloc(&P->on[k], bytes[k] + 16));
    PetscCallCUDA(SpMVCudaUpload(3, P->on, host, bytes));
    P->csr.m           = P->m;
    P->csr.n           = P->n;
    P->csr.nnz         = P->R.i[P->m];
    P->csr.i           = P->on[0];
    P->csr.j           = P->on[1];
    P->csr.a           = (const PetscScalar *)P->on[2];
    P->csr.index_bytes = (int)sizeof(PetscInt);
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, P->n, P->x, &v));
    PetscCall(DeviceVecCopy(v, &P->vx));
    PetscCall(VecDestroy(&v));
    PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, P->m, &P->vy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, P->n, P->x, &P->vx));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, P->m, &P->vy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(Problem *P)
{
  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 3 && DeviceOn; k++) PetscCallCUDA(cudaFree(P->on[k]));
#endif
  PetscCall(VecDestroy(&P->vx));
  PetscCall(VecDestroy(&P->vy));
  PetscCall(MatDestroy(&P->A));
  if (P->generated) {
    RowsFree(&P->R);
    SpecFree(&P->spec);
  }
  PetscCall(MatDestroy(&P->file));
  free(P->x);
  free(P->ref);
  free(P->bound);
  PetscFunctionReturn(PETSC_SUCCESS);
}
