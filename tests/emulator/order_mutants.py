#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks orders between streams in Weft, one at a time, and wants each seen on the emulator. So are mends of faults that a review
of the GPU host path found (`finding N`): the mutant is the fault, and the test that was written with the mend must fail.

Usage: order_mutants.py [--build build] [--only TEXT] [--work DIR], or --check: all old texts are in their files, and nothing runs.

Each mutant is one source file compiled again and linked in front of the library that holds the right one. It is found when the program,
run with --check streams, ends with anything but 0: with 86 when the check found it. The unbroken programs must end with 0 first. Needs a
finished build."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 600  # seconds of a run
STEPS = "--data shapes --device cuda --model resnet8 --batch-size 16 --seed 3 --workers 2 --out {work}/run".split()
LAZY, TWO = ["--streams", "lazy"], ["--streams", "lazy", "--gpus", "2", "--threads", "1"]
RANKS = ["weft-run", "--nproc_per_node", "2"]
# weft-emulate's options, launcher, program, its arguments.
RUNS = {
    "train": (LAZY, [], "train_image", [*STEPS, "--graph", "off", "--max-steps", "12"]),
    "graph": (LAZY, [], "train_image", [*STEPS, "--graph", "on", "--max-steps", "24"]),
    "dropout": (LAZY, [], "test_train_image", ["--gtest_filter=Recipes/GraphedTraining.GivesTheBitsOfEagerTraining/Sgd"]),
    "ranks": (TWO, RANKS, "dist_equal_ranks", ["cuda", "2"]),
    "graph of ranks": (TWO, RANKS, "train_image", [*STEPS, "--parallel", "ddp", "--graph", "on", "--max-steps", "6"]),
    "host's ranks": (LAZY, [], "dist_equal_ranks", ["cuda", "1", "2"]),
    "checkpoint": (LAZY, [], "test_dist", ["--gtest_filter=FsdpOnGpu.ShardsGoToTheDeviceAndCheckpointsComeFromThere"]),
    "allocator": ([], [], "test_core", ["--gtest_filter=AllocatorOnAStillGpu.*"]),
    "agreement": ([], [], "test_core", ["--gtest_filter=*RanksReplayTogetherOrNotAtAll*"]),
    "replays": ([], [], "test_dist", ["--gtest_filter=Nccl.*"]),
    "sticky": ([], [], "test_kernels", ["--gtest_filter=StickyError.*"]),
    "fields": ([], [], "test_data", ["--gtest_filter=Fields.TravelWhileAStepReadsThoseBefore"]),
    "coherent": (["--gpu", "gh200", *LAZY], [], "test_core", ["--gtest_filter=*cuda*"]),
}
# Description, file, old text, new text, and the run that must fail.
MUTANTS = [
    ("allocator: nobody's use on other streams is kept", "kernels/runtime/allocator.cpp", "block->users.push_back(stream);", ";", "train"),
    ("allocator: a freed block goes back although others use it", "kernels/runtime/allocator.cpp", "if (block->users.empty()) {", "if (block->users.clear(); true) {", "train"),
    ("allocator: the events of a freed block are never recorded", "kernels/runtime/allocator.cpp",
     "runtime.record_event(event, device.index, block->users.back());", ";", "train"),
    ("allocator: the events are recorded on the block's own stream", "kernels/runtime/allocator.cpp", "device.index, block->users.back());", "device.index, block->segment->stream);", "train"),
    ("allocator: an event that has not passed counts as passed", "kernels/runtime/allocator.cpp", "return runtime.query_event(event);", "return runtime.query_event(event), true;", "train"),
    ("allocator: only the last of several events is waited for", "kernels/runtime/allocator.cpp", "if (!block->events.empty() || !block->users.empty()) return false;",
     "block->events.clear();", "train"),
    ("allocator: the cache mixes streams", "kernels/runtime/allocator.cpp", "last_ = &by_stream_[stream];", "last_ = &by_stream_[nullptr];", "train"),
    ("allocator: a freed block is given out while its events are pending", "kernels/runtime/allocator.cpp", "s.waiting.push_back(block);", "s.put(block, leaving);", "train"),
    ("upload: the step does not wait for its batch", "data/loader.cpp", "uploaded.block(stream);", ";", "train"),
    ("upload: the step's use of a batch is not told", "data/loader.cpp", "tensor.storage()->record_stream(stream);", ";", "train"),
    ("upload: a batch travels on the step's stream, its event on another", "data/loader.cpp", "const StreamGuard guard(stream);", ";", "train"),
    ("loader: a slot is filled again while its copy waits", "data/loader.cpp", "one.copied->synchronize();", ";", "train"),
    ("loader: the event after a slot's copies is recorded on the step's stream", "data/loader.cpp", "from.copied->record(copy_stream_->handle());",
     "from.copied->record(current_stream(options_.device));", "train"),
    ("loader: the places travel on a stream that nobody waits for", "data/loader.cpp", "upload(part, *copy_stream_)",
     "upload(part, sent.size() == 2 ? *new Stream(options_.device) : *copy_stream_)", "train"),
    ("loader: the step's use of the labels is not told", "data/loader.cpp", "hand_over(*slot(step).copied, batch.tensors);", "hand_over(*slot(step).copied, {batch.tensors[0], batch.tensors[2]});", "train"),
    ("runtime: copies go to the default stream, whichever is asked for", "kernels/cuda/runtime.cu", "cudaMemcpyDefault, to_stream(stream))", "cudaMemcpyDefault, nullptr)", "train"),
    ("runtime: the default stream waits for an event, whichever is asked to", "kernels/cuda/runtime.cu", "cudaStreamWaitEvent(to_stream(stream), ", "cudaStreamWaitEvent(nullptr, ", "ranks"),
    ("event: record does nothing", "core/stream.cpp", "if (handle_) kernels::runtime(device_.kind).record_event(handle_, device_.index, stream);", "(void)stream;", "train"),
    ("event: block does nothing", "core/stream.cpp", "if (handle_) kernels::runtime(device_.kind).wait_event(device_.index, stream, handle_);", "(void)stream;", "train"),
    ("event: the host does not wait", "core/stream.cpp", "kernels::runtime(device_.kind).synchronize_event(handle_);", "(void)handle_;", "train"),
    ("copy: what goes to the host leaves on a stream of its own", "core/ops/copy.cpp", "kernels::transfer(current_queue(device), name,",
     "static const Stream aside(device);\n  kernels::transfer({device, aside.handle()}, name,", "graph"),
    ("graph: replayed on the stream of the capture", "core/graph.cpp", "state_->executable, queue.stream);", "state_->executable, state_->stream.handle());", "graph"),
    ("graph: its inputs are copied on a stream of their own", "core/graph.cpp", "for (size_t i = 0; i < inputs.size(); ++i) kind->inputs[i].copy_(inputs[i]);",
     "{\n    const Stream aside(device_);\n    const StreamGuard guard(aside);\n    for (size_t i = 0; i < inputs.size(); ++i) kind->inputs[i].copy_(inputs[i]);\n  }", "graph"),
    ("graph: its position of the generator is written on a stream of its own", "core/random.cpp", "state_.slice(0, 1, ", "const Stream aside(device_);\n  const StreamGuard guard(aside);\n  state_.slice(0, 1, ", "dropout"),
    ("sums of the steps are cleared on a stream of their own", "train/record/step_sums.cpp", "loss_sum_.zero_();",
     "const Stream aside(world_.device());\n  const StreamGuard guard(aside);\n  loss_sum_.zero_();", "graph"),
    ("nccl: the collective does not wait for its input", "dist/group/nccl_group.cpp", "ready.block(stream_.handle());", ";", "ranks"),
    ("nccl: the event before a collective is recorded on its own stream", "dist/group/nccl_group.cpp", "ready.record(current_stream(device_));", "ready.record(stream_.handle());", "ranks"),
    ("nccl: nobody waits for the collective", "dist/group/nccl_group.cpp", "launch_->done().block(stream);", ";", "ranks"),
    ("nccl: the event after a collective is recorded on the default stream", "dist/group/nccl_group.cpp", "done_.record(stream_);", "done_.record(nullptr);", "ranks"),
    ("nccl: a captured collective does not wait for its input", "dist/group/nccl_group.cpp", "ready.block(stream_.handle());", "if (!captured) ready.block(stream_.handle());", "graph of ranks"),
    ("nccl: nobody waits for a captured collective", "dist/group/nccl_group.cpp", "    block(current_stream(device_));", "    if (!captured_) block(current_stream(device_));", "graph of ranks"),
    ("ranks: a sum is read before it is there", "dist/group/world.cpp", "ReduceOp::sum, {.name = what, .scale = {}});\n  work->wait();", "ReduceOp::sum, {.name = what, .scale = {}});", "graph of ranks"),
    ("ddp: the broadcast of the model is not waited for", "dist/ddp/agreement.cpp", "for (const WorkPtr& work : works) work->wait();", ";", "ranks"),
    ("reducer: the optimizer does not wait for the buckets", "dist/ddp/reducer.cpp", "      work->wait();\n      if (low)", "      if (low)", "ranks"),
    ("flat shard: a gathered unit is used before it is there", "dist/fsdp/flat_shard.cpp", "if (work_) work_->wait();", ";", "ranks"),
    ("shard gradient: the reduced gradient is used before it is there", "dist/fsdp/flat_shard.cpp",
     'scope("reduce_gradients");\n  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();', 'scope("reduce_gradients");\n  work_ = nullptr;', "ranks"),
    ("broadcast of the first weights is not waited for", "dist/fsdp/flat_shard.cpp", '{.name = "parameters " + name_, .scale = {}})->wait();', '{.name = "parameters " + name_, .scale = {}});', "ranks"),
    ("flat shard: gathered state is used before it is there", "dist/fsdp/flat_shard.cpp", '{.name = "state " + name_, .scale = {}})->wait();', '{.name = "state " + name_, .scale = {}});', "ranks"),
    ("ddp and fsdp: the weight of the samples is used before it is there", "dist/ddp/sample_weight.cpp", "  wait();\n  const Tensor own", "  const Tensor own", "ranks"),
    ("fsdp: counters of the first rank are used before they are there", "dist/fsdp/fsdp.cpp", 'work->wait();\n  values = all.to_vector', 'values = all.to_vector', "ranks"),
    ("batch norm over ranks: statistics are joined before they are there", "dist/ddp/sync_batch_norm.cpp", '{.name = "batch statistics", .scale = {}, .at_once = true})->wait();',
     '{.name = "batch statistics", .scale = {}, .at_once = true});', "ranks"),
    ("batch norm over ranks: the sums of its backward are used before they are there", "dist/ddp/sync_batch_norm.cpp", "                ->wait();", "                ;", "ranks"),
    ("staging: the copy to the host does not wait for the tensor", "dist/group/stage.cpp", "ready->block(staging.stream.handle());", ";", "host's ranks"),
    ("staging: the host reads before the copy is there", "dist/group/stage.cpp",
     "    staging.stream.synchronize();\n    if (c.scale.defined()) factor", "    if (c.scale.defined()) factor", "host's ranks"),
    ("staging: the copy back to the device is not waited for", "dist/group/stage.cpp", "host.output, c.output.nbytes());\n  staging.stream.synchronize();", "host.output, c.output.nbytes());", "host's ranks"),
    ("checkpoint: the snapshot is taken on a stream of its own", "dist/fsdp/checkpoint_writer.cpp", 'kernels::transfer(current_queue(at), "snapshot"',
     'static const Stream aside(at);\n      kernels::transfer({at, aside.handle()}, "snapshot"', "checkpoint"),
    ("checkpoint: the file is written before the snapshot is there", "dist/fsdp/checkpoint_writer.cpp", "if (copied) copied->synchronize();", ";", "checkpoint"),
    # The review's other findings. 1 is the allocator's first mutant above.
    ("finding 2: the error of a failed device leaves a destructor", "kernels/runtime/allocator.cpp", "} catch (const Error&) {  // a failed device is reported elsewhere",
     "} catch (const std::bad_alloc&) {", "allocator"),
    ("finding 3: a rank replays its capture though another could not capture", "core/graph.cpp", "if (agreed(!own)) {", "if (!own) {", "agreement"),
    ("finding 3: a rank replays though the batch of another does not fit", "core/graph.cpp", "!agreed(kind && kind->graph.is_captured())", "!(kind && kind->graph.is_captured())", "agreement"),
    ("finding 3: a replay has no deadline", "dist/group/nccl_group.cpp", "if (watched_capture_ != capture_number())", "if (false)", "replays"),
    ("finding 6: a sticky error is the fault of the call that tells of it", "kernels/runtime/sticky_error.cpp", "if (!is_sticky(code) || kernel_checks().synchronize)", "if (true)", "sticky"),
    ("finding 7: the host waits for the step before a batch of fields", "data/loader.cpp", "from.copied->record(copy_stream_->handle());",
     "from.copied->record(copy_stream_->handle()), synchronize(options_.device);", "fields"),
    ("finding 8: pageable memory counts as staged where the GPU reads it itself", "kernels/cuda/runtime.cu", "return coherent == 0;", "return true;", "coherent"),
    ("finding 9: the cache cannot be switched off", "kernels/runtime/allocator.cpp", "cached(!caching_is_off())", "cached(true)", "allocator"),
    ("finding 10: the lock is held while the device is waited for", "kernels/runtime/allocator.cpp", "      s.runtime.synchronize_device(s.device.index);\n",
     "      lock.lock();\n      s.runtime.synchronize_device(s.device.index);\n      lock.unlock();\n", "allocator"),
    ("finding 12: a side stream of a capture takes blocks of the shared cache", "kernels/runtime/allocator.cpp", "MemoryPool* const pool = s.open_pool();",
     "MemoryPool* const pool = stream ? nullptr : s.open_pool();", "allocator"),
]


