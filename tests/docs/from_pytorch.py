#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""from_pytorch.py ROOT: docs/from_pytorch.md names every op of docs/ops.md, and each of Weft's names on it is in a header. So is each in
docs/pytorch_functions.tsv, and a function that is not there has a reason. Prints what is not, and exits 1."""
import re
import sys
from pathlib import Path

SAME = "the same "  # in the second column: the names of the first are Weft's, too
NOT_WEFT = {"torch", "F", "optim", "nn", "utils", "autograd", "MultiheadAttention", "int", "double", "float"}


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


def listed(root, headers, page):
    """The faults of docs/pytorch_functions.tsv, whose numbers the page gives."""
    path = root / "docs/pytorch_functions.tsv"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")] if path.exists() else []
    patterns = [r"(\w+)\(", r"(?:struct|class) (\w+)", r"(?:OP|COMPARISON|LOGICAL)\((\w+),"]
    callable_names = {name for pattern in patterns for name in re.findall(pattern, headers)}
    faults, seen, there = [], set(), 0
    for line in lines:
        cells = line.split("\t")
        if len(cells) != 3:
            faults.append(f"{path.name}: expected three columns, got '{line}'")
            continue
        name, weft, how = cells
        if name in seen:
            faults.append(f"{path.name}: {name} is there twice")
        seen.add(name)
        there += weft != "-"
        if weft == "-" and not how:
            faults.append(f"{path.name}: {name} needs a reason")
        if weft != "-" and weft not in callable_names:
            faults.append(f"{path.name}: Weft has no {weft} ({name})")
    numbers = f"{there} of {len(lines)}"
    if lines and numbers not in page:
        faults.append(f"the page does not say {numbers}")
    return faults


def main(root):
    page = (root / "docs/from_pytorch.md").read_text(encoding="utf-8")
    headers = "\n".join(path.read_text(encoding="utf-8") for folder in "include core kernels io nn optim data dist train apps".split()
                        for path in (root / folder).rglob("*.h"))
    known = set(re.findall(r"\w+", headers)) | {path.name for path in (root / "apps").iterdir()} | {"weft-run"}
    known |= {name.replace("_", "-") for name in known}
    table = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| ")][2:]
    faults = []
    for cells in table:
        if len(cells) != 2:
            faults.append(f"expected two columns, got {len(cells)}: {' | '.join(cells)}")
            continue
        texts = codes(cells[1]) + (codes(cells[0]) if SAME in cells[1] else [])
        for text in texts:
            text = re.sub(r'"[^"]*"', "", text)
            for name in re.findall(r"[A-Za-z_][\w-]*\w", text):
                if name not in known and name not in NOT_WEFT:
                    faults.append(f"Weft has no {name} (`{text}`)")
    words = set(re.findall(r"\w+", page))
    rows = re.findall(r"^\|.*\| (`.*`) \|$", (root / "docs/ops.md").read_text(encoding="utf-8").split("## Kernels")[0], re.MULTILINE)
    ops = [op for row in rows for op in codes(row)]
    faults += [f"the op {op} is not on the page" for op in ops if op not in words]
    faults += listed(root, headers, page)
    print("\n".join(faults) or f"{len(table)} rows, {len(ops)} ops")
    return 1 if faults or len(table) < 30 or len(ops) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
