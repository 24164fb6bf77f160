#!/usr/bin/env bash
# PETSc 3.26.1: KSPSetUp() with PCGAMG or PCMG, and what the first KSPSolve() still does.
# Guess: after KSPSetUp() the first solve takes as long as the second.
# Seen: the coarsest matrix is factored in the first solve, and again in the first solve after each change of the values.
# KSPSetUpOnBlocks() of the coarse solver does it before; that of the outer solver does not.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
static PetscErrorCode Count(const char *when)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;
  static int         before = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscLogEventGetId("MatLUFactorNum", &event));
  PetscCall(PetscLogEventGetPerfInfo(0, event, &info));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: %d\n", when, info.count - before));
  before = info.count;
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Mat A;
  Vec x, b;
  KSP ksp, coarse;
  PC  pc;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 2000, -1, 2, -1, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Count("factorizations in KSPSetUp()"));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(Count("in KSPSetUpOnBlocks()"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Count("in the first KSPSolve()"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Count("in the second"));
  PetscCall(MatScale(A, 2));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Count("new values: in KSPSetUp()"));
  PetscCall(PCMGGetCoarseSolve(pc, &coarse));
  PetscCall(KSPSetUpOnBlocks(coarse));
  PetscCall(Count("in KSPSetUpOnBlocks() of the coarse solver"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Count("in KSPSolve()"));
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* factorizations in KSPSetUp(): 0
* in KSPSetUpOnBlocks(): 0
* in the first KSPSolve(): 1
* in the second: 0
* new values: in KSPSetUp(): 0
* in KSPSetUpOnBlocks() of the coarse solver: 1
* in KSPSolve(): 0
END
