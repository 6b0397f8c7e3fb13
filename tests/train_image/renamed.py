#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: renamed.py FROM TO [NAMES]: copies a safetensors file with other names of classes (JSON), or with none."""
import json
import sys

with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    data = file.read()
header["__metadata__"].pop("class_names")
header["__metadata__"].update({"class_names": names for names in sys.argv[3:]})
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[2], "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + data)
