#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks orders between streams in Weft, one at a time, and wants each seen on the emulator.

Usage: order_mutants.py [--build build] [--only TEXT] [--work DIR]

Each mutant is one source file compiled again and linked in front of the library that holds the right one. It is found when the program,
run with --check streams, ends with anything but 0. The unbroken programs must end with 0 first. Needs a finished build."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = "--data shapes --device cuda --model resnet8 --max-steps 12 --batch-size 16 --seed 3 --graph off --workers 2 --out {work}/run".split()
RUNS = {
    "train": (["--streams", "lazy"], [], "train_image", TRAIN),
    "ranks": (["--streams", "lazy", "--gpus", "2", "--threads", "1"], ["weft-run", "--nproc_per_node", "2"], "dist_equal_ranks", ["cuda", "2"]),
}
# What is broken, where, old text, new text, and the run that must see it.
MUTANTS = [
    ("allocator: nobody's use on other streams is kept", "kernels/allocator.cpp", "block->users.push_back(stream);", ";", "train"),
    ("allocator: a freed block goes back although others use it", "kernels/allocator.cpp", "if (block->users.empty()) {", "if (block->users.clear(); true) {", "train"),
    ("allocator: the events of a freed block are never recorded", "kernels/allocator.cpp",
     "runtime.record_event(event, device.index, block->users.back());", ";", "train"),
    ("allocator: the events are recorded on the block's own stream", "kernels/allocator.cpp", "device.index, block->users.back());", "device.index, block->stream);", "train"),
    ("allocator: an event that has not passed counts as passed", "kernels/allocator.cpp", "return runtime.query_event(event);", "return runtime.query_event(event), true;", "train"),
    ("allocator: only the last of several events is waited for", "kernels/allocator.cpp", "if (!block->events.empty() || !block->users.empty()) return false;",
     "block->events.clear();", "train"),
    ("allocator: the cache mixes streams", "kernels/allocator.cpp", "FreeLists& found = by_stream_[stream];", "FreeLists& found = by_stream_[stream = nullptr];", "train"),
    ("upload: the step does not wait for its batch", "data/upload.cpp", "uploaded.block(stream);", ";", "train"),
    ("upload: the step's use of a batch is not told", "data/upload.cpp", "tensor.storage()->record_stream(stream);", ";", "train"),
    ("loader: a slot is filled again while its copy waits", "data/loader.cpp", "one.copied->synchronize();", ";", "train"),
    ("event: record does nothing", "core/stream.cpp", "if (handle_) kernels::runtime(device_.kind).record_event(handle_, device_.index, stream);", "(void)stream;", "train"),
    ("event: block does nothing", "core/stream.cpp", "if (handle_) kernels::runtime(device_.kind).wait_event(device_.index, stream, handle_);", "(void)stream;", "train"),
    ("event: the host does not wait", "core/stream.cpp", "if (handle_) kernels::runtime(device_.kind).synchronize_event(handle_);", ";", "train"),
    ("nccl: the collective does not wait for its input", "dist/nccl_group.cpp", "ready.block(stream_.handle());", ";", "ranks"),
    ("nccl: the event before a collective is recorded on its own stream", "dist/nccl_group.cpp", "ready.record(current_stream(device_));", "ready.record(stream_.handle());", "ranks"),
    ("nccl: nobody waits for the collective", "dist/nccl_group.cpp", "event_->block(current_stream(device_));", ";", "ranks"),
    ("nccl: the event behind a collective is recorded on the caller's stream", "dist/nccl_group.cpp", "flight.done->record(stream_.handle());",
     "flight.done->record(current_stream(device_));", "ranks"),
    ("nccl: a collective's use of its tensors is not told", "dist/nccl_group.cpp", "if (tensor.defined()) tensor.storage()->record_stream(stream_.handle());", "(void)tensor;", "ranks"),
    ("reducer: the optimizer does not wait for the buckets", "dist/reducer.cpp", "for (const WorkPtr& work : works_) work->wait();", ";", "ranks"),
    ("flat shard: a gathered unit is used before it is there", "dist/flat_shard.cpp", "if (work_) work_->wait();", ";", "ranks"),
    ("flat shard: a gather is not waited for before its memory goes", "dist/flat_shard.cpp", "if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();", "work_ = nullptr;", "ranks"),
    ("shard gradient: the reduced gradient is used before it is there", "dist/shard_gradient.cpp", "if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();",
     "work_ = nullptr;", "ranks"),
    ("broadcast of the first weights is not waited for", "dist/flat_shard.cpp", '{.name = "parameters " + name_, .scale = {}})->wait();', '{.name = "parameters " + name_, .scale = {}});', "ranks"),
]


def run(build, work, kind, program=None):
    """The exit code and the first report of a run, of this program instead of the built one where it is given."""
    options, launcher, name, arguments = RUNS[kind]
    folder = build / "bin"
    words = [str(folder / "weft-emulate"), "--check", "streams", *options, *([str(folder / launcher[0]), *launcher[1:]] if launcher else []),
             str(program or folder / name), *(a.format(work=work) for a in arguments)]
    subprocess.run(["rm", "-rf", str(work / "run")], check=True)
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return 124, "ran past 180 s"
    said = [line for line in (done.stderr + done.stdout).splitlines() if re.search("weft-emulate:|error|expected", line)]
    return done.returncode, (said or [""])[0][:160]


def mutant_program(build, work, file, old, new, name):
    """The program linked with the broken file, or why there is none."""
    text = (ROOT / file).read_text()
    if text.count(old) < 1:
        return None, "its text is not there any more"
    broken = work / pathlib.Path(file).name
    broken.write_text(text.replace(old, new, 1))
    commands = json.loads((build / "compile_commands.json").read_text())
    command = next(c for c in commands if c["file"] == str(ROOT / file))
    words = re.sub(r"-Werror\b", "-w", command["command"])
    obj = work / (broken.stem + ".o")
    words = re.sub(r" -o \S+ -c \S+", f" -I{(ROOT / file).parent} -o {obj} -c {broken}", words)
    done = subprocess.run(words, shell=True, cwd=command["directory"], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, "does not compile: " + done.stderr.splitlines()[0]
    link = subprocess.run(["ninja", "-t", "commands", f"bin/{name}"], cwd=build, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    program = work / name
    link = link.replace(f"-o bin/{name} ", f"{obj} -o {program} ").removeprefix(": && ").removesuffix(" && :")
    done = subprocess.run(link, shell=True, cwd=build, capture_output=True, text=True, check=False)
    return (program, "") if done.returncode == 0 else (None, "does not link: " + done.stderr.splitlines()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/weft_order_mutants"))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    build, work = options.build.resolve(), options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for kind in RUNS:
        code, said = run(build, work, kind)
        print(f"{'right' if code == 0 else 'BROKEN':9} {kind}: the program as it is {said}", flush=True)
        if code:
            return 1
    found = survived = 0
    for what, file, old, new, kind in MUTANTS:
        if options.only not in what:
            continue
        program, why = mutant_program(build, work, file, old, new, RUNS[kind][2])
        if not program:
            print(f"INVALID   {what}: {why}", flush=True)
            survived += 1
            continue
        code, said = run(build, work, kind, program)
        found, survived = found + (code != 0), survived + (code == 0)
        print(f"{'found' if code else 'SURVIVED':9} {what} (exit code {code}) {said}", flush=True)
    print(f"{found} found, {survived} not")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
