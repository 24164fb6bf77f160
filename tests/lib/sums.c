#include "sums.h"

PetscScalar XValue(XKind kind, PetscInt i, PetscInt salt)
{
  const PetscReal u = HashUnit(i, 8, salt);

  switch (kind) {
  case X_ONES: return 1.;
  case X_SPARSE: return u < 0.7 ? ScalarOf(u < 0.3 ? -0. : 0., 0.) : Value(i, 9, salt);
  case X_WIDE: return PetscPowReal(10, PetscDefined(USE_REAL_SINGLE) ? 6 * u - 3 : 24 * u - 12) * Value(i, 9, salt);
  case X_NONFINITE:
    return u < 0.03   ? ScalarOf(NAN, 0.)
           : u < 0.05 ? ScalarOf(INFINITY, 0.)
           : u < 0.07 ? ScalarOf(-INFINITY, 0.)
                      : Value(i, 9, salt);
  case X_DENORMAL: return FUZZ_DENORMAL * Value(i, 9, salt);
  default: return Value(i, 9, salt);
  }
}

PetscErrorCode XFill(Vec x, XKind kind, PetscInt salt)
{
  PetscInt     s, e;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &s, &e));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt i = s; i < e; i++) a[i - s] = XValue(kind, i, salt);
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SumAdd(Sum *s, PetscScalar a, PetscScalar x, PetscBool conjugate, int sign)
{
  const long double ar = PetscRealPart(a), ai = (conjugate ? -1 : 1) * PetscImaginaryPart(a), xr = PetscRealPart(x),
                    xi = PetscImaginaryPart(x);

  s->re += sign * (PetscDefined(USE_COMPLEX) ? ar * xr - ai * xi : ar * xr);
  if (PetscDefined(USE_COMPLEX)) s->im += sign * (ar * xi + ai * xr);
  s->abs += (long double)PetscAbsScalar(a) * PetscAbsScalar(x);
  s->terms++;
}

PetscBool SumIs(const Sum *s, PetscScalar y, PetscReal *error, PetscReal *bound)
{
  const long double re = s->re, im = s->im, factor = PetscDefined(USE_COMPLEX) ? 3 : 1;

  *error = *bound = 0;
  /* overflow depends on the order of the terms, also if a value is Inf or NaN: */
  if (s->abs > PETSC_MAX_REAL / 8) return PETSC_TRUE;
  if (!isfinite(re) || !isfinite(im)) {
    if (PetscDefined(USE_COMPLEX)) return (PetscBool)(PetscIsInfOrNanScalar(y));
    return (PetscBool)(isnan(re) ? PetscIsNanScalar(y) : PetscRealPart(y) == (PetscReal)re);
  }
  *error = (PetscReal)hypotl(PetscRealPart(y) - re, PetscImaginaryPart(y) - im);
  *bound = (PetscReal)(factor * ((s->terms / 2 + 8) * PETSC_MACHINE_EPSILON * s->abs +
                                 4 * (s->terms + 1) * FUZZ_REAL_MIN * PETSC_MACHINE_EPSILON));
  return (PetscBool)(*error <= *bound);
}

static const char *const ProductNames[] = {
    "A x",   "y + A x",   "y + A x into y",   "A^T x",   "y + A^T x", "y + A^T x into y",
    "A^H x", "y + A^H x", "y + A^H x into y", "b - A x", "x + A x"};

