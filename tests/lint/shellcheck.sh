#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: shellcheck.sh ROOT. Every bash script of the repository, and every one that they source, passes shellcheck.
set -euo pipefail
if ! command -v shellcheck >/dev/null; then
  echo "SKIPPED: shellcheck is not installed"
  exit 77
fi
cd "$1"
mapfile -t scripts < <(find . \( -name .git -o -name 'build*' -o -name runs -o -name deps \) -prune -o -type f -size -200k -print \
  | while read -r file; do
    if head -c 300 "$file" | grep -aqE '^#!/bin/bash|^# shellcheck shell=bash'; then echo "$file"; fi
  done)
[[ ${#scripts[@]} -gt 0 ]]
# Files that are sourced are checked by themselves; what they set, the others use.
shellcheck --severity=warning --exclude=SC1090,SC1091,SC2154 "${scripts[@]}"
echo "${#scripts[@]} scripts"
