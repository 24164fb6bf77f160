/*
  Prints one line for each of many matrices with many options. If the lines of two builds of the library are equal, the
  builds have the same plans and statistics, and their products have the same bits:

    golden -dll_append OLD/libpetscspmv.so >old; golden -dll_append NEW/libpetscspmv.so >new; diff old new

  A line holds the matrix, the type, its options, the numbers that MatView() prints, and for each rank what
  PetscSpMVGetInfo() returns and hashes of the bits of the results of eight products, before and after the values
  change. tests/compare runs this with two libraries. The program is not linked with either.

  Options: -types sellp,evchyb; -cases a,b (of matrices.c), -files a.mtx,b.mtx, -specs fem27:8:3,... (the generators of
  bench), each "none" for none; -shapes N (random matrices); -only TEXT (settings that contain TEXT);
  -bytes 0 (the bytes of the stored matrix, which include the size of a struct of the library, are not compared).
*/
#include "lib/atonce.h"
#include "shapes.h"
#include <petscspmv.h>
#include "../bench/lib/matrices.h"

typedef struct {
  PetscErrorCode (*info)(Mat, PetscSpMVInfo *); /* the library's function, found at run time */
  const char *only;                             /* settings that contain this, or NULL */
  PetscBool   bytes;                            /* compare the bytes stored */
  PetscInt    lines;
} Golden;

/* Settings of a type; a name without - means -mat_spmv_<name> or -mat_<type>_<name>. Each is combined with all kernels,
   and with "compress" 1 and 0 */
static const char *const settings_sellp[]  = {"",
                                              "node_size 1",
                                              "node_size 2",
                                              "node_size 3",
                                              "sigma 64 threads_per_row 2",
                                              "sigma 100000 threads_per_row 4",
                                              "threads_per_row 1",
                                              "threads_per_row 8 node_size 1",
                                              "threads_per_row 32",
                                              "sigma 1",
                                              "sigma 256",
                                              "single 1",
                                              NULL};
static const char *const settings_evchyb[] = {"",
                                              "node_size 1",
                                              "node_size 2",
                                              "node_size 3",
                                              "ell_limit 0",
                                              "ell_limit 4",
                                              "ell_limit 16",
                                              "ell_limit 100000",
                                              "single 1",
                                              NULL};
static const char *const kernels[]         = {"auto", "slices", "csr", "aij", "paper", NULL};
/* Ways to exchange halos on several ranks, only with the default setting */
static const char *const halos[] = {"-mat_spmv_halo_rows 1", "-mat_spmv_halo_rows 0", "-mat_spmv_halo host",
                                    "-mat_spmv_halo petsc", NULL};
static const char *const specs[] = {"stencil7:20",
                                    "bratu:16",
                                    "fem27:8:3",
                                    "fem27:9:2:0.9",
                                    "stencil9:80",
                                    "permuted7:16",
                                    "tridiag:20000",
                                    "powerlaw:8000:3.1:1.6:900:1",
                                    "google:6000",
                                    "econ:8000",
                                    "dc1:8000",
                                    "random:900",
                                    "tsopf:1500",
                                    "lengths:4000:20:1:50:300",
                                    "dense:200",
                                    "arrow:5000",
                                    NULL};

