# SPDX-License-Identifier: Apache-2.0
"""The stage runner: failures, limits, needs, and what a stop leaves."""
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu_node.stages import FAIL, PASS, SKIPPED, STOPPED, TIMEOUT, Command, Runner, Stage, first_lines, stretch  # noqa: E402
from processes import ends_soon  # noqa: E402


def shell(name, script, limit=20.0, **more):
    return Stage(name, limit, [Command(name, ["/bin/sh", "-c", script])], **more)


class Stages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.logs = pathlib.Path(self.folder.name)
        self.saved = []

    def tearDown(self):
        self.folder.cleanup()

    def run_stages(self, *stages, total=60.0):
        self.runner = Runner(self.logs, total, lambda results: self.saved.append(dict(results)))
        self.passed = self.runner.run(stages)
        return self.runner.results

    def test_a_failing_stage_leaves_the_others(self):
        results = self.run_stages(shell("one", "echo 'x.cpp:3: error: no such thing'; exit 3"), shell("two", "echo fine"))
        self.assertFalse(self.passed)
        self.assertEqual([results["one"].status, results["two"].status], [FAIL, PASS])
        self.assertEqual(results["one"].what, "one ended with exit code 3")
        self.assertEqual(results["one"].lines, ["x.cpp:3: error: no such thing"])
        self.assertEqual((self.logs / "two.log").read_text(), "fine\n")
        self.assertEqual([len(results) for results in self.saved], [1, 2])  # written after each

    def test_a_stage_over_its_limit_is_ended_with_its_children(self):
        started = time.monotonic()
        results = self.run_stages(shell("hangs", "sleep 300 & echo $!; trap '' TERM; wait; sleep 300", limit=5), shell("next", "true"))
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual([results["hangs"].status, results["next"].status], [TIMEOUT, PASS])
        self.assertIn("stopped after", results["hangs"].what)
        self.assertTrue(ends_soon(int((self.logs / "hangs.log").read_text())))

    def test_children_left_behind_by_a_stage_that_ended_are_ended(self):
        results = self.run_stages(shell("leaves", "sleep 300 & echo $!"))
        self.assertEqual(results["leaves"].status, PASS)
        self.assertTrue(ends_soon(int((self.logs / "leaves.log").read_text())))

    def test_few_stages_share_the_time(self):
        few = [shell("configure", "true", limit=60), shell("build", "true", limit=240)]
        stretch(few, 540)
        self.assertEqual([stage.limit for stage in few], [108, 432])
        stretch(few, 200)  # as many as do not fit keep their limits, and the runner's own
        self.assertEqual([stage.limit for stage in few], [108, 432])

    def test_needs_and_reasons(self):
        results = self.run_stages(shell("base", "exit 1"), shell("above", "true", needs=["base"]),
                                  shell("absent", "true", unless=lambda: "the tool is missing"),
                                  shell("elsewhere", "true", not_here="needs a GPU"))
        self.assertEqual(results["above"].what, "needs stage 'base', which is FAIL")
        self.assertEqual(results["absent"].what, "the tool is missing")
        self.assertEqual({results[name].status for name in ("above", "absent", "elsewhere")}, {SKIPPED})
        self.assertFalse(results["absent"].good())
        self.assertTrue(results["elsewhere"].good())

    def test_only_what_was_never_to_run_here_may_be_skipped(self):
        self.run_stages(shell("one", "true"), shell("gpu", "true", not_here="needs a GPU"))
        self.assertTrue(self.passed)
        self.run_stages(shell("one", "true"), shell("gpu", "true", unless=lambda: "missing"))
        self.assertFalse(self.passed)

    def test_the_total_time_bounds_every_stage(self):
        results = self.run_stages(shell("long", "sleep 300", useful=0.1), shell("late", "true", useful=30), total=5)
        self.assertEqual(results["long"].status, TIMEOUT)
        self.assertEqual(results["late"].what, "0 s of the total time are left, it needs 30 s at least")

    def test_a_program_that_is_not_there_or_dies(self):
        results = self.run_stages(Stage("none", 5, [Command("none", ["/no/such/program"])]), shell("dies", "kill -SEGV $$"))
        self.assertEqual(results["none"].status, FAIL)
        self.assertEqual(results["none"].lines, ["error: cannot start /no/such/program: No such file or directory"])
        self.assertIn("signal SIGSEGV", results["dies"].what)

    def test_programs_of_a_stage_run_at_the_same_time(self):
        meet = "touch {0}; for i in $(seq 200); do test -e {1} && exit 0; sleep 0.05; done; exit 1"
        a, b = self.logs / "a", self.logs / "b"
        results = self.run_stages(Stage("pair", 30, [Command("first", ["/bin/sh", "-c", meet.format(a, b)]),
                                                     Command("second", ["/bin/sh", "-c", meet.format(b, a)])]))
        self.assertEqual(results["pair"].status, PASS)

    def test_a_stop_ends_the_running_stage_and_skips_the_rest(self):
        runner = Runner(self.logs, 60, lambda results: self.saved.append(dict(results)))
        hangs = self.logs / "it_hangs"

        def stop():
            while not hangs.exists():
                time.sleep(0.02)
            runner.stopped_by = "stopped by SIGTERM"

        threading.Thread(target=stop, daemon=True).start()
        passed = runner.run([shell("done", "true"), shell("hangs", f"touch {hangs}; sleep 300"), shell("rest", "true")])
        self.assertFalse(passed)
        self.assertEqual([runner.results[name].status for name in ("done", "hangs", "rest")], [PASS, STOPPED, SKIPPED])
        self.assertEqual(runner.results["rest"].what, "the check was stopped by SIGTERM before it")
        self.assertEqual(len(self.saved[-1]), 3)

    def test_first_lines_begin_at_the_error(self):
        self.assertEqual(first_lines("a\nb\nFAILED: c\nd\n", 2), ["FAILED: c", "d"])
        self.assertEqual(first_lines("a\nb\nc\n", 2), ["b", "c"])


if __name__ == "__main__":
    unittest.main()
