/*
  Functions of PETSc that compare the whole name of a matrix's type with AIJ's, although they can work with any type
  derived from AIJ. On the host they would refuse our matrices or, worse, treat them as matrices of another kind: PCILU
  replaces the shift NONZERO by INBLOCKS, and MatGetOrdering() of PETSc 3.18 takes a parallel matrix for a sequential
  one. The functions belong to types that PETSc finds in its lists: preconditioners, colorings, coarsenings, orderings.
  Each type is replaced by one whose constructor calls PETSc's and then replaces the operation that receives the matrix.
  The operation calls PETSc's while the matrix has AIJ's name. docs/types.md lists all such functions, with those that
  remain.

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

/* The functions of PETSc's lists that are replaced, as they were registered */
static PetscFunctionList SpMVOrderings = NULL, SpMVSeqAIJTypes = NULL;

/* Replaces all functions of a list by f, and keeps them in *own */
static PetscErrorCode SpMVReplaceList(PetscFunctionList *list, PetscFunctionList *own, void (*f)(void))
{
  const char **names;
  int          n;

  PetscFunctionBegin;
  PetscCall(PetscFunctionListDestroy(own));
  PetscCall(PetscFunctionListDuplicate(*list, own));
  PetscCall(PetscFunctionListGet(*own, &names, &n));
  for (int k = 0; k < n; k++) PetscCall(PetscFunctionListAdd(list, names[k], f));
  PetscCall(PetscFree(names));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives a new matrix the type of -mat_seqaij_type, but not while the parent creates matrices */
static PetscErrorCode MatConvert_SeqAIJ_SpMV(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscErrorCode (*f)(Mat, MatType, MatReuse, Mat *);

  PetscFunctionBegin;
  if (SpMVHiddenDepth) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFunctionListFind(SpMVSeqAIJTypes, type, &f));
  PetscCall((*f)(A, type, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces the function of a type of the list: MatSeqAIJRegister() would replace the one above */
PetscErrorCode SpMVSeqAIJReplace(MatType type, PetscErrorCode (*f)(Mat, MatType, MatReuse, Mat *))
{
  PetscFunctionBegin;
  PetscCall(PetscFunctionListAdd(&SpMVSeqAIJTypes, type, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  char           type[128];
  PetscBool      set = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, SpMVFormer, (PetscObject *)&B));
  if (B) SpMVHiddenDepth++;
  ierr = (*MatCreate_AIJ_PETSc[mpi])(A);
  if (B) SpMVHiddenDepth--; /* even after an error */
  PetscCall(ierr);
  if (B) {
    const PetscObject a = (PetscObject)A;

    SpMVFormerSwap(A, B);
    *A->ops          = *B->ops;
    A->was_assembled = B->was_assembled;
    A->preallocated = A->assembled = PETSC_TRUE;
    B->preallocated = B->assembled = PETSC_FALSE;
    PetscCall(PetscObjectCompose(a, SpMVFormer, NULL));
    if (!mpi) PetscCall(PetscOptionsGetString(a->options, a->prefix, "-mat_seqaij_type", type, sizeof(type), &set));
    if (set) PetscCall(MatSeqAIJSetType(A, type));
  }
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
  PetscCall(SpMVReplaceList(&MatOrderingList, &SpMVOrderings, (void (*)(void))MatGetOrdering_SpMV));
  PetscCall(SpMVReplaceList(&MatSeqAIJList, &SpMVSeqAIJTypes, (void (*)(void))MatConvert_SeqAIJ_SpMV));
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
  PetscCall(PetscFunctionListDestroy(&SpMVSeqAIJTypes));
  PetscFunctionReturn(PETSC_SUCCESS);
}