static PetscErrorCode GoldenOptions(const char *type, const char *setting, PetscBool set)
{
  char **word, name[64];
  int    n;

  PetscFunctionBegin;
  PetscCall(PetscStrToArray(setting, ' ', &n, &word));
  for (int k = 0; k + 1 < n; k += 2) {
    const PetscBool common = (PetscBool)(!strcmp(word[k], "node_size") || !strcmp(word[k], "compress") ||
                                         (!strcmp(word[k], "kernel") && strcmp(type, MATBATCH)));

    PetscCall(word[k][0] == '-' ? PetscStrncpy(name, word[k], sizeof(name))
                                : PetscSNPrintf(name, sizeof(name), "-mat_%s_%s", common ? "spmv" : type, word[k]));
    PetscCall(set ? PetscOptionsSetValue(NULL, name, word[k + 1]) : PetscOptionsClearValue(NULL, name));
  }
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FNV-1a, over the bytes of this rank's part */
static PetscErrorCode HashVec(Vec v, uint64_t *hash)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayRead(v, &a));
  for (size_t k = 0; k < (size_t)n * sizeof(*a); k++)
    *hash = (*hash ^ ((const unsigned char *)a)[k]) * 0x100000001B3ULL;
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GoldenHash(Mat A, uint64_t hash[8])
{
  Vec x, y, z, w;

  PetscFunctionBegin;
  for (int k = 0; k < 8; k++) hash[k] = 0xCBF29CE484222325ULL;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(VecFill(x, 21));
  PetscCall(VecFill(y, 22));
  PetscCall(VecFill(z, 23));
  PetscCall(MatMult(A, x, z));
  PetscCall(HashVec(z, &hash[0]));
  PetscCall(MatMultAdd(A, x, y, z));
  PetscCall(HashVec(z, &hash[1]));
  PetscCall(MatMultAdd(A, x, z, z));
  PetscCall(HashVec(z, &hash[2]));
  PetscCall(MatMultTranspose(A, y, w));
  PetscCall(HashVec(w, &hash[3]));
  PetscCall(MatMultTransposeAdd(A, y, x, w));
  PetscCall(HashVec(w, &hash[4]));
  PetscCall(MatMultTransposeAdd(A, y, w, w));
  PetscCall(HashVec(w, &hash[5]));
  PetscCall(MatMultHermitianTranspose(A, y, w));
  PetscCall(HashVec(w, &hash[6]));
  PetscCall(MatMultHermitianTransposeAdd(A, y, x, w));
  PetscCall(HashVec(w, &hash[7]));
  PetscCall(Destroy(&x, &y, &z, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The numbers that MatView() prints, without the text, and without the bytes if these are not compared */
static PetscErrorCode ViewNumbers(Mat A, PetscBool bytes, char numbers[], size_t len)
{
  size_t begin = 0, n = 0; /* begin: of the current number */
  char  *text;

  PetscFunctionBegin;
  PetscCall(ViewText((PetscObject)A, PETSC_VIEWER_ASCII_INFO_DETAIL, &text));
  for (const char *c = text; *c && n + 2 < len; c++) {
    const PetscBool first = (PetscBool)(c == text || !isalnum((unsigned char)c[-1])); /* not the 2 of Mat2 */

    if (!isdigit((unsigned char)*c) || !(first || isdigit((unsigned char)c[-1]) || c[-1] == '.')) continue;
    if (first && (c == text || c[-1] != '.')) {
      begin = n;
      if (n) numbers[n++] = ' ';
    }
    if (first && c > text && c[-1] == '.' && n) numbers[n++] = '.';
    numbers[n++] = *c;
    if (!bytes && !strncmp(c + 1, " bytes", 6)) n = begin;
  }
  numbers[n] = 0;
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GoldenPrint(Golden *g, Mat A, const char *name, const char *type, const char *setting,
                                  const char *info, const uint64_t hash[16])
{
  char    numbers[2000] = "";
  MatType is;

  PetscFunctionBegin;
  PetscCall(ViewNumbers(A, g->bytes, numbers, sizeof(numbers)));
  PetscCall(MatGetType(A, &is));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s [%s] %s view %s", name, type, setting, is, numbers));
  PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, " info %s bits", info));
  for (int k = 0; k < 16; k++)
    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, " %08llx",
                                      (unsigned long long)((hash[k] ^ hash[k] >> 32) & 0xFFFFFFFF)));
  PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, PETSC_STDOUT));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  g->lines++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prints the line of R with a setting */
