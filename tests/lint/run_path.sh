#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: run_path.sh FOLDER…
# Every program and library there looks for libraries in absolute folders or beside itself ($ORIGIN). An empty or relative entry of a
# run path is the working folder, where a library that another user left would be loaded. libweft.so and what links it leave no table
# of function pointers writable (full RELRO: -z relro -z now), nor the stack executable.
set -euo pipefail

unsafe() {  # FOLDER…: the files with such an entry, and their run path
  local path
  find "$@" -type f \( -executable -o -name '*.so*' \) | while read -r file; do
    path=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p')
    [[ ":$path:" =~ ^(:(/|[$]ORIGIN)[^:]*)+:$ || -z $path ]] || echo "$file: $path"
  done
}

planted=$(mktemp -d)
trap 'rm -r "$planted"' EXIT
# shellcheck disable=SC2016  # $ORIGIN is the loader's
for path in /a::/b /a: :/a a '$ORIGIN/../lib:b'; do
  rm -f "$planted/program"
  echo 'int main(void) { return 0; }' | cc -x c - -o "$planted/program" "-Wl,-rpath,$path"
  [[ -n $(unsafe "$planted") ]] || { echo "run path '$path' is not noticed"; exit 1; }
done
# shellcheck disable=SC2016
echo 'int main(void) { return 0; }' | cc -x c - -o "$planted/program" '-Wl,-rpath,$ORIGIN/../lib:/usr/lib'
[[ -z $(unsafe "$planted") ]] || { echo "a good run path is refused"; exit 1; }

unhardened() {  # FOLDER…: the files with or of libweft.so that have writable tables or an executable stack
  local text
  find "$@" -type f \( -executable -o -name '*.so*' \) | while read -r file; do
    text=$(readelf -dlW "$file" 2>/dev/null || true)
    if grep -Eq '(NEEDED|SONAME).*\[libweft\.so' <<<"$text" &&
      ! { grep -q 'GNU_RELRO' <<<"$text" && grep -Eq 'BIND_NOW|FLAGS.* NOW' <<<"$text" && grep -Eq 'GNU_STACK.* RW ' <<<"$text"; }; then
      echo "$file: no full RELRO, or an executable stack"
    fi
  done
}
for flag in -Wl,-z,lazy -Wl,-z,norelro -Wl,-z,execstack ""; do
  # shellcheck disable=SC2086  # none for the last
  cc -shared -x c /dev/null -o "$planted/program" -Wl,-soname,libweft.so.0 -Wl,-z,relro,-z,now $flag
  [[ -n $(unhardened "$planted") || -z $flag ]] || { echo "$flag is not noticed"; exit 1; }
done
[[ -z $(unhardened "$planted") ]] || { echo "a hardened library is refused"; exit 1; }

found=$(unsafe "$@" && unhardened "$@")
[[ -z $found ]] || { echo "$found"; exit 1; }
