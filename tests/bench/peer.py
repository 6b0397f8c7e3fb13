# SPDX-License-Identifier: Apache-2.0
"""benchmarks/peers/pytorch.py without PyTorch: the order of its cases, and how it divides a short time among them."""
import collections
import pathlib
import re
import sys
import unittest
from unittest import mock

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS / "peers"))
import pytorch  # noqa: E402

Case = collections.namedtuple("Case", "name")
Work = collections.namedtuple("Work", "step before", defaults=[None])


class Peer(unittest.TestCase):
    def test_each_case_has_a_figure_before_its_variants_and_what_compiles_comes_last(self):
        names = ["a_train_f32", "a_train_f32@channels_last", "a_train_f32@compiled", "conv", "conv@channels_last", "add", "vit_train_bf16", "vit_train_bf16@compiled"]
        self.assertEqual([case.name for case in pytorch.in_order([Case(name) for name in names])],
                         ["a_train_f32@channels_last", "vit_train_bf16", "conv@channels_last", "add", "a_train_f32", "conv", "a_train_f32@compiled", "vit_train_bf16@compiled"])

    def test_the_suite_ops_has_the_same_cases_on_both_sides(self):
        ours = re.findall(r'WEFT_OP\("(\w+)"', (BENCHMARKS / "cases/every_op.cpp").read_text())
        theirs = re.findall(r'"(\w+)": lambda i:', (BENCHMARKS / "peers/pytorch_ops.py").read_text())
        self.assertGreater(len(ours), 50)
        self.assertEqual(ours, theirs)

    def steps(self, milliseconds, until=None):
        """(seconds, steps) of a measurement of 0.7 s in 7 repetitions, by a clock that only its steps advance."""
        clock = mock.Mock(now=100.0, steps=0)
        clock.perf_counter = lambda: clock.now

        def step():
            clock.now += milliseconds / 1000
            clock.steps += 1

        with mock.patch.object(pytorch, "time", clock):
            value = pytorch.seconds_per_step(Work(step), 0.7, 7, lambda: None, until and clock.now + until)
        self.assertAlmostEqual(value, milliseconds / 1000)
        return clock.now - 100, clock.steps

    def test_a_slow_step_is_repeated_three_times_where_the_time_is_short(self):
        self.assertEqual(self.steps(60, until=0.05)[1], 5)  # the first, another to measure its time, three
        self.assertGreaterEqual(self.steps(60)[1], 2 + 7 * 2)

    def test_the_time_before_counts(self):
        self.assertLess(self.steps(1, until=0.3)[0], 0.31)
        self.assertGreater(self.steps(1)[0], 0.7)
        self.assertGreater(self.steps(1, until=9)[0], 0.7)


if __name__ == "__main__":
    unittest.main()
