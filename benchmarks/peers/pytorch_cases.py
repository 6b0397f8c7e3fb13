# SPDX-License-Identifier: Apache-2.0
"""The cases of benchmarks/cases/ in PyTorch."""

import dataclasses
import subprocess
import sys
import time
from typing import Callable, Optional

import torch
import torch.nn.functional as F

from pytorch_images import add_images
from pytorch_resnet import ResNet
from pytorch_transformers import add_transformers

BLOCK = 1000  # additions of one step of the tiny ops
LAYOUTS = {"": torch.contiguous_format, "@channels_last": torch.channels_last}
# A network runs in either order of its images, and compiled.
NETWORKS = {**{ending: (layout, False) for ending, layout in LAYOUTS.items()}, "@compiled": (torch.channels_last, True)}


@dataclasses.dataclass
class Work:
    step: Callable
    amount: float = 1
    before: Optional[Callable] = None


@dataclasses.dataclass
class Case:
    name: str
    unit: str
    prepare: Optional[Callable] = None
    value: Optional[Callable] = None  # in place of prepare


def name_of(dtype):
    return {torch.float32: "f32", torch.bfloat16: "bf16"}[dtype]


class Cases(list):
    """The cases of one suite, device and size."""

    def __init__(self, device, tiny):
        super().__init__()
        self.device, self.tiny = device, tiny

    def size(self, full, small):
        return small if self.tiny else full

    def add(self, name, unit, prepare=None, value=None):
        self.append(Case(name, unit, prepare, value))

    def normal(self, *sizes, mean=0.0, std=1.0, dtype=torch.float32, layout=torch.contiguous_format):
        return (torch.randn(*sizes, device=self.device) * std + mean).to(dtype, memory_format=layout)

    def forward(self, make, amount=1):
        inputs, op = make()

        def step():
            with torch.inference_mode():
                op(*inputs)

        return Work(step, amount)

    def forward_backward(self, make, amount=1):
        inputs, op = make()
        for x in inputs:
            x.requires_grad_(x.is_floating_point())
        y = op(*inputs)
        dy = torch.ones_like(y) if y.numel() == 1 else torch.randn_like(y)
        del y

        def step():
            for x in inputs:
                x.grad = None
            op(*inputs).backward(dy)

        return Work(step, amount)

    def op(self, name, make, unit="ms", amount=1, ending=""):
        both = 1 if amount == 1 else 3 * amount
        self.add(f"{name}_forward{ending}", unit, lambda: self.forward(make, amount))
        self.add(f"{name}_forward_backward{ending}", unit, lambda: self.forward_backward(make, both))

    def network(self, bottleneck, cifar, batch, precision, layout, compiled=False):
        return Network(self, bottleneck, cifar, batch, precision, layout, compiled)

    def train(self, name, bottleneck, cifar, batch, precision):
        for ending, form in NETWORKS.items():
            def prepare(form=form):
                network = self.network(bottleneck, cifar, batch, precision, *form)
                return Work(network.train_step, network.batch)

            self.add(f"{name}_train_{name_of(precision)}{ending}", "images/s", prepare)

    def infer(self, name, bottleneck, cifar, batch, precision):
        for ending, form in NETWORKS.items():
            def prepare(form=form):
                network = self.network(bottleneck, cifar, batch, precision, *form)
                network.model.eval()
                return Work(network.infer_step, network.batch)

            self.add(f"{name}_infer_{name_of(precision)}{ending}", "images/s", prepare)


class Network:
    """A residual network with its batch and optimizer."""

    def __init__(self, cases, bottleneck, cifar, batch, precision, layout, compiled):
        self.batch = cases.size(batch, 2)
        edge = cases.size(32 if cifar else 224, 8 if cifar else 32)
        classes = 10 if cifar else cases.size(1000, 10)
        self.precision = precision
        self.device = cases.device.split(":")[0]
        self.model = ResNet(bottleneck, cifar, classes, cases.tiny).to(cases.device, memory_format=layout)
        self.run = torch.compile(self.model) if compiled else self.model
        self.x = cases.normal(self.batch, 3, edge, edge, layout=layout)
        self.labels = torch.arange(self.batch, device=cases.device) % classes
        self.sgd = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def forward(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.precision == torch.bfloat16):
            return self.run(self.x)

    def train_step(self):
        loss = F.cross_entropy(self.forward(), self.labels)
        self.sgd.zero_grad(set_to_none=True)
        loss.backward()
        self.sgd.step()

    def infer_step(self):
        with torch.inference_mode():
            self.forward()


def add_optimizers(cases):
    def step_of(optimizer, **options):
        edge = cases.size(680, 4)
        weights = [cases.normal(edge, edge) for _ in range(54)] + [cases.normal(cases.size(512, 8)) for _ in range(106)]
        for weight in weights:
            weight.requires_grad_()
            weight.grad = torch.randn_like(weight)
        return Work(optimizer(weights, **options).step)

    optim = torch.optim
    cases.add("sgd_step", "ms", lambda: step_of(optim.SGD, lr=1e-4, momentum=0.9, weight_decay=1e-4))
    cases.add("adam_step", "ms", lambda: step_of(optim.Adam, lr=1e-4))
    cases.add("adamw_step", "ms", lambda: step_of(optim.AdamW, lr=1e-4))


