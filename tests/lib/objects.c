#include "objects.h"

PetscErrorCode MatAssemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSizes(Mat A, PetscInt *m, PetscInt *n, PetscInt *M, PetscInt *N)
{
  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, m, n));
  PetscCall(MatGetSize(A, M, N));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateSized(MPI_Comm comm, const char *type, PetscInt m, PetscInt n, PetscInt M, PetscInt N,
                              PetscInt entries, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, entries, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, entries, NULL, entries, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ViewText(PetscObject object, PetscViewerFormat format, char **text)
{
  MPI_Comm    comm = PetscObjectComm(object);
  size_t      size = 0;
  FILE       *file = open_memstream(text, &size);
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory for a view");
  PetscCall(PetscViewerASCIIOpenWithFILE(comm, file, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, format));
  PetscCall(PetscObjectView(object, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ViewContains(PetscObject object, PetscViewerFormat format, const char text[], PetscBool *found)
{
  char *view;
  int   contains;

  PetscFunctionBegin;
  PetscCall(ViewText(object, format, &view));
  contains = !!strstr(view, text);
  free(view);
  PetscCallMPI(MPI_Bcast(&contains, 1, MPI_INT, 0, PetscObjectComm(object)));
  *found = (PetscBool)contains;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DestroyObjects(void *objects[])
{
  PetscFunctionBegin;
  for (int k = 0; objects[k]; k++) PetscCall(PetscObjectDestroy((PetscObject *)objects[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode OnDevice(const char *type, PetscBool *device)
{
  char      expect[16] = "";
  Mat       A;
  MatType   name;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 1, 1, 1, 1));
  PetscCall(MatSetType(A, type));
  PetscCall(MatGetType(A, &name));
  PetscCall(PetscStrbeginswith(name, MATSEQAIJCUSPARSE, device));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expect, sizeof(expect), NULL));
  PetscCall(PetscStrcmp(expect, *device ? "device" : "host", &same));
  PetscCheck(same || !expect[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-expect %s, but %s computes on the %s here", expect,
             type, *device ? "device" : "host");
  PetscFunctionReturn(PETSC_SUCCESS);
}
