#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch: the cases of build/bin/bench under the same names, one line `case<TAB>value<TAB>unit` each.

  python3 benchmarks/peers/pytorch.py --device cuda --seconds-total 60     # the suite gpu
  python3 benchmarks/peers/pytorch.py --device cpu --filter resnet18       # the suite cpu

A case whose images may lie in two orders is there twice, NAME (NCHW) and NAME@channels_last, a network a third time as
NAME@compiled (torch.compile); the best one counts. Each case has a figure before its other variants begin: first the one that is expected to be the best
without compiling, networks before ops; what compiles comes last. With --seconds-total a case's share of what is left counts
from its preparation on, and torch.compile is begun only while 30 seconds are left.
The flags are those of bench. f32 means f32: TF32 is off, as in Weft.
"""

import argparse
import os
import re
import statistics
import sys
import time

SCALES = {"images/s": 1, "sequences/s": 1, "tokens/s": 1, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "GB/s": 1e9, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
RATES = {"images/s", "sequences/s", "tokens/s", "GFLOP/s", "TFLOP/s", "GB/s"}


def in_unit(unit, seconds, amount):
    return amount / seconds / SCALES[unit] if unit in RATES else seconds / amount / SCALES[unit]


def time_steps(work, count, wait):
    """Seconds of `count` steps, without what comes before each (benchmarks/harness/measure.cpp)."""
    seconds = 0.0
    if work.before:
        for _ in range(count):
            work.before()
            wait()
            start = time.perf_counter()
            work.step()
            wait()
            seconds += time.perf_counter() - start
        return seconds
    wait()
    start = time.perf_counter()
    for _ in range(count):
        work.step()
    wait()
    return time.perf_counter() - start


def seconds_per_step(work, seconds, repetitions, wait, until=None):
    """Seconds of a step: the median of `repetitions`. With `until`, a time of perf_counter, of as many as end by then, three at least."""
    target = seconds / repetitions
    begin = time.perf_counter()
    time_steps(work, 1, wait)
    count = 1
    passed = time_steps(work, count, wait)
    while passed < min(0.02, target):
        count *= 2
        passed = time_steps(work, count, wait)
    one = max(passed / count, 1e-10)
    while time.perf_counter() - begin < min(0.5, target):
        time_steps(work, count, wait)
    if until:
        seconds = min(seconds, max(0.03, until - time.perf_counter()))
        target = seconds / repetitions
    steps = max(1, round(target / one))
    if until:
        repetitions = max(min(3, repetitions), min(repetitions, int(seconds / (steps * one))))
    return statistics.median(time_steps(work, steps, wait) / steps for _ in range(repetitions))


COMPILING = 30  # seconds that torch.compile takes of a network, and more


def compiles(case):
    return case.name.endswith("@compiled")


def in_order(cases):
    """First one variant of each case, its last one that is not compiled (channels_last, fused); then the others; then what compiles."""
    last = {case.name.partition("@")[0]: case for case in cases if not compiles(case)}

    def key(case):
        plain = case.name.partition("@")[0]
        return (2 if compiles(case) else last[plain] is not case, not re.search(r"_(train|infer)_", plain))

    return sorted(cases, key=key)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=["cpu", "gpu", "ops"], help="which cases (default: the device's)")
    parser.add_argument("--device", default="", help="cpu or cuda (default: the suite's)")
    parser.add_argument("--filter", default="", help="only cases whose names match this regular expression")
    parser.add_argument("--seconds", type=float, default=2, help="timed seconds of each case")
    parser.add_argument("--repetitions", type=int, default=7, help="each value is the median of so many")
    parser.add_argument("--seconds-total", type=float, default=0, help="all cases together, preparations and PyTorch's import included; 0: no limit")
    parser.add_argument("--cudnn-plans", type=int, default=10, help="plans that cuDNN tries for each convolution; 0: all")
    parser.add_argument("--list", action="store_true", help="print the names and units of the cases")
    parser.add_argument("--tf32", action="store_true", help="f32 products and convolutions may use tf32; PyTorch's own default: convolutions alone")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: whether all cases run, not how fast")
    args = parser.parse_args()
    if not args.suite:
        args.suite = "gpu" if args.device.startswith("cuda") else "cpu"
    args.device = args.device or "cuda" if args.suite == "gpu" else "cpu"
    if args.repetitions < 1 or min(args.seconds, args.seconds_total, args.cudnn_plans) < 0:
        parser.error("--repetitions: expected at least 1; --seconds, --seconds-total, --cudnn-plans: at least 0")
    try:
        re.compile(args.filter)
    except re.error as error:
        parser.error(f"--filter: '{args.filter}' is no regular expression: {error}")
    return args


def main():
    begin = time.perf_counter()
    args = arguments()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"pytorch.py: PyTorch cannot be imported: {error}")
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(f"pytorch.py: PyTorch {torch.__version__} sees no GPU for --device {args.device}")
    import pytorch_suites

    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    torch.backends.cudnn.allow_tf32 = args.tf32
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    on_gpu = args.device.startswith("cuda")
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    if on_gpu:
        torch.backends.cudnn.benchmark_limit = args.cudnn_plans

    cases = in_order([case for case in pytorch_suites.suite(args.suite, args.device, args.tiny) if re.search(args.filter, case.name)])
    if not cases:
        sys.exit(f"pytorch.py: no case of the suite {args.suite} matches '{args.filter}'. --list prints them all")
    if args.list:
        for case in cases:
            print(f"{case.name}\t{case.unit}")
        return 0
    status = 0
    for i, case in enumerate(cases):
        seconds, until = args.seconds, None
        if args.seconds_total > 0:
            now = time.perf_counter()
            left = args.seconds_total - (now - begin)
            if left <= (COMPILING if compiles(case) else 0):
                print(f"pytorch.py: {case.name}: not measured, --seconds-total is used up", file=sys.stderr)
                continue
            share = left / sum(compiles(one) == compiles(case) for one in cases[i:])
            seconds, until = min(seconds, share), now + share
        try:
            if case.value:
                value = case.value()
            else:
                work = case.prepare()
                value = in_unit(case.unit, seconds_per_step(work, seconds, args.repetitions, wait, until), work.amount)
                del work
            print(f"{case.name}\t{value:.6g}\t{case.unit}", flush=True)
        except RuntimeError as error:  # the others are measured all the same
            print(f"pytorch.py: {case.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            status = 1
        if on_gpu:
            torch.cuda.empty_cache()
    return status


if __name__ == "__main__":
    sys.exit(main())
