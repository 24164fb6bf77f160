/* EVC-HYB's partition: the figures of the paper's Table 3 for ibm-dc1, and the invariants for any matrix */
#include "common.h"
#include "../../bench/papers/partition.h"

/* {row length, rows of that length} of ibm-dc1 (SuiteSparse IBM_EDA/dc1) */
static const PetscInt dc1[][2] = {
    {1, 17},    {2, 41805}, {3, 2367},  {4, 12666}, {5, 21179}, {6, 8444}, {7, 12227}, {8, 5263}, {9, 2338},
    {10, 1465}, {11, 1457}, {12, 2684}, {13, 708},  {14, 864},  {15, 387}, {16, 108},  {17, 280}, {18, 308},
    {19, 708},  {20, 447},  {21, 153},  {22, 185},  {23, 328},  {24, 331}, {25, 1},    {26, 1},   {27, 22},
    {29, 14},   {30, 16},   {37, 1},    {39, 1},    {40, 2},    {41, 1},   {43, 2},    {58, 1},   {67, 2},
    {79, 2},    {91, 1},    {97, 5},    {100, 2},   {101, 2},   {108, 2},  {109, 2},   {117, 2},  {126, 2},
    {172, 2},   {173, 2},   {198, 2},   {204, 2},   {205, 2},   {234, 2},  {236, 1},   {237, 1},  {252, 5},
    {253, 5},   {270, 1},   {288, 5},   {47193, 1}, {114190, 1}};

