# SPDX-License-Identifier: Apache-2.0
"""The suite gpu of benchmarks/cases/gpu_*.cpp in PyTorch."""

import torch
import torch.nn.functional as F

from pytorch_cases import (LAYOUTS, Work, add_optimizers, add_tiny_ops, batch_norm, cross_entropy, layer_norm, name_of)
from pytorch_transformers import Transformer

BF16, F32 = torch.bfloat16, torch.float32


def peak_memory_mib(cases, precision, layout):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    network = cases.network(True, False, 64, precision, layout)
    for _ in range(2):
        network.train_step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def add_networks(cases):
    cases.train("resnet50_b256", True, False, 256, BF16)
    for precision in (BF16, F32):
        cases.train("resnet50_b64", True, False, 64, precision)
        cases.train("resnet18_b64", False, False, 64, precision)
        cases.train("resnet18_cifar_b64", False, True, 64, precision)
        cases.train("resnet18_cifar_b256", False, True, 256, precision)
        cases.infer("resnet50_b64", True, False, 64, precision)
        if cases.device.startswith("cuda"):
            for ending, layout in LAYOUTS.items():
                cases.add(f"resnet50_b64_train_memory_{name_of(precision)}{ending}", "MiB",
                          value=lambda p=precision, layout=layout: peak_memory_mib(cases, p, layout))


