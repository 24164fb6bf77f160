/*
  Steps of the fuzzer on files, views, options, and wrong calls.
*/
#include "fuzz_actor.h"

static PetscErrorCode File(Actor *a)
{
  const char *dir = getenv("TMPDIR");
  int         pid = (int)getpid();
  char        name[512];
  PetscViewer v;
  Mat         X;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, fuzz.comm));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/petscspmv-fuzz-%d", dir ? dir : "/tmp", pid));
  PetscCall(TouchSome(a->A));
  PetscCall(PetscViewerBinaryOpen(fuzz.comm, name, FILE_MODE_WRITE, &v));
  PetscCall(PetscViewerBinarySetSkipInfo(v, PETSC_TRUE));
  PetscCall(MatView(a->A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(fuzz.comm, name, FILE_MODE_READ, &v));
  if (Chance(50))
    PetscCall(MatDuplicate(a->A, MAT_DO_NOT_COPY_VALUES, &X));
  else {
    PetscCall(MatCreate(fuzz.comm, &X));
    PetscCall(MatSetType(X, a->type));
  }
  PetscCall(MatLoad(X, v));
  PetscCall(PetscViewerDestroy(&v));
  if (!fuzz.rank) (void)unlink(name);
  PetscCall(HasFormat(a, X, "the loaded matrix"));
  PetscCall(SeeMat(a, "the loaded matrix", X, 1));
  PetscCall(AdoptOrDestroy(a, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode View(Actor *a)
{
  const PetscViewerFormat formats[] = {PETSC_VIEWER_DEFAULT, PETSC_VIEWER_ASCII_INFO, PETSC_VIEWER_ASCII_INFO_DETAIL,
                                       PETSC_VIEWER_ASCII_MATLAB};
  PetscViewer             v;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIOpen(fuzz.comm, "/dev/null", &v));
  PetscCall(PetscViewerPushFormat(v, formats[draw(4)]));
  PetscCall(MatView(a->A, v));
  PetscCall(PetscViewerPopFormat(v));
  PetscCall(PetscViewerDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets an option in the database until the case ends */
static PetscErrorCode SetOption(const char *name, const char *value)
{
  char whole[128];

  PetscFunctionBegin;
  if (fuzzcase.noptions == 16) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(whole, sizeof(whole), "-%s%s", fuzzcase.prefix, name));
  PetscCall(PetscStrncpy(fuzzcase.option[fuzzcase.noptions++], whole, sizeof(fuzzcase.option[0])));
  PetscCall(PetscOptionsSetValue(NULL, whole, value));
  FuzzLog(" %s %s", whole, value);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RandomOptions(void)
{
  static const struct {
    const char *type, *name, *value[12];
  } options[] = {
      {"sellp", "threads_per_row", {"1", "2", "4", "8", "16", "32"}},
      {"sellp", "sigma", {"1", "2", "7", "8", "9", "32", "64", "100", "512", "100000", "2147483647"}},
      {"evchyb", "ell_limit", {"0", "1", "2", "4", "7", "8", "16", "31", "128", "1000", "2147483647"}},
      {NULL, "node_size", {"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
      {NULL, "compress", {"0", "1"}},
      {NULL, "setup_after", {"1", "2", "5", "30"}},
      {NULL, "reorder", {"off", "auto"}},
      {NULL, "kernel", {"slices", "slices", "slices", "slices", "csr", "aij", "auto", "paper"}},
  };

  PetscFunctionBegin;
  if (fuzz.device) { /* AIJCUSPARSE has no inodes, and with inodes AIJ's relaxation is a different method */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_no_inode", NULL));
    PetscCall(PetscOptionsSetValue(NULL, "-fuzz_mat_no_inode", NULL));
    /* for so few entries, the default would sort them on the host */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_coo", "device"));
    PetscCall(PetscOptionsSetValue(NULL, "-fuzz_mat_spmv_coo", "device"));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    const PetscBool kernel = (PetscBool)(k + 1 == PETSC_STATIC_ARRAY_LENGTH(options)), set = Chance(kernel ? 85 : 25);
    PetscInt        n    = 0, pick;
    PetscBool       same = PETSC_TRUE;
    char            name[64];

    while (n < 12 && options[k].value[n]) n++;
    pick = draw(n);
    if (options[k].type) PetscCall(PetscStrcmp(options[k].type, fuzz.type, &same));
    if (!set || !same) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "mat_%s_%s", options[k].type ? fuzz.type : "spmv", options[k].name));
    PetscCall(SetOption(name, options[k].value[pick]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ClearOptions(void)
{
  PetscFunctionBegin;
  while (fuzzcase.noptions > 0) PetscCall(PetscOptionsClearValue(NULL, fuzzcase.option[--fuzzcase.noptions]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other options, read again in the middle of the sequence */
static PetscErrorCode Options(Actor *a)
{
  PetscFunctionBegin;
  PetscCall(ClearOptions());
  PetscCall(RandomOptions());
  PetscCall(TouchSome(a->A));
  PetscCall(MatSetOptionsPrefix(a->A, fuzzcase.prefix));
  PetscCall(MatSetFromOptions(a->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls that must return an error and leave the matrix unchanged */
static PetscErrorCode Wrong(Actor *a)
{
  const PetscInt kind = draw(8);
  PetscInt       m, n, M, N;
  Vec            x, y, wrong;
  Mat            X;
  int            failed;

  PetscFunctionBegin;
  FuzzLog(" kind %" PetscInt_FMT, kind);
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(MatCreateVecs(a->A, &x, &y));
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(VecCreate(fuzz.comm, &wrong));
  PetscCall(VecSetSizes(wrong, m + n + 1, PETSC_DECIDE)); /* wrong on every rank */
  PetscCall(VecSetFromOptions(wrong));
  PetscCall(VecSet(x, 1.));
  PetscCall(VecSet(y, 1.));
  PetscCall(VecSet(wrong, 1.));
  PetscCall(OperandLike(a, a->A, &X));
  switch (kind) {
  case 0: Try(a, "product with a vector too long", MatMult(a->A, wrong, y)); break;
  case 1: Try(a, "product into a vector too long", MatMult(a->A, x, wrong)); break;
  case 2: Try(a, "transposed product with a vector too long", MatMultTranspose(a->A, wrong, x)); break;
  case 3: Try(a, "product into its operand", MatMult(a->A, x, x)); break;
  case 4: Try(a, "sum with a vector too long", MatMultAdd(a->A, x, wrong, y)); break;
  case 5: Try(a, "diagonal of a vector too long", MatGetDiagonal(a->A, wrong)); break;
  case 6: {
    Mat Y;

    PetscCall(Operand(a, PETSC_DECIDE, PETSC_DECIDE, 3, M + N + 2, &Y));
    Try(a, "sum of matrices of different sizes", MatAXPY(a->A, 1., Y, DIFFERENT_NONZERO_PATTERN));
    Try(a, "copy of a matrix of another size", MatCopy(Y, a->A, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&Y));
    break;
  }
  default: {
    Mat Y;

    Try(a, "conversion to no type", MatConvert(a->A, "nothing", MAT_INITIAL_MATRIX, &Y));
  }
  }
  PetscCall(Destroy(&X, &x, &y, &wrong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BindToCPU(Actor *a)
{
  const PetscBool bind = Chance(50);

  PetscFunctionBegin;
  fuzzcase.bound = PETSC_TRUE;
  PetscCall(MatBindToCPU(a->A, bind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const FuzzOp FuzzOptions[] = {{"MatLoad", File, 0, 1},           {"MatView", View, 0, 1},
                              {"options", Options, 0, 4},        {"wrong", Wrong, F_FULL, 2},
                              {"MatBindToCPU", BindToCPU, 0, 1}, {NULL}};
