#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside_pytorch.py FINETUNE: torch.optim goes on from finetune's optimizer.pt and scheduler.pt. Exit code 77 without PyTorch.

torch.optim counts each parameter's steps in place: were they one tensor in the file, a step would count for each."""
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([Path(__file__).parents[2] / "tools/practice_data", "texts", folder], check=True)
    subprocess.run([sys.argv[1], "--data", folder, "--model", "bert_tiny", "--vocab-size", "100", "--epochs", "1", "--lr", "1e-3", "--max-steps", "20",
                    "--save-steps", "20", "--weight-decay", "0.01", "--device", "cpu", "--out", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
    saved, rates = (torch.load(f"{folder}/run/checkpoint-20/{name}.pt") for name in ("optimizer", "scheduler"))
groups = [{"params": [torch.nn.Parameter(torch.zeros_like(saved["state"][i]["exp_avg"])) for i in group["params"]]} for group in saved["param_groups"]]
adam = torch.optim.AdamW(groups, lr=1)
adam.load_state_dict(saved)
schedule = torch.optim.lr_scheduler.LambdaLR(adam, [lambda step: 1 - step / 30] * 2)  # 240 texts: 30 steps
schedule.load_state_dict({**rates, "lr_lambdas": [None] * 2})
for group in groups:
    for parameter in group["params"]:
        parameter.grad = torch.ones_like(parameter)
adam.step()
schedule.step()
steps = {float(state["step"]) for state in adam.state.values()}
print("steps", steps, schedule.last_epoch, schedule.get_last_lr())
assert steps == {21.0} and schedule.last_epoch == 21 and abs(schedule.get_last_lr()[1] - 1e-3 * 9 / 30) < 1e-9
