/*
   The interface of a shared library that offers another project's products to bench/bench -peer: PeerGet(). It is
   independent of PETSc, and uses double precision and 32-bit indices. peercusparse.cu is such a library, which
   bench/products/peers builds; those for other projects are not part of this repository.
*/
#pragma once

typedef struct {
  const char *name;
  const char *variants[8]; /* ends at the first NULL */
  /* Creates a variant's product for the m x n matrix in the host arrays, which exist as long as the product; NULL if
     this is not possible, with the reason in message. All arrays, including those of products, are in the order of the
     matrix */
  void *(*create)(int variant, int m, int n, const int i[], const int j[], const double a[], char message[256]);
  /* Starts y = A x, with arrays on the device, on CUDA's default stream, or on the host without one; returns nonzero after an error. Empty rows may
     be skipped, because y is 0 before */
  int (*mult)(void *product, const double x[], double y[]);
  void (*destroy)(void *product);
} Peer;

#define PEER_GET "PeerGet" /* const Peer *PeerGet(void) */
