/*
  The types that ours are derived from, AIJ and AIJCUSPARSE: their functions, and the creation of matrices of these
  types even if -mat_seqaij_type is set.
*/
#include "matspmv.h"

/*
  With -mat_seqaij_type, new sequential AIJ matrices get the type given by the option: one of ours or, say, AIJPERM. The
  code that creates them does not expect this. MatDuplicate() fills the new matrix but skips what AIJPERM does at
  assembly, MatTranspose() empties it by setting its type to the original's (PETSc 3.18 to 3.26), and MatSpMVHook()
  cannot hook such a matrix. So while the parent creates matrices, neither this option (names.c) nor -mat_spmv_replace
  has an effect.
*/
int SpMVHiddenDepth = 0;

PetscErrorCode SpMVSetParentType(Mat A, MatType type)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  SpMVHiddenDepth++;
  ierr = MatSetType(A, type);
  SpMVHiddenDepth--; /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parents' functions, for use when the matrix no longer has them: MatHeaderMerge() calls destroy after it has
  removed the composed objects, and MatDuplicate() copies our composed functions to matrices that are not ours. The
  functions are read from a new matrix of the parent type, because PETSc replaces functions of some matrices
  (submatrices). This is done only when a matrix of the type is first hooked: creating an AIJCUSPARSE matrix initializes
  the device, and programs that use none of our types must not pay for that.
*/
SpMVParent SpMVParents[2][2];

PetscErrorCode SpMVParentsSetUp(PetscBool device, PetscBool mpi)
{
  SpMVParent *p = &SpMVParents[device][mpi];
  Mat         A;

  PetscFunctionBegin;
  if (p->destroy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(SpMVSetParentType(A, SpMVParentTypes[device][mpi]));
#define SpMVQuery(name, f) PetscCall(PetscObjectQueryFunction((PetscObject)A, name "_C", &p->f))
  SpMVQuery("MatRetrieveValues", retrieve);
  SpMVQuery("MatStoreValues", store);
  SpMVQuery("MatProductSetFromOptions_seqaijcusparse_seqaij", productsetfromoptions);
  SpMVQuery("MatProductSetFromOptions_seqaijcusparse_seqdense", productdense);
  SpMVQuery("MatSetPreallocationCOO", preallocatecoo);
  SpMVQuery("MatSetValuesCOO", setvaluescoo);
#undef SpMVQuery
  p->mult             = A->ops->mult;
  p->multadd          = A->ops->multadd;
  p->multtransposeadd = A->ops->multtransposeadd;
  p->destroy          = A->ops->destroy;
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Whether new matrices use AIJCUSPARSE. The names of the types depend on it, so it is determined once, when the package
  is registered. If the ranks of a communicator differ, its matrices use the host.
*/
PetscErrorCode SpMVUseDevice(MPI_Comm comm, PetscBool *use)
{
  static int  settled = -1;
  int         all;
  PetscMPIInt size;

  PetscFunctionBegin;
  if (settled < 0) {
    const char *const option[] = {"-device_enable", "-device_enable_cuda"};

    settled = SpMVCUDA.devices && (*SpMVCUDA.devices)() > 0;
    for (int k = 0; k < 2; k++) {
      char      value[16];
      PetscBool set, none;

      PetscCall(PetscOptionsGetString(NULL, NULL, option[k], value, sizeof(value), &set));
      PetscCall(PetscStrcasecmp(set ? value : "", "none", &none));
      if (none) settled = 0;
    }
  }
  all = settled;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1 && SpMVCUDA.devices) PetscCallMPI(MPI_Allreduce(&settled, &all, 1, MPI_INT, MPI_MIN, comm));
  *use = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Marks the host's values as newer than the device's, after AIJ has changed them without doing so */
PetscErrorCode SpMVHostIsNewer(Mat A)
{
  PetscFunctionBegin;
  if (SpMVCUDA.hostisnewer) PetscCall((*SpMVCUDA.hostisnewer)(A));
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
  Before PETSc 3.26, MatRetrieveValues() does not increase the object state. In 3.26 it does not mark the host's values
  as newer than the values on the device (AIJCUSPARSE)
*/
static PetscErrorCode MatRetrieveValues_SpMV(Mat A)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*SpMVParents[spmv->device][SpMVIsMPI(A)].retrieve)(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(SpMVHostIsNewer(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatZeroRows() and MatZeroRowsColumns() increase the object state at their end, but may return an error after they have
  changed entries: where a diagonal entry is missing. So the state increases before, on all ranks, and after an error
  the pattern of a sequential matrix counts as changed, too.
*/
static PetscErrorCode SpMVZeroRows(Mat A, PetscBool columns, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x,
                                   Vec b)
{
  Mat_SpMV      *spmv;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  ierr = (*(columns ? spmv->parent.zerorowscolumns : spmv->parent.zerorows))(A, n, rows, diag, x, b);
  if (ierr && !SpMVIsMPI(A)) A->nonzerostate++;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_SpMV(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  return SpMVZeroRows(A, PETSC_FALSE, n, rows, diag, x, b);
}

static PetscErrorCode MatZeroRowsColumns_SpMV(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  return SpMVZeroRows(A, PETSC_TRUE, n, rows, diag, x, b);
}

void MatSpMVSetOps_Parent(Mat A)
{
  A->ops->zerorows        = MatZeroRows_SpMV;
  A->ops->zerorowscolumns = MatZeroRowsColumns_SpMV;
}

PetscErrorCode MatSpMVCompose_Parent(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  PetscCall(
      SpMVReplaceFunction(A, "MatRetrieveValues_C", ours ? MatRetrieveValues_SpMV : SpMVParents[device][mpi].retrieve));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes our functions with A, or the parent's again. A may be a copy of one of our matrices without being hooked
   itself */
PetscErrorCode MatSpMVComposeFunctions(Mat A, PetscBool ours)
{
  const PetscBool mpi = SpMVIsMPI(A);
  PetscBool       device;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  for (int k = 0; SpMVCompose[k]; k++) PetscCall((*SpMVCompose[k])(A, device, mpi, ours));
  for (int k = 0; device && SpMVCUDA.compose[k]; k++) PetscCall((*SpMVCUDA.compose[k])(A, device, mpi, ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}
