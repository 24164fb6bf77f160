/*
  What the conformance programs share.

  A test program is a table of operations. Each operation is written once, against the public interface of Mat, and writes
  what it sees (types, entries, products, numbers) into a record. It runs on a matrix of type AIJ, on one of a model, which is
  PETSc's own type derived from AIJ in the same way, and on one of the type under test, all made from the same entries; the
  three records must agree:

    - numbers within the bound that came with AIJ's number; a product's bound is that of rounding, row by row, |A||x|;
    - types: where the result on the model keeps the model's type, the result on the type under test must keep that type;
      elsewhere its type must be that of AIJ's result or the type under test. What counts as the type of one of PetscSpMV's is its
      format (PetscSpMVGetFormat()), not its name.

  So no operation carries its own expectation, and what PETSc does for its derived types is not guessed but observed.

  The model is AIJPERM; on a device, where the type under test derives from AIJCUSPARSE, it is that. It is asked last, and only where a
  number is not AIJ's or a type was not kept. On a device the model also stands
  for what PETSc cannot do on a device: where it fails, the type under test may fail, and where its number is not AIJ's, the
  number may be the model's. Each such case is told ("note"), counted, and not allowed in operations marked STRICT.

  -type aijperm (on a device also aijcusparse) tests PETSc against itself, which shows that a failure with another type is not the
  suite's own.
*/
#pragma once

#include <petscksp.h>
#include <petscspmv.h>
#include <signal.h>
#include <unistd.h>
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif
#include "../examples/mmload.h"
#include "ranks.h"

#if !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/* What an operation needs of a matrix, and what a matrix has */
enum {
  SQUARE = 1,     /* as many rows as columns, and the same layout for both */
  SOLVE  = 2,     /* diagonally dominant: factorizations and solvers work */
  SPD    = 4,     /* symmetric, positive definite */
  BLOCKS = 8,     /* block size above 1, full blocks */
  FULL   = 16,    /* at least one row and one column */
  SEQ    = 32,    /* one rank only */
  PAR    = 64,    /* several ranks only */
  ONCE   = 128,   /* builds its own matrices: once instead of once for each case */
  LARGE  = 256,   /* large enough for a solver to take several steps; for programs that ask for it */
  BYROW  = 512,   /* every rank owns rows */
  NOPERM = 1024,  /* AIJPERM cannot serve as a model here: the operation says why */
  NOCUDA = 2048,  /* nor, on a device, AIJCUSPARSE */
  STRICT = 4096,  /* on a device: right even where AIJCUSPARSE is not */
  DEVICE = 8192,  /* only on a device */
  ALONE  = 16384, /* only if -ops names it: what it sees, other programs on the device would disturb */
  ONHOST = 32768  /* not on a device, where AIJCUSPARSE itself crashes or makes garbage: the operation says how */
};

typedef struct {
  const char *what;  /* what was seen, a literal */
  PetscInt    where; /* row, column or step */
  PetscScalar value;
  PetscReal   bound; /* by how much another implementation may differ */
  char       *text;  /* if not NULL, the text seen instead of a number */
} Item;

typedef struct {
  Item    *item;
  PetscInt n, max;
} Record;

typedef struct {
  const char *name;
  PetscInt    M, N, bs;
  int         has;
  PetscErrorCode (*row)(PetscInt, PetscInt, PetscInt, PetscInt, PetscInt *, PetscInt *, PetscScalar *); /* i, M, N, bs; n, cols, vals */
  PetscBool   skew;                                                                                     /* rank 0 owns nothing */
  const char *file;                                                                                     /* a Matrix Market file instead of row() */
} Case;

typedef struct {
  MPI_Comm    comm;
  PetscMPIInt rank, size;
  const char *type;   /* type the operation runs on now */
  PetscBool   device; /* and whether that type computes on a device */
  const Case *c;
  const char *arg; /* the operation's argument */
  Mat         R;   /* the entries, as AIJ: read it only */
} Test;

typedef struct {
  const char *name;
  PetscErrorCode (*run)(Test *, Record *);
  int         needs;
  const char *arg; /* passed on in Test, for operations that differ in a word */
} Operation;

/* A number in [-1, 1] that depends on its three arguments only: the same on every rank and for every type */
static inline PetscReal Hash(PetscInt i, PetscInt j, PetscInt k)
{
  unsigned long long h = ((unsigned long long)(i + 1) * 0x9E3779B97F4A7C15ULL) ^ ((unsigned long long)(j + 7) * 0xC2B2AE3D27D4EB4FULL) ^
                         ((unsigned long long)(k + 3) * 0x165667B19E3779F9ULL);

  h ^= h >> 31;
  h *= 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return (PetscReal)((double)(h & 0xFFFFFF) / 8388607.5 - 1.0);
}

static inline PetscScalar Value(PetscInt i, PetscInt j, PetscInt k)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(Hash(i, j, k), Hash(i, j, k + 1000));
#else
  return Hash(i, j, k);
#endif
}

static inline PetscErrorCode VecFill(Vec v, PetscInt seed)
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

/*
  The generated matrices
*/
static inline PetscErrorCode Row_None(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  *n = 0;
  return PETSC_SUCCESS;
}

