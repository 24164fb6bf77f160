#!/usr/bin/env bash
# nvcc 13.5.37: host code in a .cu file, a class member with braces around a call of a constructor with parentheses.
# Guess: nvcc passes host code on to the host compiler as it is, so std::vector<double> v{std::vector<double>(1000)} has
# 1000 entries, as it has with g++ and with nvcc -x c++.
# Seen: nvcc rewrites the inner parentheses to braces, which select the constructor for a list: the vector has 1 entry,
# std::string(3, 'x') 2 characters. There is no warning. nvcc 13.0.88 did so for local variables, too.
. "$(dirname "$0")/lib.sh"
packages nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37
root=$("$python" -c 'import importlib.util as u; print(list(u.find_spec("nvidia").submodule_search_locations)[0])')/cu13
cat >"$tmp/program.cu" <<'END'
#include <cstdio>
#include <string>
#include <vector>
constexpr int N = 1000;
struct Object {
  std::vector<double> braces{std::vector<double>(N)}, assigned = std::vector<double>(N);
  std::string         text{std::string(3, 'x')};
};
int main()
{
  std::vector<double> local{std::vector<double>(N)};
  Object              o;
  std::printf("* entries: member with braces %zu, with = %zu, local variable %zu; characters %zu\n", o.braces.size(),
              o.assigned.size(), local.size(), o.text.size());
}
END
nvcc() { "$root/bin/nvcc" -std=c++17 -L"$root/lib" "$@" -o "$tmp/program" "$tmp/program.cu"; }
both() {
  nvcc && "$tmp/program"
  nvcc -x c++ && "$tmp/program"
}
see both
behaves <<'END'
* entries: member with braces 1, with = 1000, local variable 1000; characters 2
* entries: member with braces 1000, with = 1000, local variable 1000; characters 3
END
