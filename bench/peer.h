/*
   What a shared library with another project's product offers to bench/peers.c: PeerGet(). It knows nothing of PETSc, and is in double precision with 32-bit
   indices. bench/peercusparse.cu is one; those of other projects are not part of this repository.
*/
#pragma once

typedef struct {
  const char *name;
  const char *variants[8]; /* up to the first NULL */
  /* A variant's product with the m x n matrix of the host's arrays, which stay as long as the product; NULL if there is none, with the reason in message.
     The arrays, and those of products, are in the order of the matrix but for order */
  void *(*create)(int variant, int m, int n, const int i[], const int j[], const double a[], char message[256]);
  /* Starts y = A x, with arrays of the device, on CUDA's default stream; not 0 after an error. What has no entries may be left out: y is 0 before */
  int (*mult)(void *product, const double x[], double y[]);
  /* y[k] belongs to row order[k] of A; NULL: to row k */
  const int *(*order)(void *product);
  void (*destroy)(void *product);
} Peer;

#define PEER_GET "PeerGet" /* const Peer *PeerGet(void) */
