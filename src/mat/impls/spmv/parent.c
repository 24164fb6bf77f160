/*
  The types that ours are derived from, AIJ and AIJCUSPARSE: their functions, and the creation of matrices of these types
  even if -mat_seqaij_type is set.
*/
#include "matspmv.h"

/*
  With -mat_seqaij_type, new sequential AIJ matrices get the type given by the option: one of ours or, say, AIJPERM. The code
  that creates them does not expect this. MatDuplicate() fills the new matrix but skips what AIJPERM does at assembly,
  MatTranspose() empties it by setting its type to the original's (PETSc 3.18 to 3.26), and MatSpMVHook() cannot hook such a
  matrix. So the option is hidden while the parent creates matrices.
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
  The parents' functions, for use when the matrix no longer has them: MatHeaderMerge() calls destroy after it has removed the
  composed objects, and MatDuplicate() copies our composed functions to matrices that are not ours. The functions are read
  from a new matrix of the parent type, because PETSc replaces functions of some matrices (submatrices). This is done only
  when a matrix of the type is first hooked: creating an AIJCUSPARSE matrix initializes the device, and programs that use
  none of our types must not pay for that.
*/
SpMVParent SpMVParents[2][2];

PetscErrorCode SpMVParentsSetUp(PetscBool device, PetscBool mpi)
{
  SpMVHidden     hidden;
  Mat            A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (SpMVParents[device][mpi].destroy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  ierr = MatSetType(A, SpMVKinds[device][mpi].parent);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* even after an error */
  PetscCall(ierr);
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &SpMVParents[device][mpi].retrieve));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &SpMVParents[device][mpi].store));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C", &SpMVParents[device][mpi].productsetfromoptions));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatProductSetFromOptions_seqaijcusparse_seqdense_C", &SpMVParents[device][mpi].productdense));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &SpMVParents[device][mpi].preallocatecoo));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &SpMVParents[device][mpi].setvaluescoo));
  SpMVParents[device][mpi].mult             = A->ops->mult;
  SpMVParents[device][mpi].multadd          = A->ops->multadd;
  SpMVParents[device][mpi].multtransposeadd = A->ops->multtransposeadd;
  SpMVParents[device][mpi].destroy          = A->ops->destroy;
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces a composed function if there is one: a matrix that is bound to the CPU does not have all of them */
PetscErrorCode SpMVReplaceFunction(Mat A, const char name[], PetscErrorCode (*function)(Mat))
{
  PetscErrorCode (*f)(Mat);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
  if (f) PetscCall(PetscObjectComposeFunction((PetscObject)A, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Before PETSc 3.26, MatRetrieveValues() does not increase the object state. In 3.26 it does not mark the host's values as
  newer than the values on the device (AIJCUSPARSE)
*/
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

/* MatStoreValues() of AIJCUSPARSE stores the host's values even if the device's are newer (up to PETSc 3.26): copy them first */
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
  PetscCall(SpMVReplaceFunction(A, "MatRetrieveValues_C", ours ? MatRetrieveValues_SpMV : SpMVParents[device][mpi].retrieve));
  if (device && !mpi) PetscCall(SpMVReplaceFunction(A, "MatStoreValues_C", ours ? MatStoreValues_SpMV : SpMVParents[device][mpi].store));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes our functions with A, or the parent's again. A may be a copy of one of our matrices without being hooked itself */
PetscErrorCode MatSpMVComposeFunctions(Mat A, PetscBool ours)
{
  PetscBool mpi, device;

  PetscFunctionBegin;
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  for (int k = 0; SpMVKinds[device][mpi].compose[k]; k++) PetscCall((*SpMVKinds[device][mpi].compose[k])(A, device, mpi, ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}
