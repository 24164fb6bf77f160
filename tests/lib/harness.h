/*
  The harness of the conformance programs.

  A test program is a table of operations. Each operation is written once, using the public interface of Mat, and writes
  its observations (types, entries, products, numbers) to a record. It runs on a matrix of type AIJ, on a model, which
  is one of PETSc's own types derived from AIJ in the same way, and on the type under test. All three have the same
  entries. The three records must agree:

    - numbers within the bound recorded with AIJ's number; the bound of a product is the rounding error bound of each
    row, |A||x|;
    - types: if the result with the model keeps the model's type, the result with the type under test must keep that
    type. Otherwise its type must be that of AIJ's
      result or the type under test. The type of a PetscSpMV matrix is its format (PetscSpMVGetFormat()), not its name.

  So no operation contains expected results, and PETSc's behavior for its derived types is observed, not assumed.

  The model is AIJPERM; on a device, where the type under test derives from AIJCUSPARSE, the model is AIJCUSPARSE. It
  runs last, and only if a number differs from AIJ's or a type was not kept. On a device, the model also shows the
  limitations of PETSc itself: if the model fails, the type under test may fail, and if the model's number differs from
  AIJ's, the type under test may give the model's number. Each such case is printed ("note") and counted, and it is not
  allowed in operations marked STRICT.

  -type aijperm (on a device also aijcusparse) tests PETSc against itself. A failure that occurs with another type but
  not with these is not a fault of the test.
*/
#pragma once

#include <petscksp.h>
#include <petscspmv.h>
#include <signal.h>
#include <unistd.h>
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif
#include "matrices.h"
#include "ranks.h"
#include "record.h"

typedef struct {
  MPI_Comm    comm;
  PetscMPIInt rank, size;
  const char *type;   /* type the operation runs on now */
  PetscBool   aij;    /* and whether that is AIJ, the reference */
  PetscBool   device; /* and whether that type computes on a device */
  const Case *c;
  const char *arg; /* the operation's argument */
  Mat         R;   /* the entries, as AIJ: read-only */
} Test;

typedef struct {
  const char *name;
  PetscErrorCode (*run)(Test *, Record *);
  int         needs; /* the properties that a matrix must have, and when it runs: see matrices.h */
  const char *arg;   /* passed on in Test, for operations that differ only in a parameter */
} Operation;

/* What is running now */
typedef struct {
  const char *program, *operation, *run, *under, *name, *model; /* run: the type now; under: the type under test */
  PetscMPIInt rank, size;
  PetscBool   device;     /* the type under test computes on a device */
  char        error[700]; /* the model's error, if it has one */
  PetscBool   modelfails;
  PetscInt    excused; /* operations in which the type under test is as wrong as the model */
  PetscInt    turn;    /* number of operations so far, to resume after a crash */
} Now;

extern Now now;

/*
  The program: runs the operations on each case. size is 0, or LARGE for the large cases. Options: -type T, -expect
  host|device, -ops a,b, -skip a,b, -cases a,b,
  -files a.mtx,b.mtx, -part k,n (every n-th operation, from k), -model <bool>, -verbose. After a crash in turn t, -from
  t skips the operations that have run, and
  -from t-1 -without t runs that operation without the model.
*/
int Suite(int argc, char **argv, const char *program, const Operation *ops, int size);

/* The test's matrix, of the type that the operation runs on */
PetscErrorCode Make(Test *t, Mat *A);
/* A matrix with few entries per row, M x N with the given layouts, as an operand in products */
PetscErrorCode MakeOperand(Test *t, PetscInt m, PetscInt n, PetscInt M, PetscInt N, const char *type, Mat *P);
/* Multiplies once, so that A's data for products exist before an operation changes A */
PetscErrorCode Touch(Mat A);
/* Both */
PetscErrorCode MakeTouched(Test *t, Mat *A);

/* Whether A is of the type under test, whose name differs on one rank, on several ranks, and (PetscSpMV) on a GPU */
PetscErrorCode IsType(Mat A, const char *type, PetscBool *is);
/* Records the type: "kept" for the type under test, "aij" for AIJ on host or device, dense likewise, else the name */
PetscErrorCode RecordType(Test *t, Record *r, const char *what, Mat A);
/* Records everything that can be observed of a matrix */
PetscErrorCode RecordMat(Test *t, Record *r, const char *what, Mat A);

/* Compares the records of AIJ, of the model (or NULL) and of the type under test; prints the first three differences,
   and increments bad if there are any */
PetscErrorCode Compare(Record *a, Record *p, Record *u, PetscBool strict, PetscInt *bad);

/* Prints a failure, with the operation that is running now */
void Report(const char *text);
/* Prints a deviation that the type under test shares with the model on a device; it is not a failure */
void Note(const char *text);
/* Collective. After a call that may have failed: whether it did. If it failed on some ranks only, the program ends */
PetscErrorCode Agree(PetscErrorCode ierr, PetscBool *any);
/* Call it after an error: some CUDA errors leave the device unusable for the process, which then ends */
PetscErrorCode CheckDevice(void);

/* Handlers. They report an error, for which PETSc would print a stack; a crash; and SIGTERM, to distinguish a hang from
   a slow test (PETSc leaves it to Open MPI) */
PetscErrorCode OnError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p,
                       const char *mess, void *ctx);
PetscErrorCode OnSignal(int sig, void *ctx);
void           OnTerm(int sig);

/* Whether a list of an option holds a name */
PetscErrorCode Listed(const char *name, PetscInt n, char *list[], PetscBool *in);
