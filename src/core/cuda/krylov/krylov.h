/*
  Krylov methods on the device, free of PETSc objects and of MPI: vectors are bare arrays, scalars are in device memory,
  and a method is a sequence of kernels that the caller launches, with its own products and preconditioners in between.
  The host does not have to read anything before it launches the next kernel.

  A kernel with sums stores the partial sums of its thread blocks. The thread block that finishes last adds them, always
  in the same order, also over all ranks. One of its threads then takes the step of the method that depends on the sums:
  new scalars, convergence, breakdown. If this step ends the solve, the kernels that follow return immediately.

  The device writes the norm of every iteration and the state of the solve to pinned memory, so that the host sees them
  without waiting for anything.

  Sums over ranks use memory that the ranks have opened to each other (PEER), within the kernel that sums, or otherwise
  a function of the caller.
*/
#pragma once

#include "core/cuda/halo/halo.h"
#include "core/cuda/spmvcuda.h"

typedef struct _n_SpMVCudaKrylov *SpMVCudaKrylov;

/* How a solve ended */
typedef enum {
  SPMV_KRYLOV_ITERATING,
  SPMV_KRYLOV_RTOL,
  SPMV_KRYLOV_ATOL,
  SPMV_KRYLOV_ZERO,           /* z'r = 0: x is the solution */
  SPMV_KRYLOV_ENOUGH,         /* the maximum number of iterations, which counts as convergence */
  SPMV_KRYLOV_DTOL,           /* diverged: */
  SPMV_KRYLOV_ITS,            /* the maximum number of iterations */
  SPMV_KRYLOV_NAN_NORM,       /* a norm is Inf or NaN */
  SPMV_KRYLOV_NAN_DOT,        /* an inner product is Inf or NaN */
  SPMV_KRYLOV_INDEFINITE_PC,  /* the preconditioner is indefinite */
  SPMV_KRYLOV_INDEFINITE_MAT, /* the matrix is indefinite */
  SPMV_KRYLOV_BREAKDOWN,      /* an inner product is 0 */
  SPMV_KRYLOV_SINGULAR,       /* t = 0: see SpMVCudaBCGSBegin() */
  SPMV_KRYLOV_HAPPY,          /* GMRES: happy breakdown, but the test does not hold */
  SPMV_KRYLOV_NULL,           /* GMRES: a column of zeros */
  SPMV_KRYLOV_REASONS
} SpMVKrylovReason;

/* The preconditioner that the kernels apply, z = B r */
typedef enum {
  SPMV_KRYLOV_PC_NONE,   /* z = r */
  SPMV_KRYLOV_PC_POINTS, /* a diagonal; r is multiplied by it wherever z is needed */
  SPMV_KRYLOV_PC_BLOCKS, /* blocks on the diagonal */
  SPMV_KRYLOV_PC_APPLIED /* the kernels apply none: the caller computes z */
} SpMVKrylovPC;

/* The norm that is tested, numbered as in KSPNormType: 0, the norm of z, the norm of r, or sqrt |z'r| */
typedef enum {
  SPMV_KRYLOV_NORM_NONE,
  SPMV_KRYLOV_NORM_PRECONDITIONED,
  SPMV_KRYLOV_NORM_UNPRECONDITIONED,
  SPMV_KRYLOV_NORM_NATURAL
} SpMVKrylovNorm;

/* Convergence as in KSPConvergedDefault(). With test = PETSC_FALSE the caller tests everything except breakdown and the
   number of iterations */
typedef struct {
  PetscBool test, enough; /* enough: the maximum number of iterations counts as convergence */
  PetscReal ttol, abstol, dtol;
  int       max_it, min_it, chknorm; /* no norm is computed in the first chknorm iterations */
} SpMVKrylovTest;

/* A PetscScalar on the device; there, the kernels' own type */
#if defined(__CUDACC__)
  #include "core/cuda/base/scalar.cuh"
typedef spmv::Scalar SpMVKrylovScalar;
#else
typedef PetscScalar SpMVKrylovScalar;
#endif