/* A pattern with rows of these lengths; all columns are 0 */
static PetscErrorCode Rows(PetscInt m, const PetscInt length[], SpMVCSR *A)
{
  PetscInt *i, *j;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(m + 1, &i));
  for (PetscInt r = 0; r < m; r++) i[r + 1] = i[r] + length[r];
  PetscCall(PetscCalloc1(i[m], &j));
  *A = (SpMVCSR){m, 1, i, j, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsDestroy(SpMVCSR *A)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(A->i));
  PetscCall(PetscFree(A->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CheckPartition(const char *name, const SpMVCSR *A, const EVCHYBParams *p, const EVCHYBPartition *E)
{
  const PetscInt m    = A->m;
  PetscInt       next = 0, ranged = 0, *length, *first;
  PetscInt64     ell = 0, csr = 0;
  char          *seen;

  PetscCallAbort(PETSC_COMM_SELF, PetscCalloc1(m, &seen));
  PetscCallAbort(PETSC_COMM_SELF, PetscMalloc2(m, &length, m, &first));
  for (PetscInt q = 0; q < m; q++) {
    length[q] = A->i[q + 1] - A->i[q];
    first[q]  = length[q] ? A->j[A->i[q]] : 0;
  }
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt r = E->perm[k];

    Expect(r >= 0 && r < m && !seen[r], "%s: place %d", name, (int)k);
    seen[r] = 1;
    if (k) {
      const PetscInt q = E->perm[k - 1];

      Expect(length[q] <= length[r], "%s: place %d", name, (int)k);
      if (length[q] == length[r])
        Expect(!length[q] || first[q] < first[r] || (first[q] == first[r] && q < r), "%s: place %d", name, (int)k);
    }
  }
  for (PetscInt b = 0; b < E->nblocks; b++) {
    const EVCHYBRowBlock *B = E->blocks + b;

    Expect(B->first == next && B->rows >= 2 * EVCHYB_ROW_ALIGN && B->rows % EVCHYB_ROW_ALIGN == 0 &&
               B->length <= p->ell_limit,
           "%s: row block %d", name, (int)b);
    Expect(b == 0 || B->length > E->blocks[b - 1].length, "%s: row block %d", name, (int)b);
    for (PetscInt k = B->first; k < B->first + B->rows; k++)
      Expect(length[E->perm[k]] <= B->length, "%s: row block %d", name, (int)b);
    Expect(length[E->perm[B->first + B->rows - 1]] == B->length, "%s: row block %d", name, (int)b);
    next += B->rows;
    ell += (PetscInt64)B->rows * B->length;
  }
  Expect(E->isplit == next, "%s", name);
  Expect(E->ell_entries == ell, "%s", name);
  for (PetscInt k = next; k < m; k++)
    csr += (length[E->perm[k]] + EVCHYB_CSR_ALIGN - 1) / EVCHYB_CSR_ALIGN * EVCHYB_CSR_ALIGN;
  Expect(E->csr_entries == csr, "%s", name);
  for (PetscInt q = 0; q < E->ranges; q++) ranged += E->range_rows[q];
  Expect(ranged == m - E->isplit, "%s", name);
  PetscCallAbort(PETSC_COMM_SELF, PetscFree2(length, first));
  PetscCallAbort(PETSC_COMM_SELF, PetscFree(seen));
}

int main(int argc, char **argv)
{
  EVCHYBParams    p;
  EVCHYBPartition E;
  SpMVCSR         R;
  PetscInt       *length, m = 0, r = 0;
  PetscInt64      nonzeros = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  EVCHYBParamsDefault(&p);

  for (size_t k = 0; k < sizeof(dc1) / sizeof(dc1[0]); k++) {
    m += dc1[k][1];
    nonzeros += (PetscInt64)dc1[k][0] * dc1[k][1];
  }
  PetscCall(PetscMalloc1(m, &length));
  for (size_t k = 0; k < sizeof(dc1) / sizeof(dc1[0]); k++)
    for (PetscInt q = 0; q < dc1[k][1]; q++) length[r++] = dc1[k][0];
  for (PetscInt k = 0; k < m; k++) { /* the order of the rows does not matter */
    const PetscInt q = draw(m), t = length[k];

    length[k] = length[q];
    length[q] = t;
  }
  PetscCall(Rows(m, length, &R));
  PetscCall(EVCHYBPartitionCreate(&R, &p, &E));
  CheckPartition("dc1", &R, &p, &E);
  Expect(m == 116835 && nonzeros == 766396, "dc1: not the matrix of the paper");
  /* Table 3 */
  Expect(E.isplit == 116768, "dc1: Isplit %d", (int)E.isplit);
  Expect(E.ell_entries == 595776, "dc1: ELL %ld", (long)E.ell_entries);
  Expect(E.csr_entries == 172160, "dc1: vector CSR %ld", (long)E.csr_entries);
  PetscCall(EVCHYBPartitionDestroy(&E));
  PetscCall(RowsDestroy(&R));
  PetscCall(PetscFree(length));

  /* threads per row: one for up to 8 entries, two for 9 to 16, ..., the most for more than 8 * 256 */
  {
    const PetscInt lengths[] = {1, 8, 9, 16, 17, 2048, 2049, 4096, 4097, 100000};

    p.ell_limit = 0;
    PetscCall(Rows(10, lengths, &R));
    PetscCall(EVCHYBPartitionCreate(&R, &p, &E));
    Expect(E.isplit == 0 && E.ranges == 10, "ranges: %d", (int)E.ranges);
    Expect(E.range_rows[0] == 2 && E.range_rows[1] == 2 && E.range_rows[2] == 1 && E.range_rows[8] == 1 &&
               E.range_rows[9] == 4,
           "ranges");
    PetscCall(EVCHYBPartitionDestroy(&E));
    PetscCall(RowsDestroy(&R));
    p.ell_limit = 128;
  }

  for (int k = 0; k < MATRICES; k++) {
    Matrix A;

    PetscCall(MatrixGet(k, &A));
    R = (SpMVCSR){A.m, A.n, A.i, A.j, NULL};
    PetscCall(EVCHYBPartitionCreate(&R, &p, &E));
    CheckPartition(A.name, &R, &p, &E);
    PetscCall(EVCHYBPartitionDestroy(&E));
    PetscCall(MatrixDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
