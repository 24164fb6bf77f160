/*
  What the Fortran module cannot do itself: MPI's communicators differ between C and Fortran, and only C can convert
  them. No Fortran compiler is needed for this.
*/
#include <petscspmv.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

PETSC_EXTERN PetscErrorCode MatCreateBatch_Fortran(MPI_Fint, PetscInt, const PetscInt[], const PetscInt[],
                                                   const PetscInt[], PetscScalar[], MatBatchSharing, PetscCopyMode,
                                                   Mat *);
PETSC_EXTERN PetscErrorCode MatCreateBatchFromMats_Fortran(MPI_Fint, PetscInt, const Mat[], Mat *);

/* Called by petscspmv.F90 */
PetscErrorCode MatCreateBatch_Fortran(MPI_Fint comm, PetscInt nproblems, const PetscInt sizes[],
                                      const PetscInt rowoffsets[], const PetscInt columns[], PetscScalar values[],
                                      MatBatchSharing sharing, PetscCopyMode mode, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreateBatch(MPI_Comm_f2c(comm), nproblems, sizes, rowoffsets, columns, values, sharing, mode, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called by petscspmv.F90 */
PetscErrorCode MatCreateBatchFromMats_Fortran(MPI_Fint comm, PetscInt nproblems, const Mat mats[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreateBatchFromMats(MPI_Comm_f2c(comm), nproblems, mats, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
