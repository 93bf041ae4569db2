#!/usr/bin/env bash
# The steps in which scripts/demo builds what it needs are as few as README.md says, and at most 200: the
# release preset is configured, not built.
# Usage: demo_steps.sh CMAKE SOURCE_DIR
set -euo pipefail
cmake=$1 source=$2
most=200
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$source" && "$cmake" --preset release -B "$work/release") >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
targets=$(sed -n 's/^targets=(\(.*\))$/\1/p' "$source/scripts/demo")
steps=$(ninja -C "$work/release" -t commands $targets | wc -l)
told=$(tr '\n' ' ' <"$source/README.md" | sed -n 's/.* in \([0-9]*\) steps.*/\1/p')
echo "$steps steps of $targets; README.md says $told"
[ "$steps" -le "$most" ] || { echo "expected at most $most"; exit 1; }
# Within a tenth: a file more is no new figure.
[ $((steps * 10)) -le $((told * 11)) ] && [ $((steps * 11)) -ge $((told * 10)) ] ||
  { echo "expected README.md to say about $steps steps"; exit 1; }
