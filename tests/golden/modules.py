# SPDX-License-Identifier: Apache-2.0
"""Modules and losses with weights, inputs and output gradients from hashed.py, in f64: outputs, gradients of the input
and of all parameters under PyTorch's names. Images and sequences are drawn with the channels last."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import spectral_norm, weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hashed import fill_parameters, values

X, DY = 700, 800  # seeds


def first(x):
    """Channels last to channels first."""
    return x.movedim(-1, 1)


def last(y):
    return y.movedim(1, -1)


def images(module):
    return module, lambda x: [last(module(first(x)))]


def recurrent(module, states=0, sizes=()):
    def run(x):
        given = [values(X + 1 + i, sizes).double() for i in range(states)]
        y, after = module(x, tuple(given) if states == 2 else given[0] if given else None)
        return [y, *(after if isinstance(after, tuple) else (after,))]

    return module, run


def packed(module, lengths):
    def run(x):
        y, after = module(pack_padded_sequence(x, lengths, module.batch_first, enforce_sorted=False))
        y, _ = pad_packed_sequence(y, module.batch_first, total_length=x.shape[1 if module.batch_first else 0])
        return [y, *(after if isinstance(after, tuple) else (after,))]

    return module, run


def spectral(layer, run):
    """Its singular vectors begin as the next parameters would."""
    module = spectral_norm(layer)
    for seed, vector in enumerate((module.weight_u, module.weight_v), 2):
        vector.copy_(values(seed, vector.shape) * 0.1)
    return module, lambda x: [run(module, x), module.weight_u.clone(), module.weight_v.clone()]


class CrossAttention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.proj = nn.Linear(width, width), nn.Linear(context, 2 * width), nn.Linear(width, width)

    def forward(self, x):
        context = values(X + 1, (2, 5, 6)).double()
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q(x), *self.kv(context).chunk(2, -1)))
        return [self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))]


def cell(module, states):
    given = [values(X + 1 + i, (3, 5)).double() for i in range(states)]

    def run(x):
        after = module(x, tuple(given) if states == 2 else given[0])
        return list(after) if isinstance(after, tuple) else [after]

    return module, run


def bags(module, offsets=None):
    index = torch.tensor([[1, 3, 3, 0], [5, 2, 2, 2], [2, 4, 0, 5]])
    if offsets is None:
        return module, lambda: [module(index)]
    return module, lambda: [module(index.flatten(), torch.tensor(offsets))]


def up(**options):
    return images(nn.Upsample(**options))


def cases():
    return {
        "conv1d": ((2, 9, 4), images(nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2))),
        "conv3d": ((2, 6, 5, 7, 3), images(nn.Conv3d(3, 4, (3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1)))),
        "conv3d_groups": ((1, 4, 5, 4, 4), images(nn.Conv3d(4, 6, (2, 3, 1), (1, 2, 1), (1, 1, 0), (2, 1, 1), 2,
                                                            bias=False))),
        "conv_transpose1d": ((2, 6, 4), images(nn.ConvTranspose1d(4, 6, 3, 2, 1, output_padding=1, groups=2, dilation=2))),
        "conv_transpose3d": ((2, 3, 4, 2, 3), images(nn.ConvTranspose3d(3, 4, (3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 0, 0),
                                                                        dilation=(1, 2, 1)))),
        "cross_attention": ((2, 3, 8), (lambda m: (m, m))(CrossAttention(8, 2, 6))),
        "spectral_norm": ((2, 5, 4, 3), spectral(nn.Conv2d(3, 4, 3), lambda m, x: last(m(first(x))))),
        "spectral_norm_linear": ((4, 5), spectral(nn.Linear(5, 3), lambda m, x: m(x))),
        "instance_norm": ((2, 4, 5, 6), images(nn.InstanceNorm2d(6, affine=True))),
        "instance_norm_plain": ((2, 7, 3), images(nn.InstanceNorm1d(3, eps=0.1))),
        "weight_norm": ((2, 5, 4, 3), images(weight_norm(nn.Conv2d(3, 4, 3)))),
        "weight_norm_linear": ((4, 5), (lambda m: (m, lambda x: [m(x)]))(weight_norm(nn.Linear(5, 3)))),
        "nearest": ((2, 3, 4, 2), up(scale_factor=2)),
        "nearest_size": ((1, 5, 4, 2), up(size=(7, 3))),
        "bilinear": ((2, 5, 4, 3), up(scale_factor=1.7, mode="bilinear")),
        "bilinear_corners": ((1, 5, 4, 3), up(size=(9, 3), mode="bilinear", align_corners=True)),
        "bicubic": ((1, 5, 4, 3), up(size=(8, 6), mode="bicubic")),
        "bicubic_corners": ((1, 5, 4, 2), up(size=(7, 9), mode="bicubic", align_corners=True)),
        "lstm": ((5, 3, 4), recurrent(nn.LSTM(4, 6))),
        "lstm_deep": ((3, 5, 4), recurrent(nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), 2, (4, 3, 3))),
        "lstm_plain": ((1, 2, 4), recurrent(nn.LSTM(4, 3, 2, bias=False))),
        "lstm_lengths": ((5, 4, 4), packed(nn.LSTM(4, 6), [3, 5, 1, 3])),
        "lstm_lengths_deep": ((3, 5, 4), packed(nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), [2, 4, 5])),
        "gru": ((5, 3, 4), recurrent(nn.GRU(4, 6))),
        "gru_lengths": ((5, 4, 4), packed(nn.GRU(4, 3, 2, bidirectional=True), [3, 4, 1, 3])),
        "gru_deep": ((3, 5, 4), recurrent(nn.GRU(4, 3, 2, batch_first=True, bidirectional=True), 1, (4, 3, 3))),
        "gru_plain": ((2, 2, 4), recurrent(nn.GRU(4, 3, 2, bias=False))),
        "rnn": ((5, 3, 4), recurrent(nn.RNN(4, 6))),
        "rnn_deep": ((3, 5, 4), recurrent(nn.RNN(4, 3, 2, nonlinearity="relu", batch_first=True, bidirectional=True), 1, (4, 3, 3))),
        "lstm_cell": ((3, 4), cell(nn.LSTMCell(4, 5), 2)),
        "gru_cell": ((3, 4), cell(nn.GRUCell(4, 5), 1)),
        "rnn_cell": ((3, 4), cell(nn.RNNCell(4, 5), 1)),
        "bag_sum": (None, bags(nn.EmbeddingBag(6, 3, mode="sum", padding_idx=2))),
        "bag_mean": (None, bags(nn.EmbeddingBag(6, 3, mode="mean", padding_idx=2))),
        "bag_max": (None, bags(nn.EmbeddingBag(6, 3, mode="max"))),
        "bag_sum_offsets": (None, bags(nn.EmbeddingBag(6, 3, mode="sum"), [0, 3, 3, 10])),
        "bag_mean_offsets": (None, bags(nn.EmbeddingBag(6, 3, mode="mean", padding_idx=3), [0, 5, 5, 7])),
    }


def gradients(name, outputs, tensors, result):
    for i, y in enumerate(outputs):
        result[f"{name}.y{i}"] = y.detach()
    total = sum((y * values(DY + i, y.shape).double()).sum() for i, y in enumerate(outputs))
    for (key, tensor), gradient in zip(tensors.items(), torch.autograd.grad(total, list(tensors.values()))):
        result[f"{name}.d.{key}"] = gradient


def all_cases():
    result = {}
    for name, (shape, (module, run)) in cases().items():
        module.double()
        fill_parameters(module)
        tensors = dict(module.named_parameters())
        if shape is None:
            outputs = run()
        else:
            x = values(X, shape).double().requires_grad_()
            outputs = run(x)
            tensors = {"x": x, **tensors}
        gradients(name, outputs, tensors, result)
    return {key: value.float() for key, value in result.items()}
