/*
  Prints one line for each of many matrices with many options. If the lines of two builds of the library are equal, the
  builds have the same plans and statistics, and their products have the same bits:

    golden -dll_append OLD/libpetscspmv.so >old; golden -dll_append NEW/libpetscspmv.so >new; diff old new

  A line holds the matrix, the type, its options, the numbers that MatView() prints, and for each rank what
  PetscSpMVGetInfo() returns and hashes of the bits of the results of eight products, before and after the values
  change. tests/compare runs this with two libraries. The program is not linked with either.

  Options: -types sellp,evchyb; -matrices a,b (names of matrices.c, generators of bench such as fem27:8:3, and files, or
  "cases" and "specs" for the lists of the first two); -shapes N (random matrices); -only TEXT (settings that contain TEXT);
  -bytes 0 (the bytes of the stored matrix, which include the size of a struct of the library, are not compared).
*/
#include "lib/atonce.h"
#include "record.h"
#include "shapes.h"
#include <petscspmv.h>
#include "../bench/lib/matrices.h"
#include "../bench/lib/names.h"

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
                                    "tridiag:20000",
                                    "powerlaw:8000:3.1:1.6:900:1",
                                    "google:6000",
                                    "econ:8000",
                                    "dc1:8000",
                                    "random:900",
                                    "tsopf:1500",
                                    "lengths:4000:20:1:50:300",
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
  Vec v[2], w[2]; /* right and left: what is multiplied or added, and results */

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &v[0], &v[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDuplicate(v[k], &w[k]));
    PetscCall(VecFill(v[k], 21 + k));
    PetscCall(VecFill(w[k], 23));
  }
  for (int k = 0; k < 8; k++) { /* each operation alone, with a vector, and into that vector */
    const Op  op = (Op)(k / 3);
    const int to = op == PLAIN;

    hash[k] = 0xCBF29CE484222325ULL;
    PetscCall(MatOpMult(A, op, v[!to], k % 3 == 0 ? NULL : k % 3 == 1 ? v[to] : w[to], w[to]));
    PetscCall(HashVec(w[to], &hash[k]));
  }
  PetscCall(Destroy(&v[0], &v[1], &w[0], &w[1]));
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

/* A case of matrices.c, or what bench knows by this name */
static PetscErrorCode Lookup(const char *name, Mat *R)
{
  const Case *c = cases;
  const char *origin;

  PetscFunctionBegin;
  while (c->name && strcmp(c->name, name)) c++;
  if (c->name)
    PetscCall(MakeRows(PETSC_COMM_WORLD, c, R));
  else
    PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, R, &origin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(Golden *g)
{
  const char *names[128];
  char       *types[8], *given[64];
  PetscInt    ntypes, ngiven, n = 0, shapes = 150;
  Mat         R;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shapes", &shapes, NULL));
  PetscCall(GetNames("-types", MATSELLP "," MATEVCHYB, 8, &ntypes, types));
  PetscCall(GetNames("-matrices", "cases,specs", 64, &ngiven, given));
  for (PetscInt k = 0; k < ngiven; k++) {
    const PetscBool all = (PetscBool)!strcmp(given[k], "cases"), generated = (PetscBool)!strcmp(given[k], "specs");

    for (int c = 0; all && cases[c].name; c++) names[n++] = cases[c].name;
    for (int c = 0; generated && specs[c]; c++) names[n++] = specs[c];
    if (!all && !generated) names[n++] = given[k];
  }
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Lookup(names[k], &R));
    for (PetscInt t = 0; t < ntypes; t++)
      PetscCall(Lines(g, strrchr(names[k], '/') ? strrchr(names[k], '/') + 1 : names[k], R, types[t]));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(Shapes(g, shapes, ntypes, types));
  PetscCall(FreeNames(ntypes, types));
  PetscCall(FreeNames(ngiven, given));
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
