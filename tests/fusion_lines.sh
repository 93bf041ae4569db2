#!/usr/bin/env bash
# A user's fusion takes at most 20 lines: the functions that docs/write-a-fusion.md shows, from their
# first line to their closing brace. Usage: fusion_lines.sh SOURCE_DIR
set -uo pipefail
cd "$1/examples/fusions" || exit 2
failures=0
for file in glu_pattern.cpp merge_lora_pattern.cpp; do
  lines=$(awk '/^PatternLibrary / {inside = 1} inside {++n} inside && /^}/ {print n; exit}' "$file")
  if [ -z "$lines" ] || [ "$lines" -gt 20 ]; then
    echo "$file: the fusion takes '$lines' lines, expected at most 20"
    failures=$((failures + 1))
  fi
done
for file in glu.pdl.mlir glu.pdll; do
  lines=$(wc -l <"$file")
  [ "$lines" -le 20 ] || { echo "$file: $lines lines, expected at most 20"; failures=$((failures + 1)); }
done
exit "$((failures > 0))"
