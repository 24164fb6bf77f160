/*
  The host's layouts and products of a batch. Slices are in slices.c.
*/
#include "kernels.h"
#include "mat/impls/sellp/sellp.h"

PetscErrorCode BatchTranspose(const BatchPattern *B, PetscInt **it, PetscInt **jt, PetscInt **value_index)
{
  const PetscInt rows = BatchPatternRows(B), entries = BatchPatternEntries(B);
  PetscInt      *next = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *it = *jt = *value_index = NULL;
  SpMVCall(PetscCalloc1((size_t)rows + 1, it));
  SpMVCall(PetscMalloc1((size_t)entries, jt));
  SpMVCall(PetscMalloc1((size_t)entries, value_index));
  SpMVCall(PetscMalloc1((size_t)rows, &next));
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    const PetscInt first = B->first[p], n = B->first[p + 1] - first;

    for (PetscInt k = B->i[first]; k < B->i[first + n]; k++) (*it)[first + B->j[k] + 1]++;
  }
  for (PetscInt r = 0; r < rows; r++) {
    (*it)[r + 1] += (*it)[r];
    next[r] = (*it)[r];
  }
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    const PetscInt first = B->first[p], n = B->first[p + 1] - first;

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = B->i[first + r]; k < B->i[first + r + 1]; k++) {
        const PetscInt to = next[first + B->j[k]]++;

        (*jt)[to]          = r;
        (*value_index)[to] = k;
      }
    }
  }
done:
  PetscCall(PetscFree(next));
  if (ierr) {
    PetscCall(PetscFree(*it));
    PetscCall(PetscFree(*jt));
    PetscCall(PetscFree(*value_index));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define BATCH_PARTS 4 /* CSR-I: number of parts of a problem */

struct _n_BatchHost {
  BatchKernel  kernel; /* the one in use */
  const char  *name;
  SpMVStore    store; /* SELLP: the store of the whole batch, or of one problem if the values are shared */
  SpMVCSR      csr;   /* the store's pattern, without columns: a refresh does not need them */
  BatchSlices  slices;
  int         *row;   /* COO: row of each entry; CSR-I: first row of each part */
  int         *width; /* ELL: width of each problem */
  PetscInt64  *start; /* ELL: first entry of each problem */
  int         *col;   /* ELL: -1 for padding */
  PetscScalar *value;
  PetscInt64   stored, bytes;
};

static const char *const BatchHostNames[] = {"",           "slices",    "block-diagonal", "COO", "CSR-scalar",
                                             "CSR-vector", "CSR-smart", "CSR-I",          "ELL"};

/* Stores the batch as one CSR matrix. Its columns must be numbered from its first row; row offsets and values are used
   in place */
static PetscErrorCode SetUpStore(const BatchPattern *B, BatchHost h)
{
  const PetscInt rows = BatchPatternRows(B);
  PetscInt      *j    = NULL;
  SELLPParams    params;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscMalloc1((size_t)BatchPatternEntries(B), &j));
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    for (PetscInt k = B->i[B->first[p]]; k < B->i[B->first[p + 1]]; k++) j[k] = B->j[k] + B->first[p];
  }
  h->csr.m = h->csr.n = rows;
  h->csr.i            = B->i;
  h->csr.j            = j;
  SELLPParamsDefault(&params);
  SpMVCall(SELLPSetUp(&h->csr, &params, &h->store));
  if (SpMVStoreUsesParent(h->store)) {
    PetscCall(SpMVStoreDestroy(&h->store));
    h->kernel = BATCH_CSR_SMART;
  }
