/*
  Launches of kernels, and the contract of early ones.
*/
#pragma once

#include "memory.cuh"
#include "scalar.cuh"
#include "spmvcuda.h"

namespace spmv {

extern __shared__ __align__(16) unsigned char spmv_shared[];

inline unsigned Blocks(int64_t threads, int block)
{
  return (unsigned)((threads + block - 1) / block);
}

// Loads a kernel's code now: where modules are loaded lazily, its first launch would do that
inline cudaError_t Load(const void *kernel)
{
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}

// Whether the library has code for this device: cudaErrorNotSupported if not
cudaError_t Supported();

// y = A x, or y = z + A x or z - A x where z is not NULL. z may be y
struct Operands {
  const Scalar *x, *z;
  Scalar       *y;

  Operands From(int64_t column, const struct Columns &) const; // of several, from this one on
};

// Further columns of x, z and y, each so many numbers after the one before. z may be y where ldz is ldy
struct Columns {
  int64_t ldx, ldz, ldy, count;
};
inline Operands Operands::From(int64_t column, const Columns &c) const
{
  return {x + column * c.ldx, z ? z + column * c.ldz : nullptr, y + column * c.ldy};
}

// What a product writes to y[r], where d is the sum over the row
__device__ __forceinline__ Scalar Result(SpMVCudaForm form, const Scalar *z, int64_t r, Scalar d)
{
  return !z ? d : form == SPMVCUDA_RESIDUAL ? Num::sub(z[r], d) : Num::add(z[r], d);
}

enum class Begin {
  EARLY, // as soon as all thread blocks of the previous kernel have called LetNextBegin() or have ended
  AFTER  // when all previous work in the stream is done
};

/*
  A product's kernel, chosen at set-up, so that a product is a single call. Where device and driver support it, it is launched early ("programmatic dependent
  launch"): its threads exist, and wait, when the previous kernel of the stream ends. That takes a fifth off the host's time for a launch and hides most of
  the device's. A product that is captured in a graph keeps it.

  The contract of early launches:
  - A kernel that is launched by Kernel calls AwaitPrevious() before it reads or writes anything that earlier work in the stream writes or reads.
  - Exempt are the kernels of MultFused() and, among diagonals, of MultInterior(). MultInterior() is launched with Begin::AFTER. MultFused() with Begin::EARLY
    may only be launched directly after the exchange of a halo: that kernel has awaited whatever wrote x, and writes nothing but the halo, which the fused
    kernel awaits. One warp of the fused kernel awaits the exchange in any case, so that when all of it is done, the exchange is, too.
  - LetNextBegin() is called by the exchange and by the fused kernels, and by those of the Krylov methods, which have awaited everything before: a kernel that
    follows any other one begins when the other has ended.
  - CUDA guarantees visibility to threads that call AwaitPrevious(). Most warps of a fused kernel do not: that they see x as it was before the exchange has been
    tested on Hopper (tests/cuda: "x as it is"). -mat_spmv_halo_early 0 does without.
*/
class Kernel {
public:
  // Loaded by its first launch: a matrix uses one or two of the variants of its kernel, and loading takes longer than many products
  void Choose(const void *function)
  {
    code   = function;
    loaded = false;
  }
  cudaError_t Load()
  {
    cudaFuncAttributes attributes;
    int                driver;
    if (loaded) return cudaSuccess;
    SPMV_TRY(cudaFuncGetAttributes(&attributes, code));
    SPMV_TRY(cudaDriverGetVersion(&driver));
    early  = driver >= 12030 && attributes.ptxVersion >= 90; // graphs know it since 12.3; code for older devices does not wait
    loaded = true;
    return cudaSuccess;
  }

  // Of a kernel with the arguments (args, form, x, z, y); form of the type that the kernel has there
  template <class Args, class Form>
  cudaError_t Launch(unsigned grid, unsigned block, const Args &args, Form form, Operands v, cudaStream_t stream, size_t shared = 0, Begin begin = Begin::EARLY)
  {
    SPMV_TRY(Load());
    void *arguments[] = {(void *)&args, &form, &v.x, &v.z, &v.y};
#if CUDART_VERSION >= 12030
    if (early && begin == Begin::EARLY) {
      cudaLaunchAttribute attribute                        = {};
      cudaLaunchConfig_t  config                           = {};
      attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      config.gridDim                                       = grid;
      config.blockDim                                      = block;
      config.dynamicSmemBytes                              = shared;
      config.stream                                        = stream;
      config.attrs                                         = &attribute;
      config.numAttrs                                      = 1;
      return cudaLaunchKernelExC(&config, code, arguments);
    }
#endif
    return cudaLaunchKernel(code, dim3(grid), dim3(block), arguments, shared, stream);
  }

private:
  const void *code  = nullptr;
  bool        early = false, loaded = false;
};

// Zero threads are no launch at all: an empty grid is an error
#define SPMV_LAUNCH(threads, block, stream, kernel, ...)                       \
  do {                                                                         \
    if ((threads) > 0) {                                                       \
      spmv::ForgetErrors();                                                    \
      kernel<<<spmv::Blocks(threads, block), block, 0, stream>>>(__VA_ARGS__); \
      SPMV_TRY(cudaGetLastError());                                            \
    }                                                                          \
  } while (0)

} // namespace spmv
