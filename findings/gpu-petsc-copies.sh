#!/usr/bin/env bash
# PETSc 3.26.1, vectors of type cuda and AIJCUSPARSE, everything on the GPU: what an operation copies between host
# and GPU, in vectors, or in arrays of the matrix's values; "afterwards" is what the next operation on the GPU
# copies because of it.
# Guess: access to one value copies one number; functions of one family behave alike.
# Seen: VecGetValues() of one entry copies the vector to the host, VecSetValue() of one entry also back; VecMDot()
# copies nothing, VecMTDot() all vectors; VecSqrtAbs() nothing, VecPow() the vector both ways; MatDiagonalScale()
# nothing, MatShift() all values both ways; MatDuplicate() the copy's pattern and values.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
{ echo "#include \"$here/count.h\""; cat <<'END'
#define V(title, call) ONE(title, call, 0)
#define M(title, call) ONE(title, call, 1)
/* before each operation all vectors and both matrices are used on the GPU */
#define ONE(title, call, matrix)                                                                           \
  do {                                                                                                     \
    double         unit = 8.0 * (matrix ? 3 * n - 2 : n), host, gpu;                                       \
    PetscErrorCode ierr;                                                                                   \
                                                                                                           \
    PetscCall(VecAXPY(x, 1e-300, y));                                                                      \
    PetscCall(VecAXPY(z, 1e-300, y));                                                                      \
    PetscCall(VecAXPY(y, 1e-300, x));                                                                      \
    PetscCall(VecMAXPY(z, 4, s, w));                                                                       \
    PetscCall(MatMult(A, x, z));                                                                           \
    PetscCall(MatMult(B, x, z));                                                                           \
    PetscCall(MatMultTranspose(A, x, z));                                                                  \
    to_gpu = to_host = 0;                                                                                  \
    ierr             = call;                                                                               \
    PetscCall(ierr);                                                                                       \
    host = to_host / unit, gpu = to_gpu / unit;                                                            \
    to_gpu = to_host = 0;                                                                                  \
    if (matrix)                                                                                            \
      PetscCall(MatMult(A, x, z));                                                                         \
    else {                                                                                                 \
      PetscCall(VecAXPY(x, 1e-300, y));                                                                    \
      PetscCall(VecAXPY(z, 1e-300, y));                                                                    \
    }                                                                                                      \
    printf("%s%s: %.2f to the host, %.2f to the GPU, afterwards %.2f and %.2f\n",                          \
           host + gpu + (to_host + to_gpu) / unit < 0.005 ? "  " : "* ", title, host, gpu, to_host / unit, \
           to_gpu / unit);                                                                                 \
  } while (0);
int main(int argc, char **argv)
{
  PetscInt    n = 200000, zero = 0, one = 1, i1, i2, i3;
  Mat         A, B, C, D, T, P, Q;
  Vec         x, y, z, w[4], sub;
  IS          is, half, strided;
  PetscScalar s[4] = {1, 2, 3, 4};
  PetscReal   r, r1, r2;
  PetscBool   flag;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJCUSPARSE, n, -1, 4, -1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  for (int k = 0; k < 4; k++) {
    PetscCall(VecDuplicate(x, &w[k]));
    PetscCall(VecSet(w[k], 1.0 / n));
  }
  PetscCall(VecSet(x, 1));
  PetscCall(VecSet(y, 2));
  PetscCall(VecSet(z, 3));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &is));
  PetscCall(ISSetPermutation(is));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, 0, 1, &half));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, 0, 2, &strided));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &P));
  PetscCall(MatPtAP(A, B, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &Q));
  /* vectors x, y, z, w[4] and matrices A, B of n rows are on the GPU */
  V("VecSet", VecSet(z, 2.0))
  V("VecCopy", VecCopy(x, z))
  V("VecAXPY", VecAXPY(z, 2.0, x))
  V("VecAXPBYPCZ", VecAXPBYPCZ(z, 2.0, 3.0, 4.0, x, y))
  V("VecMAXPY of 4", VecMAXPY(z, 4, s, w))
  V("VecScale", VecScale(z, 2.0))
  V("VecShift", VecShift(z, 2.0))
  V("VecPointwiseMult", VecPointwiseMult(z, x, y))
  V("VecPointwiseDivide", VecPointwiseDivide(z, x, y))
  V("VecPointwiseMaxAbs", VecPointwiseMaxAbs(z, x, y))
  V("VecMaxPointwiseDivide", VecMaxPointwiseDivide(x, y, &r))
  V("VecReciprocal", VecReciprocal(z))
  V("VecAbs", VecAbs(z))
  V("VecSqrtAbs", VecSqrtAbs(z))
  V("VecPow", VecPow(z, 2.0))
  V("VecSwap", VecSwap(z, y))
  V("VecDot", VecDot(x, y, &s[0]))
  V("VecTDot", VecTDot(x, y, &s[0]))
  V("VecMDot of 4", VecMDot(x, 4, w, s))
  V("VecMTDot of 4", VecMTDot(x, 4, w, s))
  V("VecNorm 2", VecNorm(x, NORM_2, &r))
  V("VecNorm 1", VecNorm(x, NORM_1, &r))
  V("VecNorm infinity", VecNorm(x, NORM_INFINITY, &r))
  V("VecDotNorm2", VecDotNorm2(x, y, &s[0], &r))
  V("VecSum", VecSum(x, &s[0]))
  V("VecMean", VecMean(x, &s[0]))
  V("VecMax", VecMax(x, NULL, &r))
  V("VecMax with its place", VecMax(x, &one, &r))
  V("VecEqual", VecEqual(x, y, &flag))
  V("VecChop/VecFilter", VecFilter(z, 1e-30))
  V("VecStrideNorm", VecStrideNorm(x, 0, NORM_2, &r))
  V("VecStrideScale", VecStrideScale(z, 0, 2.0))
  V("VecSetRandom", VecSetRandom(z, NULL))
  V("VecSetValue and assembly", (VecSetValue(z, 1, 2.0, INSERT_VALUES), VecAssemblyBegin(z), VecAssemblyEnd(z)))
  V("VecGetValues", VecGetValues(x, 1, &zero, s))
  V("VecISSet", VecISSet(z, is, 2.0))
  V("VecPermute", VecPermute(z, is, PETSC_FALSE))
  V("VecNormalize", VecNormalize(z, NULL))
  V("VecErrorWeightedNorms",
    VecErrorWeightedNorms(x, y, NULL, NORM_2, 1e-3, NULL, 1e-3, NULL, 0.0, &r, &i1, &r1, &i2, &r2, &i3))
  V("VecLog", VecLog(z))
  V("VecWAXPY", VecWAXPY(z, 2.0, x, y))
  V("VecConjugate", VecConjugate(z))
  V("VecGetSubVector, even half", (VecGetSubVector(x, half, &sub), VecRestoreSubVector(x, half, &sub)))
  V("VecGetSubVector, strided", (VecGetSubVector(x, strided, &sub), VecRestoreSubVector(x, strided, &sub)))
  V("VecDuplicate, VecSet, VecDestroy", (VecDuplicate(x, &sub), VecSet(sub, 1.0), VecDestroy(&sub)))
  V("VecConcatenate", (VecConcatenate(2, w, &sub, NULL), VecDestroy(&sub)))
  M("MatMult", MatMult(A, x, z))
  M("MatMultAdd", MatMultAdd(A, x, y, z))
  M("MatMultTranspose", MatMultTranspose(A, x, z))
  M("MatScale", MatScale(A, 0.5))
  M("MatShift", MatShift(A, 1.0))
  M("MatDiagonalScale", MatDiagonalScale(A, x, y))
  M("MatDiagonalSet", MatDiagonalSet(A, x, INSERT_VALUES))
  M("MatAXPY, same pattern", MatAXPY(A, 2.0, B, SAME_NONZERO_PATTERN))
  M("MatGetDiagonal", MatGetDiagonal(A, z))
  M("MatGetRowSum", MatGetRowSum(A, z))
  M("MatGetRowMaxAbs", MatGetRowMaxAbs(A, z, NULL))
  M("MatNorm Frobenius", MatNorm(A, NORM_FROBENIUS, &r))
  M("MatNorm 1", MatNorm(A, NORM_1, &r))
  M("MatNorm infinity", MatNorm(A, NORM_INFINITY, &r))
  M("MatGetTrace", MatGetTrace(A, s))
  M("MatZeroEntries", MatZeroEntries(C))
  M("MatCopy, same pattern", MatCopy(A, B, SAME_NONZERO_PATTERN))
  M("MatDuplicate", (MatDuplicate(A, MAT_COPY_VALUES, &D), MatMult(D, x, z), MatDestroy(&D)))
  M("MatTranspose, reused", MatTranspose(A, MAT_REUSE_MATRIX, &T))
  M("MatMatMult, reused", MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &P))
  M("MatPtAP, reused", MatPtAP(A, B, MAT_REUSE_MATRIX, PETSC_DETERMINE, &Q))
  M("MatZeroRows of 1 row", MatZeroRows(A, 1, &one, 1.0, NULL, NULL))
  M("MatSetValue and assembly", (MatSetValue(A, 1, 1, 2.0, INSERT_VALUES), MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY),
                                 MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY)))
  M("MatAssembly without a change", (MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY), MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY)))
  M("MatGetRow of 1 row", (MatGetRow(A, 1, NULL, NULL, NULL), MatRestoreRow(A, 1, NULL, NULL, NULL)))
  M("MatEqual", MatEqual(A, B, &flag))
  M("MatIsSymmetric", MatIsSymmetric(A, 0.0, &flag))
  M("MatFilter", MatFilter(A, 1e-30, PETSC_FALSE, PETSC_FALSE))
  M("MatConjugate", MatConjugate(A))
  M("MatRealPart", MatRealPart(A))
  M("MatAXPY, different pattern", MatAXPY(A, 2.0, B, DIFFERENT_NONZERO_PATTERN))
  PetscCall(PetscFinalize());
  return 0;
}
END
} | compile -lcudart -ldl
see ./program
behaves <<'END'
* VecMaxPointwiseDivide: 2.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* VecPow: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecMTDot of 4: 5.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* VecEqual: 2.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* VecChop/VecFilter: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecStrideNorm: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* VecStrideScale: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecSetValue and assembly: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecGetValues: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* VecISSet: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecPermute: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* VecConcatenate: 2.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* MatShift: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* MatDiagonalSet: 1.33 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* MatGetRowMaxAbs: 1.00 to the host, 0.00 to the GPU, afterwards 0.00 and 0.00
* MatDuplicate: 0.00 to the host, 1.67 to the GPU, afterwards 0.00 and 0.00
* MatZeroRows of 1 row: 0.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.67
* MatSetValue and assembly: 0.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* MatRealPart: 0.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.00
* MatAXPY, different pattern: 0.00 to the host, 0.00 to the GPU, afterwards 0.00 and 1.67
END
