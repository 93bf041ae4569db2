#!/usr/bin/env bash
# Installs the build tree into a temporary prefix, builds the project in this folder against it with
# find_package(Lathe), and runs it: a compiler of graphs and a runner that never sees LLVM. Then the
# example backend, as a project of its own whose library the installed `lathe` loads; then what the pages
# say, by pages.py.
# Usage: run.sh CMAKE BUILD_DIR CXX_COMPILER MLIR_DIR
set -euo pipefail
cmake=$1 build=$2 cxx=$3 mlir=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH

# What is asked is whether programs build and run, not how fast.
unoptimized=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG)

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
"$cmake" -S "$here" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" "${unoptimized[@]}" >"$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/build"

# What a user meets besides the libraries.
for file in bin/lathe share/man/man1/lathe.1 share/bash-completion/completions/lathe \
    share/doc/lathe/{LICENSE,THIRD_PARTY_NOTICES,README.md,docs/limits.md,examples/fusions/trial.h}; do
  [ -s "$work/prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done
# A compiler whose headers are too old is told, with one that is not.
if "$cmake" -S "$here" -B "$work/old" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS=-nostdinc++ >"$work/old.log" 2>&1 ||
  ! tr '\n' ' ' <"$work/old.log" | tr -s ' ' | grep -q 'need a C++20 compiler with <source_location>: gcc 12, clang 16 or newer'
then
  cat "$work/old.log"
  exit 1
fi

# A second prefix: what is installed does not lean on the build tree or on where it was installed.
mv "$work/prefix" "$work/moved"
for file in "$work/moved"/lib*/liblathe*.so "$work/moved"/lib*/*/liblathe*.so; do
  [ -e "$file" ] || continue
  if ldd "$file" | grep 'not found'; then echo "$file: a library is missing"; exit 1; fi
  if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -F "$build"; then
    echo "$file: looks into the build tree"
    exit 1
  fi
done
mv "$work/moved" "$work/prefix"

"$work/build/compile_program" "$work/softmax.lathe"
"$here/no_llvm.sh" "$work/build/run_program" "$work/prefix/bin/lathe"
"$work/build/run_program" "$work/softmax.lathe"
"$work/prefix/bin/lathe" run "$work/softmax.lathe" --input x=2x16xf32=1.0 --output "$work/y.npy"
"$work/prefix/bin/lathe" selftest --mode test --op softmax

"$cmake" -S "$here/../../examples/backends/table" -B "$work/table" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DMLIR_DIR="$mlir" \
  -DCMAKE_CXX_COMPILER="$cxx" "${unoptimized[@]}" >"$work/table.log" ||
  { cat "$work/table.log"; exit 1; }
"$cmake" --build "$work/table"
"$here/no_llvm.sh" "$work/table/table_device.so"
table=(--backend table --load-backend-plugin "$work/table/table_backend.so")
"$work/prefix/bin/lathe" selftest --mode test "${table[@]}"
# The same numbers as the reference's, from a program that a machine without LLVM runs.
cat >"$work/gate.mlir" <<'IR'
func.func @forward(%x: tensor<2x4xf32> {lathe.name = "x"}) -> (tensor<2x4xf32> {lathe.name = "y"}) {
  %s = lathe.softmax %x axis 1 : tensor<2x4xf32>
  %y = lathe.mul %s, %x : tensor<2x4xf32>, tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
IR
input=(--input x=2x4xf32=1,2,3,4,5,6,7,8)
"$work/prefix/bin/lathe" compile "$work/gate.mlir" "${table[@]}" -o "$work/gate.lathe"
"$work/prefix/bin/lathe" run "$work/gate.mlir" --backend reference "${input[@]}" >"$work/want"
"$work/prefix/bin/lathe" run "$work/gate.lathe" "${input[@]}" \
  --load-backend-plugin "$work/table/table_device.so" >"$work/got"
diff "$work/want" "$work/got"

python3 "$here/pages.py" "$work/prefix" "$work" "$cmake" "$cxx" "$mlir"
