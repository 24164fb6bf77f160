/*
  Products of matrices (MatProduct) with a factor of our types: finding the PETSc function that computes the product,
  and the format of the result.
*/
#include "mat/impls/spmv/matspmv.h"

#define SpMVProductAnyType "MatProductSetFromOptions_anytype_C"

/* The third factor is used only for ABC: while PETSc computes ABC in two steps, the third factor remains set in both
   steps */
Mat SpMVProductFactor(Mat C, int k)
{
  const Mat_Product *product = C->product;

  return k == 0 ? product->A : k == 1 ? product->B : product->type == MATPRODUCT_ABC ? product->C : NULL;
}

/* The result gets the format and parameters of the first factor of our types */
PetscErrorCode SpMVProductGet(Mat C, Mat_SpMV **spmv)
{
  PetscFunctionBegin;
  *spmv = NULL;
  for (int k = 0; k < 3 && !*spmv; k++) {
    const Mat factor = SpMVProductFactor(C, k);

    if (factor) PetscCall(MatSpMVGet(factor, spmv));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls f, or MatProductSetFromOptions() if f is NULL, while the factors of our types have AIJ's type name */
static PetscErrorCode SpMVProductAsAIJ(Mat C, PetscErrorCode (*f)(Mat))
{
  SpMVName       name[3];
  PetscBool      is;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    Mat factor = SpMVProductFactor(C, k);

    PetscCall(PetscObjectTypeCompare((PetscObject)factor, MATTRANSPOSEVIRTUAL, &is));
    if (is) PetscCall(MatTransposeGetMat(factor, &factor));
    /* a matrix that is two of the factors is renamed once */
    PetscCall(SpMVNameReplace(factor, factor && SpMVIsMPI(factor) ? MATMPIAIJ : MATSEQAIJ, &name[k]));
  }
  ierr = f ? (*f)(C) : MatProductSetFromOptions(C);
  for (int k = 0; k < 3; k++) PetscCall(SpMVNameRestore(&name[k])); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  On the host, P^T A P and R A R^T are AIJ if A is of one of our types and the other factor is not. The result is an
  operator like A on a coarser grid, so it gets A's format. Not if hypre computes it, in an AIJ matrix that replaces C's
  data in the numeric phase.
*/
static PetscErrorCode SpMVProductGalerkin(Mat C)
{
  const MatProductType type = C->product->type;
  Mat_SpMV            *spmv;
  PetscBool            is;

  PetscFunctionBegin;
  if (type != MATPRODUCT_PtAP && type != MATPRODUCT_RARt) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGet(C->product->A, &spmv));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)C, &is, MATSEQAIJ, MATMPIAIJ, ""));
  if (spmv && is && C->preallocated && !spmv->device) PetscCall(MatSpMVHook(C, spmv->format, spmv->params));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  For A B^T, AIJ calls MatSetType() to give a transpose of B the type of A (PETSc 3.18 to 3.26), which needs a type name
  of A that begins with the name of B's type. `other` says that it does not.
