#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two phases of linear_probe in eager PyTorch on made-up images: images/s, time of a step, peak memory of each.

  python3 benchmarks/peers/pytorch_linear_probe.py --model dinov2_vits14 -b 256 --steps 20            # one GPU, bf16
  python3 benchmarks/peers/pytorch_linear_probe.py --model vit_tiny4 -b 4 --steps 2 --device cpu --precision f32

The probe runs the frozen backbone in every step, as the workflow's script does; fine-tuning trains everything. On a GPU the model is
under FSDP (FULL_SHARD, bf16 parameters, world size 1), on the CPU it is bare. Beside it: linear_probe --cache-features off with the same flags.
"""
import argparse
import os
import sys

from pytorch_steps import import_torch, report

MODELS = {"vit_tiny4": (192, 6, 3, 4, 32), "dinov2_vits14": (384, 12, 6, 14, 224), "dinov2_vitb14": (768, 12, 12, 14, 224),
          "dinov2_vitl14": (1024, 24, 16, 14, 224)}


def make_model(torch, name):
    """The transformer of the DINOv2 paper without registers; positions are those of its own image size."""
    nn, functional = torch.nn, torch.nn.functional
    width, depth, heads, patch, side = MODELS[name]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.ls1, self.ls2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

        def attend(self, x):
            count, tokens, _ = x.shape
            q, k, v = self.qkv(x).reshape(count, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            if hasattr(functional, "scaled_dot_product_attention"):
                y = functional.scaled_dot_product_attention(q, k, v)
            else:
                y = (q @ k.transpose(-2, -1) / (width // heads) ** 0.5).softmax(-1) @ v
            return self.proj(y.transpose(1, 2).reshape(count, tokens, width))

        def forward(self, x):
            x = x + self.ls1 * self.attend(self.norm1(x))
            return x + self.ls2 * self.fc2(functional.gelu(self.fc1(self.norm2(x))))

    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch_embed = nn.Conv2d(3, width, patch, patch)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
            self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + (side // patch) ** 2, width))
            self.blocks = nn.ModuleList(Block() for _ in range(depth))
            self.norm, self.linear = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 100)
            self.frozen = True

        def forward(self, x):
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
                x = self.patch_embed(x).flatten(2).transpose(1, 2)
                x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
                for block in self.blocks:
                    x = block(x)
                x = self.norm(x[:, 0])
            return self.linear(x) if self.frozen else self.linear(x) / 8

    return Probe(), side


def sharded(torch, model, args):
    """Under FSDP with the workflow's policy and precision, alone in the world."""
    import functools
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
    if not torch.distributed.is_initialized():
        os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"})
        torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    low = MixedPrecision(param_dtype=torch.bfloat16, cast_forward_inputs=True) if args.precision == "bf16" else None
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=args.min_num_params)
    return FullyShardedDataParallel(model, auto_wrap_policy=policy, mixed_precision=low, device_id=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(MODELS), default="dinov2_vitl14")
    parser.add_argument("-b", "--batch_size", "--batch-size", type=int, default=256)
    parser.add_argument("-lr", "--lr", type=float, default=1e-3)
    parser.add_argument("--precision", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--min-num-params", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=20, help="timed, after three that are not")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    args = parser.parse_args()
    torch = import_torch("pytorch_linear_probe.py", args.device)
    on_gpu = args.device == "cuda"
    torch.manual_seed(1)
    for phase, lr in (("probe", args.lr), ("finetune", args.lr / 8)):
        model, side = make_model(torch, args.model)
        model.frozen = phase == "probe"
        model = sharded(torch, model, args) if on_gpu else model
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        x = torch.randn(args.batch_size, 3, side, side, device=args.device)
        y = torch.randint(100, (args.batch_size,), device=args.device)

        def step(model=model, optimizer=optimizer, x=x, y=y):
            with torch.autocast("cpu", torch.bfloat16, enabled=not on_gpu and args.precision == "bf16"):
                loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        report(torch, args.device, f"{args.model}_{phase}", step, args.steps, args.batch_size, "images/s")
        del model, optimizer, step
    if on_gpu:
        torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
