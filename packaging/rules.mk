# Installing, included by the makefile: the library, its header, the Fortran module where it can be built, man pages where
# they were made, and what pkg-config and CMake read. The library belongs to one PETSc, so these name that PETSc's paths
# and need no file of PETSc's own

prefix     ?= /usr/local
bindir     ?= $(prefix)/bin
libdir     ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir     ?= $(prefix)/share/man
# The Fortran module file, which belongs to one compiler
moddir     ?= $(includedir)

cmakedir := $(libdir)/cmake/petscspmv
pcdir    := $(libdir)/pkgconfig
# All that install installs and uninstall removes, except for the man pages
INSTALLED = $(libdir)/$(SONAME) $(libdir)/libpetscspmv.so $(includedir)/petscspmv.h $(includedir)/petscspmv.F90 $(pcdir)/petscspmv.pc \
            $(cmakedir)/petscspmvConfig.cmake $(cmakedir)/petscspmvConfigVersion.cmake \
            $(libdir)/libpetscspmv_fortran.a $(moddir)/petscspmv.mod $(pcdir)/petscspmv-fortran.pc $(bindir)/petscspmv-doctor

folders = $(patsubst -I%,%,$(filter -I%,$1))
# From $1 to $2, which need not exist yet
relative = $(shell realpath -m -s --relative-to='$1' '$2')
define fill
	@echo $(DESTDIR)$2; sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' -e 's|@moddir@|$(moddir)|' -e 's|@version@|$(VERSION)|g' \
	  -e 's|@major@|$(call version_part,MAJOR)|' -e 's|@soname@|$(SONAME)|' -e 's|@petsc@|$(PETSC_VERSION)|' \
	  -e 's|@petsc_dir@|$(PETSC_DIR)|' -e 's|@petsc_arch@|$(PETSC_ARCH)|' -e 's|@petsc_cflags@|$(PETSC_CC_INCLUDES)|' \
	  -e 's|@petsc_libs@|-L$(PETSC_LIB_DIR) $(call rpath,$(PETSC_LIB_DIR)) $(PETSC_LIB_BASIC)|' -e 's|@rpath@|$(call rpath,$${libdir})|' \
	  -e 's|@petsc_so@|$(patsubst -l%,"$(PETSC_LIB_DIR)/lib%.so",$(filter -l%,$(PETSC_LIB_BASIC)))|' \
	  -e 's|@petsc_includes@|$(patsubst %,"%",$(call folders,$(PETSC_CC_INCLUDES)))|' \
	  -e 's|@petsc_fc_includes@|$(if $(findstring .cmake,$2),$(patsubst %,"%",$(call folders,$(PETSC_FC_INCLUDES))),$(PETSC_FC_INCLUDES))|' \
	  -e 's|@include_from_cmake@|$(call relative,$(cmakedir),$(includedir))|' -e 's|@mod_from_cmake@|$(call relative,$(cmakedir),$(moddir))|' \
	  -e 's|@uses_mpi@|$(if $(call conf_has,PETSC_HAVE_MPIUNI),FALSE,TRUE)|' -e 's|@fc_version@|$(FC_VERSION)|' \
	  -e "s|@pointer@|$$(awk '$$2 == "PETSC_SIZEOF_VOID_P" {print $$3}' $(PETSC_CONF))|g" packaging/$1 >$(DESTDIR)$2
endef

install: $(LIBRARY) $(FORTRAN_LIB)
	install -d $(addprefix $(DESTDIR),$(pcdir) $(cmakedir) $(includedir) $(bindir))
	install -m 755 $(B)/lib/$(SONAME) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libpetscspmv.so
	install -m 644 include/petscspmv.h src/fortran/petscspmv.F90 $(DESTDIR)$(includedir)
	install -m 755 python/petscspmv/doctor.py $(DESTDIR)$(bindir)/petscspmv-doctor
	$(call fill,petscspmv.pc.in,$(pcdir)/petscspmv.pc)
	$(call fill,petscspmvConfig.cmake.in,$(cmakedir)/petscspmvConfig.cmake)
	$(call fill,petscspmvConfigVersion.cmake.in,$(cmakedir)/petscspmvConfigVersion.cmake)
ifneq ($(FORTRAN),)
	install -d $(DESTDIR)$(moddir)
	install -m 644 $(FORTRAN_LIB) $(DESTDIR)$(libdir)
	install -m 644 $(FORTRAN_MOD) $(DESTDIR)$(moddir)
	$(call fill,petscspmv-fortran.pc.in,$(pcdir)/petscspmv-fortran.pc)
endif
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	@rmdir $(DESTDIR)$(cmakedir) 2>/dev/null || true

# The man pages, where `make man` has made them. Ours are known by their first lines, not by what is in build/, which may have changed
install: install-man
.PHONY: install-man uninstall-man
install-man: $(filter docs man,$(MAKECMDGOALS))
	@for s in 3 7; do \
	  [ ! -d build/docs/man/man$$s ] || { install -d $(DESTDIR)$(mandir)/man$$s && install -m 644 build/docs/man/man$$s/*.$$s $(DESTDIR)$(mandir)/man$$s; } || exit 1; \
	done
uninstall: uninstall-man
uninstall-man:
	@grep -ls '^\.TH .* "PetscSpMV"$$' $(foreach s,3 7,$(DESTDIR)$(mandir)/man$s/*.$s) | xargs -r rm -f
