#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands.py BIN ROOT PAGE…: in every command line of the pages that starts one of BIN's programs, or a script of tools/,
each `--flag` is one that its --help names. Prints those that are not, and exits 1."""
import re
import shlex
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^[ ]*```(?:sh|bash)?\n(.*?)^[ ]*```[ ]*$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^ {4,}\S.*\n)+", re.MULTILINE)
SUBCOMMANDS = {"weft-weights": ("show", "convert", "diff"), "weft-lab": ("run", "profile", "compare", "measure", "check", "score", "grade")}
ENDS = {"--", "|", "||", "&", "&&", ";", ">", ">>", "{", "}"}


def flag_of(word):
    return word.split("=")[0].replace("_", "-")


class Programs:
    """What each program's --help names, asked once."""

    def __init__(self, folders):
        self.paths = {path.name: path for folder in folders for path in folder.iterdir() if path.is_file()}
        self.known = {}

    def folders_of(self, name):
        """How pages may name the folder of a program: scripts of tools/ always do."""
        return {"tools"} if self.paths[name].parent.name == "tools" else {"", ".", "bin", "build/bin"}

    def flags(self, *command):
        if command not in self.known:
            words = [self.paths[command[0]], *command[1:], "--help"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            self.known[command] = {flag_of(word) for word in re.findall(r"--?[A-Za-z][\w-]*", done.stdout + done.stderr)}
        return self.known[command]


def rows_of(text):
    """(line number, row) of each row in a page's blocks of commands: those in fences, then the indented ones. Continued rows are joined by "\\0"."""
    for block in list(FENCE.finditer(text)) + list(INDENTED.finditer(FENCE.sub(lambda m: "\n" * m.group().count("\n"), text))):
        code, group = (block.group(1), 1) if block.re is FENCE else (block.group(), 0)
        line = block.string.count("\n", 0, block.start(group)) + 1
        for row in code.replace("\\\n", " \0").split("\n"):
            yield line, row
            line += 1 + row.count("\0")


def command_lines(text):
    """(line number, words) of each command."""
    for line, row in rows_of(text):
        row = re.sub(r"[\[\]\0]", " ", row)
        try:
            yield line, shlex.split(row, comments=True)
        except ValueError:
            yield line, row.split()


def faults(programs, root, page):
    for line, words in command_lines((root / page).read_text(encoding="utf-8")):
        command = []
        for word, before in zip(words, [""] + words):
            folder, _, name = word.rpartition("/")
            if word in ENDS or word.endswith(";"):
                command = []
            elif name in programs.paths and folder in programs.folders_of(name):
                command = [name]
            elif command and command[-1] == before.rpartition("/")[2] and name in SUBCOMMANDS.get(command[-1], ()):
                command.append(name)
            elif command and word.startswith("--") and flag_of(word) not in programs.flags(*command):
                yield f"{page}:{line}: {' '.join(command)} has no {word.split('=')[0]}"


if __name__ == "__main__":
    tree = Path(sys.argv[2])
    all_programs = Programs([Path(sys.argv[1]), tree / "tools"])
    found = [fault for page in sys.argv[3:] for fault in faults(all_programs, tree, Path(page))]
    print("\n".join(found) or f"{len(sys.argv) - 3} pages: every flag of {len(all_programs.known)} programs is there")
    sys.exit(bool(found))
