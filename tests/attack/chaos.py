# SPDX-License-Identifier: Apache-2.0
"""Chaos: a job of many ranks, as light processes, over which one fault follows another while weft-run restarts it: 64 over
gloo, and some on GPUs of their own in software, over the emulated NCCL. Then two nodes, as network namespaces, whose network
is slow, loses packets, is silent in one direction and is cut. In the end the weights are those of a run that was left alone.
A row for each kind of fault: how often, how long until weft-run restarted the ranks, and until training went on."""

import collections
import fcntl
import heapq
import os
import pathlib
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import threading
import time

from job import Job, Lost, TIMEOUT, signal_process
from proxy import free_port

PARTS = ["gloo", "nccl", "nodes"]
START = 60  # WEFT_START_TIMEOUT: so many processes start slowly beside other tests
# A rank's report about the victim of a fault.
SAID = {"kill": r"rank {rank} \(process {pid} on [^)]*\) has died", "stop": r"(missing|silent) rank {rank}\b",
        "stop_rank_0": r"(missing|silent) rank {rank}\b"}


class Backend(collections.namedtuple("Backend", "name ranks timeout before flags")):
    """`timeout`: WEFT_TIMEOUT. `before`: words before weft-run. `flags`: of the program."""

    @property
    def give_up(self):
        """Seconds until weft-run must have restarted the ranks. A fault may come while they connect."""
        return max(START, self.timeout) + 14

    @property
    def recover(self):
        """Seconds until a job of so many ranks must train again, on a crowded machine."""
        return self.timeout + 120


