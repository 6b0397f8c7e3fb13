# SPDX-License-Identifier: Apache-2.0
"""tools/bundle --prebuilt: what is unpacked from the tar runs in a root that has glibc, a shell and nothing else, and in a Debian of an older glibc."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import debian

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))
from gpu_node import bundled_libraries, old_glibc, prebuilt, symbol_versions  # noqa: E402

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


def make_program_with_a_constructor(path):
    """It ends with 42 if its constructor ran; made to run with an older glibc as those of the tar are."""
    source = "static int code; __attribute__((constructor)) static void set(void) { code = 42; }\nint main(void) { return code; }\n"
    subprocess.run(["gcc", "-x", "c", "-o", str(path), "-"], input=source, text=True, check=True)
    assert old_glibc.loosen(path, symbol_versions.offered())
    for words in (["--set-rpath", "$ORIGIN/../lib"], ["--add-needed", old_glibc.NAME]):
        subprocess.run(["patchelf", *words, str(path)], check=True)


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

    def run_inside(self, *words, root=None):
        command = [*INSIDE, str(root or self.root), "sh", "-c", 'cd /tmp && exec "$@"', "sh", *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)

    def test_it_says_which_glibc_it_needs(self):
        self.assertRegex(self.said, r"unpacked \d+ MiB, needs glibc 2\.28 or newer\n")

    def test_no_symbol_is_newer_than_that(self):
        files = [path for path in (self.root / "weft").rglob("*") if prebuilt.is_elf(path) and not path.is_symlink()]
        self.assertIn(old_glibc.NAME, {path.name for path in files})
        version, symbol, library = symbol_versions.newest_needed(files)["GLIBC"]
        self.assertLessEqual(symbol_versions.as_numbers(version), (2, 28), f"{symbol} in {library}")

    def test_in_a_debian_of_an_older_glibc(self):
        """Debian 11: glibc 2.31, of which no symbol is taken that 2.28 lacks (above)."""
        root = self.root.parent / "old"
        if why := debian.bootstrap("bullseye", root, "--foreign"):
            self.skipTest(f"SKIPPED: {why}")
        shutil.copytree(self.root / "weft", root / "weft", symlinks=True)
        (root / "dev/null").touch()
        if (root / "proc").is_symlink():  # to this machine's, as debootstrap leaves it
            (root / "proc").unlink()
            (root / "proc").mkdir()
        self.assertIn("glibc 2.31", self.run_inside("getconf", "GNU_LIBC_VERSION", root=root).stdout)
        done = self.run_inside("/weft/bin/weft-run", "--nproc_per_node", "2", "/weft/bin/train_image", *STEP, "two", root=root)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 ranks", (root / "tmp/two/config.toml").read_text())
        done = self.run_inside("/weft/bin/train_image", "--data", "shape", "--out", "none", root=root)
        # An exception went from libweft.so to the program's main(), and the loader has nothing to add.
        self.assertEqual((done.returncode, done.stdout), (1, "train_image: error: data: unknown kind 'shape'. Did you mean 'shapes'?\n"))
        done = self.run_inside("/weft/libexec/weft/ml_dist/mnist_ddp", "--help", root=root)
        self.assertIn("mnist_ddp", done.stdout)
        make_program_with_a_constructor(root / "weft/elf/starts")
        self.assertEqual(self.run_inside("/weft/elf/starts", root=root).returncode, 42)

    def test_a_function_without_a_stand_in_is_named(self):
        work = self.root.parent
        (work / "newer.c").write_text("#define _GNU_SOURCE\n#include <unistd.h>\nvoid f(void) { closefrom(3); }\n")  # since 2.34
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(work / "newer.so"), str(work / "newer.c")], check=True)
        with self.assertRaisesRegex(bundled_libraries.Missing, r"newer\.so calls closefrom@GLIBC_2\.34"):
            old_glibc.loosen(work / "newer.so", symbol_versions.offered())

    def test_its_stand_ins_do_what_glibc_does(self):
        library, program = self.root / "weft/lib" / old_glibc.NAME, self.root.parent / "stand_ins"
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-rdynamic", "-o", str(program), str(ROOT / "tests/kit/old_glibc.c"), str(library),
                        f"-Wl,-rpath,{library.parent}"], check=True)  # fmt: skip
        done = subprocess.run([str(program), "one"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "equal\n"))

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
                expected = rf"weft-info: error: expected glibc 2\.28 or newer, got {got}\. tools/install of the sources builds it here\n"
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
