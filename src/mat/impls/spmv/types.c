/*
  The four kinds of matrices that are hooked, and the operations and functions that are replaced in each. MatSpMVHook()
  and MatSpMVUnhook() use only this table, so that they do not depend on the files that define the operations.
*/
#include "matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)
  #define SpMVOnDevice(device, host) device
#else /* an AIJCUSPARSE matrix, if PETSc has this type, multiplies on the host */
  #define SpMVOnDevice(device, host) host
  #define MatSpMVSetOps_SeqCUSPARSE  NULL
  #define MatSpMVSetOps_MPICUSPARSE  NULL
  #define MatSpMVSetOps_MPICOO       NULL
  #define MatSpMVSetOps_SeqValues    NULL
  #define MatSpMVSetOps_MPIValues    NULL
  #define MatSpMVCompose_Values      NULL
  #define MatSpMVCompose_COO         NULL
#endif

const SpMVKind SpMVKinds[2][2] = {
    {{.parent  = MATSEQAIJ,
      .setops  = {MatSpMVSetOps_Seq, MatSpMVSetOps_View, MatSpMVSetOps_Parent, MatSpMVSetOps_Keep,
                  MatSpMVSetOps_Product},
      .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_Names}},
     {.parent  = MATMPIAIJ,
      .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Parent, MatSpMVSetOps_Keep,
                  MatSpMVSetOps_Product},
      .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}}},
    {{.parent  = MATSEQAIJCUSPARSE,
      .setops  = {SpMVOnDevice(MatSpMVSetOps_SeqCUDA, MatSpMVSetOps_Seq), MatSpMVSetOps_View, MatSpMVSetOps_Parent,
                  MatSpMVSetOps_Keep, SpMVOnDevice(MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_Product),
                  MatSpMVSetOps_SeqCUSPARSE, MatSpMVSetOps_SeqValues},
      .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_COO, MatSpMVCompose_Values}},
     {.parent  = MATMPIAIJCUSPARSE,
      .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Parent, MatSpMVSetOps_Keep,
                  SpMVOnDevice(MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_Product), MatSpMVSetOps_MPICUSPARSE,
                  MatSpMVSetOps_MPICOO, MatSpMVSetOps_MPIValues},
      .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_COO, MatSpMVCompose_Values}}}};
