#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch: the cases of build/bin/bench under the same names, one line `case<TAB>value<TAB>unit` each.

  python3 benchmarks/peers/pytorch.py --device cuda --seconds-total 60     # the suite gpu
  python3 benchmarks/peers/pytorch.py --device cpu --filter resnet18       # the suite cpu

A case whose images may lie in two orders is there twice, NAME (NCHW) and NAME@channels_last, a network a third time as
NAME@compiled (torch.compile); the best one counts.
The flags are those of bench. f32 means f32: TF32 is off, as in Weft.
"""

import argparse
import os
import re
import statistics
import sys
import time

SCALES = {"images/s": 1, "sequences/s": 1, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "GB/s": 1e9, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
RATES = {"images/s", "sequences/s", "GFLOP/s", "TFLOP/s", "GB/s"}


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


def seconds_per_step(work, seconds, repetitions, wait):
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
    steps = max(1, round(target / one))
    return statistics.median(time_steps(work, steps, wait) / steps for _ in range(repetitions))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=["cpu", "gpu"], help="which cases (default: the device's)")
    parser.add_argument("--device", default="", help="cpu or cuda (default: the suite's)")
    parser.add_argument("--filter", default="", help="only cases whose names match this regular expression")
    parser.add_argument("--seconds", type=float, default=2, help="timed seconds of each case")
    parser.add_argument("--repetitions", type=int, default=7, help="each value is the median of so many")
    parser.add_argument("--seconds-total", type=float, default=0, help="all cases together; 0: no limit")
    parser.add_argument("--list", action="store_true", help="print the names and units of the cases")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: whether all cases run, not how fast")
    args = parser.parse_args()
    if not args.suite:
        args.suite = "gpu" if args.device.startswith("cuda") else "cpu"
    args.device = args.device or {"cpu": "cpu", "gpu": "cuda"}[args.suite]
    if args.repetitions < 1 or args.seconds < 0 or args.seconds_total < 0:
        parser.error("--repetitions: expected at least 1; --seconds, --seconds-total: at least 0")
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

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    on_gpu = args.device.startswith("cuda")
    wait = torch.cuda.synchronize if on_gpu else lambda: None

    cases = [case for case in pytorch_suites.suite(args.suite, args.device, args.tiny) if re.search(args.filter, case.name)]
    if not cases:
        sys.exit(f"pytorch.py: no case of the suite {args.suite} matches '{args.filter}'. --list prints them all")
    if args.list:
        for case in cases:
            print(f"{case.name}\t{case.unit}")
        return 0
    status = 0
    for i, case in enumerate(cases):
        seconds = args.seconds
        if args.seconds_total > 0:
            left = args.seconds_total - (time.perf_counter() - begin)
            if left <= 0:
                print(f"pytorch.py: {case.name}: not measured, --seconds-total is used up", file=sys.stderr)
                continue
            seconds = min(seconds, left / (len(cases) - i) / 2)  # preparing and warming take about as long again
        try:
            if case.value:
                value = case.value()
            else:
                work = case.prepare()
                value = in_unit(case.unit, seconds_per_step(work, seconds, args.repetitions, wait), work.amount)
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
