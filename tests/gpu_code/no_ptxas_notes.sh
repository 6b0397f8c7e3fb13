#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Gives cmake/no_ptxas_notes ($1) compilers that say something: a note of ptxas is an error that leaves no object, nothing else is one.
set -euo pipefail
checked=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

compile() {  # compile EXIT-CODE OBJECT-LEFT TEXT: a compiler that writes an object, says TEXT and ends with 0
  local status=0
  "$checked" bash -c 'echo "$3" >&2; touch "$2"' compiler -o object "$3" > out 2> said || status=$?
  [[ $status -eq $1 ]] || { echo "error: '$3' ended with $status, expected $1" >&2; exit 1; }
  [[ $(test -e object && echo yes || echo no) == "$2" ]] || { echo "error: '$3': expected an object: $2" >&2; exit 1; }
  grep -qF "$3" said || { echo "error: '$3' was swallowed" >&2; exit 1; }
  rm -f object
}
note="Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources in function 'k'"
compile 1 no "ptxas info    : (C7510) $note"
compile 1 no "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements."
compile 0 yes "ptxas info    : 0 bytes gmem"
status=0
"$checked" bash -c 'exit 3' > /dev/null || status=$?
[[ $status -eq 3 ]] || { echo "error: a compiler's exit code 3 became $status" >&2; exit 1; }
echo "notes of ptxas end the build, with their text"
