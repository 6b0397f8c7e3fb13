#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights and checkpoints for transcripts, read without Weft.

  weights.py state FILE                           what a safetensors file or a checkpoint holds, a line each; tensors by their checksum
  weights.py apart NORM LARGEST A B [PREFIX]      prints how far the tensors lie apart, unless within the bounds; exit code 1
  weights.py apart mean BOUND A B [PREFIX]        the same for the mean distance of two values

NORM bounds |a - b| / |b| in the L2 norm, LARGEST the largest |a - b| in proportion to the largest |b|. PREFIX chooses tensors, such as
`optimizer/` of a checkpoint (its flags are not listed by `state`)."""
import array
import json
import math
import struct
import sys
import zlib

KINDS = {"F32": "f", "F64": "d", "I64": "q"}


def read(path):
    """(metadata, {name: (dtype, shape, bytes)})"""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    return metadata, {name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])]) for name, one in header.items() if name != "seal"}


def state(path):
    metadata, tensors = read(path)
    index = json.loads(metadata.pop("weft_checkpoint", "{}"))
    scalars = {f"{part}/{one['name']}": one["value"] for part, listed in index.get("parts", {}).items() for one in listed["scalars"]}
    for entries in (metadata, index.get("facts", {}), index.get("integers", {}), index.get("numbers", {}), scalars):
        for name, value in sorted(entries.items()):
            if name != "config":
                print(name, value)
    for name, (dtype, shape, data) in sorted(tensors.items()):
        print(name, dtype, shape, f"{zlib.crc32(data):08x}")


def values(path, prefix):
    _, tensors = read(path)
    return {name: array.array(KINDS[dtype], data) for name, (dtype, _, data) in sorted(tensors.items()) if name.startswith(prefix)}


def apart(norm, largest, a, b, prefix=""):
    one, two = values(a, prefix), values(b, prefix)
    if not two or one.keys() != two.keys() or any(len(one[name]) != len(two[name]) for name in one):
        sys.exit(f"other tensors: {sorted(one.keys() ^ two.keys())}")
    pairs = [pair for name in one for pair in zip(one[name], two[name])]
    distances = [abs(x - y) for x, y in pairs]
    mean = sum(distances) / len(pairs)
    relative = math.sqrt(sum(d * d for d in distances)) / max(math.sqrt(sum(y * y for _, y in pairs)), 1e-30)
    element = max(distances) / max(max(abs(y) for _, y in pairs), 1e-30)
    if not (mean <= float(largest) if norm == "mean" else relative <= float(norm) and element <= float(largest)):
        sys.exit(f"mean {mean:.3g}, norm {relative:.3g}, largest {element:.3g}")


{"state": state, "apart": apart}[sys.argv[1]](*sys.argv[2:])
