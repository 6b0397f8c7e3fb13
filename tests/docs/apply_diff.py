#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apply_diff.py ROOT PAGE OUT: copies the files that the page's ```diff blocks change to OUT, and applies the blocks
there. Line numbers do not matter, the lines around a change do."""
import re
import sys
from pathlib import Path

root, page, out = map(Path, sys.argv[1:])
texts, name = {}, None
blocks = re.findall(r"^```diff\n(.*?)^```", (root / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
for hunk in re.split(r"^@@.*\n", "".join(blocks), flags=re.MULTILINE):
    hunk, _, header = hunk.partition("--- a/")
    if hunk:
        old = "".join(line[1:] for line in hunk.splitlines(True) if line[0] != "+")
        new = "".join(line[1:] for line in hunk.splitlines(True) if line[0] != "-")
        if name is None or texts[name].count(old) != 1:
            sys.exit(f"{page}: these lines do not stand once in {name}. Write the diff anew: git diff\n{old}")
        texts[name] = texts[name].replace(old, new)
    if header:
        name = header.split("\n")[0]
        texts[name] = (root / name).read_text(encoding="utf-8")
if not texts:
    sys.exit(f"{page}: expected a block ```diff")
for name, text in texts.items():
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text, encoding="utf-8")
