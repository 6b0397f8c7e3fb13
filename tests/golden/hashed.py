# SPDX-License-Identifier: Apache-2.0
"""Numbers that both sides compute, so that no file need hold them.

value(seed, i) = (h >> 8) / 2^23 - 1 in [-1, 1), where in 32-bit arithmetic
  h = (i + 1) 0x9E3779B1 xor (seed + 1) 0x85EBCA6B
  h = (h xor h >> 15) 0x2C1B3C6D;  h = (h xor h >> 12) 0x297A2D39;  h = h xor h >> 15
The same function is in hashed.h.
"""
import math

import numpy
import torch

MASK = 0xFFFFFFFF


def values(seed, shape):
    """An f32 tensor of this shape; element i in row-major order is value(seed, i)."""
    count = math.prod(shape)
    h = numpy.arange(1, count + 1, dtype=numpy.uint64) * 0x9E3779B1 & MASK
    h ^= (seed + 1) * 0x85EBCA6B & MASK
    h = (h ^ h >> 15) * 0x2C1B3C6D & MASK
    h = (h ^ h >> 12) * 0x297A2D39 & MASK
    h ^= h >> 15
    exact = (h >> 8).astype(numpy.float64) / 2**23 - 1
    return torch.from_numpy(exact.astype(numpy.float32).reshape(tuple(shape)))


def fill_parameters(model):
    """Sets the parameters of a model, in the order in which it names them, from seeds 0, 1, 2, …

    Vectors: 0.1 value, and 1 + 0.1 value for the weight of a norm (a vector called `weight`).
    Others: sqrt(3) sqrt(2 / fan in) value, which has the variance of He et al. 2015; the factor is rounded to f32.
    """
    with torch.no_grad():
        for seed, (name, parameter) in enumerate(model.named_parameters()):
            value = values(seed, parameter.shape)
            if parameter.dim() == 1:
                value = value * 0.1 + (1 if name.endswith("weight") else 0)
            else:
                value = value * float(numpy.float32(math.sqrt(6 / (parameter[0].numel()))))
            parameter.copy_(value)


def digest(tensor, seed):
    """A tensor in 10 numbers: its norm, its product with value(seed + 10000, i), 8 elements spread over it. Row-major."""
    flat = tensor.detach().double().flatten()
    places = [i * flat.numel() // 8 for i in range(8)]
    product = flat @ values(seed + 10000, flat.shape).double()
    return torch.cat([flat.norm()[None], product[None], flat[places]])
