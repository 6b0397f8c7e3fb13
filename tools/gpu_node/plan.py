# SPDX-License-Identifier: Apache-2.0
"""The stages of tools/gpu_check, the most important first, with their limits in seconds."""
import json
import os
import pathlib
import shutil

from gpu_node import logs
from gpu_node.stages import FAIL, PASS, Command, Stage

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEVICE_PARTS = "hopper|kernels|ops|train_image|golden|engines"  # these have tests that run on the GPU
LADDERS = ["transpose", "reduce", "softmax", "matmul_f32", "matmul_bf16", "conv2d", "attention"]  # of kernels/ladder
GPU_ACCURACY = 0.9                               # six epochs of the embedded shapes reach 0.96 on the CPU


# One after the other, so that none is timed beside another; a step that fails leaves the other ladders.
CLIMB = 'status=0; for name; do echo "ladder $name"; "$0" "$name" --device cuda --seconds 0.05 || status=1; done; exit $status'


def configure_words(build, device, paths):
    """CMake's flags: this GPU's own architecture, the bundle's libraries, and where cuDNN and NCCL are."""
    words = ["cmake", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DWEFT_BUILD_TESTS=ON",
             "-DWEFT_BUILD_APPS=ON", "-DWEFT_BUILD_BENCHMARKS=ON", "-DWEFT_WERROR=OFF",
             f"-DWEFT_TEST_TIMEOUT={300 if device == 'simt' else 90}", f"-DWEFT_CUDA={'ON' if device == 'cuda' else 'OFF'}"]
    if shutil.which("ninja"):
        words += ["-G", "Ninja"]
    if (ROOT / "deps/include").is_dir():
        words += [f"-DCMAKE_PREFIX_PATH={ROOT / 'deps'}"]
    if device == "cuda":
        words += [f"-DWEFT_CUDA_ARCHITECTURES={paths['architecture']}"]
        words += [f"-DCMAKE_CUDA_COMPILER={paths['nvcc']}"] if paths["nvcc"] else []
        words += [f"-DWEFT_CUBLASLT_ROOT={paths['cublaslt']}"] if paths["cublaslt"] else []
        words += [f"-DWEFT_CUDNN_ROOT={paths['cudnn']}"] if paths["cudnn"] else []
        words += [f"-DWEFT_NCCL_ROOT={paths['nccl']}"] if paths["nccl"] else []
    return words


def read_configure(run, outcome):
    """The table of parts goes into the facts."""
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


def sanitizer_stage(tool, limit, build, paths, shards, simt):
    program = build / "bin/test_kernels"
    flags = ["--error-exitcode", "86", "--print-limit", "20"] + (["--leak-check", "no"] if tool == "memcheck" else [])

    def unless():
        if not paths["compute-sanitizer"]:
            return "compute-sanitizer was not found: it comes with the CUDA toolkit"
        return None if program.exists() else f"{program} was not built"

    return Stage(tool, limit, needs=["configure"], unless=unless,
                 not_here="needs a GPU; the emulated one has tools/test racecheck" if simt else None, useful=15, read=logs.read_sanitizer, commands=[
        Command(f"{tool}_{i}", [paths["compute-sanitizer"] or "", "--tool", tool, *flags, str(program)],
                {"WEFT_TEST_DEVICES": "cuda", "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i),
                 "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}) for i in range(shards)])


def ctest(name, limit, build, jobs, select, environment):
    return Stage(name, limit, needs=["configure"], read=logs.read_ctest, useful=10, commands=[
        Command(name, ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-j", str(jobs),
                       *select], environment)])


def stages(build, device, paths, cores, work):
    simt = device == "simt"
    jobs, shards = max(1, min(8, cores // 2)), max(1, min(8, cores // 2))
    keep_going = ["-k", "0"] if shutil.which("ninja") else ["-k"]
    run_folder = work / "train"
    peer = ROOT / "benchmarks/peers/pytorch.py"
    bench, ladder = build / "bin/bench", build / "bin/ladder"
    training = ["--model", "resnet8", "--batch-size", "16", "--max-steps", "5"] if simt else [
        "--model", "resnet20", "--epochs", "6", "--batch-size", "64", "--schedule", "onecycle", "--workers", "4"]

    no_suite = "the GPU suite needs a GPU" if simt else None

    def no_bench():
        return None if bench.exists() else f"{bench} was not built"

    def no_peer():
        if not peer.exists():
            return f"{peer.relative_to(ROOT)} is not there"
        return None if paths["torch"] else "python3 has no PyTorch"

    def seconds(limit):
        return str(max(5, int(0.8 * limit)))

    return [
        Stage("configure", 60, [Command("configure", configure_words(build, device, paths))], read_configure),
        Stage("build", 600 if simt else 240,
              [Command("build", ["cmake", "--build", str(build), "-j", str(cores), "--target", "device_check", "--", *keep_going])],
              needs=["configure"]),
        ctest("tests_device", 300 if simt else 110, build, jobs, ["-L", f"^({DEVICE_PARTS})$"], {"WEFT_TEST_DEVICES": device}),
        Stage("train", 60, [Command("train", [str(build / "bin/train_image"), "--data", "shapes", "--device", device, "--precision", "bf16",
                                              "--out", str(run_folder), *training])],
              read_training(run_folder, None if simt else GPU_ACCURACY), needs=["configure"],
              unless=lambda: None if (build / "bin/train_image").exists() else "train_image was not built"),
        Stage("bench", 75, read=logs.read_bench, needs=["configure"], unless=no_bench, not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench", [str(bench), "--suite", "gpu", "--seconds-total", seconds(limit)])]),
        Stage("bench_pytorch", 75, read=logs.read_bench, needs=["configure"], unless=no_peer, not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench_pytorch", ["python3", str(peer), "--device", "cuda", "--seconds-total", seconds(limit)])]),
        Stage("bench_engines", 100, read=logs.read_bench, needs=["configure"], unless=no_bench, not_here=no_suite, useful=15,
              prepare=lambda limit: [Command("bench_engines", [str(bench), "--suite", "engines", "--seconds-total", seconds(limit)])]),
        Stage("ladders", 60, [Command("ladders", ["sh", "-c", CLIMB, str(ladder), *LADDERS])], logs.read_ladders, needs=["configure"],
              unless=lambda: None if ladder.exists() else f"{ladder} was not built", not_here=no_suite, useful=15),
        sanitizer_stage("memcheck", 90, build, paths, shards, simt),
        sanitizer_stage("racecheck", 90, build, paths, shards, simt),
        Stage("build_rest", 600 if simt else 120, [Command("build_rest", ["cmake", "--build", str(build), "-j", str(cores), "--", *keep_going])],
              needs=["configure"]),
        ctest("tests_rest", 300 if simt else 60, build, jobs, ["-LE", f"^({DEVICE_PARTS}|gpu_code)$"], {}),
        sanitizer_stage("synccheck", 45, build, paths, shards, simt),
        sanitizer_stage("initcheck", 45, build, paths, shards, simt),
    ]
