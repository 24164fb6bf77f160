/*
  Hooking an AIJ matrix (turning it into a matrix of one of our types, in place) and unhooking it, and the creation,
  conversion and duplication of matrices of our types.
*/
#include "matspmv.h"
#include <petscdm.h>

static PetscErrorCode MatSpMVUnhook(Mat);

/* The format of a type name, NULL if it is not ours: sellp, seqsellp, mpisellp, seqaijsellp, mpiaijsellp,
   seqaijcusparsesellp */
static PetscErrorCode SpMVFormatFind(MatType type, const SpMVFormat **format)
{
  const char *const prefix[] = {"seq", "mpi", "aij", "cusparse"};
  PetscBool         same;

  PetscFunctionBegin;
  *format = NULL;
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(prefix); p++) {
    PetscCall(PetscStrbeginswith(type, prefix[p], &same));
    if (same) type += strlen(prefix[p]);
  }
  for (int f = 0; SpMVFormats[f]; f++) {
    PetscCall(PetscStrcmp(type, SpMVFormats[f]->name, &same));
    if (same) *format = SpMVFormats[f];
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
    /* with -mat_seqaij_type the block may have another type */
    if (!own)
      PetscCall(MatConvert(block[k], spmv->device ? MATSEQAIJCUSPARSE : MATSEQAIJ, MAT_INPLACE_MATRIX, &block[k]));
    PetscCall(MatSpMVHook(block[k], spmv->format, spmv->params));
    spmv->parallel.hooked[k] = id;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat A)
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

/*
  MatHeaderMerge(), which MatAXPY() calls for another pattern, gives a matrix the data and the nonzero state of a new
  one, but not its operations; before PETSc 3.21.1 also the new one's format and parameters. PETSc 3.18 to 3.26 then
  look for inodes, which determine operations, only if the state has changed since they were last looked for. And if the
  state is the one that the matrix had before (in 3.18 also if it is smaller), PC takes the new pattern for the old one.
  Both make LU fail or give wrong solutions. So on the host, where both matrices are of our types, the state of each
  sequential matrix changes after its first assembly to one that no other matrix has had. Parallel matrices do not need
  this for inodes, and their states are the sums of their blocks'
*/
static void SpMVNonzeroStateRenew(Mat A)
{
  static PetscObjectState matrices = 0;

  A->nonzerostate += ++matrices << 32;
}

