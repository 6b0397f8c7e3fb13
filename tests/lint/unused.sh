#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants names with and without users, and public names without a comment, in a tree of its own and expects tools/unused ($1) to list them.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git -C "$tree" init -q
mkdir -p "$tree"/{core,kernels,docs,tests,include/weft}
cd "$tree"

expect() {  # expect STATUS "WHO NAME, …": exit status and rows of --check for core and kernels
  local status=0 printed
  printed=$("$check" --check --root "$tree" core kernels) || status=$?
  [[ $status != 77 ]] || { echo "$printed"; exit 77; }
  local rows
  rows=$(awk '!/^unused:/ { printf "%s%s %s", sep, $1, $3; sep = ", " }' <<< "$printed")
  if [[ $status -ne $1 || $rows != "$2" ]]; then
    echo "expected status $1 and '$2', got $status and: $printed"
    exit 1
  fi
}

expect 0 ""
cat > core/a.h << 'HEADER'
#pragma once
#define WEFT_PLANTED_MACRO 1
namespace weft {
enum class Planted { first_one, second_one };
struct Thing {
  int planted_field = 0;
  int other_field = 0;
  void planted_method() const;
 private:
  int hidden_;
};
void planted_function(Planted planted = Planted::first_one);
template <class T>
T planted_template(T x) { return x; }
}  // namespace weft
HEADER
all="nobody Thing, nobody WEFT_PLANTED_MACRO, nobody other_field, nobody planted_field, nobody planted_function, nobody planted_method"
all+=", nobody planted_template, nobody second_one"
expect 1 "$all"
# Definitions, declarations, comments, texts and local variables are no uses.
cat > core/a.cpp << 'SOURCE'
#include "core/a.h"
void planted_function(Planted planted) {}
void Thing::planted_method() const {}  // planted_template
const char* text = "planted_template";
SOURCE
echo 'int sum(int planted_field) { return planted_field; }' > core/b.cpp
echo 'The function planted_function is mentioned.' > docs/a.md
expect 1 "$all"
# Users: code, tests, a page's code.
cat > core/c.cpp << 'SOURCE'
int use(const Thing& thing) { return thing.planted_field + planted_template(WEFT_PLANTED_MACRO); }
SOURCE
echo 'void test() { Thing{}.planted_method(); planted_function(Planted::second_one); }' > tests/a.cpp
expect 1 "nobody other_field, tests planted_function, tests planted_method, tests second_one"
printf '    %s\n' 'planted_function(second_one)' 'thing.planted_method() + thing.other_field' > docs/a.md
expect 0 ""
echo '__device__ inline int planted_kernel() { return 0; }' > kernels/a.cuh
expect 1 "nobody planted_kernel"
echo '__global__ void k(int* x) { *x = planted_kernel(); }' > kernels/a.cu
expect 0 ""
# What weft.h reaches has comments; a group of declarations and a paragraph before it share one.
echo '#include "core/a.h"' > include/weft/weft.h
expect 1 "comment Planted, comment Thing, comment planted_function, comment planted_template"
sed -i -e 's|^enum|/// Two.\n&|; s|^struct|/// A thing.\n&|; s|^void|// Functions.\n\n&|' core/a.h
expect 0 ""
if "$check" --check --root "$tree" > out || ! grep -q '^opaque is used or gone' out; then
  echo "expected an exception that is no longer needed, got: $(cat out)"
  exit 1
fi
