/*
  A library without CUDA: the folders cuda and cusparse are not compiled.
*/
#include "matspmv.h"

const SpMVBackend SpMVCUDA = {0};
