/*
   MatLoadMatrixMarket() - fills a matrix from a Matrix Market file (math.nist.gov/MatrixMarket/formats.html)

   Collective

   Input Parameters:
+  comm - the communicator of A
.  file - the file's name; every rank opens it and reads its share of the lines
-  A    - the matrix. Its type and its sizes are kept if they are already set; the type may be any that supports MatSetValues()

   Notes:
   Reads coordinate files with real, integer, complex or pattern values, stored as general, symmetric, skew-symmetric or
   hermitian. Pattern entries become 1, repeated entries are added, and an explicit zero is an entry. Exponents may be
   Fortran's, as in 1.0D-01. Anything else that is not a number, and more numbers in a line than its entry has, are
   errors.

   A complex file needs a PETSc with complex numbers.
*/
#pragma once

#include <petscmat.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

typedef struct {
  PetscBool  cmplx, pattern, symmetric, skew, hermitian;
  PetscInt   M, N;
  PetscCount entries; /* number of lines that follow */
  off_t      start;   /* offset at which they begin */
} MMHeader_Private;

/* An open file and its latest line, of any length */
typedef struct {
  const char *name;
  FILE       *fp;
  char       *line;
  size_t      allocated;
} MMFile_Private;

/* The entries that a rank has read */
typedef struct {
  PetscCount   n, max, lines;
  PetscInt    *i, *j;
  PetscScalar *v;
} MMEntries_Private;

/* Whether a number, from *c on, ends at e; then *c becomes e */
static inline PetscBool MMNumberEnds_Private(char **c, char *e)
{
  const PetscBool ends = (PetscBool)(e != *c && (!*e || isspace((unsigned char)*e)));

  if (ends) *c = e;
  return ends;
}

static inline PetscBool MMGetInteger_Private(char **c, long long *value)
{
  char *e;

  *value = strtoll(*c, &e, 10);
  return MMNumberEnds_Private(c, e);
}

static inline PetscBool MMGetReal_Private(char **c, PetscReal *value)
{
  char *e;

  *value = (PetscReal)strtod(*c, &e);
  if (e != *c && (*e == 'D' || *e == 'd')) { /* Fortran's exponent of a number in double precision */
    *e     = 'e';
    *value = (PetscReal)strtod(*c, &e);
  }
  return MMNumberEnds_Private(c, e);
}

static inline PetscBool MMIsBlank_Private(const char *c)
{
  while (isspace((unsigned char)*c)) c++;
  return (PetscBool) !*c;
}

