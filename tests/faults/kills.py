#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills ranks of a training run, and stops one, as a node that dies or hangs would.

  kills.py WEFT_RUN TRAIN_IMAGE

WEFT_KILLS times (2): a random rank of three is killed at a random moment of training. The other ranks must end with an error
that names it, within the deadline; weft-run must start all again; and the run must end in the weights of one that was left
alone. Then rank 0 is stopped, and another one: the others must name it and the collective, and give up at the deadline.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 3
DEADLINE = 20  # seconds in which the others must have noticed a death, on a crowded machine
RUN = ("--data random:96x8x8x3 --model resnet8 --augment cifar --batch-size 8 --epochs 240 --workers 0 --lr 0.02 --device cpu "
       "--backend gloo --resume auto").split()


def fail(what, log=None):
    if log and log.exists():
        print(log.read_text()[-4000:], file=sys.stderr)
    sys.exit(f"error: {what}")


class Job:
    """A run under weft-run, with its log."""

    def __init__(self, folder, name, launcher, program, restarts=0, flags=()):
        self.folder, self.name = folder, name
        self.log = folder / f"{name}.log"
        self.out = folder / name
        self.weights = folder / f"{name}.safetensors"
        command = [launcher, "--nproc_per_node", str(RANKS), "--max_restarts", str(restarts), "--grace", "3", program, *RUN, *flags,
                   "--out", str(self.out), "--export", str(self.weights)]
        self.process = subprocess.Popen(command, stdout=self.log.open("wb"), stderr=subprocess.STDOUT)

    def ranks(self):
        """Process ids by rank."""
        found = {}
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        for pid in listed.stdout.split():
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            for entry in environment:
                if entry.startswith(b"RANK="):
                    found[int(entry[5:])] = int(pid)
        return found

    def wait_for_epochs(self, epochs):
        """Until that many epochs are in metrics.jsonl (two lines each)."""
        metrics = self.out / "metrics.jsonl"
        until = time.monotonic() + 120
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < 2 * epochs:
            if self.process.poll() is not None or time.monotonic() > until:
                fail(f"{self.name}: training did not reach epoch {epochs}", self.log)
            time.sleep(0.01)

    def end(self, seconds=180):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail(f"{self.name}: still running after {seconds} s", self.log)


def wait_until_gone(pids, seconds):
    start = time.monotonic()
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() - start > seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - start


def kill_one(folder, seed, launcher, program, whole):
    draw = random.Random(seed)
    job = Job(folder, f"killed_{seed}", launcher, program, restarts=1)
    job.wait_for_epochs(draw.randint(1, 100))
    time.sleep(draw.random() * 0.2)
    ranks = job.ranks()
    if len(ranks) != RANKS:
        fail(f"expected {RANKS} ranks, got {ranks}", job.log)
    victim = draw.randrange(RANKS)
    os.kill(ranks[victim], signal.SIGKILL)
    others = [pid for rank, pid in ranks.items() if rank != victim]
    seconds = wait_until_gone(others, DEADLINE)
    if seconds is None:
        fail(f"seed {seed}: rank {victim} was killed; others were still there {DEADLINE} s later", job.log)
    status = job.end()
    text = job.log.read_text()
    if status != 0:
        fail(f"seed {seed}: rank {victim} was killed; after the restart weft-run ended with {status}", job.log)
    if f"rank {victim} (process {ranks[victim]} on " not in text or "has died" not in text:
        fail(f"seed {seed}: no rank said that rank {victim} (process {ranks[victim]}) has died", job.log)
    if f"rank {victim} was ended by signal 9" not in text:
        fail(f"seed {seed}: weft-run did not say that rank {victim} was killed", job.log)
    if job.weights.read_bytes() != whole.weights.read_bytes():
        fail(f"seed {seed}: the restarted run ended in other weights than one that was left alone", job.log)
    print(f"seed {seed}: rank {victim} killed, the others gone after {seconds:.2f} s, restarted, same weights", flush=True)


def stop_one(folder, launcher, program, victim):
    os.environ.update(WEFT_TIMEOUT="8", WEFT_STALL_REPORT="2")
    job = Job(folder, f"stopped_{victim}", launcher, program, flags=["--epochs", "1000"])
    job.wait_for_epochs(2)
    ranks = job.ranks()
    os.kill(ranks[victim], signal.SIGSTOP)
    start = time.monotonic()
    status = job.end(90)
    seconds = time.monotonic() - start
    text = job.log.read_text()
    report = re.search(r"weft: (.*) waits 2(\.\d+)? s on rank (\d)", text)
    if not report or int(report.group(3)) == victim:
        fail(f"rank {victim} was stopped; no other rank reported a collective that waits", job.log)
    if f"rank {victim}" not in text[report.start():]:
        fail(f"rank {victim} was stopped; the report does not name it", job.log)
    if status == 0:
        fail(f"rank {victim} was stopped; weft-run ended with 0", job.log)
    if not 8 <= seconds < 8 + DEADLINE:
        fail(f"rank {victim} was stopped; the job ended after {seconds:.1f} s, the deadline was 8 s", job.log)
    line = text[report.start():].splitlines()[0]
    print(f"rank {victim} stopped: reported ({line}), given up after {seconds:.1f} s with status {status}", flush=True)


def main():
    launcher, program = sys.argv[1:3]
    kills = int(os.environ.get("WEFT_KILLS", "2"))
    with tempfile.TemporaryDirectory(prefix="weft_faults_") as name:
        folder = pathlib.Path(name)
        whole = Job(folder, "whole", launcher, program)
        if whole.end() != 0:
            fail("the run that was left alone failed", whole.log)
        first = random.SystemRandom().randrange(10**6)
        for seed in range(first, first + kills):
            kill_one(folder, seed, launcher, program, whole)
        for victim in (0, random.randrange(1, RANKS)):
            stop_one(folder, launcher, program, victim)
    print(f"{kills} of {kills} killed runs ended as the one that was left alone")


main()