def add_products(cases):
    size, normal = cases.size, cases.normal
    for full in (1024, 2048, 4096, 8192):
        for dtype in (BF16, F32):
            n = size(full, 64)
            cases.add(f"matmul_{full}_{name_of(dtype)}", "TFLOP/s", lambda n=n, dtype=dtype: cases.forward(
                lambda: ([normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)], torch.matmul), 2.0 * n**3))
    for name, R, into, out, edge, stride in (("conv7x7_3_64_224", 7, 3, 64, 224, 2), ("conv3x3_64_64_56", 3, 64, 64, 56, 1),
                                             ("conv1x1_256_64_56", 1, 256, 64, 56, 1),
                                             ("conv3x3_128_128_28", 3, 128, 128, 28, 1),
                                             ("conv3x3_512_512_7", 3, 512, 512, 7, 1)):
        N, E, O = size(64, 2), size(edge, 8), size(out, 16)
        C = size(into, 16 if into % 8 == 0 else into)
        P = (E - 1) // stride + 1
        for dtype in (BF16, F32):
            for ending, layout in LAYOUTS.items():
                def make(N=N, C=C, E=E, O=O, R=R, stride=stride, dtype=dtype, layout=layout):
                    return ([normal(N, C, E, E, dtype=dtype, layout=layout),
                             normal(O, C, R, R, std=0.05, dtype=dtype, layout=layout)],
                            lambda x, w: F.conv2d(x, w, stride=stride, padding=R // 2))

                cases.op(f"{name}_{name_of(dtype)}", make, "TFLOP/s", 2.0 * N * P * P * O * R * R * C, ending)


def add_norms(cases):
    size = cases.size
    N, E, C = size(64, 2), size(56, 5), size(64, 8)
    rows, width, classes = size(8192, 6), size(1024, 40), size(1000, 10)
    for dtype in (BF16, F32):
        end = name_of(dtype)
        for ending, layout in LAYOUTS.items():
            cases.op(f"batch_norm_{end}", lambda dtype=dtype, layout=layout: batch_norm(cases, N, E, C, dtype, layout),
                     "us", ending=ending)
        cases.op(f"layer_norm_{end}", lambda dtype=dtype: layer_norm(cases, rows, width, dtype), "us")
        cases.op(f"softmax_{end}", lambda dtype=dtype: (
            [cases.normal(rows, width, dtype=dtype)], lambda x: torch.softmax(x, -1)), "us")
        cases.op(f"cross_entropy_{end}", lambda dtype=dtype: cross_entropy(cases, rows, classes, dtype), "us")
    tokens, channels = size(16384, 6), size(768, 40)
    cases.op("add_layer_norm_mixed", lambda: ([cases.normal(tokens, channels), cases.normal(tokens, channels, dtype=BF16)],
                                              lambda x, branch: F.layer_norm(x + branch, (channels,)).to(BF16)), "us")


def add_transformer(cases):
    for ending, compiled in (("", False), ("@compiled", True)):
        for kind, name, unit in (("vit_b16", "vit_b16_b256", "images/s"), ("bert_base_b64", "bert_base_b64", "sequences/s"),
                                 ("gpt2_b16", "gpt2_b16", "sequences/s")):
            def prepare(kind=kind, compiled=compiled):
                network = Transformer(cases, kind, BF16, compiled)
                return Work(network.train_step, network.batch)

            cases.add(f"{name}_train_bf16{ending}", unit, prepare)
    size, normal = cases.size, cases.normal
    N, T, D, H = size(64, 2), size(197, 9), size(768, 32), size(12, 2)

    def plain(q, k, v):
        return torch.softmax(q @ k.transpose(2, 3) * (D // H) ** -0.5, -1) @ v

    variants = {"": plain}
    if hasattr(F, "scaled_dot_product_attention"):  # since 2.0
        variants["@fused"] = F.scaled_dot_product_attention
    for ending, attention in variants.items():
        cases.op("vit_attention_bf16", lambda attention=attention: (
            [normal(N, H, T, D // H, dtype=BF16) for _ in range(3)], attention), ending=ending)
    cases.op("vit_mlp_bf16", lambda: (
        [normal(N * T, D, dtype=BF16), normal(4 * D, D, std=0.03, dtype=BF16), normal(4 * D, std=0.03, dtype=BF16),
         normal(D, 4 * D, std=0.03, dtype=BF16), normal(D, std=0.03, dtype=BF16)],
        lambda x, w1, b1, w2, b2: F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)))


def add_memory(cases):
    n = cases.size(64 << 20, 1 << 10)
    for dtype in (F32, BF16):
        width, end = (4 if dtype == F32 else 2), name_of(dtype)
        cases.add(f"add_64m_{end}", "GB/s", lambda dtype=dtype, width=width: cases.forward(
            lambda: ([cases.normal(n, dtype=dtype), cases.normal(n, dtype=dtype)], torch.add), 3.0 * width * n))
        cases.add(f"copy_64m_{end}", "GB/s", lambda dtype=dtype, width=width: cases.forward(
            lambda: ([cases.normal(n, dtype=dtype)], torch.clone), 2.0 * width * n))
    cases.add("cast_64m_f32_bf16", "GB/s", lambda: cases.forward(
        lambda: ([cases.normal(n)], lambda x: x.to(BF16)), 6.0 * n))

    def copy_bytes(from_host):
        count = cases.size(256 << 20, 1 << 12)
        to = torch.empty(count, dtype=torch.uint8, device=cases.device)
        source = (torch.zeros(count, dtype=torch.uint8, pin_memory=cases.device.startswith("cuda")) if from_host else
                  torch.zeros(count, dtype=torch.uint8, device=cases.device))
        return Work(lambda: to.copy_(source, non_blocking=True), count * (1.0 if from_host else 2.0))

    def allocate(elements):
        def step():
            for _ in range(100):
                torch.empty(elements, device=cases.device)

        return Work(step, 100)

    def add_and_wait():
        a = cases.normal(16)

        def step():
            torch.add(a, a)
            if cases.device.startswith("cuda"):
                torch.cuda.synchronize()

        return Work(step)

    cases.add("memcpy_256m", "GB/s", lambda: copy_bytes(False))
    cases.add("memcpy_256m_from_host", "GB/s", lambda: copy_bytes(True))
    cases.add("allocate_4k", "ns", lambda: allocate(1 << 10))
    cases.add("allocate_64m", "ns", lambda: allocate(cases.size(16 << 20, 1 << 10)))
    cases.add("add_16_and_wait", "us", add_and_wait)


def suite_gpu(cases):
    add_networks(cases)
    add_products(cases)
    add_norms(cases)
    add_transformer(cases)
    add_memory(cases)
    add_optimizers(cases)
    add_tiny_ops(cases)
