/*
  Krylov methods on the device, free of PETSc objects and of MPI: vectors are bare arrays, scalars are in device memory, and the method itself is a sequence of
  kernels that the caller launches, with products and preconditioners of its own in between. The host reads nothing in order to launch the next kernel.

  A kernel that sums leaves partial sums of its thread blocks; the thread block that finishes last adds them, always in the same order, over all ranks, too, and
  one of its threads takes the step of the method that depends on them: new scalars, convergence, breakdown. When that ends the solve, the kernels that follow
  return at once.

  The host sees the norm of every iteration and the state of the solve in pinned memory, to which the device writes, without waiting for anything.

  Sums over ranks: through memory that the ranks have open to each other (PEER), within the kernel that sums; otherwise by a function of the caller.
*/
#pragma once

#include "spmvcuda.h"

typedef struct _n_SpMVCudaKrylov *SpMVCudaKrylov;

/* How a solve ended */
typedef enum {
  SPMV_KRYLOV_ITERATING,
  SPMV_KRYLOV_RTOL,
  SPMV_KRYLOV_ATOL,
  SPMV_KRYLOV_ZERO,           /* z'r = 0: x is the solution */
  SPMV_KRYLOV_ENOUGH,         /* the greatest number of iterations, which counts as convergence */
  SPMV_KRYLOV_DTOL,           /* diverged: */
  SPMV_KRYLOV_ITS,            /* the greatest number of iterations */
  SPMV_KRYLOV_NAN_NORM,       /* a norm is Inf or NaN */
  SPMV_KRYLOV_NAN_DOT,        /* an inner product is */
  SPMV_KRYLOV_INDEFINITE_PC,  /* the preconditioner */
  SPMV_KRYLOV_INDEFINITE_MAT, /* the matrix */
  SPMV_KRYLOV_BREAKDOWN,      /* an inner product is 0 */
  SPMV_KRYLOV_SINGULAR,       /* t = 0: see SpMVCudaBCGSBegin() */
  SPMV_KRYLOV_REASONS
} SpMVKrylovReason;

/* The preconditioner that the kernels apply, z = B r */
typedef enum {
  SPMV_KRYLOV_PC_NONE,   /* z = r */
  SPMV_KRYLOV_PC_POINTS, /* a diagonal, by which r is multiplied wherever z is read */
  SPMV_KRYLOV_PC_BLOCKS, /* blocks on the diagonal */
  SPMV_KRYLOV_PC_APPLIED /* none: the caller computes z */
} SpMVKrylovPC;

/* The norm that is tested: of z, of r, sqrt |z'r|, or 0 */
typedef enum { SPMV_KRYLOV_NORM_NONE, SPMV_KRYLOV_NORM_PRECONDITIONED, SPMV_KRYLOV_NORM_UNPRECONDITIONED, SPMV_KRYLOV_NORM_NATURAL } SpMVKrylovNorm;

/* Convergence, as KSPConvergedDefault() decides it; test = PETSC_FALSE leaves all to the caller but breakdown and the number of iterations */
typedef struct {
  PetscBool test, enough; /* enough: the greatest number of iterations counts as convergence */
  PetscReal ttol, abstol, dtol;
  int       max_it, min_it, chknorm; /* no norm is computed in the first chknorm iterations */
} SpMVKrylovTest;

/* The conjugate gradient method. Arrays have n entries but d, which has n * bs: entry (i, i / bs * bs + j) of the preconditioner is d[j * n + i] */
typedef struct {
  int                n, bs; /* bs <= SPMV_KRYLOV_BLOCK */
  PetscScalar       *x, *r, *z, *p, *w;
  const PetscScalar *d;
  SpMVKrylovPC       pc;
  SpMVKrylovNorm     norm;
  PetscBool          hermitian; /* z'r is that of complex vectors, else the sum of the products */
  PetscBool          early;     /* kernels let the next one begin */
  SpMVKrylovTest     until;
} SpMVCudaCG;

/*
  The stabilized biconjugate gradient method. B is on the left (B A x = B b) or on the right, where it is applied to what is multiplied: then x is the solution
  and not that of A B y = b. s has the place of r
*/
typedef struct {
  int                n, bs;
  PetscScalar       *x, *r, *r0, *v, *t, *p;
  PetscScalar       *hat; /* B s, with POINTS or BLOCKS on the right */
  const PetscScalar *d;
  SpMVKrylovPC       pc;   /* APPLIED: the caller's products are those of the preconditioned matrix, on either side */
  SpMVKrylovNorm     norm; /* any but NONE: that of r */
  PetscBool          left, early;
  PetscReal          dp; /* the norm of the first residual, if one was computed */
  SpMVKrylovTest     until;
} SpMVCudaBCGS;

#define SPMV_KRYLOV_BLOCK 8    /* the most rows of a block of the preconditioner */
#define SPMV_KRYLOV_NORMS 1024 /* the most norms between two calls that read them */

/* Tests change it: sums of a product's warps, times thread blocks, up to which the kernel that follows the product adds them */
PETSC_INTERN int SpMVCudaKrylovParts;

/* Adds `count` numbers on the device over all ranks, in place and in the order of the stream; it may wait for the stream */
typedef cudaError_t (*SpMVCudaKrylovAllReduce)(void *ctx, PetscReal *sums, int count, cudaStream_t);

