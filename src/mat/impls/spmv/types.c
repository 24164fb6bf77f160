/*
  The types that ours are derived from, and what is replaced in their matrices. MatSpMVHook() and MatSpMVUnhook() use
  only these tables, so that they do not depend on the files that define the operations.
*/
#include "matspmv.h"

const MatType SpMVParentTypes[2][2] = {{MATSEQAIJ, MATMPIAIJ}, {MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE}};

void (*const SpMVSetOps[])(Mat) = {MatSpMVSetOps_Mult, MatSpMVSetOps_View,    MatSpMVSetOps_Parent,
                                   MatSpMVSetOps_Keep, MatSpMVSetOps_Product, NULL};
PetscErrorCode (*const SpMVCompose[])(Mat, PetscBool, PetscBool, PetscBool) = {MatSpMVCompose_Product,
                                                                               MatSpMVCompose_Parent, NULL};
