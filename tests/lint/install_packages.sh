#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tools/install_packages ($1) on pretended machines: what is missing is named with its reason, and who may not
# install is told what to ask for.
set -euo pipefail
script=$1
export WEFT_CUDA_WHEELS=OFF  # tests/install/cuda_wheels.sh tests them
fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT

pretend() { printf '#!/bin/bash\n%s\n' "$2" > "$fake/$1" && chmod +x "$fake/$1"; }  # pretend COMMAND SCRIPT
expect() {  # expect STATUS TEXT ARGUMENTS…: exit status and a piece of what is printed
  local status=0 output
  output=$(PATH="$fake" "$fake/bash" "$script" "${@:3}" 2>&1) || status=$?
  if [[ $status -ne $1 || $output != *"$2"* ]]; then
    echo "$*: expected status $1 and '$2', got $status and: $output"
    exit 1
  fi
}
for tool in bash dirname mktemp rm tail env; do ln -s "$(command -v $tool)" "$fake/$tool"; done

expect 0 "This is not Debian"
# shellcheck disable=SC2016  # the fakes expand these themselves
pretend dpkg 'echo amd64'
pretend dpkg-query 'echo installed amd64'
expect 0 ""
# shellcheck disable=SC2016
pretend dpkg-query '[[ ${@: -1} == libspng-dev || ${@: -1} == libgtest-dev ]] || echo installed amd64'
pretend id 'echo 1000'
expect 1 "apt-get install libspng-dev" build
expect 1 "libspng-dev              PNG images" build
expect 1 "apt-get install libspng-dev libgtest-dev" test
# shellcheck disable=SC2016
pretend sudo 'exec "$@"'
# shellcheck disable=SC2016
pretend apt-get "echo apt-get \"\$@\" >> $fake/log"
expect 0 "Installing them" build
[[ $(cat "$fake/log") == "apt-get update
apt-get install -y -o DPkg::Lock::Timeout=300 --no-install-recommends libspng-dev" ]]
# Packages of another architecture, of which Debian is told first; they are no part of a build.
# shellcheck disable=SC2016
pretend dpkg-query '[[ ${@: -1} == *:arm64 || ${@: -1} == qemu-user ]] || echo installed all'
rm "$fake/log"
expect 0 "" test
pretend dpkg "[[ \$1 != --print-architecture ]] || { echo amd64; exit; }; echo dpkg \"\$@\" >> $fake/log"
expect 0 "Installing them" aarch64
[[ $(cat "$fake/log") == "dpkg --add-architecture arm64
apt-get update
apt-get install -y -o DPkg::Lock::Timeout=300 --no-install-recommends qemu-user libfmt-dev:arm64 libgtest-dev:arm64 libgmock-dev:arm64" ]]
mv "$fake/sudo" "$fake/no_sudo"
expect 1 "  dpkg --add-architecture arm64 && apt-get update
  apt-get install qemu-user libfmt-dev:arm64" aarch64
mv "$fake/no_sudo" "$fake/sudo"
# What is there for another architecture alone is missing; what is there for both is not.
# shellcheck disable=SC2016
pretend dpkg-query '[[ ${@: -1} == libspng-dev ]] || echo installed amd64; echo installed arm64'
rm "$fake/log"
expect 0 "  libspng-dev" build
[[ $(cat "$fake/log") == *"recommends libspng-dev" ]]
# shellcheck disable=SC2016
pretend dpkg-query '[[ ${@: -1} == libspng-dev || ${@: -1} == libgtest-dev ]] || echo installed amd64'

pretend apt-get 'echo no network; exit 100'
expect 1 "no network"
expect 1 "error: apt-get failed"
pretend id 'echo 0'
rm "$fake/sudo"
expect 1 "error: apt-get failed"
