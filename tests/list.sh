# The list of tests; tests/run sources this file. Uses tier, types, here, several, LIB, TESTS, MPIEXEC, DEVICE, SANITIZE

load=("$TESTS/load")
m=($MPIEXEC -n)
expect=(-expect host) parts=1 limit=600
# devices are slow with many small matrices, and machines with a device have many cores
[ -z "$DEVICE" ] || { expect=(-expect device); parts=3 limit=900; }

# Runs the operations of a program in several parts: name limit command...
in_parts() {
  local name=$1 limit=$2 k; shift 2
  if [ $parts = 1 ]; then t "$name" "$limit" "$@"; else
    for ((k = 0; k < parts; k++)); do sh_ "$name, part $((k + 1)) of $parts" "$limit" resuming "$@" -part $k,$parts; done
  fi
}
# Runs a program of the harness as a whole: name limit command...
suite() { if [ -n "$DEVICE" ]; then local name=$1 limit=$2; shift 2; sh_ "$name" "$limit" resuming "$@"; else t "$@"; fi; }
files() { ls "$@" 2>/dev/null | paste -sd, -; }

# The core on bare arrays, and the scripts
core_tests() {
  local program
  for program in "$TESTS"/core-*; do
    [ -x "$program" ] && [ -f "$program" ] && case $program in *.o | *.d) continue ;; esac && t "$(basename "$program")" 900 env ${EMULATOR:-} "$program"
  done

  [ -n "${SANITIZE:-}" ] || ! command -v python3 >/dev/null || t scripts 240 "$here/scripts"
}

# The library, loaded in all possible ways, its options and its help. What is the same for all types is tested with the first one
loading_tests() {
  local type other
  [ -n "${SANITIZE:-}$DEVICE" ] || ! command -v python3 >/dev/null || t "petscspmv-doctor" 120 "$here/doctor.py" "$LIB" "$TESTS/load"
  for type in $types; do
    sh_ "loading $type by -dll_append" 60 prints "type: seqaij$type|type: seqaijcusparse" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type"
    sh_ "loading $type on $several ranks by -dll_append" 60 prints "type: mpiaij$type|type: mpiaijcusparse" "${m[@]}" $several "${load[@]}" -dll_append "$LIB" -mat_type "$type"
    sh_ "help lists $type" 60 prints "one of.* $type( |\))" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -help
    sh_ "view of $type" 60 prints "$type format${DEVICE:+ in type mpiaijcusparse}" "${m[@]}" $several "${load[@]}" -dll_append "$LIB" -mat_type "$type" -mat_view ::ascii_info
    sh_ "$type in place of aij${DEVICE:+cusparse}" 60 prints "$type format" "${m[@]}" $several "${load[@]}" -dll_append "$LIB" -mat_type aij${DEVICE:+cusparse} -mat_spmv_replace aij${DEVICE:+cusparse} -mat_spmv_replace_format "$type" -mat_view ::ascii_info
  done
  type=${types%% *}
  sh_ "loading $type by PETSC_OPTIONS" 60 prints "type: seqaij$type|type: seqaijcusparse" env PETSC_OPTIONS="${PETSC_OPTIONS:-} -dll_append $LIB -mat_type $type" "${m[@]}" 1 "${load[@]}"
  sh_ "loading $type by .petscrc" 60 with_petscrc "-dll_append $LIB -mat_type $type" prints "type: seqaij$type|type: seqaijcusparse" "${m[@]}" 1 "${load[@]}"
  sh_ "help on $type" 60 prints "-mat_spmv_node_size" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type" -help
  sh_ "help on the halo of $type" 60 prints "-mat_spmv_halo_rows" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type" -help
  sh_ "a wrong option of $type" 60 refuses "mat_spmv_node_size" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type" "-mat_spmv_node_size" 77
  sh_ "a wrong halo of $type" 60 refuses "mat_spmv_halo" "${m[@]}" $several "${load[@]}" -dll_append "$LIB" -mat_type "$type" -mat_spmv_halo nonsense
  sh_ "a wrong share of rows of $type" 60 refuses "mat_spmv_halo_rows is 2.?: it must be" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type" -mat_spmv_halo_rows 2
  sh_ "a wrong replaced type, $type" 60 refuses " for -mat_spmv_replace" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type "$type" -mat_spmv_replace nonsense
  other=$([ -n "$DEVICE" ] && echo aij || echo aijcusparse)
  sh_ "$other cannot be replaced by $type" 60 prints "-mat_spmv_replace $other does nothing" "${m[@]}" 1 "${load[@]}" -dll_append "$LIB" -mat_type aij -mat_spmv_replace $other -info
  sh_ "loading $type leaves no memory" 60 leakfree "${m[@]}" $several "${load[@]}" -dll_append "$LIB" -mat_type "$type" -checkfunctionlist
  sh_ "without the library $type is unknown" 60 refuses "Unknown Mat type" "${m[@]}" 1 "${load[@]}" -mat_type "$type"
}

