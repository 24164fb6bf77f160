/*
  The baselines' conversions, their oracle and their products on the host.
*/
#include "formats.h"

#define PADDING_LIMIT 20 /* a format is not stored if it has more than this many times A's entries */
#define HEIGHT_LIMIT  64
#define OMEGA_LIMIT   32
#define ROWS_AT_ONCE  512 /* ELL on the host: the sums of so many rows stay in the L1 cache */

/* ---------------------------------------------------------------- structure */

static PetscErrorCode StoredAlloc(Stored *S, StoredArray a, PetscInt64 count, size_t size)
{
  PetscFunctionBegin;
  S->bytes[a] = (size_t)count * size;
  PetscCall(PetscMalloc(S->bytes[a] + size, &S->at[a]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertCSR(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  PetscFunctionBegin;
  (void)B;
  S->kind          = STORED_ROWS;
  S->borrowed      = PETSC_TRUE;
  S->stored        = S->nz;
  S->at[AT_PTR]    = (void *)A->i;
  S->at[AT_COL]    = (void *)A->j;
  S->at[AT_VAL]    = (void *)A->a;
  S->bytes[AT_PTR] = ((size_t)A->m + 1) * sizeof(PetscInt);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertCOO(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  PetscFunctionBegin;
  (void)B;
  (void)A;
  S->kind   = STORED_LIST;
  S->stored = S->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The width of HYB's ELL part by Bell and Garland's rule: it grows while a third of the rows are longer, and also enough
  rows to make the COO part worthwhile on a GPU. parameter[0] < 0: only ELL
*/
static PetscErrorCode ConvertELL(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  PetscInt    longest = 0, *count;
  PetscInt64 *rest, longer = A->m;

  PetscFunctionBegin;
  S->kind = STORED_COLUMN;
  S->ld   = (A->m + 31) / 32 * 32;
  for (PetscInt r = 0; r < A->m; r++) longest = PetscMax(longest, A->i[r + 1] - A->i[r]);
  S->width = longest;
  if (B->parameter[0] >= 0) {
    PetscCall(PetscCalloc1(longest + 1, &count));
    for (PetscInt r = 0; r < A->m; r++) count[A->i[r + 1] - A->i[r]]++;
    for (S->width = 0; S->width < longest; S->width++) {
      longer -= count[S->width];
      if (3 * longer < A->m || longer < B->parameter[0]) break;
    }
    PetscCall(PetscFree(count));
  }
  S->list = S->ld * S->width;
  if (S->list > PADDING_LIMIT * S->nz + 4096) {
    S->stored = -1;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(StoredAlloc(S, AT_REST, (PetscInt64)A->m + 1, sizeof(PetscInt64)));
  rest    = (PetscInt64 *)S->at[AT_REST];
  rest[0] = 0;
  for (PetscInt r = 0; r < A->m; r++) rest[r + 1] = rest[r] + PetscMax(0, A->i[r + 1] - A->i[r] - S->width);
  S->stored = S->list + rest[A->m];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* parameter: the height of a slice; the window in which rows are sorted by decreasing length, 1: none, 0: all rows */
static PetscErrorCode ConvertSlices(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  const PetscInt height = B->parameter[0], window = B->parameter[1] ? B->parameter[1] : PetscMax(1, A->m),
                 slices = (A->m + height - 1) / height;
  PetscInt   *order = NULL, *place = NULL, *count = NULL, longest = 0;
  PetscInt64 *slice;

  PetscFunctionBegin;
  S->kind   = STORED_SLICES;
  S->height = height;
  if (window > 1) {
    PetscCall(StoredAlloc(S, AT_ORDER, A->m, sizeof(PetscInt)));
    PetscCall(StoredAlloc(S, AT_PLACE, A->m, sizeof(PetscInt)));
    order = (PetscInt *)S->at[AT_ORDER];
    place = (PetscInt *)S->at[AT_PLACE];
    for (PetscInt r = 0; r < A->m; r++) longest = PetscMax(longest, A->i[r + 1] - A->i[r]);
    PetscCall(PetscMalloc1(longest + 2, &count));
    for (PetscInt first = 0, end; first < A->m; first = end) { /* counting sort, stable */
      PetscInt most = 0;

      end = A->m - first > window ? first + window : A->m;
      for (PetscInt r = first; r < end; r++) most = PetscMax(most, A->i[r + 1] - A->i[r]);
      PetscCall(PetscArrayzero(count, most + 2));
      for (PetscInt r = first; r < end; r++) count[most - (A->i[r + 1] - A->i[r]) + 1]++;
      for (PetscInt L = 0; L <= most; L++) count[L + 1] += count[L];
      for (PetscInt r = first; r < end; r++) {
        place[r]        = first + count[most - (A->i[r + 1] - A->i[r])]++;
        order[place[r]] = r;
      }
    }
    PetscCall(PetscFree(count));
  }
  PetscCall(StoredAlloc(S, AT_SLICE, (PetscInt64)slices + 1, sizeof(PetscInt64)));
  slice    = (PetscInt64 *)S->at[AT_SLICE];
  slice[0] = 0;
  for (PetscInt s = 0; s < slices; s++) {
    PetscInt width = 0;

    for (PetscInt p = s * height; p < A->m && p - s * height < height; p++) {
      const PetscInt r = order ? order[p] : p;

      width = PetscMax(width, A->i[r + 1] - A->i[r]);
    }
    slice[s + 1] = slice[s] + (PetscInt64)width * height;
  }
  S->stored = S->list = slice[slices];
  if (S->stored > PADDING_LIMIT * S->nz + 4096) S->stored = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* parameter: omega, sigma; sigma 0: chosen by the mean row length, with the paper's rule for NVIDIA GPUs (r, s, t, u =
   4, 32, 256, 4) */
static PetscErrorCode ConvertTiles(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  const PetscInt   omega = B->parameter[0];
  const PetscInt64 mean  = A->m ? S->nz / A->m : 0;
  const PetscInt   sigma =
      B->parameter[1] ? B->parameter[1] : (mean <= 4 ? 4 : (mean <= 32 ? (PetscInt)mean : (mean <= 256 ? 32 : 4)));
  const PetscInt size = omega * sigma;
  PetscInt      *row, *dirty, *empty = NULL, *last;
  uint32_t      *flags, *offsets;
  PetscInt64     segments = 0;

  PetscFunctionBegin;
  S->kind   = STORED_TILES;
  S->omega  = omega;
  S->sigma  = sigma;
  S->stored = S->nz;
  S->tiles  = (PetscInt)(S->nz / size);
  S->list   = (PetscInt64)S->tiles * size;
  PetscCall(StoredAlloc(S, AT_TILE, S->tiles, sizeof(*row)));
  PetscCall(StoredAlloc(S, AT_FLAGS, (PetscInt64)S->tiles * omega, sizeof(*flags)));
  PetscCall(StoredAlloc(S, AT_OFFSETS, (PetscInt64)S->tiles * omega, sizeof(*offsets)));
  PetscCall(StoredAlloc(S, AT_DIRTY, (PetscInt64)S->tiles + 1, sizeof(*dirty)));
  PetscCall(StoredAlloc(S, AT_SUMS, S->tiles, sizeof(PetscScalar)));
  row     = (PetscInt *)S->at[AT_TILE];
  flags   = (uint32_t *)S->at[AT_FLAGS];
  offsets = (uint32_t *)S->at[AT_OFFSETS];
  dirty   = (PetscInt *)S->at[AT_DIRTY];
  PetscCall(PetscArrayzero(flags, (size_t)S->tiles * omega));
  PetscCall(PetscMalloc1(S->tiles + 1, &last)); /* the row of each tile's last segment */
  for (PetscInt t = 0; t < S->tiles; t++) flags[(size_t)t * omega] = 1;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt begin = A->i[r], end = A->i[r + 1];

    if (begin == end || begin >= S->list) continue;
    flags[begin / size * (size_t)omega + begin % size / sigma] |= 1u << (begin % sigma);
    for (PetscInt t = begin / size; t < S->tiles && (PetscInt64)t * size < end; t++) {
      if ((PetscInt64)t * size >= begin) row[t] = r;
      last[t] = r;
    }
  }
  for (PetscInt pass = 0; pass < 2; pass++) { /* count the segments of dirty tiles, then list them */
    for (PetscInt t = 0; t < S->tiles; t++) {
      const uint32_t *f      = flags + (size_t)t * omega;
      PetscInt        before = 0;

      for (PetscInt c = 0; c < omega; c++) {
        PetscInt bare = 0;

        while (c + 1 + bare < omega && !f[c + 1 + bare]) bare++;
        offsets[(size_t)t * omega + c] = (uint32_t)before | (uint32_t)bare << 16;
        for (uint32_t bits = f[c]; bits; bits &= bits - 1) before++;
      }
      if (!pass) {
        dirty[t] = (PetscInt)segments;
        if (last[t] - row[t] + 1 > before) segments += before;
      } else if (dirty[t + 1] > dirty[t]) {
        PetscInt r = row[t];

        for (PetscInt q = 0; q < before; q++, r++) {
          while (A->i[r + 1] == A->i[r]) r++;
          empty[dirty[t] + q] = r - row[t];
        }
      }
    }
    if (!pass) {
      dirty[S->tiles] = (PetscInt)segments;
      PetscCall(StoredAlloc(S, AT_EMPTY, segments, sizeof(*empty)));
      empty = (PetscInt *)S->at[AT_EMPTY];
    }
  }
  PetscCall(PetscFree(last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode StoredCreate(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(S, sizeof(*S)));
  S->m  = A->m;
  S->n  = A->n;
  S->nz = A->i[A->m];
  PetscCall((*B->convert)(B, A, S));
  S->bytes[AT_COL] = (size_t)PetscMax(0, S->stored) * sizeof(PetscInt);
  S->bytes[AT_VAL] = (size_t)PetscMax(0, S->stored) * sizeof(PetscScalar);
  S->bytes[AT_ROW] = S->kind == STORED_ROWS || S->stored < 0 ? 0 : (size_t)(S->stored - S->list) * sizeof(PetscInt);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode StoredFill(Stored *S, const SpMVCSR *A)
{
  PetscInt    *col, *row;
  PetscScalar *val;

  PetscFunctionBegin;
  if (S->borrowed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(S->stored + 1, &col));
  PetscCall(PetscMalloc1(S->stored + 1, &val));
  PetscCall(PetscMalloc1(S->bytes[AT_ROW] / sizeof(*row) + 1, &row));
  S->at[AT_COL] = col;
  S->at[AT_VAL] = val;
  S->at[AT_ROW] = row;
  if (S->stored > S->nz) {
    for (PetscInt64 p = 0; p < S->stored; p++) {
      col[p] = -1;
      val[p] = 0.0;
    }
  }
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = 0; k < A->i[r + 1] - A->i[r]; k++) {
      const PetscInt64 p = StoredPlace(S, A->i[r], r, k);

      col[p] = A->j[A->i[r] + k];
      val[p] = A->a[A->i[r] + k];
      if (p >= S->list) row[p - S->list] = r;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode StoredDestroy(Stored *S)
{
  PetscFunctionBegin;
  for (int k = 0; k < STORED_ARRAYS; k++) {
    if (!S->borrowed) PetscCall(PetscFree(S->at[k]));
    S->at[k] = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

double StoredBytes(const Stored *S)
{
  double bytes = 0.0;

  for (int k = 0; k < AT_PLACE; k++) bytes += (double)S->bytes[k];
  return bytes;
}

/* ---------------------------------------------------------------- the oracle */

void StoredVisit(const Stored *S, StoredVisitor entry, void *ctx)
{
  const PetscInt *ptr = (const PetscInt *)S->at[AT_PTR], *col = (const PetscInt *)S->at[AT_COL],
                 *row    = (const PetscInt *)S->at[AT_ROW];
  const PetscScalar *val = (const PetscScalar *)S->at[AT_VAL];

  switch (S->kind) {
  case STORED_ROWS:
    for (PetscInt r = 0; r < S->m; r++) {
      for (PetscInt e = ptr[r]; e < ptr[r + 1]; e++) entry(ctx, r, col[e], val[e]);
    }
    return;
  case STORED_LIST: break;
  case STORED_COLUMN:
    for (PetscInt k = 0; k < S->width; k++) {
      for (PetscInt64 r = 0; r < S->ld; r++)
        entry(ctx, col[k * S->ld + r] < 0 ? -1 : (PetscInt)r, col[k * S->ld + r], val[k * S->ld + r]);
    }
    break;
  case STORED_SLICES: {
    const PetscInt64 *slice = (const PetscInt64 *)S->at[AT_SLICE];
    const PetscInt   *order = (const PetscInt *)S->at[AT_ORDER];

    for (PetscInt s = 0; s * S->height < S->m; s++) {
      for (PetscInt64 p = slice[s]; p < slice[s + 1]; p++) {
        const PetscInt at = s * S->height + (PetscInt)((p - slice[s]) % S->height);

        entry(ctx, col[p] < 0 ? -1 : (order ? order[at] : at), col[p], val[p]);
      }
    }
    return;
  }
  case STORED_TILES: {
    const PetscInt *tile = (const PetscInt *)S->at[AT_TILE], *dirty = (const PetscInt *)S->at[AT_DIRTY],
                   *empty = (const PetscInt *)S->at[AT_EMPTY];
    const uint32_t *flags = (const uint32_t *)S->at[AT_FLAGS];

    for (PetscInt t = 0; t < S->tiles; t++) {
      PetscInt segment = -1;

      for (PetscInt c = 0; c < S->omega; c++) {
        for (PetscInt s = 0; s < S->sigma; s++) {
          const PetscInt64 p = ((PetscInt64)t * S->sigma + s) * S->omega + c;

          if (flags[(size_t)t * S->omega + c] >> s & 1) segment++;
          entry(ctx, tile[t] + (dirty[t + 1] > dirty[t] ? empty[dirty[t] + segment] : segment), col[p], val[p]);
        }
      }
    }
  }
  }
  for (PetscInt64 p = S->list; p < S->stored; p++) entry(ctx, row[p - S->list], col[p], val[p]);
}

typedef struct {
  const PetscScalar *x;
  PetscScalar       *y;
} Reference;

static void ReferenceAdd(void *ctx, PetscInt row, PetscInt col, PetscScalar value)
{
  Reference *R = (Reference *)ctx;

  if (row >= 0) R->y[row] += value * R->x[col];
}

void StoredReference(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  Reference R = {x, y};

  for (PetscInt r = 0; r < S->m; r++) y[r] = 0.0;
  StoredVisit(S, ReferenceAdd, &R);
}

/* ---------------------------------------------------------------- products on the host: plain loops, compiled for each
   instruction set */

#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(PETSC_USE_COMPLEX)
  #define HOST_PRODUCT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) static void
#else
  #define HOST_PRODUCT static void
#endif

HOST_PRODUCT HostCSR(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  const PetscInt    *ptr = (const PetscInt *)S->at[AT_PTR], *col = (const PetscInt *)S->at[AT_COL];
  const PetscScalar *val = (const PetscScalar *)S->at[AT_VAL];

  for (PetscInt r = 0; r < S->m; r++) {
    PetscScalar sum = 0.0;

    for (PetscInt e = ptr[r]; e < ptr[r + 1]; e++) sum += val[e] * x[col[e]];
    y[r] = sum;
  }
}

/* y += the product with the COO part */
HOST_PRODUCT HostAddList(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  const PetscInt    *row = (const PetscInt *)S->at[AT_ROW], *col = (const PetscInt *)S->at[AT_COL];
  const PetscScalar *val = (const PetscScalar *)S->at[AT_VAL];

  for (PetscInt64 p = S->list; p < S->stored; p++) y[row[p - S->list]] += val[p] * x[col[p]];
}

static void HostZero(const Stored *S, PetscScalar *y)
{
  for (PetscInt r = 0; r < S->m; r++) y[r] = 0.0;
}

static void HostCOO(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  HostZero(S, y);
  HostAddList(S, x, y);
}

HOST_PRODUCT HostELL(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  const PetscInt     rows = ROWS_AT_ONCE;
  const PetscInt    *col  = (const PetscInt *)S->at[AT_COL];
  const PetscScalar *val  = (const PetscScalar *)S->at[AT_VAL];
  PetscScalar        sum[ROWS_AT_ONCE];

  for (PetscInt first = 0; first < S->m; first += rows) {
    const PetscInt end = PetscMin(S->m - first, rows) + first;

    for (PetscInt r = first; r < end; r++) sum[r - first] = 0.0;
    for (PetscInt k = 0; k < S->width; k++) {
      const PetscInt    *c = col + k * S->ld;
      const PetscScalar *v = val + k * S->ld;

      for (PetscInt r = first; r < end; r++) {
        sum[r - first] += c[r] >= 0 ? v[r] * x[c[r]] : 0.0;
      }
    }
    for (PetscInt r = first; r < end; r++) y[r] = sum[r - first];
  }
  HostAddList(S, x, y);
}

HOST_PRODUCT HostSlices(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  const PetscInt64 *slice = (const PetscInt64 *)S->at[AT_SLICE];
  const PetscInt *order = (const PetscInt *)S->at[AT_ORDER], *col = (const PetscInt *)S->at[AT_COL], height = S->height;
  const PetscScalar *val = (const PetscScalar *)S->at[AT_VAL];
  PetscScalar        sum[HEIGHT_LIMIT];

  for (PetscInt s = 0; s * height < S->m; s++) {
    const PetscInt first = s * height, rows = PetscMin(S->m - first, height);

    for (PetscInt l = 0; l < rows; l++) sum[l] = 0.0;
    for (PetscInt64 p = slice[s]; p < slice[s + 1]; p += height) {
      for (PetscInt l = 0; l < rows; l++) sum[l] += col[p + l] >= 0 ? val[p + l] * x[col[p + l]] : 0.0;
    }
    for (PetscInt l = 0; l < rows; l++) y[order ? order[first + l] : first + l] = sum[l];
  }
}

/* CSR5: like the device's kernel, with a loop over the lanes instead of a warp */
HOST_PRODUCT HostTiles(const Stored *S, const PetscScalar *x, PetscScalar *y)
{
  const PetscInt *tile = (const PetscInt *)S->at[AT_TILE], *dirty = (const PetscInt *)S->at[AT_DIRTY],
                 *empty  = (const PetscInt *)S->at[AT_EMPTY];
  const PetscInt    *col = (const PetscInt *)S->at[AT_COL], omega = S->omega, sigma = S->sigma;
  const uint32_t    *flags = (const uint32_t *)S->at[AT_FLAGS], *offsets = (const uint32_t *)S->at[AT_OFFSETS];
  const PetscScalar *val   = (const PetscScalar *)S->at[AT_VAL];
  PetscScalar       *first = (PetscScalar *)S->at[AT_SUMS];

  HostZero(S, y);
  for (PetscInt t = 0; t < S->tiles; t++) {
    PetscScalar sum[OMEGA_LIMIT], lead[OMEGA_LIMIT + 1];
    PetscInt    segment[OMEGA_LIMIT];

#define SegmentEnd(q, v)                                                          \
  do {                                                                            \
    if (q)                                                                        \
      y[tile[t] + (dirty[t + 1] > dirty[t] ? empty[dirty[t] + (q)] : (q))] = (v); \
    else                                                                          \
      first[t] = (v);                                                             \
  } while (0)
    for (PetscInt c = 0; c < omega; c++) {
      sum[c] = lead[c] = 0.0;
      segment[c]       = (PetscInt)(offsets[(size_t)t * omega + c] & 0xffff) - 1;
    }
    lead[omega] = 0.0;
    for (PetscInt s = 0; s < sigma; s++) {
      const PetscInt64 p = ((PetscInt64)t * sigma + s) * omega;

      for (PetscInt c = 0; c < omega; c++) {
        const uint32_t f = flags[(size_t)t * omega + c];

        if (f >> s & 1) {
          if (f & ((1u << s) - 1))
            SegmentEnd(segment[c], sum[c]);
          else
            lead[c] = sum[c];
          segment[c]++;
          sum[c] = 0.0;
        }
        sum[c] += val[p + c] * x[col[p + c]];
      }
    }
    for (PetscInt c = 0; c < omega; c++) {
      if (!flags[(size_t)t * omega + c]) lead[c] = sum[c];
    }
    for (PetscInt c = 0; c < omega; c++) {
      if (!flags[(size_t)t * omega + c]) continue;
      for (PetscInt k = c + 1; k <= c + 1 + (PetscInt)(offsets[(size_t)t * omega + c] >> 16); k++) sum[c] += lead[k];
      SegmentEnd(segment[c], sum[c]);
    }
#undef SegmentEnd
  }
  for (PetscInt t = 0; t < S->tiles; t++) y[tile[t]] += first[t];
  HostAddList(S, x, y);
}

/* ---------------------------------------------------------------- the table */

#if defined(PETSCSPMV_HAVE_CUDA)
  #define CUDA(f) f
#else
  #define CUDA(f)
#endif
#define BELL   "Bell, Garland 2009"
#define TSAI   "Tsai, Cojean, Anzt 2020"
#define MONA   "Monakov, Lokhmotov, Avetisyan 2010"
#define KREU   "Kreutzer, Hager, Wellein, Fehske, Bishop 2014"
#define LIU    "Liu, Vinter 2015"
#define NOHOST NULL

const Baseline Baselines[] = {
    {"coo", BELL ": one thread an entry, atomics", ConvertCOO, {0, 0}, HostCOO, CUDA(MultCOOScalar)},
    {"coo-segmented",
     BELL ": a warp adds up the entries of a row among 32, then atomics",
     ConvertCOO,
     {0, 0},
     NOHOST,
     CUDA(MultCOOSegmented)},
    {"coo-balanced",
     TSAI ": as many entries a warp, a row's sum carried on while it lasts",
     ConvertCOO,
     {0, 0},
     NOHOST,
     CUDA(MultCOOBalanced)},
    {"csr-scalar", BELL ": a thread a row", ConvertCSR, {0, 0}, HostCSR, CUDA(MultCSRScalar)},
    {"csr-vector", BELL ": a warp a row", ConvertCSR, {0, 0}, NOHOST, CUDA(MultCSRVector)},
    {"ell", BELL ": all rows as long as the longest", ConvertELL, {-1, 0}, HostELL, CUDA(MultELL)},
    {"hyb",
     BELL ": ELL while a third of the rows are longer, and 4096; the rest in COO",
     ConvertELL,
     {4096, 0},
     HostELL,
     CUDA(MultELL)},
    {"sell-32", MONA ": slices of 32 rows", ConvertSlices, {32, 1}, HostSlices, CUDA(MultSlices)},
    {"sell-32-1024",
     KREU ": slices of 32 rows, sorted by length among 1024",
     ConvertSlices,
     {32, 1024},
     HostSlices,
     CUDA(MultSlices)},
    {"sell-32-all",
     KREU ": slices of 32 rows, sorted by length among all",
     ConvertSlices,
     {32, 0},
     HostSlices,
     CUDA(MultSlices)},
    {"sell-8-64",
     KREU ": slices of 8 rows, a SIMD register, sorted among 64",
     ConvertSlices,
     {8, 64},
     HostSlices,
     CUDA(NULL)},
    {"csr5", LIU ": tiles of 32 x sigma entries", ConvertTiles, {32, 0}, NOHOST, CUDA(MultTiles)},
    {"csr5-8-16", LIU ": tiles of 8 x 16 entries", ConvertTiles, {8, 16}, HostTiles, CUDA(NULL)},
};
const int BaselineCount = (int)(sizeof(Baselines) / sizeof(Baselines[0]));
