/*
  The baselines' conversions.
*/
#include "formats.h"

#define PADDING_LIMIT 20 /* a format is not stored if it has more than this many times A's entries */

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
  rows to make the COO part worthwhile on a GPU. parameter < 0: only ELL
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
  if (B->parameter >= 0) {
    PetscCall(PetscCalloc1(longest + 1, &count));
    for (PetscInt r = 0; r < A->m; r++) count[A->i[r + 1] - A->i[r]]++;
    for (S->width = 0; S->width < longest; S->width++) {
      longer -= count[S->width];
      if (3 * longer < A->m || longer < B->parameter) break;
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

/* parameter: the window in which rows are sorted by decreasing length, 1: none, 0: all rows */
static PetscErrorCode ConvertSlices(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  const PetscInt height = STORED_LANES, window = B->parameter ? B->parameter : PetscMax(1, A->m),
                 slices = (A->m + height - 1) / height;
  PetscInt   *order = NULL, *place = NULL, *count = NULL, longest = 0;
  PetscInt64 *slice;

  PetscFunctionBegin;
  S->kind = STORED_SLICES;
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

/* parameter: sigma, 0: chosen by the mean row length, with the paper's rule for NVIDIA GPUs (r, s, t, u =
   4, 32, 256, 4) */
static PetscErrorCode ConvertTiles(const Baseline *B, const SpMVCSR *A, Stored *S)
{
  const PetscInt   omega = STORED_LANES;
  const PetscInt64 mean  = A->m ? S->nz / A->m : 0;
  const PetscInt   sigma =
      B->parameter ? B->parameter : (mean <= 4 ? 4 : (mean <= 32 ? (PetscInt)mean : (mean <= 256 ? 32 : 4)));
  const PetscInt size = omega * sigma;
  PetscInt      *row, *dirty, *empty = NULL, *last;
  uint32_t      *flags, *offsets;
  PetscInt64     segments = 0;

  PetscFunctionBegin;
  S->kind   = STORED_TILES;
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

/* ---------------------------------------------------------------- the table */

const Baseline Baselines[] = {
    /* Bell, Garland 2009: a thread an entry, atomics */
    {"coo", ConvertCOO, 0, MultCOOScalar},
    /* Bell, Garland 2009: a warp adds up the entries of a row among 32, then atomics */
    {"coo-segmented", ConvertCOO, 0, MultCOOSegmented},
    /* Tsai, Cojean, Anzt 2020: as many entries a warp, a row's sum carried on while it lasts */
    {"coo-balanced", ConvertCOO, 0, MultCOOBalanced},
    /* Bell, Garland 2009: a thread a row, a warp a row */
    {"csr-scalar", ConvertCSR, 0, MultCSRScalar},
    {"csr-vector", ConvertCSR, 0, MultCSRVector},
    /* Bell, Garland 2009: all rows as long as the longest */
    {"ell", ConvertELL, -1, MultELL},
    /* Bell, Garland 2009: ELL while a third of the rows are longer, and 4096; the rest in COO */
    {"hyb", ConvertELL, 4096, MultELL},
    /* Monakov, Lokhmotov, Avetisyan 2010: slices of 32 rows */
    {"sell-32", ConvertSlices, 1, MultSlices},
    /* Kreutzer, Hager, Wellein, Fehske, Bishop 2014: sorted by length among 1024 rows, or all */
    {"sell-32-1024", ConvertSlices, 1024, MultSlices},
    {"sell-32-all", ConvertSlices, 0, MultSlices},
    /* Liu, Vinter 2015: tiles of 32 x sigma entries */
    {"csr5", ConvertTiles, 0, MultTiles},
};
const int BaselineCount = (int)(sizeof(Baselines) / sizeof(Baselines[0]));
