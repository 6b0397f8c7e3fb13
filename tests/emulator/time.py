#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weft-emulate --time counts of kernels whose counts are known, and that a part of a launch stands for all of it.

    tests/emulator/time.py WEFT-EMULATE PROGRAM [BENCH]     PROGRAM: time.cu, built; BENCH: build/bin/bench

Ends with 1 and says which count is wrong."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

failures = 0


def counts(emulate, program, *options, says=None):
    """The lines of --time-table: (kernel, fields) in the order of the launches. `program`: its words."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        run = subprocess.run([emulate, "--time-table", table, *options, *program], capture_output=True, text=True,
                             env={**os.environ, "WEFT_ENGINE": "own"})
        if run.returncode != 0 or "predicted times" not in run.stderr:
            sys.exit(f"{program} ended with {run.returncode}: {run.stdout}{run.stderr}")
        if says and says not in run.stdout:
            check(f"{says!r} is said", 0, 1)
        rows = [dict(field.split("=", 1) for field in line.split("\t")) for line in table.read_text().splitlines()]
    return [(row["kernel"], {key: value if key in ("kernel", "gpu", "limit") else float(value) for key, value in row.items()})
            for row in rows]


def check(what, value, low, high=None):
    global failures
    high = low if high is None else high
    if not low <= value <= high:
        failures += 1
        print(f"{what}: {value:g}, expected {low:g}" + ("" if low == high else f" to {high:g}"))


def check_cheap_counts(emulate, bench):
    """Without products of tensor cores, TMA's bytes and repetitions, Weft's kernels of one wave have the counts that they have with them."""
    for gpu, case, *size in (("h100", "matmul_1024_forward"), ("h100", "conv3x3_512_512_7_backward_weight", "--tiny"),
                             ("h100", "attention_vit_forward", "--tiny"), ("a100", "matmul_1024_forward", "--tiny")):
        words = [bench, "--suite", "engines", "--filter", f"^{case}$", "--repetitions", "1", "--seconds", "1e-9", *size]
        cheap, full = (counts(emulate, words, "--gpu", gpu, *options) for options in (["--time-waves", "1"], []))
        check(f"{case} {gpu}: launches", len(cheap), len(full))
        for (kernel, some), (_, whole) in zip(cheap[-3:], full[-3:]):
            for field in whole:
                if isinstance(whole[field], float):
                    check(f"{case} {gpu}: {field} of {kernel}", some[field], whole[field] * 0.999, whole[field] * 1.001)


def main():
    emulate, program, *bench = sys.argv[1:]
    launches = counts(emulate, [program], "--gpu", "a100", says="arrived 32 32 64")
    names = ("copies scattered rereads banks banks quarters quarters quarters to_shared chain relay multiplies tiles joins joins joins repeats "
             "meets meets meets meets meets meets meets meets meets meets meets meets gathers gathers arrives arrives arrives copies").split()
    for name, (kernel, _) in zip(names, launches, strict=True):
        if name not in kernel:
            sys.exit(f"expected {name}, got {kernel}")
    rows = [row for _, row in launches]
    copies, scattered, rereads, dense, strided, shared, side_by_side, apart, to_shared, chain, relay, multiplies, tiles = rows[:13]
    aligned, shifted, rolled, repeated = rows[13:17]
    at_one, each, (gathered, numbered), many = rows[17:23], rows[23:29], rows[29:31], rows[-1]

    floats = 256 * 256
    check("copies: bytes of L2", copies["l2_bytes"], 8 * floats)
    check("copies: bytes of memory", copies["dram_bytes"], 8 * floats)
    check("copies: of them written", copies["dram_written"], 4 * floats)
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
    # 128 bytes return in a cycle, so a quarter of the warp is served at a time; 32 bytes apart, two of its lanes meet in a bank.
    check("quarters: 16 bytes that all lanes share", shared["wavefronts"], 4)
    hopper = counts(emulate, [program], "--gpu", "h100", "--time-waves", "1")
    check("quarters: on Hopper 16 bytes that all lanes share", hopper[5][1]["wavefronts"], 2)
    check("quarters: on Hopper 16 bytes of each lane", hopper[6][1]["wavefronts"], 4)
    check("quarters: 16 bytes of each lane", side_by_side["wavefronts"], 4)
    check("quarters: every other 16 bytes", apart["wavefronts"], 8)
    check("to_shared: cycles of 512 bytes", to_shared["wavefronts"], 4)
    check("to_shared: bytes of L2", to_shared["l2_bytes"], 512)
    check("chain: FMAs", chain["fp32"], 4096, 4096 + 4)
    check("chain: cycles", chain["path"], 4096 * 4, 4096 * 4 * 1.05)
    check("relay: FMAs", relay["fp32"], 2 * 4096, 2 * 4096 + 8)
    check("relay: cycles of both", relay["path"], 2 * 4096 * 4, 2 * 4096 * 4 * 1.05)
    check("multiplies: FLOP", multiplies["tensor_mma"], 4 * 8 * 2 * 16**3)
    blocks = (768 / 16) ** 2
    check("tiles: FMAs", tiles["fp32"], blocks * 768 * 256 / 32)
    check("tiles: bytes of L2", tiles["l2_bytes"], (blocks * 2 * 768 * 16 + 768 * 768) * 4)
    check("tiles: bytes of memory", tiles["dram_bytes"], 3 * 768 * 768 * 4)

    # A store fills shared memory, then 16 floats are loaded by 16 bytes; by 16 and at the ends by 8; or by 4.
    check("joins: instructions of 16 aligned floats", aligned["lsu"], 1 + 4)
    check("joins: cycles", aligned["wavefronts"], 1 + 4 * 4)
    check("joins: instructions of 16 floats from the middle of 16 bytes on", shifted["lsu"], 1 + 5)
    check("joins: their cycles", shifted["wavefronts"], 1 + 3 * 4 + 2 * 2)
    check("joins: the turns of an unrolled loop compute no addresses", rolled["integer"] - aligned["integer"], 15 * 3)
    check("joins: instructions of a loop that stays one", rolled["lsu"], 1 + 16)
    check("repeats: integer instructions, of them one conversion", repeated["integer"], 1, 3)
    check("many copies: bytes of L2", many["l2_bytes"], 2 * 64 * 2**20)
    check("many copies: bytes of memory", many["dram_bytes"] / (2 * 64 * 2**20), 0.95, 1.05)

    # Two cycles for each lane at a bank of shared memory, one at an address of L2, where both warps of all four blocks meet.
    names = "adds 1", "adds", "adds floats", "wants the old value"
    for what, one, own, cycles, alone, others in zip(names, at_one, each, (2, 64, 32 + 33 * 32, 64), (2, 2, 3, 2), (1, 1, 1, 2)):
        check(f"meets in shared memory: {what}, each at its word", own["wavefronts"], others + alone)
        check(f"meets in shared memory: {what}, all at one", one["wavefronts"], others + cycles)
    for what, one, own in zip(names[1:], at_one[4:], each[4:]):
        check(f"meets in global memory: {what}, all at one", one["atomics"], 4 * 2 * 32)
        check(f"meets in global memory: {what}, each at its word", own["atomics"], 4 * 2 * 4)
    check("gathers: one operation of a warp", gathered["atomics"], 4 * 2)
    check("gathers: also where each lane wants its number", numbered["atomics"], 4 * 2)

    # A wave of 48 x 48 blocks: 8 of an SM by threads. Equal launches run once.
    parts = counts(emulate, [program], "--gpu", "a100", "--time-waves", "1", says="arrived 32 0 64")
    for field, value in parts[-4][1].items():
        if parts[-3][1][field] != value:
            check(f"arrives: {field} of the second launch, as of the first", 0, 1)
    (_, part), (_, whole) = (launch[12] for launch in (parts, launches))
    check("tiles: a wave is a part", part["counted_blocks"], 108 * part["resident_blocks"])
    check("tiles: blocks", part["blocks"], blocks)
    for field in ("issued", "fp32", "integer", "lsu", "wavefronts", "l2_bytes", "path"):
        ratio = part[field] / part["counted_blocks"] / (whole[field] / whole["blocks"])
        check(f"tiles: {field} of a block, of a wave to all", ratio, 0.99, 1.01)
    check("tiles: predicted, of a wave to all", part["seconds"] / whole["seconds"], 0.95, 1.05)
    with tempfile.TemporaryDirectory() as folder:
        options = "--gpu", "a100", "--time-waves", "1", "--time-known", Path(folder) / "known"
        first, again = (counts(emulate, [program], *options, says=f"arrived {arrived}") for arrived in ("32 0 64", "0 0 0"))
        check("known launches: as when they ran", int(again == first == parts), 1)
    if bench:
        check_cheap_counts(emulate, bench[0])
    if failures == 0:
        print("ok")
    sys.exit(1 if failures else 0)


main()