/* What a solve with any method needs. All arrays have n entries except d, which has n * bs: entry (i, i / bs * bs + j)
   of the preconditioner is d[j * n + i] */
typedef struct {
  int                     n, bs; /* bs <= SPMV_KRYLOV_BLOCK */
  const SpMVKrylovScalar *d;
  SpMVKrylovPC            pc;
  SpMVKrylovNorm          norm;
  SpMVKrylovTest          until;
} SpMVKrylovSolve;

/* The conjugate gradient method */
typedef struct {
  SpMVKrylovScalar *x, *r, *z, *p, *w;
  PetscBool         hermitian; /* z'r is the complex inner product; otherwise nothing is conjugated */
  SpMVCudaExchange  exchange;  /* of the product's halo, if the product's kernel also receives; NULL: it has none */
} SpMVCudaCG;

/*
  The stabilized biconjugate gradient method. B is on the left (B A x = B b) or on the right. On the right, B is applied
  to the vectors before the products, so that x is the solution itself and not the y of A B y = b. s overwrites r. With
  APPLIED, the caller multiplies with the preconditioned matrix, on either side; on the right, it leaves B p in phat and
  B s in hat. The norm, if any, is that of r
*/
typedef struct {
  SpMVKrylovScalar *x, *r, *r0, *v, *t, *p;
  SpMVKrylovScalar *hat, *phat; /* on the right: B s; with APPLIED also B p */
  PetscBool         left;
  PetscReal         dp; /* the norm of the first residual, if one was computed */
} SpMVCudaBCGS;

#define SPMV_KRYLOV_BLOCK 8    /* the most rows of a block of the preconditioner */
#define SPMV_KRYLOV_NORMS 1024 /* the most norms between two calls that read them */
#define SPMV_GMRES_MOST   512  /* the longest cycle of GMRES */
/* the most numbers of a sum over ranks: inner products with the basis of GMRES, which may be complex, and a norm */
#define SPMV_KRYLOV_SUMS (2 * SPMV_GMRES_MOST + 1)

/* Adds `count` numbers on the device over all ranks, in place and in the order of the stream; it may wait for the
   stream */
typedef cudaError_t (*SpMVCudaKrylovAllReduce)(void *ctx, PetscReal *sums, int count, cudaStream_t);

/* sums: for a method with inner products or norms; pinning the memory that shows their values to the host takes a
   millisecond */
PETSC_INTERN cudaError_t SpMVCudaKrylovCreate(PetscBool sums, SpMVCudaKrylov *);
PETSC_INTERN cudaError_t SpMVCudaKrylovDestroy(SpMVCudaKrylov *);
PETSC_INTERN void        SpMVCudaKrylovSetAllReduce(SpMVCudaKrylov, SpMVCudaKrylovAllReduce, void *ctx);
/* PEER: GetOffer returns a handle for the other ranks; Open opens the memory of all ranks, in their order; Close is the
   reverse, called by all ranks before the first of them destroys the object */
PETSC_INTERN cudaError_t SpMVCudaKrylovGetOffer(SpMVCudaKrylov, int size, cudaIpcMemHandle_t *);
PETSC_INTERN cudaError_t SpMVCudaKrylovOpen(SpMVCudaKrylov, int rank, const cudaIpcMemHandle_t[]);
PETSC_INTERN cudaError_t SpMVCudaKrylovClose(SpMVCudaKrylov);

/* For the blocks of a preconditioner B that can only be applied: sets v to 1 at every entry whose place in its block is
   j, and to 0 elsewhere. B v is then column j of d */
PETSC_INTERN cudaError_t SpMVCudaKrylovUnit(int n, int bs, int j, PetscScalar *v, cudaStream_t);
/* An array for d, of at least `count` numbers, that the object owns */
PETSC_INTERN cudaError_t SpMVCudaKrylovGetArray(SpMVCudaKrylov, size_t count, PetscScalar **d);

