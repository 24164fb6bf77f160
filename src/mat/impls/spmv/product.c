/*
  The products of matrices: which of PETSc's functions computes one with a factor of ours, and the format of the result.
*/
#include "matspmv.h"

#define SpMVProductAnyType "MatProductSetFromOptions_anytype_C"

/* While PETSc computes a product of three in two steps, the third factor is still there and does not count */
static Mat SpMVProductFactor(Mat C, int k)
{
  const Mat_Product *product = C->product;

  return k == 0 ? product->A : k == 1 ? product->B : product->type == MATPRODUCT_ABC ? product->C : NULL;
}

/* A product has the format and the parameters of the first of its factors that is ours */
static PetscErrorCode SpMVProductGet(Mat C, Mat_SpMV **spmv)
{
  PetscFunctionBegin;
  *spmv = NULL;
  for (int k = 0; k < 3 && !*spmv; k++) {
    const Mat factor = SpMVProductFactor(C, k);

    if (factor) PetscCall(MatSpMVGet(factor, spmv));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls f for the product C while those of its factors that are ours go by AIJ's name; without f, asks PETSc once more what computes C */
static PetscErrorCode SpMVProductAsAIJ(Mat C, PetscErrorCode (*f)(Mat))
{
  Mat            factor[3] = {SpMVProductFactor(C, 0), SpMVProductFactor(C, 1), SpMVProductFactor(C, 2)};
  char          *name[3]   = {NULL, NULL, NULL};
  Mat_SpMV      *spmv;
  PetscBool      mpi, is;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], MATTRANSPOSEVIRTUAL, &is));
    if (is) PetscCall(MatTransposeGetMat(factor[k], &factor[k]));
    for (int l = 0; l < k; l++) { /* a factor given twice is renamed once */
      if (factor[l] == factor[k]) factor[k] = NULL;
    }
    if (!factor[k]) continue;
    PetscCall(MatSpMVGet(factor[k], &spmv));
    if (!spmv) continue;
    PetscCall(SpMVIsMPI(factor[k], &mpi));
    name[k]                             = ((PetscObject)factor[k])->type_name;
    ((PetscObject)factor[k])->type_name = (char *)(mpi ? MATMPIAIJ : MATSEQAIJ);
  }
  ierr = f ? (*f)(C) : MatProductSetFromOptions(C);
  for (int k = 0; k < 3; k++) { /* after an error, too */
    if (name[k]) ((PetscObject)factor[k])->type_name = name[k];
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What we add to a function of a product. PETSc moves these functions from matrix to matrix (MatProductSymbolic_ABC_Basic()), so what lies
  behind ours cannot be kept with the matrix: there is one function of ours for each of PETSc's.
*/
typedef enum {
  SPMV_SYMBOLIC,      /* the result gets the format and the parameters */
  SPMV_SYMBOLIC_HOST, /* on the device: and the numeric phase is the host's, see next */
  SPMV_NUMERIC_HOST,  /* the factors' values must be on the host: AIJ's own functions do not always look */
  SPMV_SYMBOLIC_ABT,  /* of A B^T, types of which differ: B goes by the name of A's type */
  SPMV_SYMBOLIC_AIJ,  /* the factors go by AIJ's name: a MATSHELL looks for its function by the name of the other factor, others compare it */
  SPMV_KINDS
} SpMVProductKind;

/* All of PETSc 3.26 sets 63 symbolic and 56 numeric functions, most of them for types that no factor of ours is multiplied with */
#define SPMV_FUNCTIONS 64
static PetscErrorCode (*SpMVProductBehind[SPMV_KINDS][SPMV_FUNCTIONS])(Mat);
static PetscErrorCode SpMVProductWrap(SpMVProductKind, PetscErrorCode (**)(Mat));
static PetscErrorCode MatProductSetFromOptions_SpMV(Mat);

#if defined(PETSCSPMV_HAVE_CUDA)
/* The numeric phase of a product that AIJ computes on the host, of factors on the device */
static PetscErrorCode SpMVProductNumericHost(Mat C, PetscErrorCode (*f)(Mat))
{
  Mat       factor[3] = {SpMVProductFactor(C, 0), SpMVProductFactor(C, 1), SpMVProductFactor(C, 2)};
  Mat_SpMV *spmv;
  PetscBool plain, maij;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  for (int k = 0; k < 3; k++) {
    Mat       block[2] = {factor[k], NULL};
    PetscBool seq, mpi;

    if (!factor[k]) continue;
    PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], MATSEQAIJCUSPARSE, &seq)); /* ours or not */
    PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], MATMPIAIJCUSPARSE, &mpi));
    if (!seq && !mpi) continue;
    if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(factor[k], &block[0], &block[1], NULL));
    for (int l = 0; l < 2 && block[l]; l++) {
      const PetscScalar *a;

      PetscCall(MatSeqAIJGetArrayRead(block[l], &a));
      PetscCall(MatSeqAIJRestoreArrayRead(block[l], &a));
    }
  }
  PetscCall((*f)(C));
  PetscCall(PetscObjectTypeCompare((PetscObject)C->product->B, MATSEQMAIJ, &maij));
  if (maij && spmv && C->product->type == MATPRODUCT_PtAP) { /* makes plain AIJ, whatever A is, and later writes to its arrays */
    PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQAIJ, &plain));
    if (plain) {
      PetscCall(MatConvert(C, MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &C));
      PetscCall(MatSpMVHook(C, spmv->format, spmv->params));
    } else
      PetscCall(SpMVHostIsNewer(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

/*
  A symbolic phase; the result gets the format and the parameters.

  In that of A B^T AIJ gives a transpose of B the type of A by MatSetType(), which empties it unless A's type is derived from B's: in plain PETSc, A B^T of aij and
  aijperm crashes (3.18 to 3.26). B goes by the name of A's type meanwhile.
*/
static PetscErrorCode SpMVProductSymbolic(Mat C, PetscBool abt, PetscErrorCode (*f)(Mat))
{
  PetscObject    A = (PetscObject)C->product->A, B = (PetscObject)C->product->B;
  char          *name = B->type_name;
  Mat_SpMV      *spmv;
  SpMVKeep       keep;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  if (spmv) PetscCall(SpMVKeepBegin(spmv, &keep));
  if (abt) B->type_name = A->type_name;
  ierr         = (*f)(C);
  B->type_name = name;
  if (spmv && !ierr) ierr = SpMVKeepSet(&keep, C);
  if (spmv) PetscCall(SpMVKeepEnd(&keep)); /* after an error, too */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVProductRun(Mat C, SpMVProductKind kind, PetscErrorCode (*f)(Mat))
{
  PetscFunctionBegin;
  if (kind == SPMV_SYMBOLIC_AIJ) PetscCall(SpMVProductAsAIJ(C, f));
#if defined(PETSCSPMV_HAVE_CUDA)
  else if (kind == SPMV_NUMERIC_HOST)
    PetscCall(SpMVProductNumericHost(C, f));
#endif
  else
    PetscCall(SpMVProductSymbolic(C, (PetscBool)(kind == SPMV_SYMBOLIC_ABT), f));
  if (kind == SPMV_SYMBOLIC_HOST) PetscCall(SpMVProductWrap(SPMV_NUMERIC_HOST, &C->ops->productnumeric));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* clang-format off */
#define SpMVEach8(X, kind, k) X(kind, k##0) X(kind, k##1) X(kind, k##2) X(kind, k##3) X(kind, k##4) X(kind, k##5) X(kind, k##6) X(kind, k##7)
#define SpMVEach(X, kind) \
  SpMVEach8(X, kind, 00) SpMVEach8(X, kind, 01) SpMVEach8(X, kind, 02) SpMVEach8(X, kind, 03) \
  SpMVEach8(X, kind, 04) SpMVEach8(X, kind, 05) SpMVEach8(X, kind, 06) SpMVEach8(X, kind, 07)
#define SpMVDefine(kind, k) /* k is octal */                                     \
  static PetscErrorCode SpMVProduct_##kind##_##k(Mat C)                          \
  {                                                                              \
    return SpMVProductRun(C, (SpMVProductKind)kind, SpMVProductBehind[kind][k]); \
  }
#define SpMVName(kind, k) SpMVProduct_##kind##_##k,
SpMVEach(SpMVDefine, 0) SpMVEach(SpMVDefine, 1) SpMVEach(SpMVDefine, 2) SpMVEach(SpMVDefine, 3) SpMVEach(SpMVDefine, 4)
static PetscErrorCode (*const SpMVProductOurs[SPMV_KINDS][SPMV_FUNCTIONS])(Mat) = {
  {SpMVEach(SpMVName, 0)}, {SpMVEach(SpMVName, 1)}, {SpMVEach(SpMVName, 2)}, {SpMVEach(SpMVName, 3)}, {SpMVEach(SpMVName, 4)}};
/* clang-format on */

static PetscErrorCode SpMVProductWrap(SpMVProductKind kind, PetscErrorCode (**f)(Mat))
{
  PetscFunctionBegin;
  if (!*f) PetscFunctionReturn(PETSC_SUCCESS);
  for (int l = 0; l < SPMV_KINDS; l++) {
    for (int k = 0; k < SPMV_FUNCTIONS; k++) {
      if (*f == SpMVProductOurs[l][k]) PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  for (int k = 0; k < SPMV_FUNCTIONS; k++) {
    if (!SpMVProductBehind[kind][k]) SpMVProductBehind[kind][k] = *f;
    if (SpMVProductBehind[kind][k] != *f) continue;
    *f = SpMVProductOurs[kind][k];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has more than %d functions for products of matrices: raise SPMV_FUNCTIONS in product.c", SPMV_FUNCTIONS);
}

/* The operation that matrices of ours have on the host: the factors' operation as AIJ matrices, where all have the same */
static PetscErrorCode MatProductSetFromOptions_SpMVHost(Mat C)
{
  PetscErrorCode (*f)(Mat) = NULL;
  Mat_SpMV *spmv;
  PetscBool same;

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
  PetscCall(PetscObjectObjectTypeCompare((PetscObject)C->product->A, (PetscObject)C->product->B, &same));
  PetscCall(SpMVProductWrap(C->product->type == MATPRODUCT_ABt && !same ? SPMV_SYMBOLIC_ABT : SPMV_SYMBOLIC, &C->ops->productsymbolic));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
/* The operation that matrices of ours have on the device */
static PetscErrorCode MatProductSetFromOptions_SpMVCUDA(Mat C)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  PetscCheck(spmv, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "A product without a factor of our types");
  PetscCall((*spmv->parent.productsetfromoptions)(C));
  PetscCall(SpMVProductWrap(SPMV_SYMBOLIC, &C->ops->productsymbolic));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  Where no name leads to a function, PETSc asks the first factor that can answer for factors of any type. That is ours, so we ask the others in its place:
  virtual transposes, diagonal matrices, MATPYTHON. They may put other factors in place of their own (a virtual transpose, the matrix in it).
*/
static PetscErrorCode SpMVProductAskOthers(Mat C)
{
  PetscErrorCode (*f)(Mat);

  PetscFunctionBegin;
  for (int k = 0; k < 3 && !C->ops->productsymbolic; k++) {
    const Mat factor = SpMVProductFactor(C, k);

    if (!factor) continue;
    PetscCall(PetscObjectQueryFunction((PetscObject)factor, SpMVProductAnyType, &f));
    if (f && f != MatProductSetFromOptions_SpMV) PetscCall((*f)(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc finds by the name of a product of three, a virtual transpose and two matrices of ours, which AIJ can compute */
static PetscErrorCode MatProductSetFromOptions_TransposeSpMV(Mat C)
{
  PetscFunctionBegin;
  PetscCall(SpMVProductAsAIJ(C, NULL));
  PetscCall(SpMVProductWrap(SPMV_SYMBOLIC_AIJ, &C->ops->productsymbolic));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc composes the name of a product's function from the names of its factors' types, so that, say, mpiaij times mpimaij is known and
  mpiaijsellp times mpimaij is not. PETSc asks here when nothing else was found: ask once more under the name of AIJ.

  On the device, first: one of our matrices and one of plain AIJCUSPARSE do not count as equal, but AIJCUSPARSE's product takes them. One
  of ours and one of plain AIJ (DMDA makes such interpolations) is known to neither; AIJ's product on the host takes both.
*/
static PetscErrorCode MatProductSetFromOptions_SpMV(Mat C)
{
  const Mat factor[3] = {SpMVProductFactor(C, 0), SpMVProductFactor(C, 1), SpMVProductFactor(C, 2)};
  PetscBool cusparse  = PETSC_TRUE, is;
  Mat_SpMV *spmv, *ours = NULL;
  PetscErrorCode (*host)(Mat) = NULL;
  PetscBool onhost            = PETSC_FALSE;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    if (!factor[k]) continue;
    PetscCall(MatSpMVGet(factor[k], &spmv));
    if (spmv && !ours) ours = spmv;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)factor[k], &is, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
    if (!is) cusparse = PETSC_FALSE;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)factor[k], &is, MATSEQAIJ, MATMPIAIJ, ""));
    if (is) host = factor[k]->ops->productsetfromoptions;
    /* while a factor goes by AIJ's name, PETSc comes by here again */
    if (spmv && is) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatProductSetFromOptions_SpMVHost(C));
  if (ours->device && cusparse && ours->parent.productsetfromoptions) PetscCall((*ours->parent.productsetfromoptions)(C));
  if (!C->ops->productsymbolic) {
    PetscCall(SpMVProductAskOthers(C));
    if (C->ops->productsymbolic) PetscFunctionReturn(PETSC_SUCCESS);
    onhost = PETSC_TRUE;
    PetscCall(SpMVProductAsAIJ(C, ours->device ? host : NULL));
  }
  if (!C->ops->productsymbolic && ours->device && host) PetscCall(SpMVProductAsAIJ(C, NULL));
  PetscCall(PetscObjectTypeCompare((PetscObject)factor[0], MATSHELL, &is));
  if (is) PetscCall(SpMVProductWrap(SPMV_SYMBOLIC_AIJ, &C->ops->productsymbolic));
  PetscCall(SpMVProductWrap(ours->device && onhost ? SPMV_SYMBOLIC_HOST : SPMV_SYMBOLIC, &C->ops->productsymbolic));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_Product(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, SpMVProductAnyType, ours ? MatProductSetFromOptions_SpMV : NULL));
  for (int k = 0; SpMVFormats[k]; k++) {
    char name[128];

    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_transpose_%saij%s_%saij%s_C", mpi ? "mpi" : "seq", SpMVFormats[k]->name,
                            mpi ? "mpi" : "seq", SpMVFormats[k]->name));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, ours ? MatProductSetFromOptions_TransposeSpMV : NULL));
  }
  if (device && !mpi) {
    PetscCall(SpMVComposeBefore(A, "MatProductSetFromOptions_seqaijcusparse_seqaijcusparse_C", A->ops->productsetfromoptions));
    PetscCall(SpMVComposeBefore(A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C",
                                ours ? MatProductSetFromOptions_SpMV : SpMVParents[device][mpi].productsetfromoptions));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_Product(Mat A)
{
  if (A->ops->productsetfromoptions) A->ops->productsetfromoptions = MatProductSetFromOptions_SpMVHost;
}

#if defined(PETSCSPMV_HAVE_CUDA)
void MatSpMVSetOps_ProductCUDA(Mat A)
{
  if (A->ops->productsetfromoptions) A->ops->productsetfromoptions = MatProductSetFromOptions_SpMVCUDA;
}
#endif
