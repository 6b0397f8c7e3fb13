#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/*.pt: what torch.save of PyTorch 1.13 (Debian's python3-torch) makes of small states.

Run by hand when a case is added. Values are small whole numbers and halves, exact in every dtype; the tests know them.
"""
import collections
import pathlib

import torch

HERE = pathlib.Path(__file__).parent / "golden"
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}


def every_kind():
    """Every dtype, and views of every sort."""
    state = collections.OrderedDict()
    for name, dtype in DTYPES.items():
        state[f"dtype.{name}"] = torch.arange(6).reshape(2, 3).to(dtype)
    state["dtype.bool"] = torch.tensor([True, False, True])
    base = torch.arange(24, dtype=torch.float32)
    state["view.base"] = base
    state["view.transposed"] = base.reshape(4, 6).t()
    state["view.stepped"] = base[3::5]
    state["view.expanded"] = base[7:8].expand(3)
    state["view.permuted"] = base.reshape(2, 3, 4).permute(2, 0, 1)
    state["scalar"] = torch.tensor(2.5)
    state["empty"] = torch.empty(0, 3)
    state["parameter"] = torch.nn.Parameter(torch.tensor([0.5, -0.5]))
    state["negative"] = torch.tensor([-1, -2 ** 40])
    return state


def module():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Linear(3, 2))


def nested():
    net = module()
    adam = torch.optim.AdamW(net.parameters(), lr=0.5)
    net(torch.ones(2, 2, 3, 5)).sum().backward()
    adam.step()
    return {"epoch": 3, "best": 0.5, "name": "net", "done": True, "nothing": None, "state_dict": net.state_dict(),
            "optimizer": adam.state_dict()}


def main():
    HERE.mkdir(exist_ok=True)
    states = {"every_kind": every_kind(), "module": module().state_dict(), "nested": nested(),
              "model_key": {"model": {"module.w": torch.ones(2)}, "steps": [1, 2, (3.5, "x")]},
              "lists": [torch.ones(1), (torch.zeros(2), {"a": torch.full((1,), 3.0)})]}
    for name, state in states.items():
        torch.save(state, HERE / f"{name}.pt")
        torch.save(state, HERE / f"{name}_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(states["every_kind"], HERE / "every_kind_protocol4.pt", pickle_protocol=4)
    torch.save({"c": torch.ones(1, dtype=torch.complex64)}, HERE / "complex.pt")
    torch.save(torch.nn.Linear(1, 1), HERE / "whole_module.pt")
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(HERE / "torchscript.pt"))


if __name__ == "__main__":
    main()
