/*
  Agreement of all ranks of a communicator on whether an operation has failed.
*/
#include "matspmv.h"

/*
  Collective: broadcasts the text of the lowest failing rank. The text of a rank that does not know the cause of its
  failure is used only if no failing rank knows it. The text is empty if no rank has failed
*/
PetscErrorCode SpMVAgreeOnText(MPI_Comm comm, PetscBool knows, char text[], int len)
{
  PetscMPIInt rank, size, mine, lowest;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  mine = !text[0] ? 2 * size : knows ? rank : size + rank;
  PetscCallMPI(MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, comm));
  if (lowest < 2 * size) PetscCallMPI(MPI_Bcast(text, len, MPI_CHAR, lowest % size, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: if one rank has an error, all ranks return an error. Call it after operations that may fail on a single
  rank and before collective operations: if one rank returned in between, the others would wait for it forever.
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
      /* pointer to const char or to char, depending on the release */
      PetscCall(PetscErrorMessage(mine, NULL, (void *)&message));
      PetscCall(PetscSNPrintf(text, sizeof(text), "rank %d: %s", rank, message));
    }
    PetscCall(SpMVAgreeOnText(comm, PETSC_TRUE, text, sizeof(text)));
    if (text[0]) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, comm));
  }
  PetscCall(mine);
  PetscCheck(!text[0], comm, (PetscErrorCode)code, "%s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: allocates zeros, on all ranks or on none */
PetscErrorCode SpMVAgreeOnMemory(MPI_Comm comm, size_t bytes, void *memory)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *(char **)memory = NULL;
  ierr             = SpMVAgree(comm, PetscCalloc1(bytes, (char **)memory));
  if (ierr) PetscCall(PetscFree(*(char **)memory)); /* the allocation has failed on another rank */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
