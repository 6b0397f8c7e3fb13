#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measure.py ROOT: `weft-lab measure` and `weft-lab score`. There is no GPU: the whole path runs on the emulated one, whose events tell this
machine's time, and the table gets made-up times."""
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from lab import exercises, measure, program, score  # noqa: E402

LAB, TRANSPOSE = ROOT / "tools/weft-lab", ROOT / "docs/course/transpose.cu"
NCU_CSV = """==PROF== Connected to process 7
"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
"","","","","ns","sector"
"0","_Z5naivePKfPf","(32, 8, 1)","(16, 1, 1)","1,500.0","4.00"
"1","_Z5naivePKfPf","(32, 8, 1)","(16, 1, 1)","2,500.0","4.00"
"""


def run(*command, **variables):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env={**os.environ, **variables}, timeout=600)


def has_gpu():
    try:
        return bool(measure.device())
    except measure.NoGpu:
        return False


class Measure(unittest.TestCase):
    @unittest.skipIf(has_gpu(), "SKIPPED: this machine has a GPU")
    def test_without_a_gpu(self):
        for command in (("measure", TRANSPOSE), ("score", "--measure")):
            done = run(LAB, *command)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1), done.stderr)
            self.assertRegex(done.stderr, "^weft-lab: this machine has no NVIDIA driver|^weft-lab: the driver finds no GPU")

    @unittest.skipIf(has_gpu(), "SKIPPED: this machine has a GPU")
    def test_on_the_emulated_gpu(self):
        done = run(program.find_emulator(), "--allow-none", LAB, "measure", "--runs", 2, TRANSPOSE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("on NVIDIA H100 80GB HBM3 (emulated"), lines[0])
        rows = [line.split() for line in lines[2:]]
        self.assertEqual([(row[0], row[1:5]) for row in rows],
                         [(name, ["16", "x", "256", "1"]) for name in ("naive", "tiled<0>", "tiled<1>")], done.stdout)
        self.assertTrue(all(float(row[5]) > 0 for row in rows), rows)
        told = run(LAB, "profile", "--text", TRANSPOSE).stdout
        for row in rows:
            self.assertIn(f"predicted, not measured: {float(row[6]):.3g} µs", told)

    def test_a_program_without_kernels(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "nothing.cu")
            file.write_text("int main() { return 3; }\n", encoding="utf-8")
            done = run(program.find_emulator(), "--allow-none", LAB, "measure", file)
            self.assertEqual((done.returncode, done.stderr.strip()), (2, "weft-lab: measure: nothing.cu has launched no kernel (exit code 3):"))

    def test_table(self):
        found = dict.fromkeys([("_Z5naivePKfPf", 16, 8), ("_Z5otherv", 1, 1)])
        found["_Z5naivePKfPf", 16, 8] = [s for _, s in measure.read("_Z5naivePKfPf\t16\t256\t0.004\n_Z5naivePKfPf\t16\t250\t0.001\n_Z5naivePKfPf\t16\t256\t0.002\n")]
        found["_Z5otherv", 1, 1] = [1e-6]
        predictions = {("_Z5naivePKfPf", 16, 8): [(3e-6, {}, {}), (5e-6, {}, {})]}
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder, "ncu")
            tool.write_text(f"#!/bin/sh\ncat <<'END'\n{NCU_CSV}END\n", encoding="utf-8")
            tool.chmod(0o755)
            with program.Program(TRANSPOSE) as built, unittest.mock.patch.dict(os.environ, {"NCU": str(tool)}):
                by_ncu = measure.profiled(built, ())
                tool.write_text("#!/bin/sh\necho '==ERROR== no permission for counters'; exit 1\n", encoding="utf-8")
                with self.assertRaisesRegex(program.Problem, "ncu has measured nothing: ==ERROR== no permission"):
                    measure.profiled(built, ())
        self.assertEqual(list(by_ncu), ["_Z5naivePKfPf"])
        self.assertAlmostEqual(by_ncu["_Z5naivePKfPf"]["ncu µs"], 2e-6, delta=1e-12)
        self.assertEqual(by_ncu["_Z5naivePKfPf"]["load"], 4.0)
        rows = measure.rows_of(found, {key: 1 for key in found}, predictions, {"_Z5naivePKfPf": {"load": 4.5}}, by_ncu, {"_Z5naivePKfPf": "naive"})
        lines = [line.split() for line in measure.table(rows, "a GPU")]
        self.assertEqual(lines[1][-4:], ["ncu", "µs", "load", "ncu/lab"])
        self.assertEqual(lines[2], "naive 16 x 256 1 2.00 4.00 2.00 2.00 4.0/4.5".split())  # median; 4 predicted by 2 measured
        self.assertEqual(lines[3], "_Z5otherv 1 x 32 1 1.00 - - - -".split())

    def test_models(self):
        for name, key in (("NVIDIA H100 NVL", "h100"), ("NVIDIA GH200 480GB", "gh200"), ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA RTX A6000", "a6000"),
                          ("NVIDIA L4", "l4"), ("Tesla T4", "t4")):
            self.assertEqual(measure.model_of(name), key)
        with self.assertRaisesRegex(program.Problem, "no model of 'NVIDIA L40S': name the nearest one by --gpu"):
            measure.model_of("NVIDIA L40S")


class Score(unittest.TestCase):
    def test_references_in_their_order(self):
        """Also: a wrong program has no score, and stands last."""
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder, "wrong.cu")
            text = (score.CAPSTONE / "start.cu").read_text(encoding="utf-8")
            wrong.write_text(text.replace("k < n", "k + 1 < n"), encoding="utf-8")
            done = run(LAB, "score", wrong)
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        self.assertEqual([row[1] for row in rows], ["pipelined", "tensor_cores", "tiled", "naive", str(wrong)])
        shares = [float(row[2].rstrip("%")) for row in rows[:4]]
        self.assertTrue(shares[0] > shares[1] > 4 * shares[2] > 4 * shares[3], shares)
        self.assertIn("no score: right results: 0 of 3 sizes", " ".join(rows[4]))

    def test_roofline(self):
        """By hand: 132 SMs at 1.98 GHz with 4096 flops a clock, 3.35 TB/s; the larger of two times."""
        gpu = {"capability": 90, "processors": 132, "clock_khz": 1_980_000, "memory_clock_khz": 2_619_000, "memory_bus_bits": 5120}
        self.assertAlmostEqual(score.least(gpu, 2048), 2 * 2048**3 / (132 * 1.98e9 * 4096))
        self.assertAlmostEqual(score.least(gpu, 128), 8 * 128**2 / 3.35232e12)

    def test_a_measured_time_ranks(self):
        met = exercises.Goal("results", "right results", True)
        fast, slow = score.Score("fast", [met], 20e-6, "DRAM", 50e-6, 10e-6), score.Score("slow", [met], 10e-6, "L2", 100e-6, 10e-6)
        lines = [line.split() for line in score.table([slow, fast])]
        self.assertEqual(lines[1:], ["1 fast 20.0% 20.0 50.0 DRAM".split(), "2 slow 10.0% 10.0 100.0 L2".split()])


if __name__ == "__main__":
    unittest.main()
