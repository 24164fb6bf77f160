/*
  The partition of the EVC-HYB paper, for its Table 3. Rows are sorted by length. A row block has a multiple of
  EVCHYB_ROW_ALIGN rows of one length; the remaining ones join the rows of the next length, and finally, with the rows
  longer than ell_limit, the vector CSR part. A row block has at least 2 EVCHYB_ROW_ALIGN rows. The paper's text does not
  say so, but its Table 3 shows it: 57 rows of cage14, which has none longer than 41, are in the vector CSR part; and all
  figures of ibm-dc1 agree.
*/
#pragma once

#include "mat/impls/evchyb/evchyb.h"

typedef struct {
  PetscInt   isplit;                   /* sorted rows before isplit are in the ELL part */
  PetscInt64 ell_entries, csr_entries; /* stored, padding included */
} EVCHYBPartition;

static inline PetscErrorCode EVCHYBPartitionCreate(const SpMVCSR *A, PetscInt ell_limit, EVCHYBPartition *E)
{
  PetscInt k = 0, *order;

  PetscFunctionBegin;
  *E = (EVCHYBPartition){0};
  PetscCall(EVCHYBOrder(A, &order));
#define EVCHYBLength(k) (A->i[order[k] + 1] - A->i[order[k]])
  while (k < A->m && EVCHYBLength(k) <= ell_limit) {
    const PetscInt length = EVCHYBLength(k);
    PetscInt       rows;

    while (k < A->m && EVCHYBLength(k) == length) k++;
    rows = (k - E->isplit) / EVCHYB_ROW_ALIGN * EVCHYB_ROW_ALIGN;
    if (rows < 2 * EVCHYB_ROW_ALIGN) continue;
    E->ell_entries += (PetscInt64)rows * length;
    E->isplit += rows;
  }
  for (k = E->isplit; k < A->m; k++)
    E->csr_entries += (EVCHYBLength(k) + EVCHYB_CSR_ALIGN - 1) / EVCHYB_CSR_ALIGN * (PetscInt64)EVCHYB_CSR_ALIGN;
#undef EVCHYBLength
  PetscCall(PetscFree(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}
