/* What the host chooses by: the tuned numbers, and the estimates of time made from them */
#include "spmvimpl.h"

/*
  The tuned numbers of the host, all but two that its kernels need as constants (SPMV_AHEAD in kernels.h,
  SPMV_ISA_SLOWDOWN in kernels_*.c). Estimates are in nanoseconds for the AVX-512 kernels, with all data in cache; they
  serve to choose between ways to store the same rows, so only their ratios count.

  Each line has the measurement that set the number. Those without one are judged by all of them together,
  docs/results/host.csv. After a change, tests/compare shows which choices differ and `make bench` what they are
  worth.
*/
SpMVTuning SpMVTuned = {
    /* estimates: slices */
    .slice     = 2.0, /* a slice: its width, its loops */
    .slice_row = 1.5, /* for each row of its units: the sum, written to y */
    /* eight values of x by index: scalar loads of 0.20 ns, where Zen 5's gather instruction takes 0.50 ns for each
       (simd.h) */
    .gather      = 1.65,
    .multiply    = 0.45, /* eight values loaded, multiplied and added */
    .diagonal    = 0.75, /* a step by a diagonal, one row a unit: eight consecutive values of x, `multiply` included */
    .diagonal_bs = 1.0,  /* the same with node blocks, without `multiply`: values of x at a distance */
    /* units of several sizes are not neighbors, so y is written row by row: on a twin of webbase-1M, where grouping
       rows saves 6 % of the entries, a product took 2640 us with units, 2234 us without */
    .scatter_unit = 0.25,

    /* estimates: vector CSR, the parent's product */
    .long_unit    = 4.0, /* a unit of rows: its loops */
    .long_row     = 2.0, /* for each of its rows: the sum over the lanes, written to y */
    .long_next    = 0.5, /* eight values of x with consecutive columns; other ones are a `gather` */
    .parent       = 3.0, /* AIJ with inodes: a unit */
    .parent_row   = 0.5, /* each of its rows */
    .parent_entry = 0.2, /* each entry: its index, and the same again for each row of the unit */

    /* choices of a plan */
    /* percent: diagonals above the mean length of a slice's rows that are worth while */
    .diagonal_mean = 50,
    /* percent: the same above its longest row, as a diagonal saves 4 of 12 bytes */
    .diagonal_width       = 40,
    .diagonal_width_block = 50,  /* percent / bs^2: with node blocks, where it saves 4 bytes in bs^2 values */
    .outlier_gain         = 0.8, /* long rows leave a slice where the estimate falls below this share */
    /* vector CSR replaces slices where its estimate is below this share of theirs */
    .long_gain = 0.9,
    /* empty rows are left out if they are more than 1 / 8 of all: y is then set to zero before */
    .empty_share  = 8,
    .sort_window  = {512, 8192}, /* rows; x and y of 512 rows stay in the first level of cache */
    .sort_padding = 16,          /* rows are sorted where padding is more than 1 / 16 of the entries */
    .sort_gain    = 20,          /* and if sorting saves more than 1 / 20 of what is stored */

    /* When to set up, in products of AIJ: about as many as a set-up with its fill takes, which is 2 with 74 entries a
       row, 8 to 13 with 3 to 8, and 22 for an arrow (few-products.csv, in the repository up to commit 3f675eb).
       KSPSolve of GAMG hierarchies (solve.py: gamg, ex14-gamg, ex48-gamg, stokes-3d, one core, two runs) after 0, 3, 5
       and 8 products takes 0.93, 0.90, 0.93 and 1.03 s, with aij 2.1 s */
    .setup_products = 2,
    .setup_rows     = 36, /* times the share of the rows in all rows and entries */
    /* rows and entries that AIJ multiplies in 40 us, as long as the set-up of a few rows takes */
    .setup_least      = 100000,
    .refresh_products = 2,

    /* products with several columns: of how many rows of X are stored, where most slices read x by index, and where
       they are diagonals; entries a row from which two columns are enough. Measured with google, webbase, econ, and
       stencil7:100, stencil9:1000 (bench/products/columns, one core) */
    .columns_mean      = 16,
    .columns_scattered = 5,
    .columns_diagonal  = 8,
    /* entries a row of diagonals below which no rows of X are stored: stencil9, 8 columns, 45 ms in place of 21 */
    .columns_few = 16,
    /* and below which columns are multiplied one by one: tridiag, 4 columns, 5.9 ms in place of 5.3 */
    .columns_pieces = 4,
    /* values that stay in the second level of cache, with x and y, while they are multiplied with several columns */
    .columns_bytes = 64 * 1024,

    /* the store */
    .distinct_bytes = 512 * 1024, /* fewer bytes of values are in cache as it is */
    /* steps until the first check that at most half are distinct; the next one at twice as many, and so on */
    .distinct_steps = 512,
    /* stores of more bytes have 16-bit indices. Of fewer, which stay in the second level of cache, products would take
       up to 8 % longer (classical-interpolation1), of more they take 12 % (tet2-rcm) to 23 % (coarse:1) less */
    .narrow_bytes = 2 << 20,
    /* values of more bytes are written past the cache, which saves reading what is in their places before: refreshes of
       fem27:30:3 take 3.1 ms instead of 5.6; of fem27:12:3, which stays in the cache, they would take 0.20 instead of
       0.14 */
    .stream_bytes = 8 << 20,
    /* units whose entries are fetched before they are copied, and as many more whose row offsets are. Refreshes of a
       power law with evchyb take 14 ms instead of 38 */
    .fetch_ahead = 32,
    /* with fewer, A stays in the cache while units are sorted in windows, and refreshes of circuits with sellp would
       take 0.6 ms instead of 0.5 */
    .fetch_entries = 2000000,
    /* the parent multiplies by the transpose where the estimate is above this share of its time; the next five are in
       its entries, by kind of slice */
    .transpose_limit = 0.9,
    .transpose_full  = 0.6, /* each lane of a diagonal without empty lanes: y is contiguous */
    /* each lane of another diagonal; an entry of a slice by index or of vector CSR, which is scattered to y */
    .transpose_entry = 1.1,
    /* in units of several rows: divided by their number, as one addition to y is for all rows */
    .transpose_block    = 2.1,
    .transpose_unit     = 1.2,  /* a column of a unit of several rows in vector CSR */
    .transpose_unit_row = 0.25, /* and for each row */
};

