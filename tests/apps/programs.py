# SPDX-License-Identifier: Apache-2.0
"""The programs of an installation, what their --help says, and how they end.

The list is what installing apps/ leaves, so that no program can be forgotten: each is asked for its help and its mistakes, and a program
that the tables of mistakes.py and dry_runs.py do not know is a failure that says what to add."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FLAG = re.compile(r"^  (?:-\w,)?--([A-Za-z][\w-]*)(?: ([^\s\[]+))? \[([^\]]*)\](?:\s+(.*))?$")
CODES = {"done": 0, "error": 1, "usage": 2}


def first_bytes(path):
    with path.open("rb") as file:
        return file.read(4)


def installed(cmake, build, prefix):
    """The programs below PREFIX by name, after an installation of the apps of BUILD."""
    subprocess.run([cmake, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-P", f"{build}/apps/cmake_install.cmake"], check=True, capture_output=True)
    for name in ("lib", "lib64"):  # libweft.so belongs to the whole build's installation, which would take its time here
        os.symlink(f"{build}/lib", f"{prefix}/{name}")
    files = [path for path in pathlib.Path(prefix).rglob("*") if path.is_file() and os.access(path, os.X_OK)]
    return {path.name: path for path in sorted(files) if first_bytes(path) == b"\x7fELF"}


class Run:
    """A program that has ended, in an empty folder of its own, and what it has left there."""

    def __init__(self, path, arguments, seconds=120):
        self.command = " ".join([path.name, *arguments])
        with tempfile.TemporaryDirectory(prefix="weft_apps_") as folder:
            done = subprocess.run([path, *arguments], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "WEFT_START_TIMEOUT": "20"})
            self.left = sorted(os.listdir(folder))
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"$ {self.command}\n{self.out}{self.err}(exit code {self.code}, left {self.left or 'nothing'})"


class Flag:
    def __init__(self, name, kind, standard, text):
        self.name, self.kind, self.standard, self.text = name, kind or "", standard, text

    def refuses_words(self):
        """Whether a word that is neither a number nor one of a list is wrong for it."""
        return self.kind in ("N", "X", "SECONDS", "S", "R,G,B") or "|" in self.kind


class Help:
    """`PURPOSE.`, `Usage: …`, flags as `  --NAME TYPE [DEFAULT]   text`, examples as `  … PROGRAM …` below `Examples:`."""

    def __init__(self, text):
        lines = text.split("\n")
        self.purpose = lines[0]
        self.usage = next((line for line in lines if line.startswith("Usage: ")), "")
        self.commands = (re.match(r"Usage: \S+ (\w+(?:\|\w+)+)", self.usage) or ["", ""])[1].split("|")
        self.flags, self.undecided = [], []
        for line in lines:
            if line.startswith(("  --", "  -h,")) and "--help" not in line and not line.startswith("  --version "):
                found = FLAG.match(line)
                self.flags += [Flag(*found.groups())] if found else []
                self.undecided += [] if found else [line]
        at = lines.index("Examples:") if "Examples:" in lines else len(lines)
        self.examples = [line.strip() for line in lines[at + 1:] if line.startswith("  ")]
        self.names = {name.replace("_", "-") for name in re.findall(r"--([A-Za-z][\w-]*)", text)}


class Case(unittest.TestCase):
    """Every test goes over all programs: `for name, command in self.commands()`."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weft_prefix_")
        cls.addClassCleanup(folder.cleanup)
        cls.programs = installed(ARGUMENTS[0], ARGUMENTS[1], folder.name)
        cls.helps = {}
        for name, path in cls.programs.items():
            run = Run(path, ["--help"])
            cls.helps[name,] = (run, Help(run.out))
            for command in filter(None, Help(run.out).commands):
                run = Run(path, [command, "--help"])
                cls.helps[name, command] = (run, Help(run.out))
        parts = subprocess.run([cls.programs["weft-info"]], capture_output=True, text=True, check=False).stdout
        cls.parts = set(re.findall(r"^part +found +(\S+)", parts, re.MULTILINE))

    def run_of(self, words, *arguments):
        return Run(self.programs[words[0]], [*words[1:], *arguments])

    def expect_refusal(self, run, code, *texts):
        """Exit code, one line `PROGRAM: error: …` on stderr with all texts, and nothing left behind."""
        lines = run.err.splitlines()
        self.assertEqual(run.code, CODES[code], run)
        self.assertEqual(len(lines), 1, f"expected one line on stderr\n{run}")
        self.assertRegex(lines[0], rf"^{re.escape(run.command.split()[0])}: error: ", run)
        for text in texts:
            self.assertIn(text, lines[0].replace("_", "-") if text.startswith("--") else lines[0], run)
        self.assertEqual(run.left, [], run)


def main():
    global ARGUMENTS
    ARGUMENTS = sys.argv[1:3]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])


ARGUMENTS = []
