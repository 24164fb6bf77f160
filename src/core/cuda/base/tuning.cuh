/*
  The tuned constants of the device core in one table, each with the measurement or the reason for its value. The
  constants of a format are in its rules.cu.
*/
#pragma once

#include <climits>

namespace spmv {

struct Tuning {
  // ---- choice between diagonals and slices
  // diagonals whose loads are all issued at once. Up to this many, diagonals are faster for any number of rows
  static constexpr int ONE_ROUND = 9;
  // slices per multiprocessor: with more than ONE_ROUND diagonals, fewer slices cannot hide several rounds of loads
  static constexpr int DIAGONALS_MIN  = 12;
  static constexpr int DIAGONALS_MOST = 192; // diagonals per slice; a matrix with more is stored in slices

  // ---- survey of the rows
  static constexpr int LONG = 1024; // entries: longer rows count as bulk and may be split
  // columns: a column within this distance of the diagonal is near. Near columns let neighboring rows share cached x
  static constexpr int NEAR = 8192;

  // ---- search for node blocks: threads per multiprocessor. A grid with threads for all of 8 million rows takes 0.8 ms
  // to start and finish, even if every check fails at once
  static constexpr int CHECK_THREADS = 2048;

  // ---- incomplete node blocks
  static constexpr int SAMPLE = 1024; // units that are examined first, for each block size
  // entries: units with longer rows are left out, because one such warp would delay all others
  static constexpr int SAMPLE_LONGEST = 4096;
  // Blocks must take less than this fraction of the bytes of single entries, because bytes predict the time of a
  // product only to within a few percent
  static constexpr double INCOMPLETE_GAIN = 0.97;

  // ---- row groups. One H200, us, single entries / groups: twins of msdoor 58 / 46, ldoor 135 / 103. They are used if
  // their columns are at most this fraction of the entries: they then take at most 92 % of the bytes
  static constexpr double GROUPS_SHARE = 0.6;
  // and if rows have at most this number of entries on average: long rows read x in runs. tsopf (439 entries per row):
  // 34 / 61
  static constexpr int    GROUPS_MEAN   = 128;
  static constexpr double GROUPS_MARGIN = 0.1; // by which the share in a sample of SAMPLE rows may be larger
  // entries. A sort key has lengths next to sizes of groups, windows and columns
  static constexpr int GROUPS_LONGEST = 1 << 24;
  static constexpr int GROUPS_VALUES  = 56;   // values per lane: 18 columns for groups of three rows
  static constexpr int GROUPS_CHUNK   = 128;  // fewest columns per part of a long group
  static constexpr int GROUPS_LONG    = 4096; // values: longer groups are split. It is halved, at most down to
  // this, while there would be fewer than CHUNKS pieces of this size per multiprocessor
  static constexpr int GROUPS_LEAST = 1024;

  // ---- lanes per row in slices. The fewer lanes a row has, the more loads each lane issues at once; the longest rows
  // get a whole warp in any case. More lanes are better if rows are short, or if many of the entries are in very long
  // rows (bulk), so that the other rows do not finish last
  static constexpr int PER_THREAD = 16; // entries per lane
  // entries per lane without node blocks, if the average number of entries per row is
  static constexpr int PER_THREAD_MANY  = 32;
  static constexpr int MANY_FROM        = 16;  // at least this
  static constexpr int MANY_TO          = 256; // and less than this,
  static constexpr int MANY_TO_BULK     = 64;  // or less than this with bulk
  static constexpr int PER_THREAD_LEAST = 4;
  // per multiprocessor: the entries per lane are halved until this many threads have work
  static constexpr int THREADS = 256;

  // ---- long rows in parts
  static constexpr int CHUNK = 256; // entries per part: a few long rows should not finish last
  // if many rows are long, parts cost time, and their warps read x in several places at once
  static constexpr int CHUNK_BULK  = 4096;
  static constexpr int CHUNK_LEAST = 1024; // CHUNK_BULK is halved, at most down to this, while there are fewer than
  static constexpr int CHUNKS      = 12;   // parts per multiprocessor

  // ---- overlap of a product with the next one. Larger matrices gain less than 1 us, and some lose more, because
  // thread blocks that begin early are not spread evenly. If all 7813 thread blocks of tridiag let the next kernel
  // begin, it took 10.0 us, with the last 512 7.4
  static constexpr size_t   NEXT_BYTES  = 24 << 20; // of the matrix and the vectors
  static constexpr unsigned NEXT_BLOCKS = 512;

