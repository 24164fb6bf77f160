/*
  The four kinds of matrices that are hooked, and the operations and functions that are replaced in each. MatSpMVHook()
  and MatSpMVUnhook() use only this table, so that they do not depend on the files that define the operations. What a
  device replaces in addition is in the table SpMVCUDA.
*/
#include "matspmv.h"

const SpMVKind SpMVKinds[2][2] = {{{.parent  = MATSEQAIJ,
                                    .setops  = {MatSpMVSetOps_Seq, MatSpMVSetOps_View, MatSpMVSetOps_Parent,
                                                MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent, MatSpMVCompose_Names}},
                                   {.parent  = MATMPIAIJ,
                                    .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Parent,
                                                MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}}},
                                  {{.parent  = MATSEQAIJCUSPARSE,
                                    .setops  = {MatSpMVSetOps_Seq, MatSpMVSetOps_View, MatSpMVSetOps_Parent,
                                                MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}},
                                   {.parent  = MATMPIAIJCUSPARSE,
                                    .setops  = {MatSpMVSetOps_MPI, MatSpMVSetOps_View, MatSpMVSetOps_Parent,
                                                MatSpMVSetOps_Keep, MatSpMVSetOps_Product},
                                    .compose = {MatSpMVCompose_Product, MatSpMVCompose_Parent}}}};
