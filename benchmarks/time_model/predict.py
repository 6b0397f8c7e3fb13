# SPDX-License-Identifier: Apache-2.0
"""Asks weft-emulate for the time of launches that it has counted."""
import subprocess
import sys


def predict(emulate, table, **options):
    """(kernel, seconds, limit, {limit: seconds}) of each line of a --time-table; of another `gpu`, with another constant (`overlap`), at a measured
    `clock` in GHz."""
    command = [emulate, "--time-of", table] + [word for name, value in options.items() if value for word in (f"--{name}", str(value))]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    rows = []
    for line in run.stdout.splitlines():
        kernel, seconds, limit, *parts = line.split("\t")
        rows.append((kernel, float(seconds), limit, {name: float(value) for name, value in (part.split("=") for part in parts)}))
    return rows


def shares(seconds, limits, count=3):
    """What limits it, the largest first, as shares of its predicted time."""
    top = sorted(limits.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{name} {value / seconds:.0%}" for name, value in top)
