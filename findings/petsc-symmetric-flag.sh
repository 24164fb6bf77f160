#!/usr/bin/env bash
# PETSc 3.26.1: MatIsSymmetric() after the matrix has changed.
# Guess: the answer of an earlier call is kept only while the values are the same.
# Seen: a "yes" survives functions that make the matrix unsymmetric.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *names[] = {
      "MatAXPY(), same pattern",       "MatCopy(), same pattern", "MatSeqAIJGetArray()",      "MatZeroRows()",
      "MatDiagonalScale(), left only", "MatSetValue()",           "MatAXPY(), other pattern", "MatScale()"};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int how = 0; how < 8; how++) {
    Mat       A, B, T;
    Vec       d, e;
    PetscBool yes, known, really;
    PetscInt  row = 2;

    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 6, -1, 4, -1, &A));
    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 6, -2, 4, how == 6 ? 0 : -1, &B));
    PetscCall(MatCreateVecs(A, &d, &e));
    for (PetscInt i = 0; i < 6; i++) PetscCall(VecSetValue(d, i, 1 + i, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(d));
    PetscCall(VecAssemblyEnd(d));
    PetscCall(MatIsSymmetric(A, 0, &yes));
    switch (how) {
    case 0: PetscCall(MatAXPY(A, 1, B, SAME_NONZERO_PATTERN)); break;
    case 1: PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN)); break;
    case 2: {
      PetscScalar *a;
      PetscCall(MatSeqAIJGetArray(A, &a));
      a[1] = 7;
      PetscCall(MatSeqAIJRestoreArray(A, &a));
      break;
    }
    case 3: PetscCall(MatZeroRows(A, 1, &row, 1, NULL, NULL)); break;
    case 4: PetscCall(MatDiagonalScale(A, d, NULL)); break;
    case 5:
      PetscCall(MatSetValue(A, 0, 1, 7, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      break;
    case 6: PetscCall(MatAXPY(A, 1, B, SUBSET_NONZERO_PATTERN)); break;
    default: PetscCall(MatScale(A, 2));
    }
    PetscCall(MatIsSymmetricKnown(A, &known, &yes));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: MatIsSymmetricKnown() %s", names[how],
                          known ? (yes ? "yes" : "no") : "not known"));
    PetscCall(MatIsSymmetric(A, 0, &yes));
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatEqual(A, T, &really));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", MatIsSymmetric() %s, equal to its transpose: %s\n", yes ? "yes" : "no",
                          really ? "yes" : "no"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&T));
    PetscCall(VecDestroy(&d));
    PetscCall(VecDestroy(&e));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* MatAXPY(), same pattern: MatIsSymmetricKnown() yes, MatIsSymmetric() yes, equal to its transpose: no
* MatCopy(), same pattern: MatIsSymmetricKnown() yes, MatIsSymmetric() yes, equal to its transpose: no
* MatSeqAIJGetArray(): MatIsSymmetricKnown() yes, MatIsSymmetric() yes, equal to its transpose: no
* MatZeroRows(): MatIsSymmetricKnown() yes, MatIsSymmetric() yes, equal to its transpose: no
* MatDiagonalScale(), left only: MatIsSymmetricKnown() no, MatIsSymmetric() no, equal to its transpose: no
* MatSetValue(): MatIsSymmetricKnown() not known, MatIsSymmetric() no, equal to its transpose: no
* MatAXPY(), other pattern: MatIsSymmetricKnown() not known, MatIsSymmetric() no, equal to its transpose: no
* MatScale(): MatIsSymmetricKnown() yes, MatIsSymmetric() yes, equal to its transpose: yes
END
