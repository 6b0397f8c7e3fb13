# SPDX-License-Identifier: Apache-2.0
"""Five steps of optimizers on weights and gradients from hashed.py, in f64: weights and states after the last.

Lion, LARS and LAMB, which PyTorch lacks, are written here from their papers, one parameter at a time.
"""
import torch
from torch import optim

from hashed import values

SHAPES = {"a.weight": (7, 5), "a.bias": (5,), "b.weight": (130, 259), "b.zero": (6, 6)}
# Shapes for Adafactor, which looks at the last two dimensions.
MORE_SHAPES = {"c.weight": (3, 4, 2, 5)}
STEPS = 5


class Lion(optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, parameters, lr, betas, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self):
        for group in self.param_groups:
            (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
            for w in (w for w in group["params"] if w.grad is not None):
                state = self.state[w]
                m = state.setdefault("exp_avg", torch.zeros_like(w))
                direction = torch.sign(beta1 * m + (1 - beta1) * w.grad)
                w.data -= lr * (direction + decay * w.data)
                state["exp_avg"] = beta2 * m + (1 - beta2) * w.grad


def trust(w, u, ratio=1.0, decay=0.0, eps=0.0):
    w, u = w.norm().item(), u.norm().item()
    return ratio * w / (u + decay * w + eps) if w > 0 and u > 0 else 1.0


class LARS(optim.Optimizer):
    """You et al. 2017, section 4; groups without weight decay are not adapted unless always_adapt says so."""

    def __init__(self, parameters, lr, momentum, nesterov, weight_decay, ratio, eps, always_adapt=False):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "nesterov": nesterov, "ratio": ratio, "eps": eps,
                                      "weight_decay": weight_decay, "always_adapt": always_adapt})

    def step(self):
        for group in self.param_groups:
            decay, momentum = group["weight_decay"], group["momentum"]
            for w in (w for w in group["params"] if w.grad is not None):
                adapts = decay != 0 or group["always_adapt"]
                scale = trust(w.data, w.grad, group["ratio"], decay, group["eps"]) if adapts else 1
                d = scale * (w.grad + decay * w.data)
                state = self.state[w]
                v = state["momentum_buffer"] = momentum * state["momentum_buffer"] + d if state else d.clone()
                w.data -= group["lr"] * (d + momentum * v if group["nesterov"] else v)


class LAMB(optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(x) = x; groups without weight decay as in LARS."""

    def __init__(self, parameters, lr, betas, eps, weight_decay, clip_trust=False, always_adapt=False):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                      "clip_trust": clip_trust, "always_adapt": always_adapt})

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in (w for w in group["params"] if w.grad is not None):
                state = self.state[w]
                t = state["step"] = state.get("step", 0) + 1
                m = state["exp_avg"] = beta1 * state.get("exp_avg", 0) + (1 - beta1) * w.grad
                v = state["exp_avg_sq"] = beta2 * state.get("exp_avg_sq", 0) + (1 - beta2) * w.grad**2
                u = m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + group["eps"]) + group["weight_decay"] * w.data
                adapts = group["weight_decay"] != 0 or group["always_adapt"]
                scale = trust(w.data, u) if adapts else 1
                w.data -= group["lr"] * (min(scale, 1) if group["clip_trust"] else scale) * u


def two_groups(parameters):
    return [{"params": [p for p in parameters if p.dim() > 1]},
            {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]


OPTIMIZERS = {
    "adam_amsgrad": lambda p: optim.Adam(p, lr=0.02, betas=(0.8, 0.6), eps=1e-6, weight_decay=0.1, amsgrad=True),
    "adamw_amsgrad": lambda p: optim.AdamW(p, lr=0.02, betas=(0.7, 0.5), weight_decay=0.2, amsgrad=True, maximize=True),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-4, weight_decay=0.05),
    "rmsprop_momentum": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.7, momentum=0.8),
    "rmsprop_centered": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.6, centered=True, eps=1e-3),
    "rmsprop_all": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.8, momentum=0.5, centered=True, eps=1e-3, maximize=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.3, weight_decay=0.02, initial_accumulator_value=0.5),
    "lion": lambda p: Lion(p, lr=0.01, betas=(0.8, 0.6), weight_decay=0.1),
    "lars": lambda p: LARS(two_groups(p), lr=2.0, momentum=0.9, nesterov=False, weight_decay=0.01, ratio=0.02, eps=0.1),
    "lars_nesterov": lambda p: LARS(p, lr=2.0, momentum=0.7, nesterov=True, weight_decay=0.0, ratio=0.05, eps=1e-8,
                                    always_adapt=True),
    "lamb": lambda p: LAMB(two_groups(p), lr=0.05, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1),
    "lamb_clipped": lambda p: LAMB(p, lr=0.05, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.5, clip_trust=True,
                                   always_adapt=True),
    "adafactor": lambda p: optim.Adafactor(two_groups(p), lr=0.02, weight_decay=0.1),
    "adafactor_all": lambda p: optim.Adafactor(p, lr=0.6, beta2_decay=-0.5, eps=(0.3, 0.02), d=1.1, weight_decay=0.05,
                                               maximize=True),
}


def all_cases():
    result = {}
    for name, make in OPTIMIZERS.items():
        weights = []
        shapes = {**SHAPES, **(MORE_SHAPES if name.startswith("adafactor") else {})}
        for seed, (path, shape) in enumerate(shapes.items()):
            w = values(seed, shape).double() * (0 if path == "b.zero" else 1 + seed)
            weights.append(w.requires_grad_())
        optimizer = make(weights)
        for step in range(STEPS):
            for seed, w in enumerate(weights):
                # Shrinking, so that AMSGrad's largest average differs from the last one.
                w.grad = values(100 * step + 10 + seed, w.shape).double() / (step + 1)
            optimizer.step()
        for path, w in zip(shapes, weights):
            result[f"{name}.{path}"] = w.detach().float()
            for key, state in optimizer.state[w].items():
                if key != "step":
                    result[f"{name}.{path}.{key}"] = state.float()
    # The long matrix by a digest of its rows.
    return {key: value.double().norm(dim=1).float() if "b.weight" in key else value for key, value in result.items()}