/* 0 to 9 entries a row at random, a seventh of the rows empty, diagonal entries missing */
static inline PetscErrorCode Row_Random(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  PetscInt len = i % 7 == 4 ? 0 : (PetscInt)(5 + 4.9 * Hash(i, 1, 1));

  *n = 0;
  for (PetscInt k = 0; k < len; k++) cols[(*n)++] = (PetscInt)((N - 1) * (0.5 + 0.5 * Hash(i, k, 2)));
  PetscCall(PetscSortRemoveDupsInt(n, cols));
  for (PetscInt k = 0; k < *n; k++) vals[k] = Value(i, cols[k], 3);
  return PETSC_SUCCESS;
}

/* as Row_Random, with a dominant diagonal */
static inline PetscErrorCode Row_Dominant(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  PetscCall(Row_Random(i, M, N, bs, n, cols, vals));
  cols[(*n)++] = i;
  PetscCall(PetscSortRemoveDupsInt(n, cols));
  for (PetscInt k = 0; k < *n; k++) vals[k] = cols[k] == i ? 12. + i % 5 : Value(i, cols[k], 3);
  return PETSC_SUCCESS;
}

/* The lengths at which slices, warps and vector lengths begin and end; needs N >= 258 */
static inline PetscErrorCode Row_Lengths(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
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
static inline PetscErrorCode Row_Dense(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  *n = 0;
  for (PetscInt j = 0; j < N; j++) {
    if (i != 37 && i != M - 1 && (j < i - 1 || j > i + 1)) continue;
    cols[*n]     = j;
    vals[(*n)++] = Value(i, j, 5);
  }
  return PETSC_SUCCESS;
}

/* A few rows with entries among empty ones: PETSc then stores compressed rows */
static inline PetscErrorCode Row_Hole(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  *n = 0;
  if (i % 40 == 3) PetscCall(Row_Random(i / 40, M, N, bs, n, cols, vals));
  return PETSC_SUCCESS;
}

/* The 5-point Laplacian with boundaries on a grid 13 (large: 40) wide */
static inline PetscErrorCode Row_Laplace(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
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

/* Convection and diffusion, 7 points, on a grid 7 x 6 x n (large: 12 x 10 x n) */
static inline PetscErrorCode Row_Convection(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  const PetscInt    nx = M > 900 ? 12 : 7, ny = M > 900 ? 10 : 6, x = i % nx, y = (i / nx) % ny, d[] = {-nx * ny, -nx, -1, 0, 1, nx, nx * ny};
  const PetscScalar v[] = {-1.2, -1.1, -1.5, 6.3, -.5, -.9, -.8};

  *n = 0;
  for (int k = 0; k < 7; k++) {
    if (i + d[k] < 0 || i + d[k] >= M || (k == 2 && x == 0) || (k == 4 && x == nx - 1) || (k == 1 && y == 0) || (k == 5 && y == ny - 1)) continue;
    cols[*n]     = i + d[k];
    vals[(*n)++] = v[k] + (k == 3 ? PETSC_SQRT_MACHINE_EPSILON * i : 0.);
  }
  return PETSC_SUCCESS;
}

/* Nodes of bs unknowns, each with its neighbours and those 4 further: full blocks, symmetric and dominant */
static inline PetscErrorCode Row_Nodes(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, PetscScalar *vals)
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

static const Case cases[] = {{"empty", 0, 0, 1, SQUARE, Row_None},
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
                             {"Laplace", 1200, 1200, 1, SQUARE | FULL | BYROW | SOLVE | SPD | LARGE, Row_Laplace},
                             {"Convection", 960, 960, 1, SQUARE | FULL | BYROW | SOLVE | LARGE, Row_Convection},
                             {"Nodes3", 990, 990, 3, SQUARE | FULL | BYROW | SOLVE | SPD | BLOCKS | LARGE, Row_Nodes}};

/*
  What runs now
*/
static struct {
  const char *program, *operation, *run, *under, *name, *model;
  PetscMPIInt rank, size;
  PetscBool   device;     /* the type under test computes on a device */
  char        error[700]; /* the model's, and whether it has one */
  PetscBool   modelfails;
  PetscInt    excused; /* operations in which the type under test is as wrong as the model */
  PetscInt    turn;    /* counts the operations: where to go on after a crash */
} now;

/*
  Making matrices
*/

/* Preallocates A, of any type derived from AIJ, for the pattern of R */
static inline PetscErrorCode PreallocateLike(Mat R, Mat A)
{
  PetscInt rs, re, cs, ce, *d, *o;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(R, &cs, &ce));
  PetscCall(PetscCalloc2(re - rs, &d, re - rs, &o));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt        n;
    const PetscInt *cols;

    PetscCall(MatGetRow(R, i, &n, &cols, NULL));
    for (PetscInt k = 0; k < n; k++) (cols[k] >= cs && cols[k] < ce ? d : o)[i - rs]++;
    PetscCall(MatRestoreRow(R, i, &n, &cols, NULL));
  }
  PetscCall(MatSeqAIJSetPreallocation(A, 0, d));
  PetscCall(MatMPIAIJSetPreallocation(A, 0, d, 0, o));
  PetscCall(PetscFree2(d, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the entries of R in A, all ranks their own rows; seed >= 0 gives other values on the same pattern */
static inline PetscErrorCode FillLike(Mat R, PetscInt seed, Mat A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt           n;
    const PetscInt    *cols;
    const PetscScalar *vals;

    PetscCall(MatGetRow(R, i, &n, &cols, &vals));
    if (seed < 0)
      PetscCall(MatSetValues(A, 1, &i, n, cols, vals, INSERT_VALUES));
    else
      for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(A, i, cols[k], Value(i, cols[k], seed), INSERT_VALUES));
    PetscCall(MatRestoreRow(R, i, &n, &cols, &vals));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An empty matrix of R's sizes */
static inline PetscErrorCode CreateLike(Mat R, const char *type, Mat *A)
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

/* R's entries in a matrix of the given type */
static inline PetscErrorCode MakeLike(Mat R, const char *type, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(CreateLike(R, type, A));
  PetscCall(PreallocateLike(R, *A));
  PetscCall(FillLike(R, -1, *A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The test's matrix, of the type that the operation runs on */
static inline PetscErrorCode Make(Test *t, Mat *A)
{
  return MakeLike(t->R, t->type, A);
}

static inline PetscErrorCode MakeRows(MPI_Comm comm, const Case *c, Mat *R)
{
  PetscInt     m = PETSC_DECIDE, n = PETSC_DECIDE, rs, re, len, *cols;
  PetscScalar *vals;
  PetscMPIInt  rank, size;

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
  PetscCall(MatSeqAIJSetPreallocation(*R, PetscMin(c->N, 140), NULL));
  PetscCall(MatMPIAIJSetPreallocation(*R, PetscMin(c->N, 140), NULL, PetscMin(c->N, 140), NULL));
  PetscCall(MatSetOption(*R, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*R, &rs, &re));
  PetscCall(PetscMalloc2(c->N + 20, &cols, c->N + 20, &vals));
  for (PetscInt i = rs; i < re; i++) {
    PetscCall(c->row(i, c->M, c->N, c->bs, &len, cols, vals));
    PetscCall(MatSetValues(*R, 1, &i, len, cols, vals, INSERT_VALUES));
  }
  PetscCall(PetscFree2(cols, vals));
  PetscCall(MatAssemblyBegin(*R, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*R, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with few entries a row, M x N with the given layouts, as operand in products; its own type or AIJ */
static inline PetscErrorCode MakeOperand(Test *t, PetscInt m, PetscInt n, PetscInt M, PetscInt N, const char *type, Mat *P)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreate(t->comm, P));
  PetscCall(MatSetSizes(*P, m, n, M, N));
  PetscCall(MatSetType(*P, type));
  PetscCall(MatSeqAIJSetPreallocation(*P, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*P, 3, NULL, 3, NULL));
  PetscCall(MatGetSize(*P, &M, &N));
  PetscCall(MatGetOwnershipRange(*P, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt k = 0; k < 3 && N > 0; k++) PetscCall(MatSetValue(*P, i, (i / 2 + k * k) % N, Value(i, k, 11), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*P, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Recording
*/
static inline PetscErrorCode RecordAdd(Record *r, const char *what, PetscInt where, PetscScalar value, PetscReal bound, const char *text)
{
  Item *it;

  PetscFunctionBegin;
  if (r->n == r->max) {
    Item          *more;
    const PetscInt max = 2 * r->max + 64;

    PetscCall(PetscMalloc1(max, &more));
    PetscCall(PetscArraycpy(more, r->item, r->n));
    PetscCall(PetscFree(r->item));
    r->item = more;
    r->max  = max;
  }
  it        = r->item + r->n++;
  it->what  = what;
  it->where = where;
  it->value = value;
  it->bound = bound;
  it->text  = NULL;
  if (text) PetscCall(PetscStrallocpy(text, &it->text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode RecordReset(Record *r)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < r->n; k++) PetscCall(PetscFree(r->item[k].text));
  PetscCall(PetscFree(r->item));
  r->n = r->max = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers that every implementation must give exactly */
static inline PetscErrorCode RecordInt(Record *r, const char *what, PetscInt64 value)
{
  return RecordAdd(r, what, 0, (PetscScalar)(PetscReal)value, 0, NULL);
}

static inline PetscErrorCode RecordText(Record *r, const char *what, const char *text)
{
  return RecordAdd(r, what, 0, 0, 0, text);
}

/* Numbers that may differ by rounding, as a multiple of the machine's epsilon of their size */
static inline PetscErrorCode RecordReal(Record *r, const char *what, PetscScalar value, PetscReal epsilons)
{
  return RecordAdd(r, what, 0, value, epsilons * PETSC_MACHINE_EPSILON * PetscAbsScalar(value), NULL);
}

/* Collective. Entries of a vector; with bound NULL each to epsilons of the vector's largest */
static inline PetscErrorCode RecordVec(Record *r, const char *what, Vec v, Vec bound, PetscReal epsilons)
{
  const PetscScalar *a, *b = NULL;
  PetscInt           s, e, N;
  PetscReal          norm = 0;

  PetscFunctionBegin;
  PetscCall(VecGetSize(v, &N));
  if (N && !bound) PetscCall(VecNorm(v, NORM_INFINITY, &norm));
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArrayRead(v, &a));
  if (bound) PetscCall(VecGetArrayRead(bound, &b));
  for (PetscInt i = s; i < e; i++) PetscCall(RecordAdd(r, what, i, a[i - s], b ? PetscRealPart(b[i - s]) : epsilons * PETSC_MACHINE_EPSILON * norm, NULL));
  if (bound) PetscCall(VecRestoreArrayRead(bound, &b));
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether A is of the type under test, which has another name on one rank, on several, and (PetscSpMV) on a GPU */
static inline PetscErrorCode IsType(Mat A, const char *type, PetscBool *is)
{
  const char *format;
  char        seq[64], mpi[64];

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATAIJ, is));
  if (*is) {
    *is = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscSpMVGetFormat(A, &format));
  if (format)
    PetscCall(PetscStrcmp(format, type, is));
  else {
    PetscCall(PetscSNPrintf(seq, sizeof(seq), "seq%s", type));
    PetscCall(PetscSNPrintf(mpi, sizeof(mpi), "mpi%s", type));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, is, seq, mpi, ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type as records hold it: "kept" for the type under test, "aij" for AIJ on host or device, dense alike, else the name */
static inline PetscErrorCode RecordType(Test *t, Record *r, const char *what, Mat A)
{
  MatType   type;
  PetscBool kept, seq, mpi, dense;
  Mat       Ad, Ao;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(IsType(A, t->type, &kept));
  PetscCall(PetscStrbeginswith(type, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(type, MATMPIAIJ, &mpi));
  PetscCall(PetscStrbeginswith(type, MATSEQDENSE, &dense));
  if (dense) type = MATSEQDENSE; /* on host or device */
  PetscCall(PetscStrbeginswith(type, MATMPIDENSE, &dense));
  if (dense) type = MATMPIDENSE;
  PetscCall(RecordText(r, what, kept ? "kept" : seq || mpi ? "aij" : type));
  PetscCall(MatAssembled(A, &seq));
  if (!seq) PetscFunctionReturn(PETSC_SUCCESS); /* the blocks may take their type when they are assembled */
  if (kept && mpi) {
    if (t->device) { /* there PETSc makes them by the name that they share with AIJCUSPARSE's; the next product gives them the format */
      Vec x, y;

      PetscCall(MatCreateVecs(A, &x, &y));
      PetscCall(MatMult(A, x, y));
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&y));
    }
    PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
    PetscCall(IsType(Ad, t->type, &kept));
    if (kept) PetscCall(IsType(Ao, t->type, &kept));
    /* AIJPERM loses blocks when nothing was preallocated; for ours that would be the loss of the whole format */
    PetscCall(RecordText(r, "type of the blocks", kept ? "kept" : "aij"));
  } else if (mpi)
    PetscCall(RecordText(r, "type of the blocks", "aij"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of a matrix that has MatGetRow */
static inline PetscErrorCode RecordEntries(Record *r, Mat A)
{
  PetscInt  rs, re;
  PetscReal largest = 0;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int pass = 0; pass < 2; pass++) {
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      if (pass) PetscCall(RecordAdd(r, "length of row", i, n, 0, NULL));
      for (PetscInt k = 0; k < n; k++) {
        if (!pass)
          largest = PetscMax(largest, PetscAbsScalar(vals[k]));
        else {
          PetscCall(RecordAdd(r, "column in row", i, cols[k], 0, NULL));
          PetscCall(RecordAdd(r, "entry in row", i, vals[k], 1e3 * PETSC_MACHINE_EPSILON * largest, NULL));
        }
      }
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How far y (+) A x and its transpose may be off: both of two products computed in any order, as Higham bounds them */
static inline PetscErrorCode ProductBounds(Mat A, Vec x, Vec add, PetscBool transpose, Vec bound)
{
  PetscInt           rs, re, M;
  const PetscScalar *xa, *aa = NULL;
  PetscScalar       *ba;
  PetscInt           xs;

  PetscFunctionBegin;
  PetscCall(VecSet(bound, 0.));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  if (transpose) {
    PetscCall(VecGetArrayRead(x, &xa));
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      for (PetscInt k = 0; k < n; k++)
        PetscCall(VecSetValue(bound, cols[k], 4 * PETSC_MACHINE_EPSILON * (PetscMin(M, 1000) + 4) * PetscAbsScalar(vals[k]) * PetscAbsScalar(xa[i - rs]),
                              ADD_VALUES));
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
    PetscCall(VecRestoreArrayRead(x, &xa));
    PetscCall(VecAssemblyBegin(bound));
    PetscCall(VecAssemblyEnd(bound));
  } else {
    Vec        all;
    VecScatter sc;

    /* the whole of x everywhere: simple, and the matrices are small */
    PetscCall(VecScatterCreateToAll(x, &sc, &all));
    PetscCall(VecScatterBegin(sc, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(sc, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterDestroy(&sc));
    PetscCall(VecGetArrayRead(all, &xa));
    PetscCall(VecGetArray(bound, &ba));
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      for (PetscInt k = 0; k < n; k++) ba[i - rs] += 4 * PETSC_MACHINE_EPSILON * (n + 4) * PetscAbsScalar(vals[k]) * PetscAbsScalar(xa[cols[k]]);
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
    PetscCall(VecRestoreArray(bound, &ba));
    PetscCall(VecRestoreArrayRead(all, &xa));
    PetscCall(VecDestroy(&all));
  }
  if (add) {
    PetscCall(VecGetOwnershipRange(add, &xs, &re));
    PetscCall(VecGetArrayRead(add, &aa));
    PetscCall(VecGetArray(bound, &ba));
    for (PetscInt i = 0; i < re - xs; i++) ba[i] += 64 * PETSC_MACHINE_EPSILON * PetscAbsScalar(aa[i]);
    PetscCall(VecRestoreArray(bound, &ba));
    PetscCall(VecRestoreArrayRead(add, &aa));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with A and its transpose; entries says that A has MatGetRow, which gives the bounds */
static inline PetscErrorCode RecordProducts(Record *r, Mat A, PetscBool entries)
{
  Vec       x, y, b = NULL;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecFill(x, 21));
  PetscCall(VecSet(y, PETSC_MAX_REAL)); /* what was there before must not matter */
  PetscCall(MatMult(A, x, y));
  if (entries) {
    PetscCall(VecDuplicate(y, &b));
    PetscCall(ProductBounds(A, x, NULL, PETSC_FALSE, b));
  }
  PetscCall(RecordVec(r, "A x at row", y, b, 1e4));
  PetscCall(VecDestroy(&b));
  PetscCall(MatHasOperation(A, MATOP_MULT_TRANSPOSE, &has));
  if (PetscDefined(USE_COMPLEX) && has) { /* PETSc 3.26 says that the Hermitian transpose of a matrix has it, and does not find it */
    PetscCall(PetscObjectTypeCompare((PetscObject)A, "hermitiantranspose", &has));
    has = (PetscBool)!has;
  }
  if (has) { /* all but a few of the matrices that PETSc composes of others */
    PetscCall(VecFill(y, 22));
    PetscCall(MatMultTranspose(A, y, x));
    if (entries) {
      PetscCall(VecDuplicate(x, &b));
      PetscCall(ProductBounds(A, y, NULL, PETSC_TRUE, b));
    }
    PetscCall(RecordVec(r, "A^T x at column", x, b, 1e4));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that can be seen of a matrix */
static inline PetscErrorCode RecordMat(Test *t, Record *r, const char *what, Mat A)
{
  PetscInt  M, N, m, n, rbs, cbs;
  PetscBool aij, seq, dense, baij, rows;
  MatType   type;

  PetscFunctionBegin;
  PetscCall(RecordType(t, r, what, A));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(RecordInt(r, "rows", M));
  PetscCall(RecordInt(r, "columns", N));
  PetscCall(RecordInt(r, "local rows", m));
  PetscCall(RecordInt(r, "local columns", n));
  PetscCall(MatAssembled(A, &aij));
  PetscCall(RecordInt(r, "assembled", aij));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrbeginswith(type, "seqaij", &seq));
  PetscCall(PetscStrbeginswith(type, "mpiaij", &aij));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &dense, MATSEQDENSE, MATMPIDENSE, MATSEQDENSECUDA, MATMPIDENSECUDA, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &baij, MATSEQBAIJ, MATMPIBAIJ, ""));
  if (aij || seq) { /* PETSc gives its dense results block sizes, or not, by the way it took */
    PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
    PetscCall(RecordInt(r, "block size", rbs));
    PetscCall(RecordInt(r, "column block size", cbs));
  }
  rows = (PetscBool)(aij || seq || dense || baij);
  if (rows) PetscCall(RecordEntries(r, A));
  PetscCall(RecordProducts(r, A, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of a dense operand, which MatSetValues() takes one by one */
static inline PetscErrorCode FillDense(Mat D, PetscInt columns, PetscInt seed)
{
  PetscInt s, e;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(D, &s, &e));
  for (PetscInt i = s; i < e; i++) {
    for (PetscInt j = 0; j < columns; j++) PetscCall(MatSetValue(D, i, j, Value(i, j, seed), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product, so that what A stores for products exists before an operation changes A */
static inline PetscErrorCode Touch(Mat A)
{
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecFill(x, 31));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Running
*/
static inline void Report(const char *text)
{
  fprintf(stderr, "FAILED %s: operation %s, type %s, matrix %s, rank %d of %d: %s\n", now.program, now.operation, now.under, now.name, now.rank, now.size,
          text);
  fflush(stderr);
}

/* What the type under test has in common with the model on a device: no failure, but to be known */
static inline void Note(const char *text)
{
  fprintf(stderr, "note, %s: operation %s, type %s, matrix %s, rank %d of %d: %s\n", now.program, now.operation, now.under, now.name, now.rank, now.size, text);
  fflush(stderr);
}

static inline PetscBool RunsModel(void)
{
  return (PetscBool)(now.device && now.run == now.model);
}

/* Says which operation failed, once, where PETSc would print a stack */
static PetscErrorCode OnError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  char text[1024];

  if (p == PETSC_ERROR_INITIAL) {
    (void)PetscSNPrintf(text, sizeof(text), "running on %s: error %d in %s (%s:%d): %s", now.run ? now.run : "?", (int)n, fun ? fun : "?", file ? file : "?",
                        line, mess ? mess : "");
    if (RunsModel()) {
      if (!now.error[0]) (void)PetscStrncpy(now.error, text, sizeof(now.error));
    } else
      Report(text);
  }
  return n;
}

/* A crash must say where, too */
static PetscErrorCode OnSignal(int sig, void *ctx)
{
  char text[128];

  (void)PetscSNPrintf(text, sizeof(text), "turn %" PetscInt_FMT ", running on %s: signal %d", now.turn, now.run ? now.run : "?", sig);
  Report(text);
  return PetscSignalHandlerDefault(sig, ctx);
}

/* So must a test that is ended from outside, or nobody could tell a hang from a slow one (PETSc leaves this signal to Open MPI) */
static void OnTerm(int sig)
{
  Report("ended here");
  _exit(128 + sig);
}

/* What this process cannot go on after ends all ranks at once; it is reported like a crash */
static inline void Abandon(const char *why)
{
  char text[1024];

  (void)PetscSNPrintf(text, sizeof(text), "turn %" PetscInt_FMT ", running on %s: signal 0: %s", now.turn, now.run ? now.run : "?", why);
  Report(text);
  MPI_Abort(PETSC_COMM_WORLD, 60);
}

/* Collective. After a call that may have failed: whether it did. Where it did on some ranks and not on others, the program ends */
static inline PetscErrorCode Agree(PetscErrorCode ierr, PetscBool *any)
{
  char text[900];

  PetscFunctionBegin;
  if (!RanksAgree(ierr, any)) {
    (void)PetscSNPrintf(text, sizeof(text), "error %d here, and not on all ranks. %s", (int)ierr, now.error);
    Abandon(text);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After an error: some of CUDA's leave the device unusable to this process */
static inline PetscErrorCode CheckDevice(void)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (now.device) {
    const cudaError_t error = cudaDeviceSynchronize();
    char              text[256];

    if (error != cudaSuccess) {
      (void)PetscSNPrintf(text, sizeof(text), "the device is lost: %s", cudaGetErrorString(error));
      Abandon(text);
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether two records hold the same result there; the bound is the first one's */
static inline PetscErrorCode SameItem(const Item *x, const Item *y, PetscBool *same)
{
  PetscFunctionBegin;
  PetscCall(PetscStrcmp(x->what, y->what, same));
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  if (x->text || y->text)
    PetscCall(PetscStrcmp(x->text, y->text, same));
  else /* infinities equal themselves, and NaN is NaN */
    *same = (PetscBool)(PetscAbsScalar(x->value - y->value) <= x->bound || x->value == y->value || (PetscIsNanScalar(x->value) && PetscIsNanScalar(y->value)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The records of AIJ, of the model (or NULL) and of the type under test; whatever is wrong is told, three times at most */
static inline PetscErrorCode Compare(Record *a, Record *p, Record *u, PetscBool strict, PetscInt *bad)
{
  char            text[512];
  PetscInt        told = 0, excused = 0;
  const PetscBool lenient = (PetscBool)(now.device && p && !strict);

  PetscFunctionBegin;
  if (a->n != u->n) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " results where AIJ gives %" PetscInt_FMT, u->n, a->n));
    if (lenient && p->n == u->n) {
      if (!excused++) Note(text);
    } else {
      Report(text);
      told++;
    }
  }
  for (PetscInt k = 0; k < PetscMin(a->n, u->n) && told < 3; k++) {
    const Item *x = a->item + k, *y = u->item + k;
    PetscBool   same, model         = PETSC_FALSE;

    PetscCall(SameItem(x, y, &same));
    if (x->text && y->text && p && k < p->n && p->item[k].text) PetscCall(PetscStrcmp(p->item[k].text, "kept", &model));
    if (same && !model) continue;
    if (x->text && y->text) {
      PetscBool aij, kept;

      PetscCall(PetscStrcmp(x->text, "aij", &aij));
      PetscCall(PetscStrcmp(y->text, "kept", &kept));
      if (kept && (aij || same)) continue;
      if (model)
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s: type not kept (now '%s'); %s keeps its type here", x->what, y->text, now.model));
      else
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s: '%s', with AIJ '%s'", x->what, y->text, x->text));
    } else {
      PetscCall(PetscStrcmp(x->what, y->what, &same));
      if (!same || x->text || y->text)
        PetscCall(PetscSNPrintf(text, sizeof(text), "result %" PetscInt_FMT " is '%s', with AIJ '%s'", k, y->what, x->what));
      else
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s %" PetscInt_FMT ": %.17g%+.3gi, with AIJ %.17g%+.3gi, off by %g where %g is allowed", x->what, x->where,
                                (double)PetscRealPart(y->value), (double)PetscImaginaryPart(y->value), (double)PetscRealPart(x->value),
                                (double)PetscImaginaryPart(x->value), (double)PetscAbsScalar(x->value - y->value), (double)x->bound));
    }
    if (lenient && !model && k < p->n) {
      PetscCall(SameItem(p->item + k, y, &same));
      if (same) {
        if (!excused++) Note(text);
        continue;
      }
    }
    Report(text);
    told++;
  }
  if (told) (*bad)++;
  if (excused) now.excused++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the model must say what to make of a record: a number is not AIJ's, or a type was not kept */
static inline PetscErrorCode NeedsModel(MPI_Comm comm, const Record *a, const Record *u, PetscBool *needs)
{
  int any = a->n != u->n;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < PetscMin(a->n, u->n) && !any; k++) {
    PetscBool same, kept = PETSC_FALSE, aij = PETSC_FALSE;

    PetscCall(SameItem(a->item + k, u->item + k, &same));
    if (u->item[k].text) PetscCall(PetscStrcmp(u->item[k].text, "kept", &kept));
    if (u->item[k].text) PetscCall(PetscStrcmp(u->item[k].text, "aij", &aij));
    if (kept ? !a->item[k].text : (!same || aij)) any = 1;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm));
  *needs = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Listed(const char *name, PetscInt n, char *list[], PetscBool *in)
{
  PetscFunctionBegin;
  *in = PETSC_FALSE;
  for (PetscInt k = 0; k < n && !*in; k++) PetscCall(PetscStrcmp(name, list[k], in));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Properties of a matrix from a file; it is loaded twice if the ranks do not matter, so cheap is better than clever */
static inline PetscErrorCode MakeFile(MPI_Comm comm, Case *c, Mat *R)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, R));
  PetscCall(MatLoadMatrixMarket(comm, c->file, *R));
  PetscCall(MatGetSize(*R, &c->M, &c->N));
  c->bs  = 1;
  c->has = FULL | BYROW | (c->M == c->N ? SQUARE : 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lists and numbers of the command line that pick operations */
typedef struct {
  PetscInt  nonly, nskip, part[2]; /* the share of the operations to run: number, of how many */
  PetscInt  from, without;         /* the turn to begin with, and one to be done without the model */
  char     *only[64], *skip[64];
  PetscBool verbose, model;
  PetscInt  bad, count;
} Selection;

static inline PetscErrorCode RunCase(const Operation *ops, const Case *c, Mat R, const char *type, int want, Selection *s)
{
  Test      t;
  Record    rec[3];
  PetscBool in, itself;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, now.model, &itself));
  t.comm = PETSC_COMM_WORLD;
  t.size = now.size;
  t.rank = now.rank;
  t.c    = c;
  t.R    = R;
  for (const Operation *op = ops; op->name; op++) {
    const PetscBool model   = (PetscBool)(s->model && !(op->needs & (now.device ? NOCUDA : NOPERM)));
    const char     *types[] = {MATAIJ, model || itself ? now.model : NULL, itself ? NULL : type};
    const int       order[] = {0, 2, 1}; /* the model last: where all is right, nobody asks it */
    int             needs = op->needs & (SQUARE | SOLVE | SPD | BLOCKS | FULL | BYROW), failed = 0;
    PetscBool       any;

    if ((needs & c->has) != needs || (op->needs & SEQ && now.size > 1) || (op->needs & PAR && now.size == 1)) continue;
    if ((op->needs & ONCE && !(want & ONCE)) || (!model && itself) || (op->needs & DEVICE && !now.device) || (op->needs & ONHOST && now.device)) continue;
    PetscCall(Listed(op->name, s->nonly, s->only, &in));
    if ((s->nonly || op->needs & ALONE) && !in) continue;
    PetscCall(Listed(op->name, s->nskip, s->skip, &in));
    if (in || now.turn++ % s->part[1] != s->part[0] || now.turn <= s->from) continue;
    if (now.turn == s->without) types[1] = NULL;
    now.operation  = op->name;
    now.name       = op->needs & ONCE ? "its own" : c->name;
    now.modelfails = PETSC_FALSE;
    now.error[0]   = 0;
    t.arg          = op->arg;
    if (s->verbose) PetscCall(PetscPrintf(t.comm, "%s %s\n", op->name, now.name));
    PetscCall(PetscMemzero(rec, sizeof(rec)));
    for (int q = 0; q < 3; q++) {
      const int k = order[q];

      if (!types[k]) continue;
      if (k == 1 && !itself && !failed) {
        PetscCall(NeedsModel(t.comm, &rec[0], &rec[2], &in));
        if (!in) {
          types[1] = NULL;
          continue;
        }
      }
      t.type = now.run = types[k];
      t.device         = (PetscBool)(k && now.device);
      PetscCall(Agree(op->run(&t, &rec[k]), &any));
      if (any) PetscCall(CheckDevice());
      if (any && RunsModel()) {
        now.modelfails = PETSC_TRUE;
        if (now.error[0]) Note(now.error);
      } else if (any) {
        failed = 1;
        if (k == 0 || !now.device) break; /* on a device the model may excuse it */
      }
    }
    now.run = NULL;
    s->count++;
    if (failed || (now.modelfails && itself)) {
      if (now.modelfails && (itself || !(op->needs & STRICT))) {
        if (!itself) Note("fails as the model does");
        now.excused++;
      } else
        s->bad++;
    } else
      PetscCall(
          Compare(&rec[0], types[1] && !now.modelfails ? &rec[1] : NULL, itself ? &rec[1] : &rec[2], (PetscBool)(op->needs & STRICT && !itself), &s->bad));
    for (int k = 0; k < 3; k++) PetscCall(RecordReset(&rec[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether matrices of a type compute on a device here, as the type sees it */
static inline PetscErrorCode OnDevice(const char *type, PetscBool *device)
{
  Mat     A;
  MatType name;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 1, 1, 1, 1));
  PetscCall(MatSetType(A, type));
  PetscCall(MatGetType(A, &name));
  PetscCall(PetscStrbeginswith(name, MATSEQAIJCUSPARSE, device));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode RunAll(const char *program, const Operation *ops, int size, PetscInt *bad)
{
  char      type[64] = "sellp", expect[16] = "", *names[64], *files[64];
  PetscInt  nnames = 64, nfiles = 64, two = 2;
  PetscBool set, in, device               = PETSC_FALSE, where;
  int       want = ONCE;
  Selection s    = {.nonly = 64, .nskip = 64, .part = {0, 1}, .without = -1, .model = PETSC_TRUE};

  PetscFunctionBegin;
  PetscCall(PetscSpMVInitializePackage());
  now.program = program;
  now.under   = type;
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &now.size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &now.rank));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expect, sizeof(expect), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &s.verbose, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-part", s.part, &two, &set));
  PetscCheck(!set || (two == 2 && s.part[0] >= 0 && s.part[1] > s.part[0]), PETSC_COMM_WORLD, PETSC_ERR_USER, "-part takes k,n with 0 <= k < n");
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-model", &s.model, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &s.from, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-without", &s.without, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-ops", s.only, &s.nonly, &set));
  if (!set) s.nonly = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-skip", s.skip, &s.nskip, &set));
  if (!set) s.nskip = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", names, &nnames, &set));
  if (!set) nnames = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-files", files, &nfiles, &set));
  if (!set) nfiles = 0;
  PetscCall(OnDevice(type, &device));
  now.device = device;
  PetscCall(PetscStrcmp(expect, device ? "device" : "host", &where));
  PetscCheck(where || !expect[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-expect %s, but %s computes on the %s here", expect, type, device ? "device" : "host");
  now.model   = device ? MATAIJCUSPARSE : MATAIJPERM;
  now.excused = now.turn = 0;
  PetscCall(PetscPushErrorHandler(OnError, NULL));
  PetscCall(PetscPushSignalHandler(OnSignal, NULL));
  signal(SIGTERM, OnTerm);
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    Mat R;

    PetscCall(Listed(cases[k].name, nnames, names, &in));
    if (nnames ? !in : (nfiles || (cases[k].has & LARGE) != size)) continue;
    PetscCall(MakeRows(PETSC_COMM_WORLD, &cases[k], &R));
    PetscCall(RunCase(ops, &cases[k], R, type, want, &s));
    PetscCall(MatDestroy(&R));
    want = 0;
  }
  for (PetscInt k = 0; k < nfiles; k++) {
    Case        c;
    Mat         R;
    const char *base = strrchr(files[k], '/');

    PetscCall(PetscMemzero(&c, sizeof(c)));
    c.name = base ? base + 1 : files[k];
    c.file = files[k];
    PetscCall(MakeFile(PETSC_COMM_WORLD, &c, &R));
    PetscCall(RunCase(ops, &c, R, type, 0, &s));
    PetscCall(MatDestroy(&R));
  }
  for (PetscInt k = 0; k < s.nonly; k++) PetscCall(PetscFree(s.only[k]));
  for (PetscInt k = 0; k < s.nskip; k++) PetscCall(PetscFree(s.skip[k]));
  for (PetscInt k = 0; k < nnames; k++) PetscCall(PetscFree(names[k]));
  for (PetscInt k = 0; k < nfiles; k++) PetscCall(PetscFree(files[k]));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &s.bad, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &now.excused, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCheck(s.count || s.from, PETSC_COMM_WORLD, PETSC_ERR_USER, "no operation ran: see -ops, -cases, -type");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: type %s on the %s, %d ranks: %" PetscInt_FMT " operations on matrices, %" PetscInt_FMT " failed", program, type,
                        device ? "device" : "host", now.size, s.count, s.bad));
  if (now.excused) PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", %" PetscInt_FMT " as wrong as %s", now.excused, now.model));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  *bad = s.bad;
  signal(SIGTERM, SIG_DFL);
  PetscCall(PetscPopSignalHandler());
  PetscCall(PetscPopErrorHandler());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The program: options -type T, -expect host|device, -ops a,b, -skip a,b, -cases a,b, -files a.mtx,b.mtx, -part k,n (every n-th
  operation, from k), -model <bool>, -verbose; after a crash in turn t, -from t leaves out what has run, and -from t-1 -without t tries that one
  without the model; size is 0 or LARGE
*/
static inline int Suite(int argc, char **argv, const char *program, const Operation *ops, int size)
{
  PetscInt       bad = 0;
  PetscErrorCode ierr;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  ierr = RunAll(program, ops, size, &bad);
  if (ierr) MPI_Abort(PETSC_COMM_WORLD, 3); /* other ranks may wait for this one */
  PetscCall(PetscFinalize());
  return bad ? 1 : 0;
}
