#!/usr/bin/env bash
# What runs programs links neither LLVM nor MLIR, directly or through another library.
# Usage: no_llvm.sh FILE...
set -uo pipefail
failed=0
for file in "$@"; do
  if [ ! -e "$file" ]; then
    echo "$file: missing"
    failed=1
    continue
  fi
  needed=$(ldd "$file") || { echo "$file: ldd failed"; failed=1; continue; }
  if missing=$(grep 'not found' <<<"$needed"); then
    printf '%s: a library is missing:\n%s\n' "$file" "$missing"
    failed=1
  fi
  if found=$(grep -iE 'lib(MLIR|LLVM|lld|clang|lathe\.so)' <<<"$needed"); then
    printf '%s links the compiler:\n%s\n' "$file" "$found"
    failed=1
  else
    echo "$(basename "$file"): no LLVM among $(wc -l <<<"$needed") libraries"
  fi
done
exit $failed
