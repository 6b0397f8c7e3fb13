# SPDX-License-Identifier: Apache-2.0
"""Forward and gradients of single ops at odd shapes. Images are turned to NHWC and convolution weights to OHWI here.

Each case is a set of tensors under `op.case.`: inputs x, w, b, …, `options` (numbers, in the order that ops.cpp reads),
y, dy and d<input>.
"""
import math

import torch
import torch.nn.functional as F

from hashed import values


class Cases:
    """Collects the cases; draws fresh inputs from consecutive seeds."""

    def __init__(self):
        self.tensors = {}
        self.seed = 1000

    def draw(self, *shape, scale=1.0, shift=0.0):
        self.seed += 1
        return (values(self.seed, shape) * scale + shift).double()  # an f32 number: the file holds it exactly

    def add(self, name, function, inputs, options=(), fixed=None):
        """Runs y = function(*inputs) in f64, back-propagates a drawn dy, and keeps everything as f32."""
        leaves = {key: x.clone().requires_grad_() for key, x in inputs.items()}
        y = function(*leaves.values())
        self.keep(name, "options", torch.tensor(options, dtype=torch.float64))
        for key, x in {**inputs, **(fixed or {})}.items():
            self.keep(name, key, x)
        self.keep(name, "y", y)
        if y.requires_grad:
            dy = self.draw(*y.shape)
            y.backward(dy)
            self.keep(name, "dy", dy)
            for key, x in leaves.items():
                self.keep(name, "d" + key, torch.zeros_like(x) if x.grad is None else x.grad)

    def add_choice(self, name, y, inputs, options=()):
        """What has no gradient: places, classes, truths."""
        for key, x in {"options": torch.tensor(options, dtype=torch.float64), **inputs, "y": y.long()}.items():
            self.keep(name, key, x)

    def keep(self, name, key, tensor):
        is_options = key == "options"
        self.tensors[f"{name}.{key}"] = tensor if is_options or tensor.dtype == torch.int64 else tensor.detach().float()


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def convolutions(cases):
    rows = [
        # N, H, W, C, O, R, S, stride, padding, dilation, groups, bias
        (2, 7, 5, 3, 4, 3, 3, (1, 1), (1, 1), (1, 1), 1, False),
        (1, 9, 8, 5, 7, 3, 3, (2, 2), (1, 1), (1, 1), 1, True),
        (3, 6, 6, 4, 6, 1, 1, (1, 1), (0, 0), (1, 1), 1, False),
        (2, 7, 7, 4, 8, 1, 1, (2, 2), (0, 0), (1, 1), 1, False),
        (1, 13, 11, 3, 8, 7, 7, (2, 2), (3, 3), (1, 1), 1, False),
        (2, 9, 7, 6, 6, 3, 3, (1, 1), (1, 1), (1, 1), 6, True),
        (1, 8, 9, 4, 6, 3, 3, (1, 1), (2, 2), (2, 2), 2, True),
        (1, 5, 9, 2, 3, 2, 5, (2, 1), (0, 2), (1, 1), 1, True),
        (2, 3, 3, 17, 33, 3, 3, (1, 1), (1, 1), (1, 1), 1, False),
        (1, 1, 1, 1, 1, 3, 3, (1, 1), (1, 1), (1, 1), 1, True),
    ]
    for i, (N, H, W, C, O, R, S, stride, padding, dilation, groups, bias) in enumerate(rows):
        inputs = {"x": cases.draw(N, H, W, C), "w": cases.draw(O, R, S, C // groups, scale=0.5)}
        if bias:
            inputs["b"] = cases.draw(O)

        def run(x, w, b=None):
            return nhwc(F.conv2d(nchw(x), w.permute(0, 3, 1, 2), b, stride, padding, dilation, groups))

        cases.add(f"conv2d.{i}", run, inputs, (*stride, *padding, *dilation, groups))


def batch_norms(cases):
    rows = [
        # shape, training, eps, momentum, relu, residual
        ((4, 5, 3, 7), True, 1e-5, 0.1, False, False),
        ((2, 3, 3, 5), True, 1e-3, 0.3, True, False),
        ((3, 2, 5, 9), True, 1e-5, 0.1, True, True),
        ((2, 4, 3, 6), False, 1e-5, 0.1, False, False),
        ((2, 4, 3, 6), False, 1e-5, 0.1, True, True),
        ((11, 13), True, 1e-5, 0.1, False, False),
    ]
    for i, (shape, training, eps, momentum, relu, residual) in enumerate(rows):
        C = shape[-1]
        inputs = {"x": cases.draw(*shape, scale=2, shift=0.5), "w": cases.draw(C, shift=1.5), "b": cases.draw(C)}
        if residual:
            inputs["r"] = cases.draw(*shape)
        before = {"mean_before": cases.draw(C), "var_before": cases.draw(C, scale=0.5, shift=1)}
        mean, var = before["mean_before"].clone(), before["var_before"].clone()

        def run(x, w, b, r=None):
            moved = nchw(x) if x.dim() == 4 else x
            y = F.batch_norm(moved, mean, var, w, b, training, momentum, eps)
            y = nhwc(y) if x.dim() == 4 else y
            y = y if r is None else y + r
            return F.relu(y) if relu else y

        cases.add(f"batch_norm.{i}", run, inputs, (training, eps, momentum, relu), before)
        cases.keep(f"batch_norm.{i}", "mean_after", mean)
        cases.keep(f"batch_norm.{i}", "var_after", var)


def pools(cases):
    rows = [
        # kernel, stride, padding, count_include_pad
        ((2, 2), (2, 2), (0, 0), True),
        ((3, 3), (2, 2), (1, 1), True),
        ((3, 2), (1, 2), (1, 0), False),
        ((5, 5), (3, 3), (2, 2), False),
    ]
    for i, (kernel, stride, padding, include) in enumerate(rows):
        options = (*kernel, *stride, *padding, include)
        cases.add(f"max_pool2d.{i}", lambda x: nhwc(F.max_pool2d(nchw(x), kernel, stride, padding)),
                  {"x": cases.draw(2, 7, 9, 3)}, options)
        cases.add(f"avg_pool2d.{i}",
                  lambda x: nhwc(F.avg_pool2d(nchw(x), kernel, stride, padding, count_include_pad=include)),
                  {"x": cases.draw(2, 7, 9, 3)}, options)
    for i, size in enumerate([(1, 1), (3, 2), (5, 7)]):
        cases.add(f"adaptive_avg_pool2d.{i}", lambda x: nhwc(F.adaptive_avg_pool2d(nchw(x), size)),
                  {"x": cases.draw(2, 7, 5, 3)}, size)


def products(cases):
    for i, (shape, out, bias) in enumerate([((5, 7), 3, True), ((2, 3, 9), 17, True), ((1, 1), 1, False)]):
        inputs = {"x": cases.draw(*shape), "w": cases.draw(out, shape[-1])}
        if bias:
            inputs["b"] = cases.draw(out)
        cases.add(f"linear.{i}", F.linear, inputs)
    shapes = [((5, 3), (3, 7)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 5), (5, 4)),
              ((2, 1, 3, 5), (4, 5, 2)), ((3, 7, 1), (3, 1, 2))]
    for i, (a, b) in enumerate(shapes):
        cases.add(f"matmul.{i}", torch.matmul, {"a": cases.draw(*a), "b": cases.draw(*b)})


def norms_and_softmax(cases):
    for i, shape in enumerate([(3, 7), (2, 3, 33), (5, 2)]):
        cases.add(f"layer_norm.{i}", lambda x, w, b: F.layer_norm(x, shape[-1:], w, b, 1e-5),
                  {"x": cases.draw(*shape, scale=3), "w": cases.draw(shape[-1], shift=1.5), "b": cases.draw(shape[-1])},
                  (1e-5,))
    for i, (shape, dim) in enumerate([((3, 7), 1), ((3, 5, 2), 1), ((4, 100), -1), ((5, 3), 0)]):
        cases.add(f"softmax.{i}", lambda x: F.softmax(x, dim), {"x": cases.draw(*shape, scale=5)}, (dim,))
        cases.add(f"log_softmax.{i}", lambda x: F.log_softmax(x, dim), {"x": cases.draw(*shape, scale=5)}, (dim,))


def rms_norms(cases):
    """x / sqrt(mean(x^2) + eps) w: this PyTorch has no rms_norm of its own."""
    for i, shape in enumerate([(3, 7), (2, 3, 33), (5, 2)]):
        cases.add(f"rms_norm.{i}", lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w,
                  {"x": cases.draw(*shape, scale=3), "w": cases.draw(shape[-1], shift=1.5)}, (1e-5,))


def rotaries(cases):
    """Pairs of channels as complex numbers, times e^(i angle)."""
    for i, (shape, first) in enumerate([((2, 5, 3, 6), 0), ((1, 4, 2, 16), 7)]):
        half = shape[-1] // 2
        frequencies = [10.0 ** (-k / half) for k in range(half)]
        angles = torch.outer(torch.arange(first, first + shape[1]).double(), torch.tensor(frequencies).double())

        def turn(x):
            turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)[:, None]
            return torch.cat([turned.real, turned.imag], -1)
        cases.add(f"rotary.{i}", turn, {"x": cases.draw(*shape)}, (first, *frequencies))


