#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exercises.py ROOT NAME: exercise NAME can be solved and notices what is wrong: start.cu fails, solution.cu passes, and each wrong solution
misses its goal and is given its hint first. A wrong solution is a wrong_GOAL.cu, or a paragraph of wrong.diff: `GOAL: why`, then changes of
solution.cu as a unified diff has them, with @@ between two."""
import json
import os
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

ROOT, NAME = Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tools"))
from lab import exercises, page, program  # noqa: E402

FOLDER, SOLUTIONS = ROOT / "exercises" / NAME, ROOT / "exercises/solutions" / NAME
SPEC = json.loads((FOLDER / "check.json").read_text(encoding="utf-8"))
RUN_GOALS = {"results", "race", "uninitialised", "streams"}


def hint_of(goal):
    for wanted in SPEC["goals"]:
        if wanted["what"] == goal:
            return wanted["hint"]
    return {**exercises.USUAL_HINTS, **SPEC.get("hints", {})}[goal]


def wrong_ones():
    """(goal, file) of each; those of wrong.diff are written to the build folder, always by the same name: the compiler cache knows them by it."""
    folder = Path(os.environ.get("WEFT_BUILD", ROOT / "build"), "tests/lab", NAME)
    folder.mkdir(parents=True, exist_ok=True)
    found = [(file.stem.removeprefix("wrong_"), file) for file in sorted(SOLUTIONS.glob("wrong_*.cu"))]
    if (SOLUTIONS / "wrong.diff").exists():
        for number, part in enumerate((SOLUTIONS / "wrong.diff").read_text(encoding="utf-8").strip().split("\n\n")):
            title, changes = part.split("\n", 1)
            text = (SOLUTIONS / "solution.cu").read_text(encoding="utf-8")
            for change in changes.split("\n@@\n"):
                old, new = ("\n" + "".join(line[1:] + "\n" for line in change.splitlines() if line[0] in kept) for kept in (" -", " +"))
                assert text.count(old) == 1, f"{title}: {text.count(old)} times in solution.cu:{old}"
                text = text.replace(old, new)
            found.append((title.split(":")[0], folder / f"wrong_{number}.cu"))
            if not found[-1][1].exists() or found[-1][1].read_text(encoding="utf-8") != text:  # to the cache a new file is a change
                found[-1][1].write_text(text, encoding="utf-8")
    return found


class Exercise(unittest.TestCase):
    results = {}  # results by text: tests share them

    def check(self, file):
        text = file.read_text(encoding="utf-8")
        result = self.results[text] = self.results.get(text) or exercises.check(FOLDER, file)
        self.assertNotEqual(result.goals[0].key, "compiles", result.goals[0].detail)
        return result, "\n".join(result.lines(2))

    def test_start_fails(self):
        result, text = self.check(FOLDER / "start.cu")
        self.assertFalse(result.passed, text)
        self.assertIn("hint: ", text)

    def test_three_hints(self):
        """A question, the exercise's hint, and what the solution changes."""
        result, _ = self.check(FOLDER / "start.cu")
        said = ["\n".join(result.lines(level)) for level in (1, 2, 3)]
        hints = [next(line.split("hint: ")[1] for line in text.splitlines() if "hint: " in line) for text in said]
        self.assertIn(hints[0], [*exercises.QUESTIONS.values(), exercises.OTHER_QUESTION])
        self.assertNotEqual(hints[0], hints[1])
        self.assertEqual(hints[1], hints[2])
        shown = [line.split(": ", 1)[1] for line in said[2].splitlines() if line.startswith("  solution, ")]
        self.assertEqual([part for line in shown for part in line.split(" … ") if "//" in part or not part], [])
        start, solution = (Counter(line for _, line in exercises.code_of(file)) for file in (FOLDER / "start.cu", SOLUTIONS / "solution.cu"))
        self.assertTrue(any(part in solution - start for line in shown for part in line.split(" … ")), said[2])
        self.assertNotIn("  solution, ", said[1])

    def test_solution_passes(self):
        result, text = self.check(SOLUTIONS / "solution.cu")
        self.assertTrue(result.passed, text)
        self.assertTrue(text.endswith(f"score: {len(result.goals)} of {len(result.goals)} - done"))

    def test_wrong_ones_get_their_hint(self):
        files = wrong_ones()
        self.assertGreaterEqual(len(files), 2)
        for goal, file in files:
            with self.subTest(goal):
                result, text = self.check(file)
                key = goal if goal in RUN_GOALS | {g["what"] for g in SPEC["goals"]} else "error"
                self.assertIn(key, [g.key for g in result.goals if not g.met], text)
                first = next(line for line in text.splitlines() if "hint: " in line)
                self.assertEqual(first.split("hint: ")[1], hint_of(goal), text)

    def test_time_can_be_missed(self):
        """A goal on the time is missed by something whose results are right: the start, or a wrong solution."""
        if not any(goal["what"] == "time" for goal in SPEC["goals"]):
            return
        for file in [FOLDER / "start.cu", *(file for _, file in wrong_ones())]:
            time = next(goal for goal in self.check(file)[0].goals if goal.key == "time")
            self.assertFalse(time.met and file.name == "start.cu")
            if not time.met and not time.detail.startswith("not measured"):
                return
        self.fail("nothing misses the goal on the time")

    def test_describes_itself(self):
        readme = (FOLDER / "README.md").read_text(encoding="utf-8")
        self.assertIn(f"tools/weft-lab check {int(NAME[:2])}\n", readme)
        check = "".join(file.read_text(encoding="utf-8") for file in (FOLDER / "check.cu", FOLDER.parent / "check.h"))
        for goal in SPEC["goals"]:
            self.assertTrue(goal["what"] in exercises.MEASURES.keys() | exercises.OTHERS or f'count("{goal["what"]}"' in check, goal["what"])

    def test_broken_code_is_said_so(self):
        if NAME[:2] != "01":
            return  # the same for all
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "broken.cu")
            broken.write_text("void add(const float*, const float*, float*, int) { nothing(); }\n", encoding="utf-8")
            result = exercises.check(FOLDER, broken)
            self.assertFalse(result.passed)
            self.assertIn("broken.cu(1): error", result.goals[0].detail)
            # A program that never ends, and another that launches nothing.
            limit, exercises.TIME_LIMIT = exercises.TIME_LIMIT, 3
            broken.write_text("void add(const float*, const float*, float*, int) { for (volatile int n = 1; n != 0; n = 1 + n % 7) {} }\n", encoding="utf-8")
            result, text = self.check(broken)
            exercises.TIME_LIMIT = limit
            self.assertIn(f"no end after 3 s\n        hint: {exercises.USUAL_HINTS['endless']}\n", text)
            broken.write_text("""#include <vector>
void add(const float* a, const float* b, float* out, int n) {
  std::vector<float> x(n), y(n);
  cudaMemcpy(x.data(), a, n * 4, cudaMemcpyDefault), cudaMemcpy(y.data(), b, n * 4, cudaMemcpyDefault);
  for (int i = 0; i < n; ++i) x[i] += y[i];
  cudaMemcpy(out, x.data(), n * 4, cudaMemcpyDefault);
}
""", encoding="utf-8")
            result, text = self.check(broken)
            self.assertFalse(result.passed, text)
            self.assertIn("not measured: no kernel was launched", text)
            # A page of a right one.
            exercises.check(FOLDER, SOLUTIONS / "solution.cu", page_of=lambda profile, kernels: self.assertIn(
                "out[i] = a[i] + b[i]", page.page(profile, kernels, "solution")))


if __name__ == "__main__":
    unittest.main()
