#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site into FOLDER ($1), and expects each kind of page in it, links that lead somewhere, and no warning.
set -euo pipefail
for tool in mkdocs doxygen git; do
  if ! command -v $tool >/dev/null; then
    echo "skipped: $tool is not installed"
    exit 77
  fi
done
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! git -C "$root" rev-parse --git-dir >/dev/null 2>&1; then
  echo "skipped: $root is not a git repository"
  exit 77
fi
printed=$("$root/tools/docs" "$1" 2>&1) || { echo "$printed"; exit 1; }
# Doxygen 1.9 takes a second `= {}` among parameters for the beginning of a list.
if grep -i warning <<< "$printed" | grep -v "doxygen could be confused"; then exit 1; fi
for page in index data_parallel fsdp workflows/index workflows/vista workflows/nersc workflows/jsc workflows/ml_dist workflows/oscer workflows/teach_nersc clusters \
  add_an_op follow_conv2d folders/kernels_ladder api/namespaceweft api/classweft_1_1Tensor; do
  [[ -s $1/site/$page.html ]] || { echo "there is no page $page"; exit 1; }
done
grep -q 'href="fsdp.html"' "$1/site/index.html" || { echo "the first page has no link to fsdp.html"; exit 1; }
rm -r "$1"
