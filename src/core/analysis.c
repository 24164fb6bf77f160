/* What the pattern of a block is like: rows of common columns, dense node blocks, diagonals */
#include "spmvimpl.h"

/* Do all rows and columns come in aligned blocks of s? same[r]: row r has the columns of row r - 1 */
static PetscBool SpMVIsBlocked(const SpMVCSR *A, int s, const unsigned char *same)
{
  if (A->m % s || A->n % s) return PETSC_FALSE;
  for (PetscInt r = 0; r < A->m; r++)
    if (r % s && !same[r]) return PETSC_FALSE;
  for (PetscInt r = 0; r < A->m; r += s) {
    if ((A->i[r + 1] - A->i[r]) % s) return PETSC_FALSE;
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k += s) {
      if (A->j[k] % s) return PETSC_FALSE;
      for (PetscInt c = 1; c < s; c++)
        if (A->j[k + c] != A->j[k] + c) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

PetscErrorCode SpMVUnitsFind(const SpMVCSR *A, PetscInt node, SpMVUnits *U)
{
  const PetscInt m     = A->m;
  int            limit = node > 1 ? (int)PetscMin(node, SPMV_MAX_NODE) : SPMV_MAX_NODE;
  unsigned char *same;

  PetscFunctionBegin;
  U->row  = NULL;
  U->rows = NULL;
  PetscCall(PetscMalloc1(m, &U->row));
  PetscCall(PetscMalloc1(m, &U->rows));
  PetscCall(PetscMalloc1(m, &same));
  U->count = 0;
  U->block = 1;
  U->empty = 0;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt  len = A->i[r + 1] - A->i[r], before = r ? A->i[r] - A->i[r - 1] : -1;
    const PetscInt *j = A->j + A->i[r];

    same[r] = (unsigned char)(len == before && (!len || (j[0] == j[-len] && !memcmp(j, j - len, (size_t)len * sizeof(*j)))));
    if (!len) U->empty++;
  }
  if (node != 1 && A->i[m] > 0) {
    for (int s = limit; s > 1; s--) {
      if (node > 1 && s != node) break;
      if (SpMVIsBlocked(A, s, same)) {
        U->block = s;
        break;
      }
    }
  }
  if (node == 1) limit = 1;
  if (U->block > 1) limit = U->block;
  for (PetscInt r = 0; r < m;) {
    int g = 1;

    /* empty rows are units of their own, so that a plan may leave them out (within node blocks they come together anyway) */
    while (g < limit && r + g < m && same[r + g] && (U->block > 1 || A->i[r + 1] > A->i[r])) g++;
    U->row[U->count]    = (int)r;
    U->rows[U->count++] = (unsigned char)g;
    r += g;
  }
  PetscCall(PetscFree(same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVUnitsDestroy(SpMVUnits *U)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(U->row));
  PetscCall(PetscFree(U->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a diagonal saves is the index (4 bytes to the 8 of a value, once for g x g values) and the gather; what it costs are the
   lanes without an entry on it. Slices with many empty lanes are better packed with others. */
int SpMVDiagonalLimit(int w, int g, PetscInt64 entries)
{
  const PetscInt64 mean = entries / ((PetscInt64)SPMV_LANES * g * g), most = 1 + mean + mean / 2;
  const PetscInt64 own = g == 1 ? w + (2 * (PetscInt64)w) / 5 : w + w / (2 * g * g);

  return (int)PetscMin(own, most);
}

int SpMVDiagonals(const SpMVCSR *A, int row, int block, int lanes, int limit, int offset[], unsigned char mask[])
{
  PetscInt at[SPMV_LANES], end[SPMV_LANES];
  int      next[SPMV_LANES], D = 0;

  /* Most slices of a grid have all their diagonals in common */
  if (lanes == SPMV_LANES) {
    const PetscInt *j0 = A->j + A->i[row], len = A->i[row + 1] - A->i[row];
    PetscInt        differ = 0;

    for (int l = 1; l < SPMV_LANES && !differ; l++) {
      const PetscInt  r = row + (PetscInt)l * block, shift = (PetscInt)l * block;
      const PetscInt *j = A->j + A->i[r];

      if (A->i[r + 1] - A->i[r] != len)
        differ = 1;
      else
        for (PetscInt k = 0; k < len; k++) differ |= (j[k] - shift) ^ j0[k];
    }
    if (!differ) {
      if (len / block > limit) return -1;
      for (PetscInt k = 0; k < len / block; k++) {
        if (offset) offset[k] = (int)(j0[k * block] - row);
        if (mask) mask[k] = 255;
      }
      return (int)(len / block);
    }
  }
  for (int l = 0; l < SPMV_LANES; l++) {
    const PetscInt r = row + (PetscInt)l * block;

    at[l]   = l < lanes ? A->i[r] : 0;
    end[l]  = l < lanes ? A->i[r + 1] : 0;
    next[l] = at[l] < end[l] ? (int)(A->j[at[l]] - r) : 2147483647;
  }
  for (;;) {
    int           least = 2147483647;
    unsigned char m     = 0;

    for (int l = 0; l < SPMV_LANES; l++) least = next[l] < least ? next[l] : least;
    if (least == 2147483647) return D;
    if (D == limit) return -1;
    for (int l = 0; l < SPMV_LANES; l++) {
      if (next[l] == least) {
        m |= (unsigned char)(1u << l);
        at[l] += block;
        next[l] = at[l] < end[l] ? (int)(A->j[at[l]] - (row + (PetscInt)l * block)) : 2147483647;
      }
    }
    if (offset) offset[D] = least;
    if (mask) mask[D] = m;
    D++;
  }
}

/* Stable: by window of `window` places, within it by length */
PetscErrorCode SpMVSortByLength(const SpMVCSR *A, const SpMVUnits *U, PetscInt n, const int unit[], PetscInt window, int sorted[])
{
  PetscInt       longest = 0, nw, *count = NULL;
  int           *tmp  = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  window = PetscMax(PetscMin(window, n), 1);
  nw     = n / window + (n % window > 0);
  for (PetscInt k = 0; k < n; k++) longest = PetscMax(longest, A->i[U->row[unit[k]] + 1] - A->i[U->row[unit[k]]]);
  SpMVCall(PetscMalloc1(n, &tmp));
  SpMVCall(PetscCalloc1((size_t)PetscMax(longest, nw) + 2, &count));
  for (PetscInt k = 0; k < n; k++) count[A->i[U->row[unit[k]] + 1] - A->i[U->row[unit[k]]] + 1]++;
  for (PetscInt k = 0; k <= longest; k++) count[k + 1] += count[k];
  for (PetscInt k = 0; k < n; k++) tmp[count[A->i[U->row[unit[k]] + 1] - A->i[U->row[unit[k]]]]++] = (int)k;
  for (PetscInt k = 0; k < nw; k++) count[k] = k * window;
  for (PetscInt k = 0; k < n; k++) sorted[count[tmp[k] / window]++] = unit[tmp[k]];
done:
  PetscCall(PetscFree(tmp));
  PetscCall(PetscFree(count));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpMVCommonParamsDefault(SpMVCommonParams *p)
{
  p->node     = 0;
  p->compress = 1;
  p->single   = 0;
  p->tune     = 0;
  p->kernel   = SPMV_KERNEL_AUTO;
}

PetscErrorCode SpMVPlanCreate(PetscInt units, PetscInt slices, SpMVPlan *P)
{
  PetscFunctionBegin;
  P->height     = SPMV_LANES;
  P->multiple   = 1;
  P->sigma      = 1;
  P->long_align = SPMV_LANES;
  P->block      = 1;
  P->plain      = PETSC_FALSE;
  P->slices     = 0;
  P->units      = 0;
  P->start      = NULL;
  P->diagonal   = NULL;
  P->row        = NULL;
  P->rows       = NULL;
  PetscCall(PetscMalloc4(slices + 1, &P->start, slices + 1, &P->diagonal, units, &P->row, units, &P->rows));
  P->start[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpMVPlanSlice(SpMVPlan *P, const SpMVUnits *U, PetscInt n, const int unit[], PetscBool diagonal)
{
  P->diagonal[P->slices] = (unsigned char)diagonal;
  for (PetscInt k = 0; k < n; k++) {
    P->row[P->units + k]  = U->row[unit[k]];
    P->rows[P->units + k] = U->rows[unit[k]];
  }
  P->units += n;
  P->start[++P->slices] = (int)P->units;
}

void SpMVPlanLong(SpMVPlan *P, const SpMVUnits *U, PetscInt unit)
{
  P->row[P->units]    = U->row[unit];
  P->rows[P->units++] = U->rows[unit];
}

/* Estimates, in nanoseconds on data in cache: what they are good for is the choice between ways to store the same rows */
double SpMVCostSlice(int w, int g, int c)
{
  return 2.0 + 1.5 * g + (double)w * c * (1.65 + 0.45 * g);
}

double SpMVCostDiagonals(int w, int g)
{
  return 2.0 + 1.5 * g + (double)w * g * (g == 1 ? 0.75 : 1.0 + 0.45 * g);
}

double SpMVCostLong(const SpMVCSR *A, int row, int g)
{
  const PetscInt *j = A->j + A->i[row], len = A->i[row + 1] - A->i[row];
  double          cost = 4.0 + 2.0 * g;

  for (PetscInt k = 0; k < len; k += SPMV_LANES) cost += (k + SPMV_LANES <= len && j[k + SPMV_LANES - 1] == j[k] + SPMV_LANES - 1 ? 0.5 : 1.65) + 0.45 * g;
  return cost;
}

/* AIJ's product, with its inodes, in time of the kernels at hand: the other estimates are of the fastest */
double SpMVCostParent(const SpMVCSR *A, const SpMVUnits *U)
{
  double cost = 0;

  for (int u = 0; u < U->count; u++) {
    const PetscInt len = A->i[U->row[u] + 1] - A->i[U->row[u]];

    if (len) cost += 3.0 + 0.5 * U->rows[u] + 0.2 * (double)len * (1 + U->rows[u]);
  }
  return cost / SpMVKernelsGet()->slowdown;
}

/* Time of the rows one by one, and of the units as they were found */
void SpMVCostUnits(const SpMVCSR *A, const SpMVUnits *U, double *single, double *grouped)
{
  *single  = 0;
  *grouped = 0;
  for (PetscInt r = 0; r < A->m; r += SPMV_LANES) {
    const int        lanes   = (int)PetscMin(SPMV_LANES, A->m - r);
    const PetscInt64 entries = A->i[r + lanes] - A->i[r];
    int              w       = 0, D;

    for (int l = 0; l < lanes; l++) w = PetscMax(w, (int)(A->i[r + l + 1] - A->i[r + l]));
    D = SpMVDiagonals(A, (int)r, 1, lanes, SpMVDiagonalLimit(w, 1, entries), NULL, NULL);
    *single += D >= 0 ? SpMVCostDiagonals(D, 1) : SpMVCostSlice((int)((entries + SPMV_LANES - 1) / SPMV_LANES), 1, 1);
  }
  for (int u = 0; u < U->count; u++) *grouped += SpMVCostSlice((int)(A->i[U->row[u] + 1] - A->i[U->row[u]]), U->rows[u], 1) / SPMV_LANES;
  *grouped += 0.25 * (double)A->m; /* units of several sizes are not neighbours: y is written row by row, not eight rows at once */
}

PetscErrorCode SpMVPlanDestroy(SpMVPlan *P)
{
  PetscFunctionBegin;
  PetscCall(PetscFree4(P->start, P->diagonal, P->row, P->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
