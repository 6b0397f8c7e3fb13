# SPDX-License-Identifier: Apache-2.0
"""The suite ops (benchmarks/cases/every_op.cpp) in PyTorch."""

import torch
import torch.nn.functional as F

from pytorch_cases import Cases, Work, name_of


class Inputs:
    def __init__(self, cases, dtype):
        m, n, edge = cases.size(512, 8), cases.size(768, 12), cases.size(56, 6)
        self.x, self.y, self.row = (cases.normal(*sizes, dtype=dtype) for sizes in ((m, n), (m, n), (n,)))
        self.images = cases.normal(cases.size(8, 2), cases.size(64, 8), edge, edge, dtype=dtype, layout=torch.channels_last)
        self.mask = self.x > 0
        self.other = torch.bfloat16 if dtype == torch.float32 else torch.float32
        self.rows = torch.randint(0, m, (m,), device=cases.device)
        self.positions = torch.randint(0, m, (m, n), device=cases.device)
        self.labels = torch.randint(0, n, (m,), device=cases.device)
        self.device = cases.device


OPS = {
    # ops on one tensor
    "exp": lambda i: i.x.exp(), "log": lambda i: i.x.log(), "sqrt": lambda i: i.x.sqrt(), "sin": lambda i: i.x.sin(),
    "tanh": lambda i: i.x.tanh(), "erf": lambda i: i.x.erf(), "sigmoid": lambda i: i.x.sigmoid(),
    "relu": lambda i: i.x.relu(), "gelu": lambda i: F.gelu(i.x), "gelu_tanh": lambda i: F.gelu(i.x, approximate="tanh"),
    "silu": lambda i: F.silu(i.x), "softplus": lambda i: F.softplus(i.x), "elu": lambda i: F.elu(i.x),
    "clamp": lambda i: i.x.clamp(-1, 1), "pow_2": lambda i: i.x**2, "pow_3": lambda i: i.x**3,
    "to_f16": lambda i: i.x.half(), "to_f64": lambda i: i.x.double(), "to_other": lambda i: i.x.to(i.other),
    # ops on two
    "add": lambda i: i.x + i.y, "add_row": lambda i: i.x + i.row, "mul_column": lambda i: i.x * i.x[:, :1],
    "gt": lambda i: i.x > i.y, "where": lambda i: torch.where(i.mask, i.x, i.y),
    "masked_fill": lambda i: i.x.masked_fill(i.mask, 0),
    # reductions
    "sum": lambda i: i.x.sum(), "sum_rows": lambda i: i.x.sum(1), "sum_columns": lambda i: i.x.sum(0),
    "mean_rows": lambda i: i.x.mean(1), "max": lambda i: i.x.amax(), "max_rows": lambda i: i.x.amax(1),
    "max_columns": lambda i: i.x.amax(0), "norm": lambda i: i.x.norm(), "var_rows": lambda i: i.x.var(1),
    "logsumexp_rows": lambda i: i.x.logsumexp(1), "argmax_rows": lambda i: i.x.argmax(1),
    "argmax_columns": lambda i: i.x.argmax(0), "cumsum_rows": lambda i: i.x.cumsum(1),
    "cumsum_columns": lambda i: i.x.cumsum(0), "softmax_rows": lambda i: i.x.softmax(1),
    "softmax_columns": lambda i: i.x.softmax(0), "log_softmax_rows": lambda i: i.x.log_softmax(1),
    "sort_rows": lambda i: i.x.sort(1), "topk_rows": lambda i: i.x.topk(5),
    # ops that move elements
    "transpose": lambda i: i.x.t().contiguous(), "channels_first": lambda i: i.images.contiguous(),
    "concat_rows": lambda i: torch.cat([i.x, i.y], 0), "concat_columns": lambda i: torch.cat([i.x, i.y], 1),
    "stack": lambda i: torch.stack([i.x, i.y]), "pad": lambda i: F.pad(i.x, (1, 1)), "flip": lambda i: i.x.flip(1),
    "roll": lambda i: i.x.roll(3, 1), "tril": lambda i: i.x.tril(), "repeat": lambda i: i.x.repeat(2, 1),
    "index_select_rows": lambda i: i.x.index_select(0, i.rows),
    "index_select_columns": lambda i: i.x.index_select(1, i.rows), "gather": lambda i: i.x.gather(0, i.positions),
    "scatter_add": lambda i: i.x.scatter_add(0, i.positions, i.y), "masked_select": lambda i: i.x.masked_select(i.mask),
    "nonzero": lambda i: i.mask.nonzero(), "one_hot": lambda i: F.one_hot(i.labels, i.x.shape[1]),
    # ops of networks
    "layer_norm": lambda i: F.layer_norm(i.x, i.row.shape), "rms_norm": lambda i: F.rms_norm(i.x, i.row.shape),
    "group_norm": lambda i: F.group_norm(i.images, 8), "cross_entropy": lambda i: F.cross_entropy(i.x, i.labels),
    "mse_loss": lambda i: F.mse_loss(i.x, i.y),
    "bce_with_logits": lambda i: F.binary_cross_entropy_with_logits(i.x, i.y),
    "max_pool2d": lambda i: F.max_pool2d(i.images, 3, 2, 1), "avg_pool2d": lambda i: F.avg_pool2d(i.images, 2),
    "adaptive_avg_pool2d": lambda i: F.adaptive_avg_pool2d(i.images, 1),
    "resize2d": lambda i: F.interpolate(i.images, scale_factor=2, mode="bilinear"),
    # random numbers
    "normal": lambda i: torch.randn(i.x.shape, device=i.device), "uniform": lambda i: torch.rand(i.x.shape, device=i.device),
    "dropout": lambda i: F.dropout(i.x, 0.1), "permutation": lambda i: torch.randperm(i.x.numel() // 8, device=i.device),
}


def suite_ops(cases: Cases):
    def prepare(op, dtype):
        inputs = Inputs(cases, dtype)

        def step():
            with torch.inference_mode():
                op(inputs)

        return Work(step)

    for dtype in (torch.float32, torch.bfloat16):
        for name, op in OPS.items():
            cases.add(f"{name}_{name_of(dtype)}", "us", lambda op=op, dtype=dtype: prepare(op, dtype))
