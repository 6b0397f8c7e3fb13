# SPDX-License-Identifier: Apache-2.0
"""Writes safetensors files: an 8-byte length, a JSON header, the data."""
import json
import struct

import torch

NAMES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.uint8: "U8"}


def write(path, tensors):
    """tensors: name -> CPU tensor of one of NAMES."""
    header, chunks, begin = {}, [], 0
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, begin + len(data)],
        }
        chunks.append(data)
        begin += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))
