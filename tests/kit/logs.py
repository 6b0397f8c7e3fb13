# SPDX-License-Identifier: Apache-2.0
"""What is read from the logs of CTest, compute-sanitizer and benchmarks, and what the result file makes of it."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu_node import facts, logs, result  # noqa: E402
from gpu_node.stages import FAIL, PASS, TIMEOUT, Outcome, StageRun  # noqa: E402

CTEST = """Test project /build
        Start   1: kernels.MatMul.f32
        Start   2: golden.All/ResNets.Equal/resnet8_f64  # GetParam() = resnet8 f64
  1/4 Test   #1: kernels.MatMul.f32 ............................................   Passed    0.16 sec
        Start   3: kernels.Copy.Strided
  2/4 Test   #2: golden.All/ResNets.Equal/resnet8_f64  # GetParam() = resnet8 f64 ...***Failed    0.20 sec
[ RUN      ] All/ResNets.Equal/resnet8_f64
tests/golden/resnet.cpp:70: Failure
expected 1, got 2

      Start   4: kernels.Gpu.Only
  3/4 Test   #3: kernels.Copy.Strided ..........................................***Timeout  60.01 sec
  4/4 Test   #4: kernels.Gpu.Only ..............................................***Skipped   0.01 sec
"""
SANITIZER = """========= COMPUTE-SANITIZER
[==========] Running 3 tests from 2 test suites.
[       OK ] MatMul.f32 (10 ms)
========= Invalid __global__ read of size 4 bytes
=========     at scale_kernel(float *, int)+0x90 in basics.cu:17
=========     by thread (32,0,0) in block (3,0,0)
[       OK ] MatMul.bf16 (10 ms)
[  FAILED  ] Copy.Strided (3 ms)
========= ERROR SUMMARY: 2 errors
"""


class Logs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.run_of_stage = StageRun(pathlib.Path(self.folder.name))

    def tearDown(self):
        self.folder.cleanup()

    def read(self, reader, text, status=PASS, what=""):
        self.run_of_stage.exit_codes["memcheck_a_0"] = 0
        (self.run_of_stage.logs / "memcheck_a_0.log").write_text(text)
        outcome = Outcome(status, what=what)
        reader(self.run_of_stage, outcome)
        return outcome

    def test_ctest(self):
        outcome = self.read(logs.read_ctest, CTEST, FAIL, "tests ended with exit code 8")
        self.assertEqual(outcome.what, "1 of 4 tests passed, 1 failed, 1 timeout, 1 skipped, tests ended with exit code 8")
        self.assertEqual(outcome.facts["failed"], ["golden.All/ResNets.Equal/resnet8_f64"])
        self.assertEqual(outcome.lines[:2], ["Failed: golden.All/ResNets.Equal/resnet8_f64", "Timeout: kernels.Copy.Strided"])
        self.assertIn("tests/golden/resnet.cpp:70: Failure", outcome.lines)

    def test_ctest_that_was_cut_short_says_how_far_it_came(self):
        outcome = self.read(logs.read_ctest, CTEST.split("        Start   3")[0], TIMEOUT, "stopped after 90 s")
        self.assertEqual((outcome.status, outcome.what), (TIMEOUT, "1 of 4 tests passed, stopped after 90 s"))
        self.assertEqual(outcome.lines, ["still running: golden.All/ResNets.Equal/resnet8_f64"])

    def test_ctest_without_tests_fails(self):
        self.assertEqual(self.read(logs.read_ctest, "No tests were found!!!\n").status, FAIL)

    def test_a_failed_test_fails_the_stage_whatever_ctest_returned(self):
        self.assertEqual(self.read(logs.read_ctest, CTEST).status, FAIL)

    def test_sanitizer(self):
        outcome = self.read(logs.read_sanitizers, SANITIZER)
        self.assertEqual(outcome.status, FAIL)
        self.assertIn("memcheck 2 of 3 tests in 1 shards, 1 with reports", outcome.what)
        self.assertIn("ERROR SUMMARY: 2 errors", outcome.lines)
        self.assertIn("Copy.Strided", outcome.lines)
        self.assertIn("========= Invalid __global__ read of size 4 bytes", outcome.lines)
        self.assertIn("=========     by thread (32,0,0) in block (3,0,0)", outcome.lines)

    def test_a_clean_sanitizer_run(self):
        clean = "[==========] Running 1 test from 1 test suite.\n[       OK ] A.B (1 ms)\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
        self.assertEqual(self.read(logs.read_sanitizers, clean).status, PASS)
        self.assertEqual(self.read(logs.read_sanitizers, clean.replace("0 hazards", "1 hazards")).status, FAIL)
        self.assertEqual(self.read(logs.read_sanitizers, "========= ERROR SUMMARY: 0 errors\n").status, FAIL)  # no test ran
        ten = clean.replace("0 hazards", "10 hazards")
        self.assertEqual(self.read(logs.read_sanitizers, ten).status, FAIL)

    def test_sanitizer_shards_without_tests_or_summary(self):
        no_summary = "[==========] Running 1 test from 1 test suite.\n[       OK ] A.B (1 ms)\n"
        outcome = self.read(logs.read_sanitizers, no_summary)
        self.assertEqual(outcome.status, FAIL)
        self.assertIn("no summary", outcome.what)

    def test_benchmarks_and_ratios(self):
        outcome = self.read(logs.read_bench, "# comment\nmatmul 1024\t500\tGFLOP/s\nadd 16M\t2.0\tms\nbroken\tline\tx\n")
        self.assertEqual(outcome.facts["cases"], {"matmul 1024": (500.0, "GFLOP/s"), "add 16M": (2.0, "ms")})
        rows = result.bench_table(outcome.facts["cases"], {"matmul 1024": (250.0, "GFLOP/s"), "add 16M": (3.0, "ms"), "x": (1, "us"),
                                                                  "matmul 1024@other": (400.0, "GFLOP/s"), "add 16M@other": (9.0, "ms")})
        self.assertEqual([row[-1] for row in rows], ["1.25", "1.50", ""])  # ratio to the better variant of the other side
        self.assertEqual(self.read(logs.read_bench, "nothing\n").status, FAIL)

    def test_result_file(self):
        results = {"build": Outcome(PASS, 12.3, "fine"), "tests": Outcome(FAIL, 4, "a | b", ["x failed"])}
        text = result.markdown("GPU check", "cuda", {"GPU": "H200", "NCCL": None}, results, 2)
        self.assertIn("**FAIL** on device `cuda`: 1 of 2 stages passed", text)
        self.assertIn("| NCCL | MISSING |", text)
        self.assertIn("| tests | FAIL | 4.0 | a \\| b |", text)
        block = json.loads(text.split("```json\n")[1].split("```")[0])
        self.assertEqual(block["stages"]["tests"]["lines"], ["x failed"])
        self.assertIn("**UNFINISHED**", result.markdown("", "cuda", {}, results, 3))

    def test_architectures(self):
        self.assertEqual([facts.architecture(cap) for cap in ("8.0", "8.6", "9.0")], ["80-real", "86-real", "90a-real"])


if __name__ == "__main__":
    unittest.main()
