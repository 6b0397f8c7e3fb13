# SPDX-License-Identifier: Apache-2.0
"""Asks weft-emulate for the time of launches that it has counted, and says how far off predictions are."""
import math
import statistics
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


def measured(path):
    """{name: value} of a file of lines `name value unit`."""
    return {name: float(value) for name, value, *_ in (line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#"))}


def within(ratios):
    """Of measured over predicted speeds: errors as factors - 1, always the larger way round: the median's, what nine of ten stay within, the largest; and the mean,
    with its sign: above 0 all are faster than predicted."""
    logs = [math.log(ratio) for ratio in ratios]
    errors = sorted(math.exp(abs(log)) - 1 for log in logs)
    return statistics.median(errors), errors[math.ceil(0.9 * len(errors)) - 1], errors[-1], math.exp(statistics.fmean(logs)) - 1


def table(headings, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [headings, ["---"] * len(headings), *rows]) + "\n"
