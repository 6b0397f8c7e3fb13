# SPDX-License-Identifier: Apache-2.0
"""The stages of tools/gpu_check, the most important first, with their limits in seconds (measured on an H200 with 16 cores)."""
import json
import pathlib
import shutil
import sys
from random import Random

from gpu_node import logs
from gpu_node.stages import FAIL, PASS, Command, Stage

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Run first, as the most likely to fail on a GPU: single instructions, then the host's side of graphs, streams, loaders and NCCL.
FIRST_TESTS = ["test_hopper", "test_core:*cuda*:*Gpu*:*Stream*:*Graph*:*Allocator*:*Event*", "test_dist:*cuda*:*Nccl*:*OnAStillGpu*-SeveralGpus.*",
               "test_data:*cuda*:*Gpu*:*Jpeg*:Fields.*"]
# Programs whose tests take seconds come first: the last process to begin is then a short one.
DEVICE_TESTS = ["test_engines", "test_linear_probe", "test_train_image", "test_kernels", "test_golden", "test_ops", "test_ladder",
                "test_nn", "test_io", "test_train", "test_optim"]
BUILDING = ["configure", "build", "build_rest", "tests_rest"]  # the stages that a ready-built folder does not have
AGAIN = 15  # seconds for what failed to run again
CUDNN_PLANS = 3  # that PyTorch tries for each convolution, to save time; its default is 10
LADDERS = ["transpose", "reduce", "softmax", "matmul_f32", "matmul_bf16", "conv2d", "attention"]  # of kernels/ladder
GPU_ACCURACY = 0.9                               # six epochs of the embedded shapes reach 0.96 on the CPU


# One after the other, so that no two are timed at once; a failing step does not affect the other ladders.
CLIMB = 'status=0; for name; do echo "ladder $name"; "$0" "$name" --device cuda --seconds 0.05 || status=1; done; exit $status'


# Two ranks of one node: DDP eager, then each step as a graph; the tests of several GPUs that this node has; then what only
# hardware says: an interleaved pipeline with messages above 16 MB, the memory that FSDP of 1e9 weights reserves, and timelines
# (nsys) of HYBRID's and of DDP's all_reduce.
TWO_GPUS = r'''out=$1 device=$2; shift 2; status=0; text="$out.txt"
ranks() { echo "two ranks: $*"; $profiler "$0/weft-run" --nproc-per-node 2 "$@" || status=1; }
gpt() { name=$1; shift; ranks "$0/train_gpt" --data "$text" --out "$out/$name" --overwrite --max-steps 3 --device $device "$@"; }
for graph in off on; do ranks "$0/train_image" --data shapes --parallel ddp --graph $graph --out "$out/$graph" --device $device "$@"; done
[ $device = emulated ] || "$0/test_dist" --gtest_filter='SeveralGpus.*:*EveryPipeline*/0:*LargeMessages*/2x*' || status=1
gpt pipeline $SMALL --pipeline 2 --chunks 2 --micro-batches 4
if [ $device = emulated ]; then gpt fsdp $LARGE --parallel fsdp; exit $status; fi
nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 200 > "$out/memory" & watch=$!
gpt fsdp $LARGE --parallel fsdp
kill $watch; echo "FSDP of 1.2e9 weights: most memory of a GPU $(sort -n "$out/memory" | tail -n 1) MiB; a shard takes 9500"
command -v nsys || { echo "no timelines: nsys is not there"; exit $status; }
profiler="nsys profile --trace cuda,nvtx --force-overwrite true --output $out/hybrid"
gpt hybrid $SMALL --parallel fsdp --fsdp-strategy hybrid_shard --fsdp-shard-size 1
profiler="nsys profile --trace cuda,nvtx --force-overwrite true --output $out/all_reduce"
gpt all_reduce $SMALL --parallel ddp
exit $status'''


