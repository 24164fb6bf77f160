/*
  Matrices of the tests: those generated here by name, from files, and copies of them in any type.
*/
#include "matrices.h"
#include "../../examples/mmload.h"

PetscReal Hash(PetscInt i, PetscInt j, PetscInt k)
{
  unsigned long long h = ((unsigned long long)(i + 1) * 0x9E3779B97F4A7C15ULL) ^
                         ((unsigned long long)(j + 7) * 0xC2B2AE3D27D4EB4FULL) ^
                         ((unsigned long long)(k + 3) * 0x165667B19E3779F9ULL);

  h ^= h >> 31;
  h *= 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return (PetscReal)((double)(h & 0xFFFFFF) / 8388607.5 - 1.0);
}

PetscScalar Value(PetscInt i, PetscInt j, PetscInt k)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(Hash(i, j, k), Hash(i, j, k + 1000));
#else
  return Hash(i, j, k);
#endif
}

PetscErrorCode VecFill(Vec v, PetscInt seed)
{
  PetscScalar *a;
  PetscInt     s, e;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArray(v, &a));
  for (PetscInt i = s; i < e; i++) a[i - s] = Value(i, 0, seed);
  PetscCall(VecRestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FillDense(Mat D, PetscInt columns, PetscInt seed)
{
  PetscInt s, e;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(D, &s, &e));
  for (PetscInt i = s; i < e; i++) {
    for (PetscInt j = 0; j < columns; j++) PetscCall(MatSetValue(D, i, j, Value(i, j, seed), INSERT_VALUES));
  }
  PetscCall(MatAssemble(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Generated rows
*/
static PetscErrorCode Row_None(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                               PetscScalar *vals)
{
  *n = 0;
  return PETSC_SUCCESS;
}

/* 0 to 9 entries per row at random, a seventh of the rows empty, diagonal entries missing */
static PetscErrorCode Row_Random(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                 PetscScalar *vals)
{
  PetscInt len = i % 7 == 4 ? 0 : (PetscInt)(5 + 4.9 * Hash(i, 1, 1));

  *n = 0;
  for (PetscInt k = 0; k < len; k++) cols[(*n)++] = (PetscInt)((N - 1) * (0.5 + 0.5 * Hash(i, k, 2)));
  PetscCall(PetscSortRemoveDupsInt(n, cols));
  for (PetscInt k = 0; k < *n; k++) vals[k] = Value(i, cols[k], 3);
  return PETSC_SUCCESS;
}

/* Row_Random with a dominant diagonal */
static PetscErrorCode Row_Dominant(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                   PetscScalar *vals)
{
  PetscCall(Row_Random(i, M, N, bs, n, cols, vals));
  cols[(*n)++] = i;
  PetscCall(PetscSortRemoveDupsInt(n, cols));
  for (PetscInt k = 0; k < *n; k++) vals[k] = cols[k] == i ? 12. + i % 5 : Value(i, cols[k], 3);
  return PETSC_SUCCESS;
}

/* The lengths at which slices, warps and vector lengths begin and end; needs N >= 258 */
static PetscErrorCode Row_Lengths(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                  PetscScalar *vals)
{
  const PetscInt lengths[] = {0, 1, 31, 32, 33, 127, 128, 129, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65};
  const PetscInt stride    = 1 + i % 2;

  *n = lengths[(i * 8) % 21];
  for (PetscInt k = 0; k < *n; k++) {
    cols[k] = N - 1 - stride * (*n - 1 - k);
    vals[k] = Value(i, cols[k], 4);
  }
  return PETSC_SUCCESS;
}

/* Two dense rows in a tridiagonal matrix */
static PetscErrorCode Row_Dense(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                PetscScalar *vals)
{
  *n = 0;
  for (PetscInt j = 0; j < N; j++) {
    if (i != 37 && i != M - 1 && (j < i - 1 || j > i + 1)) continue;
    cols[*n]     = j;
    vals[(*n)++] = Value(i, j, 5);
  }
  return PETSC_SUCCESS;
}

/* A few nonempty rows among empty ones: PETSc then uses compressed rows */
static PetscErrorCode Row_Hole(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                               PetscScalar *vals)
{
  *n = 0;
  if (i % 40 == 3) PetscCall(Row_Random(i / 40, M, N, bs, n, cols, vals));
  return PETSC_SUCCESS;
}

PetscErrorCode Row_Laplace(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                           PetscScalar *vals)
{
  const PetscInt w = M > 1000 ? 40 : 13, d[] = {-w, -1, 0, 1, w};

  *n = 0;
  for (int k = 0; k < 5; k++) {
    if (i + d[k] < 0 || i + d[k] >= M || (k == 1 && i % w == 0) || (k == 3 && i % w == w - 1)) continue;
    cols[*n]     = i + d[k];
    vals[(*n)++] = k == 2 ? 4. : -1.;
  }
  return PETSC_SUCCESS;
}

/* Convection and diffusion, 7 points, on a grid 7 x 6 x n, above 900 rows 12 x 10 x n */
static PetscErrorCode Row_Convection(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                     PetscScalar *vals)
{
  const PetscInt nx = M > 900 ? 12 : 7, ny = M > 900 ? 10 : 6, x = i % nx, y = (i / nx) % ny,
                 d[]    = {-nx * ny, -nx, -1, 0, 1, nx, nx * ny};
  const PetscScalar v[] = {-1.2, -1.1, -1.5, 6.3, -.5, -.9, -.8};

  *n = 0;
  for (int k = 0; k < 7; k++) {
    if (i + d[k] < 0 || i + d[k] >= M || (k == 2 && x == 0) || (k == 4 && x == nx - 1) || (k == 1 && y == 0) ||
        (k == 5 && y == ny - 1))
      continue;
    cols[*n]     = i + d[k];
    vals[(*n)++] = v[k] + (k == 3 ? PETSC_SQRT_MACHINE_EPSILON * i : 0.);
  }
  return PETSC_SUCCESS;
}

/* Nodes of bs unknowns, each coupled with its neighbors and the nodes 4 further away: full node blocks, symmetric and
   dominant */
PetscErrorCode Row_Nodes(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                         PetscScalar *vals)
{
  const PetscInt d[] = {-4, -1, 0, 1, 4}, node = i / bs;

  *n = 0;
  for (int k = 0; k < 5; k++) {
    if (node + d[k] < 0 || node + d[k] >= M / bs) continue;
    for (PetscInt c = 0; c < bs; c++) {
      const PetscInt j = (node + d[k]) * bs + c;

      cols[*n]     = j;
      vals[(*n)++] = j == i ? 3. * bs : 0.5 * Hash(PetscMin(i, j), PetscMax(i, j), 6);
    }
  }
  return PETSC_SUCCESS;
}

/* The same for 3 unknowns; some rows are constrained, with the diagonal entry alone, so that not all node blocks are
   complete */
static PetscErrorCode Row_Constrained(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                      PetscScalar *vals)
{
  (void)bs;
  if (i % 29 != 4) return Row_Nodes(i, M, N, 3, n, cols, vals);
  *n      = 1;
  cols[0] = i;
  vals[0] = 1.;
  return PETSC_SUCCESS;
}

/* The same without the constrained unknowns: nodes of two or three unknowns that begin at any row */
static PetscErrorCode Row_Dropped(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                  PetscScalar *vals)
{
  const PetscInt all = ((M - 1) / 28 * 29 + (M - 1) % 28 + 4) / 3 * 3; /* of 29 unknowns, the fifth is dropped */
  PetscInt       count, own = 0;

  (void)bs;
  (void)Row_Nodes(i / 28 * 29 + i % 28 + (i % 28 >= 4), all, all, 3, &count, cols, vals);
  for (PetscInt k = 0; k < count; k++) {
    const PetscInt q = cols[k] / 29, t = cols[k] % 29, j = q * 28 + t - (t > 4);

    if (t == 4 || j >= N) continue;
    cols[own]   = j;
    vals[own++] = vals[k];
  }
  *n = own;
  return PETSC_SUCCESS;
}

const Case cases[] = {{"empty", 0, 0, 1, SQUARE, Row_None},
                      {"norows", 0, 5, 1, 0, Row_None},
                      {"nocolumns", 5, 0, 1, 0, Row_None},
                      {"nothing", 7, 7, 1, SQUARE | FULL, Row_None},
                      {"one", 1, 1, 1, SQUARE | FULL | SOLVE | SPD, Row_Laplace},
                      {"few", 5, 5, 1, SQUARE | FULL | SOLVE, Row_Dominant},
                      {"wide", 20, 300, 1, FULL | BYROW, Row_Random},
                      {"tall", 300, 20, 1, FULL | BYROW, Row_Random},
                      {"lengths", 85, 300, 1, FULL | BYROW, Row_Lengths},
                      {"random", 150, 150, 1, SQUARE | FULL | BYROW, Row_Random},
                      {"dominant", 150, 150, 1, SQUARE | FULL | BYROW | SOLVE, Row_Dominant},
                      {"dense", 260, 260, 1, SQUARE | FULL | BYROW, Row_Dense},
                      {"hole", 400, 400, 1, SQUARE | FULL | BYROW, Row_Hole},
                      {"laplace", 143, 143, 1, SQUARE | FULL | BYROW | SOLVE | SPD, Row_Laplace},
                      {"skew", 143, 143, 1, SQUARE | FULL | SOLVE | SPD, Row_Laplace, PETSC_TRUE},
                      {"convection", 210, 210, 1, SQUARE | FULL | BYROW | SOLVE, Row_Convection},
                      {"nodes2", 64, 64, 2, SQUARE | FULL | BYROW | SOLVE | SPD | BLOCKS, Row_Nodes},
                      {"nodes3", 105, 105, 3, SQUARE | FULL | BYROW | SOLVE | SPD | BLOCKS, Row_Nodes},
                      {"nodes5", 70, 70, 5, SQUARE | FULL | BYROW | SOLVE | SPD | BLOCKS, Row_Nodes},
                      {"constrained", 108, 108, 1, SQUARE | FULL | BYROW | SOLVE, Row_Constrained},
                      {"dropped", 110, 110, 1, SQUARE | FULL | BYROW | SOLVE | SPD, Row_Dropped},
                      {"Laplace", 1200, 1200, 1, SQUARE | FULL | BYROW | SOLVE | SPD | LARGE, Row_Laplace},
                      {"Convection", 960, 960, 1, SQUARE | FULL | BYROW | SOLVE | LARGE, Row_Convection},
                      {"Nodes3", 990, 990, 3, SQUARE | FULL | BYROW | SOLVE | SPD | BLOCKS | LARGE, Row_Nodes},
                      {NULL}};

/*
  Creating matrices
*/

PetscErrorCode LocalRowsOfMat(Mat A, LocalRows *r)
{
  Mat             block[2] = {A, NULL};
  const PetscInt *garray   = NULL;
  PetscInt        rs, re, cs, nz = 0;
  PetscMPIInt     size;

  PetscFunctionBegin;
  r->comm = PetscObjectComm((PetscObject)A);
  PetscCallMPI(MPI_Comm_size(r->comm, &size));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  r->m     = re - rs;
  r->begin = rs;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      PetscCall(PetscMalloc3(r->m + 1, &r->i, nz, &r->j, nz, &r->v));
      r->i[0] = 0;
    }
    for (PetscInt i = 0; i < r->m; i++) {
      PetscInt at = pass ? r->i[i] : 0, begin = at;

      for (int k = 0; k < 2 && block[k]; k++) {
        PetscInt           n;
        const PetscInt    *cols;
        const PetscScalar *vals;

        PetscCall(MatGetRow(block[k], i, &n, &cols, &vals));
        for (PetscInt q = 0; pass && q < n; q++) {
          r->j[at + q] = size == 1 ? cols[q] : k ? garray[cols[q]] : cs + cols[q];
          r->v[at + q] = vals[q];
        }
        at += n;
        nz += pass ? 0 : n;
        PetscCall(MatRestoreRow(block[k], i, &n, &cols, &vals));
      }
      if (pass) r->i[i + 1] = at;
      if (pass && size > 1) PetscCall(PetscSortIntWithScalarArray(at - begin, r->j + begin, r->v + begin));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode LocalRowsDestroy(LocalRows *r)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(r->i, r->j, r->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SetLocalRows(Mat A, const LocalRows *r)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < r->m; i++) {
    const PetscInt row = r->begin + i;

    PetscCall(MatSetValues(A, 1, &row, r->i[i + 1] - r->i[i], r->j + r->i[i], r->v + r->i[i], INSERT_VALUES));
  }
  PetscCall(MatAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PreallocateLocalRows(Mat A, const LocalRows *r)
{
  PetscInt    cs, ce, *d, *o;
  PetscLayout rows, cols;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatGetLayouts(A, &rows, &cols));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutSetUp(cols));
  PetscCall(PetscLayoutGetRange(cols, &cs, &ce)); /* MatGetOwnershipRangeColumn() would set the matrix up */
  PetscCall(PetscCalloc2(r->m, &d, r->m, &o));
  for (PetscInt i = 0; i < r->m; i++) {
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) (size == 1 || (r->j[k] >= cs && r->j[k] < ce) ? d : o)[i]++;
  }
  PetscCall(MatSeqAIJSetPreallocation(A, 0, d));
  PetscCall(MatMPIAIJSetPreallocation(A, 0, d, 0, o));
  PetscCall(PetscFree2(d, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PreallocateLike(Mat R, Mat A)
{
  LocalRows r;

  PetscFunctionBegin;
  PetscCall(LocalRowsOfMat(R, &r));
  PetscCall(PreallocateLocalRows(A, &r));
  PetscCall(LocalRowsDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FillLike(Mat R, PetscInt seed, Mat A)
{
  LocalRows r;

  PetscFunctionBegin;
  PetscCall(LocalRowsOfMat(R, &r));
  for (PetscInt i = 0; i < r.m && seed >= 0; i++) {
    for (PetscInt k = r.i[i]; k < r.i[i + 1]; k++) r.v[k] = Value(r.begin + i, r.j[k], seed);
  }
  PetscCall(SetLocalRows(A, &r));
  PetscCall(LocalRowsDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CreateLike(Mat R, const char *type, Mat *A)
{
  PetscInt m, n, M, N, rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &M, &N));
  PetscCall(MatGetLocalSize(R, &m, &n));
  PetscCall(MatGetBlockSizes(R, &rbs, &cbs));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)R), A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetBlockSizes(*A, rbs, cbs));
  PetscCall(MatSetType(*A, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MakeLike(Mat R, const char *type, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(CreateLike(R, type, A));
  PetscCall(PreallocateLike(R, *A));
  PetscCall(FillLike(R, -1, *A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CoordinatesTwice(Mat R, PetscBool elsewhere, PetscInt *n, PetscInt *i[], PetscInt *j[])
{
  LocalRows r;
  PetscInt  M, k = 0;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &M, NULL));
  PetscCall(LocalRowsOfMat(R, &r));
  *n = 2 * r.i[r.m];
  PetscCall(PetscMalloc2(*n, i, *n, j));
  for (PetscInt l = r.m - 1; l >= 0; l--) {
    for (PetscInt q = 2 * r.i[l]; q < 2 * r.i[l + 1]; q++) {
      (*i)[k]   = elsewhere && q % 2 ? M - 1 - (r.begin + l) : r.begin + l;
      (*j)[k++] = r.j[q / 2];
    }
  }
  PetscCall(LocalRowsDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MakeRows(MPI_Comm comm, const Case *c, Mat *R)
{
  const PetscInt room = c->M > 20000 ? 7 : PetscMin(c->N, 140); /* more entries of a row are no error */
  PetscInt       m = PETSC_DECIDE, n = PETSC_DECIDE, rs, re, len, *cols;
  PetscScalar   *vals;
  PetscMPIInt    rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(MatCreate(comm, R));
  if (c->skew && size > 1) {
    m = rank ? c->M / (size - 1) + (rank <= c->M % (size - 1)) : 0;
    n = m;
  }
  PetscCall(MatSetSizes(*R, m, n, c->M, c->N));
  PetscCall(MatSetBlockSize(*R, c->bs));
  PetscCall(MatSetType(*R, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*R, room, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*R, room, NULL, room, NULL));
  PetscCall(MatSetOption(*R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*R, &rs, &re));
  PetscCall(PetscMalloc2(c->N + 20, &cols, c->N + 20, &vals));
  for (PetscInt i = rs; i < re; i++) {
    PetscCall(c->row(i, c->M, c->N, c->bs, &len, cols, vals));
    PetscCall(MatSetValues(*R, 1, &i, len, cols, vals, INSERT_VALUES));
  }
  PetscCall(PetscFree2(cols, vals));
  PetscCall(MatAssemble(*R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MakeFile(MPI_Comm comm, Case *c, Mat *R)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, R));
  PetscCall(MatLoadMatrixMarket(comm, c->file, *R));
  PetscCall(MatGetSize(*R, &c->M, &c->N));
  c->bs  = 1;
  c->has = FULL | BYROW | (c->M == c->N ? SQUARE : 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}
