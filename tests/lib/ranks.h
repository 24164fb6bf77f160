/*
  The ranks of a test program agree on an error before they continue.

  A rank that returns an error may leave other ranks in a collective operation. The other ranks never return, and no
  collective call of this rank on their communicators completes. Even if they return, PETSc's counters of tags and
  communicators differ from then on, and a later collective operation hangs. Therefore the ranks compare their errors
  without blocking, on a separate communicator. A rank with an error waits only a few seconds for the other ranks, and
  an error that only some of the ranks have ends the program.
*/
#pragma once

#include <petscsys.h>
#include <string.h>
#include <unistd.h>

/* Creates the communicator of RanksAgree(); call it before anything can fail */
MPI_Comm RanksComm(void);

/* Collective. Returns PETSC_TRUE if all ranks have an error (*any is true) or none has (*any is false). Returns
   PETSC_FALSE if only some ranks have one, or if some rank did not answer in time after an error; it returns first on a
   rank with an error, and the caller must end the program */
PetscBool RanksAgree(PetscErrorCode ierr, PetscBool *any);

/* The message of the last error while this is the error handler */
extern char    RanksMessage[2048];
PetscErrorCode RanksKeepMessage(MPI_Comm, int line, const char *fun, const char *file, PetscErrorCode, PetscErrorType,
                                const char *mess, void *ctx);

/* PETSc does not free its memory after an error: LeakSanitizer, if it is there, is not to report what is allocated until
   ignore is false again */
void LeaksIgnore(PetscBool ignore);

/* Makes a call that may fail: nothing is printed, RanksMessage has the message, and memory that PETSc loses is no leak */
#define MayFail(ierr, ...)                                    \
  do {                                                        \
    RanksMessage[0] = 0;                                      \
    LeaksIgnore(PETSC_TRUE);                                  \
    PetscCall(PetscPushErrorHandler(RanksKeepMessage, NULL)); \
    ierr = __VA_ARGS__;                                       \
    PetscCall(PetscPopErrorHandler());                        \
    LeaksIgnore(PETSC_FALSE);                                 \
  } while (0)

/* Collective. Checks that a call fails, with this error and these words in its message; ends the program if only some
   ranks return an error. The program defines Check(condition, what) */
#define MustFail(call, code, words)                                                                                  \
  do {                                                                                                               \
    PetscErrorCode ierr_;                                                                                            \
    PetscBool      any_;                                                                                             \
    char           text_[512];                                                                                       \
    MayFail(ierr_, call);                                                                                            \
    PetscCheck(RanksAgree(ierr_, &any_), PETSC_COMM_SELF, PETSC_ERR_PLIB, "error %d here, and not on all ranks: %s", \
               (int)ierr_, words);                                                                                   \
    PetscCall(PetscSNPrintf(text_, sizeof(text_),                                                                    \
                            "%s must fail with error %d and the words '%s', but returned error %d and '%.100s'",     \
                            #call, (int)(code), words, (int)ierr_, RanksMessage));                                   \
    Check(ierr_ == (code) && strstr(RanksMessage, words), text_);                                                    \
  } while (0)
