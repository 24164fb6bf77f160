/* Products of batches with dense matrices, A B and A^T B, compared with those of AIJ column by column */
#include "batch.h"
#include "dense.h"

/* Creates a dense matrix that is random before column `nan` and NaN from it on, with a leading dimension longer than
   the columns */
static PetscErrorCode CreateDense(Mat A, PetscInt columns, PetscInt nan, PetscBool on_device, Mat *D)
{
  PetscInt     n, N, lda;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), D));
  PetscCall(MatSetSizes(*D, n, PETSC_DECIDE, N, columns));
  PetscCall(MatSetType(*D, MATDENSE));
  PetscCall(MatDenseSetLDA(*D, n + 3));
  PetscCall(MatSetUp(*D));
  PetscCall(MatDenseGetLDA(*D, &lda));
  PetscCall(MatDenseGetArrayWrite(*D, &a));
  for (PetscInt q = 0; q < columns; q++) {
    for (PetscInt r = 0; r < n; r++)
      a[(size_t)q * (size_t)lda + (size_t)r] = q >= nan ? (PetscScalar)NAN : RandomNumber();
  }
  PetscCall(MatDenseRestoreArrayWrite(*D, &a));
  PetscCall(MatAssemblyBegin(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*D, MAT_FINAL_ASSEMBLY));
#if defined(PETSC_HAVE_CUDA)
  if (on_device) PetscCall(MatConvert(*D, MATDENSECUDA, MAT_INPLACE_MATRIX, D));
#else
  (void)on_device;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Column q of C = op(A) B; aij is A in AIJ, bound its absolute values */
static PetscErrorCode CompareColumn(Mat aij, Mat bound, Mat B, Mat C, PetscInt q, Op op, const char *what)
{
  Vec  x, y, ref, b;
  char text[128];

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(aij, &x, &ref)); /* on the host */
  PetscCall(VecDuplicate(ref, &b));
  PetscCall(VecDuplicate(ref, &y));
  PetscCall(DenseGetColumn(B, q, x));
  PetscCall(Apply(aij, op, x, NULL, ref));
  PetscCall(VecAbs(x));
  PetscCall(Apply(bound, op, x, NULL, b));
  PetscCall(DenseGetColumn(C, q, y));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s, column %" PetscInt_FMT, what, q));
  PetscCall(Compare(y, ref, b, text));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&ref));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Multiplies into a new C, into the same C with other values of A, and into the caller's C, which must be overwritten.
   The last of several columns of B is NaN */
static PetscErrorCode Multiply(Mat A, Mat aij, Mat bound, PetscInt columns, Op op, PetscBool on_device)
{
  static const char *const names[] = {"A B", "A^T B"}, *const passes[] = {"new", "again", "own C"};
  const PetscInt numbers = columns > 1 ? columns - 1 : 1;
  Mat            B, C;
  char           what[64];

  PetscFunctionBeginUser;
  PetscCall(CreateDense(A, columns, numbers, on_device, &B));
  for (int pass = 0; pass < 3; pass++) {
    if (pass == 1) {
      PetscCall(MatScale(A, 0.5));
      PetscCall(MatScale(aij, 0.5));
    }
    if (pass == 2) {
      PetscCall(MatDestroy(&C));
      PetscCall(CreateDense(A, columns, 0, on_device, &C));
      PetscCall(MatProductCreateWithMat(A, B, NULL, C));
      PetscCall(MatProductSetType(C, op == MULT ? MATPRODUCT_AB : MATPRODUCT_AtB));
      PetscCall(MatProductSetFromOptions(C));
      PetscCall(MatProductSymbolic(C));
      PetscCall(MatProductNumeric(C));
    } else
      PetscCall((op == MULT ? MatMatMult : MatTransposeMatMult)(A, B, pass ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX,
                                                                PETSC_DEFAULT, &C));
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %" PetscInt_FMT " columns, %s", names[op], columns, passes[pass]));
    for (PetscInt q = 0; q < numbers; q++) PetscCall(CompareColumn(aij, bound, B, C, q, op, what));
  }
  PetscCall(MatScale(A, 2.0)); /* as before, without rounding */
  PetscCall(MatScale(aij, 2.0));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Columns(Mat A, const Arrays *a)
{
  static const PetscInt columns[] = {1, 4, 9};
  Mat                   aij, bound;

  PetscFunctionBeginUser;
  PetscCall(MakeAIJ(PetscObjectComm((PetscObject)A), a, &aij, &bound));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
    for (Op op = MULT; op <= TRANSPOSE; op++) {
      for (int on_device = 0; on_device <= (int)device; on_device++)
        PetscCall(Multiply(A, aij, bound, columns[k], op, (PetscBool)on_device));
    }
  }
  PetscCall(MatDestroy(&aij));
  PetscCall(MatDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}
