#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_models.py [--device cpu] [--dtype f32] [--programs 150] [--seed 1] COMMAND…: random models, trained for some steps with random losses,
optimizers and schedules, saved and resumed on the way, have PyTorch's outputs, gradients, weights and states. COMMAND is
build/bin/run_models. How far a result may be off is measured: PyTorch runs each program again with small random errors after
each module. Ends with 77 where Python has no PyTorch."""
import atexit
import math
import os
import shutil
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../ops"), os.path.join(HERE, "../golden")]
from random_programs import Drawn, main  # ends with 77 without PyTorch

import torch
import torch.nn.functional as F
from optimizers import LAMB, LARS, Lion
from paper_models import LayerScale, Mlp, SwiGlu
from torch import nn, optim
from torch.optim import lr_scheduler
from torch.optim.swa_utils import get_ema_multi_avg_fn

warnings.filterwarnings("ignore")
FOLDER = tempfile.mkdtemp(prefix="random_models.")
atexit.register(shutil.rmtree, FOLDER)
MOST_ELEMENTS = 300  # of one example
RUNS = 2  # that measure
COARSE = 2.0**24
UNITS = {"f64": 2.0**-53, "f32": 2.0**-24}
ALLOWED = 500  # times the measured error


def node(name, *numbers, parts=()):
    return " ".join(map(str, [name, len(numbers), *(x if isinstance(x, float) else int(x) for x in numbers), len(parts), *parts]))


# Modules with the names of Weft's.

def last(x):
    return x.movedim(1, -1)


def first(x):
    return x.movedim(-1, 1)


def adapted(cls, kind, wants_last):
    """`cls` for inputs of this kind: tokens have their channels last, images first."""
    if kind == "vector" or (kind == "tokens") == wants_last:
        return cls
    before, after = (last, first) if wants_last else (first, last)
    return type(cls.__name__, (cls,), {"forward": lambda self, x: after(cls.forward(self, before(x)))})


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Around(nn.Module):
    def __init__(self, body, function):
        super().__init__()
        self.body, self.function = body, function

    def forward(self, x):
        return self.function(self.body, x)


class Branches(nn.Module):
    def __init__(self, a, b, dim):
        super().__init__()
        self.a, self.b, self.dim = a, b, dim

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x)], self.dim)


class ConvNorm(nn.Module):
    def __init__(self, conv, bn, relu, residual):
        super().__init__()
        self.conv, self.bn, self.relu, self.residual = conv, bn, relu, residual

    def forward(self, x):
        y = self.bn(self.conv(x))
        y = y + x if self.residual else y
        return y.relu() if self.relu else y


class PatchEmbed(nn.Module):
    def __init__(self, patch, channels, width):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """nn.MultiheadAttention's function with weights of Weft's names."""

    def __init__(self, width, heads, bias=True, dropout=0.0, causal=False, lengths=False, mask=False):
        super().__init__()
        self.heads, self.dropout, self.causal, self.lengths, self.mask = heads, dropout, causal, lengths, mask
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)

    def forward(self, x):
        n, t, width = x.shape
        b, j = torch.arange(n)[:, None], torch.arange(t)[None, :]
        hidden = torch.zeros(n, t, dtype=torch.bool)
        if self.lengths:
            hidden |= j > b % t
        if self.mask:
            hidden |= (j > 0) & ((b + j) % 3 == 0)
        y, _ = F.multi_head_attention_forward(
            *[x.transpose(0, 1)] * 3, width, self.heads, self.qkv.weight, self.qkv.bias, None, None, False, self.dropout, self.proj.weight,
            self.proj.bias, self.training, hidden if self.lengths or self.mask else None, False,
            torch.ones(t, t, dtype=torch.bool).triu(1) if self.causal else None)
        return y.transpose(0, 1)


class Block(nn.Module):
    def __init__(self, width, heads, hidden, swiglu, scale, eps):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps), Attention(width, heads)
        self.ls1 = LayerScale(width) if scale else nn.Identity()
        self.norm2, self.mlp = nn.LayerNorm(width, eps), (SwiGlu if swiglu else Mlp)(width, hidden)
        self.ls2 = LayerScale(width) if scale else nn.Identity()

    def forward(self, x):
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


def recurrent(cls):
    class FromStates(cls):
        from_states = False

        def forward(self, x):
            if not self.from_states:
                return super().forward(x)[0]
            directions = 2 if self.bidirectional else 1
            h = torch.full((self.num_layers * directions, x.shape[0 if self.batch_first else 1], self.hidden_size), 0.25, dtype=x.dtype)
            y, after = super().forward(x, (h, h) if cls is nn.LSTM else h)
            after = sum(after).sum(0) if cls is nn.LSTM else after.sum(0)
            return y + torch.cat([after] * directions, -1).unsqueeze(1 if self.batch_first else 0)

    return FromStates


class Tied(nn.Module):
    def __init__(self, count, size, body):
        super().__init__()
        self.embedding, self.body = nn.Embedding(count, size), body

    def forward(self, x):
        return self.body(self.embedding(x)) @ self.embedding.weight.T


ACTIVATIONS = {"relu": nn.ReLU, "silu": nn.SiLU, "softplus": nn.Softplus, "mish": nn.Mish, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
BATCH_NORMS = {"vector": nn.BatchNorm1d, "tokens": nn.BatchNorm1d, "line": nn.BatchNorm1d, "image": nn.BatchNorm2d, "volume": nn.BatchNorm3d}
INSTANCE_NORMS = {"tokens": nn.InstanceNorm1d, "line": nn.InstanceNorm1d, "image": nn.InstanceNorm2d, "volume": nn.InstanceNorm3d}
CONVS = {"line": nn.Conv1d, "image": nn.Conv2d, "volume": nn.Conv3d}
KINDS = {2: "vector", 3: "line", 4: "image", 5: "volume"}


class Layers:
    """Draws layers: each method returns a module and its node for Weft, and perhaps the new kind, or None where the
    input does not suit it. A shape has no batch; tokens are [T, C], all else has its channels first."""

    def chance(self, p):
        return self.random.random() < p

    def some(self, low, high, count):
        return [self.random.randint(low, high) for _ in range(count)]

    def eps(self):
        return self.random.choice([1e-5, 1e-6, 1e-3, 0.1])

    def layer_linear(self, kind, c, _shape):
        out, bias = self.random.randint(1, 6), self.chance(0.8)
        return adapted(nn.Linear, kind, True)(c, out, bias), node("linear", c, out, bias)

    def conv_numbers(self, kind, c, shape):
        rank = len(shape) - 1
        groups = self.random.choice([g for g in range(1, c + 1) if c % g == 0])
        out, bias = groups * self.random.randint(1, 3 if groups < 3 else 1), self.chance(0.8)
        return rank, groups, out, bias, self.some(1, 3, rank), self.some(1, 2, rank), self.some(0, 2, rank), self.some(1, 2, rank)

    def layer_conv(self, kind, c, shape):
        if kind in CONVS:
            rank, groups, out, bias, k, s, p, d = self.conv_numbers(kind, c, shape)
            return CONVS[kind](c, out, k, s, p, d, groups, bias), node(f"conv{rank}d", c, out, groups, bias, *k, *s, *p, *d)

    def layer_conv_transpose(self, kind, c, shape):
        if kind == "image":
            _, groups, out, bias, k, s, p, d = self.conv_numbers(kind, c, shape)
            more = [self.random.randint(0, a - 1) for a in s]
            return (nn.ConvTranspose2d(c, out, k, s, p, more, groups, bias, d),
                    node("conv_transpose2d", c, out, groups, bias, *k, *s, *p, *d, *more))

    def layer_patches(self, kind, c, shape):
        fit = [p for p in (1, 2, 3) if kind == "image" and shape[1] % p == shape[2] % p == 0]
        if fit:
            patch, width = self.random.choice(fit), self.random.choice([2, 4, 6])
            return PatchEmbed(patch, c, width), node("patch_embed", patch, c, width), "tokens"

    def batch_norm(self, kind, c):
        eps, momentum, affine, track = self.eps(), self.random.choice([0.1, 0.3, 1.0]), self.chance(0.8), self.chance(0.8)
        return (adapted(BATCH_NORMS[kind], kind, False)(c, eps, momentum, affine, track),
                node("batch_norm", c, eps, momentum, affine, track, kind not in ("vector", "image")))

    def layer_batch_norm(self, kind, c, _shape):
        return self.batch_norm(kind, c)

    def layer_layer_norm(self, kind, c, _shape):
        if c == 1:  # 0 but for rounding
            return None
        eps, (cls, name) = self.eps(), self.random.choice([(nn.LayerNorm, "layer_norm"), (nn.RMSNorm, "rms_norm")])
        return adapted(cls, kind, True)(c, eps), node(name, c, eps)

    def layer_group_norm(self, kind, c, shape):
        groups, eps = self.random.choice([g for g in range(1, c + 1) if c % g == 0]), self.eps()
        if math.prod(shape) > groups:
            return adapted(nn.GroupNorm, kind, False)(groups, c, eps), node("group_norm", groups, c, eps)

    def layer_instance_norm(self, kind, c, shape):
        if kind in INSTANCE_NORMS and math.prod(shape) > c:
            eps, affine = self.eps(), self.chance(0.5)
            return adapted(INSTANCE_NORMS[kind], kind, False)(c, eps, affine=affine), node("instance_norm", c, eps, affine)

    def layer_pool(self, kind, _c, shape):
        k, s, ceil, pad = self.some(1, 3, 2), self.random.choice([[0, 0], self.some(1, 3, 2)]), self.chance(0.5), self.chance(0.5)
        p = [self.random.randint(0, side // 2) for side in k]
        if kind == "image" and all(a <= b + 2 * c for a, b, c in zip(k, shape[1:], p)):
            stride = [a or b for a, b in zip(s, k)]
            name, module = self.random.choice([("max_pool2d", nn.MaxPool2d(k, stride, p, ceil_mode=ceil)),
                                               ("avg_pool2d", nn.AvgPool2d(k, stride, p, ceil, pad))])
            return module, node(name, *k, *s, *p, pad, ceil)

    def layer_adaptive(self, kind, _c, _shape):
        if kind == "image":
            size = self.some(1, 5, 2)
            return nn.AdaptiveAvgPool2d(size), node("adaptive_avg_pool2d", *size)

    def layer_upsample(self, kind, _c, _shape):
        if kind == "image":
            mode = self.random.choice(["nearest", "bilinear", "bicubic"])
            corners = mode != "nearest" and self.chance(0.5)
            by_size = self.chance(0.5)
            to = self.some(1, 8, 2) if by_size else [self.random.choice([0.6, 1.0, 1.5, 1.7, 2.0, 3.0]) for _ in range(2)]
            size = {"size" if by_size else "scale_factor": tuple(to)}
            module = nn.Upsample(**size, mode=mode, align_corners=None if mode == "nearest" else corners)
            return module, node("upsample", ["nearest", "bilinear", "bicubic"].index(mode), corners, by_size, *to)

    def layer_activation(self, _kind, _c, _shape):
        slope, tanh = self.random.choice([0.01, 0.3]), self.chance(0.5)
        name, module, *numbers = self.random.choice([
            *((name, cls()) for name, cls in ACTIVATIONS.items()), ("leaky_relu", nn.LeakyReLU(slope), slope),
            ("elu", nn.ELU(2 * slope), 2 * slope), ("gelu", nn.GELU("tanh" if tanh else "none"), tanh)])
        return module, node(name, *numbers)

    def layer_dropout(self, _kind, _c, _shape):
        p = 0.4 if self.evaluates else 0.0
        return self.random.choice([(nn.Dropout(p), node("dropout", p)), (nn.Identity(), node("drop_path", p))])

    def layer_flatten(self, kind, _c, _shape):
        if kind in ("image", "volume", "tokens"):
            return nn.Flatten(), node("flatten"), "vector"

    def layer_tokens(self, kind, _c, _shape):
        if kind in ("line", "image", "volume"):
            return Function(lambda x: x.flatten(2).transpose(1, 2)), node("tokens"), "tokens"

    def layer_line(self, kind, _c, _shape):
        if kind == "tokens":
            return Function(first), node("identity"), "line"

    def layer_mean(self, kind, _c, _shape):
        if kind != "vector":
            return Function(lambda x: x.mean(1) if kind == "tokens" else x.flatten(2).mean(2)), node("mean"), "vector"

    def layer_mlp(self, kind, c, _shape):
        hidden = self.random.randint(1, 6)
        cls, name = self.random.choice([(Mlp, "mlp"), (SwiGlu, "swiglu")])
        return adapted(cls, kind, True)(c, hidden), node(name, c, hidden)

    def layer_scale(self, kind, c, _shape):
        return adapted(LayerScale, kind, True)(c), node("layer_scale", c)

    def layer_attention(self, kind, c, _shape):
        if kind == "tokens":
            heads, bias, dropout = self.random.choice([h for h in (1, 2, 3, 4) if c % h == 0]), self.chance(0.8), 0.3 if self.evaluates else 0.0
            masks = [self.chance(0.4) for _ in range(3)]
            return Attention(c, heads, bias, dropout, *masks), node("attention", c, heads, bias, dropout, *masks)

    def layer_block(self, kind, c, _shape):
        if kind == "tokens":
            heads, hidden = self.random.choice([h for h in (1, 2, 3, 4) if c % h == 0]), self.random.randint(1, 8)
            swiglu, scale, eps = self.chance(0.5), self.chance(0.5), self.eps()
            return Block(c, heads, hidden, swiglu, scale, eps), node("block", c, heads, hidden, swiglu, float(scale), eps)

    def layer_recurrent(self, kind, c, _shape):
        if kind == "tokens":
            name, cls = self.random.choice([("lstm", nn.LSTM), ("gru", nn.GRU)])
            hidden, layers = self.random.randint(1, 5), self.random.randint(1, 3)
            bias, batch_first, both, states = (self.chance(0.5) for _ in range(4))
            dropout = 0.3 if self.evaluates and layers > 1 else 0.0
            module = recurrent(cls)(c, hidden, layers, bias, batch_first, dropout, both)
            module.from_states = states
            return module, node(name, c, hidden, layers, bias, batch_first, dropout, both, states)

    def layer_weight_norm(self, kind, c, shape):
        inner = self.layer_conv(kind, c, shape) if kind == "image" else self.layer_linear(kind, c, shape) if kind in ("vector", "tokens") else None
        if inner:
            return nn.utils.weight_norm(inner[0]), node("weight_norm2d" if kind == "image" else "weight_norm", parts=[inner[1]])

    def layer_residual(self, kind, c, shape):
        body = self.body(kind, shape, self.random.randint(1, 3), same=True)
        name, function = self.random.choice([("residual", lambda body, x: x + body(x)), ("residual", lambda body, x: x + body(x)),
                                             ("unused", lambda body, x: x)])
        return Around(body[0], function), node(name, parts=[body[1]])

    def layer_recomputed(self, kind, _c, shape):
        module, text, new_kind, _ = self.body(kind, shape, self.random.randint(1, 3))
        return Around(module, lambda body, x: body(x)), node("recomputed", parts=[text]), new_kind

    def layer_branches(self, kind, _c, shape):
        a, b = (self.body(kind, shape, self.random.randint(1, 2), same=True) for _ in range(2))
        return Branches(a[0], b[0], -1 if kind == "tokens" else 1), node("branches", parts=[a[1], b[1]])

    def layer_conv_norm(self, kind, c, shape):
        if kind == "image":
            conv = self.layer_conv(kind, c, shape)
            bn = self.batch_norm(kind, conv[0].out_channels)
            relu, residual = self.chance(0.5), self.size_of(conv[0], kind, shape) == list(shape)
            return ConvNorm(conv[0], bn[0], relu, residual), node("conv_norm", relu, residual, parts=[conv[1], bn[1]])

    def size_of(self, module, kind, shape):
        """The sizes of module's result without a batch; None where the input is too small."""
        training = module.training
        try:
            with torch.no_grad():
                example = torch.zeros(2, *shape, dtype=torch.long if kind == "ids" else torch.float32)
                return list(module.eval()(example).shape[1:])
        except (RuntimeError, ValueError):
            return None
        finally:
            module.train(training)

    def body(self, kind, shape, count, same=False):
        """Some layers one after the other: module, node, kind, shape; `same`: of the input's kind and sizes."""
        makers = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("layer_")]
        if self.depth >= 2:
            makers = [m for m in makers if m.__name__ not in ("layer_residual", "layer_recomputed", "layer_branches")]
        self.depth += 1
        modules, nodes, begin = [], [], (kind, list(shape))
        while len(modules) < count:
            drawn = self.random.choice(makers)(kind, shape[-1] if kind == "tokens" else shape[0], shape)
            if not drawn:
                continue
            module, text, new_kind = (*drawn, kind)[:3]
            size = self.size_of(module, kind, shape)
            if not size or 0 in size or math.prod(size) > MOST_ELEMENTS or (same and (new_kind, size) != begin):
                continue
            modules.append(module)
            nodes.append(text)
            kind, shape = new_kind, size
        self.depth -= 1
        return nn.Sequential(*modules), node("sequential", parts=nodes), kind, shape

    def model(self):
        """As body(), with the input's kind and sizes in front."""
        self.depth = 0
        kind = self.random.choice(["vector", "tokens", "line", "image", "image", "volume", "ids"])
        shape = {"vector": [self.random.randint(1, 6)], "tokens": [self.random.randint(1, 5), self.random.choice([2, 3, 4, 6])],
                 "line": self.some(1, 6, 2), "image": [self.random.randint(1, 6), *self.some(2, 7, 2)],
                 "volume": [self.random.randint(1, 4), *self.some(1, 4, 3)], "ids": [self.random.randint(1, 5)]}[kind]
        count = self.random.randint(2, 7)
        if kind != "ids":
            return kind, shape, *self.body(kind, shape, count)
        self.words, size = self.random.randint(2, 7), self.random.choice([1, 2, 4, 6])
        padding = self.random.randint(-1, self.words - 1)
        how = self.random.randrange(3)
        if how == 0:
            body = self.body("tokens", [*shape, size], count, same=True)
            return kind, shape, Tied(self.words, size, body[0]), node("tied", self.words, size, parts=[body[1]]), "tokens", [*shape, self.words]
        if how == 1:
            module, text = nn.Embedding(self.words, size, padding if padding >= 0 else None), node("embedding", self.words, size, padding)
            rest = self.body("tokens", [*shape, size], count)
        else:
            mode = self.random.randrange(3)
            module = nn.EmbeddingBag(self.words, size, mode=["sum", "mean", "max"][mode], padding_idx=padding if padding >= 0 else None)
            text = node("embedding_bag", self.words, size, mode, padding)
            rest = self.body("vector", [size], count)
        return kind, shape, nn.Sequential(module, rest[0]), node("sequential", parts=[text, rest[1]]), *rest[2:]


