/*
  Steps of the fuzzer that change entries.
*/
#include "fuzz_actor.h"
#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease() */

/*
  Sets existing or new entries, in rows of this rank or of other ranks; no entry is set by two ranks. After COO assembly
  the entries exist already, because MPIAIJ (PETSc 3.18) is not reliable with new ones
*/
static PetscErrorCode SetValues(Actor *a)
{
  const PetscInt  count = draw(30), salt = draw(100000), away = Chance(40) && !fuzzcase.coo;
  const PetscBool fresh = (PetscBool)(Chance(50) && !fuzzcase.coo), allowed = Chance(70), ignore = Chance(10),
                  again = Chance(30);
  const InsertMode mode = Chance(50) ? ADD_VALUES : INSERT_VALUES;
  PetscInt         M, N, rs, re;
  Mat              A = a->A;
  LocalRows        r;
  int              failed;

  PetscFunctionBegin;
  FuzzLog(" %" PetscInt_FMT " %s%s%s%s%s", count, mode == ADD_VALUES ? "added" : "inserted", fresh ? " new" : "",
          allowed ? "" : " not allowed", away ? " anywhere" : "", ignore ? " ignored" : "");
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, (PetscBool)!allowed));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, (PetscBool)!ignore));
  for (int pass = 0; pass <= (int)again; pass++) {
    PetscErrorCode ierr = PETSC_SUCCESS;

    PetscCall(LocalRowsOfMat(A, &r));
    for (PetscInt k = 0; k < count && !ierr; k++) {
      const PetscReal u = HashUnit(k, pass, salt + 1);
      const PetscInt  row =
          away && allowed ? (PetscInt)(M * u) : rs + (PetscInt)((re - rs) * HashUnit(k, fuzz.rank, salt));
      PetscInt          col = (PetscInt)(N * HashUnit(k, pass + 2, salt + 2));
      const PetscScalar v   = (PetscReal)((PetscInt)(64 * u) - 20) / 8;

      if (row >= re && !away) continue;
      if (!fresh && row >= rs && row < re) {
        const PetscInt n = r.i[row - rs + 1] - r.i[row - rs];

        if (!n) continue;
        col = r.j[r.i[row - rs] + k % n];
      }
      if (row >= M || col >= N || (away && (row + col) % fuzz.size != fuzz.rank)) continue;
      MayFail(ierr, MatSetValue(A, row, col, v, mode));
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

/* Sets all entries again, with MatSetValues, COO or preallocation. While AIJCUSPARSE is bound to the CPU, its own COO
   functions are not used, and PETSc's preallocate whole blocks */
static PetscErrorCode Refill(Actor *a)
{
  Shape     s;
  PetscInt  way = draw(4);
  LocalRows r;
  PetscInt  M, N, m, n;

  PetscFunctionBegin;
  if (fuzz.device && fuzzcase.bound) way = way < 2 ? 0 : 3;
  PetscCall(MatSizes(a->A, &m, &n, &M, &N));
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
    if (fuzz.size > 1) fuzzcase.coo = PETSC_TRUE;
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
  Zeros rows, of any rank. Only rows with a diagonal entry, as PETSc (3.18 to 3.26) is not reliable for others; with
  columns, only if all rows have one
*/
static PetscErrorCode ZeroRows(Actor *a)
{
  const PetscInt  salt = draw(10000), count = draw(8), kind = draw(2);
  const PetscBool keep = Chance(50), vectors = Chance(50);
  PetscInt        M, rows[8], n = 0, *has, both = draw(fuzzcase.coo ? 1 : 2);
  LocalRows       r;
  Vec             x = NULL, b = NULL;

  PetscFunctionBegin;
  FuzzLog("%s%s%s", both ? " and columns if the diagonal is full" : "", keep ? " keep the pattern" : "",
          vectors ? " vectors" : "");
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
  PetscCall(Destroy(&x, &b));
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

/* On several ranks, after MatDiagonalSet() MPIAIJ's buffer for MatGetRow() is too small for the new entries, see
   LocalRowsOfMat() */
static PetscErrorCode Reassemble(Mat A)
{
  PetscFunctionBegin;
  if (fuzz.size > 1) {
    PetscCall(MatAssemble(A));
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
  if (fuzzcase.coo) square = PETSC_FALSE;
  FuzzLog(" %s", kind < 3 || !square ? "scale" : "set");
  if (kind < 3 || !square)
    PetscCall(MatDiagonalScale(a->A, kind == 1 ? NULL : l, kind == 2 ? NULL : r));
  else {
    PetscCall(MatSetOption(a->A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatDiagonalSet(a->A, l, kind == 3 ? INSERT_VALUES : ADD_VALUES));
    PetscCall(Reassemble(a->A));
  }
  PetscCall(Destroy(&l, &r));
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
  FuzzLog(" %s %s", ayp ? "ayp" : "axp",
          ((const char *[]){"same", "same, flagged different", "subset", "different"})[kind]);
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

/*
  For rectangular matrices on a device, only the same pattern is used: with another one, MatCopy() gives the columns the
  block size of the rows, which may not divide the number of columns (PETSc 3.26). On the host, products of matrices
  have no block size
*/
static PetscErrorCode Copy(Actor *a)
{
  const PetscInt kind = draw(fuzzcase.coo ? 2 : 3);
  PetscInt       M, N;
  Mat            X;

  PetscFunctionBegin;
  PetscCall(MatGetSize(a->A, &M, &N));
  if (kind == 0 || (fuzz.device && M != N)) { /* the same pattern, there and back */
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

/* Uses a copy, whose values have not been stored before */
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

/* Writes to the array of values, in each of the ways that PETSc supports */
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
  FuzzLog(" block %" PetscInt_FMT " %s", which,
          ((const char *[]){"array", "array for writing", "pointer kept", "scaled"})[kind]);
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

const FuzzOp FuzzEntries[] = {{"MatSetValues", SetValues, F_FULL, 8},
                              {"refill", Refill, 0, 6},
                              {"MatZeroEntries", ZeroEntries, 0, 1},
                              {"MatZeroRows", ZeroRows, F_SQUARE | F_FULL, 3},
                              {"MatScale", Scale, F_BLAS, 3},
                              {"MatShift", Shift, F_SQUARE | F_FULL | F_NEW, 3},
                              {"diagonal", Diagonals, 0, 3},
                              {"parts", Parts, 0, 1},
                              {"MatAXPY", Axpy, F_FULL | F_BLAS, 5},
                              {"MatCopy", Copy, F_FULL, 4},
                              {"MatDuplicate", Duplicate, 0, 4},
                              {"MatStoreValues", StoreValues, 0, 2},
                              {"arrays", Arrays, 0, 4},
                              {NULL}};
