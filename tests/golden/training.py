# SPDX-License-Identifier: Apache-2.0
"""Three training steps of networks with weights and images from hashed.py, in f64.

Where the input of a ReLU lies within rounding of 0, its gradient is all or nothing: a net with a million activations
then differs by a per cent between f32 and f64, in PyTorch as well. The images are therefore drawn from seeds for which
every input keeps a distance; the seeds are in the file.
"""
import copy

import torch
import torch.nn.functional as F
from torch import optim

import models
from hashed import digest, fill_parameters, values
from models import BasicBlock, Bottleneck, CifarResNet, ResNet, SmallNet

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "sgd_momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=5e-4),
    "sgd_dampening": lambda p: optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3, maximize=True),
    "sgd_nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
    "sgd_slow": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=5e-4),
    "adam": lambda p: optim.Adam(p, lr=2e-3, betas=(0.8, 0.99), eps=1e-6, weight_decay=1e-2),
    "adamw": lambda p: optim.AdamW(p, lr=1e-3, weight_decay=0.05),
    "adamw_slow": lambda p: optim.AdamW(p, lr=1e-4, weight_decay=0.05),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.7, rho=0.85, weight_decay=1e-3),
}
RUNS = {
    # images, their size, classes, optimizers, the distance from 0 that is asked for (later steps: a third)
    "small": (6, 8, 5, [name for name in OPTIMIZERS if "slow" not in name], 2e-5),
    "resnet8": (5, 16, 10, ["sgd_slow", "adamw_slow"], 2e-5),
    "resnet18": (3, 12, 10, ["sgd_slow", "adamw_slow"], 2e-5),
    "resnet18_imagenet": (2, 48, 7, [], 1e-5),
    "resnet50": (2, 16, 6, [], 2e-6),
}
IN_FULL = ["conv1.weight", "layer2.0.downsample.0.weight", "fc.weight", "fc.bias"]  # of resnet18's gradients
TRIES = 200


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


def images(seed, count, size):
    """count images of size x size, drawn as NHWC."""
    return values(seed, (count, size, size, 3)).double().permute(0, 3, 1, 2)


def distance(model, x):
    """How near to 0 an input of a ReLU comes."""
    models.smallest.clear()
    with torch.no_grad():
        copy.deepcopy(model)(x)
    return min(models.smallest)


def choose_seed(trained, first, count, size, wanted):
    """The first seed (the best of TRIES) whose images keep all the models' activations away from 0."""
    best, best_distance = first, 0
    for seed in range(first, first + TRIES):
        found = 1.0
        for model in trained:
            found = min(found, distance(model, images(seed, count, size)))
            if found <= best_distance:
                break
        if found > best_distance:
            best, best_distance = seed, found
        if best_distance >= wanted:
            break
    print(f"    seed {best}: activations at least {best_distance:.1e} from 0")
    return best


def run(kind):
    """Logits, loss and gradients of the first batch; the models after three steps."""
    count, size, classes, optimizers, wanted = RUNS[kind]
    trained = {name: new_model(kind) for name in optimizers}
    updates = {name: OPTIMIZERS[name](model.parameters()) for name, model in trained.items()}
    losses = {name: [] for name in optimizers}
    seeds = []
    for step in range(3 if optimizers else 1):
        at_start = [new_model(kind)] if step == 0 else trained.values()
        seeds.append(choose_seed(at_start, 500 + 1000 * step, count, size, wanted if step == 0 else wanted / 3))
        x, labels = images(seeds[-1], count, size), (torch.arange(count) + step) % classes
        for name, model in trained.items():
            updates[name].zero_grad()
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            updates[name].step()
            losses[name].append(loss.detach())

    model = new_model(kind)
    x = images(seeds[0], count, size)
    logits = model(x)
    loss = F.cross_entropy(logits, torch.arange(count) % classes)
    loss.backward()
    model.eval()
    result = {"seeds": torch.tensor(seeds), "logits": logits, "loss": loss, "logits_eval": model(x)}
    result.update({f"{name}.losses": torch.stack(values) for name, values in losses.items()})
    return model, trained, result


def numbers(tensors):
    return {name: x if x.dtype == torch.int64 else x.detach().float() for name, x in tensors.items()}


def small_net():
    """Everything in full."""
    model, trained, result = run("small")
    for name, parameter in model.named_parameters():
        result["gradient." + name] = parameter.grad
    for optimizer, after in trained.items():
        for name, parameter in after.named_parameters():
            result[f"{optimizer}.{name}"] = parameter
        for name, buffer in after.named_buffers():
            if "running" in name:
                result[f"{optimizer}.{name}"] = buffer
    return numbers(result)


def residual_net(kind):
    """Digests of all gradients and of all weights after training; some of resnet18's gradients in full too."""
    model, trained, result = run(kind)
    for seed, (name, parameter) in enumerate(model.named_parameters()):
        result["gradient_digest." + name] = digest(parameter.grad, seed)
        if kind == "resnet18" and name in IN_FULL:
            result["gradient." + name] = parameter.grad
    for optimizer, after in trained.items():
        for seed, (name, parameter) in enumerate(after.named_parameters()):
            result[f"{optimizer}_digest.{name}"] = digest(parameter, seed)
    return numbers(result)
