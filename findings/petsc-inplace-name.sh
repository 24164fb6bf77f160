#!/usr/bin/env bash
# PETSc 3.26.1: MatConvert() in place, and the name and options prefix of the matrix.
# Guess: the matrix stays the same object, so it keeps both.
# Seen: to aijperm it does; to baij, dense or sell both are lost, so that options with the prefix no longer reach
# it.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {MATSEQAIJ, MATSEQAIJPERM, MATSEQBAIJ, MATSEQDENSE, MATSEQSELL};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int t = 0; t < 5; t++) {
    Mat         A;
    const char *name, *prefix;
    PetscBool   mine;

    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 6, -1, 4, -1, &A));
    PetscCall(PetscObjectSetName((PetscObject)A, "mine"));
    PetscCall(MatSetOptionsPrefix(A, "p_"));
    PetscCall(MatConvert(A, types[t], MAT_INPLACE_MATRIX, &A));
    PetscCall(PetscObjectGetName((PetscObject)A, &name));
    PetscCall(MatGetOptionsPrefix(A, &prefix));
    PetscCall(PetscStrcmp(name, "mine", &mine));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* to %s: name %s, prefix %s\n", types[t], mine ? "kept" : "lost",
                          prefix ? prefix : "lost"));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* to seqaij: name kept, prefix p_
* to seqaijperm: name kept, prefix p_
* to seqbaij: name lost, prefix lost
* to seqdense: name lost, prefix lost
* to seqsell: name lost, prefix lost
END
