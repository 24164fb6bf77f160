/*
  Products: with vectors, with dense and sparse matrices, and inside the matrices that PETSc composes from other
  matrices.
*/
#include "parts/products.h"
#include <petsc/private/matimpl.h> /* members that a matrix sets if it computes its own products */

/* y = A x, applied twice: the second product must read the result of the first */
static PetscErrorCode Mult(Test *t, Record *r)
{
  Mat A;
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (PetscInt k = 0; k < 3; k++) {
    if (k < 2)
      PetscCall(VecFill(x, k));
    else
      PetscCall(VecSet(x, 0.));
    PetscCall(VecSet(y, k ? PETSC_MAX_REAL : 0.));
    PetscCall(VecLockReadPush(x)); /* a product must not write to its operand */
    PetscCall(RecordMult(r, "A x at row", A, PLAIN, x, NULL, y));
    PetscCall(VecLockReadPop(x));
  }
  PetscCall(RecordMat(t, r, "type", A));
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Padding may read x where the row has no entry: Inf and NaN there must not reach the result */
static PetscErrorCode NonFinite(Test *t, Record *r)
{
  Mat                A;
  Vec                x, y;
  PetscScalar       *a;
  PetscInt           s, e;
  const PetscScalar *ya;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecGetOwnershipRange(x, &s, &e));
  for (int k = 0; k < 3; k++) {
    PetscCall(VecSet(x, 1.));
    PetscCall(VecGetArray(x, &a));
    for (PetscInt i = s; i < e; i++) {
      /* the first and the last column, and every fifth one, to which padding is likely to refer */
      if (k == 0 ? i == 0 : (k == 1 ? i == t->c->N - 1 : i % 5 == 2)) a[i - s] = k == 1 ? PETSC_INFINITY : NAN;
    }
    PetscCall(VecRestoreArray(x, &a));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecGetArrayRead(y, &ya));
    PetscCall(VecGetOwnershipRange(y, NULL, &e));
    PetscCall(VecGetOwnershipRange(y, &s, NULL));
    for (PetscInt i = s; i < e; i++)
      PetscCall(RecordAdd(r, "finite at row", i, PetscIsInfOrNanScalar(ya[i - s]) ? 0 : 1, 0, NULL));
    PetscCall(VecRestoreArrayRead(y, &ya));
    PetscCall(VecGetOwnershipRange(x, &s, &e));
  }
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  z = y + op(A) x with different y and z, and with z = y; the argument names op. A debug build of PETSc rejects
  AIJPERM's MatMultAdd(), which requests write access to its operand.