# Libraries that were built here for other PETScs, as in .ci/run: the program must report the mismatch. core-build tests the mismatches for which there is no build
other_petsc_tests() {
  local other tag
  kind() { sed -E 's/^([0-9]+\.[0-9]+)[^-]*/\1/; s/-cuda//; s/-[0-9]+$//' <<<"$1"; } # the kind of a folder of build: 3.18-real
  [ -z "${SANITIZE:-}" ] || return 0
  for other in "$here"/../build/3.*/lib/libpetscspmv.so; do
    tag=$(basename "${other%/lib/*}")
    [ -f "$other" ] && [ "$(kind "$tag")" != "$(kind "$(basename "${LIB%/lib/*}")")" ] && [[ $tag != *-address* && $tag != *-undefined* ]] &&
      [ "$(basename "$(readlink -f "$other")")" = "$(basename "$(readlink -f "$LIB")")" ] || continue # the same version
    sh_ "a library for another PETSc, $tag" 60 refuses "This libpetscspmv was built for another PETSc|cannot open shared object" "${m[@]}" 1 "${load[@]}" -dll_append "$other" -mat_type sellp
  done
}

# Kernels are compiled for compute capability 8.0 and later, also on machines with older GPUs (simulated here). A packed PETSc cannot be compiled for
makefile_tests() {
  if [ $tier != device ] && [ -f "${PETSC_DIR:-}/lib/petsc/conf/variables" ]; then
    sh_ "GPUs of 7.5 and 9.0" 60 makes '-O3 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90' '7.5\n9.0' -C "$here/.."
    sh_ "a GPU of 7.5" 60 makes '-O3 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode' 7.5 -C "$here/.."
    sh_ "an architecture that is too old" 60 refuses 'CUDA_ARCHS=75 90: the kernels need compute capability 8.0 or later' make -n -C "$here/.." CUDA_ARCHS='75 90' kernels
    [ -n "${SANITIZE:-}" ] || t "an installed library" 120 env PETSC_DIR="$PETSC_DIR" PETSC_ARCH="${PETSC_ARCH:-}" MPIEXEC="$MPIEXEC" CC="${CC:-mpicc}" "$here/install/run"
  fi
}

