/*
  The four kinds of matrices that are taken over, and what each takes over. MatSpMVHook() and MatSpMVUnhook() work from
  this table alone, so that they need not know the files that define the operations.
*/
#include "matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)
  #define SpMVOnDevice(device, host) device
#else /* a matrix of AIJCUSPARSE, if PETSc has it, multiplies on the host */
  #define SpMVOnDevice(device, host) host
  #define MatSpMVSetOps_SeqCUSPARSE  NULL
  #define MatSpMVSetOps_MPICUSPARSE  NULL
  #define MatSpMVSetOps_MPICOO       NULL
  #define MatSpMVCompose_COO         NULL
#endif

const SpMVKind SpMVKinds[2][2] = {{{.parent  = MATSEQAIJ,
                                    .setops  = {MatSpMVSetOps_Seq, MatSpMVSetOps_View, MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}},
                                   {.parent  = MATMPIAIJ,
                                    .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}}},
                                  {{.parent  = MATSEQAIJCUSPARSE,
                                    .setops  = {SpMVOnDevice(MatSpMVSetOps_SeqCUDA, MatSpMVSetOps_Seq), MatSpMVSetOps_View, MatSpMVSetOps_Keep,
                                                SpMVOnDevice(MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_Product), MatSpMVSetOps_SeqCUSPARSE},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_COO}},
                                   {.parent  = MATMPIAIJCUSPARSE,
                                    .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Keep,
                                                SpMVOnDevice(MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_Product), MatSpMVSetOps_MPICUSPARSE, MatSpMVSetOps_MPICOO},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_COO}}}};
