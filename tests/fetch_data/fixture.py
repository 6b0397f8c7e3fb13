# SPDX-License-Identifier: Apache-2.0
"""Each test case has a folder, a server and a table, and runs the program as a user does."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import made_up
from server import FileServer

PROGRAM = os.path.join(made_up.ROOT, "tools", "fetch_data")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def clean_environment(**more):
    kept = {key: value for key, value in os.environ.items() if key.lower() not in PROXIES}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


class FetchCase(unittest.TestCase):
    SET = "cifar100"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weft_fetch_")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.files = {"cifar100": made_up.cifar100, "mnist": made_up.idx, "fashion-mnist": made_up.idx,
                      "hymenoptera": made_up.hymenoptera, "tinyshakespeare": made_up.tinyshakespeare}[self.SET]()
        self.archive = next(iter(self.files))
        self.content = self.files[self.archive]
        self.server = FileServer(dict(self.files))
        self.addCleanup(self.server.__exit__)
        self.write_table(made_up.table_for(self.SET, self.files))
        self.parent = os.path.join(self.folder, "sets")
        self.whole = os.path.join(self.parent, self.SET)
        self.partial = os.path.join(self.parent, f".{self.SET}.download", self.archive + ".part")

    def write_table(self, table):
        self.table = os.path.join(self.folder, "table.json")
        with open(self.table, "w", encoding="utf-8") as file:
            json.dump(table, file)

    def command(self, *more, parent=None, url=None):
        return [sys.executable, PROGRAM, self.SET, parent or self.parent, "--sets", self.table, "--base-url",
                url or self.server.url, "--retry-wait", "0.01", "--timeout", "20", *more]

    def run_program(self, *more, parent=None, url=None, environment=None, **options):
        return subprocess.run(self.command(*more, parent=parent, url=url), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, cwd=self.folder,
                              env=clean_environment(**(environment or {})), **options)

    def fetched(self, *more, **options):
        """A run that must end well."""
        run = self.run_program(*more, **options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        self.assertTrue(os.path.isdir(self.whole))
        return run

    def refused(self, text, *more, code=1, **options):
        """A run that must end with one line of error that contains `text`, and without a set."""
        run = self.run_program(*more, **options)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        errors = [line for line in run.stderr.splitlines() if line.startswith("fetch_data: error: ")]
        self.assertEqual(len(errors), 1, run.stderr)
        self.assertEqual(run.stderr.splitlines()[-1], errors[0])
        self.assertIn(text, errors[0])
        return run

    def read(self, *path):
        with open(os.path.join(self.whole, *path), "rb") as file:
            return file.read()

    def ranges(self):
        return [request["range"] for request in self.server.requests]
