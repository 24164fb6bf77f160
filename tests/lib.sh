# Functions to run and evaluate tests; tests/run sources this file. Uses log, jobs, gpus, devices, slower, ONLY, SKIP, RANKS, LIMIT

passed=0 failed=0 skipped=0 extra=0

# ---------------------------------------------------------------------------------------------------------------------
# A test has a name, a limit in seconds and a command. As many tests run at a time as there are jobs

runs_on() { [[ " $RANKS " == *" $1 "* ]]; }
ranks_of() { # command...: prints the word after its first -n, or 1 if there is none
  while [ $# -gt 1 ]; do [ "$1" != -n ] || { echo "$2"; return; }; shift; done
  echo 1
}
numbers() { # first last: prints these numbers of ranks, or the numbers in RANKS from first on
  local n
  for n in ${RANKS:-$(seq "$1" "$2")}; do ((n < $1)) || echo "$n"; done
}
# for a test that needs several ranks, but not with every number of ranks: the first number in RANKS above one
several=$(numbers 2 2 | head -n 1)
several=${several:-2}

names=() limits=() commands=() alone=()
t() { # name limit command...
  [[ -z ${ONLY:-} || $1 =~ $ONLY ]] && [[ -z ${SKIP:-} || ! $1 =~ $SKIP ]] || return 0
  [ -z "${RANKS:-}" ] || runs_on "$(ranks_of "${@:3}")" || return 0
  names+=("$1"); limits+=("$2"); shift 2
  commands+=("$(printf '%q ' "$@")")
}
# Adds a test with t, sh_ or suite that runs after the tests so far, and alone
lone() { local n=${#names[@]}; "$@"; [ ${#names[@]} = "$n" ] || alone[n]=1; }
left() { echo $((${LIMIT:-1000000} - SECONDS)); }
skip() { skipped=$((skipped + 1)); echo "  skipped $1: $2"; }

start() { # number
  (
    # PETSc's rank 0 uses the first GPU: rotate the list from test to test
    ((gpus < 2)) || export CUDA_VISIBLE_DEVICES=$(for ((k = 0; k < gpus; k++)); do echo "${devices[($1 + k) % gpus]}"; done | paste -sd,)
    begin=$SECONDS seconds=$((${limits[$1]} * slower)) left=$(left)
    echo "${names[$1]}" >"$log/$1.name"
    if ((left <= 0)); then echo "FAILED: not begun when the time was up" >"$log/$1.out"; rc=125
    else
      ((seconds <= left + 60)) || seconds=$((left + 60))
      # the limit ends mpiexec, and mpiexec ends its ranks
      eval "LIMIT=$left exec timeout -k 10 $seconds ${commands[$1]}" >"$log/$1.out" 2>&1 </dev/null &
      echo $! >"$log/$1.pid"
      wait $!
      rc=$?
      rm -f "$log/$1.pid"
    fi
    echo "$rc $((SECONDS - begin))" >"$log/$1.rc"
  ) &
}
finish() { # number
  local rc time
  read -r rc time <"$log/$1.rc"
  if [ "$rc" = 0 ]; then
    passed=$((passed + 1)); echo "  passed ${names[$1]} (${time} s)"
    excused=$(grep -aoE '[0-9]+ as wrong as [a-z]+' "$log/$1.out" | tail -n 1)
    [ -z "$excused" ] || { echo "    of its operations $excused:"; grep -a '^note' "$log/$1.out" | cut -c1-300 | head -n 6 | sed 's/^/      /'; cat "$log/$1.out" >>"$log/notes"; }
    rm -f "$log/$1.out" "$log/$1.name"
  else
    failed=$((failed + 1))
    [ "$rc" = 124 ] && echo "FAILED ${names[$1]}: no end after $((${limits[$1]} * slower)) seconds" || echo "FAILED ${names[$1]} (exit code $rc)"
    echo "    ${commands[$1]}"
    grep -a FAILED "$log/$1.out" | cut -c1-600 | head -n 12 | sed 's/^/    /' | grep . || tail -n 25 "$log/$1.out" | cut -c1-400 | sed 's/^/    /'
    echo "    the whole output: $log/$1.out"
  fi
  # a program that counts its own tests
  if counts=$(grep -aoE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log/$1.out" 2>/dev/null | tail -n 1) && [ -n "$counts" ]; then
    read -r p _ f _ s _ <<<"${counts//,/}"
    extra=$((extra + p)); skipped=$((skipped + s)); [ "$f" -gt 1 ] && failed=$((failed + f - 1))
  fi
  rm -f "$log/$1.rc"
}
# A signal to this script does not reach the tests, because timeout puts each in its own process group
interrupted() { # exit status
  trap '' INT TERM HUP
  kill -TERM $(cat "$log"/*.pid 2>/dev/null) 2>/dev/null # the shell's builtin kill, because small systems have no other
  wait
  echo "interrupted: ${#names[@]} tests, $passed passed, $failed failed"
  exit "$1"
}
trap 'interrupted 130' INT
trap 'interrupted 143' TERM HUP
run_all() {
  local order=() running=() next=0 still n
  for n in "${!names[@]}"; do [ -n "${alone[n]:-}" ] || order+=("$n"); done
  order+=("${!alone[@]}")
  while ((next < ${#order[@]} || ${#running[@]} > 0)); do
    while ((next < ${#order[@]} && ${#running[@]} < jobs)); do
      n=${order[next]}
      if [ -n "${alone[n]:-}" ] && ((${#running[@]} > 0)); then break; fi
      start "$n"; running+=("$n"); next=$((next + 1))
    done
    wait -n 2>/dev/null
    still=()
    for n in "${running[@]}"; do [ -f "$log/$n.rc" ] && finish "$n" || still+=("$n"); done
    running=("${still[@]}")
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# Commands for tests. Tests run in their own shell, so these functions are exported

prints() { # pattern command...: the command must succeed and print the pattern
  local want=$1 out; shift
  out=$("$@" 2>&1) || { echo "$out"; return 1; }
  grep -qaE -e "$want" <<<"$out" || { echo "$out" | tail -n 40; echo "FAILED: '$want' was not printed"; return 1; }
}
writes() { # pattern file command...: the command must succeed and write the pattern to the file, which is new
  local want=$1 file=$2; shift 2
  rm -f "$file"
  "$@" || return 1
  grep -qaE -e "$want" "$file" || { echo "FAILED: '$want' is not in $file"; return 1; }
}
refuses() { # pattern command...: the command must fail and print the pattern
  local want=$1 out; shift
  if out=$("$@" 2>&1); then echo "$out"; echo "FAILED: this should have failed"; return 1; fi
  grep -qaE -e "$want" <<<"$out" || { echo "$out" | tail -n 40; echo "FAILED: '$want' was not printed"; return 1; }
}
# command...: must not leak memory; if memory leaks, PETSc prints "[ 0]16 bytes MatCreate() line 1 in ...". With -checkfunctionlist, which PETSc's tests are run with,
# no matrix must be destroyed with functions composed. With -malloc_debug PETSc would check all memory at each allocation, which takes thirty times as long
leakfree() {
  local out
  out=$("$@" -malloc_dump 2>&1) || { echo "$out"; return 1; }
  if grep -qaE '^\[ *[0-9]+\] *[0-9]+ bytes|Memory corruption|is corrupted' <<<"$out"; then echo "$out" | head -n 40; echo "FAILED: memory was not freed"; return 1; fi
  if grep -aE 'function name: Mat' <<<"$out"; then echo "FAILED: functions were left composed"; return 1; fi
}
with_petscrc() { # "option option" command...: runs in a folder whose .petscrc has the options, one per line
  local dir rc options=$1; shift
  dir=$(mktemp -d) || return 1
  sed 's/ -/\n-/g' <<<"$options" >"$dir/.petscrc"
  (cd "$dir" && "$@"); rc=$?
  rm -rf "$dir"; return $rc
}
makes() { # pattern capabilities variables...: the output of make -n on a machine with GPUs of these capabilities must contain the pattern
  local want=$1 dir rc; dir=$(mktemp -d)
  printf '#!/bin/sh\nprintf "%s\\n"\n' "$2" >"$dir/nvidia-smi"; chmod +x "$dir/nvidia-smi"; shift 2
  prints "$want" sh -c 'PATH=$1:$PATH; shift; "$@" | tr "\n" " "' - "$dir" make -s -n -B "$@" kernels; rc=$?
  rm -rf "$dir"; return $rc
}
resuming() { # command...: runs a program of the harness, and resumes it after an operation in which it crashed
  local out rc=0 last turn who model=0 from=0 without=() begin=$SECONDS ended=
  trap 'ended=1' TERM # the position of the program must still be printed
  while ((SECONDS - begin < 900)); do
    out=$("$@" -from $from "${without[@]}" 2>&1); last=$?
    echo "$out"
    [ -z "$ended" ] || return 124
    read -r turn who < <(grep -aoE 'turn [0-9]+, running on [a-z]+: signal' <<<"$out" | head -n 1 | sed -E 's/turn ([0-9]+), running on ([a-z]+):.*/\1 \2/')
    if [ -z "$turn" ]; then ((last)) && rc=$last; return $rc; fi
    grep -a '^FAILED' <<<"$out" | grep -aqvE 'turn [0-9]+, running on' && rc=1 # before the crash
    if [ "$who" = aijcusparse ] && ((model != turn)); then # once more without AIJCUSPARSE
      model=$turn from=$((turn - 1)) without=(-without "$turn")
    else
      ((model == turn)) && echo "note: both crash in turn $turn" || rc=9
      from=$turn without=()
    fi
    turn=
  done
  return 124
}
export -f prints writes refuses leakfree with_petscrc makes resuming
sh_() { # name limit function-and-arguments...
  local name=$1 limit=$2; shift 2
  t "$name" "$limit" bash -c '"$@"' tests "$@"
}

# The options that force a type's kernel: by default it may prefer AIJ's own product on matrices as small as those of the tests
forced() { echo "-mat_spmv_kernel slices"; }
