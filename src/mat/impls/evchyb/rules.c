/* EVC-HYB: the paper's order of the rows, and the rules by which the host stores them */
#include "evchyb.h"

void EVCHYBParamsDefault(void *params)
{
  EVCHYBParams *p = (EVCHYBParams *)params;

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

/* Stable */
PetscErrorCode EVCHYBOrder(const SpMVCSR *A, PetscInt **order)
{
  const PetscInt m     = A->m;
  PetscInt      *count = NULL, *length = NULL, *column = NULL, *perm = NULL, longest = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *order = NULL;
  SpMVCall(PetscMalloc2(m, &length, m, &column));
  for (PetscInt r = 0; r < m; r++) {
    length[r] = A->i[r + 1] - A->i[r];
    column[r] = length[r] ? A->j[A->i[r]] : 0;
    longest   = PetscMax(longest, length[r]);
  }
  SpMVCall(PetscMalloc1(m, &perm));
  *order = perm;
  SpMVCall(PetscCalloc1((size_t)longest + 2, &count));
  for (PetscInt r = 0, alike; r < m; r += alike) {
    alike = EVCHYBAlike(m - r, length + r);
    count[length[r] + 1] += alike;
  }
  for (PetscInt k = 0; k <= longest; k++) count[k + 1] += count[k];
  for (PetscInt r = 0, alike; r < m; r += alike) {
    PetscInt *end = count + length[r];

    alike = EVCHYBAlike(m - r, length + r);
    for (PetscInt k = 0; k < alike; k++) perm[*end + k] = r + k;
    *end += alike;
  }
  SpMVCall(EVCHYBSortByColumn(A->n, longest, count, length, column, perm));
done:
  PetscCall(PetscFree2(length, column));
  PetscCall(PetscFree(count));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The paper leaves rows of a rare length to the vector CSR part, because a row block has at least EVCHYB_ROW_ALIGN rows
   of one length. They are better off in a slice of eight, so on the host only the length decides */
PetscErrorCode EVCHYBSetUp(const SpMVCSR *A, const void *params, SpMVStore *store)
{
  const EVCHYBParams *p     = (const EVCHYBParams *)params;
  PetscInt           *order = NULL;
  PetscErrorCode      ierr  = PETSC_SUCCESS;
  SpMVRules           R     = {.kernel     = p->common.kernel,
                               .node       = p->common.compress ? p->common.node : 1,
                               .longest    = p->common.kernel == SPMV_KERNEL_SLICES ? PETSC_MAX_INT : p->ell_limit,
                               .multiple   = 1,
                               .sigma      = 1,
                               .long_align = EVCHYB_CSR_ALIGN,
                               /* sorting leaves runs of consecutive rows; shorter ones are better packed with other rows */
                               .diagonal_run = SPMV_LANES - 2,
                               .diagonals    = p->common.compress ? PETSC_TRUE : PETSC_FALSE};

  PetscFunctionBegin;
  if (!SpMVRulesUseParent(A, &R)) SpMVCall(EVCHYBOrder(A, &order));
  R.order = order;
  SpMVCall(SpMVStoreCreate(A, &R, store));
done:
  PetscCall(PetscFree(order));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
