# PetscSpMV's build. `make help` lists the goals.
#
# PETSC_DIR and PETSC_ARCH choose the PETSc; without them the machine's own PETSc is used, and where there is none,
# tools/setup.sh gets one. What is built for one PETSc stays in build/<tag>, so that several can be used in turn;
# lib/ holds the library of the latest build.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)

# The version is written once, in the public header; the soname changes with every major version
version_part = $(shell awk '$$2 == "PETSCSPMV_VERSION_$1" {print $$3}' include/petscspmv.h)
VERSION     := $(call version_part,MAJOR).$(call version_part,MINOR).$(call version_part,SUBMINOR)
SONAME      := libpetscspmv.so.$(call version_part,MAJOR)

.PHONY: all lib kernels examples tests programs bench paper solve bratu check check-all check-clients fuzz format check-format check-docs docs man docs-linkcheck install uninstall dist debian deb clean distclean help
help:
	@echo "make            the library, lib/libpetscspmv.so (load it with -dll_append)"
	@echo "make bratu      solve the Bratu problem with aij, sellp and evchyb side by side (NP=2, ARGS='-n 200')"
	@echo "make examples   all examples"
	@echo "make check      the tests in 3 to 13 minutes; make check-all: all of them"
	@echo "make check SANITIZE=address   the same under a sanitizer"
	@echo "make check-python   build and test the Python package (PYTHON=/usr/bin/python3, one that has petsc4py)"
	@echo "make check-clients   petsc4py, SLEPc, DOLFINx, deal.II, ... with our types, where they are installed (INSTALL=1 installs them, as root; CLIENTS='slepc getdp', TIER=quick)"
	@echo "make fuzz SECONDS=60   random matrices and operations, compared with AIJ, on 1, 2 and 3 ranks (NP=1 SEED=1 SANITIZE=address,undefined)"
	@echo "make bench      the benchmarks (ARGS='options of bench/products/run')"
	@echo "make paper      the papers' experiments, measured here, and their report (ARGS='options of bench/papers/paper.py')"
	@echo "make solve      whole solves with PETSc's tutorials, each type in turn (ARGS='options of bench/solves/solve.py')"
	@echo "make kernels    compile the CUDA kernels alone, which needs nvcc but no PETSc with CUDA"
	@echo "make format     format the sources with clang-format; make check-format: say what it would change"
	@echo "make docs       the documentation as a site, build/docs/html, and as man pages, build/docs/man; make man: these alone; make docs-linkcheck: external links"
	@echo "make check-docs compare the numbers of README and docs with the CSV files they come from"
	@echo "make install    into prefix=/usr/local (DESTDIR is honoured); make uninstall. All ways to install: docs/install.md"
	@echo "make dist       the source archive, build/petscspmv-$(VERSION).tar.gz; make deb: Debian's package, in build/deb"
	@echo "make clean      what was built; make distclean: and a PETSc that was built here"
	@echo "variables       PETSC_DIR PETSC_ARCH, OPT='-O3 ...', CUDA_ARCHS='80 90' (80 or later), V=1 (show the commands),"
	@echo "                PETSCSPMV_NO_CUDA=1 (do not build a PETSc with CUDA where there is a GPU)"

