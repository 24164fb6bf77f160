/*
  Layouts and products of a batch on the host; the slices are the device's as well.
*/
#include "batch.h"
#include "../sellp/sellp.h"
#include <limits.h>
#include <stdint.h>

PetscErrorCode BatchTranspose(const BatchPattern *B, PetscInt **it, PetscInt **jt, PetscInt **from)
{
  const PetscInt rows = BatchPatternRows(B), entries = BatchPatternEntries(B);
  PetscInt      *next = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *it = *jt = *from = NULL;
  SpMVCall(PetscCalloc1((size_t)rows + 1, it));
  SpMVCall(PetscMalloc1((size_t)entries, jt));
  SpMVCall(PetscMalloc1((size_t)entries, from));
  SpMVCall(PetscMalloc1((size_t)rows, &next));
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    const PetscInt first = B->first[p], n = B->first[p + 1] - first;

    for (PetscInt k = B->i[first]; k < B->i[first + n]; k++) (*it)[first + B->j[k] + 1]++;
  }
  for (PetscInt r = 0; r < rows; r++) {
    (*it)[r + 1] += (*it)[r];
    next[r] = (*it)[r];
  }
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    const PetscInt first = B->first[p], n = B->first[p + 1] - first;

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = B->i[first + r]; k < B->i[first + r + 1]; k++) {
        const PetscInt at = next[first + B->j[k]]++;

        (*jt)[at]   = r;
        (*from)[at] = k;
      }
    }
  }
done:
  PetscCall(PetscFree(next));
  if (ierr) {
    PetscCall(PetscFree(*it));
    PetscCall(PetscFree(*jt));
    PetscCall(PetscFree(*from));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- slices */

static void IndexSet(void *index, int width, PetscInt64 at, int value) /* negative: nobody */
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
  const PetscInt *i, *first; /* of a group */
  PetscInt        problems;
  int             rows, per; /* entries a lane takes before a second one helps */
  int             most;      /* rows of a thread block */
  PetscInt64      entries;   /* and its entries */
} Group;

#define RowLength(i, r)     ((i)[(r) + 1] - (i)[r])
#define Entries(first, end) ((PetscInt64)(g->i[end] - g->i[first]))

/* Rows r0 to end in descending order of their lengths, equal ones as they come */
static void SortByLength(const PetscInt *i, int r0, int end, int row[])
{
  enum { LENGTHS = 1024 };
  int start[LENGTHS + 1] = {0};

#define Bucket(r) (LENGTHS - 1 - (int)PetscMin(RowLength(i, r), LENGTHS - 1))
  for (int r = r0; r < end; r++) start[Bucket(r) + 1]++;
  for (int k = 0; k < LENGTHS; k++) start[k + 1] += start[k];
  for (int r = r0; r < end; r++) row[start[Bucket(r)]++] = r;
#undef Bucket
  for (int k = 1; k < start[0]; k++) { /* the longest share a bucket */
    const int r = row[k];
    int       to;

    for (to = k; to && RowLength(i, row[to - 1]) < RowLength(i, r); to--) row[to] = row[to - 1];
    row[to] = r;
  }
}

