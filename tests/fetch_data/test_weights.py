# SPDX-License-Identifier: Apache-2.0
"""tools/fetch_weights: the file under its name once its sum is right; networks and disks that fail; the real table."""
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import made_up
from fixture import clean_environment
from server import FileServer

PROGRAM = os.path.join(made_up.ROOT, "tools", "fetch_weights")
FILE = "dinov2_vits14_pretrain.pth"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class WeightsCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weft_fetch_")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.content = random.Random(5).randbytes(500_000)
        self.server = FileServer({FILE: self.content})
        self.addCleanup(self.server.__exit__)
        self.row = {"title": "made up", "addresses": ["http://127.0.0.1:9/"], "use": "linear_probe --weights {file}",
                    "files": [{"name": FILE, "bytes": len(self.content), "sha256": sha256(self.content)}]}
        self.parent = os.path.join(self.folder, "my weights")  # a path that needs quoting
        self.place = os.path.join(self.parent, FILE)
        self.partial = os.path.join(self.parent, f".{FILE}.download", FILE + ".part")

    def run_program(self, *more, name="dinov2_vits14", url=None, environment=None, **options):
        table = os.path.join(self.folder, "table.json")
        with open(table, "w", encoding="utf-8") as file:
            json.dump({"dinov2_vits14": self.row}, file)
        return subprocess.run([sys.executable, PROGRAM, name, self.parent, "--table", table, "--retry-wait", "0.01",
                               "--timeout", "20", "--base-url", url or self.server.url, *more], capture_output=True,
                              text=True, timeout=120, env=clean_environment(**(environment or {})), **options)

    def fetched(self, *more, **options):
        run = self.run_program(*more, **options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        with open(self.place, "rb") as file:
            self.assertEqual(sha256(file.read()), sha256(self.content))
        return run

    def refused(self, text, *more, code=1, **options):
        run = self.run_program(*more, **options)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        last = run.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("fetch_weights: error: "), run.stderr)
        self.assertIn(text, last)
        self.assertFalse(os.path.exists(self.place))
        return run


class Fetch(WeightsCase):
    def test_the_file_appears_once_it_is_right(self):
        run = self.fetched()
        self.assertEqual(os.listdir(self.parent), [FILE])  # nothing else stays
        self.assertIn("its SHA256 is right", run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], f"  build/bin/linear_probe --weights '{self.place}'")

    def test_a_second_run_does_nothing(self):
        self.fetched()
        requests = len(self.server.requests)
        self.assertIn("is there and right: nothing to do", self.fetched().stdout)
        self.assertEqual(len(self.server.requests), requests)

    def test_another_file_of_that_name_is_left_alone(self):
        os.makedirs(self.parent)
        with open(self.place, "wb") as file:
            file.write(b"mine")
        run = self.run_program()
        self.assertEqual(run.returncode, 1)
        self.assertIn("exists, but is another file: its SHA256 is " + sha256(b"mine"), run.stderr)
        self.assertEqual(self.server.requests, [])

    def test_the_next_run_transfers_only_the_rest(self):
        self.server.plans = [{"drop_after": 123456}] + [{"status": 503}] * 3
        self.refused("returned error: 503", "--retries", "2")
        self.assertEqual(os.path.getsize(self.partial), 123456)
        self.fetched()
        self.assertEqual(self.server.requests[-1]["range"], "bytes=123456-")
        self.assertEqual(self.server.sent(), len(self.content))

    def test_a_size_that_the_table_does_not_know_is_the_servers(self):
        del self.row["files"][0]["bytes"]
        self.server.plans = [{"drop_after": 100000}, {"drop_after": 50000}]
        self.fetched()
        self.assertEqual([request["range"] for request in self.server.requests],
                         [None, "bytes=100000-", "bytes=150000-"])
        self.assertEqual(self.server.sent(), len(self.content))

    def test_an_interrupted_file_of_unknown_size_goes_on_in_the_next_run(self):
        del self.row["files"][0]["bytes"]
        self.server.plans = [{"drop_after": 123456}] + [{"status": 503}] * 3
        self.refused("returned error: 503", "--retries", "2")
        self.fetched()
        self.assertEqual(self.server.sent(), len(self.content))

    def test_a_wrong_sum_is_an_error_and_is_kept_beside(self):
        self.server.files[FILE] = bytes([self.content[0] ^ 1]) + self.content[1:]
        self.refused(f"is not the published file: its SHA256 is {sha256(self.server.files[FILE])}, expected")
        self.assertTrue(os.path.exists(self.partial.replace(".part", ".wrong")))
        self.server.files[FILE] = self.content
        self.fetched()

    def test_a_full_disk_keeps_what_has_arrived(self):
        # A limit on file sizes stands for the full disk.
        self.refused("cannot write", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000)))
        kept = os.path.getsize(self.partial)
        self.assertTrue(0 < kept <= 200000)
        before = self.server.sent()
        self.fetched()
        self.assertEqual(self.server.sent() - before, len(self.content) - kept)

    def test_not_enough_space_is_known_before(self):
        self.row["files"][0]["bytes"] = 1 << 60
        self.refused(f"of free space for {FILE}")
        self.assertEqual(self.server.requests, [])

    def test_no_network(self):
        self.refused("Failed to connect", "--retries", "1", url="http://127.0.0.1:9")
        self.refused("host.invalid", "--retries", "0", url="http://host.invalid")

    def test_not_found_is_not_tried_again(self):
        self.server.files = {}
        self.refused(f"{self.server.url}/{FILE}: The requested URL returned error: 404")
        self.assertEqual(len(self.server.requests), 1)

    def test_several_files_are_a_folder(self):
        self.row["files"].append({"name": "vocab.txt", "bytes": 5, "sha256": sha256(b"[PAD]")})
        self.row["folder"] = "bert"
        self.server.files["vocab.txt"] = b"[PAD]"
        self.place = os.path.join(self.parent, "bert", FILE)
        run = self.fetched()
        self.assertEqual(sorted(os.listdir(os.path.join(self.parent, "bert"))), [FILE, "vocab.txt"])
        self.assertTrue(run.stdout.splitlines()[-1].endswith("bert'"), run.stdout)
        os.remove(os.path.join(self.parent, "bert", "vocab.txt"))
        self.fetched()
        self.assertTrue(self.server.requests[-1]["path"].endswith("vocab.txt"))


