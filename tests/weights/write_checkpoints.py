#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/program_*_2_15.pt: checkpoints as training programs lay them out, by torch.save of PyTorch 2.15 and
NumPy 2. Run by hand when a case is added. Values are small whole numbers and halves; the tests know them.
"""
import argparse
import collections
import pathlib

import numpy as np
import torch

HERE = pathlib.Path(__file__).parent / "golden"


def weights(prefix="", first=1.0):
    return collections.OrderedDict([(prefix + "conv.weight", torch.tensor([[first, -2.0], [0.5, 4.0]])),
                                    (prefix + "conv.bias", torch.tensor([3.0, first]))])


def main():
    adam = {"state": {0: {"step": torch.tensor(2.0), "exp_avg": torch.ones(2, 2)}},
            "param_groups": [{"lr": 0.5, "params": [0]}]}
    files = {
        # pytorch/examples, imagenet/main.py: best_acc1 is a tensor
        "imagenet": {"epoch": 3, "arch": "resnet18", "state_dict": weights("module."), "best_acc1": torch.tensor(76.5),
                     "optimizer": adam, "scheduler": {"last_epoch": 3}},
        # karpathy/nanoGPT, train.py: torch.compile's prefix, best_val_loss is a tensor
        "nanogpt": {"model": weights("_orig_mod."), "optimizer": adam, "model_args": {"n_layer": 1, "bias": False},
                    "iter_num": 7, "best_val_loss": torch.tensor(1.5), "config": {"out_dir": "out"}},
        # rwightman/timm: an argparse.Namespace, numbers of NumPy, a path, and two dicts of weights
        "timm": {"epoch": 1, "arch": "vit", "state_dict": weights(), "optimizer": adam, "version": 2,
                 "args": argparse.Namespace(lr=0.5, opt="adamw", data_dir=pathlib.PurePosixPath("/data/imagenet")),
                 "metric": np.float64(81.5), "state_dict_ema": weights(first=1.5)},
        "mae": {"model": weights(), "optimizer": adam, "epoch": np.int64(3), "scaler": {"scale": 65536.0},
                "best": np.float32(0.5), "half": np.float16(-0.25), "flag": np.bool_(True), "word": np.str_("ab"),
                "counts": collections.defaultdict(int, {"a": 1}), "rng": np.arange(3, dtype=np.uint32),
                "args": argparse.Namespace(nested=argparse.Namespace(a=1)), "root": pathlib.PurePosixPath("/a/b")},
    }
    for name, state in files.items():
        torch.save(state, HERE / f"program_{name}_2_15.pt")
    torch.save(files["mae"], HERE / "program_mae_protocol5_2_15.pt", pickle_protocol=5)
    # arrays in the place of tensors: of columns first, big-endian, of bools; of what no tensor holds
    arrays = {"conv.weight": np.asfortranarray(np.array([[1, -2], [0.5, 4]], np.float32)), "conv.bias": np.array([3, 1], ">f8"),
              "mask": np.array([[True], [False]]), "small": np.array(-3, np.int8), "names": np.array(["a"])}
    torch.save({"state_dict": arrays, "others": {"large": np.array([1], np.uint64)}}, HERE / "program_arrays_2_15.pt")


if __name__ == "__main__":
    main()
