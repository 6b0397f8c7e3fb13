# SPDX-License-Identifier: Apache-2.0
"""A training run under weft-run, as an attacker sees it: its ranks, its files, what became of it."""

import atexit
import os
import pathlib
import re
import signal
import subprocess
import time

# A job's message when it gives up: its last line must match.
ERROR = re.compile(r"^(weft-run|train_image|store|weft): .*|^.*\berror: .+", re.M)
CRASH = re.compile(r"terminate called|ended by signal (4|6|7|8|11) |Sanitizer|Segmentation fault")
TIMEOUT = 6  # WEFT_TIMEOUT: after so many seconds the others must give up a rank that says nothing


class Lost(Exception):
    """What must not happen: a hang, a crash, an end without a word, a wrong result."""


def run_flags(ranks, epochs):
    return (f"--data random:64x8x8x3 --model resnet8 --augment cifar --batch-size {max(1, 16 // ranks)} --epochs {epochs} "
            "--workers 0 --lr 0.02 --device cpu --backend gloo --resume auto").split()


class Job:
    """`wrap`: words before the program, in each rank (a shell script in `attacked`, for one of them). `node`: words before
    weft-run, and its flags for a job of several nodes. `more`: flags of the program. `start_timeout`: WEFT_START_TIMEOUT, on a crowded machine far from what a start takes;
    less where a rank that is stopped while they meet is waited for so long."""

    def __init__(self, tools, folder, ranks, epochs, name="run", restarts=0, port=None, wrap=(), environment=(), node=None,
                 before=(), more=(), start_timeout=30):
        self.folder, self.ranks, self.restarts = folder, ranks, restarts
        self.out, self.weights = folder / "run", folder / "weights.safetensors"
        self.log = folder / f"{name}.log"
        self.read, self.restarts_seen = 0, 0
        command = [*before, tools.launcher, "--max_restarts", str(restarts), "--grace", "8"]
        command += node or ["--nproc_per_node", str(ranks)]
        if port:
            command += ["--master_port", str(port)]
        command += [*wrap, tools.program, *run_flags(ranks, epochs), *more, "--out", str(self.out), "--export", str(self.weights)]
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "WEFT_TIMEOUT": str(TIMEOUT),
                     "WEFT_START_TIMEOUT": str(start_timeout), "WEFT_STALL_REPORT": "2", **dict(environment)}
        self.process = subprocess.Popen(command, stdout=self.log.open("wb"), stderr=subprocess.STDOUT, env=variables,
                                        cwd=folder, start_new_session=True)
        atexit.register(self.process.kill)  # a driver that fails leaves no job; its keeper ends the ranks

    def pids(self):
        """Process ids by rank; those that are there now."""
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

    def all_pids(self, seconds=60):
        """The same, when all are there."""
        until = time.monotonic() + seconds
        while len(pids := self.pids()) < self.ranks and self.running() and time.monotonic() < until:
            time.sleep(0.02)
        return pids

    def epochs(self):
        try:
            return (self.out / "metrics.jsonl").read_bytes().count(b"\n") // 2
        except OSError:
            return 0

    def running(self):
        return self.process.poll() is None

    def wait_until(self, condition, seconds=60):
        """False: the job ended before."""
        until = time.monotonic() + seconds
        while not condition():
            if not self.running():
                return False
            if time.monotonic() > until:
                raise Lost(f"nothing happened for {seconds} s")
            time.sleep(0.005)
        return True

    def end(self, seconds):
        """The exit code. Lost: it hangs, crashed, or ended without saying why."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Lost(f"still running after {seconds} s") from None
        text = self.text()
        if CRASH.search(text):
            raise Lost(f"crashed: {CRASH.search(text).group(0)}")
        if status != 0 and not ERROR.search(text):
            raise Lost(f"ended with {status} and not a word")
        return status

    def kill(self):
        for pid in self.pids().values():
            signal_process(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def text(self, begin=0):
        return self.log.read_bytes()[begin:].decode(errors="replace")

    def restarted(self):
        """How often. Reads the log from where it stopped: many ranks write megabytes."""
        with self.log.open("rb") as log:
            log.seek(self.read)
            text = log.read()
        text = text[:text.rfind(b"\n") + 1]
        self.read += len(text)
        self.restarts_seen += text.count(b"weft-run: restarting all ranks")
        return self.restarts_seen


def signal_process(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
