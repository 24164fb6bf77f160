/*
  Triangular solves with factors of our matrices on the device.

  AIJCUSPARSE's take vectors of the device alone, and say nothing when they get others: the result is lost. Its users have device vectors, as they
  chose them together with the type. Ours may have chosen the type only. So the factors that it makes of our matrices are given solves
  that stage host vectors; PETSc lets a factor's maker be replaced, and the solves are put in place by the numeric factorisation.
*/
#include "matspmv.h"

#if defined(PETSC_HAVE_CUDA)

static const char          SpMVFactorKey[]                                   = "PetscSpMVFactor";
static const MatFactorType SpMVFactorType[]                                  = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};
static PetscErrorCode (*MatGetFactor_AIJCUSPARSE)(Mat, MatFactorType, Mat *) = NULL;

/* The operations of a factor that lie behind ours */
static PetscErrorCode SpMVFactorGet(Mat F, struct _MatOps **behind)
{
  PetscContainer container;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)F, SpMVFactorKey, (PetscObject *)&container));
  PetscCheck(container, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A factor that is none of ours");
  PetscCall(PetscContainerGetPointer(container, (void **)behind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #define SpMVTake(F, behind, op, f)           \
    if ((F)->ops->op && (F)->ops->op != (f)) { \
      (behind)->op = (F)->ops->op;             \
      (F)->ops->op = f;                        \
    }

static PetscErrorCode SpMVFactorSolve(Mat F, PetscBool transpose, Vec b, Vec x)
{
  struct _MatOps *behind;
  Vec             bb, xx;

  PetscFunctionBegin;
  PetscCall(SpMVFactorGet(F, &behind));
  PetscCall(SpMVVecOnDevice(b, PETSC_TRUE, &bb)); /* also where the factor has been bound to the host since: that changes no solve of AIJCUSPARSE's */
  PetscCall(SpMVVecOnDevice(x, PETSC_FALSE, &xx));
  PetscCall((*(transpose ? behind->solvetranspose : behind->solve))(F, bb, xx));
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

  /* A factorisation's numeric phase, which sets the solves, and its symbolic one, which sets the numeric one */
  #define SpMVFactorNumeric(Op, op)                                                \
    static PetscErrorCode Op##_SpMVFactor(Mat F, Mat A, const MatFactorInfo *info) \
    {                                                                              \
      struct _MatOps *behind;                                                      \
                                                                                   \
      PetscFunctionBegin;                                                          \
      PetscCall(SpMVFactorGet(F, &behind));                                        \
      PetscCall((*behind->op)(F, A, info));                                        \
      SpMVTake(F, behind, op, Op##_SpMVFactor);                                    \
      SpMVTake(F, behind, solve, MatSolve_SpMVFactor);                             \
      SpMVTake(F, behind, solvetranspose, MatSolveTranspose_SpMVFactor);           \
      PetscFunctionReturn(PETSC_SUCCESS);                                          \
    }
  #define SpMVFactorSymbolic(Op, op, numeric, Numeric, parameters, ...) \
    static PetscErrorCode Op##_SpMVFactor parameters                    \
    {                                                                   \
      struct _MatOps *behind;                                           \
                                                                        \
      PetscFunctionBegin;                                               \
      PetscCall(SpMVFactorGet(F, &behind));                             \
      PetscCall((*behind->op)(__VA_ARGS__));                            \
      SpMVTake(F, behind, numeric, Numeric##_SpMVFactor);               \
      PetscFunctionReturn(PETSC_SUCCESS);                               \
    }
SpMVFactorNumeric(MatLUFactorNumeric, lufactornumeric) SpMVFactorNumeric(MatCholeskyFactorNumeric, choleskyfactornumeric)
    SpMVFactorSymbolic(MatLUFactorSymbolic, lufactorsymbolic, lufactornumeric, MatLUFactorNumeric, (Mat F, Mat A, IS r, IS c, const MatFactorInfo *info), F, A,
                       r, c, info) SpMVFactorSymbolic(MatILUFactorSymbolic, ilufactorsymbolic, lufactornumeric, MatLUFactorNumeric,
                                                      (Mat F, Mat A, IS r, IS c, const MatFactorInfo *info), F, A, r, c, info)
        SpMVFactorSymbolic(MatCholeskyFactorSymbolic, choleskyfactorsymbolic, choleskyfactornumeric, MatCholeskyFactorNumeric,
                           (Mat F, Mat A, IS p, const MatFactorInfo *info), F, A, p, info)
            SpMVFactorSymbolic(MatICCFactorSymbolic, iccfactorsymbolic, choleskyfactornumeric, MatCholeskyFactorNumeric,
                               (Mat F, Mat A, IS p, const MatFactorInfo *info), F, A, p, info)

                static PetscErrorCode MatGetFactor_SpMV(Mat A, MatFactorType type, Mat *F)
{
  Mat_SpMV       *spmv;
  PetscContainer  container;
  struct _MatOps *behind;

  PetscFunctionBegin;
  PetscCall((*MatGetFactor_AIJCUSPARSE)(A, type, F));
  PetscCall(MatSpMVGet(A, &spmv));
  if (!spmv || A->boundtocpu || !*F) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&behind));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
  PetscCall(PetscContainerSetPointer(container, behind));
  PetscCall(PetscContainerSetCtxDestroy(container, PetscCtxDestroyDefault));
  PetscCall(PetscObjectCompose((PetscObject)*F, SpMVFactorKey, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  SpMVTake(*F, behind, lufactorsymbolic, MatLUFactorSymbolic_SpMVFactor);
  SpMVTake(*F, behind, ilufactorsymbolic, MatILUFactorSymbolic_SpMVFactor);
  SpMVTake(*F, behind, choleskyfactorsymbolic, MatCholeskyFactorSymbolic_SpMVFactor);
  SpMVTake(*F, behind, iccfactorsymbolic, MatICCFactorSymbolic_SpMVFactor);
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
    MatGetFactor_AIJCUSPARSE = make; /* the same for all */
    PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, SpMVFactorType[k], MatGetFactor_SpMV));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