def add_tiny_ops(cases):
    def add_16(gradients):
        a, b = cases.normal(16), cases.normal(16)
        a.requires_grad_(gradients)

        def step():
            with torch.set_grad_enabled(gradients):
                for _ in range(BLOCK):
                    torch.add(a, b)

        return Work(step, BLOCK)

    class Chain:
        def __init__(self):
            self.x, self.b = cases.normal(16).requires_grad_(), cases.normal(16)
            self.dy, self.y = torch.ones_like(self.b), None

        def clear(self):
            self.y = self.x.grad = None

        def forward(self):
            y = self.x
            for _ in range(BLOCK):
                y = torch.add(y, self.b)
            self.y = y

        def again(self):
            self.clear()
            self.forward()

        def backward(self):
            self.y.backward(self.dy)

    def chain_forward():
        chain = Chain()
        return Work(chain.forward, BLOCK, chain.clear)

    def chain_backward():
        chain = Chain()
        return Work(chain.backward, BLOCK, chain.again)

    cases.add("add_16", "ns", lambda: add_16(False))
    cases.add("add_16_autograd", "ns", lambda: add_16(True))
    cases.add("chain_forward", "ns", chain_forward)
    cases.add("chain_backward", "ns", chain_backward)


def startup_ms(device):
    """The fastest of three processes that make one tensor."""
    command = [sys.executable, "-c", f"import torch; torch.zeros(16, device='{device}')"]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, cwd="/", check=True)  # a folder of root's: it looks for modules there first
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def suite_cpu(cases):
    size, normal = cases.size, cases.normal
    for bottleneck in (False, True):
        name, batch = ("resnet50", 8) if bottleneck else ("resnet18", 64)
        for precision in (torch.float32, torch.bfloat16):
            cases.train(name, bottleneck, not bottleneck, batch, precision)
            cases.infer(name, bottleneck, not bottleneck, batch, precision)
    add_transformers(cases, Work, name_of)
    N, E, C = size(8, 2), size(56, 6), size(64, 8)
    for ending, layout in LAYOUTS.items():
        cases.op("conv3x3", lambda layout=layout: (
            [normal(N, C, E, E, layout=layout), normal(C, C, 3, 3, std=0.05, layout=layout)],
            lambda x, w: F.conv2d(x, w, padding=1)), ending=ending)
    for full in (1024, 2048):
        for dtype in (torch.float32, torch.bfloat16):
            n = size(full, 16)
            cases.add(f"matmul_{full}_{name_of(dtype)}", "GFLOP/s", lambda n=n, dtype=dtype: cases.forward(
                lambda: ([normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)], torch.matmul), 2.0 * n**3))
    rows, into, out = size(2048, 8), size(768, 16), size(3072, 24)
    cases.op("linear", lambda: ([normal(rows, into), normal(out, into, std=0.03), normal(out, std=0.03)], F.linear))
    batch, tokens, heads, channels = size(8, 2), size(197, 9), size(6, 2), size(64, 8)
    for dtype in (torch.float32, torch.bfloat16):
        cases.op(f"attention_{name_of(dtype)}", lambda dtype=dtype: (
            [normal(batch, tokens, 3, heads, channels, dtype=dtype)], attention))
    add_norms_f32(cases)
    n = size(1 << 24, 1 << 10)
    cases.add("add_16m", "GB/s", lambda: cases.forward(lambda: ([normal(n), normal(n)], torch.add), 12.0 * n))
    cases.add("add_inplace_16m", "GB/s", lambda: cases.forward(
        lambda: ([normal(n), normal(n)], lambda a, b: a.add_(b)), 12.0 * n))
    add_optimizers(cases)
    add_tiny_ops(cases)
    add_images(cases, Work)
    cases.add("startup", "ms", value=lambda: startup_ms(cases.device))


def attention(qkv):
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    weights = torch.softmax(q * q.shape[-1] ** -0.5 @ k.transpose(2, 3), -1)
    return (weights @ v).transpose(1, 2).contiguous()


def add_norms_f32(cases):
    size = cases.size
    N, E, C = size(32, 2), size(56, 5), size(64, 8)
    for ending, layout in LAYOUTS.items():
        cases.op("batch_norm", lambda layout=layout: batch_norm(cases, N, E, C, torch.float32, layout), ending=ending)
    rows, width, classes = size(4096, 6), size(768, 24), size(1000, 10)
    cases.op("layer_norm", lambda: layer_norm(cases, rows, width, torch.float32))
    cases.add("cross_entropy_forward_backward", "ms", lambda: cases.forward_backward(
        lambda: cross_entropy(cases, rows, classes, torch.float32)))


def batch_norm(cases, N, E, C, dtype, layout):
    mean, var = torch.zeros(C, device=cases.device), torch.ones(C, device=cases.device)
    inputs = [cases.normal(N, C, E, E, dtype=dtype, layout=layout), cases.normal(C, mean=1, std=0.1), cases.normal(C, std=0.1)]
    return inputs, lambda x, w, b: F.batch_norm(x, mean, var, w, b, training=True)


def layer_norm(cases, rows, width, dtype):
    # Weight and bias in x's dtype: PyTorch wants one dtype outside of autocast.
    inputs = [cases.normal(rows, width, dtype=dtype), cases.normal(width, mean=1, std=0.1, dtype=dtype),
              cases.normal(width, std=0.1, dtype=dtype)]
    return inputs, lambda x, w, b: F.layer_norm(x, (width,), w, b)


def cross_entropy(cases, rows, classes, dtype):
    labels = torch.arange(rows, device=cases.device) * 7919 % classes
    return [cases.normal(rows, classes, dtype=dtype), labels], lambda x, t: F.cross_entropy(x, t)
