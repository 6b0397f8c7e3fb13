#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sweep of difficult numbers (sweep.cpp) beside PyTorch's: no result may err more than four times as far as
PyTorch in the same dtype, or two units where that is less. Usage: beside_torch.py build/bin/test_ops"""
import collections
import json
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("beside_torch: NOT COMPARED, this Python has no PyTorch")

ROWS, COLUMNS = 6, 40
DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
WIDE = ("layer_norm", "rms_norm")  # their vectors stay f32


def labels(x):
    return torch.tensor([row * 7 % COLUMNS for row in range(x.shape[0])], dtype=torch.long)


def image(x):
    return x.reshape(-1, 6, 10, 4).permute(0, 3, 1, 2)


def nhwc(y):
    return y.permute(0, 2, 3, 1)


def cross_entropy(smoothing):
    return lambda x: F.cross_entropy(x, labels(x), reduction="none", label_smoothing=smoothing)


OPS = {name: getattr(torch, name) for name in
       "neg square abs sign exp log sqrt reciprocal sin cos relu sigmoid tanh".split()}
for name in "add sub mul div maximum minimum".split():
    OPS[name] = OPS[name + " of a row"] = getattr(torch, name)
OPS.update({
    "clamp": lambda x: x.clamp(-1, 1), "leaky_relu": lambda x: F.leaky_relu(x, 0.25), "affine": lambda x: 0.5 * x + 3,
    "pow": lambda x: x**3, "sum": lambda x: x.sum(), "mean": lambda x: x.mean(), "sum of rows": lambda x: x.sum(0),
    "mean of columns": lambda x: x.mean(1), "softmax": lambda x: x.softmax(-1),
    "var": lambda x: x.var(1), "std": lambda x: x.std(1), "cumsum": lambda x: x.cumsum(1),
    # Weft takes the first of equal elements; torch.topk any.
    "sort": lambda x: x.sort(stable=True).values, "topk": lambda x: x.sort(stable=True, descending=True).values[:, :7],
    "log_softmax": lambda x: x.log_softmax(-1), "cross_entropy 0": cross_entropy(0.0),
    "cross_entropy 0.125": cross_entropy(0.125),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (COLUMNS,), w.to(x.dtype), b.to(x.dtype)),
    "rms_norm": lambda x, w: F.rms_norm(x, (COLUMNS,), w.to(x.dtype), 1e-5),
    "batch_norm": lambda x: nhwc(F.batch_norm(image(x), None, None, training=True)), "linear": F.linear,
    "matmul": lambda a, b: a @ b, "mse_loss": F.mse_loss, "max_pool2d": lambda x: nhwc(F.max_pool2d(image(x), 2)),
    "avg_pool2d": lambda x: nhwc(F.avg_pool2d(image(x), 3, 1)),
    "adaptive_avg_pool2d": lambda x: nhwc(F.adaptive_avg_pool2d(image(x), 1)),
    "conv2d": lambda x, w: nhwc(F.conv2d(image(x), w.permute(0, 3, 1, 2))),
})
SHAPES = {"linear": [(3, COLUMNS)], "matmul": [(COLUMNS, 3)], "conv2d": [(2, 3, 3, 4)]}


def results(case, dtype):
    name = case["op"]
    leaves = []
    for i, values in enumerate(case["inputs"]):
        vector = i > 0 and (name in WIDE or name.endswith("of a row"))
        shape = (COLUMNS,) if vector else SHAPES[name][i - 1] if i > 0 and name in SHAPES else (-1, COLUMNS)
        kept = torch.float32 if i > 0 and name in WIDE and dtype.itemsize == 2 else dtype
        leaves.append(torch.tensor(values, dtype=torch.float64).reshape(shape).to(kept).requires_grad_())
    y = OPS[name](*leaves)
    if y.requires_grad:
        y.backward(torch.tensor(case["dy"], dtype=torch.float64).reshape(y.shape).to(y.dtype))
    zeros = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    return [t.detach().double().flatten() for t in (y, *zeros)], [y.dtype, *(leaf.dtype for leaf in leaves)]


def error(got, truth, dtype):
    """Relative to the largest true value; infinite where only one of the two is finite."""
    truth = torch.where(truth.abs() > torch.finfo(dtype).max, truth.sign() * torch.inf, truth)
    same = (got == truth) | (got.isnan() & truth.isnan())
    if (~same & ~(got.isfinite() & truth.isfinite())).any():
        return float("inf")
    distance = torch.where(same, torch.zeros_like(got), (got - truth).abs())
    finite = truth[truth.isfinite()].abs()
    scale = max(finite.max().item() if finite.numel() else 0, torch.finfo(dtype).tiny)
    return distance.max().item() / scale if distance.numel() else 0.0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cases.json")
        subprocess.run([sys.argv[1], "--gtest_filter=Sweep.*", "--gtest_brief=1"], env={**os.environ, "WEFT_SWEEP_OUT": path})
        with open(path) as file:
            cases = [json.loads(line) for line in file]
    count, passed = collections.Counter(), collections.Counter()
    for case in cases:
        dtype, group = DTYPES[case["dtype"]], (case["device"], case["dtype"])
        own, dtypes = results(case, dtype)
        truth = [torch.tensor(values, dtype=torch.float64) for values in case["truth"]] if dtype == torch.float64 \
            else results(case, torch.float64)[0]
        faults = []
        for i, got in enumerate(torch.tensor(values, dtype=torch.float64) for values in case["got"]):
            eps = torch.finfo(dtypes[i]).eps
            ours, theirs = error(got, truth[i], dtypes[i]), error(own[i], truth[i], dtypes[i])
            # In f64 the formulas differ, if they are far apart; but of a truth of nearly 0 PyTorch may be any number of units away.
            if ours > 4 * max(theirs, 0.5 * eps) or (dtype == torch.float64 and 1e-6 < theirs < 1e6):
                faults.append(f"{'y' if i == 0 else f'gradient {i - 1}'} errs {ours / eps:.3g} eps, PyTorch {theirs / eps:.3g}")
        count[group] += 1
        passed[group] += not faults
        for fault in faults:
            print(f"{' '.join(group)}, {case['op']}, {case['pattern']}: {fault}")
    for group in sorted(count):
        print(f"{' '.join(group)}: {passed[group]} of {count[group]} cases pass beside PyTorch {torch.__version__}")
    return passed != count


if __name__ == "__main__":
    sys.exit(main())
