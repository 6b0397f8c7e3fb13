#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: bare.sh WEFT.tar.zst FOLDER [FLAGS OF play.py]
# Plays the pages of the workflows (play.py) on a Debian 12 made for it in FOLDER: once, as root, it gets mpirun and Python; then a plain user unpacks the
# prebuilt tar (tools/bundle --prebuilt) in the home folder beside the sources and follows the pages. The table is FOLDER/home/reader/table.md.
# Needs root, debootstrap and Debian's packages from the network.
set -euo pipefail
tar=$(realpath "$1") folder=$2
shift 2
repository=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ! -e $folder/usr/bin/mpirun ]]; then
  debootstrap --variant=minbase --include=openmpi-bin,python3,zstd,hostname bookworm "$folder" > "$folder.log" || { tail "$folder.log"; exit 1; }
  chroot "$folder" useradd --create-home --shell /bin/bash reader
  echo "127.0.0.1 localhost $(hostname)" >> "$folder/etc/hosts"
fi
home=$folder/home/reader
rm -rf "${home:?}"/*
mkdir "$home/sources"
git -C "$repository" archive HEAD | tar -C "$home/sources" -x
cp "$tar" "$home/weft.tar.zst"
cat > "$home/follow" <<'END'
set -e
cd
tar -xf weft.tar.zst
exec python3 sources/tests/docs/play.py sources weft/bin weft/libexec/weft/* --table table.md "$@"
END
chroot "$folder" chown -R reader: /home/reader
# The mounts are this command's own, and go with it.
# shellcheck disable=SC2016  # expanded there
exec unshare --mount bash -c 'for part in proc sys dev; do mount --rbind "/$part" "$0/$part"; done
  exec chroot --userspec=reader:reader "$0" env -i HOME=/home/reader USER=reader PATH=/usr/bin:/bin bash /home/reader/follow "$@"' "$folder" "$@"
