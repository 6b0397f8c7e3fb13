# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check on a pretended node: its own folder, and a PATH of fakes (nvidia-smi, cmake, ctest, compute-sanitizer …)."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from pretended import googletest
from processes import ends_soon

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from gpu_node import facts, plan, result  # noqa: E402
from gpu_node.stages import PASS, Outcome  # noqa: E402

GPU = "echo 'NVIDIA H200, 580.1, 9.0, 143771 MiB, 345 MHz, 1980 MHz, 3201 MHz, 700.00 W'\n"
# Between stages clocks are printed: idle, then two samples of a busy GPU, and two that are not all
# numbers.
NVIDIA_SMI = """case "$*" in *-lms*) printf '345, 80.1, 30, 0\\n1980, 300.5, 45, 99\\n1455, 699.2, 62, 100\\n[N/A], 1, 2, 99\\nerror\\n'; sleep 300;; esac
"""
# Configuring leaves the programs that a build would; FAKE_… makes one of them misbehave.
CMAKE = r"""
[ "$1" = --version ] && { echo 'cmake version 3.31.0'; exit; }
[ "$1" = --build ] && { echo "$*" >> "$FAKES/builds"; echo "building"; [ -z "$FAKE_BUILD" ] || { echo 'FAILED: x.o'; echo 'x.cu:1: error: no'; exit 1; }; exit; }
while [ "$1" != -B ]; do shift; done
mkdir -p "$2/bin"
cp "$FAKES"/programs/* "$2/bin"
echo "--   found    CUDA             --device cuda"
echo "--   MISSING  oneDNN           fast. Cure: install"
printf '%s\n' "$@" > "$FAKES/configured"
"""
TRAIN_IMAGE = r"""
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
echo "{\"steps\": 942, \"val_accuracy\": ${FAKE_ACCURACY:-0.96}}" > "$2/summary.json"
"""
BENCH = r"""[ "$1" = --suite ] || exit 9
if [ "$2" = engines ]; then
  printf 'matmul_a\t300\tTFLOP/s\nmatmul_a@vendor\t200\tTFLOP/s\nmatmul_b\t100\tTFLOP/s\nmatmul_b@vendor\t150\tTFLOP/s\nconv_c\t80\tTFLOP/s\n'
  exit
fi
[ "$2" = gpu ] || exit 9
printf 'matmul\t500\tGFLOP/s\nadd\t2\tms\n'
"""
PEER = "print('matmul\\t400\\tGFLOP/s\\nadd\\t3\\tms')\n"
CTEST = r"""
[ -z "$FAKE_HANG" ] || { sleep 300 & echo "$!" > "$FAKES/child"; wait; }
printf '%s\n' "$*" > "$FAKES/ctest"
echo '1/2 Test #1: kernels.A ......   Passed    0.16 sec'
echo "2/2 Test #2: kernels.B ......${FAKE_TEST:-   Passed}    0.16 sec"
[ -z "$FAKE_TEST" ]
"""
SANITIZER = r"""
printf '%s\n' "$*" >> "$FAKES/sanitized"
echo '[==========] Running 1 test from 1 test suite.'
[ "$2" != "$FAKE_SANITIZER_HANG" ] || sleep 300
echo '[       OK ] A.B (1 ms)'
[ "$2" = racecheck ] && echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' || echo '========= ERROR SUMMARY: 0 errors'
"""
# A program that checks its flags and its data.
PROGRAM = r"""
name=$(basename "$0")
printf '%s\n' "$name $*" >> "$FAKES/programs_started"
[ "$FAKE_PROGRAM_FAILS" = "$name" ] && { echo "$name: error: out of memory" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case "$1" in --out) out=$2;; --data) data=$2;; --vocab) vocab=$2;; esac
  shift
done
mkdir -p "$out"
case "$name" in
  linear_probe) echo '{"probe_images_per_second": 2560, "probe_peak_tensor_bytes": 1073741824,
                       "finetune_images_per_second": 640, "finetune_peak_tensor_bytes": 10737418240}' > "$out/summary.json";;
  finetune) cat "$data/train.tsv" "$data/dev.tsv" "$vocab" > /dev/null || exit 1
            echo '{"texts_per_second": 160, "peak_tensor_bytes": 2147483648}' > "$out/summary.json";;
esac
[ "$FAKE_PROGRAM_EMPTY" = "$name" ] && echo '{"finished": true}' > "$out/summary.json"
true
"""
PROGRAM_PEER = """import sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
batch, model = int(flags.get('-b', flags.get('--batch-size'))), flags['--model']
for phase, rate in {rates}.items():
    print(f'{{model}}_{{phase}}\\t{{rate}}\\t{unit}\\n{{model}}_{{phase}}_step\\t{{1000 * batch / rate}}\\tms\\n{{model}}_{{phase}}_memory\\t4096\\tMiB')
"""
EMULATE = r"""
[ "$1 $2" = "--gpus 4" ] || exit 9
shift 2
echo "$*" >> "$FAKES/emulated"
exec "$@"
"""
WEFT_RUN = r"""echo "timeout $WEFT_TIMEOUT: $*"
"""
LADDER = """
[ "$FAKE_LADDER_FAILS" = "$1" ] && { echo "error: $1: step 3 is wrong" >&2; exit 1; }
echo "steps of $*"
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name) / "weft"
        self.fakes = pathlib.Path(self.folder.name) / "fakes"
        shutil.copytree(TOOLS, self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "benchmarks/peers").mkdir(parents=True)
        (self.root / "benchmarks/time_model").mkdir()
        (self.root / "benchmarks/time_model/predicted.tsv").write_text(
            "# comment\nmatmul\th200\t400\tGFLOP/s\t1e-3\ttensor\t80%\tgemm 1 us\t500\t15%\tabc1234\n"
            "matmul_a\th200\t250\tTFLOP/s\t1e-3\tL2\t60%\tgemm 1 us\t250\t\tabc1234\nadd\th100\t7\tms\t1e-3\tDRAM\t9%\tadd 7 us\t7\t9%\tabc1234\n")
        (self.root / "benchmarks/peers/pytorch.py").write_text(PEER)
        for name, rates, unit in (("linear_probe", {"probe": 2000, "finetune": 800}, "images/s"), ("finetune", {"finetune": 80}, "texts/s")):
            (self.root / f"benchmarks/peers/pytorch_{name}.py").write_text(PROGRAM_PEER.format(rates=rates, unit=unit))
        (self.root / "deps/include").mkdir(parents=True)
        (self.root / "deps/manifest.txt").write_text("commit abc123\nfmt 9\n")
        self.bin = self.fakes / "bin"
        (self.fakes / "programs").mkdir(parents=True)
        self.bin.mkdir()
        site = self.fakes / "site"
        for package, header in (("cudnn", "cudnn.h"), ("nccl", "nccl.h"), ("cu13", "cublasLt.h")):
            (site / f"nvidia/{package}/include").mkdir(parents=True)
            (site / f"nvidia/{package}/lib").mkdir()
            (site / f"nvidia/{package}/include/{header}").touch()
            (site / f"nvidia/{package}/lib/lib{header[:-2]}.so.99").touch()
        (site / "nvidia/nccl/include/nccl.h").write_text("#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n")
        for tool in ("sh", "bash", "sleep", "mkdir", "cp", "cat", "uname", "env", "kill", "basename"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        for name, script in (("nvidia-smi", NVIDIA_SMI + GPU), ("cmake", CMAKE), ("ctest", CTEST), ("compute-sanitizer", SANITIZER),
                             ("nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'\n"), ("ninja", "echo 1.11\n")):
            self.program(self.bin / name, script)
        self.program(self.bin / "python3", f"""