def attentions(cases):
    """softmax(scale q k^T) v, [B, N, H, D]; the last row is one head of a ViT."""
    rows = [
        # B, N, M, H, D, scale, causal, key lengths
        (2, 7, 7, 2, 8, 0, False, None),
        (1, 5, 9, 3, 16, 0.5, False, None),
        (2, 9, 9, 1, 8, 0, True, None),
        (3, 6, 10, 1, 5, 0, False, (10, 1, 7)),
        (2, 8, 8, 2, 8, 0.3, True, (5, 8)),
        (1, 197, 197, 1, 64, 0, False, None),
    ]
    for i, (B, N, M, H, D, scale, causal, lengths) in enumerate(rows):
        hidden = torch.ones(N, M, dtype=torch.bool).triu(1).expand(B, 1, N, M) if causal else torch.zeros(
            B, 1, N, M, dtype=torch.bool)
        if lengths:
            hidden = hidden | (torch.arange(M) >= torch.tensor(lengths)[:, None])[:, None, None]

        def run(q, k, v):
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            if not scale:  # PyTorch's function scales by 1 / sqrt(D)
                return F.scaled_dot_product_attention(q, k, v, ~hidden).transpose(1, 2)
            s = (scale * q @ k.transpose(2, 3)).masked_fill(hidden, -math.inf)
            return (s.softmax(-1) @ v).transpose(1, 2)

        inputs = {"q": cases.draw(B, N, H, D), "k": cases.draw(B, M, H, D), "v": cases.draw(B, M, H, D)}
        fixed = {"lengths": torch.tensor(lengths)} if lengths else {}
        cases.add(f"attention.{i}", run, inputs, (scale, causal), fixed)


