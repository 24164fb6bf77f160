/*
  One product of two CSR matrices, C = A B, row by row: row r of C is the sum of the rows of B that the entries of row r
  of A refer to, each times its entry. A product of one entry of A with one entry of B is called a term.

  If all rows of A come in groups of `rows` rows with the same columns (the rows of a node), such a group is a unit, and
  its rows are computed together; otherwise a unit is a row.
*/
#pragma once

#include "spgemm.h"
#include "core/cuda/layout/view.cuh"

namespace spmv {

constexpr int EMPTY = 0x7fffffff; // a place of a table without a column; all columns are smaller
constexpr int BINS  = 11;         // bins 0 to 7: tables of 8 to 1024 places, each filled by up to 32 lanes
// bins of units for which such a table is too small (a thread block has a larger one), for which this one is too small
// as well, and of those without terms
constexpr int BIG = 8, HUGE_ROW = 9, NONE = 10;

// Tables are filled to three quarters
__host__ __device__ constexpr int Places(int bin)
{
  return 8 << bin;
}
__host__ __device__ constexpr int Capacity(int bin)
{
  return 6 << bin;
}
static_assert(Capacity(BIG - 1) == SPMVCUDA_SPGEMM_TILE, "the documentation says so");

__host__ __device__ inline int BinFor(int64_t columns)
{
  int bin = 0;
  while (bin < BIG && columns > Capacity(bin)) bin++;
  return bin;
}

constexpr int MOST_ROWS     = 4;    // rows that are computed together
constexpr int GROUP_ENTRIES = 1024; // longest row of A whose products are made by one group of lanes

// Of a stored position in a row of C
__host__ __device__ constexpr int PositionBytes(int bin)
{
  return Capacity(bin) <= 256 ? 1 : 2;
}

// How the patterns are read: only every `entries`-th entry of a row of A, because the rows of B come in groups with the
// same columns, and only every `columns`-th entry of a row of B, because they come in runs of neighboring columns
struct Nodal {
  int rows = 1, entries = 1, columns = 1;
};

struct Factors {
  const PetscInt *ai, *aj, *bi, *bj;
  const Scalar   *aa, *ba;
  int             units, n; // n: columns of B
  Nodal           node;

  Factors(const SpMVCudaCSR &A, const SpMVCudaCSR &B, const Nodal &node)
      : ai((const PetscInt *)A.i), aj((const PetscInt *)A.j), bi((const PetscInt *)B.i), bj((const PetscInt *)B.j),
        aa((const Scalar *)A.a), ba((const Scalar *)B.a), units((int)(A.m / node.rows)), n((int)B.n), node(node)
  {
  }
  __device__ int64_t Begin(int u) const
  {
    return (int64_t)ai[(int64_t)u * node.rows];
  }
  __device__ int Length(int u) const
  {
    return (int)(ai[(int64_t)u * node.rows + 1] - ai[(int64_t)u * node.rows]);
  }
};

// Units sorted by bin; in each bin, most of them ascend
struct Bins {
  struct Firsts { // where each bin begins, and the last one ends
    int of[BINS + 1];
  };
  Array<int> list; // empty: all units are in one bin
  Firsts     first = {};

  const int *Of(int bin) const
  {
    return list.Size() ? (const int *)list + first.of[bin] : nullptr;
  }
  int Count(int bin) const
  {
    return first.of[bin + 1] - first.of[bin];
  }
};
// bin[u]: the bin of unit u; count[]: on the host, the number of units in each bin
cudaError_t MakeBins(int units, const unsigned char *bin, const unsigned long long count[], cudaStream_t, Bins *);

// A part of a long row of C, or of one with many terms, that one warp computes: the columns of one tile, and the terms
// of one segment of the row of A
struct Item {
  int     row, tile, segment, segments;
  int64_t sums; // with several segments: where the row's partial sums begin
};
// The rows of several segments, for the kernel that adds the segments up
struct Segmented {
  int     row, segments;
  int64_t sums;
};

class Gemm {
public:
  // The factors' values are not read. The pattern is in i and j
  cudaError_t Symbolic(const SpMVCudaCSR &A, const SpMVCudaCSR &B, int64_t most, cudaStream_t);
  cudaError_t Numeric(const SpMVCudaCSR &A, const SpMVCudaCSR &B, const PetscInt *ci, const PetscInt *cj, Scalar *c,
                      cudaStream_t);
  int64_t     MapBytes() const
  {
    return (int64_t)map.Bytes();
  }
  size_t Bytes() const
  {
    return i.Bytes() + j.Bytes() + bins.list.Bytes() + map.Bytes() + map_start.Bytes() + item.Bytes() +
           segmented.Bytes() + sums.Bytes();
  }

  int64_t         m = 0, n = 0, nnz = 0, terms = 0, entries = 0; // entries: of A
  Nodal           node;
  Array<PetscInt> i, j;

private:
  cudaError_t FindNodes(const SpMVCudaCSR &A, const SpMVCudaCSR &B, cudaStream_t);
  cudaError_t Count(const Factors &, Array<int64_t> &of_unit, Array<int> &length, Bins &table, cudaStream_t);
  cudaError_t Fill(const Factors &, const Array<int64_t> &of_unit, Array<int> &length, int64_t most, Bins &table,
                   cudaStream_t);
  // of the rows that are computed in parts
  cudaError_t MakeItems(const Factors &, const Array<int64_t> &of_unit, cudaStream_t);
  cudaError_t NumericItems(const Factors &, const PetscInt *ci, const PetscInt *cj, Scalar *c, cudaStream_t);

  // of the numeric phase
  int                  lanes = 1; // that share a row of B
  Bins                 bins;
  Array<unsigned char> map;       // empty: columns are searched
  Array<int64_t>       map_start; // where the positions of each unit begin, in bytes
  bool                 mapped = false;
  Array<Item>          item;
  Array<Segmented>     segmented;
  Array<Scalar>        sums;
};

} // namespace spmv
