#!/usr/bin/env bash
# Who may include whom: nothing includes upward, LLVM stays out of the run side, oneDNN stays under
# backends/cpu. And no file grows past 1,000 lines.
# Usage: layering.sh SOURCE_DIR
set -uo pipefail
cd "$1" || exit 2
failures=0

sources() { find "$@" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.inc' \) | sort; }

# may FOLDER PATTERN: every project include of FOLDER starts with PATTERN.
may() {
  local bad
  bad=$(sources "$1" | xargs grep -nE '^ *#include "' | grep -vE "#include \"($2)")
  if [ -n "$bad" ]; then
    printf '%s may include %s only:\n%s\n' "$1" "$2" "$bad"
    failures=$((failures + 1))
  fi
}
# never PATTERN WHERE...: no include of WHERE matches.
never() {
  local pattern=$1 bad
  shift
  bad=$(sources "$@" | xargs grep -nE "^ *#include [<\"]($pattern)")
  if [ -n "$bad" ]; then
    printf 'no %s in %s:\n%s\n' "$pattern" "$*" "$bad"
    failures=$((failures + 1))
  fi
}

may runtime 'runtime/'
may ir '(ir|runtime|mlir|llvm)/'
may passes '(passes|ir|runtime|mlir|llvm)/'
may frontend '(frontend|passes|ir|runtime|mlir|llvm)/|backends/[a-z_]+\.h|backends/reference/interpreter\.h'
for backend in backends/*/; do
  backend=${backend%/}
  [ -d "$backend/device" ] && may "$backend/device" "($backend/(device|hostexec)|cuda_headers|runtime)/"
  folder=$backend
  [ -d "$backend/lowering" ] && folder=$backend/lowering
  may "$folder" "($backend|backends/common|passes|ir|runtime|mlir|llvm|lld)/|backends/[a-z_]+\.h"
done
never '(mlir|llvm|lld|clang)/' runtime backends/*/device tools/lathe
never '(dnnl|oneapi/dnnl)' runtime ir passes frontend include tools \
  $(find backends -mindepth 1 -maxdepth 1 -type d ! -name cpu)

long=$(sources runtime ir passes frontend backends tools tests examples bench include |
  xargs wc -l | awk '$2 != "total" && $1 > 1000 {print "  " $2 ": " $1 " lines"}')
if [ -n "$long" ]; then
  printf 'files of more than 1,000 lines:\n%s\n' "$long"
  failures=$((failures + 1))
fi

[ "$failures" = 0 ] && echo "layering: clean"
exit "$((failures > 0))"
