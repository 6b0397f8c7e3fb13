#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `tools/mutants check` ($1) on a small tree of its own: a table that fits, and each way in which one does not.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{kernels/cpu,tests/mutants}
echo 'void twice(T* y, T* x) { y[0] = 2 * x[0]; for (int i = 1; i < n; ++i) y[i] = 2 * x[i]; }' > "$tree/kernels/cpu/twice.cpp"
expect() {  # expect STATUS TEXT: the check's exit status, and a piece of its report
  local status=0 report
  report=$(WEFT_ROOT=$tree "$tool" check 2>&1) || status=$?
  if [[ $status -ne $1 || $report != *"$2"* ]]; then
    echo "expected status $1 and '$2', got $status and: $report"
    exit 1
  fi
}
tool=$1
table=$tree/tests/mutants/a.txt
cat > "$tree/whole" << 'TABLE'
# a comment
file kernels/cpu/twice.cpp
test kernels Twice.* on cpu
mutant twice: thrice
@ for (int
- 2 * x[i]
+ 3 * x[i]
mutant twice: the last is dropped
- i < n
+ i + 1 < n
mutant twice: the first is dropped
- y[0] = 2 * x[0];
+
TABLE
cp "$tree/whole" "$table"
expect 0 "3 mutants in 1 files, 0 explained"

broken() { sed "$1" "$tree/whole" > "$table"; }  # the table, changed by sed
broken '/^@/d'
expect 0 "3 mutants"
broken '/^@/d; s/2 \* x\[i\]/2 */'
expect 2 "the text stands 2 times in kernels/cpu/twice.cpp, expected once: 2 *"
broken 's/^- 2 .*/- 4 * x[i]/'
expect 2 "a.txt:4: the text stands 0 times in kernels/cpu/twice.cpp, expected once: 4 * x[i]"
broken 's/^@.*/@ while (/'
expect 2 "the anchor stands 0 times"
broken 's/^+ 3 .*/+ 3 * (x[i]/'
expect 2 "neither one expression nor statements that end in a semicolon: 3 * (x[i]"
broken 's/^+ 3 .*/+ .x = 3/'
expect 2 "neither one expression nor statements that end in a semicolon: .x = 3"
broken 's/^+ 3 .*/+ i == 1 ? x[i]/'
expect 2 "neither one expression nor statements that end in a semicolon: i == 1 ? x[i]"
broken 's/^+ 3 .*/+ 3 * x[i] +/'
expect 2 "neither one expression nor statements that end in a semicolon: 3 * x[i] +"
broken 's/^+$/+ y[0] = 3 * x[0]/'
expect 2 "expected statements that end in a semicolon, or nothing: y[0] = 3 * x[0]"
broken 's/^- 2 .*/- 2 * x[i];/; s/^+ 3 .*/+ 3 * x[i];/'
expect 2 "expected a statement's place, not one behind '+i) y[i] ='. Take the expression alone: 2 * x[i];"
broken '/^@/d; s/^- 2 .*/- i = 1/; s/^+ 3 .*/+ i = 2/'
expect 2 "stands behind 'int', where no bracket can. Take the expression alone: i = 1"
cp "$tree/kernels/cpu/twice.cpp" "$tree/kernels/cpu/usual"
echo 'void twice(T* y, T* x) { const T z = 2 * x[0]; WEFT_UNROLL for (int i = 0; i < n; ++i) y[i] = z; }' > "$tree/kernels/cpu/twice.cpp"
broken 's/2 \* x\[i\]/const T z = 2 * x[0];/; s/3 \* x\[i\]/const T z = 3 * x[0];/; /^@/d'
expect 2 "the text declares z, which what follows needs. Take the expression alone: const T z = 2 * x[0];"
broken 's/2 \* x\[i\]/2 * x[0]/; /^@/d'
expect 2 "stands in the head of a loop with a pragma. Take its body: i < n"
mv "$tree/kernels/cpu/usual" "$tree/kernels/cpu/twice.cpp"
broken 's/^file .*cpp/file kernels\/cpu\/once.cpp/'
expect 2 "there is no kernels/cpu/once.cpp"
broken 's/the last is dropped/thrice/'
expect 2 "Say what differs"
broken 's/^test .*/test kernels/'
expect 2 "expected \`test PROGRAM FILTER [on DEVICE]\`"
broken 's/^mutant twice: thrice/mutant twice/'
expect 2 "expected \`mutant SUBJECT: what is wrong\`"
broken 's/^- 2/= 2/'
expect 2 "expected file, test, mutant, @, -, + or #, got \`= 2"
broken ''

explained=$tree/tests/mutants/explained.txt
printf '%s\n' '# a comment' 'file kernels/cpu/twice.cpp' 'same twice: comparison: i < n -> i <= n' 'why y has room for one more' > "$explained"
expect 0 "3 mutants in 1 files, 1 explained"
sed -i 's/i < n/i < m/' "$explained"
expect 2 "tests/mutants/explained.txt:3: kernels/cpu/twice.cpp no longer has: i < m"
sed -i 's/i < m/i < n/; s/^why.*/why/' "$explained"
expect 2 "tests/mutants/explained.txt:4: expected \`file FILE\`, or"
sed -i '/^why/d' "$explained"
expect 2 "tests/mutants/explained.txt: no reason for: twice: comparison: i < n -> i <= n"
sed -i 's/^file .*/file kernels\/cpu\/once.cpp/' "$explained"
expect 2 "tests/mutants/explained.txt:2: there is no kernels/cpu/once.cpp"