*/
static PetscErrorCode MultAdd(Test *t, Record *r)
{
  const Op op = t->arg[0] == 'n' ? PLAIN : t->arg[0] == 't' ? TRANSPOSE : HERMITIAN;
  Mat      A;
  Vec      x, y, z, b;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(op == PLAIN ? MatCreateVecs(A, &x, &y) : MatCreateVecs(A, &y, &x));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(VecFill(y, 2));
  PetscCall(VecSet(z, PETSC_MAX_REAL));
  PetscCall(VecLockReadPush(x));
  if (op == PLAIN) PetscCall(VecLockReadPush(y)); /* the parents' transposed products do write to y */
  PetscCall(RecordMult(r, "y + A x at row", A, op, x, y, z));
  if (op == PLAIN) PetscCall(VecLockReadPop(y));
  PetscCall(VecLockReadPop(x));
  PetscCall(RecordVec(r, "y after y + A x", y, NULL, 0));
  PetscCall(RecordMult(r, "y += A x at row", A, op, x, y, y));
  PetscCall(RecordMult(r, "A x at row", A, op, x, NULL, z));
  if (op == PLAIN) {
    PetscCall(VecDuplicate(y, &b));
    PetscCall(VecFill(y, 2));
    PetscCall(ProductBounds(A, x, y, PETSC_FALSE, b));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall(MatResidual(A, y, x, z));
    PetscCall(RecordVec(r, "y - A x at row", z, b, 0));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(Destroy(&x, &y, &z, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sequential matrices, with which PETSc multiplies directly */
static PetscErrorCode Blocks(Test *t, Record *r)
{
  Mat             A, D, Ad, Ao;
  const PetscInt *garray;
  PetscInt        m, n;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (m == n) { /* PETSc documents this for both functions */
    PetscCall(MatGetDiagonalBlock(A, &D));
    PetscCall(RecordMat(t, r, "type of the diagonal block", D));
  }
  if (t->size > 1) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, &garray));
    PetscCall(RecordMat(t, r, "type of the diagonal block", Ad));
    PetscCall(RecordMat(t, r, "type of the off-diagonal block", Ao));
    PetscCall(MatGetSize(Ao, NULL, &n));
    for (PetscInt k = 0; k < n; k++) PetscCall(RecordInt(r, "halo column", garray[k]));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The dense matrix comes first: PETSc looks this product up by A's exact type name, and therefore does not find it for
   AIJPERM */
static PetscErrorCode DenseFirst(Test *t, Record *r)
{
  Mat      A, E, C = NULL;
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatCreateSeqDense(t->comm, 4, m, NULL, &E));
  PetscCall(FillDense(E, m, 50));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatMatMult(E, A, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of E A", C));
    PetscCall(MatScale(A, -2.));
  }
  PetscCall(Destroy(&C, &E, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The interpolation that DMDA creates for several unknowns per point, and the Galerkin product with it. PETSc looks the
   product up by A's exact type name, and therefore does not find it for AIJPERM. On a device the interpolation becomes an
   AIJCUSPARSE matrix. It is multiplied in the type's format there: with several processes on the device, cuSPARSE may
   lose the last of 32 rows (CUDA 13, docs/testing.md) */
static PetscErrorCode MAIJ(Test *t, Record *r)
{
  const char *other = t->arg ? t->arg : t->type;
  Mat         A, P, M, N, C = NULL;
  Vec         x, y;
  PetscInt    m, bs;
  PetscBool   cusparse;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MakeOperand(t, m / bs, PETSC_DECIDE, PETSC_DETERMINE, 9, other, &P));
  PetscCall(MatCreateMAIJ(P, bs, &M));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)M, &cusparse, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  if (cusparse)
    PetscCall(MatConvert(M, t->type, MAT_INITIAL_MATRIX, &N));
  else {
    N = M;
    PetscCall(PetscObjectReference((PetscObject)N));
  }
  PetscCall(MatCreateVecs(N, &x, &y));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(N, x, y));
  PetscCall(RecordVec(r, "interpolation", y, NULL, 100));
  PetscCall(MatMultTranspose(N, y, x));
  PetscCall(RecordVec(r, "restriction", x, NULL, 100));
  PetscCall(Destroy(&x, &y, &N));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatPtAP(A, M, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of the Galerkin product", C));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(Destroy(&C, &M, &P, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices composed of matrices: A must work as a part, and a change of A must affect the composed matrix */
static PetscErrorCode Composed(Test *t, Record *r)
{
  Mat      A, C, D, two[4];
  IS       rows, cols;
  PetscInt m, n, rs, cs, bs;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  switch (t->arg[0]) {
  case 't': PetscCall(MatCreateTranspose(A, &C)); break;
  case 'h': PetscCall(MatCreateHermitianTranspose(A, &C)); break;
  case 'n': PetscCall(MatCreateNormal(A, &C)); break;
  case 'c':
    two[0] = two[1] = A;
    PetscCall(MatCreateComposite(t->comm, 2, two, &C));
    if (t->arg[1] == 'm') { /* sends the entries of x for all of its matrices at once */
      PetscCall(PetscOptionsSetValue(NULL, "-mat_composite_merge_mvctx", "1"));
      PetscCall(MatSetFromOptions(C));
      PetscCall(PetscOptionsClearValue(NULL, "-mat_composite_merge_mvctx"));
    }
    PetscCall(MatAssemble(C));
    break;
  case 'N':
    two[0] = two[3] = A;
    two[1] = two[2] = NULL;
    PetscCall(MatCreateNest(t->comm, 2, NULL, 2, NULL, two, &C));
    break;
  default: /* every second row and column; PETSc requires whole blocks here */
    PetscCall(MatGetBlockSize(A, &bs));
    if (bs > 1) {
      PetscCall(MatDestroy(&A));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(ISCreateStride(t->comm, (m + 1) / 2, rs, 2, &rows));
    PetscCall(ISCreateStride(t->comm, (n + 1) / 2, cs, 2, &cols));
    PetscCall(MatCreateSubMatrixVirtual(A, rows, cols, &C));
    PetscCall(Destroy(&rows, &cols));
  }
  PetscCall(RecordProducts(r, C, PETSC_FALSE));
  PetscCall(MatScale(A, 2.));
  PetscCall(RecordProducts(r, C, PETSC_FALSE));
  if (t->arg[0] == 'N') {
    PetscCall(MatConvert(C, t->type, MAT_INITIAL_MATRIX, &D));
    PetscCall(RecordMat(t, r, "type of the nest converted", D));
    PetscCall(MatDestroy(&D));
  }
  PetscCall(Destroy(&C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A product must not keep data of a vector: tests other vectors, a vector with its own array, and a vector of another
  type. On a device, that array is in host memory, and AIJCUSPARSE does not accept such a vector.
*/
static PetscErrorCode Vectors(Test *t, Record *r)
{
  Mat          A;
  Vec          x, y, w;
  PetscInt     n, N;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetSize(x, &N));
  PetscCall(PetscMalloc1(n + 1, &a));
  /* an array that is aligned only to its elements */
  if (t->size == 1)
    PetscCall(VecCreateSeqWithArray(t->comm, 1, n, a + 1, &w));
  else
    PetscCall(VecCreateMPIWithArray(t->comm, 1, n, N, a + 1, &w));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(VecFill(x, k));
    PetscCall(VecFill(w, k + 1));
    PetscCall(RecordMult(r, "A x at row", A, PLAIN, x, NULL, y));
    PetscCall(RecordMult(r, "A w at row", A, PLAIN, w, NULL, y));
    PetscCall(VecPlaceArray(w, a));
    PetscCall(VecFill(w, k));
    PetscCall(RecordMult(r, "A x at row, x elsewhere", A, PLAIN, w, NULL, y));
    PetscCall(VecResetArray(w));
  }
  PetscCall(VecDestroy(&w));
  PetscCall(PetscFree(a));
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyToHost(Mat A)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of the type with each other type derived from AIJ. PETSc does not support all of these pairs itself, so
   AIJ's partner is AIJ */
static PetscErrorCode Mixed(Test *t, Record *r)
{
  const char *const    others[] = {MATAIJ, MATAIJPERM, "sellp", "evchyb"};
  const MatProductType types[]  = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP, MATPRODUCT_ABt, MATPRODUCT_RARt};
  Mat                  A, B, C;
  PetscInt             m, M;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, NULL, &M, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(others); k++) {
    PetscCall(MakeOperand(t, m, m, M, M, t->aij ? MATAIJ : others[k], &B));
    /* PETSc does not support the last two on several ranks */
    for (size_t p = 0; p < (t->size > 1 ? 3 : PETSC_STATIC_ARRAY_LENGTH(types)); p++) {
      for (int turn = 0; turn < 2; turn++) {
        PetscCall(MatProductCreate(turn ? B : A, turn ? A : B, NULL, &C));
        PetscCall(MatProductSetType(C, types[p]));
        PetscCall(MatProductSetFromOptions(C));
        PetscCall(MatProductSymbolic(C));
        for (int step = 0; step < 2; step++) {
          /* AIJ times AIJCUSPARSE is computed by AIJ's functions, which do not */
          if (t->device && !k && turn && t->size == 1) PetscCall(CopyToHost(A));
          PetscCall(MatProductNumeric(C));
          PetscCall(RecordMat(t, r, MatProductTypes[types[p]], C));
          PetscCall(MatScale(A, step ? .5 : 2.));
          PetscCall(MatScale(B, step ? -2. : -.5));
        }
        PetscCall(MatDestroy(&C));
      }
    }
    PetscCall(MatDestroy(&B));
  }
  PetscCall(RecordType(t, r, "type of A", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products with a matrix that computes them itself (the argument): a virtual transpose, a MATSHELL that accepts factors
  of any type, like MATPYTHON, or a MATSHELL with a function for factors of type AIJ
*/

/* The factor as a separate AIJ matrix; for a shell, this is its context */
static PetscErrorCode FactorAIJ(Mat F, Mat *A)
{
  PetscBool shell;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)F, MATSHELL, &shell));
  if (shell) PetscCall(MatShellGetContext(F, &F));
  PetscCall(MatConvert(F, MATAIJ, MAT_INITIAL_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product of the factors' AIJ copies, as a dense matrix */
static PetscErrorCode OwnProduct(MatProductType type, Mat A, Mat B, Mat C, Mat *D)
{
  Mat factor[3] = {A, B, type == MATPRODUCT_ABC ? C : NULL}, own[3] = {NULL, NULL, NULL};

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    if (factor[k]) PetscCall(FactorAIJ(factor[k], &own[k]));
  }
  PetscCall(MatProductCreate(own[0], own[1], own[2], D));
  PetscCall(MatProductSetType(*D, type));
  PetscCall(MatProductSetFromOptions(*D));
  PetscCall(MatProductSymbolic(*D));
  PetscCall(MatProductNumeric(*D));
  PetscCall(MatProductClear(*D));
  PetscCall(MatConvert(*D, MATDENSE, MAT_INPLACE_MATRIX, D));
  for (int k = 0; k < 3; k++) PetscCall(MatDestroy(&own[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OwnNumeric(Mat C)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(OwnProduct(C->product->type, C->product->A, C->product->B, C->product->C, &D));
  PetscCall(MatCopy(D, C, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OwnSymbolic(Mat C)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(OwnProduct(C->product->type, C->product->A, C->product->B, C->product->C, &D));
  PetscCall(MatSetLayouts(C, D->rmap, D->cmap));
  PetscCall(MatSetType(C, MATDENSE));
  PetscCall(MatSetUp(C));
  C->ops->productnumeric = OwnNumeric;
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OwnSetFromOptions(Mat C)
{
  C->ops->productsymbolic = OwnSymbolic;
  return PETSC_SUCCESS;
}

static PetscErrorCode ShellNumeric(Mat S, Mat B, Mat C, void *ctx)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(OwnProduct(MATPRODUCT_AB, S, B, NULL, &D));
  PetscCall(MatCopy(D, C, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakePartner(Test *t, Mat X, Mat *S)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(MatSizes(X, &m, &n, &M, &N));
  switch (t->arg[0]) {
  case 't': PetscCall(MatCreateTranspose(X, S)); break;
  case 'h': PetscCall(MatCreateHermitianTranspose(X, S)); break;
  case 'a':
    PetscCall(MatCreateShell(t->comm, m, n, M, N, X, S));
    PetscCall(PetscObjectComposeFunction((PetscObject)*S, "MatProductSetFromOptions_anytype_C", OwnSetFromOptions));
    break;
  default:
    PetscCall(MatCreateShell(t->comm, m, n, M, N, X, S));
    PetscCall(MatShellSetMatProductOperation(*S, MATPRODUCT_AB, NULL, ShellNumeric, NULL, MATAIJ, MATDENSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Partner(Test *t, Record *r)
{
  static const struct {
    const char    *what, *kinds; /* kinds: of partners with which AIJ can be multiplied in this way */
    MatProductType type;
    int            factor[3]; /* 0 for A, 1 for the partner S, 2 for B */
    PetscBool      seq;
  } product[] = {{"S A", "thas", MATPRODUCT_AB, {1, 0, -1}, PETSC_FALSE},
                 {"S^T A", "tha", MATPRODUCT_AtB, {1, 0, -1}, PETSC_FALSE},
                 {"A S", "tha", MATPRODUCT_AB, {0, 1, -1}, PETSC_TRUE},
                 {"A^T S", "a", MATPRODUCT_AtB, {0, 1, -1}, PETSC_FALSE},
                 {"A S^T", "tha", MATPRODUCT_ABt, {0, 1, -1}, PETSC_TRUE},
                 {"S^T A S", "tha", MATPRODUCT_PtAP, {0, 1, -1}, PETSC_TRUE},
                 {"S A S^T", "tha", MATPRODUCT_RARt, {0, 1, -1}, PETSC_TRUE},
                 {"A B S", "a", MATPRODUCT_ABC, {0, 2, 1}, PETSC_FALSE},
                 {"A S B", "a", MATPRODUCT_ABC, {0, 1, 2}, PETSC_FALSE},
                 {"S A B",
                  PETSC_VERSION_LT(3, 19, 0) && !PetscDefined(USE_COMPLEX) ? "ta" : "a",
                  MATPRODUCT_ABC,
                  {1, 0, 2},
                  PETSC_FALSE}};
  Mat      factor[3], X, C;
  PetscInt m, M;

  PetscFunctionBegin;
  PetscCall(Make(t, &factor[0]));
  PetscCall(MatSizes(factor[0], &m, NULL, &M, NULL));
  PetscCall(MakeOperand(t, m, m, M, M, t->type, &X));
  PetscCall(MakeOperand(t, m, m, M, M, t->type, &factor[2]));
  PetscCall(MakePartner(t, X, &factor[1]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(product); k++) {
    if (!strchr(product[k].kinds, t->arg[0]) || (product[k].seq && t->size > 1)) continue;
    PetscCall(MatProductCreate(factor[product[k].factor[0]], factor[product[k].factor[1]],
                               product[k].factor[2] < 0 ? NULL : factor[product[k].factor[2]], &C));
    PetscCall(MatProductSetType(C, product[k].type));
    PetscCall(MatProductSetFromOptions(C));
    PetscCall(MatProductSymbolic(C));
    for (int step = 0; step < 2; step++) {
      PetscCall(MatProductNumeric(C));
      PetscCall(RecordMat(t, r, product[k].what, C));
      PetscCall(MatScale(factor[0], 2.));
      PetscCall(MatScale(X, -1.5));
    }
    PetscCall(MatDestroy(&C));
  }
  PetscCall(RecordType(t, r, "type of A", factor[0])); /* A may have had another type name during the product */
  PetscCall(RecordType(t, r, "type of X", X));
  for (int k = 0; k < 3; k++) PetscCall(MatDestroy(&factor[k]));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {{"mult", Mult, STRICT},
                                       {"nonfinite", NonFinite, STRICT},
                                       {"multadd", MultAdd, STRICT | NOPERM, "no"},
                                       {"transpose", MultAdd, STRICT, "trans"},
                                       {"hermitian", MultAdd, STRICT, "herm"},
                                       {"vectors", Vectors, NOCUDA},
                                       {"blocks", Blocks, 0},
                                       {"sparse", Sparse, FULL},
                                       {"sparse-aij", Sparse, FULL, MATAIJ},
                                       {"sparse-replaced", SparseReplaced, FULL | SEQ | NOPERM},
                                       {"triple", Triple, FULL | SQUARE},
                                       {"triple-aij", Triple, FULL | SQUARE, MATAIJ},
                                       {"dense-first", DenseFirst, FULL | SEQ | NOPERM},
                                       {"maij", MAIJ, BLOCKS | NOPERM},
                                       {"maij-aij", MAIJ, BLOCKS | NOPERM, MATAIJ},
                                       /* PETSc does not support all pairs */
                                       {"mixed", Mixed, FULL | SQUARE | NOPERM | NOCUDA},
                                       {"product-transpose", Partner, FULL | SQUARE | NOPERM, "transpose"},
#if !defined(PETSC_USE_COMPLEX) /* not in PETSc 3.18 */
                                       {"product-hermitian", Partner, FULL | SQUARE | NOPERM, "hermitian"},
#endif
                                       {"product-anytype", Partner, FULL | SQUARE | NOPERM, "anytype"},
                                       {"product-shell", Partner, FULL | SQUARE | NOPERM, "shell"},
                                       {"virtual-transpose", Composed, 0, "trans"},
                                       {"virtual-hermitian", Composed, 0, "herm"},
                                       {"normal", Composed, FULL, "norm"},
                                       {"composite", Composed, 0, "comp"},
                                       {"composite-merged", Composed, SQUARE | FULL | NOPERM, "cmerged"},
                                       {"nest", Composed, FULL, "Nest"},
                                       {"submatrix-virtual", Composed, FULL, "sub"},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "products", operations, 0);
}