clean:
	rm -rf lib $(filter-out build/petsc-cuda,$(wildcard build/*))
distclean: clean
	rm -rf build

# For the PETSc of petsc4py, or PETSC_DIR
.PHONY: check-python
check-python:
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL python/check $(ARGS)

# The rest needs a PETSc: all goals but those above, and the default one
ifneq ($(filter-out help clean distclean format check-format check-docs docs man docs-linkcheck dist debian deb check-python,$(or $(MAKECMDGOALS),all)),)

# ---------------------------------------------------------------------------------------------------------------------
# Which PETSc

ifeq ($(PETSC_DIR),)
  # Sets PETSC_DIR. Make runs the script where the file is missing, then starts over
  PETSC_CHOICE := build/petsc$(if $(PETSCSPMV_NO_CUDA),-host).mk
  include $(PETSC_CHOICE)
$(PETSC_CHOICE): tools/setup.sh
	@mkdir -p $(@D)
	@tools/setup.sh $@
endif

ifneq ($(PETSC_DIR),)
override PETSC_DIR := $(abspath $(PETSC_DIR))
ifeq ($(wildcard $(PETSC_DIR)/lib/petsc/conf/variables),)
  $(error PETSC_DIR=$(PETSC_DIR) holds no PETSc; name another, or unset it to use the machine's own)
endif
PETSC_CONF := $(firstword $(wildcard $(addsuffix /include/petscconf.h,$(PETSC_DIR)/$(PETSC_ARCH) $(PETSC_DIR))))
ifeq ($(PETSC_CONF),)
  $(error PETSC_DIR=$(PETSC_DIR) has no build named PETSC_ARCH=$(PETSC_ARCH))
endif
ifeq ($(PETSC_CONF),$(PETSC_DIR)/include/petscconf.h)
  # An installed PETSc has no PETSC_ARCH, even if the environment sets it
  override PETSC_ARCH :=
endif
export PETSC_DIR PETSC_ARCH
include $(PETSC_DIR)/lib/petsc/conf/variables
PETSC_VERSION_H := $(PETSC_DIR)/include/petscversion.h

# 3.26.1-real-debug-1234: what one sees first, then a checksum of where it is
conf_has      = $(shell grep -q '^\#define $1 1' $(PETSC_CONF) && echo yes)
PETSC_VERSION := $(shell awk '$$2 ~ /^PETSC_VERSION_(MAJOR|MINOR|SUBMINOR)$$/ {printf "%s%s", s, $$3; s = "."}' $(PETSC_VERSION_H))
PETSC_CUDA    := $(call conf_has,PETSC_HAVE_CUDA)
# The device code needs the AIJCUSPARSE of PETSc 3.26; with an earlier one the library computes on the host
HAVE_CUDA     := $(if $(PETSC_CUDA),$(shell printf '3.26\n%s\n' $(PETSC_VERSION) | sort -CV && echo yes))
$(if $(PETSC_CUDA),$(if $(HAVE_CUDA),,$(info The types will compute on the host: their GPU code needs PETSc 3.26 or later, and this is $(PETSC_VERSION))))
TAG           := $(PETSC_VERSION)-$(PETSC_SCALAR)$(if $(filter single,$(PETSC_PRECISION)),-single)$(if $(filter 64,$(PETSC_INDEX_SIZE)),-int64)$(if $(call conf_has,PETSC_USE_DEBUG),-debug)$(if $(HAVE_CUDA),-cuda)
comma         := ,
TAG           := $(TAG)-$(shell echo $(realpath $(PETSC_DIR))/$(PETSC_ARCH) | cksum | cut -c1-4)$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
B             := build/$(TAG)
HERE          := $(CURDIR)

# ---------------------------------------------------------------------------------------------------------------------
# How to compile: PETSc's compilers and flags, then ours. PETSc's optimisation (-O0 in its debug builds) is no measure for
# loops over nonzeros; sanitizers take minutes to compile optimised kernels. Only what the public header declares is
# exported. PETSc's headers are not ours to warn about

OPT       ?= $(if $(SANITIZE),-O1,-O3 -fno-math-errno)
WARN      := -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
SAN       := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -g)
OUR_FLAGS := -Iinclude -Isrc $(if $(HAVE_CUDA),-DPETSCSPMV_HAVE_CUDA=1)
SYS_FLAGS := $(patsubst -I%,-isystem %,$(filter-out -I/usr/include,$(PETSC_CC_INCLUDES)))
COMPILE    = $(CC) $(CC_FLAGS) -fPIC -g $(OPT) -fvisibility=hidden $(WARN) $(SAN) $(OUR_FLAGS) $(SYS_FLAGS) $(CPP_FLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP

# Whatever is under src belongs to the library: a further format is a further folder. The C files of folders called cuda
# or cusparse are for a PETSc with CUDA; without it, files called nocuda.c take their place
SRC := $(sort $(shell find src -name '*.c' $(if $(HAVE_CUDA),! -name nocuda.c,! -path '*/cuda/*' ! -path '*/cusparse/*')))
CU  := $(sort $(shell find src -name '*.cu'))
OBJ := $(SRC:%.c=$(B)/%.o)
$(OBJ): OUR_FLAGS += -include src/sys/weakstack.h
# The kernels consist of inlined functions of a line or two. Line numbers are enough for debuggers and profilers; variables would add 3 MB to the library
$(filter $(B)/src/core/kernels_%.o,$(OBJ)): OUR_FLAGS += -g1

# A library for a PETSc without CUDA has no kernels. They are compiled for this machine's GPU, else for a list, and as PTX
# for the last of them, which later GPUs translate. Older GPUs than 8.0 are left to AIJCUSPARSE
CUOBJ      := $(if $(HAVE_CUDA),$(CU:%=$(B)/%.o))
NVCC       := $(or $(CUDAC),$(shell command -v nvcc || echo $(or $(CUDA_HOME),/usr/local/cuda)/bin/nvcc))
OLD_ARCHS  := 30 32 35 37 50 52 53 60 61 62 70 72 75
ifeq ($(origin CUDA_ARCHS),undefined)
  GPU_ARCHS  := $(sort $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+\.[0-9]+$$' | tr -d .))
  CUDA_ARCHS := $(or $(filter-out $(OLD_ARCHS),$(GPU_ARCHS)),80 90)
  ifneq ($(and $(filter $(OLD_ARCHS),$(GPU_ARCHS)),$(HAVE_CUDA)$(filter kernels,$(MAKECMDGOALS))),)
    $(warning A GPU of this machine has compute capability $(filter $(OLD_ARCHS),$(GPU_ARCHS)), and the kernels need 8.0 or later: compiling for $(CUDA_ARCHS). AIJCUSPARSE multiplies on that GPU)
  endif
else ifneq ($(filter $(OLD_ARCHS),$(CUDA_ARCHS)),)
  $(error CUDA_ARCHS=$(CUDA_ARCHS): the kernels need compute capability 8.0 or later. Leave out $(filter $(OLD_ARCHS),$(CUDA_ARCHS)): AIJCUSPARSE multiplies on such GPUs)
endif
gencode     = -gencode arch=compute_$1,code=$2_$1
CUCOMPILE   = $(NVCC) -ccbin $(CXX) -std=c++17 -O3 $(foreach a,$(CUDA_ARCHS),$(call gencode,$a,sm)) $(call gencode,$(lastword $(CUDA_ARCHS)),compute) \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall $(OUR_FLAGS) $(SYS_FLAGS) $(CUDAFLAGS) -MMD -MP

# A PETSc with CUDA loads the driver's library. Where there is none, the toolkit's stub lets it run what needs no GPU
ifneq ($(PETSC_CUDA),)
ifneq ($(shell nvidia-smi -L >/dev/null 2>&1 || echo none),)
  $(shell mkdir -p build/no-driver; ln -sf $(firstword $(wildcard $(addsuffix /libcuda.so,$(patsubst -L%,%,$(filter %/stubs,$(CUDA_LIB)))) $(dir $(NVCC))../lib64/stubs/libcuda.so)) build/no-driver/libcuda.so.1)
  export LD_LIBRARY_PATH := $(LD_LIBRARY_PATH):$(HERE)/build/no-driver
endif
endif

# RPATH=no: for packages, where the loader finds PETSc by itself. The PETSc library alone, not what PETSc itself links; the CUDA runtime where our own code or a test calls it
RPATH      ?= yes
rpath       = $(if $(filter yes,$(RPATH)),-Wl$(comma)-rpath$(comma)$1)
PETSC_LIBS := -L$(PETSC_LIB_DIR) $(call rpath,$(PETSC_LIB_DIR)) $(PETSC_LIB_BASIC) $(if $(PETSC_CUDA),-Wl$(comma)--as-needed $(CUDA_LIB) -Wl$(comma)--no-as-needed -lstdc++) -lm
LINK        = $(CC) $(SAN) $(LDFLAGS)
LIBRARY    := $(B)/lib/libpetscspmv.so

quiet = $(if $(V),,@echo "  $1 $(@:$(B)/%=%)";)

all lib: $(LIBRARY)
ifeq ($(SANITIZE),) # such a library is of no use to other programs
	@mkdir -p lib; cmp -s $< lib/$(SONAME) || { cp $< lib/.new && mv -f lib/.new lib/$(SONAME); ln -sf $(SONAME) lib/libpetscspmv.so; echo "  lib/libpetscspmv.so for PETSc $(TAG)"; }
endif

$(LIBRARY): $(OBJ) $(CUOBJ) include/petscspmv.h
	@mkdir -p $(@D)
	$(call quiet,LD)$(LINK) -shared -Wl,-soname,$(SONAME) $(if $(SANITIZE),,-Wl$(comma)--no-undefined) -o $(@D)/$(SONAME) $(OBJ) $(CUOBJ) $(PETSC_LIBS) && ln -sf $(SONAME) $@

# The library without lib/, for python/hatch_build.py, which reads the last line
.PHONY: library
library: $(LIBRARY)
	@echo $(HERE)/$(LIBRARY)

# PETSc's headers are not among the dependencies that the compiler lists; these two change with every build of PETSc
$(B)/%.o: %.c makefile $(PETSC_CONF) $(PETSC_VERSION_H)
	@mkdir -p $(@D)
	$(call quiet,CC)$(COMPILE) -c -o $@ $<
$(B)/%.cu.o: %.cu makefile $(PETSC_CONF) $(PETSC_VERSION_H)
	@mkdir -p $(@D)
	$(call quiet,NVCC)$(CUCOMPILE) -c -o $@ $<

include src/fortran/rules.mk

# ---------------------------------------------------------------------------------------------------------------------
# Programs. Those of tests/core and tests/cuda call what the library hides, so they hold its objects; all others use the
# library

EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
CORE     := $(patsubst tests/core/%.c,$(B)/tests/core-%,$(wildcard tests/core/*.c))
CUDA     := $(if $(HAVE_CUDA),$(patsubst tests/cuda/%.cu,$(B)/tests/cuda-%,$(wildcard tests/cuda/*.cu)))
TESTS    := $(patsubst %.c,$(B)/%,$(wildcard tests/*.c))
# A benchmark of a folder of bench is in build/TAG/bench, where the scripts look for it
BENCHSRC := $(filter-out bench/batch.c bench/products/bench.c,$(wildcard bench/*.c bench/products/*.c bench/solves/*.c bench/setup/*.c))
BENCH    := $(patsubst %.c,$(B)/bench/%,$(notdir $(BENCHSRC)))
TESTLIB  := $(B)/tests/lib/libtests.a
# Formats of other papers, and the programs that measure them: also with what the library hides
FORMATS  := $(if $(HAVE_CUDA),$(patsubst %,$(B)/bench/%.o,products/formats/formats products/formats/device.cu papers/held.cu))
PRODUCTS := $(B)/bench/bench
BATCH    := $(B)/bench/batch
SPGEMM   := $(if $(HAVE_CUDA),$(B)/bench/spgemm)

# LeakSanitizer can name (and lsan.supp excuse) a leak only while the library that made it is loaded, and MPI unloads its
# own: under a sanitizer, dlclose() does nothing
ifneq ($(SANITIZE),)
  KEEP := $(B)/keep.o
$(KEEP): makefile
	@mkdir -p $(@D); echo 'int dlclose(void *handle) { return !handle; }' | $(CC) -xc -c -fno-builtin -o $@ -
endif

# What the programs share; each is linked with the objects that it needs
$(TESTLIB): $(patsubst %.c,$(B)/%.o,$(wildcard tests/lib/*.c))
	@rm -f $@
	$(call quiet,AR)ar rcs $@ $^
$(B)/tests/%.o: OUR_FLAGS += -Itests/lib
$(B)/bench/%.o: OUR_FLAGS += -Ibench/lib

$(CORE): $(B)/tests/core-%: $(B)/tests/core/%.o $(OBJ) $(CUOBJ) $(TESTLIB) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $^ $(PETSC_LIBS)
$(PRODUCTS): $(B)/bench/products/bench.o $(FORMATS) $(OBJ) $(CUOBJ) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $^ $(PETSC_LIBS)
$(BATCH): $(B)/bench/batch.o $(if $(HAVE_CUDA),$(B)/bench/batched.cu.o) $(OBJ) $(CUOBJ) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $^ $(PETSC_LIBS)
$(SPGEMM): $(B)/bench/products/spgemm.cu.o $(OBJ) $(CUOBJ) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $^ $(PETSC_LIBS)
$(CUDA): $(B)/tests/cuda-%: $(B)/tests/cuda/%.cu.o $(OBJ) $(CUOBJ) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $^ $(PETSC_LIBS)
# Kernels of an example, for a PETSc with CUDA
$(B)/examples/bratu: $(if $(HAVE_CUDA),$(B)/examples/bratu_cuda.cu.o)
# An absolute mpiexec sets LD_LIBRARY_PATH, where an installed library may be: without new dtags ours comes first. Two programs take the library from -dll_append only
UNLINKED := $(B)/tests/load $(B)/tests/golden
$(TESTS): $(TESTLIB)
# A program of several files: tests/fuzz.c and tests/parts/fuzz_*.c
$(foreach t,$(TESTS),$(eval $t: $(patsubst %.c,$(B)/%.o,$(wildcard tests/parts/$(notdir $t)_*.c))))
$(foreach b,$(BENCHSRC),$(eval $(B)/bench/$(basename $(notdir $b)): $(B)/$(b:.c=.o)))
$(EXAMPLES) $(TESTS): %: %.o
$(EXAMPLES) $(TESTS) $(BENCH): $(LIBRARY) $(KEEP)
	$(call quiet,LD)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(if $(filter $(UNLINKED),$@),,-L$(B)/lib -Wl$(comma)--disable-new-dtags$(comma)-rpath$(comma)$(HERE)/$(B)/lib -lpetscspmv) $(PETSC_LIBS)
.SECONDARY:

kernels: $(CU:%=$(B)/%.o)
examples: $(EXAMPLES)
tests: $(CORE) $(CUDA) $(TESTS)
# everything, without running it; tools/gpu-pack reads the folder
programs: all examples tests $(BENCH) $(PRODUCTS) $(BATCH) $(SPGEMM)
	@echo $(B)

# One place that knows how MPI programs are started here
export PETSC_MPIEXEC := $(MPIEXEC)
MPIEXEC              := $(HERE)/tools/mpiexec
# one process for each GPU
NP                   ?= $(if $(and $(HAVE_CUDA),$(filter 1,$(shell nvidia-smi -L 2>/dev/null | grep -c "^GPU"))),1,2)
# Scripts may call make themselves, for PETSc's tests: with none of this make's options
CLEAN_ENV            := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL

bratu: all $(B)/examples/bratu
	@$(MPIEXEC) -n $(NP) $(B)/examples/bratu $(ARGS)

check: TIER := quick
check-all: TIER := all
check check-all: all tests examples
	@$(CLEAN_ENV) LIB=$(HERE)/$(LIBRARY) TESTS=$(HERE)/$(B)/tests MPIEXEC="$(MPIEXEC)" $(if $(PETSC_CUDA),$(if $(HAVE_CUDA),,DEVICE=)) SANITIZE=$(SANITIZE) CC="$(CC)" tests/run $(TIER)

# Programs that others wrote (docs/clients.md), those that are installed
check-clients: all
	@$(CLEAN_ENV) LIB=$(HERE)/$(LIBRARY) TESTS=$(HERE)/$(B)/tests MPIEXEC="$(MPIEXEC)" INSTALL="$(INSTALL)" tests/clients $(or $(TIER),all) $(CLIENTS)

# SECONDS is the time of all runs together; NP, on the command line, the number of ranks; ARGS further options (tests/lib/fuzz.h). The first seed is printed
# Leaks are not looked for, as PETSc has some of its own after errors
fuzz: SECONDS ?= 60
fuzz: SEED := $(or $(SEED),$(shell date +%s))
fuzz: FUZZ_RANKS = $(if $(filter command line,$(origin NP)),$(NP),1 2 3)
fuzz: FUZZ_TYPES = $(or $(TYPES),sellp evchyb batch)
fuzz: all $(B)/tests/fuzz
	@failed=0; each=$$(($(SECONDS) / ($(words $(FUZZ_RANKS)) * $(words $(FUZZ_TYPES))))); \
	for type in $(FUZZ_TYPES); do for ranks in $(FUZZ_RANKS); do \
	  $(CLEAN_ENV) -u SECONDS ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0 OMPI_MCA_mpi_yield_when_idle=1 $(MPIEXEC) -n $$ranks $(B)/tests/fuzz -type $$type -seed $(SEED) -seconds $$each $(ARGS) || failed=1; \
	done; done; exit $$failed

bench: all $(BENCH) $(PRODUCTS) $(BATCH)
	@$(CLEAN_ENV) LIB=$(HERE)/$(LIBRARY) BENCH=$(HERE)/$(B)/bench MPIEXEC="$(MPIEXEC)" bench/products/run $(ARGS)

paper: all $(PRODUCTS) $(B)/examples/bratu
	@$(CLEAN_ENV) BENCH=$(HERE)/$(B)/bench bench/papers/paper.py $(ARGS)

solve: all $(B)/examples/bratu
	@LIB=$(HERE)/$(LIBRARY) TESTS=$(HERE)/$(B)/tests $(CLEAN_ENV) tests/petsc.py -build $$(bench/solves/solve.py -tutorials)
	@$(CLEAN_ENV) LIB=$(HERE)/$(LIBRARY) MPIEXEC="$(MPIEXEC)" bench/solves/solve.py -petsc $(HERE)/$(B)/tests/petsc $(ARGS)

# Leaks of MPI and of what PETSc loads are not ours. Where something of ours leaks, fast_unwind_on_malloc=0 shows all of its stack; the tests then run four times as long
ifneq ($(SANITIZE),)
  export ASAN_OPTIONS  ?= detect_leaks=1
  export LSAN_OPTIONS  ?= suppressions=$(HERE)/tests/lsan.supp:print_suppressions=0
  export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1
endif

include packaging/rules.mk

-include $(shell find $(B) -name '*.d' 2>/dev/null)
endif # a PETSc was found
endif # a goal needs one

include packaging/dist.mk

# ---------------------------------------------------------------------------------------------------------------------
# The documentation, by Sphinx from PyPI. All is made again each time: Sphinx reports what is wrong in a file only when it reads it

DOCS_VENV := build/docs/venv
SPHINX     = $(DOCS_VENV)/bin/python -B -m sphinx -q -E -W --keep-going -c docs

$(DOCS_VENV)/made: docs/requirements.txt
	@rm -rf $(@D) && mkdir -p $(dir $(@D))
	python3 -m venv $(@D) && $(@D)/bin/pip install -q --disable-pip-version-check -r $< && touch $@

docs: man
man docs docs-linkcheck: $(DOCS_VENV)/made
docs:
	@rm -rf build/docs/html && mkdir -p build/docs/source
	@$(SPHINX) -d build/docs/read -b html build/docs/source build/docs/html && echo "  build/docs/html/index.html"
man:
	@rm -rf build/docs/man && mkdir -p build/docs/man-source
	@$(SPHINX) -t man -d build/docs/man-read -b man build/docs/man-source build/docs/man && echo "  build/docs/man/man7/petscspmv.7"
check-docs:
	@python3 tests/checkdocs.py
docs-linkcheck: docs
	@$(SPHINX) -d build/docs/read -b linkcheck build/docs/source build/docs/linkcheck

SOURCES = $(shell find include src examples tests bench -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp')
format:
	clang-format -i $(SOURCES)
check-format:
	clang-format --dry-run -Werror $(SOURCES)
