/* Checks of the core with the matrices of tests/matrices */
#pragma once

#include "../../examples/mmload.h"
#include "common.h"

/* The matrices of tests/matrices */
static PetscErrorCode CheckFiles(const char *folder, PetscErrorCode (*check)(const Matrix *))
{
  static const char *const names[] = {"Si2",      "USAir97",  "bcsstk02", "cage8",   "can_838", "dwt_607",
                                      "fs_541_1", "gr_30_30", "jgl011",   "lns_131", "nos3",    "west0989"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names); k++) {
    char             file[PETSC_MAX_PATH_LEN];
    Mat              M;
    Matrix           A;
    const PetscInt **i = (const PetscInt **)&A.i, **j = (const PetscInt **)&A.j;
    PetscInt         m;
    PetscBool        done;

    PetscCall(PetscSNPrintf(file, sizeof(file), "%s/%s.mtx", folder, names[k]));
    PetscCall(MatCreate(PETSC_COMM_SELF, &M));
    PetscCall(MatSetType(M, MATSEQAIJ));
    PetscCall(MatLoadFile(PETSC_COMM_SELF, file, M));
    A.name = names[k];
    PetscCall(MatGetSize(M, &A.m, &A.n));
    PetscCall(MatGetRowIJ(M, 0, PETSC_FALSE, PETSC_FALSE, &m, i, j, &done));
    PetscCall(MatSeqAIJGetArray(M, &A.a));
    PetscCall((*check)(&A));
    PetscCall(MatSeqAIJRestoreArray(M, &A.a));
    PetscCall(MatRestoreRowIJ(M, 0, PETSC_FALSE, PETSC_FALSE, &m, i, j, &done));
    PetscCall(MatDestroy(&M));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
