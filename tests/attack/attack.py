#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks training runs for a bounded time, each try drawn from a seed.

  attack.py BIN_FOLDER INTERPOSE_LIBRARY [--only NAME…] [--seed N [--try N]] [--chaos [PART…]]

Each try starts a real job under weft-run with 1, 2 or 4 ranks and does one thing to it. The job must end in the weights of
one that was left alone (survived), or give up within its deadline with an error and, restarted by weft-run or started again,
end in the same weights (recovered). Anything else is lost, and one lost try fails the campaign. --chaos: 64 ranks over
gloo, then 16 over the emulated NCCL, over which one fault follows another, and two nodes whose network is bad.
WEFT_ATTACK_SECONDS (600): how long, four fifths of them for the campaign and a tenth for each chaos; WEFT_ATTACK_SEED or --seed
repeats a campaign, whose moments are as random as the machine is busy.
"""

import argparse
import collections
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import chaos
from job import Job, Lost, TIMEOUT, signal_process
from proxy import Proxy, free_port, listener, listening_ports

EPOCHS = 40
SLACK = 21  # seconds over the deadline on a crowded machine, with weft-run's grace
WHOLE = 90  # a whole run, restarts included
Tools = collections.namedtuple("Tools", "launcher program interpose")


class Skipped(Exception):
    """This machine cannot do that; the reason is printed."""


class Try:
    """One attack: a folder, a generator of its own, and the job's result to compare with."""

    def __init__(self, campaign, ranks, seed):
        self.campaign, self.tools, self.ranks, self.draw = campaign, campaign.tools, ranks, random.Random(seed)
        self.whole = campaign.whole(ranks)
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=campaign.folder))
        self.note = ""

    def job(self, **more):
        return Job(self.tools, self.folder, self.ranks, EPOCHS, **more)

    def needs_two_ranks(self):
        if self.ranks == 1:
            self.ranks, self.whole = 2, self.campaign.whole(2)

    def attacked(self, rank, *words):
        """Words before the program that put others before it in one rank of the first round."""
        script = (f'if [ "$RANK" = {rank} ] && [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then exec {" ".join(words)} "$@"; '
                  'else exec "$@"; fi')
        return ["sh", "-c", script, "attacked"]

    def preloaded(self, rank, **variables):
        assignments = [f"{name}={value}" for name, value in variables.items()]
        return self.attacked(rank, "env", f"LD_PRELOAD={self.tools.interpose}", *assignments)

    def check(self, job, how):
        if job.weights.read_bytes() != self.whole:
            raise Lost(f"{how}, with other weights")
        return how

    def outcome(self, job, seconds=WHOLE):
        """Waits for the end, and starts the job again if it gave up."""
        if job.end(seconds) == 0:
            return self.check(job, "recovered" if job.restarted() else "survived")
        again = self.job(name="again")
        if again.end(WHOLE) != 0:
            raise Lost(f"cannot be resumed: {again.text()[-600:]}")
        return self.check(again, "recovered")

    def random_moment(self, job):
        """Of the start, or of training; False: the job was faster."""
        if self.draw.random() < 0.3:
            time.sleep(self.draw.random() * 0.7)
            return job.running()
        epoch = self.draw.randint(0, EPOCHS - 5)
        return job.wait_until(lambda: job.epochs() >= epoch)


def gone_in_time(pids, what):
    start = time.monotonic()
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() - start > TIMEOUT + SLACK:
            raise Lost(f"{what}: others were still there {TIMEOUT + SLACK} s later")
        time.sleep(0.01)
    return time.monotonic() - start


