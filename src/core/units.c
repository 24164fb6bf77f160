/* What the pattern of a matrix has that need not be stored: rows with the same columns, dense node blocks, diagonals */
#include "spmvimpl.h"

/* Does the matrix consist of aligned dense blocks of bs rows and columns? same[r]: row r has the columns of row r - 1
   */
static PetscBool SpMVIsBlocked(const SpMVCSR *A, int bs, const unsigned char *same)
{
  if (A->m % bs || A->n % bs) return PETSC_FALSE;
  for (PetscInt r = 0; r < A->m; r++)
    if (r % bs && !same[r]) return PETSC_FALSE;
  for (PetscInt r = 0; r < A->m; r += bs) {
    if ((A->i[r + 1] - A->i[r]) % bs) return PETSC_FALSE;
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k += bs) {
      if (A->j[k] % bs) return PETSC_FALSE;
      for (PetscInt c = 1; c < bs; c++)
        if (A->j[k + c] != A->j[k] + c) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

PetscErrorCode SpMVUnitsFind(const SpMVCSR *A, PetscInt node, SpMVUnits *U)
{
  const PetscInt m     = A->m;
  int            limit = node > 1 ? (int)PetscMin(node, SPMV_MAX_NODE) : SPMV_MAX_NODE;
  PetscInt       nsame = 0;
  unsigned char *same;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(m, &U->row, m, &U->rows));
  PetscCall(PetscMalloc1(m, &same));
  U->count = 0;
  U->bs    = 1;
  U->empty = 0;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt  len = A->i[r + 1] - A->i[r], before = r ? A->i[r] - A->i[r - 1] : -1;
    const PetscInt *j = A->j + A->i[r];

    same[r] =
        (unsigned char)(len == before && (!len || (j[0] == j[-len] && !memcmp(j, j - len, (size_t)len * sizeof(*j)))));
    nsame += same[r];
    U->empty += !len;
  }
  if (node != 1 && nsame && A->i[m] > 0) {
    for (int bs = limit; bs > 1; bs--) {
      if (node > 1 && bs != node) break;
      if (SpMVIsBlocked(A, bs, same)) {
        U->bs = bs;
        break;
      }
    }
  }
  if (node == 1 || !nsame) limit = 1;
  if (U->bs > 1) limit = U->bs;
  if (limit == 1) { /* each row is a unit: a loop without branches */
    for (PetscInt r = 0; r < m; r++) U->row[r] = (int)r;
    for (PetscInt r = 0; r < m; r++) U->rows[r] = 1;
    U->count = (int)m;
  }
  for (PetscInt r = U->count; r < m;) {
    int rows = 1;

    /* Each empty row is a unit of its own, so that a plan can leave it out. In node blocks, empty rows come together
       anyway */
    while (rows < limit && r + rows < m && same[r + rows] && (U->bs > 1 || A->i[r + 1] > A->i[r])) rows++;
    U->row[U->count]    = (int)r;
    U->rows[U->count++] = (unsigned char)rows;
    r += rows;
  }
  PetscCall(PetscFree(same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVUnitsDestroy(SpMVUnits *U)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(U->row, U->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The most diagonals that are worth while for units of at most `width` blocks. A diagonal saves the index (4 bytes where
  a value has 8, once for bs x bs values) and the gather; it costs storage and time for the lanes that have no entry on
  it. Slices with many such lanes are better packed with other rows.
*/
static int SpMVDiagonalLimit(int width, int bs, PetscInt64 entries)
{
  const SpMVTuning *T   = &SpMVTuned;
  const PetscInt64 mean = entries / ((PetscInt64)SPMV_LANES * bs * bs), most = 1 + mean + mean * T->diagonal_mean / 100;
  const PetscInt64 own =
      width + (bs == 1 ? width * T->diagonal_width / 100 : width * T->diagonal_width_block / (100 * bs * bs));

  return (int)PetscMin(own, most);
}

/* The diagonals of two units together, which are no more than those of all between them: without structure, these two
   have too many already */
static int SpMVTwoDiagonals(const SpMVCSR *A, PetscInt p, PetscInt q, int bs)
{
  PetscInt k = A->i[p], l = A->i[q];
  int      n = 0;

  while (k < A->i[p + 1] && l < A->i[q + 1]) {
    const PetscInt a = A->j[k] - p, b = A->j[l] - q;

    k += a <= b ? bs : 0;
    l += b <= a ? bs : 0;
    n++;
  }
  return n + (int)((A->i[p + 1] - k + A->i[q + 1] - l) / bs);
}

/* The diagonals of eight units that all have the same ones, as in most slices of a grid; else -1 */
static int SpMVSameDiagonals(const SpMVCSR *A, int row, int bs, int offset[], uint8_t mask[])
{
  const PetscInt *j0 = A->j + A->i[row], len = A->i[row + 1] - A->i[row];
  PetscInt        differ = 0;

  for (int l = 1; l < SPMV_LANES; l++) differ |= (A->i[row + l * bs + 1] - A->i[row + l * bs]) ^ len;
  if (differ) return -1;
  if (bs == 1) { /* the rows follow one another: a loop that compilers make vectors of */
    for (PetscInt k = 0; k < (SPMV_LANES - 1) * len; k++) differ |= (j0[k + len] - j0[k]) ^ 1;
  } else {
    for (int l = 1; l < SPMV_LANES; l++) {
      const PetscInt *j = A->j + A->i[row + l * bs];

      for (PetscInt k = 0; k < len; k++) differ |= (j[k] - l * bs) ^ j0[k];
    }
  }
  if (differ) return -1;
  for (PetscInt k = 0; k < len / bs; k++) {
    if (offset) offset[k] = (int)(j0[k * bs] - row);
    if (mask) mask[k] = 255;
  }
  return (int)(len / bs);
}

int SpMVDiagonals(const SpMVCSR *A, int row, int bs, int lanes, int offset[], uint8_t mask[])
{
  PetscInt   at[SPMV_LANES], end[SPMV_LANES];
  PetscInt64 entries = 0;
  int next[SPMV_LANES], width = 0, limit, D = lanes == SPMV_LANES ? SpMVSameDiagonals(A, row, bs, offset, mask) : -1;

  if (D >= 0) return D ? D : -1;
  for (int l = 0; l < SPMV_LANES; l++) {
    const PetscInt r = row + (PetscInt)l * bs;

    at[l]   = l < lanes ? A->i[r] : 0;
    end[l]  = l < lanes ? A->i[r + 1] : 0;
    next[l] = at[l] < end[l] ? (int)(A->j[at[l]] - r) : INT_MAX;
    width   = PetscMax(width, (int)(end[l] - at[l]));
    entries += end[l] - at[l];
  }
  limit = SpMVDiagonalLimit(width / bs, bs, entries * bs);
  if (!width || (lanes > 1 && SpMVTwoDiagonals(A, row, row + (PetscInt)(lanes - 1) * bs, bs) > limit)) return -1;
  for (D = 0;; D++) {
    int           least = INT_MAX;
    unsigned char m     = 0;

    for (int l = 0; l < SPMV_LANES; l++) least = next[l] < least ? next[l] : least;
    if (least == INT_MAX) return D;
    if (D == limit) return -1;
    for (int l = 0; l < SPMV_LANES; l++) {
      if (next[l] == least) {
        m |= (unsigned char)(1u << l);
        at[l] += bs;
        next[l] = at[l] < end[l] ? (int)(A->j[at[l]] - (row + (PetscInt)l * bs)) : INT_MAX;
      }
    }
    if (offset) offset[D] = least;
    if (mask) mask[D] = m;
  }
}

/*
  For units that are not in the order of A, each of whose rows is a miss of the cache: fetches what set-ups and
  refreshes will need of units behind the next `count` of the list, row offsets, and of nearer ones the first and the
  last entry (entries: A's columns or values, of this size; NULL: only row offsets). Windows of sigma units stay in the
  cache if A does. Not inline, as GCC removes calls of a function that, as far as it sees, only fetches
*/
void SpMVFetchRows(const SpMVCSR *A, PetscInt sigma, const void *entries, size_t size, const int *list, const int *end,
                   int count)
{
  const PetscInt ahead = SpMVTuned.fetch_ahead, left = (PetscInt)(end - list);

  if (sigma > 1 && A->i[A->m] < SpMVTuned.fetch_entries) return;
  if (left > ahead && list[ahead] == list[0] + ahead) return;
  for (PetscInt l = ahead; l < ahead + count; l++) {
    if (l + ahead < left && list[l + ahead] >= 0) SPMV_FETCH(A->i + list[l + ahead]);
    if (entries && l < left && list[l] >= 0) {
      const PetscInt *i = A->i + list[l];

      if (i[0] < i[1]) {
        SPMV_FETCH((const char *)entries + (size_t)i[0] * size);
        SPMV_FETCH((const char *)entries + (size_t)i[1] * size - 1);
      }
    }
  }
}

/*
  Stable; sorts by length within windows of `window` places. Lengths are counted in each window, which stays in cache.
  As many counts as the longest unit of a window has entries are set to zero, which all together are no more than A has.
*/
PetscErrorCode SpMVSortByLength(const SpMVCSR *A, const SpMVUnits *U, PetscInt n, const int unit[], PetscInt window,
                                int sorted[])
{
  int            longest = 0, *length = NULL;
  PetscInt      *place = NULL; /* of the next unit of each length */
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscMalloc1(n, &length));
  for (PetscInt k = 0; k < n; k++) {
    length[k] = (int)SpMVUnitLength(A, U, unit[k]);
    longest   = PetscMax(longest, length[k]);
  }
  SpMVCall(PetscMalloc1((size_t)longest + 2, &place));
  for (PetscInt first = 0, end; first < n; first = end) {
    end     = first + PetscMin(PetscMax(window, 1), n - first);
    longest = 0;
    for (PetscInt k = first; k < end; k++) longest = PetscMax(longest, length[k]);
    SpMVCall(PetscArrayzero(place, longest + 2));
    for (PetscInt k = first; k < end; k++) place[length[k] + 1]++;
    for (int l = 0; l <= longest; l++) place[l + 1] += place[l];
    for (PetscInt k = first; k < end; k++) sorted[first + place[length[k]]++] = unit[k];
  }
done:
  PetscCall(PetscFree(length));
  PetscCall(PetscFree(place));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