PetscErrorCode ProductReference(const LocalRows *r, PetscInt N, PetscInt ys, PetscInt ny, int which, XKind xkind,
                                PetscInt xsalt, XKind ykind, PetscInt ysalt, Sum sum[])
{
  const PetscBool transpose = (PetscBool)(which >= 3 && which <= 8), conjugate = (PetscBool)(which >= 6 && which <= 8);
  const PetscBool add = (PetscBool)(which == 1 || which == 2 || which == 4 || which == 5 || which >= 7);

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(sum, transpose ? N : ny));
  for (PetscInt i = 0; i < r->m; i++) {
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) {
      if (transpose)
        SumAdd(&sum[r->j[k]], r->v[k], XValue(xkind, r->begin + i, xsalt), conjugate, 1);
      else
        SumAdd(&sum[i], r->v[k], XValue(xkind, r->j[k], xsalt), PETSC_FALSE, which == 9 ? -1 : 1);
    }
  }
  if (transpose) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 4 * (int)N, MPI_LONG_DOUBLE, MPI_SUM, r->comm));
  if (transpose) PetscCall(PetscArraymove(sum, sum + ys, ny));
  for (PetscInt i = 0; add && i < ny; i++) SumAdd(&sum[i], 1., XValue(ykind, ys + i, ysalt), PETSC_FALSE, 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductRun(Mat A, int which, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (which) {
  case 0: PetscCall(MatMult(A, x, z)); break;
  case 1: PetscCall(MatMultAdd(A, x, y, z)); break;
  case 2: PetscCall(MatMultAdd(A, x, z, z)); break;
  case 3: PetscCall(MatMultTranspose(A, x, z)); break;
  case 4: PetscCall(MatMultTransposeAdd(A, x, y, z)); break;
  case 5: PetscCall(MatMultTransposeAdd(A, x, z, z)); break;
  case 6: PetscCall(MatMultHermitianTranspose(A, x, z)); break;
  case 7: PetscCall(MatMultHermitianTransposeAdd(A, x, y, z)); break;
  case 8: PetscCall(MatMultHermitianTransposeAdd(A, x, z, z)); break;
  case 9: PetscCall(MatResidual(A, y, x, z)); break;
  default: PetscCall(MatMultAdd(A, x, x, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SameLayouts(Mat A, Mat B, PetscBool transposed, PetscBool *same)
{
  PetscLayout ar, ac, br, bc;

  PetscFunctionBegin;
  PetscCall(MatGetLayouts(A, &ar, &ac));
  PetscCall(MatGetLayouts(B, &br, &bc));
  PetscCall(PetscLayoutCompare(ar, transposed ? bc : br, same));
  if (*same) PetscCall(PetscLayoutCompare(ac, transposed ? br : bc, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductCheck(Mat A, const LocalRows *r, const char *what)
{
  const XKind        xkind = (XKind)draw(XKINDS), ykind = Chance(70) ? X_RANDOM : (XKind)draw(XKINDS);
  const PetscInt     xsalt = draw(100000);
  PetscInt           which = draw(11), ysalt = draw(100000), M, N, ys, ye, wrong = -1;
  PetscBool          transpose, into, same;
  PetscReal          error, bound;
  const PetscScalar *z_;
  Sum               *sum;
  Vec                x, y, z;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &same));
  if (which == 10 && !same) which = 1;
  transpose = (PetscBool)(which >= 3 && which <= 8);
  into      = (PetscBool)(which == 2 || which == 5 || which == 8);
  PetscCall(transpose ? MatCreateVecs(A, &z, &x) : MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(XFill(x, xkind, xsalt));
  PetscCall(XFill(y, ykind, ysalt));
  PetscCall(XFill(z, into ? ykind : X_NONFINITE, ysalt)); /* the previous contents must not matter */
  PetscCall(ProductRun(A, which, x, y, z));
  PetscCall(VecGetOwnershipRange(z, &ys, &ye));
  PetscCall(PetscMalloc1(PetscMax(PetscMax(M, N), 1), &sum));
  PetscCall(ProductReference(r, N, ys, ye - ys, which, xkind, xsalt, which == 10 ? xkind : ykind,
                             which == 10 ? xsalt : ysalt, sum));
  PetscCall(VecGetArrayRead(z, &z_));
  for (PetscInt i = 0; i < ye - ys && wrong < 0; i++) {
    if (!SumIs(&sum[i], z_[i], &error, &bound)) wrong = i;
  }
  if (wrong >= 0)
    FuzzReport("%s, %s, row %" PetscInt_FMT ": %.17g%+.3gi, not %.17g%+.3gi; off by %g where %g is allowed", what,
               ProductNames[which], ys + wrong, (double)PetscRealPart(z_[wrong]), (double)PetscImaginaryPart(z_[wrong]),
               (double)sum[wrong].re, (double)sum[wrong].im, (double)error, (double)bound);
  fuzz.checks += ye - ys;
  PetscCall(VecRestoreArrayRead(z, &z_));
  PetscCall(PetscFree(sum));
  PetscCall(Destroy(&x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
