/*
   Linear elasticity on a grid of n^dim squares or cubes with bilinear or trilinear elements, fixed on one side, and its
   near null space. Also a program of the tests includes this file.
*/
#pragma once

#include <petscmat.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/* The stiffness matrix of the unit square or cube, E = 1 and nu = 0.3; bit k of a node's number is its coordinate k */
static void ElasticityElement(int dim, PetscReal K[24][24])
{
  const PetscReal lambda = 0.3 / (1.3 * 0.4), mu = 0.5 / 1.3, root = PetscSqrtReal((PetscReal)3.0);
  const int       nodes = 1 << dim;
  PetscReal       d[8][3];

  for (int a = 0; a < 24; a++) {
    for (int b = 0; b < 24; b++) K[a][b] = 0;
  }
  for (int q = 0; q < nodes; q++) { /* Gauss points */
    for (int a = 0; a < nodes; a++) {
      for (int i = 0; i < dim; i++) {
        d[a][i] = 1;
        for (int k = 0; k < dim; k++) {
          const PetscReal x = (PetscReal)0.5 * (1 + (q >> k & 1 ? 1 : -1) / root);

          if (k == i)
            d[a][i] *= a >> k & 1 ? 1 : -1;
          else
            d[a][i] *= a >> k & 1 ? x : 1 - x;
        }
      }
    }
    for (int a = 0; a < nodes; a++) {
      for (int b = 0; b < nodes; b++) {
        PetscReal dot = 0;

        for (int k = 0; k < dim; k++) dot += d[a][k] * d[b][k];
        for (int i = 0; i < dim; i++) {
          for (int j = 0; j < dim; j++)
            K[a * dim + i][b * dim + j] +=
                (lambda * d[a][i] * d[b][j] + mu * d[a][j] * d[b][i] + (i == j ? mu * dot : 0)) / nodes;
        }
      }
    }
  }
}

/* The rigid body modes, from the coordinates of the nodes */
static PetscErrorCode ElasticitySetNearNullSpace(Mat A, int dim, PetscInt n)
{
  MatNullSpace modes;
  PetscInt     first, end;
  PetscScalar *x;
  Vec          v;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, NULL, &v));
  PetscCall(VecSetBlockSize(v, dim));
  PetscCall(VecGetOwnershipRange(v, &first, &end));
  PetscCall(VecGetArrayWrite(v, &x));
  for (PetscInt row = first; row < end; row++) {
    PetscInt node = row / dim;

    for (int k = 0; k < row % dim; k++) node /= n + 1;
    x[row - first] = (PetscReal)(node % (n + 1)) / (PetscReal)n;
  }
  PetscCall(VecRestoreArrayWrite(v, &x));
  PetscCall(MatNullSpaceCreateRigidBody(v, &modes));
  PetscCall(MatSetNearNullSpace(A, modes));
  PetscCall(MatNullSpaceDestroy(&modes));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ElasticityCreate(MPI_Comm comm, MatType type, int dim, PetscInt n, Mat *A)
{
  const PetscInt nodes = (n + 1) * (n + 1) * (dim == 3 ? n + 1 : 1), row = dim == 3 ? 81 : 18;
  PetscInt       first, end;
  PetscReal      K[24][24];

  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, nodes * dim, nodes * dim));
  PetscCall(MatSetBlockSize(*A, dim));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, row, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, row, NULL, row, NULL));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  ElasticityElement(dim, K);
  for (PetscInt e = 0; e < n * n * (dim == 3 ? n : 1); e++) {
    const PetscInt at[3] = {e % n, e / n % n, e / n / n};
    PetscInt       node[8];
    PetscBool      fixed[8];

    for (int a = 0; a < 1 << dim; a++) {
      fixed[a] = (PetscBool)(at[0] + (a & 1) == 0);
      node[a]  = at[0] + (a & 1) + (n + 1) * (at[1] + (a >> 1 & 1));
      if (dim == 3) node[a] += (n + 1) * (n + 1) * (at[2] + (a >> 2 & 1));
    }
    for (int a = 0; a < 1 << dim; a++) {
      for (int i = 0; i < dim; i++) {
        const PetscInt r = node[a] * dim + i;

        if (r < first || r >= end) continue;
        for (int b = 0; b < 1 << dim; b++) {
          for (int j = 0; j < dim; j++) {
            const PetscInt c = node[b] * dim + j;

            if (fixed[a] || fixed[b])
              PetscCall(MatSetValue(*A, r, c, r == c ? 1 : 0, ADD_VALUES));
            else
              PetscCall(MatSetValue(*A, r, c, K[a * dim + i][b * dim + j], ADD_VALUES));
          }
        }
      }
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscCall(ElasticitySetNearNullSpace(*A, dim, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}
