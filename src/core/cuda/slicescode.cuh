/*
  Codes of one byte for the values of slices that have few different ones.

  Such a slice has a table of its values, and codes that are their numbers in the table. The first number of each table is 0, for the places without an entry.
  A fill converts such slices in place, after it has written their values, if that saves a quarter of their bytes. Slices that are exact in single precision are
  left alone: on an H100, codes saved their products at most 5 % more (random:20000 27.5 us as Single, 27.1 as codes), and their fills took twice as long.
*/
#pragma once

#include "slices.cuh"

namespace spmv {

// CODE_MOST: different values in a table; with those of one more step, a slot of the hash table is still empty. Real matrices hardly gain from more, and the
// shared memory would leave less L1 cache for fills
constexpr int CODE_SLOTS = 128, CODE_MOST = CODE_SLOTS - WARP;

using Bits = unsigned long long;
static_assert(CODE_SLOTS == 1 << (64 - 57), "FirstSlot() has so many values");

// A warp's hash table. Its keys are the bits of values. Those of 0, which has code 0, mean that a slot is empty
struct CodeTable {
  Bits          key[CODE_SLOTS];
  unsigned char code[CODE_SLOTS];
};

__device__ __forceinline__ int FirstSlot(Bits key)
{
  return (int)(key * 0x9e3779b97f4a7c15ull >> 57);
}

// Returns whether the key is new
__device__ __forceinline__ bool Insert(CodeTable &table, Bits key)
{
  if (!key) return false;
  for (int slot = FirstSlot(key);; slot = (slot + 1) % CODE_SLOTS) {
    const Bits old = atomicCAS(table.key + slot, 0ull, key);
    if (old == 0 || old == key) return old == 0;
  }
}

__device__ __forceinline__ unsigned CodeOf(const CodeTable &table, Bits key)
{
  if (!key) return 0;
  int slot = FirstSlot(key);
  while (table.key[slot] != key) slot = (slot + 1) % CODE_SLOTS;
  return table.code[slot];
}

// The keys of the steps whose codes are in one word
__device__ __forceinline__ void LoadKeys(const double *value, int k0, int steps, Bits (&key)[CODES_PER_WORD])
{
#pragma unroll
  for (int b = 0; b < CODES_PER_WORD; b++) key[b] = k0 + b < steps ? (Bits)__double_as_longlong(value[(k0 + b) * WARP]) : 0;
}

// Collects the different values of a slice. Returns false if there are more than `most`, 0 included
__device__ inline bool Collect(CodeTable &table, const double *value, int steps, int most, int lane)
{
  int count = 1;
  for (int slot = lane; slot < CODE_SLOTS; slot += WARP) table.key[slot] = 0;
  __syncwarp();
  for (int k0 = 0; k0 < steps && count <= most; k0 += CODES_PER_WORD) {
    Bits key[CODES_PER_WORD];
    LoadKeys(value, k0, steps, key);
#pragma unroll
    for (int b = 0; b < CODES_PER_WORD; b++) {
      if (count <= most) count += __popc(__ballot_sync(ALL, Insert(table, key[b])));
    }
  }
  __syncwarp();
  return count <= most;
}

__device__ inline void Number(CodeTable &table, int lane)
{
  int count = 1;
  for (int slot = lane; slot < CODE_SLOTS; slot += WARP) {
    const unsigned used = __ballot_sync(ALL, table.key[slot] != 0);
    table.code[slot]    = (unsigned char)(count + __popc(used & ((1u << lane) - 1)));
    count += __popc(used);
  }
  __syncwarp();
}

// Whether at most half of the lanes' values, without zeros, are different
__device__ __forceinline__ bool Repeats(double value, int lane)
{
  const Bits     key   = (Bits)__double_as_longlong(value);
  const unsigned equal = __match_any_sync(ALL, key), first = __ballot_sync(ALL, key && lane == __ffs((int)equal) - 1);
  return 2 * __popc(first) <= __popc(__ballot_sync(ALL, key != 0));
}

// Replaces the values of a slice by codes and a table. Returns false, and leaves the values, if these would take more than three quarters of their bytes. value:
// the lane's first one
__device__ inline bool Encode(CodeTable &table, double *value, int steps, int lane)
{
  Codes        *code = (Codes *)(value - lane);
  const int64_t left = (int64_t)steps * (WARP * sizeof(double)) / 4 * 3 - (int64_t)CodeWords(steps) * (int64_t)sizeof(Codes);
  const int     most = (int)min(left / (int64_t)sizeof(double), (int64_t)CODE_MOST);
  double       *to   = (double *)(code + CodeWords(steps));

  if (!Collect(table, value, steps, most, lane)) return false;
  Number(table, lane);
  for (int k0 = 0; k0 < steps; k0 += CODES_PER_WORD) { // codes overwrite only values that have been read
    Bits  key[CODES_PER_WORD];
    Codes word = 0;
    LoadKeys(value, k0, steps, key);
#pragma unroll
    for (int b = 0; b < CODES_PER_WORD; b++) word |= CodeOf(table, key[b]) << (8 * b);
    __syncwarp();
    code[k0 / CODES_PER_WORD * WARP + lane] = word;
  }
  __syncwarp();
  if (lane == 0) to[0] = 0;
  for (int slot = lane; slot < CODE_SLOTS; slot += WARP) {
    if (table.key[slot]) to[table.code[slot]] = __longlong_as_double((long long)table.key[slot]);
  }
  return true;
}

} // namespace spmv
