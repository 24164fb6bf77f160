/*
  STREAM's four kernels (McCalpin), for the EVC-HYB paper's Table 2. Used by paper.c.
*/
#pragma once

static const struct {
  const char *name;
  int         arrays; /* number of arrays that the kernel reads or writes */
} StreamKernels[] = {{"copy", 2}, {"scale", 2}, {"add", 3}, {"triad", 3}};

static const double StreamScalar = 3.0;

static void StreamHost(int kernel, PetscInt n, double *restrict a, double *restrict b, double *restrict c)
{
  switch (kernel) {
  case 0:
    for (PetscInt k = 0; k < n; k++) c[k] = a[k];
    break;
  case 1:
    for (PetscInt k = 0; k < n; k++) b[k] = StreamScalar * c[k];
    break;
  case 2:
    for (PetscInt k = 0; k < n; k++) c[k] = a[k] + b[k];
    break;
  default:
    for (PetscInt k = 0; k < n; k++) a[k] = b[k] + StreamScalar * c[k];
  }
}

/* Seconds of each kernel in each of reps turns. They run one after the other, as in STREAM, so the arrays' values are
   known at the end: *error */
static PetscErrorCode StreamTime(PetscInt n, PetscInt reps, double *t[], double *error)
{
  double *array[3], value[3] = {1.0, 2.0, 0.0}, last[3];

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    PetscCall(PetscMalloc1(n, &array[k]));
    for (PetscInt q = 0; q < n; q++) array[k][q] = value[k];
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 3 && DeviceOn; k++) {
    double *on;

    PetscCallCUDA(cudaMalloc((void **)&on, (size_t)n * sizeof(*on)));
    PetscCallCUDA(cudaMemcpy(on, array[k], (size_t)n * sizeof(*on), cudaMemcpyHostToDevice));
    PetscCall(PetscFree(array[k]));
    array[k] = on;
  }
#endif
  for (PetscInt r = -1; r < reps; r++) { /* the first turn does not count */
    for (int k = 0; k < 4; k++) {
      double         seconds = 0.0;
      PetscLogDouble begin   = 0.0;

#if defined(PETSCSPMV_HAVE_CUDA)
      if (DeviceOn) {
        float ms;

        PetscCallCUDA(cudaEventRecord(Device.begin, Device.stream));
        PetscCallCUDA(StreamCUDA(k, (int64_t)n, StreamScalar, array[0], array[1], array[2], Device.stream));
        PetscCallCUDA(cudaEventRecord(Device.end, Device.stream));
        PetscCallCUDA(cudaEventSynchronize(Device.end));
        PetscCallCUDA(cudaEventElapsedTime(&ms, Device.begin, Device.end));
        seconds = 1e-3 * (double)ms;
      }
#endif
      if (!DeviceOn) {
        PetscCall(TimeBegin(PETSC_COMM_SELF, &begin));
        StreamHost(k, n, array[0], array[1], array[2]);
        PetscCall(TimeEnd(PETSC_COMM_SELF, begin, &seconds));
      }
      if (r >= 0) t[k][r] = seconds;
    }
    value[2] = value[0];
    value[1] = StreamScalar * value[2];
    value[2] = value[0] + value[1];
    value[0] = value[1] + StreamScalar * value[2];
  }
  *error = 0.0;
  for (int k = 0; k < 3; k++) {
#if defined(PETSCSPMV_HAVE_CUDA)
    if (DeviceOn) {
      PetscCallCUDA(cudaMemcpy(&last[k], array[k] + n - 1, sizeof(double), cudaMemcpyDeviceToHost));
      PetscCallCUDA(cudaFree(array[k]));
    }
#endif
    if (!DeviceOn) {
      last[k] = array[k][n - 1];
      PetscCall(PetscFree(array[k]));
    }
    *error = PetscMax(*error, fabs(last[k] / value[k] - 1.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Writes rows of the CSV file, in which each kernel is a format of the matrix stream:n */
static PetscErrorCode StreamRun(PetscInt n, PetscInt reps, FILE *csv)
{
  double *t[4], error = 0.0;

  PetscFunctionBeginUser;
  for (int k = 0; k < 4; k++) PetscCall(PetscMalloc1(reps, &t[k]));
  PetscCall(StreamTime(n, reps, t, &error));
  PetscCall(PetscPrintf(PETSC_COMM_SELF,
                        "stream:%" PetscInt_FMT " (generated), %" PetscInt_FMT " x 1, %" PetscInt_FMT " entries\n", n,
                        n, n));
  for (int k = 0; k < 4; k++) {
    const double bytes = (double)StreamKernels[k].arrays * (double)n * 8.0;
    double       median;

    PetscCall(Median(reps, t[k], &median));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-6s %10.2f us %9.2f GB/s%s\n", StreamKernels[k].name, 1e6 * median,
                          1e-9 * bytes / median, error < 1e-12 ? "" : "  WRONG"));
    if (csv)
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, csv,
                             "stream:%" PetscInt_FMT ",generated,%" PetscInt_FMT ",1,%" PetscInt_FMT
                             ",%s,%.4g,%s,%.9g,%.9g,%.0f,0,0,%.3g,\"\",%s\n",
                             n, n, n, DeviceOn ? Device.name : "host", Device.copy, StreamKernels[k].name, median,
                             t[k][0], bytes, error < 1e-12 ? 0.0 : 2.0, ResultsSource(DeviceOn ? Device.name : NULL)));
    PetscCall(PetscFree(t[k]));
  }
  PetscCheck(error < 1e-12, PETSC_COMM_SELF, PETSC_ERR_PLIB, "STREAM's arrays are off by %g", error);
  PetscFunctionReturn(PETSC_SUCCESS);
}
