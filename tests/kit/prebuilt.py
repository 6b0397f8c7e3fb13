# SPDX-License-Identifier: Apache-2.0
"""tools/bundle --prebuilt: what is unpacked from the tar runs in a root that has glibc, a shell and nothing else."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from gpu_node import prebuilt  # noqa: E402

BUILD = pathlib.Path(os.environ["WEFT_BIN"]).parent
STEP = "--data shapes --device cpu --model resnet8 --batch-size 16 --max-steps 2 --workers 0 --out".split()
os.environ["PATH"] += ":/usr/sbin:/sbin"
# $ORIGIN is what /proc/self/exe says.
ENTER = 'mount --rbind /proc "$0/proc" && cd "$0" && exec chroot . /usr/bin/env -i PATH=/usr/bin HOME=/tmp OMP_NUM_THREADS=1 LC_ALL=C.UTF-8 "$@"'
INSIDE = ["unshare", *(["--map-root-user"] if os.getuid() else []), "--mount", "sh", "-c", ENTER]


def make_root(folder):
    """glibc's own libraries, sh and the three programs that the scripts of bin/ call."""
    for name in ("tmp", "bin", "dev", "proc", "usr/bin"):
        (folder / name).mkdir(parents=True)
    (folder / "dev/null").touch()
    for name in ("sh", "env", "getconf", "dirname", "readlink"):
        program = pathlib.Path(shutil.which(name))
        shutil.copy(program.resolve(), folder / "usr/bin" / name)
        if left := prebuilt.needed_libraries([program]):
            raise unittest.SkipTest(f"needs a {name} that loads glibc alone, this one loads {', '.join(left)}")
    (folder / "bin/sh").symlink_to("/usr/bin/sh")
    words = subprocess.run(["ldd", shutil.which("sh")], capture_output=True, text=True, check=True).stdout.split()
    libc = next(word for word in words if word.endswith("/libc.so.6"))
    loader = pathlib.Path(next(word for word in words if "/ld-linux" in word))
    (folder / libc[1:]).parent.mkdir(parents=True, exist_ok=True)
    for library in pathlib.Path(libc).resolve().parent.iterdir():
        if prebuilt.OWN.match(library.name) and not library.name.startswith(("libcuda", "libnvidia")):
            shutil.copy(library.resolve(), (folder / libc[1:]).parent / library.name)
    (folder / str(loader)[1:]).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(loader.resolve(), folder / str(loader)[1:])


class Prebuilt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        work = pathlib.Path(cls.temporary.name)
        cls.root = work / "root"
        make_root(cls.root)
        if subprocess.run([*INSIDE, str(cls.root), "sh", "-c", ":"], capture_output=True, check=False).returncode:
            raise unittest.SkipTest("needs root or user namespaces")
        tar = work / ("weft.tar.zst" if shutil.which("zstd") else "weft.tar.gz")
        done = subprocess.run([sys.executable, "-B", str(TOOLS / "bundle"), "--prebuilt", str(tar), "--build", str(BUILD)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise AssertionError(done.stdout)
        cls.said = done.stdout
        subprocess.run(["tar", "-C", str(cls.root), "-xf", str(tar)], check=True)

    def run_inside(self, *words):
        command = [*INSIDE, str(self.root), "sh", "-c", 'cd /tmp && exec "$@"', "sh", *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)

    def test_it_says_which_glibc_it_needs_and_why(self):
        self.assertRegex(self.said, r"unpacked \d+ MiB, needs glibc 2\.\d+ or newer \(\w+ in \S+\)")

    def test_it_trains_without_the_machine_that_built_it(self):
        done = self.run_inside("/weft/bin/train_image", *STEP, "alone")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.root / "tmp/alone/summary.json").exists(), done.stdout)

    def test_a_second_name_and_a_moved_folder(self):
        shutil.move(self.root / "weft", self.root / "elsewhere")
        try:
            done = self.run_inside("/elsewhere/libexec/weft/ml_dist/mnist_ddp", "--help")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("mnist_ddp", done.stdout)
        finally:
            shutil.move(self.root / "elsewhere", self.root / "weft")

    def test_two_ranks(self):
        done = self.run_inside("/weft/bin/weft-run", "--nproc_per_node", "2", "/weft/bin/train_image", *STEP, "two")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 ranks", (self.root / "tmp/two/config.toml").read_text())

    def test_an_older_glibc_is_one_line(self):
        getconf = self.root / "usr/bin/getconf"
        kept = getconf.read_bytes()
        try:
            for says, got in (("glibc 2.17", "glibc 2.17"), ("", "none")):
                getconf.write_text(f"#!/bin/sh\necho {says}\n")
                done = self.run_inside("/weft/bin/weft-info")
                self.assertEqual(done.returncode, 1)
                expected = rf"weft-info: error: expected glibc 2\.\d+ or newer, got {got}\. tools/install of the sources builds it here\n"
                self.assertRegex(done.stdout, f"^{expected}$")
        finally:
            getconf.write_bytes(kept)

    def test_a_library_that_is_missing_is_noticed(self):
        """That this root has none of the tar's libraries itself."""
        gone = next((self.root / "weft/lib").glob("libfmt.so.*"))
        gone.rename(self.root / "fmt")
        try:
            self.assertIn("libfmt", self.run_inside("/weft/bin/train_image", "--help").stdout)
        finally:
            (self.root / "fmt").rename(gone)

    def test_each_library_has_its_license(self):
        lines = (self.root / "weft/licenses/libraries.txt").read_text().splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            library, origin = line.split()
            self.assertTrue((self.root / "weft/lib" / library).exists(), line)
            if not origin.startswith("/"):
                self.assertTrue((self.root / "weft/licenses" / origin / "copyright").exists(), line)


if __name__ == "__main__":
    missing = [name for name in ("patchelf", "ldd", "chroot", "unshare", "mount") if not shutil.which(name)]
    if missing:
        print(f"skipped: needs {', '.join(missing)}")
        sys.exit(77)
    unittest.main()
