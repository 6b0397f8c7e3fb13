#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cli.py ROOT: the commands of tools/weft-lab, as a user gives them."""
import contextlib
import html.parser
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from lab import counts, notebook, program, text as lab_text  # noqa: E402

NO_NVCC = {"NVCC": "", "CUDA_HOME": "/none", "PATH": "/usr/bin:/bin"}
KNOWN, RACE = ROOT / "tests/lab/known.cu", ROOT / "tests/lab/race.cu"


def lab(*words, folder=None, **variables):
    return subprocess.run([ROOT / "tools/weft-lab", *map(str, words)], capture_output=True, text=True, check=False, cwd=folder,
                          env={**os.environ, **variables}, timeout=600)


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
    def test_a_notebooks_cell(self):
        magics = {}
        notebook.load_ipython_extension(unittest.mock.Mock(register_magic_function=lambda function, kind, name: magics.update({(kind, name): function})))
        for line, wanted in (("--no-time", "data race"), ("run --check races", "data race"), ("run --gpu none", "expected one of")):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                magics["cell", "cuda"](line, RACE.read_text(encoding="utf-8"))
            self.assertIn(wanted, out.getvalue(), line)
            self.assertEqual("source" in out.getvalue(), line == "--no-time", out.getvalue())

    def test_explain(self):
        done = lab("check", "--explain", "9")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout.splitlines()
        self.assertEqual(said[0], "09_bug_race: find the bug: a count that is sometimes right")
        self.assertIn("+  __syncthreads();", said)
        self.assertIn("- A thread may count before thread 0 has set the counter to 0.", said)
        self.assertTrue(any("atomicAdd(&found, 1);" in line and line.split()[0] == "7" for line in said))

    def test_run(self):
        done = lab("run", "--gpu", "a100", KNOWN)
        self.assertEqual((done.returncode, done.stdout), (0, "no error\n"))
        done = lab("run", "--check", "races", RACE)
        self.assertEqual(done.returncode, 86)
        self.assertIn("data race", done.stderr)
        self.assertEqual(lab("run", RACE, "beyond").returncode, 86)  # a fault, whatever the program returns

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
        ends = re.findall(r"^ +2 to ([\d.]+) +### +wave 1: blocks 0 to 15, 1 on each of SMs 0 to 15; 116 idle$", done.stdout, re.MULTILINE)
        self.assertEqual([round(float(end) / time, 2) for end, time in zip(ends, times, strict=True)], [1, 1, 1], done.stdout)
        self.assertRegex(done.stdout, r"(?m)predictions: Nine of ten that were measured are within (\d+% \([^)]+\)(, )?)+$")
        self.assertNotIn("predict", lab("profile", "--text", "--no-time", transpose).stdout)
        self.assertNotIn("predict", lab("profile", "--text", "--gpu", "l4", transpose).stdout)  # the model has no figures of it
        names = (ROOT / "emulator/machine/time_model.cpp").read_text(encoding="utf-8").split("kNames = {")[1].split("}")[0]
        self.assertEqual(re.findall(r'"([^"]+)"', names), list(counts.NEXT))

    def test_timeline(self):
        """The lengths of waves are the model's own of a launch that is one full wave, and of one that is the last wave alone."""
        fields = ("issued fp32 integer half fp64 mufu lsu tensor_wgmma tensor_mma tensor_f64 wavefronts l2_bytes dram_bytes dram_written atomics path").split()
        work = {"warps_per_block": 8, **dict.fromkeys(fields, 0), "issued": 9e4, "lsu": 2e4, "wavefronts": 7e4, "dram_bytes": 2e5, "path": 9e3}
        for cluster, resident, full, rest in ((1, 4, 3, 20), (1, 4, 0, 20), (1, 2, 1, 0), (2, 3, 2, 31), (1, 1, 12, 131), (7, 1, 2, 28)):
            slots = resident * 132 // cluster * cluster
            each, last, whole = (self.predicted({**work, "blocks": blocks, "counted_blocks": 1, "cluster_blocks": cluster,
                                                 "resident_blocks": resident}) for blocks in (slots, rest or slots, full * slots + rest))
            line = counts.timeline(132, *whole)
            waves = list(line.apart(20))
            self.assertEqual([(wave.first, wave.block, wave.blocks) for wave in waves],
                             [(n + 1, n * slots, slots if n < full else rest) for n in range(full + (rest > 0))])
            for wave, (_, seconds, limits) in zip(waves, [each] * full + [last]):
                self.assertAlmostEqual((wave.end - wave.begin) / (seconds - limits["launch"]), 1, delta=2e-4, msg=(cluster, resident, full, rest))
            self.assertEqual([wave.begin for wave in waves], [line.launch, *(wave.end for wave in waves[:-1])])
            self.assertAlmostEqual(line.end / whole[1], 1, delta=1e-5)
        # A block on each SM, and one more: 131 SMs wait for the tail.
        line = counts.Timeline(132, 1, 132, 1.0, [counts.Wave(1, 2, 0, 132, 1.0, 5.0), counts.Wave(3, 3, 264, 1, 5.0, 6.0)])
        self.assertAlmostEqual(line.idle, 131 / 132 / 5)
        shown = list(lab_text.timeline_table(line))[1:]
        self.assertEqual([row.split("#")[-1].strip() for row in shown], [
            "wave 1: blocks 0 to 131, 1 on each SM", "wave 2: blocks 132 to 263, 1 on each SM", "wave 3, the tail: block 264, 1 on SM 0; 131 idle"])
        self.assertEqual([row.count("#") for row in shown], [lab_text.BAR, lab_text.BAR, 1])
        self.assertEqual(len(list(line.apart(1))), 3)
        # With clusters a wave leaves SMs free that have no room for a whole one; block b is on SM
        # b, then on b - 132.
        self.assertEqual(counts.Wave(1, 1, 0, 139, 0, 1).loads(132), [(0, 7, 2), (7, 125, 1)])

    def predicted(self, work):
        """(work, seconds, limits) by the model of time, of a launch on an H100."""
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "table")
            table.write_text("\t".join(f"{key}={value}" for key, value in {"kernel": "k", "gpu": "h100", **work}.items()) + "\n", encoding="utf-8")
            done = subprocess.run([program.find_emulator(), "--time-of", table], capture_output=True, text=True, check=True)
        _, seconds, _, *limits = done.stdout.split("\t")
        return work, float(seconds), {name: float(value) for name, value in (limit.split("=") for limit in limits)}

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
        self.assertEqual(text.count("<h2>"), 19)  # kernels and shapes of launches
        self.assertEqual(text.count('aria-label="timeline"'), 19)
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
            paged = lab("compare", "--no-time", "-o", f"{folder}/page.html", ROOT / "docs/course/divergence.cu", ROOT / "docs/course/transpose.cu")
            self.assertEqual((paged.returncode, paged.stdout.splitlines()[-1]), (0, f"wrote {folder}/page.html"), paged.stderr)
            text = Path(folder, "page.html").read_text(encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = Balanced()
        page.feed(text)
        self.assertEqual((page.open, page.loaded), ([], []))
        self.assertEqual(re.findall("<h2>(.*?)</h2>", text), ["by_lane and naive", "by_warp and tiled&lt;0&gt;", "tiled&lt;1&gt;"])
        self.assertIn("<tr><td>mean active lanes</td><td class='differs'>17.6</td><td class='differs'>32.0</td></tr>", text)
        self.assertEqual(text.count("<h3>"), 6)  # pieces of the sources
        tile = next(table for table in done.stdout.split("\n\n") if "transpose_tile<0>" in table)
        row = next(line for line in tile.splitlines() if line.startswith("shared load: wavefronts per request"))
        self.assertEqual(row.split()[-3:], ["32.00", "1.00", "*"])

    def chart(self, what, kernel="transpose_tile<1>"):
        """The text of an image; of transpose_tile<1>: 2 x 2 blocks of 32 x 8 threads and 4224 bytes."""
        with tempfile.TemporaryDirectory() as folder:
            done = lab("profile", "--image", what, "--kernel", kernel, "-o", f"{folder}/image.svg", KNOWN)
            self.assertEqual(done.returncode, 0, done.stderr)
            drawn = Balanced()
            drawn.feed(image := Path(folder, "image.svg").read_text(encoding="utf-8"))
            self.assertEqual(drawn.open, [])
            self.assertTrue(image.startswith('<svg xmlns="http://www.w3.org/2000/svg"'), image)
            return image

    def test_charts(self):
        bars = re.findall(r'>([a-z ]+)</text><rect x="100" y="\d+" width="(\d+)" height="17" fill="(#\w+)"/><text[^>]*>(\d+)<', self.chart("occupancy"))
        rooms = {name: int(blocks) for name, _, _, blocks in bars}
        # 64 warps give 8 each; 228 KiB give 4224 bytes and 1 KiB each. Registers: ptxas's choice.
        self.assertEqual(rooms, {"warps": 8, "blocks": 32, "registers": rooms.get("registers"), "shared memory": 44})
        self.assertEqual([name for name, _, colour, _ in bars if colour == "#cf222e"], ["warps"])
        self.assertEqual([int(width) for _, width, _, _ in bars], [round(270 * blocks / max(rooms.values())) for blocks in rooms.values()])
        # 127 additions, 16 sectors read and one written, once each: a point below the ridge, on the line of the bandwidth.
        roof = self.chart("roofline", "reduce<3>")
        for said in ("flop per byte", "FP32 units: 66.9 Tflop/s; 3.35 TB/s"):
            self.assertIn(said, roof)
        line = [tuple(map(float, point.split(","))) for point in re.search(r'points="([^"]+)"', roof)[1].split()]
        points = re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"[^>]*><title>[a-z ]+: ([^,]+),', roof)
        self.assertEqual([said for _, _, said in points], ["0.233 flop/B"] * 2)
        slope = (line[1][1] - line[0][1]) / (line[1][0] - line[0][0])
        for x, y in ((float(x), float(y)) for x, y, _ in points):
            self.assertTrue(line[0][0] < x < line[1][0], (line, points))
            self.assertAlmostEqual(y, line[0][1] + slope * (x - line[0][0]), delta=0.5)
        time = self.chart("timeline")
        rects = re.findall(r'<rect [^>]*width="([\d.]+)" height="(\d+)" fill="#\w+"><title>(.*?)</title>', time)
        self.assertEqual([(height, title.split(";")[0]) for _, height, title in rects],
                         [("264", "launch"), ("8", "wave 1, SMs 0 to 3: SM s runs block s")])
        self.assertAlmostEqual(sum(float(width) for width, _, _ in rects), 560, delta=2)
        self.assertIn("97% of the SMs&#39; time has no block", time)  # 128 of 132
        for what, said in (("nothing", "expected occupancy"), ("timeline", "needs a prediction of the time")):
            done = lab("profile", "--no-time", "--image", what, KNOWN)
            self.assertEqual((done.returncode, done.stderr.split(",")[0]), (2, f"weft-lab: --image {what}: {said}"))

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
                done = subprocess.run(command, cwd=share, env=environment, capture_output=True, text=True, timeout=600, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            texts = [file.read_text(encoding="utf-8") for file in share.rglob("*") if file.suffix in (".md", ".py", ".cu", ".h")]
            self.assertGreater(len(texts), 150)
            self.assertFalse([text for text in texts if str(ROOT) in text])
            links = [(page, link) for page in share.rglob("*.md") for link in re.findall(r"\]\(([\w./-]+)[#)]", page.read_text(encoding="utf-8"))]
            self.assertGreater(len(links), 100)
            self.assertFalse([(page.name, link) for page, link in links if not (page.parent / link).exists()])
            done = subprocess.run([share / "tools/course_slides", "-o", f"{folder}/slides.html"], capture_output=True, text=True, check=False)
            self.assertIn(" slides of 14 pages in ", done.stdout + done.stderr)

    def test_no_emulator_two_folders_above_a_tree(self):
        """Where /tmp/NAME/weft is a tree, /tmp/bin is anybody's; only an installation's share/weft has its programs there."""
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, "me/weft")
            shutil.copytree(ROOT / "tools", tree / "tools", ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "CMakeLists.txt", tree)
            Path(folder, "bin").mkdir()
            planted = Path(folder, "bin/weft-emulate")
            planted.write_text(f"#!/bin/sh\ntouch {folder}/ran\n", encoding="utf-8")
            planted.chmod(0o755)
            for variables in ({}, NO_NVCC):
                done = subprocess.run([tree / "tools/weft-lab", "run", KNOWN], capture_output=True, text=True, check=False,
                                      env={**os.environ, "PATH": "/usr/bin:/bin", "WEFT_EMULATE": "", **variables})
                self.assertEqual((done.returncode, done.stderr.split(":")[:2]), (2, ["weft-lab", " weft-emulate was not found"]))
                self.assertFalse(Path(folder, "ran").exists())

    def test_errors(self):
        done = lab("profile", "--text", ROOT / "nothing.cu")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        done = lab("run", KNOWN, NVCC="/no/nvcc")
        self.assertEqual((done.returncode, done.stderr), (2, "weft-lab: NVCC=/no/nvcc: no such program\n"))
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "broken.cu")
            broken.write_text("__global__ void k() { nothing(); }\nint main() {}\n", encoding="utf-8")
            done = lab("run", broken)
            self.assertEqual(done.returncode, 2)
            self.assertIn("broken.cu(1): error", done.stderr)
            broken.write_text("int main() { return 3; }\n", encoding="utf-8")
            self.assertEqual(lab("run", broken).returncode, 3)  # it needs no GPU
            done = lab("profile", broken)
            self.assertEqual((done.returncode, done.stderr), (2, f"weft-lab: {broken} has launched no kernel (exit code 3)\n"))
            broken.write_text("__global__ void k() {}\n", encoding="utf-8")
            self.assertIn("It has no main(): is it an exercise?", lab("run", broken).stderr)

    def test_grade(self):
        with tempfile.TemporaryDirectory() as folder:
            for file, text in (("ada/01_index.cu", ROOT / "exercises/solutions/01_index/solution.cu"), ("ada/2.cu", ROOT / "exercises/02_transpose/start.cu")):
                Path(folder, file).parent.mkdir(exist_ok=True)
                Path(folder, file).symlink_to(text)
            Path(folder, "bob").mkdir()
            Path(folder, "bob/01.cu").write_text("no program\n", encoding="utf-8")
            done = lab("grade", folder)
            shown = (ROOT / "docs/course/teach.md").read_text(encoding="utf-8").split("```\nstudent")[1].split("```")[0]
            self.assertEqual((done.returncode, done.stdout), (0, "student" + shown), done.stderr)
            Path(folder, "bob/mine.cu").touch()
            self.assertIn("bob/mine.cu: expected a name that begins with an exercise's number", lab("grade", folder).stderr)
            Path(folder, "bob/mine.cu").rename(Path(folder, "bob/a\x1b[2J.cu"))  # a terminal would clear its screen
            self.assertIn("bob/a\\x1b[2J.cu: expected a name", lab("grade", folder).stderr)
        self.assertIn(": expected a folder for each student", lab("grade", "nowhere").stderr)

    def test_wrong_options(self):
        for words, said in (
                (("run", "--gpus", 65, RACE), "--gpus: expected a number from 0 to 64, got 65"),
                (("run", "--streams", "soon", RACE), "--streams: expected inorder, lazy, random or starve:K, got 'soon'"),
                (("profile", "--check", "races,bounds", RACE), "--check: expected races, uninitialised, streams with commas between, or none, got 'bounds'"),
                (("profile", "--text", "--columns", "load,bytes", RACE), "--columns: expected some of instr.,lanes,load,store,"),
                (("profile", "--columns", "load", RACE), "--line and --columns go with --text"),
                (("profile", "--text", "--line", 1, RACE), "--line 1: no kernel has executed anything there"),
                (("profile", "--image", "occupancy", "--kernel", "none", RACE), "--kernel none: no name holds it: shift"),
                (("profile", "-o", "/nowhere/page.html", RACE), "/nowhere/page.html: No such file or directory"),
                (("compare", RACE, "nothing.cu"), "there is no file nothing.cu"),
                (("check", "99"), "there is no exercise 99: 01_index, "),
                (("score", "nothing.cu"), "there is no file nothing.cu"),
                (("check", "1", "nothing.cu"), "there is no file nothing.cu")):
            with self.subTest(words):
                done = lab(*words)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.splitlines()[-1].startswith(f"weft-lab: {said}"), done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_no_end(self):
        """A kernel or a host that loops for ever, one that a signal ends, one that the user ends, and a reader that has seen enough."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "loop.cu")
            for loop in ("k<<<1, 32>>>(x); cudaDeviceSynchronize();",
                         "volatile int n = 1; while (n != 0) { const int now = n; n = 1 + now % 7; }"):
                file.write_text("__global__ void k(volatile int* x) { while (*x >= 0) *x = *x % 7 + 1; }\n"
                                f"int main(int argc, char**) {{ int* x; cudaMalloc(&x, 4); cudaMemset(x, 0, 4); {loop} return argc; }}\n", encoding="utf-8")
                done = lab("profile", "--timeout", "2", file)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("weft-lab: loop.cu has not ended after 2 s: a loop"), done.stderr)
            started = subprocess.Popen([ROOT / "tools/weft-lab", "run", file], stderr=subprocess.PIPE, text=True, start_new_session=True)
            children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
            while not children.read_text(encoding="utf-8"):
                time.sleep(0.1)
            time.sleep(4)  # the compiler runs for 3 s or so; in any case one line is due
            os.killpg(started.pid, signal.SIGINT)
            _, said = started.communicate(timeout=60)
            self.assertEqual((started.returncode, said), (130, "weft-lab: interrupted\n"))
            file.write_text("#include <csignal>\nint main() { return raise(SIGSEGV); }\n", encoding="utf-8")
            done = lab("run", file)
            self.assertEqual((done.returncode, done.stderr), (139, "weft-lab: the program was ended by SIGSEGV\n"))
        done = subprocess.run(f"'{ROOT}/tools/weft-lab' profile --text --no-time '{KNOWN}' | head -1", shell=True, capture_output=True, text=True, check=False)
        self.assertEqual((done.stderr, done.stdout.count("\n")), ("", 1))

    def test_without_nvcc(self):
        """One line says where nvcc comes from; what tools/cuda_wheels has put beside the emulator is found."""
        with tempfile.TemporaryDirectory() as folder:
            def program_of(name):
                Path(folder, name).parent.mkdir(parents=True)
                Path(folder, name).write_text("#!/bin/sh\necho this is the wheel >&2; exit 1\n", encoding="utf-8")
                Path(folder, name).chmod(0o755)
                return lab("run", KNOWN, WEFT_EMULATE=f"{folder}/bin/weft-emulate", **NO_NVCC)

            done = program_of("bin/weft-emulate")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("nvcc was not found", done.stderr)
            self.assertIn("`tools/install_packages nvcc` gets it", done.stderr)
            done = program_of("cuda-wheels/nvcc/bin/nvcc")
            self.assertEqual((done.returncode, done.stderr), (2, f"weft-lab: {KNOWN} does not compile:\nthis is the wheel\n"))

    def test_the_compiler_cache_knows_a_file(self):
        if not shutil.which("ccache"):
            self.skipTest("SKIPPED: needs ccache")
        with tempfile.TemporaryDirectory() as folder:
            for hits in (0, 1):
                self.assertEqual(lab("run", ROOT / "docs/course/transpose.cu", CCACHE_DIR=folder).returncode, 0)
                told = subprocess.run(["ccache", "--print-stats"], env={**os.environ, "CCACHE_DIR": folder}, capture_output=True, text=True, check=True).stdout
                counted = {name: int(number) for name, number in (line.split("\t") for line in told.splitlines())}
                self.assertEqual(counted["direct_cache_hit"] + counted["preprocessed_cache_hit"], hits, told)

    def test_a_step_of_the_ladder(self):
        """Step 5's comment says 2 wavefronts for each read of a and 4 for each of b, step 7's that no lanes meet."""
        for step, line, load in (("5_register_tile", "x[i] = tile_a[row + i][k]", 2), ("5_register_tile", "w[j] = tile_b[k][column + j]", 4),
                                 ("7_conflict_free", None, 0)):
            done = lab("profile", "--text", "--no-time", "--columns", "sh.load,conflicts", f"--nvcc-flag=-DSTEP=matmul_f32/{step}", ROOT / "kernels/ladder/lab.cu")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"matmul_f32/{step}: 0 of 65536 elements wrong", done.stdout)
            if line:
                row = next(row for row in done.stdout.splitlines() if line in row)
                self.assertEqual(float(row.split()[1]), load, row)
            else:
                self.assertIn("; 0 wavefronts by bank conflicts", done.stdout)


if __name__ == "__main__":
    unittest.main()
