/*
  The formats' set-ups, with the parameters that choose a layout.
*/
#pragma once

#include "mat/impls/evchyb/evchyb.h"
#include "mat/impls/sellp/sellp.h"
#include "common.cuh"

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;
PETSC_INTERN SpMVCudaSetUp SpMVCudaEVCHYBSetUp; // nvcc makes an error of both in one declaration

using Setup = decltype(Layout::setup);

static inline Setup SELLP(PetscInt b, PetscInt t, PetscInt sigma, PetscInt node, PetscInt compress, SpMVKernel k,
                          bool single = false)
{
  return [=](const SpMVCudaCSR *csr, PetscBool transpose, cudaStream_t s, SpMVCudaStore *store) {
    SELLPParams p     = {};
    p.b               = b;
    p.t               = t;
    p.sigma           = sigma;
    p.common.node     = node;
    p.common.compress = compress;
    p.common.single   = single;
    p.common.kernel   = k;
    p.common.reorder  = SPMV_REORDER_AUTO;
    return SpMVCudaSELLPSetUp(csr, &p, transpose, s, store);
  };
}

static inline Setup EVCHYB(PetscInt limit, PetscInt node, PetscInt compress, SpMVKernel k, bool single = false)
{
  return [=](const SpMVCudaCSR *csr, PetscBool transpose, cudaStream_t s, SpMVCudaStore *store) {
    EVCHYBParams p     = {};
    p.ell_limit        = limit;
    p.max_threads_log2 = 9;
    p.common.node      = node;
    p.common.compress  = compress;
    p.common.single    = single;
    p.common.kernel    = k;
    p.common.reorder   = SPMV_REORDER_AUTO;
    return SpMVCudaEVCHYBSetUp(csr, &p, transpose, s, store);
  };
}
