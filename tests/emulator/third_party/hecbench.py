#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs HeCBench's CUDA programs on the emulator and prints a table.

Usage: hecbench.py HECBENCH [--emulate build/bin/weft-emulate] [--every 13] [--offset 0] [--only NAME,…] [--options "--check races"]
                   [--work DIR] [--timeout 60] [--markdown FILE]

HECBENCH is a checkout of https://github.com/zjin-lcf/HeCBench. A program *passes* by its own verification; *ended* has none, and ended with 0.
*needs* names a library that runs on machine code, *no data* a file that HeCBench does not have, *does not build* nvcc's error. Exit code: 0 when
none failed."""
import argparse
import collections
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import samples  # noqa: E402

PASSES = r"\bPASS(ED)?\b|\bpass(ed)?\b|\bSUCCESS(FUL)?\b|[Ss]uccess|verified|Verification OK|\bcorrect\b|Correct"
FAILS = r"\bFAIL(ED|URE)?\b|\bfail(ed)?\b|\bmismatch|Mismatch|\b[Ii]ncorrect|\bwrong\b|Error at"


def build(source, work):
    """The folder where it was built, or None and the compiler's first error. A program that is there already stays."""
    folder = work / source.name
    text = (source / "Makefile").read_text(errors="replace")
    for name in {source.name, *re.findall(r"\.\./([\w.-]+-cuda)", text)}:  # some take headers of their neighbours
        if (source.parent / name).exists() and not (work / name).exists():
            shutil.copytree(source.parent / name, work / name)
    flags = ["ARCH=compute_80", "DEBUG=no", "OPTIMIZE=yes", f"EXTRA_CFLAGS=-w -lineinfo -I{source.parent / 'include'}"]
    done = subprocess.run(["nice", "make", "-C", str(folder), *flags], capture_output=True, text=True, errors="replace")
    if done.returncode:
        return None, samples.first_error(done.stderr + done.stdout), None
    lines = subprocess.run(["make", "-n", "-C", str(folder), *flags, "run"], capture_output=True, text=True).stdout.splitlines()
    found = next((line.strip() for line in lines if re.match(r"\s*\.?/?\.?/?\w[\w./-]*( |$)", line) and "./" in line), None)
    return folder, found or "no `make run`", found


def verdict_of(folder, command, options):
    words = command.split()
    for word in words[1:]:
        if "/" in word and not (folder / word).exists():
            return "no data", word
    limit = int(options.timeout)
    done = subprocess.run([options.emulate, *options.options.split(), *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)))
    if done.returncode == -signal.SIGXCPU:
        return "too slow", f"more than {limit} s of processor time"
    lines = (done.stderr + "\n" + done.stdout).splitlines()
    said = next((line for line in lines if "weft-emulate:" in line), None)
    if done.returncode or said:
        return "failed", (said or next((line for line in lines if re.search(FAILS, line)), f"exit code {done.returncode}"))[:200]
    if fails := [line for line in lines if re.search(FAILS, line)]:
        return "failed", fails[0].strip()[:200]
    return ("passed" if re.search(PASSES, done.stdout) else "ended"), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hecbench", type=pathlib.Path)
    parser.add_argument("--emulate", default="build/bin/weft-emulate")
    parser.add_argument("--every", type=int, default=13)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--options", default="", help="options of weft-emulate, separated by spaces")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("hecbench"))
    parser.add_argument("--timeout", type=float, default=60, help="seconds of processor time")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    options.emulate = str(pathlib.Path(options.emulate).resolve())
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    folders = sorted(path for path in (options.hecbench.resolve() / "src").glob("*-cuda") if (path / "Makefile").exists())
    if not folders:
        sys.exit(f"hecbench.py: no src/*-cuda in {options.hecbench}")
    wanted = set(options.only.split(",")) - {""}
    chosen = [f for f in folders if f.name in wanted or f.name.removesuffix("-cuda") in wanted] if wanted else folders[options.offset::options.every]
    rows = []
    for source in chosen:
        if need := samples.needs_of(source):
            verdict, why = "needs", need
        else:
            folder, why, command = build(source, work)
            if folder is None:
                verdict = "does not build"
            elif command is None:
                verdict = "no data"
            else:
                verdict, why = verdict_of(folder, command, options)
        rows.append((source.name.removesuffix("-cuda"), verdict, why))
        print("\t".join(rows[-1]), flush=True)
    counts = collections.Counter(row[1] for row in rows)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    print(f"{len(rows)} programs of {len(folders)}: {summary}")
    if options.markdown:
        table = "".join(f"| {name} | {verdict} | {why.replace('|', '/')} |\n" for name, verdict, why in rows)
        options.markdown.write_text(f"{len(rows)} of HeCBench's {len(folders)} programs: {summary}\n\n| program | verdict | why |\n| --- | --- | --- |\n{table}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