class Rules:
    """Draws optimizers and schedules: what makes PyTorch's, and the node of Weft's."""

    def log_uniform(self, low, high):
        return 10 ** self.random.uniform(low, high)

    def decay(self):
        return self.random.choice([0.0, 0.01, 0.1, 0.5])

    def optimizer(self, has_convolutions):
        kinds = ["sgd", "sgd", "adam", "adamw", "adagrad", "adadelta", "rmsprop", "lion", "lars", "lamb"]
        if self.dtype == "f32":  # whose rounding decides whether a gradient is 0
            kinds = kinds[:-3]
        kind = self.random.choice(kinds if has_convolutions else [*kinds, "adafactor"])
        decay, maximize, eps = self.decay(), self.chance(0.2), self.random.choice([1e-8, 1e-6, 1e-3] if self.dtype == "f64" else [1e-3])
        betas = (self.random.choice([0.5, 0.9]), self.random.choice([0.6, 0.99, 0.999]))
        lr, momentum = self.log_uniform(-3.5, -1.2), self.random.choice([0.0, 0.5, 0.9])
        if kind == "sgd":
            nesterov = momentum > 0 and self.chance(0.5)
            dampening = 0.0 if nesterov else self.random.choice([0.0, 0.3])
            return (lambda p: optim.SGD(p, lr, momentum, dampening, decay, nesterov, maximize=maximize),
                    ("sgd", lr, momentum, dampening, nesterov, decay, maximize))
        if kind in ("adam", "adamw"):
            amsgrad, cls = self.chance(0.4), optim.Adam if kind == "adam" else optim.AdamW
            return (lambda p: cls(p, lr, betas, eps, decay, amsgrad, maximize=maximize), (kind, lr, *betas, eps, decay, maximize, amsgrad))
        if kind == "adagrad":
            lr_decay, start = self.random.choice([0.0, 0.3]), self.random.choice([0.0, 0.5])
            return (lambda p: optim.Adagrad(p, lr, lr_decay, decay, start, eps, maximize=maximize), (kind, lr, lr_decay, decay, start, eps, maximize))
        if kind == "adadelta":
            rho = self.random.choice([0.5, 0.9])
            return lambda p: optim.Adadelta(p, lr, rho, eps, decay, maximize=maximize), (kind, lr, rho, eps, decay, maximize)
        if kind == "rmsprop":
            alpha, centered, eps = self.random.choice([0.6, 0.99]), self.chance(0.4), max(eps, 1e-6)
            return (lambda p: optim.RMSprop(p, lr, alpha, eps, decay, momentum, centered, maximize=maximize),
                    (kind, lr, alpha, eps, decay, momentum, centered, maximize))
        if kind == "adafactor":
            eps1 = self.random.choice([-1.0, 1e-3]) if self.dtype == "f64" else 1e-3
            power, eps2, d = (self.random.choice(x) for x in ([-0.8, -0.5], [1e-3, 0.1], [1.0, 1.5]))
            first_eps = eps1 if eps1 > 0 else 2 * UNITS[self.dtype]
            return (lambda p: optim.Adafactor(p, lr, power, (first_eps, eps2), d, decay, maximize=maximize),
                    (kind, lr, power, eps1, eps2, d, decay, maximize))
        if kind == "lion":
            return lambda p: Lion(p, lr, betas, decay), (kind, lr, *betas, decay)
        always = self.chance(0.5)
        if kind == "lars":
            nesterov, trust = self.chance(0.5), self.random.choice([0.001, 0.05])
            return lambda p: LARS(p, lr, momentum, nesterov, decay, trust, eps, always), (kind, lr, momentum, nesterov, decay, trust, eps, always)
        clip = self.chance(0.5)
        return lambda p: LAMB(p, lr, betas, eps, decay, clip, always), (kind, lr, *betas, eps, decay, clip, always)

    def schedule(self, steps, depth=2):
        """PyTorch's of an optimizer, and the node; `steps`: the most that it makes; `depth`: 0 in a chain, 1 in a sequence."""
        r, gamma, size = self.random, self.random.choice([0.3, 0.9]), self.random.randint(1, 4)
        kinds = ["step", "multi_step", "exponential", "polynomial", "linear"]  # which a chain may have
        more = ["lambda", "cosine", "restarts", "one_cycle", "sequential", "chained", "plateau"]
        kind = r.choice(kinds + more[:[0, 3, 7][depth]])
        if kind == "step":
            return lambda o: lr_scheduler.StepLR(o, size, gamma), node(kind, size, gamma)
        if kind == "multi_step":
            milestones = sorted(self.some(1, 5, 2))
            return lambda o: lr_scheduler.MultiStepLR(o, milestones, gamma), node(kind, gamma, *milestones)
        if kind == "exponential":
            return lambda o: lr_scheduler.ExponentialLR(o, gamma), node(kind, gamma)
        if kind == "polynomial":
            power = r.choice([0.5, 1.0, 2.0])
            return lambda o: lr_scheduler.PolynomialLR(o, size, power), node(kind, size, power)
        if kind == "lambda":
            return lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + 0.5 * step)), node(kind)
        if kind == "linear":
            start, end = r.choice([0.1, 1 / 3, 1.0]), r.choice([0.5, 1.0])
            return lambda o: lr_scheduler.LinearLR(o, start, end, size), node(kind, size, start, end)
        if kind == "cosine":
            steps, end = r.randint(1, 8), r.choice([0.0, 1e-4])
            return lambda o: lr_scheduler.CosineAnnealingLR(o, steps, end), node(kind, steps, end)
        if kind == "restarts":
            factor, end = r.randint(1, 2), r.choice([0.0, 1e-4])
            return lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, size, factor, end), node(kind, size, factor, end)
        if kind == "one_cycle":
            most, total, rise, start = r.choice([0.05, 0.01]), steps + r.randint(1, 6), r.choice([0.3, 0.5]), r.choice([5.0, 25.0])
            linear, three = self.chance(0.5), self.chance(0.5)
            return (lambda o: lr_scheduler.OneCycleLR(o, most, total, pct_start=rise, anneal_strategy="linear" if linear else "cos",
                                                      cycle_momentum=False, div_factor=start, final_div_factor=100.0, three_phase=three),
                    node(kind, most, total, rise, start, 100.0, linear, three))
        if kind == "plateau":
            rising, patience, threshold, absolute, cooldown, least = map(r.choice, ([0, 1], [0, 1], [1e-4, 0.2], [0, 1], [0, 1], [0.0, 1e-3]))
            return (lambda o: lr_scheduler.ReduceLROnPlateau(o, ["min", "max"][rising], gamma, patience, threshold, ["rel", "abs"][absolute],
                                                             cooldown, least),
                    node(kind, rising, gamma, patience, threshold, absolute, cooldown, least))
        parts = [self.schedule(steps, int(kind == "sequential")) for _ in range(r.randint(2, 3))]
        nodes = [part[1] for part in parts]
        if kind == "chained":
            return lambda o: lr_scheduler.ChainedScheduler([make(o) for make, _ in parts]), node(kind, parts=nodes)
        milestones = sorted(r.sample(range(1, 6), len(parts) - 1))
        return lambda o: lr_scheduler.SequentialLR(o, [make(o) for make, _ in parts], milestones), node(kind, *milestones, parts=nodes)


