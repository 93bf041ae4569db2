#!/usr/bin/env bash
# The C++ blocks of the documentation are the examples, word for word: a line that names the file
# stands before each block, and the README's first two commands are scripts/demo and scripts/test.
# Usage: readme_block.sh SOURCE_DIR
set -uo pipefail
cd "$1" || exit 2
failures=0 blocks=0

for page in README.md docs/*.md; do
  for file in $(sed -n 's/^<!-- identical to \([^ ]*\) -->$/\1/p' "$page"); do
    blocks=$((blocks + 1))
    block=$(awk -v mark="<!-- identical to $file -->" '
      $0 == mark {found = 1; next}
      found && /^```/ {if (inside) exit; inside = 1; next}
      found && inside {print}' "$page")
    if ! diff <(printf '%s\n' "$block") "$file"; then
      echo "$page: the block of $file differs from the file"
      failures=$((failures + 1))
    fi
  done
done
[ "$blocks" -gt 0 ] || { echo "no block was found"; failures=1; }
grep -q '^<!-- identical to examples/' README.md || { echo "README.md shows no example"; failures=1; }

commands=$(awk '/^```/ {if (inside) exit; inside = 1; next} inside {print $1}' README.md | head -2 | xargs)
if [ "$commands" != "scripts/demo scripts/test" ]; then
  echo "README.md begins with '$commands', expected scripts/demo and scripts/test"
  failures=$((failures + 1))
fi
lines=$(wc -l <README.md)
[ "$lines" -le 150 ] || { echo "README.md has $lines lines, expected at most 150"; failures=1; }

# Links to files of the repository lead somewhere.
for page in README.md SECURITY.md docs/*.md; do
  text=$(awk '/^```/ {code = !code; next} !code' "$page")
  for link in $(grep -oE '\]\([^)#:]+' <<<"$text" | cut -c3-); do
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: nothing at $link"; failures=$((failures + 1)); }
  done
done
[ "$failures" = 0 ] && echo "$blocks blocks equal their files"
exit "$((failures > 0))"