def run(build, work, kind, program=None):
    """The exit code and the first report of a run, of this program instead of the built one where it is given."""
    options, launcher, name, arguments = RUNS[kind]
    folder = build / "bin"
    words = [str(folder / "weft-emulate"), "--check", "streams", *options, *([str(folder / launcher[0]), *launcher[1:]] if launcher else []),
             str(program or folder / name), *(a.format(work=work) for a in arguments)]
    subprocess.run(["rm", "-rf", str(work / "run")], check=True)
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False, env={**os.environ, "WEFT_TEST_DEVICES": "cuda"})
    except subprocess.TimeoutExpired:
        return None, f"ran past {LIMIT} s"
    said = [line for line in (done.stderr + done.stdout).splitlines() if re.search("weft-emulate:|error|expected", line)]
    return done.returncode, (said or [""])[0][:160]


def compile_command(build, file):
    """The command that compiles a source, and the text of the file that includes it under WEFT_UNITY, or None."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for command in commands:
        if command["file"] == str(ROOT / file):
            return command, None
    for command in commands:
        if "/Unity/" in command["file"] and f'"{ROOT / file}"' in (text := pathlib.Path(command["file"]).read_text()):
            return command, text
    raise SystemExit(f"order_mutants: no command in {build}/compile_commands.json compiles {file}")


def mutant_program(build, work, file, old, new, name):
    """The program linked with the broken file, or why there is none."""
    text = (ROOT / file).read_text()
    if text.count(old) < 1:
        return None, "its text is not there any more"
    broken = work / pathlib.Path(file).name
    broken.write_text(text.replace(old, new, 1))
    command, together = compile_command(build, file)
    if together:  # sources by the dozen: the whole dozen is compiled again
        whole = work / "together.cpp"
        whole.write_text(together.replace(f'"{ROOT / file}"', f'"{broken}"'))
        broken = whole
    words = re.sub(r"-Werror\b(=\S+)?", "-w", command["command"])
    obj = work / (broken.stem + ".o")
    words = re.sub(r" -o \S+ -c \S+| -c \S+ -o \S+", f" -I{(ROOT / file).parent} -o {obj} -c {broken}", words)
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
    parser.add_argument("--work", type=pathlib.Path, help="(default: order_mutants in the build)")
    parser.add_argument("--only", default="", help="those with this text in their name or run")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        gone = [f"order_mutants: {file}: not found: {old}" for _, file, old, _, _ in MUTANTS if old not in (ROOT / file).read_text()]
        print("\n".join(gone) or f"{len(MUTANTS)} mutants")
        return 1 if gone else 0
    build = options.build.resolve()
    work = (options.work or build / "order_mutants").resolve()
    work.mkdir(parents=True, exist_ok=True)
    chosen = [mutant for mutant in MUTANTS if options.only in f"{mutant[0]} [{mutant[4]}]"]
    for kind in dict.fromkeys(mutant[4] for mutant in chosen):
        begin = time.time()
        code, said = run(build, work, kind)
        print(f"{'right' if code == 0 else 'BROKEN':9} {kind}: the program as it is, {time.time() - begin:.0f} s {said}", flush=True)
        if code != 0:
            return 1
    found = 0
    for what, file, old, new, kind in chosen:
        program, why = mutant_program(build, work, file, old, new, RUNS[kind][2])
        if not program:
            print(f"INVALID   {what}: {why}", flush=True)
            continue
        code, said = run(build, work, kind, program)
        found += code not in (0, None)
        outcome = "TOO SLOW" if code is None else "found" if code else "SURVIVED"
        print(f"{outcome:9} {what} [{kind}] (exit code {code}) {said}", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 1 if found < len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
