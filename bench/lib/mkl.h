/*
   Intel MKL's CSR products with vectors and dense matrices as baselines, loaded at run time: neither its headers nor
   its libraries are needed to build. It multiplies with AIJ's own arrays, on one thread. `pip install mkl` brings
   libmkl_rt.so; no other package is needed for one thread.
*/
#pragma once

#include "csr.h"

typedef struct {
  int type, mode, diag;
} MKLDescr; /* struct matrix_descr */

typedef struct _p_MKLMatrix *MKLMatrix; /* sparse_matrix_t */

/* the interface that matches PetscScalar and PetscInt */
#if defined(PETSC_USE_COMPLEX)
  #define MKL_NAME(f) "mkl_sparse_z_" f
#else
  #define MKL_NAME(f) "mkl_sparse_d_" f
#endif

static struct {
  PetscDLHandle handle;
  int (*create)(MKLMatrix *, int, PetscInt, PetscInt, PetscInt *, PetscInt *, PetscInt *, PetscScalar *);
  int (*hint)(MKLMatrix, int, MKLDescr, PetscInt);
  int (*optimize)(MKLMatrix);
  int (*mv)(int, PetscScalar, MKLMatrix, MKLDescr, const PetscScalar *, PetscScalar, PetscScalar *);
  int (*mm)(int, PetscScalar, MKLMatrix, MKLDescr, int, const PetscScalar *, PetscInt, PetscInt, PetscScalar,
            PetscScalar *, PetscInt);
  int (*destroy)(MKLMatrix);
} MKL;

static const MKLDescr MKLGeneral = {20, 0, 0}; /* SPARSE_MATRIX_TYPE_GENERAL */
#define MKL_NO_TRANSPOSE 10
#define MKL_COLUMN_MAJOR 102

#define MKLCall(call)                                                                          \
  do {                                                                                         \
    int status_ = call;                                                                        \
    PetscCheck(!status_, PETSC_COMM_SELF, PETSC_ERR_LIB, "MKL answers %d to " #call, status_); \
  } while (0)

static PetscErrorCode MKLSymbol(const char *name, void *p)
{
  PetscFunctionBeginUser;
  PetscCall(PetscDLSym(MKL.handle, name, (void **)p));
  PetscCheck(*(void **)p, PETSC_COMM_SELF, PETSC_ERR_LIB, "This MKL has no %s", name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MKLOpen(const char *path)
{
  int (*layer)(int);

  PetscFunctionBeginUser;
  PetscCheck(sizeof(PetscReal) == sizeof(double), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "The MKL baseline is for double precision");
  PetscCall(PetscDLOpen(path, PETSC_DL_DECIDE, &MKL.handle));
  PetscCall(MKLSymbol("MKL_Set_Threading_Layer", &layer));
  (*layer)(1); /* sequential */
  PetscCall(MKLSymbol("MKL_Set_Interface_Layer", &layer));
  (*layer)(sizeof(PetscInt) == 8 ? 1 : 0);
  PetscCall(MKLSymbol(MKL_NAME("create_csr"), &MKL.create));
  PetscCall(MKLSymbol(MKL_NAME("mv"), &MKL.mv));
  PetscCall(MKLSymbol(MKL_NAME("mm"), &MKL.mm));
  PetscCall(MKLSymbol("mkl_sparse_set_mv_hint", &MKL.hint));
  PetscCall(MKLSymbol("mkl_sparse_optimize", &MKL.optimize));
  PetscCall(MKLSymbol("mkl_sparse_destroy", &MKL.destroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is a sequential AIJ matrix and must outlive the result, which uses its arrays */
static PetscErrorCode MKLMatCreate(Mat A, MKLMatrix *B)
{
  SpMVCSR csr;

  PetscFunctionBeginUser;
  PetscCall(MatGetCSR(A, &csr));
  MKLCall((*MKL.create)(B, 0, csr.m, csr.n, (PetscInt *)csr.i, (PetscInt *)csr.i + 1, (PetscInt *)csr.j,
                        (PetscScalar *)csr.a));
  PetscCall(MatRestoreCSR(A, &csr));
  MKLCall((*MKL.hint)(*B, MKL_NO_TRANSPOSE, MKLGeneral, 1000));
  MKLCall((*MKL.optimize)(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MKLMatMult(MKLMatrix B, Vec x, Vec y)
{
  const PetscScalar *xx;
  PetscScalar       *yy;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayRead(x, &xx));
  PetscCall(VecGetArrayWrite(y, &yy));
  MKLCall((*MKL.mv)(MKL_NO_TRANSPOSE, 1.0, B, MKLGeneral, xx, 0.0, yy));
  PetscCall(VecRestoreArrayWrite(y, &yy));
  PetscCall(VecRestoreArrayRead(x, &xx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A B, both dense and on the host */
static inline PetscErrorCode MKLMatMatMult(MKLMatrix A, Mat B, Mat C)
{
  const PetscScalar *b;
  PetscScalar       *c;
  PetscInt           columns, ldb, ldc;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, NULL, &columns));
  PetscCall(MatDenseGetLDA(B, &ldb));
  PetscCall(MatDenseGetLDA(C, &ldc));
  PetscCall(MatDenseGetArrayRead(B, &b));
  PetscCall(MatDenseGetArrayWrite(C, &c));
  MKLCall((*MKL.mm)(MKL_NO_TRANSPOSE, 1.0, A, MKLGeneral, MKL_COLUMN_MAJOR, b, columns, ldb, 0.0, c, ldc));
  PetscCall(MatDenseRestoreArrayWrite(C, &c));
  PetscCall(MatDenseRestoreArrayRead(B, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MKLMatDestroy(MKLMatrix *B)
{
  PetscFunctionBeginUser;
  if (*B) MKLCall((*MKL.destroy)(*B));
  *B = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