class Sums(WeightsCase):
    def test_a_given_sum_takes_the_place_of_the_tables(self):
        self.row["files"][0]["sha256"] = sha256(b"an older release")
        self.fetched("--sha256", sha256(self.content).upper())
        os.remove(self.place)
        self.refused("is not the published file", "--sha256", sha256(b"no"))

    def test_an_address_needs_a_sum(self):
        address = f"{self.server.url}/some/{FILE}"
        self.refused("no published checksum is known for it. Give the one that its publisher states: --sha256 HEX", name=address)
        self.assertEqual(self.server.requests, [])
        run = self.fetched("--sha256", sha256(self.content), name=address)
        self.assertEqual(run.stdout.splitlines()[-1], f"  build/bin/weft-weights show '{self.place}'")

    def test_what_is_no_sum_and_no_file(self):
        self.refused("--sha256: expected 64 hexadecimal digits, got '1234'", "--sha256", "1234")
        self.refused("expected an address that ends in the name of a file", "--sha256", "0" * 64, name="http://a.example/b/")
        self.refused("--sha256: expected 64 hexadecimal digits, got ''", "--sha256", "")

    def test_unknown_names(self):
        run = subprocess.run([sys.executable, PROGRAM, "dinov2_vits15"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("fetch_weights: error: there are no weights 'dinov2_vits15'. Weights: bert_base_uncased, "
                      "dinov2_vitb14, ", run.stderr)

    def test_bad_tables(self):
        good = dict(self.row)
        for change, expected in (({"files": [{"name": "../a", "sha256": "0" * 64}]}, "a plain name"),
                                 ({"files": [{"name": "a", "sha256": "0"}]}, "sha256"), ({"files": None}, "table.json: ")):
            self.row = {**good, **change}
            self.refused(expected)
        self.row = {key: value for key, value in good.items() if key != "use"}
        self.refused("'use' is missing")


class RealTable(unittest.TestCase):
    def test_every_model_of_the_programs_has_a_row(self):
        with open(os.path.join(made_up.ROOT, "tools", "fetch", "weights.json"), encoding="utf-8") as file:
            table = json.load(file)
        dinov2 = [f"dinov2_vit{size}14{registers}" for size in "sblg" for registers in ("", "_reg")]
        self.assertEqual(sorted(table), sorted([*dinov2, "bert_base_uncased"]))
        sums = [entry["sha256"] for row in table.values() for entry in row["files"]]
        self.assertEqual(len(set(sums)), len(sums))
        for name in dinov2:
            row, size = table[name], name.removesuffix("_reg")
            file = row["files"][0]["name"]
            self.assertEqual(file, size + ("_reg4" if name.endswith("_reg") else "") + "_pretrain.pth")
            self.assertEqual(row["addresses"], [f"https://dl.fbaipublicfiles.com/dinov2/{size}/"])
            self.assertIn(f"--model {name} ", row["use"])
            self.assertTrue(row["sums_from"])


if __name__ == "__main__":
    sys.exit(unittest.main())
