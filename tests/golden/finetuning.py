# SPDX-License-Identifier: Apache-2.0
"""A small net of numbered blocks, trained with learning rates by depth and averaged over its steps, in f64."""
import copy

import torch
import torch.nn.functional as F
from torch import nn, optim

from hashed import fill_parameters, values

FACTOR, LR, WEIGHT_DECAY, STEPS, DECAY = 0.6, 2e-3, 0.1, 12, 0.8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return x + F.gelu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 6)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def depth_of(name):
    if name.startswith("embed"):
        return 0
    return int(name.split(".")[1]) + 1 if name.startswith("blocks") else 4


def make_optimizer(net, decay_vectors):
    groups = [{"params": [parameter],
               "lr": LR * FACTOR ** (4 - depth_of(name)),
               "weight_decay": WEIGHT_DECAY if decay_vectors or parameter.dim() > 1 else 0}
              for name, parameter in net.named_parameters()]
    return optim.AdamW(groups)


def train(decay_vectors):
    """The weights after STEPS steps, and their averages with a fixed decay and with one that warms up."""
    net = Net().double()
    fill_parameters(net)
    optimizer = make_optimizer(net, decay_vectors)
    averages = {"ema": copy.deepcopy(net), "ema_warmup": copy.deepcopy(net)}
    for step in range(STEPS):
        x, labels = values(200 + step, (5, 4)).double(), (torch.arange(5) + step) % 3
        optimizer.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        optimizer.step()
        decays = {"ema": DECAY, "ema_warmup": min(DECAY, (1 + step) / (10 + step))}
        with torch.no_grad():
            for kind, average in averages.items():
                for mean, now in zip(average.parameters(), net.parameters()):
                    mean.mul_(decays[kind]).add_(now, alpha=1 - decays[kind])
    return {"weights": net, **averages}


def all_cases():
    result = {}
    for name, decay_vectors in (("vectors_stay", False), ("all_decay", True)):
        for kind, net in train(decay_vectors).items():
            if kind != "weights" and decay_vectors:
                continue
            for path, parameter in net.named_parameters():
                result[f"{name}.{kind}.{path}"] = parameter.detach().float()
    return result