  // ---- kernels of diagonals
  // threads; small, so that ten thread blocks with 48 registers per thread fit on a multiprocessor
  static constexpr int DIAGONALS_BLOCK = 128;
  // Warps of large matrices, and those that compute inner products, multiply up to DIAGONALS_SLICES slices of 3, 5 or 7
  // steps in turn: as many that the last round of warps is nearly full. us on an H200 with 1, 2, 3 and 4 slices:
  // bratu:128 24.6, 23.1, 22.6, 24.6, bratu:200 -, 76.4, 73.3, 72.2
  static constexpr int DIAGONALS_SLICES = 4;
  static constexpr int DIAGONALS_WARPS  = 40; // warps that fit on a multiprocessor
  // a step of node blocks is marked if lanes with other blocks are in so many of the four bytes of its mask
  static constexpr int EXCEPTED_BYTES = 2;
  // slices are padded to equal numbers of steps if that adds at most one step in this many
  static constexpr int UNIFORM_SHARE = 32;

  // ---- kernels of slices
  static constexpr int SLICES_BLOCK  = 256;  // threads
  static constexpr int SLICES_WINDOW = 1024; // units: a warp forms the slices of one window of this size
  // With few units, windows are smaller but have about this number of slices: a warp took 250 us for 1024 slices of one
  // unit each
  static constexpr int SLICES_OF_WINDOW = 64;
  // Values that stay in the L2 cache from one product to the next, if there are so few rows that the vectors leave room
  // for them. us on an H200 with 0 and 12 MB of values kept: a twin of bmwcra_1 (149,000 rows) 26.2, 22.3, tsopf
  // (38,000) 37.0, 34.2; but fem27:68:3:0.6 (943,000) 96.3, 103.0
  static constexpr int L2_FIT     = 2;  // values that take at most 1/L2_FIT of the cache stay there anyway
  static constexpr int L2_KEPT    = 4;  // values that take 1/L2_KEPT of the cache are kept
  static constexpr int L2_VECTORS = 16; // x and y together may take at most 1/L2_VECTORS of the cache

  // ---- tiles. One H200, us, linear tetrahedra and triangles in random order, with tiles / without: 405,000 rows of 16
  // entries 28.3 / 55.6, 60,000 4.5 / 10.1, a million rows of 7 36.2 / 55.5. Copying the x of the next tile meanwhile
  // gains nothing, nor do node blocks: 120,000 nodes of 3 unknowns 46.2 / 45.5
  static constexpr int TILE_BLOCK           = 512;      // threads
  static constexpr int TILES                = 2;        // thread blocks per multiprocessor
  static constexpr int TILE_SHARED          = 48 << 10; // bytes of x in shared memory; more is to be asked for
  static constexpr int TILE_COLUMNS         = 6144;     // most columns of a tile
  static constexpr int TILE_COLUMNS_PER_ROW = 2;        // a tile has at most one row for so many columns
  static constexpr int TILE_SMALLEST        = 128;      // rows, if larger tiles have too many columns
  static constexpr int TILE_LONGEST         = 256;      // entries of the longest row
  static constexpr int TILE_LEAST           = 256;      // rows per multiprocessor
  static constexpr int TILE_SWEEPS          = 16;       // steps of the searches from row to row; both must be even
  static constexpr int TILE_CELL_SWEEPS     = 6;        // and from cell to cell
  static constexpr int TILE_SETUP_BLOCK     = 512;      // threads
  // 32 lanes read x from at least so many cache lines: 30 in random order. In reverse Cuthill-McKee order, the
  // tetrahedra (20 lines) take 24.7 / 24.4, the triangles (11) 31.6 / 26.0
  static constexpr int TILE_LINES = 24;
  // Columns of a row's neighbors, and columns of all tiles, at most so many times as many as the entries: 0.31 and 0.15
  // for the tetrahedra, 0.40 and 0.18 for the triangles
  static constexpr double TILE_CLOSE = 0.6;
  static constexpr double TILE_SHARE = 0.4;

  // ---- products with several columns
  static constexpr int COLUMNS_BLOCK  = 256; // threads
  static constexpr int COLUMNS_BYTES  = 192; // bytes of the sums that a thread keeps
  static constexpr int COLUMNS_PANELS = 8;   // panels per launch
  // Diagonals of single entries, the best of 128 to 1024 threads, and of 768 to 1536 per multiprocessor: 7 points on
  // 200^3, 2, 4 and 8 columns, in us on an H200: 184, 265, 434
  static constexpr int COLUMNS_BLOCK_ONE     = 128;
  static constexpr int COLUMNS_THREADS       = 1280; // threads per multiprocessor that the registers must suffice for
  static constexpr int COLUMNS_THREADS_EIGHT = 1152; // the same for eight columns
  static constexpr int COLUMNS_LOADS         = 8;    // loads of x issued at once; 16: 204, 265, 443
  // Single entries in slices, with X copied by rows. google: 58, 106, 230 with 768 threads per multiprocessor, 63, 119,
  // 248 with 1024; with one product per column: 81, 167, 328
  static constexpr int ENTRIES_BLOCK   = 128; // threads
  static constexpr int ENTRIES_THREADS = 768; // threads per multiprocessor that the registers must suffice for
  static constexpr int ENTRIES_STEPS   = 8;   // steps in shared memory at a time
  static constexpr int ENTRIES_LOADS   = 8;   // loads of x issued at once. With 16: 72, 126, 248
  // entries of A per row of X: with fewer, copying X takes longer than it saves
  static constexpr int ENTRIES_SHARE = 2;
  // Panels of two columns are used up to this many entries per row. random:20000, which has 490: 69 with them instead
  // of 66
  static constexpr int ENTRIES_TWO = 64;

