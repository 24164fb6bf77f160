/* The layout of slices, for devices with few and with many multiprocessors: the properties that the kernel relies on */
#include "common.h"
#include "mat/impls/batch/kernels.h"

static int RowInOrder(const BatchSlices *S, int position)
{
  return S->width == 1 ? ((const uint8_t *)S->order)[position]
                       : (S->width == 2 ? ((const uint16_t *)S->order)[position] : ((const int *)S->order)[position]);
}

static PetscErrorCode CheckSlices(const char *name, const BatchPattern *B, int processors)
{
  BatchSlices S;
  PetscBool   fits;
  char       *seen;
  PetscInt64  share;
  int        *first, *past; /* for each row, the first row of its problem and of the next one */

  PetscFunctionBeginUser;
  PetscCall(BatchSlicesCreate(B, processors, &S, &fits));
  Expect(fits, "%s", name);
  share = processors ? PetscMax(8192, S.entries * S.groups / (8 * processors)) : S.entries * S.groups + 1;
  Expect((PetscInt64)S.groups * S.problems >= B->problems && (PetscInt64)(S.groups - 1) * S.problems < B->problems,
         "%s: %d groups", name, (int)S.groups);
  Expect(S.blocks && !S.block[0].first_slice && !S.block[0].first_row, "%s", name);
  Expect((PetscInt)S.block[S.blocks].first_slice == S.slices && S.block[S.blocks].first_row == S.rows, "%s", name);
  PetscCall(BatchSlicesGetFirstRows(B, &S, &first));
  PetscCall(PetscMalloc1(S.rows, &past));
  for (int r = S.rows - 1; r >= 0; r--) past[r] = r + 1 < S.rows && first[r + 1] == first[r] ? past[r + 1] : r + 1;
  PetscCall(PetscCalloc1(S.rows, &seen));
  for (PetscInt b = 0; b < S.blocks; b++) {
    const BatchBlock *k   = S.block + b;
    const int         end = k[1].first_row, rows = end - k->first_row;

    Expect(rows > 0 && rows <= BATCH_BLOCK_ROWS && k[1].first_slice > k->first_slice, "%s, %d: block %d", name,
           processors, (int)b);
    Expect(rows <= BATCH_WARP || S.i[end] - S.i[k->first_row] <= share, "%s, %d: block %d of %d rows has %d entries",
           name, processors, (int)b, rows, (int)(S.i[end] - S.i[k->first_row]));
    Expect(k->columns >= 0 && k->columns <= BATCH_BLOCK_COLUMNS, "%s, %d: block %d", name, processors, (int)b);
    for (unsigned s = k->first_slice; s < k[1].first_slice; s++) {
      const BatchSlice *c = S.slice + s;

      for (int q = c->first_row; q < c->first_row + BatchSliceRows(c->shape); q++) {
        const int r = c->base + RowInOrder(&S, q);

        Expect(r >= k->first_row && r < end && !seen[r]++, "%s, %d: block %d, row %d", name, processors, (int)b, r);
        Expect(past[r] - c->base <= (S.width == 1 ? 255 : (S.width == 2 ? 65535 : INT_MAX)), "%s, %d: row %d", name,
               processors, r);
        Expect(!k->columns || (first[r] >= k->first_column && past[r] <= k->first_column + k->columns),
               "%s, %d: block %d lacks x of row %d", name, processors, (int)b, r);
        Expect((PetscInt64)BatchSliceSteps(c->shape) << BatchSliceLogLanes(c->shape) >= S.i[r + 1] - S.i[r],
               "%s, %d: row %d", name, processors, r);
      }
    }
  }
  for (int r = 0; r < S.rows; r++) Expect(seen[r], "%s, %d: row %d is in no slice", name, processors, r);
  PetscCall(PetscFree(seen));
  PetscCall(PetscFree(past));
  PetscCall(PetscFree(first));
  PetscCall(BatchSlicesDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef PetscInt (*Length)(PetscInt row, PetscInt n);

static PetscInt some(PetscInt r, PetscInt n)
{
  return PetscMin(n, (PetscInt)(mix((uint32_t)r, 3u) % 13));
}
static PetscInt full(PetscInt r, PetscInt n)
{
  (void)r;
  return n;
}
static PetscInt few_full(PetscInt r, PetscInt n)
{
  return r < n / 10 ? n : 1;
}
static PetscInt none(PetscInt r, PetscInt n)
{
  (void)r;
  (void)n;
  return 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    PetscInt    problems, size; /* 0: several sizes */
    Length      length;
  } cases[]                          = {{"1 x 1", 3000, 1, full},
                                        {"tiny", 9000, 7, some},
                                        {"255", 40, 255, some},
                                        {"256", 40, 256, some},
                                        {"several sizes", 60, 0, some},
                                        {"dense", 6, 150, full},
                                        {"dense 1000", 3, 1000, full},
                                        {"a few full rows", 4, 1000, few_full},
                                        {"1024", 9, BATCH_BLOCK_ROWS, some},
                                        {"1025", 9, BATCH_BLOCK_ROWS + 1, some},
                                        {"x that just fits", 2, BATCH_BLOCK_COLUMNS, some},
                                        {"x too long", 2, BATCH_BLOCK_COLUMNS + 1, some},
                                        {"65536", 1, 65536, some},
                                        {"no entries", 30, 70, none}};
  static const PetscInt sizes[]      = {0, 1, 40, 255, 3, 1030, 0, 33, 512, 32, 700, 2};
  static const int      processors[] = {0, 1, 2, 16, 132};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    for (int sharing = BATCH_SHARE_NONE; sharing <= (cases[k].size ? BATCH_SHARE_VALUES : BATCH_SHARE_NONE);
         sharing++) {
      PetscInt    *first, *i;
      BatchPattern B = {cases[k].problems, NULL, (BatchSharing)sharing, NULL, NULL};

      PetscCall(PetscMalloc1(B.problems + 1, &first));
      first[0] = 0;
      for (PetscInt p = 0; p < B.problems; p++)
        first[p + 1] =
            first[p] + (cases[k].size ? cases[k].size : sizes[p % (PetscInt)PETSC_STATIC_ARRAY_LENGTH(sizes)]);
      B.first = first;
      PetscCall(PetscMalloc1(BatchPatternRows(&B) + 1, &i));
      i[0] = 0;
      for (PetscInt p = 0; p < BatchPatterns(&B); p++) {
        for (PetscInt r = first[p]; r < first[p + 1]; r++)
          i[r + 1] = i[r] + cases[k].length(r - first[p], first[p + 1] - first[p]);
      }
      B.i = i;
      for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(processors); m++)
        PetscCall(CheckSlices(cases[k].name, &B, processors[m]));
      PetscCall(PetscFree(i));
      PetscCall(PetscFree(first));
    }
  }
  { /* the largest number of problems; of the array of their first rows, only the part that is read is in memory */
    const PetscInt i[2] = {0, 1};
    const size_t   size = ((size_t)SPMV_MAX_SIZE + 1) * sizeof(PetscInt);
    PetscInt      *first =
        (PetscInt *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BatchPattern B = {SPMV_MAX_SIZE, first, BATCH_SHARE_VALUES, i, NULL};

    PetscCheck((void *)first != MAP_FAILED, PETSC_COMM_SELF, PETSC_ERR_MEM, "mmap() failed");
    for (PetscInt p = 0; p <= BATCH_BLOCK_ROWS; p++) first[p] = p;
    first[SPMV_MAX_SIZE] = SPMV_MAX_SIZE;
    for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(processors); m++)
      PetscCall(CheckSlices("the most problems", &B, processors[m]));
    (void)munmap(first, size);
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
