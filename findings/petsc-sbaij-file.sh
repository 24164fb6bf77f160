#!/usr/bin/env bash
# PETSc 3.26.1: a symmetric matrix (SBAIJ) written to a binary file and loaded as AIJ.
# Guess: the file is in AIJ's format, which has no flag for symmetry, so it holds both triangles.
# Seen: it holds the upper triangle only, and every reader takes it for the matrix; SciPy, too.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  Mat         A, S, B;
  MatInfo     info;
  PetscBool   yes;
  PetscReal   norm;
  PetscViewer v;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 6, -1, 4, -1, &A));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatConvert(A, MATSEQSBAIJ, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatNorm(S, NORM_1, &norm));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* SBAIJ: norm %g\n", (double)norm));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, "s.bin", FILE_MODE_WRITE, &v));
  PetscCall(MatView(S, v));
  PetscCall(PetscViewerDestroy(&v));
  for (int sbaij = 0; sbaij < 2; sbaij++) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &B));
    PetscCall(MatSetType(B, sbaij ? MATSEQSBAIJ : MATSEQAIJ));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, "s.bin", FILE_MODE_READ, &v));
    PetscCall(MatLoad(B, v));
    PetscCall(PetscViewerDestroy(&v));
    PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
    PetscCall(MatNorm(B, NORM_1, &norm));
    PetscCall(MatIsSymmetric(B, 0, &yes));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* loaded as %s: %g entries, norm %g, symmetric: %s\n",
                          sbaij ? "SBAIJ" : "AIJ", info.nz_used, (double)norm, yes ? "yes" : "no"));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&S));
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* SBAIJ: norm 6.
* loaded as AIJ: 11. entries, norm 5., symmetric: no
* loaded as SBAIJ: 11. entries, norm 6., symmetric: yes
END
