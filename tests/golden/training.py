# SPDX-License-Identifier: Apache-2.0
"""Three training steps of networks with weights and pictures from hashed.py, in f64."""
import torch
import torch.nn.functional as F
from torch import optim

from hashed import digest, fill_parameters, values
from models import BasicBlock, Bottleneck, CifarResNet, ResNet, SmallNet

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "sgd_momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=5e-4),
    "sgd_dampening": lambda p: optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3, maximize=True),
    "sgd_nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
    "adam": lambda p: optim.Adam(p, lr=2e-3, betas=(0.8, 0.99), eps=1e-6, weight_decay=1e-2),
    "adamw": lambda p: optim.AdamW(p, lr=1e-3, weight_decay=0.05),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.7, rho=0.85, weight_decay=1e-3),
}


def pictures(step, count, size, classes):
    """Batch `step`: count pictures of size x size (drawn as NHWC) and their labels i + step mod classes."""
    x = values(500 + step, (count, size, size, 3)).double().permute(0, 3, 1, 2)
    return x, (torch.arange(count) + step) % classes


def new_model(kind):
    model = {
        "small": SmallNet,
        "resnet8": lambda: CifarResNet(1, 10),
        "resnet18": lambda: ResNet(BasicBlock, [2, 2, 2, 2], 10, True),
        "resnet18_imagenet": lambda: ResNet(BasicBlock, [2, 2, 2, 2], 7, False),
        "resnet50": lambda: ResNet(Bottleneck, [3, 4, 6, 3], 6, True),
    }[kind]().double()
    fill_parameters(model)
    return model


def gradients(kind, count, size, classes):
    """Logits, loss and gradients of one batch; then the logits in evaluation."""
    model = new_model(kind)
    x, labels = pictures(0, count, size, classes)
    logits = model(x)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    model.eval()
    return model, {"logits": logits, "loss": loss, "logits_eval": model(x)}


def train(kind, optimizer, count, size, classes):
    """The model after three steps, and its losses."""
    model = new_model(kind)
    update = OPTIMIZERS[optimizer](model.parameters())
    losses = []
    for step in range(3):
        x, labels = pictures(step, count, size, classes)
        update.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        update.step()
        losses.append(loss.detach())
    return model, torch.stack(losses)


def numbers(tensors):
    return {name: tensor.detach().float() for name, tensor in tensors.items()}


def small_net():
    """Everything in full."""
    model, result = gradients("small", 6, 8, 5)
    for name, parameter in model.named_parameters():
        result["gradient." + name] = parameter.grad
    for optimizer in OPTIMIZERS:
        model, result[f"{optimizer}.losses"] = train("small", optimizer, 6, 8, 5)
        for name, parameter in model.named_parameters():
            result[f"{optimizer}.{name}"] = parameter
        for name, buffer in model.named_buffers():
            if optimizer == "sgd" and "running" in name:
                result[f"{optimizer}.{name}"] = buffer
    return numbers(result)


def residual_net(kind, count, size, classes, optimizers, in_full=()):
    """Digests of all gradients and of all weights after training; the tensors of `in_full` in full too."""
    model, result = gradients(kind, count, size, classes)
    for seed, (name, parameter) in enumerate(model.named_parameters()):
        result["gradient_digest." + name] = digest(parameter.grad, seed)
        if name in in_full:
            result["gradient." + name] = parameter.grad
    for optimizer in optimizers:
        model, result[f"{optimizer}.losses"] = train(kind, optimizer, count, size, classes)
        for seed, (name, parameter) in enumerate(model.named_parameters()):
            result[f"{optimizer}_digest.{name}"] = digest(parameter, seed)
    return numbers(result)
