/*
  Triangular solves with factors of our matrices on the device.

  The solves of AIJCUSPARSE accept device vectors only. With other vectors they lose the result without an error (PETSc
  3.26, optimized build). Users of AIJCUSPARSE choose device vectors together with the type; users of our types may have
  chosen the type only. So the factors of our matrices get solves that copy host vectors to the device and back. PETSc
  lets us register another function that creates factors. Each numeric factorization sets the solves, so they are
  replaced after it.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"

static const char          SpMVFactorKey[]  = "PetscSpMVFactor";
static const char *const   SpMVFactorKeys[] = {"PetscSpMVFactorRows", "PetscSpMVFactorColumns",
                                               "PetscSpMVFactorTransposed"};
static const MatFactorType SpMVFactorType[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};
static PetscErrorCode (*MatGetFactor_AIJCUSPARSE)(Mat, MatFactorType, Mat *) = NULL;

/* Data of one of our factors. Its objects are composed with the factor under SpMVFactorKeys[] */
typedef struct {
  struct _MatOps ops; /* AIJCUSPARSE's operations */
  MatFactorType  type;
  /* for LU and ILU: the symbolic phase and its arguments */
  PetscErrorCode (*symbolic)(Mat, Mat, IS, IS, const MatFactorInfo *);
  IS            row, col;
  MatFactorInfo info;
  PetscBool     transposed; /* a transposed system has been solved */
  Mat           fresh;      /* solves transposed systems since the latest numeric phase */
} SpMVFactor;

/* Replaces AIJCUSPARSE's function, if there is one, by ours */
#define SpMVTake(F, f, op, function)                  \
  do {                                                \
    if ((F)->ops->op && (F)->ops->op != (function)) { \
      (f)->ops.op  = (F)->ops->op;                    \
      (F)->ops->op = function;                        \
    }                                                 \
  } while (0)

