#!/usr/bin/env bash
# compute-sanitizer 2025.3.1 (CUDA 13.0), racecheck: some warps of a block meet at a named barrier of their own (PTX's
# bar.sync 1, 160), as warps with different jobs do, and then all warps at __syncthreads().
# Guess: accesses to shared memory that __syncthreads() of all threads separates are never reported.
# Seen: they are reported as a race. With a barrier of all 256 threads in the same place nothing is reported.
. "$(dirname "$0")/lib.sh"
needs_gpu
if prebuilt; then
  cp "$FINDINGS_PREBUILT/$name" "$tmp/program"
  root=$FINDINGS_PREBUILT/cuda
else
  packages nvidia-cuda-sanitizer-api==13.0.85 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
    nvidia-cuda-runtime==13.0.96
  root=$("$python" -c 'import importlib.util as u; print(list(u.find_spec("nvidia").submodule_search_locations)[0])')/cu13
  cat >"$tmp/program.cu" <<'END_OF_PROGRAM'
#include <cstdio>
#include <cstring>

// Each of the COUNT first threads adds up what the first threads of its warps have stored, 16 times
template <int COUNT> __global__ void kernel(unsigned *sums)
{
  __shared__ unsigned all[256], first[2][8];
  const int           t = threadIdx.x;
  for (unsigned round = 0; round < 9; round++) {
    __syncthreads();
    all[t] = round + t;
    __syncthreads();
    if (t < COUNT) {
      unsigned sum = all[t];
      for (int k = 0; k < 16; k++) {
        if (t % 32 == 0) first[k % 2][t / 32] = sum;
        asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");
        for (int w = 0; w < COUNT / 32; w++) sum += first[k % 2][w];
      }
      all[t] = sum;
    }
    __syncthreads();
    sums[blockIdx.x * 256 + t] = all[(t + 133) % 256];
  }
}

int main(int argc, char **argv)
{
  unsigned *sums;
  cudaMalloc(&sums, 4 * 256 * sizeof(unsigned));
  if (argc > 1 && !std::strcmp(argv[1], "some"))
    kernel<160><<<4, 256>>>(sums);
  else
    kernel<256><<<4, 256>>>(sums);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
END_OF_PROGRAM
  "$root/bin/nvcc" -std=c++17 -arch=compute_80 -L"$root/lib" -o "$tmp/program" "$tmp/program.cu"
  [ -z "${FINDINGS_KEEP:-}" ] || cp "$tmp/program" "$FINDINGS_KEEP/$name"
fi
races() {
  for threads in some all; do
    "$root/bin/compute-sanitizer" --tool racecheck "$tmp/program" $threads >"$tmp/$threads"
    grep -q 'RACECHECK SUMMARY: 0 hazards' "$tmp/$threads" && what="no race" || what="a race"
    grep -q '^no error' "$tmp/$threads" || what=$(tail -n 1 "$tmp/$threads")
    echo "* named barrier of $threads threads: racecheck reports $what"
  done
  "$root/bin/compute-sanitizer" --version | sed -n 's/^Version \([0-9.]*\) .*/* version \1/p'
}
see races
behaves <<'END'
* named barrier of some threads: racecheck reports a race
* named barrier of all threads: racecheck reports no race
* version 2025.3.1.0
END