def kill(t):
    """A rank is killed at any moment; the others name it and end, weft-run restarts all."""
    job = t.job(restarts=1)
    if not t.random_moment(job) or len(pids := job.pids()) < t.ranks:
        return t.outcome(job)
    trains = 1 <= job.epochs() < EPOCHS - 2  # before and after that there may be no other rank that could say it
    victim = t.draw.randrange(t.ranks)
    signal_process(pids[victim], signal.SIGKILL)
    seconds = gone_in_time([pid for rank, pid in pids.items() if rank != victim], f"rank {victim} was killed")
    t.note = f"rank {victim}, the others gone after {seconds:.2f} s"
    how, text = t.outcome(job), job.text()
    if how == "recovered" and f"rank {victim} was ended by signal 9" not in text:
        raise Lost(f"weft-run did not say that rank {victim} was killed")
    if how == "recovered" and trains and t.ranks > 1 and f"rank {victim} (process {pids[victim]} on " not in text:
        at = text.find("was ended by signal 9")
        raise Lost(f"no rank said that rank {victim} has died: {text[max(0, at - 1500):at + 500]}")
    return how


def stop(t):
    """A rank is stopped at any moment: the others name it and what they wait for, and give up at the deadline."""
    t.needs_two_ranks()
    job = t.job(restarts=1, start_timeout=2 * TIMEOUT)
    if not t.random_moment(job) or len(pids := job.pids()) < t.ranks:
        return t.outcome(job)
    trains = 1 <= job.epochs() < EPOCHS - 2
    victim = t.draw.choice([0, t.draw.randrange(t.ranks)])
    signal_process(pids[victim], signal.SIGSTOP)
    seconds = gone_in_time([pid for rank, pid in pids.items() if rank != victim], f"rank {victim} was stopped")
    t.note = f"rank {victim}, the others gone after {seconds:.2f} s"
    how = t.outcome(job)
    if trains and how == "recovered" and not re.search(rf"(missing|silent) rank {victim} ", job.text()):
        raise Lost(f"no rank said that rank {victim} was missing")
    return how


def pause(t):
    """A rank is stopped for a shorter time than the deadline: nothing comes of it."""
    job = t.job()
    for _ in range(t.draw.randint(1, 3)):
        if not t.random_moment(job):
            break
        pids = job.pids()
        victims = t.draw.sample(sorted(pids), t.draw.randint(0, len(pids)))
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for rank in victims:
                signal_process(pids[rank], number)
            if number == signal.SIGSTOP:
                time.sleep(t.draw.random() * TIMEOUT / 6)
    how = t.outcome(job)
    if how != "survived":
        raise Lost("a pause ended the job: " + job.text()[-600:])
    return how


ERRORS = {"openat": "EIO EACCES EMFILE", "fsync": "EIO ENOSPC", "rename": "EIO ENOSPC", "link": "EPERM EIO", "mkdir": "EACCES",
          "unlink": "EIO", "connect": "ECONNREFUSED ETIMEDOUT", "accept4": "ECONNABORTED EMFILE", "sendmsg": "ECONNRESET EPIPE",
          "sendto": "ECONNRESET EPIPE", "recvmsg": "ECONNRESET ETIMEDOUT", "recvfrom": "ECONNRESET", "bind": "EADDRINUSE",
          "listen": "EADDRINUSE", "epoll_ctl": "ENOSPC"}


def system_calls(t):
    """How often a rank makes each call, counted once for each number of ranks."""
    counts = t.campaign.calls.get(t.ranks)
    if counts is None:
        table = t.folder / "calls"
        job = t.job(wrap=t.attacked(0, "strace", "-f", "-c", "-o", str(table)))
        if job.end(WHOLE) != 0:
            raise Skipped(f"strace cannot follow a rank here: {job.text()[-200:]}")
        counts = {}
        for line in table.read_text().splitlines():
            words = line.split()
            if len(words) >= 5 and words[3].isdigit() and words[-1] != "total":
                counts[words[-1]] = int(words[3])
        t.campaign.calls[t.ranks] = counts
        shutil.rmtree(t.folder / "run")
        (t.folder / "weights.safetensors").unlink()
    return counts