case "$1 $2" in "-c "*)
  case "$2" in {facts.NOT_HERE.rstrip()!r}*) ;; *) echo "$2" >> "$FAKES/looks_here";; esac;;
esac
case "$1 $2" in
  *"import torch") ;;
  *find_spec*torch*) [ -n "$FAKE_NO_TORCH" ] && exit 1; echo '2.11.0+cu130 CUDA 13.0';;
  *sys.path*) echo {site};;
  *) exec {sys.executable} "$@";;
esac
""")
        for name, script in (("train_image", TRAIN_IMAGE), ("bench", BENCH), ("ladder", LADDER), ("linear_probe", PROGRAM),
                             ("finetune", PROGRAM)):
            self.program(self.fakes / "programs" / name, script)
        for program in plan.FIRST_TESTS + plan.DEVICE_TESTS:
            name = program.split(":")[0]
            googletest(self.fakes / "programs" / name, {"All/A.B/cuda": "pass", "All/A.B/cpu": "pass", "Fields.C": "pass"}, self.fakes / "tests_started")
        self.out = pathlib.Path(self.folder.name) / "result.md"

    def tearDown(self):
        self.addCleanup(self.folder.cleanup)
        looks_here = self.fakes / "looks_here"
        self.assertFalse(looks_here.exists() and looks_here.read_text())

    def test_no_module_of_the_working_folder_is_loaded(self):
        (self.fakes / "torch").mkdir()
        for name in ("torch/__init__.py", "torch/version.py"):
            (self.fakes / name).write_text("open('ran', 'w')\n__version__ = '9.9'\n")
        for text in (facts.TORCH, "import torch"):
            subprocess.run([sys.executable, "-c", facts.NOT_HERE + text], cwd=self.fakes, capture_output=True, check=False)
        self.assertFalse((self.fakes / "ran").exists())

    @staticmethod
    def program(path, script):
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)

    def start(self, *flags, **environment):
        return subprocess.Popen([sys.executable, "-B", str(self.root / "tools/gpu_check"), "--out", str(self.out), "--jobs", "4", *flags],
                                env={"PATH": str(self.bin), "FAKES": str(self.fakes), **environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def check(self, *flags, **environment):
        process = self.start(*flags, **environment)
        self.output, _ = process.communicate(timeout=120)
        return process.returncode

    def stages(self):
        self.text = self.out.read_text()
        self.block = json.loads(self.text.split("```json\n")[1].split("```")[0])
        return {name: stage["status"] for name, stage in self.block["stages"].items()}

    def test_everything_passes(self):
        self.assertEqual(self.check(), 0, self.out.exists() and self.out.read_text())
        stages = self.stages()
        self.assertEqual(stages.pop("two_gpus"), "skipped")
        self.assertEqual(set(stages.values()), {"pass"})
        self.assertEqual(list(self.block["stages"])[:4], ["configure", "build", "tests_first", "tests_device"])
        self.assertIn("| matmul | 500 | 400 | GFLOP/s | 1.25 |", self.text)
        self.assertIn("| add | 2 | 3 | ms | 1.50 |", self.text)
        self.assertIn("| matmul | 500 | 400 | GFLOP/s | 1.25 | 15% | tensor |", self.text)
        self.assertIn("| matmul_a | 300 | 250 | TFLOP/s | 1.20 | unknown | L2 |", self.text)
        self.assertNotIn("| add | 2 | 7 |", self.text)  # another GPU's
        self.assertIn("- own kernels beside cuBLASLt and cuDNN, matmul: geometric mean 1.00 of 2 cases, least 0.67 (matmul_b)\n", self.text)
        self.assertIn("- beside PyTorch, products: geometric mean 1.25 of 1 cases, least 1.25 (matmul)\n", self.text)
        self.assertIn("- beside PyTorch, host: small ops, allocations: geometric mean 1.50 of 1 cases, least 1.50 (add)\n", self.text)
        self.assertIn("- tests: 42 of 42 passed, 0 skipped, 0 failed, 0 not run in time\n", self.text)
        self.assertLess(self.text.index("- tests: "), self.text.index("## Machine"))
        self.assertIn("| SM 1980 to 1455 MHz, median 1718 of 2 samples under load, at most 699 W, 62 C |", self.text)
        self.assertIn("| matmul_a | 300 | 200 | TFLOP/s | 1.50 |", self.text)
        self.assertIn("| conv_c | 80 |  | TFLOP/s |  |", self.text)
        self.assertNotIn("cuDNN, conv:", self.text)
        self.assertIn("ladder matmul_bf16\nsteps of matmul_bf16 --device cuda --seconds 0.05\nladder conv2d\n", self.text)
        self.assertEqual(self.block["stages"]["ladders"]["what"], "7 ladders")
        for row in ("dinov2_vitb14_probe | 2560 | 2000 | images/s | 1.28", "dinov2_vitb14_probe_step | 50 | 64 | ms | 1.28",
                    "dinov2_vitb14_probe_memory | 1024 | 4096 | MiB | 4.00", "dinov2_vitb14_finetune_step | 200 | 160 | ms | 0.80",
                    "bert_base_finetune | 160 | 80 | texts/s | 2.00", "bert_base_finetune_step | 50 | 100 | ms | 2.00",
                    "bert_base_finetune_memory | 2048 | 4096 | MiB | 2.00"):
            self.assertIn(f"| {row} |", self.text)
        self.assertEqual(self.block["stages"]["linear_probe"]["what"], "dinov2_vitb14_probe_step 50 ms a step, dinov2_vitb14_finetune_step 200 ms a step")
        self.assertIn("abc123", self.text)
        self.assertIn("| PyTorch | 2.11.0+cu130 CUDA 13.0 |", self.text)
        self.assertIn("missing parts: oneDNN", self.text)
        configured = (self.fakes / "configured").read_text()
        for flag in ("-DWEFT_CUDA_ARCHITECTURES=90a-real", f"-DCMAKE_PREFIX_PATH={self.root}/deps", f"-DWEFT_NCCL_ROOT={self.fakes}/site/nvidia/nccl",
                     f"-DWEFT_CUDNN_ROOT={self.fakes}/site/nvidia/cudnn", f"-DWEFT_CUBLASLT_ROOT={self.fakes}/site/nvidia/cu13"):
            self.assertIn(flag, configured)
        self.assertIn("2.28.9", self.text)
        first, rest = (self.fakes / "builds").read_text().splitlines()
        self.assertIn("--target device_check test_core test_dist test_data weft-run ", first)  # inputs of the next stages come first
        self.assertNotIn("--target", rest)
        self.assertEqual(set((self.fakes / "tests_started").read_text().splitlines()), {"1  cuda", "2  cuda", "3  cuda"})  # test_core, test_data, the others
        self.assertIn("-LE ^(hopper|engines|linear_probe|", (self.fakes / "ctest").read_text())
        sanitized = (self.fakes / "sanitized").read_text().splitlines()
        self.assertEqual(len(sanitized), 8)
        self.assertEqual([line.split("/")[-1] for line in sanitized if "--gtest_filter" in line], ["test_hopper --gtest_filter=-Hopper.NamedBarriersAndRegisters"])
        self.assertIn("--tool racecheck", next(line for line in sanitized if "--gtest_filter" in line))

    def test_what_failed_runs_again_kernel_by_kernel(self):
        googletest(self.fakes / "programs/test_ops", {"A.B": "fail", "A.C": "pass"}, self.fakes / "tests_started")
        self.assertEqual(self.check("--only", "configure,tests_device"), 1)
        self.assertEqual(self.stages(), {"configure": "pass", "tests_device": "FAIL"})
        self.assertIn("failed: test_ops A.B\n", self.text)
        self.assertIn("-- again with WEFT_SYNC=1: FAIL test_ops A.B", self.text)
        self.assertIn("relu failed on cuda:0 (WEFT_SYNC=1)", self.text)
        self.assertIn("- tests: 31 of 32 passed, 0 skipped, 1 failed, 0 not run in time\n", self.text)

    def test_a_program_that_was_not_built_fails_its_stage(self):
        (self.fakes / "programs/test_optim").unlink()
        self.assertEqual(self.check("--only", "configure,tests_device"), 1)
        self.stages()
        self.assertIn("test_optim lists no tests: ", self.text)

    def prebuilt(self, *missing):
        folder = pathlib.Path(self.folder.name) / "elsewhere"
        shutil.copytree(self.fakes / "programs", folder / "bin")
        for name in missing:
            (folder / "bin" / name).unlink()
        return str(folder)

    def test_programs_that_were_built_elsewhere(self):
        (self.bin / "cmake").unlink()
        (self.bin / "ctest").unlink()
        self.assertEqual(self.check("--prebuilt", self.prebuilt()), 0, self.out.exists() and self.out.read_text())
        stages = self.stages()
        self.assertEqual(stages.pop("two_gpus"), "skipped")
        self.assertEqual(set(stages.values()), {"pass"})
        self.assertEqual(list(stages), ["tests_first", "tests_device", "bench", "bench_pytorch", "bench_engines", "linear_probe", "linear_probe_pytorch",
                                        "finetune", "finetune_pytorch", "train", "ladders", "sanitizers"])

    def test_not_all_of_them_have_to_be_there(self):
        missing = ["bench", "test_io", "train_image", "test_kernels", "test_hopper", "test_core", "test_dist", "test_data", "finetune"]
        self.assertEqual(self.check("--prebuilt", self.prebuilt(*missing)), 1)
        stages = self.stages()
        self.assertEqual([name for name, status in stages.items() if status == "skipped"],
                         ["tests_first", "bench", "bench_engines", "finetune", "train", "two_gpus", "sanitizers"])
        self.assertEqual(stages["tests_device"], "pass")
        self.assertEqual(self.block["stages"]["tests_device"]["what"], "27 of 27 tests passed, not there: test_kernels, test_io")
        self.assertEqual(self.block["stages"]["bench"]["what"], "bench is not there")
        self.assertEqual(self.block["stages"]["tests_first"]["what"], "test_hopper, test_core, test_dist, test_data are not there")

    def test_a_folder_without_programs_is_refused(self):
        self.assertEqual(self.check("--prebuilt", "/nowhere"), 2)
        self.assertIn("--prebuilt: there is no folder /nowhere/bin", self.output)

    def test_programs_find_the_libraries_of_pythons_packages(self):
        self.program(self.fakes / "programs/bench", 'echo "cases of $LD_LIBRARY_PATH" >&2\n' + BENCH)
        self.assertEqual(self.check("--prebuilt", self.prebuilt(), "--only", "bench", LD_LIBRARY_PATH="/first"), 0)
        log = (pathlib.Path(self.folder.name) / "elsewhere/gpu_check/bench.log").read_text()
        site = self.fakes / "site/nvidia"
        self.assertIn(f"cases of /first:{site}/cu13/lib:{site}/cudnn/lib:{site}/nccl/lib", log)

    def test_libraries_that_are_found_are_not_taken_from_elsewhere(self):
        folders = {}
        for name, library in (("a", "libcudnn.so.99"), ("b", "libcudnn.so.99"), ("c", "libnccl.so.99"), ("d", "libother.so.1")):
            (self.fakes / name).mkdir()
            (self.fakes / name / library).touch()
            folders[str(self.fakes / name)] = "lib*.so.*"
        before = os.environ.get("LD_LIBRARY_PATH")
        try:
            os.environ["LD_LIBRARY_PATH"] = ""
            self.assertEqual(facts.libraries_not_found(folders), [str(self.fakes / name) for name in "ac"])
            os.environ["LD_LIBRARY_PATH"] = str(self.fakes / "b")
            self.assertEqual(facts.libraries_not_found(folders), [str(self.fakes / "c")])
        finally:
            os.environ.pop("LD_LIBRARY_PATH") if before is None else os.environ.update(LD_LIBRARY_PATH=before)

    def test_two_gpus_train_with_and_without_a_graph(self):
        self.program(self.bin / "nvidia-smi", NVIDIA_SMI + GPU * 2)
        self.program(self.fakes / "programs/weft-run", WEFT_RUN)
        self.assertEqual(self.check("--only", "configure,two_gpus"), 0)
        log = (self.root / "build-cuda/gpu_check/two_gpus.log").read_text()
        for graph in ("off", "on"):
            self.assertRegex(log, f"timeout 20: --nproc-per-node 2 \\S+/train_image .*--graph {graph} .* --device cuda --model resnet20 ")
        for check in ("--pipeline 2 --chunks 2 --micro-batches 4", "--model llama3.2_1b .* --parallel fsdp"):
            self.assertRegex(log, f"timeout 20: --nproc-per-node 2 \\S+/train_gpt .* --device cuda .*{check}")
        self.assertRegex(log, "FSDP of 1.2e9 weights: most memory of a GPU .* MiB")

    def test_failures_leave_the_other_results(self):
        self.assertEqual(self.check(FAKE_BUILD="1", FAKE_TEST="***Failed", FAKE_ACCURACY="0.4", FAKE_NO_TORCH="1"), 1)
        stages = self.stages()
        self.assertEqual([stages[name] for name in ("build", "train", "tests_rest")], ["FAIL"] * 3)
        self.assertEqual([stages[name] for name in ("tests_device", "bench", "sanitizers")], ["pass"] * 3)
        self.assertEqual(stages["bench_pytorch"], "skipped")
        self.assertEqual([stages[name] for name in ("linear_probe", "linear_probe_pytorch", "finetune", "finetune_pytorch")],
                         ["pass", "skipped", "pass", "skipped"])
        for line in ("FAILED: x.o", "Failed: kernels.B", "expected a validation accuracy of 0.9 at least, got 0.4", "python3 has no PyTorch"):
            self.assertIn(line, self.text)

    def test_a_few_stages_share_the_minutes(self):
        self.assertEqual(self.check("--only", "configure,build", "--minutes", "9"), 0)
        limit = int(self.output.split("== build (at most ")[1].split(" s)")[0])
        self.assertGreater(limit, 400)

    def test_a_stage_may_be_given_its_seconds(self):
        self.assertEqual(self.check("--only", "configure,tests_device=60,bench=70,ladders", "--minutes", "8"), 0)
        for line in ("tests_device (at most 60 s)", "bench (at most 70 s)"):
            self.assertIn(line, self.output)
        self.assertRegex(self.output, r"ladders \(at most 1[67]\d s\)")
        self.assertEqual(self.check("--only", "bench=soon"), 2)
        self.assertIn("--only: bench=soon is no number of seconds", self.output)

    def test_what_is_built_first_is_what_the_device_tests_are(self):
        targets = (TOOLS.parent / "CMakeLists.txt").read_text().split("foreach(target ")[1].split(")")[0].split()
        self.assertEqual({"test_hopper", *plan.DEVICE_TESTS}, {one for one in targets if one.startswith("test_")})
        programs = {program.split(":")[0] for program in plan.FIRST_TESTS + plan.DEVICE_TESTS}
        self.assertLessEqual(programs, {f"test_{folder.name}" for folder in (TOOLS.parent / "tests").iterdir()})

    def test_a_program_that_fails_or_says_nothing_leaves_its_peers_figures(self):
        self.assertEqual(self.check("--only", "configure,linear_probe,linear_probe_pytorch,finetune,finetune_pytorch",
                                    FAKE_PROGRAM_FAILS="linear_probe", FAKE_PROGRAM_EMPTY="finetune"), 1)
        self.assertEqual(self.stages(), {"configure": "pass", "linear_probe": "FAIL", "linear_probe_pytorch": "pass", "finetune": "FAIL",
                                         "finetune_pytorch": "pass"})
        self.assertIn("linear_probe: error: out of memory", self.text)
        self.assertIn("no figures in summary.json: KeyError: 'texts_per_second'", self.text)
        self.assertIn("| dinov2_vitb14_probe_step |  | 64 | ms |  |", self.text)

    def test_figures_of_an_earlier_check_do_not_count(self):
        self.assertEqual(self.check("--only", "configure,finetune"), 0)
        self.program(self.fakes / "programs/finetune", "exit 0\n")
        self.assertEqual(self.check("--only", "configure,finetune"), 1)
        self.stages()
        self.assertIn("FileNotFoundError", self.block["stages"]["finetune"]["what"])

    def test_texts_are_of_the_length_that_the_peer_takes(self):
        folder = pathlib.Path(self.folder.name) / "texts"
        plan.write_texts(folder, 400, 128, 30522)
        vocabulary = (folder / "vocab.txt").read_text().splitlines()
        self.assertEqual((len(vocabulary), len(set(vocabulary))), (30522, 30522))
        rows = [line.split("\t") for line in (folder / "train.tsv").read_text().splitlines()]
        self.assertEqual((rows[0], len(rows)), (["text", "label"], 401))
        self.assertEqual({label for _, label in rows[1:]}, {"0", "1"})
        lengths = [len(text.split()) + 2 for text, _ in rows[1:]]  # and [CLS], [SEP]
        self.assertTrue(all(set(text.split()) <= set(vocabulary) for text, _ in rows[1:]))
        self.assertGreaterEqual(min(lengths), 64)
        self.assertTrue(all(max(lengths[i:i + 8]) >= 128 for i in range(0, 400, 8)))  # each batch is cut to 128, not padded to less
        self.assertEqual({line.split("\t")[1] for line in (folder / "dev.tsv").read_text().splitlines()[1:]}, {"0", "1"})

    def test_programs_and_peers_know_the_flags_they_are_given(self):
        programs = pathlib.Path(os.environ.get("WEFT_BIN", "/nowhere"))
        if not all((programs / name).exists() for name in ("linear_probe", "finetune")):
            self.skipTest("needs the built programs, whose folder WEFT_BIN names")
        for emulated in (False, True):
            for program in (plan.linear_probe(emulated, pathlib.Path("work")), plan.finetune(emulated, pathlib.Path("work"))):
                peer = TOOLS.parent / f"benchmarks/peers/pytorch_{program.name}.py"
                for command, flags in ((str(programs / program.name), program.flags), (f"{sys.executable} {peer}", program.peer_flags)):
                    known = subprocess.run([*command.split(), "--help"], capture_output=True, text=True, check=True).stdout
                    for flag in ["--model", "--device", *(word for word in flags if word.startswith("-"))]:
                        # linear_probe's -b and -e are noted behind the long ones.
                        self.assertRegex(known, rf"(?<![\w-]){flag}(?![\w-])", f"{command} {flag}")
                self.assertIn(program.model, known)

    def test_every_ladder_is_climbed(self):
        self.assertEqual(set(plan.LADDERS), {first.parent.name for first in (TOOLS.parent / "kernels/ladder").glob("*/1_*.cu")})

    def test_a_ladder_that_fails_leaves_the_others(self):
        self.assertEqual(self.check("--only", "configure,ladders", FAKE_LADDER_FAILS="softmax"), 1)
        self.assertEqual(self.stages(), {"configure": "pass", "ladders": "FAIL"})
        self.assertIn("error: softmax: step 3 is wrong", self.text)
        self.assertIn("steps of attention --device cuda", self.text)

    def test_a_hanging_stage_uses_up_the_time_and_is_reported(self):
        self.assertEqual(self.check("--minutes", "0.6", "--only", "configure,tests_first=19,sanitizers,build_rest", FAKE_SANITIZER_HANG="memcheck"), 1)
        stages = self.stages()
        self.assertEqual([stages[name] for name in ("tests_first", "sanitizers", "build_rest")], ["pass", "TIMEOUT", "skipped"])
        self.assertIn("memcheck 0 of 2 tests in 2 shards, 0 with reports, 2 with no summary; racecheck 2 of 2 tests in 2 shards, 0 with reports;",
                      self.block["stages"]["sanitizers"]["what"])
        self.assertIn("of the total time are left", self.block["stages"]["build_rest"]["what"])

    def test_sigterm_still_leaves_a_result(self):
        process = self.start("--only", "configure,build,tests_rest,train", FAKE_HANG="1")
        for _ in range(600):
            if (self.fakes / "child").exists() and (self.fakes / "child").read_text():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, output)
        stages = self.stages()
        self.assertEqual([stages[name] for name in ("configure", "build", "train", "tests_rest")], ["pass", "pass", "pass", "STOPPED"])
        self.assertEqual(self.block["stages"]["tests_rest"]["what"].split(", ")[-1], "stopped by SIGTERM")
        self.assertTrue(ends_soon(int((self.fakes / "child").read_text())))

    def test_without_a_gpu(self):
        (self.bin / "nvidia-smi").unlink()
        self.assertEqual(self.check(), 2)
        self.assertIn("gpu_check: no GPU: nvidia-smi is not on the PATH. `tools/gpu_check --device emulated`", self.output)
        self.assertFalse(self.out.exists())
        self.program(self.bin / "nvidia-smi", "exit 9\n")
        self.assertEqual(self.check(), 2)
        self.assertIn("no GPU: nvidia-smi fails", self.output)

    def test_dry_run_on_the_emulated_gpu(self):
        (self.bin / "nvidia-smi").unlink()
        (self.bin / "compute-sanitizer").unlink()
        self.program(self.fakes / "programs/weft-emulate", EMULATE)
        self.program(self.fakes / "programs/weft-run", WEFT_RUN)
        self.assertEqual(self.check("--dry-run"), 0, self.output if hasattr(self, "output") else "")
        stages = self.stages()
        self.assertEqual([stages[name] for name in ("tests_device", "train", "bench", "two_gpus", "sanitizers")], ["pass", "pass", "skipped", "pass", "skipped"])
        self.assertEqual([stages[name] for name in ("linear_probe", "linear_probe_pytorch", "finetune", "finetune_pytorch")],
                         ["pass", "skipped", "pass", "skipped"])
        started = (self.fakes / "programs_started").read_text()
        self.assertIn("linear_probe --model vit_tiny4 -b 2", started)
        self.assertIn("--device emulated", started)
        self.assertIn("**PASS** on device `emulated`", self.text)
        self.assertEqual(set((self.fakes / "tests_started").read_text().splitlines()), {"1  cuda", "2  cuda", "3  cuda"})
        self.assertEqual([line.split()[1].split("/")[-1] for line in (self.fakes / "emulated").read_text().splitlines()], ["run_tests.py"] * 2)
        self.assertRegex((self.root / "build-emulated/gpu_check/two_gpus.log").read_text(), "--graph on .* --device emulated --model resnet8 ")
        self.assertIn("-DWEFT_CUDA_ARCHITECTURES=80-virtual", (self.fakes / "configured").read_text())

    def test_stages_by_name(self):
        self.assertEqual(self.check("--only", "configure,train"), 0)
        self.assertEqual(list(self.stages()), ["configure", "train"])
        self.assertEqual(self.check("--only", "trian"), 2)
        self.assertIn("there is no stage trian. Stages: configure, build, ", self.output)


if __name__ == "__main__":
    unittest.main()
