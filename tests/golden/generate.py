#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of this folder: what PyTorch computes, for the tests to compare with.

Run by hand when a case is added (`generate.py`, or `generate.py ops resnet8` for some of the files); needs PyTorch (2.15
writes the same optimizers as 1.13 did), and `ops` build/bin/test_ops, or the program WEFT_TEST_OPS. PyTorch runs in f64, so that the files hold the value itself (rounded
to f32) and the tests' tolerance is Weft's alone.
"""
import pathlib
import sys

import torch

import finetuning
import modules
import ops
import optimizers
import paper_models
import safetensors_file
import schedules
import second_derivatives
import training


def augmentations():
    from augmentations import all_cases  # the only one that needs python3-torchvision and python3-pil
    return all_cases()


def logistic():
    from logistic import all_regressions  # the only one that needs python3-sklearn
    return all_regressions()


def decoders():
    from decoders import all_cases  # the only one that needs transformers
    return all_cases()


HERE = pathlib.Path(__file__).parent
FILES = {
    "logistic": logistic,
    "ops": ops.all_cases,
    "augmentations": augmentations,
    "decoders": decoders,
    "finetuning": finetuning.all_cases,
    "gpt": paper_models.gpt,
    "modules": modules.all_cases,
    "optimizers": optimizers.all_cases,
    "schedules": schedules.all_schedules,
    "second_derivatives": second_derivatives.all_cases,
    "small_net": training.small_net,
    "transformers": paper_models.all_cases,
    **{kind: lambda kind=kind: training.residual_net(kind) for kind in training.RUNS if kind != "small"},
}


def main():
    torch.set_num_threads(2)
    for name in sys.argv[1:] or FILES:
        path = HERE / f"{name}.safetensors"
        print(path.name)
        tensors = FILES[name]()
        safetensors_file.write(path, tensors)
        print(f"    {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