  // ---- fills
  static constexpr int FILL_BLOCK = 64; // threads
  static constexpr int FILL_BATCH = 8;  // steps whose entries are loaded at once
  // A thread block fills a slice of node blocks. It has at most so many warps (with two, finite elements with 3
  // unknowns per node in diagonals take 673 us instead of 418); outside of diagonals, one for each FILL_NODES_VALUES
  // values of a lane (with eight, those with 2 unknowns and short rows take 114 us instead of 89)
  static constexpr int FILL_NODES_WARPS  = 8;
  static constexpr int FILL_NODES_VALUES = 16;
  // as many thread blocks of FILL_NODES_WARPS warps find enough registers on a multiprocessor
  static constexpr int FILL_NODES_BLOCKS = 4;

  // ---- assembly from a coordinate array
  static constexpr int COO_BLOCK = 256; // threads
  static constexpr int COO_EACH  = 4;   // entries per thread, all loaded at once
  static constexpr int COO_BATCH = 4;   // entries of a nonzero that are loaded at once

  // ---- off-diagonal block in the diagonal block's product
  static constexpr int OFFDIAGONAL_MOST = 64; // entries of a row, all added by one thread

  // ---- exchange of the halo
  static constexpr int HALO_CHUNK  = 512; // PEER: entries that a thread block sends at a time
  static constexpr int HALO_BLOCKS = 96;  // PEER: most thread blocks that send or receive
  // NCCL: thread blocks. NCCL's default slows a product down by 3 % with a halo of half a megabyte, and each thread
  // block has a buffer of megabytes. Four are enough to move a halo during the product
  static constexpr int NCCL_BLOCKS = 4;

  // ---- Krylov methods: kernels on vectors. More thread blocks than fit on the device at a time gain nothing, and each
  // leaves more partial sums to add
  static constexpr int KRYLOV_BLOCK = 256; // threads
  // thread blocks per multiprocessor: with four entries per thread, they keep enough bytes in flight
  static constexpr int KRYLOV_BLOCKS = 4;
  // The number of partial sums that a product's warps store, times the number of thread blocks of the next kernel. Up
  // to this limit, each of those thread blocks adds all sums, and no separate kernel is launched to add them. With 32^3
  // rows and seven diagonals, an iteration of devicecg takes 10.0 us instead of 13.0; with 36^3 rows nothing was gained
  static constexpr int KRYLOV_PARTIALS = 1 << 17;

  // ---- pools of device memory. The work on an array of more than the largest size takes longer than cudaMalloc() and
  // cudaFree()
  static constexpr size_t POOL_LARGEST = 64 << 20; // bytes of an array
  static constexpr size_t POOL_KEPT    = 32 << 20; // unused bytes that a pool keeps

  // ---- upload from pageable memory. The driver's own copy reaches a fifth of the speed of the bus. Pinning a thread's
  // buffer takes 0.7 ms, during which no thread can call the driver. A thread copies 5 to 8 GB/s. Smaller chunks need
  // too many calls, which wait for one another: 20 GB/s with chunks of 512 KB, 40 GB/s with 2 MB
  static constexpr int UPLOAD_CHUNK   = 2 << 20; // bytes
  static constexpr int UPLOAD_THREADS = 8;
  // bytes: the first upload uses n threads if it copies at least n^2 times as many
  static constexpr int UPLOAD_LEAST = 8 << 20;
};

// Tuned numbers that tests change, so that small matrices reach all kernels
struct Limits {
  int diagonals_least = Tuning::DIAGONALS_MIN;   // 0: diagonals with any number of rows
  int diagonals_warps = Tuning::DIAGONALS_WARPS; // 0: always the most slices per warp; 1000: one for small matrices
  int groups_mean     = Tuning::GROUPS_MEAN;     // INT_MAX: row groups of any length
  int l2_fit          = Tuning::L2_FIT;          // INT_MAX: values stay in the L2 cache, however few they are
  int tile_least      = Tuning::TILE_LEAST;      // 0: tiles for any number of rows
  int tile_lines      = Tuning::TILE_LINES;      // 0: tiles wherever they are possible; more than 32: nowhere
  int krylov_partials = Tuning::KRYLOV_PARTIALS; // 0: a kernel of its own adds the sums of a product
};
extern Limits limits; // store.cu

} // namespace spmv
