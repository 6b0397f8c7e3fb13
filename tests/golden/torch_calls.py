# SPDX-License-Identifier: Apache-2.0
"""The names in PyTorch's expressions of the rows of tests/ops: those of torch and torch.nn.functional, `x`, the list of
inputs, and the functions here, which take Weft's arguments or its order of dimensions (channels last)."""
import builtins
import math

import torch
import torch.nn.functional as F
from torch import fft, linalg

true, false, inf = True, False, math.inf
z, cholesky, slogdet = torch.view_as_complex, linalg.cholesky, linalg.slogdet
PLACES = torch.tensor([[0, 1, 1, 3, 0], [2, 2, 2, 3, 0], [0, 0, 0, 0, 0]])


def value(torch_text, x):
    """The result of a row's expression for the inputs x."""
    names = {name: item for module in (torch, F) for name, item in vars(module).items()}
    return eval(torch_text, names | globals() | {"x": x})  # pylint: disable=eval-used


def nchw(x):
    return x.movedim(-1, 1)


def nhwc(x):
    return x.movedim(1, -1)


def images(function, x, *arguments, **options):
    return nhwc(function(nchw(x), *arguments, **options))


def conv(function, x, w, b=None, *arguments, **options):
    return nhwc(function(nchw(x), nchw(w), b, *arguments, **options))


def reduction(function):
    def reduce(x, dims=None, keep=False):
        return function(x, dim=tuple(range(x.dim()) if dims is None else dims), keepdim=keep)
    return reduce


sum, mean, norm, max, min, any, all, logsumexp, nansum, nanmean = map(reduction, (  # pylint: disable=redefined-builtin
    torch.sum, torch.mean, linalg.vector_norm, torch.amax, torch.amin, torch.any, torch.all, torch.logsumexp,
    torch.nansum, torch.nanmean))


def prod(x, dims=None, keep=False):
    return torch.prod(x) if dims is None else torch.prod(x, *dims, keep)


def count_nonzero(x, dims):
    return torch.count_nonzero(x, tuple(dims))


def flip(x, dims):
    return torch.flip(x, tuple(dims))


def sort(x, dim=-1, descending=False):
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def argsort(x, dim=-1, descending=False):
    return sort(x, dim, descending).indices


def topk(x, k, dim=-1, largest=True):
    """The first of equal elements, as Weft; torch.topk may take any."""
    return torch.return_types.topk(part.narrow(dim, 0, k) for part in sort(x, dim, largest))


def bits(*truths):
    return builtins.sum(truth.long() << place for place, truth in enumerate(reversed(truths)))


def affine(x, a, b):
    return a * x + b


def softmax(x, dim=-1):
    return torch.softmax(x, dim)


def log_softmax(x, dim=-1):
    return torch.log_softmax(x, dim)


def in_dtype(vector, x):
    return None if vector is None else vector.to(x.dtype)


def layer_norm(x, w=None, b=None, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], in_dtype(w, x), in_dtype(b, x), eps)


def rms_norm(x, w=None, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], in_dtype(w, x), eps)


def normed(x, w=None, b=None, mean=None, var=None, eps=1e-5):
    """Batch norm: of these statistics, or else of the batch's."""
    return images(F.batch_norm, x, mean, var, w, b, mean is None, 0.1, eps)


def running(x, mean, var):
    """The running mean and variance after a step of training."""
    statistics = mean.clone(), var.clone()
    F.batch_norm(nchw(x), *statistics, training=True, momentum=0.3)
    return torch.cat(statistics)


def reductions(loss):
    return torch.cat([loss(reduction).flatten() for reduction in ("mean", "sum", "none")])


def reduced(x, source, *with_own):
    return torch.cat([x.scatter_reduce(1, PLACES, source, reduce, include_self=own)
                      for own in with_own for reduce in ("sum", "mean", "amax", "amin")])


def ctc(x, blank=0, reduction="mean"):
    targets = torch.tensor([[1, 2, 2], [4, 3, 0], [1, 0, 0]])
    return F.ctc_loss(x.log_softmax(2), targets, (9, 7, 4), (3, 2, 1), blank, reduction)


def attention(q, k, v, scale=None, causal=False, window=None, keys=None, seen=None, bias=None):
    """softmax(scale q k^T + bias) v for [B, N, H, D]. A truth for each key of a batch entry, `keys` [B, M], and for each
    key of a query, `seen` [N, M]. A query that sees nothing is 0."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    ago = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    visible = torch.ones_like(ago, dtype=torch.bool)
    if causal:
        visible = (ago >= 0) & (ago < (window or len(ago)))
    if seen is not None:
        visible = visible & seen.bool()
    if keys is not None:
        visible = visible & keys[:, None, None].bool()
    mask = torch.zeros(1) if bias is None else bias
    mask = torch.where(visible, mask, -inf).expand(q.shape[0], q.shape[1], *ago.shape)
    y = F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)
    return torch.where((mask == -inf).all(-1, keepdim=True), 0, y).transpose(1, 2)


def one_direction(layer, from_x, states, weights, bias, backward):
    """A recurrent layer whose product with the input is from_x: the weight of the input is the identity."""
    flat = [torch.eye(from_x.shape[-1]), *weights]
    if bias is not None:
        flat += [torch.zeros_like(bias), bias]
    x = from_x.flip(0) if backward else from_x
    y, *last = layer(x, states, flat, bias is not None, 1, 0.0, False, False, False)
    return torch.cat([y.flip(0) if backward else y, *last[1:]])


def lstm(from_x, w, h, c, backward=False):
    return one_direction(torch.lstm, from_x, (h[None], c[None]), [w], None, backward)


def gru(from_x, w, b, h, backward=False):
    return one_direction(torch.gru, from_x, h[None], [w], b, backward)


def unfolded(x, kernel, *window):
    """[N, C R S, P Q] as [N, P Q, R S C]."""
    y = F.unfold(nchw(x), kernel, *window)
    return y.unflatten(1, (-1, kernel[0] * kernel[1])).permute(0, 3, 2, 1).flatten(2)


def folded(x, size, kernel, *window):
    y = x.unflatten(2, (kernel[0] * kernel[1], -1)).permute(0, 3, 2, 1).flatten(1, 2)
    return nhwc(F.fold(y, size, kernel, *window))


def resized(x, size, mode="bilinear", **options):
    if mode != "nearest":
        options = {"align_corners": False, **options}
    return images(F.interpolate, x, size, mode=mode, **options)


def turned(x, frequencies, first):
    """Rotary positions: pairs of channels as complex numbers, times e^(i angle)."""
    angles = torch.outer(torch.arange(first, first + x.shape[1], dtype=x.dtype), torch.tensor(frequencies, dtype=x.dtype))
    half = x.shape[-1] // 2
    y = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.cat([y.real, y.imag], -1)


def mixed(x, top, bottom, left, right, own):
    y, box = x.clone(), (slice(None), slice(top, bottom), slice(left, right))
    y[box] = own * x[box] + (1 - own) * x.roll(1, 0)[box]
    return y


def parts(x):
    return torch.view_as_real(x.resolve_conj())


def svd(x):
    return linalg.svd(x, full_matrices=False)


def apart(x):
    """Matrices with singular values well apart (tests/ops/linalg.cpp)."""
    d = torch.zeros(x.shape[-2:], dtype=x.dtype)
    k = math.prod(x.shape[-2:]) // builtins.max(x.shape[-2:])
    d[range(k), range(k)] = 2.0 * torch.arange(1, k + 1, dtype=x.dtype)
    return 0.2 * x + d


def symmetric(x):
    return (apart(x) + apart(x).mT) / 2
