#!/usr/bin/env bash
# PETSc 3.26.1: MatLoad() of two files, the first of which was written from a matrix with block size 3.
# Guess: each matrix gets the block size of its own file.
# Seen: the first file's .info puts -matload_block_size into the options of the whole program: every later file gets
# block size 3, and a file whose rows are not divisible by 3, loaded before without trouble, is an error.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  Mat            A;
  PetscViewer    v;
  PetscInt       bs;
  PetscErrorCode ierr;
  PetscBool      has;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int k = 0; k < 3; k++) {
    const char *names[] = {"blocks.bin", "six.bin", "seven.bin"};
    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, k == 2 ? 7 : 6, -1, 4, -1, &A));
    if (k == 0) PetscCall(MatSetBlockSize(A, 3));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, names[k], FILE_MODE_WRITE, &v));
    if (k) PetscCall(PetscViewerBinarySetSkipInfo(v, PETSC_TRUE));
    PetscCall(MatView(A, v));
    PetscCall(PetscViewerDestroy(&v));
    PetscCall(MatDestroy(&A));
  }
  for (int k = 0; k < 5; k++) {
    const char *names[] = {"six.bin", "seven.bin", "blocks.bin", "six.bin", "seven.bin"};
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, names[k], FILE_MODE_READ, &v));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatLoad(A, v);
    PetscCall(PetscPopErrorHandler());
    PetscCall(PetscViewerDestroy(&v));
    bs = 0;
    if (!ierr) PetscCall(MatGetBlockSize(A, &bs));
    PetscCall(PetscOptionsHasName(NULL, NULL, "-matload_block_size", &has));
    if (ierr)
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: error %d", names[k], (int)ierr));
    else
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: block size %d", names[k], (int)bs));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", -matload_block_size in the options: %s\n", has ? "yes" : "no"));
    if (!ierr) PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* six.bin: block size 1, -matload_block_size in the options: no
* seven.bin: block size 1, -matload_block_size in the options: no
* blocks.bin: block size 3, -matload_block_size in the options: yes
* six.bin: block size 3, -matload_block_size in the options: yes
* seven.bin: error 77, -matload_block_size in the options: yes
END
