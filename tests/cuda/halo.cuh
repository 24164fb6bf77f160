/*
  Shared by the tests of the halo exchange: the core's exchange, patterns, random numbers that all ranks know, arrays on
  the device, and checks.
*/
#pragma once

#include "mat/impls/spmv/cuda/halo.h"
#include <algorithm>
#include <functional>
#include <vector>

static MPI_Comm    comm;
static PetscMPIInt rank_, size_;
static int         passed, failed, skipped;

// The core's exchange of a halo, with the errors and the halos without an exchange of SpMVHalo
struct Exchange {
  SpMVHalo     halo;
  SpMVCudaHalo core  = nullptr; // NULL: no rank has anything to exchange
  PetscScalar *array = nullptr;
  PetscInt     ld    = 0;

  Exchange(SpMVHalo h, bool columns = false) : halo(h)
  {
    PetscCallAbort(comm, SpMVHaloGet(h, (PetscBool)columns, &core, &array, &ld));
  }
  template <class F> PetscErrorCode Do(F f) const
  {
    return core ? SpMVHaloCheck(halo, f()) : PETSC_SUCCESS;
  }
  PetscErrorCode Enter(cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloEnter(core, s); });
  }
  PetscErrorCode Leave(cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloLeave(core, s); });
  }
  PetscErrorCode Begin(const PetscScalar *x, cudaStream_t s) const
  {
    return BeginColumns(1, x, 0, s);
  }
  PetscErrorCode BeginColumns(int n, const PetscScalar *x, PetscInt ldx, cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloBegin(core, n, x, ldx, s); });
  }
  PetscErrorCode End(cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloEnd(core, s); });
  }
  PetscErrorCode ReverseBegin(cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloReverseBegin(core, s); });
  }
  PetscErrorCode ReverseEnd(PetscScalar *y, cudaStream_t s) const
  {
    return Do([&] { return SpMVCudaHaloReverseEnd(core, y, s); });
  }
};

static uint64_t Hash(uint64_t a, uint64_t b)
{
  uint64_t h = a * 0x9e3779b97f4a7c15ull + b * 0xc2b2ae3d27d4eb4full + 0x165667b19e3779f9ull;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ull;
  return h ^ h >> 32;
}
static uint64_t shared = 1; // a stream of numbers that is the same on all ranks
static int      Int(int n)
{
  return (int)(Hash(shared++, 0) % (uint64_t)n);
}
static PetscScalar Value(uint64_t i, uint64_t round)
{
  const PetscReal re = (PetscReal)(int64_t)(Hash(i, round) >> 20) * (PetscReal)1e-10;
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, (PetscReal)(int64_t)(Hash(i, round + 77) >> 20) * (PetscReal)1e-10);
#else
  return re;
#endif
}

using Values = std::vector<PetscScalar>;

// A pattern: how many rows each rank has, and the columns of this rank's halo. `everybody` holds those of all ranks,
// for the reference.
struct Pattern {
  PetscLayout                        layout = nullptr;
  PetscInt                           n = 0, begin = 0;
  std::vector<PetscInt>              halo_columns;
  std::vector<std::vector<PetscInt>> everybody;

  PetscErrorCode Create(const std::vector<PetscInt> &rows, std::function<bool(int, PetscInt)> wants)
  {
    PetscFunctionBeginUser;
    n = rows[rank_];
    PetscCall(PetscLayoutCreate(comm, &layout));
    PetscCall(PetscLayoutSetLocalSize(layout, n));
    PetscCall(PetscLayoutSetUp(layout));
    PetscCall(PetscLayoutGetRange(layout, &begin, NULL));
    const PetscInt *range;
    PetscCall(PetscLayoutGetRanges(layout, &range));
    everybody.resize(size_);
    for (int r = 0; r < size_; r++) {
      for (PetscInt i = 0; i < range[size_]; i++) {
        if ((i < range[r] || i >= range[r + 1]) && wants(r, i)) everybody[r].push_back(i);
      }
    }
    halo_columns = everybody[rank_];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscErrorCode Destroy()
  {
    return PetscLayoutDestroy(&layout);
  }
  Values X(uint64_t round) const
  {
    Values x;
    for (PetscInt i = 0; i < n; i++) x.push_back(Value(begin + i, round));
    return x;
  }
  Values Halo(uint64_t round) const
  {
    Values v;
    for (PetscInt g : halo_columns) v.push_back(Value(g, round));
    return v;
  }
  static PetscScalar Sent(int from, size_t k, uint64_t round)
  {
    return Value(1000000007ull * (from + 1) + k, round);
  }
  Values Reverse(uint64_t round) const // the values that this rank sends back
  {
    Values v;
    for (size_t k = 0; k < halo_columns.size(); k++) v.push_back(Sent(rank_, k, round));
    return v;
  }
  Values Sums(uint64_t round) const // x plus the values received for it, in the order of the ranks
  {
    Values y = X(round);
    for (int r = 0; r < size_; r++) {
      for (size_t k = 0; k < everybody[r].size(); k++) {
        const PetscInt i = everybody[r][k] - begin;
        if (i >= 0 && i < n) y[i] = y[i] + Sent(r, k, round);
      }
    }
    return y;
  }
};

static void Check(bool good, const char *what, const char *name)
{
  int all = good;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  all ? passed++ : failed++;
  if (!good) printf("FAILED [%d of %d] %s: %s\n", rank_, size_, name, what);
}

struct Device { // poisoned, so that missing writes are detected
  PetscScalar *p = nullptr;
  size_t       n;
  explicit Device(size_t count) : n(count)
  {
    if (cudaMalloc((void **)&p, (n + 1) * sizeof(PetscScalar)) || cudaMemset(p, 0xff, (n + 1) * sizeof(PetscScalar)))
      MPI_Abort(MPI_COMM_WORLD, 1);
  }
  explicit Device(const Values &v) : Device(v.size())
  {
    cudaMemcpy(p, v.data(), n * sizeof(PetscScalar), cudaMemcpyHostToDevice);
  }
  Device(const Device &) = delete;
  Device(Device &&o) : p(o.p), n(o.n)
  {
    o.p = nullptr;
  }
  ~Device()
  {
    cudaFree(p);
  }
  Values Get() const
  {
    Values v(n);
    cudaMemcpy(v.data(), p, n * sizeof(PetscScalar), cudaMemcpyDeviceToHost);
    return v;
  }
};

static PetscErrorCode Copy(PetscScalar *to, const PetscScalar *from, size_t n, cudaStream_t stream)
{
  PetscFunctionBeginUser;
  if (n) PetscCallCUDA(cudaMemcpyAsync(to, from, n * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
