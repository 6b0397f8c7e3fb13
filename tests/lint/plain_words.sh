#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each kind of breach in a tree of its own and expects tools/plain_words ($1) to count it, and its numbers only to fall.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git -C "$tree" init -q
mkdir -p "$tree"/{core,docs,tests/lint}

expect() {  # expect STATUS TEXT [ARGUMENT…]: exit status and a piece of what is printed
  local status=0 printed
  printed=$("$check" "${@:3}" "$tree" 2>&1) || status=$?
  if [[ $status -ne $1 || $printed != *"$2"* ]]; then
    echo "plain_words ${*:3}: expected status $1 and '$2', got $status and: $printed"
    exit 1
  fi
}
echo '// Adds two numbers. They are finite.' > "$tree/core/a.h"
expect 0 "0 breaches"
echo '//     By hand' > "$tree/core/a.h"  # a picture
expect 0 "0 breaches"
echo '// Of two numbers the sum.' > "$tree/core/a.h"
expect 1 "core: 1 breaches, at most 0"
expect 0 "core/a.h:1: opener: Of two numbers the sum." --list core
echo 'int x; // numbers that are at hand' > "$tree/core/a.cpp"
expect 0 "core/a.cpp:1: word" --list core
printf '# A page\n\nIt says what it says.\n' > "$tree/docs/a.md"
expect 0 "docs/a.md:3: sentence: It says what it says." --list docs/pages
printf '# A page\n\n%s\n' "$(yes word | head -26 | paste -sd ' ')." > "$tree/docs/a.md"
expect 0 "docs/a.md:3: sentence" --list docs/pages
expect 0 "" --update
expect 0 "3 breaches in 2 folders"
echo '// By others, anew.' > "$tree/core/b.h"
expect 1 "core: 4 breaches, at most 2"
expect 0 "" --update
expect 1 "core: 4 breaches, at most 2"
rm "$tree"/core/*
expect 0 "" --update
if grep -q '^core' "$tree/tests/lint/plain_words.txt"; then
  echo "the number of core did not fall: $(cat "$tree/tests/lint/plain_words.txt")"
  exit 1
fi
