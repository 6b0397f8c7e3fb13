# SPDX-License-Identifier: Apache-2.0
"""Transformers written from their papers, with weights from hashed.py, in f64: a DINOv2 of two blocks (Oquab et al. 2023; with
registers Darcet et al. 2023), a BERT of two layers (Devlin et al. 2018), a GPT-2 of two blocks (Radford et al. 2019), and how positions
are resized."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from hashed import digest, fill_parameters, values

VISION = {
    # width, heads, patch, positions per side, registers, swiglu
    "dinov2_reg": (384, 6, 14, 37, 4, False),
    "dinov2": (384, 6, 14, 37, 0, False),
    "dinov2_swiglu": (128, 2, 14, 8, 4, True),
}
POSITIONS = 30  # times what hashed.py gives: else they would hardly matter


def softmax_attention(q, k, v, mask=None):
    """q, k, v [N, heads, tokens, size]; mask [N, 1, 1, tokens] is added to the scores."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        return self.proj(softmax_attention(q, k, v, mask).transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class SwiGlu(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w12, self.w3 = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)

    def forward(self, x):
        a, b = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(a) * b)


class LayerScale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, width, heads, swiglu):
        super().__init__()
        self.norm1, self.attn, self.ls1 = nn.LayerNorm(width, 1e-6), Attention(width, heads), LayerScale(width)
        self.norm2 = nn.LayerNorm(width, 1e-6)
        self.mlp = SwiGlu(width, 2 * width) if swiglu else Mlp(width, 4 * width)
        self.ls2 = LayerScale(width)

    def forward(self, x):
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


def resize_positions(grid, size, by_size):
    """grid [1, side, side, width] to [1, size[0], size[1], width] by one of the two published conventions."""
    image = grid.permute(0, 3, 1, 2)
    if by_size:
        image = F.interpolate(image, size=size, mode="bicubic", antialias=True)
    else:
        scale = [(new + 0.1) / old for new, old in zip(size, grid.shape[1:3])]
        image = F.interpolate(image, scale_factor=scale, mode="bicubic")
    assert tuple(image.shape[2:]) == tuple(size)
    return image.permute(0, 2, 3, 1)


class PatchEmbed(nn.Module):
    def __init__(self, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    def __init__(self, width, heads, patch, side, registers, swiglu):
        super().__init__()
        self.patch, self.side = patch, side
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + side * side, width))
        if registers:
            self.register_tokens = nn.Parameter(torch.zeros(1, registers, width))
        self.registers = registers
        self.mask_token = nn.Parameter(torch.zeros(1, width))
        self.patch_embed = PatchEmbed(patch, width)
        self.blocks = nn.ModuleList(Block(width, heads, swiglu) for _ in range(2))
        self.norm = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        size = (x.shape[2] // self.patch, x.shape[3] // self.patch)
        positions = self.pos_embed[:, 1:].reshape(1, self.side, self.side, -1)
        if size != (self.side, self.side):
            positions = resize_positions(positions, size, by_size=self.registers > 0)
        positions = torch.cat([self.pos_embed[:, :1], positions.flatten(1, 2)], 1)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch_embed(x)], 1) + positions
        if self.registers:
            registers = self.register_tokens.expand(len(x), -1, -1)
            tokens = torch.cat([tokens[:, :1], registers, tokens[:, 1:]], 1)
        for block in self.blocks:
            tokens = block(tokens)
        tokens = self.norm(tokens)
        return self.head(tokens[:, 0]), tokens


def vision(kind, sizes):
    """Logits, features and gradients for images of each size (height, width)."""
    result = {}
    for height, width in sizes:
        torch.manual_seed(0)
        model = VisionTransformer(*VISION[kind]).double()
        fill_parameters(model)
        with torch.no_grad():
            model.pos_embed *= POSITIONS
        x = values(700, (2, height, width, 3)).double().permute(0, 3, 1, 2)
        logits, tokens = model(x)
        loss = F.cross_entropy(logits, torch.tensor([3, 8]))
        loss.backward()
        name = f"{kind}.{height}x{width}"
        first_patch = 1 + model.registers
        result.update({f"{name}.logits": logits, f"{name}.loss": loss, f"{name}.class_token": tokens[:, 0],
                       f"{name}.patch_tokens_digest": digest(tokens[:, first_patch:], 900)})
        if model.registers:
            result[f"{name}.registers_digest"] = digest(tokens[:, 1:first_patch], 901)
        for seed, (key, parameter) in enumerate(model.named_parameters()):
            if parameter.grad is not None:
                result[f"{name}.gradient_digest.{key}"] = digest(parameter.grad, seed)
    return result


class BertLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention, self.attention_norm = Attention(width, heads), nn.LayerNorm(width, 1e-12)
        self.intermediate, self.output = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.output_norm = nn.LayerNorm(width, 1e-12)

    def forward(self, x, mask):
        x = self.attention_norm(x + self.attention(x, mask))
        return self.output_norm(x + self.output(F.gelu(self.intermediate(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary, positions, width, heads, hidden, classes):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions, self.types = nn.Embedding(positions, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads, hidden) for _ in range(2))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids, types, lengths):
        count = ids.shape[1]
        x = self.norm(self.words(ids) + self.positions(torch.arange(count)) + self.types(types))
        mask = torch.zeros(ids.shape, dtype=x.dtype).masked_fill(torch.arange(count) >= lengths[:, None], -math.inf)
        for layer in self.layers:
            x = layer(x, mask[:, None, None])
        return self.classifier(torch.tanh(self.pooler(x[:, 0]))), x


def bert():
    model = Bert(200, 32, 96, 4, 192, 3).double()
    fill_parameters(model)
    lengths = torch.tensor([11, 7, 1])
    places = torch.arange(11)
    ids = (1 + (places * 37 + torch.arange(3)[:, None] * 71) % 199) * (places < lengths[:, None])
    types = (places >= 5).long().expand(3, -1)
    logits, x = model(ids, types, lengths)
    loss = F.cross_entropy(logits, torch.tensor([2, 0, 1]))
    loss.backward()
    result = {"bert.logits": logits, "bert.loss": loss, "bert.first_tokens": x[:, 0]}
    for seed, parameter in enumerate(model.parameters()):  # by number: the names are Weft's
        result[f"bert.gradient_digest.{seed}"] = digest(parameter.grad, seed)
    return result


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.fc1, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, positions, width, heads):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks, self.norm = nn.ModuleList(GptBlock(width, heads) for _ in range(2)), nn.LayerNorm(width)

    def forward(self, ids):
        count = ids.shape[1]
        x = self.words(ids) + self.positions(torch.arange(count))
        mask = torch.full((count, count), -math.inf, dtype=x.dtype).triu(1)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x) @ self.words.weight.T


def gpt():
    model = Gpt(61, 24, 96, 4).double()
    fill_parameters(model)
    ids = (torch.arange(22) * 37 + torch.arange(3)[:, None] * 71) % 61
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    gradients = {f"gradient_digest.{seed}": digest(parameter.grad, seed) for seed, parameter in enumerate(model.parameters())}
    return {name: x.detach().float() for name, x in {"logits": logits, "loss": loss, **gradients}.items()}


def resizes():
    result = {}
    grid = values(800, (1, 37, 37, 6)).double()
    for size in ((16, 16), (7, 7), (11, 50)):
        for by_size in (False, True):
            key = f"positions.{'by_size' if by_size else 'by_scale'}.{size[0]}x{size[1]}"
            result[key] = resize_positions(grid, size, by_size)
    images = values(801, (2, 9, 12, 3)).double().permute(0, 3, 1, 2)
    for mode in ("bilinear", "bicubic"):
        for antialias in (False, True):
            for size in ((5, 4), (20, 31)):
                y = F.interpolate(images, size=size, mode=mode, antialias=antialias, align_corners=False)
                key = f"{mode}{'.antialias' if antialias else ''}.{size[0]}x{size[1]}"
                result[key] = y.permute(0, 2, 3, 1)
    return result


def all_cases():
    tensors = {**resizes(), **vision("dinov2_reg", [(224, 224), (98, 98)]), **vision("dinov2", [(98, 112)]),
               **vision("dinov2_swiglu", [(112, 112)]), **bert()}
    return {name: x.detach().float() for name, x in tensors.items()}
