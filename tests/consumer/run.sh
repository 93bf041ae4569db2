#!/usr/bin/env bash
# Installs the build tree into a temporary prefix, builds the project in this folder against it with
# find_package(Lathe), and runs it: a compiler of graphs and a runner that never sees LLVM.
# Usage: run.sh CMAKE BUILD_DIR CXX_COMPILER
set -euo pipefail
cmake=$1 build=$2 cxx=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
"$cmake" -S "$here" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release >"$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/build"

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
