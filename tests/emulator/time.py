#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weft-emulate --time counts of kernels whose counts are known, and that a part of a launch stands for all of it.

    tests/emulator/time.py WEFT-EMULATE PROGRAM     PROGRAM: time.cu, built

Ends with 1 and says which count is wrong."""
import subprocess
import sys
import tempfile
from pathlib import Path

failures = 0


def counts(emulate, program, *options):
    """The lines of --time-table: (kernel, fields) in the order of the launches."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        run = subprocess.run([emulate, "--time-table", table, *options, program], capture_output=True, text=True)
        if run.returncode != 0 or "predicted times" not in run.stderr:
            sys.exit(f"{program} ended with {run.returncode}: {run.stdout}{run.stderr}")
        rows = [dict(field.split("=", 1) for field in line.split("\t")) for line in table.read_text().splitlines()]
    return [(row["kernel"], {key: value if key in ("kernel", "gpu", "limit") else float(value) for key, value in row.items()})
            for row in rows]


def check(what, value, low, high=None):
    global failures
    high = low if high is None else high
    if not low <= value <= high:
        failures += 1
        print(f"{what}: {value:g}, expected {low:g}" + ("" if low == high else f" to {high:g}"))


def main():
    emulate, program = sys.argv[1:]
    launches = counts(emulate, program, "--gpu", "a100")
    names = ["copies", "scattered", "rereads", "banks", "banks", "chain", "relay", "multiplies", "tiles"]
    for name, (kernel, _) in zip(names, launches, strict=True):
        if name not in kernel:
            sys.exit(f"expected {name}, got {kernel}")
    copies, scattered, rereads, dense, strided, chain, relay, multiplies, tiles = (row for _, row in launches)

    floats = 256 * 256
    check("copies: bytes of L2", copies["l2_bytes"], 8 * floats)
    check("copies: bytes of memory", copies["dram_bytes"], 8 * floats)
    check("copies: wavefronts", copies["wavefronts"], 2 * floats / 32)
    check("copies: memory instructions", copies["lsu"], 2 * floats / 32)
    check("copies: instructions of a warp", copies["issued"] / (floats / 32), 6, 14)
    check("copies: warps", copies["warps_per_block"], 8)
    check("scattered: bytes of L2", scattered["l2_bytes"], 32 * 32)
    check("scattered: wavefronts", scattered["wavefronts"], 32)
    check("rereads: bytes of L2", rereads["l2_bytes"], 4096)
    check("rereads: wavefronts", rereads["wavefronts"], 4 * 8 * 32)
    check("banks: a word of each bank", dense["wavefronts"], 128)
    check("banks: all of one bank", strided["wavefronts"], 128 * 32)
    check("chain: FMAs", chain["fp32"], 4096, 4096 + 4)
    check("chain: cycles", chain["path"], 4096 * 4, 4096 * 4 * 1.05)
    check("relay: FMAs", relay["fp32"], 2 * 4096, 2 * 4096 + 8)
    check("relay: cycles of both", relay["path"], 2 * 4096 * 4, 2 * 4096 * 4 * 1.05)
    check("multiplies: FLOP", multiplies["tensor_mma"], 4 * 8 * 2 * 16**3)
    blocks = (768 / 16) ** 2
    check("tiles: FMAs", tiles["fp32"], blocks * 768 * 256 / 32)
    check("tiles: bytes of L2", tiles["l2_bytes"], (blocks * 2 * 768 * 16 + 768 * 768) * 4)
    check("tiles: bytes of memory", tiles["dram_bytes"], 3 * 768 * 768 * 4)

    # A wave of 48 x 48 blocks: 8 of an SM by threads.
    (_, part), (_, whole) = (launch[8] for launch in (counts(emulate, program, "--gpu", "a100", "--time-waves", "1"), launches))
    check("tiles: a wave is a part", part["counted_blocks"], 108 * part["resident_blocks"])
    check("tiles: blocks", part["blocks"], blocks)
    for field in ("issued", "fp32", "integer", "lsu", "wavefronts", "l2_bytes", "path"):
        ratio = part[field] / part["counted_blocks"] / (whole[field] / whole["blocks"])
        check(f"tiles: {field} of a block, of a wave to all", ratio, 0.99, 1.01)
    check("tiles: predicted, of a wave to all", part["seconds"] / whole["seconds"], 0.95, 1.05)
    if failures == 0:
        print("ok")
    sys.exit(1 if failures else 0)


main()
