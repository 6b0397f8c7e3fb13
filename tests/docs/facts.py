#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""facts.py ROOT PAGE…: each number before a marker <!-- fact:NAME --> is the value of NAME in docs/facts.tsv, and each fact is
quoted by a page. Prints each difference, and exits 1."""
import re
import sys
from pathlib import Path

MARKER = re.compile(r"([^\n]*?)<!-- fact:(\w+) -->")


def faults(root, pages):
    rows = [line.split("\t") for line in (root / "docs/facts.tsv").read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")]
    facts = {row[0]: row[1] for row in rows}
    if len(facts) != len(rows) or any(len(row) != 4 for row in rows):
        yield "docs/facts.tsv: expected rows of name, value, what, measured, each name once"
    quoted = set()
    for page in pages:
        for number, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), 1):
            for before, name in MARKER.findall(line):
                quoted.add(name)
                if name not in facts:
                    yield f"{page}:{number}: docs/facts.tsv has no fact {name}"
                elif not re.search(rf"(?<![\w.,]){re.escape(facts[name])}$", before):
                    yield f"{page}:{number}: expected {facts[name]} ({name}), got '{before[-20:].strip()}'"
    yield from (f"docs/facts.tsv: no page quotes {name}" for name in facts if name not in quoted)


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]), sys.argv[2:]))
    print("\n".join(found) or f"{len(sys.argv) - 2} pages: every fact agrees")
    sys.exit(bool(found))