def patience(device):
    """Seconds that a test may take: a kernel that waits for a lost barrier spins forever. cuDNN's slowest plans take 15 seconds."""
    return 300 if device == "emulated" else 25


def configure_words(build, device, paths):
    """CMake's flags: this GPU's own architecture (PTX for an emulated one), the bundle's libraries, and where cuDNN and NCCL are."""
    words = ["cmake", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DWEFT_BUILD_TESTS=ON",
             "-DWEFT_BUILD_APPS=ON", "-DWEFT_BUILD_BENCHMARKS=ON", "-DWEFT_WERROR=OFF",
             f"-DWEFT_TEST_TIMEOUT={patience(device)}", "-DWEFT_CUDA=ON"]
    if shutil.which("ninja"):
        words += ["-G", "Ninja"]
    if (ROOT / "deps/include").is_dir():
        words += [f"-DCMAKE_PREFIX_PATH={ROOT / 'deps'}"]
    words += [f"-DWEFT_CUDA_ARCHITECTURES={paths['architecture'] if device == 'cuda' else '80-virtual'}"]
    words += [f"-DCMAKE_CUDA_COMPILER={paths['nvcc']}"] if paths["nvcc"] else []
    words += [f"-DWEFT_CUBLASLT_ROOT={paths['cublaslt']}"] if paths["cublaslt"] else []
    words += [f"-DWEFT_CUDNN_ROOT={paths['cudnn']}"] if paths["cudnn"] else []
    return words + ([f"-DWEFT_NCCL_ROOT={paths['nccl']}"] if paths["nccl"] else [])


def read_configure(run, outcome):
    """Adds the table of parts to the facts."""
    rows = [line[3:].strip() for line in run.log("configure").splitlines() if line.startswith(("--   found ", "--   MISSING "))]
    missing = [row[8:].strip().split("  ")[0] for row in rows if row.startswith("MISSING")]
    outcome.facts = {"parts": rows}
    if outcome.status == PASS:
        outcome.what = f"missing parts: {', '.join(missing)}" if missing else "all parts found"


def read_training(folder, needed_accuracy):
    def read(run, outcome):
        try:
            summary = json.loads((folder / "summary.json").read_text())
        except (OSError, ValueError) as error:
            if outcome.status == PASS:
                outcome.status, outcome.what = FAIL, f"no summary.json: {error}"
            return
        outcome.facts = {"summary": summary}
        accuracy = summary.get("val_accuracy")
        if accuracy is None and needed_accuracy:
            outcome.status = FAIL
        if outcome.status == PASS and needed_accuracy and accuracy < needed_accuracy:
            outcome.status = FAIL
            outcome.lines = [f"expected a validation accuracy of {needed_accuracy} at least, got {accuracy}"]
        outcome.what = ", ".join([f"{summary.get('steps', '?')} steps, validation accuracy {accuracy}"] +
                                 ([outcome.what] if outcome.what else []))
    return read


class Program:
    """A training program as its users start it, on made-up data; its peer in PyTorch takes the same steps."""

    def __init__(self, name, model, batch, flags, peer_flags, cases, prepare=lambda: None):
        self.name, self.model, self.batch, self.flags, self.peer_flags, self.cases, self.prepare = (
            name, model, batch, flags, peer_flags, cases, prepare)


def linear_probe(emulated, work):
    """Both phases, twenty steps an epoch; the second epoch counts. ViT-B/14 at this batch takes some 10 GiB."""
    model, batch, steps = ("vit_tiny4", 2, 2) if emulated else ("dinov2_vitb14", 128, 20)
    cases = {f"{model}_{phase}": (f"{phase}_images_per_second", "images/s", f"{phase}_peak_tensor_bytes") for phase in ("probe", "finetune")}
    return Program("linear_probe", model, batch, ["-b", str(batch), "-e", "2", "--data", f"random:{batch * steps}x32x32x3", "--cache-features", "off",
                                                  "--parallel", "none"],
                   ["-b", str(batch), "--steps", str(steps)], cases)


SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_texts(folder, texts, length, vocabulary):
    """train.tsv, dev.tsv and vocab.txt: sentences of words that are one token each, half of `length` tokens and more, cut to it."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"w{i}" for i in range(vocabulary - len(SPECIAL_TOKENS))]
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in SPECIAL_TOKENS + words))
    random = Random(1)
    for name, count in (("train.tsv", texts), ("dev.tsv", 32)):
        rows = [f"{' '.join(random.choices(words, k=random.randint(length // 2, 2 * length)))}\t{random.randint(0, 1)}" for _ in range(count)]
        rows[:2] = [row[:-1] + str(label) for label, row in enumerate(rows[:2])]  # both classes are there
        (folder / name).write_text("\n".join(["text\tlabel"] + rows) + "\n")


def finetune(emulated, work):
    """In f32 as Hugging Face's Trainer, fifty steps an epoch; the second epoch counts."""
    model, batch, length, steps, vocabulary = ("bert_tiny", 2, 8, 2, 300) if emulated else ("bert_base", 8, 128, 50, 30522)
    folder = work / "texts"
    return Program("finetune", model, batch, ["--batch-size", str(batch), "--max-length", str(length), "--epochs", "2", "--data", str(folder),
                                              "--weights", "random", "--vocab", str(folder / "vocab.txt"), "--save-steps", "1000000", "--parallel", "none"],
                   ["--batch-size", str(batch), "--length", str(length), "--steps", str(steps)],
                   {f"{model}_finetune": ("texts_per_second", "texts/s", "peak_tensor_bytes")},
                   lambda: write_texts(folder, batch * steps, length, vocabulary))


def program_stages(program, build, device, work, no_peer, needs):
    """The program, and its peer where there is a GPU."""
    binary, out = build / "bin" / program.name, work / program.name
    summary = out / "summary.json"

    def commands(_limit):
        program.prepare()
        summary.unlink(missing_ok=True)  # left from an earlier check
        return [Command(program.name, [str(binary), "--model", program.model, *program.flags, "--device", device, "--out", str(out)])]

    peer = f"{program.name}_pytorch"
    script = ROOT / f"benchmarks/peers/pytorch_{program.name}.py"
    return [Stage(program.name, 300 if device == "emulated" else 60, needs=["configure"], prepare=commands, read=logs.read_program(summary, program.batch, program.cases),
                  unless=lambda: needs(program.name), useful=15),
            Stage(peer, 45, [Command(peer, ["python3", str(script), "--model", program.model, *program.peer_flags, "--device", "cuda"])],
                  read=logs.read_bench, needs=["configure"], unless=lambda: no_peer(script), useful=15,
                  not_here="PyTorch's side needs a GPU" if device == "emulated" else None)]


SANITIZERS = ["memcheck", "racecheck", "synccheck", "initcheck"]
# racecheck does not follow bar.arrive: it reports races where a warp group arrives at a named
# barrier and another waits there.
FALSE_REPORTS = {("racecheck", "test_hopper"): "Hopper.NamedBarriersAndRegisters"}