def decoder_attentions(cases):
    """Heads of queries that share keys, and queries that see their last keys alone."""
    rows = [
        # B, N, M, H, heads of keys, D, causal, window
        (2, 5, 7, 8, 2, 8, False, 0),
        (1, 9, 9, 9, 3, 4, True, 0),
        (2, 9, 9, 4, 1, 8, True, 3),
        (1, 12, 12, 2, 2, 8, True, 1),
        (2, 1, 20, 6, 2, 16, False, 0),
    ]
    for i, (B, N, M, H, G, D, causal, window) in enumerate(rows):
        ago = torch.arange(N)[:, None] - torch.arange(M)
        seen = ((ago >= 0) & (ago < (window or N)) if causal else torch.ones(N, M, dtype=torch.bool)).expand(B, 1, N, M)

        def run(q, k, v):
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True).transpose(1, 2)

        inputs = {"q": cases.draw(B, N, H, D), "k": cases.draw(B, M, G, D), "v": cases.draw(B, M, G, D)}
        cases.add(f"attention.decoder{i}", run, inputs, (0, causal, window))


def losses(cases):
    reductions = ["mean", "sum", "none"]
    rows = [
        # rows, classes, smoothing, ignore_index, reduction
        (5, 7, 0.0, -100, 0),
        (6, 3, 0.1, -100, 0),
        (7, 11, 0.0, 2, 0),
        (7, 5, 0.2, 1, 0),
        (4, 9, 0.1, -100, 1),
        (6, 4, 0.1, 3, 2),
        (1, 1, 0.0, -100, 0),
    ]
    for i, (N, C, smoothing, ignore, reduction) in enumerate(rows):
        target = (cases.draw(N) * 1e6).long().abs() % C
        target[0] = ignore if 0 <= ignore < C and N > 1 else target[0]

        def run(x):
            return F.cross_entropy(x, target, ignore_index=ignore, label_smoothing=smoothing,
                                   reduction=reductions[reduction])

        cases.add(f"cross_entropy.{i}", run, {"x": cases.draw(N, C, scale=3)}, (smoothing, ignore, reduction),
                  {"target": target})
    for i, (N, C, smoothing, reduction) in enumerate([(5, 7, 0.0, 0), (3, 10, 0.1, 0), (4, 3, 0.2, 1), (4, 3, 0.2, 2)]):
        target = F.softmax(cases.draw(N, C, scale=2), 1)

        def run(x):
            return F.cross_entropy(x, target, label_smoothing=smoothing, reduction=reductions[reduction])

        cases.add(f"cross_entropy_probabilities.{i}", run, {"x": cases.draw(N, C, scale=3)},
                  (smoothing, -100, reduction), {"target": target})
    for i, reduction in enumerate(reductions):
        cases.add(f"mse_loss.{i}", lambda a, b: F.mse_loss(a, b, reduction=reduction),
                  {"a": cases.draw(3, 5), "b": cases.draw(3, 5)}, (i,))


def elementwise(cases):
    functions = {
        "relu": F.relu,
        "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
        "gelu_erf": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "exp": torch.exp,
        "sin": torch.sin,
        "cos": torch.cos,
        "abs": torch.abs,
        "square": torch.square,
    }
    for name, function in functions.items():
        cases.add(f"{name}.0", function, {"x": cases.draw(3, 17, scale=4)})
    for name, function in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
                           "reciprocal": torch.reciprocal}.items():
        cases.add(f"{name}.0", function, {"x": cases.draw(3, 17, shift=1.5)})
    binary = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum,
              "minimum": torch.minimum}
    for name, function in binary.items():
        for i, (a, b) in enumerate([((3, 5), (3, 5)), ((2, 3, 5), (3, 1)), ((4, 1), (7,))]):
            cases.add(f"{name}.{i}", function, {"a": cases.draw(*a), "b": cases.draw(*b, shift=2.5)})


def reductions(cases):
    functions = {
        "sum": torch.sum,
        "mean": torch.mean,
        "max": torch.amax,
        "min": torch.amin,
        "norm": torch.linalg.vector_norm,
    }
    for name, function in functions.items():
        for i, (shape, dims, keep) in enumerate([((3, 5), (0, 1), False), ((3, 5, 7), (1,), True),
                                                 ((2, 3, 4, 5), (0, 2), False), ((65, 3), (0,), False)]):
            cases.add(f"{name}.{i}", lambda x: function(x, dim=dims, keepdim=keep), {"x": cases.draw(*shape)},
                      (keep, *dims))


