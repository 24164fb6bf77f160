/*
  Products with several columns at once. The runs of a store are split into pieces that stay in the cache, and the
  kernels for one vector multiply each piece with one column after the other. The values and indices are read from
  memory once for all columns, and each column has the bits of a product with that column alone. If slices read x by
  index, it is faster to multiply entry by entry, with eight columns of X side by side.
*/
#include "spmvimpl.h"
#include <stdlib.h>

enum { SPMV_PIECES = 64 };

/* Consecutive slices: pieces of runs. A kernel sees only the store that contains them */
typedef struct {
  struct _n_SpMVStore store;
  SpMVRun             run[SPMV_PIECES];
  double              bytes; /* size of their values */
} SpMVPiece;

/* The operands: columns of dense matrices */
typedef struct {
  PetscInt           count, ldx, ldz, ldy;
  const PetscScalar *x, *z;
  PetscScalar       *y;
} SpMVColumns;

static void SpMVPieceMult(SpMVPiece *P, const SpMVColumns *C)
{
  for (PetscInt q = 0; q < C->count && P->store.nruns; q++)
    SpMVKernelsGet()->mult(&P->store, C->x + (size_t)q * (size_t)C->ldx,
                           C->z ? C->z + (size_t)q * (size_t)C->ldz : NULL, C->y + (size_t)q * (size_t)C->ldy);
  P->store.nruns = 0;
  P->bytes       = 0;
}

/* Advances R by one slice, to where the next piece may begin, and returns the bytes of the slice's values */
static double SpMVPieceAdvance(const struct _n_SpMVStore *B, SpMVRun *R, PetscBool diagonal_values)
{
  const int *width = B->width + R->slice, narrow = R->kind == SPMV_RUN_NARROW;
  PetscInt64 values = 0; /* vectors of values */

  switch (R->kind) {
  case SPMV_RUN_DIAG:
    values = (PetscInt64)B->patterns.list[R->pattern].width * R->rbs * R->rbs;
    R->slice++;
    R->row += SPMV_LANES * R->rbs;
    if (!diagonal_values) return (double)values * SPMV_VECTOR * sizeof(PetscReal);
    break;
  case SPMV_RUN_GATHER:
  case SPMV_RUN_NARROW:
    values = (PetscInt64)width[0] * R->rbs * R->cbs;
    R->idx += (PetscInt64)(width[0] + narrow) * SPMV_INDEX_INTS(narrow);
    if (width[1] < width[0]) R->len += SPMV_LANES;
    if (R->row < 0)
      R->rows += SPMV_LANES;
    else
      R->row += SPMV_LANES * R->rbs;
    R->slice += 2;
    break;
  default: {
    const PetscInt64 steps = (PetscInt64)B->align * ((width[0] + B->align - 1) / B->align) / SPMV_LANES;

    values = steps * R->rbs;
    R->idx += steps * SPMV_LANES;
    R->rows++;
    R->slice++;
  }
  }
  R->val += values;
  return (double)values * SPMV_VECTOR * sizeof(PetscReal);
}

/* Whether most stored entries are in slices by diagonals */
static PetscBool SpMVStoreIsDiagonal(SpMVStore B)
{
  PetscInt64 diagonal = 0;

  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R = B->runs + r;

    if (R->kind == SPMV_RUN_DIAG)
      diagonal += (PetscInt64)R->count * B->patterns.list[R->pattern].width * R->rbs * R->rbs * SPMV_LANES;
  }
  return 2 * diagonal >= B->stats.stored ? PETSC_TRUE : PETSC_FALSE;
}

