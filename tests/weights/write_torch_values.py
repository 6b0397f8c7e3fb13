#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes into the folder of the first argument files of torch.save, and expected.txt: a line for each of NAME, `read` or
`refused`, and the value in the words of torch_values.cpp, or what the refusal must name.

    write_torch_values.py FOLDER           some 500 files, each of which torch.load(weights_only=True) reads
    write_torch_values.py --golden FOLDER  the few that are kept in golden/
"""
import collections
import functools
import pathlib
import struct
import sys
import warnings

import torch

warnings.simplefilter("ignore")
HERE = pathlib.Path(sys.argv[-1])


def number(value):
    return "fnan" if value != value else "f" + struct.pack(">d", value).hex()


def words(value):
    """The value as text: bit by bit, and alike in Python and in C++."""
    if value is None:
        return "N"
    if isinstance(value, bool):
        return "b1" if value else "b0"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, complex):
        return f"({number(value.real)},{number(value.imag)})"
    if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.qscheme)):
        value = str(value)
    if isinstance(value, type):
        value = f"{value.__module__}.{value.__name__}"
    if isinstance(value, str):
        return "s" + value.encode().hex()
    if isinstance(value, (bytes, bytearray)):
        return "s" + bytes(value).hex()
    if isinstance(value, torch.Tensor):
        floating = value.dtype.is_floating_point
        flat = value.detach().to(torch.float64 if floating else torch.int64).resolve_neg().flatten().tolist()
        return f"t[{','.join(map(str, value.shape))}]" + "{" + ",".join(map(words, flat)) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(map(words, value)) + ")"
    if isinstance(value, (list, set)):
        return "[" + ",".join(map(words, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(words(key) + ":" + words(item) for key, item in value.items()) + "}"
    raise TypeError(type(value))


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.float8_e4m3fn, torch.float8_e5m2]


def tensors():
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        base = torch.tensor([0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 88, 120], dtype=torch.float32).to(dtype)
        yield f"{name}_dense", base.reshape(3, 4)
        yield f"{name}_transposed", base.reshape(3, 4).t()
        yield f"{name}_stepped", base[2::3]
        yield f"{name}_expanded", base[3:4].expand(5)
        yield f"{name}_scalar", base[4].clone()
        yield f"{name}_empty", base[:0].reshape(0, 3)
        yield f"{name}_shared", {"a": base[:6], "b": base[4:], "c": [base]}
        if dtype.is_floating_point and dtype.itemsize > 1:
            yield f"{name}_parameter", torch.nn.Parameter(base.clone())
            yield f"{name}_buffer", {"b": torch.nn.Buffer(base.clone())}
            yield f"{name}_extremes", torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0], dtype=dtype)


def values():
    noted = torch.ones(2)
    noted.note = "an attribute"
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.note = [1, 2]
    complex_ = torch.complex(torch.tensor([1.0, -2.0]), torch.tensor([3.0, -0.5]))
    images = torch.arange(24.0).reshape(1, 2, 3, 4)
    yield "channels_last", images.to(memory_format=torch.channels_last)
    yield "leaf", torch.ones(2, requires_grad=True)
    yield "behind", {"row": images[0, 1, 2], "step": images[..., ::2], "number": images.sum()}
    yield "deep", functools.reduce(lambda inner, _: [inner], range(60), {"a": (torch.ones(1),)})
    yield "dtypes_of_few_bits", [torch.uint1, torch.uint7, torch.int1, torch.int4, torch.bits8, torch.bits1x8]
    yield "storage_types", [torch.FloatStorage, torch.storage.UntypedStorage]
    yield "neg", {"w": complex_.conj().imag, "plain": complex_.imag.clone()}
    yield "neg_view", complex_.conj().imag[1:]
    yield "real", complex_.real
    yield "attributes", {"t": noted, "p": parameter}
    yield "size", torch.Size([2, 3])
    yield "sizes", {"shape": torch.ones(2, 3).shape, "none": torch.Size([])}
    yield "dtypes", [torch.float32, torch.uint16, torch.float8_e4m3fn, torch.complex64, torch.bool]
    yield "devices", [torch.device("cpu"), torch.device("cuda", 3), torch.device("cuda")]
    yield "layout", torch.strided
    yield "qscheme", torch.per_tensor_affine
    yield "sets", {"a": {1, 2, 3}, "b": {"x"}, "c": set()}
    yield "counter", collections.Counter("abracadabra")
    yield "bytes", {"a": b"\x00\x7f\x80\xff", "c": bytearray(b"ab\xc3\xa4")}
    yield "complex", [1 + 2j, -0.5j]
    yield "texts", ["", "ä", "€ \U0001F600", "a\nb"]
    yield "integers", [0, 255, 256, 65536, -1, 2 ** 31, -2 ** 31, 2 ** 62, -2 ** 63]
    yield "floats", [0.0, -0.0, 1e300, 5e-324, float("inf"), float("nan")]
    yield "plain", {"none": None, "flags": [True, False], "nested": {"a": ({"b": []},)}, 3: "three"}
    yield "ordered", collections.OrderedDict([("b", 1), ("a", 2)])
    yield "module", torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)).state_dict()
    net = torch.nn.Linear(3, 2)
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop):
        optimizer = kind(net.parameters(), lr=0.5)
        net(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        yield f"optimizer_{kind.__name__}", {"net": net.state_dict(), "optimizer": optimizer.state_dict()}


def refused():
    yield "complex_tensor", "ComplexFloatStorage", torch.ones(2, dtype=torch.complex64)
    yield "conj", "conj", {"w": torch.ones(2, dtype=torch.complex64).conj()}
    yield "uint64", "uint64", torch.ones(2, dtype=torch.uint64)
    yield "e8m0", "float8_e8m0fnu", torch.ones(2).to(torch.float8_e8m0fnu)
    yield "e4m3fnuz", "float8_e4m3fnuz", torch.ones(2).to(torch.float8_e4m3fnuz)
    yield "quantised", "quantised", torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    yield "sparse", "sparse", torch.eye(2).to_sparse()
    yield "csr", "sparse", torch.eye(2).to_sparse_csr()
    yield "meta", "meta", torch.ones(2, device="meta")
    yield "nested", "nested", torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    yield "long", "long number", [2 ** 70]
    yield "complex128_tensor", "ComplexDoubleStorage", torch.ones(2, dtype=torch.complex128)
    yield "e5m2fnuz", "float8_e5m2fnuz", torch.ones(2).to(torch.float8_e5m2fnuz)
    yield "e2m1", "float4_e2m1fn_x2", torch.ones(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    yield "bits", "bits8", torch.ones(2, dtype=torch.uint8).view(torch.bits8)
    yield "qint32", "quantised", torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint32)
    channels = torch.tensor([0.5, 0.25]), torch.tensor([0, 0])
    yield "per_channel", "quantised", torch.quantize_per_channel(torch.ones(2, 2), *channels, 0, torch.quint8)
    yield "bsr", "sparse", torch.eye(2).to_sparse_bsr((1, 1))
    yield "csc", "sparse", torch.eye(2).to_sparse_csc()
    yield "storage", "a storage", torch.ones(2).untyped_storage()
    yield "typed_storage", "a storage", {"s": torch.ones(2).storage()}
    for name, key in (("tuple", (1, 2)), ("number", 1.5), ("bool", True), ("None", None)):
        yield f"key_{name}", "expected keys", {"a": {key: 1}}
    cycle = []
    cycle.append(cycle)
    yield "cycle", "contains itself", cycle


def main():
    lines = []

    def write(name, value, text, **options):
        path = HERE / f"{name}.pt"
        try:
            torch.save(value, path, **options)
            torch.load(path, weights_only=True)
        except Exception:  # PyTorch itself does not write or read this one
            path.unlink(missing_ok=True)
            return
        lines.append(f"{name}.pt {'read' if text is None else 'refused'} {words(value) if text is None else text}")

    HERE.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "--golden":
        kept = {name: value for name, value in [*tensors(), *values()]}
        names = ["neg", "sizes", "dtypes", "devices", "sets", "counter", "bytes", "complex", "attributes"]
        write("values_2_15", {name: kept[name] for name in names}, None)
        write("narrow_2_15", {str(t): kept[f"{str(t).removeprefix('torch.')}_dense"] for t in DTYPES[10:]}, None)
        torch.serialization.set_crc32_options(False)
        write("unchecked_2_15", {"a": torch.arange(4.0)}, None)
        (HERE / "values_2_15.txt").write_text("\n".join(lines) + "\n")
        return
    for name, value in [*tensors(), *values()]:
        write(name, value, None)
        write(f"{name}_legacy", value, None, _use_new_zipfile_serialization=False)
        write(f"{name}_protocol_3", value, None, pickle_protocol=3)
    for name, text, value in refused():
        write(name, value, text)
        write(f"{name}_legacy", value, text, _use_new_zipfile_serialization=False)
    torch.serialization.set_crc32_options(False)
    write("unchecked", {"a": torch.arange(4.0), "b": [1, "x"]}, None)
    (HERE / "expected.txt").write_text("\n".join(lines) + "\n")


main()
