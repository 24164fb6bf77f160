/*
  The partition of the EVC-HYB paper, for its Table 3. Rows are sorted by length. A row block has a multiple of
  EVCHYB_ROW_ALIGN rows of one length; the remaining ones join the rows of the next length, and finally, with the rows
  longer than ell_limit, the vector CSR part. A row block has at least 2 EVCHYB_ROW_ALIGN rows. The paper's text does not
  say so, but its Table 3 shows it: 57 rows of cage14, which has none longer than 41, are in the vector CSR part; and all
  figures of ibm-dc1 agree.
*/
#pragma once

#include "mat/impls/evchyb/evchyb.h"

#define EVCHYB_MAX_RANGES 32
typedef struct {
  PetscInt first, rows, length; /* in sorted order; all rows of the block are padded to `length` */
} EVCHYBRowBlock;

typedef struct {
  PetscInt       *perm; /* perm[k]: row at position k of the sorted order */
  PetscInt        nblocks;
  EVCHYBRowBlock *blocks;
  PetscInt        isplit;                   /* sorted rows before isplit are in the ELL part */
  PetscInt64      ell_entries, csr_entries; /* stored, padding included */
  PetscInt        ranges;
  PetscInt        range_rows[EVCHYB_MAX_RANGES]; /* rows of the vector CSR part that have 2^k threads each */
} EVCHYBPartition;

static inline PetscErrorCode EVCHYBPartitionCreate(const SpMVCSR *A, const EVCHYBParams *p, EVCHYBPartition *E)
{
  PetscInt k = 0;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(E, sizeof(*E)));
  PetscCall(EVCHYBOrder(A, &E->perm));
#define EVCHYBLength(k) (A->i[E->perm[k] + 1] - A->i[E->perm[k]])
  PetscCall(PetscMalloc1(A->m + 1, &E->blocks));
  while (k < A->m && EVCHYBLength(k) <= p->ell_limit) {
    const PetscInt length = EVCHYBLength(k);
    PetscInt       rows;

    while (k < A->m && EVCHYBLength(k) == length) k++;
    rows = (k - E->isplit) / EVCHYB_ROW_ALIGN * EVCHYB_ROW_ALIGN;
    if (rows < 2 * EVCHYB_ROW_ALIGN) continue;
    E->blocks[E->nblocks++] = (EVCHYBRowBlock){E->isplit, rows, length};
    E->ell_entries += (PetscInt64)rows * length;
    E->isplit += rows;
  }
  for (k = E->isplit; k < A->m; k++) {
    const PetscInt length = EVCHYBLength(k);
    PetscInt       q      = 0;

    E->csr_entries += (length + EVCHYB_CSR_ALIGN - 1) / EVCHYB_CSR_ALIGN * (PetscInt64)EVCHYB_CSR_ALIGN;
    while (q < PetscMin(p->max_threads_log2, EVCHYB_MAX_RANGES - 1) && length > (EVCHYB_NNZ_PER_THREAD << q)) q++;
    E->range_rows[q]++;
    E->ranges = PetscMax(E->ranges, q + 1);
  }
#undef EVCHYBLength
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode EVCHYBPartitionDestroy(EVCHYBPartition *E)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(E->perm));
  PetscCall(PetscFree(E->blocks));
  PetscFunctionReturn(PETSC_SUCCESS);
}
