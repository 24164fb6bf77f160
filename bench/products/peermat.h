/*
   Products of other projects' libraries (peer.h) as contenders of a benchmark.
*/
#pragma once

#include <dlfcn.h>
#include "device.h"
#include "peer.h"

#define MAX_PEERS 16

static struct { /* all variants of all libraries */
  char        name[128];
  const Peer *library;
  int         variant;
} Peers[MAX_PEERS];
static int PeerCount;

typedef struct {
  const Peer *library; /* NULL: none */
  void       *product;
} PeerMat;

/* Opens a library, which stays open, because its code on the GPU may be needed until the end. Adds library:variant to
   Peers[] for each of its products */
static PetscErrorCode PeerOpen(const char *file)
{
  const Peer *(*get)(void) = NULL, *library;
  void *so                 = dlopen(file, RTLD_NOW | RTLD_LOCAL);

  PetscFunctionBeginUser;
  PetscCheck(sizeof(PetscInt) == sizeof(int) && sizeof(PetscScalar) == sizeof(double), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "-peer: real numbers in double precision and 32-bit indices only");
  PetscCheck(so, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-peer: %s", dlerror());
  *(void **)&get = dlsym(so, PEER_GET);
  PetscCheck(get, PETSC_COMM_SELF, PETSC_ERR_LIB, "-peer: %s", dlerror());
  library = get();
  for (int v = 0; v < 8 && library->variants[v]; v++, PeerCount++) {
    PetscCheck(PeerCount < MAX_PEERS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-peer: more than %d products",
               MAX_PEERS);
    PetscCall(
        PetscSNPrintf(Peers[PeerCount].name, sizeof(Peers[0].name), "%s:%s", library->name, library->variants[v]));
    Peers[PeerCount].library = library;
    Peers[PeerCount].variant = v;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -1: no such product */
static int PeerFind(const char *name)
{
  int k = PeerCount - 1;

  while (k >= 0 && strcmp(name, Peers[k].name)) k--;
  return k;
}

/* A is a sequential AIJ matrix, which must exist as long as the product. No product if the library refuses it */
static PetscErrorCode PeerMatCreate(Mat A, int which, PeerMat *B)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, N;
  PetscBool          done;
  char               message[256] = "";

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  B->product = Peers[which].library->create(Peers[which].variant, (int)m, (int)N, (const int *)i, (const int *)j,
                                            (const double *)a, message);
  if (B->product)
    B->library = Peers[which].library;
  else
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  no %s: %s\n", Peers[which].name, message));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PeerMatMult(const PeerMat *B, Vec xx, Vec yy)
{
  const PetscScalar *x;
  PetscScalar       *y;
  PetscMemType       unused;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayReadAndMemType(xx, &x, &unused));
  PetscCall(VecGetArrayWriteAndMemType(yy, &y, &unused));
  PetscCheck(!B->library->mult(B->product, (const double *)x, (double *)y), PETSC_COMM_SELF, PETSC_ERR_LIB,
             "%s: the product failed", B->library->name);
  PetscCall(VecRestoreArrayWriteAndMemType(yy, &y));
  PetscCall(VecRestoreArrayReadAndMemType(xx, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}