/*
  Forms the slices for indices of S->width bytes, and the thread blocks' shares of them. Without arrays, only counts; false where a row is too long.

  A window is several whole problems, or a part of one that has more rows or entries than a block takes; a block takes as many windows as its rows, entries and
  columns allow. As many rows as a warp has lanes are one block's, whatever they have.
*/
static PetscBool SlicesForm(const Group *g, BatchSlices *S)
{
  const int  reach = S->width == 1 ? 255 : (S->width == 2 ? 65535 : INT_MAX);
  int        row[BATCH_BLOCK_ROWS];
  PetscInt   pb    = 0;
  BatchBlock block = {0, 0, 0, 0};

  S->slices = S->blocks = 0;
  S->steps              = 0;
  for (int r0 = 0, end; r0 < g->rows; r0 = end) {
    int b, past; /* the window's columns are b to past */

    while (g->first[pb + 1] <= r0) pb++;
    b    = (int)g->first[pb];
    past = end = (int)g->first[pb + 1];
    if (end - b > g->most || Entries(b, end) > g->entries) {
      const int parts = (end - b - 1) / g->most + 1;
      int       part  = ((end - b - 1) / parts / BATCH_WARP + 1) * BATCH_WARP; /* equal ones, but no more entries than a block takes */

      while (part > BATCH_WARP && Entries(r0, r0 + PetscMin(part, end - r0)) > g->entries) part -= BATCH_WARP;
      end = r0 + PetscMin(part, end - r0);
    } else {
      for (PetscInt e = pb + 1; e < g->problems && g->first[e + 1] - b <= PetscMin(reach, g->most) && Entries(b, g->first[e + 1]) <= g->entries; e++)
        past = end = (int)g->first[e + 1];
    }
    if (!r0 || end - block.row > g->most || Entries(block.row, end) > g->entries || past - block.x > BATCH_BLOCK_COLUMNS) {
      block.slice = (unsigned)S->slices;
      block.row   = r0;
      block.x     = b;
      S->blocks++;
    }
    block.columns = past - block.x <= BATCH_BLOCK_COLUMNS ? past - block.x : 0;
    if (S->block) S->block[S->blocks - 1] = block;
    SortByLength(g->i, r0, end, row);
    for (int k = r0, rows; k < end; k += rows) {
      const PetscInt longest = RowLength(g->i, row[k - r0]);
      int            lu = 2, lt = 0;
      PetscInt       n;

      while (lu && (longest > 8 >> lu || BATCH_WARP << (lu - 1) >= end - k)) lu--;                             /* as many rows a lane as eight vectors hold */
      while (!lu && lt < 5 && (longest > (PetscInt64)g->per << lt || BATCH_WARP >> (lt + 1) >= end - k)) lt++; /* the last few rows share the lanes */
      rows = PetscMin(end - k, lu ? BATCH_WARP << lu : BATCH_WARP >> lt);
      n    = (longest + (1 << lt) - 1) >> lt;
      if (n > BATCH_MAX_STEPS) return PETSC_FALSE;
      if (S->slice) {
        BatchSlice *c = S->slice + S->slices;

        c->step  = (unsigned)S->steps;
        c->place = k;
        c->base  = b;
        c->shape = (unsigned)lt | (unsigned)lu << 3 | (unsigned)rows << 5 | (unsigned)n << 14;
        for (int q = k; q < k + rows; q++) IndexSet(S->order, S->width, q, row[q - r0] - b);
      }
      S->slices++;
      S->steps += (PetscInt64)n << lu;
    }
  }
  if (S->block) {
    block.slice         = (unsigned)S->slices;
    block.row           = g->rows;
    S->block[S->blocks] = block;
  }
  return (PetscBool)(S->steps < UINT_MAX);
}

PetscInt64 BatchSlicesBytes(const BatchPattern *B, const BatchSlices *S)
{
  return S->slices * (PetscInt64)sizeof(BatchSlice) + S->blocks * (PetscInt64)sizeof(BatchBlock) + (PetscInt64)S->rows * S->width +
         S->steps * BATCH_WARP * (S->width + (PetscInt64)sizeof(PetscScalar) * (B->sharing == BATCH_SHARE_PATTERN ? S->groups : 1));
}

/* For every place of a value, in order: its slice, its row and which value of the group stands there, or -1 */
#define SlicesForSlots(S, c, slot, row, value, body)                                                                                          \
  do {                                                                                                                                        \
    for (PetscInt s_ = 0; s_ < (S)->slices; s_++) {                                                                                           \
      const BatchSlice *c   = (S)->slice + s_;                                                                                                \
      const int         lt_ = BatchLogT(c->shape), U_ = 1 << BatchLogU(c->shape), alone_ = BATCH_WARP >> lt_, n_ = BatchSliceSteps(c->shape); \
      PetscInt64        slot = (PetscInt64)c->step * BATCH_WARP;                                                                              \
      for (int k_ = 0; k_ < n_; k_++)                                                                                                         \
        for (int u_ = 0; u_ < U_; u_++)                                                                                                       \
          for (int l_ = 0; l_ < BATCH_WARP; l_++, slot++) {                                                                                   \
            const int  q_    = U_ > 1 ? u_ * BATCH_WARP + l_ : l_ % alone_;                                                                   \
            int        row   = -1;                                                                                                            \
            PetscInt64 value = -1;                                                                                                            \
            if (q_ < BatchSliceRows(c->shape)) {                                                                                              \
              row   = c->base + IndexGet((S)->order, (S)->width, c->place + q_);                                                              \
              value = (S)->i[row] + ((PetscInt64)k_ << lt_) + (U_ > 1 ? 0 : l_ / alone_);                                                     \
              if (value >= (S)->i[row + 1]) value = -1;                                                                                       \
            }                                                                                                                                 \
            body                                                                                                                              \
          }                                                                                                                                   \
    }                                                                                                                                         \
  } while (0)

