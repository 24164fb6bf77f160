/*
  Tests of the harness: operations in which a single rank fails on purpose while the other ranks wait for it. Each must
  end the program within seconds, with a failure and with the message of that rank. An operation runs only if -ops names
  it.
*/
#include "harness.h"

#define OPERATION(name, call)                    \
  static PetscErrorCode name(Test *t, Record *r) \
  {                                              \
    return call;                                 \
  }

/* A collective sequence in which the last rank does something else in between */
static PetscErrorCode Last(Test *t, Record *r, PetscBool wait, PetscErrorCode (*last)(void))
{
  Vec       v;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecCreate(t->comm, &v));
  PetscCall(VecSetSizes(v, 1, PETSC_DETERMINE));
  PetscCall(VecSetFromOptions(v));
  PetscCall(VecFill(v, 1));
  if (last && t->rank == t->size - 1) PetscCall(last());
  if (wait) {
    PetscCall(VecNorm(v, NORM_1, &norm));
    PetscCall(RecordReal(r, "norm", norm, 10));
  }
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Err(void)
{
  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_USER, "an error on purpose");
}

static PetscErrorCode Die(void)
{
  return (PetscErrorCode)raise(SIGKILL);
}

static PetscErrorCode Crash(void)
{
  return (PetscErrorCode)raise(SIGSEGV);
}

static PetscErrorCode Leave(void)
{
  _exit(0);
}

OPERATION(Together, Last(t, r, PETSC_TRUE, NULL))
OPERATION(Errs, Last(t, r, PETSC_TRUE, Err))

/* The other ranks do not notice the error, but only on the last rank has PETSC_COMM_WORLD lost a reference, so that
   creating the next object would hang */
OPERATION(ErrsUnseen, Last(t, r, PETSC_FALSE, Err))
OPERATION(Dies, Last(t, r, PETSC_TRUE, Die))
OPERATION(Crashes, Last(t, r, PETSC_TRUE, Crash))
OPERATION(Leaves, Last(t, r, PETSC_TRUE, Leave))

/* An error that all ranks have ends the operation, and the next one runs */
OPERATION(AllErr, Err())

/* A call that only one rank rejects */
static PetscErrorCode Refuses(Test *t, Record *r)
{
  PetscErrorCode ierr;
  PetscBool      any;

  PetscFunctionBegin;
  MayFail(ierr, Errs(t, r));
  PetscCall(Agree(ierr, &any));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A wrong number on one rank, with the type under test */
static PetscErrorCode Differs(Test *t, Record *r)
{
  PetscFunctionBegin;
  PetscCall(RecordInt(r, "number", t->aij || t->rank < t->size - 1 ? 0 : 1));
  PetscCall(Together(t, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {
    {"errs", Errs, ALONE | ONCE | PAR},         {"errsunseen", ErrsUnseen, ALONE | ONCE | PAR},
    {"allerr", AllErr, ALONE | ONCE | PAR},     {"refuses", Refuses, ALONE | ONCE | PAR},
    {"dies", Dies, ALONE | ONCE | PAR},         {"crashes", Crashes, ALONE | ONCE | PAR},
    {"leaves", Leaves, ALONE | ONCE | PAR},     {"differs", Differs, ALONE | ONCE | PAR},
    {"together", Together, ALONE | ONCE | PAR}, {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "ranks", operations, 0);
}
