/* EVC-HYB's order of the rows, and its partition: the figures of the paper's Table 3 for ibm-dc1 */
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

/* Rows are in order of their lengths, rows of one length in order of their first columns, and otherwise in their own */
static PetscErrorCode CheckOrder(const char *name, const SpMVCSR *A)
{
  PetscInt *order, *at;

  PetscFunctionBeginUser;
  PetscCall(EVCHYBOrder(A, &order));
  PetscCall(PetscCalloc1(A->m, &at));
  for (PetscInt k = 0; k < A->m; k++) {
    const PetscInt r = order[k], length = A->i[r + 1] - A->i[r];

    Expect(r >= 0 && r < A->m && !at[r], "%s: place %d", name, (int)k);
    at[r] = 1;
    if (k) {
      const PetscInt q = order[k - 1], before = A->i[q + 1] - A->i[q];
      const PetscInt columns = length && length == before ? A->j[A->i[r]] - A->j[A->i[q]] : 0;

      Expect(before < length || (before == length && (columns > 0 || (columns == 0 && q < r))), "%s: place %d", name,
             (int)k);
    }
  }
  PetscCall(PetscFree(at));
  PetscCall(PetscFree(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  EVCHYBPartition E;
  SpMVCSR         R = {.m = 116835, .n = 1};
  PetscInt       *i, *j, *length, r = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscMalloc2(R.m, &length, R.m + 1, &i));
  for (size_t k = 0; k < sizeof(dc1) / sizeof(dc1[0]); k++)
    for (PetscInt q = 0; q < dc1[k][1]; q++) length[r++] = dc1[k][0];
  for (PetscInt k = 0; k < R.m; k++) { /* the order of the rows does not matter */
    const PetscInt q = draw(R.m), t = length[k];

    length[k] = length[q];
    length[q] = t;
  }
  i[0] = 0;
  for (PetscInt k = 0; k < R.m; k++) i[k + 1] = i[k] + length[k];
  Expect(r == R.m && i[R.m] == 766396, "dc1: not the matrix of the paper");
  PetscCall(PetscCalloc1(i[R.m], &j)); /* all columns are 0 */
  R.i = i;
  R.j = j;
  PetscCall(CheckOrder("dc1", &R));
  PetscCall(EVCHYBPartitionCreate(&R, 128, &E));
  Expect(E.isplit == 116768, "dc1: Isplit %d", (int)E.isplit); /* Table 3 */
  Expect(E.ell_entries == 595776, "dc1: ELL %ld", (long)E.ell_entries);
  Expect(E.csr_entries == 172160, "dc1: vector CSR %ld", (long)E.csr_entries);
  PetscCall(PetscFree2(length, i));
  PetscCall(PetscFree(j));
  for (int k = 0; k < MATRICES; k++) {
    Matrix A;

    PetscCall(MatrixGet(k, &A));
    PetscCall(CheckOrder(A.name, &(SpMVCSR){A.m, A.n, A.i, A.j, NULL}));
    PetscCall(MatrixDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