PETSC_INTERN cudaError_t SpMVCudaKrylovCreate(SpMVCudaKrylov *);
PETSC_INTERN cudaError_t SpMVCudaKrylovDestroy(SpMVCudaKrylov *);
PETSC_INTERN void        SpMVCudaKrylovSetAllReduce(SpMVCudaKrylov, SpMVCudaKrylovAllReduce, void *ctx);
/* PEER: what this rank shows to the others; then opens the memory of all, in the order of the ranks; and the reverse, by all ranks before one destroys it */
PETSC_INTERN cudaError_t SpMVCudaKrylovGetOffer(SpMVCudaKrylov, int size, cudaIpcMemHandle_t *);
PETSC_INTERN cudaError_t SpMVCudaKrylovOpen(SpMVCudaKrylov, int rank, const cudaIpcMemHandle_t[]);
PETSC_INTERN cudaError_t SpMVCudaKrylovClose(SpMVCudaKrylov);

/* The blocks of a preconditioner that is only known by what it does: v becomes 1 at every entry whose place in its block is j, else 0; then d, column j, is B v */
PETSC_INTERN cudaError_t SpMVCudaKrylovUnit(int n, int bs, int j, PetscScalar *v, cudaStream_t);
/* An array of the object's own, of at least so many numbers, for d */
PETSC_INTERN cudaError_t SpMVCudaKrylovGetArray(SpMVCudaKrylov, size_t count, PetscScalar **d);

/*
  CG. After the caller has set x and r, and z unless the preconditioner is NONE:

    Begin, Direction;   then in each iteration:   w = A p, Product, Update, Direction

  With APPLIED, the caller computes z between Update and Sums, and Direction follows: w = A p, Product, Update, z = B r, Sums, Direction. If the norm is that of
  r, Update has tested it, and the caller may find that it need not compute z: after Update, Direction completes x.
*/
PETSC_INTERN cudaError_t SpMVCudaCGBegin(SpMVCudaKrylov, const SpMVCudaCG *, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaCGProduct(SpMVCudaKrylov, cudaStream_t); /* p'w, and the length of the step */
/* w = A p and Product in one kernel, where the store has one; *done is PETSC_FALSE, and nothing has happened, where it has not */
PETSC_INTERN cudaError_t SpMVCudaCGMult(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *done);
PETSC_INTERN cudaError_t SpMVCudaCGUpdate(SpMVCudaKrylov, cudaStream_t);    /* r, z, norm, z'r */
PETSC_INTERN cudaError_t SpMVCudaCGSums(SpMVCudaKrylov, cudaStream_t);      /* norm and z'r */
PETSC_INTERN cudaError_t SpMVCudaCGDirection(SpMVCudaKrylov, cudaStream_t); /* x and the next p */
/* x'Ax/2 - x'b, less its value at the beginning; waits for the stream */
PETSC_INTERN cudaError_t SpMVCudaCGGetObjective(SpMVCudaKrylov, PetscReal *, cudaStream_t);

/*
  BiCGStab. After the caller has set x and r, and with POINTS or BLOCKS on the right p = B r:

    Begin;   then in each iteration:   v = A p, First, Half, t = A s, Second, Update

  where s is r, or hat with POINTS or BLOCKS on the right. With these on the left, First and Second apply B to v and t. A solve that ends as SINGULAR has t = 0:
  s and p are those of the last iteration, whose x is still missing.
*/
PETSC_INTERN cudaError_t SpMVCudaBCGSBegin(SpMVCudaKrylov, const SpMVCudaBCGS *, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaBCGSFirst(SpMVCudaKrylov, cudaStream_t);  /* B v, and (v, r0) */
PETSC_INTERN cudaError_t SpMVCudaBCGSHalf(SpMVCudaKrylov, cudaStream_t);   /* s */
PETSC_INTERN cudaError_t SpMVCudaBCGSSecond(SpMVCudaKrylov, cudaStream_t); /* B t, and all inner products with it */
PETSC_INTERN cudaError_t SpMVCudaBCGSUpdate(SpMVCudaKrylov, cudaStream_t); /* x, r, the norm, p */
/* v = A p and First, t = A s and Second in one kernel, where the store has one; *done is PETSC_FALSE, and nothing has happened, where it has not */
PETSC_INTERN cudaError_t SpMVCudaBCGSMultFirst(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *done);
PETSC_INTERN cudaError_t SpMVCudaBCGSMultSecond(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *done);
/* After SINGULAR: x + alpha p is the solution if s = 0; waits for the stream */
PETSC_INTERN cudaError_t SpMVCudaBCGSGetStep(SpMVCudaKrylov, PetscScalar *alpha, cudaStream_t);

/*
  A step of Chebyshev's method, after the product w = A now: next = of_before before + of_now now + of_residual B (b - w). Arrays that are NULL count as zero;
  next may be any of the others but w. The preconditioner is not APPLIED.
*/
typedef struct {
  int                n, bs;
  SpMVKrylovPC       pc;
  PetscBool          early;
  const PetscScalar *b, *w, *d, *before, *now;
  PetscScalar       *next;
  PetscReal          of_before, of_now, of_residual;
} SpMVCudaChebyshev;
PETSC_INTERN cudaError_t SpMVCudaChebyshevStep(SpMVCudaKrylov, const SpMVCudaChebyshev *, cudaStream_t);

/* What the host can see now: the state of the solve. its counts as in PETSc: the iteration that is in progress, or in which the solve ended */
typedef struct {
  SpMVKrylovReason reason;
  int              its, norms; /* norms: of how many iterations there is one */
} SpMVKrylovStatus;
PETSC_INTERN SpMVKrylovStatus SpMVCudaKrylovGetStatus(SpMVCudaKrylov);
/* The norm of an iteration, from 1 on, once it is there; each is read once, in ascending order */
PETSC_INTERN PetscBool SpMVCudaKrylovReadNorm(SpMVCudaKrylov, int iteration, PetscReal *norm);
