!
!  PetscSpMV for Fortran: the calls, names and types of petscspmv.h, as PETSc's own modules have them.
!
!    #include <petsc/finclude/petscksp.h>
!      use petscksp
!      use petscspmv
!      ...
!      PetscCallA(PetscInitialize(ierr))
!      PetscCallA(PetscSpMVInitializePackage(ierr))
!      PetscCallA(MatSetType(A, MATSELLP, ierr))
!
!  For PETSc 3.18 to 3.26. A module file belongs to one compiler; with another one, compile this file and link it with libpetscspmv.
!
#include "petsc/finclude/petscmat.h"
#if !defined(MPIU_Comm) /* PETSc before 3.22 */
#define MPIU_Comm integer4
#endif

! PetscInt and PetscScalar of C, which PETSc 3.18 declares by range and precision
#if defined(PETSC_USE_64BIT_INDICES)
#define CInt integer(c_int64_t)
#else
#define CInt integer(c_int32_t)
#endif
#if defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_SINGLE)
#define CScalar complex(c_float_complex)
#elif defined(PETSC_USE_COMPLEX)
#define CScalar complex(c_double_complex)
#elif defined(PETSC_USE_REAL_SINGLE)
#define CScalar real(c_float)
#else
#define CScalar real(c_double)
#endif

module petscspmv
  use, intrinsic :: iso_c_binding
  use petscmat
  implicit none
  private

  ! The types. MatGetType() returns the longer names: see petscspmv.h
  character(len=*), parameter, public :: MATSELLP = 'sellp'
  character(len=*), parameter, public :: MATSEQSELLP = 'seqsellp'
  character(len=*), parameter, public :: MATMPISELLP = 'mpisellp'
  character(len=*), parameter, public :: MATEVCHYB = 'evchyb'
  character(len=*), parameter, public :: MATSEQEVCHYB = 'seqevchyb'
  character(len=*), parameter, public :: MATMPIEVCHYB = 'mpievchyb'
  character(len=*), parameter, public :: MATSEQAIJSELLP = 'seqaijsellp'
  character(len=*), parameter, public :: MATMPIAIJSELLP = 'mpiaijsellp'
  character(len=*), parameter, public :: MATSEQAIJEVCHYB = 'seqaijevchyb'
  character(len=*), parameter, public :: MATMPIAIJEVCHYB = 'mpiaijevchyb'
  character(len=*), parameter, public :: MATBATCH = 'batch'
  character(len=*), parameter, public :: MATSEQBATCH = 'seqbatch'
  character(len=*), parameter, public :: MATMPIBATCH = 'mpibatch'
  character(len=*), parameter, public :: MATSEQAIJBATCH = 'seqaijbatch'
  character(len=*), parameter, public :: MATMPIAIJBATCH = 'mpiaijbatch'
  character(len=*), parameter, public :: MATORDERINGEVCHYB = 'evchyb'

  ! MatBatchSharing
  PetscEnum, parameter, public :: MATBATCH_SHARE_NONE = 0
  PetscEnum, parameter, public :: MATBATCH_SHARE_PATTERN = 1
  PetscEnum, parameter, public :: MATBATCH_SHARE_VALUES = 2

  PetscInt, parameter, public :: MATBATCH_ALL = -1

  ! The components are described in petscspmv.h
  type, public :: PetscSpMVInfo
    integer(c_int64_t) :: nonzeros = 0, formatted = 0, stored = 0, slices = 0, long_rows = 0, long_stored = 0, bytes = 0
    PetscInt :: node = 0
    character(len=80) :: kernel = ''
  end type

  type, public :: MatBatchInfo
    PetscInt :: problems = 0, smallest = 0, largest = 0
    integer(c_int64_t) :: nonzeros = 0
    PetscEnum :: sharing = MATBATCH_SHARE_NONE
    integer(c_int64_t) :: stored = 0, bytes = 0
    character(len=80) :: kernel = ''
  end type

  public :: PetscSpMVInitializePackage, PetscSpMVFinalizePackage, PetscSpMVGetFormat, PetscSpMVGetInfo
  public :: MatCreateBatch, MatCreateBatchFromMats, MatBatchSetValues, MatBatchGetProblem, MatBatchGetInfo

  ! The same as in C
  type, bind(C) :: CSpMVInfo
    integer(c_int64_t) :: nonzeros, formatted, stored, slices, long_rows, long_stored, bytes
    CInt :: node
    type(c_ptr) :: kernel
  end type

  type, bind(C) :: CBatchInfo
    CInt :: problems, smallest, largest
    integer(c_int64_t) :: nonzeros
    integer(c_int) :: sharing
    integer(c_int64_t) :: stored, bytes
    type(c_ptr) :: kernel
  end type

  interface
    integer(c_int) function CInitializePackage() bind(C, name='PetscSpMVInitializePackage')
      import :: c_int
    end function

    integer(c_int) function CFinalizePackage() bind(C, name='PetscSpMVFinalizePackage')
      import :: c_int
    end function

    integer(c_int) function CGetFormat(A, format) bind(C, name='PetscSpMVGetFormat')
      import :: c_int, c_ptr
      type(c_ptr), value :: A
      type(c_ptr) :: format
    end function

    integer(c_int) function CGetInfo(A, info) bind(C, name='PetscSpMVGetInfo')
      import :: c_int, c_ptr, CSpMVInfo
      type(c_ptr), value :: A
      type(CSpMVInfo) :: info
    end function

    integer(c_int) function CCreateBatch(comm, n, sizes, rowoffsets, columns, values, sharing, mode, A) &
      bind(C, name='MatCreateBatch_Fortran')
      use, intrinsic :: iso_c_binding
      integer(c_int), value :: comm, sharing, mode
      CInt, value :: n
      CInt, intent(in) :: sizes(*)
      CInt, target :: rowoffsets(*), columns(*)
      CScalar, target :: values(*)
      type(c_ptr) :: A
    end function

    integer(c_int) function CCreateBatchFromMats(comm, n, mats, A) bind(C, name='MatCreateBatchFromMats_Fortran')
      use, intrinsic :: iso_c_binding
      integer(c_int), value :: comm
      CInt, value :: n
      type(c_ptr), intent(in) :: mats(*)
      type(c_ptr) :: A
    end function

    integer(c_int) function CSetValues(A, problem, values) bind(C, name='MatBatchSetValues')
      use, intrinsic :: iso_c_binding
      type(c_ptr), value :: A
      CInt, value :: problem
      CScalar, intent(in) :: values(*)
    end function

    integer(c_int) function CGetProblem(A, problem, n, rowoffsets, columns, values) bind(C, name='MatBatchGetProblem')
      use, intrinsic :: iso_c_binding
      type(c_ptr), value :: A
      CInt, value :: problem
      CInt :: n
      type(c_ptr) :: rowoffsets, columns, values
    end function

    integer(c_int) function CGetBatchInfo(A, info) bind(C, name='MatBatchGetInfo')
      import :: c_int, c_ptr, CBatchInfo
      type(c_ptr), value :: A
      type(CBatchInfo) :: info
    end function

    integer(c_size_t) function strlen(s) bind(C)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: s
    end function
  end interface

