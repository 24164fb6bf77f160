/*
  Slices: the layout, which is the same on the host and on the device, and the host's product.
*/
#include "kernels.h"
#include <limits.h>
#include <stdint.h>

static void IndexSet(void *index, int width, PetscInt64 at, int value) /* negative: no entry */
{
  if (width == 1)
    ((uint8_t *)index)[at] = value < 0 ? 0xff : (uint8_t)value;
  else if (width == 2)
    ((uint16_t *)index)[at] = value < 0 ? 0xffff : (uint16_t)value;
  else
    ((int *)index)[at] = value;
}

static int IndexGet(const void *index, int width, PetscInt64 at)
{
  if (width == 1) return ((const uint8_t *)index)[at] == 0xff ? -1 : ((const uint8_t *)index)[at];
  if (width == 2) return ((const uint16_t *)index)[at] == 0xffff ? -1 : ((const uint16_t *)index)[at];
  return ((const int *)index)[at];
}

typedef struct {
  const PetscInt *i, *first; /* row offsets, and the first row of each problem, in a group */
  PetscInt        problems;
  int             rows;
  int             lane_entries; /* maximum number of entries of a row that a single lane multiplies */
  int             most_rows;    /* maximum number of rows of a thread block */
  PetscInt64      most_entries; /* maximum number of entries of a thread block */
} Group;

static inline PetscInt RowLength(const PetscInt *i, int r)
{
  return i[r + 1] - i[r];
}

static inline PetscInt64 Entries(const Group *g, PetscInt first, PetscInt end)
{
  return g->i[end] - g->i[first];
}

enum { LENGTHS = 1024 };

/* buckets in descending order of length; one bucket has all rows of at least a certain length */
static inline int LengthBucket(const PetscInt *i, int r)
{
  return LENGTHS - 1 - (int)PetscMin(RowLength(i, r), LENGTHS - 1);
}

/* Rows r0 to end - 1 in descending order of their lengths; rows of equal length keep their order */
static void SortByLength(const PetscInt *i, int r0, int end, int row[])
{
  int start[LENGTHS + 1] = {0};

  for (int r = r0; r < end; r++) start[LengthBucket(i, r) + 1]++;
  for (int k = 0; k < LENGTHS; k++) start[k + 1] += start[k];
  for (int r = r0; r < end; r++) row[start[LengthBucket(i, r)]++] = r;
  for (int k = 1; k < start[0]; k++) { /* the longest rows share a bucket */
    const int r = row[k];
    int       to;

    for (to = k; to && RowLength(i, row[to - 1]) < RowLength(i, r); to--) row[to] = row[to - 1];
    row[to] = r;
  }
}

/*
  Finds the window that begins at row r0, in problem p: several whole problems, or a part of a problem that has more
  rows or entries than a thread block may have. The window's rows are r0 to *end - 1, and its columns are g->first[p] to
  *past - 1.
*/
static void FindWindow(const Group *g, int reach, PetscInt p, int r0, int *end, int *past)
{
  const int begin = (int)g->first[p];

  *past = *end = (int)g->first[p + 1];
  if (*end - begin > g->most_rows || Entries(g, begin, *end) > g->most_entries) {
    const int parts = (*end - begin - 1) / g->most_rows + 1;
    /* equal parts, each with no more entries than a thread block may have */
    int part = ((*end - begin - 1) / parts / BATCH_WARP + 1) * BATCH_WARP;

    while (part > BATCH_WARP && Entries(g, r0, r0 + PetscMin(part, *end - r0)) > g->most_entries) part -= BATCH_WARP;
    *end = r0 + PetscMin(part, *end - r0);
  } else {
    for (PetscInt q = p + 1; q < g->problems && g->first[q + 1] - begin <= PetscMin(reach, g->most_rows) &&
                             Entries(g, begin, g->first[q + 1]) <= g->most_entries;
         q++)
      *past = *end = (int)g->first[q + 1];
  }
}

/* Appends the slices of a window to S; returns false if a row is too long. row: the window's rows r0 to end - 1, sorted
   */
