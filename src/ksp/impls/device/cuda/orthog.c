/*
  Classical Gram-Schmidt of PETSc's own methods GMRES, FGMRES, LGMRES and DGMRES, for vectors on the device: one pass
  for the inner products, one for the update and the norm, and one wait for the host instead of three.

  The types are created by PETSc's functions. During a solve, KSPOrthogonalizationClassicalGramSchmidt() is replaced;
  everything else is PETSc's.
*/
#include "krylov.h"
#include <petsc/private/vecimpl.h>
#include "core/cuda/krylov/orthog.h"

static const char KSPOrthogName[] = "PetscSpMV_KSPOrthog";

/* Its memory, of which a part is pinned, takes milliseconds to create, and the eigenvalue estimates of multigrid have a
   GMRES on each level */
static SpMVCudaOrthog KSPOrthogShared; /* NULL before the first solve */

static PetscErrorCode KSPOrthogFinalize(void)
{
  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaOrthogDestroy(&KSPOrthogShared));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscBool           use;  /* -ksp_device_orthogonalization */
  PetscBool           used; /* in the last solve */
  PetscInt            room; /* for arrays in v */
  const PetscScalar **v;
  PetscErrorCode (*solve)(KSP); /* PETSc's */
  PetscErrorCode (*view)(KSP, PetscViewer);
  PetscErrorCode (*setfromoptions)(KSP, SpMVOptionItems);
} KSPOrthog;