void SpMVStoreMultColumns(SpMVStore B, PetscInt count, const PetscScalar *x, PetscInt ldx, const PetscScalar *z,
                          PetscInt ldz, PetscScalar *y, PetscInt ldy)
{
  /* Use pieces, unless x of all columns, read by index, leaves no room in the cache, or x and y are most of the data
     that is read and written */
  const PetscBool pieces = (PetscBool)(B->bs > 1 || (SpMVStoreIsDiagonal(B) &&
                                                     B->stats.nonzeros >= SpMVTuned.columns_pieces * (PetscInt64)B->m));
  const double    most   = pieces ? (double)SpMVTuned.columns_bytes : PETSC_MAX_REAL;
  SpMVColumns     C      = {count, ldx, ldz, ldy, x, z, y};
  SpMVPiece       P      = {.store = *B, .bytes = 0};

  for (PetscInt q = 0; q < count && B->scattered && B->m && z != y; q++) {
    if (z)
      memcpy(y + (size_t)q * (size_t)ldy, z + (size_t)q * (size_t)ldz, (size_t)B->m * sizeof(*y));
    else
      memset(y + (size_t)q * (size_t)ldy, 0, (size_t)B->m * sizeof(*y));
  }
  if (B->scattered && z) {
    C.z   = y;
    C.ldz = ldy;
  }
  P.store.runs  = P.run;
  P.store.nruns = 0;
  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R    = B->runs + r;
    SpMVRun        next = *R; /* the remaining part of the run */

    for (int done = 0; done < R->count;) {
      SpMVRun *piece = P.run + P.store.nruns++;

      *piece       = next;
      piece->count = 0;
      while (done < R->count && (P.bytes < most || !piece->count)) {
        P.bytes += SpMVPieceAdvance(B, &next, B->distinct ? PETSC_FALSE : PETSC_TRUE);
        piece->count++;
        done++;
      }
      piece->lanes = done == R->count ? R->lanes : SPMV_LANES;
      if (P.bytes >= most || P.store.nruns == SPMV_PIECES) SpMVPieceMult(&P, &C);
    }
  }
  SpMVPieceMult(&P, &C);
}

/* Products with rows of X as stored vectors take as long for one column as for eight, and all of X has to be rewritten
   in this form. Therefore it is worthwhile only for most of the eight columns, or for long rows read by index */
PetscInt SpMVStoreColumnsByRows(SpMVStore B, PetscInt count)
{
  const PetscBool scattered = (PetscBool)!SpMVStoreIsDiagonal(B),
                  longrows  = (PetscBool)(B->stats.nonzeros >= SpMVTuned.columns_mean * (PetscInt64)B->n);
  /* of eight columns */
  const PetscInt64 least = !scattered ? SpMVTuned.columns_diagonal : longrows ? 2 : SpMVTuned.columns_scattered;
  const PetscInt   rest  = count % SPMV_LANES;

  if (!scattered && B->stats.nonzeros < SpMVTuned.columns_few * (PetscInt64)B->n) return 0;
  if (count < least) return count > 1 && scattered && B->bs == 1 ? SPMV_COLUMNS_PARENT : 0;
  return rest >= least ? count : count - rest;
}

PetscErrorCode SpMVCSRMultColumns(const SpMVCSR *A, PetscInt count, const PetscScalar *x, PetscInt ldx, PetscScalar *y,
                                  PetscInt ldy)
{
  const size_t bytes = (size_t)A->n * SPMV_VECTOR * sizeof(PetscReal);
  void        *raw;
  PetscReal   *rows;

  PetscFunctionBegin;
  raw = malloc(bytes + 64);
  if (!raw) PetscFunctionReturn(PETSC_ERR_MEM);
  rows = (PetscReal *)(((uintptr_t)raw + 63) & ~(uintptr_t)63);
  for (PetscInt q = 0; q < count; q += SPMV_LANES) {
    const int some = (int)PetscMin(SPMV_LANES, count - q);

    for (PetscInt c = 0; c < A->n; c++) {
      PetscReal *to = rows + (size_t)c * SPMV_VECTOR;

      for (int l = 0; l < SPMV_LANES; l++) {
        const PetscScalar value = l < some ? x[(size_t)(q + l) * (size_t)ldx + c] : 0;

        to[l] = PetscRealPart(value);
        if (SPMV_PARTS > 1) to[SPMV_LANES + l] = PetscImaginaryPart(value);
      }
    }
    SpMVKernelsGet()->columns(A, rows, some, y + (size_t)q * (size_t)ldy, ldy);
  }
  free(raw);
  PetscFunctionReturn(PETSC_SUCCESS);
}
