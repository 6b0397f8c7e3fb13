#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fixed_names.sh ROOT: no source writes to a fixed name in a folder that all users of a machine share: somebody else may have made a folder or a
# link of that name. Prints the lines that do, and exits 1. In containers nobody else is, and what is never opened is a text.
set -euo pipefail
found() {  # FOLDER
  grep -rnIE '/(tmp|var/tmp|dev/shm)/[A-Za-z_{$]' "$1" --exclude-dir={.git,docs,results,'build*',runs,deps} --exclude={image.py,runtime.sh,flags.cpp,test_unpack.py} |
    grep -vE 'XXX|^[^:]*:[0-9]+: *(#|//|""")'
}
planted=$(mktemp -d)
trap 'rm -r "$planted"' EXIT
# shellcheck disable=SC2016  # a text
printf '%s\n' 'work = "/tmp/weft_work"' 'out=/dev/shm/$USER' 'mktemp /tmp/weft.XXXXXX' '# such as /tmp/weft' > "$planted/tool"
[[ $(found "$planted" | wc -l) -eq 2 ]] || { echo "expected two lines, got: $(found "$planted")"; exit 1; }
if found "$1"; then exit 1; fi
