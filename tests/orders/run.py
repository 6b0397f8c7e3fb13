#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Weft's GoogleTest programs on the emulated GPU, and says of each test: passed, failed, skipped or too slow.

    tests/orders/run.py [options] [PROGRAM…]     without names: all programs that have tests for cuda

Only the device cuda is tested (WEFT_TEST_DEVICES=cuda). Many tests share one process. After a failure, a crash or a test
that is stopped at --limit, a new process goes on with the next test: a fault of a kernel stays with its process, so later
tests of it would fail as well. Ends with 0 when no test failed or was stopped, and at least --least passed.
With --streams random the seed is --seed, or $WEFT_TEST_SEED, or the day: another one each day, and printed."""
import argparse
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Each program's tests that use a GPU, and a lower bound on their number: a few less than there are.
PROGRAMS = {
    "test_kernels": ("*-*OnCpu*:Bf16InF32.*:BriefWaits.*:Conv2dWinograd.*:KernelCost.*:VectorMath.WithinTwoUlpOverAllOfF32", 240),
    "test_hopper": ("*", 34),
    "test_ops": ("*", 830),
    "test_ladder": ("*", 32),
    "test_engines": ("*-Cudnn*", 65),  # their plans are for machine code
    "test_core": ("*cuda*:Autograd.A*:DLPack.OutAndIn*:GraphErrors.*:Profile.*", 35),
    "test_data": ("*cuda*:Fields.*:LoaderOnGpu.*:Mixup.IsTheSameBitsOnEveryDevice:OwnDataset.*", 9),
    "test_nn": ("ConvBn.*:Fp8Linear.ATraining*:Fp8Linear.Refuses*", 9),
    "test_dist": ("*cuda*:Nccl.*:*OnGpu*:DdpErrors.AG*:DistributedOptimizer.OnEveryDevice:DropoutOfRanks.*:"
                  "FsdpKernels.AResNet*:Pipeline.HalfPrecision*:*TensorParallelGradients.*", 82),
    "test_golden": ("*cuda*:*Modules.*:Losses.*:*MoreOptimizers.*", 44),
    "test_train_image": ("OnGpu.*:*GraphedTraining*", 13),
}
OUTCOME = re.compile(r"\[\s+(OK|FAILED|SKIPPED)\s+\] (\S+?)(?:, where .*)? \((\d+) ms\)")


class Result:
    def __init__(self, program, name, outcome, seconds, output=""):
        self.program, self.name, self.outcome, self.seconds, self.output = program, name, outcome, seconds, output

    def reason(self):
        """The first lines of the output that say what happened."""
        said = [line.strip() for line in self.output.splitlines() if line.strip() and not line.startswith("[")]
        emulator = [line for line in said if "weft-emulate" in line]
        return " / ".join((emulator or said)[:3])[:400]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help=", ".join(PROGRAMS))
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of the programs (default build/bin)")
    parser.add_argument("--emulate", type=Path, help="weft-emulate (default: the one in --bin)")
    parser.add_argument("--filter", help="GoogleTest's filter, instead of the tests that use a GPU")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a test may take (default 60)")
    parser.add_argument("--least", type=int, help="fail when fewer tests pass (default: what is known of the programs; with --filter 1)")
    parser.add_argument("--log", type=Path, help="a line for each test as it ends, with the output of those that fail")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    for option in ("--gpu", "--gpus", "--streams", "--check", "--seed", "--threads"):
        parser.add_argument(option, help="as weft-emulate has it")
    options = parser.parse_args()
    options.programs = options.programs or list(PROGRAMS)
    options.emulate = options.emulate or options.bin / "weft-emulate"
    if options.least is None:
        options.least = 1 if options.filter else sum(PROGRAMS.get(program, ("*", 1))[1] for program in options.programs)
    if options.streams == "random" and options.seed is None:
        options.seed = os.environ.get("WEFT_TEST_SEED") or str(int(time.time()) // 86400)
        print(f"WEFT_TEST_SEED={options.seed}", flush=True)
    options.command = [str(options.emulate)]
    for name in ("gpu", "gpus", "streams", "check", "seed", "threads"):
        if getattr(options, name) is not None:
            options.command += [f"--{name}", getattr(options, name)]
    return options


def listed(options, program, chosen):
    """The names of the program's tests; they depend on the devices that it finds."""
    done = subprocess.run([*options.command, str(options.bin / program), "--gtest_list_tests", f"--gtest_filter={chosen}"],
                          env=environment(), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"orders/run.py: {program} does not list its tests: {done.stderr.strip()}")
    names, suite = [], ""
    for line in done.stdout.splitlines():
        word = line.split("#")[0].rstrip()
        if word.startswith("  "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return [name for name in names if not name.split(".")[1].startswith("DISABLED_") and not name.startswith("DISABLED_")]


def environment():
    return os.environ | {"WEFT_TEST_DEVICES": "cuda"}


def stop(process):
    """The program with what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_some(options, program, names, report):
    """Runs tests in one process until one fails or is stopped; returns the names that are left."""
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
        flags.write("--gtest_filter=" + ":".join(names) + "\n")
        flags.flush()
        process = subprocess.Popen([*options.command, str(options.bin / program), f"--gtest_flagfile={flags.name}"],
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", start_new_session=True)
        lines = queue.Queue()

        def read():
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        current, began, output = None, time.monotonic(), ""
        while True:
            try:
                line = lines.get(timeout=max(0.0, began + options.limit - time.monotonic()))
            except queue.Empty:
                stop(process)
                name = current or names[0]
                report(Result(program, name, "too slow", options.limit, output))
                return [other for other in names if other != name]
            if line is None:
                break
            if line.startswith("[ RUN      ] "):
                current, began, output = line.split()[-1], time.monotonic(), ""
                continue
            ended = OUTCOME.search(line)
            if not ended or ended[2] != current:
                output += line
                continue
            output += line[: ended.start()]  # what the test wrote without an end of line
            outcome = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[ended[1]]
            report(Result(program, current, outcome, float(ended[3]) / 1000, output))
            names = [other for other in names if other != current]
            current, began = None, time.monotonic()
            if outcome == "failed":
                stop(process)
                return names
        status = process.wait()
        if current or (names and status != 0):
            name = current or names[0]
            report(Result(program, name, "crashed", time.monotonic() - began, f"{output}\nexit status {status}"))
            return [other for other in names if other != name]
        if names:
            sys.exit(f"orders/run.py: {program} ended with 0 and did not run {names[0]}")
        if status != 0:  # of all tests together: 86 where --check found something
            report(Result(program, "exit", "crashed", 0, f"{output}\nexit status {status}"))
        return []


def table(options, results):
    outcomes = ("passed", "failed", "crashed", "too slow", "skipped")
    words = " ".join(["weft-emulate", *options.command[1:]])
    text = [f"`{words}`, at most {options.limit:g} s a test:", "", "| program | " + " | ".join(outcomes) + " | seconds |",
            "| --- |" + " ---: |" * (len(outcomes) + 1)]
    for program in dict.fromkeys(r.program for r in results):
        own = [r for r in results if r.program == program]
        counts = [str(sum(r.outcome == outcome for r in own)) for outcome in outcomes]
        text.append(f"| {program} | " + " | ".join(counts) + f" | {sum(r.seconds for r in own):.0f} |")
    bad = [r for r in results if r.outcome in ("failed", "crashed", "too slow")]
    if bad:
        text += ["", "| test | outcome | what it said |", "| --- | --- | --- |"]
        text += [f"| {r.program} {r.name} | {r.outcome} | {r.reason().replace('|', chr(92) + '|')} |" for r in bad]
    return "\n".join(text) + "\n"


def main():
    options = arguments()
    results = []
    log = options.log.open("w") if options.log else None

    def report(result):
        results.append(result)
        if result.outcome not in ("passed", "skipped"):
            print(f"{result.program} {result.name}: {result.outcome} after {result.seconds:.1f} s", flush=True)
            print(result.output, flush=True)
        if log:
            log.write(f"{result.outcome}\t{result.seconds:.3f}\t{result.program}\t{result.name}\n")
            if result.outcome != "passed":
                log.write("".join(f"\t{line}\n" for line in result.output.splitlines()[:40]))
            log.flush()

    for program in options.programs:
        names = listed(options, program, options.filter or PROGRAMS.get(program, ("*", 1))[0])
        if not names and not options.filter:
            sys.exit(f"orders/run.py: {program} has no tests of {PROGRAMS[program][0]}")
        while names:
            names = run_some(options, program, names, report)
    text = table(options, results)
    print(text)
    if options.markdown:
        options.markdown.write_text(text)
    passed = sum(r.outcome == "passed" for r in results)
    if passed < options.least:
        sys.exit(f"orders/run.py: expected at least {options.least} tests to pass, {passed} did")
    return 1 if any(r.outcome in ("failed", "crashed", "too slow") for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
