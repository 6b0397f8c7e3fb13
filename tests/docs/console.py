# SPDX-License-Identifier: Apache-2.0
"""Commands of pages and what they print: ```console blocks, whose lines that begin with `$ ` are commands. In an expected line `…` at the end stands
for the rest of the line, a number after `~` may be a quarter off, and the width of spaces does not matter."""
import re

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands_of(page):
    """(line, command, expected lines) of each command of a page."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        for number, line in enumerate(block[1].splitlines(), start=first):
            if line.startswith("$ "):
                current = (f"{page.name}:{number}", line[2:], [])
                yield current
            else:
                current[2].append(line)


def matches(expected, line):
    expected, line = " ".join(expected.split()), " ".join(line.split())
    parts = re.split(r"~([\d.]*\d)", expected.removesuffix("…"))
    pattern = r"([\d.]*\d)".join(re.escape(text) for text in parts[::2])
    found = re.match(pattern, line) if expected.endswith("…") else re.fullmatch(pattern, line)
    return bool(found) and all(abs(float(got) - float(want)) <= float(want) / 4 for got, want in zip(found.groups(), parts[1::2]))