def at_call(t):
    """A rank is killed or stopped at a system call, or the call fails."""
    if not shutil.which("strace"):
        raise Skipped("needs strace (Debian: strace)")
    counts = system_calls(t)
    kind = t.draw.choice(["KILL", "KILL", "error", "error", "STOP" if t.ranks > 1 else "KILL"])
    call = t.draw.choice(sorted(name for name in counts if (kind != "error" or name in ERRORS) and "exit" not in name))
    number = t.draw.randint(1, counts[call])
    what = f"error={t.draw.choice(ERRORS[call].split())}" if kind == "error" else f"signal={kind}"
    victim = t.draw.randrange(t.ranks)
    trace = t.folder / "trace"
    job = t.job(restarts=1, start_timeout=2 * TIMEOUT,
                wrap=t.attacked(victim, "strace", "-D", "-f", "-qq", "-o", str(trace), "-e", f"trace={call}", "-e",
                                f"inject={call}:{what}:when={number}"))
    t.note = f"rank {victim}, {call} #{number}: {what}"
    return t.outcome(job)


MUTATIONS = "flip drop double swap cut reset stall".split()


def mutate(t):
    """A program between one rank and all others changes, drops, repeats, reorders or holds back what passes."""
    t.needs_two_ranks()
    kind, victim, secure = t.draw.choice(MUTATIONS), t.draw.randrange(1, t.ranks), t.draw.choice(["mac", "encrypt"])
    at = int(math.exp(t.draw.uniform(3, 13)))  # bytes that pass unchanged before, over all connections
    state = {"passed": 0, "done": False, "handshake": True}
    streams = collections.Counter()
    lock = threading.Lock()

    def change(connection, to_server, data):
        with lock:
            begin, stream = state["passed"], streams[connection, to_server]
            state["passed"] += len(data)
            streams[connection, to_server] += len(data)
            if state["done"] or state["passed"] <= at:
                return [data]
            # A handshake that goes wrong is made again.
            state.update(done=True, handshake=stream < 200)
        where = min(max(at - begin, 0), len(data) - 1)
        if kind == "flip":
            return [data[:where] + bytes([data[where] ^ 1 << t.draw.randrange(8)]) + data[where + 1:]]
        if kind == "drop":
            return [data[:where] + data[where + t.draw.randint(1, 100):]]
        if kind == "double":
            return [data, data]
        if kind == "swap":
            return [data[where:], data[:where]] if where else [data[::-1]]
        if kind == "stall":
            time.sleep(3 * TIMEOUT)
        return [data[:where]] if kind == "cut" else None if kind == "reset" else [data]

    t.note = f"rank {victim}, {kind} after {at} bytes, {secure}"
    proxy = Proxy(change)
    try:
        wrap = t.preloaded(victim, ATTACK_PROXY=proxy.port)
        job = t.job(restarts=1, start_timeout=2 * TIMEOUT, wrap=wrap, environment={"WEFT_SECURE": secure})
        how = t.outcome(job)
    finally:
        proxy.close()
    if how == "survived" and proxy.connections < 3:
        raise Lost(f"only {proxy.connections} connections went through the attacker")
    if not state["done"]:
        t.note += ", not reached"
    if state["done"] and not state["handshake"] and how == "survived" and kind in ("flip", "drop", "double"):
        raise Lost(f"{kind} of a frame was not noticed")
    return how


