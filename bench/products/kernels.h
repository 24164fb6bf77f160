/*
   The library's kernels as contenders of bench.c -graph: without a matrix type, and those of the papers' experiments.
*/
#pragma once

#include "baseline.h"

#if defined(PETSCSPMV_HAVE_CUDA)
  #include "../papers/held.h"
  #include "../papers/partition.h"

static const struct {
  const char *name;
  PetscBool   evchyb;
  SpMVKernel  kernel;
  PetscBool   sorted; /* y stays in the order of the sorted rows, and is not checked */
  int         held;   /* 1 + the operand that is held constant, or the way to load x: held.h */
  int         logs;   /* logarithm of the threads per thread block, if not the default */
} Kernels[] = {
    {"sellp", PETSC_FALSE, SPMV_KERNEL_AUTO, PETSC_FALSE, 0, 0},
    {"evchyb", PETSC_TRUE, SPMV_KERNEL_AUTO, PETSC_FALSE, 0, 0},
    {"sellp-paper", PETSC_FALSE, SPMV_KERNEL_PAPER, PETSC_FALSE, 0, 0}, /* or sellp-paper:b:t */
    {"evchyb-paper", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_FALSE, 0, 0},
    {"evchyb-sorted", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 0, 0},
    {"csr-adaptive", PETSC_TRUE, SPMV_KERNEL_VECTOR, PETSC_FALSE, 0, 0},
    {"evchyb-hold-x", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 1 + HELD_X, 0},
    {"evchyb-hold-a", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 1 + HELD_A, 0},
    {"evchyb-hold-both", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 1 + HELD_BOTH, 0},
    {"evchyb-256", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 0, 8},
    {"evchyb-load-x", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 1 + LOADED_L1, 0},
    {"evchyb-l2-x", PETSC_TRUE, SPMV_KERNEL_PAPER, PETSC_TRUE, 1 + LOADED_L2, 0},
};

static PetscBool GraphOn = PETSC_FALSE; /* -graph */

/* -1: there is no such kernel */
static inline int KernelFind(const char *name)
{
  const size_t len = strcspn(name, ":");
  int          k   = GraphOn ? (int)PETSC_STATIC_ARRAY_LENGTH(Kernels) - 1 : -1;

  while (k >= 0 && (strlen(Kernels[k].name) != len || strncmp(name, Kernels[k].name, len))) k--;
  return k;
}

/* note: the kernel and the entries that it stores. The arrays of the matrix are on the GPU: BaselineCSRCreate() */
static inline PetscErrorCode KernelCreate(const char *name, SpMVCudaStore *store, double *bytes, char note[],
                                          size_t size)
{
  const int          k     = KernelFind(name);
  const SpMVCudaCSR *csr   = &BaselineCSR.device;
  const PetscBool    paper = (PetscBool)(Kernels[k].kernel == SPMV_KERNEL_PAPER);
  const char        *colon = strchr(name, ':');
  SELLPParams        p;
  EVCHYBParams       q;
  SpMVStats          stats;

  PetscFunctionBeginUser;
  SELLPParamsDefault(&p);
  EVCHYBParamsDefault(&q);
  p.common.kernel = q.common.kernel = Kernels[k].kernel;
  if (paper) { /* its own values */
    p.b     = 8;
    p.t     = 8;
    p.sigma = 1;
  }
  if (colon)
    PetscCheck(sscanf(colon, ":%" PetscInt_FMT ":%" PetscInt_FMT, &p.b, &p.t) == 2 && paper && !Kernels[k].evchyb &&
                   p.b >= 1 && p.b <= 1024 && p.t >= 1 && p.t <= 32 && !(p.t & (p.t - 1)),
               PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "-types: %s: only sellp-paper takes numbers, :b:t with b from 1 to 1024 and t 1, 2, 4, 8, 16 or 32",
               name);
  if (Kernels[k].logs) q.max_threads_log2 = Kernels[k].logs;
  if (Kernels[k].held)
    PetscCallCUDA(EVCHYBHeldSetUp((Held)(Kernels[k].held - 1), csr, &q, Device.stream, store));
  else if (Kernels[k].evchyb)
    PetscCallCUDA(SpMVCudaEVCHYBSetUp(csr, &q, PETSC_FALSE, Device.stream, store));
  else
    PetscCallCUDA(SpMVCudaSELLPSetUp(csr, &p, PETSC_FALSE, Device.stream, store));
  PetscCallCUDA(SpMVCudaFill(*store, csr, Device.stream));
  if (Kernels[k].sorted) PetscCallCUDA(EVCHYBLeaveSorted(*store));
  SpMVCudaGetStats(*store, &stats);
  *bytes = (double)stats.bytes;
  PetscCall(PetscSNPrintf(note, size, "%s, stored %" PetscInt64_FMT, stats.kernel ? stats.kernel : "-",
                          (PetscInt64)stats.stored));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds what EVC-HYB's partition is by Table 3 of its paper */
static inline PetscErrorCode KernelPartition(Mat A, char note[], size_t size)
{
  EVCHYBParams    p;
  EVCHYBPartition part;
  SpMVCSR         csr;
  char            text[96];

  PetscFunctionBeginUser;
  EVCHYBParamsDefault(&p);
  PetscCall(MatGetCSR(A, &csr));
  PetscCall(EVCHYBPartitionCreate(&csr, p.ell_limit, &part));
  PetscCall(MatRestoreCSR(A, &csr));
  PetscCall(PetscSNPrintf(text, sizeof(text), "; isplit %" PetscInt_FMT " ell %" PetscInt64_FMT " csr %" PetscInt64_FMT,
                          part.isplit, part.ell_entries, part.csr_entries));
  PetscCall(PetscStrlcat(note, text, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
