#!/usr/bin/env bash
# PETSc 3.26.1: KSPBuildSolution(ksp, v, &V), with a vector and a result, in a monitor.
# Guess: V is the vector with the solution, in the last call as in those before.
# Seen: once the solve has a reason for its end, the solution is copied to v, and V keeps what it was, with 3.18.5 not
# yet: a monitor that goes on with V works until the last iteration.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
static PetscErrorCode Monitor(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  Vec v = (Vec)ctx, V = NULL;

  PetscFunctionBeginUser;
  PetscCall(KSPBuildSolution(ksp, v, &V));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* iteration %d: V is %s\n", (int)n, V == v ? "v" : V ? "another" : "not set"));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec x, b, v;
  KSP ksp;
  PC  pc;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 3, -1, 4, -1, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &v));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPMonitorSet(ksp, Monitor, v, NULL));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* iteration 0: V is v
* iteration 1: V is v
* iteration 2: V is not set
END
