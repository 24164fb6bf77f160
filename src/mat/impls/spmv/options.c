/*
  The options that all formats share.
*/
#include "matspmv.h"

const char *const SpMVKernelTypes[]  = {"auto", "slices", "csr", "aij", "paper", "SpMVKernel", "SPMV_KERNEL_", NULL};
const char *const SpMVHaloTypes[]    = {"auto", "peer", "nccl", "host", "petsc", "SpMVHaloType", "SPMV_HALO_", NULL};
const char *const SpMVReorderTypes[] = {"off", "auto", "SpMVReorder", "SPMV_REORDER_", NULL};
const char *const SpMVCOOPlaces[]    = {"auto", "host", "device", "SpMVCOOPlace", "SPMV_COO_", NULL};

/* An integer option within [lower, upper]. PetscOptionsRangeInt() cannot be used: it rejects the default 0 ("choose")
   as out of range */
PetscErrorCode SpMVOptionsInt(Mat A, SpMVOptionItems PetscOptionsObject, const char option[], const char text[],
                              const char manual[], PetscInt lower, PetscInt upper, PetscInt *value)
{
  const char *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";
  PetscBool   set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInt(option, text, manual, *value, value, &set));
  if (set) {
    PetscCheck(*value >= lower && *value <= upper, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
               "Option -%s%s is %" PetscInt_FMT ": it must be from %" PetscInt_FMT " to %" PetscInt_FMT, prefix,
               option + 1, *value, lower, upper);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the options that all formats share; manual: the format's manual page */
PetscErrorCode SpMVOptionsLayout(Mat A, SpMVOptionItems PetscOptionsObject, const char manual[], SpMVCommonParams *p)
{
  PetscBool compress = (PetscBool)p->compress, single = (PetscBool)p->single;
  PetscEnum reorder = (PetscEnum)p->reorder;

  PetscFunctionBegin;
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_spmv_node_size",
                           "Rows and columns of a node block (1: no node blocks, 0: detect)", manual, 0, SPMV_MAX_NODE,
                           &p->node));
  PetscCall(PetscOptionsEnum("-mat_spmv_kernel", "Kernel of the product", manual, SpMVKernelTypes, (PetscEnum)p->kernel,
                             (PetscEnum *)&p->kernel, NULL));
  PetscCall(SpMVOptionsInt(
      A, PetscOptionsObject, "-mat_spmv_setup_after",
      "On the host, number of AIJ products before the format is set up (-1: as many as take as long as the set-up)",
      manual, PETSC_DECIDE, PETSC_MAX_INT, &p->after));
  PetscCall(PetscOptionsBool("-mat_spmv_compress", "Use diagonals and node blocks, which imply column indices", manual,
                             compress, &compress, NULL));
  PetscCall(PetscOptionsBool("-mat_spmv_single", "On a GPU, store values in single precision (sums stay double)",
                             manual, single, &single, NULL));
  PetscCall(PetscOptionsEnum("-mat_spmv_reorder", "On a GPU, whether the order of rows may follow the graph", manual,
                             SpMVReorderTypes, reorder, &reorder, NULL));
  p->reorder  = (PetscInt)reorder;
  p->compress = compress;
  p->single   = single;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The options for the exchange of the halo on GPUs. The product reads them when it creates a halo, because
  MatSetFromOptions() is not called for matrices that PETSc creates from others (duplicates, products, coarse levels).
  MatSetFromOptions() reads them too, so that a wrong value is an error there, with or without GPUs.
*/
PetscErrorCode MatSpMVGetHaloOptions_MPI(Mat A, const Mat_SpMV *spmv, SpMVHaloOptions *o)
{
  const char *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";

  PetscFunctionBegin;
  o->type = SPMV_HALO_AUTO;
  o->rows = 0.6;
  SpMVOptionsBegin(A, "Parallel products on GPUs", spmv->format->name);
  PetscCall(PetscOptionsEnum("-mat_spmv_halo", "How GPUs exchange the halo", spmv->format->name, SpMVHaloTypes,
                             (PetscEnum)o->type, (PetscEnum *)&o->type, NULL));
  PetscCall(PetscOptionsReal("-mat_spmv_halo_rows",
                             "Largest fraction of boundary rows for the product's kernel to add the off-diagonal block",
                             spmv->format->name, o->rows, &o->rows, NULL));
  PetscOptionsEnd();
  PetscCheck(o->rows >= 0 && o->rows <= 1, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             /* NaN fails both comparisons */
             "Option -%smat_spmv_halo_rows is %g: it must be from 0 to 1", prefix, (double)o->rows);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the options of the COO functions. Each MatSetPreallocationCOO() calls this, for the same reasons */
PetscErrorCode MatSpMVGetCOOPlace(Mat A, const Mat_SpMV *spmv, SpMVCOOPlace *place)
{
  PetscFunctionBegin;
  *place = SPMV_COO_AUTO;
  SpMVOptionsBegin(A, "Assembly from coordinates on GPUs", spmv->format->name);
  PetscCall(PetscOptionsEnum("-mat_spmv_coo", "Where MatSetPreallocationCOO() sorts", spmv->format->name, SpMVCOOPlaces,
                             (PetscEnum)*place, (PetscEnum *)place, NULL));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVReadOptions(Mat A, Mat_SpMV *spmv)
{
  SpMVParams      params;
  SpMVHaloOptions halo;
  SpMVCOOPlace    coo;

  PetscFunctionBegin;
  PetscCall(PetscMemcpy(params, spmv->params, sizeof(params)));
  PetscCall((*spmv->format->options)(A, params));
  PetscCall(MatSpMVGetHaloOptions_MPI(A, spmv, &halo));
  PetscCall(MatSpMVGetCOOPlace(A, spmv, &coo));
  PetscCall(MatSpMVSetParams(A, spmv, params));
  /* on all ranks, even if the parameters have not changed */
  PetscCall(PetscMemzero(spmv->parallel.agreed, sizeof(spmv->parallel.agreed)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
