#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE and vectors of type cuda: vectors that a Krylov method copies to the host in each
# iteration.
# Guess: none does; they use only products, dot products and sums, which PETSc has on the GPU.
# Seen: pipecg2 and fcg copy two vectors in each iteration, pipefcg four; the others a few numbers at most.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
{ echo "#include \"$here/count.h\""; cat <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {KSPCG,    KSPPIPECG, KSPPIPECG2, KSPFCG,  KSPPIPEFCG, KSPCR, KSPMINRES,
                         KSPGMRES, KSPFGMRES, KSPGCR,     KSPBCGS, KSPTFQMR,   KSPIDR};
  PetscInt    n       = 100000;
  Mat         A;
  Vec         x, b;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJCUSPARSE, n, -1, 2.001, -1, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(MatMult(A, b, x));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    double   bytes[2];
    PetscInt its[2];

    for (int run = 0; run < 2; run++) { /* at most 8 and 24 iterations */
      KSP ksp;
      PC  pc;

      PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
      PetscCall(KSPSetType(ksp, types[k]));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetType(pc, PCNONE));
      PetscCall(KSPSetTolerances(ksp, 1e-30, 1e-300, 1e30, run ? 24 : 8));
      PetscCall(KSPSetUp(ksp));
      to_host = 0;
      PetscCall(KSPSolve(ksp, b, x));
      bytes[run] = to_host;
      PetscCall(KSPGetIterationNumber(ksp, &its[run]));
      PetscCall(KSPDestroy(&ksp));
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: %.1f vectors to the host in each iteration\n", types[k],
                          (bytes[1] - bytes[0]) / (its[1] - its[0]) / 8 / n));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}
END
} | compile -lcudart -ldl
see ./program
behaves <<'END'
* cg: 0.0 vectors to the host in each iteration
* pipecg: 0.0 vectors to the host in each iteration
* pipecg2: 2.0 vectors to the host in each iteration
* fcg: 2.0 vectors to the host in each iteration
* pipefcg: 4.0 vectors to the host in each iteration
* cr: 0.0 vectors to the host in each iteration
* minres: 0.0 vectors to the host in each iteration
* gmres: 0.0 vectors to the host in each iteration
* fgmres: 0.0 vectors to the host in each iteration
* gcr: 0.0 vectors to the host in each iteration
* bcgs: 0.0 vectors to the host in each iteration
* tfqmr: 0.0 vectors to the host in each iteration
* idr: 0.0 vectors to the host in each iteration
END