# The conformance programs, the fuzzer and fault injection, for each type
type_tests() {
  local type ranks program force replaced
  for type in $types; do
    read -ra force <<<"$(forced "$type")"
    for ranks in $(numbers 1 $([ $tier = device ] && echo 2 || echo 3)); do
      # the glue of `batch` is that of the other types, its rules are SELL-P's
      for program in products $([ "$type $tier" = "batch quick" ] && [ $ranks != 1 ] || echo assembly operations); do
        # AIJCUSPARSE's orderings do not support inodes
        in_parts "$program, $type, $ranks ranks" $limit "${m[@]}" $ranks "$TESTS/$program" -type "$type" "${force[@]}" "${expect[@]}" ${DEVICE:+-mat_no_inode}
      done
    done
    for ranks in $(numbers 1 3); do ${DEVICE:+lone} t "DMs, $type, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/dm" -type "$type" "${expect[@]}"; done
    for ranks in $(numbers 1 $([ -z "$DEVICE" ] && echo 2 || echo 3)); do suite "device, $type, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/device" -type "$type" "${force[@]}" "${expect[@]}"; done
    # the first cases of the fuzzer, the same each time; PETSc leaks memory after errors
    # (not on a device, see tools/gpu-run fuzz, as the processes share the device)
    [ -n "$DEVICE" ] || for ranks in $(numbers 1 3); do t "fuzz, $type, $ranks ranks" 300 env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "${m[@]}" $ranks "$TESTS/fuzz" -type "$type" "${expect[@]}" -count $((ranks == 1 ? 1500 : 300)); done
    for ranks in $(numbers 1 3); do suite "columns, $type, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/columns" -type "$type" "${force[@]}" "${expect[@]}"; done
    suite "options, $type" 600 "${m[@]}" 1 "$TESTS/options" -type "$type"
    replaced=aij${DEVICE:+cusparse}
    for ranks in $(numbers 1 3); do suite "options, $replaced replaced by $type, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/options" -type "$type" -ops replace$([ -n "$DEVICE" ] || [ $ranks != 1 ] || echo ,seqaijtype) -mat_spmv_replace $replaced -mat_spmv_replace_format "$type"; done
    suite "options, $type, $several ranks" 300 "${m[@]}" $several "$TESTS/options" -type "$type" -ops parameters,seqaijtype -cases few,random,nodes2
    suite "products by choice, $type" 600 "${m[@]}" 1 "$TESTS/products" -type "$type"
    suite "solvers, $type" 600 "${m[@]}" 1 "$TESTS/solvers" -type "$type" "${force[@]}"
    # no coloring on devices: AIJCUSPARSE's first solve fails there, too (PETSc 3.26, more than one rank), after a random number of iterations
    suite "solvers, $type, $several ranks" 600 "${m[@]}" $several "$TESTS/solvers" -type "$type" "${force[@]}" -ops asm,gamg,redundant,mg-dof2-galerkin$([ -z "$DEVICE" ] && echo ,newton-coloring || echo ,newton,jacobi,bjacobi,mg,mg-galerkin,mg-hostvectors,gamg-hostvectors,multigrid-poisson,multigrid-jumps,multigrid-cube,multigrid-elasticity3,multigrid-tetrahedra,multigrid-misk,multigrid-hem,multigrid-pattern,multigrid-small,multigrid-smoothed,multigrid-smoothed1,multigrid-plain,multigrid-unsmoothed)
    # on the host PETSc's iterations run, whatever the type
    for ranks in $([ "$DEVICE" ] || [ "$type" = "${types%% *}" ] && numbers 1 3); do suite "krylov, $type, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/krylov" -type "$type" "${expect[@]}"; done
    # on a device: tools/gpu-run faults, which takes minutes
    [ -n "$DEVICE" ] || for ranks in $(numbers 1 2); do t "faults, $type, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/faults" -type "$type" "${expect[@]}" -quick; done
    # PETSc leaks memory after errors, and PCTFS always
    for ranks in $(numbers 1 3); do suite "names, $type, $ranks ranks" 600 env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "${m[@]}" $ranks "$TESTS/names" -type "$type" "${force[@]}" "${expect[@]}"; done
    [ -n "$DEVICE" ] || [ "$type" != "${types%% *}" ] || sh_ "memory, names, $type" 600 leakfree "${m[@]}" $several "$TESTS/names" -type "$type" "${force[@]}" -skip kaij,condensed,classical,mumps,tfs # PCTFS leaks with AIJ, too
    sh_ "memory, $type" $limit leakfree "${m[@]}" $several "$TESTS/assembly" -type "$type" "${force[@]}" -cases norows,lengths,hole,nodes3 -checkfunctionlist
  done
}

# The harness itself: if a single rank fails while the other ranks wait for it, the test must end immediately, also where tools/mpiexec allows a rank to leave
harness_tests() {
  local one how what
  if [ $tier != device ]; then
    one="rank $((several - 1)) of $several: "
    while read -r how what; do
      sh_ "one rank alone $how" 60 refuses "$what" env OMPI_MCA_orte_allowed_exit_without_sync=0 "${m[@]}" $several "$TESTS/ranks" -ops "$how"
    done <<END
errs FAILED ranks: operation errs, .*${one}turn 1, .*error 83 here, and not on all ranks
errsunseen FAILED ranks: operation errsunseen, .*${one}turn 1, .*error 83 here, and not on all ranks
refuses FAILED ranks: operation refuses, .*${one}turn 1, .*error 83 here, and not on all ranks
differs FAILED ranks: operation differs, .*${one}number 0: 1
crashes FAILED ranks: operation crashes, .*${one}turn 1, .*signal 11
dies noticed that process rank $((several - 1)) 
leaves due to process rank $((several - 1)) 
END
    sh_ "an option with too many names" 60 refuses "-ops lists 65 names, more than 64" "${m[@]}" 1 "$TESTS/ranks" -ops "$(printf 'together%.0s,' {1..65})"
    sh_ "an error of all ranks" 60 refuses "2 operations on matrices, 1 failed" "${m[@]}" $several "$TESTS/ranks" -ops allerr,together
  fi
}