def transposed_convolutions(cases):
    rows = [
        # N, H, W, C, O, R, S, stride, padding, output_padding, dilation, groups, bias
        (2, 4, 3, 6, 5, 3, 2, (2, 3), (1, 0), (1, 2), (1, 1), 1, True),
        (1, 3, 5, 4, 6, 2, 2, (2, 2), (0, 0), (0, 0), (1, 1), 2, False),
        (1, 4, 4, 3, 2, 3, 3, (1, 1), (1, 2), (0, 0), (2, 1), 1, True),
    ]
    for i, (N, H, W, C, O, R, S, stride, padding, output_padding, dilation, groups, bias) in enumerate(rows):
        inputs = {"x": cases.draw(N, H, W, C), "w": cases.draw(C, R, S, O // groups, scale=0.5)}
        if bias:
            inputs["b"] = cases.draw(O)

        def run(x, w, b=None):
            return nhwc(F.conv_transpose2d(nchw(x), w.permute(0, 3, 1, 2), b, stride, padding, output_padding, groups,
                                           dilation))

        cases.add(f"conv_transpose2d.{i}", run, inputs, (*stride, *padding, *output_padding, *dilation, groups))


def more_ops(cases):
    functions = {"log1p": torch.log1p, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "erf": torch.erf,
                 "expm1": torch.expm1, "silu": F.silu, "softplus": F.softplus, "mish": F.mish}
    for name, function in functions.items():
        shift = 1.5 if name == "log1p" else 0
        cases.add(f"{name}.0", function, {"x": cases.draw(3, 17, scale=1 if shift else 4, shift=shift)})
    cases.add("elu.0", lambda x: F.elu(x, 0.7), {"x": cases.draw(3, 17, scale=4)})
    for i, (groups, affine) in enumerate([(3, True), (6, False), (1, True)]):
        inputs = {"x": cases.draw(2, 3, 4, 6, scale=3, shift=1)}
        if affine:
            inputs |= {"w": cases.draw(6, shift=1.5), "b": cases.draw(6)}
        cases.add(f"group_norm.{i}", lambda x, w=None, b=None: nhwc(F.group_norm(nchw(x), groups, w, b)), inputs,
                  (groups,))
    for i, reduction in enumerate(["mean", "sum", "none"]):
        target = torch.sigmoid(cases.draw(3, 5))
        fixed = {"target": target, "weight": cases.draw(5, scale=0.5, shift=1)}
        cases.add(f"bce_with_logits.{i}",
                  lambda x: F.binary_cross_entropy_with_logits(x, target, pos_weight=fixed["weight"],
                                                               reduction=reduction),
                  {"x": cases.draw(3, 5, scale=4)}, (i,), fixed)
        cases.add(f"l1_loss.{i}", lambda a, b: F.l1_loss(a, b, reduction=reduction),
                  {"a": cases.draw(3, 5), "b": cases.draw(3, 5)}, (i,))
        cases.add(f"smooth_l1_loss.{i}", lambda a, b: F.smooth_l1_loss(a, b, reduction=reduction, beta=0.8),
                  {"a": cases.draw(3, 5), "b": cases.draw(3, 5)}, (i, 0.8))
        cases.add(f"kl_div.{i}", lambda x: F.kl_div(x, target, reduction=reduction), {"x": cases.draw(3, 5)}, (i,),
                  {"target": target})
    for i, (dims, keep) in enumerate([((1,), True), ((0, 2), False)]):
        cases.add(f"logsumexp.{i}", lambda x: torch.logsumexp(x, dims, keep), {"x": cases.draw(3, 5, 7, scale=5)},
                  (keep, *dims))
        for name, function in {"var": torch.var, "std": torch.std}.items():
            cases.add(f"{name}.{i}", lambda x: function(x, dim=dims, unbiased=i == 0, keepdim=keep),
                      {"x": cases.draw(3, 5, 7)}, (i == 0, keep, *dims))
    index = (cases.draw(4, 9) * 1e6).long().abs() % 6
    cases.add("scatter_add.0", lambda a, b: a.scatter_add(1, index, b), {"a": cases.draw(4, 6), "b": cases.draw(4, 9)},
              (), {"index": index})
    cases.add("einsum.0", lambda a, b: torch.einsum("bik,jbk->ijb", a, b), {"a": cases.draw(2, 3, 4), "b": cases.draw(5, 2, 4)})
    cases.add("tril.0", lambda x: torch.tril(x, -1), {"x": cases.draw(2, 4, 5)}, (-1,))
    cases.add("triu.0", lambda x: torch.triu(x, 1), {"x": cases.draw(2, 4, 5)}, (1,))
    cases.add("flip.0", lambda x: torch.flip(x, (0, 2)), {"x": cases.draw(2, 4, 5)}, (0, 2))
    cases.add("roll.0", lambda x: torch.roll(x, -2, 1), {"x": cases.draw(3, 5)}, (-2, 1))
    cases.add("repeat.0", lambda x: x.repeat(2, 3), {"x": cases.draw(2, 3)}, (2, 3))


def order_and_choice(cases):
    for i, (shape, dim, descending) in enumerate([((4, 9, 3), 1, False), ((3, 40), -1, True), ((1, 2100), 1, False)]):
        # Whole numbers: many ties, whose order the gradient shows.
        cases.add(f"sort.{i}", lambda x: torch.sort(x, dim=dim, descending=descending, stable=True).values,
                  {"x": (cases.draw(*shape) * 4).round()}, (dim, descending))
        x = (cases.draw(*shape) * 4).round()
        cases.add_choice(f"argsort.{i}", torch.sort(x, dim=dim, descending=descending, stable=True).indices, {"x": x},
                         (dim, descending))
    for i, (shape, k, dim, largest) in enumerate([((4, 9), 3, -1, True), ((9, 4), 2, 0, False), ((1, 2100), 50, 1, True)]):
        cases.add(f"topk.{i}", lambda x: torch.topk(x, k, dim, largest).values, {"x": cases.draw(*shape)},
                  (k, dim, largest))
    for i, (shape, dim) in enumerate([((3, 11), 1), ((2, 7, 3), 1), ((1300,), 0)]):
        cases.add(f"cumsum.{i}", lambda x: torch.cumsum(x, dim), {"x": cases.draw(*shape)}, (dim,))
    mask = (cases.draw(4, 6) > 0).long()
    cases.add("masked_select.0", lambda x: torch.masked_select(x, mask.bool()), {"x": cases.draw(4, 6)}, (),
              {"mask": mask})
    cases.add_choice("nonzero.0", torch.nonzero(mask), {"x": mask})
    i, j, wide = (torch.tensor(rows) for rows in ([3, -1, 0, 3], [1, 4, -5, 1], [[2], [0]]))
    cases.add("index.0", lambda x: x[-4::2, None, ..., -1], {"x": cases.draw(5, 2, 3, 4)}, (0,))
    cases.add("index.1", lambda x: x[1:, wide, j], {"x": cases.draw(3, 4, 5, 2)}, (1,), {"i": wide, "j": j})
    cases.add("index.2", lambda x: x[i, :, j], {"x": cases.draw(4, 3, 5)}, (2,), {"i": i, "j": j})
    cases.add("index.3", lambda x: x[1, mask.bool()], {"x": cases.draw(2, 4, 6)}, (3,), {"i": mask})
    cases.add("index_put.0", lambda a, b: a.index_put((i[:3], j[:3]), b), {"a": cases.draw(4, 5, 2), "b": cases.draw(3, 2)},
              (0,), {"i": i[:3], "j": j[:3]})
    cases.add("index_put.1", lambda a, b: a.index_put((i, j), b, accumulate=True),
              {"a": cases.draw(4, 5, 2), "b": cases.draw(4, 2)}, (1,), {"i": i, "j": j})
    # Each place once: of several, PyTorch keeps any.
    index = torch.argsort(cases.draw(5, 6), dim=1)[:, :4]
    cases.add("scatter.0", lambda a, b: a.scatter(1, index, b), {"a": cases.draw(5, 6), "b": cases.draw(5, 4)}, (1,),
              {"index": index})
    rows = index.T.reshape(4, 5, 1)[:3]
    cases.add("scatter.1", lambda a, b: a.scatter(0, rows, b), {"a": cases.draw(6, 5, 1), "b": cases.draw(3, 5, 1)}, (0,),
              {"index": rows})
    for name, function in {"argmin": torch.argmin, "argmax": torch.argmax}.items():
        for i, (shape, dim, keep) in enumerate([((4, 9, 3), 1, False), ((3, 40), -1, True)]):
            x = (cases.draw(*shape) * 4).round()  # the first of several equal elements
            cases.add_choice(f"{name}.{i}", function(x, dim, keep), {"x": x}, (dim, keep))
    cases.add_choice("one_hot.0", F.one_hot(j + 5, 11), {"x": j + 5}, (11,))
    x = cases.draw(3, 4)
    x[0, 1], x[1, 0], x[2, 3] = torch.nan, torch.inf, -torch.inf
    cases.add_choice("isnan.0", torch.isnan(x), {"x": x})
    cases.add_choice("isfinite.0", torch.isfinite(x), {"x": x})
    cases.add("masked_fill.0", lambda x: x.masked_fill(mask.bool(), -1.5), {"x": cases.draw(3, 4, 6)}, (-1.5,), {"mask": mask})
    cases.add("where.0", lambda a, b: torch.where(mask.bool(), a, b), {"a": cases.draw(3, 4, 6), "b": cases.draw(6)}, (0,),
              {"mask": mask})
    cases.add("where.1", lambda a: torch.where(mask.bool(), a, 0.5), {"a": cases.draw(4, 6)}, (1, 0.5), {"mask": mask})
    cases.add("where.2", lambda b: torch.where(mask.bool(), 0.5, b), {"b": cases.draw(4, 6)}, (2, 0.5), {"mask": mask})
    cases.add("gather.0", lambda x: torch.gather(x, 1, wide.expand(2, 3) + 1), {"x": cases.draw(2, 4)}, (1,),
              {"index": wide.expand(2, 3) + 1})
    for i, (shape, count, dim) in enumerate([((7, 2), 3, 0), ((2, 8), 4, -1)]):
        cases.add(f"chunk.{i}", lambda x: torch.cat(torch.chunk(x, count, dim)[::-1], dim), {"x": cases.draw(*shape)},
                  (count, dim))
    cases.add("split.0", lambda x: torch.cat(torch.split(x, [2, 1, 3], 1)[::-1], 1), {"x": cases.draw(2, 6, 3)}, (2, 1, 3))


NORMS = ["backward", "ortho", "forward"]


def steady(x):
    """Matrices with singular values well apart: tests/ops/linalg.cpp."""
    d = torch.zeros(x.shape[-2:], dtype=x.dtype)
    k = min(d.shape)
    d[range(k), range(k)] = 2.0 * torch.arange(1, k + 1, dtype=x.dtype)
    return 0.2 * x + d


def symmetric(x):
    return (steady(x) + steady(x).mT) / 2


def fourier(cases):
    z, real, fft = torch.view_as_complex, torch.view_as_real, torch.fft
    for i, norm in enumerate(NORMS):
        for j, n in enumerate([6, 9]):
            cases.add(f"fft.{2 * i + j}", lambda x: real(fft.fft(z(x), n, 1, norm)), {"x": cases.draw(2, 7, 3, 2)}, (n, i))
            cases.add(f"ifft.{2 * i + j}", lambda x: real(fft.ifft(z(x), n, 1, norm)), {"x": cases.draw(2, 7, 3, 2)}, (n, i))
            cases.add(f"rfft.{2 * i + j}", lambda x: real(fft.rfft(x, n, 1, norm)), {"x": cases.draw(2, 7, 3)}, (n, i))
            cases.add(f"irfft.{2 * i + j}", lambda x: fft.irfft(z(x), n, 1, norm), {"x": cases.draw(2, 4, 3, 2)}, (n, i))
        for name, shape in {"fft2": (2, 3, 4, 2), "ifft2": (2, 3, 4, 2), "fftn": (2, 3, 4, 2), "ifftn": (2, 3, 4, 2)}.items():
            cases.add(f"{name}.{i}", lambda x: real(getattr(fft, name)(z(x), norm=norm)), {"x": cases.draw(*shape)}, (i,))
        for name in ("rfft2", "rfftn"):
            cases.add(f"{name}.{i}", lambda x: real(getattr(fft, name)(x, norm=norm)), {"x": cases.draw(2, 3, 4)}, (i,))
        for name in ("irfft2", "irfftn"):
            cases.add(f"{name}.{i}", lambda x: getattr(fft, name)(z(x), norm=norm), {"x": cases.draw(2, 3, 4, 2)}, (i,))
    cases.add("fftshift.0", fft.fftshift, {"x": cases.draw(3, 4)})
    cases.add("ifftshift.0", lambda x: fft.ifftshift(x, 0), {"x": cases.draw(3, 4)})
    x = cases.draw(1)
    cases.add("fftfreq.0", lambda x: x + fft.fftfreq(7, 0.5, dtype=x.dtype), {"x": x})
    cases.add("rfftfreq.0", lambda x: x + fft.rfftfreq(7, 0.5, dtype=x.dtype), {"x": x})
    pair = {"a": cases.draw(3, 3, 2), "b": cases.draw(3, 3, 2)}
    for i, op in enumerate([torch.add, torch.sub, torch.mul, torch.div, torch.matmul]):
        cases.add(f"complex.{i}", lambda a, b: real(op(z(a), z(b))), pair, (i,))
    cases.add("complex.5", lambda a, b: real(torch.exp(z(a)) * z(b).conj()), pair, (5,))
    cases.add("complex.6", lambda a, b: torch.stack([z(a).abs(), z(a).real, z(b).imag]), pair, (6,))
    cases.add("polar.0", lambda a, b: real(torch.polar(a, b)), {"a": cases.draw(3, 4).abs(), "b": cases.draw(3, 4)})


def linear_algebra(cases):
    linalg = torch.linalg

    def svd(x):
        u, s, vh = linalg.svd(steady(x), full_matrices=False)
        return torch.cat([u.square().flatten(), s.flatten(), vh.square().flatten()])

    def eigh(x):
        w, v = linalg.eigh(symmetric(x))
        return torch.cat([w.flatten(), v.square().flatten()])

    def qr(x):
        q, r = linalg.qr(steady(x))
        return (q.square() @ r.square()).flatten()
    for i, shape in enumerate([(2, 4, 3), (3, 5), (3, 3)]):
        cases.add(f"svd.{i}", svd, {"x": cases.draw(*shape)})
        cases.add(f"svdvals.{i}", lambda x: linalg.svdvals(steady(x)), {"x": cases.draw(*shape)})
        cases.add(f"pinv.{i}", lambda x: linalg.pinv(steady(x)), {"x": cases.draw(*shape)})
        cases.add(f"lstsq.{i}", lambda a, b: linalg.lstsq(steady(a), b).solution,
                  {"a": cases.draw(*shape), "b": cases.draw(*shape[:-1], 2)})
        for j, order in enumerate(["fro", "nuc", 2, 1, math.inf]):
            cases.add(f"matrix_norm.{5 * i + j}", lambda x: linalg.matrix_norm(steady(x), order), {"x": cases.draw(*shape)}, (j,))
        if shape != (3, 5):  # PyTorch has no gradient of a wide qr
            cases.add(f"qr.{i}", qr, {"x": cases.draw(*shape)})
    for i, shape in enumerate([(2, 4, 4), (3, 3)]):
        cases.add(f"eigh.{i}", eigh, {"x": cases.draw(*shape)})
        cases.add(f"eigvalsh.{i}", lambda x: linalg.eigvalsh(symmetric(x)), {"x": cases.draw(*shape)})
        cases.add(f"cholesky.{i}", lambda x: linalg.cholesky(symmetric(x)), {"x": cases.draw(*shape)})
        cases.add(f"inverse.{i}", lambda x: linalg.inv(steady(x)), {"x": cases.draw(*shape)})
        cases.add(f"det.{i}", lambda x: linalg.det(steady(x)), {"x": cases.draw(*shape)})
        cases.add(f"slogdet.{i}", lambda x: linalg.slogdet(steady(x)).logabsdet, {"x": cases.draw(*shape)})
        pair = {"a": cases.draw(*shape), "b": cases.draw(shape[-1], 2)}
        cases.add(f"solve.{i}", lambda a, b: linalg.solve(steady(a), b), pair)
        cases.add(f"triangular_solve.{i}", lambda a, b: linalg.solve_triangular(steady(a), b, upper=i == 1), pair, (i,))
    for i, order in enumerate([2, 3, 1, math.inf, -math.inf]):
        cases.add(f"vector_norm.{i}", lambda x: linalg.vector_norm(x, order, 1), {"x": cases.draw(3, 4)}, (order,))


def composed(cases):
    cases.add("cumprod.0", lambda x: torch.cumprod(x, 1), {"x": cases.draw(3, 7, 2, shift=0.3)})
    cases.add("cdist.0", torch.cdist, {"a": cases.draw(2, 3, 4), "b": cases.draw(2, 5, 4)})
    cases.add("median.0", torch.median, {"x": cases.draw(4, 6)}, (0,))
    cases.add("median.1", lambda x: torch.median(x, 1).values, {"x": cases.draw(4, 7)}, (1,))
    for i, q in enumerate([0, 0.31, 1]):
        cases.add(f"quantile.{i}", lambda x: torch.quantile(x, q, 1, True), {"x": cases.draw(4, 6)}, (q,))
    x = cases.draw(40)
    cases.add_choice("histogram.0", torch.histc(x, 5, -1, 1), {"x": x})
    cases.add("repeat_interleave.0", lambda x: x.repeat_interleave(3, 1), {"x": cases.draw(3, 4)})
    counts = torch.tensor([2, 0, 3, 1])
    cases.add("repeat_interleave.1", lambda x: x.repeat_interleave(counts, 0), {"x": cases.draw(4, 3)}, (), {"counts": counts})
    cases.add("diagonal.0", lambda x: torch.diagonal(x, 1, -2, -1), {"x": cases.draw(2, 4, 5)}, (1,))
    cases.add("diagonal.1", lambda x: torch.diagonal(x, -2, -2, -1), {"x": cases.draw(4, 5)}, (-2,))
    for i, offset in enumerate([0, 2, -1]):
        cases.add(f"diag_embed.{i}", lambda x: torch.diag_embed(x, offset), {"x": cases.draw(2, 4)}, (offset,))
        cases.add(f"diag.{i}", lambda x: torch.diag(x, offset), {"x": cases.draw(*[(4,), (3, 5), (5,)][i])}, (offset,))
    cases.add("meshgrid.0", lambda a, b: torch.stack(torch.meshgrid(a, b, indexing="ij")), {"a": cases.draw(3), "b": cases.draw(4)})
    index = torch.tensor([[0, 1, 1, 3, 0], [2, 2, 2, 3, 0], [0, 0, 0, 0, 0]])
    for i, reduce in enumerate(["sum", "mean", "amax", "amin"]):
        for keep in (True, False):  # without x PyTorch shares the gradient with elements of x that tie: there are none
            cases.add(f"scatter_reduce.{2 * i + keep}",
                      lambda a, b: a.scatter_reduce(1, index, b, reduce, include_self=keep),
                      {"a": (cases.draw(3, 4) * 2).round() if i > 1 and keep else cases.draw(3, 4),
                       "b": (cases.draw(3, 5) * 2).round() if i > 1 else cases.draw(3, 5)}, (i, keep), {"index": index})
    for i, mode in enumerate(["reflect", "replicate", "circular"]):
        cases.add(f"pad.{i}", lambda x: F.pad(x, (3, 2), mode), {"x": cases.draw(2, 5)}, (i,))
    cases.add("pixel_shuffle.0", lambda x: nhwc(F.pixel_shuffle(nchw(x), 2)), {"x": cases.draw(2, 2, 3, 8)})
    cases.add("pixel_unshuffle.0", lambda x: nhwc(F.pixel_unshuffle(nchw(x), 2)), {"x": cases.draw(2, 4, 6, 2)})
    window = {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}

    def unfolded(x):  # [N, C R S, P Q] as [N, P Q, R S C]
        y = F.unfold(nchw(x), **window)
        return y.unflatten(1, (3, 6)).permute(0, 3, 2, 1).flatten(2)
    cases.add("unfold.0", unfolded, {"x": cases.draw(2, 5, 6, 3)})
    cases.add("fold.0", lambda x: nhwc(F.fold(x.unflatten(2, (6, 3)).permute(0, 3, 2, 1).flatten(1, 2), (5, 6), **window)),
              {"x": cases.draw(2, 12, 18)})
    for i, (nearest, border, corners) in enumerate([(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1)]):
        cases.add(f"grid_sample.{i}",
                  lambda a, b: nhwc(F.grid_sample(nchw(a), b, ["bilinear", "nearest"][nearest], ["zeros", "border"][border],
                                                  bool(corners))),
                  {"a": cases.draw(2, 5, 6, 3), "b": cases.draw(2, 3, 4, 2)}, (nearest, border, corners))
    for dims, move in {1: (0, 2, 1), 3: (0, 4, 1, 2, 3)}.items():
        back = (0, 2, 1) if dims == 1 else (0, 2, 3, 4, 1)
        kernel, padding = (3, 1) if dims == 1 else ((2, 3, 2), (1, 1, 0))
        shape = (2, 9, 3) if dims == 1 else (2, 5, 6, 4, 3)
        pool = {"max": getattr(F, f"max_pool{dims}d"), "avg": getattr(F, f"avg_pool{dims}d")}
        cases.add(f"max_pool{dims}d.0", lambda x: pool["max"](x.permute(move), kernel, 2, padding).permute(back),
                  {"x": cases.draw(*shape)})
        for include in ((True,) if dims == 1 else (True, False)):
            cases.add(f"avg_pool{dims}d.{int(include)}",
                      lambda x: pool["avg"](x.permute(move), kernel, 2, padding, count_include_pad=include).permute(back),
                      {"x": cases.draw(*shape)}, (include,))
        size = 4 if dims == 1 else (2, 1, 3)
        cases.add(f"adaptive_avg_pool{dims}d.0",
                  lambda x: getattr(F, f"adaptive_avg_pool{dims}d")(x.permute(move), size).permute(back),
                  {"x": cases.draw(*shape)})
    cases.add("conv_transpose1d.0",
              lambda x, w, b: F.conv_transpose1d(x.permute(0, 2, 1), w.permute(0, 2, 1), b, 2, 1, 1, 2).permute(0, 2, 1),
              {"x": cases.draw(2, 5, 4), "w": cases.draw(4, 3, 3), "b": cases.draw(6)})
    cases.add("conv_transpose3d.0",
              lambda x, w, b: F.conv_transpose3d(x.permute(0, 4, 1, 2, 3), w.permute(0, 4, 1, 2, 3), b, (2, 1, 2), (1, 1, 0),
                                                 (1, 0, 1), 2).permute(0, 2, 3, 4, 1),
              {"x": cases.draw(2, 3, 2, 3, 4), "w": cases.draw(4, 2, 3, 2, 3), "b": cases.draw(6)})
    for i, reduction in enumerate(["mean", "sum", "none"]):
        cases.add(f"huber_loss.{i}", lambda a, b: F.huber_loss(a, b, reduction, 0.7), {"a": cases.draw(3, 7), "b": cases.draw(3, 7)},
                  (i,))
        cases.add(f"gaussian_nll_loss.{i}", lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=i == 1, reduction=reduction),
                  {"a": cases.draw(3, 7), "b": cases.draw(3, 7), "v": cases.draw(3, 7).abs() + 0.1}, (i, i == 1))
        target, steps, classes = torch.tensor([[1, 2, 2], [4, 3, 0], [1, 0, 0]]), torch.tensor([9, 7, 4]), torch.tensor([3, 2, 1])
        cases.add(f"ctc_loss.{i}",
                  lambda x: F.ctc_loss(x.log_softmax(2), target, steps, classes, blank=5 * (i == 1), reduction=reduction),
                  {"x": cases.draw(9, 3, 6)}, (i, 5 * (i == 1)), {"target": target, "in": steps, "out": classes})
    for i, dim in enumerate([0, -1]):
        cases.add(f"normalize.{i}", lambda x: F.normalize(x, dim=dim), {"x": cases.draw(3, 7)}, (dim,))
    cases.add("cosine_similarity.0", F.cosine_similarity, {"a": cases.draw(3, 7, 2), "b": cases.draw(3, 7, 2)})
    target = torch.tensor([1, -1, 1, -1])
    cases.add("cosine_embedding_loss.0", lambda a, b: F.cosine_embedding_loss(a, b, target, 0.1),
              {"a": cases.draw(4, 3), "b": cases.draw(4, 3)}, (), {"target": target})
    cases.add("einsum_ellipsis.0", lambda a, b: torch.einsum("...ij,...jk", a, b),
              {"a": cases.draw(2, 1, 3, 4), "b": cases.draw(5, 4, 2)})
    cases.add("einsum_diagonal.0", lambda a, b: torch.einsum("iji,ik->jk", a, b), {"a": cases.draw(4, 3, 4), "b": cases.draw(4, 2)})
    for i, (shape, causal) in enumerate([((2, 2, 4, 5), 0), ((4, 5), 1)]):
        hidden = torch.ones(4, 5, dtype=torch.bool).triu(1) if causal else torch.zeros(4, 5, dtype=torch.bool)
        cases.add(f"attention_bias.{i}",
                  lambda q, k, v, bias: F.scaled_dot_product_attention(
                      *(x.transpose(1, 2) for x in (q, k, v)), bias.masked_fill(hidden, -math.inf)).transpose(1, 2),
                  {"q": cases.draw(2, 4, 2, 3), "k": cases.draw(2, 5, 2, 3), "v": cases.draw(2, 5, 2, 3),
                   "bias": cases.draw(*shape)}, (causal,))


def all_cases():
    cases = Cases()
    for part in (convolutions, batch_norms, pools, products, norms_and_softmax, losses, elementwise, reductions,
                 attentions, rms_norms, transposed_convolutions, more_ops, order_and_choice, rotaries,
                 decoder_attentions, composed, fourier, linear_algebra):
        part(cases)
    return cases.tensors
