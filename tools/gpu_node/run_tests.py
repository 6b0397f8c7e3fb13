#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs GoogleTest programs on a GPU, many tests a process, and loses none when one crashes, hangs or breaks its CUDA context.

usage: tools/gpu_node/run_tests.py BIN OUT [--jobs 8] [--patience 25] [--minutes 3] [--again 15] PROGRAM[:FILTER]…

Each process takes a share of one program's tests, those of the first programs first: name slow programs first. After a crash,
a test that prints nothing for --patience seconds, or a failure after which every further call would fail, the rest goes on in a new process.
What failed or crashed, 20 tests at most, then runs once more, each in a process of its own with WEFT_SYNC=1, which names the
kernel of an error, for --again seconds at most. A test that passes then has failed all the same.

OUT/tests.tsv has a line per test, written when it ends: program, test, PASS, SKIP, FAIL, CRASH, HANG or LATE (--minutes ended
before it did), and seconds; OUT/failures.txt what the others printed. Exit status: 0 when every test passed or was skipped.
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
REPEATED = 20  # tests that run again
AT_THE_END = "(the end of its process)"
LEAST_SHARE, MOST_SHARE = 4, 24  # tests of one process: it takes about a second to begin


def list_tests(program, pattern, environment):
    """(tests, None), or ([], why there are none)."""
    words = [str(program), "--gtest_list_tests"] + ([f"--gtest_filter={pattern}"] if pattern else [])
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"{program.name} lists no tests: {error}"
    if done.returncode:
        return [], f"{program.name} lists no tests: {(done.stderr + done.stdout)[-500:]}"
    tests, suite = [], ""
    for line in done.stdout.splitlines():
        name = line.split("  #")[0].rstrip()
        if not line.startswith(" "):
            suite = name if name.endswith(".") else ""
        elif suite:
            tests.append(suite + name.strip())
    tests = [test for test in tests if "DISABLED_" not in test]
    return tests, None if tests else f"{program.name}: no test{f' is called {pattern}' if pattern else ''}"


class Checks:
    """Runs tests until `end`; writes `table` and `failures` as they go."""

    def __init__(self, table, failures, patience, end, environment, title=""):
        self.table, self.failures, self.patience, self.end, self.environment, self.title = table, failures, patience, end, environment, title
        self.lock, self.results = threading.Lock(), []

    def note(self, program, test, word, seconds, text):
        with self.lock:
            self.results.append((program, test, word))
            if self.table:
                print(program.name, test, word, f"{seconds:.3f}", sep="\t", file=self.table, flush=True)
            if word not in ("PASS", "SKIP", "LATE") or self.title:
                print(f"==== {self.title}{word} {program.name} {test} ({seconds:.1f} s)\n{text[:6000]}\n", file=self.failures, flush=True)
                print(f"{self.title}{word} {program.name} {test} ({seconds:.1f} s)", flush=True)

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

        def done_with(word, text):
            culprit = current or (left[0] if left else f"{tests[-1]} {AT_THE_END}")
            self.note(program, culprit, word, time.monotonic() - began, text)
            if left:
                left.remove(culprit)

        def end(word):
            """Ends the process; what it was at is `word`, and is done with."""
            process.kill()
            process.wait()
            process.stdout.close()
            if word:
                done_with(word, text)
            return left

        while True:
            ready, _, _ = select.select([process.stdout], [], [], max(0, min(self.patience, self.end - time.monotonic())))
            if time.monotonic() > self.end:
                return end("LATE")
            if not ready:
                if process.poll() is not None:
                    break  # it has ended, and left a child that holds the pipe
                return end("HANG")
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
                    current, began = None, time.monotonic()
                    if word == "FAIL" and STICKY.search(text) and left:
                        return end(None)
                else:
                    text += line + "\n"
        code = process.wait()
        process.stdout.close()
        if left or code not in (0, 1):  # in the midst of a test, before any, or after the last one
            done_with("CRASH", f"{text}{buffer.decode(errors='replace')}\nexit status {code}")
        return left


def shares(tests, jobs):
    """Tests by process: few where the program has few, so that slow ones do not wait for one another."""
    size = max(LEAST_SHARE, min(MOST_SHARE, -(-len(tests) // jobs)))
    return [tests[i:i + size] for i in range(0, len(tests), size)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--patience", type=float, default=25)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--again", type=float, default=15, help="seconds")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    environment = {"WEFT_TEST_DEVICES": "cuda", "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", **os.environ}
    programs = [(arguments.bin / name, pattern) for name, _, pattern in (one.partition(":") for one in arguments.programs)]
    with open(arguments.out / "tests.tsv", "w") as table, open(arguments.out / "failures.txt", "w") as failures, \
            ThreadPoolExecutor(arguments.jobs) as pool:
        checks = Checks(table, failures, arguments.patience, started + 60 * arguments.minutes, environment)
        listed = list(pool.map(lambda one: list_tests(*one, environment), programs))
        unlisted = [error for _, error in listed if error]
        for line in unlisted:
            print(line, file=failures)
            print(line, flush=True)
        list(pool.map(lambda one: checks.run(*one),
                      [(program, share) for (program, _), (tests, _) in zip(programs, listed) for share in shares(tests, arguments.jobs)]))
        bad = [(program, [test]) for program, test, word in checks.results if word in ("FAIL", "CRASH") and AT_THE_END not in test][:REPEATED]
        again = Checks(None, failures, arguments.patience, time.monotonic() + arguments.again, {**environment, "WEFT_SYNC": "1"},
                       "again with WEFT_SYNC=1: ")
        list(pool.map(lambda one: again.run(*one), bad))
    words = [word for _, _, word in checks.results]
    print(f"{len(words)} tests in {time.monotonic() - started:.0f} s: " + ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words))))
    return 0 if words and not unlisted and set(words) <= {"PASS", "SKIP"} else 1


if __name__ == "__main__":
    sys.exit(main())