# What the type batch adds to the other types
batch_tests() {
  local ranks
  for ranks in $(numbers 1 3); do t "batches, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/batch" "${expect[@]}"; done
  for ranks in $(numbers 1 3); do t "batches, solved one by one, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/batchsolve" "${expect[@]}"; done
  t "batches, solved one by one, sellp" 300 "${m[@]}" 1 "$TESTS/batchsolve" -type sellp -seed 400 -ksp_rtol 1e-2 "${expect[@]}"
  [ -z "$DEVICE" ] || t "batches, solved one by one, -ksp_device 0" 300 "${m[@]}" 1 "$TESTS/batchsolve" -seed 200 -ksp_device 0
  sh_ "batches, solved one by one, memory" 300 leakfree "${m[@]}" $several "$TESTS/batchsolve" -batches 2 -errors 0 "${expect[@]}"
  sh_ "batches, memory" 600 leakfree "${m[@]}" $several "$TESTS/batch" "${expect[@]}"
  [ -z "$DEVICE" ] || for ranks in $(numbers 1 2); do t "batches, device hidden, $ranks ranks" 600 env CUDA_VISIBLE_DEVICES= "${m[@]}" $ranks "$TESTS/batch" -expect host; done
}

example_tests() {
  local ranks type ex csv
  ex=$TESTS/../examples
  # if PETSc has Fortran
  if [ -x "$TESTS/fortran" ]; then
    for ranks in $(numbers 1 2); do
      sh_ "fortran, $ranks ranks" 60 leakfree "${m[@]}" $ranks "$TESTS/fortran"
      for type in $types; do
        sh_ "example solvef, $type, $ranks ranks" 60 prints "^matrix +format $type, kernel " "${m[@]}" $ranks "$ex/solvef" -mat_type "$type"
      done
    done
  fi
  # all residuals begin at 1, and the inverse solves each system in one iteration
  for ranks in $(numbers 1 2); do
    csv=$log/residuals-$ranks.csv
    sh_ "example batch, residuals, $ranks ranks" 60 writes '^jacobi,0,[^,]+,1\.?,1\.?,1\.?$' "$csv" "${m[@]}" $ranks "$ex/batch" -problems 50 -csv "$csv"
    sh_ "example batch, $ranks ranks" 60 prints '^vpbjacobi +1 ' "${m[@]}" $ranks "$ex/batch" -problems 50
    sh_ "example batch, views, $ranks ranks" 60 prints '^ *50 problems, iterations: least [1-9][0-9]*, median [1-9][0-9]*, most [1-9][0-9]*$' "${m[@]}" $ranks "$ex/batch" -problems 50 -pcs devicebatch -ksp_view
    sh_ "example batch, views of failures, $ranks ranks" 60 refuses '^ *[1-9][0-9]* problems were not solved: [0-9]+ \(DIVERGED_ITS\)' "${m[@]}" $ranks "$ex/batch" -problems 50 -pcs devicebatch -ksp_view -ksp_max_it 9
  done
  sh_ "example batch, one system, $several ranks" 60 leakfree "${m[@]}" $several "$ex/batch" -problems 1
  for type in $types; do
    sh_ "example bratu, $type, $several ranks" 60 prints "^$type +mpiaij($type|cusparse/$type) " "${m[@]}" $several "$ex/bratu" -n 12 -types "aij,$type"
    sh_ "example solve, $type, $several ranks" 60 prints "type mpiaij($type|cusparse)$" "${m[@]}" $several "$ex/solve" -f "$here/matrices/nos3.mtx" -mat_type "$type" -ksp_type cg -pc_type jacobi
  done
}

