#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `tools/mutants run` ($1) on a small tree of its own, whose only test program is 20 lines: mutants that are
# killed, one that survives, one that does not compile. $2: the tree that choice.h comes from.
set -euo pipefail
command -v ninja > /dev/null || { echo "SKIPPED: needs ninja"; exit 77; }
tool=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{core,tests/mutants}
cp "$2/tests/mutants/choice.h" "$tree/tests/mutants/"
cat > "$tree/CMakeLists.txt" << 'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(small CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests/kernels)
add_executable(test_kernels core/twice.cpp)
target_include_directories(test_kernels PRIVATE ${PROJECT_SOURCE_DIR})
CMAKE
cat > "$tree/core/twice.cpp" << 'SOURCE'
#include <cstdlib>

int twice(int x) {
  if (x > 1000) std::abort();
  const int y = 2 * x;
  return y;
}

int main() {
  for (int x = 0; x < 9; ++x)
    if (twice(x) != x + x) return 1;
  return 0;
}
SOURCE
cat > "$tree/whole" << 'TABLE'
file core/twice.cpp
test kernels Twice.*
mutant twice: thrice
- 2 * x
+ 3 * x
mutant twice: aborts at once
- x > 1000
+ x >= 0
TABLE

expect() {  # expect STATUS TEXT...: the exit status of `run`, and pieces of its report
  local status=0 report text
  cp "$tree/table" "$tree/tests/mutants/a.txt"
  report=$(WEFT_ROOT=$tree "$tool" run --build "$tree/built" 2>&1) || status=$?
  if [[ $status -ne $1 ]]; then
    echo "expected status $1, got $status and: $report"
    exit 1
  fi
  for text in "${@:2}"; do
    if [[ $report != *"$text"* ]]; then
      echo "expected '$text', got: $report"
      exit 1
    fi
  done
}

cp "$tree/whole" "$tree/table"
expect 0 "test_kernels: 1 filters are green without a mutant, 2 mutants" "2 / 2 killed: " "1 red" "1 crash"

sed 's/>= 0/> 2000/' "$tree/whole" > "$tree/table"
expect 1 "SURVIVES core/twice.cpp: twice: aborts at once" "tests/mutants/a.txt:6, kernels Twice.* : green" \
  "1 / 2 killed: "

# What check cannot tell: the site is named by the source's own line.
sed 's/3 \* x/3 * z/' "$tree/whole" > "$tree/table"
expect 1 "test_kernels does not build, its mutants do not run:" "  core/twice.cpp:5: 'z' was not declared" \
  "    mutant tests/mutants/a.txt:3: core/twice.cpp: twice: thrice" "0 / 2 killed"

# An error behind the sites, not at one of them.
sed -i 's/  return y;/  return w;/' "$tree/core/twice.cpp"
cp "$tree/whole" "$tree/table"
expect 1 "  core/twice.cpp:6: 'w' was not declared" \
  "    no mutant stands here; before it tests/mutants/a.txt:3: core/twice.cpp: twice: thrice"

echo 'nothing()' >> "$tree/CMakeLists.txt"
expect 2 "cmake fails in $tree/built/build:" "nothing"
