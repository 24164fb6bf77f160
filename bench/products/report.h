/*
   What bench.c says of a matrix and its contenders: a table, and rows of the file of results.
*/
#pragma once

#include "contender.h"
#include "results.h"

typedef struct
{ /* speeds relative to AIJ over the matrices, warm and cold: the sums of their logarithms, and the least */
  char     name[128];
  PetscInt n;
  double   sum[2], least[2];
} Mean;

static void MeanAdd(Mean *m, const double ratio[2])
{
  for (int q = 0; q < 2; q++) {
    m->sum[q] += ratio[q] > 0.0 ? log(ratio[q]) : 0.0;
    m->least[q] = m->n ? PetscMin(m->least[q], ratio[q]) : ratio[q];
  }
  m->n++;
}

static double MeanGet(const Mean *m, int q)
{
  return m->least[q] > 0.0 ? exp(m->sum[q] / (double)m->n) : 0.0;
}

static double Ratio(double of, double to)
{
  return to > 0.0 ? of / to : 0.0;
}

static double GFlops(double nnz, double seconds)
{
  return seconds > 0.0 ? (PetscDefined(USE_COMPLEX) ? 8e-9 : 2e-9) * nnz / seconds : 0.0;
}

/* The types side by side, best: the time of the best of cuSPARSE's products */
static PetscErrorCode ReportText(MPI_Comm comm, double nnz, PetscInt n, const Contender c[], double best)
{
  const double aij = c[0].warm > 0.0 ? c[0].warm : c[0].cold, unit = DeviceOn ? 1e-3 : aij; /* of set-up */
  int          width = 10;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) width = PetscMax(width, (int)strlen(c[k].name));
  PetscCall(PetscPrintf(comm, "  %-*s %-15s | %9s %7s %6s | %9s %7s %6s | %8s %8s %8s", width, "type", "viewed as",
                        "warm", "GF/s", "x aij", "cold", "GF/s", "x aij", "convert", "first", "refresh"));
  if (DeviceOn) PetscCall(PetscPrintf(comm, " %8s | %8s %5s %8s %6s", "device", "MB", "share", "memory", "x cusp"));
  PetscCall(PetscPrintf(comm, " | %6s\n", "error"));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(PetscPrintf(comm, "  %-*s %-15s | %9.2f %7.2f %6.2f | %9.2f %7.2f %6.2f | %8.3f %8.3f %8.3f", width,
                          c[k].name, c[k].viewed, 1e6 * c[k].warm, GFlops(nnz, c[k].warm), Ratio(c[0].warm, c[k].warm),
                          1e6 * c[k].cold, GFlops(nnz, c[k].cold), Ratio(c[0].cold, c[k].cold),
                          Ratio(c[k].convert, unit), Ratio(c[k].first, unit), Ratio(c[k].refresh, unit)));
    if (DeviceOn)
      PetscCall(PetscPrintf(comm, " %8.3f | %8.1f %4.0f%% %8.1f %6.2f", 1e3 * c[k].refresh_device, 1e-6 * c[k].bytes,
                            100.0 * Ratio(c[k].bytes, c[k].warm) / Device.copy, 1e-6 * c[k].memory,
                            Ratio(best, c[k].warm)));
    PetscCall(PetscPrintf(comm, " | %6.3g%s%s%s\n", c[k].error, c[k].error <= 1.0 ? "" : "  WRONG",
                          c[k].note[0] ? "  " : "", c[k].note));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReportHeader(MPI_Comm comm, FILE *csv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFPrintf(comm, csv,
                         "matrix,origin,rows,columns,entries,ranks,type,viewed,ours,warm_s,warm_least_s,warm_ratio,"
                         "cold_s,cold_least_s,cold_ratio,convert_s,"
                         "first_s,refresh_s,error,note"));
  if (DeviceOn)
    PetscCall(PetscFPrintf(
        comm, csv,
        ",device,copy_bytes_per_s,gflops,bytes,share_of_copy,cusparse_ratio,refresh_device_s,device_memory"));
  PetscCall(PetscFPrintf(comm, csv, "," RESULTS_SOURCE "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const char *name, const char *origin, Mat A, PetscInt n, const Contender c[], double best,
                             FILE *csv)
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)A);
  MatInfo     info;
  PetscInt    M, N;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(comm, "\n%s (%s), %" PetscInt_FMT " x %" PetscInt_FMT ", %.0f entries, %.1f a row\n", name,
                        origin, M, N, info.nz_used, info.nz_used / (double)PetscMax(1, M)));
  PetscCall(ReportText(comm, info.nz_used, n, c, best));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(PetscFPrintf(comm, csv,
                           "%s,%s,%" PetscInt_FMT ",%" PetscInt_FMT
                           ",%.0f,%d,%s,%s,%d,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.3g,\"%s\"",
                           name, origin, M, N, info.nz_used, size, c[k].name, c[k].viewed, (int)c[k].ours, c[k].warm,
                           c[k].warm_least, Ratio(c[0].warm, c[k].warm), c[k].cold, c[k].cold_least,
                           Ratio(c[0].cold, c[k].cold), c[k].convert, c[k].first, c[k].refresh, c[k].error, c[k].note));
    if (DeviceOn)
      PetscCall(PetscFPrintf(comm, csv, ",%s,%.4g,%.4g,%.0f,%.4g,%.9g,%.9g,%.0f", Device.name, Device.copy,
                             GFlops(info.nz_used, c[k].warm), c[k].bytes, Ratio(c[k].bytes, c[k].warm) / Device.copy,
                             Ratio(best, c[k].warm), c[k].refresh_device, c[k].memory));
    PetscCall(PetscFPrintf(comm, csv, ",%s\n", ResultsSource(DeviceOn ? Device.name : NULL)));
  }
  if (csv) fflush(csv);
  PetscFunctionReturn(PETSC_SUCCESS);
}