# On a device, with every other kernel, in graphs, and with the device hidden or off
device_kernel_tests() {
  local type kernel how program ranks force hide=(env CUDA_VISIBLE_DEVICES=)
  for type in $types; do
    for kernel in paper csr aij auto; do
      suite "products, $type, kernel $kernel" 600 "${m[@]}" 1 "$TESTS/products" -type "$type" -mat_spmv_kernel $kernel "${expect[@]}" -ops mult,multadd,transpose,hermitian,nonfinite,vectors
      suite "assembly, $type, kernel $kernel" 600 "${m[@]}" 1 "$TESTS/assembly" -type "$type" -mat_spmv_kernel $kernel "${expect[@]}" -ops all,insert,scale,array,newentries,replace,coo,again
      # Tests in which AIJCUSPARSE multiplies run alone: with other processes on the GPU, its first product with a matrix has lost a row, once in thousands of products
      case "$type $kernel" in *' aij' | 'sellp csr' | 'batch csr') how=lone ;; *) how= ;; esac
      $how suite "device, $type, kernel $kernel, $several ranks" 600 "${m[@]}" $several "$TESTS/device" -type "$type" -mat_spmv_kernel $kernel "${expect[@]}"
    done
    suite "graph, $type" 300 "${m[@]}" 1 "$TESTS/device" -type "$type" -mat_spmv_kernel slices "${expect[@]}" -ops graph -root_device_context_stream_type nonblocking
    suite "graph, $type, by choice" 300 "${m[@]}" 1 "$TESTS/device" -type "$type" "${expect[@]}" -ops graph -root_device_context_stream_type nonblocking
    read -ra force <<<"$(forced "$type")"
    [ $tier = device ] || for program in products assembly operations device; do
      t "$program, $type, device hidden" 600 "${hide[@]}" "${m[@]}" 1 "$TESTS/$program" -type "$type" "${force[@]}" -expect host
      t "$program, $type, device hidden, $several ranks" 600 "${hide[@]}" "${m[@]}" $several "$TESTS/$program" -type "$type" "${force[@]}" -expect host
    done
    [ $tier = device ] || t "solvers, $type, device hidden" 600 "${hide[@]}" "${m[@]}" 1 "$TESTS/solvers" -type "$type" "${force[@]}" -expect host
    t "products, $type, -device_enable none" 600 "${m[@]}" 1 "$TESTS/products" -type "$type" "${force[@]}" -expect host -device_enable none -ops mult,multadd,transpose
    for ranks in $(numbers 1 2); do
      sh_ "loading $type with CUDA's vectors, $ranks ranks" 60 prints "product is right" "${m[@]}" $ranks "${load[@]}" -dll_append "$LIB" -mat_type "$type" -vec_type cuda
      sh_ "loading $type bound to the CPU, $ranks ranks" 60 prints "product is right" "${m[@]}" $ranks "${load[@]}" -dll_append "$LIB" -mat_type "$type" -mat_bind_below 1000
    done
  done
}

# On devices, the ways to exchange the halo
device_halo_tests() {
  local type halo ranks
  # by default, PEER exchanges the halo if each rank has its own GPU, otherwise the host does. If NCCL is requested, it must be installed
  for type in $types; do
    for halo in nccl host petsc; do
      for ranks in $(numbers 2 3); do
        [ $halo != nccl ] || [ "$ranks" -le "$gpus" ] || continue
        suite "krylov, $type, halo $halo, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/krylov" -type "$type" -mat_spmv_halo $halo "${expect[@]}"
        suite "columns, $type, halo $halo, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/columns" -type "$type" -mat_spmv_kernel slices -mat_spmv_halo $halo "${expect[@]}"
        suite "products, $type, halo $halo, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/products" -type "$type" -mat_spmv_kernel slices -mat_spmv_halo $halo "${expect[@]}" -ops mult,multadd,transpose,nonfinite,vectors
        suite "device, $type, halo $halo, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/device" -type "$type" -mat_spmv_kernel slices -mat_spmv_halo $halo "${expect[@]}"
      done
    done
  done
  # most matrices of the tests are too small for fused products, unless all rows may be boundary rows
  for type in $types; do
    for ranks in $(numbers 2 3); do
      [ "$ranks" -le "$gpus" ] || continue
      suite "columns, $type, fused, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/columns" -type "$type" -mat_spmv_kernel auto -mat_spmv_halo peer -mat_spmv_halo_rows 1 "${expect[@]}" -ops columns,alternate,bind
      suite "products, $type, fused, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/products" -type "$type" -mat_spmv_kernel auto -mat_spmv_halo peer -mat_spmv_halo_rows 1 "${expect[@]}" -ops mult,multadd,transpose,nonfinite,vectors
      suite "assembly, $type, fused, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/assembly" -type "$type" -mat_spmv_kernel slices -mat_spmv_halo peer -mat_spmv_halo_rows 1 "${expect[@]}" -ops all,insert,scale,newentries,replace,coo,again
    done
  done
}

