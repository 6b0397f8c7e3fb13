# SPDX-License-Identifier: Apache-2.0
"""What the peers of whole programs share: PyTorch on the wanted device, the timing of training steps, their memory."""
import resource
import sys
import time

WARM_UP = 3  # steps that are not timed


def import_torch(program, device):
    """PyTorch, or the end of the program in one line."""
    try:
        import torch
    except ImportError as error:
        sys.exit(f"{program}: PyTorch cannot be imported: {error}")
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"{program}: PyTorch {torch.__version__} sees no GPU")
    return torch


def report(torch, device, name, step, steps, amount, unit):
    """Calls step() WARM_UP times and then `steps` times more; prints `amount` times those per second, the time of a step and the peak memory."""
    on_gpu = device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM_UP):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    rate = amount * steps / (time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{name}\t{rate:.6g}\t{unit}\n{name}_step\t{1000 * amount / rate:.6g}\tms\n{name}_memory\t{peak:.6g}\tMiB", flush=True)
