# SPDX-License-Identifier: Apache-2.0
"""tools/bundle --wheel: pip installs the emulator, which then runs programs from there."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from gpu_node import old_glibc, prebuilt, symbol_versions  # noqa: E402

BIN = pathlib.Path(os.environ["WEFT_BIN"])


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)


class Wheel(unittest.TestCase):
    def test_installed_by_pip(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(sys.executable, "-B", ROOT / "tools/bundle", "--wheel", folder, "--build", BIN.parent)
            self.assertEqual(done.returncode, 0, done.stderr)
            wheel, = pathlib.Path(folder).glob("weft_emulate-*-py3-none-manylinux_2_28_*.whl")
            self.assertIn(wheel.name, done.stdout)
            self.assertLess(wheel.stat().st_size, 30 << 20)
            home = pathlib.Path(folder, "site")
            done = run(sys.executable, "-m", "pip", "install", "--no-index", "--target", home, wheel)
            self.assertEqual(done.returncode, 0, done.stderr)
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home)}
            for program in ("emulated_machine", "emulated_static_runtime"):
                done = run(home / "bin/weft-emulate", BIN / program, env=environment, timeout=120)
                self.assertEqual((done.returncode, "FAILED" in done.stdout), (0, False), done.stdout + done.stderr)
            done = run(home / "bin/weft-emulate", "--gpu", "z100", "true", env=environment)
            self.assertEqual((done.returncode, done.stderr.startswith("weft-emulate: --gpu")), (2, True), done.stderr)
            newest = symbol_versions.newest_needed([path for path in home.rglob("*") if prebuilt.is_elf(path)])
            self.assertFalse(old_glibc.is_newer(f"GLIBC_{newest['GLIBC'][0]}"), newest)

    def test_without_an_emulator(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(sys.executable, "-B", ROOT / "tools/bundle", "--wheel", folder, "--build", folder)
            self.assertEqual((done.returncode, list(pathlib.Path(folder).iterdir())), (2, []))
            self.assertIn("cmake_install.cmake", done.stderr)


if __name__ == "__main__":
    missing = [name for name in ("patchelf", "ldd") if not shutil.which(name)]
    missing += ["pip"] if run(sys.executable, "-m", "pip", "--version").returncode else []
    missing += [] if (BIN / "weft-emulate").exists() else ["a build with the emulator"]
    if missing:
        print(f"skipped: needs {', '.join(missing)}")
        sys.exit(77)
    unittest.main()