static PetscErrorCode Line(Golden *g, const char *name, Mat R, const char *type, const char *setting)
{
  Mat           A;
  PetscSpMVInfo info;
  uint64_t      hash[16];
  char          text[256];

  PetscFunctionBegin;
  if (g->only && !strstr(setting, g->only)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GoldenOptions(type, setting, PETSC_TRUE));
  PetscCall(CreateLike(R, type, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PreallocateLike(R, A));
  PetscCall(FillLike(R, -1, A));
  PetscCall(GoldenHash(A, hash));
  PetscCall((*g->info)(A, &info));
  PetscCall(PetscSNPrintf(text, sizeof(text),
                          "%" PetscInt64_FMT " %" PetscInt64_FMT " %" PetscInt64_FMT " %" PetscInt64_FMT
                          " %" PetscInt64_FMT " %" PetscInt64_FMT " %" PetscInt64_FMT " %" PetscInt_FMT " %s",
                          info.nonzeros, info.formatted, info.stored, info.slices, info.long_rows, info.long_stored,
                          g->bytes ? info.bytes : 0, info.node, info.kernel ? info.kernel : "none"));
  PetscCall(FillLike(R, 51, A));
  PetscCall(GoldenHash(A, hash + 8));
  PetscCall(GoldenPrint(g, A, name, type, setting, text, hash));
  PetscCall(MatDestroy(&A));
  PetscCall(GoldenOptions(type, setting, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All lines of a matrix and a type */
static PetscErrorCode Lines(Golden *g, const char *name, Mat R, const char *type)
{
  const char *const *setting;
  PetscMPIInt        size;
  PetscBool          sellp;
  char               text[256];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscStrcmp(type, MATSELLP, &sellp));
  setting = sellp ? settings_sellp : settings_evchyb;
  for (; *setting; setting++) {
    for (const char *const *kernel = kernels; *kernel; kernel++) {
      for (int compress = 1; compress >= 0; compress--) {
        PetscCall(PetscSNPrintf(text, sizeof(text), "kernel %s compress %d%s%s", *kernel, compress,
                                (*setting)[0] ? " " : "", *setting));
        PetscCall(Line(g, name, R, type, text));
        for (const char *const *halo = halos; size > 1 && !(*setting)[0] && compress && *halo; halo++) {
          PetscCall(PetscSNPrintf(text, sizeof(text), "kernel %s %s", *kernel, *halo));
          PetscCall(Line(g, name, R, type, text));
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Random matrices, each with twelve random settings */
static PetscErrorCode Shapes(Golden *g, PetscInt count, PetscInt ntypes, char *types[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < count; k++) {
    Shape s;
    Mat   R;
    char  name[32], text[256];

    seed = 88172645463325252u ^ (0x9E3779B97F4A7C15u * (uint64_t)(k + 1));
    for (int q = 0; q < 8; q++) (void)draw(2);
    PetscCall(ShapeCreate(PETSC_COMM_WORLD, &s));
    if (s.values == VALUES_NONFINITE) s.values = VALUES_RANDOM; /* the bits of a NaN are not defined */
    PetscCall(ShapeBuild(&s, MATAIJ, NULL, BUILD_EXACT, &R));
    PetscCall(PetscSNPrintf(name, sizeof(name), "shape%" PetscInt_FMT, k + 1));
    for (PetscInt t = 0; t < ntypes; t++) {
      const PetscBool sellp = (PetscBool)!strcmp(types[t], MATSELLP);

      for (int q = 0; q < 12; q++) {
        const char *setting = sellp ? settings_sellp[draw(PETSC_STATIC_ARRAY_LENGTH(settings_sellp) - 1)]
                                    : settings_evchyb[draw(PETSC_STATIC_ARRAY_LENGTH(settings_evchyb) - 1)];
        const char *kernel  = Chance(30) ? "auto" : kernels[draw(PETSC_STATIC_ARRAY_LENGTH(kernels) - 1)];

        PetscCall(PetscSNPrintf(text, sizeof(text), "kernel %s compress %d%s%s%s", kernel, Chance(70),
                                setting[0] ? " " : "", setting,
                                s.size > 1 && Chance(30) ? " -mat_spmv_halo_rows 1" : ""));
        PetscCall(Line(g, name, R, types[t], text));
      }
    }
    PetscCall(MatDestroy(&R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The names that an option lists, or the default names */
static PetscErrorCode Names(const char *option, const char *const standard[], PetscInt *n, char *name[])
{
  PetscBool set, none;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, name, n, &set));
  if (!set) {
    for (*n = 0; standard && standard[*n]; (*n)++) PetscCall(PetscStrallocpy(standard[*n], &name[*n]));
  }
  if (*n != 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(name[0], "none", &none));
  if (none) {
    PetscCall(PetscFree(name[0]));
    *n = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Golden *g)
{
  const char *const types[]   = {MATSELLP, MATEVCHYB, NULL};
  const char       *names[64] = {NULL};
  char             *list[4][64];
  PetscInt          n[4] = {64, 64, 64, 64}, shapes = 150;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shapes", &shapes, NULL));
  for (int k = 0; cases[k].name; k++) names[k] = cases[k].name;
  PetscCall(Names("-types", types, &n[0], list[0]));
  PetscCall(Names("-cases", names, &n[1], list[1]));
  PetscCall(Names("-files", NULL, &n[2], list[2]));
  PetscCall(Names("-specs", specs, &n[3], list[3]));
  for (int kind = 1; kind < 4; kind++) {
    for (PetscInt k = 0; k < n[kind]; k++) {
      const char *name = list[kind][k], *origin;
      PetscBool   same;
      Mat         R;

      if (kind == 1) {
        const Case *c = cases;

        for (same = PETSC_FALSE; c->name && !same; c++) PetscCall(PetscStrcmp(c->name, name, &same));
        PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_USER, "no case is called %s", name);
        PetscCall(MakeRows(PETSC_COMM_WORLD, c - 1, &R));
      } else
        PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, &R, &origin));
      for (PetscInt t = 0; t < n[0]; t++)
        PetscCall(Lines(g, strrchr(name, '/') ? strrchr(name, '/') + 1 : name, R, list[0][t]));
      PetscCall(MatDestroy(&R));
    }
  }
  PetscCall(Shapes(g, shapes, n[0], list[0]));
  for (int kind = 0; kind < 4; kind++) {
    for (PetscInt k = 0; k < n[kind]; k++) PetscCall(PetscFree(list[kind][k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A function of the library that -dll_append has loaded */
static PetscErrorCode Find(const char *name, void **function)
{
  PetscFunctionBegin;
  PetscCall(PetscDLLibrarySym(PETSC_COMM_WORLD, &PetscDLLibrariesLoaded, NULL, name, function));
  PetscCheck(*function, PETSC_COMM_WORLD, PETSC_ERR_USER, "no %s(): is the library loaded by -dll_append?", name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Golden    g;
  char      only[64] = "";
  PetscBool set;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(SetUpAtOnce());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), &set));
  PetscCall(PetscMemzero(&g, sizeof(g)));
  if (set) g.only = only;
  g.bytes = PETSC_TRUE;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-bytes", &g.bytes, NULL));
  PetscCall(Find("PetscSpMVGetInfo", (void **)&g.info));
  PetscCall(Run(&g));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "golden: %" PetscInt_FMT " lines\n", g.lines));
  PetscCall(PetscFinalize());
  return 0;
}