done:
  PetscCall(PetscFree(j));
  h->csr.j = NULL;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpSlices(const BatchPattern *B, BatchHost h)
{
  PetscBool fits;

  PetscFunctionBegin;
  PetscCall(BatchSlicesCreate(B, 0, &h->slices, &fits));
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_SUP, "Option -mat_batch_kernel slices: a row is too long, use auto");
  PetscCall(BatchSlicesSetIndices(B, &h->slices));
  h->stored = h->slices.steps * BATCH_WARP * (B->sharing == BATCH_SHARE_PATTERN ? h->slices.groups : 1);
  h->bytes  = BatchSlicesBytes(B, &h->slices);
  PetscCall(PetscMalloc1((size_t)h->stored, &h->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpCOO(const BatchPattern *B, BatchHost h)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)BatchPatternEntries(B), &h->row));
  for (PetscInt p = 0; p < BatchPatterns(B); p++) {
    for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) {
      for (PetscInt k = B->i[r]; k < B->i[r + 1]; k++) h->row[k] = (int)(r - B->first[p]);
    }
  }
  h->bytes += (PetscInt64)BatchPatternEntries(B) * (PetscInt64)sizeof(int);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpCSRI(const BatchPattern *B, BatchHost h)
{
  const PetscInt patterns = BatchPatterns(B);

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)patterns * BATCH_PARTS, &h->row));
  for (PetscInt p = 0; p < patterns; p++) {
    const PetscInt *i = B->i + B->first[p], n = B->first[p + 1] - B->first[p];
    PetscInt        r = 0;

    for (int part = 0; part < BATCH_PARTS; part++) {
      const PetscInt begin = i[0] + (PetscInt)((PetscInt64)(i[n] - i[0]) * part / BATCH_PARTS);

      while (r < n && i[r + 1] <= begin) r++;
      h->row[(size_t)p * BATCH_PARTS + part] = (int)r;
    }
  }
  h->bytes += (PetscInt64)patterns * BATCH_PARTS * (PetscInt64)sizeof(int);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpELL(const BatchPattern *B, BatchHost h)
{
  const PetscInt patterns = BatchPatterns(B);

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)patterns, &h->width, (size_t)patterns + 1, &h->start));
  h->start[0] = 0;
  for (PetscInt p = 0; p < patterns; p++) {
    h->width[p] = 0;
    for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++)
      h->width[p] = PetscMax(h->width[p], (int)(B->i[r + 1] - B->i[r]));
    h->start[p + 1] = h->start[p] + (PetscInt64)h->width[p] * (B->first[p + 1] - B->first[p]);
  }
  PetscCall(PetscMalloc1((size_t)h->start[patterns], &h->col));
  for (PetscInt p = 0; p < patterns; p++) {
    const PetscInt *i = B->i + B->first[p], n = B->first[p + 1] - B->first[p];

    for (int k = 0; k < h->width[p]; k++) {
      for (PetscInt r = 0; r < n; r++)
        h->col[h->start[p] + (PetscInt64)k * n + r] = i[r] + k < i[r + 1] ? (int)B->j[i[r] + k] : -1;
    }
  }
  h->stored = h->start[patterns] * (B->sharing == BATCH_SHARE_PATTERN ? B->problems : 1);
  h->bytes  = h->start[patterns] * (PetscInt64)sizeof(int) + h->stored * (PetscInt64)sizeof(PetscScalar) +
             patterns * (PetscInt64)(sizeof(int) + sizeof(*h->start));
  PetscCall(PetscMalloc1((size_t)h->stored, &h->value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpLayout(const BatchPattern *B, BatchKernel kernel, BatchHost h)
{
  PetscFunctionBegin;
  h->kernel = kernel == BATCH_COO_ATOMIC ? BATCH_COO : kernel;
  if (kernel == BATCH_AUTO || (kernel == BATCH_SELLP && B->sharing == BATCH_SHARE_PATTERN))
    h->kernel = B->sharing == BATCH_SHARE_PATTERN || !BatchPatternEntries(B) ? BATCH_CSR_SMART : BATCH_SELLP;
  h->stored = BatchValues(B);
  h->bytes  = ((PetscInt64)BatchPatternEntries(B) + BatchPatternRows(B) + 1) * (PetscInt64)sizeof(PetscInt) +
             h->stored * (PetscInt64)sizeof(PetscScalar);
  switch (h->kernel) {
  case BATCH_SELLP: PetscCall(SetUpStore(B, h)); break;
  case BATCH_SLICES: PetscCall(SetUpSlices(B, h)); break;
  case BATCH_COO: PetscCall(SetUpCOO(B, h)); break;
  case BATCH_CSR_I: PetscCall(SetUpCSRI(B, h)); break;
  case BATCH_ELL: PetscCall(SetUpELL(B, h)); break;
  default: break;
  }
  h->name = BatchHostNames[h->kernel];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchHostCreate(const BatchPattern *B, BatchKernel kernel, BatchHost *host)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscNew(host));
  ierr = SetUpLayout(B, kernel, *host);
  if (ierr) PetscCall(BatchHostDestroy(host));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of problem p in the ELL layout */
static inline PetscScalar *ELLValues(BatchHost h, const BatchPattern *B, PetscInt p)
{
  return h->value + (B->sharing == BATCH_SHARE_NONE
                         ? h->start[p]
                         : (B->sharing == BATCH_SHARE_PATTERN ? (PetscInt64)p * h->start[1] : 0));
}

static void ELLFill(BatchHost h, const BatchPattern *B, const PetscScalar *a, PetscInt p)
{
  const PetscInt     q = B->sharing ? 0 : p, *i = BatchOffsets(B, p), n = B->first[q + 1] - B->first[q];
  const PetscScalar *from = a + BatchValueShift(B, p);
  PetscScalar       *to   = ELLValues(h, B, p);

  for (int k = 0; k < h->width[q]; k++) {
    for (PetscInt r = 0; r < n; r++) to[(PetscInt64)k * n + r] = i[r] + k < i[r + 1] ? from[i[r] + k] : 0.0;
  }
}

PetscErrorCode BatchHostFill(BatchHost h, const BatchPattern *B, const PetscScalar *a, PetscInt first, PetscInt last)
{
  PetscFunctionBegin;
  if (h->kernel == BATCH_SELLP) {
    SpMVStats stats;

    h->csr.a = a;
    PetscCall(SpMVStoreFill(h->store, &h->csr));
    SpMVStoreGetStats(h->store, &stats);
    h->name   = stats.kernel;
    h->stored = stats.stored;
    h->bytes  = stats.bytes;
  } else if (h->kernel == BATCH_SLICES)
    BatchSlicesFill(B, &h->slices, a, h->value);
  else if (h->kernel == BATCH_ELL) {
    if (B->sharing == BATCH_SHARE_VALUES) ELLFill(h, B, a, 0);
    for (PetscInt p = first; p < last && B->sharing != BATCH_SHARE_VALUES; p++) ELLFill(h, B, a, p);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Multiplies rows, with V partial sums for each row */
static inline void RowsMult(int V, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a,
                            const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  for (PetscInt r = 0; r < n; r++) {
    PetscScalar d[8] = {0.0}, sum = z ? z[r] : 0.0;
    PetscInt    k = i[r];

    for (; k + V <= i[r + 1]; k += V) {
      for (int v = 0; v < V; v++) d[v] += a[k + v] * x[j[k + v]];
    }
    for (; k < i[r + 1]; k++) d[0] += a[k] * x[j[k]];
    for (int v = 1; v < V; v++) d[0] += d[v];
    y[r] = sum + d[0];
  }
}

/* The number of partial sums is the mean row length rounded up to a power of two, as in the paper */
static void CSRSmartMult(PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, const PetscScalar *x,
                         const PetscScalar *z, PetscScalar *y)
{
  int V = 1;

  while (V < 8 && V * (PetscInt64)n < i[n] - i[0]) V *= 2;
  if (V == 1)
    RowsMult(1, n, i, j, a, x, z, y);
  else if (V == 2)
    RowsMult(2, n, i, j, a, x, z, y);
  else if (V == 4)
    RowsMult(4, n, i, j, a, x, z, y);
  else
    RowsMult(8, n, i, j, a, x, z, y);
}

/* The next three functions add to y. row: the row of each entry; entries are numbered as in i */
static void COOMultAdd(PetscInt n, const int *row, const PetscInt *i, const PetscInt *j, const PetscScalar *a,
                       const PetscScalar *x, PetscScalar *y)
{
  for (PetscInt k = i[0]; k < i[n];) {
    const int   r   = row[k];
    PetscScalar sum = 0.0;

    for (; k < i[n] && row[k] == r; k++) sum += a[k] * x[j[k]];
    y[r] += sum;
  }
}

/* row: the first row of each part */
static void CSRIMultAdd(PetscInt n, const int *row, const PetscInt *i, const PetscInt *j, const PetscScalar *a,
                        const PetscScalar *x, PetscScalar *y)
{
  const PetscInt64 entries = i[n] - i[0];

  for (int part = 0; part < BATCH_PARTS; part++) {
    PetscInt       k = i[0] + (PetscInt)(entries * part / BATCH_PARTS), r = row[part];
    const PetscInt end = i[0] + (PetscInt)(entries * (part + 1) / BATCH_PARTS);

    for (; k < end; r++) {
      PetscScalar sum = 0.0;

      for (; k < end && k < i[r + 1]; k++) sum += a[k] * x[j[k]];
      y[r] += sum;
    }
  }
}

static void ELLMultAdd(PetscInt n, int width, const int *col, const PetscScalar *value, const PetscScalar *x,
                       PetscScalar *y)
{
  for (int k = 0; k < width; k++, col += n, value += n) {
    for (PetscInt r = 0; r < n; r++) {
      if (col[r] >= 0) y[r] += value[r] * x[col[r]]; /* padding must not read x */
    }
  }
}

/* Multiplies problem p, whose pattern is q; x, z and y begin with its first row. After BatchHostFill() ELL does not
   need `a` */
static void ProblemMult(BatchHost h, const BatchPattern *B, PetscInt p, PetscInt q, const PetscScalar *a,
                        const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  const PetscInt *i = BatchOffsets(B, p), *j = B->j, n = B->first[p + 1] - B->first[p];

  if (a) a += BatchValueShift(B, p);
  if (h->kernel == BATCH_COO || h->kernel == BATCH_CSR_I || h->kernel == BATCH_ELL) {
    for (PetscInt r = 0; r < n; r++) y[r] = z ? z[r] : 0.0;
  }
  switch (h->kernel) {
  case BATCH_CSR_VECTOR: RowsMult(8, n, i, j, a, x, z, y); break;
  case BATCH_CSR_SMART: CSRSmartMult(n, i, j, a, x, z, y); break;
  case BATCH_COO: COOMultAdd(n, h->row, i, j, a, x, y); break;
  case BATCH_CSR_I: CSRIMultAdd(n, h->row + (size_t)q * BATCH_PARTS, i, j, a, x, y); break;
  case BATCH_ELL: ELLMultAdd(n, h->width[q], h->col + h->start[q], ELLValues(h, B, p), x, y); break;
  default: RowsMult(1, n, i, j, a, x, z, y);
  }
}

void BatchHostMult(BatchHost h, const BatchPattern *B, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z,
                   PetscScalar *y)
{
  if (h->kernel == BATCH_SLICES) {
    BatchSlicesMult(B, &h->slices, h->value, x, z, y);
    return;
  }
  if (h->kernel == BATCH_SELLP) {
    const PetscInt rows = BatchPatternRows(B);

    for (PetscInt r = 0; rows && r < BatchRows(B); r += rows) {
      if (z)
        SpMVStoreMultAdd(h->store, x + r, z + r, y + r);
      else
        SpMVStoreMult(h->store, x + r, y + r);
    }
    return;
  }
  for (PetscInt p = 0; p < B->problems; p++)
    ProblemMult(h, B, p, B->sharing ? 0 : p, a, x + B->first[p], z ? z + B->first[p] : NULL, y + B->first[p]);
}

/* How many of `count` columns SpMVCSRMultColumns() multiplies together, which is faster than one after the other for
   three columns but not for two */
static PetscInt ColumnsByRows(BatchHost h, PetscInt count)
{
  const PetscInt rest = count % SPMV_LANES;

  if (h->kernel == BATCH_SELLP) return PetscMax(0, SpMVStoreColumnsByRows(h->store, count));
  if (h->kernel != BATCH_CSR_SMART) return 0;
  return rest >= 3 ? count : count - rest;
}

void BatchHostMultColumns(BatchHost h, const BatchPattern *B, const PetscScalar *a, PetscInt count,
                          const PetscScalar *x, PetscInt ldx, PetscScalar *y, PetscInt ldy)
{
  const PetscInt rows = ColumnsByRows(h, count);

  for (PetscInt p = 0; p < B->problems && rows; p++) {
    const PetscInt     first = B->first[p], n = B->first[p + 1] - first;
    const PetscScalar *from = x + first;
    PetscScalar       *to   = y + first;
    const SpMVCSR      csr  = {.m = n, .n = n, .i = BatchOffsets(B, p), .j = B->j, .a = a + BatchValueShift(B, p)};

    if (!SpMVCSRMultColumns(&csr, rows, from, ldx, to, ldy)) continue;
    for (PetscInt q = 0; q < rows; q++) /* out of memory */
      RowsMult(1, n, csr.i, csr.j, csr.a, from + (size_t)q * (size_t)ldx, NULL, to + (size_t)q * (size_t)ldy);
  }
  for (PetscInt q = rows; q < count; q++)
    BatchHostMult(h, B, a, x + (size_t)q * (size_t)ldx, NULL, y + (size_t)q * (size_t)ldy);
}

/* The same loop for all kernels: it adds in the order of the rows, so it needs no second copy and its results are
   bitwise reproducible */
void BatchMultTranspose(const BatchPattern *B, PetscBool conjugate, const PetscScalar *a, const PetscScalar *x,
                        const PetscScalar *z, PetscScalar *y)
{
  for (PetscInt r = 0; r < BatchRows(B) && y != z; r++) y[r] = z ? z[r] : 0.0;
  for (PetscInt p = 0; p < B->problems; p++) {
    const PetscInt    *i = BatchOffsets(B, p), f = B->first[p], n = B->first[p + 1] - f;
    const PetscScalar *v = a + BatchValueShift(B, p);

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = i[r]; k < i[r + 1]; k++) y[f + B->j[k]] += (conjugate ? PetscConj(v[k]) : v[k]) * x[f + r];
    }
  }
}

void BatchHostStats(BatchHost h, BatchStats *stats)
{
  stats->stored = h->stored;
  stats->bytes  = h->bytes;
  stats->slices = h->slices.slices;
  stats->index =
      h->kernel == BATCH_SLICES
          ? h->slices.width
          : (h->kernel == BATCH_SELLP ? 0 : (h->kernel == BATCH_ELL ? (int)sizeof(int) : (int)sizeof(PetscInt)));
  stats->kernel = h->name;
}

PetscErrorCode BatchHostDestroy(BatchHost *host)
{
  BatchHost h = *host;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVStoreDestroy(&h->store));
  PetscCall(BatchSlicesDestroy(&h->slices));
  PetscCall(PetscFree(h->row));
  PetscCall(PetscFree2(h->width, h->start));
  PetscCall(PetscFree(h->col));
  PetscCall(PetscFree(h->value));
  PetscCall(PetscFree(*host));
  PetscFunctionReturn(PETSC_SUCCESS);
}
