#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""distance.py A B: the mean distance between the f32 weights of two files in safetensors, whose names must be the same."""
import array
import json
import sys
from pathlib import Path


def weights(path):
    """(name, values) of each tensor, by name."""
    data = Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    for name, tensor in sorted(json.loads(data[8:begin]).items()):
        if name != "__metadata__":
            assert tensor["dtype"] == "F32", (path, name, tensor)
            first, end = tensor["data_offsets"]
            yield name, array.array("f", data[begin + first:begin + end])


distance = count = 0
for (name, ours), (other, theirs) in zip(weights(sys.argv[1]), weights(sys.argv[2]), strict=True):
    assert name == other and len(ours) == len(theirs), (name, other)
    distance += sum(abs(a - b) for a, b in zip(ours, theirs))
    count += len(ours)
print(distance / count)