/*
  CG. The caller first sets x and r, and z unless the preconditioner is NONE. Then it calls

    Begin, Direction;   then in each iteration:   Product, Update, Direction

  With APPLIED, the caller computes z between Update and Sums, and Direction follows: Product, Update, z = B r, Sums,
  Direction. If the norm is that of r, Update has tested it, and the caller may find that it need not compute z:
  after Update, Direction completes x.
*/
PETSC_INTERN cudaError_t SpMVCudaCGBegin(SpMVCudaKrylov, const SpMVKrylovSolve *, const SpMVCudaCG *, cudaStream_t);
/* w = A p, unless A is NULL because the caller has computed it; p'w; and the length of the step. All in one kernel if
   the store has such a kernel */
PETSC_INTERN cudaError_t SpMVCudaCGProduct(SpMVCudaKrylov, SpMVCudaStore A, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaCGUpdate(SpMVCudaKrylov, cudaStream_t);    /* r, z, norm, z'r */
PETSC_INTERN cudaError_t SpMVCudaCGSums(SpMVCudaKrylov, cudaStream_t);      /* norm and z'r */
PETSC_INTERN cudaError_t SpMVCudaCGDirection(SpMVCudaKrylov, cudaStream_t); /* x and the next p */

/*
  BiCGStab. The caller first sets x and r, and with POINTS or BLOCKS on the right also p = B r. Then it calls

    Begin;   then in each iteration:   First, Half, Second, Update

  where s is r, or hat with POINTS or BLOCKS on the right. With POINTS or BLOCKS on the left, First and Second apply B
  to v and t. If a solve ends as SINGULAR, t = 0: s and p belong to the last iteration, and x has not been updated in
  that iteration.
*/
PETSC_INTERN cudaError_t SpMVCudaBCGSBegin(SpMVCudaKrylov, const SpMVKrylovSolve *, const SpMVCudaBCGS *, cudaStream_t);
/* v = A p, unless A is NULL because the caller has computed it; B v; and (v, r0) */
PETSC_INTERN cudaError_t SpMVCudaBCGSFirst(SpMVCudaKrylov, SpMVCudaStore A, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaBCGSHalf(SpMVCudaKrylov, cudaStream_t); /* s */
/* t = A s, unless A is NULL; B t; and all inner products with it */
PETSC_INTERN cudaError_t SpMVCudaBCGSSecond(SpMVCudaKrylov, SpMVCudaStore A, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaBCGSUpdate(SpMVCudaKrylov, cudaStream_t); /* x, r, the norm, p */
/* After SINGULAR, if s = 0: x + alpha p, or with APPLIED on the right x + alpha B p, is the solution. Waits for the
   stream */
PETSC_INTERN cudaError_t SpMVCudaBCGSGetStep(SpMVCudaKrylov, PetscScalar *alpha, cudaStream_t);

/*
  A step of Chebyshev's method, after the product w = A now: next = of_before before + of_now now + of_residual B (b -
  w). Arrays that are NULL count as zero; next may be any of the others except w. The preconditioner must not be
  APPLIED.
*/
typedef struct {
  const SpMVKrylovScalar *b, *w, *before, *now;
  SpMVKrylovScalar       *next;
  PetscReal               of_before, of_now, of_residual;
} SpMVCudaChebyshev;
PETSC_INTERN cudaError_t SpMVCudaChebyshevStep(const SpMVKrylovSolve *, const SpMVCudaChebyshev *, cudaStream_t);

/* The state of the solve, as far as the host can see it now. its is counted as in PETSc: the iteration in progress, or
   the one in which the solve ended */
typedef struct {
  SpMVKrylovReason reason;
  int              its, norms; /* norms: the number of iterations with a norm */
} SpMVKrylovStatus;
PETSC_INTERN SpMVKrylovStatus SpMVCudaKrylovGetStatus(SpMVCudaKrylov);
/* The norm of an iteration, numbered from 1, if it is available; each norm is read once, in ascending order */
PETSC_INTERN PetscBool SpMVCudaKrylovReadNorm(SpMVCudaKrylov, int iteration, PetscReal *norm);
