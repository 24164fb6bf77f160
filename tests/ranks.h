/*
  The ranks of a test program agree on an error before they go on.

  A rank that returns an error may leave others in a collective operation that it was part of. They never come back, and nothing that the rank
  calls on a communicator of theirs ends. Where they do come back, PETSc's counters of tags and communicators differ from then on, and a later collective
  hangs. So the ranks compare their errors without blocking, on a communicator of its own; a rank that erred gives up on the others after some
  seconds, and an error that is not one of all ranks ends the program.
*/
#pragma once

#include <petscsys.h>
#include <unistd.h>

#define RANKS_PATIENCE 10. /* seconds: an error of all ranks reaches them within a fraction of one */

/* A communicator for RanksAgree() alone, made before anything can fail */
static inline MPI_Comm RanksComm(void)
{
  static MPI_Comm comm = MPI_COMM_NULL;

  if (comm == MPI_COMM_NULL && MPI_Comm_dup(PETSC_COMM_WORLD, &comm)) MPI_Abort(PETSC_COMM_WORLD, 3);
  return comm;
}

/* Collective. Whether the ranks come with errors, all or none. Otherwise PETSC_FALSE is returned, first where there is an error, and the caller ends the program:
   some ranks have one, or did not come in time after one */
static inline PetscBool RanksAgree(PetscErrorCode ierr, PetscBool *any)
{
  const double begin   = MPI_Wtime();
  int          mine[2] = {ierr ? 1 : 0, ierr ? 0 : 1}, all[2] = {0, 0}, done = 0;
  MPI_Request  request;

  *any = (PetscBool)mine[0];
  if (MPI_Iallreduce(mine, all, 2, MPI_INT, MPI_MAX, RanksComm(), &request)) return PETSC_FALSE;
  if (!ierr && MPI_Wait(&request, MPI_STATUS_IGNORE)) return PETSC_FALSE;
  while (ierr && !done) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) || (!done && MPI_Wtime() - begin > RANKS_PATIENCE)) return PETSC_FALSE;
    if (!done) (void)usleep(1000);
  }
  if (all[0] && all[1] && !ierr) (void)sleep((unsigned)RANKS_PATIENCE); /* the rank with the error has something to say */
  return (PetscBool) !(all[0] && all[1]);
}