def backend(tools, name):
    """One step an epoch; how long a run is must not change its steps."""
    variable, otherwise = {"gloo": ("WEFT_CHAOS_RANKS", "64"), "nccl": ("WEFT_CHAOS_NCCL_RANKS", "16")}[name]
    ranks = int(os.environ.get(variable, otherwise))
    flags = f"--batch-size 1 --schedule constant --data random:{ranks}x8x8x3".split()
    if name == "gloo":
        return Backend(name, ranks, TIMEOUT, [], flags)
    emulate = str(pathlib.Path(tools.launcher).with_name("weft-emulate"))
    # Ranks that read the kernels' PTX in their first step come one after the other where there are few cores.
    return Backend(name, ranks, TIMEOUT * max(2, ranks // 8), [emulate, "--gpus", str(ranks), "--threads", "1"],
                   flags + "--device cuda --backend nccl".split())


class Faults:
    def __init__(self, job, draw, backend, times):
        self.job, self.draw, self.backend, self.times = job, draw, backend, times
        self.victims = {}  # the last fault's: process ids by rank

    def some(self, most):
        pids = self.job.all_pids()
        chosen = self.draw.sample(sorted(pids), min(len(pids), self.draw.randint(1, most)))
        self.victims = {rank: pids[rank] for rank in chosen}
        return list(self.victims.values())

    def kill(self):
        for pid in self.some(8):
            signal_process(pid, signal.SIGKILL)

    def stop(self):
        for pid in self.some(3):
            signal_process(pid, signal.SIGSTOP)

    def stop_rank_0(self):
        self.victims = {0: self.job.all_pids()[0]}
        signal_process(self.victims[0], signal.SIGSTOP)

    def pause(self):
        pids = self.some(self.job.ranks // 2)
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
        """Does it and waits until weft-run has restarted the ranks, which a pause need not bring about, and until they train."""
        begin, rounds = time.monotonic(), self.job.restarted()
        said = self.job.read
        getattr(self, fault)()
        epoch, given_up = self.job.epochs(), None  # now: finding so many processes takes as long as an epoch
        for condition, seconds in ((lambda: fault == "pause" or self.job.restarted() > rounds, self.backend.give_up),
                                   (lambda: self.job.epochs() > epoch + 1, self.backend.recover)):
            if not self.job.wait_until(condition, seconds):
                raise Lost(f"{fault}: the job ended: {self.job.text()[-1000:]}")
            given_up = given_up or time.monotonic() - begin
        if fault in SAID and self.backend.name == "gloo":  # NCCL's own error, which names no process, may come first
            text = self.job.text(said)
            if not any(re.search(SAID[fault].format(rank=rank, pid=pid), text) for rank, pid in self.victims.items()):
                raise Lost(f"{fault}: no rank named one of {self.victims}: {text[-3000:]}")
        restarts = self.job.restarted() - rounds
        seconds = time.monotonic() - begin
        self.times.setdefault((self.backend.name, fault), []).append((given_up if restarts else None, seconds))
        print(f"{fault:14s} at epoch {epoch:3d}: {restarts} restarts, trains again after {seconds:5.1f} s", flush=True)


def table(times, lost):
    """`times`: of each fault, pairs of seconds until the ranks were restarted (None: they were not), and until they trained."""
    print("\n| part | fault | times | restarted after, longest | trains again after, median | longest |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for (part, fault), pairs in times.items():
        given_up = [seconds for seconds, _ in pairs if seconds is not None]
        trains = [seconds for _, seconds in pairs]
        print(f"| {part} | {fault} | {len(pairs)} | {f'{max(given_up):.1f} s' if given_up else '-'} | {statistics.median(trains):.1f} s |"
              f" {max(trains):.1f} s |")
    print(f"lost: {lost}")


def many_ranks(tools, folder, draw, seconds, backend, times):
    """Adds to `times`."""
    whole, chaotic = folder / f"whole_{backend.name}", folder / backend.name
    for made in (whole, chaotic):
        made.mkdir()

    def start(into, epochs, name="run", restarts=0):
        return Job(tools, into, backend.ranks, epochs, name, restarts, before=backend.before, more=backend.flags,
                   environment={"WEFT_START_TIMEOUT": str(START), "WEFT_TIMEOUT": str(backend.timeout)})

    job = start(chaotic, 100_000, restarts=10_000)
    faults = Faults(job, draw, backend, times)
    kinds = ["kill", "stop", "pause", "kill_at_start", "stop_rank_0"]
    number = 0
    try:
        if not job.wait_until(lambda: job.epochs() >= 2, backend.recover):
            raise Lost(f"{backend.ranks} ranks did not begin: {job.text()[-1000:]}")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if number % len(kinds) == 0:
                draw.shuffle(kinds)  # a short run sees some of them
            faults.one(kinds[number % len(kinds)])
            number += 1
    except Lost:
        job.kill()
        raise
    last = job.epochs() + 3
    os.kill(job.process.pid, signal.SIGTERM)  # ends in a checkpoint, whose epochs are within the run below
    job.end(backend.recover)
    end = start(chaotic, last, name="end")
    if end.end(backend.recover) != 0:
        raise Lost(f"cannot be resumed: {end.text()[-1000:]}")
    alone = start(whole, last)
    if alone.end(backend.recover + 2 * last) != 0:
        raise Lost(f"the run that was left alone failed: {alone.text()[-1000:]}")
    if end.weights.read_bytes() != alone.weights.read_bytes():
        raise Lost(f"other weights after {last} epochs")
    print(f"{backend.name}: {backend.ranks} ranks, {number} faults, {job.restarted()} restarts, {last} epochs: the same weights",
          flush=True)


class Line:
    """The wire between two nodes: a TUN device for each, and a thread that carries packets from one to the other as `netem`
    would, which few kernels have: `late` seconds later, some lost, doubled or at once, before others. `silent`: the node
    that hears nothing."""

    def __init__(self, names, draw):
        self.draw, self.over = draw, False
        self.ends = [os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK) for _ in names]
        for end, name in zip(self.ends, names):
            fcntl.ioctl(end, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
        self.counts = collections.Counter()
        self.be()
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def be(self, late=0.0, lose=0.0, double=0.0, overtake=0.0, silent=None):
        self.late, self.lose, self.double, self.overtake, self.silent = late, lose, double, overtake, silent

    def carry(self):
        due, number = [], 0  # (moment, number, node, packet)
        while not self.over:
            now = time.monotonic()
            for end in select.select(self.ends, [], [], min(0.1, max(0, due[0][0] - now)) if due else 0.1)[0]:
                node = 1 - self.ends.index(end)
                for packet in packets(end):
                    what = self.fate(node)
                    self.counts[what] += 1
                    for _ in range({"lost": 0, "silent": 0, "doubled": 2}.get(what, 1)):
                        number += 1
                        heapq.heappush(due, (time.monotonic() + (0 if what == "overtook" else self.late), number, node, packet))
            while due and due[0][0] <= time.monotonic():
                _, _, node, packet = heapq.heappop(due)
                try:
                    os.write(self.ends[node], packet)
                except OSError:  # the device is down
                    self.counts["down"] += 1

    def fate(self, node):
        if node == self.silent:
            return "silent"
        for what, share in (("lost", self.lose), ("doubled", self.double), ("overtook", self.overtake)):
            if share and self.draw.random() < share:
                return what
        return "passed"

    def close(self):
        self.over = True
        self.thread.join()
        for end in self.ends:
            os.close(end)


def packets(end):
    """Those that are there now."""
    try:
        for _ in range(64):
            yield os.read(end, 1 << 16)
    except BlockingIOError:
        pass


class Nodes:
    """Two network namespaces with a line between them."""

    def __init__(self, draw):
        self.draw, self.line = draw, None
        self.names = [f"weft{os.getpid()}{letter}" for letter in "ab"]
        net = f"10.{239 + os.getpid() % 8}.{os.getpid() // 8 % 256}"
        self.addresses = [f"{net}.1", f"{net}.2"]

    def __enter__(self):
        try:
            self.line = Line(self.names, self.draw)
            for name, address in zip(self.names, self.addresses):
                ip("netns", "add", name)
                ip("link", "set", name, "netns", name, "mtu", "9000")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
                ip("-n", name, "link", "set", name, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.line:
            self.line.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    def set(self, state):
        ip("-n", self.names[0], "link", "set", self.names[0], state)


def ip(*words):
    subprocess.run(["ip", *words], check=True, stderr=subprocess.DEVNULL)


def two_nodes(tools, folder, draw, ranks):
    """A slow and lossy line, one that is cut for a moment, for one node or for both, and one that is cut until both sides give
    up; started again on both nodes, as a batch system does."""
    whole, cut = folder / "whole_2", folder / "cut"
    for made in (whole, cut):
        made.mkdir()
    epochs = 60
    times = collections.defaultdict(list)
    with Nodes(draw) as nodes:
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

        def goes_on(fault, begin, epochs=1):
            epoch = jobs[0].epochs()
            if not jobs[0].wait_until(lambda: jobs[0].epochs() >= epoch + epochs, 60):
                raise Lost(f"{fault}: ended: {jobs[0].text()[-1500:]}")
            times[fault].append((None, time.monotonic() - begin))

        if not jobs[0].wait_until(lambda: jobs[0].epochs() >= 2, 60):
            raise Lost(f"two nodes did not begin: {jobs[0].text()[-1500:]}")
        begin = time.monotonic()
        nodes.line.be(late=0.002, lose=0.01, double=0.01, overtake=0.05)
        goes_on("slow, lossy line", begin, epochs=3)
        nodes.line.be()
        print("slow, lossy line:", ", ".join(f"{count} packets {what}" for what, count in sorted(nodes.line.counts.items())))
        if not all(nodes.line.counts[what] for what in ("lost", "doubled", "overtook")):
            raise Lost("the line changed nothing")
        for node in (0, 1):
            begin = time.monotonic()
            nodes.line.be(silent=node)
            time.sleep(TIMEOUT / 4)
            nodes.line.be()
            goes_on(f"node {node} hears nothing for {TIMEOUT / 4} s", begin)
        begin = time.monotonic()
        nodes.set("down")
        time.sleep(TIMEOUT / 4)
        nodes.set("up")
        goes_on(f"cut for {TIMEOUT / 4} s", begin)
        begin = time.monotonic()
        nodes.set("down")
        for job in jobs:
            if job.end(TIMEOUT + 60) == 0:
                raise Lost("a job ended well over a cut line")
        times["cut: both gave up"].append((None, time.monotonic() - begin))
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


def missing(tools, part):
    """What this machine or this build lacks for a part."""
    programs = pathlib.Path(tools.launcher).parent
    if part == "nccl":
        told = subprocess.run([programs / "weft-info"], capture_output=True, text=True).stdout
        if not re.search(r"^backends .*\bnccl\b", told, re.M) or not (programs / "weft-emulate").exists():
            return "a build with CUDA, NCCL and the emulator"
    if part == "nodes" and not (shutil.which("ip") and os.geteuid() == 0 and os.path.exists("/dev/net/tun")):
        return "root, iproute2 and /dev/net/tun"
    return None


def run(tools, folder, seed, seconds, parts):
    draw, times, lost = random.Random(seed), {}, []
    for part in parts:
        if lacks := missing(tools, part):
            print(f"{part}: SKIPPED: needs {lacks}", flush=True)
            continue
        made = None if part == "nodes" else backend(tools, part)
        print(f"{part}: seed {seed}, {f'{made.ranks} ranks, {seconds:.0f} s' if made else 'two nodes'}", flush=True)
        try:
            if made:
                many_ranks(tools, folder, draw, seconds, made, times)
            else:
                times.update({(part, fault): pairs for fault, pairs in two_nodes(tools, folder, draw, 8).items()})
        except Lost as reason:
            lost.append(str(reason))
            print(f"LOST: {part}: {reason}", flush=True)
    table(times, len(lost))
    return 1 if lost else 0
