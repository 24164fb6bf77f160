!  Every call, type and constant of the Fortran module, and the codes of errors. Ends with an error where one is wrong.
#include <petsc/finclude/petscmat.h>
#if PETSC_VERSION_LT(3,19,0)
#define PETSC_NULL_INTEGER_ARRAY PETSC_NULL_INTEGER
#endif

program fortran
  use petscmat
  use petscspmv
  implicit none

  PetscInt, parameter :: none = 0, single = 1, two = 2, three = 3
  PetscScalar, parameter :: one = 1.0
  PetscErrorCode ierr
  external quiet
  PetscMPIInt ranks
  logical :: failed = .false.

  PetscCallA(PetscInitialize(ierr))
  PetscCallA(PetscSpMVInitializePackage(ierr))
  PetscCallA(PetscSpMVInitializePackage(ierr)) ! again does nothing
  PetscCallMPIA(MPI_Comm_size(PETSC_COMM_WORLD, ranks, ierr))
  PetscCallA(PetscPushErrorHandler(quiet, PETSC_NULL_INTEGER, ierr))
  call names()
  call format(MATSELLP, merge('mpiaijsellp', 'seqaijsellp', ranks > 1))
  call format(MATEVCHYB, merge('mpiaijevchyb', 'seqaijevchyb', ranks > 1))
  call errors()
  call batches()
  call from_mats()
  PetscCallA(PetscPopErrorHandler(ierr))
  PetscCallA(PetscFinalize(ierr))
  if (failed) stop 1

