#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Triton's tutorials, unchanged, up to their benchmarks: `weft-emulate --check races python3 triton_tutorials.py FOLDER [--configs N] [01 02 03 05 06]`.

FOLDER is python/tutorials of https://github.com/triton-lang/triton. Needs triton, torch, numpy and pytest. torch's own kernels are machine code:
here each of its operators takes its operands to the host, computes there and brings its results back. Autotuners try the first N (1)
configurations. Exit code: 0 when each tutorial's own comparison holds."""
import argparse
import contextlib
import io
import pathlib
import runpy
import sys

import torch
import torch.utils._pytree as pytree
import triton
from torch.utils._python_dispatch import TorchDispatchMode

WITHOUT_KERNELS = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"}

# As a GPU does: of f16 in f32, on the host in f16. How many results are f16 again.
IN_F32 = {"aten::native_layer_norm": 1, "aten::native_layer_norm_backward": 3}


def is_on_gpu(value):
    return isinstance(value, torch.Tensor) and value.is_cuda


class OnHost(TorchDispatchMode):
    """torch's operators on CUDA tensors, computed on the host."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        schema = function._schema
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        is_view = not writes and any(r.alias_info is not None for r in schema.returns)
        operands = [value for value in pytree.tree_leaves((args, kwargs)) if is_on_gpu(value)]
        wanted = kwargs.get("device")
        to = torch.device(wanted) if wanted is not None else operands[0].device if operands else None
        if is_view or schema.name in WITHOUT_KERNELS or not operands and (to is None or to.type != "cuda"):
            return function(*args, **kwargs)
        copies, pairs = {}, []
        narrow = IN_F32.get(schema.name, 0) if operands and operands[0].dtype == torch.float16 else 0

        def down(value):
            if isinstance(value, torch.device):
                return torch.device("cpu")
            if not is_on_gpu(value):
                return value
            memory = value.untyped_storage()
            if memory.data_ptr() not in copies:
                copies[memory.data_ptr()] = memory.cpu()
            copy = torch.empty(0, dtype=value.dtype).set_(copies[memory.data_ptr()], value.storage_offset(), value.shape, value.stride())
            pairs.append((copy, value))
            return copy.float() if narrow else copy

        def up(value):
            if not isinstance(value, torch.Tensor):
                return value
            for copy, original in pairs:
                if copy is value:
                    return original
            if to.type != "cuda":
                return value
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=to).copy_(value)

        result = function(*pytree.tree_map(down, args), **pytree.tree_map(down, kwargs))
        if narrow:
            result = [value.half() if k < narrow else value for k, value in enumerate(result)]
        if writes:
            for memory in {value.untyped_storage().data_ptr(): value.untyped_storage() for value in operands}.values():
                memory.copy_(copies[memory.data_ptr()])
        return pytree.tree_map(up, result)


class NoBenchmark:
    def run(self, **_):
        pass


def compare(name, path):
    names = runpy.run_path(str(path), run_name="__main__")
    if name == "06":
        for causal in (False, True):
            names["test_op"](1, 2, 128, 64, causal, False, "bwd", "triton-fp16")
            names["test_op"](1, 2, 128, 64, causal, False, "fwd", "triton-fp8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=["01", "02", "03", "05", "06"])
    parser.add_argument("--configs", type=int, default=1)
    options = parser.parse_args()
    autotune = triton.autotune
    triton.autotune = lambda configs, **others: autotune(configs[: options.configs], **others)
    triton.testing.perf_report = lambda *_: lambda _: NoBenchmark()
    torch.Tensor.__repr__ = lambda self, **_: f"tensor of {tuple(self.shape)}"  # printing switches modes off
    failed = []
    for name in options.names:
        said = io.StringIO()
        try:
            with OnHost(), contextlib.redirect_stdout(said):
                compare(name, next(options.folder.glob(f"{name}-*.py")))
            text = said.getvalue()
            wrong = "❌" in text or name == "01" and "triton is 0.0" not in text or name == "03" and "✅" not in text
            why = text.strip() if wrong else ""
        except Exception as error:  # a tutorial's assertion, or Triton's compiler
            wrong, why = True, f"{type(error).__name__}: {error}"
        print(f"{name}: {'differs: ' + why[:2000] if wrong else 'equal'}", flush=True)
        failed += [name] if wrong else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
