/*
  Functions of PETSc that compare the whole name of a matrix's type with AIJ's, although they can work with any type
  derived from AIJ. On the host they would refuse our matrices or, worse, treat them as matrices of another kind: PCILU
  replaces the shift NONZERO by INBLOCKS, and MatGetOrdering() of PETSc 3.18 takes a parallel matrix for a sequential
  one. The functions belong to types that PETSc finds in its lists: preconditioners, colorings, coarsenings, orderings,
  MATNEST. Each type is replaced by one whose constructor calls PETSc's and then replaces the operation that receives
  the matrix. The operation calls PETSc's while the matrix has AIJ's name. docs/types.md lists all such functions, with
  those that remain.

  On the device our matrices have AIJCUSPARSE's name, so they are treated as AIJCUSPARSE matrices are.
*/
#include "matspmv.h"
#include <petsc/private/pcimpl.h>

/* A has the name of its parent type, or `type`, until SpMVNameRestore(), if it is one of ours. It may be NULL */
PetscErrorCode SpMVNameReplace(Mat A, MatType type, SpMVName *name)
{
  Mat_SpMV *spmv = NULL;
  PetscBool same;

  PetscFunctionBegin;
  name->mat = NULL;
  if (A) PetscCall(MatSpMVGet(A, &spmv));
  if (!spmv) PetscFunctionReturn(PETSC_SUCCESS);
  if (!type) type = spmv->parenttype;
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, type, &same));
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  name->own = ((PetscObject)A)->type_name;
  PetscCall(PetscStrallocpy(type, &((PetscObject)A)->type_name));
  name->mat = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Call it even after an error. A matrix that has become one of the parent type meanwhile keeps that name */
PetscErrorCode SpMVNameRestore(SpMVName *name)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  if (!name->mat) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGet(name->mat, &spmv));
  if (spmv) {
    PetscCall(PetscFree(((PetscObject)name->mat)->type_name));
    ((PetscObject)name->mat)->type_name = name->own;
  } else
    PetscCall(PetscFree(name->own));
  name->mat = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  SpMVNameType - defines SpMVRegister_<type>(), which replaces a type of a class that finds its types in <class>List. op
  is the operation, args and the last arguments are its arguments and parameters, and matrix is where the object has the
  matrix