PetscErrorCode BatchSlicesCreate(const BatchPattern *B, int processors, BatchSlices *S, PetscBool *fits)
{
  PetscInt    most = 0;
  BatchSlices narrow; /* one byte an index */
  Group       g;
  double      mean;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(S, sizeof(*S)));
  S->problems = B->problems;
  S->groups   = 1;
  S->i        = B->i;
  g.first     = B->first;
  g.most      = BATCH_BLOCK_ROWS;
  /* Eight blocks for each multiprocessor; as each reads all x of its problems, one where they would be small */
  while (g.most > BATCH_WARP && (PetscInt64)BatchRows(B) < (g.most > 128 ? 8 : 1) * (PetscInt64)g.most * processors) g.most /= 2;
  if (B->sharing) {
    const PetscInt n = B->first[1], entries = B->i[n];

    S->problems = PetscMax(1, PetscMin(B->problems, g.most / PetscMax(n, 1)));
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
  mean       = (double)S->entries / PetscMax(1, S->rows);
  g.i        = S->i;
  g.problems = S->problems;
  g.rows     = S->rows;
  g.per      = mean < 16.0 ? 16 : 32;
  g.entries  = processors ? PetscMax(8192, S->entries * S->groups / (8 * processors)) : S->entries * S->groups + 1; /* the last blocks should not take long */
  while (g.per > 2 && (double)S->rows * (double)S->groups * (1.0 + mean / g.per) < 16.0 * BATCH_WARP * processors) g.per /= 2;
  /* The fewest bytes: indices of one byte where they reach, unless the windows that they take, which are smaller, waste more than that */
  narrow   = *S;
  S->width = most > 65535 ? 4 : 2;
  *fits    = SlicesForm(&g, S);
  if (*fits && most <= 255) {
    narrow.width = 1;
    *fits        = SlicesForm(&g, &narrow);
    if (BatchSlicesBytes(B, &narrow) <= BatchSlicesBytes(B, S)) *S = narrow;
  }
  if (!*fits) {
    PetscCall(BatchSlicesDestroy(S));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1((size_t)S->slices, &S->slice));
  PetscCall(PetscMalloc1((size_t)S->blocks + 1, &S->block));
  PetscCall(PetscMalloc((size_t)S->rows * S->width, &S->order));
  (void)SlicesForm(&g, S);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchRowsFirst(const BatchPattern *B, const BatchSlices *S, int **first)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)S->rows, first));
  for (PetscInt p = 0; p < S->problems; p++) {
    for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) (*first)[r] = (int)B->first[p];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of every place, which only the host's product asks for: the device finds its own */
