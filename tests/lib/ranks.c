#include "ranks.h"

#define RANKS_PATIENCE 10. /* seconds; an error that all ranks have reaches all of them within a fraction of a second */

MPI_Comm RanksComm(void)
{
  static MPI_Comm comm = MPI_COMM_NULL;

  if (comm == MPI_COMM_NULL && MPI_Comm_dup(PETSC_COMM_WORLD, &comm)) MPI_Abort(PETSC_COMM_WORLD, 3);
  return comm;
}

PetscBool RanksAgree(PetscErrorCode ierr, PetscBool *any)
{
  const double begin   = MPI_Wtime();
  int          mine[2] = {ierr ? 1 : 0, ierr ? 0 : 1}, all[2] = {0, 0}, done = 0;
  MPI_Request  request;

  *any = (PetscBool)mine[0];
  if (MPI_Iallreduce(mine, all, 2, MPI_INT, MPI_MAX, RanksComm(), &request)) return PETSC_FALSE;
  if (!ierr && MPI_Wait(&request, MPI_STATUS_IGNORE)) return PETSC_FALSE;
  while (ierr && !done) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) || (!done && MPI_Wtime() - begin > RANKS_PATIENCE))
      return PETSC_FALSE;
    if (!done) (void)usleep(1000);
  }
  /* leave the rank with the error time to report it */
  if (all[0] && all[1] && !ierr) (void)sleep((unsigned)RANKS_PATIENCE);
  return (PetscBool) !(all[0] && all[1]);
}

char RanksMessage[2048];

PetscErrorCode RanksKeepMessage(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n,
                                PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) (void)PetscStrncpy(RanksMessage, mess, sizeof(RanksMessage));
  return n;
}

extern void __lsan_disable(void) __attribute__((weak)); /* NULL without LeakSanitizer */
extern void __lsan_enable(void) __attribute__((weak));

void LeaksIgnore(PetscBool ignore)
{
  if (ignore && __lsan_disable) __lsan_disable();
  if (!ignore && __lsan_enable) __lsan_enable();
}
