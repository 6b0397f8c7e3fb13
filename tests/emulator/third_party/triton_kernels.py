# SPDX-License-Identifier: Apache-2.0
"""Kernels of the kinds that Triton's tutorials teach, each beside NumPy: `weft-emulate python3 triton_kernels.py [NAME…]`.

Needs triton, torch (for memory alone: its own CUDA kernels are machine code) and numpy.
"""
import sys

import numpy
import torch
import triton
import triton.language as tl

RANDOM = numpy.random.default_rng(7)


def normal(*shape, dtype=torch.float32):
    """Values on the host that `dtype` holds exactly."""
    return torch.from_numpy(RANDOM.standard_normal(shape, dtype=numpy.float32)).to(dtype)


def zeros(*shape, dtype=torch.float32):
    """On the GPU, by a copy: torch's fill is a kernel."""
    return torch.zeros(shape, dtype=dtype).cuda()


def check(name, got, want, bound):
    error = numpy.abs(got.cpu().double().numpy() - want).max()
    print(f"{name}: largest error {error:.3g}, allowed {bound:.3g}")
    if not error <= bound:
        sys.exit(f"{name}: wrong")


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def add():
    x, y = normal(98432), normal(98432)
    out = zeros(98432)
    add_kernel[(triton.cdiv(98432, 1024),)](x.cuda(), y.cuda(), out, 98432, BLOCK=1024)
    check("add", out, (x + y).double().numpy(), 0)


@triton.jit
def softmax_kernel(x, out, rows, columns, pitch, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * pitch + at, mask=at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * pitch + at, powers / tl.sum(powers, axis=0), mask=at < columns)


def softmax():
    x = normal(183, 781)
    out = zeros(183, 781)
    softmax_kernel[(24,)](x.cuda(), out, 183, 781, 781, BLOCK=1024, STAGES=4, num_warps=8)
    powers = numpy.exp(x.double().numpy() - x.double().numpy().max(1, keepdims=True))
    check("softmax", out, powers / powers.sum(1, keepdims=True), 1e-6)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, M_TILE), tl.cdiv(N, N_TILE)
    in_group = GROUP * tiles_n
    first = tl.program_id(0) // in_group * GROUP
    high = min(tiles_m - first, GROUP)
    row = (first + tl.program_id(0) % in_group % high) * M_TILE + tl.arange(0, M_TILE)
    column = tl.program_id(0) % in_group // high * N_TILE + tl.arange(0, N_TILE)
    depth = tl.arange(0, K_TILE)
    total = tl.zeros((M_TILE, N_TILE), dtype=tl.float32)
    for k in range(0, K, K_TILE):
        left = tl.load(a + row[:, None] * K + (k + depth)[None, :], mask=(row[:, None] < M) & ((k + depth)[None, :] < K), other=0.0)
        right = tl.load(b + (k + depth)[:, None] * N + column[None, :], mask=((k + depth)[:, None] < K) & (column[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


def matmul():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for m, n, k in ((256, 256, 256), (200, 136, 72)):
            a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
            c = zeros(m, n)
            matmul_kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 64),)](a.cuda(), b.cuda(), c, m, n, k, 64, 64, 32, 4, num_warps=4, num_stages=3)
            bound = (1e-3 if dtype == torch.float32 else 2.0**-20) * k**0.5 * 8  # tf32 rounds factors to 11 bits
            check(f"matmul {dtype} {m} x {n} x {k}", c, a.double().numpy() @ b.double().numpy(), bound)


