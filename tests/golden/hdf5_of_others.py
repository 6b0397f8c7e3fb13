# SPDX-License-Identifier: Apache-2.0
"""Adds to tests/golden/hdf5: files as h5py's users write them: texts of any length, h5py's own filter lzf, other number
types, links, a file that nobody closed. data/hdf5_images.h and data/hdf5_fields.h read or refuse them.

Needs python3-h5py. Run from the root of the source tree: python3 tests/golden/hdf5_of_others.py
"""
import os
import pathlib
import sys

import h5py
import numpy as np

golden = pathlib.Path(__file__).parent
out = golden / "hdf5"
sequence = h5py.vlen_dtype(np.uint8)
one = np.frombuffer((golden / "images" / "grey.jpg").read_bytes(), np.uint8)


def part(file, **targets):
    made = file.create_group("train")
    images = made.create_dataset("images", (2,), dtype=sequence)
    images[0] = images[1] = one
    made.create_dataset("targets", data=np.array([0, 1]), **targets)


for name, classes in (("names_utf8", ["ants", "bees é"]), ("names_ascii", np.array(["ants", "bees"], h5py.string_dtype("ascii"))),
                      ("names_objects", np.array(["ants", "bees"], object))):
    with h5py.File(out / f"{name}.h5", "w") as file:
        part(file)
        file.attrs["classes"] = classes
with h5py.File(out / "names_dataset.h5", "w") as file:
    part(file)
    file["classes"] = ["ants", "bees"]
with h5py.File(out / "names_numbers.h5", "w") as file:
    part(file)
    file.attrs["classes"] = [1, 2]
with h5py.File(out / "lzf_targets.h5", "w") as file:
    part(file, compression="lzf", chunks=(2,))

fields = np.arange(2 * 2 * 2 * 3, dtype=np.float32).reshape(2, 2, 2, 3)
for name, data, more in (("lzf", fields, {"compression": "lzf"}), ("gzip", fields, {"compression": "gzip"}),
                         ("big_endian", fields.astype(">f8"), {}), ("half", fields.astype("<f2"), {}),
                         ("integers", fields.astype("<i2"), {})):
    with h5py.File(out / f"fields_{name}.h5", "w") as file:
        file.create_dataset("fields", data=data, **more)
with h5py.File(out / "fields_link.h5", "w") as file:
    file["data/tp"] = fields
    file["fields"] = h5py.SoftLink("/data/tp")
with h5py.File(out / "fields_dangling.h5", "w") as file:
    file["fields"] = h5py.SoftLink("/data/tp")
with h5py.File(out / "fields_latest.h5", "w", libver="latest") as file:
    file["fields"] = fields
with h5py.File(out / "datasets.h5", "w") as file:
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f4", ">i2"):
        file[f"kinds/{kind.replace('>', 'big_')}"] = np.array([[1, 2, 3], [4, 5, 100]], kind)
    file["edges/i1"], file["edges/u2"], file["edges/u4"] = np.int8([-128]), np.uint16([65535]), np.uint32([4294967295])
    file.create_dataset("packed", data=np.arange(210).reshape(5, 6, 7) / 8, chunks=(2, 3, 4), compression="gzip", shuffle=True)
    file.create_dataset("lzf", data=[1.0], chunks=(1,), compression="lzf")
    file["scalar"], file["none"], file["text"] = np.float32(1.5), np.zeros((0, 3), "f4"), "a"
    file["eight"], file["nine"] = np.ones([1] * 8), np.ones([1] * 9)
    file["empty"] = h5py.Empty("f4")
    brain = h5py.h5t.IEEE_F16LE.copy()  # bf16: 8 bits of exponent
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_ebias(127)
    h5py.h5d.create(file.id, b"brain", brain, h5py.h5s.create_simple((1,)))
with h5py.File(out / "truths.h5", "w") as file:
    file["mask"], file["one"] = np.array([[True, False, False], [True, True, False]]), True
    file["none"], file["fields/mask"] = np.zeros((0, 3), bool), np.array([True])
    for name, base, of in (("damaged", "i1", {"FALSE": 0, "TRUE": 1}), ("colors", "i1", {"RED": 0, "BLUE": 1}),
                           ("swapped", "i1", {"FALSE": 1, "TRUE": 0}), ("wide", "i4", {"FALSE": 0, "TRUE": 1}),
                           ("three", "i1", {"FALSE": 0, "TRUE": 1, "UNKNOWN": 2})):
        kind = h5py.h5t.py_create(h5py.enum_dtype(of, basetype=base), logical=True)
        made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((1,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([5 if name == "damaged" else 1], base), kind)
if os.fork() == 0:
    file = h5py.File(out / "fields_open.h5", "w", libver="v110")
    file["fields"] = fields
    file.swmr_mode = True
    file.flush()
    os._exit(0)  # as a program that was ended: the file is never closed
os.wait()
with h5py.File(out / "keras.h5", "w") as file:
    file.create_group("model_weights").attrs["layer_names"] = ["dense"]
    file.attrs["keras_version"] = "3.5"
