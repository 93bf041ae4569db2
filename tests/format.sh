#!/usr/bin/env bash
# Every source lies as clang-format lays it, CUDA headers and included files too.
# Usage: format.sh SOURCE_DIR CLANG_FORMAT
set -euo pipefail
cd "$1"
find include ir passes frontend inspect backends runtime tools tests examples bench python -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.inc' -o -name '*.cuh' \) -print0 |
  xargs -0 -n 60 -P "$(nproc)" "$2" --dry-run -Werror
echo "format: clean"
