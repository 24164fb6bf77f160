/*
  The tuned numbers of the device core, in one table, with the measurement or the reason that set them. A format's own numbers are in its rules.cu.
*/
#pragma once

namespace spmv {

struct Tuning {
  // ---- choice between diagonals and slices
  static constexpr int ONE_ROUND      = 9;   // diagonals: as many loads as are issued at once. Up to so many, diagonals are faster for any number of rows
  static constexpr int DIAGONALS_MIN  = 12;  // slices a multiprocessor: with more diagonals than that, fewer slices cannot hide several rounds of loads
  static constexpr int DIAGONALS_MOST = 192; // diagonals of a slice; beyond that slices

  // ---- survey of the rows
  static constexpr int LONG = 1024; // entries: a row that is longer counts as bulk, and may be split
  static constexpr int NEAR = 8192; // columns: a column that is as close to its row's own place is near. Near rows are likely to share x in the caches

  // ---- search for node blocks: threads a multiprocessor. A grid of all rows takes 0.8 ms to begin and end for 8 million rows, though all fail at once
  static constexpr int CHECK_THREADS = 2048;

  // ---- incomplete node blocks
  static constexpr int SAMPLE         = 1024; // units that are looked at first, for each size of blocks
  static constexpr int SAMPLE_LONGEST = 4096; // entries: units with longer rows are left out, as the warp of one would delay all
  // Blocks must take less than this share of the bytes of single entries, as bytes predict the time of a product only to a few percent
  static constexpr double INCOMPLETE_GAIN = 0.97;

  // ---- lanes of a row of slices. The fewer lanes a row has, the more of its loads each lane issues at once, until rows have a whole warp in any case. But
  // where rows are short, or many of the entries are in very long rows (bulk), the other rows should not end last
  static constexpr int PER_THREAD       = 16;  // entries a lane
  static constexpr int PER_THREAD_MANY  = 32;  // entries a lane where rows, without node blocks, have so many entries on average:
  static constexpr int MANY_FROM        = 16;  // at least
  static constexpr int MANY_TO          = 256; // fewer than
  static constexpr int MANY_TO_BULK     = 64;  // the same with bulk
  static constexpr int PER_THREAD_LEAST = 4;
  static constexpr int THREADS          = 256; // a multiprocessor: entries a lane are halved until there is work for so many
  static constexpr int PER_THREAD_FEW   = 8;   // of boundary rows: few rows, of which only the end of the last counts

  // ---- long rows in parts
  static constexpr int CHUNK       = 256;  // entries of a part: a few long rows should not end last
  static constexpr int CHUNK_BULK  = 4096; // where many rows are long, parts are an expense, and their warps read x in several places at once
  static constexpr int CHUNK_LEAST = 1024; // CHUNK_BULK is halved down to this while
  static constexpr int CHUNKS      = 12;   // parts a multiprocessor are not reached

  // ---- measuring (-mat_..._tune): a layout replaces the best so far where its time is below GAIN times the best's, less NOISE
  static constexpr float GAIN           = 0.97f;
  static constexpr float NOISE          = 3e-4f; // ms: launches vary by 0.3 us
  static constexpr float TIMED          = 0.3f;  // ms of products in each of three means, within
  static constexpr int   PRODUCTS_LEAST = 3;
  static constexpr int   PRODUCTS_MOST  = 20;
  static constexpr int   NATURAL_MOST   = 4; // times the entries: with more padding than that, the natural order is not tried

  // ---- kernels of diagonals
  static constexpr int DIAGONALS_BLOCK = 128; // threads; small, so that 48 registers leave room for ten thread blocks a multiprocessor
  static constexpr int EQUAL_SHARE     = 16;  // products look for marks where at least one step in so many is marked
  static constexpr int UNIFORM_SHARE   = 32;  // slices are padded to equal numbers of steps where that adds at most one step in so many
  static constexpr int MORE_SHARE      = 4;   // slices have the same number of steps and a few have more, if these further steps are at most one in so many

  // ---- kernels of slices
  static constexpr int SLICES_BLOCK  = 256;  // threads
  static constexpr int SLICES_WINDOW = 1024; // units in which one thread forms slices
  // Values that stay in the L2 cache from one product to the next, where the rows are so few that vectors leave room for them. us without, with 12 and with 20 MB
  // of them on an H200, twins in quotes: 'bmwcra_1' (149,000 rows) 26.2, 22.3, 21.8, tsopf (38,000) 37.0, 34.2, 33.4, 'crankseg_2' (64,000) 40.1, 37.7, 37.0,
  // random:20000 32.1, 30.5, 30.2; with 28 MB no more. fem27:68:3:0.6 (943,000) 96.3, 103.0, 102.9, and an iteration of devicecg on 60 nodes 92, -, 99
  static constexpr int L2_FIT     = 2;  // values that take at most a part in so many of the cache stay there anyway
  static constexpr int L2_KEPT    = 4;  // a part in so many of the cache
  static constexpr int L2_VECTORS = 16; // x and y take at most a part in so many

