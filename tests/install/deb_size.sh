#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb_size.sh ROOT: a package of a file of 1000 KiB and two links to it says that it installs 1000 KiB, and not three times as much.
set -euo pipefail
for program in cmake cpack dpkg-deb; do
  command -v $program >/dev/null || { echo "SKIPPED: needs $program"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
head -c 1024000 /dev/zero > "$work/source/libx.so.1.0"
ln -s libx.so.1.0 "$work/source/libx.so.1"
ln -s libx.so.1 "$work/source/libx.so"
cat > "$work/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(x VERSION 1.0 LANGUAGES NONE)
install(FILES libx.so.1.0 libx.so.1 libx.so DESTINATION lib)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT x)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME x.deb)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_POST_BUILD_SCRIPTS $1/cmake/deb_size.cmake)
include(CPack)
END
cmake -S "$work/source" -B "$work/build" > /dev/null
(cd "$work/build" && cpack > /dev/null)
size=$(dpkg-deb --field "$work/build/x.deb" Installed-Size)
listed=$(dpkg-deb --contents "$work/build/x.deb")
echo "$listed"
if ((size < 1000 || size > 1010)); then
  echo "error: expected an Installed-Size of 1000 KiB and a few entries, got $size"
  exit 1
fi
grep -q 'root/root .* 1024000 .* \./usr/lib/libx\.so\.1\.0$' <<< "$listed"
grep -q '^l.* \./usr/lib/libx\.so -> libx\.so\.1$' <<< "$listed"
[[ ! -e $work/build/x.deb.content ]]
