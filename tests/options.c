/*
  Features that only the types of PetscSpMV have: names, options, queries, views. The whole suite runs twice in one
  process, with PETSc finalized in between, so that the types must register again.
*/
#include "parts/options.h"

static PetscErrorCode Set(const char *option, const char *value)
{
  char prefixed[128];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(prefixed, sizeof(prefixed), "-opt_%s", option));
  PetscCall(PetscOptionsSetValue(NULL, prefixed, value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Clear(const char *option)
{
  char prefixed[128];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(prefixed, sizeof(prefixed), "-opt_%s", option));
  PetscCall(PetscOptionsClearValue(NULL, prefixed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the kernel option, or clears it (NULL) */
static PetscErrorCode Kernel(const char *value)
{
  PetscFunctionBegin;
  if (value)
    PetscCall(Set("mat_spmv_kernel", value));
  else
    PetscCall(Clear("mat_spmv_kernel"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Values that must be rejected, with an error that names the option as the user gave it, and with an unchanged matrix. The
  kind of value determines who rejects it and whether the message names the option: PETSc's own does not if a word is not
  a number
*/
typedef enum { RANGE, WORD, LIST } Refusal;

static const struct {
  Refusal     how;
  const char *type, *option, *value[8];
} refused[] = {
    {RANGE, "sellp", "mat_sellp_threads_per_row", {"0", "-1", "3", "6", "31", "64", "2147483647", "1073741824"}},
    {RANGE, "sellp", "mat_sellp_sigma", {"0", "-1", "-2147483647"}},
    {RANGE, NULL, "mat_spmv_node_size", {"-1", "9", "2147483647"}},
    {RANGE, "evchyb", "mat_evchyb_ell_limit", {"-1", "-2147483647"}},
    /* for every type, even without a halo */
    {RANGE, NULL, "mat_spmv_halo_rows", {"-0.1", "-1", "1.5", "2147483647", "1e30"}},
    {WORD, NULL, "mat_spmv_halo_rows", {"nan", "much", "0.1x"}},
    {WORD, "sellp", "mat_sellp_threads_per_row", {"two", "nan"}},
    {WORD, "sellp", "mat_sellp_sigma", {"all", "nan"}},
    {WORD, NULL, "mat_spmv_node_size", {"small", "nan"}},
    {WORD, NULL, "mat_spmv_compress", {"perhaps", "2"}},
    {WORD, NULL, "mat_spmv_single", {"perhaps", "nan"}},
    {WORD, "evchyb", "mat_evchyb_ell_limit", {"long", "nan"}},
    {RANGE, NULL, "mat_spmv_setup_after", {"-2", "-2147483647"}},
    {WORD, NULL, "mat_spmv_setup_after", {"soon", "nan"}},
    {LIST, NULL, "mat_spmv_kernel", {"nonsense", "-1", "0", "slice"}},
    {LIST, NULL, "mat_spmv_halo", {"nonsense", "-1", "0"}},
    {LIST, NULL, "mat_spmv_reorder", {"rcm", "-1", "1"}},
    {LIST, NULL, "mat_spmv_coo", {"nonsense", "-1", "gpu"}}};

static PetscErrorCode Refuse(Test *t, Mat A, Refusal how, const char *option, const char *value)
{
  PetscErrorCode ierr;
  PetscBool      same;
  const char    *format;
  char          *named;
  char           whole[128];

  PetscFunctionBegin;
  PetscCall(Set(option, value));
  MayFail(ierr, MatSetFromOptions(A));
  PetscCall(Agree(ierr, &same));
  PetscCall(Clear(option));
  PetscCheck(ierr, t->comm, PETSC_ERR_PLIB, "option %s %s was not refused", option, value);
  PetscCheck(how != RANGE || ierr == PETSC_ERR_ARG_OUTOFRANGE, t->comm, PETSC_ERR_PLIB,
             "option %s %s: error %d, not %d: %s", option, value, (int)ierr, (int)PETSC_ERR_ARG_OUTOFRANGE,
             RanksMessage);
  PetscCall(PetscSNPrintf(whole, sizeof(whole), "-opt_%s", option));
  PetscCall(PetscStrstr(RanksMessage, whole, &named));
  PetscCheck(named || how == WORD, t->comm, PETSC_ERR_PLIB,
             "option %s %s: error %d, message '%s', which does not name it", option, value, (int)ierr, RanksMessage);
  PetscCall(PetscSpMVGetFormat(A, &format));
  PetscCall(PetscStrcmp(format, t->type, &same));
  PetscCheck(same, t->comm, PETSC_ERR_PLIB, "option %s %s: the format is %s after the refusal", option, value,
             format ? format : "NULL");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bad(Test *t, Record *r)
{
  Mat       A;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSetOptionsPrefix(A, "opt_"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(refused); k++) {
    PetscCall(PetscStrcmp(refused[k].type ? refused[k].type : now.under, t->type, &same));
    for (int v = 0; same && v < 8 && refused[k].value[v]; v++)
      PetscCall(Refuse(t, A, refused[k].how, refused[k].option, refused[k].value[v]));
  }
  PetscCall(RecordMat(t, r, "type after the refusals", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arguments of the library's own functions. PETSc checks for NULL and for wrong objects only in debug builds */
static PetscErrorCode Arguments(Test *t, Record *r)
{
  Mat            A;
  Vec            x;
  PetscSpMVInfo  info;
  const char    *format;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (t->aij) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateVecs(t->R, &x, NULL));
  PetscCall(CreateLike(t->R, t->type, &A));
#define Refused(code, ...)                                                                                           \
  do {                                                                                                               \
    MayFail(ierr, __VA_ARGS__);                                                                                      \
    PetscCheck(ierr == (code), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, not %d: %s", #__VA_ARGS__, (int)ierr, \
               (int)(code), RanksMessage);                                                                           \
  } while (0)
  Refused(PETSC_ERR_ARG_WRONGSTATE, PetscSpMVGetInfo(A, &info)); /* unassembled */
  Refused(PETSC_ERR_ARG_WRONG, PetscSpMVGetInfo(t->R, &info));   /* a different type */
  PetscCall(PreallocateLike(t->R, A));
  PetscCall(FillLike(t->R, -1, A));
  if (PetscDefined(USE_DEBUG)) {
    Refused(PETSC_ERR_ARG_NULL, PetscSpMVGetInfo(NULL, &info));
    Refused(PETSC_ERR_ARG_NULL, PetscSpMVGetInfo(A, NULL));
    Refused(PETSC_ERR_ARG_WRONG, PetscSpMVGetInfo((Mat)x, &info));
    Refused(PETSC_ERR_ARG_NULL, PetscSpMVGetFormat(NULL, &format));
    Refused(PETSC_ERR_ARG_NULL, PetscSpMVGetFormat(A, NULL));
    Refused(PETSC_ERR_ARG_WRONG, PetscSpMVGetFormat((Mat)x, &format));
  }
  PetscCall(PetscSpMVInitializePackage()); /* may be called any number of times */
  PetscCall(Touch(A));
  PetscCall(Destroy(&x, &A));
  PetscCall(MatCreate(t->comm, &A));
  Refused(PETSC_ERR_ARG_TYPENOTSET, PetscSpMVGetInfo(A, &info));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every type name that may be given, set in every possible way */
static PetscErrorCode Names(Test *t, Record *r)
{
  const char *const prefixes[] = {"", t->size > 1 ? "mpi" : "seq", t->size > 1 ? "mpiaij" : "seqaij"};
  const char       *under      = now.under;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    char        name[64];
    const char *format;
    MatType     type;
    Mat         A;
    PetscBool   is, begins;

    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", prefixes[k], under));
    PetscCall(MakeLike(t->R, name, &A));
    PetscCall(PetscSpMVGetFormat(A, &format));
    PetscCall(PetscStrcmp(format, under, &is));
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscStrbeginswith(type, prefixes[2], &begins));
    PetscCheck(is && begins, t->comm, PETSC_ERR_PLIB,
               "MatSetType(%s): MatGetType() answers %s, PetscSpMVGetFormat() %s", name, type,
               format ? format : "NULL");
    PetscCall(RecordProducts(r, A, PETSC_TRUE));
    PetscCall(MatDestroy(&A));
    /* through the options, where "mat_type" may be set before anything else is known */
    PetscCall(PetscOptionsSetValue(NULL, "-opt_mat_type", name));
    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatSetOptionsPrefix(A, "opt_"));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 10, 12));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    PetscCall(MatAssemble(A));
    PetscCall(PetscSpMVGetFormat(A, &format));
    PetscCall(PetscStrcmp(format, under, &is));
    PetscCheck(is, t->comm, PETSC_ERR_PLIB, "-mat_type %s: PetscSpMVGetFormat() answers %s", name,
               format ? format : "NULL");
    PetscCall(MatDestroy(&A));
    PetscCall(PetscOptionsClearValue(NULL, "-opt_mat_type"));
  }
  {
    const char *format = "not set";
    PetscCall(PetscSpMVGetFormat(t->R, &format));
    PetscCheck(!format, t->comm, PETSC_ERR_PLIB, "PetscSpMVGetFormat() answers %s for AIJ", format);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Queries and views of a matrix, which must reflect the options */
static PetscErrorCode Info(Test *t, Record *r)
{
  Mat           A, B;
  MatInfo       info;
  PetscSpMVInfo spmv[2];
  PetscBool     slices, found;

  PetscFunctionBegin;
  if (t->aij) PetscFunctionReturn(PETSC_SUCCESS);
  slices = (PetscBool)(!strcmp(t->type, MATSELLP) || !strcmp(t->type, MATEVCHYB) ||
                       !strcmp(t->type, MATBATCH)); /* another format may have none */
  PetscCall(Make(t, &A));
  PetscCall(MatSetOptionsPrefix(A, "opt_"));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  for (int k = 0; k < 2; k++) {
    PetscCall(Kernel(k ? "csr" : "slices"));
    PetscCall(MatSetFromOptions(A));
    PetscCall(Touch(A));
    PetscCall(PetscSpMVGetInfo(A, &spmv[k]));
    PetscCheck(spmv[k].nonzeros == (PetscInt64)info.nz_used, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "PetscSpMVGetInfo() counts %" PetscInt64_FMT " nonzeros, MatGetInfo() %g", spmv[k].nonzeros,
               info.nz_used);
    /* sellp has no CSR kernel of its own on a device */
    if (spmv[k].kernel && strstr(spmv[k].kernel, "AIJCUSPARSE")) continue;
    PetscCheck(spmv[k].stored >= spmv[k].nonzeros, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "%" PetscInt64_FMT " entries stored for %" PetscInt64_FMT
               " nonzeros although the format's kernel was requested",
               spmv[k].stored, spmv[k].nonzeros);
    PetscCheck(spmv[k].kernel, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no kernel is named");
  }
  PetscCheck(!spmv[1].slices && (spmv[0].slices || !info.nz_used || !slices), PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "%" PetscInt64_FMT " slices with the kernel slices, %" PetscInt64_FMT " with the kernel csr",
             spmv[0].slices, spmv[1].slices);
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); /* carries the options, without reading them again */
  PetscCall(Kernel(NULL));
  PetscCall(Touch(B));
  PetscCall(PetscSpMVGetInfo(B, &spmv[0]));
  PetscCheck(spmv[0].slices == spmv[1].slices && spmv[0].stored == spmv[1].stored, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "the duplicate stores %" PetscInt64_FMT " entries, the original %" PetscInt64_FMT, spmv[0].stored,
             spmv[1].stored);
  PetscCall(MatDestroy(&B));
  PetscCall(ViewContains((PetscObject)A, PETSC_VIEWER_ASCII_INFO, t->type, &found));
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the view does not name the format");
  if (t->size == 1) {
    char kernel[256];

    PetscCall(PetscSNPrintf(kernel, sizeof(kernel), "kernel: %s", spmv[1].kernel));
    PetscCall(ViewContains((PetscObject)A, PETSC_VIEWER_ASCII_INFO, kernel, &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the view does not name the kernel %s", spmv[1].kernel);
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Values in single precision: products agree with AIJ's to this precision, but not better (otherwise the option had no
  effect), while the matrix itself does not change
*/
static PetscErrorCode Single(Test *t, Record *r)
{
  Mat                A;
  Vec                x, y, b;
  const PetscScalar *ya;
  PetscScalar       *ba;
  PetscInt           m, start, end, rough = 0, inexact = 0;

  PetscFunctionBegin;
  if (PetscDefined(USE_REAL_SINGLE)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Make(t, &A));
  PetscCall(MatSetOptionsPrefix(A, "opt_"));
  PetscCall(Set("mat_spmv_single", "1"));
  PetscCall(Kernel("slices"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(Clear("mat_spmv_single"));
  PetscCall(Kernel(NULL));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &b));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(VecFill(x, k));
    PetscCall(ProductBounds(A, x, NULL, PETSC_FALSE, b));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecScale(b, 1.2e-7 / PETSC_MACHINE_EPSILON));
    PetscCall(RecordVec(r, "A x at row", y, b, 0));
    PetscCall(MatScale(A, 3.));
  }
  if (!t->aij) {
    Vec z;

    PetscCall(VecDuplicate(y, &z));
    PetscCall(MatMult(t->R, x, z));
    PetscCall(VecAXPY(y, -3., z)); /* y of the second product */
    PetscCall(VecGetLocalSize(y, &m));
    PetscCall(VecGetArrayRead(y, &ya));
    PetscCall(VecGetArray(b, &ba));
    for (PetscInt i = 0; i < m; i++) rough += PetscAbsScalar(ya[i]) > 1e-12 * (1 + PetscAbsScalar(ba[i]));
    PetscCall(MatGetOwnershipRange(t->R, &start, &end));
    for (PetscInt i = start; i < end; i++) { /* small integers are the same in both precisions */
      PetscInt           n;
      const PetscScalar *v;

      PetscCall(MatGetRow(t->R, i, &n, NULL, &v));
      for (PetscInt q = 0; q < n; q++) inexact += (PetscReal)(float)PetscRealPart(v[q]) != PetscRealPart(v[q]);
      PetscCall(MatRestoreRow(t->R, i, &n, NULL, &v));
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &inexact, 1, MPIU_INT, MPI_SUM, t->comm));
    PetscCall(VecRestoreArray(b, &ba));
    PetscCall(VecRestoreArrayRead(y, &ya));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &rough, 1, MPIU_INT, MPI_SUM, t->comm));
    PetscCheck(rough || !inexact, t->comm, PETSC_ERR_PLIB, "the products are those of double precision");
    PetscCall(VecDestroy(&z));
  }
  PetscCall(Destroy(&x, &y, &b));
  PetscCall(RecordEntries(r, A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_seqaij_type, which applies to every AIJ matrix when it is created, including the AIJ matrix from which a matrix
   of ours is made */
static PetscErrorCode SeqAIJType(Test *t, Record *r)
{
  const char *const types[] = {"seqaijsellp", "sellp", "seqaijevchyb", "seqevchyb", MATSEQAIJPERM};
  const char *const to[]    = {MATAIJ, MATAIJPERM, MATDENSE, "sellp", "evchyb", NULL};
  Mat               A, B, C, *S;
  IS                is;
  PetscInt          m, n, M, N, rs;
  PetscBool         set;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", types[k]));
    PetscCall(Make(t, &A));
    PetscCall(RecordMat(t, r, "type", A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatScale(B, 2.));
    PetscCall(RecordMat(t, r, "type of the duplicate", B));
    PetscCall(MatDestroy(&B));
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the transpose", B));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of A A^T", C));
    PetscCall(MatDestroy(&C));
    PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of A^T A^T", C));
    PetscCall(MatDestroy(&C));
    PetscCall(MatRARt(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of A^T A A", C));
    PetscCall(Destroy(&C, &B));
    PetscCall(MatSizes(A, &m, &n, &M, &N));
    PetscCall(MatGetOwnershipRange(A, &rs, NULL));
    PetscCall(ISCreateStride(t->comm, m, rs, 1, &is));
    PetscCall(MatCreateSubMatrix(A, is, NULL, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the submatrix", B));
    PetscCall(Destroy(&B, &is));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, (M + 1) / 2, 0, 2, &is));
    PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_INITIAL_MATRIX, &S));
    PetscCall(RecordMat(t, r, "type of a matrix of MatCreateSubMatrices", S[0]));
    PetscCall(MatDestroySubMatrices(1, &S));
    PetscCall(ISDestroy(&is));
    PetscCall(MakeOperand(t, n, PETSC_DECIDE, N, 6, t->type, &B));
    PetscCall(MatPtAP(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordMat(t, r, "type of P^T A P", C));
    PetscCall(Destroy(&C, &B));
    for (int l = 0; to[l]; l++) { /* PETSc chooses the type of the result, as it does for aij */
      PetscCall(MatConvert(A, to[l], MAT_INITIAL_MATRIX, &B));
      PetscCall(RecordProducts(r, B, PETSC_TRUE));
      PetscCall(MatConvert(B, t->type, MAT_INPLACE_MATRIX, &B));
      PetscCall(RecordProducts(r, B, PETSC_TRUE));
      PetscCall(MatDestroy(&B));
    }
    PetscCall(RecordMat(t, r, "type at the end", A));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
    PetscCall(Set("mat_seqaij_type", types[k]));
    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatGetLocalSize(t->R, &m, &n));
    PetscCall(MatSetSizes(A, m, n, M, N));
    PetscCall(MatSetOptionsPrefix(A, "opt_"));
    PetscCall(MatSetType(A, t->type));
    PetscCall(PreallocateLike(t->R, A));
    PetscCall(FillLike(t->R, -1, A));
    PetscCall(RecordMat(t, r, "type with the option's prefix", A));
    PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
    PetscCall(RecordMat(t, r, "type with the option's prefix after MatTranspose in place", A));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscOptionsHasName(NULL, NULL, "-opt_mat_seqaij_type", &set));
    PetscCheck(set, t->comm, PETSC_ERR_PLIB, "the option is lost");
    PetscCall(Clear("mat_seqaij_type"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether B multiplies with slices, as requested by A's options: without A's parameters it would use AIJ's own product
   */
static PetscErrorCode HasParameters(Test *t, Mat B, const char *what)
{
  PetscSpMVInfo info;
  const char   *format;

  PetscFunctionBegin;
  PetscCall(PetscSpMVGetFormat(B, &format));
  /* if PETSc creates AIJ from AIJPERM, too, which the other programs test */
  if (!format) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Touch(B));
  PetscCall(PetscSpMVGetInfo(B, &info));
  PetscCheck(!info.nonzeros || info.stored >= info.nonzeros, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "%s has lost the parameters: kernel %s, %" PetscInt64_FMT " entries stored for %" PetscInt64_FMT
             " nonzeros",
             what, info.kernel, info.stored, info.nonzeros);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices created from a matrix have its parameters, not those of the options without its prefix */
static PetscErrorCode Parameters(Test *t, Record *r)
{
  Mat      A, B, C, D, *S;
  IS       is;
  PetscInt m, M, N, rs;
  MPI_Comm sub;

  PetscFunctionBegin;
  PetscCall(Kernel("slices"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_kernel", "aij"));
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(MatSetOptionsPrefix(A, "opt_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PreallocateLike(t->R, A));
  PetscCall(FillLike(t->R, -1, A));
  PetscCall(HasParameters(t, A, "the matrix itself"));
#define Made(B, what)                     \
  do {                                    \
    PetscCall(HasParameters(t, B, what)); \
    PetscCall(RecordMat(t, r, what, B));  \
    PetscCall(MatDestroy(&(B)));          \
  } while (0)
  PetscCall(MatSizes(A, &m, NULL, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  Made(B, "MatDuplicate");
  PetscCall(MatConvert(A, t->type, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatConvert");
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  Made(C, "MatMatMult");
  PetscCall(MatMatMult(t->R, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C)); /* PETSc creates C as AIJ */
  PetscCall(MatDestroy(&C));
  PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  Made(C, "MatTransposeMatMult");
  PetscCall(MatPtAP(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  Made(C, "MatPtAP");
  PetscCall(MatMatMatMult(A, B, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  Made(C, "MatMatMatMult");
  if (t->size == 1) { /* several ranks: not supported by PETSc */
    PetscCall(MatMatTransposeMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    Made(C, "MatMatTransposeMult");
    PetscCall(MatRARt(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    Made(C, "MatRARt");
  }
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
  Made(B, "MatTranspose");
  PetscCall(MatHermitianTranspose(A, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatHermitianTranspose");
  PetscCall(ISCreateStride(t->comm, m, rs, 1, &is));
  PetscCall(ISSetPermutation(is));
  PetscCall(MatPermute(A, is, is, &B));
  Made(B, "MatPermute");
  PetscCall(MatCreateSubMatrix(A, is, is, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatCreateSubMatrix");
  PetscCall(ISDestroy(&is));
  PetscCallMPI(MPI_Comm_split(t->comm, t->rank % 2, t->rank, &sub));
  PetscCall(MatGetMultiProcBlock(A, sub, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatGetMultiProcBlock");
  PetscCallMPI(MPI_Comm_free(&sub));
  PetscCall(MatCreateRedundantMatrix(A, t->size, MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatCreateRedundantMatrix");
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &is));
  PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_INITIAL_MATRIX, &S));
  PetscCall(HasParameters(t, S[0], "MatCreateSubMatrices"));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(t->comm, S[0], m, MAT_INITIAL_MATRIX, &B));
  Made(B, "MatCreateMPIMatConcatenateSeqMat");
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&is));
  /* with a matrix that has another pattern, of type AIJ or of the type under test */
  for (int own = 0; own < 2; own++) {
    PetscCall(MakeOperand(t, m, m, M, N, own ? t->type : MATAIJ, &D));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(Touch(B));
    PetscCall(MatAXPY(B, 2., D, DIFFERENT_NONZERO_PATTERN));
#if PETSC_VERSION_LT(3, 21, 1)
    PetscCall(MatDestroy(&B)); /* PETSc has given it those of a new matrix */
#else
    Made(B, "MatAXPY");
#endif
    PetscCall(MatDestroy(&D));
  }
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  Made(A, "MatTranspose in place");
#undef Made
  PetscCall(Kernel(NULL));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_kernel"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No other type can be a model for features that only these types have */
#define OURS (NOPERM | NOCUDA)
static const Operation operations[] = {{"bad", Bad, FULL | OURS},
                                       {"arguments", Arguments, FULL | OURS},
                                       {"names", Names, FULL | OURS},
                                       {"info", Info, FULL | OURS},
                                       {"setupafter", SetUpAfter, OURS},
                                       {"threads", Threads, SEQ | ONCE | OURS | ONHOST},
                                       {"smallmemory", SmallMemory, FULL | SOLVE | SEQ | OURS | ONHOST},
                                       {"parameters", Parameters, FULL | SQUARE | BYROW | OURS},
                                       /* the names on a device differ: seqaijcusparsesellp */
                                       {"seqaijtype", SeqAIJType, FULL | SQUARE | OURS | ONHOST},
                                       {"replace", Replace, FULL | SQUARE | BYROW | OURS},
                                       {"single", Single, BYROW | SQUARE | FULL | SOLVE | SEQ | OURS | DEVICE},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  int rc;

  MPI_Init(&argc, &argv);
  rc = Suite(argc, argv, "options", operations, 0);
  if (!rc) rc = Suite(argc, argv, "options, after PetscFinalize() and PetscInitialize()", operations, 0);
  MPI_Finalize();
  return rc;
}
