#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# without_cusolver.sh WEFT_EMULATE LIBRARIES TEST_OPS: where the GPU has no cuSOLVER the host computes, with the same
# results and errors, and says so in one line. WEFT_ENGINE=vendor is an error.
set -euo pipefail
emulate=$1 libraries=$2 test_ops=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/emulator/lib"
cp "$emulate" "$folder/bin/weft-emulate"
ln -s "$libraries"/* "$folder/emulator/lib/"
rm "$folder/emulator/lib/libcusolver.so.12"

run() { # OUTPUT FILTER
  WEFT_TEST_DEVICES=cpu,cuda "$folder/bin/weft-emulate" "$test_ops" --gtest_filter="$2" >"$folder/$1" 2>&1
}
fail() {
  echo "without_cusolver: expected $1, got" >&2
  cat "$2" >&2
  exit 1
}

line='weft: the host computes linear algebra of the GPU: libcusolver.so.12 holds machine code'
run host 'Linalg.*:*svd*:*eigh*:*qr*:*cholesky*:*solve*' || fail "tests that pass on the host" "$folder/host"
[ "$(grep -c "$line" "$folder/host")" = 1 ] || fail "one line '$line'" "$folder/host"
grep -q 'SKIPPED.*Linalg.CusolverComputesOnAGpu' "$folder/host" || fail "no cuSOLVER" "$folder/host"
WEFT_ENGINE=vendor run vendor 'Linalg.ErrorsNameTheFirstMatrix' && fail "an error of WEFT_ENGINE=vendor" "$folder/vendor"
grep -q 'cholesky: libcusolver.so.12 holds machine code' "$folder/vendor" || fail "cholesky's error" "$folder/vendor"
