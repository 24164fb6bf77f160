/* EVC-HYB: the paper's partition, and the rules by which the host stores it */
#include "evchyb.h"

void EVCHYBParamsDefault(EVCHYBParams *p)
{
  SpMVCommonParamsDefault(&p->common);
  p->ell_limit        = 128;
  p->max_threads_log2 = 9;
}

/* 4 if the next four rows have the same length, as most rows of a grid's matrix do, else 1. Counting four rows at once
   saves three updates of one counter, each of which waits for the one before: they took most of the time of sorting by
   length */
static inline PetscInt EVCHYBAlike(PetscInt rows, const PetscInt length[])
{
  return rows >= 4 && !((length[0] ^ length[1]) | (length[0] ^ length[2]) | (length[0] ^ length[3])) ? 4 : 1;
}

/* Sorts the rows of each length by first column; stable. On entry perm has the rows in order of length, and end[L] is
   the place after those of length L. The rows of a grid's interior are in order of their first column already. All rows
   of the lengths that are not are sorted by column together and put back */
static PetscErrorCode EVCHYBSortByColumn(PetscInt n, PetscInt longest, const PetscInt end[], const PetscInt length[],
                                         const PetscInt first_column[], PetscInt perm[])
{
  /* place: of the next row of each length */
  PetscInt      *place = NULL, *rows = NULL, *count = NULL, *sorted = NULL, nrows = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscMalloc2((size_t)longest + 1, &place, end[longest], &rows));
  for (PetscInt L = 1; L <= longest; L++) {
    PetscInt falls = 0;

    place[L] = end[L - 1];
    for (PetscInt k = end[L - 1] + 1; k < end[L]; k++) falls += first_column[perm[k]] < first_column[perm[k - 1]];
    if (falls)
      for (PetscInt k = end[L - 1]; k < end[L]; k++) rows[nrows++] = perm[k];
  }
  if (nrows) {
    SpMVCall(PetscCalloc2((size_t)n + 1, &count, nrows, &sorted));
    for (PetscInt k = 0; k < nrows; k++) count[first_column[rows[k]] + 1]++;
    for (PetscInt c = 0; c < n; c++) count[c + 1] += count[c];
    for (PetscInt k = 0; k < nrows; k++) sorted[count[first_column[rows[k]]]++] = rows[k];
    for (PetscInt k = 0; k < nrows; k++) perm[place[length[sorted[k]]]++] = sorted[k];
  }
done:
  PetscCall(PetscFree2(count, sorted));
  PetscCall(PetscFree2(place, rows));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Rows are sorted by length and, within one length, by first column. A row block has a multiple of EVCHYB_ROW_ALIGN rows
  of one length; the remaining ones join the rows of the next length, and finally, with the rows longer than ell_limit,
  the vector CSR part. A row block has at least 2 EVCHYB_ROW_ALIGN rows. The paper's text does not say so, but its Table
  3 shows it: 57 rows of cage14, which has none longer than 41, are in the vector CSR part; and all figures of ibm-dc1
  agree.
*/
PetscErrorCode EVCHYBPartitionCreate(PetscInt m, PetscInt n, const PetscInt length[], const PetscInt first_column[],
                                     const EVCHYBParams *p, EVCHYBPartition *E)
{
  PetscInt      *count = NULL, longest = 0, first = 0, next = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(E, sizeof(*E)));
  E->m = m;
  for (PetscInt r = 0; r < m; r++) longest = PetscMax(longest, length[r]);
  SpMVCall(PetscMalloc1(m, &E->perm));
  SpMVCall(PetscCalloc1((size_t)longest + 2, &count));
  for (PetscInt r = 0, alike; r < m; r += alike) {
    alike = EVCHYBAlike(m - r, length + r);
    count[length[r] + 1] += alike;
  }
  for (PetscInt k = 0; k <= longest; k++) count[k + 1] += count[k];
  for (PetscInt r = 0, alike; r < m; r += alike) {
    PetscInt *end = count + length[r];

    alike = EVCHYBAlike(m - r, length + r);
    for (PetscInt k = 0; k < alike; k++) E->perm[*end + k] = r + k;
    *end += alike;
  }
  if (first_column) SpMVCall(EVCHYBSortByColumn(n, longest, count, length, first_column, E->perm));
  /* count[L]: number of rows with at most L entries */
  SpMVCall(PetscMalloc1((size_t)PetscMin(longest, p->ell_limit) + 1, &E->blocks));
  for (PetscInt L = 0; L <= PetscMin(longest, p->ell_limit); L++) {
    const PetscInt rows = (count[L] - first) / EVCHYB_ROW_ALIGN * EVCHYB_ROW_ALIGN;

    if (rows < 2 * EVCHYB_ROW_ALIGN) continue;
    E->blocks[E->nblocks++] = (EVCHYBRowBlock){first, rows, L};
    E->ell_entries += (PetscInt64)rows * L;
    first += rows;
  }
  E->isplit = first;
  for (PetscInt k = first; k < m; k++) {
    const PetscInt len = length[E->perm[k]];
    PetscInt       q   = 0;

    E->csr_entries += (len + EVCHYB_CSR_ALIGN - 1) / EVCHYB_CSR_ALIGN * (PetscInt64)EVCHYB_CSR_ALIGN;
    while (q < PetscMin(p->max_threads_log2, EVCHYB_MAX_RANGES - 1) && len > (EVCHYB_NNZ_PER_THREAD << q)) q++;
    E->range_rows[q]++;
    next = PetscMax(next, q + 1);
  }
  E->ranges = next;
done:
  PetscCall(PetscFree(count));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPartitionDestroy(EVCHYBPartition *E)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(E->perm));
  PetscCall(PetscFree(E->blocks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows in the partition's order. A row that it leaves to the vector CSR part because EVCHYB_ROW_ALIGN rows of its
   length are not to be had is better off in a slice of eight, so on the host only the length decides */
PetscErrorCode EVCHYBSetUp(const SpMVCSR *A, const EVCHYBParams *p, SpMVStore *store)
{
  EVCHYBPartition E      = {0};
  PetscInt       *length = NULL, *column = NULL;
  PetscErrorCode  ierr = PETSC_SUCCESS;
  SpMVRules       R    = {.kernel     = p->common.kernel,
                          .node       = p->common.compress ? p->common.node : 1,
                          .longest    = p->common.kernel == SPMV_KERNEL_SLICES ? PETSC_MAX_INT : p->ell_limit,
                          .multiple   = 1,
                          .sigma      = 1,
                          .long_align = EVCHYB_CSR_ALIGN,
                          /* sorting leaves runs of consecutive rows; shorter ones are better packed with other rows */
                          .diagonal_run = SPMV_LANES - 2,
                          .diagonals    = p->common.compress ? PETSC_TRUE : PETSC_FALSE};

  PetscFunctionBegin;
  if (!SpMVRulesUseParent(A, &R)) {
    SpMVCall(PetscMalloc2(A->m, &length, A->m, &column));
    for (PetscInt r = 0; r < A->m; r++) {
      length[r] = A->i[r + 1] - A->i[r];
      column[r] = length[r] ? A->j[A->i[r]] : 0;
    }
    SpMVCall(EVCHYBPartitionCreate(A->m, A->n, length, column, p, &E));
    PetscCall(PetscFree2(length, column));
    R.order = E.perm;
  }
  SpMVCall(SpMVStoreCreate(A, &R, store));
done:
  PetscCall(PetscFree2(length, column));
  PetscCall(EVCHYBPartitionDestroy(&E));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