def slow_network(t):
    """The same, in small pieces and late, but nothing is changed."""
    t.needs_two_ranks()
    most = t.draw.choice([1, 7, 100, 5000])

    def change(_, __, data):
        if t.draw.random() < 0.01:
            time.sleep(t.draw.random() * 0.2)
        size = max(most, len(data) // 50)
        return [data[i:i + size] for i in range(0, len(data), size)]

    proxy = Proxy(change)
    try:
        how = t.outcome(t.job(wrap=t.preloaded(t.draw.randrange(1, t.ranks), ATTACK_PROXY=proxy.port)))
    finally:
        proxy.close()
    if how != "survived":
        raise Lost("a slow network ended the job")
    return how


def foreign_peers(t):
    """Others hold the job's port and come to every port on which a rank listens: silent, with nonsense, half a greeting, resets."""
    port = free_port()
    over = threading.Event()
    squats = t.draw.random() < 0.5
    held = listener(port) if squats else None
    came = [0]

    def answer():
        kept = []
        held.settimeout(0.1)
        while not over.is_set():
            try:
                kept.append(held.accept()[0])
                if t.draw.random() < 0.5:
                    kept[-1].sendall(os.urandom(t.draw.randint(1, 300)))
                elif t.draw.random() < 0.5:
                    kept.pop().close()
            except OSError:
                pass

    def visit(job):
        import socket
        import struct
        kept = []
        while not over.is_set():
            for other in listening_ports(job.pids().values()):
                try:
                    made = socket.create_connection(("127.0.0.1", other), 0.5)
                except OSError:
                    continue
                came[0] += 1
                kind = t.draw.randrange(4)
                try:
                    if kind == 0:
                        made.sendall(os.urandom(t.draw.randint(1, 2000)))
                    if kind == 1:
                        body = b"weft store 5\n" + os.urandom(32) + b"rank 1 to 0"
                        made.sendall(struct.pack("<I", len(body)) + body)
                    if kind == 2:
                        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        made.close()
                        continue
                except OSError:
                    pass
                kept = kept[-200:] + [made]
            time.sleep(0.002)

    job = t.job(port=port)
    threads = [threading.Thread(target=visit, args=(job,))] + ([threading.Thread(target=answer)] if squats else [])
    for thread in threads:
        thread.start()
    try:
        how = t.outcome(job)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        if held:
            held.close()
    t.note = f"{came[0]} connections{', port taken' if squats else ''}"
    if how != "survived":
        raise Lost("foreign peers ended the job: " + job.text()[-600:])
    return how


def relay(t):
    """Another program holds the job's port and passes all on to the store, which has the next one: the ranks pass it over."""
    t.needs_two_ranks()
    port, changes, most = free_port(), t.draw.random() < 0.5, collections.Counter()

    def change(connection, to_server, data):
        most[connection, to_server] += len(data)
        where = t.draw.randrange(len(data))
        return [data[:where] + bytes([data[where] ^ 1 << t.draw.randrange(8)]) + data[where + 1:]] if changes else [data]

    held, proxy = listener(port), Proxy(change)
    proxy.run(proxy.hold, held, port + 1)
    try:
        how = t.outcome(t.job(port=port))
    finally:
        proxy.close()
        held.close()
    passed = max(most.values(), default=0)
    t.note = f"{proxy.connections} connections, {passed} bytes of one at most{', changed' if changes else ''}"
    if how != "survived":
        raise Lost("a relay at the job's port ended the job")
    if proxy.connections == 0 or passed > 400:
        raise Lost("more than handshakes went through it" if passed else "nobody came to it")
    return how


def full_disk(t):
    """A disk that is full at some write of the run; with more space it goes on."""
    disk = t.folder / "run"
    disk.mkdir()
    size = t.draw.randint(8, 1500) * 1024
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "weft_attack", str(disk)], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("needs root, to mount a small tmpfs")
    try:
        job = t.job()
        status = job.end(WHOLE)
        t.note = f"{size // 1024} KiB"
        if status == 0:
            return t.check(job, "survived")
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        again = t.job(name="again")
        if again.end(WHOLE) != 0:
            raise Lost(f"cannot go on with more space: {again.text()[-600:]}")
        return t.check(again, "recovered")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def slow_disk(t):
    """A disk that keeps rank 0 longer than the deadline, while it writes a checkpoint: the others say so, and wait."""
    t.needs_two_ranks()
    call = t.draw.randint(4, 2 * EPOCHS)  # not those of the start, nor of the export, for which nobody waits
    t.note = f"fsync #{call}"
    job = t.job(wrap=t.preloaded(0, ATTACK_FSYNC=f"{call}:{TIMEOUT + 3}"))
    how = t.outcome(job)
    if how != "survived":
        raise Lost("a slow disk ended the job: " + job.text()[-600:])
    if not re.search(r"missing rank 0 .* writing .*run/.* for \d+ s\)", job.text()):
        raise Lost("nobody named the file: " + job.text()[-600:])
    return how