def sanitizers(limit, build, paths, cores, emulated):
    """All tools at the same time, since none of them is a timing; test_hopper takes seconds, test_kernels is divided into shards."""
    shards = {"test_kernels": max(1, (cores - 2) // len(SANITIZERS)), "test_hopper": 1}

    def there():
        return [program for program in shards if (build / "bin" / program).exists()]

    def unless():
        if not paths["compute-sanitizer"]:
            return "compute-sanitizer was not found: it comes with the CUDA toolkit"
        return None if there() else f"{' and '.join(shards)} are not there"

    def command(tool, program, i):
        left_out = FALSE_REPORTS.get((tool, program))
        # Without the cache each tensor is a separate allocation: overruns and uses after free cannot hit another tensor.
        return Command(f"{tool}_{program}_{i}",
                       [paths["compute-sanitizer"], "--tool", tool, "--error-exitcode", "86", "--print-limit", "20",
                        *(["--leak-check", "no"] if tool == "memcheck" else []), str(build / "bin" / program),
                        *([f"--gtest_filter=-{left_out}"] if left_out else [])],
                       {"WEFT_TEST_DEVICES": "cuda", "WEFT_NO_CACHE": "1", "GTEST_TOTAL_SHARDS": str(shards[program]), "GTEST_SHARD_INDEX": str(i),
                        "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"})

    return Stage("sanitizers", limit, needs=["configure"], unless=unless, useful=15, read=logs.read_sanitizers,
                 not_here="needs a GPU; for an emulated one there is weft-emulate --check" if emulated else None,
                 prepare=lambda _limit: [command(tool, program, i) for tool in SANITIZERS for program in there() for i in range(shards[program])])


def tests(name, limit, programs, build, work, jobs, device, incomplete):
    """Many tests a process. `incomplete`: not all of the programs have to be there; otherwise one that is missing fails the stage."""
    out = work / name
    # As many GPUs as the tests of several ranks take.
    emulate = [str(build / "bin/weft-emulate"), "--gpus", "4"] if device == "emulated" else []

    def there(program):
        return (build / "bin" / program.split(":")[0]).exists()

    def missing():
        return [program.split(":")[0] for program in programs if incomplete and not there(program)]

    def commands(limit):
        shutil.rmtree(out, ignore_errors=True)
        again = min(AGAIN, limit / 4)
        return [Command(name, [*emulate, sys.executable, str(ROOT / "tools/gpu_node/run_tests.py"), str(build / "bin"), str(out), "--jobs", str(jobs),
                               "--patience", str(patience(device)), "--minutes", f"{(0.97 * limit - again) / 60:.4f}", "--again", f"{again:.1f}",
                               *(program for program in programs if there(program) or not incomplete)], {"WEFT_TEST_DEVICES": "cuda"})]

    return Stage(name, limit, needs=["configure"], prepare=commands, read=logs.read_tests(out, missing), useful=10,
                 unless=lambda: f"{', '.join(missing())} are not there" if len(missing()) == len(programs) else None)


def stages(build, device, paths, cores, work, prebuilt=False):
    emulated = device == "emulated"
    few = max(1, min(8, cores // 2))
    jobs = few if emulated else max(1, cores - 2)
    keep_going = ["-k", "0"] if shutil.which("ninja") else ["-k"]
    run_folder = work / "train"
    peer = ROOT / "benchmarks/peers/pytorch.py"
    bench, ladder = build / "bin/bench", build / "bin/ladder"
    training = ["--model", "resnet8", "--batch-size", "16", "--max-steps", "5"] if emulated else [
        "--model", "resnet20", "--epochs", "6", "--batch-size", "64", "--schedule", "onecycle", "--workers", "4"]

    two_ranks = ["--model", "resnet8", "--batch-size", "8", "--max-steps", "3"] if emulated else [
        "--model", "resnet20", "--batch-size", "64", "--max-steps", "60"]

    def two_gpus(_limit):
        (work / "two_gpus.txt").write_text("".join(f"{i} threads make a warp. " for i in range(20000)))
        words = ["sh", "-c", TWO_GPUS, str(build / "bin"), str(work / "two_gpus"), device, *two_ranks]
        sizes = ("gpt_tiny --context 16 --batch-size 4", "gpt_tiny --context 16 --batch-size 1") if emulated else (
            "gpt2 --context 1024 --batch-size 32 --precision bf16", "llama3.2_1b --context 512 --batch-size 1 --precision bf16")
        return [Command("two_gpus", words, {"WEFT_TIMEOUT": "100" if emulated else "20",  # ends a rank that hangs
                                            "SMALL": f"--model {sizes[0]}", "LARGE": f"--model {sizes[1]}"})]

    no_suite = "the GPU suite needs a GPU" if emulated else None

    def needs(*programs):
        missing = [program for program in programs if not (build / "bin" / program).exists()]
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there" if missing else None

    def no_peer(script):
        if not script.exists():
            return f"{script.relative_to(ROOT)} is not there"
        return None if paths["torch"] else "python3 has no PyTorch"

    def seconds(limit):
        return str(max(5, int(0.85 * limit)))  # the last case may take longer than it should

    def device_tests(name, limit, programs):
        return tests(name, limit, programs, build, work, jobs, device, incomplete=prebuilt or emulated)

    host_programs = [program.split(":")[0] for program in FIRST_TESTS if program != "test_hopper"]
    device_labels = "|".join(program[len("test_"):] for program in ["test_hopper"] + DEVICE_TESTS)
    all_stages = [
        Stage("configure", 60, [Command("configure", configure_words(build, device, paths))], read_configure),
        Stage("build", 600 if emulated else 240,
              [Command("build", ["cmake", "--build", str(build), "-j", str(cores), "--target", "device_check", *host_programs, "weft-run", "train_gpt", "--",
                                 *keep_going])], needs=["configure"]),
        device_tests("tests_first", 120 if emulated else 30, FIRST_TESTS),
        device_tests("tests_device", 300 if emulated else 115, DEVICE_TESTS),
        Stage("bench", 53, read=logs.read_bench, needs=["configure"], unless=lambda: needs("bench"), not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench", [str(bench), "--suite", "gpu", "--seconds-total", seconds(limit)])]),
        Stage("bench_pytorch", 60, read=logs.read_bench, needs=["configure"], unless=lambda: no_peer(peer), not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench_pytorch", ["python3", str(peer), "--device", "cuda", "--cudnn-plans", str(CUDNN_PLANS),
                                                               "--seconds-total", seconds(limit)])]),
        Stage("bench_engines", 60, read=logs.read_bench, needs=["configure"], unless=lambda: needs("bench"), not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench_engines", [str(bench), "--suite", "engines", "--seconds-total", seconds(limit)])]),
        *program_stages(linear_probe(emulated, work), build, device, work, no_peer, needs),
        *program_stages(finetune(emulated, work), build, device, work, no_peer, needs),
        Stage("train", 300 if emulated else 60, [Command("train", [str(build / "bin/train_image"), "--data", "shapes", "--device", device, "--precision", "bf16",
                                              "--out", str(run_folder), "--overwrite", *training])],
              read_training(run_folder, None if emulated else GPU_ACCURACY), needs=["configure"], unless=lambda: needs("train_image")),
        Stage("two_gpus", 120 if emulated else 150, prepare=two_gpus, needs=["configure"], unless=lambda: needs("weft-run", "train_image"),
              not_here=None if emulated or paths["gpus"] > 1 else "needs two GPUs", useful=30),
        Stage("ladders", 60, [Command("ladders", ["sh", "-c", CLIMB, str(ladder), *LADDERS])], logs.read_ladders, needs=["configure"],
              unless=lambda: needs("ladder"), not_here=no_suite, useful=15),
        sanitizers(180, build, paths, cores, emulated),
        Stage("build_rest", 600 if emulated else 120, [Command("build_rest", ["cmake", "--build", str(build), "-j", str(cores), "--", *keep_going])],
              needs=["configure"]),
        Stage("tests_rest", 300 if emulated else 60, needs=["configure"], read=logs.read_ctest, useful=10, commands=[
            Command("tests_rest", ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-j", str(few),
                                   "-LE", f"^({device_labels}|gpu_code)$"])]),
    ]
    if prebuilt:
        all_stages = [stage for stage in all_stages if stage.name not in BUILDING]
        for stage in all_stages:
            stage.needs = []
    return all_stages