static PetscErrorCode KSPOrthogFree(SpMVCtx ctx)
{
  KSPOrthog *o = (KSPOrthog *)SpMVCtxGet(ctx);

  PetscFunctionBegin;
  PetscCall(PetscFree(o->v));
  PetscCall(PetscFree(o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPOrthogGet(KSP ksp, KSPOrthog **o)
{
  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)ksp, KSPOrthogName, o));
  PetscCheck(*o, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "KSP of type %s was not created by PetscSpMV",
             ((PetscObject)ksp)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the norm that VecNorm() finds */

static PetscReal KSPOrthogNorm;

static PetscErrorCode KSPOrthogGetNorm(Vec v, NormType type, PetscReal *norm)
{
  (void)v;
  (void)type;
  *norm = KSPOrthogNorm;
  return PETSC_SUCCESS;
}

/* Lets VecNorm() keep the norm. square: of the whole vector. Sums of squares that lose digits or overflow are left to
   the vector's own function */
static PetscErrorCode KSPOrthogSetNorm(Vec x, PetscReal square)
{
  PetscErrorCode (*petsc)(Vec, NormType, PetscReal *) = x->ops->norm;
  PetscErrorCode ierr;
  PetscReal      norm;

  PetscFunctionBegin;
  if (!(square > PETSC_REAL_MIN / PETSC_MACHINE_EPSILON && square < PETSC_MAX_REAL)) PetscFunctionReturn(PETSC_SUCCESS);
  KSPOrthogNorm = PetscSqrtReal(square);
  x->ops->norm  = KSPOrthogGetNorm;
  ierr          = VecNorm(x, NORM_2, &norm);
  x->ops->norm  = petsc;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- orthogonalization */

/* One step of classical Gram-Schmidt: lh = V'x and x -= V lh, and the square of the norm of x, over all ranks */
static PetscErrorCode KSPOrthogStep(KSPOrthog *o, MPI_Comm comm, PetscInt m, PetscInt n, PetscScalar *x,
                                    PetscScalar **lh, PetscReal *square)
{
  cudaStream_t stream;
  PetscMPIInt  size, count;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscMPIIntCast(n, &count));
  PetscCallCUDA(SpMVCudaOrthogProject(KSPOrthogShared, (int)m, count, o->v, x, stream));
  if (size > 1) {
    PetscCallCUDA(SpMVCudaOrthogGet(KSPOrthogShared, lh, square, stream));
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, *lh, count, MPIU_SCALAR, MPIU_SUM, comm));
  }
  PetscCallCUDA(SpMVCudaOrthogSubtract(KSPOrthogShared, (int)m, count, o->v, x, (PetscBool)(size > 1), stream));
  PetscCallCUDA(SpMVCudaOrthogGet(KSPOrthogShared, lh, square, stream));
  if (size > 1) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, square, 1, MPIU_REAL, MPIU_SUM, comm));
  PetscCall(PetscLogGpuFlops((4. * n + 2.) * m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPOrthogonalizationClassicalGramSchmidt(), on arrays */
static PetscErrorCode KSPOrthogArrays(KSP ksp, KSPOrthog *o, PetscInt n, Vec z, PetscScalar h[])
{
  MPI_Comm     comm   = PetscObjectComm((PetscObject)z);
  PetscInt     steps  = ksp->cgstype == KSP_ORTHOGONALIZATION_CGS_REFINE_ALWAYS ? 2 : 1;
  PetscReal    square = 0., projected = 0.;
  PetscScalar *x, *lh;
  PetscInt     m;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(z, &m));
  PetscCall(PetscArrayzero(h, n));
  PetscCall(VecCUDAGetArray(z, &x));
  for (PetscInt step = 0; step < steps; step++) {
    PetscCall(KSPOrthogStep(o, comm, m, n, x, &lh, &square));
    for (PetscInt j = 0; j < n; j++) {
      h[j] += lh[j];
      projected += PetscRealPart(lh[j] * PetscConj(lh[j]));
    }
    if (!step && ksp->cgstype == KSP_ORTHOGONALIZATION_CGS_REFINE_IFNEEDED && square < projected) steps = 2;
  }
  PetscCall(VecCUDARestoreArray(z, &x));
  PetscCall(KSPOrthogSetNorm(z, square));
  for (PetscInt j = 0; j < n; j++) KSPCheckDot(ksp, h[j]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A KSPOrthogonalizationFn */
static PetscErrorCode KSPOrthogonalization_Device(KSP ksp, Vec V[], PetscInt n, Vec x, PetscScalar h[])
{
  KSPOrthog *o = NULL;
  Vec        z = x ? x : V[n];
  PetscBool  is;

  PetscFunctionBegin;
  PetscCall(KSPOrthogGet(ksp, &o));
  /* ranks may differ in the vectors that are bound to the CPU, which are copied, but not in their type */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)z, &is, VECSEQCUDA, VECMPICUDA, ""));
  if (!is || !n) {
    PetscCall(KSPOrthogonalizationClassicalGramSchmidt(ksp, V, n, x, h));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(KSP_Orthogonalization, ksp, 0, 0, 0));
  if (o->room < n) {
    PetscCall(PetscFree(o->v));
    o->room = PetscMax(32, 2 * n);
    PetscCall(PetscMalloc1(o->room, &o->v));
  }
  for (PetscInt j = 0; j < n; j++) PetscCall(VecCUDAGetArrayRead(V[j], &o->v[j]));
  PetscCall(KSPOrthogArrays(ksp, o, n, z, h));
  for (PetscInt j = 0; j < n; j++) PetscCall(VecCUDARestoreArrayRead(V[j], &o->v[j]));
  PetscCall(PetscLogEventEnd(KSP_Orthogonalization, ksp, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the types */

/* The memory for a cycle, so that no rank lacks it later, while the others wait for its sums */
static PetscErrorCode KSPOrthogReserve(PetscInt restart, char why[], size_t len)
{
  const int    more = 64; /* vectors: LGMRES has some that the restart does not count */
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!KSPOrthogShared) {
    PetscCall(KSPDeviceCheckMemory(SpMVCudaOrthogCreate(&KSPOrthogShared), why, len));
    if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscRegisterFinalize(KSPOrthogFinalize));
  }
  restart = PetscMin(restart, 1 << 20);
  PetscCall(KSPDeviceCheckMemory(SpMVCudaOrthogReserve(KSPOrthogShared, (int)restart + more, stream), why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the solve has its vectors on the device of a matrix of our types. Collective, because ranks may differ in the
   objects that are bound to the CPU */
static PetscErrorCode KSPOrthogDecide(KSP ksp, KSPOrthog *o)
{
  Mat            A;
  PetscInt       restart = 30; /* that of DGMRES cannot be read */
  char           why[256];
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatSpMVWhyNot_CUDA(A, o->use ? NULL : "-ksp_device_orthogonalization 0", why, sizeof(why)));
  PetscCall(KSPDeviceWhyNotVec(ksp->vec_sol, why, sizeof(why)));
  o->used = (PetscBool)(!why[0] && ksp->orthog == KSPOrthogonalizationClassicalGramSchmidt);
  PetscTryMethod(ksp, "KSPGMRESGetRestart_C", (KSP, PetscInt *), (ksp, &restart));
  if (o->used) ierr = KSPOrthogReserve(restart, why, sizeof(why));
  if (ierr || why[0]) o->used = PETSC_FALSE;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &o->used, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)ksp)));
  PetscCall(SpMVAgree(PetscObjectComm((PetscObject)ksp), ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_Orthog(KSP ksp)
{
  KSPOrthog     *o = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(KSPOrthogGet(ksp, &o));
  PetscCall(KSPOrthogDecide(ksp, o));
  if (o->used) ksp->orthog = KSPOrthogonalization_Device;
  ierr = (*o->solve)(ksp);
  if (o->used) ksp->orthog = KSPOrthogonalizationClassicalGramSchmidt;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_Orthog(KSP ksp, PetscViewer viewer)
{
  KSPOrthog *o = NULL;
  PetscBool  isascii, within = (PetscBool)(ksp->orthog == KSPOrthogonalization_Device); /* a solve */

  PetscFunctionBegin;
  PetscCall(KSPOrthogGet(ksp, &o));
  if (within) ksp->orthog = KSPOrthogonalizationClassicalGramSchmidt; /* which PETSc's view knows */
  if (o->view) PetscCall((*o->view)(ksp, viewer));
  if (within) ksp->orthog = KSPOrthogonalization_Device;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (isascii && o->used)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  orthogonalization on the device, with one pass over the basis for all "
                                             "inner products and one for the update and the norm\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_Orthog(KSP ksp, SpMVOptionItems PetscOptionsObject)
{
  KSPOrthog *o = NULL;

  PetscFunctionBegin;
  PetscCall(KSPOrthogGet(ksp, &o));
  if (o->setfromoptions) PetscCall((*o->setfromoptions)(ksp, PetscOptionsObject));
  PetscOptionsHeadBegin(PetscOptionsObject, "KSP options on the device");
  PetscCall(PetscOptionsBool("-ksp_device_orthogonalization", "Classical Gram-Schmidt in two kernels on the device",
                             "KSPGMRES", o->use, &o->use, NULL));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPOrthogCreate(KSP ksp, PetscErrorCode (*create)(KSP))
{
  KSPOrthog *o;

  PetscFunctionBegin;
  PetscCall((*create)(ksp));
  PetscCall(PetscNew(&o));
  o->use                   = PETSC_TRUE;
  o->solve                 = ksp->ops->solve;
  o->view                  = ksp->ops->view;
  o->setfromoptions        = ksp->ops->setfromoptions;
  ksp->ops->solve          = KSPSolve_Orthog;
  ksp->ops->view           = KSPView_Orthog;
  ksp->ops->setfromoptions = KSPSetFromOptions_Orthog;
  PetscCall(SpMVDataSet((PetscObject)ksp, KSPOrthogName, o, KSPOrthogFree));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define KSPOrthogType(T)                                 \
  static PetscErrorCode (*KSPCreate_PETSc##T)(KSP);      \
  static PetscErrorCode KSPCreate_Orthog##T(KSP ksp)     \
  {                                                      \
    PetscFunctionBegin;                                  \
    PetscCall(KSPOrthogCreate(ksp, KSPCreate_PETSc##T)); \
    PetscFunctionReturn(PETSC_SUCCESS);                  \
  }                                                      \
  static PetscErrorCode KSPCreate_Orthog##T(KSP)
KSPOrthogType(GMRES);
KSPOrthogType(FGMRES);
KSPOrthogType(LGMRES);
KSPOrthogType(DGMRES);

PetscErrorCode KSPOrthogReplaceTypes(void)
{
  PetscFunctionBegin;
  PetscCall(KSPDeviceReplaceType(KSPList, KSPGMRES, KSPCreate_OrthogGMRES, &KSPCreate_PETScGMRES));
  PetscCall(KSPDeviceReplaceType(KSPList, KSPFGMRES, KSPCreate_OrthogFGMRES, &KSPCreate_PETScFGMRES));
  PetscCall(KSPDeviceReplaceType(KSPList, KSPLGMRES, KSPCreate_OrthogLGMRES, &KSPCreate_PETScLGMRES));
  PetscCall(KSPDeviceReplaceType(KSPList, KSPDGMRES, KSPCreate_OrthogDGMRES, &KSPCreate_PETScDGMRES));
  PetscFunctionReturn(PETSC_SUCCESS);
}
