# SPDX-License-Identifier: Apache-2.0
"""tools/install: what is missing is named at once; what is there is built and installed. Pretended compilers and CMakes."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOUND = "-- weft 0.1.0, Release: parts\n--   found    oneDNN           fast\n"
NEEDS = "weft: required and not found: nlohmann-json, fmt. On Debian: apt-get install nlohmann-json3-dev\n  libfmt-dev. Elsewhere, …"


class Install(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = pathlib.Path(temporary.name)
        (self.work / "bin").mkdir()
        for tool in ("bash", "dirname", "sed", "grep", "sort", "head", "tail", "tr", "mkdir", "mktemp", "rm", "uname", "nproc", "cat"):
            (self.work / "bin" / tool).symlink_to(shutil.which(tool))
        self.pretend("g++", "echo 'g++ 12.2.0, Free Software'", "-dumpfullversion) echo 12.2.0 ;;")
        self.pretend("ninja", "echo 1.11")
        self.cmake()

    def pretend(self, name, last, *cases):
        path = self.work / "bin" / name
        path.write_text("#!/bin/bash\ncase $1 in\n" + "\n".join(cases) + f"\n*) {last} ;;\nesac\n")
        path.chmod(0o755)

    def cmake(self, log=FOUND, configured=0, version="3.25.1"):
        """Notes what it is asked for; "installs" a train_image that notes its flags."""
        (self.work / "log").write_text(log)
        note = f'echo "$@" >> {self.work}/asked'
        program = f'printf \'#!/bin/bash\\necho "$@" >> {self.work}/asked\\n\' > $prefix/bin/train_image'
        self.pretend("cmake", f"cat {self.work}/log; {note}; exit {configured}", f"--version) echo cmake version {version} ;;",
                     f"--build) {note} ;;",
                     f"--install) {note}; prefix={self.work}/out; mkdir -p $prefix/bin; {program}; chmod +x $prefix/bin/train_image ;;")  # fmt: skip
        (self.work / "bin/chmod").unlink(missing_ok=True)
        (self.work / "bin/chmod").symlink_to(shutil.which("chmod"))

    def install(self, *words, **environment):
        done = subprocess.run(["bash", str(ROOT / "tools/install"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={"PATH": f"{self.work}/bin", "BUILD": str(self.work / "build"), "JOBS": "3", **environment}, check=False)  # fmt: skip
        return done.returncode, done.stdout

    def asked(self):
        path = self.work / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def test_all_is_there(self):
        status, text = self.install("--prefix", str(self.work / "out"), "-DWEFT_CUDA=OFF")
        self.assertEqual((status, text), (0, f"Installed, and a step was trained. Next: export PATH={self.work}/out/bin:$PATH\n"))
        configure, build, install, step = self.asked()
        self.assertIn("-G Ninja", configure)
        self.assertIn(f"-DCMAKE_INSTALL_PREFIX={self.work}/out", configure)
        self.assertTrue(configure.endswith("-DWEFT_CUDA=OFF"), configure)
        self.assertEqual(build, f"--build {self.work}/build -j 3")
        self.assertEqual(install, f"--install {self.work}/build")
        self.assertIn("--max-steps 1", step)

    def test_without_ninja_it_takes_make(self):
        (self.work / "bin/ninja").unlink()
        self.pretend("make", "")
        self.assertEqual(self.install("--prefix", str(self.work / "out"))[0], 0)
        self.assertIn("-G Unix Makefiles", self.asked()[0])

    def test_all_that_is_needed_is_named_at_once(self):
        self.cmake(FOUND + "--   MISSING  libspng          PNG images. Cure: apt-get install libspng-dev\n" + NEEDS, configured=1)
        status, text = self.install("--prefix", str(self.work / "out"))
        self.assertEqual(status, 1)
        rows = re.findall(r"^  (needed|optional) +(\S+)", text, re.MULTILINE)
        self.assertEqual(rows, [("optional", "libspng-dev"), ("needed", "nlohmann-json3-dev"), ("needed", "libfmt-dev")])
        self.assertIn("-c conda-forge gxx cmake ninja nlohmann_json fmt\n", text)
        self.assertIn("(not there: libspng-dev)", text)
        self.assertIn("spack install libspng nlohmann-json fmt && spack load libspng nlohmann-json fmt\n", text)
        self.assertIn("module load libspng nlohmann_json fmt\n", text)
        self.assertIn("apt-get install nlohmann-json3-dev libfmt-dev libspng-dev\n", text)
        self.assertIn(f"micromamba run -p {self.work}/out/deps tools/install --prefix {self.work}/out\n", text)
        self.assertNotIn("--as-is", text)  # would not help
        self.assertEqual(len(self.asked()), 1)  # nothing was built

    def test_optional_ones_may_be_left_out(self):
        self.cmake(FOUND + "--   MISSING  MPI              groups. Cure: apt-get install libopenmpi-dev openmpi-bin\n"
                           "--   MISSING  Gloo             benchmarks. Cure: apt-get install libgloo-dev\n"
                           "--   MISSING  libzstd          emulator. Cure: apt-get install libzstd-dev\n")  # fmt: skip
        status, text = self.install("--prefix", str(self.work / "out"))
        self.assertEqual(status, 1)
        self.assertEqual(re.findall(r"^  (needed|optional) +(\S+)", text, re.MULTILINE), [("optional", "libopenmpi-dev")])
        self.assertIn(f"Or without them: tools/install --prefix {self.work}/out --as-is\n", text)
        self.assertEqual(self.install("--prefix", str(self.work / "out"), "--as-is")[0], 0)

    def test_old_tools_are_missing_ones(self):
        self.cmake(version="3.22.1")
        self.pretend("g++", "echo 'g++ 11.4.0, Free Software'", "-dumpfullversion) echo 11.4.0 ;;")
        (self.work / "bin/ninja").unlink()
        status, text = self.install("--prefix", str(self.work / "out"))
        self.assertEqual(status, 1)
        self.assertEqual(re.findall(r"^  needed +(\S+)", text, re.MULTILINE), ["g++", "cmake", "ninja-build"])
        self.assertEqual(self.asked(), [])

    def test_another_error_of_cmake_is_shown(self):
        self.cmake("CMake Error: no space left\n", configured=1)
        status, text = self.install("--prefix", str(self.work / "out"))
        self.assertEqual(status, 1)
        self.assertIn("no space left\nerror: CMake failed", text)

    def test_usage(self):
        self.assertEqual(self.install()[0], 2)
        self.assertIn("expected --prefix DIR", self.install()[1])
        self.assertIn("unknown argument '--prefx'", self.install("--prefx", "a")[1])
        self.assertIn("Usage: tools/install --prefix DIR", self.install("--help")[1])

    def test_one_configuration_names_all_that_is_required(self):
        """The real CMake, in a root without headers."""
        cmake = shutil.which("cmake")
        if cmake is None:
            self.skipTest("needs CMake")
        hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "CLI11", "nlohmann_json", "CUDAToolkit", "MPI")]
        done = subprocess.run([cmake, "-S", str(ROOT), "-B", str(self.work / "real"), "-DWEFT_CUDA=OFF", "-DWEFT_BUILD_TESTS=OFF",
                               *hidden],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ, check=False)  # fmt: skip
        self.assertNotEqual(done.returncode, 0)
        text = " ".join(done.stdout.split())
        self.assertIn("required and not found: nlohmann-json, fmt, CLI11. On Debian: apt-get install "
                      "nlohmann-json3-dev libfmt-dev libcli11-dev. Elsewhere", text)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