/*
  Sets the matrix type of the DM that created A, and of its coarser DMs that exist already, to aijsellp if it is sellp,
  seqsellp or mpisellp. DMDA and DMStag create interpolations, restrictions and injections as AIJ matrices on the host,
  unless the name of their matrix type begins with aij, seqaij or mpiaij (PETSc 3.18 to 3.26). A multigrid cycle on a
  device then spends its time in copies.

  The operator is created and assembled before an interpolation is needed, and DMs that are refined or coarsened from
  this DM later inherit the name. This is done on a device only. On the host, setting up the format of an interpolation
  takes as long as dozens of products with it, which is more than the cycles of one solve gain.
*/
static PetscErrorCode MatSpMVNameDM(Mat A, const SpMVFormat *format)
{
  DM dm;

  PetscFunctionBegin;
  PetscCall(MatGetDM(A, &dm));
  while (dm) {
    MatType type;
    char    name[64];

    PetscCall(DMGetMatType(dm, &type));
    if (!strncmp(type, "seq", 3) || !strncmp(type, "mpi", 3)) type += 3;
    PetscCall(PetscSNPrintf(name, sizeof(name), "aij%s", format->name));
    if (!strcmp(type, format->name)) PetscCall(DMSetMatType(dm, name));
    PetscCall(DMGetCoarseDM(dm, &dm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SpMV(Mat A, MatAssemblyType mode)
{
  const PetscBool mpi     = SpMVIsMPI(A);
  PetscBool       changed = PETSC_FALSE;
  Mat_SpMV       *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.assemblyend)(A, mode));
  if (mode == MAT_FLUSH_ASSEMBLY) PetscFunctionReturn(PETSC_SUCCESS);
  if (spmv->device) PetscCall(MatSpMVNameDM(A, spmv->format));
  if (!spmv->device && !mpi && !A->was_assembled) SpMVNonzeroStateRenew(A);
  if (!mpi) PetscCall(MatSpMVHashPattern_Seq(A, spmv, &changed));
  if (changed) { /* AIJ looks for inodes in the new pattern, and does nothing else */
    A->ass_nonzerostate = ++A->nonzerostate;
    PetscCall((*spmv->parent.assemblyend)(A, mode));
  }
  if (spmv->backend) PetscCall((*spmv->backend->assembled)(A, mpi));
  if (mpi)
    PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  else if (spmv->host.use_parent)
    MatSpMVUseParent_Seq(A, spmv, PETSC_FALSE);
  /* the DM that created the matrix has set its own view, which does not show the format */
  if (A->ops->view != spmv->ours.view) {
    spmv->view   = A->ops->view;
    A->ops->view = spmv->ours.view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Duplicates A with the parent's function, on all ranks or on none: PETSc duplicates the blocks of a parallel matrix one
  by one and returns at the first error
*/
static PetscErrorCode SpMVDuplicateAsParent(Mat A, const Mat_SpMV *spmv, MatDuplicateOption op, Mat *B)
{
  PetscObject    maps;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *B = NULL;
  /* AIJCUSPARSE's function sets the operations of the new matrix once more after its type: with -mat_spmv_replace the
     matrix would have a format by then, whose operations it would lose */
  SpMVHiddenDepth++;
  ierr = (*spmv->parent.duplicate)(A, op, B);
  SpMVHiddenDepth--;
  if (!ierr) ierr = MatBatchKeep(A, *B);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(MatDestroy(B));
  PetscCall(ierr);
  /* the maps of MatSetPreallocationCOO(): B has the same pattern */
  PetscCall(PetscObjectQuery((PetscObject)A, SpMVCOOContainer, &maps));
  if (maps) PetscCall(PetscObjectCompose((PetscObject)*B, SpMVCOOContainer, maps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SpMV(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_SpMV *spmv, *copy;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  /* creates a matrix with A's type name, which on the device is AIJCUSPARSE's */
  PetscCall(SpMVDuplicateAsParent(A, spmv, op, B));
  PetscCall(MatSpMVGet(*B, &copy));
  if (!copy) PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* PETSc has copied the functions composed with A */
  PetscCall(MatSpMVHook(*B, spmv->format, spmv->params));
  PetscCall(MatSpMVGet(*B, &copy));
  copy->view            = spmv->view;
  copy->ignores_offproc = spmv->ignores_offproc;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SpMV(Mat A, PetscErrorCode (*destroy)(Mat))
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  /* MatSetType() */
  if (spmv && ((PetscObject)A)->refct > 0 && ((PetscObject)A)->type_name && A->assembled && !spmv->device) {
    PetscCall(MatSpMVUnhook(A));
    destroy = A->ops->destroy;
    PetscCall(SpMVFormerSet(A));
  } else if (spmv) {
    destroy                       = spmv->parent.destroy;
    A->ops->productsetfromoptions = spmv->parent.productsetfromoptions;
    PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
    PetscCall(MatSpMVSet(A, NULL));
  }
  PetscCall((*destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SpMVDestroy(device, mpi)                                 \
  static PetscErrorCode MatDestroy_SpMV_##device##mpi(Mat A)     \
  {                                                              \
    return MatDestroy_SpMV(A, SpMVParents[device][mpi].destroy); \
  }
SpMVDestroy(0, 0) SpMVDestroy(0, 1) SpMVDestroy(1, 0) SpMVDestroy(1, 1)

    static PetscErrorCode (*const SpMVDestroys[2][2])(Mat) = {{MatDestroy_SpMV_00, MatDestroy_SpMV_01},
                                                              {MatDestroy_SpMV_10, MatDestroy_SpMV_11}};

/* The parent reads its own options first; ours have their own heading */
static PetscErrorCode MatSetFromOptions_SpMV(Mat A, SpMVOptionItems PetscOptionsObject)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv->parent.setfromoptions) PetscCall((*spmv->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(SpMVReadOptions(A, spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates a copy of A with the parent type */
static PetscErrorCode SpMVCreateParent(Mat A, Mat *B)
{
  Mat_SpMV      *spmv;
  char          *name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  SpMVHiddenDepth++;
  name                        = ((PetscObject)A)->type_name;
  ((PetscObject)A)->type_name = (char *)spmv->parenttype;
  ierr                        = SpMVDuplicateAsParent(A, spmv, MAT_COPY_VALUES, B);
  ((PetscObject)A)->type_name = name; /* even after an error */
  SpMVHiddenDepth--;
  PetscCall(ierr);
  PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* PETSc has copied the functions composed with A */
  if (SpMVIsMPI(*B)) PetscCall(MatSpMVUnhookBlocks_MPI(*B));
  PetscCall(MatPropagateSymmetryOptions(A, *B)); /* only a matrix known to be symmetric converts to SBAIJ */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether two matrices derived from AIJ have the same pattern, on all ranks; false for other types */
static PetscErrorCode SpMVSamePattern(Mat A, Mat B, PetscBool *same)
{
  Mat             block[2][2]; /* diagonal and off-diagonal of A, B */
  const Mat       mat[2] = {A, B};
  const PetscInt *columns[2];
  PetscBool       aij[2];
  const PetscBool mpi = SpMVIsMPI(A);
  PetscMPIInt     all;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++)
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)mat[k], &aij[k], MATSEQAIJ, MATMPIAIJ, ""));
  *same = (PetscBool)(aij[0] && aij[1] && mpi == SpMVIsMPI(B) && A->assembled && B->assembled);
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    block[0][k] = mat[k];
    if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(mat[k], &block[0][k], &block[1][k], &columns[k]));
  }
  for (int k = 0; k < (mpi ? 2 : 1) && *same; k++) {
    SpMVCSR a, b;

    PetscCall(MatSpMVGetPattern_Seq(block[k][0], &a));
    PetscCall(MatSpMVGetPattern_Seq(block[k][1], &b));
    *same = (PetscBool)(a.m == b.m && a.n == b.n);
    if (*same && a.i != b.i) PetscCall(PetscArraycmp(a.i, b.i, a.m + 1, same));
    if (*same && a.j != b.j) PetscCall(PetscArraycmp(a.j, b.j, a.i[a.m], same));
    if (*same && k) PetscCall(PetscArraycmp(columns[0], columns[1], a.n, same));
    PetscCall(MatSpMVRestorePattern_Seq(block[k][0], &a));
    PetscCall(MatSpMVRestorePattern_Seq(block[k][1], &b));
  }
  all = *same;
  if (mpi) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, PetscObjectComm((PetscObject)A)));
  *same = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCopy() inserts row by row unless the patterns are known to be the same, and trusts its caller in this */
static PetscErrorCode SpMVCopy(Mat A, Mat B)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(SpMVSamePattern(A, B, &same));
  PetscCall(MatCopy(A, B, same ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts a matrix of one of our types to any other type, through the parent type, whose converters PETSc finds by
   name */
static PetscErrorCode MatConvert_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat               B;
  Mat_SpMV         *spmv;
  SpMVName          name = {NULL, NULL};
  PetscBool         hypre, is_aij = PETSC_FALSE;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(SpMVReplaceFormatGet(newtype, &format));
  if (format) { /* A keeps its own */
    PetscCall(MatSpMVGet(A, &spmv));
    newtype = spmv->format->name;
  } else
    PetscCall(SpMVFormatFind(newtype, &format));
  PetscCall(PetscStrcmp(newtype, MATHYPRE, &hypre));
  if (hypre && reuse != MAT_INPLACE_MATRIX) PetscCall(SpMVNameReplace(A, NULL, &name));
  if (name.mat) { /* A is not copied first, because PCHYPRE converts the operator whenever it has changed */
    ierr = MatConvert(A, newtype, reuse, newmat);
    PetscCall(SpMVNameRestore(&name)); /* even after an error */
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_REUSE_MATRIX)
    PetscCall(PetscObjectTypeCompareAny((PetscObject)*newmat, &is_aij, MATSEQAIJ, MATMPIAIJ, ""));
  if (format)
    PetscCall(MatConvertFrom_SpMV(A, newtype, reuse, newmat));
  else if (is_aij)
    PetscCall(SpMVCopy(A, *newmat));
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
      PetscCall(MatBatchKeep(A, B)); /* PETSc's conversion of an AIJCUSPARSE matrix drops the sizes of blocks */
      *newmat = B;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts a matrix of any type to AIJ, or to AIJCUSPARSE if there is a device */
static PetscErrorCode SpMVConvertToParent(Mat *A)
{
  PetscBool      device, is_parent;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)*A), &device));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &is_parent, MATSEQAIJ, MATMPIAIJ, MATSEQAIJCUSPARSE,
                                      MATMPIAIJCUSPARSE, ""));
  SpMVHiddenDepth++;
  if (!is_parent) ierr = MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A);
  if (!ierr && device) ierr = MatConvert(*A, MATAIJCUSPARSE, MAT_INPLACE_MATRIX, A);
  SpMVHiddenDepth--; /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts a matrix of any type that can be converted to AIJ to one of our types */
PetscErrorCode MatConvertFrom_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat_SpMV         *spmv;
  Mat               B;
  PetscBool         cusparse, aij;

  PetscFunctionBegin;
  PetscCall(SpMVFormatFind(newtype, &format));
  PetscCheck(format, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_UNKNOWN_TYPE, "Type %s is not a type of PetscSpMV",
             newtype);
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &aij, MATSEQAIJ, MATMPIAIJ, ""));
  if (reuse == MAT_INPLACE_MATRIX) {
    if (!spmv) PetscCall(SpMVConvertToParent(&A));
    PetscCall(MatSpMVHook(A, format, NULL));
  } else if (reuse == MAT_REUSE_MATRIX && aij)
    PetscCall(SpMVCopy(A, *newmat));
  else {
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &cusparse, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
    if (spmv)
      PetscCall(SpMVCreateParent(A, &B));
    else if (cusparse)
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    else
      PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
    if (reuse == MAT_REUSE_MATRIX) {
      PetscCall(SpMVCopy(B, *newmat));
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
  For in-place factorization. LU merges the matrix with its factors, which are AIJ, and PETSc requires both to have the
  same type. ILU leaves an AIJCUSPARSE matrix that cannot be destroyed (PETSc 3.26). So the matrix is converted to AIJ
  first.
*/
static PetscErrorCode SpMVConvertToAIJ(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVUnhook(A));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactor_SpMV(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(SpMVConvertToAIJ(A));
  PetscCall((*A->ops->lufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactor_SpMV(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(SpMVConvertToAIJ(A));
  PetscCall((*A->ops->ilufactor)(A, row, col, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatSpMVHook - turns an AIJ or AIJCUSPARSE matrix into one of ours, in place; gives one of ours the format and the
  parameters, if they are not NULL

  The matrix may be unassembled. It must have AIJ's regular operations, not the operations for inserting entries into a
  hash table.
*/
PetscErrorCode MatSpMVHook(Mat A, const SpMVFormat *format, const void *params)
{
  const PetscBool mpi  = SpMVIsMPI(A);
  Mat_SpMV       *spmv = NULL;
  PetscBool       is_aij, device, changed;
  char            name[64];
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && spmv->format == format) {
    if (params) PetscCall(MatSpMVSetParams(A, spmv, params));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (spmv) PetscCall(MatSpMVUnhook(A));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is_aij, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCheck(is_aij || device, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "Cannot convert a matrix of type %s in place to type %s. Convert it to %s first",
             ((PetscObject)A)->type_name, format->name, MATAIJ);
  PetscCall(SpMVParentsSetUp(device, mpi));
  PetscCall(SpMVParentsSetUp(PETSC_FALSE, PETSC_FALSE)); /* AIJ's products on the host, also of AIJCUSPARSE matrices */
  PetscCheck(format->paramssize <= sizeof(spmv->params), PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "Parameters of %s are too large", format->name);
  PetscCall(MatSpMVNew(A, device, &spmv));
  spmv->format     = format;
  spmv->parenttype = SpMVParentTypes[device][mpi];
  if (params)
    PetscCall(PetscMemcpy(spmv->params, params, format->paramssize));
  else
    (*format->defaults)(spmv->params);
  if (!params) {
    ierr = (*format->options)(A, spmv->params); /* a wrong option must leave the matrix unchanged */
    if (ierr) PetscCall(PetscFree(spmv));
    PetscCall(ierr);
  }
  PetscCall(MatSpMVSet(A, spmv));

#define SpMVKeep(op) spmv->parent.op = A->ops->op
  SpMVHooks(SpMVKeep);
#undef SpMVKeep
  spmv->view = A->ops->view;
  for (int k = 0; SpMVSetOps[k]; k++) (*SpMVSetOps[k])(A);
  for (int k = 0; spmv->backend && spmv->backend->setops[mpi][k]; k++) (*spmv->backend->setops[mpi][k])(A);
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
  if (!device) { /* AIJCUSPARSE compares whole type names, so its matrices keep AIJCUSPARSE's name */
    PetscCall(PetscSNPrintf(name, sizeof(name), "%saij%s", mpi ? "mpi" : "seq", format->name));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, name));
  }
  if (mpi && A->assembled) PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  if (!mpi && A->assembled) PetscCall(MatSpMVHashPattern_Seq(A, spmv, &changed));
  if (spmv->backend && !mpi && A->assembled) PetscCall((*spmv->backend->assembled)(A, mpi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSpMVUnhook - turns one of our matrices back into its parent type, in place */
static PetscErrorCode MatSpMVUnhook(Mat A)
{
  Mat_SpMV *spmv;
  PetscErrorCode (*view)(Mat, PetscViewer);

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVIsMPI(A) && A->preallocated) PetscCall(MatSpMVUnhookBlocks_MPI(A));
  view = A->ops->view == spmv->ours.view ? spmv->view : A->ops->view;
/* PETSc may have replaced one of our operations since then, for example `destroy` of submatrices; keep PETSc's
   operation */
#define SpMVGiveBack(op) \
  if (A->ops->op == spmv->ours.op) A->ops->op = spmv->parent.op
  SpMVHooks(SpMVGiveBack);
#undef SpMVGiveBack
  A->ops->view = view;
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, spmv->parenttype));
  PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
  PetscCall(MatSpMVSet(A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the type of a new matrix to the parent type, then hooks it */
PetscErrorCode MatCreate_SpMV(Mat A, const SpMVFormat *format, int mpi)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt    size;
  PetscBool      device;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(SpMVUseDevice(comm, &device));
  PetscCall(SpMVSetParentType(A, SpMVParentTypes[device][mpi == PETSC_DECIDE ? size > 1 : mpi]));
  PetscCall(MatSpMVHook(A, format, NULL));
  /*
    MatConvert() creates a matrix of the new type and calls its convertfrom. Only matrices created here have our
    convertfrom; matrices that are of our type because of -mat_seqaij_type do not.
  */
  A->ops->convertfrom = MatConvertFrom_SpMV;
  PetscFunctionReturn(PETSC_SUCCESS);
}
