#!/usr/bin/env bash
# Links each layer of the compiler library with the layers that it stands on and nothing else: what
# is used from a layer above stays undefined and fails.
# Usage: layers_link.sh CXX LIST_FOLDER LIBRARY...
# LIST_FOLDER holds a file per layer, NAME.layer: the names of the layers below on the first line,
# then object files.
set -uo pipefail
cxx=$1 lists=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
for list in "$lists"/*.layer; do
  name=$(basename "$list" .layer)
  objects=$(tail -n +2 "$list")
  for below in $(head -n 1 "$list"); do
    objects+=" $(tail -n +2 "$lists/$below.layer" | tr '\n' ' ')"
  done
  # shellcheck disable=SC2086
  if ! "$cxx" -shared -fuse-ld=lld -Wl,--no-undefined -Wl,--error-limit=10 -o "$work/$name.so" $objects "$@" \
      2>"$work/errors"; then
    printf 'the layer %s does not link on the layers below it (%s):\n' "$name" "$(head -n 1 "$list")"
    cat "$work/errors"
    failures=$((failures + 1))
  fi
  rm -f "$work/$name.so"
done
[ "$failures" = 0 ] && echo "layers: each links on those below it"
exit "$((failures > 0))"
