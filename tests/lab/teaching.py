#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""teaching.py ROOT: what a teacher relies on: the list of exercises, the minutes of the course's index, the speaker's notes, cells of IPython."""
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from lab import exercises  # noqa: E402

COURSE = ROOT / "docs/course"
LOADER = importlib.machinery.SourceFileLoader("course_minutes", str(ROOT / "tools/course_minutes"))
minutes = importlib.util.module_from_spec(importlib.util.spec_from_loader("course_minutes", LOADER))
LOADER.exec_module(minutes)
ROW = re.compile(r"^\| (\d+) \| \[.*?\]\((\S+)\) \| .* \| (\d+) \| ([\d, ]+) \| (\d+) \|$", re.MULTILINE)


class Teaching(unittest.TestCase):
    def test_list(self):
        done = subprocess.run([ROOT / "tools/weft-lab", "check"], capture_output=True, text=True, check=True)
        rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()[1:-1]]
        self.assertEqual(sorted(int(row[1]) for row in rows), list(range(1, len(exercises.all_exercises()) + 1)))
        for unit in range(14):  # places in a unit: 1, 2, 3, …
            places = [row[0].split(".")[1] for row in rows if row[0].split(".")[0] == str(unit)]
            self.assertEqual(places, [str(n + 1) for n in range(len(places))], unit)
            self.assertTrue(places, f"unit {unit} has no exercise")
        self.assertEqual({row[2] for row in rows}, set(map(str, exercises.MINUTES)))

    def test_index_states_the_estimates(self):
        rows = ROW.findall((COURSE / "index.md").read_text(encoding="utf-8"))
        self.assertEqual([row[1] for row in rows], [page.name for page in minutes.units()])
        for unit, page, own, numbers, theirs in rows:
            wanted, total = minutes.exercises_of(COURSE / page)
            self.assertEqual((int(own), [int(number) for number in numbers.split(", ")], int(theirs)), (minutes.minutes_of(COURSE / page), wanted, total), page)
            text = (COURSE / page).read_text(encoding="utf-8")
            named = {int(number) for found in re.findall(r"`tools/weft-lab check (\d+)`((?:, `\d+`)*)", text) for number in re.findall(r"\d+", " ".join(found))}
            self.assertLessEqual(set(wanted), named, f"{page} does not name an exercise of its unit")

    def test_minutes_follow_the_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "1_x.md")
            page.write_text("word " * 1000, encoding="utf-8")
            self.assertEqual(minutes.minutes_of(page), 5)
            page.write_text("word " * 1000 + "\n**Try.** this\n", encoding="utf-8")
            self.assertEqual(minutes.minutes_of(page), 15)  # 5.01 + 5
            page.write_text("$ tools/weft-lab run a.cu\n" * 2, encoding="utf-8")
            self.assertEqual(minutes.minutes_of(page), 5)  # 2 x 2 minutes, 9 s and 6 words

    def test_notes(self):
        notes = json.loads((COURSE / "notes.json").read_text(encoding="utf-8"))
        self.assertEqual(list(notes), [page.stem for page in minutes.units()])
        for unit, found in notes.items():
            self.assertEqual(list(found), ["show", "ask", "mistake"], unit)
            self.assertTrue(all(5 < len(words.split()) < 45 for words in found.values()), unit)
            self.assertIn("?", found["ask"])
        printed = subprocess.run([ROOT / "tools/course_slides", "--notes"], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"4_races\n  Show: {notes['4_races']['show']}\n  Ask: {notes['4_races']['ask']}\n  The usual mistake: ", printed)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / "tools/course_slides", "-o", f"{folder}/slides.html"], capture_output=True, check=True)
            slides = Path(folder, "slides.html").read_text(encoding="utf-8")
        self.assertEqual(slides.count("<aside>"), len(notes))
        self.assertIn("aside { display: none; }", slides)  # shown by the key n alone

    def test_cells_of_ipython(self):
        """The extension, loaded by IPython itself."""
        if not shutil.which("ipython3"):
            self.skipTest("SKIPPED: needs IPython (Debian: python3-ipython, ipython3)")
        with tempfile.TemporaryDirectory() as folder:
            cell = Path(folder, "cell.ipy")
            race = (ROOT / "tests/lab/race.cu").read_text(encoding="utf-8")
            cell.write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r})\n%load_ext lab.notebook\n"
                            f"get_ipython().run_cell_magic('cuda', '--no-time', {race!r})\n", encoding="utf-8")
            done = subprocess.run(["ipython3", "--no-banner", "--colors=NoColor", str(cell)], capture_output=True, text=True, check=False, timeout=600,
                                  env={**os.environ, "IPYTHONDIR": folder})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("data race", done.stdout)
        self.assertIn("source\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
