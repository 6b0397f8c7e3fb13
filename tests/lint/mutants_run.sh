#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `tools/mutants run` ($1) on a small tree of its own, whose test program has two tests, beside a transcript: mutants by hand and by operators that are
# killed, that survive, that no test reaches, that are explained, that do not compile. $2: the tree that choice.h comes from.
set -euo pipefail
command -v ninja > /dev/null || { echo "SKIPPED: needs ninja"; exit 77; }
tool=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{core,tests/core,tests/mutants,tests/transcript}
cp "$2"/tests/mutants/{choice,listener}.h "$tree/tests/mutants/"
cp "$2"/tests/transcript/{transcript.py,console.py,helpers.sh} "$tree/tests/transcript/"
cat > "$tree/CMakeLists.txt" << 'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(small CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_package(GTest REQUIRED)
include_directories(${PROJECT_SOURCE_DIR})
add_library(core STATIC core/twice.cpp)
add_subdirectory(tests/core)
CMAKE
cat > "$tree/tests/core/CMakeLists.txt" << 'CMAKE'
file(GLOB sources *.cpp)
add_executable(test_core ${sources})
target_link_libraries(test_core core GTest::gtest_main)
add_executable(show ../../apps/show.cpp)
target_link_libraries(show core)
add_dependencies(test_core show)
CMAKE
mkdir "$tree/apps"
cat > "$tree/apps/show.cpp" << 'SOURCE'
#include <cstdio>

int twice(int x);

int main() { std::printf("%d\n", twice(4)); }
SOURCE
printf '  $ show\n  8\n' > "$tree/tests/core/show.t"
cat > "$tree/core/twice.cpp" << 'SOURCE'
#include <cstdlib>

int twice(int x) {
  if (x > 1000) std::abort();
  const int y = 2 * x;
  return y;
}
SOURCE
cat > "$tree/tests/core/twice.cpp" << 'SOURCE'
#include <gtest/gtest.h>

int twice(int x);

TEST(Twice, IsTheSum) {
  for (int x = 0; x < 9; ++x) EXPECT_EQ(twice(x), x + x);
}

TEST(Other, ReachesNothing) {}
SOURCE
cat > "$tree/whole" << 'TABLE'
file core/twice.cpp
test core Twice.*
mutant twice: thrice
- 2 * x
+ 3 * x
mutant twice: aborts at once
- x > 1000
+ x >= 0
TABLE

expect() {  # expect STATUS TEXT...: the exit status of `run $kind`, and pieces of its report
  local status=0 report text
  cp "$tree/table" "$tree/tests/mutants/a.txt"
  report=$(WEFT_ROOT=$tree "$tool" run --kind "$kind" --room core --build "$tree/built" 2>&1) || status=$?
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

kind=hand
cp "$tree/whole" "$tree/table"
expect 0 "1 filters are green without a mutant, 2 mutants by hand" "2 / 2 killed: " "1 red" "1 crash"

# A transcript kills, too.
sed 's/Twice\.\*/show.t/' "$tree/whole" > "$tree/table"
expect 0 "1 filters are green without a mutant, 2 mutants by hand" "2 / 2 killed: 2 red"
sed 's/Twice\.\*/shown.t/' "$tree/whole" > "$tree/table"
expect 2 "mutants: $tree/tests/mutants/a.txt:3: there is no tests/core/shown.t"

sed 's/>= 0/> 2000/' "$tree/whole" > "$tree/table"
expect 1 "SURVIVES core/twice.cpp: twice: aborts at once" "tests/mutants/a.txt:6: green, core Twice.*" "1 / 2 killed: "

# What check cannot tell: the site is named by the source's own line.
sed 's/3 \* x/3 * z/' "$tree/whole" > "$tree/table"
expect 2 "mutants: the programs do not build:" "  core/twice.cpp:5: 'z' was not declared" "    mutant tests/mutants/a.txt:3: core/twice.cpp: twice: thrice"

# An error behind the sites, not at one of them.
cp "$tree/core/twice.cpp" "$tree/usual"
sed -i 's/  return y;/  return w;/' "$tree/core/twice.cpp"
cp "$tree/whole" "$tree/table"
expect 2 "  core/twice.cpp:6: 'w' was not declared" "    no mutant stands here; before it tests/mutants/a.txt:3: core/twice.cpp: twice: thrice"
cp "$tree/usual" "$tree/core/twice.cpp"

if ! python3 -c 'import sys; sys.path.append("/usr/lib/python3/dist-packages"); import clang.cindex'; then
  kind=operators
  expect 2 "mutants by operators need clang's bindings for Python: apt install python3-clang"
  echo "SKIPPED: mutants by operators: needs python3-clang"
  exit 77
fi
kind=operators
cat >> "$tree/core/twice.cpp" << 'SOURCE'

const char* nothing() { return 0; }
SOURCE
expect 1 "does not compile: core/twice.cpp: nothing: constant: 0 -> 0 + 1" \
  "test_core on cpu: 3 tests in " "SURVIVES core/twice.cpp: twice: comparison: x > 1000 -> x >= 1000" "core/twice.cpp:4: green, 2 of 2 tests that reach it ran" \
  "SURVIVES core/twice.cpp: twice: constant: 1000 -> 1000 + 1" "SURVIVES core/twice.cpp: twice: drop: std::abort(); -> nothing" \
  "core/twice.cpp:4: unreached, 0 of 0 tests that reach it ran" "3 / 7 killed: " "2 crash" "1 red" "1 do not compile" "by operators: seed 1, sample 150, of core"
sed -i '/nothing/d' "$tree/core/twice.cpp"
cat > "$tree/tests/mutants/explained.txt" << 'EXPLAINED'
file core/twice.cpp
same twice: comparison: x > 1000 -> x >= 1000
why the tests call it with less than ten
same twice: constant: 1000 -> 1000 + 1
why the same
same twice: drop: std::abort(); -> nothing
why the same
EXPLAINED
expect 0 "3 / 6 killed: " "3 explained"

echo 'nothing()' >> "$tree/CMakeLists.txt"
expect 2 "cmake fails in $tree/built/build:" "nothing"
