# SPDX-License-Identifier: Apache-2.0
"""The sets: each is fetched, and the command that is printed trains on it (where TRAIN_IMAGE names the program); the
real table; real files, where they are on this machine (WEFT_SHARED_DATA)."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import made_up
from fixture import PROGRAM, FetchCase, clean_environment
from server import FileServer


class EachSet:
    PROGRAM = "train_image"

    def test_the_command_trains_on_it(self):
        self.parent = os.path.join(self.folder, "my sets")  # a path that needs quoting
        self.whole = os.path.join(self.parent, self.SET)
        command = shlex.split(self.fetched().stdout.splitlines()[-1])
        self.assertEqual(command[0], f"build/bin/{self.PROGRAM}")
        self.assertIn(self.whole, command[2])
        program = os.environ.get(self.PROGRAM.upper(), "")
        if not program:
            self.skipTest(f"SKIPPED: needs {self.PROGRAM} (WEFT_BUILD_APPS)")
        trained = subprocess.run([program, *command[1:], "--max-steps", "1"], stdout=subprocess.PIPE, cwd=self.folder,
                                 stderr=subprocess.STDOUT, text=True, timeout=300)
        if "built without" in trained.stdout:
            self.skipTest(trained.stdout.strip())  # a build with a stub in the place of a decoder
        self.assertEqual(trained.returncode, 0, trained.stdout)
        self.assertIn("stopped by --max-steps after step 1", trained.stdout)


class Cifar100(EachSet, FetchCase):
    SET = "cifar100"


class Mnist(EachSet, FetchCase):
    SET = "mnist"

    def test_the_files_are_unpacked(self):
        self.fetched()
        self.assertEqual(self.read("train-labels-idx1-ubyte")[:4], b"\0\0\x08\x01")


class Hymenoptera(EachSet, FetchCase):
    SET = "hymenoptera"

    def test_only_what_lies_inside_is_unpacked(self):
        self.fetched()
        self.assertEqual(sorted(os.listdir(self.whole)), [".DS_Store", "SHA256SUMS", "train", "val"])
        self.assertEqual(len(os.listdir(os.path.join(self.whole, "val", "bees"))), 4)


class Tinyshakespeare(EachSet, FetchCase):
    SET = "tinyshakespeare"
    PROGRAM = "train_gpt"


class RealTable(unittest.TestCase):
    def test_every_row_is_complete(self):
        with open(os.path.join(made_up.ROOT, "tools", "fetch", "sets.json"), encoding="utf-8") as file:
            table = json.load(file)
        self.assertEqual(sorted(table), ["cifar10", "cifar100", "fashion-mnist", "hymenoptera", "mnist", "tinyshakespeare"])
        for row in table.values():
            self.assertTrue(row["sums_from"])
            for address in row["addresses"]:
                self.assertRegex(address, r"^https?://[^ ]+/$")
            for entry in row["files"]:
                self.assertRegex(entry["sha256"], "^[0-9a-f]{64}$")
                if "md5" in entry:
                    self.assertRegex(entry["md5"], "^[0-9a-f]{32}$")
            self.assertTrue(re.search(r"^train_\w+ --data .*\{folder\}[ /]", row["train"]))

    def test_the_real_fashion_mnist(self):
        folder = os.path.join(os.environ.get("WEFT_SHARED_DATA", ""), "fashion-mnist")
        if not os.path.isdir(folder):
            self.skipTest(f"SKIPPED: needs {folder}; set WEFT_SHARED_DATA to its parent")
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
        with tempfile.TemporaryDirectory(prefix="weft_fetch_") as parent, FileServer(files) as server:
            server.plans = [{"drop_after": 10_000_000}]
            run = subprocess.run([sys.executable, PROGRAM, "fashion-mnist", parent, "--base-url", server.url,
                                  "--retry-wait", "0.01"], capture_output=True, text=True, env=clean_environment())
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(server.sent(), sum(map(len, files.values())))
            self.assertEqual(os.path.getsize(os.path.join(parent, "fashion-mnist", "train-images-idx3-ubyte")), 47040016)


if __name__ == "__main__":
    sys.exit(unittest.main())
