# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_node/lab: in tiny sizes on the emulated GPU, and its page."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = ROOT / "tools/gpu_node/lab"
BIN = pathlib.Path(os.environ["WEFT_BIN"])
loader = importlib.machinery.SourceFileLoader("lab_script", str(LAB))
lab = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab_script", loader))
loader.exec_module(lab)


class Lab(unittest.TestCase):
    def test_a_page_of_the_lines(self):
        lines = [{"facts": {"GPU": "H200", "NCCL": None}}, {"stage": "variants_gpt", "status": "pass", "seconds": 9.1, "what": "2 cases"},
                 {"stage": "variants_gpt", "case": "gpt", "value": 200.0, "unit": "sequences/s"},
                 {"stage": "variants_gpt", "case": "gpt@slow", "value": 100.0, "unit": "sequences/s"},
                 {"stage": "tf32", "status": "pass", "seconds": 1, "what": ""}, {"stage": "tf32", "case": "conv", "value": 2.0, "unit": "ms"},
                 {"stage": "tf32_pytorch", "status": "pass", "seconds": 1, "what": ""},
                 {"stage": "tf32_pytorch", "case": "conv", "value": 3.0, "unit": "ms"}]
        page = lab.page(lines)
        self.assertIn("| NCCL | MISSING |", page)
        self.assertIn("| gpt@slow | 100 | sequences/s | 0.500 |", page)
        self.assertIn("| conv | 2 | ms | 1.500 |", page)
        self.assertIn("| gpt | 200 | sequences/s |  |", page)

    @unittest.skipUnless((BIN / "weft-emulate").exists() and (BIN / "bench").exists(), "needs weft-emulate and bench")
    def test_on_the_emulated_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            stages = "steps,variants_gpt2_b16_train_bf16,tf32,compiled_pytorch"
            done = subprocess.run([str(LAB), "--prebuilt", str(BIN.parent), "--out", str(out), "--device", "emulated", "--only", stages],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            lines = [json.loads(line) for line in (out / "lab.jsonl").read_text().splitlines()]
            cases = {line["case"] for line in lines if "case" in line}
            self.assertLessEqual({"gpt2_b16_train_bf16@dense_logits", "gpt2_b16_train_bf16@chunked_loss", "matmul_4096_f32"}, cases)
            self.assertIn("matmul", (out / "kernels/gpt2_b16_train_bf16.txt").read_text())
            self.assertEqual((out / "lab.md").read_text(), lab.page(lines))

    def test_mistakes(self):
        for words, said in [(["--prebuilt", "/nowhere"], "there is no folder /nowhere/bin"),
                            (["--prebuilt", str(BIN.parent), "--device", "emulated", "--only", "naps"], "there is no stage naps. Stages: tests, steps")]:
            done = subprocess.run([str(LAB), *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
