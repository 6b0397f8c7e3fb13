#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch user's trainer of this workflow: the model under the workflow's names, Adam, the cosine, the five names. pytorch_trainer.py FILE PREFIX
reads a checkpoint, takes it one epoch of one step further (on zeros, with zeros as targets), and saves it in its place."""
import sys

import torch
from torch import nn

path, prefix = sys.argv[1:]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding="same"), nn.LeakyReLU(0.01))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in, self.conv_hidden, self.conv_out = block(1, 64), nn.Sequential(block(64, 64)), block(64, 1)

    def forward(self, x):
        return self.conv_out(self.conv_hidden(self.conv_in(x)))


model = CNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
ckpt = torch.load(path)
print(*list(ckpt)[:5])
assert all(key.startswith(prefix) for key in ckpt["model_state"])
model.load_state_dict({key[len(prefix):]: value for key, value in ckpt["model_state"].items()})
optimizer.load_state_dict(ckpt["optimizer_state_dict"])
scheduler.load_state_dict(ckpt["scheduler_state_dict"])
assert scheduler.last_epoch == ckpt["epoch"] + 1, scheduler.last_epoch
assert all(int(state["step"]) == ckpt["iters"] for state in optimizer.state.values())
assert model(torch.ones(1, 1, 12, 12)).isfinite().all()
print("lr", optimizer.param_groups[0]["lr"])
x = torch.zeros(1, 1, 12, 12)
optimizer.zero_grad()
nn.functional.mse_loss(model(x), x).backward()
optimizer.step()
scheduler.step()
print("next lr", optimizer.param_groups[0]["lr"])
torch.save({"iters": ckpt["iters"] + 1, "epoch": ckpt["epoch"] + 1,
            "model_state": {prefix + key: value for key, value in model.state_dict().items()},
            "optimizer_state_dict": optimizer.state_dict(), "scheduler_state_dict": scheduler.state_dict()}, path)
