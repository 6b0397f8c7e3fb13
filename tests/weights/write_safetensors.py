# SPDX-License-Identifier: Apache-2.0
"""write_safetensors.py FILE 'NAME DTYPE SIZES VALUES'… KEY=VALUE…: a file in safetensors of these tensors, F32 or I64, and metadata. SIZES and
VALUES are separated by commas; `-` has no sizes."""
import array
import json
import sys

header, data = {"__metadata__": {}}, b""
for words in sys.argv[2:]:
    key, equals, value = words.partition("=")
    if equals:
        header["__metadata__"][key] = value
        continue
    name, dtype, sizes, values = words.split()
    values = array.array("f" if dtype == "F32" else "q", [(float if dtype == "F32" else int)(value) for value in values.split(",")])
    shape = [int(size) for size in sizes.split(",") if size != "-"]
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values) * values.itemsize]}
    data += values.tobytes()
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + data)
