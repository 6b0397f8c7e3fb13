#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures llm.c's GPT-2 on the CPU: the rows gpt2_* of build/bin/bench in f32, one line `case<TAB>value<TAB>unit` each.

  benchmarks/peers/llm_c.py --source DIR --build DIR          DIR of a clone of github.com/karpathy/llm.c, and one to build in
  benchmarks/peers/llm_c.py … --losses build/bin/bench_gpt_losses     its losses beside Weft's from the same weights

A case is there for each compiler with OpenMP, NAME@gcc and NAME@clang, with the flags of llm.c's Makefile; the better one counts. The other flags
are those of bench. A step at the full size takes many seconds on two cores.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-Ofast", "-march=native", "-fopenmp", "-DOMP", "-w"]
# Sequences, tokens, positions, layers, heads, width: those of benchmarks/cases/transformers.cpp.
FULL, TINY = (4, 256, 1024, 12, 12, 768), (2, 8, 64, 4, 4, 128)


def program(args, compiler):
    """The built program; none where the compiler is missing or has no OpenMP."""
    target = args.build / f"llm_c_{compiler}"
    sources = [HERE / "llm_c/main.c", args.source / "train_gpt2.c"]
    if target.exists() and all(target.stat().st_mtime > source.stat().st_mtime for source in sources):
        return target
    args.build.mkdir(parents=True, exist_ok=True)
    command = [compiler, *FLAGS, "-I", args.source, sources[0], "-o", target, "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    if done.returncode != 0 and args.verbose:
        print(done.stderr, file=sys.stderr)
    return target if done.returncode == 0 else None


def numbers(command, word):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"llm_c.py: {command[0]} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return [float(value) for value in re.findall(rf"^{word} (\S+)$", done.stdout, re.MULTILINE)]


def compare_losses(args, built):
    """Prints the losses of both; an error where they are apart."""
    size = ("gpt_tiny", 2, 8) if args.tiny else ("gpt2", 4, 64)
    with tempfile.TemporaryDirectory() as folder:
        ours = numbers([args.losses, f"{folder}/weights.bin", *size, args.steps], "loss")
        theirs = {name: numbers([path, "losses", f"{folder}/weights.bin", *size[1:], args.steps], "loss") for name, path in built.items()}
    print("step\tweft\t" + "\t".join(theirs))
    worst = 0.0
    for step, loss in enumerate(ours):
        print("\t".join(f"{value:.7f}" for value in (step, loss, *(losses[step] for losses in theirs.values()))))
        worst = max([worst, *(abs(losses[step] - loss) / loss for losses in theirs.values())])
    print(f"largest relative difference {worst:.1e}")
    if len(ours) != args.steps or worst > 1e-5:
        sys.exit("llm_c.py: the losses are not the same")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=os.environ.get("LLM_C"), help="a clone of llm.c (default: $LLM_C)")
    parser.add_argument("--build", type=Path, required=True, help="where its program is built")
    parser.add_argument("--suite", choices=["cpu"], default="cpu", help="which cases")
    parser.add_argument("--filter", default="", help="only cases whose names match this regular expression")
    parser.add_argument("--seconds", type=float, default=2, help="timed seconds of each case; a repetition is one step at least")
    parser.add_argument("--repetitions", type=int, default=7, help="each value is the median of so many")
    parser.add_argument("--list", action="store_true", help="print the names and units of the cases")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: whether all cases run, not how fast")
    parser.add_argument("--losses", type=Path, metavar="PROGRAM", help="compare with the losses of build/bin/bench_gpt_losses instead")
    parser.add_argument("--steps", type=int, default=4, help="of --losses")
    parser.add_argument("--verbose", action="store_true", help="print what a compiler says that cannot build it")
    args = parser.parse_args()
    if args.source is None or not (args.source / "train_gpt2.c").exists():
        parser.error("--source, or the variable LLM_C: expected a clone of github.com/karpathy/llm.c, got " + str(args.source))
    if args.repetitions < 1 or args.seconds < 0 or args.steps < 1:
        parser.error("--repetitions, --steps: expected at least 1; --seconds: at least 0")
    return args


def main():
    args = arguments()
    built = {compiler: path for compiler in ("gcc", "clang") if (path := program(args, compiler))}
    if not built:
        sys.exit("llm_c.py: neither gcc nor clang built llm.c with OpenMP; --verbose says why")
    if args.losses:
        compare_losses(args, built)
        return
    found = False
    for kind in ("train", "infer"):
        for compiler, path in built.items():
            name = f"gpt2_{kind}_f32@{compiler}"
            if not re.search(args.filter, name):
                continue
            found = True
            if args.list:
                print(f"{name}\tsequences/s")
                continue
            size = TINY if args.tiny else FULL
            seconds = numbers([path, kind, *size, args.seconds, args.repetitions], "seconds")[0]
            print(f"{name}\t{size[0] / seconds:.6g}\tsequences/s", flush=True)
    if not found:
        sys.exit(f"llm_c.py: no case matches '{args.filter}'. --list prints them all")


if __name__ == "__main__":
    main()
