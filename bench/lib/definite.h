/*
   The matrices of the benchmarks of Krylov methods: those of matrices.h, made positive definite.
*/
#pragma once

#include "matrices.h"

/* A number between 0.5 and 1.5 that depends on two unknowns, in any order */
static PetscReal Coupling(PetscInt i, PetscInt j)
{
  uint64_t random = (uint64_t)PetscMin(i, j) << 32 ^ (uint64_t)PetscMax(i, j);

  return (PetscReal)(0.5 + RandomReal(&random));
}

/*
   Keeps the pattern and sets the values: negative off the diagonal, and on the diagonal a little larger than the sum of
   their magnitudes. The patterns of stencils and finite elements are symmetric; with other patterns the method may
   break down
*/
static PetscErrorCode MakeDefinite(Mat *A)
{
  Mat          B;
  PetscInt     first, end, m, n;
  PetscScalar *value;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(*A, MAT_DO_NOT_COPY_VALUES, &B));
  PetscCall(MatGetSize(*A, NULL, &m));
  PetscCall(PetscMalloc1(m, &value));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt i = first; i < end; i++) {
    const PetscInt *cols;
    PetscInt        diagonal = -1;
    PetscReal       sum      = 0.0;

    PetscCall(MatGetRow(*A, i, &n, &cols, NULL));
    for (PetscInt k = 0; k < n; k++) {
      value[k] = -Coupling(i, cols[k]);
      if (cols[k] == i)
        diagonal = k;
      else
        sum -= PetscRealPart(value[k]);
    }
    if (diagonal >= 0) value[diagonal] = 1.001 * sum;
    PetscCall(MatSetValues(B, 1, &i, n, cols, value, INSERT_VALUES));
    PetscCall(MatRestoreRow(*A, i, &n, &cols, NULL));
  }
  PetscCall(PetscFree(value));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates the matrix with the given name as AIJ; it is made positive definite if it is not from a file */
static PetscErrorCode DefiniteCreate(const char *name, Mat *A)
{
  const char *origin = NULL;
  Spec        s;
  char        message[256];
  PetscBool   bratu;

  PetscFunctionBeginUser;
  PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, A, &origin));
  PetscCall(PetscStrbeginswith(name, "bratu", &bratu));
  if (bratu || !strcmp(origin, "file")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MakeDefinite(A));
  if (SpecRead(name, &s, message, sizeof(message)) == SPEC_FOUND) {
    if (!strcmp(s.generator->name, "fem27")) PetscCall(MatSetBlockSize(*A, (PetscInt)s.arg[1]));
    SpecFree(&s);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
