# SPDX-License-Identifier: Apache-2.0
"""tools/bundle: what is in deps/, its limits on size and symbol versions, and that a program builds from it alone."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from gpu_node import symbol_versions  # noqa: E402

EXPECTED = """deps/include/fmt/format.h
deps/lib/cmake/fmt/fmtConfig.cmake deps/include/nlohmann/json.hpp deps/include/CLI/CLI.hpp deps/include/toml++/toml.h
deps/lib/cmake/GTest/GTestConfig.cmake deps/src/googletest/googletest/src/gtest-all.cc deps/src/googletest/googlemock/src/gmock-all.cc
deps/include/hdf5.h deps/lib/libhdf5.a deps/include/jpeglib.h deps/lib/libjpeg.a deps/include/spng.h deps/lib/libspng.so.0 deps/include/openssl/evp.h deps/include/openssl/opensslconf.h
deps/lib/libcrypto.so
deps/include/zlib.h deps/lib/libz.so.1 deps/include/zip.h deps/lib/libzip.so deps/lib/libcrypto.so.3 deps/lib/libbz2.so.1.0
deps/include/utf8proc.h deps/lib/libutf8proc.a deps/include/yaml-cpp/yaml.h deps/lib/libyaml-cpp.a deps/manifest.txt deps/licenses/libhdf5-dev/copyright deps/licenses/googletest/copyright""".split()


def bundle(*flags):
    done = subprocess.run([sys.executable, "-B", str(TOOLS / "bundle"), *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Bundle(unittest.TestCase):
    def test_list_holds_what_a_build_needs_with_licenses(self):
        status, text = bundle("--deps-only", "--list")
        self.assertEqual(status, 0, text)
        files = {line.split()[1]: int(line.split()[0]) for line in text.splitlines() if " deps/" in line}
        for path in EXPECTED:
            self.assertGreater(files.get(path, 0), 0, path)
        self.assertRegex(text, r"newest GLIBC needed: 2\.\d+ \(\w+ in lib\w+\.\S+\), limit 2\.34")
        self.assertRegex(text, r"unpacked [\d.]+ MiB")
        packages = [line.split()[0] for line in text.splitlines() if len(line.split()) == 2 and line[0].islower()]
        for package in packages:
            self.assertIn(f"deps/licenses/{package}/copyright", files)

    def test_libzip_finds_the_libraries_it_needs_beside_itself(self):
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work)
            status, text = bundle("--deps-only", str(folder / "deps"))
            self.assertEqual(status, 0, text)
            (folder / "a.c").write_text('#include <stdio.h>\n#include <zip.h>\nint main(void) { puts(zip_libzip_version()); return 0; }\n')
            lib = folder / "deps/lib"
            subprocess.run(["gcc", "-I", str(folder / "deps/include"), "a.c", "-o", "a", str(lib / "libzip.so"), f"-Wl,-rpath,{lib}"],
                           cwd=work, check=True)
            loaded = subprocess.run(["ldd", str(folder / "a")], capture_output=True, text=True, check=True).stdout
            for name in ("libzip.so.4", "libbz2.so.1.0", "libcrypto.so.3", "libz.so.1"):
                self.assertRegex(loaded, rf"{name} => {lib}/{name}")
            ran = subprocess.run([str(folder / "a")], capture_output=True, text=True, check=True)
            self.assertRegex(ran.stdout, r"^\d+\.\d+")

    def test_refuses_what_is_too_large_or_too_new(self):
        status, text = bundle("--deps-only", "--list", "--max-mib", "1")
        self.assertEqual(status, 1)
        self.assertIn("MiB is more than 1 MiB", text)
        status, text = bundle("--deps-only", "--list", "--glibc", "2.2.5")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"bundle: lib\S+ needs GLIBC_2\.\d+ \(\w+\), newer than the limit 2\.2\.5")

    def test_refuses_names_and_folders_it_cannot_use(self):
        self.assertIn("expected a folder or a file that ends in .tar.zst", bundle("out.tar.rar")[1])
        self.assertIn("is not empty. Remove it first.", bundle("--deps-only", str(TOOLS))[1])
        self.assertIn("makes a folder, not an archive", bundle("--deps-only", "deps.tar.gz")[1])

    def test_symbol_versions_of_shared_and_static_libraries(self):
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work)
            (folder / "a.c").write_text("#include <pthread.h>\nint f(pthread_t t) { return pthread_clockjoin_np(t, 0, 0, 0); }\n")
            (folder / "b.c").write_text("#include <string.h>\nunsigned long g(const char* s) { return strlen(s); }\n")
            for name in ("a", "b"):
                subprocess.run(["gcc", "-w", "-D_GNU_SOURCE", "-fno-builtin", "-fPIC", "-c", f"{name}.c"], cwd=work, check=True)
                subprocess.run(["ar", "cr", f"lib{name}.a", f"{name}.o"], cwd=work, check=True)
                subprocess.run(["gcc", "-shared", "-o", f"lib{name}.so", f"{name}.o"], cwd=work, check=True)

            def newest(name):
                return symbol_versions.newest_needed([folder / name])["GLIBC"][:2]

            # pthread_clockjoin_np came with 2.31 in libpthread and moved to libc in 2.34.
            self.assertEqual(newest("liba.so"), ("2.34", "pthread_clockjoin_np"))
            self.assertEqual(newest("liba.a"), ("2.31", "pthread_clockjoin_np"))
            self.assertEqual(newest("libb.a"), ("2.2.5", "strlen"))
            self.assertEqual(symbol_versions.newest_needed([folder / "liba.a", folder / "libb.so"])["GLIBC"][2], "liba.a")


if __name__ == "__main__":
    if not shutil.which("dpkg-query"):
        print("skipped: needs Debian's packages")
        sys.exit(77)
    if "expected the " in (text := bundle("--deps-only", "--list")[1]):
        print(f"skipped: {text.strip()}")
        sys.exit(77)
    unittest.main()
