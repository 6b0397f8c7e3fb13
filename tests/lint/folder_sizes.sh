#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# folder_sizes.sh ROOT: no folder holds more than 60 files of code. Prints those that do, and exits 1.
set -euo pipefail
cd "$1"
find . -name .git -prune -o -name 'build*' -type d -prune -o -type f -print |
  grep -E '\.(cpp|h|cu|cuh|py|sh|inc)$' | sed 's|/[^/]*$||' | sort | uniq -c |
  awk '{ n++ } $1 > 60 { print "folder_sizes: expected at most 60 files of code in " $2 ", got " $1; bad = 1 } END { exit bad || !n }'