# On devices, assembly from coordinates, which are sorted on the device only if there are many entries
device_coo_tests() {
  local type ranks
  for type in $types; do
    for ranks in $(numbers 1 3); do
      suite "assembly, $type, sorted on the device, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/assembly" -type "$type" -mat_spmv_coo device "${expect[@]}" -ops coo,coo-away,coo-rows,coo-columns,coo-any,coo-last,coo-ignored,newentries,replace,again
      suite "device, $type, sorted on the device, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/device" -type "$type" -mat_spmv_coo device "${expect[@]}" -ops coo,coo-away,coo-errors,coo-many,bind,bindsome
    done
  done
}

# On devices, the remaining tests
device_other_tests() {
  local type halo ranks
  # A rank whose GPU is lost must end the other ranks, whatever they are waiting for; with CUDA's daemon the fault would affect all processes
  for halo in host petsc peer nccl; do
    case $halo in peer | nccl) [ "$several" -le "$gpus" ] || continue ;; esac
    sh_ "a lost GPU, halo $halo, $several ranks" 60 refuses 'CUDA error|cuda error|illegal memory access' env CUDA_MPS_PIPE_DIRECTORY="$log/none" "${m[@]}" $several "${load[@]}" \
      -dll_append "$LIB" -mat_type "${types%% *}" -mat_spmv_kernel slices -mat_spmv_halo $halo -lose 1
  done
  t "inner products of Krylov methods" 300 "$TESTS/cuda-krylov" full count
  t "set-up of smoothed aggregation" 300 "$TESTS/cuda-amg" full count
  for ranks in $(numbers 1 3); do t "halo, $ranks ranks" 300 "${m[@]}" $ranks "$TESTS/cuda-halo"; done
  suite "products, aijcusparse" 600 "${m[@]}" 1 "$TESTS/products" -type aijcusparse
  for type in $types; do lone t "device memory, $type" 300 "${m[@]}" 1 "$TESTS/device" -type "$type" -ops memory -cases few; done
}

# AIJPERM, one of PETSc's own types, must pass the tests, too (its orderings do not support inodes); matrices from files
file_tests() {
  local type small
  [ $tier = device ] || t "operations, aijperm" 200 "${m[@]}" 1 "$TESTS/operations" -type aijperm -mat_no_inode
  small=$(files "$here"/matrices/{USAir97,bcsstk02,west0989,lns_131}.mtx)
  for type in $types; do
    [ $tier = device ] || t "files, $type" 600 "${m[@]}" $several "$TESTS/products" -type "$type" -mat_spmv_kernel slices -files "$small" -ops mult,multadd,transpose,sparse
  done
}

# PETSc's own tests
petsc_tests() {
  if [ -n "${SANITIZE:-}" ]; then skip "PETSc's own tests" "they cannot load a library with a sanitizer"
  elif ! command -v python3 >/dev/null; then skip "PETSc's own tests" "no python3"
  elif [ $tier = quick ]; then t "PETSc's SNES ex14" 300 env JOBS=1 python3 "$here/petsc.py" -first 2 snes/tutorials/ex14
  fi
}

# Every allocation fails in turn
fault_tests() {
  local type ranks
  for type in $types; do
    for ranks in $(numbers 1 2); do t "faults, $type, $ranks ranks, all" 1800 "${m[@]}" $ranks "$TESTS/faults" -type "$type" "${expect[@]}"; done
  done
}