static PetscErrorCode SlicesIndex(const BatchPattern *B, BatchSlices *S)
{
  const PetscInt entries = BatchPatternEntries(B);
  int           *first   = NULL;
  PetscErrorCode ierr    = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(BatchRowsFirst(B, S, &first));
  SpMVCall(PetscMalloc((size_t)S->steps * BATCH_WARP * S->width, &S->index));
  SlicesForSlots(S, c, slot, r, e, { IndexSet(S->index, S->width, slot, e < 0 ? -1 : (int)(B->j[e % entries] + first[r] - c->base)); });
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

static void SlicesFill(const BatchPattern *B, const BatchSlices *S, const PetscScalar *a, PetscScalar *value)
{
  const PetscInt64 all = BatchValues(B), one = B->sharing ? BatchPatternEntries(B) : S->entries;

  for (PetscInt g = 0; g < (B->sharing == BATCH_SHARE_VALUES ? 1 : S->groups); g++) {
    PetscScalar *to = value + (size_t)g * (size_t)S->steps * BATCH_WARP;

    SlicesForSlots(S, c, slot, r, from, {
      PetscInt64 at = from;

      (void)r;
      if (at >= 0) at = B->sharing == BATCH_SHARE_VALUES ? at % one : at + g * S->entries;
      to[slot] = at >= 0 && at < all ? a[at] : 0.0; /* the last group may have fewer problems */
    });
  }
}

/* As the device does it, lane by lane */
static void SlicesMult(const BatchPattern *B, const BatchSlices *S, const PetscScalar *value, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  const PetscInt rows = BatchRows(B);

  for (PetscInt g = 0; g < S->groups; g++) {
    const PetscScalar *v = value + (B->sharing == BATCH_SHARE_PATTERN ? (size_t)g * (size_t)S->steps * BATCH_WARP : 0);

    for (PetscInt s = 0; s < S->slices; s++) {
      const BatchSlice  *c  = S->slice + s;
      const int          lt = BatchLogT(c->shape), U = 1 << BatchLogU(c->shape), alone = BATCH_WARP >> lt, n = BatchSliceSteps(c->shape);
      const PetscInt64   here = (PetscInt64)g * S->rows + c->base; /* the last group may have fewer problems */
      const PetscScalar *xs   = x + here;
      PetscInt64         at   = (PetscInt64)c->step * BATCH_WARP;
      PetscScalar        d[4 * BATCH_WARP];

      for (int l = 0; l < U * BATCH_WARP; l++) d[l] = 0.0;
      for (int k = 0; k < n; k++) {
        for (int l = 0; l < U * BATCH_WARP; l++, at++) {
          const int col = IndexGet(S->index, S->width, at);

          if (col >= 0 && here + col < rows) d[l] += v[at] * xs[col];
        }
      }
      for (int q = 0; q < BatchSliceRows(c->shape); q++) {
        const PetscInt64 r   = here + IndexGet(S->order, S->width, c->place + q);
        PetscScalar      sum = d[q];

        if (r >= rows) continue;
        for (int t = 1; t < 1 << lt; t++) sum += d[q + t * alone];
        y[r] = z ? z[r] + sum : sum;
      }
    }
  }
}

/* ---------------------------------------------------------------- the host's products */

#define BATCH_PARTS 4 /* of a problem, CSR-I */

struct _n_BatchHost {
  BatchKernel  kernel; /* what runs */
  const char  *name;
  SpMVStore    block; /* SELLP: of all the batch, or of the one problem whose values are shared */
  SpMVCSR      csr;
  BatchSlices  slices;
  int         *row;   /* COO: of each entry; CSR-I: of each part's first */
  int         *width; /* ELL: of each problem */
  PetscInt64  *start; /* ELL: its first entry */
  int         *col;
  PetscScalar *value;
  PetscInt64   stored, bytes;
};

static const char *const BatchHostNames[] = {"", "slices", "block-diagonal", "COO", "CSR-scalar", "CSR-vector", "CSR-smart", "CSR-I", "ELL"};

/* The batch as one matrix in CSR: columns that count from the first row, and no copy of anything else */
static PetscErrorCode BatchHostCreateBlock(const BatchPattern *B, BatchHost h)
{
  const PetscInt rows = BatchPatternRows(B);
  PetscInt      *j    = NULL;
  SELLPParams    params;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscMalloc1((size_t)BatchPatternEntries(B), &j));
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    for (PetscInt k = B->i[B->first[p]]; k < B->i[B->first[p + 1]]; k++) j[k] = B->j[k] + B->first[p];
  }
  h->csr.m = h->csr.n = rows;
  h->csr.i            = B->i;
  h->csr.j            = j;
  SELLPParamsDefault(&params);
  SpMVCall(SELLPSetUp(&h->csr, &params, &h->block));
  if (SpMVStoreUsesParent(h->block)) {
    PetscCall(SpMVStoreDestroy(&h->block));
    h->kernel = BATCH_CSR_SMART;
  }