/*
  Before its first transposed solve, AIJCUSPARSE lets cuSPARSE analyze the transposed factors, including their values.
  It does not repeat the analysis after the next numeric phase, so it would solve with the old values (PETSc 3.26).
  Therefore, once a transposed system has been solved, each numeric phase creates a new factor for transposed systems.
  Cholesky and ICC solve transposed systems with the same factor.
*/
static PetscErrorCode SpMVFactorRenewTransposed(Mat F, SpMVFactor *f, Mat A, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  if (!f->transposed || !f->symbolic) PetscFunctionReturn(PETSC_SUCCESS);
  f->fresh = NULL;
  PetscCall(PetscObjectCompose((PetscObject)F, SpMVFactorKeys[2], NULL));
  PetscCall((*MatGetFactor_AIJCUSPARSE)(A, f->type, &f->fresh));
  PetscCall(PetscObjectCompose((PetscObject)F, SpMVFactorKeys[2], (PetscObject)f->fresh));
  PetscCall(PetscObjectDereference((PetscObject)f->fresh)); /* F holds it */
  PetscCall((*f->symbolic)(f->fresh, A, f->row, f->col, &f->info));
  PetscCall((*f->fresh->ops->lufactornumeric)(f->fresh, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVFactorSolve(Mat F, PetscBool transpose, Vec b, Vec x)
{
  SpMVFactor *f;
  Vec         bb, xx;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)F, SpMVFactorKey, &f));
  /* even if the factor is bound to the CPU: AIJCUSPARSE still solves on the device */
  PetscCall(SpMVVecOnDevice(b, &bb));
  PetscCall(SpMVVecOnDevice(x, &xx));
  if (transpose) f->transposed = PETSC_TRUE;
  if (transpose && f->fresh)
    PetscCall((*f->fresh->ops->solvetranspose)(f->fresh, bb, xx));
  else
    PetscCall((*(transpose ? f->ops.solvetranspose : f->ops.solve))(F, bb, xx));
  PetscCall(SpMVVecRestore(x, PETSC_TRUE, &xx));
  PetscCall(SpMVVecRestore(b, PETSC_FALSE, &bb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_SpMVFactor(Mat F, Vec b, Vec x)
{
  return SpMVFactorSolve(F, PETSC_FALSE, b, x);
}

static PetscErrorCode MatSolveTranspose_SpMVFactor(Mat F, Vec b, Vec x)
{
  return SpMVFactorSolve(F, PETSC_TRUE, b, x);
}

/* ---------------------------------------------------------------- the numeric phases, which set the solves */

static PetscErrorCode MatFactorNumeric_SpMVFactor(Mat F, Mat A, const MatFactorInfo *info)
{
  SpMVFactor *f;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)F, SpMVFactorKey, &f));
  PetscCall((*(f->ops.lufactornumeric ? f->ops.lufactornumeric : f->ops.choleskyfactornumeric))(F, A, info));
  SpMVTake(F, f, lufactornumeric, MatFactorNumeric_SpMVFactor);
  SpMVTake(F, f, choleskyfactornumeric, MatFactorNumeric_SpMVFactor);
  SpMVTake(F, f, solve, MatSolve_SpMVFactor);
  SpMVTake(F, f, solvetranspose, MatSolveTranspose_SpMVFactor);
  PetscCall(SpMVFactorRenewTransposed(F, f, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the symbolic phases, which set the numeric one */

static PetscErrorCode MatLUFactorSymbolic_SpMVFactor(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  const PetscObject object[] = {(PetscObject)row, (PetscObject)col, NULL};
  SpMVFactor       *f;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)F, SpMVFactorKey, &f));
  f->symbolic = f->type == MAT_FACTOR_ILU ? f->ops.ilufactorsymbolic : f->ops.lufactorsymbolic;
  PetscCall((*f->symbolic)(F, A, row, col, info));
  SpMVTake(F, f, lufactornumeric, MatFactorNumeric_SpMVFactor);
  for (int k = 0; k < 3; k++) PetscCall(PetscObjectCompose((PetscObject)F, SpMVFactorKeys[k], object[k]));
  f->row        = row;
  f->col        = col;
  f->info       = *info;
  f->transposed = PETSC_FALSE;
  f->fresh      = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCholeskyFactorSymbolic_SpMVFactor(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  SpMVFactor *f;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)F, SpMVFactorKey, &f));
  PetscCall(
      (*(f->type == MAT_FACTOR_ICC ? f->ops.iccfactorsymbolic : f->ops.choleskyfactorsymbolic))(F, A, perm, info));
  SpMVTake(F, f, choleskyfactornumeric, MatFactorNumeric_SpMVFactor);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_SpMV(Mat A, MatFactorType type, Mat *F)
{
  Mat_SpMV   *spmv;
  SpMVFactor *f;

  PetscFunctionBegin;
  PetscCall((*MatGetFactor_AIJCUSPARSE)(A, type, F));
  PetscCall(MatSpMVGet(A, &spmv));
  if (!spmv || A->boundtocpu || !*F) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&f));
  f->type = type;
  PetscCall(SpMVDataSet((PetscObject)*F, SpMVFactorKey, f, PetscCtxDestroyDefault));
  SpMVTake(*F, f, lufactorsymbolic, MatLUFactorSymbolic_SpMVFactor);
  SpMVTake(*F, f, ilufactorsymbolic, MatLUFactorSymbolic_SpMVFactor);
  SpMVTake(*F, f, choleskyfactorsymbolic, MatCholeskyFactorSymbolic_SpMVFactor);
  SpMVTake(*F, f, iccfactorsymbolic, MatCholeskyFactorSymbolic_SpMVFactor);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVRegisterFactors(void)
{
  PetscBool package, mat;
  PetscErrorCode (*make)(Mat, MatFactorType, Mat *);

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(SpMVFactorType); k++) {
    PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, SpMVFactorType[k], &package, &mat, &make));
    if (!make || make == MatGetFactor_SpMV) continue;
    MatGetFactor_AIJCUSPARSE = make; /* the same function for all four */
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, SpMVFactorType[k], MatGetFactor_SpMV));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