PetscInt64 SpMVSetUpProducts(PetscInt64 rows, PetscInt64 nonzeros)
{
  return SpMVTuned.setup_products +
         (SpMVTuned.setup_rows * rows + SpMVTuned.setup_least) / PetscMax(rows + nonzeros, 1);
}

PetscInt64 SpMVRefreshProducts(void)
{
  return SpMVTuned.refresh_products;
}

double SpMVCostSlice(int width, int rbs, int cbs)
{
  return SpMVTuned.slice + SpMVTuned.slice_row * rbs +
         (double)width * cbs * (SpMVTuned.gather + SpMVTuned.multiply * rbs);
}

double SpMVCostDiagonals(int width, int bs)
{
  return SpMVTuned.slice + SpMVTuned.slice_row * bs +
         (double)width * bs * (bs == 1 ? SpMVTuned.diagonal : SpMVTuned.diagonal_bs + SpMVTuned.multiply * bs);
}

double SpMVCostLong(const SpMVCSR *A, int row, int rows)
{
  const PetscInt *j = A->j + A->i[row], len = A->i[row + 1] - A->i[row];
  double          cost = SpMVTuned.long_unit + SpMVTuned.long_row * rows;

  for (PetscInt k = 0; k < len; k += SPMV_LANES) {
    const PetscBool next =
        k + SPMV_LANES <= len && j[k + SPMV_LANES - 1] == j[k] + SPMV_LANES - 1 ? PETSC_TRUE : PETSC_FALSE;

    cost += (next ? SpMVTuned.long_next : SpMVTuned.gather) + SpMVTuned.multiply * rows;
  }
  return cost;
}

/* An upper bound of the above, from the length alone */
double SpMVCostLongMost(int length, int rows)
{
  return SpMVTuned.long_unit + SpMVTuned.long_row * rows +
         ((length + SPMV_LANES - 1) / SPMV_LANES) * (SpMVTuned.gather + SpMVTuned.multiply * rows);
}

/* AIJ's product, with its inodes, in the time of the kernels in use: all other estimates are for the fastest kernels */
double SpMVCostParent(const SpMVCSR *A, const SpMVUnits *U)
{
  double cost = 0;

  for (int u = 0; u < U->count; u++) {
    const PetscInt len = SpMVUnitLength(A, U, u);

    if (len)
      cost += SpMVTuned.parent + SpMVTuned.parent_row * U->rows[u] +
              SpMVTuned.parent_entry * (double)len * (1 + U->rows[u]);
  }
  return cost / SpMVKernelsGet()->slowdown;
}

/* The rows one by one, and in the units as they were found */
void SpMVCostUnits(const SpMVCSR *A, const SpMVUnits *U, double *single, double *grouped)
{
  *single  = 0;
  *grouped = 0;
  for (PetscInt r = 0; r < A->m; r += SPMV_LANES) {
    const int lanes = (int)PetscMin(SPMV_LANES, A->m - r), diagonals = SpMVDiagonals(A, (int)r, 1, lanes, NULL, NULL);
    const PetscInt64 entries = A->i[r + lanes] - A->i[r];

    *single += diagonals >= 0 ? SpMVCostDiagonals(diagonals, 1)
                              : SpMVCostSlice((int)((entries + SPMV_LANES - 1) / SPMV_LANES), 1, 1);
  }
  for (int u = 0; u < U->count; u++)
    *grouped += SpMVCostSlice((int)SpMVUnitLength(A, U, u), U->rows[u], 1) / SPMV_LANES;
  *grouped += SpMVTuned.scatter_unit * (double)A->m;
}
