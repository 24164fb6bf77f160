/*
  Kernel launches, and the contract of early launches.
*/
#pragma once

#include "memory.cuh"
#include "scalar.cuh"
#include "core/cuda/spmvcuda.h"

namespace spmv {

extern __shared__ __align__(16) unsigned char spmv_shared[];

inline unsigned Blocks(int64_t threads, int block)
{
  return (unsigned)((threads + block - 1) / block);
}

// Loads a kernel's code now. With lazy loading of modules, its first launch would load it otherwise
inline cudaError_t Load(const void *kernel)
{
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}

// Returns cudaErrorNotSupported if the library has no code for this device
cudaError_t Supported();

using Columns = SpMVCudaColumns;

// y = A x, or y = z + A x or y = z - A x if z is not NULL. z may be y
struct Operands {
  const Scalar *x, *z;
  Scalar       *y;

  Operands From(int64_t column, const Columns &) const; // the operands for the columns from this one on
};

// A product's arrays, or copies of them if one begins between two numbers
class AlignedArrays {
public:
  // Calls product(operands). rows, columns: of the matrix
  template <class F>
  cudaError_t Call(int rows, int columns, const PetscScalar *x, const PetscScalar *z, PetscScalar *y,
                   cudaStream_t stream, F product)
  {
    if (IsAligned(x) && IsAligned(z) && IsAligned(y))
      return product(Operands{(const Scalar *)x, (const Scalar *)z, (Scalar *)y});
    if (!copy_x) SPMV_TRY(copy_x.Alloc((size_t)columns));
    if (!copy_y) SPMV_TRY(copy_y.Alloc((size_t)rows));
    SPMV_TRY(cudaMemcpyAsync(copy_x, x, copy_x.Bytes(), cudaMemcpyDeviceToDevice, stream));
    if (z) SPMV_TRY(cudaMemcpyAsync(copy_y, z, copy_y.Bytes(), cudaMemcpyDeviceToDevice, stream));
    SPMV_TRY(product(Operands{copy_x, z ? (const Scalar *)copy_y : nullptr, copy_y}));
    return cudaMemcpyAsync(y, copy_y, copy_y.Bytes(), cudaMemcpyDeviceToDevice, stream);
  }

private:
  Array<Scalar> copy_x, copy_y;
};

inline Operands Operands::From(int64_t column, const Columns &c) const
{
  return {x + column * c.ldx, z ? z + column * c.ldz : nullptr, y + column * c.ldy};
}

// An entry of the matrix as a product of this form multiplies it
__device__ __forceinline__ Scalar Conjugated(SpMVCudaForm form, Scalar a)
{
  return form == SPMVCUDA_CONJUGATE ? Num::conj(a) : a;
}

// The value that a product writes to y[r]; d is the sum over the row
__device__ __forceinline__ Scalar Result(SpMVCudaForm form, const Scalar *z, int64_t r, Scalar d)
{
  return !z ? d : form == SPMVCUDA_RESIDUAL ? Num::sub(z[r], d) : Num::add(z[r], d);
}

// An entry of x. With late waits, the compiler must not move the load up
__device__ __forceinline__ Scalar LoadX(Waited, const Scalar *x)
{
  return Num::ordered(x);
}

/*
  A product's kernel, chosen at set-up, so that a product is a single call. If the device and the driver support it, the
  kernel is launched early ("programmatic dependent launch"): its threads are already resident and waiting when the
  previous kernel of the stream ends. This saves a fifth of the host's launch time and hides most of the device's. It
  also works for a product that is captured in a graph.

  The contract of early launches:
  - A kernel that is launched by Kernel reads and writes nothing that earlier work in the stream writes or reads before
    it has waited: LoadX() requires a Waited. A product whose matrix is settled, because another product has waited for
    its last fill, may read the matrix before, with LoadOrdered() or in assembly: the compiler moves __ldg() up. These
    loads overlap with the end of the previous kernel.
  - LetNextBegin() is called by the kernels of an exchange and of the Krylov methods, which have waited for all previous
    work, and by products with small settled matrices, before they wait. After any other kernel, the next kernel begins
    when that kernel has ended.
  - Recording an event without timing, as StreamOrder does, does not separate two kernels (on an H200 the next one began
    early in 10 of 10 launches; after a default event or a memset in 0 of 10). Waiting for another stream's event does.
    A kernel that is launched without the attribute begins when all kernels before it have ended, also those that were
    launched early (tests/cuda/chain.cu).
*/
class Kernel {
public:
  // The kernel is loaded by its first launch: a matrix uses only one or two of the variants of its kernel, and loading
  // one takes longer than many products
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
    // graphs support it since CUDA 12.3; code for older devices does not wait
    early  = driver >= 12030 && attributes.ptxVersion >= 90;
    loaded = true;
    return cudaSuccess;
  }

  // Launches a kernel with the arguments (args, form, x, z, y). Form must be the type of the kernel's second argument
  template <class Args, class Form>
  cudaError_t Launch(unsigned grid, unsigned block, const Args &args, Form form, Operands v, cudaStream_t stream)
  {
    return LaunchWith(grid, block, &args, form, v, stream, 0);
  }
  // The same with the address of args
  template <class Form>
  cudaError_t LaunchWith(unsigned grid, unsigned block, const void *args, Form form, Operands v, cudaStream_t stream,
                         size_t shared)
  {
    SPMV_TRY(Load());
    void *arguments[] = {const_cast<void *>(args), &form, &v.x, &v.z, &v.y};
    if (early) {
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
    return cudaLaunchKernel(code, dim3(grid), dim3(block), arguments, shared, stream);
  }

private:
  const void *code  = nullptr;
  bool        early = false, loaded = false;
};

// With zero threads, nothing is launched, because an empty grid is an error
#define SPMV_LAUNCH(threads, block, stream, kernel, ...)                       \
  do {                                                                         \
    if ((threads) > 0) {                                                       \
      spmv::ForgetErrors();                                                    \
      kernel<<<spmv::Blocks(threads, block), block, 0, stream>>>(__VA_ARGS__); \
      SPMV_TRY(cudaGetLastError());                                            \
    }                                                                          \
  } while (0)

} // namespace spmv