static inline PetscErrorCode MMReadHeader_Private(MMFile_Private *f, MMHeader_Private *h)
{
  const char *file = f->name;
  char        object[64], format[64], field[64], symmetry[64], *c;
  long long   M, N, entries;
  PetscBool   ok;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(h, sizeof(*h)));
  PetscCheck(getline(&f->line, &f->allocated, f->fp) > 0, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s is empty", file);
  for (c = f->line; *c; c++) *c = (char)tolower((unsigned char)*c);
  PetscCheck(sscanf(f->line, "%%%%matrixmarket %63s %63s %63s %63s", object, format, field, symmetry) == 4,
             PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s does not begin as a Matrix Market file does", file);
  PetscCall(PetscStrcmp(object, "matrix", &ok));
  PetscCheck(ok, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s holds a %s, not a matrix", file, object);
  PetscCall(PetscStrcmp(format, "coordinate", &ok));
  PetscCheck(ok, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s is in %s format, only coordinate is supported", file, format);
  PetscCall(PetscStrcmp(field, "complex", &h->cmplx));
  PetscCall(PetscStrcmp(field, "pattern", &h->pattern));
  if (!h->cmplx && !h->pattern) {
    PetscBool real, integer;

    PetscCall(PetscStrcmp(field, "real", &real));
    PetscCall(PetscStrcmp(field, "integer", &integer));
    PetscCheck(real || integer, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s has %s values", file, field);
  }
  PetscCheck(PetscDefined(USE_COMPLEX) || !h->cmplx, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "%s is complex, this PETSc is real", file);
  PetscCall(PetscStrcmp(symmetry, "symmetric", &h->symmetric));
  PetscCall(PetscStrcmp(symmetry, "skew-symmetric", &h->skew));
  PetscCall(PetscStrcmp(symmetry, "hermitian", &h->hermitian));
  if (!h->symmetric && !h->skew && !h->hermitian) {
    PetscCall(PetscStrcmp(symmetry, "general", &ok));
    PetscCheck(ok, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s has %s symmetry", file, symmetry);
  }
  do { /* comments, blank lines */
    PetscCheck(getline(&f->line, &f->allocated, f->fp) > 0, PETSC_COMM_SELF, PETSC_ERR_FILE_READ,
               "%s ends before its sizes", file);
    for (c = f->line; isspace((unsigned char)*c); c++) {
    }
  } while (*c == '%' || !*c);
  ok = (PetscBool)(MMGetInteger_Private(&c, &M) && MMGetInteger_Private(&c, &N) && MMGetInteger_Private(&c, &entries) &&
                   MMIsBlank_Private(c));
  PetscCheck(ok && M >= 0 && N >= 0 && entries >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
             "%s: bad sizes: %.200s", file, f->line);
  PetscCheck(M <= PETSC_MAX_INT && N <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%s is too large for this PETSc's 32 bit indices", file);
  PetscCheck(M == N || !(h->symmetric || h->skew || h->hermitian), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
             "%s is %s but not square", file, symmetry);
  h->M       = (PetscInt)M;
  h->N       = (PetscInt)N;
  h->entries = (PetscCount)entries;
  h->start   = ftello(f->fp);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the entry of a line, and, if the file has one half of the matrix, that of the other half */
static inline PetscErrorCode MMAddEntry_Private(const char *file, char *line, const MMHeader_Private *h,
                                                MMEntries_Private *E)
{
  char       *c = line;
  long long   row, col;
  PetscReal   re = 1.0, im = 0.0;
  PetscBool   ok;
  PetscScalar val;

  PetscFunctionBegin;
  ok = (PetscBool)(MMGetInteger_Private(&c, &row) && MMGetInteger_Private(&c, &col));
  if (ok && !h->pattern) ok = MMGetReal_Private(&c, &re);
  if (ok && h->cmplx) ok = MMGetReal_Private(&c, &im);
  PetscCheck(ok && MMIsBlank_Private(c), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: bad entry: %.200s", file,
             line);
  PetscCheck(row >= 1 && row <= h->M && col >= 1 && col <= h->N, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
             "%s: entry outside the matrix: %.200s", file, line);
  if (E->n + 2 > E->max) {
    E->max = 2 * E->max + 1024;
    PetscCall(PetscRealloc(E->max * sizeof(*E->i), &E->i));
    PetscCall(PetscRealloc(E->max * sizeof(*E->j), &E->j));
    PetscCall(PetscRealloc(E->max * sizeof(*E->v), &E->v));
  }
#if defined(PETSC_USE_COMPLEX)
  val = PetscCMPLX(re, im);
#else
  val = re;
  (void)im;
#endif
  E->i[E->n]   = (PetscInt)(row - 1);
  E->j[E->n]   = (PetscInt)(col - 1);
  E->v[E->n++] = val;
  if ((h->symmetric || h->skew || h->hermitian) && row != col) {
    E->i[E->n]   = (PetscInt)(col - 1);
    E->j[E->n]   = (PetscInt)(row - 1);
    E->v[E->n++] = h->hermitian ? PetscConj(val) : (h->skew ? -val : val);
  }
  E->lines++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads this rank's lines, which are those whose first byte is in its share of the file */
static inline PetscErrorCode MMReadEntries_Private(MPI_Comm comm, MMFile_Private *f, const MMHeader_Private *h,
                                                   MMEntries_Private *E)
{
  PetscMPIInt rank, size;
  off_t       end, from, to, pos;
  ssize_t     len;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCheck(!fseeko(f->fp, 0, SEEK_END), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "Cannot seek in %s", f->name);
  end  = ftello(f->fp);
  from = h->start + (end - h->start) / size * rank;
  to   = rank == size - 1 ? end : h->start + (end - h->start) / size * (rank + 1);
  pos  = from;
  PetscCheck(!fseeko(f->fp, rank ? from - 1 : from, SEEK_SET), PETSC_COMM_SELF, PETSC_ERR_FILE_READ,
             "Cannot seek in %s", f->name);
  if (rank) { /* a line that begins in the previous share is read by the previous rank */
    len = getline(&f->line, &f->allocated, f->fp);
    pos = len > 0 ? from - 1 + len : to;
  }
  while (pos < to && (len = getline(&f->line, &f->allocated, f->fp)) > 0) {
    char *c = f->line;

    pos += len;
    while (isspace((unsigned char)*c)) c++;
    if (*c && *c != '%') PetscCall(MMAddEntry_Private(f->name, c, h, E));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row lengths of the diagonal and off-diagonal blocks: counted on the ranks that read the entries, added on the ranks
   that own the rows */
static inline PetscErrorCode MMPreallocate_Private(MPI_Comm comm, Mat A, PetscCount n, const PetscInt i[],
                                                   const PetscInt j[])
{
  PetscLayout        rmap, cmap;
  const PetscScalar *a[2];
  Vec                count[2];
  PetscInt          *nnz[2], *all, m, M, N, ncol, r;
  PetscCount         k;
  int                b;

  PetscFunctionBegin;
  PetscCall(MatGetLayouts(A, &rmap, &cmap));
  PetscCall(PetscLayoutSetUp(rmap));
  PetscCall(PetscLayoutSetUp(cmap));
  PetscCall(PetscLayoutGetLocalSize(rmap, &m));
  PetscCall(PetscLayoutGetLocalSize(cmap, &ncol));
  PetscCall(MatGetSize(A, &M, &N));
  for (b = 0; b < 2; b++) PetscCall(VecCreateMPI(comm, m, M, &count[b]));
  for (k = 0; k < n; k++) {
    PetscMPIInt rowner, cowner;

    PetscCall(PetscLayoutFindOwner(rmap, i[k], &rowner));
    PetscCall(PetscLayoutFindOwner(cmap, j[k], &cowner));
    PetscCall(VecSetValue(count[rowner != cowner], i[k], 1.0, ADD_VALUES));
  }
  for (b = 0; b < 2; b++) {
    PetscCall(VecAssemblyBegin(count[b]));
    PetscCall(VecAssemblyEnd(count[b]));
    PetscCall(PetscMalloc1(m, &nnz[b]));
    PetscCall(VecGetArrayRead(count[b], &a[b]));
    /* entries that occur twice are counted twice */
    for (r = 0; r < m; r++) nnz[b][r] = (PetscInt)PetscMin(PetscRealPart(a[b][r]), (PetscReal)(b ? N - ncol : ncol));
    PetscCall(VecRestoreArrayRead(count[b], &a[b]));
    PetscCall(VecDestroy(&count[b]));
  }
  PetscCall(MatXAIJSetPreallocation(A, 1, nnz[0], nnz[1], nnz[0], nnz[1]));
  /* MATSELL is not one of those types; this call has no effect on any other type */
  PetscCall(MatMPISELLSetPreallocation(A, 0, nnz[0], 0, nnz[1]));
  PetscCall(PetscMalloc1(m, &all));
  for (r = 0; r < m; r++) all[r] = nnz[0][r] + nnz[1][r];
  PetscCall(MatSeqSELLSetPreallocation(A, 0, all));
  PetscCall(PetscFree(all));
  for (b = 0; b < 2; b++) PetscCall(PetscFree(nnz[b]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MMReadLocal_Private(MPI_Comm comm, const char file[], MMHeader_Private *h,
                                                 MMEntries_Private *E)
{
  MMFile_Private f = {.name = file, .fp = fopen(file, "r")};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(f.fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", file);
  ierr = MMReadHeader_Private(&f, h);
  if (!ierr) ierr = MMReadEntries_Private(comm, &f, h, E);
  fclose(f.fp);
  free(f.line);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the file, on all ranks or on none */
static inline PetscErrorCode MMRead_Private(MPI_Comm comm, const char file[], MMHeader_Private *h, MMEntries_Private *E)
{
  const PetscErrorCode ierr = MMReadLocal_Private(comm, file, h, E);
  double               mine[2], all[2]; /* lines, errors */

  PetscFunctionBegin;
  mine[0] = (double)E->lines;
  mine[1] = ierr ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, comm));
  PetscCall(ierr);
  PetscCheck(all[1] == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s cannot be read on another rank", file);
  PetscCheck(all[0] == (double)h->entries, comm, PETSC_ERR_FILE_UNEXPECTED, "%s has %.0f entries, its header says %.0f",
             file, all[0], (double)h->entries);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MMEntriesDestroy_Private(MMEntries_Private *E)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(E->i));
  PetscCall(PetscFree(E->j));
  PetscCall(PetscFree(E->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatLoadMatrixMarket(MPI_Comm comm, const char file[], Mat A)
{
  MMHeader_Private  h;
  MMEntries_Private E = {0};
  MatType           type;
  PetscInt          M, N;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  ierr = MMRead_Private(comm, file, &h, &E);
  if (ierr) PetscCall(MMEntriesDestroy_Private(&E));
  PetscCall(ierr);

  PetscCall(MatGetSize(A, &M, &N));
  if (M < 0 || N < 0)
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, h.M, h.N));
  else
    PetscCheck(M == h.M && N == h.N, comm, PETSC_ERR_ARG_SIZ,
               "%s is %" PetscInt_FMT " x %" PetscInt_FMT ", the matrix %" PetscInt_FMT " x %" PetscInt_FMT, file, h.M,
               h.N, M, N);
  PetscCall(MatGetType(A, &type));
  if (!type) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MMPreallocate_Private(comm, A, E.n, E.i, E.j));
  for (PetscCount k = 0; k < E.n; k++) PetscCall(MatSetValues(A, 1, &E.i[k], 1, &E.j[k], &E.v[k], ADD_VALUES));
  PetscCall(MMEntriesDestroy_Private(&E));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (h.symmetric) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  if (h.hermitian) PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   MatLoadFile() - fills a matrix from a Matrix Market file, recognized by its first bytes, or otherwise from PETSc's
   binary format

   Collective
*/
static inline PetscErrorCode MatLoadFile(MPI_Comm comm, const char file[], Mat A)
{
  char        first[15] = "";
  FILE       *fp;
  PetscViewer viewer;
  PetscBool   mm;

  PetscFunctionBegin;
  fp = fopen(file, "r");
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", file);
  if (fread(first, 1, sizeof(first) - 1, fp) < sizeof(first) - 1) first[0] = 0;
  fclose(fp);
  PetscCall(PetscStrcasecmp(first, "%%MatrixMarket", &mm));
  if (mm)
    PetscCall(MatLoadMatrixMarket(comm, file, A));
  else {
    PetscCall(PetscViewerBinaryOpen(comm, file, FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
