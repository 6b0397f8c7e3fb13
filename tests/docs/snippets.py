#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snippets.py ROOT PAGE…: writes a C++ source to stdout in which each ```cpp block of the pages is one test.

A block with a main() is a program; any other block stands in a function that uses namespace weft. What a reader need
not see stands in comments of the page: `<!-- before … -->` above the block, `<!-- after … -->` below it. Compilers
report errors at the page's line.
"""
import re
import sys
from pathlib import Path

BLOCK = re.compile(
    r"(?:<!-- before\n(?P<before>.*?)-->\s*\n)?"
    r"^(?P<indent>[ ]*)```cpp\n(?P<code>.*?)^(?P=indent)```[ ]*\n"
    r"(?:\s*<!-- after\n(?P<after>.*?)-->)?",
    re.DOTALL | re.MULTILINE,
)
INCLUDE = re.compile(r"^\s*#include .*$", re.MULTILINE)


def located(match, group, page):
    """The group's code under a #line that names the page; its includes, which go to the top of the source."""
    code = match.group(group) or ""
    line = match.string.count("\n", 0, match.start(group)) + 1 if code else 1
    return f'#line {line} "{page}"\n' + INCLUDE.sub("", code), [text.strip() for text in INCLUDE.findall(code)]


def test_of(match, page, number):
    name = re.sub(r"\W", "_", str(page.with_suffix(""))) + f"_{number}"
    parts, includes = {}, []
    for group in ("before", "code", "after"):
        parts[group], found = located(match, group, page)
        includes += found
    if re.search(r"\bint main\(", parts["code"]):
        space, body = re.sub(r"\bint main\(.*?\)", "int run()", parts["code"]), "EXPECT_EQ(run(), 0);"
        # main() returns 0 where it ends, of its try block or of itself; another function must say so.
        end = re.search(r"^\}(?= catch)", space, re.MULTILINE) or re.search(r"\}\s*$", space)
        space = space[:end.start()] + "return 0; " + space[end.start():]
    else:
        space, body = "", "".join(parts.values())
    return includes, (
        f"namespace {name} {{\n{space}\n"
        f"TEST(Snippet, {name}) {{\n  using namespace weft;\n  const InFolderOfItsOwn here;\n{body}\n}}\n}}\n"
    )


def source_of(root, pages):
    includes, tests = {"#include <weft/weft.h>", '#include "tests/docs/in_folder.h"'}, []
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        for number, match in enumerate(BLOCK.finditer(text), start=1):
            found, test = test_of(match, page, number)
            includes.update(found)
            tests.append(test)
    angled = sorted(line for line in includes if "<" in line)
    quoted = sorted(line for line in includes if "<" not in line)
    return "\n".join(["#include <gtest/gtest.h>", *angled, *quoted, "", *tests])


if __name__ == "__main__":
    print(source_of(Path(sys.argv[1]), [Path(page) for page in sys.argv[2:]]))
