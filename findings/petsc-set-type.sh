#!/usr/bin/env bash
# PETSc 3.26.1: MatSetType() of an assembled matrix.
# Guess: it converts, or it is an error; or at least aij -> aijperm -> aij gives the matrix back.
# Seen: to a subtype of its own type it converts, back to the plain type it empties the matrix, without an error.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *from[] = {MATSEQAIJ, MATSEQAIJ, MATSEQAIJPERM, MATSEQAIJ, MATSEQAIJ},
             *to[]   = {MATSEQAIJ, MATSEQAIJPERM, MATSEQAIJ, MATSEQBAIJ, MATSEQSELL};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int k = 0; k < 5; k++) {
    Mat       A;
    PetscBool assembled;

    PetscCall(Tridiagonal(PETSC_COMM_SELF, from[k], 6, -1, 4, -1, &A));
    PetscCall(MatSetType(A, to[k]));
    PetscCall(MatAssembled(A, &assembled));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* MatSetType() from %s to %s: %s\n", from[k], to[k],
                          assembled ? "the entries stay" : "an empty matrix, no longer assembled"));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* MatSetType() from seqaij to seqaij: the entries stay
* MatSetType() from seqaij to seqaijperm: the entries stay
* MatSetType() from seqaijperm to seqaij: an empty matrix, no longer assembled
* MatSetType() from seqaij to seqbaij: an empty matrix, no longer assembled
* MatSetType() from seqaij to seqsell: an empty matrix, no longer assembled
END
