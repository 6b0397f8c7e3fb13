# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's data parallelism over Gloo, as benchmarks/dist/steps.cpp: rank 0 prints the median milliseconds of a step.

  OMP_NUM_THREADS=1 torchrun --standalone --nproc_per_node 2 benchmarks/peers/pytorch_parallel.py ddp|fsdp resnet18|bert_base STEPS

fsdp is FSDP2 (fully_shard) over each block and the whole. ResNet-18 is channels_last, its faster layout; FSDP2 refuses
such weights, so there the images alone are.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pytorch_resnet import ResNet
from pytorch_transformers import Bert


def make(name, kind):
    if name == "resnet18":
        layout = torch.channels_last if kind == "ddp" else torch.contiguous_format
        model = ResNet(bottleneck=False, cifar=True, classes=10, tiny=False).to(memory_format=layout)
        return model, torch.randn(32, 3, 32, 32).to(memory_format=torch.channels_last), torch.arange(32) % 10
    return Bert(), torch.arange(1000, 1000 + 4 * 128).view(4, 128), torch.arange(4) % 2


def main():
    kind, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model, x, labels = make(name, kind)
    if kind == "ddp":
        net = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        net = fully_shard(model, mesh=mesh)
    adam = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-2, fused=kind == "ddp")
    seconds = []
    for i in range(-2, steps):
        start = time.perf_counter()
        loss = F.cross_entropy(net(x), labels)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        if i >= 0:
            seconds.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print(f"{1000 * statistics.median(seconds):.6g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
