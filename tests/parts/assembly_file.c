/*
  Matrix Market files, read by examples/mmload.h.
*/
#include "assembly.h"
#include "../../examples/mmload.h"
#include <unistd.h>

/* Writes a file of 4 x 4 entries on rank 0, and reads it into A. The line % becomes a comment of 1500 characters */
static PetscErrorCode ReadLines(Test *t, const char *header, const char *sizes, const char *const lines[], Mat A,
                                PetscErrorCode *read)
{
  char        name[64];
  int         id   = (int)getpid();
  FILE       *file = NULL;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(t->comm, &rank));
  PetscCallMPI(MPI_Bcast(&id, 1, MPI_INT, 0, t->comm));
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/petscspmv-market-%d", id));
  if (!rank) {
    file = fopen(name, "w");
    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "cannot open %s", name);
    fprintf(file, "%%%%MatrixMarket matrix coordinate %s general\n%%%1500d\n%s\n", header, 1, sizes);
    for (int k = 0; lines[k]; k++) {
      if (*lines[k] == '%')
        fprintf(file, "%%%1500d\n", k);
      else
        fprintf(file, "%s\n", lines[k]);
    }
    fclose(file);
  }
  PetscCallMPI(MPI_Barrier(t->comm));
  MayFail(*read, MatLoadMatrixMarket(t->comm, name, A));
  PetscCallMPI(MPI_Barrier(t->comm));
  if (!rank) remove(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers that must be read, with Fortran's exponents, and files that must be refused on all ranks: a number with other
   characters or a number too many */
PetscErrorCode MatrixMarket(Test *t, Record *r)
{
  const char *const good[]   = {"1 1 2", "%", "3 4 1.0D-01", "%", " 4\t2  3d0 ", "2 2 -1.5e1", NULL};
  const char *const bad[][4] = {{"1 1 2", "%", "3 4 1x"}, {"1 1 2", "%", "3 4 1.0Dx"}, {"1 1 2", "%", "3 4 1.0 2.0"},
                                {"1 1 2", "%", "3 4"},    {"1 1 2", "%", "3 4.5 1"},   {"1 1 2", "%", "3x 4 1"},
                                {"1 1 2", "%", "5 4 1"}};
  const PetscInt    at[][2]  = {{0, 0}, {2, 3}, {3, 1}, {1, 1}};
  const PetscReal   value[]  = {2, 0.1, 3, -15};
  PetscErrorCode    read;
  PetscBool         same;
  Mat               A, B;

  PetscFunctionBegin;
  PetscCall(MatCreate(t->comm, &A));
  PetscCall(MatSetType(A, t->type));
  PetscCall(ReadLines(t, "real", "4 4 4", good, A, &read));
  PetscCall(read);
  PetscCall(MatCreate(t->comm, &B));
  PetscCall(MatSetSizes(B, PETSC_DECIDE, PETSC_DECIDE, 4, 4));
  PetscCall(MatSetType(B, t->type));
  PetscCall(MatSetUp(B));
  for (int k = 0; k < 4; k++)
    PetscCall(MatSetValue(B, at[k][0], at[k][1], t->size > 1 ? value[k] / t->size : value[k], ADD_VALUES));
  PetscCall(MatAssemble(B));
  PetscCall(MatAXPY(B, -1., A, SAME_NONZERO_PATTERN));
  for (int k = 0; k < 2; k++) {
    PetscReal norm;

    PetscCall(MatNorm(k ? A : B, NORM_INFINITY, &norm));
    same = (PetscBool)(k ? norm == 15 : norm < 1e-14);
    PetscCheck(same, t->comm, PETSC_ERR_PLIB, "a file is read as other numbers, norm %g", (double)norm);
  }
  PetscCall(RecordMat(t, r, "type of a file's matrix", A));
  PetscCall(Destroy(&A, &B));
  for (size_t k = 0; k <= PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    const size_t last = PETSC_STATIC_ARRAY_LENGTH(bad);

    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatSetType(A, t->type));
    PetscCall(ReadLines(t, "real", k < last ? "4 4 2" : "4 4 4x", k < last ? bad[k] : good, A, &read));
    PetscCheck(read, t->comm, PETSC_ERR_PLIB, "a file is not refused: %s", k < last ? bad[k][2] : "4 4 4x");
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
