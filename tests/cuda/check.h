/*
  For programs that call CUDA and handle an error only by reporting where it occurred.
*/
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>

#define CHECK_STATUS(call, status, success, text)                         \
  do {                                                                    \
    status error_ = (call);                                               \
    if (error_ != success) {                                              \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text(error_)); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)
#define CHECK(call) CHECK_STATUS(call, cudaError_t, cudaSuccess, cudaGetErrorString)
