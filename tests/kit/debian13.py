# SPDX-License-Identifier: Apache-2.0
"""Debian 13 builds Weft, trains, and passes unit tests: g++ 14, oneDNN 3, CMake 3.31, in a root that debootstrap makes.

Needs root, debootstrap and Debian's packages from the network; says so and is skipped (exit code 77) without. The root stays in the
build folder: a second run installs nothing and builds what has changed. The compiler's cache is this machine's."""
import os
import pathlib
import shutil
import subprocess
import sys

import debian

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CCACHE_DIR", pathlib.Path.home() / ".cache/ccache"))
# The mounts are this command's own, and go with it. The sources are read-only, but for what training writes.
ENTER = """set -e
for part in proc dev; do mount --rbind /$part $0/$part; done
mount --bind $1 $0/weft
mount -o remount,bind,ro $0/weft
mount -t tmpfs tmpfs $0/weft/runs
mount --bind $2 $0/root/.cache/ccache
exec chroot $0 /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 BUILD=/build bash -ec "$3"
"""
INSIDE = """cd /weft
tools/quickstart --max-steps 20
grep 'found    oneDNN' /build/configure.log
DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends libgtest-dev libgmock-dev python3 > /dev/null
cmake -B /build -DWEFT_BUILD_TESTS=ON > /dev/null
ninja -C /build test_kernels test_ops test_core test_data
export WEFT_TEST_DEVICES=cpu OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
for part in kernels ops core data; do /build/bin/test_$part --gtest_brief=1; done
"""


def main():
    root = pathlib.Path(os.environ["WEFT_BIN"]).parent / "debian13"
    if not root.exists():
        begun = root.with_suffix(".begun")
        shutil.rmtree(begun, ignore_errors=True)
        # Debian 13's base-files has the links /bin and /lib itself; debootstrap of Debian 12 fails over its own.
        if why := debian.bootstrap("trixie", begun, "--no-merged-usr"):
            print(f"SKIPPED: {why}")
            return 77
        begun.rename(root)
    for folder in (root / "weft", root / "root/.cache/ccache", CACHE, ROOT / "runs"):
        folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["unshare", "--mount", "bash", "-c", ENTER, str(root), str(ROOT), str(CACHE), INSIDE], check=False)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
