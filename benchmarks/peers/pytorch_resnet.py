# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 and ResNet-50 (He et al. 2016); ReLU and the addition of the shortcut work in place."""

import torch
from torch import nn


def convolution(into, out, edge, stride=1):
    return nn.Conv2d(into, out, edge, stride, edge // 2, bias=False)


class Block(nn.Module):
    def __init__(self, into, planes, stride, bottleneck):
        super().__init__()
        out = 4 * planes if bottleneck else planes
        sizes = ([(into, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)] if bottleneck else
                 [(into, planes, 3, stride), (planes, out, 3, 1)])
        self.convolutions = nn.ModuleList(convolution(*size) for size in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(size[1]) for size in sizes)
        self.shortcut = nn.Identity()
        if into != out or stride != 1:
            self.shortcut = nn.Sequential(convolution(into, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i, (conv, norm) in enumerate(zip(self.convolutions, self.norms)):
            y = norm(conv(y))
            if i + 1 < len(self.convolutions):
                y = torch.relu_(y)
        y += self.shortcut(x)
        return torch.relu_(y)


class ResNet(nn.Module):
    def __init__(self, bottleneck, cifar, classes, tiny):
        super().__init__()
        counts = [1, 1, 1, 1] if tiny else [3, 4, 6, 3] if bottleneck else [2, 2, 2, 2]
        self.conv1 = convolution(3, 64, 3) if cifar else convolution(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.Identity() if cifar else nn.MaxPool2d(3, 2, 1)
        blocks, channels, planes = [], 64, 64
        for layer, count in enumerate(counts):
            for i in range(count):
                blocks.append(Block(channels, planes, 2 if layer > 0 and i == 0 else 1, bottleneck))
                channels = 4 * planes if bottleneck else planes
            planes *= 2
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        y = self.pool(torch.relu_(self.bn1(self.conv1(x))))
        return self.fc(self.blocks(y).mean((2, 3)))
