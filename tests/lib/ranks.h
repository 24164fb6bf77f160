/*
  The ranks of a test program agree on an error before they go on.

  A rank that returns an error may leave other ranks in a collective operation. These never return, and no collective call of the rank on a communicator of theirs
  completes. Even if they return, PETSc's counters of tags and communicators differ from then on, and a later collective hangs. So the ranks compare their errors
  without blocking, on a communicator used for nothing else. A rank with an error waits for the other ranks for a few seconds only, and an error that not all
  ranks have ends the program.
*/
#pragma once

#include <petscsys.h>
#include <unistd.h>

/* Creates the communicator of RanksAgree(); call it before anything can fail */
MPI_Comm RanksComm(void);

/* Collective. Whether all ranks have an error, or none; any says which. Returns PETSC_FALSE if only some have one, or did not answer in time after one: first where
   there is an error, and the caller must end the program */
PetscBool RanksAgree(PetscErrorCode ierr, PetscBool *any);
