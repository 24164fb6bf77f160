#include "fuzz_actor.h"
#include <petsc/private/petscimpl.h> /* type_name */

PetscErrorCode SeeInt(Actor *a, const char *what, PetscInt64 value)
{
  return RecordInt(&a->seen, what, value);
}

PetscErrorCode SeeScalar(Actor *a, const char *what, PetscInt where, PetscScalar value, PetscReal epsilons)
{
  return RecordAdd(&a->seen, what, where, value,
                   (fuzzcase.loose ? 1e6 + epsilons : epsilons) * PETSC_MACHINE_EPSILON * PetscAbsScalar(value), NULL);
}

PetscErrorCode SeeVecUpTo(Actor *a, const char *what, Vec v, PetscReal epsilons, PetscReal largest)
{
  PetscInt           s, e;
  const PetscScalar *x;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArrayRead(v, &x));
  if (PetscIsInfOrNanReal(largest)) largest = 0;
  for (PetscInt i = 0; i < e - s; i++)
    largest = PetscIsInfOrNanScalar(x[i]) ? largest : PetscMax(largest, PetscAbsScalar(x[i]));
  for (PetscInt i = s; i < e; i++)
    PetscCall(RecordAdd(&a->seen, what, i, x[i - s],
                        (fuzzcase.loose ? 1e6 + epsilons : epsilons) * PETSC_MACHINE_EPSILON * largest, NULL));
  PetscCall(VecRestoreArrayRead(v, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SeeVec(Actor *a, const char *what, Vec v, PetscReal epsilons)
{
  PetscFunctionBegin;
  PetscCall(SeeVecUpTo(a, what, v, epsilons, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SeeRows(Actor *a, const LocalRows *r)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < r->m; i++) {
    PetscReal largest = 0;

    PetscCall(RecordAdd(&a->seen, "length of row", r->begin + i, r->i[i + 1] - r->i[i], 0, NULL));
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++)
      largest = PetscIsInfOrNanScalar(r->v[k]) ? largest : PetscMax(largest, PetscAbsScalar(r->v[k]));
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) {
      PetscCall(RecordAdd(&a->seen, "column in row", r->begin + i, r->j[k], 0, NULL));
      PetscCall(RecordAdd(&a->seen, "entry in row", r->begin + i, r->v[k],
                          fuzzcase.loose ? 1e6 * PETSC_MACHINE_EPSILON * largest : 0, NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SeeLayout(Actor *a, Mat A)
{
  PetscInt M, N, m, n, rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(SeeInt(a, "rows", M));
  PetscCall(SeeInt(a, "columns", N));
  PetscCall(SeeInt(a, "local rows", m));
  PetscCall(SeeInt(a, "local columns", n));
  /* AIJCUSPARSE's operations do not keep block sizes as AIJ's do */
  if (fuzz.device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SeeInt(a, "block size", rbs));
  PetscCall(SeeInt(a, "column block size", cbs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SeeMat(Actor *a, const char *what, Mat A, PetscInt products)
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

PetscErrorCode HasFormat(Actor *a, Mat A, const char *what)
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

PetscErrorCode Adopt(Actor *a, Mat *C)
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

PetscErrorCode AdoptOrDestroy(Actor *a, Mat *C)
{
  PetscFunctionBegin;
  if (Chance(50)) {
    FuzzLog(" kept");
    PetscCall(Adopt(a, C));
  }
  PetscCall(MatDestroy(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Operand(Actor *a, PetscInt m, PetscInt n, PetscInt M, PetscInt N, Mat *B)
{
  const PetscBool is_aij = Chance(30);
  Shape s = {.comm = fuzz.comm, .rank = fuzz.rank, .size = fuzz.size, .M = M, .N = N, .m = m, .n = n, .bs = 1};

  PetscFunctionBegin;
  PetscCall(PetscSplitOwnership(fuzz.comm, &s.m, &s.M));
  PetscCall(PetscSplitOwnership(fuzz.comm, &s.n, &s.N));
  ShapeDraw(&s, PETSC_TRUE);
  if (s.values == VALUES_WIDE || s.values == VALUES_DENORMAL) s.values = VALUES_RANDOM;
  FuzzLog(" with %s %s", PatternNames[s.pattern], is_aij ? "aij" : "own");
  PetscCall(ShapeBuild(&s, is_aij ? MATAIJ : a->type, is_aij ? NULL : fuzzcase.prefix, (Build)draw(BUILD_CONVERT), B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode OperandLike(Actor *a, Mat A, Mat *B)
{
  PetscInt M, N, m, n;

  PetscFunctionBegin;
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(Operand(a, m, n, M, N, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TouchSome(Mat A)
{
  PetscFunctionBegin;
  if (Chance(50)) PetscCall(Touch(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
