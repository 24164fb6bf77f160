/*
   The products of a newer cuSPARSE than the one that PETSc uses, with both libraries in one process: SpMVOp, whose
   kernels for z = alpha A x + beta y are included since CUDA 13.2, and CSR's two algorithms. The newer cuSPARSE is in
   the same folder as this library, which bench/products/peers builds with the newer header.
*/
#define CUSPARSE_ENABLE_EXPERIMENTAL_API
#include <cuda_runtime.h>
#include <cusparse.h>
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
#include <string>
#include "peer.h"

namespace {

#define FUNCTIONS(F)            \
  F(cusparseCreate)             \
  F(cusparseCreateCsr)          \
  F(cusparseCreateDnVec)        \
  F(cusparseDnVecSetValues)     \
  F(cusparseDestroySpMat)       \
  F(cusparseDestroyDnVec)       \
  F(cusparseSpMV_bufferSize)    \
  F(cusparseSpMV_preprocess)    \
  F(cusparseSpMV)               \
  F(cusparseSpMVOp_bufferSize)  \
  F(cusparseSpMVOp_createDescr) \
  F(cusparseSpMVOp_createPlan)  \
  F(cusparseSpMVOp)             \
  F(cusparseSpMVOp_destroyPlan) \
  F(cusparseSpMVOp_destroyDescr)

struct Library {
#define MEMBER(name) decltype(&::name) name;
  FUNCTIONS(MEMBER)
  cusparseHandle_t handle;
} lib;

/* The library is opened by its path: by its name, dlopen() would return the one that is already loaded */
bool Open(char *message)
{
  static bool open = false;
  Dl_info     here;
  void       *so;

  if (open) return true;
  if (!dladdr((void *)&Open, &here)) return false;
  std::string path = here.dli_fname;
  path             = path.substr(0, path.rfind('/') + 1) + "libcusparse.so.12";
  so               = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!so) return snprintf(message, 256, "%s", dlerror()), false;
#define LOOK_UP(name) \
  if (!(lib.name = (decltype(lib.name))dlsym(so, #name))) return snprintf(message, 256, "%s", dlerror()), false;
  FUNCTIONS(LOOK_UP)
  const int status = (int)lib.cusparseCreate(&lib.handle);
  if (status) return snprintf(message, 256, "status %d of cusparseCreate()", status), false;
  return open = true;
}

enum { SPMVOP1, SPMVOP2, CSR1, CSR2 };

struct Product {
  int                   variant;
  void                 *i, *j, *a, *x, *y, *buffer;
  cusparseSpMatDescr_t  A;
  cusparseDnVecDescr_t  vx, vy;
  cusparseSpMVOpDescr_t descr;
  cusparseSpMVOpPlan_t  plan;

  bool Op() const
  {
    return variant < CSR1;
  }
  cusparseSpMVAlg_t Alg() const
  {
    return variant == CSR1 ? CUSPARSE_SPMV_CSR_ALG1 : CUSPARSE_SPMV_CSR_ALG2;
  }
};

const double                  one = 1.0, zero = 0.0;
constexpr cusparseOperation_t N = CUSPARSE_OPERATION_NON_TRANSPOSE;

bool Copy(void **device, const void *host, size_t bytes)
{
  if (cudaMalloc(device, bytes + 1) != cudaSuccess) return false;
  return (host ? cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice) : cudaMemset(*device, 0, bytes)) ==
         cudaSuccess;
}

/* Reports the status and the name of the first call that fails */
#define TRY(call)                                                                       \
  do {                                                                                  \
    const int status = (int)(call);                                                     \
    if (status) return snprintf(message, 256, "status %d of %s", status, #call), false; \
  } while (0)

bool SetUp(Product *p, int m, int n, const int *i, const int *j, const double *a, char *message)
{
  const cusparseSpMVOpAlg_t alg   = p->variant == SPMVOP1 ? CUSPARSE_SPMVOP_ALG1 : CUSPARSE_SPMVOP_ALG2;
  size_t                    bytes = 0;

  TRY(!Copy(&p->i, i, ((size_t)m + 1) * sizeof(int)));
  TRY(!Copy(&p->j, j, (size_t)i[m] * sizeof(int)));
  TRY(!Copy(&p->a, a, (size_t)i[m] * sizeof(double)));
  TRY(!Copy(&p->x, NULL, (size_t)n * sizeof(double)));
  TRY(!Copy(&p->y, NULL, (size_t)m * sizeof(double)));
  TRY(lib.cusparseCreateCsr(&p->A, m, n, i[m], p->i, p->j, p->a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  TRY(lib.cusparseCreateDnVec(&p->vx, n, p->x, CUDA_R_64F));
  TRY(lib.cusparseCreateDnVec(&p->vy, m, p->y, CUDA_R_64F));
  if (p->Op()) {
    TRY(lib.cusparseSpMVOp_bufferSize(lib.handle, N, p->A, p->vx, p->vy, p->vy, CUDA_R_64F, alg, &bytes));
    TRY(!Copy(&p->buffer, NULL, bytes));
    TRY(lib.cusparseSpMVOp_createDescr(lib.handle, &p->descr, N, p->A, p->vx, p->vy, p->vy, CUDA_R_64F, alg,
                                       p->buffer));
    TRY(lib.cusparseSpMVOp_createPlan(lib.handle, p->descr, &p->plan, NULL, 0));
  } else {
    TRY(lib.cusparseSpMV_bufferSize(lib.handle, N, &one, p->A, p->vx, &zero, p->vy, CUDA_R_64F, p->Alg(), &bytes));
    TRY(!Copy(&p->buffer, NULL, bytes));
    TRY(lib.cusparseSpMV_preprocess(lib.handle, N, &one, p->A, p->vx, &zero, p->vy, CUDA_R_64F, p->Alg(), p->buffer));
  }
  return true;
}

void Destroy(void *product)
{
  Product *p = (Product *)product;

  (void)cudaDeviceSynchronize();
  if (p->plan) (void)lib.cusparseSpMVOp_destroyPlan(p->plan);
  if (p->descr) (void)lib.cusparseSpMVOp_destroyDescr(p->descr);
  if (p->A) (void)lib.cusparseDestroySpMat(p->A);
  if (p->vx) (void)lib.cusparseDestroyDnVec(p->vx);
  if (p->vy) (void)lib.cusparseDestroyDnVec(p->vy);
  for (void *array : {p->i, p->j, p->a, p->x, p->y, p->buffer}) (void)cudaFree(array);
  delete p;
}

void *Create(int variant, int m, int n, const int i[], const int j[], const double a[], char message[256])
{
  if (!Open(message)) return NULL;
  Product *p = new Product();
  p->variant = variant;
  if (SetUp(p, m, n, i, j, a, message)) return p;
  Destroy(p);
  return NULL;
}

int Mult(void *product, const double x[], double y[])
{
  Product *p = (Product *)product;

  if (lib.cusparseDnVecSetValues(p->vx, (void *)x) || lib.cusparseDnVecSetValues(p->vy, y)) return 1;
  if (p->Op()) return (int)lib.cusparseSpMVOp(lib.handle, p->plan, &one, &zero, p->vx, p->vy, p->vy);
  return (int)lib.cusparseSpMV(lib.handle, N, &one, p->A, p->vx, &zero, p->vy, CUDA_R_64F, p->Alg(), p->buffer);
}

} // namespace

extern "C" const Peer *PeerGet(void)
{
  static const Peer peer = {"cusparse-" PEER_VERSION, {"spmvop1", "spmvop2", "csr1", "csr2"}, Create, Mult, Destroy};

  return &peer;
}