@triton.jit
def norm_kernel(x, out, weight, bias, mean, inverse, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    center = tl.sum(values, axis=0) / columns
    apart = tl.where(at < columns, values - center, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    tl.store(mean + row, center)
    tl.store(inverse + row, scale)
    w, b = tl.load(weight + at, mask=at < columns), tl.load(bias + at, mask=at < columns)
    tl.store(out + row * columns + at, apart * scale * w + b, mask=at < columns)


@triton.jit
def norm_gradient_kernel(dx, dy, dw, x, weight, mean, inverse, locks, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient of x, and that of weight in GROUPS partial sums, each behind a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values, gradient = tl.load(x + row * columns + at, mask=mask, other=0), tl.load(dy + row * columns + at, mask=mask, other=0)
    w = tl.load(weight + at, mask=mask)
    scale = tl.load(inverse + row)
    hat = tl.where(mask, (values - tl.load(mean + row)) * scale, 0.0)
    scaled = tl.where(mask, w * gradient, 0.0)
    c1, c2 = tl.sum(hat * scaled, axis=0) / columns, tl.sum(scaled, axis=0) / columns
    tl.store(dx + row * columns + at, (scaled - (hat * c1 + c2)) * scale, mask=mask)
    group = row % GROUPS
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    there = dw + group * columns + at
    tl.store(there, tl.load(there, mask=mask) + gradient * hat, mask=mask)
    tl.atomic_xchg(locks + group, 0)


def layer_norm():
    rows, columns, groups = 37, 300, 4
    x, w, b, dy = normal(rows, columns), normal(columns), normal(columns), normal(rows, columns)
    out, mean, inverse = zeros(rows, columns), zeros(rows), zeros(rows)
    norm_kernel[(rows,)](x.cuda(), out, w.cuda(), b.cuda(), mean, inverse, columns, 1e-5, BLOCK=512)
    dx, dw, locks = zeros(rows, columns), zeros(groups, columns), zeros(groups, dtype=torch.int32)
    norm_gradient_kernel[(rows,)](dx, dy.cuda(), dw, x.cuda(), w.cuda(), mean, inverse, locks, columns, GROUPS=groups, BLOCK=512)
    values, weight, gradient = x.double().numpy(), w.double().numpy(), dy.double().numpy()
    scale = 1 / numpy.sqrt(values.var(1, keepdims=True) + 1e-5)
    hat = (values - values.mean(1, keepdims=True)) * scale
    scaled = weight * gradient
    check("layer norm", out, hat * weight + b.double().numpy(), 1e-5)
    want = (scaled - hat * (hat * scaled).mean(1, keepdims=True) - scaled.mean(1, keepdims=True)) * scale
    check("layer norm, gradient of x", dx, want, 1e-5)
    sums = dw.cpu().double().sum(0)
    check("layer norm, gradient of weight", sums, (gradient * hat).sum(0), 1e-4)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    first, head = tl.program_id(0) * M, tl.program_id(1) * length * D
    rows, columns, at = first + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + at[None, :])
    largest, total = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, first + M if CAUSAL else length, N):
        keys = tl.load(k + head + (start + columns)[None, :] * D + at[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.44269504)
        if CAUSAL:
            scores = tl.where(rows[:, None] >= (start + columns)[None, :], scores, -float("inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        weights, before = tl.exp2(scores - now[:, None]), tl.exp2(largest - now)
        total = total * before + tl.sum(weights, 1)
        values = tl.load(v + head + (start + columns)[:, None] * D + at[None, :])
        result = tl.dot(weights.to(values.dtype), values, result * before[:, None])
        largest = now
    tl.store(out + head + rows[:, None] * D + at[None, :], result / total[:, None])


def attention():
    heads, length, d = 3, 256, 64
    q, k, v = (normal(heads, length, d, dtype=torch.float16) for _ in range(3))
    for causal in (False, True):
        out = zeros(heads, length, d)
        attention_kernel[(length // 64, heads)](q.cuda(), k.cuda(), v.cuda(), out, length, d**-0.5, 64, 32, d, causal, num_warps=4, num_stages=2)
        scores = q.double().numpy() @ k.double().numpy().transpose(0, 2, 1) * d**-0.5
        if causal:
            scores = numpy.where(numpy.tri(length, dtype=bool), scores, -numpy.inf)
        weights = numpy.exp(scores - scores.max(2, keepdims=True))
        want = weights / weights.sum(2, keepdims=True) @ v.double().numpy()
        check(f"attention, {'causal' if causal else 'whole'}", out, want, 5e-3)  # weights are rounded to f16


@triton.jit
def descriptor_kernel(a, b, c, M, N, K, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    left = tl.make_tensor_descriptor(a, (M, K), (K, 1), (M_TILE, K_TILE))
    right = tl.make_tensor_descriptor(b, (N, K), (K, 1), (N_TILE, K_TILE))
    to = tl.make_tensor_descriptor(c, (M, N), (N, 1), (M_TILE, N_TILE))
    row, column = tl.program_id(0) * M_TILE, tl.program_id(1) * N_TILE
    total = tl.zeros((M_TILE, N_TILE), dtype=tl.float32)
    for k in range(0, K, K_TILE):
        total = tl.dot(left.load([row, k]), right.load([column, k]).T, total)
    to.store([row, column], total.to(tl.float16))


def descriptors():
    """TMA and wgmma, with tensor maps that the kernel makes."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    m, n, k = 256, 192, 160
    a, b = normal(m, k, dtype=torch.float16), normal(n, k, dtype=torch.float16)
    c = zeros(m, n, dtype=torch.float16)
    descriptor_kernel[(m // 128, n // 64)](a.cuda(), b.cuda(), c, m, n, k, 128, 64, 32, num_warps=4, num_stages=3)
    want = a.double().numpy() @ b.double().numpy().T
    check("descriptors", c, want, numpy.abs(want).max() * 2.0**-11 + 1e-3)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.load(x + at, mask=at < n) / (1 - p), 0.0), mask=at < n)


def dropout():
    x = normal(4000)
    out, again = zeros(4000), zeros(4000)
    for to in (out, again):
        dropout_kernel[(8,)](x.cuda(), to, 4000, 0.5, 123, BLOCK=512)
    kept = (out.cpu() != 0).numpy()
    check("dropout", out, numpy.where(kept, 2 * x.double().numpy(), 0), 1e-6)
    check("dropout, once more", again, out.cpu().double().numpy(), 0)
    if abs(kept.mean() - 0.5) > 6 * 0.5 / 4000**0.5:
        sys.exit("dropout: another share is kept")


ALL = {f.__name__: f for f in (add, softmax, dropout, matmul, layer_norm, attention, descriptors)}
for name in sys.argv[1:] or ALL:
    ALL[name]()
