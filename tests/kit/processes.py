# SPDX-License-Identifier: Apache-2.0
"""What became of a process that a test started through others."""
import time


def ends_soon(pid):
    """Is the process gone, or a zombie, within five seconds?"""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