static PetscBool FormWindow(const Group *g, int base, int r0, int end, const int row[], BatchSlices *S)
{
  for (int k = r0, rows; k < end; k += rows) {
    const PetscInt longest  = RowLength(g->i, row[k - r0]);
    int            log_rows = 2, log_lanes = 0;
    PetscInt       steps;

    /* as many rows per lane as eight steps can hold */
    while (log_rows && (longest > 8 >> log_rows || BATCH_WARP << (log_rows - 1) >= end - k)) log_rows--;
    while (!log_rows && log_lanes < 5 &&
           (longest > (PetscInt64)g->lane_entries << log_lanes || BATCH_WARP >> (log_lanes + 1) >= end - k))
      log_lanes++; /* the last few rows share the lanes */
    rows  = PetscMin(end - k, log_rows ? BATCH_WARP << log_rows : BATCH_WARP >> log_lanes);
    steps = (longest + (1 << log_lanes) - 1) >> log_lanes;
    if (steps > BATCH_MAX_STEPS) return PETSC_FALSE;
    if (S->slice) {
      BatchSlice *slice = S->slice + S->slices;

      slice->first_step = (unsigned)S->steps;
      slice->first_row  = k;
      slice->base       = base;
      slice->shape      = (unsigned)log_lanes | (unsigned)log_rows << 3 | (unsigned)rows << 5 | (unsigned)steps << 14;
      for (int q = k; q < k + rows; q++) IndexSet(S->order, S->width, q, row[q - r0] - base);
    }
    S->slices++;
    S->steps += (PetscInt64)steps << log_rows;
  }
  return PETSC_TRUE;
}

/*
  Forms the slices for indices of S->width bytes, and assigns them to thread blocks. If S has no arrays yet, it only
  counts. Returns false if a row is too long.

  A thread block processes as many windows as its limits of rows, entries and columns allow. The smallest window has as
  many rows as a warp has lanes and is never divided, no matter how many entries it has.
*/
static PetscBool FormSlices(const Group *g, BatchSlices *S)
{
  const int  reach = S->width == 1 ? 255 : (S->width == 2 ? 65535 : INT_MAX);
  int        row[BATCH_BLOCK_ROWS];
  PetscInt   p     = 0;
  BatchBlock block = {0, 0, 0, 0};

  S->slices = S->blocks = 0;
  S->steps              = 0;
  for (int r0 = 0, end; r0 < g->rows; r0 = end) {
    int base, past;

    while (g->first[p + 1] <= r0) p++;
    base = (int)g->first[p];
    FindWindow(g, reach, p, r0, &end, &past);
    if (!r0 || end - block.first_row > g->most_rows || Entries(g, block.first_row, end) > g->most_entries ||
        past - block.first_column > BATCH_BLOCK_COLUMNS) {
      block.first_slice  = (unsigned)S->slices;
      block.first_row    = r0;
      block.first_column = base;
      S->blocks++;
    }
    block.columns = past - block.first_column <= BATCH_BLOCK_COLUMNS ? past - block.first_column : 0;
    if (S->block) S->block[S->blocks - 1] = block;
    SortByLength(g->i, r0, end, row);
    if (!FormWindow(g, base, r0, end, row, S)) return PETSC_FALSE;
  }
  if (S->block) {
    block.first_slice   = (unsigned)S->slices;
    block.first_row     = g->rows;
    S->block[S->blocks] = block;
  }
  return (PetscBool)(S->steps < UINT_MAX);
}

PetscInt64 BatchSlicesBytes(const BatchPattern *B, const BatchSlices *S)
{
  return S->slices * (PetscInt64)sizeof(BatchSlice) + S->blocks * (PetscInt64)sizeof(BatchBlock) +
         (PetscInt64)S->rows * S->width +
         S->steps * BATCH_WARP *
             (S->width + (PetscInt64)sizeof(PetscScalar) * (B->sharing == BATCH_SHARE_PATTERN ? S->groups : 1));
}

/* Executes `body` for each position of a value, in order, with its slice, its row, and the entry of the group that is
   stored there, or -1 */
