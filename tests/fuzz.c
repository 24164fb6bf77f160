/*
  A differential fuzzer for sellp and evchyb. A case is a random matrix, random options and a random sequence of operations, done with a plain AIJ matrix and with
  one of the type under test. After each step the two must have the same entries, the same error codes and the same numbers, and the products of
  each must be the sums of its entries, row by row.

  What AIJ itself cannot do, or does wrong, is left out where an operation says so; a failure while running on aij is PETSc's own.
*/
#include "sums.h"
#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease() */

/* One of the two matrices, another one of the same or another shape, and what was seen in a step */
typedef struct {
  const char *type;
  PetscBool   under;
  Mat         A, B;
  Record      seen;
} Actor;

static struct {
  Shape     shape;
  Build     way;
  char      prefix[16];
  PetscBool loose; /* entries may differ by rounding from now on: the order of a sum depends on messages, or on the device */
  char      option[16][64];
  int       noptions;
  PetscBool coo; /* assembled by COO on several ranks: see SetValues() */
} now_;

/* What one can do to the matrix; needs says when */
enum {
  F_SQUARE   = 1,  /* and rows dealt out as columns */
  F_FULL     = 2,  /* rows and columns */
  F_SEQ      = 4,  /* one rank only */
  F_FINITE   = 8,  /* no entry is infinite, undefined or close to overflow */
  F_DOMINANT = 16, /* the diagonal dominates */
  F_NEW      = 32  /* takes new entries */
};

typedef struct {
  const char *name;
  PetscErrorCode (*run)(Actor *);
  int needs, weight;
} FuzzOp;

/*
  Records
*/
static PetscErrorCode SeeInt(Actor *a, const char *what, PetscInt64 value)
{
  return RecordInt(&a->seen, what, value);
}

/* A number that both types compute with the same code */
static PetscErrorCode SeeScalar(Actor *a, const char *what, PetscInt where, PetscScalar value, PetscReal epsilons)
{
  return RecordAdd(&a->seen, what, where, value, (now_.loose ? 1e6 + epsilons : epsilons) * PETSC_MACHINE_EPSILON * PetscAbsScalar(value), NULL);
}

