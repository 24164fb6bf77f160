/*
  Launches of kernels.
*/
#pragma once

#include "memory.cuh"
#include "scalar.cuh"

namespace spmv {

extern __shared__ __align__(16) unsigned char spmv_shared[];

inline unsigned Blocks(int64_t threads, int block)
{
  return (unsigned)((threads + block - 1) / block);
}

// Loads a kernel's code now: where modules are loaded lazily, its first launch would
inline cudaError_t Load(const void *kernel)
{
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}

// Whether the library has code for this device: cudaErrorNotSupported where not
cudaError_t Supported();

/*
  A product's kernel, chosen at set-up, so that a product is one call. Where device and driver can, it is launched early ("programmatic
  dependent launch"): its threads are there, but wait, when the kernel before it in the stream ends. That takes a fifth off the host's
  time for a launch and hides most of the device's. A captured product keeps it.
*/
class Kernel {
public:
  cudaError_t Choose(const void *function) // and load it
  {
    cudaFuncAttributes attributes;
    int                driver;
    code = function;
    SPMV_TRY(cudaFuncGetAttributes(&attributes, code));
    SPMV_TRY(cudaDriverGetVersion(&driver));
    early = driver >= 12030 && attributes.ptxVersion >= 90; // graphs know it since 12.3; code for older devices does not wait
    return cudaSuccess;
  }

  template <class Args>
  cudaError_t Launch(unsigned grid, unsigned block, const Args &g, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream,
                     size_t shared = 0, bool last = false) const // last: not early, but when all before it is done
  {
    void *args[] = {(void *)&g, &conjugate, &x, &z, &y};
#if CUDART_VERSION >= 12030
    if (early && !last) {
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
      return cudaLaunchKernelExC(&config, code, args);
    }
#endif
    return cudaLaunchKernel(code, dim3(grid), dim3(block), args, shared, stream);
  }

private:
  const void *code  = nullptr;
  bool        early = false;
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