#define ForSlicePositions(S, slice, position, row, entry, body)                                                        \
  do {                                                                                                                 \
    for (PetscInt s_ = 0; s_ < (S)->slices; s_++) {                                                                    \
      const BatchSlice *slice = (S)->slice + s_;                                                                       \
      const int  log_lanes_ = BatchSliceLogLanes(slice->shape), rows_per_lane_ = 1 << BatchSliceLogRows(slice->shape); \
      PetscInt64 position = (PetscInt64)slice->first_step * BATCH_WARP;                                                \
      for (int k_ = 0; k_ < BatchSliceSteps(slice->shape); k_++)                                                       \
        for (int u_ = 0; u_ < rows_per_lane_; u_++)                                                                    \
          for (int lane_ = 0; lane_ < BATCH_WARP; lane_++, position++) {                                               \
            const int  rows_at_once_ = BATCH_WARP >> log_lanes_;                                                       \
            const int  q_            = rows_per_lane_ > 1 ? u_ * BATCH_WARP + lane_ : lane_ % rows_at_once_;           \
            int        row           = -1;                                                                             \
            PetscInt64 entry         = -1;                                                                             \
            if (q_ < BatchSliceRows(slice->shape)) {                                                                   \
              row   = slice->base + IndexGet((S)->order, (S)->width, slice->first_row + q_);                           \
              entry = (S)->i[row] + ((PetscInt64)k_ << log_lanes_) + (rows_per_lane_ > 1 ? 0 : lane_ / rows_at_once_); \
              if (entry >= (S)->i[row + 1]) entry = -1;                                                                \
            }                                                                                                          \
            body                                                                                                       \
          }                                                                                                            \
    }                                                                                                                  \
  } while (0)

