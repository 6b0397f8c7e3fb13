# SPDX-License-Identifier: Apache-2.0
"""From archives to a folder that is whole or absent."""
import json
import os
import subprocess
import sys
import tarfile
import unittest

import made_up
from fixture import PROGRAM, FetchCase, clean_environment


class Unpack(FetchCase):
    def serve(self, name, content):
        self.files = {name: content}
        self.server.files = dict(self.files)
        self.write_table(made_up.table_for(self.SET, self.files))

    def expect_nothing_outside(self):
        self.assertFalse(os.path.exists(self.whole))
        found = [os.path.join(parent, name) for parent, _, files in os.walk(self.folder) for name in files]
        self.assertFalse([path for path in found if "evil" in path], found)

    def test_entries_that_point_outside_are_refused(self):
        good = ("cifar-100-binary/train.bin", b"good")
        for name in ("../evil", "cifar-100-binary/../../evil", "/tmp/weft_evil", "cifar-100-binary/a/../../../evil"):
            for pack, archive in ((made_up.tar_gz, "set.tar.gz"), (made_up.zipped, "set.zip")):
                with self.subTest(f"{name} in {archive}"):
                    self.serve(archive, pack([good, (name, b"evil")]))
                    self.refused(f"entry '{name}' points outside the folder")
                    self.expect_nothing_outside()
        self.assertFalse(os.path.exists("/tmp/weft_evil"))

    def test_links_and_devices_are_refused(self):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            with self.subTest(kind):
                entry = tarfile.TarInfo("cifar-100-binary/evil")
                entry.type, entry.linkname = kind, "/etc/passwd"
                self.serve("set.tar.gz", made_up.tar_gz([("cifar-100-binary/train.bin", b"good"), entry]))
                self.refused("entry 'cifar-100-binary/evil' is neither file nor folder")
                self.expect_nothing_outside()

    def test_archives_that_are_none(self):
        for name in ("set.tar.gz", "set.zip", "set.gz"):
            with self.subTest(name):
                self.serve(name, b"this is a web page")
                self.refused(f"{name} cannot be unpacked")
                self.assertFalse(os.path.exists(self.whole))

    def test_an_encrypted_zip(self):
        packed = bytearray(made_up.zipped([("cifar-100-binary/train.bin", b"secret")]))
        for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the general purpose flags of both headers
            packed[packed.index(start) + flags] |= 1
        self.serve("set.zip", bytes(packed))
        self.refused("is encrypted, password required for extraction")
        self.expect_nothing_outside()

    def test_an_archive_cut_short(self):
        self.serve("set.tar.gz", self.content[:len(self.content) // 2])
        self.refused("set.tar.gz cannot be unpacked")

    def test_an_archive_without_the_set(self):
        self.serve("set.tar.gz", made_up.tar_gz([("elsewhere/train.bin", b"x")]))
        self.refused("train.bin is not in set.tar.gz")
        self.assertFalse(os.path.exists(self.whole))

    def test_a_program_killed_while_unpacking_leaves_no_set(self):
        # The process ends, as by SIGKILL, when the second file is to be written.
        driver = """
import os, runpy, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import fetch.unpack as unpack
write, count = unpack.write_file, [0]
def write_file(source, target):
    count[0] += 1
    if count[0] == 2: os._exit(9)
    write(source, target)
unpack.write_file = write_file
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
        run = subprocess.run([sys.executable, "-c", driver, *self.command()[1:]], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=clean_environment(), timeout=60)
        self.assertEqual(run.returncode, 9, run.stderr)
        self.assertFalse(os.path.exists(self.whole))
        self.assertTrue(os.path.exists(os.path.join(self.parent, ".cifar100.download", "unpacked", "train.bin")))
        requests = len(self.server.requests)
        self.fetched()
        self.assertEqual(len(self.server.requests), requests)  # the archive was there already
        self.assertEqual(len(self.read("test.bin")), 40 * 3074)


class Folder(FetchCase):
    def test_a_second_run_does_nothing(self):
        first = self.fetched()
        requests = len(self.server.requests)
        again = self.fetched()
        self.assertEqual(len(self.server.requests), requests)
        self.assertIn("is there, and its files fit its SHA256SUMS: nothing to do", again.stdout)
        self.assertNotIn("warning", again.stderr)
        self.assertEqual(first.stdout.splitlines()[-1], again.stdout.splitlines()[-1])
        sums = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=self.whole)
        self.assertEqual(sums.returncode, 0)

    def test_a_damaged_set_is_named(self):
        self.fetched()
        with open(os.path.join(self.whole, "test.bin"), "r+b") as file:
            file.write(b"\xff\xff")
        self.refused("test.bin is damaged")
        os.remove(os.path.join(self.whole, "test.bin"))
        self.refused("test.bin is missing")

    def test_sums_that_others_could_write_prove_nothing(self):
        self.fetched()
        path = os.path.join(self.whole, "test.bin")
        os.chmod(path, 0o666)
        self.assertIn(f"warning: others can write {path}: that they fit does not show", self.fetched().stderr)
        os.chmod(path, 0o644)
        if os.geteuid() == 0:
            os.chown(path, 65534, -1)
            self.assertIn(f"warning: {path} is user 65534's: that they fit", self.fetched().stderr)

    def test_sums_name_files_of_the_set_alone(self):
        self.fetched()
        sums = os.path.join(self.whole, "SHA256SUMS")
        with open(sums, encoding="utf-8") as file:
            lines = file.readlines()
        os.mkfifo(os.path.join(self.whole, "pipe"))
        for line, expected in (("/dev/zero", "SHA256SUMS names '/dev/zero'"), ("../x", "SHA256SUMS names '../x'"),
                               ("pipe", "pipe is missing"), ("\x1b[2J", "SHA256SUMS names '\\x1b[2J'")):
            with open(sums, "w", encoding="utf-8") as file:
                file.writelines([*lines, f"{64 * '0'}  {line}\n"])
            self.refused(expected)
        with open(sums, "w", encoding="utf-8") as file:
            file.writelines(line for line in lines if not line.endswith("test.bin\n"))
        self.refused("SHA256SUMS does not name test.bin")

    def test_a_folder_of_somebody_else_is_left_alone(self):
        os.makedirs(self.whole)
        with open(os.path.join(self.whole, "mine.txt"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.refused("is not what this program made")
        self.assertEqual(os.listdir(self.whole), ["mine.txt"])

    def test_a_place_that_cannot_be_written(self):
        file = os.path.join(self.folder, "file")
        with open(file, "w", encoding="utf-8"):
            pass
        self.refused("cannot write", parent=os.path.join(file, "sets"))
        self.refused("cannot write /sys/weft_sets", parent="/sys/weft_sets")  # read-only, even for root

    @unittest.skipIf(os.geteuid() == 0, "SKIPPED: root may write into read-only folders")
    def test_a_read_only_folder(self):
        os.makedirs(self.parent, mode=0o555)
        self.refused("Permission denied")

    def test_not_enough_space(self):
        with open(self.table, encoding="utf-8") as file:
            table = json.load(file)
        table["cifar100"]["unpacked_bytes"] = 1 << 60
        self.write_table(table)
        self.refused("of free space for cifar100")
        self.assertEqual(self.server.requests, [])

    def test_two_at_once(self):
        self.server.plans = [{"drop_after": 1000, "hang": 30}]
        first = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=clean_environment())
        self.addCleanup(first.stdout.close)
        self.addCleanup(first.stderr.close)
        self.assertTrue(self.server.hangs.wait(60))
        self.refused("is in use by another fetch_data")
        first.terminate()
        self.assertEqual(first.wait(60), 130)

    def test_unknown_set_and_bad_arguments(self):
        run = subprocess.run([sys.executable, PROGRAM, "cifar11"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no set 'cifar11'. Sets: cifar10, cifar100, fashion-mnist, hymenoptera, mnist, tinyshakespeare", run.stderr)
        run = subprocess.run([sys.executable, PROGRAM, "mnist", "--retries", "-1"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("invalid number of at least 0 value: '-1'", run.stderr)

    def test_bad_tables(self):
        for text, expected in (("{", "table.json: "), ("{\"cifar100\": {}}", "'files' is missing"),
                               ("{\"cifar100\": {\"files\": [{\"name\": \"a\", \"bytes\": 1}]}}", "sha256 or md5")):
            with open(self.table, "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(expected)


if __name__ == "__main__":
    sys.exit(unittest.main())
