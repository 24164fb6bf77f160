#!/usr/bin/env bash
# PETSc 3.26.1: -pc_type ilu -pc_factor_shift_type nonzero for a matrix of type aijperm.
# Guess: aijperm differs from aij in its product only, so the preconditioner is the same.
# Seen: PCILU compares the type's name with aij's and silently takes the shift INBLOCKS for any other; the
# iterations differ.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {MATSEQAIJ, MATSEQAIJPERM, MATSEQAIJSELL};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int t = 0; t < 3; t++) {
    Mat      A;
    Vec      x, b;
    KSP      ksp;
    PC       pc;
    PetscInt its;

    MatFactorShiftType shift;

    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 400, -1, 0, -1, &A)); /* zeros on the diagonal */
    PetscCall(MatConvert(A, types[t], MAT_INPLACE_MATRIX, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCILU));
    PetscCall(PCFactorSetShiftType(pc, MAT_SHIFT_NONZERO));
    PetscCall(PCFactorSetShiftAmount(pc, 0.5));
    PetscCall(KSPSetUp(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(PCFactorGetShiftType(pc, &shift));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: shift %s, %s 1000 iterations\n", types[t], MatFactorShiftTypes[shift],
                          its < 1000 ? "fewer than" : "all"));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* seqaij: shift NONZERO, all 1000 iterations
* seqaijperm: shift INBLOCKS, fewer than 1000 iterations
* seqaijsell: shift INBLOCKS, fewer than 1000 iterations
END
