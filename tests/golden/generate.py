#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of this folder: what PyTorch computes, for the tests to compare with.

Run by hand when a case is added; needs Debian's python3-torch. PyTorch runs in f64, so that the files hold the value
itself (rounded to f32) and the tests' tolerance is Weft's alone.
"""
import pathlib

import torch

import ops
import safetensors_file
import schedules
import training

HERE = pathlib.Path(__file__).parent


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    files = {
        "ops": ops.all_cases(),
        "schedules": schedules.all_schedules(),
        "small_net": training.small_net(),
        "resnet8": training.residual_net("resnet8", 5, 16, 10, ["sgd_nesterov", "adamw"]),
        "resnet18": training.residual_net("resnet18", 4, 32, 10, ["sgd_nesterov", "adamw"],
                                          ["conv1.weight", "layer2.0.downsample.0.weight", "fc.weight", "fc.bias"]),
        "resnet18_imagenet": training.residual_net("resnet18_imagenet", 3, 64, 7, []),
        "resnet50": training.residual_net("resnet50", 3, 16, 6, []),
    }
    for name, tensors in files.items():
        path = HERE / f"{name}.safetensors"
        safetensors_file.write(path, tensors)
        print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
