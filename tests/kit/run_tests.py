# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_node/run_tests.py on programs that pass, fail, crash, hang and break their context: no test is lost, and what the reader makes of it."""
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from gpu_node import logs  # noqa: E402
from gpu_node.run_tests import shares  # noqa: E402
from gpu_node.stages import FAIL, PASS, TIMEOUT, Outcome, StageRun  # noqa: E402
from pretended import googletest  # noqa: E402


class RunTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.log, self.out = self.root / "processes", self.root / "out"

    def tearDown(self):
        self.folder.cleanup()

    def program(self, tests, name="test_a"):
        googletest(self.root / name, tests, self.log)

    def command(self, *words):
        return [sys.executable, "-B", str(TOOLS / "gpu_node/run_tests.py"), str(self.root), str(self.out), "--patience", "6", *words]

    def run_them(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=250)
        self.assertEqual(done.stderr, "")
        self.output = done.stdout
        self.rows = [line.split("\t") for line in (self.out / "tests.tsv").read_text().splitlines()]
        self.failures = (self.out / "failures.txt").read_text()
        return done.returncode

    def words(self):
        return {test: word for _, test, word, _ in self.rows}

    def read(self, status=PASS, what=""):
        outcome = Outcome(status, what=what)
        logs.read_tests(self.out)(StageRun(self.root), outcome)
        return outcome

    def test_tests_that_pass_share_a_process(self):
        self.program({**{f"A.{i}": "pass" for i in range(20)}, "All/B.C/1": "pass", "D.Skipped": "skip", "D.DISABLED_x": "fail"})
        self.assertEqual(self.run_them("--jobs", "1", "test_a"), 0, self.output)
        self.assertEqual(sorted(set(self.words().values())), ["PASS", "SKIP"])
        self.assertEqual((len(self.rows), self.words()["All/B.C/1"], self.words()["D.Skipped"]), (22, "PASS", "SKIP"))
        self.assertEqual(self.log.read_text().splitlines(), ["22  cuda"])
        self.assertEqual(self.failures, "")
        outcome = self.read()
        self.assertEqual((outcome.status, outcome.what), (PASS, "21 of 22 tests passed, 1 skipped"))
        self.assertEqual(outcome.facts, {"total": 22, "passed": 21, "skipped": ["test_a D.Skipped"]})

    def test_what_breaks_costs_no_other_test(self):
        self.program({"A.One": "pass", "A.Crashes": "crash", "A.Two": "pass", "A.Fails": "fail", "A.Three": "pass", "A.Hangs": "hang",
                      "A.Four": "pass", "A.Sticky": "sticky", "A.Five": "pass", "A.Orphan": "orphan", "All/A.Six/0": "fail", "A.Seven": "pass"})
        self.assertEqual(self.run_them("--jobs", "1", "--again", "0", "test_a"), 1)
        self.assertEqual(len(self.rows), 12)
        self.assertEqual({test: word for test, word in self.words().items() if word != "PASS"},
                         {"A.Crashes": "CRASH", "A.Fails": "FAIL", "A.Hangs": "HANG", "A.Sticky": "FAIL", "A.Orphan": "CRASH", "All/A.Six/0": "FAIL"})
        self.assertIn("about to crash\n\nexit status -11", self.failures)
        self.assertIn("==== HANG test_a A.Hangs", self.failures)
        self.assertIn("no answer", self.failures)
        self.assertEqual(len(self.log.read_text().splitlines()), 5)  # a new process after each break, none after a plain failure
        self.assertIn("12 tests in", self.output)

    def test_what_failed_runs_again_kernel_by_kernel(self):
        self.program({"A.Fails": "fail", "A.Hangs": "hang", "A.Crashes": "crash", "A.Flaky": "flaky", "A.Passes": "pass"})
        self.assertEqual(self.run_them("--jobs", "2", "test_a"), 1)
        self.assertEqual(sorted(line for line in self.log.read_text().splitlines() if line.startswith("1 1 ")), ["1 1 cuda"] * 3)
        self.assertIn("again with WEFT_SYNC=1: PASS test_a A.Flaky", self.output)
        self.assertIn("again with WEFT_SYNC=1: CRASH test_a A.Crashes", self.output)
        again = self.failures.split("==== again with WEFT_SYNC=1: FAIL test_a A.Fails")[1]
        self.assertIn("relu failed on cuda:0 (WEFT_SYNC=1)", again.split("====")[0])
        self.assertEqual(self.words()["A.Flaky"], "FAIL")
        self.assertEqual(len(self.rows), 5)
        outcome = self.read()
        self.assertEqual((outcome.status, outcome.what), (FAIL, "1 of 5 tests passed, 2 failed, 1 crashed, 1 hung"))
        self.assertEqual(outcome.facts["crashed"], ["test_a A.Crashes"])
        self.assertEqual(outcome.lines[:4], ["failed: test_a A.Fails", "failed: test_a A.Flaky", "crashed: test_a A.Crashes", "hung: test_a A.Hangs"])
        self.assertIn("relu failed on cuda:0 (WEFT_SYNC=1)", outcome.lines)

    def test_not_more_than_twenty_run_again_nor_longer_than_allowed(self):
        self.program({f"A.{i}": "fail" for i in range(30)})
        self.run_them("--jobs", "4", "test_a")
        self.assertEqual(self.output.count("again with WEFT_SYNC=1: FAIL"), 20)
        self.run_them("--jobs", "4", "--again", "0", "test_a")
        self.assertEqual(self.output.count("again with WEFT_SYNC=1: LATE"), 20)

    def test_the_end_of_the_minutes_is_late_not_wrong(self):
        self.program({"A.Hangs": "hang", "A.Next": "pass"})
        started = time.monotonic()
        self.assertEqual(self.run_them("--patience", "60", "--minutes", "0.02", "test_a"), 1)
        self.assertLess(time.monotonic() - started, 20)
        self.assertEqual(self.words(), {"A.Hangs": "LATE", "A.Next": "LATE"})
        outcome = self.read()
        self.assertEqual((outcome.status, outcome.what), (FAIL, "0 of 2 tests passed, 2 late"))
        self.assertEqual(outcome.lines, ["late: 2 tests, test_a A.Hangs among them"])

    def test_a_runner_that_is_ended_leaves_what_was_done(self):
        self.program({"A.One": "pass", "A.Fails": "fail", "A.Hangs": "hang"})
        runner = subprocess.Popen(self.command("--patience", "60", "--jobs", "1", "test_a"), stdout=subprocess.DEVNULL)
        for _ in range(400):
            if (self.out / "tests.tsv").exists() and "A.Fails" in (self.out / "tests.tsv").read_text():
                break
            time.sleep(0.05)
        runner.terminate()
        runner.wait(30)
        outcome = self.read(TIMEOUT, "stopped after 9 s")
        self.assertEqual((outcome.status, outcome.what), (TIMEOUT, "1 of 2 tests passed, 1 failed, stopped after 9 s"))

    def test_a_process_that_breaks_after_its_last_test(self):
        self.program({"A.Last": "crash at the end"})
        self.program({"B.Last": "hang at the end"}, "test_b")
        self.assertEqual(self.run_them("test_a", "test_b"), 1)
        self.assertEqual(self.words(), {"A.Last": "PASS", "A.Last (the end of its process)": "CRASH",
                                        "B.Last": "PASS", "B.Last (the end of its process)": "HANG"})

    def test_filters_and_programs_that_list_nothing(self):
        self.program({"A.X/cuda": "pass", "A.X/cpu": "fail"})
        self.assertEqual(self.run_them("test_a:*cuda*"), 0, self.output)
        self.assertEqual(list(self.words()), ["A.X/cuda"])
        self.assertEqual(self.run_them("test_a:*cuda*", "test_none", "test_a:*hip*"), 1)
        self.assertIn("test_none lists no tests: ", self.failures)
        self.assertIn("test_a: no test is called *hip*", self.failures)
        outcome = self.read()
        self.assertEqual(outcome.status, FAIL)
        self.assertTrue(any("test_none lists no tests" in line for line in outcome.lines), outcome.lines)

    def test_without_any_test_the_stage_fails(self):
        self.out.mkdir()
        self.assertEqual((self.read().status, self.read().what), (FAIL, "no test ran"))

    def test_shares(self):
        def sizes(count, jobs):
            return [len(share) for share in shares(list(range(count)), jobs)]
        self.assertEqual([sizes(39, 14), sizes(60, 2), sizes(0, 4)], [[4] * 9 + [3], [24, 24, 12], []])


if __name__ == "__main__":
    unittest.main()
