#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small sets in MNIST's format, in FOLDER/MNIST/raw, with TRAIN and TEST images of 28 x 28.

  digits.py bars FOLDER TRAIN TEST    a bright bar in a place of its own for each class, in noise
  digits.py FROM FOLDER TRAIN TEST    the first images of a real set, whose files may be compressed"""
import gzip
import random
import struct
import sys
from pathlib import Path


def bars(part, count):
    chance = random.Random(part)
    labels = [chance.randrange(10) for _ in range(count)]
    pixels = bytearray(value % 80 for value in chance.randbytes(count * 784))
    for i, label in enumerate(labels):
        for along in range(4, 24):
            for across in range(label % 5 * 5, label % 5 * 5 + 5):
                y, x = (across, along) if label < 5 else (along, across)
                pixels[i * 784 + y * 28 + x] += 150
    return pixels, labels


def first(folder, part, count):
    def read(kind):
        file = next(Path(folder).rglob(f"{part}-{kind}-ubyte*"))
        return (gzip.open if file.suffix == ".gz" else open)(file, "rb").read()
    return read("images-idx3")[16:16 + count * 784], read("labels-idx1")[8:8 + count]


source, target, *counts = sys.argv[1:]
raw = Path(target) / "MNIST/raw"
raw.mkdir(parents=True, exist_ok=True)
for name, number in zip(("train", "t10k"), map(int, counts)):
    images, classes = bars(name, number) if source == "bars" else first(source, name, number)
    (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, number, 28, 28) + images)
    (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, number) + bytes(classes))
