# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/pickles: dicts of arrays and labels as copies of CIFAR keep them, by every pickle protocol of
Python 3 and NumPy 2, which data/pickled_dict.h reads.

Needs numpy 2. Run from the root of the source tree: python3 tests/golden/cifar_pickles.py
"""
import pathlib
import pickle

import numpy as np

out = pathlib.Path(__file__).parent / "pickles"
out.mkdir(exist_ok=True)
data = np.array([[0, 1, 10, 92], [127, 128, 254, 255]], np.uint8)  # a line break and a backslash among them
for protocol in range(6):
    content = {"data": data, "list": [7, 70000, -7], "array": np.array([7, 70000, -7], ">i4"),
               "column": np.array([[1], [2]], np.uint8), "scalars": [np.int64(3), 4], "names": ["ant", "ä\n\\€"],
               b"bytes": [b"\xff\n", "bee"], "empty": np.zeros((0, 3), np.uint8), "set": {5}, "flag": True}
    (out / f"protocol{protocol}.pkl").write_bytes(pickle.dumps(content, protocol))
frozen = data.copy()
frozen.flags.writeable = False  # protocol 5 keeps it as bytes, else as a bytearray
(out / "frozen.pkl").write_bytes(pickle.dumps({"data": frozen}, 5))
(out / "fortran.pkl").write_bytes(pickle.dumps({"data": np.asfortranarray(data)}, 5))