# Longer tests: larger matrices, more ranks, further options
all_tests() {
  local all large type ranks program kernel force o
  all=$(files "$here"/matrices/*.mtx)
  [ -z "${MATRICES:-}" ] && large= || large=$(files "$MATRICES"/{bcsstk16,bcsstk28,cage10,mbeacxc,mcfe}.mtx)
  [ -n "$large" ] || skip "larger matrices" "MATRICES names no folder that has them"
  for type in $types; do
    read -ra force <<<"$(forced "$type")"
    t "more ranks than rows, $type" 600 "${m[@]}" 6 "$TESTS/products" -type "$type" "${force[@]}" -cases empty,norows,nocolumns,nothing,one,few,skew
    t "assembly, more ranks than rows, $type" 600 "${m[@]}" 6 "$TESTS/assembly" -type "$type" "${force[@]}" -cases empty,norows,nocolumns,nothing,one,few,skew
    for ranks in $(numbers 2 3); do
      t "options, $type, $ranks ranks" 900 "${m[@]}" $ranks "$TESTS/options" -type "$type"
      t "solvers, $type, $ranks ranks, all" 900 "${m[@]}" $ranks "$TESTS/solvers" -type "$type"
    done
    for ranks in ${RANKS:-1 3}; do
      for program in products assembly operations; do
        t "$program on files, $type, $ranks ranks" 1200 "${m[@]}" $ranks "$TESTS/$program" -type "$type" "${force[@]}" -files "$all"
        sh_ "memory of $program, $type, $ranks ranks" 1200 leakfree "${m[@]}" $ranks "$TESTS/$program" -type "$type" -skip convert-is,refused
      done
    done
    [ -z "$large" ] || t "products on larger files, $type" 1200 "${m[@]}" $several "$TESTS/products" -type "$type" -files "$large" -ops mult,multadd,transpose,nonfinite,vectors,blocks
    [ -z "$large" ] || t "assembly on larger files, $type" 1200 "${m[@]}" 1 "$TESTS/assembly" -type "$type" -files "$large" -ops all,newentries,coo,refill
    t "no inodes, $type" 600 "${m[@]}" 1 "$TESTS/products" -type "$type" "${force[@]}" -mat_no_inode
    t "by choice, $type" 600 "${m[@]}" 3 "$TESTS/assembly" -type "$type"
    for kernel in csr aij; do
      for program in products assembly; do t "$program, $type, kernel $kernel" 600 "${m[@]}" $several "$TESTS/$program" -type "$type" -mat_spmv_kernel $kernel; done
    done
    t "uncompressed, $type" 600 "${m[@]}" $several "$TESTS/assembly" -type "$type" "${force[@]}" -mat_spmv_compress 0
    t "node size 1, $type" 600 "${m[@]}" 1 "$TESTS/assembly" -type "$type" "${force[@]}" -mat_spmv_node_size 1
  done
  case " $types " in *" sellp "*)
    for o in "-mat_sellp_sigma 1" "-mat_sellp_threads_per_row 4 -mat_sellp_sigma 256"; do
      t "assembly, sellp, $o" 600 "${m[@]}" $several "$TESTS/assembly" -type sellp -mat_spmv_kernel slices $o
    done ;; esac
  case " $types " in *" evchyb "*)
    for o in "-mat_evchyb_ell_limit 0" "-mat_evchyb_ell_limit 4"; do
      t "assembly, evchyb, $o" 600 "${m[@]}" $several "$TESTS/assembly" -type evchyb $o
    done ;; esac
  for program in products assembly operations; do
    for ranks in $(numbers 2 3); do t "$program, aijperm, $ranks ranks" 600 "${m[@]}" $ranks "$TESTS/$program" -type aijperm -mat_no_inode; done
  done
  [ -n "${SANITIZE:-}" ] || ! command -v python3 >/dev/null || t "PETSc's own tests" 7200 env JOBS=1 python3 "$here/petsc.py"
}

list() {
  if [ $tier != device ]; then core_tests; fi
  loading_tests
  other_petsc_tests
  if [ $tier != device ] && [ -f "${PETSC_DIR:-}/lib/petsc/conf/variables" ]; then makefile_tests; fi
  type_tests
  if [ $tier != device ]; then harness_tests; fi
  batch_tests
  if [ $tier != device ]; then example_tests; fi
  if [ -n "$DEVICE" ]; then device_kernel_tests; device_halo_tests; device_coo_tests; device_other_tests; fi
  file_tests
  petsc_tests
  if [ $tier = all ] && [ -z "$DEVICE" ]; then fault_tests; fi # on a device: tools/gpu-run faults
  if [ $tier = all ]; then all_tests; fi
}
