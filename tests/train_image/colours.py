#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: colours.py FOLDER CLASS=RED,GREEN,BLUE…: makes FOLDER/{train,val}/CLASS/{0,1,2,3}.png, 8 x 8, of one colour but for a little noise.

Of a part alone: CLASS in the form train/CLASS or val/CLASS."""
import sys
import zlib
from pathlib import Path


def png(rows):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    head = bytes([0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b"")


for name, _, text in (word.partition("=") for word in sys.argv[2:]):
    colour = [int(one) for one in text.split(",")]
    for folder in [name] if "/" in name else [f"train/{name}", f"val/{name}"]:
        whole = Path(sys.argv[1]) / folder
        whole.mkdir(parents=True, exist_ok=True)
        for i in range(4):
            rows = [bytes(one + (7 * (8 * y + x) + i) % 9 for x in range(8) for one in colour) for y in range(8)]
            (whole / f"{i}.png").write_bytes(png(rows))
