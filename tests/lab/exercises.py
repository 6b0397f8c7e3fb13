#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exercises.py ROOT NAME: exercise NAME can be solved and notices what is wrong: start.cu fails, solution.cu passes, and each wrong_GOAL.cu
misses that goal and is given its hint first."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, NAME = Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tools"))
from lab import exercises, page  # noqa: E402

FOLDER, SOLUTIONS = ROOT / "exercises" / NAME, ROOT / "exercises/solutions" / NAME
SPEC = json.loads((FOLDER / "check.json").read_text(encoding="utf-8"))
RUN_GOALS = {"results", "race", "uninitialised", "streams"}


def hint_of(goal):
    for wanted in SPEC["goals"]:
        if wanted["what"] == goal:
            return wanted["hint"]
    return {**exercises.USUAL_HINTS, **SPEC.get("hints", {})}[goal]


class Exercise(unittest.TestCase):
    def check(self, file):
        result = exercises.check(FOLDER, file)
        self.assertNotEqual(result.goals[0].key, "compiles", result.goals[0].detail)
        return result, "\n".join(result.lines())

    def test_start_fails(self):
        result, text = self.check(FOLDER / "start.cu")
        self.assertFalse(result.passed, text)
        self.assertIn("hint: ", text)

    def test_solution_passes(self):
        result, text = self.check(SOLUTIONS / "solution.cu")
        self.assertTrue(result.passed, text)
        self.assertTrue(text.endswith(f"score: {len(result.goals)} of {len(result.goals)} - done"))

    def test_wrong_ones_get_their_hint(self):
        files = sorted(SOLUTIONS.glob("wrong_*.cu"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            goal = file.stem.removeprefix("wrong_")
            with self.subTest(goal):
                result, text = self.check(file)
                key = goal if goal in RUN_GOALS | {g["what"] for g in SPEC["goals"]} else "error"
                self.assertIn(key, [g.key for g in result.goals if not g.met], text)
                first = next(line for line in text.splitlines() if "hint: " in line)
                self.assertEqual(first.split("hint: ")[1], hint_of(goal), text)

    def test_describes_itself(self):
        readme = (FOLDER / "README.md").read_text(encoding="utf-8")
        self.assertIn(f"tools/weft-lab check {int(NAME[:2])}\n", readme)
        for goal in SPEC["goals"]:
            self.assertIn(goal["what"], exercises.MEASURES)

    def test_broken_code_is_said_so(self):
        if NAME[:2] != "01":
            return  # the same for all
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "broken.cu")
            broken.write_text("void add(const float*, const float*, float*, int) { nothing(); }\n", encoding="utf-8")
            result = exercises.check(FOLDER, broken)
            self.assertFalse(result.passed)
            self.assertIn("broken.cu(1): error", result.goals[0].detail)
            # A page of a right one.
            exercises.check(FOLDER, SOLUTIONS / "solution.cu", page_of=lambda profile, kernels: self.assertIn(
                "out[i] = a[i] + b[i]", page.page(profile, kernels, "solution")))


if __name__ == "__main__":
    unittest.main()
