# SPDX-License-Identifier: Apache-2.0
"""PyTorch's results and gradients of the rows of tests/ops, in f64: NAME.y, and NAME.d0, NAME.d1, … of the inputs. A
tensor of more than MOST elements is a digest (hashed.py). The program test_ops of a build writes the inputs."""
import json
import os
import pathlib
import subprocess
import tempfile

import torch

import torch_calls
from hashed import digest

MOST = 1024  # as in tests/ops/golden.cpp
PROGRAM = pathlib.Path(__file__).parents[2] / "build" / "bin" / "test_ops"
DTYPES = {"f64": torch.float64, "i64": torch.int64, "bool": torch.bool}


def rows():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        subprocess.run([os.environ.get("WEFT_TEST_OPS", PROGRAM), "--gtest_filter=GoldenFile.WritesTheRows", "--gtest_brief=1"],
                       env={**os.environ, "WEFT_OP_CASES": path}, check=True)
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def kept(x):
    x = x.detach().double()
    if x.numel() > MOST:
        x = digest(x.permute(0, 3, 1, 2) if x.dim() == 4 else x, 0)
    return x.float()


def all_cases():
    torch.set_default_dtype(torch.float64)
    tensors = {}
    for row in rows():
        x = [torch.tensor(one["values"], dtype=DTYPES[one["dtype"]]).reshape(one["sizes"]) for one in row["inputs"]]
        names = {i: one["gradient"] for i, one in enumerate(row["inputs"]) if one["gradient"]}
        for i in names:
            x[i].requires_grad_()
        try:
            y = torch_calls.value(row["torch"], x)
            if y.requires_grad:
                y.backward(torch.tensor(row["dy"]).reshape(y.shape))
        except Exception as error:
            error.add_note(f"row {row['name']}: {row['torch']}")
            raise
        tensors[row["name"] + ".y"] = kept(y)
        for i, name in names.items():
            tensors[name] = kept(torch.zeros_like(x[i]) if x[i].grad is None else x[i].grad)
    torch.set_default_dtype(torch.float32)
    return tensors
