# The Fortran module, included by the makefile: the module file, and libpetscspmv_fortran.a with its code, where PETSc has
# Fortran and its compiler can read PETSc's modules. Nothing else depends on them. With a sanitizer they are left out

USES_PETSC := printf 'use petscmat\nend\n' >use.F90 && $(FC) $(FC_FLAGS) $(PETSC_FC_INCLUDES) -c use.F90 -o use.o
ifeq ($(SANITIZE),)
ifneq ($(and $(filter-out default,$(origin FC)),$(strip $(FC))),) # make's own default is f77
  # Tried once for each PETSc, and again as long as it fails
  FORTRAN := $(shell mkdir -p $(B)/fortran && cd $(B)/fortran && { [ use.o -nt $(PETSC_CONF) ] || { $(USES_PETSC); } >use.log 2>&1; } && echo yes)
endif
endif

ifneq ($(FORTRAN),)
FORTRAN_LIB  := $(B)/fortran/libpetscspmv_fortran.a
FORTRAN_MOD  := $(B)/fortran/petscspmv.mod
FEXAMPLES    := $(patsubst %.F90,$(B)/%,$(wildcard examples/*.F90))
FTESTS       := $(patsubst %.F90,$(B)/%,$(wildcard tests/*.F90))
FORTRAN_OBJ  := $(B)/fortran/petscspmv.o
FCOMPILE      = $(FC) $(FC_FLAGS) $(PETSC_FC_INCLUDES) $(FFLAGS)

$(FORTRAN_OBJ): src/fortran/petscspmv.F90 src/fortran/rules.mk $(PETSC_CONF) $(PETSC_VERSION_H)
	@mkdir -p $(@D)
	$(call quiet,FC)$(FCOMPILE) $(FC_MODULE_OUTPUT_FLAG)$(@D) -c -o $@ $<
$(FORTRAN_LIB): $(FORTRAN_OBJ)
	@rm -f $@
	$(call quiet,AR)ar rcs $@ $^
$(FEXAMPLES) $(FTESTS): $(B)/%: %.F90 $(FORTRAN_LIB) $(LIBRARY)
	@mkdir -p $(@D)
	$(call quiet,FC)$(FCOMPILE) $(FC_MODULE_FLAG)$(B)/fortran $(FC_MODULE_OUTPUT_FLAG)$(@D) -o $@ $< $(FORTRAN_LIB) -L$(B)/lib -Wl$(comma)--disable-new-dtags$(comma)-rpath$(comma)$(HERE)/$(B)/lib -lpetscspmv $(PETSC_LIBS)

lib: $(FORTRAN_LIB)
examples: $(FEXAMPLES)
tests: $(FTESTS)
endif
