#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slides.py ROOT: tools/course_slides makes one file of the course's pages, which loads nothing, lacks nothing of them, and fills no slide too full."""
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
MOST_LINES, MOST_POINTS = 31, 14


def made(*pages):
    """(the slides, the text of each) of the pages, or of all units."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([ROOT / "tools/course_slides", "-o", f"{folder}/slides.html", *map(str, pages)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        text = Path(folder, "slides.html").read_text(encoding="utf-8")
    sections = list(ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n")).iter("section"))
    assert done.stdout.startswith(f"{len(sections)} slides of "), done.stdout
    return sections, ["".join(section.itertext()) for section in sections]


class Slides(unittest.TestCase):
    def test_course(self):
        pages = [ROOT / "docs/course" / name for name in re.findall(r"\((\d+_\w+\.md)\)", (ROOT / "docs/course/index.md").read_text(encoding="utf-8"))]
        self.assertEqual(len(pages), 14)
        sections, texts = made()
        titles = [section.find("h1").text for section in sections if section.find("h1") is not None]
        self.assertEqual(len(titles), len(pages))
        images, whole = 0, " ".join("\n".join(texts).split())
        for page, title in zip(pages, titles):
            text = page.read_text(encoding="utf-8")
            self.assertTrue(title.startswith(page.name.split("_")[0] + ". "), title)
            images += len(re.findall(r"!\[", text))
            for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
                self.assertEqual(" ".join(command.split()) in whole, " -o docs/images/" not in command, command)
            for lead in re.findall(r"^\*\*([^*]+)\.\*\*", text, re.MULTILINE):
                self.assertTrue(lead in whole, lead)
        loaded = [value for section in sections for element in section.iter() for name, value in element.items() if name in ("src", "href")]
        self.assertFalse([value[:80] for value in loaded if not value.startswith(("data:image/", "https://"))])
        self.assertEqual(sum(value.startswith("data:image/") for value in loaded), images)
        self.check_room(sections)

    def check_room(self, sections):
        for section in sections:
            self.assertLessEqual(sum((code.text or "").count("\n") + 1 for code in section.iterfind("pre/code")), MOST_LINES)
            self.assertLessEqual(len(list(section.iter("li"))), MOST_POINTS)

    def test_what_does_not_fit_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            listing = "".join(f"line {n}\n" for n in range(100))
            points = " ".join(f"Point {n} has `code` & [words](elsewhere.md)." for n in range(40))
            page.write_text(f"# A page\n\n**One.** {points}\n\n```\n{listing}```\n\n## Two\n\nBy M. Harris. [Away](https://example.org)\n", encoding="utf-8")
            sections, texts = made(page)
        self.assertEqual([heading.text for section in sections for heading in section.iterfind("h2")][-1], "Two")
        self.check_room(sections)
        codes = [code.text for section in sections for code in section.iterfind("pre/code")]
        self.assertGreater(len(codes), 3)
        self.assertEqual("\n".join(codes) + "\n", listing)
        self.assertEqual(re.findall(r"Point (\d+) has code & words\.", "".join(texts)), [str(n) for n in range(40)])
        self.assertEqual(["".join(point.itertext()) for point in sections[-1].iter("li")], ["By M. Harris.", "Away"])
        self.assertEqual([link.get("href") for link in sections[-1].iter("a")], ["https://example.org"])

    def test_a_missing_page_is_said(self):
        done = subprocess.run([ROOT / "tools/course_slides", "nothing.md"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("course_slides: error: there is no page "), done.stderr)


if __name__ == "__main__":
    unittest.main()
