/*
   The Bratu problem at one grid point, free of PETSc's objects and written once for the host and for CUDA kernels:
   bratu.c runs it over the grid on the host, bratu_cuda.cu on a GPU.
*/
#pragma once

#include <petscsys.h>

#if defined(__CUDACC__)
  #define BRATU_INLINE static inline __host__ __device__
#else
  #define BRATU_INLINE static inline
#endif

typedef struct {
  PetscReal lambda;
  PetscInt  M[3];   /* grid points in each direction */
  PetscReal h[3];   /* grid spacing */
  PetscReal c[3];   /* coupling to a neighbor in each direction: volume of the cell over h^2 */
  PetscReal lamvol; /* lambda times the volume of the cell */
} Bratu;

/* A process's part of the grid: its corner and size, without and with the DMDA's ghost points */
typedef struct {
  PetscInt s[3], m[3], gs[3], gm[3];
} BratuBox;

/* The function that is evaluated at each point: input vector -> output vector */
typedef enum {
  BRATU_GUESS,    /* nothing -> the initial guess */
  BRATU_FUNCTION, /* u with ghost points -> the residual */
  BRATU_JACOBIAN  /* u without ghost points -> BRATU_STENCIL values per row */
} BratuPart;

/* Entries of a row: the neighbors down, south and west, the point itself, the neighbors east, north and up, ascending
   columns */
#define BRATU_STENCIL 7
#define BRATU_SELF    3

BRATU_INLINE PetscInt BratuIndex(const PetscInt s[3], const PetscInt m[3], PetscInt i, PetscInt j, PetscInt k)
{
  return ((k - s[2]) * m[1] + (j - s[1])) * m[0] + (i - s[0]);
}

BRATU_INLINE PetscBool BratuOnBoundary(const Bratu *p, PetscInt i, PetscInt j, PetscInt k)
{
  return (PetscBool)(i == 0 || j == 0 || k == 0 || i == p->M[0] - 1 || j == p->M[1] - 1 || k == p->M[2] - 1);
}

BRATU_INLINE PetscReal BratuGuess(const Bratu *p, PetscInt i, PetscInt j, PetscInt k)
{
  PetscReal d; /* distance to the boundary */

  if (BratuOnBoundary(p, i, j, k)) return 0.0;
  d = PetscMin(PetscMin(i, p->M[0] - i - 1) * p->h[0],
               PetscMin(PetscMin(j, p->M[1] - j - 1) * p->h[1], PetscMin(k, p->M[2] - k - 1) * p->h[2]));
  return p->lambda / (p->lambda + 1) * PetscSqrtReal(d);
}

/* The columns of a row in the order of its values, as indices of this process's points with ghost points; -1 for a
   neighbor that does not exist */
BRATU_INLINE void BratuColumns(const Bratu *p, const BratuBox *b, PetscInt i, PetscInt j, PetscInt k,
                               PetscInt cols[BRATU_STENCIL])
{
  const PetscInt dy = b->gm[0], dz = b->gm[0] * b->gm[1], self = BratuIndex(b->gs, b->gm, i, j, k);

  cols[0] = k > 0 ? self - dz : -1;
  cols[1] = j > 0 ? self - dy : -1;
  cols[2] = i > 0 ? self - 1 : -1;
  cols[3] = self;
  cols[4] = i < p->M[0] - 1 ? self + 1 : -1;
  cols[5] = j < p->M[1] - 1 ? self + dy : -1;
  cols[6] = k < p->M[2] - 1 ? self + dz : -1;
}

/* The same with global numbers, at the place of the row's values: a neighbor that does not exist has the column `none`,
   or that of the row if `none` is 0 */
BRATU_INLINE void BratuIndicesAt(const Bratu *p, const BratuBox *b, const PetscInt *global, PetscInt none,
                                 PetscInt *rows, PetscInt *cols, PetscInt i, PetscInt j, PetscInt k)
{
  const size_t at = (size_t)BRATU_STENCIL * BratuIndex(b->s, b->m, i, j, k);
  PetscInt     local[BRATU_STENCIL];

  BratuColumns(p, b, i, j, k, local);
  for (int q = 0; q < BRATU_STENCIL; q++) {
    rows[at + q] = global[local[BRATU_SELF]];
    cols[at + q] = local[q] >= 0 ? global[local[q]] : none ? none : rows[at + q];
  }
}

BRATU_INLINE void BratuEvaluateAt(BratuPart part, const Bratu *p, const BratuBox *b, const PetscScalar *in,
                                  PetscScalar *out, PetscInt i, PetscInt j, PetscInt k)
{
  const PetscBool boundary = BratuOnBoundary(p, i, j, k);
  const PetscInt  row      = BratuIndex(b->s, b->m, i, j, k);

  switch (part) {
  case BRATU_GUESS: out[row] = BratuGuess(p, i, j, k); break;
  case BRATU_FUNCTION: {
    const PetscScalar *x = in + BratuIndex(b->gs, b->gm, i, j, k), u = *x;

    if (boundary)
      out[row] = u;
    else {
      const PetscInt    dy = b->gm[0], dz = b->gm[0] * b->gm[1];
      const PetscScalar two_u = u + u;

      out[row] = p->c[0] * (two_u - x[-1] - x[1]) + p->c[1] * (two_u - x[-dy] - x[dy]) +
                 p->c[2] * (two_u - x[-dz] - x[dz]) - p->lamvol * PetscExpScalar(u);
    }
  } break;
  case BRATU_JACOBIAN: {
    PetscScalar *v = out + BRATU_STENCIL * (PetscCount)row;

    for (PetscInt d = 0; d < 3; d++) v[d] = v[BRATU_STENCIL - 1 - d] = boundary ? 0 : -p->c[2 - d];
    if (boundary)
      v[BRATU_SELF] = 1;
    else
      v[BRATU_SELF] = 2 * (p->c[0] + p->c[1] + p->c[2]) - p->lamvol * PetscExpScalar(in[row]);
  } break;
  }
}

#if defined(PETSCSPMV_HAVE_CUDA)
PETSC_EXTERN PetscErrorCode BratuEvaluateCUDA(BratuPart, const Bratu *, const BratuBox *, const PetscScalar *,
                                              PetscScalar *);
PETSC_EXTERN PetscErrorCode BratuIndicesCUDA(const Bratu *, const BratuBox *, const PetscInt *, PetscInt, PetscInt **,
                                             PetscInt **);
PETSC_EXTERN PetscErrorCode BratuFreeCUDA(PetscInt *);
PETSC_EXTERN PetscErrorCode BratuSynchronizeCUDA(void);
#endif
