# SPDX-License-Identifier: Apache-2.0
"""Small sets of the right shape, packed as the real ones, and the table that describes them."""
import gzip
import hashlib
import io
import json
import os
import random
import struct
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
IMAGE = os.path.join(ROOT, "tests", "golden", "images", "baseline.jpg")


def tar_gz(entries):
    """entries: (name, bytes) or a TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            info = tarfile.TarInfo(entry[0])
            info.size = len(entry[1])
            tar.addfile(info, io.BytesIO(entry[1]))
    return out.getvalue()


def zipped(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in entries:
            packed.writestr(name, content)
    return out.getvalue()


def cifar100():
    """200 and 40 records of noise."""
    noise = random.Random(3)
    record = lambda i: bytes([i % 20, i % 100]) + noise.randbytes(3072)
    files = [("train.bin", b"".join(map(record, range(200)))), ("test.bin", b"".join(map(record, range(40)))),
             ("fine_label_names.txt", "".join(f"fine{i}\n" for i in range(100)).encode()),
             ("coarse_label_names.txt", "".join(f"coarse{i}\n" for i in range(20)).encode())]
    return {"cifar-100-binary.tar.gz": tar_gz([("cifar-100-binary/" + name, content) for name, content in files])}


def idx():
    noise = random.Random(4)
    files = {}
    for part, count in (("train", 200), ("t10k", 40)):
        files[f"{part}-images-idx3-ubyte.gz"] = struct.pack(">4i", 0x803, count, 28, 28) + noise.randbytes(count * 784)
        files[f"{part}-labels-idx1-ubyte.gz"] = struct.pack(">2i", 0x801, count) + bytes(i % 10 for i in range(count))
    return {name: gzip.compress(content, 1) for name, content in files.items()}


# One black pixel: the published archive has a GIF among the ants, too.
GIF = (b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;")


def hymenoptera():
    with open(IMAGE, "rb") as file:
        image = file.read()
    names = [f"hymenoptera_data/{part}/{kind}/{i}.jpg" for part, count in (("train", 20), ("val", 4))
             for kind in ("ants", "bees") for i in range(count)]
    extras = [("hymenoptera_data/.DS_Store", b"x"), ("hymenoptera_data/train/ants/imageNotFound.gif", GIF),
              ("__MACOSX/hymenoptera_data/._train", b"x"), ("hymenoptera_data/", b"")]
    return {"hymenoptera_data.zip": zipped(extras + [(name, image) for name in names])}


def tinyshakespeare():
    return {"input.txt": b"First Citizen:\nBefore we proceed any further, hear me speak.\n\n" * 100}


def table_for(name, files):
    """The real table's row with the sizes and sums of these files."""
    with open(os.path.join(ROOT, "tools", "fetch", "sets.json"), encoding="utf-8") as file:
        row = json.load(file)[name]
    row["files"] = [{"name": file, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
                     "md5": hashlib.md5(content).hexdigest()} for file, content in files.items()]
    row["unpacked_bytes"] = 10**6
    return {name: row}
