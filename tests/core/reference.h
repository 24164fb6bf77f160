/* The oracle: decodes a store one entry at a time, in the simplest way, and shares nothing with the kernels */
#pragma once

#include "core/spmvimpl.h"

/* called for padding too (row -1) */
typedef void (*SpMVVisitor)(void *ctx, PetscInt row, PetscInt col, PetscScalar value);

static inline PetscScalar SpMVGet(const PetscReal *v, size_t distance)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(v[0], v[distance]);
#else
  (void)distance;
  return v[0];
#endif
}

static inline void SpMVStoreVisit(SpMVStore B, SpMVVisitor entry, void *ctx)
{
  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R   = B->runs + r;
    const int      rbs = R->rbs, cbs = R->cbs, H = SPMV_LANES;
    size_t         v = (size_t)R->val * SPMV_VECTOR, j = (size_t)R->idx, len = (size_t)R->len, list = (size_t)R->rows;

    for (int s = 0; s < R->count; s++) {
      if (R->kind == SPMV_RUN_DIAG) {
        const SpMVPattern *P = B->patterns.list + R->pattern;

        for (int k = 0; k < P->width; k++) {
          const size_t at = B->distinct ? (size_t)B->code[B->list[R->slice + s] + k] * rbs * rbs * SPMV_VECTOR
                                        : v + ((size_t)s * P->width + k) * rbs * rbs * SPMV_VECTOR;

          for (int q = 0; q < cbs; q++)
            for (int p = 0; p < rbs; p++)
              for (int l = 0; l < H; l++) {
                const PetscInt row = R->row + ((PetscInt)s * H + l) * rbs;

                entry(ctx, (B->patterns.mask[P->offset + k] >> l & 1) ? row + p : -1,
                      row + B->patterns.offset[P->offset + k] + q,
                      SpMVGet(B->dval + at + (size_t)(q * rbs + p) * SPMV_VECTOR + l, SPMV_LANES));
              }
        }
      } else if (R->kind == SPMV_RUN_LONG) {
        const int n = B->width[R->slice + s], padded = B->align * ((n + B->align - 1) / B->align);

        for (int k = 0; k < padded; k++) {
          const int first = B->idx[j + k - k % SPMV_LANES],
                    col   = first < 0 ? ~first + (k < n ? k % SPMV_LANES : 0) : B->idx[j + k];

          for (int p = 0; p < rbs; p++)
            entry(ctx, k < n ? B->rows[list + s] + p : -1, col,
                  SpMVGet(B->val + v + (size_t)(k / SPMV_LANES * rbs + p) * SPMV_VECTOR + k % SPMV_LANES, SPMV_LANES));
        }
        j += padded;
        v += (size_t)padded / SPMV_LANES * rbs * SPMV_VECTOR;
      } else {
        const int w = B->width[R->slice + 2 * s], wmin = B->width[R->slice + 2 * s + 1];
        const int lanes = s < R->count - 1 ? H : R->lanes, listed = R->row < 0, ragged = wmin < w;
        const int narrow = R->kind == SPMV_RUN_NARROW;

        for (int k = 0; k < w; k++)
          for (int q = 0; q < cbs; q++)
            for (int p = 0; p < rbs; p++)
              for (int l = 0; l < H; l++) {
                const PetscInt  row  = listed ? B->rows[list + l] : R->row + ((PetscInt)s * H + l) * rbs;
                const PetscBool here = l < lanes && (!ragged || k < B->len[len + l]) ? PETSC_TRUE : PETSC_FALSE;

                const int     *index = B->idx + j + (size_t)(k + narrow) * (size_t)SPMV_INDEX_INTS(narrow);
                const PetscInt col   = narrow ? B->idx[j] + ((const uint16_t *)index)[l] : index[l];

                entry(ctx, here ? row + p : -1, col + q,
                      SpMVGet(B->val + v + ((size_t)((size_t)k * cbs + q) * rbs + p) * H * SPMV_PARTS + l, (size_t)H));
              }
        j += (size_t)(w + narrow) * (size_t)SPMV_INDEX_INTS(narrow);
        v += (size_t)w * rbs * cbs * H * SPMV_PARTS;
        if (ragged) len += H;
        if (listed) list += H;
      }
    }
  }
}
