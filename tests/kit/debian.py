# SPDX-License-Identifier: Apache-2.0
"""Roots of other Debians: debootstrap makes them from packages of the network."""
import os
import shutil
import subprocess


def bootstrap(suite, folder, *flags):
    """Makes the root. Returns why it could not, or nothing."""
    if not shutil.which("debootstrap"):
        return "needs debootstrap (apt-get install debootstrap)"
    if os.getuid() and "--foreign" not in flags:
        return "needs root, as debootstrap does"
    apart = [] if os.getuid() else ["unshare", "--mount"]  # what it mounts goes with it, even if it is killed
    done = subprocess.run([*apart, "debootstrap", "--variant=minbase", *flags, suite, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)  # fmt: skip
    return f"debootstrap got no {suite}: {done.stdout[-300:]}" if done.returncode else ""
