# SPDX-License-Identifier: Apache-2.0
"""Stages of a check, each with its own time limit and logs: a failure or hang does not affect the others' results."""
import dataclasses
import os
import pathlib
import signal
import subprocess
import time
from typing import Callable, Dict, List, Optional

PASS, FAIL, TIMEOUT, SKIPPED, STOPPED = "pass", "FAIL", "TIMEOUT", "skipped", "STOPPED"


@dataclasses.dataclass
class Command:
    """One program of a stage; its log is LOGS/NAME.log."""
    name: str
    words: List[str]
    environment: Dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Outcome:
    """The result of a stage. `lines` are the first lines of a failure, `facts` go into the JSON."""
    status: str = PASS
    seconds: float = 0
    what: str = ""
    lines: List[str] = dataclasses.field(default_factory=list)
    facts: dict = dataclasses.field(default_factory=dict)
    excused: bool = False  # skipped, and not expected to run on this device

    def good(self):
        return self.status == PASS or self.excused


@dataclasses.dataclass
class Stage:
    """Programs that run at the same time for at most `limit` seconds.

    `read(stage_run, outcome)` looks at the logs, also of a stage that was cut short, and may fail the stage. `needs` names
    stages that must have passed; `unless` says at the time why the stage cannot run, or None. `useful` is the least time
    that makes sense: with less left the stage is skipped. `not_here` says why the stage is no part of a check of this
    device: then it is skipped, and the check can pass without it.
    """
    name: str
    limit: float
    commands: List[Command] = dataclasses.field(default_factory=list)
    read: Optional[Callable] = None
    needs: List[str] = dataclasses.field(default_factory=list)
    unless: Callable[[], Optional[str]] = lambda: None
    prepare: Optional[Callable[[float], List[Command]]] = None
    useful: float = 5
    not_here: Optional[str] = None


def stretch(stages, total):
    """Extends the limits in proportion if they add up to less than `total` seconds."""
    limits = sum(stage.limit for stage in stages)
    if 0 < limits < total:
        for stage in stages:
            stage.limit *= total / limits


class StageRun:
    """The input of a stage's `read`: exit codes (None: killed) and logs by command name."""

    def __init__(self, logs):
        self.logs = logs
        self.exit_codes = {}

    def log(self, name):
        path = self.logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def all_logs(self):
        return "".join(self.log(name) for name in self.exit_codes)


def end_group(process, sign):
    try:
        os.killpg(process.pid, sign)
    except ProcessLookupError:
        pass


def end_all(processes, patience=3.0):
    """Ends processes with everything they started: SIGTERM, then SIGKILL after `patience` seconds."""
    for process in processes:
        end_group(process, signal.SIGTERM)
    until = time.monotonic() + patience
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        time.sleep(0.05)
    for process in processes:
        end_group(process, signal.SIGKILL)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            print(f"   process {process.pid} hangs in the driver: left running", flush=True)


def first_lines(text, count=20):
    """The lines of a failure: from the first that looks like an error, else the last ones."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    marks = ("error", "failed", "failure", "fatal", "exception", "not found", "terminate")
    for i, line in enumerate(lines):
        if any(mark in line.lower() for mark in marks):
            return lines[i:i + count]
    return lines[-count:]


class Runner:
    """Runs stages one after the other within `total` seconds; calls `after(results)` after each."""

    def __init__(self, logs: pathlib.Path, total: float, after: Callable[[Dict[str, Outcome]], None]):
        self.logs = logs
        self.ends = time.monotonic() + total
        self.after = after
        self.results: Dict[str, Outcome] = {}
        self.stopped_by: Optional[str] = None  # a signal handler sets it: the running stage ends, the others are skipped
        logs.mkdir(parents=True, exist_ok=True)

    def left(self):
        return self.ends - time.monotonic()

    def why_not(self, stage):
        for need in stage.needs:
            outcome = self.results.get(need)
            if outcome is None or outcome.status != PASS:
                return f"needs stage '{need}', which is {outcome.status if outcome else 'not part of this run'}"
        if self.left() < stage.useful:
            return f"{max(0, self.left()):.0f} s of the total time are left, it needs {stage.useful:.0f} s at least"
        return stage.unless()

    def run(self, stages):
        """Runs all; True if every stage passed."""
        for stage in stages:
            reason = stage.not_here or (
                f"the check was {self.stopped_by} before it" if self.stopped_by else self.why_not(stage))
            if reason:
                self.results[stage.name] = Outcome(SKIPPED, what=reason, excused=bool(stage.not_here))
            else:
                print(f"== {stage.name} (at most {min(stage.limit, self.left()):.0f} s)", flush=True)
                self.results[stage.name] = self.run_one(stage)
            outcome = self.results[stage.name]
            print(f"   {stage.name}: {outcome.status}{', ' + outcome.what if outcome.what else ''} ({outcome.seconds:.1f} s)", flush=True)
            self.after(self.results)
        return all(outcome.good() for outcome in self.results.values())

    def run_one(self, stage):
        started = time.monotonic()
        limit = min(stage.limit, self.left())
        run, outcome = StageRun(self.logs), Outcome()
        processes = {}
        try:
            for command in stage.prepare(limit) if stage.prepare else stage.commands:
                with open(self.logs / f"{command.name}.log", "wb") as log:
                    try:
                        processes[command.name] = subprocess.Popen(
                            command.words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                            env={**os.environ, **command.environment}, preexec_fn=os.setpgrp)
                    except OSError as error:
                        log.write(f"error: cannot start {command.words[0]}: {error.strerror}\n".encode())
                        run.exit_codes[command.name] = 127
            while (any(process.poll() is None for process in processes.values()) and time.monotonic() - started < limit
                   and not self.stopped_by):
                time.sleep(0.05)
            late = [name for name, process in processes.items() if process.poll() is None]
        finally:
            end_all(processes.values())
        for name, process in processes.items():
            run.exit_codes[name] = None if name in late else process.returncode
        outcome.seconds = time.monotonic() - started
        if late and self.stopped_by:
            outcome.status, outcome.what = STOPPED, self.stopped_by
        elif late:
            outcome.status, outcome.what = TIMEOUT, f"stopped after {limit:.0f} s"
        elif any(code != 0 for code in run.exit_codes.values()):
            outcome.status = FAIL
            outcome.what = ", ".join(f"{name} ended with {describe(code)}" for name, code in run.exit_codes.items() if code != 0)
        if stage.read:
            stage.read(run, outcome)
        if outcome.status in (FAIL, TIMEOUT) and not outcome.lines:
            bad = [name for name, code in run.exit_codes.items() if code != 0]
            outcome.lines = first_lines(run.log(bad[0])) if bad else []
        return outcome


def describe(code):
    """`exit code 2`, `signal SIGSEGV`."""
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
