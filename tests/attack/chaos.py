# SPDX-License-Identifier: Apache-2.0
"""Chaos: a job of many ranks, as light processes, over which one fault follows another while weft-run restarts it; then two
nodes, as network namespaces, whose network is slow, loses packets and is cut. In the end the weights are those of a run
that was left alone. A row for each kind of fault: how often, and how long until training goes on."""

import collections
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import time

from job import Job, Lost, TIMEOUT, signal_process
from proxy import free_port

PATIENT = {"WEFT_START_TIMEOUT": "30"}  # so many processes start slowly beside other tests
RANKS = int(os.environ.get("WEFT_CHAOS_RANKS", "64"))
RECOVER = TIMEOUT + 60  # seconds until a job of so many ranks must train again, on a crowded machine
# One step an epoch; how long a run is must not change its steps.
FLAGS = "--batch-size 1 --schedule constant --data random:{}x8x8x3".format(RANKS).split()


class Faults:
    def __init__(self, job, draw):
        self.job, self.draw = job, draw
        self.times = collections.defaultdict(list)

    def some(self, most):
        pids = self.job.all_pids()
        return [pids[rank] for rank in self.draw.sample(sorted(pids), min(len(pids), self.draw.randint(1, most)))]

    def kill(self):
        for pid in self.some(8):
            signal_process(pid, signal.SIGKILL)

    def stop(self):
        for pid in self.some(3):
            signal_process(pid, signal.SIGSTOP)

    def stop_rank_0(self):
        signal_process(self.job.all_pids()[0], signal.SIGSTOP)

    def pause(self):
        pids = self.some(RANKS // 2)
        for pid in pids:
            signal_process(pid, signal.SIGSTOP)
        time.sleep(self.draw.random() * TIMEOUT / 3)
        for pid in pids:
            signal_process(pid, signal.SIGCONT)

    def kill_at_start(self):
        """The ranks of the next round die, too, while they connect."""
        for pid in self.some(2):
            signal_process(pid, signal.SIGKILL)
        time.sleep(0.5 + self.draw.random())
        for pid in self.some(2):
            signal_process(pid, signal.SIGKILL)

    def one(self, fault):
        """Does it and waits until training goes on. False: the job has ended."""
        begin, epoch, rounds = time.monotonic(), self.job.epochs(), self.job.restarted()
        getattr(self, fault)()
        expected = fault not in ("pause",)
        done = self.job.wait_until(
            lambda: (self.job.restarted() > rounds or not expected) and self.job.epochs() > epoch + 1, RECOVER)
        if done:
            self.times[fault].append(time.monotonic() - begin)
            print(f"{fault:14s} at epoch {epoch:3d}: trains again after {self.times[fault][-1]:5.1f} s", flush=True)
        return done


def table(times, lost):
    print("\n| fault | times | trains again after, median | longest |\n| --- | --- | --- | --- |")
    for name, seconds in times.items():
        print(f"| {name} | {len(seconds)} | {statistics.median(seconds):.1f} s | {max(seconds):.1f} s |")
    print(f"lost: {lost}")


def many_ranks(tools, folder, draw, seconds):
    epochs = 100_000
    whole, chaotic = folder / "whole", folder / "chaos"
    for made in (whole, chaotic):
        made.mkdir()
    job = Job(tools, chaotic, RANKS, epochs, restarts=10_000, more=FLAGS, environment=PATIENT)
    faults = Faults(job, draw)
    if not job.wait_until(lambda: job.epochs() >= 2, 60):
        raise Lost(f"{RANKS} ranks did not begin: {job.text()[-1000:]}")
    kinds = ["kill", "stop", "pause", "kill_at_start", "stop_rank_0"]
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        if not faults.one(kinds[number % len(kinds)]):
            raise Lost(f"the job ended: {job.text()[-1000:]}")
        number += 1
    last = job.epochs() + 3
    os.kill(job.process.pid, signal.SIGTERM)  # ends in a checkpoint, whose epochs are within the run below
    job.end(60)
    end = Job(tools, chaotic, RANKS, last, name="end", more=FLAGS, environment=PATIENT)
    if end.end(120) != 0:
        raise Lost(f"cannot be resumed: {end.text()[-1000:]}")
    alone = Job(tools, whole, RANKS, last, more=FLAGS, environment=PATIENT)
    if alone.end(60 + last) != 0:
        raise Lost(f"the run that was left alone failed: {alone.text()[-1000:]}")
    if end.weights.read_bytes() != alone.weights.read_bytes():
        raise Lost(f"other weights after {last} epochs")
    print(f"{RANKS} ranks, {number} faults, {job.restarted()} restarts, {last} epochs: the same weights")
    return faults.times


class Nodes:
    """Two network namespaces with a line between them."""

    def __init__(self):
        self.names = [f"weft{os.getpid()}{letter}" for letter in "ab"]
        net = f"10.{239 + os.getpid() % 8}.{os.getpid() // 8 % 256}"
        self.addresses = [f"{net}.1", f"{net}.2"]

    def __enter__(self):
        a, b = self.names
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip("link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b)
            for name, address in zip(self.names, self.addresses):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
                ip("-n", name, "link", "set", name, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    def set(self, state):
        ip("-n", self.names[0], "link", "set", self.names[0], state)

    def netem(self, *words):
        """False: this kernel has none."""
        return subprocess.run(["ip", "netns", "exec", self.names[0], "tc", "qdisc", "replace", "dev", self.names[0], "root", *words],
                              stderr=subprocess.DEVNULL).returncode == 0


def ip(*words):
    subprocess.run(["ip", *words], check=True, stderr=subprocess.DEVNULL)


def two_nodes(tools, folder, draw, ranks):
    """A slow and lossy line, one that is cut for a moment, and one that is cut until both sides give up; started again
    on both nodes, as a batch system does."""
    whole, cut = folder / "whole_2", folder / "cut"
    for made in (whole, cut):
        made.mkdir()
    epochs = 60
    times = collections.defaultdict(list)
    with Nodes() as nodes:
        def start(into, name):
            port = free_port()
            jobs = []
            for node in (0, 1):
                flags = ["--nnodes", "2", "--nproc_per_node", str(ranks // 2), "--rdzv_endpoint", f"{nodes.addresses[0]}:{port}",
                         "--node_rank", str(node)]
                jobs.append(Job(tools, into, ranks, epochs, name=f"{name}_{node}", restarts=3, node=flags,
                                before=["ip", "netns", "exec", nodes.names[node]],
                                more=["--batch-size", "1", "--data", f"random:{4 * ranks}x8x8x3"]))
            return jobs

        for job in (jobs := start(whole, "whole")):
            if job.end(120) != 0:
                raise Lost(f"two nodes that were left alone failed: {job.text()[-1500:]}")
        jobs = start(cut, "cut")

        def goes_on(fault, begin):
            epoch = jobs[0].epochs()
            if not jobs[0].wait_until(lambda: jobs[0].epochs() > epoch, 60):
                raise Lost(f"{fault}: ended: {jobs[0].text()[-1500:]}")
            times[fault].append(time.monotonic() - begin)

        if not jobs[0].wait_until(lambda: jobs[0].epochs() >= 2, 60):
            raise Lost(f"two nodes did not begin: {jobs[0].text()[-1500:]}")
        begin = time.monotonic()
        if nodes.netem("netem", "delay", "2ms", "1ms", "loss", "1%", "reorder", "5%"):
            goes_on("slow, lossy line", begin)
            nodes.netem("pfifo")
        else:
            print("slow, lossy line: SKIPPED: this kernel has no netem")
        begin = time.monotonic()
        nodes.set("down")
        time.sleep(TIMEOUT / 4)
        nodes.set("up")
        goes_on("cut for a moment", begin)
        begin = time.monotonic()
        nodes.set("down")
        for job in jobs:
            if job.end(TIMEOUT + 60) == 0:
                raise Lost("a job ended well over a cut line")
        times["cut: both gave up"].append(time.monotonic() - begin)
        nodes.set("up")
        begin, jobs = time.monotonic(), start(cut, "again")
        goes_on("started again", begin)
        for job in jobs:
            if job.end(120) != 0:
                raise Lost(f"cannot be resumed: {job.text()[-1500:]}")
    if (whole / "weights.safetensors").read_bytes() != (cut / "weights.safetensors").read_bytes():
        raise Lost("two nodes: other weights")
    print(f"two nodes of {ranks // 2} ranks: the same weights")
    return times


def run(tools, folder, seed, seconds):
    print(f"seed {seed}, {RANKS} ranks, {seconds:.0f} s", flush=True)
    draw, times, lost = random.Random(seed), {}, []
    parts = [lambda: many_ranks(tools, folder, draw, seconds)]
    if shutil.which("ip") and shutil.which("tc") and os.geteuid() == 0:
        parts.append(lambda: two_nodes(tools, folder, draw, 8))
    else:
        print("two nodes: SKIPPED: needs root and iproute2")
    for part in parts:
        try:
            times.update(part())
        except Lost as reason:
            lost.append(str(reason))
            print(f"LOST: {reason}", flush=True)
    table(times, len(lost))
    return 1 if lost else 0
