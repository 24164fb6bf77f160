/*
  Steps of the fuzzer that compute: norms, comparisons, factorizations, solves.
*/
#include "fuzz_actor.h"

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
  PetscCall(MatSizes(a->A, &m, NULL, NULL, &N));
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
  PetscCall(MatNorm(a->A, NORM_INFINITY, &norm));
  PetscCall(SeeVecUpTo(a, "row sum", v, 100, norm)); /* sums may cancel */
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

/* Tests PETSc's answers whether the matrix equals another matrix or its own transpose, or is symmetric */
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
  if (square && fuzz.size == 1) { /* MPIAIJ's function is not reliable (PETSc 3.18) */
    PetscCall(MatIsSymmetric(a->A, 0., &is));
    PetscCall(SeeInt(a, "is symmetric", is));
  }
  PetscCall(MatMultEqual(a->A, a->A, 2, &is));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  PetscCall(
      MatSOR(a->A, b, omega, (MatSORType)(types[kind] | (Chance(30) ? SOR_ZERO_INITIAL_GUESS : 0)), 0., its, 1, x));
  PetscCall(SeeVec(a, "relaxed", x, 1e5));
  PetscCall(Destroy(&x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix that is factored. After MatTranspose() in place and MatAXPY(), factors of AIJ may be wrong, and those of a
   copy are right (docs/petsc-issues.md) */
static PetscErrorCode ToFactor(const Actor *a, Mat A, Mat *S)
{
  PetscFunctionBegin;
  *S = A;
  if (a->under)
    PetscCall(PetscObjectReference((PetscObject)A));
  else {
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, S));
    PetscCall(MatPropagateSymmetryOptions(A, *S)); /* which the PCs of blocks depend on */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU in natural order only, as PETSc 3.18 is not reliable in others */
static PetscErrorCode Factorize(Actor *a)
{
  const MatFactorType types[]  = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_ICC, MAT_FACTOR_CHOLESKY};
  const char *const   orders[] = {MATORDERINGNATURAL, MATORDERINGND, MATORDERINGRCM};
  const PetscInt      kind = draw(4), order = draw(kind == 1 ? 1 : 3);
  Mat                 S, F, C = NULL;
  Vec                 x, b;
  IS                  row, col;
  MatFactorInfo       info;

  PetscFunctionBegin;
  FuzzLog(" %s %s", MatFactorTypes[types[kind]], orders[order]);
  if (kind >= 2) { /* symmetric */
    Mat T;

    PetscCall(MatTranspose(a->A, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatDuplicate(a->A, MAT_COPY_VALUES, &C));
    PetscCall(MatAXPY(C, 1., T, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&T));
  }
  PetscCall(ToFactor(a, C ? C : a->A, &S));
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
  PetscCall(Destroy(&F, &row, &col, &x, &b));
  if (!C && S != a->A) PetscCall(MatScale(a->A, 4.)); /* as the copy was scaled */
  PetscCall(Destroy(&S, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve: each type must reach the solution, and find the same reason */
static PetscErrorCode Solve(Actor *a)
{
  const char *const  ksps[] = {KSPGMRES, KSPBCGS, KSPFGMRES, KSPRICHARDSON, KSPTFQMR, KSPCGNE, KSPLSQR};
  const char *const  ours[] = {KSPDEVICEGMRES, KSPDEVICEBCGS, KSPDEVICEFGMRES}; /* for the first, under test */
  const char *const  pcs[]  = {PCNONE, PCJACOBI, PCSOR, PCBJACOBI, PCASM, PCLU, PCILU, PCGAMG, PCEISENSTAT, PCPBJACOBI};
  const PetscInt     restarts[] = {1, 5, 30, 200}, method = draw(7), drawn = draw(4), own = Chance(60);
  const PCSide       side = Chance(50) ? PC_LEFT : PC_RIGHT;
  const char        *ksp_ = ksps[method], *pc_ = pcs[draw(10)];
  Mat                S;
  KSP                ksp;
  PC                 pc;
  Vec                x, b;
  KSPConvergedReason reason;
  PetscBool          normal, seqonly, clear;
  PetscReal          largest;
  PetscInt           its, s, e, restart;
  const PetscScalar *v;

  PetscFunctionBegin;
  /* the device's aggregates are others than PETSc's, and with either GMRES(1) or Richardson's method may stagnate */
  restart = strcmp(pc_, PCGAMG) ? drawn : 2 + drawn % 2;
  if (method == 3 && !strcmp(pc_, PCGAMG)) pc_ = PCJACOBI;
  normal  = (PetscBool)(!strcmp(ksp_, KSPCGNE) || !strcmp(ksp_, KSPLSQR));
  seqonly = (PetscBool)(!strcmp(pc_, PCLU) || !strcmp(pc_, PCILU) || !strcmp(pc_, PCEISENSTAT));
  if (normal || (seqonly && fuzz.size > 1) || (method == 2 && !strcmp(pc_, PCEISENSTAT))) pc_ = PCJACOBI;
  if (own && a->under && method < 3) ksp_ = ours[method];
  FuzzLog(" %s %s, restart %" PetscInt_FMT " %s", ksp_, pc_, restarts[restart], PCSides[side]);
  PetscCall(MatCreateVecs(a->A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(KSPCreate(fuzz.comm, &ksp));
  PetscCall(ToFactor(a, a->A, &S));
  PetscCall(KSPSetOperators(ksp, S, S));
  PetscCall(KSPSetType(ksp, ksp_));
  PetscCall(KSPGMRESSetRestart(ksp, restarts[restart]));
  if (method < 2 && strcmp(pc_, PCEISENSTAT)) PetscCall(KSPSetPCSide(ksp, side));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, pc_));
  PetscCall(KSPSetTolerances(ksp, PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 300));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    /* after many steps, rounding may decide whether the solve converges */
    clear = (PetscBool)(reason > 0 && its < 100);
    PetscCall(RecordAdd(&a->seen, "converged", k, reason > 0, clear ? 0 : 1, NULL));
    PetscCall(VecNorm(x, NORM_INFINITY, &largest));
    PetscCall(VecGetOwnershipRange(x, &s, &e));
    PetscCall(VecGetArrayRead(x, &v));
    for (PetscInt i = s; i < e; i++)
      PetscCall(RecordAdd(&a->seen, "solution of KSP", i, reason > 0 ? v[i - s] : 0.,
                          clear ? (PetscDefined(USE_REAL_SINGLE) ? 1e-1 : 1e-4) * largest : PETSC_MAX_REAL, NULL));
    PetscCall(VecRestoreArrayRead(x, &v));
    PetscCall(MatScale(a->A, 2.));
    if (S != a->A) PetscCall(MatScale(S, 2.));
  }
  PetscCall(Destroy(&S, &ksp, &x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const FuzzOp FuzzNumbers[] = {{"numbers", Numbers, F_FULL, 2},
                              {"comparisons", Comparisons, F_FULL, 1},
                              {"MatSOR", Relax, F_SQUARE | F_FULL | F_DOMINANT, 4},
                              {"factors", Factorize, F_SQUARE | F_FULL | F_DOMINANT | F_SEQ, 5},
                              {"KSPSolve", Solve, F_SQUARE | F_FULL | F_DOMINANT, 4},
                              {NULL}};
