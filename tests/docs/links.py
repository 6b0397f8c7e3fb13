#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""links.py ROOT PAGE…: every link of a page to a file of the repository, or to a heading, leads somewhere; every path in
backquotes that looks like one of the repository's is there. Prints what does not, and exits 1."""
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$", re.DOTALL | re.MULTILINE)
PATH = re.compile(
    r"`((?:apps|benchmarks|cmake|core|data|dist|docs|emulator|include|io|kernels|nn|optim|tests|tools|train)/[\w./-]*\w/?)`"
)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(text):
    """How a heading is linked to: lower case, no punctuation, hyphens for spaces."""
    names = (re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r" ", "-", name) for name in names}


def faults(root, page):
    text = (root / page).read_text(encoding="utf-8")
    prose = FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in LINK.finditer(prose):
        target, _, anchor = match.group(1).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        line = prose.count("\n", 0, match.start()) + 1
        path = (root / page).parent / target if target else root / page
        if not path.exists():
            yield f"{page}:{line}: there is no {target}"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"{page}:{line}: {target or page} has no heading '#{anchor}'"
    for match in PATH.finditer(prose):
        name, here = match.group(1), (root / page).parent
        if not any((folder / name).exists() or list(folder.glob(name + ".*")) for folder in (root, here)):
            yield f"{page}:{prose.count(chr(10), 0, match.start()) + 1}: there is no {name}"


if __name__ == "__main__":
    found = [fault for page in sys.argv[2:] for fault in faults(Path(sys.argv[1]), Path(page))]
    print("\n".join(found) or f"{len(sys.argv) - 2} pages: every link leads somewhere")
    sys.exit(bool(found))