contains

  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what

    if (right) return
    print '(2a)', 'FAILED: ', what
    failed = .true.
  end subroutine

  subroutine names()
    call check(MATSEQSELLP == 'seqsellp' .and. MATMPISELLP == 'mpisellp', 'names of sellp')
    call check(MATSEQEVCHYB == 'seqevchyb' .and. MATMPIEVCHYB == 'mpievchyb', 'names of evchyb')
    call check(MATSEQAIJSELLP == 'seqaijsellp' .and. MATMPIAIJSELLP == 'mpiaijsellp', 'names of sellp from AIJ')
    call check(MATSEQAIJEVCHYB == 'seqaijevchyb' .and. MATMPIAIJEVCHYB == 'mpiaijevchyb', 'names of evchyb from AIJ')
    call check(MATORDERINGEVCHYB == 'evchyb' .and. MATBATCH == 'batch' .and. MATSEQBATCH == 'seqbatch' .and. MATMPIBATCH == 'mpibatch', 'the other names')
    call check(MATSEQAIJBATCH == 'seqaijbatch' .and. MATMPIAIJBATCH == 'mpiaijbatch', 'names of batch from AIJ')
  end subroutine

  ! A diagonal matrix of two rows on each process
  subroutine diagonal(type, A)
    character(len=*), intent(in) :: type
    Mat A
    PetscInt row, first, last, columns(1)
    PetscScalar values(1)

    PetscCallA(MatCreate(PETSC_COMM_WORLD, A, ierr))
    PetscCallA(MatSetSizes(A, two, two, PETSC_DETERMINE, PETSC_DETERMINE, ierr))
    PetscCallA(MatSetType(A, type, ierr))
    PetscCallA(MatSetUp(A, ierr))
    PetscCallA(MatGetOwnershipRange(A, first, last, ierr))
    do row = first, last - 1
      columns = row
      values = row + 1
      PetscCallA(MatSetValues(A, single, columns, single, columns, values, INSERT_VALUES, ierr))
    end do
    PetscCallA(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY, ierr))
    PetscCallA(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY, ierr))
  end subroutine

  subroutine format(type, long)
    character(len=*), intent(in) :: type, long
    Mat A
    type(PetscSpMVInfo) info
    character(len=80) name
    character(len=3) short

    call diagonal(type, A)
    PetscCallA(PetscSpMVGetFormat(A, name, ierr))
    call check(name == type, type//': PetscSpMVGetFormat')
    PetscCallA(PetscSpMVGetFormat(A, short, ierr))
    call check(short == type(1:3), type//': PetscSpMVGetFormat of a short string')
    PetscCallA(MatGetType(A, name, ierr))
    call check(name == long .or. name(4:14) == 'aijcusparse', type//': MatGetType '//trim(name))
    PetscCallA(PetscSpMVGetInfo(A, info, ierr))
    call check(info%nonzeros == 2 .and. info%stored >= info%formatted .and. info%node >= 1, type//': PetscSpMVGetInfo')
    call check(info%kernel /= ' ', type//': no kernel')
    PetscCallA(MatDestroy(A, ierr))
  end subroutine

  subroutine errors()
    Mat A, none_yet
    type(PetscSpMVInfo) info
    type(MatBatchInfo) batch
    character(len=80) name
    PetscInt n
    PetscInt, pointer :: i(:), j(:)
    PetscScalar, pointer :: v(:)

    call diagonal(MATAIJ, A)
    PetscCallA(PetscSpMVGetFormat(A, name, ierr))
    call check(name == ' ', 'aij has a format')
    call PetscSpMVGetInfo(A, info, ierr)
    call check(ierr == PETSC_ERR_ARG_WRONG, 'PetscSpMVGetInfo of aij is no error')
    call MatBatchGetInfo(A, batch, ierr)
    call check(ierr == PETSC_ERR_ARG_WRONG, 'MatBatchGetInfo of aij is no error')
    call MatBatchSetValues(A, MATBATCH_ALL, [one], ierr)
    call check(ierr == PETSC_ERR_ARG_WRONG, 'MatBatchSetValues of aij is no error')
    call MatBatchGetProblem(A, none, n, i, j, v, ierr)
    call check(ierr == PETSC_ERR_ARG_WRONG .and. .not. associated(i), 'MatBatchGetProblem of aij is no error')
    call PetscSpMVGetInfo(none_yet, info, ierr)
    call check(ierr == PETSC_ERR_ARG_NULL, 'PetscSpMVGetInfo of no matrix is no error')
    PetscCallA(MatDestroy(A, ierr))
    call PetscSpMVGetFormat(A, name, ierr)
    call check(ierr == PETSC_ERR_ARG_NULL, 'PetscSpMVGetFormat of a destroyed matrix is no error')
    call MatCreateBatchFromMats(PETSC_COMM_WORLD, single, [none_yet], A, ierr)
    call check(ierr == PETSC_ERR_ARG_NULL, 'MatCreateBatchFromMats of no matrix is no error')
    call MatCreateBatch(PETSC_COMM_WORLD, single, [single], [none, single], [two], [one], MATBATCH_SHARE_NONE, &
                        PETSC_COPY_VALUES, A, ierr)
    call check(ierr == PETSC_ERR_ARG_OUTOFRANGE, 'a column outside of its problem is no error')
  end subroutine

  ! Problems of one row and of two, [2] and [3 4; 0 5]
  subroutine batches()
    Mat A
    PetscInt n
    PetscInt, pointer :: i(:), j(:)
    PetscScalar, pointer :: v(:)
    PetscScalar, target :: values(4)
    type(MatBatchInfo) info

    values = [2, 3, 4, 5]
    PetscCallA(MatCreateBatch(PETSC_COMM_WORLD, two, [single, two], [none, single, three, three + 1], [none, none, single, single], values, MATBATCH_SHARE_NONE, PETSC_USE_POINTER, A, ierr))
    call product(A, 3, 'batch', [2*one, 7*one, 5*one])
    PetscCallA(MatBatchSetValues(A, single, [6*one, 7*one, 8*one], ierr)) ! the second: they count from 0
    call product(A, 3, 'MatBatchSetValues of one problem', [2*one, 13*one, 8*one])
    call check(values(4) == 8, 'PETSC_USE_POINTER uses the pointer')
    PetscCallA(MatBatchGetProblem(A, single, n, i, j, v, ierr))
    call check(n == 2 .and. size(i) == 3, 'MatBatchGetProblem: size')
    call check(i(2) - i(1) == 2 .and. j(i(2)) == 1 .and. v(i(1) + 1) == 6 .and. v(i(3)) == 8, 'MatBatchGetProblem: arrays')
    PetscCallA(MatBatchSetValues(A, MATBATCH_ALL, [one, one, one, one], ierr))
    call product(A, 3, 'MatBatchSetValues', [one, 2*one, one])
    PetscCallA(MatBatchGetInfo(A, info, ierr))
    call check(info%problems == 2 .and. info%smallest == 1 .and. info%largest == 2 .and. info%nonzeros == 4, 'MatBatchGetInfo')
    PetscCallA(MatDestroy(A, ierr))

    ! two problems of one pattern
    PetscCallA(MatCreateBatch(PETSC_COMM_WORLD, two, [single], [none, single], [none], [3*one, 4*one], MATBATCH_SHARE_PATTERN, PETSC_COPY_VALUES, A, ierr))
    call product(A, 2, 'a shared pattern', [3*one, 4*one])
    PetscCallA(MatDestroy(A, ierr))
  end subroutine

  subroutine from_mats()
    Mat A, mats(2)
    PetscInt k
    type(MatBatchInfo) info

    do k = 1, 2
      PetscCallA(MatCreateSeqAIJ(PETSC_COMM_SELF, single, single, single, PETSC_NULL_INTEGER_ARRAY, mats(k), ierr))
      PetscCallA(MatSetValues(mats(k), single, [none], single, [none], [k*one], INSERT_VALUES, ierr))
      PetscCallA(MatAssemblyBegin(mats(k), MAT_FINAL_ASSEMBLY, ierr))
      PetscCallA(MatAssemblyEnd(mats(k), MAT_FINAL_ASSEMBLY, ierr))
    end do
    PetscCallA(MatCreateBatchFromMats(PETSC_COMM_WORLD, two, mats, A, ierr))
    call product(A, 2, 'MatCreateBatchFromMats', [one, 2*one])
    PetscCallA(MatBatchGetInfo(A, info, ierr))
    call check(info%problems == 2, 'MatCreateBatchFromMats')
    PetscCallA(MatDestroy(A, ierr))
    do k = 1, 2
      PetscCallA(MatDestroy(mats(k), ierr))
    end do
  end subroutine

  ! The n local entries of A times a vector of ones
  subroutine product(A, n, what, right)
    Mat, intent(in) :: A
    integer, intent(in) :: n
    character(len=*), intent(in) :: what
    PetscScalar, intent(in) :: right(n)
    PetscInt first, last, k
    PetscScalar y(n)
    Vec x, b

    PetscCallA(MatCreateVecs(A, x, b, ierr))
    PetscCallA(VecSet(x, one, ierr))
    PetscCallA(MatMult(A, x, b, ierr))
    PetscCallA(VecGetOwnershipRange(b, first, last, ierr))
    call check(last - first == n, what//': number of rows')
    PetscCallA(VecGetValues(b, last - first, [(k, k=first, last - 1)], y, ierr))
    call check(all(abs(y - right) < 100*epsilon(real(one))), what//': the product is wrong')
    PetscCallA(VecDestroy(x, ierr))
    PetscCallA(VecDestroy(b, ierr))
  end subroutine
end program

! PETSc's own handler prints, and in PETSc 3.18 ends all ranks but the first where an error is of all of them
subroutine quiet(comm, line, fun, file, code, kind, message, context, ierr)
  use petscsys
  implicit none
  integer comm, line, kind, context
  character(len=*) fun, file, message
  PetscErrorCode code, ierr

  ierr = code
end subroutine
