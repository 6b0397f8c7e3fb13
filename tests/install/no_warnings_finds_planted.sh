#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# no_warnings_finds_planted.sh COMPILER NO_WARNINGS: a header that shadows or narrows is found, a missing compiler is said.
set -euo pipefail
compiler=$1 no_warnings=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/include/weft"
echo '#include <weft/weft.h>
int main() { return 0; }' > "$folder/main.cpp"
for line in 'inline int f(int x) { { int x = 1; return x; } }' 'inline int f(long x) { return x; }' 'inline int f(int) { return 0; }'; do
  echo "#pragma once
$line" > "$folder/include/weft/weft.h"
  status=0
  "$no_warnings" "$compiler" "$folder" "$folder/main.cpp" &> "$folder/said" || status=$?
  case $line in
    *'f(int) '*) [[ $status -eq 0 ]] || { cat "$folder/said"; exit 1; } ;;
    *) [[ $status -ne 0 ]] || { echo "nothing was said of: $line"; exit 1; } ;;
  esac
done
status=0
said=$("$no_warnings" no-such-compiler "$folder" "$folder/main.cpp") || status=$?
[[ $status -eq 77 && $said == *'NOT TESTED: this machine has no no-such-compiler'* ]]
