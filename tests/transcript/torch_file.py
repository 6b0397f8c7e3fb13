#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of PyTorch's format, for transcripts; it is read by Python's own pickle, without Weft and without PyTorch.

  torch_file.py FILE               prints it as JSON; a tensor is {"shape": …}, with at most 1000 elements also "values"
  torch_file.py FILE KEY=NUMBER    replaces a float of the outermost dictionary
  torch_file.py --new FILE JSON    writes a file without tensors"""
import array
import collections
import json
import math
import pickle
import struct
import sys
import zipfile

KINDS = {"FloatStorage": "f", "DoubleStorage": "d", "LongStorage": "q", "IntStorage": "i"}


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        return self.tensor if name == "_rebuild_tensor_v2" else name

    def persistent_load(self, pid):
        values = array.array(KINDS[pid[1]])
        values.frombytes(self.archive.read(f"{self.archive.namelist()[0].split('/')[0]}/data/{pid[2]}"))
        return values

    @staticmethod
    def tensor(storage, offset, size, _stride, *_):
        count = math.prod(size)
        return {"shape": list(size), **({"values": storage[offset:offset + count].tolist()} if count <= 1000 else {})}


def read(archive):
    pickled = next(name for name in archive.namelist() if name.endswith("data.pkl"))
    with archive.open(pickled) as file:
        unpickler = Unpickler(file)
        unpickler.archive = archive
        return pickled, unpickler.load()


def change(path, key, value):
    """The file with another value of a key, and with all other bytes as they were."""
    with zipfile.ZipFile(path) as archive:
        pickled, content = read(archive)
        entries = {name: archive.read(name) for name in archive.namelist()}
    old, new = (b"G" + struct.pack(">d", number) for number in (content[key], value))
    assert entries[pickled].count(old) == 1, f"{key} is not the only {content[key]} of {path}"
    entries[pickled] = entries[pickled].replace(old, new)
    write(path, entries)


def write(path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


if sys.argv[1] == "--new":
    write(sys.argv[2], {"archive/data.pkl": pickle.dumps(json.loads(sys.argv[3]), 2), "archive/version": b"3\n"})
elif len(sys.argv) == 3:
    name, number = sys.argv[2].split("=")
    change(sys.argv[1], name, float(number))
else:
    with zipfile.ZipFile(sys.argv[1]) as whole:
        print(json.dumps(read(whole)[1]))
