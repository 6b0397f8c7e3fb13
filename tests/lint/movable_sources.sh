#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# movable_sources.sh BUILD: the sources that the build writes around kernels include no file by an absolute path, which a
# compiler cache would miss in every new folder. Prints those that do, and exits 1.
set -euo pipefail
shopt -s nullglob
cd "$1"
sources=(kernels/ladder/units/*.cu kernels/no_cuda/*.h tests/kernels/contracts/*.h)
if [[ ${#sources[@]} -lt 1 ]]; then
  echo "movable_sources: found no source around kernels in $1"
  exit 1
fi
if grep -n '#include "/' "${sources[@]}"; then exit 1; fi
