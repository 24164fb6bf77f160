/*
  The set-up of smoothed aggregation on the device, from matrices in CSR form there: the graph of strong connections,
  aggregates of its vertices, the tentative prolongator and the smoothed one. They mean what those of PETSc's PCGAMG of
  type PCGAMGAGG mean.

  Indices are of PetscInt. The columns of each row of a matrix must ascend strictly. All functions give the same bits
  every time, return cudaErrorNotSupported if a matrix is too large or if the library has no code for the device, and
  wait for the stream, unless their description says that they do not.
*/
#pragma once

#include "core/cuda/spgemm/spgemm.h"

/*
  The graph of an A of bs x bs blocks (bs at most 32): a vertex for each block row, an edge for each block that has an
  entry. With a threshold of at least 0, only edges above it count, where the weight of an edge is the sum of the
  absolute values in its block, plus, with symmetrize, that of the opposite edge, divided by the root of the product of
  both vertices' weights. A threshold below 0 keeps all edges.

  With symmetrize, the opposite of each edge is an edge. Otherwise A's pattern, or with a threshold A itself, must be
  symmetric. The graph may refer to A's arrays.

  outside: NULL, or row offsets on the device, if the rows have more entries, in columns of other ranks: a vertex with
  such entries has neighbors there. The graph refers to this array.
*/
typedef struct _n_SpMVCudaGraph *SpMVCudaGraph;

PETSC_INTERN cudaError_t SpMVCudaGraphCreate(const SpMVCudaCSR *A, PetscInt bs, PetscBool symmetrize,
                                             PetscReal threshold, const PetscInt *outside, cudaStream_t,
                                             SpMVCudaGraph *);
PETSC_INTERN cudaError_t SpMVCudaGraphDestroy(SpMVCudaGraph *); /* or NULL */
/* The pattern, in device arrays; a is NULL */
PETSC_INTERN void SpMVCudaGraphGet(SpMVCudaGraph, SpMVCudaCSR *);

/*
  Aggregates: each has one root, all vertices at distance 1 from it, and, with square, some at distance 2. The roots are
  the greedy maximal independent set of the graph, or with square of its square, if the vertices are visited in a random
  order that depends only on their number. A vertex at the same distance from several roots belongs to the first one.
  Vertices without neighbors are in no aggregate; those with neighbors on other ranks only are aggregates of their own.
  With k > 1, the aggregates are found k times: each time, those found before are the vertices, in their order (as
  MATCOARSENMISK does; square is then false). With `outside`, those without neighbors are kept from the second pass on.

  Aggregates are numbered in the order of their roots. of[v]: the aggregate of vertex v, or -1, on the device.
*/
typedef struct _n_SpMVCudaAggregates *SpMVCudaAggregates;

PETSC_INTERN cudaError_t SpMVCudaAggregatesCreate(SpMVCudaGraph, PetscBool square, int k, cudaStream_t,
                                                  SpMVCudaAggregates *);
PETSC_INTERN cudaError_t SpMVCudaAggregatesDestroy(SpMVCudaAggregates *); /* or NULL */

typedef struct {
  PetscInt64 vertices, members; /* of the graph; of all aggregates together */
  PetscInt64 count, largest;    /* the number of aggregates; vertices of the largest one */
  const int *of;
} SpMVCudaAggregatesStats;
PETSC_INTERN void SpMVCudaAggregatesGet(SpMVCudaAggregates, SpMVCudaAggregatesStats *);

/*
  The tentative prolongator P0, with k columns for each aggregate and k entries in each row of its members, and no entry
  in other rows. B, on the device: k columns of vertices * bs numbers, one after the other, the near null space; NULL:
  k = bs, and column c is 1 in row c of each block, 0 in the others. For each aggregate, its rows of B are factored by
  Householder reflections as LAPACK does (with rows of zeros appended if there are fewer than k): P0's are those of Q,
  and R, in the rows of the aggregate, goes to the near null space of the coarse matrix: k columns of count * k numbers.

  The caller has the arrays, on the device: i: vertices * bs + 1, j and a: members * bs * k, R: count * k * k (or NULL).
  Does not wait for the stream. k is at most 32.
*/
PETSC_INTERN cudaError_t SpMVCudaTentative(SpMVCudaAggregates, PetscInt bs, PetscInt k, const PetscReal *B, PetscInt *i,
                                           PetscInt *j, PetscScalar *a, PetscReal *R, cudaStream_t);

/* Of all rows of a tentative prolongator, which may have no arrays if it has no entries: the first column, `before`
   added, or -1 without entries, and the k values, or zeros. Does not wait for the stream */
PETSC_INTERN cudaError_t SpMVCudaTentativeRows(const SpMVCudaCSR *P0, PetscInt k, PetscInt before, PetscInt *first,
                                               PetscScalar *values, cudaStream_t);

/*
  The smoothed prolongator P = P0 - scale D^-1 A P0, where D is A's diagonal, all entries of which are stored, and the
  inverse of 0 is 0. P0 may be any matrix, also the result of the last smoothing. product: the plan of A P0 after its
  symbolic phase, with its pattern. The result is written to the caller's arrays, on the device: i: A.m + 1, j and a: as
  many as the plan has nonzeros. Waits for i and j, but not for a.

  diagonal: NULL, or the diagonal block if A is an off-diagonal block, whose columns are rows of other ranks, as are the
  rows of P0. Then P = -scale D^-1 A P0, where D is the diagonal of the diagonal block.
*/
PETSC_INTERN cudaError_t SpMVCudaSmooth(SpMVCudaSpGEMM product, const SpMVCudaCSR *A, const SpMVCudaCSR *diagonal,
                                        const SpMVCudaCSR *P0, PetscReal scale, PetscInt *i, PetscInt *j,
                                        PetscScalar *a, cudaStream_t);

/* The numbers from `first` on of the noise by which PETSc estimates eigenvalues: x[k] is bitwise what
   KSPNoisyHash_Private(first + k) returns. Does not wait for the stream */
PETSC_INTERN cudaError_t SpMVCudaNoise(PetscInt64 n, PetscInt64 first, PetscScalar *x, cudaStream_t);
