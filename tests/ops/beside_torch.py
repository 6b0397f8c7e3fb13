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
except ImportError:
    sys.exit("beside_torch: NOT COMPARED, this Python has no PyTorch")

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import torch_calls  # pylint: disable=wrong-import-position

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64}


def results(case, wide=False):
    """y and the gradients, by PyTorch in the case's dtypes, or in f64."""
    x = [torch.tensor(one["values"], dtype=torch.float64).reshape(one["sizes"]).to(DTYPES[one["dtype"]]) for one in case["inputs"]]
    x = [one.double() if wide and one.is_floating_point() else one for one in x]
    x = [one.requires_grad_(one.is_floating_point()) for one in x]
    y = torch_calls.value(case["torch"], x)
    if y.requires_grad:
        y.backward(torch.tensor(case["dy"], dtype=torch.float64).reshape(y.shape).to(y.dtype))
    gradients = [torch.zeros_like(one, dtype=torch.float64) if one.grad is None else one.grad for one in x]
    return [t.detach().double().flatten() for t in (y, *gradients)], [y.dtype, *(one.dtype for one in x)]


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
        own, dtypes = results(case)
        truth = [torch.tensor(values, dtype=torch.float64) for values in case["truth"]] if dtype == torch.float64 \
            else results(case, wide=True)[0]
        faults = []
        for i, got in enumerate(torch.tensor(values, dtype=torch.float64) for values in case["got"]):
            if not dtypes[i].is_floating_point:
                continue
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