PetscErrorCode BatchSlicesCreate(const BatchPattern *B, int processors, BatchSlices *S, PetscBool *fits)
{
  PetscInt    most = 0;
  BatchSlices narrow; /* with indices of one byte */
  Group       g;
  double      mean;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(S, sizeof(*S)));
  S->problems = B->problems;
  S->groups   = 1;
  S->i        = B->i;
  g.first     = B->first;
  g.most_rows = BATCH_BLOCK_ROWS;
  /* Eight thread blocks per multiprocessor, or one if they would be small, since each reads the whole x of its problems
     */
  while (g.most_rows > BATCH_WARP &&
         (PetscInt64)BatchRows(B) < (g.most_rows > 128 ? 8 : 1) * (PetscInt64)g.most_rows * processors)
    g.most_rows /= 2;
  if (B->sharing) {
    const PetscInt n = B->first[1], entries = B->i[n];

    S->problems = PetscMax(1, PetscMin(B->problems, g.most_rows / PetscMax(n, 1)));
    S->groups   = (B->problems - 1) / S->problems + 1;
    PetscCall(PetscMalloc1((size_t)(S->problems * n) + 1, &S->owned));
    S->i        = S->owned;
    S->owned[0] = 0;
    for (PetscInt q = 0; q < S->problems; q++) {
      for (PetscInt r = 0; r < n; r++) S->owned[q * n + r + 1] = q * entries + B->i[r + 1];
    }
  }
  S->rows    = (int)B->first[S->problems];
  S->entries = S->i[S->rows];
  for (PetscInt p = 0; p < S->problems; p++) most = PetscMax(most, B->first[p + 1] - B->first[p]);
  mean           = (double)S->entries / PetscMax(1, S->rows);
  g.i            = S->i;
  g.problems     = S->problems;
  g.rows         = S->rows;
  g.lane_entries = mean < 16.0 ? 16 : 32;
  /* Limit the entries of a thread block so that the last thread blocks do not take long */
  g.most_entries = processors ? PetscMax(8192, S->entries * S->groups / (8 * processors)) : S->entries * S->groups + 1;
  while (g.lane_entries > 2 &&
         (double)S->rows * (double)S->groups * (1.0 + mean / g.lane_entries) < 16.0 * BATCH_WARP * processors)
    g.lane_entries /= 2;
  /* Minimize the bytes: use indices of one byte if the problems are small enough, unless the smaller windows waste more
     than such indices save */
  narrow   = *S;
  S->width = most > 65535 ? 4 : 2;
  *fits    = FormSlices(&g, S);
  if (*fits && most <= 255) {
    narrow.width = 1;
    *fits        = FormSlices(&g, &narrow);
    if (BatchSlicesBytes(B, &narrow) <= BatchSlicesBytes(B, S)) *S = narrow;
  }
  if (!*fits) {
    PetscCall(BatchSlicesDestroy(S));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1((size_t)S->slices, &S->slice));
  PetscCall(PetscMalloc1((size_t)S->blocks + 1, &S->block));
  PetscCall(PetscMalloc((size_t)S->rows * S->width, &S->order));
  (void)FormSlices(&g, S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchSlicesGetFirstRows(const BatchPattern *B, const BatchSlices *S, int **first)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)S->rows, first));
  for (PetscInt p = 0; p < S->problems; p++) {
    for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) (*first)[r] = (int)B->first[p];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchSlicesSetIndices(const BatchPattern *B, BatchSlices *S)
{
  const PetscInt entries = BatchPatternEntries(B);
  int           *first   = NULL;
  PetscErrorCode ierr    = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(BatchSlicesGetFirstRows(B, S, &first));
  SpMVCall(PetscMalloc((size_t)S->steps * BATCH_WARP * S->width, &S->index));
  ForSlicePositions(S, slice, position, row, entry, {
    IndexSet(S->index, S->width, position, entry < 0 ? -1 : (int)(B->j[entry % entries] + first[row] - slice->base));
  });
done:
  PetscCall(PetscFree(first));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchSlicesDestroy(BatchSlices *S)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(S->slice));
  PetscCall(PetscFree(S->block));
  PetscCall(PetscFree(S->order));
  PetscCall(PetscFree(S->index));
  PetscCall(PetscFree(S->owned));
  PetscCall(PetscMemzero(S, sizeof(*S)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void BatchSlicesFill(const BatchPattern *B, const BatchSlices *S, const PetscScalar *a, PetscScalar *value)
{
  const PetscInt64 values = BatchValues(B), shared = B->sharing ? BatchPatternEntries(B) : S->entries;

  for (PetscInt g = 0; g < (B->sharing == BATCH_SHARE_VALUES ? 1 : S->groups); g++) {
    PetscScalar *to = value + (size_t)g * (size_t)S->steps * BATCH_WARP;

    ForSlicePositions(S, slice, position, row, entry, {
      PetscInt64 k = entry;

      (void)row;
      if (k >= 0) k = B->sharing == BATCH_SHARE_VALUES ? k % shared : k + g * S->entries;
      to[position] = k >= 0 && k < values ? a[k] : 0.0; /* the last group may have fewer problems */
    });
  }
}

/* Multiplies lane by lane, and adds in the same order as on the device */
void BatchSlicesMult(const BatchPattern *B, const BatchSlices *S, const PetscScalar *value, const PetscScalar *x,
                     const PetscScalar *z, PetscScalar *y)
{
  const PetscInt rows = BatchRows(B);

  for (PetscInt g = 0; g < S->groups; g++) {
    const PetscScalar *v = value + (B->sharing == BATCH_SHARE_PATTERN ? (size_t)g * (size_t)S->steps * BATCH_WARP : 0);

    for (PetscInt s = 0; s < S->slices; s++) {
      const BatchSlice  *slice = S->slice + s;
      const int          lanes = 1 << BatchSliceLogLanes(slice->shape), rows_at_once = BATCH_WARP / lanes;
      const int          sums = BATCH_WARP << BatchSliceLogRows(slice->shape);
      const PetscInt64   base = (PetscInt64)g * S->rows + slice->base; /* the last group may have fewer problems */
      const PetscScalar *xs   = x + base;
      PetscInt64         k    = (PetscInt64)slice->first_step * BATCH_WARP;
      PetscScalar        sum[4 * BATCH_WARP];

      for (int l = 0; l < sums; l++) sum[l] = 0.0;
      for (int step = 0; step < BatchSliceSteps(slice->shape); step++) {
        for (int l = 0; l < sums; l++, k++) {
          const int col = IndexGet(S->index, S->width, k);

          if (col >= 0 && base + col < rows) sum[l] += v[k] * xs[col];
        }
      }
      for (int q = 0; q < BatchSliceRows(slice->shape); q++) {
        const PetscInt64 r     = base + IndexGet(S->order, S->width, slice->first_row + q);
        PetscScalar      total = sum[q];

        if (r >= rows) continue;
        for (int t = 1; t < lanes; t++) total += sum[q + t * rows_at_once];
        y[r] = z ? z[r] + total : total;
      }
    }
  }
}
