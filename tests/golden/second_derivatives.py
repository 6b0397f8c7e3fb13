# SPDX-License-Identifier: Apache-2.0
"""Losses of 20 steps of examples/gan.cpp, pinn.cpp and fno.cpp in f64. Weights, images, noise, places and fields come
from hashed.py."""
import math

import torch
import torch.nn.functional as F
from torch import nn, optim

from hashed import fill_parameters, values

STEPS, COUNT = 20, 6


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_ = nn.Linear(16, 2 * 2 * 32)
        self.norm1 = nn.BatchNorm2d(32)
        self.up1 = nn.ConvTranspose2d(32, 16, 4, 2, 1)
        self.norm2 = nn.BatchNorm2d(16)
        self.up2 = nn.ConvTranspose2d(16, 1, 4, 2, 1)

    def forward(self, noise):
        x = F.relu(self.norm1(self.in_(noise).reshape(-1, 2, 2, 32).permute(0, 3, 1, 2)))
        return torch.tanh(self.up2(F.relu(self.norm2(self.up1(x)))))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 16, 4, 2, 1), nn.Conv2d(16, 32, 4, 2, 1)
        self.out = nn.Linear(2 * 2 * 32, 1)

    def forward(self, x):
        y = F.leaky_relu(self.down2(F.leaky_relu(self.down1(x), 0.2)), 0.2)
        return self.out(y.permute(0, 2, 3, 1).flatten(1)).squeeze(1)


def critic_loss(critic, real, fake, share):
    x = (share * real + (1 - share) * fake).detach().requires_grad_()
    slope, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return critic(fake).mean() - critic(real).mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()


def drawn(step, which, *sizes):
    return values(4000 + 10 * step + which, sizes).double()


def gan():
    generator, critic = Generator().double(), Critic().double()
    fill_parameters(generator)
    fill_parameters(critic)
    draws = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    judges = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    losses = []
    for step in range(STEPS):
        real, share = drawn(step, 0, COUNT, 1, 8, 8), drawn(step, 1, COUNT, 1, 1, 1) / 2 + 0.5
        loss = critic_loss(critic, real, generator(drawn(step, 2, COUNT, 16)).detach(), share)
        judges.zero_grad()
        loss.backward()
        judges.step()
        of_generator = -critic(generator(drawn(step, 3, COUNT, 16))).mean()
        draws.zero_grad()
        of_generator.backward()
        draws.step()
        losses += [loss.item(), of_generator.item()]
    return losses


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1, self.hidden2, self.out = nn.Linear(1, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden2(torch.tanh(self.hidden1(x)))))


def slope(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def residual(net, places):
    x = places.requires_grad_()
    second = slope(slope(net(x), x), x)
    ends = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    return (second + math.pi**2 * torch.sin(math.pi * x)).square().mean() + 100 * net(ends).square().mean()


def pinn():
    net = Net().double()
    fill_parameters(net)
    adam = optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for step in range(STEPS):
        loss = residual(net, drawn(step, 4, 32, 1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


class Spectral(nn.Module):
    def __init__(self, modes, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2 * modes, modes, width, width, 2))

    def forward(self, x):
        modes, rows, columns = self.weight.shape[1], x.shape[1], x.shape[2]
        z = torch.fft.rfft2(x, dim=(1, 2))[:, :, :modes]
        low = torch.cat([z[:, :modes], z[:, -modes:]], 1)
        low = torch.einsum("nhwc,hwcd->nhwd", low, torch.view_as_complex(self.weight))
        y = low.new_zeros(x.shape[0], rows, columns // 2 + 1, x.shape[3])
        y[:, :modes, :modes], y[:, -modes:, :modes] = low[:, :modes], low[:, modes:]
        return torch.fft.irfft2(y, s=(rows, columns), dim=(1, 2))


class Operator(nn.Module):
    def __init__(self, modes=4, width=8):
        super().__init__()
        self.in_, self.spectral1, self.skip1 = nn.Linear(1, width), Spectral(modes, width), nn.Linear(width, width)
        self.spectral2, self.skip2, self.out = Spectral(modes, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        y = self.in_(x)
        y = F.gelu(self.spectral1(y) + self.skip1(y))
        y = F.gelu(self.spectral2(y) + self.skip2(y))
        return self.out(y)


def stepped(x):
    rows, columns = x.shape[1:3]
    down = 2 * math.pi * torch.fft.fftfreq(rows, dtype=torch.float64).reshape(rows, 1, 1)
    across = 2 * math.pi * torch.fft.rfftfreq(columns, dtype=torch.float64).reshape(-1, 1)
    factor = torch.polar(torch.exp(-0.3 * (down**2 + across**2)), -1.5 * across - 0.5 * down)
    return torch.fft.irfft2(torch.fft.rfft2(x, dim=(1, 2)) * factor, s=(rows, columns), dim=(1, 2))


def fno():
    model = Operator().double()
    fill_parameters(model)
    adam = optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(STEPS):
        x = drawn(step, 5, 2, 16, 16, 1)
        loss = F.mse_loss(model(x), stepped(x))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


def all_cases():
    return {name: torch.tensor(losses, dtype=torch.float64) for name, losses in (("gan", gan()), ("pinn", pinn()), ("fno", fno()))}
