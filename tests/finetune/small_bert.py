#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: small_bert.py [--rows N] [--classes N] [--prefix TEXT] [--config JSON] [--tokenizer JSON] [--dicts]

Makes the folder `bert`: a BERT of one layer, 8 wide, in Hugging Face's files, with its tokenizer; the same weights each time. A key of --config
that is null is left out. --classes 0: no classifier. --dicts: a PyTorch file of two dicts, `model` and `model_ema` (zeros), for the weights."""
import argparse
import array
import collections
import io
import json
import math
import pickle
import random
import shutil
import sys
import types
import zipfile
from pathlib import Path

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Apple", "apple", "caf\u00e9", "cafe", "good", "bad"]
CONFIG = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
          "hidden_dropout_prob": 0.0, "type_vocab_size": 2, "attention_probs_dropout_prob": 0.0}


def shapes(prefix, rows, classes):
    yield from ((f"{prefix}embeddings.{name}_embeddings.weight", (count, 8)) for name, count in (("word", rows), ("position", 16), ("token_type", 2)))
    layer = f"{prefix}encoder.layer.0."
    for norm in (f"{prefix}embeddings.LayerNorm", f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"):
        yield from ((f"{norm}.{name}", (8,)) for name in ("gamma", "beta"))  # as converted from TensorFlow
    for linear in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"):
        yield from ((f"{layer}{linear}.weight", (8, 8)), (f"{layer}{linear}.bias", (8,)))
    yield from ((f"{prefix}pooler.dense.weight", (8, 8)), (f"{prefix}pooler.dense.bias", (8,)))
    if classes:
        yield from (("classifier.weight", (classes, 8)), ("classifier.bias", (classes,)))


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(values.tobytes() for _, values in tensors.values()))


class FloatStorage:
    pass


def _rebuild_tensor_v2():
    pass


class Tensor:
    """Pickled as PyTorch pickles a tensor."""

    def __init__(self, shape, values):
        self.shape, self.values = shape, values

    def __reduce__(self):
        strides = tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))
        return _rebuild_tensor_v2, (self.values, 0, tuple(self.shape), strides, False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if not isinstance(value, array.array):
            return None
        self.storages.append(value)
        return "storage", FloatStorage, str(len(self.storages) - 1), "cpu", len(value)


def write_torch(path, content):
    for name, entry in (("torch", FloatStorage), ("torch._utils", _rebuild_tensor_v2)):
        entry.__module__ = name
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], entry.__name__, entry)
    pickled = io.BytesIO()
    pickler = Pickler(pickled, 2)
    pickler.storages = []
    pickler.dump(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/version", "3\n")
        for number, values in enumerate(pickler.storages):
            archive.writestr(f"archive/data/{number}", values.tobytes())


parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=11)
parser.add_argument("--classes", type=int, default=2)
parser.add_argument("--prefix", default="bert.")
parser.add_argument("--config", type=json.loads, default={})
parser.add_argument("--tokenizer", type=json.loads, default={})
parser.add_argument("--dicts", action="store_true")
options = parser.parse_args()
folder, chance = Path("bert"), random.Random(1)
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
weights = {name: (shape, array.array("f", (chance.gauss(0, 1) for _ in range(math.prod(shape))))) for name, shape in shapes(options.prefix, options.rows, options.classes)}
if options.dicts:
    zeros = {name: Tensor(shape, array.array("f", bytes(4 * len(values)))) for name, (shape, values) in weights.items()}
    write_torch(folder / "pytorch_model.bin", {"model": {name: Tensor(*one) for name, one in weights.items()}, "model_ema": zeros})
else:
    write_safetensors(folder / "model.safetensors", weights)
(folder / "config.json").write_text(json.dumps({key: value for key, value in {**CONFIG, **options.config}.items() if value is not None}))
(folder / "tokenizer_config.json").write_text(json.dumps(options.tokenizer))
(folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
