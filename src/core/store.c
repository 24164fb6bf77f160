/* A block's life: structure from a plan, values, products */
#include "spmvimpl.h"
#if defined(__linux__)
  #include <sys/mman.h>
#endif

PetscErrorCode SpMVMallocAligned(size_t bytes, PetscBool zero, void **raw, void *aligned)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc(bytes + 64, raw));
  *(void **)aligned = (void *)(((uintptr_t)*raw + 63) & ~(uintptr_t)63);
#if defined(MADV_HUGEPAGE)
  /* Streams that cross a page every 64 vectors wait for its address each time */
  if (bytes >= (size_t)4 << 20) {
    const uintptr_t page = 4096, first = ((uintptr_t)*raw + page - 1) & ~(page - 1), last = ((uintptr_t)*raw + bytes) & ~(page - 1);

    (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
  }
#endif
  if (zero && bytes) PetscCall(PetscMemzero(*(void **)aligned, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Open addressing; what a number stands for is the caller's business */
typedef struct {
  size_t    capacity; /* a power of two */
  int       count;
  int      *number; /* plus one; 0: free */
  uint64_t *hash;
} SpMVTable;

static PetscErrorCode SpMVTableCreate(SpMVTable *T, size_t capacity)
{
  PetscFunctionBegin;
  T->capacity = capacity;
  T->count    = 0;
  T->number   = NULL;
  T->hash     = NULL;
  PetscCall(PetscCalloc1(T->capacity, &T->number));
  PetscCall(PetscMalloc1(T->capacity, &T->hash));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVTableDestroy(SpMVTable *T)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(T->number));
  PetscCall(PetscFree(T->hash));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVTableAdd(SpMVTable *T, uint64_t h, int number)
{
  PetscFunctionBegin;
  if (2 * (size_t)T->count >= T->capacity) {
    SpMVTable      N;
    PetscErrorCode ierr = SpMVTableCreate(&N, 4 * T->capacity);

    if (ierr) PetscCall(SpMVTableDestroy(&N));
    PetscCall(ierr);
    N.count = T->count;
    for (size_t p = 0; p < T->capacity; p++) {
      if (T->number[p]) {
        size_t q = T->hash[p] & (N.capacity - 1);

        while (N.number[q]) q = (q + 1) & (N.capacity - 1);
        N.number[q] = T->number[p];
        N.hash[q]   = T->hash[p];
      }
    }
    PetscCall(SpMVTableDestroy(T));
    *T = N;
  }
  {
    size_t q = h & (T->capacity - 1);

    while (T->number[q]) q = (q + 1) & (T->capacity - 1);
    T->number[q] = number + 1;
    T->hash[q]   = h;
    T->count++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SpMVTableFor(T, h, p) for (size_t p = (h) & ((T)->capacity - 1); (T)->number[p]; p = (p + 1) & ((T)->capacity - 1))

static uint64_t SpMVHash(uint64_t h, const void *data, size_t bytes)
{
  const unsigned char *d = (const unsigned char *)data;

  for (; bytes >= 8; bytes -= 8, d += 8) {
    uint64_t w;

    memcpy(&w, d, 8);
    h = (h ^ w) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 29;
  }
  for (; bytes; bytes--, d++) h = (h ^ *d) * UINT64_C(0x100000001B3);
  return h ^ (h >> 32);
}

/* Room for one more */
#define SpMVGrow(count, capacity, array)                                       \
  do {                                                                         \
    if ((count) >= (capacity)) {                                               \
      (capacity) = 2 * (capacity) + 64;                                        \
      SpMVCall(PetscRealloc((size_t)(capacity) * sizeof(*(array)), &(array))); \
    }                                                                          \
  } while (0)

PetscErrorCode SpMVStoreCreateParent(const SpMVCSR *A, SpMVStore *block)
{
  SpMVStore B;

  PetscFunctionBegin;
  PetscCall(PetscNew(&B));
  B->parent           = PETSC_TRUE;
  B->transpose_parent = PETSC_TRUE;
  B->stats.nonzeros   = A->i[A->m];
  B->stats.node       = 1;
  B->stats.kernel     = "aij";
  *block              = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the run going on with this slice? */
static PetscBool SpMVRunTakes(const SpMVRun *R, int kind, int g, int row, int pattern)
{
  if (R->kind != kind || R->g != g) return PETSC_FALSE;
  if (kind == SPMV_RUN_UNCOMPRESSED || kind == SPMV_RUN_LONG) return PETSC_TRUE;
  if (R->lanes < SPMV_LANES) return PETSC_FALSE;
  if (kind == SPMV_RUN_GATHER && R->row < 0) return PETSC_TRUE; /* once rows are listed, it costs less to list on */
  if (R->row < 0 || row != R->row + R->count * SPMV_LANES * g) return PETSC_FALSE;
  return (kind == SPMV_RUN_GATHER || pattern == R->pattern) ? PETSC_TRUE : PETSC_FALSE;
}

PetscErrorCode SpMVStoreCreate(const SpMVCSR *A, const SpMVPlan *P, SpMVStore *block)
{
  SpMVStore       B;
  SpMVTable       T;
  int             cruns = 0, cpatterns = 0, longest = 0, *offset = NULL;
  PetscInt64      nnz = A->i[A->m], gval = 0, rows = 0, coffset = 0;
  double          transposed = 0; /* time of the transposed product, in entries of AIJ's */
  unsigned char  *mask       = NULL;
  const PetscBool plain      = P->plain;
  PetscErrorCode  ierr       = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscNew(&B));
  *block = B;
  SpMVCall(SpMVTableCreate(&T, 256));
  B->m        = (int)A->m;
  B->n        = (int)A->n;
  B->height   = (int)P->height;
  B->multiple = (int)P->multiple;
  B->align    = (int)(SPMV_LANES * ((P->long_align + SPMV_LANES - 1) / SPMV_LANES));
  B->block    = (int)P->block;
  for (PetscInt u = 0; u < P->units; u++) longest = PetscMax(longest, (int)(A->i[P->row[u] + 1] - A->i[P->row[u]]));
  SpMVCall(PetscMalloc2(2 * (size_t)longest + 1, &offset, 2 * (size_t)longest + 1, &mask));

  /* The shape of each slice, and how much room all take */
  for (PetscInt s = 0; s < P->slices; s++) {
    const int  first = P->start[s], lanes = P->start[s + 1] - first, g = P->rows[first], c = B->block, row = P->row[first];
    int        w = 0, wmin = 2147483647, kind = plain ? SPMV_RUN_UNCOMPRESSED : SPMV_RUN_GATHER, pattern = -1;
    PetscBool  consecutive = PETSC_TRUE;
    PetscInt64 entries     = 0;

    for (int u = first; u < first + lanes; u++) {
      const int len = (int)((A->i[P->row[u] + 1] - A->i[P->row[u]]) / c);

      w    = PetscMax(w, len);
      wmin = PetscMin(wmin, len);
      if (P->row[u] != row + (u - first) * g) consecutive = PETSC_FALSE;
      entries += (PetscInt64)len * g * c;
      rows += g;
    }
    w = (int)(P->multiple * ((w + P->multiple - 1) / P->multiple));
    if (kind == SPMV_RUN_GATHER && P->diagonal[s] && consecutive && g == c) {
      const int D = SpMVDiagonals(A, row, g, lanes, SpMVDiagonalLimit(w, g, entries), offset, mask);

      if (D >= 0 && B->noffset + D <= SPMV_MAX_STORED) {
        const uint64_t h = SpMVHash(SpMVHash((uint64_t)D, offset, (size_t)D * sizeof(int)), mask, (size_t)D);

        kind = SPMV_RUN_DIAG;
        w    = D;
        SpMVTableFor(&T, h, p)
        {
          const SpMVPattern *Q = B->patterns + T.number[p] - 1;

          if (T.hash[p] == h && Q->width == D && !memcmp(B->offset + Q->offset, offset, (size_t)D * sizeof(int)) &&
              !memcmp(B->mask + Q->offset, mask, (size_t)D)) {
            pattern = T.number[p] - 1;
            break;
          }
        }
        if (pattern < 0) {
          pattern = B->npatterns;
          SpMVGrow(B->npatterns, cpatterns, B->patterns);
          if (B->noffset + D > coffset) {
            coffset = 2 * (B->noffset + D);
            SpMVCall(PetscRealloc((size_t)coffset * sizeof(int), &B->offset));
            SpMVCall(PetscRealloc((size_t)coffset, &B->mask));
          }
          B->patterns[pattern] = (SpMVPattern){D, (int)B->noffset, 1};
          for (int k = 0; k < D; k++) {
            B->offset[B->noffset + k] = offset[k];
            B->mask[B->noffset + k]   = mask[k];
            if (mask[k] != 255) B->patterns[pattern].full = 0;
          }
          B->noffset += D;
          B->npatterns++;
          SpMVCall(SpMVTableAdd(&T, h, pattern));
        }
      }
    }
    if (!B->nruns || !SpMVRunTakes(B->runs + B->nruns - 1, kind, g, consecutive ? row : -1, pattern)) {
      SpMVRun *R;

      SpMVGrow(B->nruns, cruns, B->runs);
      R          = B->runs + B->nruns++;
      R->kind    = (unsigned char)kind;
      R->g       = (unsigned char)g;
      R->c       = (unsigned char)c;
      R->count   = 0;
      R->row     = consecutive && kind != SPMV_RUN_UNCOMPRESSED ? row : -1;
      R->pattern = pattern;
      R->slice   = kind == SPMV_RUN_DIAG ? B->ndslices : B->nwidth;
      R->val     = kind == SPMV_RUN_DIAG ? B->ndval : (kind == SPMV_RUN_UNCOMPRESSED ? gval : B->nval);
      R->idx     = B->nidx;
      R->rows    = B->nrows;
      R->len     = B->nlen;
    }
    {
      SpMVRun *R = B->runs + B->nruns - 1;

      R->lanes = (unsigned char)PetscMin(lanes, SPMV_LANES);
      R->count++;
      if (kind == SPMV_RUN_DIAG) {
        B->ndslices++;
        B->ndval += (PetscInt64)w * g * g;
        B->stats.diagonal++;
        transposed += g > 1 ? 2.1 / g * (double)entries : (B->patterns[pattern].full ? 0.6 : 1.1) * SPMV_LANES * w;
      } else if (kind == SPMV_RUN_GATHER) {
        B->nwidth += 2;
        B->nidx += (PetscInt64)w * SPMV_LANES;
        B->nval += (PetscInt64)w * g * c;
        if (R->row < 0) B->nrows += SPMV_LANES;
        if (w > (lanes < SPMV_LANES ? 0 : wmin)) B->nlen += SPMV_LANES;
        transposed += (g > 1 ? 2.1 / g : 1.1) * (double)entries;
      } else {
        B->nwidth += 2;
        B->nidx += (PetscInt64)w * B->height;
        gval += (PetscInt64)w * B->height;
        B->nrows += B->height;
        B->nlen += B->height;
        transposed += 2.0 * (double)entries;
      }
      B->stats.stored += (PetscInt64)w * g * c * B->height;
    }
  }
  B->stats.slices  = P->slices;
  B->stats.height  = P->height;
  B->stats.threads = P->multiple;
  B->stats.sigma   = P->sigma;
  /* Kernels of plain slices count in entries, all others in vectors: a block has the ones or the others */
  if (plain) {
    const PetscInt64 v = SPMV_LANES * ((gval + SPMV_LANES - 1) / SPMV_LANES);

    B->nval = v / SPMV_LANES;
  }
  for (PetscInt u = P->start[P->slices]; u < P->units; u++) {
    const int        len = (int)(A->i[P->row[u] + 1] - A->i[P->row[u]]), g = P->rows[u];
    const PetscInt64 padded = (PetscInt64)B->align * ((len + B->align - 1) / B->align);

    if (!B->nruns || !SpMVRunTakes(B->runs + B->nruns - 1, SPMV_RUN_LONG, g, -1, -1)) {
      SpMVRun *R;

      SpMVGrow(B->nruns, cruns, B->runs);
      R  = B->runs + B->nruns++;
      *R = (SpMVRun){.kind    = SPMV_RUN_LONG,
                     .g       = (unsigned char)g,
                     .c       = 1,
                     .lanes   = SPMV_LANES,
                     .count   = 0,
                     .row     = -1,
                     .pattern = -1,
                     .slice   = B->nwidth,
                     .val     = B->nval,
                     .idx     = B->nidx,
                     .rows    = B->nrows,
                     .len     = B->nlen};
    }
    B->runs[B->nruns - 1].count++;
    B->nwidth++;
    B->nrows++;
    B->nidx += padded;
    B->nval += padded / SPMV_LANES * g;
    rows += g;
    transposed += (g > 1 ? 0.25 * g + 1.2 : 1.1) * (double)len;
    B->stats.long_rows += g;
    B->stats.long_stored += padded * g;
  }
  B->stats.stored += B->stats.long_stored;
  B->scattered = rows < A->m ? PETSC_TRUE : PETSC_FALSE;

  SpMVCall(PetscMalloc3(B->nwidth, &B->width, B->nrows, &B->rows, B->nlen, &B->len));
  SpMVCall(SpMVMallocAligned((size_t)B->nidx * sizeof(int), PETSC_FALSE, &B->raw_idx, &B->idx));
  SpMVCall(SpMVMallocAligned((size_t)B->nval * SPMV_VECTOR * sizeof(PetscReal), PETSC_TRUE, &B->raw_val, &B->val));

  /* Indices, slice by slice in the same order */
  for (int r = 0, s = 0, u = P->start[P->slices]; r < B->nruns; r++) {
    const SpMVRun *R = B->runs + r;
    int           *j = B->idx + R->idx, *width = B->width + R->slice, *list = B->rows + R->rows, *len = B->len + R->len;
    const int      H = B->height, c = R->c;

    if (R->kind == SPMV_RUN_LONG) {
      for (int q = 0; q < R->count; q++, u++) {
        const PetscInt *col = A->j + A->i[P->row[u]];
        const int       n = (int)(A->i[P->row[u] + 1] - A->i[P->row[u]]), padded = B->align * ((n + B->align - 1) / B->align);

        list[q]  = P->row[u];
        width[q] = n;
        for (int k = 0; k < padded; k++) j[k] = (int)col[PetscMin(k, n - 1)];
        for (int k = 0; k < n; k += SPMV_LANES) {
          const int last = PetscMin(k + SPMV_LANES, n) - 1;
          PetscBool next = PETSC_TRUE;

          for (int l = k + 1; l <= last; l++)
            if (col[l] != col[l - 1] + 1) next = PETSC_FALSE;
          if (next) j[k] = ~j[k];
        }
        j += padded;
      }
      continue;
    }
    for (int q = 0; q < R->count; q++, s++) {
      const int first = P->start[s], lanes = P->start[s + 1] - first;
      int       w = 0, wmin = lanes < H ? 0 : 2147483647, n[SPMV_LANES] = {0, 0, 0, 0, 0, 0, 0, 0};

      if (R->kind == SPMV_RUN_DIAG) continue;
      for (int l = 0; l < H; l++) {
        const int nl = l < lanes ? (int)((A->i[P->row[first + l] + 1] - A->i[P->row[first + l]]) / c) : 0;

        w    = PetscMax(w, nl);
        wmin = PetscMin(wmin, nl);
        if (R->kind == SPMV_RUN_UNCOMPRESSED)
          len[l] = nl;
        else
          n[l] = nl;
      }
      w        = B->multiple * ((w + B->multiple - 1) / B->multiple);
      *width++ = w;
      *width++ = wmin;
      if (R->kind == SPMV_RUN_UNCOMPRESSED)
        len += H;
      else if (w > wmin)
        for (int l = 0; l < SPMV_LANES; l++) *len++ = n[l];
      if (R->row < 0)
        for (int l = 0; l < H; l++) *list++ = l < lanes ? P->row[first + l] : (R->kind == SPMV_RUN_UNCOMPRESSED ? -1 : 0);
      for (int l = 0; l < H; l++) {
        const PetscInt *col = l < lanes ? A->j + A->i[P->row[first + l]] : NULL;
        const int       nl  = l < lanes ? (int)((A->i[P->row[first + l] + 1] - A->i[P->row[first + l]]) / c) : 0;

        /* padding reads a column that is there anyway */
        for (int k = 0; k < w; k++) j[(size_t)k * H + l] = k < nl ? (int)col[(size_t)k * c] : (nl ? (int)col[(size_t)(nl - 1) * c] : 0);
      }
      j += (size_t)w * H;
    }
  }

  B->stats.nonzeros   = nnz;
  B->stats.node       = B->block;
  B->stats.kernel     = B->stats.slices ? (B->stats.long_rows ? "slices + vector CSR" : "slices") : (B->stats.long_rows ? "vector CSR" : "none");
  B->transpose_parent = transposed > 0.9 * (double)nnz ? PETSC_TRUE : PETSC_FALSE;
done:
  PetscCall(PetscFree2(offset, mask));
  PetscCall(SpMVTableDestroy(&T));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVStoreDestroy(SpMVStore *block)
{
  SpMVStore B = *block;

  PetscFunctionBegin;
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFree(B->runs));
  PetscCall(PetscFree(B->patterns));
  PetscCall(PetscFree(B->offset));
  PetscCall(PetscFree(B->mask));
  PetscCall(PetscFree3(B->width, B->rows, B->len));
  PetscCall(PetscFree(B->list));
  PetscCall(PetscFree(B->code));
  PetscCall(PetscFree(B->raw_val));
  PetscCall(PetscFree(B->raw_dval));
  PetscCall(PetscFree(B->raw_idx));
  PetscCall(PetscFree(B));
  *block = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void SpMVPut(PetscReal *v, size_t distance, PetscScalar a)
{
#if defined(PETSC_USE_COMPLEX)
  v[0]        = PetscRealPart(a);
  v[distance] = PetscImaginaryPart(a);
#else
  v[0] = a;
  (void)distance;
#endif
}

/* The steps of a slice by diagonals. SpMVDiagonals() lists them in the order of each row's entries: each row is walked once. A lane without an
   entry gets 0, or (repeat) the step's first value, for the sake of equal steps; it must be finite, as x is read as 0 there. */
static void SpMVDiagonalValues(SpMVStore B, const SpMVRun *R, const SpMVCSR *A, int s, PetscBool repeat, PetscReal *v)
{
  const SpMVPattern *P = B->patterns + R->pattern;
  const int          g = R->g, lanes = s == R->count - 1 ? R->lanes : SPMV_LANES;
  const PetscInt     row  = R->row + (PetscInt)s * SPMV_LANES * g;
  const uint8_t     *mask = B->mask + P->offset;
  const PetscScalar *at[SPMV_LANES];
  PetscInt           len[SPMV_LANES];

  for (int l = 0; l < SPMV_LANES; l++) {
    at[l]  = l < lanes ? A->a + A->i[row + l * g] : NULL;
    len[l] = l < lanes ? A->i[row + l * g + 1] - A->i[row + l * g] : 0;
  }
  if (g == 1 && P->full) {
    for (int k = 0; k < P->width; k++, v += SPMV_VECTOR) {
      SpMVPut(v + 0, SPMV_LANES, at[0][k]);
      SpMVPut(v + 1, SPMV_LANES, at[1][k]);
      SpMVPut(v + 2, SPMV_LANES, at[2][k]);
      SpMVPut(v + 3, SPMV_LANES, at[3][k]);
      SpMVPut(v + 4, SPMV_LANES, at[4][k]);
      SpMVPut(v + 5, SPMV_LANES, at[5][k]);
      SpMVPut(v + 6, SPMV_LANES, at[6][k]);
      SpMVPut(v + 7, SPMV_LANES, at[7][k]);
    }
    return;
  }
  for (int r = 0; r < g; r++) {
    const PetscScalar *p[SPMV_LANES];
    PetscReal         *t = v + r * SPMV_VECTOR;

    for (int l = 0; l < SPMV_LANES; l++) p[l] = at[l] ? at[l] + r * len[l] : NULL;
    for (int k = 0; k < P->width; k++) {
      const unsigned m = mask[k];

      for (int c = 0; c < g; c++, t += g * SPMV_VECTOR) {
        if (m == 255) {
          for (int l = 0; l < SPMV_LANES; l++) SpMVPut(t + l, SPMV_LANES, p[l][c]);
        } else {
          PetscScalar pad = 0;

          if (repeat) {
            int l = 0;

            while (!(m >> l & 1)) l++;
            if (!PetscIsInfOrNanScalar(p[l][c])) pad = p[l][c];
          }
          for (int l = 0; l < SPMV_LANES; l++) SpMVPut(t + l, SPMV_LANES, (m >> l & 1) ? p[l][c] : pad);
        }
      }
      for (int l = 0; l < SPMV_LANES; l++)
        if (m >> l & 1) p[l] += g;
    }
  }
}

/*
  Equal steps are stored once: constant coefficients, or constant in part, as off the diagonal of many discretisations, then
  cost a few bytes a slice. Two levels: a step's code says which distinct step it is, and slices of equal codes share the list.
  Gives up (equal is PETSC_FALSE) as soon as more than half the steps are distinct.
*/
PetscInt64 SpMVDistinctLeast = 512 * 1024; /* less is in cache as it is */

static PetscErrorCode SpMVStoreFillDistinct(SpMVStore B, const SpMVCSR *A, PetscBool *equal)
{
  SpMVTable      steps = {0}, lists = {0};
  PetscErrorCode ierr  = PETSC_SUCCESS;
  const int      block = B->block * B->block * SPMV_VECTOR;
  const size_t   bytes = (size_t)block * sizeof(PetscReal);
  PetscInt64     seen = 0, check = 512, ncode = 0, ccode = 0, cdval = 0;
  int            widest = 0, distinct = 0, *code = NULL, *all = NULL, *list = NULL, *last = NULL;
  PetscReal     *slice, *dval = NULL;
  void          *raw = NULL, *raw_slice = NULL;

  PetscFunctionBegin;
  *equal = PETSC_FALSE;
  if (B->ndval / (B->block * B->block) > 2147483647 - 65536) PetscFunctionReturn(PETSC_SUCCESS);
  for (int p = 0; p < B->npatterns; p++) widest = PetscMax(widest, B->patterns[p].width);
  SpMVCall(SpMVTableCreate(&steps, 256));
  SpMVCall(SpMVTableCreate(&lists, 256));
  SpMVCall(PetscMalloc1(B->ndslices, &list));
  SpMVCall(PetscCalloc1((size_t)widest, &last));
  SpMVCall(PetscMalloc1((size_t)widest, &code));
  SpMVCall(SpMVMallocAligned((size_t)widest * bytes, PETSC_FALSE, &raw_slice, &slice));
  *equal = PETSC_TRUE;
  for (int r = 0; r < B->nruns && *equal; r++) {
    const SpMVRun *R = B->runs + r;
    int            w;

    if (R->kind != SPMV_RUN_DIAG) continue;
    w = B->patterns[R->pattern].width;
    for (int s = 0; s < R->count; s++) {
      PetscBool same = PETSC_TRUE; /* as the slice before */
      uint64_t  h;

      SpMVDiagonalValues(B, R, A, s, PETSC_TRUE, slice);
      for (int k = 0; k < w; k++) {
        const PetscReal *v     = slice + (size_t)k * block;
        int              found = -1;

        if (last[k] < distinct && !memcmp(dval + (size_t)last[k] * block, v, bytes))
          found = last[k];
        else {
          h = SpMVHash(0, v, bytes);
          SpMVTableFor(&steps, h, p) if (steps.hash[p] == h && !memcmp(dval + (size_t)(steps.number[p] - 1) * block, v, bytes))
          {
            found = steps.number[p] - 1;
            break;
          }
          if (found < 0) {
            if (distinct >= cdval) {
              void      *raw2;
              PetscReal *dval2;

              cdval = 2 * cdval + 1024;
              SpMVCall(SpMVMallocAligned((size_t)cdval * bytes, PETSC_FALSE, &raw2, &dval2));
              if (distinct) PetscCall(PetscMemcpy(dval2, dval, (size_t)distinct * bytes));
              PetscCall(PetscFree(raw));
              raw  = raw2;
              dval = dval2;
            }
            PetscCall(PetscMemcpy(dval + (size_t)distinct * block, v, bytes));
            SpMVCall(SpMVTableAdd(&steps, h, distinct));
            found = distinct++;
          }
          same = PETSC_FALSE;
        }
        code[k] = found;
        last[k] = found;
      }
      seen += w;
      if (seen >= check) {
        check *= 2;
        if (2 * (PetscInt64)distinct > seen) {
          *equal = PETSC_FALSE;
          break;
        }
      }
      if (same && s) {
        list[R->slice + s] = list[R->slice + s - 1];
        continue;
      }
      {
        int at = -1;

        h = SpMVHash((uint64_t)w, code, (size_t)w * sizeof(int));
        SpMVTableFor(&lists, h, p) if (lists.hash[p] == h && lists.number[p] - 1 + (PetscInt64)w <= ncode &&
                                       !memcmp(all + lists.number[p] - 1, code, (size_t)w * sizeof(int)))
        {
          at = lists.number[p] - 1;
          break;
        }
        if (at < 0) {
          if (ncode + w > ccode) {
            ccode = 2 * (ncode + w) + 1024;
            SpMVCall(PetscRealloc((size_t)ccode * sizeof(int), &all));
          }
          at = (int)ncode;
          PetscCall(PetscMemcpy(all + ncode, code, (size_t)w * sizeof(int)));
          ncode += w;
          SpMVCall(SpMVTableAdd(&lists, h, at));
        }
        list[R->slice + s] = at;
      }
    }
  }
  if (2 * (PetscInt64)distinct > seen) *equal = PETSC_FALSE;
done:
  PetscCall(SpMVTableDestroy(&steps));
  PetscCall(SpMVTableDestroy(&lists));
  PetscCall(PetscFree(last));
  PetscCall(PetscFree(code));
  PetscCall(PetscFree(raw_slice));
  if (*equal && !ierr) {
    PetscCall(PetscFree(B->raw_dval));
    PetscCall(PetscFree(B->list));
    PetscCall(PetscFree(B->code));
    B->raw_dval = raw;
    B->dval     = dval;
    B->list     = list;
    B->code     = all;
    B->ncode    = ncode;
    B->distinct = distinct;
  } else {
    PetscCall(PetscFree(raw));
    PetscCall(PetscFree(list));
    PetscCall(PetscFree(all));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVStoreFill(SpMVStore B, const SpMVCSR *A)
{
  PetscBool distinct = PETSC_FALSE;

  PetscFunctionBegin;
  if (B->parent) PetscFunctionReturn(PETSC_SUCCESS);
  if (B->ndval * SPMV_VECTOR * (PetscInt64)sizeof(PetscReal) > SpMVDistinctLeast) PetscCall(SpMVStoreFillDistinct(B, A, &distinct));
  if (B->ndslices && !distinct && (B->distinct || !B->raw_dval)) {
    PetscCall(PetscFree(B->raw_dval));
    PetscCall(PetscFree(B->list));
    PetscCall(PetscFree(B->code));
    B->distinct = 0;
    B->ncode    = 0;
    PetscCall(SpMVMallocAligned((size_t)B->ndval * SPMV_VECTOR * sizeof(PetscReal), PETSC_FALSE, &B->raw_dval, &B->dval));
  }
  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R    = B->runs + r;
    PetscReal     *v    = B->val + R->val * SPMV_VECTOR;
    const int     *list = B->rows + R->rows, *width = B->width + R->slice, *len = B->len + R->len;
    const int      g = R->g, c = R->c, H = B->height;

    switch (R->kind) {
    case SPMV_RUN_DIAG:
      if (!distinct) {
        const size_t step = (size_t)B->patterns[R->pattern].width * g * g * SPMV_VECTOR;

        for (int s = 0; s < R->count; s++) SpMVDiagonalValues(B, R, A, s, PETSC_FALSE, B->dval + R->val * SPMV_VECTOR + s * step);
      }
      break;
    case SPMV_RUN_GATHER:
      for (int s = 0; s < R->count; s++, width += 2) {
        const int lanes = s == R->count - 1 ? R->lanes : SPMV_LANES, ragged = width[1] < width[0];

        for (int l = 0; l < lanes; l++) {
          const PetscInt row = R->row < 0 ? list[l] : R->row + (PetscInt)(s * SPMV_LANES + l) * g;
          const int      n   = ragged ? len[l] : width[0];

          for (int q = 0; q < g; q++) {
            const PetscScalar *a = A->a + A->i[row + q];
            PetscReal         *t = v + q * SPMV_VECTOR + l;

            for (int k = 0; k < n * c; k++, t += g * SPMV_VECTOR) SpMVPut(t, SPMV_LANES, a[k]);
          }
        }
        v += (size_t)width[0] * g * c * SPMV_VECTOR;
        if (ragged) len += SPMV_LANES;
        if (R->row < 0) list += SPMV_LANES;
      }
      break;
    case SPMV_RUN_LONG:
      for (int u = 0; u < R->count; u++) {
        const int padded = B->align * ((width[u] + B->align - 1) / B->align);

        for (int q = 0; q < g; q++) {
          const PetscScalar *a = A->a + A->i[list[u] + q];

          for (int k = 0; k < width[u]; k++) SpMVPut(v + (size_t)(k / SPMV_LANES * g + q) * SPMV_VECTOR + k % SPMV_LANES, SPMV_LANES, a[k]);
        }
        v += (size_t)padded / SPMV_LANES * g * SPMV_VECTOR;
      }
      break;
    default:
      v = B->val + R->val * SPMV_PARTS;
      for (int s = 0; s < R->count; s++, width += 2, list += H, len += H) {
        for (int l = 0; l < H; l++) {
          const PetscScalar *a = list[l] < 0 ? NULL : A->a + A->i[list[l]];

          for (int k = 0; k < len[l]; k++) SpMVPut(v + (size_t)k * H * SPMV_PARTS + l, (size_t)H, a[k]);
        }
        v += (size_t)width[0] * H * SPMV_PARTS;
      }
    }
  }
  {
    SpMVStats *S = &B->stats;

    S->distinct = B->distinct;
    S->bytes    = (PetscInt64)sizeof(*B) + B->nruns * (PetscInt64)sizeof(SpMVRun) + B->npatterns * (PetscInt64)sizeof(SpMVPattern) + B->noffset * 5 +
               (B->nwidth + B->nidx + B->nrows + B->nlen) * (PetscInt64)sizeof(int);
    S->bytes += (B->nval + (B->distinct ? (PetscInt64)B->distinct * B->block * B->block : B->ndval)) * SPMV_VECTOR * (PetscInt64)sizeof(PetscReal);
    if (B->distinct) S->bytes += (B->ncode + B->ndslices) * (PetscInt64)sizeof(int);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpMVStoreGetStats(SpMVStore B, SpMVStats *S)
{
  *S = B->stats;
}

PetscBool SpMVStoreUsesParent(SpMVStore B)
{
  return B->parent;
}

PetscBool SpMVStoreTransposeUsesParent(SpMVStore B)
{
  return B->transpose_parent;
}

void SpMVStoreMult(SpMVStore B, const PetscScalar *x, PetscScalar *y)
{
  if (B->scattered && B->m) memset(y, 0, (size_t)B->m * sizeof(*y));
  SpMVKernelsGet()->mult(B, x, NULL, y);
}

void SpMVStoreMultAdd(SpMVStore B, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  if (B->scattered && z != y && B->m) {
    memcpy(y, z, (size_t)B->m * sizeof(*y));
    z = y;
  }
  SpMVKernelsGet()->mult(B, x, z, y);
}

void SpMVStoreMultTranspose(SpMVStore B, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  if (B->n && !z)
    memset(y, 0, (size_t)B->n * sizeof(*y));
  else if (B->n && z != y)
    memcpy(y, z, (size_t)B->n * sizeof(*y));
  SpMVKernelsGet()->multtransposeadd(B, conjugate, x, y);
}
