# SPDX-License-Identifier: Apache-2.0
"""Residual networks written from He et al., "Deep residual learning for image recognition" (CVPR 2016), with the
parameter names of torchvision."""
import torch.nn.functional as F
from torch import nn

smallest = []  # the smallest distance from 0 of each relu() input since it was cleared


def relu(x):
    smallest.append(x.detach().abs().min())
    return F.relu(x)


def conv3x3(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    """Figure 5 left, with a projection where sizes change ("option B")."""

    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(inputs, planes, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inputs != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    """Figure 5 right, with the stride in the 3x3 convolution."""

    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, planes, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes, stride), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes)
        self.downsample = None
        if stride != 1 or inputs != 4 * planes:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * planes, 1, stride, bias=False),
                                            nn.BatchNorm2d(4 * planes))

    def forward(self, x):
        y = relu(self.bn1(self.conv1(x)))
        y = relu(self.bn2(self.conv2(y)))
        return relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, block, counts, classes, cifar_stem):
        super().__init__()
        self.cifar_stem = cifar_stem
        self.conv1 = conv3x3(3, 64) if cifar_stem else nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for i, count in enumerate(counts):
            planes, blocks = 64 << i, []
            for j in range(count):
                blocks.append(block(inputs, planes, 2 if i > 0 and j == 0 else 1))
                inputs = planes * (4 if block is Bottleneck else 1)
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        y = relu(self.bn1(self.conv1(x)))
        if not self.cifar_stem:
            y = F.max_pool2d(y, 3, 2, padding=1)
        y = self.layer4(self.layer3(self.layer2(self.layer1(y))))
        return self.fc(y.mean((2, 3)))


class CifarBlock(nn.Module):
    """Section 4.2 with the shortcut without parameters ("option A")."""

    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.stride, self.zeros = stride, (planes - inputs) // 2
        self.conv1, self.bn1 = conv3x3(inputs, planes, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), nn.BatchNorm2d(planes)

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.zeros, self.zeros))
        return relu(y + shortcut)


class CifarResNet(nn.Module):
    def __init__(self, n, classes):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(3, 16), nn.BatchNorm2d(16)
        inputs = 16
        for i in range(3):
            planes, blocks = 16 << i, []
            for j in range(n):
                blocks.append(CifarBlock(inputs, planes, 2 if i > 0 and j == 0 else 1))
                inputs = planes
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, classes)

    def forward(self, x):
        y = self.layer3(self.layer2(self.layer1(relu(self.bn1(self.conv1(x))))))
        return self.linear(y.mean((2, 3)))


class SmallNet(nn.Module):
    """Small enough that every number of it is kept."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, 2, padding=1)  # no norm behind it: its bias has a gradient
        self.fc1, self.norm, self.fc2 = nn.Linear(12 * 2 * 2, 10), nn.LayerNorm(10), nn.Linear(10, 5)

    def forward(self, x):
        y = F.max_pool2d(relu(self.bn1(self.conv1(x))), 2)
        y = relu(self.conv2(y))
        return self.fc2(F.gelu(self.norm(self.fc1(y.flatten(1)))))