  // ---- products with several columns. Times in us of 2, 4 and 8 columns on an H200
  static constexpr int COLUMNS_BLOCK  = 256; // threads
  static constexpr int COLUMNS_BYTES  = 192; // of the sums that a thread keeps
  static constexpr int COLUMNS_PANELS = 8;   // panels of a launch
  // Diagonals of single entries, 7 points on 200^3: 186, 272, 434 with 1152 threads and 184, 265, 449 with 1280, each of which has fewer registers. In blocks of
  // 256: 198, 286, 452 with 1024, 187, 271, 459 with 1280, 287, 306, 670 with 1536; of 512, with 1024: 213, 293, 455; of 1024: 237, 312, 466. Streaming stores:
  // the same
  static constexpr int COLUMNS_BLOCK_ONE     = 128;
  static constexpr int COLUMNS_THREADS       = 1280; // of a multiprocessor, for which there are registers
  static constexpr int COLUMNS_THREADS_EIGHT = 1152; // the same for eight columns
  static constexpr int COLUMNS_LOADS         = 8;    // of x that are issued at once. 16, with 768 threads: 204, 265, 443; with 1024: 289, 291, 469
  // Single entries in slices, by rows of X. google: 58, 106, 230 with 768 threads, 63, 119, 248 with 1024, 79, 168, 284 with 1280; a product each: 81, 167, 328
  static constexpr int ENTRIES_BLOCK   = 128; // threads
  static constexpr int ENTRIES_THREADS = 768; // of a multiprocessor, for which there are registers
  static constexpr int ENTRIES_STEPS   = 8;   // that are in shared memory at a time
  static constexpr int ENTRIES_LOADS   = 8;   // of x that are issued at once. 16: 72, 126, 248
  static constexpr int ENTRIES_SHARE   = 2;   // entries of A for each row of X: with fewer, copying X takes longer than it saves
  // Entries of a row up to which there are panels of two columns. random:20000, with 490: 69 in place of 66
  static constexpr int ENTRIES_TWO = 64;

  // ---- fills
  static constexpr int FILL_BLOCK = 64; // threads
  static constexpr int FILL_BATCH = 8;  // steps whose entries are loaded at once. With 4, finite elements with 3 unknowns a node take 447 us in place of 395

  // ---- assembly from a coordinate array
  static constexpr int COO_BLOCK = 256; // threads
  static constexpr int COO_EACH  = 4;   // entries a thread, all in flight
  static constexpr int COO_BATCH = 4;   // entries of a nonzero that are in flight at once

  // ---- off-diagonal block in the diagonal block's product
  static constexpr int OFFDIAGONAL_MOST = 32; // entries of a unit, which one thread adds

  // ---- exchange of the halo
  static constexpr int HALO_CHUNK  = 1024; // PEER: entries that a thread block sends at a time
  static constexpr int HALO_BLOCKS = 64;   // PEER: thread blocks at most, as the product that runs at the same time needs the others more
  // NCCL: thread blocks. NCCL's default costs a product 3 % for a halo of half a megabyte, and a buffer of megabytes for each. Four move as much as a halo has
  // in the time that it has
  static constexpr int NCCL_BLOCKS = 4;

  // ---- Krylov methods: kernels over vectors. More thread blocks than fit on the device at a time gain nothing, and each leaves partial sums to be added
  static constexpr int KRYLOV_BLOCK  = 256; // threads
  static constexpr int KRYLOV_BLOCKS = 4;   // of a grid, a multiprocessor: with four entries a thread in flight, enough bytes
  // Sums that a product's warps leave, times thread blocks of the next kernel: up to so many, each of these blocks adds all sums, and no kernel is launched for
  // that. With 32^3 rows and seven diagonals an iteration of devicecg takes 10.0 us in place of 13.0, of devicebicgstab 13.8 in place of 19.8; with 36^3 nothing
  // was gained
  static constexpr int KRYLOV_PARTS = 1 << 17;

  // ---- pools of device memory. Above the largest size, what is done with an array takes longer than cudaMalloc() and cudaFree()
  static constexpr size_t POOL_LARGEST = 64 << 20; // bytes of an array
  static constexpr size_t POOL_KEPT    = 32 << 20; // bytes that a pool keeps when nothing uses them

  // ---- upload from pageable memory, which the driver's own copy does at a fifth of the speed of the bus
  // Pinning a thread's buffer takes 0.7 ms, during which no thread can call the driver; a thread copies 5 to 8 GB/s. Smaller chunks need too many calls, which
  // wait for one another: 20 GB/s with chunks of 512 KB, 40 with 2 MB
  static constexpr int UPLOAD_CHUNK   = 2 << 20; // bytes
  static constexpr int UPLOAD_THREADS = 8;
  static constexpr int UPLOAD_LEAST   = 8 << 20; // bytes: n threads, the first time, for n^2 times as many
};

} // namespace spmv
