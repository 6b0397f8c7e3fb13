#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/tidy of ROOT ($1) over a small tree: it names a planted finding in a source that stands in a dozen, in one that does not, and in a
# header; what clang cannot compile; and nothing in a tree without.
set -euo pipefail
tree=$(realpath "$(mktemp -d)")
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,io,build/io/Unity}
cp "$1/tools/tidy" "$tree/tools"
cp "$1/.clang-tidy" "$tree"
entry() { printf '{\n  "directory": "%s",\n  "command": "c++ -std=c++20 -Wall -Werror -I%s -c %s",\n  "file": "%s"\n}' "$tree" "$tree" "$1" "$1"; }
{ echo '['; entry "$tree/build/io/Unity/unity_0_cxx.cxx"; echo ,; entry "$tree/io/alone.cpp"; echo ']'; } >"$tree/build/compile_commands.json"
printf '#include "%s/io/%s.cpp"\n' "$tree" first "$tree" second >"$tree/build/io/Unity/unity_0_cxx.cxx"
echo '#pragma once' >"$tree/io/header.h"
for source in first second alone; do
  printf '#include "io/header.h"\nint %s(int x) { return x; }\n' $source >"$tree/io/$source.cpp"
done
status=0
report=$("$tree/tools/tidy" --built "$tree/build" io) || status=$?
if [[ $status -eq 77 ]]; then
  echo "$report"
  exit 77
fi
[[ $status -eq 0 && $report == "2 files, as they are compiled"$'\n'"no findings" ]] || { echo "without a finding: $status, $report"; exit 1; }

# plant FILE LINE CHECK: with this line, the file has this finding and no other, once.
plant() {
  cp "$tree/io/$1" "$tree/kept"
  echo "$2" >>"$tree/io/$1"
  status=0
  report=$("$tree/tools/tidy" --built "$tree/build" io) || status=$?
  if [[ $status -ne 1 || $(grep -c "error: " <<<"$report") -ne 1 || $report != *"/io/$1:"*"[$3"* ]]; then
    echo "$1, $2: expected status 1 and one line with $3, got $status and: $report"
    exit 1
  fi
  mv "$tree/kept" "$tree/io/$1"
}
plant second.cpp 'unsigned long size(int n) { return n * 8; }' bugprone-implicit-widening-of-multiplication-result
plant alone.cpp 'extern "C" int system(const char*); int run(const char* text) { return system(text); }' cert-env33-c
plant header.h 'inline unsigned long twice(int n) { return n * 2; }' bugprone-implicit-widening-of-multiplication-result
plant second.cpp 'int sum(int x) { return x + y; }' clang-diagnostic-error
if "$tree/tools/tidy" --built "$tree/build" nowhere; then
  echo "a folder without a source passed"
  exit 1
fi
