/*
   MatLoadMatrixMarket() - fills a matrix from a Matrix Market file (math.nist.gov/MatrixMarket/formats.html)

   Collective

   Input Parameters:
+  comm - the communicator of A
.  file - the file's name; every rank opens it and reads its share of the lines
-  A    - the matrix. Its type and its sizes are kept if they are already set; the type may be any that supports MatSetValues()

   Notes:
   Reads coordinate files with real, integer, complex or pattern values, stored as general, symmetric, skew-symmetric or hermitian. Pattern
   entries become 1, repeated entries are added, and an explicit zero is an entry.

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

static inline PetscErrorCode MMReadHeader_Private(FILE *fp, const char *file, MMHeader_Private *h)
{
  char      line[1024], object[64], format[64], field[64], symmetry[64], *c;
  long long M, N, entries;
  PetscBool ok;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(h, sizeof(*h)));
  PetscCheck(fgets(line, sizeof(line), fp), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s is empty", file);
  for (c = line; *c; c++) *c = (char)tolower((unsigned char)*c);
  PetscCheck(sscanf(line, "%%%%matrixmarket %63s %63s %63s %63s", object, format, field, symmetry) == 4, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
             "%s does not begin as a Matrix Market file does", file);
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
  PetscCheck(PetscDefined(USE_COMPLEX) || !h->cmplx, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s is complex, this PETSc is real", file);
  PetscCall(PetscStrcmp(symmetry, "symmetric", &h->symmetric));
  PetscCall(PetscStrcmp(symmetry, "skew-symmetric", &h->skew));
  PetscCall(PetscStrcmp(symmetry, "hermitian", &h->hermitian));
  if (!h->symmetric && !h->skew && !h->hermitian) {
    PetscCall(PetscStrcmp(symmetry, "general", &ok));
    PetscCheck(ok, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s has %s symmetry", file, symmetry);
  }
  do { /* comments, blank lines */
    PetscCheck(fgets(line, sizeof(line), fp), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s ends before its sizes", file);
    for (c = line; isspace((unsigned char)*c); c++) {
    }
  } while (*c == '%' || !*c);
  PetscCheck(sscanf(line, "%lld %lld %lld", &M, &N, &entries) == 3 && M >= 0 && N >= 0 && entries >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
             "%s: bad sizes: %s", file, line);
  PetscCheck(M <= PETSC_MAX_INT && N <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s is too large for this PETSc's 32 bit indices", file);
  PetscCheck(M == N || !(h->symmetric || h->skew || h->hermitian), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s is %s but not square", file, symmetry);
  h->M       = (PetscInt)M;
  h->N       = (PetscInt)N;
  h->entries = (PetscCount)entries;
  h->start   = ftello(fp);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads this rank's lines, which are those whose first byte is in its share of the file; the other half of a symmetric matrix is added */
static inline PetscErrorCode MMReadEntries_Private(MPI_Comm comm, FILE *fp, const char *file, const MMHeader_Private *h, PetscCount *n_, PetscInt **i_,
                                                   PetscInt **j_, PetscScalar **v_)
{
  PetscMPIInt  rank, size;
  off_t        end, from, to, pos;
  PetscCount   n = 0, max = 1024, lines = 0;
  PetscInt    *i, *j;
  PetscScalar *v;
  PetscBool    mirrored = (PetscBool)(h->symmetric || h->skew || h->hermitian);
  char         line[1024];
  double       mine, all;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCheck(!fseeko(fp, 0, SEEK_END), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "Cannot seek in %s", file);
  end  = ftello(fp);
  from = h->start + (end - h->start) / size * rank;
  to   = rank == size - 1 ? end : h->start + (end - h->start) / size * (rank + 1);
  pos  = from;
  PetscCheck(!fseeko(fp, rank ? from - 1 : from, SEEK_SET), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "Cannot seek in %s", file);
  if (rank) { /* a line that begins in the previous share is read by the previous rank */
    if (fgets(line, sizeof(line), fp))
      pos = ftello(fp);
    else
      pos = to;
  }
  PetscCall(PetscMalloc1(max, &i));
  PetscCall(PetscMalloc1(max, &j));
  PetscCall(PetscMalloc1(max, &v));
  while (pos < to && fgets(line, sizeof(line), fp)) {
    char       *c = line, *e;
    size_t      len;
    long long   row, col;
    PetscScalar val = 1.0;

    PetscCall(PetscStrlen(line, &len));
    pos += (off_t)len;
    while (isspace((unsigned char)*c)) c++;
    if (!*c || *c == '%') continue;
    row = strtoll(c, &e, 10);
    col = strtoll(e, &c, 10);
    if (!h->pattern && c != e) {
      e   = c;
      val = (PetscReal)strtod(e, &c);
#if defined(PETSC_USE_COMPLEX)
      if (h->cmplx && c != e) {
        e = c;
        val += PETSC_i * (PetscReal)strtod(e, &c);
      }
#endif
    }
    PetscCheck(c != e, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: bad entry: %s", file, line);
    PetscCheck(row >= 1 && row <= h->M && col >= 1 && col <= h->N, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: entry outside the matrix: %s", file, line);
    if (n + 2 > max) {
      max *= 2;
      PetscCall(PetscRealloc(max * sizeof(*i), &i));
      PetscCall(PetscRealloc(max * sizeof(*j), &j));
      PetscCall(PetscRealloc(max * sizeof(*v), &v));
    }
    i[n]   = (PetscInt)(row - 1);
    j[n]   = (PetscInt)(col - 1);
    v[n++] = val;
    if (mirrored && row != col) {
      i[n]   = (PetscInt)(col - 1);
      j[n]   = (PetscInt)(row - 1);
      v[n++] = h->hermitian ? PetscConj(val) : (h->skew ? -val : val);
    }
    lines++;
  }
  mine = (double)lines;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm));
  PetscCheck(all == (double)h->entries, comm, PETSC_ERR_FILE_UNEXPECTED, "%s has %.0f entries, its header says %.0f", file, all, (double)h->entries);
  *n_ = n;
  *i_ = i;
  *j_ = j;
  *v_ = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row lengths of the diagonal and off-diagonal blocks: counted on the ranks that read the entries, added on the ranks that own the rows */
static inline PetscErrorCode MMPreallocate_Private(MPI_Comm comm, Mat A, PetscCount n, const PetscInt i[], const PetscInt j[])
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

static inline PetscErrorCode MatLoadMatrixMarket(MPI_Comm comm, const char file[], Mat A)
{
  MMHeader_Private h;
  FILE            *fp;
  MatType          type;
  PetscInt        *i = NULL, *j = NULL, M, N;
  PetscScalar     *v = NULL;
  PetscCount       n = 0, k;

  PetscFunctionBegin;
  fp = fopen(file, "r");
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", file);
  PetscCall(MMReadHeader_Private(fp, file, &h));
  PetscCall(MMReadEntries_Private(comm, fp, file, &h, &n, &i, &j, &v));
  fclose(fp);

  PetscCall(MatGetSize(A, &M, &N));
  if (M < 0 || N < 0)
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, h.M, h.N));
  else
    PetscCheck(M == h.M && N == h.N, comm, PETSC_ERR_ARG_SIZ, "%s is %" PetscInt_FMT " x %" PetscInt_FMT ", the matrix %" PetscInt_FMT " x %" PetscInt_FMT,
               file, h.M, h.N, M, N);
  PetscCall(MatGetType(A, &type));
  if (!type) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(MMPreallocate_Private(comm, A, n, i, j));
  for (k = 0; k < n; k++) PetscCall(MatSetValues(A, 1, &i[k], 1, &j[k], &v[k], ADD_VALUES));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(v));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (h.symmetric) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  if (h.hermitian) PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   MatLoadFile() - fills a matrix from a Matrix Market file, recognized by its first bytes, or otherwise from PETSc's binary format

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
