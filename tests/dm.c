/*
  Matrices that DMs create. With -dm_mat_type sellp, a DM's operators and Galerkin products must have the format, and
  must equal those that the DM creates with AIJ. On a device, or with the name aijsellp, the same holds for its
  interpolations and restrictions. PETSc's DMDA and DMStag create these as AIJ, on the host, unless the type name begins
  with aij, seqaij or mpiaij.

  Options: -type T (default sellp; the names aijT and, on one rank, seqT are tested, too), -expect host|device.
*/
#include <petscdmda.h>
#include <petscdmplex.h>
#include <petscdmstag.h>
#include <petscds.h>
#include <petscspmv.h>
#include "objects.h"
#include "ranks.h"

static struct {
  char        what[200];
  PetscBool   device;
  PetscMPIInt size;
  PetscInt    checks, bad;
} now;

static void Expect(PetscBool right, const char *message)
{
  now.checks++;
  if (right) return;
  now.bad++;
  (void)PetscFPrintf(PETSC_COMM_SELF, stderr, "FAILED dm: %s: %s\n", now.what, message);
}

/* The format, and on a device the name of AIJCUSPARSE */
static PetscErrorCode HasFormat(Mat A, const char *message)
{
  PetscSpMVInfo  info;
  PetscBool      device;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  MayFail(ierr, PetscSpMVGetInfo(A, &info));
  Expect((PetscBool)!ierr, message);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  Expect((PetscBool)(ierr || device == now.device), "a matrix is not where the type computes");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether DMDA and DMStag create interpolations of the type for this name; on a device the library ensures it */
static PetscBool Named(const char *type)
{
  return (PetscBool)(now.device || !strncmp(type, "aij", 3));
}

/* A and R have the same entries, and their products agree up to rounding */
static PetscErrorCode Same(Mat A, Mat R, const char *message)
{
  Vec       x, y, u, v, w;
  PetscReal difference, size;

  PetscFunctionBegin;
  for (int transpose = 0; transpose < 2; transpose++) {
    if (transpose)
      PetscCall(MatCreateVecs(A, &y, &x));
    else
      PetscCall(MatCreateVecs(A, &x, &y));
    if (transpose)
      PetscCall(MatCreateVecs(R, &v, &u));
    else
      PetscCall(MatCreateVecs(R, &u, &v));
    PetscCall(VecDuplicate(v, &w));
    PetscCall(VecSetRandom(u, NULL));
    PetscCall(VecCopy(u, x));
    PetscCall(transpose ? MatMultTranspose(R, u, v) : MatMult(R, u, v));
    PetscCall(transpose ? MatMultTranspose(A, x, y) : MatMult(A, x, y));
    PetscCall(VecCopy(y, w));
    PetscCall(VecAXPY(w, -1., v));
    PetscCall(VecNorm(w, NORM_INFINITY, &difference));
    PetscCall(VecNorm(v, NORM_INFINITY, &size));
    Expect((PetscBool)(difference <= 1000 * PETSC_MACHINE_EPSILON * PetscMax(size, 1)), message);
    PetscCall(Destroy(&w, &u, &v, &x, &y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { DA1D, DA2D, DA3D, DA2D_Q0, STAG2D, PLEX2D, KINDS } Kind;
static const char *const kinds[] = {"DMDA, 1-D",     "DMDA, 2-D",   "DMDA, 3-D",
                                    "DMDA, 2-D, Q0", "DMStag, 2-D", "DMPlex, 2-D"};

static PetscErrorCode CreatePlex(PetscInt dof, DM *dm)
{
  PetscFE fe;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(
      NULL, "-plex_dm_plex_simplex 0 -plex_dm_plex_dim 2 -plex_dm_plex_box_faces 4,3 -plex_petscspace_degree 1"));
  PetscCall(DMCreate(PETSC_COMM_WORLD, dm));
  PetscCall(DMSetType(*dm, DMPLEX));
  PetscCall(DMSetOptionsPrefix(*dm, "plex_"));
  PetscCall(DMSetFromOptions(*dm));
  PetscCall(PetscFECreateDefault(PETSC_COMM_WORLD, 2, dof, PETSC_FALSE, "plex_", PETSC_DEFAULT, &fe));
  PetscCall(DMSetField(*dm, 0, NULL, (PetscObject)fe));
  PetscCall(DMCreateDS(*dm));
  PetscCall(PetscFEDestroy(&fe));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateDM(Kind kind, PetscInt dof, const char *type, DM *dm)
{
  const DMBoundaryType none = DM_BOUNDARY_NONE;

  PetscFunctionBegin;
  if (kind == DA1D) PetscCall(DMDACreate1d(PETSC_COMM_WORLD, none, 9, dof, 1, NULL, dm));
  if (kind == DA2D || kind == DA2D_Q0)
    PetscCall(DMDACreate2d(PETSC_COMM_WORLD, none, none, DMDA_STENCIL_BOX, 8, 7, PETSC_DECIDE, PETSC_DECIDE, dof, 1,
                           NULL, NULL, dm));
  if (kind == DA3D)
    PetscCall(DMDACreate3d(PETSC_COMM_WORLD, none, none, none, DMDA_STENCIL_STAR, 5, 6, 7, PETSC_DECIDE, PETSC_DECIDE,
                           PETSC_DECIDE, dof, 1, NULL, NULL, NULL, dm));
  if (kind == STAG2D)
    PetscCall(DMStagCreate2d(PETSC_COMM_WORLD, none, none, 8, 8, PETSC_DECIDE, PETSC_DECIDE, 0, dof, 1,
                             DMSTAG_STENCIL_BOX, 1, NULL, NULL, dm));
  if (kind == PLEX2D)
    PetscCall(CreatePlex(dof, dm));
  else
    PetscCall(DMSetFromOptions(*dm));
  if (kind == DA2D_Q0) PetscCall(DMDASetInterpolationType(*dm, DMDA_Q0));
  PetscCall(DMSetMatType(*dm, type));
  PetscCall(DMSetUp(*dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the values of a matrix whose pattern the DM has created */
static PetscErrorCode Fill(Mat A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecSet(d, 2.));
  PetscCall(MatDiagonalSet(A, d, INSERT_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrices from DMs of one kind: the operators of the coarse and the fine DM, the transfers between them, and a
   Galerkin product */
typedef struct {
  DM  coarse, fine;
  Mat A, F, P, R, G;
} Made;

static PetscErrorCode Make(Kind kind, PetscInt dof, const char *type, PetscBool coarsen, Made *m)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(m, sizeof(*m)));
  PetscCall(CreateDM(kind, dof, type, &m->coarse));
  PetscCall(DMRefine(m->coarse, PETSC_COMM_WORLD, &m->fine));
  if (kind == PLEX2D) { /* one mesh is nested in the other, which the interpolation uses */
    PetscCall(DMSetCoarseDM(m->fine, m->coarse));
    PetscCall(DMPlexSetRegularRefinement(m->fine, PETSC_TRUE));
    PetscCall(DMCopyDisc(m->coarse, m->fine));
  }
  if (!coarsen) PetscCall(DMCreateMatrix(m->coarse, &m->A));
  PetscCall(DMCreateMatrix(m->fine, &m->F));
  if (coarsen) { /* as in PCMG: the coarse DM is created from the fine one, after the fine operator */
    PetscCall(DMDestroy(&m->coarse));
    PetscCall(DMCoarsen(m->fine, PETSC_COMM_WORLD, &m->coarse));
  }
  PetscCall(Fill(m->F));
  PetscCall(DMCreateInterpolation(m->coarse, m->fine, &m->P, NULL));
  if (kind == STAG2D) PetscCall(DMCreateRestriction(m->coarse, m->fine, &m->R));
  if (coarsen) PetscCall(DMCreateMatrix(m->coarse, &m->A));
  PetscCall(Fill(m->A));
  PetscCall(MatPtAP(m->F, m->P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &m->G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MadeDestroy(Made *m)
{
  PetscFunctionBegin;
  PetscCall(Destroy(&m->A, &m->F, &m->P, &m->R, &m->G, &m->coarse, &m->fine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  format: whether the interpolation must have the format. On the host it has the format only with the names that begin
  with aij. For several unknowns, a DMDA creates the interpolation as MAIJ, which stores that of one unknown and becomes
  AIJCUSPARSE on a device.
*/
static PetscErrorCode Compare(const Made *m, const Made *reference, PetscBool format)
{
  PetscFunctionBegin;
  PetscCall(HasFormat(m->A, "the coarse operator lacks the format"));
  PetscCall(HasFormat(m->F, "the fine operator lacks the format"));
  if (format) PetscCall(HasFormat(m->P, "the interpolation lacks the format"));
  PetscCall(HasFormat(m->G, "the Galerkin product lacks the format"));
  PetscCall(Same(m->A, reference->A, "the coarse operator is not AIJ's"));
  PetscCall(Same(m->F, reference->F, "the fine operator is not AIJ's"));
  PetscCall(Same(m->P, reference->P, "the interpolation is not AIJ's"));
  PetscCall(Same(m->G, reference->G, "the Galerkin product is not AIJ's"));
  if (m->R) {
    if (format) PetscCall(HasFormat(m->R, "the restriction lacks the format"));
    PetscCall(Same(m->R, reference->R, "the restriction is not AIJ's"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDMs(PetscInt names, char name[][64])
{
  PetscFunctionBegin;
  /* on several ranks two of DMPlex's interpolations with AIJ differ from each other */
  for (int kind = 0; kind < (now.size > 1 ? PLEX2D : KINDS); kind++) {
    /* PETSc supports restrictions only for DMStags with one unknown per face */
    for (PetscInt dof = 1; dof <= (kind == STAG2D ? 1 : 4); dof++) {
      for (int coarsen = 0; coarsen < (kind == DA1D || kind == DA2D || kind == DA3D ? 2 : 1); coarsen++) {
        Made reference, m;

        PetscCall(Make((Kind)kind, dof, MATAIJ, (PetscBool)coarsen, &reference));
        for (PetscInt k = 0; k < names; k++) {
          PetscCall(PetscSNPrintf(now.what, sizeof(now.what), "%s, %s, %d unknowns%s", name[k], kinds[kind], (int)dof,
                                  coarsen ? ", coarsened" : ""));
          PetscCall(Make((Kind)kind, dof, name[k], (PetscBool)coarsen, &m));
          PetscCall(Compare(&m, &reference, (PetscBool)(kind == PLEX2D || (dof == 1 && Named(name[k])))));
          PetscCall(MadeDestroy(&m));
        }
        PetscCall(MadeDestroy(&reference));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     type[64] = "sellp", name[3][64];
  PetscInt names    = 0, sum[2];

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &now.size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", type, sizeof(type), NULL));
  PetscCall(OnDevice(type, &now.device));
  PetscCall(PetscStrncpy(name[names++], type, sizeof(name[0])));
  PetscCall(PetscSNPrintf(name[names++], sizeof(name[0]), "aij%s", type));
  if (now.size == 1) PetscCall(PetscSNPrintf(name[names++], sizeof(name[0]), "seq%s", type));
  PetscCall(TestDMs(names, name));
  sum[0] = now.checks;
  sum[1] = now.bad;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "dm: type %s on the %s, %d ranks: %d checks, %d failed\n", type,
                        now.device ? "device" : "host", now.size, (int)sum[0], (int)sum[1]));
  PetscCall(PetscFinalize());
  return sum[1] ? 1 : 0;
}
