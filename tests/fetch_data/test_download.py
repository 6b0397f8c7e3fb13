# SPDX-License-Identifier: Apache-2.0
"""Bytes over a network that fails: resuming, trying again, checking."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

from fixture import FetchCase, clean_environment


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


class Download(FetchCase):
    def test_fetches_checks_and_unpacks(self):
        run = self.fetched()
        self.assertEqual(len(self.read("train.bin")), 200 * 3074)
        self.assertIn("size and SHA256 and MD5 are right", run.stdout)
        self.assertEqual(os.listdir(self.parent), ["cifar100"])  # nothing else stays
        self.assertEqual(self.server.sent(), len(self.content))

    def test_a_dropped_connection_goes_on_where_it_stopped(self):
        self.server.plans = [{"drop_after": 100000}, {"drop_after": 50000}]
        run = self.fetched()
        self.assertEqual(self.ranges(), [None, "bytes=100000-", "bytes=150000-"])
        self.assertEqual(self.server.sent(), len(self.content))
        self.assertIn("transfer closed with", run.stderr)

    def test_the_next_run_transfers_only_the_rest(self):
        self.server.plans = [{"drop_after": 123456}] + [{"status": 503}] * 3
        self.refused("returned error: 503", "--retries", "2")
        self.assertEqual(os.path.getsize(self.partial), 123456)
        self.assertEqual(self.server.sent(), 123456)
        self.fetched()
        self.assertEqual(self.server.requests[-1]["range"], "bytes=123456-")
        self.assertEqual(self.server.sent(), len(self.content))

    def test_a_server_without_range_starts_anew(self):
        self.server.plans = [{"drop_after": 100000}, {"no_range": True}]
        run = self.fetched()
        self.assertIn("downloaded again", run.stderr)
        self.assertEqual(self.server.requests[-1]["sent"], len(self.content))

    def test_a_file_that_changed_in_between_starts_anew(self):
        self.server.files[self.archive] = bytes(len(self.content))
        self.server.plans = [{"drop_after": 100000}] + [{"status": 500}] * 9
        self.refused("returned error: 500", "--retries", "0")
        self.server.plans = []
        self.server.files[self.archive] = self.content
        self.fetched()
        self.assertEqual(self.server.requests[-1]["sent"], len(self.content))

    def test_pieces_that_do_not_fit_are_fetched_anew_once(self):
        os.makedirs(os.path.dirname(self.partial))
        with open(self.partial, "wb") as file:
            file.write(bytes(5000))
        run = self.fetched()
        self.assertIn("the pieces do not fit", run.stderr)
        self.assertEqual(self.ranges(), ["bytes=5000-", None])

    def test_a_partial_file_that_is_too_long_starts_anew(self):
        os.makedirs(os.path.dirname(self.partial))
        with open(self.partial, "wb") as file:
            file.write(bytes(len(self.content) + 7))
        self.fetched()
        self.assertEqual(self.server.requests[-1]["sent"], len(self.content))

    def test_waits_double_and_end(self):
        self.server.plans = [{"status": 503}] * 4
        run = self.refused("Gave up after 4 attempts", "--retries", "3")
        waits = [line.rsplit(" ", 2)[1] for line in run.stderr.splitlines() if "trying again in" in line]
        self.assertEqual(waits, ["0.01", "0.02", "0.04"])

    def test_attempts_that_bring_bytes_do_not_count(self):
        self.server.plans = [{"drop_after": 40000}] * 8
        self.fetched("--retries", "1")
        self.assertEqual(self.server.sent(), len(self.content))

    def test_a_silent_server_is_left(self):
        self.server.plans = [{"drop_after": 1000, "hang": 30}]
        run = self.fetched("--timeout", "6")
        self.assertIn("Operation too slow", run.stderr)
        self.assertEqual(self.ranges(), [None, "bytes=1000-"])

    def test_wrong_content_is_an_error_and_is_kept_beside(self):
        wrong = bytes([self.content[0] ^ 1]) + self.content[1:]
        self.server.files[self.archive] = wrong
        run = self.refused("is not the published file: its SHA256 is")
        self.assertIn(".wrong", run.stderr)
        with open(self.partial.replace(".part", ".wrong"), "rb") as file:
            self.assertEqual(file.read(), wrong)
        self.assertFalse(os.path.exists(self.whole))
        self.server.files[self.archive] = self.content
        self.fetched()

    def test_wrong_size_is_an_error(self):
        self.server.files[self.archive] = self.content + b"more"
        self.refused(f"it has {len(self.content) + 4} bytes, expected {len(self.content)}")

    def test_not_found_is_not_tried_again(self):
        self.server.files = {}
        self.refused(f"{self.server.url}/{self.archive}: The requested URL returned error: 404")
        self.assertEqual(len(self.server.requests), 1)

    def test_a_folder_that_others_can_write_is_not_used(self):
        """They may have put a link in the place of a file that is written."""
        folder, outside = os.path.dirname(self.partial), os.path.join(self.folder, "outside")

        def plant(place):
            os.makedirs(place)
            os.symlink(outside, os.path.join(place, "lock"))
            with open(outside, "w", encoding="utf-8") as file:
                file.write("kept")

        def made_for_all():
            plant(folder)
            os.chmod(folder, 0o777)

        def made_by_another():
            plant(folder)
            os.chown(folder, 65534, -1)

        def a_link():
            plant(os.path.join(self.folder, "elsewhere"))
            os.symlink(os.path.join(self.folder, "elsewhere"), folder)

        os.makedirs(self.parent)
        for prepare in (made_for_all, a_link, *([made_by_another] if os.geteuid() == 0 else [])):
            with self.subTest(prepare.__name__):
                prepare()
                self.refused("expected a folder that this user alone can write into")
                with open(outside, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "kept")
                self.assertEqual(os.listdir(folder), ["lock"])
                (os.unlink if os.path.islink(folder) else shutil.rmtree)(folder)

    def test_a_machine_without_curl(self):
        self.refused("needs curl and sha256sum and md5sum, which this machine does not have", environment={"PATH": self.folder})

    def test_an_address_that_is_none(self):
        self.refused("URL using bad/illegal format", url="http://[")
        self.refused("not supported", "--retries", "0", url="gopherx://data.example")

    def test_nobody_listens(self):
        self.refused("Failed to connect", "--retries", "1", url="http://127.0.0.1:9")

    def test_the_proxy_of_the_environment_is_used(self):
        self.fetched(url="http://data.example/sub", environment={"http_proxy": self.server.url})
        self.assertEqual(self.server.requests[0]["path"], f"http://data.example/sub/{self.archive}")
        self.assertEqual(len(self.server.requests), 1)

    def test_a_full_disk_keeps_what_has_arrived(self):
        # A limit on file sizes stands for the full disk.
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
        self.refused("cannot write", preexec_fn=limit)
        kept = os.path.getsize(self.partial)
        self.assertGreater(kept, 0)
        self.assertLessEqual(kept, 200000)
        before = self.server.sent()
        self.fetched()
        self.assertEqual(self.server.requests[-1]["range"], f"bytes={kept}-")
        self.assertEqual(self.server.sent() - before, len(self.content) - kept)

    def test_interrupts_keep_what_has_arrived(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                kept = size_of(self.partial)
                self.server.hangs.clear()
                self.server.plans = [{"drop_after": 70000, "hang": 30}]
                program = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                           env=clean_environment())
                self.assertTrue(self.server.hangs.wait(60))
                deadline = time.monotonic() + 60
                while size_of(self.partial) <= kept and time.monotonic() < deadline:
                    time.sleep(0.01)
                program.send_signal(number)
                _, errors = program.communicate(timeout=60)
                self.assertEqual(program.returncode, 130, errors)
                self.assertIn("interrupted", errors)
                self.assertNotIn("Traceback", errors)
                self.assertFalse(os.path.exists(self.whole))
                self.assertGreater(size_of(self.partial), kept)
        kept = size_of(self.partial)
        self.fetched()
        self.assertEqual(self.server.requests[-1]["range"], f"bytes={kept}-")
        self.assertEqual(self.server.requests[-1]["sent"], len(self.content) - kept)


class SeveralAddresses(FetchCase):
    def test_the_second_address_is_tried(self):
        with open(self.table, encoding="utf-8") as file:
            table = json.load(file)
        table["cifar100"]["addresses"] = [self.server.url + "/gone/", self.server.url + "/there/"]
        self.write_table(table)
        self.server.plans = [{"status": 404}]
        command = [word for word in self.command() if word not in ("--base-url", self.server.url)]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                             env=clean_environment())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Continuing with", run.stderr)
        self.assertEqual([r["path"] for r in self.server.requests],
                         [f"/gone/{self.archive}", f"/there/{self.archive}"])


if __name__ == "__main__":
    sys.exit(unittest.main())
