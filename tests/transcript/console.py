# SPDX-License-Identifier: Apache-2.0
"""Commands, and what they print: in transcripts (`*.t`, indented by two spaces) and in the ```console blocks of pages.

A line that begins with `$ ` is a command, `> ` continues it, and `[N]` at the end is its exit code, where that is not 0. In an expected line `…`
stands for any text, a number after `~` may be a quarter off, and the width of spaces does not matter. A line that ends in ` (re)` is a regular
expression. `…` alone stands for any lines."""
import re
from typing import NamedTuple

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^  .*\n)+", re.MULTILINE)


class Command(NamedTuple):
    where: str  # FILE:LINE
    text: str
    expected: list
    code: int = 0
    at: tuple = (0, 0)  # the expected lines in the file: first, end


def commands_of(page):
    """The commands of a page or a transcript."""
    text, found = page.read_text(encoding="utf-8"), []
    indent = 2 if page.suffix == ".t" else 0
    for block in (INDENTED if indent else BLOCK).finditer(text):
        body = block[0] if indent else block[1]
        first = text.count("\n", 0, block.start() if indent else block.start(1))
        for number, line in enumerate((line[indent:] for line in body.splitlines()), start=first):
            if line.startswith("$ "):
                found.append(Command(f"{page.name}:{number + 1}", line[2:], [], 0, (number + 1, number + 1)))
                continue
            last = found[-1]
            if line.startswith("> ") and not last.expected:
                found[-1] = last._replace(text=f"{last.text}\n{line[2:]}", at=(number + 1, number + 1))
            elif code := re.fullmatch(r"\[(\d+)\]", line):
                found[-1] = last._replace(code=int(code[1]), at=(last.at[0], number + 1))
            else:
                last.expected.append(line)
                found[-1] = last._replace(at=(last.at[0], number + 1))
    return found


def matches(expected, line):
    """Whether a printed line is the expected one."""
    if expected.endswith(" (re)"):
        return re.fullmatch(expected.removesuffix(" (re)"), line) is not None
    expected, line = " ".join(expected.split()), " ".join(line.split())
    if expected == line:
        return True
    parts = re.split(r"~(-?[\d.]*\d)", expected)
    pattern = r"(-?[\d.]*\d)".join(".*".join(map(re.escape, text.split("…"))) for text in parts[::2])
    found = re.fullmatch(pattern, line)
    return bool(found) and all(abs(float(got) - float(want)) <= abs(float(want)) / 4 for got, want in zip(found.groups(), parts[1::2]))


def in_order(expected, printed):
    """Whether the printed lines are the expected ones: the same lines in the same order."""
    reach = {0}  # numbers of printed lines that the expected lines so far can account for
    for want in expected:
        if want.strip() == "…":
            reach = set(range(min(reach, default=1), len(printed) + 1)) if reach else reach
        else:
            reach = {n + 1 for n in reach if n < len(printed) and matches(want, printed[n])}
    return len(printed) in reach