def clock(t):
    """One rank's wall clock jumps by hours or years."""
    seconds = t.draw.choice([-1, 1]) * int(math.exp(t.draw.uniform(0, 18)))
    calls = int(math.exp(t.draw.uniform(0, 6)))
    t.note = f"{seconds} s after {calls} looks"
    how = t.outcome(t.job(wrap=t.preloaded(t.draw.randrange(t.ranks), ATTACK_CLOCK=f"{calls}:{seconds}")))
    if how != "survived":
        raise Lost("a jump of the clock ended the job")
    return how


def links(t):
    """Another user of the folder puts links to a file of the victim where the run's files are about to be written, and in the
    place of those that are being written."""
    victim = t.folder / "victim"
    victim.write_bytes(b"mine" * 1000)
    job = t.job(restarts=0)
    if not job.wait_until(lambda: job.out.exists()):
        return t.outcome(job)
    over, planted = threading.Event(), [0]
    names = "checkpoint_best.safetensors checkpoint_last.1.safetensors summary.json".split()
    link, written = t.folder / "link", t.draw.random() < 0.5

    def plant():
        while not over.is_set():
            path = job.out / t.draw.choice(names)
            if written:  # the files that the run has open
                found = [name for name in os.listdir(job.out) if name.endswith(".tmp")]
                path = job.out / found[0] if found else None
            try:
                if not link.is_symlink():
                    link.symlink_to(victim)
                if path:
                    os.rename(link, path)
                    planted[0] += 1
            except OSError:
                pass
            time.sleep(0.0005 if written else t.draw.random() * 0.02)

    thread = threading.Thread(target=plant)
    thread.start()
    try:
        status = job.end(WHOLE)
    finally:
        over.set()
        thread.join()
    if victim.read_bytes() != b"mine" * 1000:
        raise Lost("wrote through a link")
    t.note = f"{planted[0]} links{' for open files' if written else ''}"
    if status == 0:
        return t.check(job, "survived")
    for path in job.out.iterdir():
        if path.is_symlink():
            path.unlink()
    return t.outcome(t.job(name="again"))


def files(t):
    """The run is killed, and its newest checkpoint damaged: cut, changed, emptied, gone. It goes on from the one before."""
    job = t.job()
    epoch = t.draw.randint(3, EPOCHS - 5)
    if not job.wait_until(lambda: job.epochs() >= epoch):
        return t.outcome(job)
    job.kill()
    last = job.out / "checkpoint_last.safetensors"
    bytes_ = bytearray(last.read_bytes())
    kind = t.draw.choice(["flip", "cut", "empty", "gone", "mixed"])
    if kind == "flip":
        bytes_[t.draw.randrange(len(bytes_))] ^= 1 << t.draw.randrange(8)
    if kind == "cut":
        bytes_ = bytes_[:t.draw.randrange(len(bytes_))]
    if kind == "mixed":  # the tail of another file of the same size
        at = t.draw.randrange(len(bytes_))
        bytes_[at:] = os.urandom(len(bytes_) - at)
    if kind == "gone":
        last.unlink()
    else:
        last.write_bytes(b"" if kind == "empty" else bytes_)
    t.note = f"{kind} after epoch {epoch}"
    again = t.job(name="again")
    if again.end(WHOLE) != 0:
        raise Lost(f"cannot be resumed: {again.text()[-600:]}")
    if "; going on from " not in again.text():
        raise Lost("nobody said that a checkpoint was passed over")
    return t.check(again, "recovered")


ATTACKS = [kill, stop, pause, at_call, mutate, slow_network, foreign_peers, relay, full_disk, slow_disk, clock, links, files]


