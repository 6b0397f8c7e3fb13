#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# no_warnings.sh COMPILER ROOT PROGRAM…: the compiler has nothing to say of these programs and of ROOT's headers.
set -euo pipefail
compiler=$1 root=$2
shift 2
if ! command -v "$compiler" > /dev/null; then
  echo "NOT TESTED: this machine has no $compiler"
  exit 77
fi
for program in "$@"; do
  "$compiler" -std=c++20 -O2 -c -o /dev/null -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "$root" -I "$root/include" "$program"
done
echo "$("$compiler" --version | head -n 1): $# programs without a warning"