static PetscErrorCode SeeVec(Actor *a, const char *what, Vec v, PetscReal epsilons)
{
  PetscInt           s, e;
  PetscReal          largest = 0;
  const PetscScalar *x;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArrayRead(v, &x));
  for (PetscInt i = 0; i < e - s; i++) largest = PetscIsInfOrNanScalar(x[i]) ? largest : PetscMax(largest, PetscAbsScalar(x[i]));
  for (PetscInt i = s; i < e; i++)
    PetscCall(RecordAdd(&a->seen, what, i, x[i - s], (now_.loose ? 1e6 + epsilons : epsilons) * PETSC_MACHINE_EPSILON * largest, NULL));
  PetscCall(VecRestoreArrayRead(v, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SeeRows(Actor *a, const LocalRows *r)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < r->m; i++) {
    PetscReal largest = 0;

    PetscCall(RecordAdd(&a->seen, "length of row", r->begin + i, r->i[i + 1] - r->i[i], 0, NULL));
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) largest = PetscIsInfOrNanScalar(r->v[k]) ? largest : PetscMax(largest, PetscAbsScalar(r->v[k]));
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) {
      PetscCall(RecordAdd(&a->seen, "column in row", r->begin + i, r->j[k], 0, NULL));
      PetscCall(RecordAdd(&a->seen, "entry in row", r->begin + i, r->v[k], now_.loose ? 1e6 * PETSC_MACHINE_EPSILON * largest : 0, NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SeeLayout(Actor *a, Mat A)
{
  PetscInt M, N, m, n, rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(SeeInt(a, "rows", M));
  PetscCall(SeeInt(a, "columns", N));
  PetscCall(SeeInt(a, "local rows", m));
  PetscCall(SeeInt(a, "local columns", n));
  PetscCall(SeeInt(a, "block size", rbs));
  PetscCall(SeeInt(a, "column block size", cbs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All of a matrix of AIJ's kind: sizes, entries, and some products */
static PetscErrorCode SeeMat(Actor *a, const char *what, Mat A, PetscInt products)
{
  LocalRows r;

  PetscFunctionBegin;
  PetscCall(SeeLayout(a, A));
  PetscCall(LocalRowsOfMat(A, &r));
  PetscCall(SeeRows(a, &r));
  for (PetscInt k = 0; k < products; k++) PetscCall(ProductCheck(A, &r, what));
  PetscCall(LocalRowsDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A call that AIJ may refuse: the error is noted, and both go on. All ranks learn whether there was one */
#define Try(a, what, call)                                           \
  do {                                                               \
    PetscErrorCode ierr_;                                            \
    FuzzLeaksIgnore(PETSC_TRUE);                                     \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    ierr_ = (call);                                                  \
    PetscCall(PetscPopErrorHandler());                               \
    FuzzLeaksIgnore(PETSC_FALSE);                                    \
    PetscCall(SeeInt(a, what, (PetscInt64)ierr_));                   \
    failed = ierr_ ? 1 : 0;                                          \
    PetscCall(FuzzAgree(&failed));                                   \
  } while (0)

/* The format must survive where PETSc makes a matrix of the same type */
static PetscErrorCode HasFormat(Actor *a, Mat A, const char *what)
{
  const char *format;
  PetscBool   same = PETSC_TRUE;

  PetscFunctionBegin;
  if (a->under) {
    PetscCall(IsType(A, a->type, &same));
    PetscCall(PetscSpMVGetFormat(A, &format));
    if (!same) FuzzReport("%s has lost the format: it is of type %s", what, ((PetscObject)A)->type_name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *C takes the place of A, or of B. What PETSc has made AIJ is made the type under test again */
static PetscErrorCode Adopt(Actor *a, Mat *C)
{
  Mat      *place = Chance(60) ? &a->A : &a->B;
  PetscBool is    = PETSC_TRUE;

  PetscFunctionBegin;
  if (a->under) PetscCall(IsType(*C, a->type, &is));
  if (!is) PetscCall(MatConvert(*C, a->type, MAT_INPLACE_MATRIX, C));
  PetscCall(MatDestroy(place));
  *place = *C;
  *C     = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Or C is destroyed */
static PetscErrorCode AdoptOrDestroy(Actor *a, Mat *C)
{
  PetscFunctionBegin;
  if (Chance(50)) {
    FuzzLog(" kept");
    PetscCall(Adopt(a, C));
  }
  PetscCall(MatDestroy(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with the given layouts, few entries a row: of the type, or AIJ */
static PetscErrorCode Operand(Actor *a, PetscInt m, PetscInt n, PetscInt M, PetscInt N, Mat *B)
{
  const PetscBool plain = Chance(30);
  Shape           s     = {.comm = fuzz.comm, .rank = fuzz.rank, .size = fuzz.size, .M = M, .N = N, .m = m, .n = n, .bs = 1};

  PetscFunctionBegin;
  PetscCall(PetscSplitOwnership(fuzz.comm, &s.m, &s.M));
  PetscCall(PetscSplitOwnership(fuzz.comm, &s.n, &s.N));
  ShapeDraw(&s, PETSC_TRUE);
  if (s.values == VALUES_WIDE || s.values == VALUES_DENORMAL) s.values = VALUES_RANDOM;
  FuzzLog(" with %s %s", PatternNames[s.pattern], plain ? "aij" : "own");
  PetscCall(ShapeBuild(&s, plain ? MATAIJ : a->type, plain ? NULL : now_.prefix, (Build)draw(BUILD_CONVERT), B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperandLike(Actor *a, Mat A, Mat *B)
{
  PetscInt M, N, m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(Operand(a, m, n, M, N, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product, so that what the type stores is there before something changes */
static PetscErrorCode TouchSome(Mat A)
{
  PetscFunctionBegin;
  if (Chance(50)) PetscCall(Touch(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Operations: entries
*/

/*
  Entries that are there, or new ones, in rows of this rank or of others; no entry is set by two ranks. After COO assembly on several ranks an MPIAIJ matrix
  (PETSc 3.18) writes past the end of its arrays when it gets new entries, misses diagonal entries in MatZeroRowsColumns(), and does not convert to BAIJ with blocks
*/
static PetscErrorCode SetValues(Actor *a)
{
  const PetscInt   count = draw(30), salt = draw(100000), away = Chance(40) && !now_.coo;
  const PetscBool  fresh = (PetscBool)(Chance(50) && !now_.coo), allowed = Chance(70), ignore = Chance(10), again = Chance(30);
  const InsertMode mode = Chance(50) ? ADD_VALUES : INSERT_VALUES;
  PetscInt         M, N, rs, re;
  Mat              A = a->A;
  LocalRows        r;
  int              failed;

  PetscFunctionBegin;
  FuzzLog(" %" PetscInt_FMT " %s%s%s%s%s", count, mode == ADD_VALUES ? "added" : "inserted", fresh ? " new" : "", allowed ? "" : " not allowed",
          away ? " anywhere" : "", ignore ? " ignored" : "");
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, (PetscBool)!allowed));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, (PetscBool)!ignore));
  for (int pass = 0; pass <= (int)again; pass++) {
    PetscErrorCode ierr = PETSC_SUCCESS;

    PetscCall(LocalRowsOfMat(A, &r));
    for (PetscInt k = 0; k < count && !ierr; k++) {
      const PetscReal   u   = HashUnit(k, pass, salt + 1);
      const PetscInt    row = away && allowed ? (PetscInt)(M * u) : rs + (PetscInt)((re - rs) * HashUnit(k, fuzz.rank, salt));
      PetscInt          col = (PetscInt)(N * HashUnit(k, pass + 2, salt + 2));
      const PetscScalar v   = (PetscReal)((PetscInt)(64 * u) - 20) / 8;

      if (row >= re && !away) continue;
      if (!fresh && row >= rs && row < re) {
        const PetscInt n = r.i[row - rs + 1] - r.i[row - rs];

        if (!n) continue;
        col = r.j[r.i[row - rs] + k % n];
      }
      if (row >= M || col >= N || (away && (row + col) % fuzz.size != fuzz.rank)) continue;
      FuzzLeaksIgnore(PETSC_TRUE);
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = MatSetValue(A, row, col, v, mode);
      PetscCall(PetscPopErrorHandler());
      FuzzLeaksIgnore(PETSC_FALSE);
    }
    PetscCall(LocalRowsDestroy(&r));
    PetscCall(SeeInt(a, "error of MatSetValues", (PetscInt64)ierr));
    Try(a, "error of MatAssemblyBegin", MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    Try(a, "error of MatAssemblyEnd", MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    if (again) PetscCall(TouchSome(A));
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All entries anew, by MatSetValues, COO or preallocation */
static PetscErrorCode Refill(Actor *a)
{
  Shape          s;
  const PetscInt way = draw(4);
  LocalRows      r;
  PetscInt       M, N, m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  s = (Shape){.comm = fuzz.comm, .rank = fuzz.rank, .size = fuzz.size, .M = M, .N = N, .m = m, .n = n, .bs = 1};
  ShapeDraw(&s, PETSC_FALSE);
  PetscCall(MatGetOwnershipRange(a->A, &n, NULL));
  if (way < 2)
    PetscCall(LocalRowsOfMat(a->A, &r)); /* the same pattern, other values */
  else
    PetscCall(LocalRowsOfShape(&s, n, &r));
  FuzzLog(way < 2 ? " of the same pattern" : " of another pattern");
  for (PetscInt k = 0; k < r.i[r.m]; k++) r.v[k] = ShapeValue(&s, k, n);
  PetscCall(TouchSome(a->A));
  if (way == 0) {
    PetscCall(MatZeroEntries(a->A));
    PetscCall(SetLocalRows(a->A, &r));
  } else if (way == 1 || way == 2) {
    FuzzLog(" COO");
    PetscCall(SetLocalRowsCOO(a->A, &r));
    if (fuzz.size > 1) now_.coo = PETSC_TRUE;
  } else {
    PetscCall(PreallocateLocalRows(a->A, &r));
    PetscCall(SetLocalRows(a->A, &r));
  }
  PetscCall(LocalRowsDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroEntries(Actor *a)
{
  return MatZeroEntries(a->A);
}

/*
  LocalRows to zero, any rank's. Only rows that have a diagonal entry: PETSc (3.18 to 3.26) writes into memory that it has freed when an empty row needs more room for its
  diagonal, and one rank alone refuses a missing diagonal where the pattern is kept; with columns, a missing diagonal entry in any row
*/
static PetscErrorCode ZeroRows(Actor *a)
{
  const PetscInt  salt = draw(10000), count = draw(8), kind = draw(2);
  const PetscBool keep = Chance(50), vectors = Chance(50);
  PetscInt        M, rows[8], n = 0, *has, both = draw(now_.coo ? 1 : 2);
  LocalRows       r;
  Vec             x = NULL, b = NULL;

  PetscFunctionBegin;
  FuzzLog("%s%s%s", both ? " and columns if the diagonal is full" : "", keep ? " keep the pattern" : "", vectors ? " vectors" : "");
  PetscCall(MatGetSize(a->A, &M, NULL));
  PetscCall(PetscCalloc1(M, &has));
  PetscCall(LocalRowsOfMat(a->A, &r));
  for (PetscInt i = 0; i < r.m; i++) {
    for (PetscInt k = r.i[i]; k < r.i[i + 1]; k++) has[r.begin + i] |= r.j[k] == r.begin + i;
  }
  PetscCall(LocalRowsDestroy(&r));
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, has, (int)M, MPIU_INT, MPI_MAX, fuzz.comm));
  for (PetscInt i = 0; i < M; i++) both = both && has[i];
  for (PetscInt k = 0; k < count; k++) {
    rows[n] = (PetscInt)(M * HashUnit(k, 0, salt));
    if (k % fuzz.size == fuzz.rank && has[rows[n]]) n++;
  }
  PetscCall(PetscFree(has));
  PetscCall(PetscSortRemoveDupsInt(&n, rows));
  PetscCall(MatCreateVecs(a->A, &x, &b));
  PetscCall(VecFill(x, salt));
  PetscCall(VecFill(b, salt + 1));
  PetscCall(MatSetOption(a->A, MAT_KEEP_NONZERO_PATTERN, keep));
  PetscCall(TouchSome(a->A));
  if (both)
    PetscCall(MatZeroRowsColumns(a->A, n, rows, kind ? 1.5 : 0., vectors ? x : NULL, vectors ? b : NULL));
  else
    PetscCall(MatZeroRows(a->A, n, rows, kind ? 1.5 : 0., vectors ? x : NULL, vectors ? b : NULL));
  PetscCall(SeeVec(a, "right-hand side", b, 100));
  PetscCall(MatSetOption(a->A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscScalar Factor(void)
{
  const PetscScalar factors[] = {0., 1., -1., 0.5, 2., 1e-3, ScalarOf(0.7, 0.4)};

  return factors[draw(7)];
}

static PetscErrorCode Scale(Actor *a)
{
  const PetscScalar f = Factor();

  PetscFunctionBegin;
  FuzzLog(" by %g", (double)PetscRealPart(f));
  PetscCall(MatScale(a->A, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On several ranks, MatDiagonalSet() leaves MPIAIJ's buffer for MatGetRow() too small for the entries that it has made, see LocalRowsOfMat() */
static PetscErrorCode Reassemble(Mat A)
{
  PetscFunctionBegin;
  if (fuzz.size > 1) {
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shift(Actor *a)
{
  const PetscScalar f = Factor();

  PetscFunctionBegin;
  FuzzLog(" by %g", (double)PetscRealPart(f));
  PetscCall(MatSetOption(a->A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatShift(a->A, f));
  PetscCall(Reassemble(a->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonals(Actor *a)
{
  const PetscInt kind = draw(5), salt = draw(1000);
  PetscBool      square;
  Vec            l, r;

  PetscFunctionBegin;
  PetscCall(SameLayouts(a->A, a->A, PETSC_TRUE, &square));
  PetscCall(MatCreateVecs(a->A, &r, &l));
  PetscCall(VecFill(l, salt));
  PetscCall(VecFill(r, salt + 1));
  if (now_.coo) square = PETSC_FALSE;
  FuzzLog(" %s", kind < 3 || !square ? "scale" : "set");
  if (kind < 3 || !square)
    PetscCall(MatDiagonalScale(a->A, kind == 1 ? NULL : l, kind == 2 ? NULL : r));
  else {
    PetscCall(MatSetOption(a->A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatDiagonalSet(a->A, l, kind == 3 ? INSERT_VALUES : ADD_VALUES));
    PetscCall(Reassemble(a->A));
  }
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Parts(Actor *a)
{
  const PetscInt kind = draw(4);

  PetscFunctionBegin;
  if (kind == 0) PetscCall(MatConjugate(a->A));
  if (kind == 1) PetscCall(MatRealPart(a->A));
  if (kind == 2 && PetscDefined(USE_COMPLEX)) PetscCall(MatImaginaryPart(a->A));
#if PETSC_VERSION_LT(3, 20, 0)
  if (kind == 3) PetscCall(MatChop(a->A, 0.1));
#else
  if (kind == 3) PetscCall(MatFilter(a->A, 0.1, PETSC_FALSE, PETSC_FALSE));
#endif
  FuzzLog(" kind %" PetscInt_FMT, kind);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = a x + y of matrices, where x has the same pattern, a part of it, or another */
static PetscErrorCode Axpy(Actor *a)
{
  const PetscInt    kind = draw(4);
  const PetscBool   ayp  = Chance(30);
  const PetscScalar f    = Factor();
  MatStructure      str  = DIFFERENT_NONZERO_PATTERN;
  Mat               X;

  PetscFunctionBegin;
  FuzzLog(" %s %s", ayp ? "ayp" : "axp", ((const char *[]){"same", "same, said to be different", "subset", "different"})[kind]);
  if (kind == 3)
    PetscCall(OperandLike(a, a->A, &X));
  else {
    PetscCall(MatDuplicate(a->A, MAT_COPY_VALUES, &X));
    PetscCall(MatScale(X, 0.75));
    if (kind == 0) str = SAME_NONZERO_PATTERN;
    if (kind == 2) str = SUBSET_NONZERO_PATTERN;
    if (Chance(30)) PetscCall(MatConvert(X, MATAIJ, MAT_INPLACE_MATRIX, &X));
  }
  PetscCall(TouchSome(a->A));
  if (Chance(30)) PetscCall(Touch(X));
  if (ayp)
    PetscCall(MatAYPX(a->A, f, X, str));
  else
    PetscCall(MatAXPY(a->A, f, X, str));
  PetscCall(HasFormat(a, a->A, "the sum"));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy(Actor *a)
{
  const PetscInt kind = draw(now_.coo ? 2 : 3);
  Mat            X;

  PetscFunctionBegin;
  if (kind == 0) { /* the same pattern, there and back */
    PetscCall(MatDuplicate(a->A, MAT_DO_NOT_COPY_VALUES, &X));
    PetscCall(TouchSome(X));
    PetscCall(MatCopy(a->A, X, SAME_NONZERO_PATTERN));
    PetscCall(MatScale(a->A, 0.));
    PetscCall(TouchSome(a->A));
    PetscCall(MatCopy(X, a->A, SAME_NONZERO_PATTERN));
  } else {
    FuzzLog(" of another pattern");
    PetscCall(OperandLike(a, a->A, &X));
    PetscCall(TouchSome(kind == 1 ? X : a->A));
    PetscCall(MatSetOption(kind == 1 ? X : a->A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    if (kind == 1)
      PetscCall(MatCopy(a->A, X, DIFFERENT_NONZERO_PATTERN));
    else
      PetscCall(MatCopy(X, a->A, DIFFERENT_NONZERO_PATTERN));
  }
  PetscCall(SeeMat(a, "the other matrix of MatCopy", X, 1));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Duplicate(Actor *a)
{
  const MatDuplicateOption op[] = {MAT_COPY_VALUES, MAT_DO_NOT_COPY_VALUES, MAT_SHARE_NONZERO_PATTERN};
  const PetscInt           kind = draw(3);
  Mat                      X;

  PetscFunctionBegin;
  FuzzLog(" %s", ((const char *[]){"with values", "without", "sharing the pattern"})[kind]);
  PetscCall(TouchSome(a->A));
  PetscCall(MatDuplicate(a->A, op[kind], &X));
  PetscCall(HasFormat(a, X, "the duplicate"));
  PetscCall(SeeMat(a, "the duplicate", X, 1));
  PetscCall(MatScale(X, 3.));
  PetscCall(SeeMat(a, "the original", a->A, 1));
  PetscCall(AdoptOrDestroy(a, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a copy that has not been stored before: PETSc (3.18 to 3.26) keeps the room that it took first, although the pattern may have grown since */
static PetscErrorCode StoreValues(Actor *a)
{
  Mat X;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(a->A, MAT_COPY_VALUES, &X));
  PetscCall(MatSetOption(X, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(X));
  PetscCall(TouchSome(X));
  PetscCall(MatScale(X, Factor()));
  PetscCall(TouchSome(X));
  PetscCall(MatRetrieveValues(X));
  PetscCall(SeeMat(a, "the matrix with its values retrieved", X, 1));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of AIJ's kind of matrix: itself on one rank */
static PetscErrorCode BlocksOf(Mat A, Mat block[2])
{
  PetscFunctionBegin;
  block[0] = block[1] = A;
  if (fuzz.size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Writes into the array of values, in each of the ways that PETSc has */
static PetscErrorCode Arrays(Actor *a)
{
  const PetscInt kind = draw(4), which = draw(2), salt = draw(1000);
  Mat            block[2], A;
  MatInfo        info;
  PetscScalar   *v;
  PetscInt       nz;

  PetscFunctionBegin;
  PetscCall(TouchSome(a->A));
  PetscCall(BlocksOf(a->A, block));
  A = block[which];
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  nz = (PetscInt)info.nz_used;
  FuzzLog(" block %" PetscInt_FMT " %s", which, ((const char *[]){"array", "array for writing", "pointer kept", "scaled"})[kind]);
  if (kind == 0) {
    PetscCall(MatSeqAIJGetArray(A, &v));
    for (PetscInt k = 0; k < nz; k += 2) v[k] = Value(k, fuzz.rank, salt);
    PetscCall(MatSeqAIJRestoreArray(A, &v));
  } else if (kind == 1) {
    PetscCall(MatSeqAIJGetArrayWrite(A, &v));
    for (PetscInt k = 0; k < nz; k++) v[k] = Value(k, fuzz.rank, salt);
    PetscCall(MatSeqAIJRestoreArrayWrite(A, &v));
  } else if (kind == 2 && !fuzz.device) {
    PetscScalar *kept;

    PetscCall(MatSeqAIJGetArray(A, &v));
    kept = v;
    PetscCall(MatSeqAIJRestoreArray(A, &v));
    PetscCall(TouchSome(a->A));
    for (PetscInt k = 0; k < nz; k += 3) kept[k] = Value(k, fuzz.rank, salt);
    PetscCall(PetscObjectStateIncrease((PetscObject)A)); /* as documented */
  } else
    PetscCall(MatScale(A, 1.25));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Operations: matrices made from the matrix
*/
static PetscErrorCode Transpose(Actor *a)
{
  const PetscInt kind = draw(4);
  Mat            T    = NULL;

  PetscFunctionBegin;
  FuzzLog(" %s", ((const char *[]){"new", "reused", "in place", "Hermitian"})[kind]);
  PetscCall(TouchSome(a->A));
  if (kind == 2)
    PetscCall(MatTranspose(a->A, MAT_INPLACE_MATRIX, &a->A));
  else if (kind == 3)
    PetscCall(MatHermitianTranspose(a->A, MAT_INITIAL_MATRIX, &T));
  else
    PetscCall(MatTranspose(a->A, MAT_INITIAL_MATRIX, &T));
  if (kind == 1) {
    PetscCall(TouchSome(T));
    PetscCall(MatScale(a->A, -2.));
    PetscCall(MatTranspose(a->A, MAT_REUSE_MATRIX, &T));
  }
  PetscCall(HasFormat(a, kind == 2 ? a->A : T, "the transpose"));
  PetscCall(SeeMat(a, "the transpose", kind == 2 ? a->A : T, 1));
  if (T) PetscCall(AdoptOrDestroy(a, &T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's share of some of n, from begin on: ascending */
static PetscErrorCode SomeOf(PetscInt begin, PetscInt n, PetscInt salt, IS *is)
{
  const PetscReal share = 0.1 * draw(11);
  PetscInt       *p, k = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &p));
  for (PetscInt i = 0; i < n; i++) {
    if (HashUnit(begin + i, 0, salt) < share) p[k++] = begin + i;
  }
  PetscCall(ISCreateGeneral(fuzz.comm, k, p, PETSC_COPY_VALUES, is));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Actor *a)
{
  PetscInt m, n, rs, cs;
  IS       rows, cols;
  Mat      S;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(MatGetOwnershipRange(a->A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(a->A, &cs, NULL));
  PetscCall(SomeOf(rs, m, draw(1000), &rows));
  PetscCall(SomeOf(cs, n, draw(1000), &cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatCreateSubMatrix(a->A, rows, cols, MAT_INITIAL_MATRIX, &S));
  PetscCall(HasFormat(a, S, "the submatrix"));
  PetscCall(SeeMat(a, "the submatrix", S, 1));
  if (Chance(50)) {
    PetscCall(MatScale(a->A, -2.));
    PetscCall(MatCreateSubMatrix(a->A, rows, cols, MAT_REUSE_MATRIX, &S));
    PetscCall(SeeMat(a, "the submatrix reused", S, 1));
  }
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(AdoptOrDestroy(a, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* LocalRows and columns of all ranks as a sequential matrix */
static PetscErrorCode SubMatrices(Actor *a)
{
  const PetscInt step = 1 + draw(3), salt = draw(1000);
  PetscInt       M, N;
  IS             rows, cols;
  Mat           *S;
  LocalRows      r;

  PetscFunctionBegin;
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (M + step - 1) / step, 0, step, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatCreateSubMatrices(a->A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &S));
  for (int k = 0; k < 2; k++) {
    PetscCall(LocalRowsOfMat(S[0], &r));
    PetscCall(SeeRows(a, &r));
    PetscCall(LocalRowsDestroy(&r));
    if (k || salt % 2) break;
    PetscCall(MatScale(a->A, 2.));
    PetscCall(MatCreateSubMatrices(a->A, 1, &rows, &cols, MAT_REUSE_MATRIX, &S));
  }
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Actor *a)
{
  PetscInt m, n, rs, cs, *p;
  IS       rows, cols;
  Mat      S;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(MatGetOwnershipRange(a->A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(a->A, &cs, NULL));
  PetscCall(PetscMalloc1(PetscMax(m, n), &p));
  for (PetscInt i = 0; i < m; i++) p[i] = rs + m - 1 - i;
  PetscCall(ISCreateGeneral(fuzz.comm, m, p, PETSC_COPY_VALUES, &rows));
  for (PetscInt i = 0; i < n; i++) p[i] = cs + (i + 1) % n;
  PetscCall(ISCreateGeneral(fuzz.comm, n, p, PETSC_COPY_VALUES, &cols));
  PetscCall(PetscFree(p));
  PetscCall(ISSetPermutation(rows));
  PetscCall(ISSetPermutation(cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatPermute(a->A, rows, cols, &S));
  if (fuzz.size == 1) PetscCall(HasFormat(a, S, "the permuted matrix")); /* on several, PETSc makes it AIJ */
  PetscCall(SeeMat(a, "the permuted matrix", S, 1));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(AdoptOrDestroy(a, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  There and back. AIJPERM and AIJSELL are not reused (tests/operations.c says why). On several ranks rectangular matrices do not become BAIJ, which divides columns by the
  block size of the rows: where that fails on one rank, the others wait
*/
static PetscErrorCode Convert(Actor *a)
{
  const char *const types[] = {MATAIJ, MATSELLP, MATEVCHYB, MATAIJPERM, MATAIJSELL, MATBAIJ, MATDENSE};
  const PetscInt    way     = draw(3);
  PetscInt          kind    = draw(now_.coo ? 5 : 7);
  PetscBool         square;
  const char       *own = a->under ? a->type : MATAIJ, *other;
  Mat               S, T;

  PetscFunctionBegin;
  PetscCall(SameLayouts(a->A, a->A, PETSC_TRUE, &square));
  if (fuzz.size > 1 && kind == 5 && !square) kind = 0;
  other = types[kind];
  FuzzLog(" %s %s", other, ((const char *[]){"new", "reused", "in place"})[way]);
  PetscCall(TouchSome(a->A));
  if (way == 2) {
    PetscCall(MatConvert(a->A, other, MAT_INPLACE_MATRIX, &a->A));
    PetscCall(TouchSome(a->A));
    PetscCall(MatScale(a->A, 0.5));
    PetscCall(MatConvert(a->A, own, MAT_INPLACE_MATRIX, &a->A));
  } else {
    PetscCall(MatConvert(a->A, other, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatScale(S, 3.));
    PetscCall(TouchSome(S));
    if (way == 1 && kind != 3 && kind != 4) {
      PetscCall(MatScale(a->A, -1.));
      PetscCall(MatConvert(a->A, other, MAT_REUSE_MATRIX, &S));
    }
    PetscCall(MatConvert(S, own, MAT_INITIAL_MATRIX, &T));
    PetscCall(HasFormat(a, T, "the conversion"));
    PetscCall(SeeMat(a, "the conversion", T, 1));
    PetscCall(MatDestroy(&S));
    PetscCall(AdoptOrDestroy(a, &T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other matrix becomes the main one */
static PetscErrorCode Swap(Actor *a)
{
  Mat T = a->A;

  PetscFunctionBegin;
  if (a->B) {
    a->A = a->B;
    a->B = T;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Actor *a)
{
  const PetscInt kinds[] = {0, 1, 5, 3, 2, 4}, reuse = draw(2);
  PetscInt       m, n, M, N, kind;
  PetscBool      square;
  Mat            A = a->A, P, C = NULL;

  PetscFunctionBegin;
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &square));
  kind = kinds[draw(fuzz.size > 1 ? (square ? 4 : 3) : square ? 6 : 5)]; /* several ranks: the last two are not in PETSc */
  if (kind == 3 && !square) kind = 0;
  if (kind == 4 && !square) kind = 1;
  FuzzLog(" %s%s", ((const char *[]){"A B", "A^T B", "A B^T", "P^T A P", "R A R^T", "B^T A"})[kind], reuse ? " twice" : "");
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (kind == 0)
    PetscCall(Operand(a, n, PETSC_DECIDE, N, 7, &P));
  else if (kind == 1 || kind == 5)
    PetscCall(Operand(a, m, PETSC_DECIDE, M, 7, &P));
  else if (kind == 2)
    PetscCall(Operand(a, 9, n, 9, N, &P));
  else if (kind == 3)
    PetscCall(Operand(a, n, PETSC_DECIDE, N, 6, &P));
  else
    PetscCall(Operand(a, 6, n, 6, N, &P));
  if (fuzz.size > 1) now_.loose = PETSC_TRUE; /* parts of other ranks are added as they come */
  for (int k = 0; k <= reuse; k++) {
    const MatReuse r = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (kind == 0) PetscCall(MatMatMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 1) PetscCall(MatTransposeMatMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 2) PetscCall(MatMatTransposeMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 3) PetscCall(MatPtAP(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 4) PetscCall(MatRARt(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 5) PetscCall(MatTransposeMatMult(P, A, r, PETSC_DEFAULT, &C));
    PetscCall(SeeMat(a, "the product", C, 1));
    PetscCall(MatScale(A, -1.5));
  }
  PetscCall(MatDestroy(&P));
  PetscCall(AdoptOrDestroy(a, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a dense matrix from the right, or its transpose; each column is a product with a vector */
static PetscErrorCode DenseProducts(Actor *a)
{
  const PetscInt kind = draw(2), columns = 1 + draw(9), salt = draw(1000);
  PetscInt       m, n, M, N, rs, re, lda;
  PetscReal      error, bound;
  LocalRows      r;
  Sum           *sum;
  Mat            D, C = NULL;

  PetscFunctionBegin;
  FuzzLog(" %s %" PetscInt_FMT " columns", kind ? "A^T D" : "A D", columns);
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(MatCreateDense(fuzz.comm, kind ? m : n, PETSC_DECIDE, kind ? M : N, columns, NULL, &D));
  PetscCall(MatGetOwnershipRange(D, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt j = 0; j < columns; j++) PetscCall(MatSetValue(D, i, j, XValue(X_RANDOM, i, salt + j), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscMalloc1(PetscMax(M, N), &sum));
  for (int k = 0; k < 2; k++) {
    const PetscScalar *v;

    if (kind)
      PetscCall(MatTransposeMatMult(a->A, D, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    else
      PetscCall(MatMatMult(a->A, D, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatGetOwnershipRange(C, &rs, &re));
    PetscCall(MatDenseGetLDA(C, &lda));
    PetscCall(LocalRowsOfMat(a->A, &r));
    PetscCall(MatDenseGetArrayRead(C, &v));
    for (PetscInt j = 0; j < columns; j++) {
      PetscCall(ProductReference(&r, N, rs, re - rs, kind ? 3 : 0, X_RANDOM, salt + j, X_RANDOM, 0, sum));
      for (PetscInt i = 0; i < re - rs; i++) {
        if (SumIs(&sum[i], v[i + j * lda], &error, &bound)) continue;
        FuzzReport("dense product, row %" PetscInt_FMT ", column %" PetscInt_FMT ": off by %g where %g is allowed", rs + i, j, (double)error, (double)bound);
        break;
      }
    }
    PetscCall(MatDenseRestoreArrayRead(C, &v));
    PetscCall(LocalRowsDestroy(&r));
    PetscCall(MatScale(a->A, 0.5));
  }
  PetscCall(PetscFree(sum));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Operations: numbers
*/
static PetscErrorCode Numbers(Actor *a)
{
  const NormType norms[] = {NORM_1, NORM_INFINITY, NORM_FROBENIUS};
  PetscInt       m, N;
  PetscBool      square;
  Vec            v;
  PetscReal      norm, *cols;
  PetscScalar   *sums;

  PetscFunctionBegin;
  PetscCall(SameLayouts(a->A, a->A, PETSC_TRUE, &square));
  PetscCall(MatGetSize(a->A, NULL, &N));
  PetscCall(MatGetLocalSize(a->A, &m, NULL));
  PetscCall(MatCreateVecs(a->A, NULL, &v));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(a->A, norms[k], &norm));
    PetscCall(SeeScalar(a, NormTypes[norms[k]], 0, norm, 100));
  }
  if (square || fuzz.size == 1) {
    PetscCall(MatGetDiagonal(a->A, v));
    PetscCall(SeeVec(a, "diagonal", v, 0));
  }
  PetscCall(MatGetRowSum(a->A, v));
  PetscCall(SeeVec(a, "row sum", v, 100));
  PetscCall(MatGetRowMaxAbs(a->A, v, NULL));
  PetscCall(SeeVec(a, "largest absolute value of a row", v, 0));
  PetscCall(MatGetRowMinAbs(a->A, v, NULL));
  PetscCall(SeeVec(a, "smallest absolute value of a row", v, 0));
  if (!PetscDefined(USE_COMPLEX)) {
    PetscCall(MatGetRowMax(a->A, v, NULL));
    PetscCall(SeeVec(a, "largest value of a row", v, 0));
    PetscCall(MatGetRowMin(a->A, v, NULL));
    PetscCall(SeeVec(a, "smallest value of a row", v, 0));
  }
  PetscCall(PetscMalloc2(N, &cols, N, &sums));
  PetscCall(MatGetColumnNorms(a->A, NORM_2, cols));
  for (PetscInt j = 0; j < N; j++) PetscCall(SeeScalar(a, "column norm", j, cols[j], 100));
  PetscCall(MatGetColumnSums(a->A, sums));
  for (PetscInt j = 0; j < N; j++) PetscCall(SeeScalar(a, "column sum", j, sums[j], 100));
  PetscCall(PetscFree2(cols, sums));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether it says that it is another matrix, its own transpose, symmetric */
static PetscErrorCode Comparisons(Actor *a)
{
  Mat       X;
  PetscBool is, square;

  PetscFunctionBegin;
  PetscCall(SameLayouts(a->A, a->A, PETSC_TRUE, &square));
  PetscCall(MatDuplicate(a->A, MAT_COPY_VALUES, &X));
  PetscCall(MatEqual(a->A, X, &is));
  PetscCall(SeeInt(a, "equals its duplicate", is));
  PetscCall(MatScale(X, 2.));
  PetscCall(MatEqual(a->A, X, &is));
  PetscCall(SeeInt(a, "equals twice itself", is));
  if (square && fuzz.size == 1) { /* several ranks: MPIAIJ's reads past the end of its arrays (PETSc 3.18) */
    PetscCall(MatIsSymmetric(a->A, 0., &is));
    PetscCall(SeeInt(a, "is symmetric", is));
  }
  PetscCall(MatMultEqual(a->A, a->A, 2, &is));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Operations: solvers
*/
static PetscErrorCode Relax(Actor *a)
{
  const MatSORType types[] = {SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP};
  const PetscInt   kind = draw(3), its = 1 + draw(2);
  const PetscReal  omega = Chance(50) ? 1. : 1.2;
  Vec              x, b;

  PetscFunctionBegin;
  FuzzLog(" kind %" PetscInt_FMT, kind);
  PetscCall(MatCreateVecs(a->A, &x, &b));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(b, 2));
  PetscCall(MatSOR(a->A, b, omega, (MatSORType)(types[kind] | (Chance(30) ? SOR_ZERO_INITIAL_GUESS : 0)), 0., its, 1, x));
  PetscCall(SeeVec(a, "relaxed", x, 1e5));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU in natural order only: with inodes and another order PETSc 3.18 reads past the end of its arrays */
static PetscErrorCode Factorize(Actor *a)
{
  const MatFactorType types[]  = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_ICC, MAT_FACTOR_CHOLESKY};
  const char *const   orders[] = {MATORDERINGNATURAL, MATORDERINGND, MATORDERINGRCM};
  const PetscInt      kind = draw(4), order = draw(kind == 1 ? 1 : 3);
  Mat                 S = a->A, F;
  Vec                 x, b;
  IS                  row, col;
  MatFactorInfo       info;

  PetscFunctionBegin;
  FuzzLog(" %s %s", MatFactorTypes[types[kind]], orders[order]);
  if (kind >= 2) { /* symmetric */
    Mat T;

    PetscCall(MatTranspose(a->A, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatDuplicate(a->A, MAT_COPY_VALUES, &S));
    PetscCall(MatAXPY(S, 1., T, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&T));
  }
  PetscCall(TouchSome(S));
  PetscCall(MatCreateVecs(S, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MatGetFactor(S, MATSOLVERPETSC, types[kind], &F));
  PetscCall(MatGetOrdering(S, orders[order], &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = draw(3);
  info.fill   = 3;
  if (kind == 0) PetscCall(MatLUFactorSymbolic(F, S, row, col, &info));
  if (kind == 1) PetscCall(MatILUFactorSymbolic(F, S, row, col, &info));
  if (kind == 2) PetscCall(MatICCFactorSymbolic(F, S, row, &info));
  if (kind == 3) PetscCall(MatCholeskyFactorSymbolic(F, S, row, &info));
  for (int k = 0; k < 2; k++) {
    if (kind < 2)
      PetscCall(MatLUFactorNumeric(F, S, &info));
    else
      PetscCall(MatCholeskyFactorNumeric(F, S, &info));
    PetscCall(MatSolve(F, b, x));
    PetscCall(SeeVec(a, "solution", x, 1e5));
    PetscCall(MatScale(S, 2.));
  }
  PetscCall(MatDestroy(&F));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  if (kind >= 2) PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve: each type must reach the solution, and find the same reason */
static PetscErrorCode Solve(Actor *a)
{
  const char *const  ksps[] = {KSPGMRES, KSPBCGS, KSPRICHARDSON, KSPTFQMR, KSPCGNE, KSPLSQR};
  const char *const  pcs[]  = {PCNONE, PCJACOBI, PCSOR, PCBJACOBI, PCASM, PCLU, PCILU, PCGAMG, PCEISENSTAT};
  const char        *ksp_ = ksps[draw(6)], *pc_ = pcs[draw(9)];
  KSP                ksp;
  PC                 pc;
  Vec                x, b;
  KSPConvergedReason reason;
  PetscBool          normal, seqonly, clear;
  PetscReal          largest;
  PetscInt           its, s, e;
  const PetscScalar *v;

  PetscFunctionBegin;
  normal  = (PetscBool)(!strcmp(ksp_, KSPCGNE) || !strcmp(ksp_, KSPLSQR));
  seqonly = (PetscBool)(!strcmp(pc_, PCLU) || !strcmp(pc_, PCILU) || !strcmp(pc_, PCEISENSTAT));
  if (normal || (seqonly && fuzz.size > 1)) pc_ = PCJACOBI;
  FuzzLog(" %s %s", ksp_, pc_);
  PetscCall(MatCreateVecs(a->A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(KSPCreate(fuzz.comm, &ksp));
  PetscCall(KSPSetOperators(ksp, a->A, a->A));
  PetscCall(KSPSetType(ksp, ksp_));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pc_));
  PetscCall(KSPSetTolerances(ksp, PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 300));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    clear = (PetscBool)(reason > 0 && its < 100); /* after many steps, rounding may decide whether there is an end */
    PetscCall(RecordAdd(&a->seen, "converged", k, reason > 0, clear ? 0 : 1, NULL));
    PetscCall(VecNorm(x, NORM_INFINITY, &largest));
    PetscCall(VecGetOwnershipRange(x, &s, &e));
    PetscCall(VecGetArrayRead(x, &v));
    for (PetscInt i = s; i < e; i++)
      PetscCall(RecordAdd(&a->seen, "solution of KSP", i, reason > 0 ? v[i - s] : 0.,
                          clear ? (PetscDefined(USE_REAL_SINGLE) ? 1e-1 : 1e-4) * largest : PETSC_MAX_REAL, NULL));
    PetscCall(VecRestoreArrayRead(x, &v));
    PetscCall(MatScale(a->A, 2.));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Operations: files, options, views, wrong calls
*/
static PetscErrorCode File(Actor *a)
{
  const char *dir = getenv("TMPDIR");
  int         pid = (int)getpid();
  char        name[512];
  PetscViewer v;
  Mat         X;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, fuzz.comm));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/petscspmv-fuzz-%d", dir ? dir : "/tmp", pid));
  PetscCall(TouchSome(a->A));
  PetscCall(PetscViewerBinaryOpen(fuzz.comm, name, FILE_MODE_WRITE, &v));
  PetscCall(PetscViewerBinarySetSkipInfo(v, PETSC_TRUE));
  PetscCall(MatView(a->A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(fuzz.comm, name, FILE_MODE_READ, &v));
  if (Chance(50))
    PetscCall(MatDuplicate(a->A, MAT_DO_NOT_COPY_VALUES, &X));
  else {
    PetscCall(MatCreate(fuzz.comm, &X));
    PetscCall(MatSetType(X, a->type));
  }
  PetscCall(MatLoad(X, v));
  PetscCall(PetscViewerDestroy(&v));
  if (!fuzz.rank) (void)unlink(name);
  PetscCall(HasFormat(a, X, "the loaded matrix"));
  PetscCall(SeeMat(a, "the loaded matrix", X, 1));
  PetscCall(AdoptOrDestroy(a, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode View(Actor *a)
{
  const PetscViewerFormat formats[] = {PETSC_VIEWER_DEFAULT, PETSC_VIEWER_ASCII_INFO, PETSC_VIEWER_ASCII_INFO_DETAIL, PETSC_VIEWER_ASCII_MATLAB};
  PetscViewer             v;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIOpen(fuzz.comm, "/dev/null", &v));
  PetscCall(PetscViewerPushFormat(v, formats[draw(4)]));
  PetscCall(MatView(a->A, v));
  PetscCall(PetscViewerPopFormat(v));
  PetscCall(PetscViewerDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An option in the database, until the case ends */
static PetscErrorCode SetOption(const char *name, const char *value)
{
  char whole[128];

  PetscFunctionBegin;
  if (now_.noptions == 16) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(whole, sizeof(whole), "-%s%s", now_.prefix, name));
  PetscCall(PetscStrncpy(now_.option[now_.noptions++], whole, sizeof(now_.option[0])));
  PetscCall(PetscOptionsSetValue(NULL, whole, value));
  FuzzLog(" %s %s", whole, value);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Random values of a few of the type's options */
static PetscErrorCode RandomOptions(void)
{
  static const struct {
    const char *type, *name, *value[12];
  } options[] = {
      {"sellp", "slice_height", {"1", "2", "3", "4", "5", "7", "8", "16", "32", "33", "128", "1024"}},
      {"sellp", "threads_per_row", {"1", "2", "4", "8", "16", "32"}},
      {"sellp", "sigma", {"1", "2", "7", "8", "9", "32", "64", "100", "512", "100000", "2147483647"}},
      {"evchyb", "ell_limit", {"0", "1", "2", "4", "7", "8", "16", "31", "128", "1000", "2147483647"}},
      {"evchyb", "row_align", {"1", "2", "8", "32", "33", "1024"}},
      {"evchyb", "csr_align", {"1", "2", "8", "32", "33", "1024"}},
      {"evchyb", "nonzeros_per_thread", {"1", "2", "8", "100", "65536"}},
      {NULL, "node_size", {"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
      {NULL, "compress", {"0", "1"}},
      {NULL, "kernel", {"slices", "slices", "slices", "slices", "csr", "aij", "auto", "paper"}},
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    const PetscBool kernel = (PetscBool)(k + 1 == PETSC_STATIC_ARRAY_LENGTH(options)), set = Chance(kernel ? 85 : 25);
    PetscInt        n    = 0, pick;
    PetscBool       same = PETSC_TRUE;
    char            name[64];

    while (n < 12 && options[k].value[n]) n++;
    pick = draw(n);
    if (options[k].type) PetscCall(PetscStrcmp(options[k].type, fuzz.type, &same));
    if (!set || !same) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "mat_%s_%s", fuzz.type, options[k].name));
    PetscCall(SetOption(name, options[k].value[pick]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClearOptions(void)
{
  PetscFunctionBegin;
  while (now_.noptions > 0) PetscCall(PetscOptionsClearValue(NULL, now_.option[--now_.noptions]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other options, read again in the middle of the sequence */
static PetscErrorCode Options(Actor *a)
{
  PetscFunctionBegin;
  PetscCall(ClearOptions());
  PetscCall(RandomOptions());
  PetscCall(TouchSome(a->A));
  PetscCall(MatSetOptionsPrefix(a->A, now_.prefix));
  PetscCall(MatSetFromOptions(a->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls that must be refused, and leave the matrix as it is */
static PetscErrorCode Wrong(Actor *a)
{
  const PetscInt kind = draw(8);
  PetscInt       m, n, M, N;
  Vec            x, y, wrong;
  Mat            X;
  int            failed;

  PetscFunctionBegin;
  FuzzLog(" kind %" PetscInt_FMT, kind);
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(MatCreateVecs(a->A, &x, &y));
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(VecCreate(fuzz.comm, &wrong));
  PetscCall(VecSetSizes(wrong, m + n + 1, PETSC_DECIDE)); /* wrong on every rank */
  PetscCall(VecSetFromOptions(wrong));
  PetscCall(VecSet(x, 1.));
  PetscCall(VecSet(y, 1.));
  PetscCall(VecSet(wrong, 1.));
  PetscCall(OperandLike(a, a->A, &X));
  switch (kind) {
  case 0: Try(a, "product with a vector too long", MatMult(a->A, wrong, y)); break;
  case 1: Try(a, "product into a vector too long", MatMult(a->A, x, wrong)); break;
  case 2: Try(a, "transposed product with a vector too long", MatMultTranspose(a->A, wrong, x)); break;
  case 3: Try(a, "product into its operand", MatMult(a->A, x, x)); break;
  case 4: Try(a, "sum with a vector too long", MatMultAdd(a->A, x, wrong, y)); break;
  case 5: Try(a, "diagonal of a vector too long", MatGetDiagonal(a->A, wrong)); break;
  case 6: {
    Mat Y;

    PetscCall(Operand(a, PETSC_DECIDE, PETSC_DECIDE, 3, M + N + 2, &Y));
    Try(a, "sum of matrices of different sizes", MatAXPY(a->A, 1., Y, DIFFERENT_NONZERO_PATTERN));
    Try(a, "copy of a matrix of another size", MatCopy(Y, a->A, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&Y));
    break;
  }
  default: {
    Mat Y;

    Try(a, "conversion to no type", MatConvert(a->A, "nothing", MAT_INITIAL_MATRIX, &Y));
  }
  }
  PetscCall(MatDestroy(&X));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&wrong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BindToCPU(Actor *a)
{
  const PetscBool bind = Chance(50);

  PetscFunctionBegin;
  PetscCall(MatBindToCPU(a->A, bind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const FuzzOp ops[] = {{"MatSetValues", SetValues, F_FULL, 8},
                             {"refill", Refill, 0, 6},
                             {"MatZeroEntries", ZeroEntries, 0, 1},
                             {"MatZeroRows", ZeroRows, F_SQUARE | F_FULL, 3},
                             {"MatScale", Scale, 0, 3},
                             {"MatShift", Shift, F_SQUARE | F_FULL | F_NEW, 3},
                             {"diagonal", Diagonals, 0, 3},
                             {"parts", Parts, 0, 1},
                             {"MatAXPY", Axpy, F_FULL, 5},
                             {"MatCopy", Copy, F_FULL, 4},
                             {"MatDuplicate", Duplicate, 0, 4},
                             {"MatStoreValues", StoreValues, 0, 2},
                             {"arrays", Arrays, 0, 4},
                             {"MatTranspose", Transpose, 0, 4},
                             {"MatCreateSubMatrix", SubMatrix, F_FULL, 4},
                             {"MatCreateSubMatrices", SubMatrices, F_FULL, 1},
                             {"MatPermute", Permute, F_FULL, 2},
                             {"MatConvert", Convert, F_FULL, 5},
                             {"swap", Swap, 0, 3},
                             {"products of matrices", Products, F_FULL, 5},
                             {"dense products", DenseProducts, F_FULL, 2},
                             {"numbers", Numbers, F_FULL, 2},
                             {"comparisons", Comparisons, F_FULL, 1},
                             {"MatSOR", Relax, F_SQUARE | F_FULL | F_DOMINANT, 4},
                             {"factors", Factorize, F_SQUARE | F_FULL | F_DOMINANT | F_SEQ, 5},
                             {"KSPSolve", Solve, F_SQUARE | F_FULL | F_DOMINANT, 4},
                             {"MatLoad", File, 0, 1},
                             {"MatView", View, 0, 1},
                             {"options", Options, 0, 4},
                             {"wrong", Wrong, F_FULL, 2},
                             {"MatBindToCPU", BindToCPU, 0, 1}};

/* What a matrix has, as the operations want it; all ranks come to the same */
static PetscErrorCode Properties(Mat A, int *has)
{
  PetscInt  M, N;
  PetscBool square;
  LocalRows r;
  int       bad[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &square));
  PetscCall(LocalRowsOfMat(A, &r));
  for (PetscInt i = 0; i < r.m; i++) {
    PetscReal sum = 0, diagonal = 0;

    for (PetscInt k = r.i[i]; k < r.i[i + 1]; k++) {
      const PetscReal v = PetscAbsScalar(r.v[k]);

      if (!(v < (PetscDefined(USE_REAL_SINGLE) ? 1e8 : 1e60))) bad[0] = 1; /* NaN is not, either */
      if (r.j[k] == r.begin + i)
        diagonal = v;
      else
        sum += v;
    }
    if (!(diagonal > 1.01 * sum && diagonal > 1e-6)) bad[1] = 1;
  }
  PetscCall(LocalRowsDestroy(&r));
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bad, 2, MPI_INT, MPI_MAX, fuzz.comm));
  *has = (M == N && square ? F_SQUARE : 0) | (M > 0 && N > 0 ? F_FULL : 0) | (fuzz.size == 1 ? F_SEQ : 0) | (bad[0] ? 0 : F_FINITE) |
         (bad[0] || bad[1] ? 0 : F_DOMINANT) | (now_.coo ? 0 : F_NEW);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The case
*/

/* The same number, infinity or NaN */
static PetscBool SamePart(PetscReal p, PetscReal q)
{
  return (PetscBool)(p == q || (PetscIsNanReal(p) && PetscIsNanReal(q)));
}

/* Within the bound; of a complex number that was computed and is not finite, the parts depend on how products were taken */
static PetscBool SameNumber(const Item *p, const Item *q)
{
  const PetscScalar x = p->value, y = q->value;

  if ((PetscAbsScalar(x - y) <= p->bound && !PetscIsInfOrNanReal(p->bound)) ||
      (SamePart(PetscRealPart(x), PetscRealPart(y)) && SamePart(PetscImaginaryPart(x), PetscImaginaryPart(y))))
    return PETSC_TRUE;
  return (PetscBool)(PetscDefined(USE_COMPLEX) && p->bound != 0 && PetscIsInfOrNanScalar(x) && PetscIsInfOrNanScalar(y));
}

/* The two records must agree; their errors, too, if there were any */
static PetscErrorCode SameSeen(Actor *x, Actor *y, const char *step)
{
  const PetscInt n = PetscMin(x->seen.n, y->seen.n);

  PetscFunctionBegin;
  fuzz.running = y->type;
  for (PetscInt k = 0; k < n; k++) {
    const Item *p = x->seen.item + k, *q = y->seen.item + k;

    if (!strcmp(p->what, q->what) && SameNumber(p, q)) continue;
    FuzzReport("after %s: %s %" PetscInt_FMT ": %.17g%+.3gi (%s), with AIJ %.17g%+.3gi; off by %g where %g is allowed", step, q->what, q->where,
               (double)PetscRealPart(q->value), (double)PetscImaginaryPart(q->value), p->what, (double)PetscRealPart(p->value),
               (double)PetscImaginaryPart(p->value), (double)PetscAbsScalar(p->value - q->value), (double)p->bound);
    break;
  }
  if (!fuzz.bad && x->seen.n != y->seen.n) FuzzReport("after %s: %" PetscInt_FMT " results, with AIJ %" PetscInt_FMT, step, y->seen.n, x->seen.n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs a step on both matrices (op NULL makes them), and looks at what came of it; *end when the case cannot go on */
static PetscErrorCode Step(Actor both[2], const FuzzOp *op, PetscInt step, PetscBool *end)
{
  const Build way      = now_.way;
  int         state[4] = {0, 0, 0, 0}; /* errors of the two, negative of them: equal on all ranks? wrong already */
  char        message[2][sizeof(fuzz.error)];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Actor         *a = &both[k];
    PetscErrorCode ierr;

    FuzzSeed(2 + 2 * (uint64_t)step);
    fuzz.running  = a->type;
    fuzz.logging  = (PetscBool)(k == 0);
    fuzz.error[0] = 0;
    PetscCall(RecordReset(&a->seen));
    ierr     = op ? (*op->run)(a) : ShapeBuild(&now_.shape, a->type, now_.prefix, way, &a->A);
    state[k] = (int)ierr;
    if (!ierr) {
      FuzzSeed(3 + 2 * (uint64_t)step);
      ierr = SeeMat(a, "the matrix", a->A, 1 + draw(3));
      if (!ierr && a->B && Chance(30)) ierr = SeeMat(a, "the other matrix", a->B, 1);
      state[k] = (int)ierr;
    }
    (void)snprintf(message[k], sizeof(message[k]), "%s", fuzz.error);
    if (fuzz.verbose && ierr) fprintf(stderr, "seed %" PetscInt_FMT ", rank %d, on %s, %s: %s\n", fuzz.number, fuzz.rank, a->type, fuzz.log, fuzz.error);
  }
  if (state[0] != state[1])
    FuzzReport("%s: error %d, with AIJ %d (%s)", op ? op->name : BuildNames[way], state[1], state[0], message[state[1] ? 1 : 0]);
  else if (!state[0])
    PetscCall(SameSeen(&both[0], &both[1], op ? op->name : BuildNames[way]));
  state[2] = fuzz.bad;
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, state, 3, MPI_INT, MPI_MAX, fuzz.comm));
  *end = (PetscBool)(state[0] || state[1] || state[2]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An operation that the matrix allows, NULL if there is none */
static PetscErrorCode Pick(Mat A, const FuzzOp **op)
{
  int total = 0, has = 0, pick;

  PetscFunctionBegin;
  PetscCall(Properties(A, &has));
  *op = NULL;
  for (int pass = 0; pass < 2; pass++) {
    if (pass && !total) break;
    pick = pass ? (int)draw(total) : 0;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ops) && (!pass || !*op); k++) {
      PetscBool in;

      if ((ops[k].needs & has) != ops[k].needs) continue;
      PetscCall(Listed(ops[k].name, fuzz.nonly, fuzz.only, &in));
      if (fuzz.nonly && !in) continue;
      PetscCall(Listed(ops[k].name, fuzz.nskip, fuzz.skip, &in));
      if (in) continue;
      if (!pass) total += ops[k].weight;
      if (pass && (pick -= ops[k].weight) < 0) *op = &ops[k];
    }
  }
  if (!(has & F_FINITE) && Chance(50)) *op = NULL; /* little can be seen of a matrix that is infinite all over */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneCase(void)
{
  Actor     both[2] = {{.type = MATAIJ}, {.type = fuzz.type, .under = PETSC_TRUE}};
  PetscInt  steps;
  PetscBool end = PETSC_FALSE;
  Shape    *s   = &now_.shape;

  PetscFunctionBegin;
  FuzzSeed(0);
  PetscCall(ShapeCreate(fuzz.comm, s));
  now_.loose = fuzz.device;
  now_.coo   = PETSC_FALSE;
  now_.way   = (Build)draw(BUILDS);
  PetscCall(PetscStrncpy(now_.prefix, Chance(50) ? "fuzz_" : "", sizeof(now_.prefix)));
  FuzzLog("%" PetscInt_FMT " x %" PetscInt_FMT ", block size %" PetscInt_FMT ", %s%s, values %s, %s", s->M, s->N, s->bs, PatternNames[s->pattern],
          s->dominant ? " dominant" : "", ValuesNames[s->values], BuildNames[now_.way]);
  PetscCall(RandomOptions());
  steps = PetscMin(1 + draw(8), fuzz.steps);
  if (fuzz.size > 1 && now_.way == BUILD_COO) now_.coo = PETSC_TRUE;
  PetscCall(Step(both, NULL, 0, &end));
  for (PetscInt k = 1; k <= steps && !end; k++) {
    const FuzzOp *op = NULL;

    FuzzSeed(1000000 + (uint64_t)k);
    PetscCall(Pick(both[0].A, &op));
    if (!op) break;
    fuzz.logging = PETSC_TRUE;
    FuzzLog("; %s", op->name);
    PetscCall(Step(both, op, k, &end));
  }
  for (int k = 0; k < 2; k++) {
    fuzz.running = both[k].type;
    PetscCall(RecordReset(&both[k].seen));
    PetscCall(MatDestroy(&both[k].A));
    PetscCall(MatDestroy(&both[k].B));
  }
  fuzz.running = NULL;
  PetscCall(ClearOptions());
  if (fuzz.verbose) PetscCall(PetscPrintf(fuzz.comm, "%" PetscInt_FMT ": %s\n", fuzz.number, fuzz.log));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return FuzzMain(argc, argv, "fuzz", "sellp", OneCase);
}