*/
#define SpMVNameType(class, type, typename, op, matrix, args, ...)                                \
  static PetscErrorCode (*class##Create_##type##_PETSc)(class);                                   \
  static PetscErrorCode (*class##Op_##type##_PETSc)(__VA_ARGS__);                                 \
  static PetscErrorCode class##Op_##type(__VA_ARGS__)                                             \
  {                                                                                               \
    SpMVName       name;                                                                          \
    PetscErrorCode ierr;                                                                          \
                                                                                                  \
    PetscFunctionBegin;                                                                           \
    PetscCall(SpMVNameReplace(object->matrix, NULL, &name));                                      \
    ierr = (*class##Op_##type##_PETSc)args;                                                       \
    PetscCall(SpMVNameRestore(&name));                                                            \
    PetscCall(ierr);                                                                              \
    PetscFunctionReturn(PETSC_SUCCESS);                                                           \
  }                                                                                               \
  static PetscErrorCode class##Create_##type(class object)                                        \
  {                                                                                               \
    PetscFunctionBegin;                                                                           \
    PetscCall((*class##Create_##type##_PETSc)(object));                                           \
    class##Op_##type##_PETSc = object->ops->op;                                                   \
    object->ops->op          = class##Op_##type;                                                  \
    PetscFunctionReturn(PETSC_SUCCESS);                                                           \
  }                                                                                               \
  static PetscErrorCode SpMVRegister_##type(void)                                                 \
  {                                                                                               \
    PetscFunctionBegin;                                                                           \
    PetscCall(PetscFunctionListFind(class##List, typename, &class##Create_##type##_PETSc));       \
    if (class##Create_##type##_PETSc) PetscCall(class##Register(typename, class##Create_##type)); \
    PetscFunctionReturn(PETSC_SUCCESS);                                                           \
  }                                                                                               \
  static PetscErrorCode SpMVRegister_##type(void)

SpMVNameType(PC, ILU, PCILU, setup, pmat, (object), PC object);
SpMVNameType(PC, TFS, PCTFS, setup, pmat, (object), PC object);
SpMVNameType(PC, CP, PCCP, setup, pmat, (object), PC object);
SpMVNameType(MatColoring, JP, MATCOLORINGJP, apply, mat, (object, coloring), MatColoring object, ISColoring *coloring);
SpMVNameType(MatColoring, GREEDY, MATCOLORINGGREEDY, apply, mat, (object, coloring), MatColoring object,
             ISColoring *coloring);
SpMVNameType(MatCoarsen, HEM, MATCOARSENHEM, apply, graph, (object), MatCoarsen object);

/* The orderings, as they were registered */
static PetscFunctionList SpMVOrderings = NULL;

/* PETSc 3.18 orders a parallel matrix by its diagonal block only if the matrix is of type mpiaij */
static PetscErrorCode MatGetOrdering_SpMV(Mat A, MatOrderingType type, IS *row, IS *col)
{
  PetscErrorCode (*f)(Mat, MatOrderingType, IS *, IS *);
  PetscErrorCode ierr;
  SpMVName       name;

  PetscFunctionBegin;
  PetscCall(SpMVNameReplace(SpMVIsMPI(A) ? A : NULL, NULL, &name));
  if (name.mat) {
    ierr = MatGetOrdering(A, type, row, col);
    PetscCall(SpMVNameRestore(&name));
    PetscCall(ierr);
  } else {
    PetscCall(PetscFunctionListFind(SpMVOrderings, type, &f));
    PetscCall((*f)(A, type, row, col));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVRegisterOrderings(void)
{
  const char **types;
  int          n;

  PetscFunctionBegin;
  PetscCall(PetscFunctionListDestroy(&SpMVOrderings));
  PetscCall(PetscFunctionListDuplicate(MatOrderingList, &SpMVOrderings));
  PetscCall(PetscFunctionListGet(SpMVOrderings, &types, &n));
  for (int k = 0; k < n; k++) PetscCall(MatOrderingRegister(types[k], MatGetOrdering_SpMV));
  PetscCall(PetscFree(types));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MATNEST converts sequential blocks of type seqaij to one AIJ matrix array by array, and other blocks row by row, which
  takes tens of times as long
*/
static PetscErrorCode (*MatCreate_NEST_PETSc)(Mat);
static PetscErrorCode (*MatConvert_NEST_AIJ_PETSc)(Mat, MatType, MatReuse, Mat *);

static PetscErrorCode MatConvert_NEST_AIJ(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  Mat          **blocks, block;
  SpMVName      *names;
  PetscInt       m, n;
  PetscBool      is;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatNestGetSubMats(A, &m, &n, &blocks));
  PetscCall(PetscMalloc1(m * n, &names));
  for (PetscInt k = 0; k < m * n; k++) {
    block = blocks[k / n][k % n];
    if (block) PetscCall(PetscObjectTypeCompare((PetscObject)block, MATTRANSPOSEVIRTUAL, &is));
    if (block && is) PetscCall(MatTransposeGetMat(block, &block));
    PetscCall(SpMVNameReplace(block, NULL, &names[k])); /* a matrix that is two of the blocks is renamed once */
  }
  ierr = (*MatConvert_NEST_AIJ_PETSc)(A, type, reuse, B);
  for (PetscInt k = 0; k < m * n; k++) PetscCall(SpMVNameRestore(&names[k]));
  PetscCall(PetscFree(names));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_NEST(Mat A)
{
  static const char *const names[] = {"MatConvert_nest_aij_C", "MatConvert_nest_seqaij_C"};

  PetscFunctionBegin;
  PetscCall((*MatCreate_NEST_PETSc)(A));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscObjectQueryFunction((PetscObject)A, names[k], &MatConvert_NEST_AIJ_PETSc)); /* the same function */
    PetscCall(PetscObjectComposeFunction((PetscObject)A, names[k], MatConvert_NEST_AIJ));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJKron_SpMV(Mat A, Mat B, MatReuse reuse, Mat *C)
{
  SpMVName       name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVNameReplace(B, NULL, &name));
  ierr = (*SpMVParents[0][0].kron)(A, B, reuse, C);
  PetscCall(SpMVNameRestore(&name));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_Names(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  if (!device && !mpi)
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSeqAIJKron_C",
                                         ours ? MatSeqAIJKron_SpMV : SpMVParents[0][0].kron));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatSetType() of an assembled matrix leaves it as it is, or converts it, if the new type is its own or is derived from
  it. Otherwise it destroys the entries. An AIJ matrix whose type is set to aij keeps its entries, so ours must, too: a
  program that sets the type aij in each step may get our matrices by -mat_seqaij_type. When MatSetType() destroys a
  matrix of ours, its data move to another matrix, which is composed with it. When the matrix becomes AIJ, it gets them
  back. If it becomes anything else, they stay there until it is destroyed.
*/
static const char SpMVFormer[] = "PetscSpMVFormer";
static PetscErrorCode (*MatCreate_AIJ_PETSc[2])(Mat); /* [MPI] */

static void SpMVFormerSwap(Mat A, Mat B)
{
  void *const        data = A->data;
  const MatNullSpace null = A->nullsp, near = A->nearnullsp;

  A->data       = B->data;
  B->data       = data;
  A->nullsp     = B->nullsp;
  B->nullsp     = null;
  A->nearnullsp = B->nearnullsp;
  B->nearnullsp = near;
}

/* Moves the data of A, an AIJ matrix that MatSetType() destroys */
PetscErrorCode SpMVFormerSet(Mat A)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &B));
  PetscCall(MatSetLayouts(B, A->rmap, A->cmap));
  PetscCall(SpMVSetParentType(B, ((PetscObject)A)->type_name));
  SpMVFormerSwap(A, B);
  *B->ops          = *A->ops;
  B->nonzerostate  = A->nonzerostate;
  B->was_assembled = A->was_assembled;
  B->preallocated = B->assembled = PETSC_TRUE;
  PetscCall(PetscObjectCompose((PetscObject)A, SpMVFormer, (PetscObject)B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_AIJ(Mat A, PetscBool mpi)
{
  Mat            B;
  SpMVHidden     hidden;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, SpMVFormer, (PetscObject *)&B));
  if (!B) {
    PetscCall((*MatCreate_AIJ_PETSc[mpi])(A));
    PetscCall(MatSpMVReplace_AIJ(A, mpi));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVHideSeqAIJType(A, &hidden));
  ierr = (*MatCreate_AIJ_PETSc[mpi])(A);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* even after an error */
  PetscCall(ierr);
  SpMVFormerSwap(A, B);
  *A->ops          = *B->ops;
  A->was_assembled = B->was_assembled;
  A->preallocated = A->assembled = PETSC_TRUE;
  B->preallocated = B->assembled = PETSC_FALSE;
  PetscCall(PetscObjectCompose((PetscObject)A, SpMVFormer, NULL));
  /* with the prefix, if both are set */
  if (!mpi && hidden.set[hidden.set[1]]) PetscCall(MatSeqAIJSetType(A, hidden.type[hidden.set[1]]));
  PetscCall(MatSpMVReplace_AIJ(A, mpi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_SeqAIJ_SpMV(Mat A)
{
  return MatCreate_AIJ(A, PETSC_FALSE);
}

static PetscErrorCode MatCreate_MPIAIJ_SpMV(Mat A)
{
  return MatCreate_AIJ(A, PETSC_TRUE);
}

/* Replaces PETSc's types; after all orderings have been registered */
PetscErrorCode SpMVRegisterNames(void)
{
  PetscFunctionBegin;
  PetscCall(PCInitializePackage());
  PetscCall(SpMVRegister_ILU());
  PetscCall(SpMVRegister_TFS());
  PetscCall(SpMVRegister_CP());
  PetscCall(SpMVRegister_JP());
  PetscCall(SpMVRegister_GREEDY());
  PetscCall(SpMVRegister_HEM());
  PetscCall(SpMVRegisterOrderings());
  PetscCall(PetscFunctionListFind(MatList, MATNEST, &MatCreate_NEST_PETSc));
  PetscCall(MatRegister(MATNEST, MatCreate_NEST));
  PetscCall(PetscFunctionListFind(MatList, MATSEQAIJ, &MatCreate_AIJ_PETSc[0]));
  PetscCall(MatRegister(MATSEQAIJ, MatCreate_SeqAIJ_SpMV));
  PetscCall(PetscFunctionListFind(MatList, MATMPIAIJ, &MatCreate_AIJ_PETSc[1]));
  PetscCall(MatRegister(MATMPIAIJ, MatCreate_MPIAIJ_SpMV));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVFinalizeNames(void)
{
  PetscFunctionBegin;
  PetscCall(PetscFunctionListDestroy(&SpMVOrderings));
  PetscFunctionReturn(PETSC_SUCCESS);
}
