#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lessons.py ROOT BIN PAGE: what a lesson (docs/workflows/teach_*.md) shows is what happens.

The commands of its ```console blocks run one after the other in a folder that is empty at first, with BIN and tools/ in PATH, the tree's path in
WEFT and no GPU; each must end well. Each line below a command must be printed, in any order, since ranks print in any; `…` alone allows others on
stdout, and those on stderr (progress) are always allowed. Without a line nothing is expected but the end."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, BIN = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
PAGE = ROOT / sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tests/docs"))
from console import commands_of, matches  # noqa: E402


def fault(expected, out, errors):
    """What is wrong with what a command has printed, or None."""
    rest = [(line, stream) for stream, text in (("out", out), ("errors", errors)) for line in text.splitlines() if line.strip()]
    for want in expected:
        if want.strip() in ("", "…"):
            continue
        found = next((at for at, (line, _) in enumerate(rest) if matches(want, line)), None)
        if found is None:
            return f"not printed: {want}"
        del rest[found]
    more = [line for line, stream in rest if stream == "out"]
    return f"not on the page: {more[0]}" if more and expected and "…" not in expected else None


class Lesson(unittest.TestCase):
    def test_page(self):
        steps = list(commands_of(PAGE))
        self.assertGreater(len(steps), 5)
        environment = {**os.environ, "PATH": f"{BIN}:{ROOT / 'tools'}:{os.environ['PATH']}", "WEFT": str(ROOT), "CUDA_VISIBLE_DEVICES": "",
                       "OMP_WAIT_POLICY": "passive", "LC_ALL": "C.UTF-8"}
        with tempfile.TemporaryDirectory() as folder:
            for where, command, expected in steps:
                done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=240,
                                      check=False)
                said = f"{where}: {command}\n{done.stdout[-6000:]}\n--- stderr\n{done.stderr[-6000:]}"
                with self.subTest(where):
                    self.assertEqual(done.returncode, 0, said)
                    self.assertIsNone(fault(expected, done.stdout, done.stderr), said)

    def test_a_wrong_page_is_seen(self):
        self.assertIsNone(fault(["b", "a"], "a\nb\n", "progress\n"))
        self.assertIsNone(fault(["loss ~0.5…"], "", "loss 0.45 of 3\n"))
        self.assertEqual(fault(["a", "a"], "a\nb\n", ""), "not printed: a")
        self.assertEqual(fault(["a"], "a\nb\n", ""), "not on the page: b")
        self.assertIsNone(fault(["a", "…"], "a\nb\n", ""))


if __name__ == "__main__":
    unittest.main()
