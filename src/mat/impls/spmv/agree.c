/*
  Agreement of all ranks of a communicator on errors.
*/
#include "halo.h"

/* Collective: afterwards all ranks have the text of the first that knows why it failed, else of the first that failed at all; or none has one */
PetscErrorCode SpMVAgreeOnText(MPI_Comm comm, PetscBool knows, char text[], int len)
{
  PetscMPIInt rank, size, mine, first;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  mine = !text[0] ? 2 * size : knows ? rank : size + rank;
  PetscCallMPI(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first < 2 * size) PetscCallMPI(MPI_Bcast(text, len, MPI_CHAR, first % size, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: where one rank has an error, all return it. What one rank alone may fail in comes before this, and what all must take part in comes after:
  a rank that returned in between would leave the others waiting.
*/
PetscErrorCode SpMVAgree(MPI_Comm comm, PetscErrorCode mine)
{
  char        text[256] = "";
  int         code      = (int)mine;
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1) {
    if (mine) {
      const char *message;

      PetscCallMPI(MPI_Comm_rank(comm, &rank));
      PetscCall(PetscErrorMessage(mine, NULL, (void *)&message)); /* of const char or not: releases differ */
      PetscCall(PetscSNPrintf(text, sizeof(text), "rank %d: %s", rank, message));
    }
    PetscCall(SpMVAgreeOnText(comm, PETSC_TRUE, text, sizeof(text)));
    if (text[0]) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, comm));
  }
  PetscCall(mine);
  PetscCheck(!text[0], comm, (PetscErrorCode)code, "%s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}