*/
static PetscErrorCode SpMVProductABtNames(PetscObject A, PetscObject B, PetscBool *other)
{
  static const char *const names[] = {MATSEQAIJ, MATMPIAIJ};
  PetscBool                derived;

  PetscFunctionBegin;
  *other = PETSC_FALSE;
  for (int k = 0; k < 2; k++) {
    PetscBool a, b;

    PetscCall(PetscStrbeginswith(A->type_name, names[k], &a));
    PetscCall(PetscStrbeginswith(B->type_name, names[k], &b));
    if (a && b) *other = PETSC_TRUE;
  }
  PetscCall(PetscStrbeginswith(A->type_name, B->type_name, &derived));
  if (derived) *other = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Calls PETSc's symbolic phase and gives the result the format and the parameters. For A B^T of other types, B has the
  name of A's type during the call.
*/
static PetscErrorCode SpMVProductSymbolic(Mat C, PetscErrorCode (*f)(Mat))
{
  PetscObject    A = (PetscObject)C->product->A, B = (PetscObject)C->product->B;
  char          *name = B->type_name;
  PetscBool      abt  = PETSC_FALSE;
  Mat_SpMV      *spmv;
  SpMVKeep       keep;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  if (spmv) SpMVKeepBegin(spmv, &keep);
  if (C->product->type == MATPRODUCT_ABt) PetscCall(SpMVProductABtNames(A, B, &abt));
  if (abt) B->type_name = A->type_name;
  ierr         = spmv && spmv->backend ? (*spmv->backend->symbolic)(C, f) : (*f)(C);
  B->type_name = name;
  if (spmv && !ierr) ierr = SpMVKeepSet(&keep, C);
  if (!ierr) ierr = SpMVProductGalerkin(C);
  if (spmv) SpMVKeepEnd(); /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Our symbolic phase, which calls PETSc's. PETSc's function cannot be stored with C, because PETSc moves functions and
  products from matrix to matrix (MatProductSymbolic_ABC_Basic()). It cannot be stored with the product either, because
  the product's data must be empty before this phase. So it is stored with the factor that gives the result its format.
  This factor stores the function of its latest product only: if several of its products wait for their symbolic phases,
  the earlier ones are set up again here.
*/
static PetscErrorCode MatProductSymbolic_SpMV(Mat C)
{
  Mat_SpMV        *spmv;
  SpMVProductPhase phase = {NULL};

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  if (spmv) phase = spmv->phase; /* a copy: another product may be set up in this phase */
  if (!spmv || phase.product != C->product) {
    PetscCall(MatProductSetFromOptions(C));
    PetscCheck(C->ops->productsymbolic, PetscObjectComm((PetscObject)C), PETSC_ERR_SUP,
               "The product is no longer supported: a factor has been changed");
    PetscCall((*C->ops->productsymbolic)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (phase.kind == SPMV_SYMBOLIC_AIJ)
    PetscCall(SpMVProductAsAIJ(C, phase.symbolic));
  else
    PetscCall(SpMVProductSymbolic(C, phase.symbolic));
  PetscCall(SpMVDenseTakeNumeric(C));
  if (phase.kind == SPMV_SYMBOLIC_HOST && spmv->backend) PetscCall((*spmv->backend->takenumeric)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces the symbolic function, if one has been set, by ours, which calls it */
static PetscErrorCode SpMVProductTakeSymbolic(Mat C, SpMVProductKind kind)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  if (!C->ops->productsymbolic || C->ops->productsymbolic == MatProductSymbolic_SpMV)
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVProductGet(C, &spmv));
  PetscCheck(spmv, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "No factor of the product is of a PetscSpMV type");
  spmv->phase.product     = C->product;
  spmv->phase.kind        = kind;
  spmv->phase.symbolic    = C->ops->productsymbolic;
  C->ops->productsymbolic = MatProductSymbolic_SpMV;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatProductSetFromOptions() of our matrices on the host: calls the parent's function if all factors have the same
   function */
static PetscErrorCode MatProductSetFromOptions_SpMVHost(Mat C)
{
  PetscErrorCode (*f)(Mat) = NULL;
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    const Mat factor = SpMVProductFactor(C, k);
    PetscErrorCode (*own)(Mat);

    if (!factor) continue;
    PetscCall(MatSpMVGet(factor, &spmv));
    if (spmv && spmv->device) PetscFunctionReturn(PETSC_SUCCESS);
    own = spmv ? spmv->parent.productsetfromoptions : factor->ops->productsetfromoptions;
    if (!own || (k && own != f)) PetscFunctionReturn(PETSC_SUCCESS);
    f = own;
  }
  PetscCall((*f)(C));
  PetscCall(SpMVProductTakeSymbolic(C, SPMV_SYMBOLIC));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatProductSetFromOptions() of our matrices on the device: calls the parent's function */
static PetscErrorCode MatProductSetFromOptions_SpMVCUDA(Mat C)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  PetscCheck(spmv, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "No factor of the product is of a PetscSpMV type");
  PetscCall((*spmv->parent.productsetfromoptions)(C));
  PetscCall(SpMVProductTakeSymbolic(C, SPMV_SYMBOLIC));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc looks this up for a product of three factors, a virtual transpose and two matrices of our types. AIJ can
   compute this product */
static PetscErrorCode MatProductSetFromOptions_TransposeSpMV(Mat C)
{
  PetscFunctionBegin;
  PetscCall(SpMVProductAsAIJ(C, NULL));
  PetscCall(SpMVProductTakeSymbolic(C, SPMV_SYMBOLIC_AIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc looks a product's function up by the type names of the factors, so it finds mpiaij times mpimaij but not
  mpiaijsellp times mpimaij. It calls this function if it has found no other; this function searches again with AIJ's
  names.

  On the device, AIJCUSPARSE's function is tried first: PETSc considers one of our matrices and an AIJCUSPARSE matrix to
  be of different types, but AIJCUSPARSE's function can multiply them. For one of our matrices and an AIJ matrix (DMDA
  creates such interpolations) PETSc has no function on the device; AIJ's function on the host multiplies them.
*/
static PetscErrorCode MatProductSetFromOptions_SpMV(Mat C)
{
  const Mat factor[3] = {SpMVProductFactor(C, 0), SpMVProductFactor(C, 1), SpMVProductFactor(C, 2)};
  PetscBool cusparse  = PETSC_TRUE, is;
  Mat_SpMV *spmv, *ours = NULL;
  PetscErrorCode (*host)(Mat) = NULL;
  PetscBool on_host           = PETSC_FALSE;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    if (!factor[k]) continue;
    PetscCall(MatSpMVGet(factor[k], &spmv));
    if (spmv && !ours) ours = spmv;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)factor[k], &is, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
    if (!is) {
      cusparse = PETSC_FALSE;
      /* AIJPERM, too */
      PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)factor[k], &is, MATSEQAIJ, MATMPIAIJ, ""));
      if (is) host = factor[k]->ops->productsetfromoptions;
    }
    PetscCall(PetscObjectTypeCompareAny((PetscObject)factor[k], &is, MATSEQAIJ, MATMPIAIJ, ""));
    /* this is a recursive call, made while the factors have AIJ's type name */
    if (spmv && is) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatProductSetFromOptions_SpMVHost(C));
  if (ours->device && cusparse && ours->parent.productsetfromoptions)
    PetscCall((*ours->parent.productsetfromoptions)(C));
  if (!C->ops->productsymbolic) {
    PetscErrorCode (*f)(Mat);

    /* PETSc calls the anytype function of one factor only, which is ours. Those of the others (virtual transposes,
       diagonal matrices, MATPYTHON) may replace factors, for example a virtual transpose by the matrix in it */
    for (int k = 0; k < 3 && !C->ops->productsymbolic; k++) {
      if (!SpMVProductFactor(C, k)) continue;
      PetscCall(PetscObjectQueryFunction((PetscObject)SpMVProductFactor(C, k), SpMVProductAnyType, &f));
      if (f && f != MatProductSetFromOptions_SpMV) PetscCall((*f)(C));
    }
    if (C->ops->productsymbolic) PetscFunctionReturn(PETSC_SUCCESS);
    on_host = PETSC_TRUE;
    PetscCall(SpMVProductAsAIJ(C, ours->device ? host : NULL));
  }
  if (!C->ops->productsymbolic && ours->device && host) PetscCall(SpMVProductAsAIJ(C, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)factor[0], MATSHELL, &is));
  if (is) PetscCall(SpMVProductTakeSymbolic(C, SPMV_SYMBOLIC_AIJ));
  PetscCall(SpMVProductTakeSymbolic(C, ours->device && on_host ? SPMV_SYMBOLIC_HOST : SPMV_SYMBOLIC));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_Product(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  PetscCall(
      PetscObjectComposeFunction((PetscObject)A, SpMVProductAnyType, ours ? MatProductSetFromOptions_SpMV : NULL));
  for (int k = 0; SpMVFormats[k]; k++) {
    char name[128];

    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_transpose_%saij%s_%saij%s_C",
                            mpi ? "mpi" : "seq", SpMVFormats[k]->name, mpi ? "mpi" : "seq", SpMVFormats[k]->name));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, ours ? MatProductSetFromOptions_TransposeSpMV : NULL));
  }
  if (device && !mpi) {
    PetscCall(SpMVReplaceFunction(A, "MatProductSetFromOptions_seqaijcusparse_seqaijcusparse_C",
                                  A->ops->productsetfromoptions));
    PetscCall(
        SpMVReplaceFunction(A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C",
                            ours ? MatProductSetFromOptions_SpMV : SpMVParents[device][mpi].productsetfromoptions));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_Product(Mat A)
{
  SpMVReplaceOp(A, productsetfromoptions, MatProductSetFromOptions_SpMVHost);
}

void MatSpMVSetOps_ProductCUDA(Mat A)
{
  SpMVReplaceOp(A, productsetfromoptions, MatProductSetFromOptions_SpMVCUDA);
}
