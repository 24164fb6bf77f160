/*
  The whole internal C++ interface of the device core. Device code needs compute capability 8.0.
    ptx.cuh      assembler, and what one thread sees of another's writes
    scalar.cuh   numbers
    memory.cuh   errors, arrays, streams
    launch.cuh   kernels
    view.cuh     the CSR that is read
    stores.cuh   the stored matrix
*/
#pragma once

#include "stores.cuh"
