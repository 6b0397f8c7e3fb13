# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/hdf5: files of images as h5py makes them, which data/hdf5_images.h reads or refuses.

Needs python3-h5py (/usr/bin/python3). Run from the root of the source tree: python3 tests/golden/hdf5_images.py
"""
import pathlib

import h5py
import numpy as np

golden = pathlib.Path(__file__).parent
out = golden / "hdf5"
out.mkdir(exist_ok=True)
sequence = h5py.vlen_dtype(np.uint8)


def image(name, more=0):
    """A JPEG's bytes; what stands behind a JPEG's end is ignored, so `more` zeros make it fill a heap of its own."""
    return np.frombuffer((golden / "images" / name).read_bytes() + bytes(more), np.uint8)


train = [image("baseline.jpg"), image("progressive.jpg", 6000), image("grey.jpg"), image("rgb.png", 3)]
val = [image("chroma420.JPEG"), image("baseline.jpg")]


def fill(group, images, targets, dtype="int16", **storage):
    images = group.create_dataset("images", (len(images),), dtype=sequence, **storage)
    for i, one in enumerate(images):
        images[i] = one
    group.create_dataset("targets", data=np.array(targets, dtype=dtype))


with h5py.File(out / "jsc.h5", "w") as file:
    fill(file.create_group("train"), train, [0, 2, 1, 2])
    fill(file.create_group("val"), val, [1, 0])

with h5py.File(out / "chunked.h5", "w") as file:
    fill(file.create_group("train"), train[:3], [0, 1, 0], dtype=">i8", chunks=(2,), maxshape=(None,))
    fill(file.create_group("test"), val, [1, 0])
    file.attrs["classes"] = np.array([b"ants", b"bees"])

with h5py.File(out / "wrong.h5", "w") as file:
    def group(name, targets=(0, 0)):
        made = file.create_group(name)
        if targets is not None:
            made.create_dataset("targets", data=np.array(targets, dtype="int16"))
        return made

    fill(file.create_group("compressed"), val, [0, 0], chunks=(2,), compression="gzip")
    group("floats").create_dataset("images", (2,), dtype=h5py.vlen_dtype(np.float32))
    group("fixed").create_dataset("images", data=np.zeros((2, 10), np.uint8))
    group("square").create_dataset("images", (1, 2), dtype=sequence)
    group("no_images")
    group("no_targets", None).create_dataset("images", (2,), dtype=sequence)
    group("few_targets", [0]).create_dataset("images", (2,), dtype=sequence)
    group("negative_target", [0, -1]).create_dataset("images", (2,), dtype=sequence)[0] = val[0]
    group("not_written").create_dataset("images", (2,), dtype=sequence)
    group("one_empty").create_dataset("images", (2,), dtype=sequence)[0] = val[0]
    text = group("text_targets", None)
    text.create_dataset("images", (2,), dtype=sequence)
    text.create_dataset("targets", data=np.array([b"ant", b"bee"]))
    file.create_dataset("no_group", data=1)

with h5py.File(out / "elsewhere.h5", "w") as file:  # `other` is what the reader must not open
    file["group"] = h5py.ExternalLink("other", "/train")
    made = file.create_group("dataset")
    made["targets"] = h5py.ExternalLink("other", "/train/targets")
    made.create_dataset("images", (2,), dtype=sequence)[0] = val[1]
    made = file.create_group("values")
    made.create_dataset("targets", (2,), dtype="int16", external=[("other", 0, 4)])
    made.create_dataset("images", (2,), dtype=sequence)[0] = val[1]
    file["fields"] = h5py.ExternalLink("other", "/fields")

with h5py.File(out / "user_block.h5", "w", userblock_size=512) as file:
    fill(file.create_group("train"), val, [0, 0])

with h5py.File(out / "many_targets.h5", "w") as file:  # 4,294,967,296 compressed labels of two images: 34 GB of memory
    made = file.create_group("train")
    images = made.create_dataset("images", (2,), dtype=sequence)
    images[0] = images[1] = val[1]
    made.create_dataset("targets", (1 << 32,), dtype="int64", chunks=(1 << 20,), compression="gzip")