class Training(Drawn, Layers, Rules):
    """A model and its training. `noise`: of a run in dtype that measures what errors do, relative random errors after each module."""

    def __init__(self, seed, dtype, noise=0.0):
        super().__init__(seed, dtype)
        self.type = torch.float32 if noise and dtype == "f32" else torch.float64
        self.noise, self.generator = noise, torch.Generator()
        self.generator.manual_seed(int(noise * 2**60))
        self.seed, self.files, self.bounds, self.scales, self.words = seed, [], {}, {}, 0
        self.evaluates = self.chance(0.15)  # never in training mode: dropout drops nothing
        self.steps = self.random.randint(3, 6)
        self.in_kind, self.in_shape, self.net, text, self.kind, _ = self.model_of_parameters()
        self.line(f"model 0 {text}")
        self.start()
        self.choose_rules()
        for step in range(self.steps):
            self.step(step)

    def line(self, text):
        self.lines.append(text)

    def model_of_parameters(self):
        while True:
            drawn = self.model()
            if any(True for _ in drawn[2].parameters()):
                return drawn

    def erred(self, x):
        if x is None:  # no gradient
            return x
        if not self.noise or not x.is_floating_point() or not x.numel():
            return x.contiguous()  # InstanceNorm2d's gradient is wrong where the one that comes in is not
        return x.contiguous() + self.noise * x.detach().abs().max() * torch.randn(x.shape, generator=self.generator, dtype=x.dtype)

    def err(self, tensors):
        """Each element in place."""
        if self.noise:
            with torch.no_grad():
                for x in tensors:
                    if x is not None and x.is_floating_point():
                        x.mul_(1 + self.noise * torch.randn(x.shape, generator=self.generator, dtype=x.dtype))

    def start(self):
        """Weights that are not at their usual beginnings, and Weft's copy of them."""
        self.net.to(self.type)
        with torch.no_grad():
            for p in self.net.parameters():
                if p.dim() <= 1:
                    p += 0.3 * torch.randn(p.shape)
                p.copy_(p.float())
            for name, b in self.net.named_buffers():
                if b.is_floating_point():
                    b.copy_(torch.randn(b.shape) if name.endswith("mean") else 0.5 + torch.rand(b.shape))
        file = f"{FOLDER}/{self.seed}.pt"
        if not self.noise:
            torch.save(self.net.state_dict(), file)
        self.line(f"load 0 {file}")
        self.err(self.net.parameters())

        def hook(_module, _inputs, y):
            y = self.erred(y)
            if y.requires_grad:
                y.register_hook(self.erred)
            return y
        for module in self.net.modules():
            module.register_forward_hook(hook)

    def choose_rules(self):
        parameters = list(self.net.parameters())
        numbers = list(range(len(parameters)))
        make, (name, *hyper) = self.optimizer(any(p.dim() > 2 for p in parameters))
        frozen = [i for i in numbers if self.chance(0.1)][:len(numbers) - 1]
        for i in frozen:
            parameters[i].requires_grad_(False)
        if frozen:
            self.line(f"freeze 0 {len(frozen)} " + " ".join(map(str, frozen)))
        self.trained = [p for p in parameters if p.requires_grad]
        self.random.shuffle(numbers)
        count = self.random.randint(1, min(3, len(self.trained)))
        members = [[] for _ in range(count)]
        trained = [i for i in numbers if i not in frozen]
        for k, i in enumerate([*trained, *frozen]):
            members[k % count].append(i)
        groups, nodes = [], []
        for own in members:
            lr, decay = self.random.choice([-1.0, self.log_uniform(-3, -1.5)]), self.random.choice([-1.0, -1.0, self.decay()])
            given = {key: x for key, x in (("lr", lr), ("weight_decay", decay)) if x >= 0}
            groups.append({"params": [parameters[i] for i in own], **given})
            nodes.append(node("group", lr, decay, *own))
        self.members, self.make_optimizer = members, make
        self.rule, self.scheduler, self.ema = make(groups), None, None
        self.name = name
        if self.chance(0.5):
            make, text = self.schedule(self.steps)
            self.scheduler = make(self.rule)
            self.line(f"schedule 0 {text}")
        if self.chance(0.4):
            self.decay_of_ema, self.warmup = self.random.choice([0.5, 0.9]), self.chance(0.5)
            self.line(f"ema 0 2 {self.decay_of_ema} {int(self.warmup)}")
            self.ema = [x.detach().clone() for x in self.averaged()]
        self.line("optimizer 0 " + node(name, *hyper, parts=nodes))

    def averaged(self):
        return [*self.net.parameters(), *(b for b in self.net.buffers() if b.is_floating_point())]

    # Training.

    def batch(self, count):
        if self.in_kind == "ids":
            number = self.positions([count, *self.in_shape], self.words)
            return number, self.tensors[number]
        shape = [count, *self.in_shape]
        weft = shape if self.in_kind in ("vector", "tokens") else [shape[0], *shape[2:], shape[1]]
        number = self.leaf(weft, self.random.choice(["leaf", "constant"]))
        x = self.tensors[number]
        return number, x if weft is shape else first(x)

    def run(self, how, count):
        number, x = self.batch(count)
        y = self.net(x)
        y = y if self.kind in ("vector", "tokens") else last(y)
        result = self.keep(y)
        self.line(f"{how} {result} 1 {number}")
        self.expected[f"value {result}"] = y.detach()
        return result, y

    def loss(self, number, y):
        name = self.random.choice(["cross_entropy", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div",
                                   "bce_with_logits", "triplet_margin_loss", "none"])
        reduction, rows, c = self.random.randrange(3), list(y.shape[:-1]), y.shape[-1]
        how = ["mean", "sum", "none"][reduction]
        if name == "none":
            return number
        if name in ("cross_entropy", "nll_loss"):
            smoothing, ignored = self.random.choice([0.0, 0.1, 0.5]), self.random.choice([-100, 0, c - 1])
            if name == "nll_loss" and y.dim() == 2:
                labels = self.positions(rows, c)
                ignored = -100 if bool((self.tensors[labels] == ignored).all()) else ignored
                loss = F.nll_loss(y.log_softmax(-1), self.tensors[labels], ignore_index=ignored, reduction=how)
                return self.op(name, loss, [number, labels], [reduction, 0, ignored])
            weights = [self.given("constant", torch.rand(c) + 0.1)] if self.chance(0.5) else []
            if self.chance(0.3):
                target, ignored = self.given("constant", torch.randn(y.shape).softmax(-1)), -100
                given = first(self.tensors[target])
            else:
                target = self.positions(rows, c)
                given = self.tensors[target]
                ignored = -100 if bool((given == ignored).all()) else ignored
            loss = F.cross_entropy(first(y), given, *(self.tensors[w] for w in weights), ignore_index=ignored, label_smoothing=smoothing,
                                   reduction=how)
            return self.op("cross_entropy", loss, [number, target, *weights], [reduction, smoothing, ignored])
        target = self.leaf(y.shape, "constant")
        t = self.tensors[target]
        if name == "bce_with_logits":
            weights = [self.given("constant", torch.rand(c) + 0.5)] if self.chance(0.5) else []
            positive = self.tensors[weights[0]] if weights else None
            loss = F.binary_cross_entropy_with_logits(y, t.sigmoid(), pos_weight=positive, reduction=how)
            return self.op(name, loss, [number, target, *weights], [reduction])
        if name == "triplet_margin_loss":
            negative, margin, swap = self.leaf(y.shape, "constant"), self.random.choice([0.3, 1.0]), self.chance(0.5)
            loss = F.triplet_margin_loss(y, t, self.tensors[negative], margin, swap=swap, reduction=how)
            return self.op(name, loss, [number, target, negative], [reduction, margin, swap])
        beta = self.random.choice([0.5, 1.0, 2.0])
        loss = {"kl_div": lambda: F.kl_div(y.log_softmax(-1), t.softmax(-1), reduction=how), "mse_loss": lambda: F.mse_loss(y, t, reduction=how),
                "l1_loss": lambda: F.l1_loss(y, t, reduction=how), "smooth_l1_loss": lambda: F.smooth_l1_loss(y, t, reduction=how, beta=beta)}
        return self.op(name, loss.get(name, loss["mse_loss"])(), [number, target], [reduction, beta])

    def mode(self, training, path="."):
        module = self.net.get_submodule(path if path != "." else "")
        module.train(training)
        self.line(f"mode 0 {int(training)} {path}")

    def step(self, step):
        self.mode(not self.evaluates and not self.chance(0.1))
        norms = [name for name, m in self.net.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        if norms and self.chance(0.2):
            self.mode(False, self.random.choice(norms))
        self.rule.zero_grad()
        self.line("zero 0")
        for _ in range(self.random.choice([1, 1, 2, 3])):
            result, y = self.run("run", self.random.randint(2, 4))
            loss = self.loss(result, y)
            if self.tensors[loss].requires_grad:
                # checkpoint() has no second derivative; files keep the counts of PyTorch's optimizers only, where a step passes over a bias.
                may = self.dtype == "f64" and self.name in ("sgd", "adam", "adamw") and " recomputed " not in self.lines[1]
                twice = may and bool(self.leaves) and self.chance(0.3)
                self.backward(loss, self.leaf(self.tensors[loss].shape, "constant"), twice)
        straight = [i for i, p in enumerate(self.net.parameters()) if self.twice and p.grad is not None and not p.grad.any()]
        for i in straight:  # Weft's may be none
            list(self.net.parameters())[i].grad = None
        self.line(f"forget 0 {len(straight)} " + " ".join(map(str, straight)))
        self.err(p.grad for p in self.trained)
        self.tensors_of("gradient", ((name, p.grad) for name, p in self.net.named_parameters() if p.requires_grad), "gradients")
        if self.name != "sgd" and self.dtype == "f64":
            # A value that is 0 but for rounding becomes 0: such optimizers make a whole step of any
            # gradient.
            for p in self.trained:
                if p.grad is not None:
                    p.grad.copy_((p.grad * COARSE).round() / COARSE)
            self.line(f"coarse 0 1 {COARSE}")
        if self.chance(0.4):
            limit = self.log_uniform(-1.5, 1)
            number = self.keep(nn.utils.clip_grad_norm_(self.trained, limit))
            self.line(f"clip {number} 1 {limit}")
            self.expected[f"value {number}"] = self.tensors[number]
        if self.scheduler is None and self.chance(0.2):
            group, rate = self.random.randrange(len(self.members)), self.log_uniform(-3, -1.5)
            self.rule.param_groups[group]["lr"] = rate
            self.line(f"rate 0 2 {group} {rate}")
        self.rule.step()
        metric = self.random.choice([1.0, 1.1, 0.5, 0.9])
        if isinstance(self.scheduler, lr_scheduler.ReduceLROnPlateau):
            self.scheduler.step(metric)
        elif self.scheduler:
            self.scheduler.step()
        self.line(f"step 0 1 {metric}")
        self.err(self.net.parameters())
        if self.ema:
            decay = min(self.decay_of_ema, (1 + step) / (10 + step)) if self.warmup else self.decay_of_ema
            with torch.no_grad():
                get_ema_multi_avg_fn(decay)(self.ema, [x.detach() for x in self.averaged()], step + 1)
        if self.ema and self.chance(0.4):
            names = [*(n for n, _ in self.net.named_parameters()), *(n for n, b in self.net.named_buffers() if b.is_floating_point())]
            counts = [(n, b) for n, b in self.net.named_buffers() if not b.is_floating_point()]
            self.tensors_of("average", [*zip(names, self.ema), *counts])
        number = self.state()
        if self.chance(0.3):
            self.mode(False)
            with torch.no_grad():
                self.run("evaluate", self.random.randint(2, 3))
        if self.chance(0.35):
            self.save(number)

    def tensors_of(self, what, named, line=None):
        """Expects all of these, as they are now."""
        number = self.keep(torch.zeros(()))
        self.line(f"{line or what} {number}")
        self.expected |= {f"{what} {number}.{name}": x if x is None else x.detach().clone() for name, x in named}
        return number

    def named_moments(self, rule):
        order = [p for group in rule.param_groups for p in group["params"]]
        for i, p in enumerate(order):
            state = rule.state.get(p, {})
            for name, x in state.items() if p.requires_grad and state.get("step", 1) > 0 else ():
                if x is not None and (name != "step" or self.name in ("adam", "adamw")):
                    yield f"{i}.{name}", torch.as_tensor(x)

    def state(self):
        number = self.tensors_of("state", self.net.state_dict().items())
        self.expected |= {f"moment {number}.{name}": x.detach().clone() for name, x in self.named_moments(self.rule)}
        self.expected |= {f"lr {number}.{i}": torch.tensor(group["lr"], dtype=torch.float64) for i, group in enumerate(self.rule.param_groups)}
        return number

    def save(self, number):
        mine, weft = f"{FOLDER}/{self.seed}.{number}.pt", f"{FOLDER}/{self.seed}.{number}.weft.pt"
        if not self.noise:
            torch.save({"model": self.net.state_dict(), "optimizer": self.rule.state_dict()}, mine)
        self.line(f"save 0 {weft}")
        self.files.append((number, mine, weft))
        self.line(f"resume 0 {self.random.choice([mine, weft, '-'])}")

    # Weft's result.

    def allowed(self, label, _expected):
        # The gradients of gradients round at more places than modules end.
        return ALLOWED * (4 if self.twice else 1) * (self.bounds.get(label, 0) + UNITS[self.dtype] * max(0.01, self.scales[self.sort_of(label)]))

    @staticmethod
    def sort_of(label):
        """What shares a scale: all gradients, all weights, all exp_avg; each other result has its own."""
        what = label.split()[0]
        return label if what in ("value", "lr") else what + label.rpartition(".")[2] if what == "moment" else what

    def measure(self):
        """How far PyTorch is off where every module errs by about one unit of rounding."""
        largest = {label: x.abs().max().item() if x is not None and x.numel() else 0 for label, x in self.expected.items()}
        for label, size in largest.items():
            self.scales[self.sort_of(label)] = max(self.scales.get(self.sort_of(label), 0), size)
        for i in range(RUNS):
            erring = Training(self.seed, self.dtype, UNITS[self.dtype] * (1 + i / 16))
            for label, x in self.expected.items():
                if x is not None and erring.expected.get(label) is not None:
                    error = (erring.expected[label].double() - x).abs().max().item() if x.numel() else 0
                    self.bounds[label] = max(self.bounds.get(label, 0), error)
        return self

    def difference(self, printed):
        if said := super().difference(printed):
            return said
        for number, mine, weft in self.files:
            theirs, ours = (torch.load(f, weights_only=True) for f in (mine, weft))
            if theirs["model"].keys() != ours["model"].keys():
                return f"{weft}: names {list(ours['model'])}"
            for name, x in ours["model"].items():
                if said := self.wrong(f"state {number}.{name}", x.double()):
                    return f"in the file: {said}"
            if self.name not in ("sgd", "adam", "adamw"):
                continue
            groups = [[nn.Parameter(torch.zeros_like(p)) for p in group["params"]] for group in self.rule.param_groups]
            rule = self.make_optimizer([{"params": group} for group in groups])
            rule.load_state_dict(ours["optimizer"])
            for name, x in self.named_moments(rule):
                if said := self.wrong(f"moment {number}.{name}", x.double()):
                    return f"in the file: {said}"
            for a, b in zip(theirs["optimizer"]["param_groups"], rule.state_dict()["param_groups"]):
                for key, value in ((key, a[key]) for key in rule.defaults):
                    same = math.isclose(value, b[key], rel_tol=1e-9) if isinstance(value, float) else (value or None) == (b[key] or None)
                    if not same:
                        return f"in the file: a group's {key} is {b[key]}, expected {value}"
        return None


if __name__ == "__main__":
    sys.exit(main(lambda seed, dtype: Training(seed, dtype).measure(), __doc__, 150, "models"))
