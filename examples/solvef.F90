!  Solves a linear system with PetscSpMV's types in Fortran: a 5-point stencil on n x n points, assembled with MatSetValues() and solved by KSP, then the
!  product of a small batch. Both products are compared with AIJ's.
!
!    mpiexec -n 2 ./solvef -n 100 -mat_type evchyb -ksp_type cg
!
#include <petsc/finclude/petscksp.h>

program solvef
  use petscksp
  use petscspmv
  implicit none

  Mat A, B
  Vec x, u, v, w
  KSP ksp
  PetscErrorCode ierr
  PetscInt n, row, first, last, its, columns(1)
  PetscScalar diagonal(1), neighbor(1)
  PetscInt, parameter :: single = 1, problems = 3 ! literals have the kind of a default integer, which is not PetscInt's everywhere
  PetscScalar, parameter :: one = 1.0
  PetscReal norm
  PetscBool flag
  character(len=80) :: type
  character(len=200) :: line
  type(PetscSpMVInfo) :: info

  PetscCallA(PetscInitialize(ierr))
  PetscCallA(PetscSpMVInitializePackage(ierr))
  n = 40
  PetscCallA(PetscOptionsGetInt(PETSC_NULL_OPTIONS, PETSC_NULL_CHARACTER, '-n', n, flag, ierr))

  ! The type is sellp unless -mat_type says otherwise
  PetscCallA(MatCreate(PETSC_COMM_WORLD, A, ierr))
  PetscCallA(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n*n, n*n, ierr))
  PetscCallA(MatSetType(A, MATSELLP, ierr))
  PetscCallA(MatSetFromOptions(A, ierr))
  PetscCallA(MatSetUp(A, ierr))
  PetscCallA(MatGetOwnershipRange(A, first, last, ierr))
  diagonal = 4.0
  neighbor = -1.0
  do row = first, last - 1
    columns = row
    PetscCallA(MatSetValues(A, single, [row], single, columns, diagonal, INSERT_VALUES, ierr))
    if (row >= n) call set(row, row - n)
    if (row < n*n - n) call set(row, row + n)
    if (mod(row, n) > 0) call set(row, row - 1)
    if (mod(row, n) < n - 1) call set(row, row + 1)
  end do
  PetscCallA(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY, ierr))
  PetscCallA(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY, ierr))

  ! A x = A u with u = 1
  PetscCallA(MatCreateVecs(A, x, u, ierr))
  PetscCallA(VecDuplicate(x, v, ierr))
  PetscCallA(VecDuplicate(x, w, ierr))
  PetscCallA(VecSet(u, one, ierr))
  PetscCallA(MatMult(A, u, v, ierr))
  PetscCallA(KSPCreate(PETSC_COMM_WORLD, ksp, ierr))
  PetscCallA(KSPSetOperators(ksp, A, A, ierr))
  PetscCallA(KSPSetFromOptions(ksp, ierr))
  PetscCallA(KSPSolve(ksp, v, x, ierr))
  PetscCallA(KSPGetIterationNumber(ksp, its, ierr))
  PetscCallA(VecAXPY(x, -one, u, ierr))
  PetscCallA(VecNorm(x, NORM_INFINITY, norm, ierr))
  call say('solver  ', 'iterations', real(its, kind(norm)), 'largest error', norm)

  PetscCallA(PetscSpMVGetFormat(A, type, ierr))
  if (type == ' ') then ! -mat_type chose a type of PETSc's own
    PetscCallA(MatGetType(A, type, ierr))
    PetscCallA(PetscPrintf(PETSC_COMM_WORLD, 'matrix    type '//trim(type)//new_line('a'), ierr))
  else
    PetscCallA(PetscSpMVGetInfo(A, info, ierr))
    write (line, '(5a, i0, a)') 'matrix    format ', trim(type), ', kernel ', trim(info%kernel), ', ', info%stored, ' entries stored on rank 0'
    PetscCallA(PetscPrintf(PETSC_COMM_WORLD, trim(line)//new_line('a'), ierr))
  end if
  PetscCallA(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B, ierr))
  call compare('product ', A, B, u, v, w)
  PetscCallA(MatDestroy(B, ierr))
  PetscCallA(KSPDestroy(ksp, ierr))
  PetscCallA(VecDestroy(x, ierr))
  PetscCallA(VecDestroy(u, ierr))
  PetscCallA(VecDestroy(v, ierr))
  PetscCallA(VecDestroy(w, ierr))
  PetscCallA(MatDestroy(A, ierr))
  call batch()
  PetscCallA(PetscFinalize(ierr))

contains

  subroutine set(i, j)
    PetscInt, intent(in) :: i, j

    columns = j
    PetscCallA(MatSetValues(A, single, [i], single, columns, neighbor, INSERT_VALUES, ierr))
  end subroutine

  ! Three dense problems on each process, of 1, 2 and 3 rows, as one matrix
  subroutine batch()
    PetscInt sizes(3), rowoffsets(7), columns(14), k
    PetscScalar values(14)
    Mat A, B
    Vec x, y, z
    type(MatBatchInfo) info

    sizes = [1, 2, 3]
    rowoffsets = [0, 1, 3, 5, 8, 11, 14]
    columns = [0, 0, 1, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    values = [(real(k, kind(values)), k=1, 14)]
    PetscCallA(MatCreateBatch(PETSC_COMM_WORLD, problems, sizes, rowoffsets, columns, values, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, A, ierr))
    PetscCallA(MatCreateVecs(A, x, y, ierr))
    PetscCallA(VecDuplicate(y, z, ierr))
    PetscCallA(VecSet(x, one, ierr))
    PetscCallA(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B, ierr))
    call compare('batch   ', A, B, x, y, z)
    PetscCallA(MatBatchGetInfo(A, info, ierr))
    write (line, '(a, i0, a)') 'batch     problems ', info%problems, ' on rank 0'
    PetscCallA(PetscPrintf(PETSC_COMM_WORLD, trim(line)//new_line('a'), ierr))
    PetscCallA(VecDestroy(x, ierr))
    PetscCallA(VecDestroy(y, ierr))
    PetscCallA(VecDestroy(z, ierr))
    PetscCallA(MatDestroy(A, ierr))
    PetscCallA(MatDestroy(B, ierr))
  end subroutine

  ! Multiplies with both matrices; a difference ends the program
  subroutine compare(what, A, B, x, y, z)
    character(len=*), intent(in) :: what
    Mat, intent(in) :: A, B
    Vec x, y, z
    PetscReal norm, difference

    PetscCallA(MatMult(A, x, y, ierr))
    PetscCallA(MatMult(B, x, z, ierr))
    PetscCallA(VecNorm(y, NORM_2, norm, ierr))
    PetscCallA(VecAXPY(z, -one, y, ierr))
    PetscCallA(VecNorm(z, NORM_2, difference, ierr))
    call say(what, 'norm', norm, 'difference from AIJ', difference)
    if (norm == 0 .or. difference > 100*epsilon(norm)*norm) then
      SETERRA(PETSC_COMM_WORLD, PETSC_ERR_PLIB, 'The product differs from that of AIJ')
    end if
  end subroutine

  subroutine say(what, name, value, name2, value2)
    character(len=*), intent(in) :: what, name, name2
    PetscReal, intent(in) :: value, value2

    write (line, '(4a, g0.6, 3a, g0.4)') what, '  ', name, ' ', value, ', ', name2, ' ', value2
    PetscCallA(PetscPrintf(PETSC_COMM_WORLD, trim(line)//new_line('a'), ierr))
  end subroutine
end program
