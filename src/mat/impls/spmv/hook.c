/*
  Taking an AIJ matrix over and giving it back; what makes matrices of our types: creation, conversion, duplication.
*/
#include "matspmv.h"

/* The format that a type's name asks for, NULL for none of ours: sellp, seqsellp, mpisellp, seqaijsellp, mpiaijsellp, seqaijcusparsesellp */
static PetscErrorCode SpMVFormatFind(MatType type, const SpMVFormat **format)
{
  const char *const prefix[] = {"", "seq", "mpi", "seqaij", "mpiaij", "aij", "seqaijcusparse", "mpiaijcusparse"};
  char              name[64];
  PetscBool         same;

  PetscFunctionBegin;
  *format = NULL;
  for (int f = 0; SpMVFormats[f]; f++) {
    for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(prefix); p++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", prefix[p], SpMVFormats[f]->name));
      PetscCall(PetscStrcmp(type, name, &same));
      if (same) *format = SpMVFormats[f];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVHookBlocks_MPI(Mat A, Mat_SpMV *spmv)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscObjectId id;

    if (!block[k]) continue;
    PetscCall(PetscObjectGetId((PetscObject)block[k], &id));
    if (id == spmv->parallel.hooked[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own && own->format != spmv->format) {
      PetscCall(MatSpMVUnhook(block[k]));
      own = NULL;
    }
    if (own)
      PetscCall(MatSpMVSetParams(block[k], own, spmv->params)); /* made by the type's name: it knows the format, not our options */
    else {
      /* -mat_seqaij_type may have made it something else */
      PetscCall(MatConvert(block[k], spmv->device ? MATSEQAIJCUSPARSE : MATSEQAIJ, MAT_INPLACE_MATRIX, &block[k]));
      PetscCall(MatSpMVHook(block[k], spmv->format, spmv->params));
    }
    spmv->parallel.hooked[k] = id;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat A)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!block[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own) PetscCall(MatSpMVUnhook(block[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SpMV(Mat A, MatAssemblyType mode)
{
  Mat_SpMV *spmv;
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.assemblyend)(A, mode));
  if (mode == MAT_FLUSH_ASSEMBLY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi)
    PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  else if (spmv->host.use_parent)
    MatSpMVUseParent(A, spmv, PETSC_FALSE);
  if (A->ops->view != spmv->ours.view) { /* the DM that made the matrix views it in its own way, and says nothing of the format */
    spmv->view   = A->ops->view;
    A->ops->view = spmv->ours.view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's copy, on all ranks or on none: PETSc copies the blocks of a parallel matrix one by one, and leaves if one of them fails */
static PetscErrorCode SpMVDuplicateAsParent(Mat A, const Mat_SpMV *spmv, MatDuplicateOption op, Mat *B)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *B   = NULL;
  ierr = (*spmv->parent.duplicate)(A, op, B);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(MatDestroy(B));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SpMV(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_SpMV *spmv, *copy;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVDuplicateAsParent(A, spmv, op, B)); /* makes a matrix of A's type by its name, which is AIJCUSPARSE's own on a device */
  PetscCall(MatSpMVGet(*B, &copy));
  if (!copy) {
    PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* it comes with what we composed with A */
    PetscCall(MatSpMVHook(*B, spmv->format, spmv->params));
  } else {
    PetscCall(MatSpMVSetParams(*B, copy, spmv->params));
    copy->view = spmv->view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc finds by a name that is composed with the matrix: ours, or the parent's again (of any matrix that has ours) */
PetscErrorCode MatSpMVComposeFunctions(Mat A, PetscBool ours)
{
  PetscBool mpi, device;

  PetscFunctionBegin;
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  for (int k = 0; SpMVKinds[device][mpi].compose[k]; k++) PetscCall((*SpMVKinds[device][mpi].compose[k])(A, device, mpi, ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SpMV(Mat A, PetscErrorCode (*destroy)(Mat))
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv) {
    if (!((PetscObject)A)->type_name) PetscCall(SpMVMergedSet(A, spmv)); /* MatHeaderMerge() */
    destroy                       = spmv->parent.destroy;
    A->ops->productsetfromoptions = spmv->parent.productsetfromoptions;
    PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
    PetscCall(MatSpMVSet(A, NULL));
  }
  PetscCall((*destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqSpMV(Mat A)
{
  return MatDestroy_SpMV(A, SpMVParents[0][0].destroy);
}

static PetscErrorCode MatDestroy_MPISpMV(Mat A)
{
  return MatDestroy_SpMV(A, SpMVParents[0][1].destroy);
}

static PetscErrorCode MatDestroy_SeqSpMVCUDA(Mat A)
{
  return MatDestroy_SpMV(A, SpMVParents[1][0].destroy);
}

static PetscErrorCode MatDestroy_MPISpMVCUDA(Mat A)
{
  return MatDestroy_SpMV(A, SpMVParents[1][1].destroy);
}

static PetscErrorCode (*const SpMVDestroys[2][2])(Mat) = {{MatDestroy_SeqSpMV, MatDestroy_MPISpMV}, {MatDestroy_SeqSpMVCUDA, MatDestroy_MPISpMVCUDA}};

/* The parent's operation adds the options of the parent; ours have a heading of their own */
static PetscErrorCode MatSetFromOptions_SpMV(Mat A, SpMVOptionItems PetscOptionsObject)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv->parent.setfromoptions) PetscCall((*spmv->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(SpMVReadOptions(A, spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of A that is its parent's and nothing else */
static PetscErrorCode SpMVCreateParent(Mat A, Mat *B)
{
  Mat_SpMV      *spmv;
  SpMVHidden     hidden;
  PetscBool      mpi;
  char          *name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  name                        = ((PetscObject)A)->type_name;
  ((PetscObject)A)->type_name = (char *)spmv->parenttype;
  ierr                        = SpMVDuplicateAsParent(A, spmv, MAT_COPY_VALUES, B);
  ((PetscObject)A)->type_name = name; /* after an error, too */
  PetscCall(SpMVShowSeqAIJType(&hidden));
  PetscCall(ierr);
  PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* it comes with what we composed with A */
  if (mpi) PetscCall(MatSpMVUnhookBlocks_MPI(*B));
  PetscCall(MatPropagateSymmetryOptions(A, *B)); /* to SBAIJ only what is known to be symmetric converts */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From one of our types to any other: through the plain AIJ matrix, whose converters PETSc finds by name */
static PetscErrorCode MatConvert_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat               B;

  PetscFunctionBegin;
  PetscCall(SpMVFormatFind(newtype, &format));
  if (format)
    PetscCall(MatConvertFrom_SpMV(A, newtype, reuse, newmat));
  else if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(MatSpMVUnhook(A));
    PetscCall(MatConvert(A, newtype, MAT_INPLACE_MATRIX, newmat));
  } else {
    PetscCall(SpMVCreateParent(A, &B));
    if (reuse == MAT_REUSE_MATRIX) {
      PetscCall(MatConvert(B, newtype, MAT_REUSE_MATRIX, newmat));
      PetscCall(MatDestroy(&B));
    } else {
      PetscCall(MatConvert(B, newtype, MAT_INPLACE_MATRIX, &B));
      *newmat = B;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes a matrix of any type AIJ, or AIJCUSPARSE where there is a device */
static PetscErrorCode SpMVConvertToParent(Mat *A)
{
  PetscBool      device, plain;
  SpMVHidden     hidden;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)*A), &device));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &plain, MATSEQAIJ, MATMPIAIJ, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  if (!plain) ierr = MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A);
  if (!ierr && device) ierr = MatConvert(*A, MATAIJCUSPARSE, MAT_INPLACE_MATRIX, A);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVConvertInPlace(Mat A, const SpMVFormat *format)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && spmv->format == format) PetscFunctionReturn(PETSC_SUCCESS);
  if (spmv) PetscCall(MatSpMVUnhook(A));
  PetscCall(SpMVConvertToParent(&A));
  PetscCall(MatSpMVHook(A, format, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From any type that converts to AIJ to one of ours */
PetscErrorCode MatConvertFrom_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat_SpMV         *spmv;
  Mat               B;
  PetscBool         cusparse;

  PetscFunctionBegin;
  PetscCall(SpMVFormatFind(newtype, &format));
  PetscCheck(format, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_UNKNOWN_TYPE, "Type %s is none of PetscSpMV's", newtype);
  PetscCall(MatSpMVGet(A, &spmv));
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(SpMVConvertInPlace(A, format));
  else {
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &cusparse, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
    if (spmv)
      PetscCall(SpMVCreateParent(A, &B));
    else if (cusparse)
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    else
      PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
    if (reuse == MAT_REUSE_MATRIX) {
      PetscCall(MatCopy(B, *newmat, DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else {
      PetscCall(SpMVConvertToParent(&B));
      PetscCall(MatSpMVHook(B, format, spmv && spmv->format == format ? spmv->params : NULL));
      *newmat = B;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  LU in place merges the matrix with its factors, which are AIJ, and PETSc insists on one type; ILU in place leaves AIJCUSPARSE in a state that it
  cannot destroy. The matrix becomes AIJ first.
*/
static PetscErrorCode SpMVBecomeAIJ(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVUnhook(A));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactor_SpMV(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(SpMVBecomeAIJ(A));
  PetscCall((*A->ops->lufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactor_SpMV(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(SpMVBecomeAIJ(A));
  PetscCall((*A->ops->ilufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatSpMVHook - makes an AIJ or AIJCUSPARSE matrix one of ours, in place

  The matrix may be unassembled, but its operations must be AIJ's own: not those that AIJ has while it collects entries in a hash table.
*/
PetscErrorCode MatSpMVHook(Mat A, const SpMVFormat *format, const void *params)
{
  Mat_SpMV      *spmv = NULL;
  PetscBool      plain, mpi, device;
  char           name[64];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &plain, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCheck(plain || device, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "Cannot make a matrix of type %s from one of type %s: convert it to %s first",
             format->name, ((PetscObject)A)->type_name, MATAIJ);
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(SpMVLearnParent(device, mpi));
  PetscCheck(format->paramssize <= sizeof(spmv->params), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Parameters of %s are too large", format->name);
  PetscCall(MatSpMVNew(A, &spmv));
  spmv->format     = format;
  spmv->device     = device;
  spmv->parenttype = SpMVKinds[device][mpi].parent;
  if (params)
    PetscCall(PetscMemcpy(spmv->params, params, format->paramssize));
  else
    (*format->defaults)(spmv->params);
  if (!params) {
    ierr = SpMVReadOptions(A, spmv); /* a wrong option must leave the matrix as it was */
    if (ierr) PetscCall(PetscFree(spmv));
    PetscCall(ierr);
  }
  PetscCall(MatSpMVSet(A, spmv));

#define SpMVKeep(op) spmv->parent.op = A->ops->op
  SpMVHooks(SpMVKeep);
#undef SpMVKeep
  spmv->view = A->ops->view;
  for (int k = 0; SpMVKinds[device][mpi].setops[k]; k++) (*SpMVKinds[device][mpi].setops[k])(A);
  A->ops->assemblyend    = MatAssemblyEnd_SpMV;
  A->ops->duplicate      = MatDuplicate_SpMV;
  A->ops->destroy        = SpMVDestroys[device][mpi];
  A->ops->convert        = MatConvert_SpMV;
  A->ops->setfromoptions = MatSetFromOptions_SpMV;
  if (A->ops->lufactor) A->ops->lufactor = MatLUFactor_SpMV;
  if (A->ops->ilufactor && device) A->ops->ilufactor = MatILUFactor_SpMV;
#define SpMVKeep(op) spmv->ours.op = A->ops->op
  SpMVHooks(SpMVKeep);
#undef SpMVKeep
  spmv->ours.convertfrom = MatConvertFrom_SpMV;
  PetscCall(MatSpMVComposeFunctions(A, PETSC_TRUE));
  if (!device) { /* CUSPARSE's code wants matrices by its own name */
    PetscCall(PetscSNPrintf(name, sizeof(name), "%saij%s", mpi ? "mpi" : "seq", format->name));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, name));
  }
  if (mpi && A->assembled) PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSpMVUnhook - gives the matrix back to AIJ, in place */
PetscErrorCode MatSpMVUnhook(Mat A)
{
  Mat_SpMV *spmv;
  PetscErrorCode (*view)(Mat, PetscViewer);
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi && A->preallocated) PetscCall(MatSpMVUnhookBlocks_MPI(A));
    /* PETSc may have put an operation of its own before ours meanwhile, as it does with the destroy of submatrices; that one stays */
#define SpMVGiveBack(op) \
  if (A->ops->op == spmv->ours.op) A->ops->op = spmv->parent.op
  view                                        = A->ops->view == spmv->ours.view ? spmv->view : A->ops->view;
  SpMVHooks(SpMVGiveBack);
#undef SpMVGiveBack
  A->ops->view = view;
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, spmv->parenttype));
  PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
  PetscCall(MatSpMVSet(A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new matrix becomes AIJ, and then ours */
static PetscErrorCode SpMVCreate(Mat A, MatType parent, const SpMVFormat *format)
{
  SpMVHidden     hidden;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVHideSeqAIJType(&hidden));
  ierr = MatSetType(A, parent);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscCall(MatSpMVHook(A, format, NULL));
  /*
    MatConvert() to a type makes a matrix of that type and calls its convertfrom. Only those made here have ours: one that was to be AIJ and is of our type by
    -mat_seqaij_type must not.
  */
  A->ops->convertfrom = MatConvertFrom_SpMV;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqSpMV(Mat A, const SpMVFormat *format)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &device));
  PetscCall(SpMVCreate(A, device ? MATSEQAIJCUSPARSE : MATSEQAIJ, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_MPISpMV(Mat A, const SpMVFormat *format)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &device));
  PetscCall(SpMVCreate(A, device ? MATMPIAIJCUSPARSE : MATMPIAIJ, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SpMV(Mat A, const SpMVFormat *format)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size == 1)
    PetscCall(MatCreate_SeqSpMV(A, format));
  else
    PetscCall(MatCreate_MPISpMV(A, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}
