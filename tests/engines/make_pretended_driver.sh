#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make_pretended_driver.sh CC NM STUB SOURCE OUT: builds SOURCE into a library OUT named libcuda.so.1, in which each function that the toolkit's
# STUB of the driver has and SOURCE does not returns CUDA_ERROR_STUB_LIBRARY.
set -euo pipefail
cc=$1 nm=$2 stub=$3 source=$4 out=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n 's/^int \(cu[A-Za-z0-9_]*\)(.*/\1/p' "$source" > "$work/given"
"$nm" -D --defined-only "$stub" | awk '$2 == "T" { print $3 }' | grep -vxFf "$work/given" |
  awk '{ print "int " $1 "(void) { return 34; }" }' > "$work/others.c"
[[ -s $work/others.c ]]
"$cc" -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out" "$source" "$work/others.c"
