/* Columns of dense matrices */
#pragma once

#include "objects.h"

/*
  Copies this rank's part of column q to v, through the host. MatDenseGetColumnVecRead() may return older values if the
  matrix is bound to the CPU. For a parallel matrix on the host with CUDA vectors, it fails for the second column if the
  first one was read on the device.
*/
PetscErrorCode DenseGetColumn(Mat D, PetscInt q, Vec v);
