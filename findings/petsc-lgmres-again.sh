#!/usr/bin/env bash
# PETSc 3.26.1: KSPLGMRES solves the same system twice, each time from zero.
# Guess: the same iterations and bits, as with all methods that draw no random numbers.
# Seen: the second solve begins with error approximations that the first one has left: it takes other iterations.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {KSPGMRES, KSPLGMRES};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int t = 0; t < 2; t++) {
    Mat       A;
    Vec       x[2], b;
    KSP       ksp;
    PC        pc;
    PetscInt  its[2];
    PetscBool same;

    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 200, -1, 2.01, -1, &A));
    PetscCall(MatCreateVecs(A, &x[0], &b));
    PetscCall(VecDuplicate(b, &x[1]));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, types[t]));
    PetscCall(KSPGMRESSetRestart(ksp, 10));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCNONE));
    for (int k = 0; k < 2; k++) {
      PetscCall(KSPSolve(ksp, b, x[k]));
      PetscCall(KSPGetIterationNumber(ksp, &its[k]));
    }
    PetscCall(VecEqual(x[0], x[1], &same));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: %s iterations, %s bits\n", types[t],
                          its[0] == its[1] ? "the same" : "other", same ? "the same" : "other"));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* gmres: the same iterations, the same bits
* lgmres: other iterations, other bits
END
