#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cli.py ROOT: the commands of tools/weft-lab, as a user gives them."""
import html.parser
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from lab import counts  # noqa: E402

KNOWN, RACE = ROOT / "tests/lab/known.cu", ROOT / "tests/lab/race.cu"


def lab(*words, folder=None, **variables):
    return subprocess.run([ROOT / "tools/weft-lab", *map(str, words)], capture_output=True, text=True, check=False, cwd=folder,
                          env={**os.environ, **variables}, timeout=120)


def line_of(file, text):
    return next(n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1) if text in line)


class Balanced(html.parser.HTMLParser):
    """Checks that what is opened is closed, and keeps the addresses of anything that a page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.shapes = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.shapes += tag == "path"
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "p", "html"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.shapes += tag == "path"

    def handle_endtag(self, tag):
        if tag not in ("p", "html"):
            assert self.open.pop() == tag, f"</{tag}> closes something else at {self.getpos()}"


class Commands(unittest.TestCase):
    def test_run(self):
        done = lab("run", "--gpu", "a100", KNOWN)
        self.assertEqual((done.returncode, done.stdout), (0, "no error\n"))
        done = lab("run", "--check", "races", RACE)
        self.assertEqual(done.returncode, 86)
        self.assertIn("data race", done.stderr)
        self.assertEqual(lab("run", RACE, "beyond").returncode, 1)

    def test_text(self):
        done = lab("profile", "--text", "--line", line_of(KNOWN, "= tile[threadIdx.x][row]"), KNOWN)
        self.assertEqual(done.returncode, 0, done.stderr)
        tile = done.stdout[done.stdout.index("transpose_tile<0>"):].split("transpose_tile<1>")[0]
        row = next(line for line in tile.splitlines() if "= tile[threadIdx.x][row]" in line)
        self.assertIn("32.0", row.split("out[")[0])
        self.assertIn("want different words of bank", tile)
        self.assertIn("ld.shared.f32", tile)
        grid = re.findall(r"^ *(\d+)  ([.#]{32})  byte", tile, re.MULTILINE)
        self.assertEqual([int(lane) for lane, _ in grid], list(range(32)))
        self.assertEqual(len({banks for _, banks in grid}), 1)  # all lanes in one bank

    def test_prediction(self):
        transpose = ROOT / "docs/course/transpose.cu"
        done = lab("profile", "--text", transpose)
        times = [float(time) for time in re.findall(r"predicted, not measured: ([\d.]+) µs a launch", done.stdout)]
        self.assertEqual(len(times), 3, done.stdout)
        self.assertTrue(times[0] > times[1] > times[2], times)  # naive, with bank conflicts, without
        self.assertRegex(done.stdout, r"predictions: Of others' matrix products, half are within \d+%, nine of ten within \d+%")
        self.assertNotIn("predict", lab("profile", "--text", "--no-time", transpose).stdout)
        self.assertNotIn("predict", lab("profile", "--text", "--gpu", "l4", transpose).stdout)  # the model has no figures of it
        names = (ROOT / "emulator/machine/time_model.cpp").read_text(encoding="utf-8").split("kNames = {")[1].split("}")[0]
        self.assertEqual(re.findall(r'"([^"]+)"', names), list(counts.NEXT))

    def test_page(self):
        with tempfile.TemporaryDirectory() as folder:
            done = lab("profile", "-o", f"{folder}/page.html", KNOWN)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = Path(folder, "page.html").read_text(encoding="utf-8")
        page = Balanced()
        page.feed(text)
        self.assertEqual((page.open, page.loaded), ([], []))
        self.assertGreater(page.shapes, 30)  # grids
        self.assertLess(len(text), 1 << 20)
        self.assertEqual(text.count("<h2>"), 15)  # kernels and shapes of launches
        rows = [row for row in text.split("<tr>") if "out[x * n + row]" in row]
        self.assertEqual(len(rows), 1)
        self.assertIn("<td class='good'>4.0</td>\n<td class='bad'>32.0</td>", rows[0])

    def test_finding_at_its_line(self):
        done = lab("profile", "--text", RACE)
        self.assertEqual(done.returncode, 86)
        lines = done.stdout.splitlines()
        at = next(n for n, line in enumerate(lines) if "// races" in line)
        self.assertTrue(any(line.lstrip().startswith("^ race:") for line in lines[at + 1:at + 3]), lines[at:at + 3])

    def test_error_at_its_line(self):
        done = lab("profile", "--text", RACE, "beyond")
        lines = done.stdout.splitlines()
        at = next(n for n, line in enumerate(lines) if "// races" in line)
        self.assertTrue(any("0 bytes past the end" in line for line in lines[at + 1:at + 4]), lines[at:at + 4])

    def test_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "padded.cu")
            other.write_text(KNOWN.read_text(encoding="utf-8").replace("[kTile + Padding]", "[kTile + 1]"), encoding="utf-8")
            done = lab("compare", KNOWN, other)
        self.assertEqual(done.returncode, 0, done.stderr)
        tile = next(table for table in done.stdout.split("\n\n") if "transpose_tile<0>" in table)
        row = next(line for line in tile.splitlines() if line.startswith("shared load: wavefronts per request"))
        self.assertEqual(row.split()[-3:], ["32.00", "1.00", "*"])

    def test_charts(self):
        with tempfile.TemporaryDirectory() as folder:
            for chart, words in (("occupancy", "shared memory"), ("roofline", "flop per byte")):
                done = lab("profile", "--image", chart, "--kernel", "transpose_tile<1>", "-o", f"{folder}/image.svg", KNOWN)
                self.assertEqual(done.returncode, 0, done.stderr)
                drawn = Balanced()
                drawn.feed(text := Path(folder, "image.svg").read_text(encoding="utf-8"))
                self.assertTrue(text.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and words in text, text)
                self.assertEqual(drawn.open, [])
        done = lab("profile", "--image", "nothing", KNOWN)
        self.assertEqual((done.returncode, done.stderr.split(",")[0]), (2, "weft-lab: --image nothing: expected occupancy"))

    def test_installed(self):
        """By `cmake --install --component lab`, and moved: commands of the course and exercises find all that they need."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "--install", os.environ["WEFT_BUILD"], "--component", "lab", "--prefix", f"{folder}/first"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            home = Path(folder, "first").rename(Path(folder, "moved"))
            share = home / "share/weft"
            environment = {name: value for name, value in os.environ.items() if name != "WEFT_EMULATE"}
            for command in ([home / "bin/weft-lab", "check", "21", "exercises/solutions/21_mma/solution.cu"],
                            ["tools/weft-lab", "run", "docs/course/hopper.cu"]):
                done = subprocess.run(command, cwd=share, env=environment, capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            texts = [file.read_text(encoding="utf-8") for file in share.rglob("*") if file.suffix in (".md", ".py", ".cu", ".h")]
            self.assertGreater(len(texts), 150)
            self.assertFalse([text for text in texts if str(ROOT) in text])

    def test_errors(self):
        done = lab("profile", "--text", ROOT / "nothing.cu")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        done = lab("run", KNOWN, NVCC="/no/nvcc")
        self.assertEqual((done.returncode, done.stderr), (2, "weft-lab: NVCC=/no/nvcc: no such program\n"))
        done = lab("run", KNOWN, NVCC="", CUDA_HOME="/none", PATH="/usr/bin:/bin")
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs NVIDIA's compiler, though no GPU", done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "broken.cu")
            broken.write_text("__global__ void k() { nothing(); }\nint main() {}\n", encoding="utf-8")
            done = lab("run", broken)
            self.assertEqual(done.returncode, 2)
            self.assertIn("broken.cu(1): error", done.stderr)
            broken.write_text("int main() {}\n", encoding="utf-8")
            done = lab("profile", broken)
            self.assertIn("launched no kernel", done.stderr)


if __name__ == "__main__":
    unittest.main()
