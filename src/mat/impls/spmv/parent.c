/*
  The types that ours are derived from, AIJ and AIJCUSPARSE: their own functions, and how to make matrices of them whatever -mat_seqaij_type says.
*/
#include "matspmv.h"

/*
  A sequential AIJ matrix is born as what -mat_seqaij_type says, one of our types or, say, AIJPERM. That is not what its maker works on: MatDuplicate() fills it without
  what AIJPERM does at assembly, MatTranspose() empties it in giving it the type of the original (PETSc 3.18 to 3.26), and we cannot take it over. So the option is hidden
  while the parent makes matrices.
*/
PetscErrorCode SpMVHideSeqAIJType(SpMVHidden *hidden)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", hidden->type, sizeof(hidden->type), &hidden->set));
  if (hidden->set) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVShowSeqAIJType(const SpMVHidden *hidden)
{
  PetscFunctionBegin;
  if (hidden->set) PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", hidden->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What AIJ (and AIJCUSPARSE) do, on the host or a device, sequential and MPI, where a matrix' own data cannot tell: MatHeaderMerge() calls destroy after it has taken
  away the list that holds them, and MatDuplicate() gives what we composed with a matrix to one that is none of ours. Of a matrix as it is created, as PETSc puts
  functions of its own before AIJ's in some that it makes (submatrices).
*/
SpMVParent SpMVParents[2][2];

PetscErrorCode SpMVLearnParent(PetscBool device, PetscBool mpi)
{
  SpMVHidden     hidden;
  Mat            A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (SpMVParents[device][mpi].destroy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  ierr = MatSetType(A, SpMVKinds[device][mpi].parent);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &SpMVParents[device][mpi].retrieve));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &SpMVParents[device][mpi].store));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C", &SpMVParents[device][mpi].productsetfromoptions));
  SpMVParents[device][mpi].destroy = A->ops->destroy;
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of a function that is there; a matrix that is bound to the host lacks some */
PetscErrorCode SpMVComposeBefore(Mat A, const char name[], PetscErrorCode (*function)(Mat))
{
  PetscErrorCode (*f)(Mat);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
  if (f) PetscCall(PetscObjectComposeFunction((PetscObject)A, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before 3.19, MatRetrieveValues() changes values without a word to the object state; in no release does it tell AIJCUSPARSE */
static PetscErrorCode MatRetrieveValues_SpMV(Mat A)
{
  Mat_SpMV *spmv;
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall((*SpMVParents[spmv->device][mpi].retrieve)(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(SpMVHostIsNewer(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a device: MatStoreValues() takes the host's values, whether they are up to date or not */
static PetscErrorCode MatStoreValues_SpMV(Mat A)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall((*SpMVParents[1][0].store)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_Parent(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  PetscCall(SpMVComposeBefore(A, "MatRetrieveValues_C", ours ? MatRetrieveValues_SpMV : SpMVParents[device][mpi].retrieve));
  if (device && !mpi) PetscCall(SpMVComposeBefore(A, "MatStoreValues_C", ours ? MatStoreValues_SpMV : SpMVParents[device][mpi].store));
  PetscFunctionReturn(PETSC_SUCCESS);
}