class Campaign:
    def __init__(self, tools, folder, seed, seconds):
        self.tools, self.folder, self.seed = tools, folder, seed
        self.end = time.monotonic() + seconds
        self.results = {}  # keys: numbers of ranks
        self.calls = {}
        self.counts = collections.defaultdict(collections.Counter)
        self.lost = []

    def whole(self, ranks):
        """The weights of a run that is left alone."""
        if ranks not in self.results:
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            job = Job(self.tools, folder, ranks, EPOCHS)
            if job.end(WHOLE) != 0:
                sys.exit(f"error: the run that was left alone failed: {job.text()[-2000:]}")
            self.results[ranks] = job.weights.read_bytes()
        return self.results[ranks]

    def attempt(self, attack, number):
        seed = f"{self.seed}/{number}"
        t = Try(self, random.Random(seed + " ranks").choice([1, 2, 4]), seed)
        begin = time.monotonic()
        count = self.counts[attack.__name__]
        try:
            how = attack(t)
        except Skipped as reason:
            count["skipped"] += 1
            print(f"{attack.__name__}: SKIPPED: {reason}", flush=True)
            return
        except Lost as reason:
            how = "lost"
            self.lost.append(f"{attack.__name__} (--seed {self.seed}, try {number}, {t.ranks} ranks): {reason}; {t.note}")
            print(self.lost[-1], flush=True)
            for log in sorted(t.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_bytes()[-3000:].decode(errors='replace')}", flush=True)
        count[how] += 1
        print(f"{number:4d} {attack.__name__:12s} {t.ranks} ranks  {how:9s} {time.monotonic() - begin:5.1f} s  {t.note}", flush=True)
        shutil.rmtree(t.folder, ignore_errors=True)

    def run(self, attacks):
        number = 0
        while time.monotonic() < self.end:
            for attack in attacks:
                if self.counts[attack.__name__]["skipped"]:
                    continue
                self.attempt(attack, number)
                number += 1
                if time.monotonic() >= self.end and number >= len(attacks):
                    return

    def report(self):
        print(f"\n| attack | tries | survived | recovered | lost |\n| --- | --- | --- | --- | --- |")
        total = collections.Counter()
        for name, count in self.counts.items():
            total += count
            print(row(name, count))
        print(row("all", total))
        print(f"seed {self.seed}")


def row(name, count):
    if count["skipped"] and not sum(count.values()) - count["skipped"]:
        return f"| {name} | skipped | | | |"
    tries = count["survived"] + count["recovered"] + count["lost"]
    return f"| {name} | {tries} | {count['survived']} | {count['recovered']} | {count['lost']} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("interpose")
    parser.add_argument("--only", nargs="+", choices=[a.__name__ for a in ATTACKS])
    parser.add_argument("--seed", type=int, default=int(os.environ.get("WEFT_ATTACK_SEED", random.SystemRandom().randrange(10**6))))
    parser.add_argument("--try", type=int, dest="one", help="this try of the campaign alone")
    parser.add_argument("--chaos", nargs="*", choices=chaos.PARTS, help="these parts of it; all, if none is named")
    arguments = parser.parse_args()
    seconds = float(os.environ.get("WEFT_ATTACK_SECONDS", "600"))
    programs = arguments.bin.resolve()
    tools = Tools(str(programs / "weft-run"), str(programs / "train_image"), str(pathlib.Path(arguments.interpose).resolve()))
    with tempfile.TemporaryDirectory(prefix="weft_attack_") as name:
        if arguments.chaos is not None:
            return chaos.run(tools, pathlib.Path(name), arguments.seed, seconds / 10, arguments.chaos or chaos.PARTS)
        seconds *= 0.8
        print(f"seed {arguments.seed}, {seconds:.0f} s", flush=True)
        campaign = Campaign(tools, pathlib.Path(name), arguments.seed, seconds)
        attacks = [a for a in ATTACKS if not arguments.only or a.__name__ in arguments.only]
        if arguments.one is None:
            campaign.run(attacks)
        else:
            campaign.attempt(attacks[arguments.one % len(attacks)], arguments.one)
        campaign.report()
    for line in campaign.lost:
        print(f"LOST: {line}")
    return 1 if campaign.lost else 0


if __name__ == "__main__":
    sys.exit(main())
