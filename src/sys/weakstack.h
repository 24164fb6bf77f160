/*
  Included before every C source of the library, by the makefile. A debug PETSc's macros use the variable petscstack, which an optimized PETSc lacks. With a weak reference the library can be loaded there
  all the same, and say what is wrong: see petscbuild.c.
*/
#pragma weak petscstack