contains

  ! The matrix in C. A matrix that was not created, or destroyed, is an error here: C would read from its address
  subroutine GetMat(A, p, ierr)
    Mat, intent(in) :: A
    type(c_ptr), intent(out) :: p
    PetscErrorCode, intent(out) :: ierr

    p = c_null_ptr
    ierr = 0
    if (A%v <= 0 .and. A%v >= -3) then
      ierr = PETSC_ERR_ARG_NULL
      SETERRQ(PETSC_COMM_SELF, ierr, 'The matrix was not created, or was destroyed')
    end if
    p = transfer(A%v, p)
  end subroutine

  subroutine GetString(p, string)
    type(c_ptr), intent(in) :: p
    character(len=*), intent(out) :: string
    character(kind=c_char), pointer :: c(:)
    integer :: k

    string = ''
    if (.not. c_associated(p)) return
    call c_f_pointer(p, c, [strlen(p)])
    do k = 1, min(size(c), len(string))
      string(k:k) = c(k)
    end do
  end subroutine

  subroutine PetscSpMVInitializePackage(ierr)
    PetscErrorCode, intent(out) :: ierr

    ierr = CInitializePackage()
  end subroutine

  subroutine PetscSpMVFinalizePackage(ierr)
    PetscErrorCode, intent(out) :: ierr

    ierr = CFinalizePackage()
  end subroutine

  ! format is blank for a matrix of another type
  subroutine PetscSpMVGetFormat(A, format, ierr)
    Mat, intent(in) :: A
    character(len=*), intent(out) :: format
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p, name

    format = ''
    call GetMat(A, p, ierr)
    if (ierr /= 0) return
    ierr = CGetFormat(p, name)
    if (ierr == 0) call GetString(name, format)
  end subroutine

  subroutine PetscSpMVGetInfo(A, info, ierr)
    Mat, intent(in) :: A
    type(PetscSpMVInfo), intent(out) :: info
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p
    type(CSpMVInfo) :: c

    call GetMat(A, p, ierr)
    if (ierr /= 0) return
    ierr = CGetInfo(p, c)
    if (ierr /= 0) return
    info = PetscSpMVInfo(c%nonzeros, c%formatted, c%stored, c%slices, c%long_rows, c%long_stored, c%bytes, c%node)
    call GetString(c%kernel, info%kernel)
  end subroutine

  ! Offsets and columns count from 0, as everywhere in PETSc. mode is PETSC_COPY_VALUES; or PETSC_USE_POINTER, for
  ! contiguous arrays with the attribute target that live as long as the matrix. PETSC_OWN_POINTER is for memory from
  ! C's PetscMalloc()
  subroutine MatCreateBatch(comm, nproblems, sizes, rowoffsets, columns, values, sharing, mode, A, ierr)
    MPIU_Comm, intent(in) :: comm
    PetscInt, intent(in) :: nproblems
    PetscInt, intent(in) :: sizes(*)
    ! With PETSC_USE_POINTER the matrix keeps these and writes to the values. Without target, and with an intent, the
    ! compiler may assume that it does not
    PetscInt, target :: rowoffsets(*), columns(*)
    PetscScalar, target :: values(*)
    PetscEnum, intent(in) :: sharing
    PetscCopyMode, intent(in) :: mode
    Mat, intent(inout) :: A
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p

    p = c_null_ptr
    ! transfer(): communicators and PETSc's enumerations are integers or types that hold one, depending on the release
    ierr = CCreateBatch(transfer(comm, 0_c_int), nproblems, sizes, rowoffsets, columns, values, sharing, transfer(mode, 0_c_int), p)
    if (ierr == 0) A%v = transfer(p, A%v)
  end subroutine

  subroutine MatCreateBatchFromMats(comm, nproblems, mats, A, ierr)
    MPIU_Comm, intent(in) :: comm
    PetscInt, intent(in) :: nproblems
    Mat, intent(in) :: mats(*)
    Mat, intent(inout) :: A
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p, c(max(nproblems, 1))
    PetscInt :: k

    ! A matrix that does not exist is C's to report, which tells the other processes
    c = c_null_ptr
    do k = 1, nproblems
      if (mats(k)%v > 0 .or. mats(k)%v < -3) c(k) = transfer(mats(k)%v, p)
    end do
    ierr = CCreateBatchFromMats(transfer(comm, 0_c_int), nproblems, c, p)
    if (ierr == 0) A%v = transfer(p, A%v)
  end subroutine

  subroutine MatBatchSetValues(A, problem, values, ierr)
    Mat, intent(in) :: A
    PetscInt, intent(in) :: problem
    PetscScalar, intent(in) :: values(*)
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p

    call GetMat(A, p, ierr)
    if (ierr == 0) ierr = CSetValues(p, problem, values)
  end subroutine

  ! Problems count from 0. The entries of row r = 1, ..., n are columns(k) and values(k) for
  ! k = rowoffsets(r) + 1, ..., rowoffsets(r + 1). The arrays belong to the matrix
  subroutine MatBatchGetProblem(A, problem, n, rowoffsets, columns, values, ierr)
    Mat, intent(in) :: A
    PetscInt, intent(in) :: problem
    PetscInt, intent(out) :: n
    PetscInt, pointer, intent(out) :: rowoffsets(:), columns(:)
    PetscScalar, pointer, intent(out) :: values(:)
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p, i, j, v

    n = 0
    nullify (rowoffsets, columns, values)
    call GetMat(A, p, ierr)
    if (ierr /= 0) return
    ierr = CGetProblem(p, problem, n, i, j, v)
    if (ierr /= 0) return
    call c_f_pointer(i, rowoffsets, [n + 1])
    if (c_associated(j)) call c_f_pointer(j, columns, [rowoffsets(n + 1)])
    if (c_associated(v)) call c_f_pointer(v, values, [rowoffsets(n + 1)])
  end subroutine

  subroutine MatBatchGetInfo(A, info, ierr)
    Mat, intent(in) :: A
    type(MatBatchInfo), intent(out) :: info
    PetscErrorCode, intent(out) :: ierr
    type(c_ptr) :: p
    type(CBatchInfo) :: c

    call GetMat(A, p, ierr)
    if (ierr /= 0) return
    ierr = CGetBatchInfo(p, c)
    if (ierr /= 0) return
    info = MatBatchInfo(c%problems, c%smallest, c%largest, c%nonzeros, c%sharing, c%stored, c%bytes)
    call GetString(c%kernel, info%kernel)
  end subroutine
end module
