#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# site.sh FOLDER: builds the site, and expects each kind of page in it, links that lead somewhere, and no warning.
# site.sh FOLDER browser: looks at the built pages in Chromium (browser.py), which must find planted faults.
set -euo pipefail
for tool in mkdocs doxygen git ${2:+chromium}; do
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
if [[ ${2:-} == browser ]]; then
  here=$root/tests/docs
  python3 "$here/browser.py" "$1/site"
  for fault in '.md-typeset a { color: #ccc !important; }' 'article { width: 1500px; }' 'article img { width: 90px; }' 'article table { display: none !important; }' 'article td:first-child { min-width: 0 !important; }'; do
    if python3 "$here/browser.py" "$1/site" "$fault" >/dev/null; then echo "not found: $fault"; exit 1; fi
  done
  rm -r "$1"
  exit
fi
# Doxygen 1.9 takes a second `= {}` among parameters for the beginning of a list.
if grep -i warning <<< "$printed" | grep -v "doxygen could be confused"; then exit 1; fi
for page in index data_parallel fsdp workflows/index workflows/vista workflows/nersc workflows/jsc workflows/ml_dist workflows/oscer workflows/teach_nersc clusters \
  add_an_op follow_conv2d folders/kernels_ladder api/namespaceweft api/classweft_1_1Tensor; do
  [[ -s $1/site/$page.html ]] || { echo "there is no page $page"; exit 1; }
done
grep -q 'href="fsdp.html"' "$1/site/index.html" || { echo "the first page has no link to fsdp.html"; exit 1; }
rm -r "$1"
