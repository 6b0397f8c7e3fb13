#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""transcript.py [--write] [--bin FOLDER] FILE…: runs the commands of transcripts (*.t) and pages (*.md), and says what they print that the file does not.

console.py has the form. The commands of one file run in one bash with pipefail, in a folder that is empty at first. PATH begins with the build's
programs and tools/, WEFT is the tree, and no GPU is visible. helpers.sh has what transcripts call besides.

In a transcript stdout and stderr are one, and lines come in the order of the file. On a page lines come in any order, since ranks print so, stderr
may have more (progress), and a command without a line below it has only to end well.

`needs: zip !ranks shared/DATA` in a transcript names optional parts which the build has or lacks (WEFT_PARTS), or real data (WEFT_SHARED_DATA):
otherwise the file is skipped, with exit code 77. `--write` puts what was printed into the file where it was not expected: read the difference before you commit."""
import argparse
import difflib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from console import commands_of, in_order, matches

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = "WEFT_TEST_GPU", "WEFT_SHARED_DATA", "WEFT_CPU"  # tools/processors sets the last
# Variables of a launcher or a desktop.
LEFT_OUT = re.compile(r"(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|NO_COLOR)$|(SLURM|PMI|PMIX|TORCHELASTIC|PET|XDG)_|OMPI_COMM")


def environment_of(programs):
    """What a command sees of the machine: the same on each, so far as a test can say."""
    kept = {name: value for name, value in os.environ.items()
            if name in KEPT or name.startswith("WEFT_MUTANT") or not (name.startswith("WEFT_") or LEFT_OUT.match(name))}
    return {"OMP_NUM_THREADS": "1", **kept, "PATH": f"{programs}:{ROOT / 'tools'}:{os.environ['PATH']}", "WEFT": str(ROOT), "CUDA_VISIBLE_DEVICES": "",
            "OMP_WAIT_POLICY": "passive", "LC_ALL": "C.UTF-8", "COLUMNS": "150", "PYTHONDONTWRITEBYTECODE": "1"}


def run(commands, programs, seconds, one_stream):
    """(exit code, stdout, stderr) of each command; fewer where the shell ended before the last one or its time was up."""
    mark = f"mark-{secrets.token_hex(8)}"
    script = [f"set -o pipefail; . {HERE}/helpers.sh; cd work"]
    for command in commands:
        script += [command.text, f'printf "\\n{mark} %d\\n" $?; echo {mark} >&2']
    with tempfile.TemporaryDirectory(prefix="weft_transcript_", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "work").mkdir()
        (Path(folder) / "script").write_text("\n".join(script) + "\n", encoding="utf-8")
        with open(f"{folder}/out", "wb") as out, open(f"{folder}/errors", "wb") as errors:
            shell = subprocess.Popen(["bash", "script"], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out if one_stream else errors,
                                     env={**environment_of(programs), "XDG_CACHE_HOME": folder}, start_new_session=True)
            try:
                shell.wait(seconds)
            except subprocess.TimeoutExpired:
                print(f"the time of {seconds} s is up", flush=True)
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)  # background jobs of a command, too
                except ProcessLookupError:
                    pass
                shell.wait()
        printed = Path(f"{folder}/out").read_text(encoding="utf-8", errors="replace")
        # Names of the folder differ from run to run.
        printed = printed.replace(f"{folder}/work", "FOLDER")
        if one_stream:
            printed = printed.replace(f"{mark}\n", "")
        told = re.split(rf"\n{mark} (\d+)\n", printed)
        warned = Path(f"{folder}/errors").read_text(encoding="utf-8", errors="replace").split(f"{mark}\n")
        warned += [""] * len(told)
    return [(int(code), out.splitlines(), err.splitlines()) for out, code, err in zip(told[::2], told[1::2], warned)], told[-1] + warned[len(told) // 2]


def on_page(expected, out, errors):
    """Whether a page says what was printed: each expected line once, in any order, and nothing else on stdout unless `…` allows it."""
    rest = [line for line in out if line.strip()]
    more = list(errors)
    for want in expected:
        if want.strip() in ("", "…"):
            continue
        lines = next((lines for lines in (rest, more) if any(matches(want, line) for line in lines)), None)
        if lines is None:
            return False
        del lines[next(n for n, line in enumerate(lines) if matches(want, line))]
    return not rest or not expected or "…" in expected


def difference(expected, printed):
    """Both as a unified diff, in which a line that an expected one matches stands as that one."""
    wanted = [want for want in expected if want.strip() != "…"]
    named = [next((want for want in wanted if matches(want, line)), line) for line in printed]
    return "\n".join(difflib.unified_diff(expected, named, "expected", "printed", lineterm="", n=20))


def check(path, programs, seconds, write):
    """Runs one file; its number of faults."""
    commands = commands_of(path)
    if not commands:
        print(f"{path}: no command")
        return 1
    page = path.suffix != ".t"
    results, rest = run(commands, programs, seconds, one_stream=not page)
    lines, faults = path.read_text(encoding="utf-8").split("\n"), 0
    for command, (code, out, errors) in reversed(list(zip(commands, results))):
        fits = on_page(command.expected, out, errors) if page else in_order(command.expected, out)
        if fits and code == command.code:
            continue
        faults += 1
        print(f"{command.where}: $ {command.text}\nexit code {code}, expected {command.code}\n{difference(command.expected, out + errors)}\n", flush=True)
        if write and not page:
            lines[slice(*command.at)] = ["  " + line for line in out] + ([f"  [{code}]"] if code else [])
    if write:
        path.write_text("\n".join(lines), encoding="utf-8")
    if len(results) < len(commands):
        print(f"{commands[len(results)].where}: the shell did not come to the end of this command\n{rest[-4000:]}")
        faults += 1
    print(f"{path.name}: {len(commands)} commands, {faults} faults")
    return faults


def missing(path):
    """What a transcript needs and this build or machine lacks, or None."""
    needs = re.findall(r"^needs: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.suffix == ".t" else []
    parts, data = os.environ.get("WEFT_PARTS"), os.environ.get("WEFT_SHARED_DATA", "")
    if path.suffix == ".t" and not shutil.which("jq"):
        return "jq"
    for need in " ".join(needs).split():
        if need.startswith("shared/"):
            if not (Path(data) / need.removeprefix("shared/")).exists():
                return need
        elif (parts is None or need.removeprefix("!") in parts.split()) == need.startswith("!"):
            return need
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="the programs' folder")
    parser.add_argument("--seconds", type=int, default=280, help="the longest time of one file")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    faults = skipped = 0
    for path in arguments.files:
        if need := missing(path):
            print(f"{path.name}: SKIPPED, needs {need}" + (", but this build has it" if need.startswith("!") else ", which this build or machine lacks"))
            skipped += 1
        else:
            faults += check(path, arguments.bin.resolve(), arguments.seconds, arguments.write)
    sys.exit(1 if faults else 77 if skipped == len(arguments.files) else 0)


if __name__ == "__main__":
    main()
