# SPDX-License-Identifier: Apache-2.0
"""Learning rates of PyTorch's schedulers, step by step, f64."""
import warnings

import torch
from torch.optim import lr_scheduler as S

BASE = 0.4
METRICS = [1.0, 0.9, 0.95, 0.91, 0.92, 0.5, 0.49999, 0.49998, 0.6, 0.7, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = make(optimizer)
    result = []
    for step in range(steps):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step + 1 < steps:
            if isinstance(scheduler, S.ReduceLROnPlateau):
                scheduler.step(METRICS[step])
            else:
                scheduler.step()
    return torch.tensor(result, dtype=torch.float64)


def all_schedules():
    warnings.simplefilter("ignore")
    makers = {
        "step": (lambda o: S.StepLR(o, 3, 0.7), 14),
        "multi_step": (lambda o: S.MultiStepLR(o, [2, 5, 5, 9], 0.3), 14),
        "cosine": (lambda o: S.CosineAnnealingLR(o, 9, 0.01), 24),
        "linear": (lambda o: S.LinearLR(o, 0.1, 1.0, 5), 9),
        "linear_decay": (lambda o: S.LinearLR(o, 1.0, 0.0, 7), 9),
        "one_cycle": (lambda o: S.OneCycleLR(o, 0.9, total_steps=23, cycle_momentum=False), 23),
        "one_cycle_linear": (lambda o: S.OneCycleLR(o, 0.9, total_steps=20, pct_start=0.4, anneal_strategy="linear",
                                                    div_factor=10.0, final_div_factor=100.0, cycle_momentum=False), 20),
        "one_cycle_three": (lambda o: S.OneCycleLR(o, 0.9, total_steps=25, pct_start=0.35, three_phase=True,
                                                   cycle_momentum=False), 25),
        "chained": (lambda o: S.ChainedScheduler([S.LinearLR(o, 0.2, 1.0, 4), S.StepLR(o, 5, 0.5)]), 14),
        "sequential": (lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 4), S.CosineAnnealingLR(o, 10),
                                                    S.StepLR(o, 2, 0.1)], [4, 12]), 18),
        "exponential": (lambda o: S.ExponentialLR(o, 0.8), 9),
        "polynomial": (lambda o: S.PolynomialLR(o, 7, 2.0), 10),
        "lambda": (lambda o: S.LambdaLR(o, lambda step: 1 / (1 + step)), 8),
        "restarts": (lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.02), 30),
        "warmup_exponential": (lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 4), S.ExponentialLR(o, 0.8)],
                                                        [4]), 9),
        "warmup_polynomial": (lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.25, 1.0, 3), S.PolynomialLR(o, 6, 0.9)],
                                                       [3]), 11),
        "plateau": (lambda o: S.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=0.06), len(METRICS)),
        "plateau_max": (lambda o: S.ReduceLROnPlateau(o, mode="max", factor=0.2, patience=1, threshold=0.05,
                                                      threshold_mode="abs"), len(METRICS)),
    }
    result = {name: rates(make, steps) for name, (make, steps) in makers.items()}
    result["metrics"] = torch.tensor(METRICS, dtype=torch.float64)
    return result
