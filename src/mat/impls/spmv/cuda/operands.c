/*
  The operands of a product where their values are, and device copies of host vectors.
*/
#include "matspmvcuda.h"
#include <petsc/private/vecimpl.h> /* offloadmask */

/* Sets x, y and z to the operands' arrays or their copies */
static void SpMVOperandsPoint(SpMVOperands *o)
{
  PetscScalar *array[3];

  for (int v = 0; v < 3; v++) array[v] = o->operand[v].copy ? o->operand[v].copy : o->operand[v].array;
  o->z = array[0];
  o->x = array[1];
  o->y = o->operand[0].access == SPMV_UPDATE ? array[0] : array[2];
}

PetscErrorCode SpMVOperandsBegin(Vec xx, Vec yy, Vec zz, SpMVOperands *o)
{
  const Vec v[3] = {zz, xx, yy == zz ? NULL : yy};

  PetscFunctionBegin;
  o->device = o->host = PETSC_FALSE;
  for (int k = 0; k < 3; k++) {
    SpMVOperand *p = &o->operand[k];

    *p = (SpMVOperand){.v = v[k], .access = k ? SPMV_READ : yy == zz ? SPMV_UPDATE : SPMV_WRITE};
    if (!p->v) continue;
    if (p->access == SPMV_READ)
      PetscCall(VecGetArrayReadAndMemType(p->v, (const PetscScalar **)&p->array, &p->memtype));
    else if (p->access == SPMV_WRITE)
      PetscCall(VecGetArrayWriteAndMemType(p->v, &p->array, &p->memtype));
    else
      PetscCall(VecGetArrayAndMemType(p->v, &p->array, &p->memtype));
    if (PetscMemTypeDevice(p->memtype))
      o->device = PETSC_TRUE;
    else
      o->host = PETSC_TRUE;
  }
  SpMVOperandsPoint(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees a copy; if `back`, the result is copied back first */
static PetscErrorCode SpMVOperandUnstage(SpMVOperand *o, PetscBool back)
{
  cudaStream_t stream;
  PetscInt     n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(o->v, &n));
  if (back && o->access != SPMV_READ && n) {
    const size_t bytes = (size_t)n * sizeof(PetscScalar);

    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCallCUDA(cudaMemcpyAsync(o->array, o->copy, bytes, cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  }
  PetscCallCUDA(cudaFree(o->copy));
  o->copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVOperandsEnd(SpMVOperands *o)
{
  PetscFunctionBegin;
  for (int k = 2; k >= 0; k--) {
    SpMVOperand *p = &o->operand[k];

    if (!p->v) continue;
    if (p->copy) PetscCall(SpMVOperandUnstage(p, PETSC_TRUE));
    if (p->access == SPMV_READ)
      PetscCall(VecRestoreArrayReadAndMemType(p->v, (const PetscScalar **)&p->array));
    else if (p->access == SPMV_WRITE)
      PetscCall(VecRestoreArrayWriteAndMemType(p->v, &p->array));
    else
      PetscCall(VecRestoreArrayAndMemType(p->v, &p->array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *staged becomes false if the device has no memory for the copy */
static PetscErrorCode SpMVOperandStage(SpMVOperand *o, cudaStream_t stream, PetscBool *staged)
{
  PetscInt    n;
  size_t      bytes;
  cudaError_t error;

  PetscFunctionBegin;
  if (!o->v || PetscMemTypeDevice(o->memtype) || !*staged) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(o->v, &n));
  bytes = (size_t)n * sizeof(PetscScalar);
  error = cudaMalloc((void **)&o->copy, PetscMax(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    o->copy = NULL;
    *staged = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(error);
  if (o->access != SPMV_WRITE && bytes) {
    PetscCallCUDA(cudaMemcpyAsync(o->copy, o->array, bytes, cudaMemcpyHostToDevice, stream));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Copies the operands that are on the host to the device for one product: all of them or none. SpMVVecOnDevice() is not
  suitable: to find out where a vector is, it gets the values, even of a vector that the product overwrites, and lack of
  memory is an error.
*/
PetscErrorCode SpMVOperandsStage(SpMVOperands *o, cudaStream_t stream, PetscBool *staged)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *staged = PETSC_TRUE;
  for (int k = 0; k < 3 && !ierr; k++) ierr = SpMVOperandStage(&o->operand[k], stream, staged);
  for (int k = 0; k < 3 && (ierr || !*staged); k++) {
    if (o->operand[k].copy) PetscCall(SpMVOperandUnstage(&o->operand[k], PETSC_FALSE));
  }
  SpMVOperandsPoint(o);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- vectors */

/* Gets a device vector to use instead of the host vector v, with v's array; if v is a device vector, gets v itself */
PetscErrorCode SpMVVecOnDevice(Vec v, Vec *d)
{
  const PetscScalar *a;
  PetscMemType       memtype;
  PetscInt           n;

  PetscFunctionBegin;
  *d = v;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayReadAndMemType(v, &a, &memtype));
  if (PetscMemTypeHost(memtype)) PetscCall(VecCreateSeqCUDAWithArrays(PETSC_COMM_SELF, 1, n, a, NULL, d));
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecRestore(Vec v, PetscBool changed, Vec *d)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  if (*d == v) {
    *d = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (changed) {
    PetscCall(VecSetErrorIfLocked(v, 1));
    PetscCall(VecGetArrayRead(*d, &a)); /* copies the values to the array, which is v's */
    PetscCall(VecRestoreArrayRead(*d, &a));
    PetscCall(PetscObjectStateIncrease((PetscObject)v));
    /*
      VecMDot() of a device vector with v copies v to the device and considers that copy up to date from then on,
      because nothing marks v as changed (PETSc 3.26). A basis of GMRES may contain both kinds of vectors:
      KSPCreateVecs() creates the first vectors with the DM (for a field of a DMDA these are host vectors) and later
      ones like the solution.
    */
    v->offloadmask = PETSC_OFFLOAD_CPU;
  }
  PetscCall(VecDestroy(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecCopyLocal(Vec from, PetscScalar scale, Vec to)
{
  Vec local[2];

  PetscFunctionBegin;
  PetscCall(VecCreateLocalVector(to, &local[1]));
  PetscCall(VecGetLocalVector(to, local[1]));
  if (from != to) {
    PetscCall(VecCreateLocalVector(from, &local[0]));
    PetscCall(VecGetLocalVectorRead(from, local[0]));
    PetscCall(VecCopy(local[0], local[1]));
    PetscCall(VecRestoreLocalVectorRead(from, local[0]));
    PetscCall(VecDestroy(&local[0]));
  }
  if (scale != (PetscScalar)1.0) PetscCall(VecScale(local[1], scale));
  PetscCall(VecRestoreLocalVector(to, local[1]));
  PetscCall(VecDestroy(&local[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
