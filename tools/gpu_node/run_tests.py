#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs GoogleTest programs on a GPU, many tests a process, and loses none when one crashes, hangs or breaks its CUDA context.

usage: tools/gpu_node/run_tests.py BIN OUT [--jobs 8] [--patience 20] [--minutes 3] PROGRAM[:FILTER]…

Each process takes a share of one program's tests. After a crash, a test that prints nothing for --patience seconds, or a
failure after which every further call would fail, the rest goes on in a new process. OUT/tests.tsv has a line per test: program, test,
PASS, SKIP, FAIL, CRASH, HANG or LATE (--minutes ended before it ran), and seconds; OUT/failures.txt what the others printed.
Exit status: 0 when every test passed or was skipped.
"""
import argparse
import os
import pathlib
import re
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

STICKY = re.compile(r"illegal|misaligned|unspecified launch|sticky|hardware stack|assert triggered|context is destroyed", re.I)
ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \((\d+) ms\)")
BEGAN = re.compile(r"^\[ RUN +\] (\S+)")
WORDS = {"OK": "PASS", "FAILED": "FAIL", "SKIPPED": "SKIP"}


def list_tests(program, pattern, environment):
    words = [program, "--gtest_list_tests"] + ([f"--gtest_filter={pattern}"] if pattern else [])
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    if done.returncode:
        return [], f"{pathlib.Path(program).name} lists no tests: {(done.stderr + done.stdout)[-500:]}"
    tests, suite = [], ""
    for line in done.stdout.splitlines():
        name = line.split("  #")[0].rstrip()
        if not line.startswith(" "):
            suite = name if name.endswith(".") else ""
        elif suite:
            tests.append(suite + name.strip())
    return [test for test in tests if "DISABLED_" not in test], None


class Checks:
    def __init__(self, folder, patience, end, environment):
        self.folder, self.patience, self.end, self.environment = folder, patience, end, environment
        self.lock, self.results, self.failures = threading.Lock(), [], []

    def note(self, program, test, word, seconds, text):
        with self.lock:
            self.results.append((program.name, test, word, seconds))
            if word not in ("PASS", "SKIP", "LATE"):
                self.failures.append(f"==== {word} {program.name} {test} ({seconds:.1f} s)\n{text[:6000]}\n")
                print(f"{word} {program.name} {test} ({seconds:.1f} s)", flush=True)

    def run(self, program, tests):
        while tests:
            if time.monotonic() > self.end:
                for test in tests:
                    self.note(program, test, "LATE", 0, "")
                return
            tests = self.run_once(program, tests)

    def run_once(self, program, tests):
        """Runs until the end or the first break; returns the tests that are left."""
        process = subprocess.Popen([str(program), "--gtest_color=no", "--gtest_filter=" + ":".join(tests)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.environment)
        left, current, text, began, buffer = list(tests), None, "", time.monotonic(), b""

        def stop():
            process.kill()
            process.wait()
            process.stdout.close()

        while True:
            ready, _, _ = select.select([process.stdout], [], [], self.patience)
            if not ready or time.monotonic() > self.end + self.patience:
                stop()
                culprit = current or left[0]
                self.note(program, culprit, "HANG", time.monotonic() - began, text)
                left.remove(culprit)
                return left
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in (one.decode(errors="replace") for one in lines):
                if match := BEGAN.match(line):
                    current, text, began = match[1], "", time.monotonic()
                elif current and (match := ENDED.match(line)) and match[2] == current:
                    word = WORDS[match[1]]
                    self.note(program, current, word, int(match[3]) / 1000, text)
                    left.remove(current)
                    if word == "FAIL" and STICKY.search(text) and left:
                        stop()
                        return left
                    current = None
                    if time.monotonic() > self.end:
                        stop()
                        return left
                else:
                    text += line + "\n"
        code = process.wait()
        process.stdout.close()
        if left:  # it ended in the midst of a test, or before any
            culprit = current or left[0]
            self.note(program, culprit, "CRASH", time.monotonic() - began, f"{text}{buffer.decode(errors='replace')}\nexit status {code}")
            left.remove(culprit)
        return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--share", type=int, default=24, help="tests of one process")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    environment = {"WEFT_TEST_DEVICES": "cuda", "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", **os.environ}
    checks = Checks(arguments.out, arguments.patience, started + 60 * arguments.minutes, environment)
    shares, unlisted = [], []
    names = [(arguments.bin / (name := one.split(":")[0]), one[len(name) + 1:]) for one in arguments.programs]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for (program, _), (tests, error) in zip(names, pool.map(lambda one: list_tests(str(one[0]), one[1], environment), names)):
            unlisted += [error] if error else [] if tests else [f"{program.name}: no test"]
            shares += [(program, tests[i:i + arguments.share]) for i in range(0, len(tests), arguments.share)]
        list(pool.map(lambda one: checks.run(*one), shares))
    (arguments.out / "tests.tsv").write_text("".join(f"{p}\t{t}\t{w}\t{s:.3f}\n" for p, t, w, s in checks.results))
    (arguments.out / "failures.txt").write_text("\n".join(unlisted + checks.failures))
    counts = {}
    for _, _, word, _ in checks.results:
        counts[word] = counts.get(word, 0) + 1
    print(f"{len(checks.results)} tests in {time.monotonic() - started:.0f} s: " + ", ".join(f"{n} {w}" for w, n in sorted(counts.items())))
    for line in unlisted:
        print(line)
    return 0 if checks.results and not unlisted and set(counts) <= {"PASS", "SKIP"} else 1


if __name__ == "__main__":
    sys.exit(main())