done:
  PetscCall(PetscFree(j));
  h->csr.j = NULL; /* a refresh does without */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchHostSetUp(const BatchPattern *B, BatchKernel kernel, BatchHost h)
{
  const PetscInt patterns = BatchPatterns(B);
  PetscBool      fits;

  PetscFunctionBegin;
  h->kernel = kernel;
  if (kernel == BATCH_AUTO || (kernel == BATCH_SELLP && B->sharing == BATCH_SHARE_PATTERN))
    h->kernel = B->sharing == BATCH_SHARE_PATTERN || !BatchPatternEntries(B) ? BATCH_CSR_SMART : BATCH_SELLP;
  h->stored = BatchValues(B);
  h->bytes  = ((PetscInt64)BatchPatternEntries(B) + BatchPatternRows(B) + 1) * (PetscInt64)sizeof(PetscInt) + h->stored * (PetscInt64)sizeof(PetscScalar);
  switch (h->kernel) {
  case BATCH_SELLP: PetscCall(BatchHostCreateBlock(B, h)); break;
  case BATCH_SLICES:
    PetscCall(BatchSlicesCreate(B, 0, &h->slices, &fits));
    PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_SUP, "Option -mat_batch_kernel slices: a row is too long for it, use auto");
    PetscCall(SlicesIndex(B, &h->slices));
    h->stored = h->slices.steps * BATCH_WARP * (B->sharing == BATCH_SHARE_PATTERN ? h->slices.groups : 1);
    h->bytes  = BatchSlicesBytes(B, &h->slices);
    PetscCall(PetscMalloc1((size_t)h->stored, &h->value));
    break;
  case BATCH_COO:
    PetscCall(PetscMalloc1((size_t)BatchPatternEntries(B), &h->row));
    for (PetscInt p = 0; p < patterns; p++) {
      for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) {
        for (PetscInt k = B->i[r]; k < B->i[r + 1]; k++) h->row[k] = (int)(r - B->first[p]);
      }
    }
    h->bytes += (PetscInt64)BatchPatternEntries(B) * (PetscInt64)sizeof(int);
    break;
  case BATCH_CSR_I:
    PetscCall(PetscMalloc1((size_t)patterns * BATCH_PARTS, &h->row));
    for (PetscInt p = 0; p < patterns; p++) {
      const PetscInt *i = B->i + B->first[p], n = B->first[p + 1] - B->first[p];
      PetscInt        r = 0;

      for (int t = 0; t < BATCH_PARTS; t++) {
        const PetscInt at = i[0] + (PetscInt)((PetscInt64)(i[n] - i[0]) * t / BATCH_PARTS);

        while (r < n && i[r + 1] <= at) r++;
        h->row[(size_t)p * BATCH_PARTS + t] = (int)r;
      }
    }
    h->bytes += (PetscInt64)patterns * BATCH_PARTS * (PetscInt64)sizeof(int);
    break;
  case BATCH_ELL:
    PetscCall(PetscMalloc2((size_t)patterns, &h->width, (size_t)patterns + 1, &h->start));
    h->start[0] = 0;
    for (PetscInt p = 0; p < patterns; p++) {
      h->width[p] = 0;
      for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) h->width[p] = PetscMax(h->width[p], (int)(B->i[r + 1] - B->i[r]));
      h->start[p + 1] = h->start[p] + (PetscInt64)h->width[p] * (B->first[p + 1] - B->first[p]);
    }
    PetscCall(PetscMalloc1((size_t)h->start[patterns], &h->col));
    for (PetscInt p = 0; p < patterns; p++) {
      const PetscInt *i = B->i + B->first[p], n = B->first[p + 1] - B->first[p];

      for (int k = 0; k < h->width[p]; k++) {
        for (PetscInt r = 0; r < n; r++) h->col[h->start[p] + (PetscInt64)k * n + r] = i[r] + k < i[r + 1] ? (int)B->j[i[r] + k] : -1;
      }
    }
    h->stored = h->start[patterns] * (B->sharing == BATCH_SHARE_PATTERN ? B->problems : 1);
    h->bytes =
        h->start[patterns] * (PetscInt64)sizeof(int) + h->stored * (PetscInt64)sizeof(PetscScalar) + patterns * (PetscInt64)(sizeof(int) + sizeof(*h->start));
    PetscCall(PetscMalloc1((size_t)h->stored, &h->value));
    break;
  default: break;
  }
  h->name = BatchHostNames[h->kernel];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchHostCreate(const BatchPattern *B, BatchKernel kernel, BatchHost *host)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscNew(host));
  ierr = BatchHostSetUp(B, kernel, *host);
  if (ierr) PetscCall(BatchHostDestroy(host));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchHostFill(BatchHost h, const BatchPattern *B, const PetscScalar *a, PetscInt first, PetscInt last)
{
  PetscFunctionBegin;
  if (h->kernel == BATCH_SELLP) {
    SpMVStats stats;

    h->csr.a = a;
    PetscCall(SpMVStoreFill(h->block, &h->csr));
    SpMVStoreGetStats(h->block, &stats);
    h->name   = stats.kernel;
    h->stored = stats.stored;
    h->bytes  = stats.bytes;
  } else if (h->kernel == BATCH_SLICES)
    SlicesFill(B, &h->slices, a, h->value);
  else if (h->kernel == BATCH_ELL) {
    if (B->sharing == BATCH_SHARE_VALUES) {
      first = 0;
      last  = 1;
    }
    for (PetscInt p = first; p < last; p++) {
      const PetscInt     q = B->sharing ? 0 : p, *i = BatchOffsets(B, p), n = B->first[q + 1] - B->first[q];
      const PetscScalar *from = a + BatchValuesAt(B, p);
      PetscScalar       *to   = h->value + h->start[q] + (B->sharing == BATCH_SHARE_PATTERN ? (PetscInt64)p * h->start[1] : 0);

      for (int k = 0; k < h->width[q]; k++) {
        for (PetscInt r = 0; r < n; r++) to[(PetscInt64)k * n + r] = i[r] + k < i[r + 1] ? from[i[r] + k] : 0.0;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows with V partial sums each */
static inline void RowsMult(int V, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z,
                            PetscScalar *y)
{
  for (PetscInt r = 0; r < n; r++) {
    PetscScalar d[8] = {0.0}, sum = z ? z[r] : 0.0;
    PetscInt    k = i[r];

    for (; k + V <= i[r + 1]; k += V) {
      for (int v = 0; v < V; v++) d[v] += a[k + v] * x[j[k + v]];
    }
    for (; k < i[r + 1]; k++) d[0] += a[k] * x[j[k]];
    for (int v = 1; v < V; v++) d[0] += d[v];
    y[r] = sum + d[0];
  }
}

static void ProblemMult(BatchHost h, PetscInt q, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, const PetscScalar *value,
                        const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  const PetscInt entries = i[n] - i[0];
  int            V       = 1;

  switch (h->kernel) {
  case BATCH_CSR_VECTOR: RowsMult(8, n, i, j, a, x, z, y); break;
  case BATCH_CSR_SMART:
    while (V < 8 && V * (PetscInt64)n < entries) V *= 2; /* at least the mean length, as the paper's */
    if (V == 1)
      RowsMult(1, n, i, j, a, x, z, y);
    else if (V == 2)
      RowsMult(2, n, i, j, a, x, z, y);
    else if (V == 4)
      RowsMult(4, n, i, j, a, x, z, y);
    else
      RowsMult(8, n, i, j, a, x, z, y);
    break;
  case BATCH_COO:
  case BATCH_CSR_I:
  case BATCH_ELL:
    for (PetscInt r = 0; r < n; r++) y[r] = z ? z[r] : 0.0;
    if (h->kernel == BATCH_COO) {
      for (PetscInt k = i[0]; k < i[n];) {
        const int   r   = h->row[k];
        PetscScalar sum = 0.0;

        for (; k < i[n] && h->row[k] == r; k++) sum += a[k] * x[j[k]];
        y[r] += sum;
      }
    } else if (h->kernel == BATCH_CSR_I) {
      for (int t = 0; t < BATCH_PARTS; t++) {
        PetscInt       k = i[0] + (PetscInt)((PetscInt64)entries * t / BATCH_PARTS), r = h->row[(size_t)q * BATCH_PARTS + t];
        const PetscInt end = i[0] + (PetscInt)((PetscInt64)entries * (t + 1) / BATCH_PARTS);

        for (; k < end; r++) {
          PetscScalar sum = 0.0;

          for (; k < end && k < i[r + 1]; k++) sum += a[k] * x[j[k]];
          y[r] += sum;
        }
      }
    } else {
      for (int k = 0; k < h->width[q]; k++) {
        const int         *col = h->col + h->start[q] + (PetscInt64)k * n;
        const PetscScalar *v   = value + (PetscInt64)k * n;

        for (PetscInt r = 0; r < n; r++) {
          if (col[r] >= 0) y[r] += v[r] * x[col[r]]; /* padding reads no x */
        }
      }
    }
    break;
  default: RowsMult(1, n, i, j, a, x, z, y);
  }
}

void BatchHostMult(BatchHost h, const BatchPattern *B, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  if (h->kernel == BATCH_SLICES) {
    SlicesMult(B, &h->slices, h->value, x, z, y);
    return;
  }
  if (h->kernel == BATCH_SELLP) {
    const PetscInt rows = BatchPatternRows(B);

    for (PetscInt r = 0; rows && r < BatchRows(B); r += rows) {
      if (z)
        SpMVStoreMultAdd(h->block, x + r, z + r, y + r);
      else
        SpMVStoreMult(h->block, x + r, y + r);
    }
    return;
  }
  for (PetscInt p = 0; p < B->problems; p++) {
    const PetscInt     q = B->sharing ? 0 : p, f = B->first[p], n = B->first[p + 1] - f;
    const PetscScalar *value = NULL;

    if (h->kernel == BATCH_ELL) value = h->value + h->start[q] + (B->sharing == BATCH_SHARE_PATTERN ? (PetscInt64)p * h->start[1] : 0);
    ProblemMult(h, q, n, BatchOffsets(B, p), B->j, a ? a + BatchValuesAt(B, p) : NULL, value, x + f, z ? z + f : NULL, y + f);
  }
}

/* One loop for all kernels: scattering in the order of the rows needs no second copy, and gives the same bits every time */
void BatchMultTranspose(const BatchPattern *B, PetscBool conjugate, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  for (PetscInt r = 0; r < BatchRows(B) && y != z; r++) y[r] = z ? z[r] : 0.0;
  for (PetscInt p = 0; p < B->problems; p++) {
    const PetscInt    *i = BatchOffsets(B, p), f = B->first[p], n = B->first[p + 1] - f;
    const PetscScalar *v = a + BatchValuesAt(B, p);

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) y[f + B->j[k]] += (conjugate ? PetscConj(v[k]) : v[k]) * x[f + r];
    }
  }
}

void BatchHostStats(BatchHost h, const BatchPattern *B, BatchStats *stats)
{
  (void)B;
  stats->stored = h->stored;
  stats->bytes  = h->bytes;
  stats->slices = h->slices.slices;
  stats->index =
      h->kernel == BATCH_SLICES ? h->slices.width : (h->kernel == BATCH_SELLP ? 0 : (h->kernel == BATCH_ELL ? (int)sizeof(int) : (int)sizeof(PetscInt)));
  stats->kernel = h->name;
}

PetscErrorCode BatchHostDestroy(BatchHost *host)
{
  BatchHost h = *host;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVStoreDestroy(&h->block));
  PetscCall(BatchSlicesDestroy(&h->slices));
  PetscCall(PetscFree(h->row));
  PetscCall(PetscFree2(h->width, h->start));
  PetscCall(PetscFree(h->col));
  PetscCall(PetscFree(h->value));
  PetscCall(PetscFree(*host));
  PetscFunctionReturn(PETSC_SUCCESS);
}
