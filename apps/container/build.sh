#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: apps/container/build.sh PREFIX
# What both images do first, and what may be done without one: installs what Weft is built from, builds it, installs programs and
# libraries into PREFIX, and writes PREFIX/share/weft/runtime_packages: the Debian packages that they need to run.
# BUILD names the build folder, JOBS how many compilers at once, WEFT_CMAKE_FLAGS more for CMake.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=${1:?usage: apps/container/build.sh PREFIX}
build=${BUILD:-build-container}

tools/install_packages build
# shellcheck disable=SC2086  # several flags
BUILD=$build tools/install --prefix "$prefix" --as-is -DWEFT_CUDA="${WEFT_CUDA:-AUTO}" ${WEFT_CMAKE_FLAGS:-}

# The packages of the libraries that the programs load, at their start or, as HDF5, when it is needed. A library may be listed
# under /lib where its package says /usr/lib. Of scripts ldd says that they are no programs, and fails.
mkdir -p "$prefix/share/weft"
{
  { find "$prefix" -type f -executable -exec ldd {} + 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
  sed -n 's/^WEFT_HDF5:FILEPATH=\(.*\.so\)$/\1/p' "$build/CMakeCache.txt"
} | sort -u \
  | while read -r library; do
    dpkg-query --search "$(realpath "$library")" 2>/dev/null || dpkg-query --search "/usr$library" 2>/dev/null || true
  done | cut -d: -f1 | sort -u > "$prefix/share/weft/runtime_packages"
echo "needed to run: $(paste -sd " " "$prefix/share/weft/runtime_packages")"
