/*
  The whole internal C++ interface of the device core. Device code needs compute capability 8.0.
    ptx.cuh      assembly, and the visibility of one thread's writes to another
    scalar.cuh   numbers
    memory.cuh   errors, arrays, streams
    launch.cuh   kernels
    view.cuh     the CSR matrix that is read
    stores.cuh   the stored matrix
*/
#pragma once

#include "stores.cuh"
