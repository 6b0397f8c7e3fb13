#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""course.py ROOT: the pages of docs/course say what happens.

The commands of ```console blocks (tests/transcript/console.py has the form) run at the root of the tree, its `tools/weft-lab` only; lines come in
the order of the page. Without a line of output nothing is expected but the end of the command.
An image (-o docs/….svg) must be the one that is in the tree; the numbers of a timeline, which the model of time says, may be a quarter off."""
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/transcript")]
from console import commands_of, in_order  # noqa: E402
from lab import program  # noqa: E402

PAGES = [*sorted((ROOT / "docs/course").glob("*.md")), ROOT / "exercises/capstone/README.md"]


def alike(drawn, kept):
    """Two timelines: the same text, and no number more than a quarter (or 1, for small ones) off."""
    ours, theirs = (re.split(r"(\d+(?:\.\d+)?)", text) for text in (drawn, kept))
    return ours[::2] == theirs[::2] and all(abs(float(a) - float(b)) <= max(1.0, float(b) / 4) for a, b in zip(ours[1::2], theirs[1::2]))


def run(command, folder):
    """What a command prints, its exit code, and the image that it has drawn (path in the tree, text)."""
    words = shlex.split(command)
    assert words[0] == "tools/weft-lab", command
    image = None
    if "-o" in words:
        at = words.index("-o") + 1
        image, words[at] = words[at], f"{folder}/{Path(words[at]).name}"
    done = subprocess.run([ROOT / words[0], *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    drawn = Path(folder, Path(image).name).read_text(encoding="utf-8") if image and done.returncode == 0 else None
    return done.stdout + done.stderr, done.returncode, image, drawn


class Course(unittest.TestCase):
    def test_pages(self):
        work = [step for page in PAGES for step in commands_of(page)]
        self.assertGreater(len(work), 25)
        if not program.beside(program.find_emulator(), "libnccl.so.2"):
            print("no libnccl: commands with --gpus are left out")
            work = [step for step in work if "--gpus" not in step[1]]
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
            each = [Path(folder, str(n)) for n in range(len(work))]
            for path in each:
                path.mkdir()
            for (where, command, expected, *_), result in zip(work, pool.map(lambda job: run(job[0][1], job[1]), zip(work, each))):
                printed, code, image, drawn = result
                with self.subTest(where):
                    self.assertIn(code, (0, 1, 86), f"{command}\n{printed}")
                    lines = [line for line in printed.replace(f"{ROOT}/", "").splitlines() if line.strip()]
                    self.assertTrue(not expected or in_order([line for line in expected if line.strip()], lines), f"{where}: {command}\n{printed[:6000]}")
                    if image and image.startswith("docs/"):
                        kept = (ROOT / image).read_text(encoding="utf-8")
                        self.assertTrue(alike(drawn, kept) if "--image timeline" in command else drawn == kept, f"{where}: {image} is another image")

    def test_a_wrong_page_is_seen(self):
        self.assertTrue(in_order(["~4.0 µs, 1.5 (~10)"], ["3.1 µs,  1.5 (12)"]))
        self.assertFalse(in_order(["~4.0 µs"], ["2.9 µs"]))
        self.assertFalse(in_order(["~4.0 µs, 1.5"], ["4.0 µs, 125"]))
        self.assertTrue(alike("width 98.8, 5.09 µs", "width 98.7, 5.08 µs"))
        self.assertFalse(alike("width 98.8, 5.09 µs", "width 48.8, 5.09 µs"))
        self.assertFalse(alike("wave 2, 98.8", "wave 2, the tail 98.8"))


if __name__ == "__main__":
    unittest.main()
