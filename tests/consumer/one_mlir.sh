#!/usr/bin/env bash
# MLIR lives in its shared library alone: a second copy of the type ids makes isa<> fail silently.
# Usage: one_mlir.sh NM FILE...
set -uo pipefail
nm=$1
shift
failed=0
for file in "$@"; do
  [ -e "$file" ] || { echo "$file: missing"; failed=1; continue; }
  # Defined dynamic or local symbols: T, t, W, ... of the context's constructor.
  symbols=$({ "$nm" --defined-only "$file"; "$nm" -D --defined-only "$file"; } 2>/dev/null)
  if copy=$(grep -E ' _ZN4mlir11MLIRContextC[12]E' <<<"$symbols"); then
    printf '%s has its own copy of MLIR:\n%s\n' "$file" "$copy"
    failed=1
  fi
done
[ $failed = 0 ] && echo "one MLIR for $# files"
exit $failed
