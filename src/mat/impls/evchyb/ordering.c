/*
  The order of EVC-HYB's rows as a PETSc ordering. A system permuted with it once needs no reordering of y after each product any more:
  the order in which the format stores the rows is then the natural order.
*/
#include "../spmv/matspmv.h"

typedef struct {
  PetscInt length, column, row;
} SpMVRow;

static int SpMVRowCompare(const void *a, const void *b)
{
  const SpMVRow *r = (const SpMVRow *)a, *s = (const SpMVRow *)b;

  if (r->length != s->length) return r->length < s->length ? -1 : 1;
  if (r->column != s->column) return r->column < s->column ? -1 : 1;
  return r->row < s->row ? -1 : 1;
}

/*MC
   MATORDERINGEVCHYB - "evchyb" - Orders the rows by length, then by first column, and the columns alike

   Level: intermediate

   Notes:
   For `MatGetOrdering()` and `MatPermute()`, and the options that take a `MatOrderingType`. `MATEVCHYB` sorts its rows in this order. Its own products undo
   that; those of the paper's kernel (`-mat_evchyb_kernel paper`) do so by a pass over y, which a matrix whose rows ascend by length spares.

   For `MATAIJ` and all types derived from it. Of a parallel matrix, PETSc orders the diagonal block of each process.

   References:
.  * - D. Guo, W. Gropp and L. Olson, A Hybrid Format for Better Performance of Sparse Matrix-Vector Multiplication on a GPU, 2015

.seealso: `MATEVCHYB`, `MatGetOrdering()`, `MatPermute()`, `MATORDERINGROWLENGTH`
M*/
PetscErrorCode MatGetOrdering_EVCHYB(Mat A, MatOrderingType type, IS *irow, IS *icol)
{
  SpMVRow       *rows = NULL;
  PetscInt       start, end, *index = NULL;
  Mat            D = A;
  PetscBool      mpi;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  (void)type;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  /* MatGetOrdering() itself asks for the diagonal block, but not of all types and releases */
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &D, NULL, NULL));
  ierr = PetscMalloc1(end - start, &rows);
  if (!ierr) ierr = PetscMalloc1(end - start, &index);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) {
    PetscCall(PetscFree(rows));
    PetscCall(PetscFree(index));
  }
  PetscCall(ierr);
  for (PetscInt r = start; r < end; r++) {
    PetscInt        n;
    const PetscInt *columns;

    PetscCall(MatGetRow(D, mpi ? r - start : r, &n, &columns, NULL));
    rows[r - start].length = n;
    rows[r - start].column = n ? columns[0] : 0;
    rows[r - start].row    = r;
    PetscCall(MatRestoreRow(D, mpi ? r - start : r, &n, &columns, NULL));
  }
  qsort(rows, (size_t)(end - start), sizeof(*rows), SpMVRowCompare);
  for (PetscInt r = start; r < end; r++) index[r - start] = rows[r - start].row;
  PetscCall(PetscFree(rows));
  PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)A), end - start, index, PETSC_OWN_POINTER, irow));
  PetscCall(ISDuplicate(*irow, icol));
  PetscFunctionReturn(PETSC_SUCCESS);
}
