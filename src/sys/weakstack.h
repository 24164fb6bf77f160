/*
  The makefile includes this file before every C source of the library. The macros of a debug build of PETSc use the
  variable petscstack, which an optimized build does not have. With a weak reference the library can still be loaded and
  can report the error, see petscbuild.c.
*/
#pragma weak petscstack
