#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the CUDA tests of GPUVerify, a static verifier, as programs on the emulator and compares the verdicts.

Usage: gpuverify.py GPUVERIFY [--emulate build/bin/weft-emulate] [--check races] [--only PART] [--work DIR] [--markdown FILE]

GPUVERIFY is a checkout of https://github.com/mc-imperial/gpuverify. Each kernel.cu says in its first lines what GPUVerify must
find and the shape of the launch. The script writes a program around some twenty of them at a time (gpuverify.h makes the
arguments), compiles it without optimisation, so that a store which nobody reads remains, and runs each kernel in a process of
its own. A kernel agrees when the emulator reports something (a race, a failed assertion, a fault) exactly where GPUVerify
expects a failure. REASONS says of each disagreement why it is none of the emulator's. Exit code: 0 when none is left."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# Why the verdicts may differ; looked at kernel by kernel. A key is the start of a path.
REASONS = {
    "annotation_tests/test_axiom": "__axiom says for the proof that blockIdx is 16; a launch has all blocks",
    "cooperative_groups/fail/divergence_": "threads that skip the barrier end, and CUDA's barrier waits for those that have not ended",
    "globalarray/fail": "GPUVerify assumes that the host changed the __constant__ array; with its own values no thread writes",
    "memcpy/fail_arrayofstruct": "both lanes of one store write the same value: no matter which of them stays",
    "misc/fail/miscfail2": "about the proof: a loop invariant is missing",
    "misc/fail/miscfail7": "GPUVerify asks whether the argument may be null; it gets a buffer",
    "pointertests/test12": "all threads write the same pointer to shared memory and read it without a barrier: a race that its front end removes",
    "pointertests/test_copy_between_": "all threads write the same value to one address, which GPUVerify calls benign; CUDA does not",
    "warpsync/2d": "relies on a warp in lockstep (--warp-sync), which CUDA does not promise since Volta",
    "warpsync/intragroup_scan": "relies on a warp in lockstep (--warp-sync), which CUDA does not promise since Volta",
    "warpsync/scan_warp": "relies on a warp in lockstep (--warp-sync), which CUDA does not promise since Volta",
    "warpsync/shuffle": "relies on a warp in lockstep (--warp-sync), which CUDA does not promise since Volta",
}

# GPUVerify looks at all values of an argument: a value with the expected failure.
INPUTS = {("function_pointers/basic_assignment_fail", "i"): "0", ("function_pointers/funcptr_to_ptr_add", "i"): "0"}

Kernel = collections.namedtuple("Kernel", "name path fails front_end lines grid block defines code function parameters")


def read_kernel(path, root):
    text = path.read_text(errors="replace")
    head = text.splitlines()
    flags = head[1]
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    found = re.search(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)", code)

    def shape(option):
        numbers = [int(n) for n in re.findall(r"\d+", re.search(option + r"=(\[[^\]]*\]|\d+)", flags)[1])]
        return numbers + [1] * (3 - len(numbers))

    block = shape("blockDim")
    while block[0] * block[1] * block[2] > 1024:  # GPUVerify does not know the limit
        block[block.index(max(block))] //= 2
    comments = [line for line in head[2:8] if line.startswith("//")]
    return Kernel(str(path.parent.relative_to(root)), path, "xfail" in head[0].lower(), bool(re.search("BUGLE|CLANG", head[0])),
                  set(re.findall(r"kernel\\?\.cu:(\d+)", "\n".join(comments))), shape("gridDim"), block,
                  re.findall(r"-D(\w+)=(\w+)", flags), code, found[1] if found else None,
                  [p.strip() for p in found[2].split(",") if p.strip()] if found else [])


def value_of(kernel, parameter):
    """The C++ expression of a scalar or of a function: what __requires or the expected counterexample says, else a usual value."""
    name = re.search(r"(\w+)\s*$", parameter)[1]
    if (kernel.name, name) in INPUTS:
        return INPUTS[kernel.name, name]
    counterexample = re.search(rf"^//{name} = (\d+)", kernel.path.read_text(errors="replace"), re.M)
    wanted = counterexample or re.search(rf"__requires\(\s*{name} == (\w+)\s*[)|]", kernel.code)
    if wanted:
        return wanted[1]
    if re.search(rf"__requires\(\s*{name} == blockDim\.x", kernel.code):
        return str(kernel.block[0])
    return str(kernel.grid[0] * kernel.block[0]) if name in ("size", "w", "n") else "1"


def around(index, kernel):
    """The part of the program that holds one kernel: its file in a namespace of its own, and its case."""
    space = f"kernel_{index}"
    out = [f'#line 1 "{kernel.name}"', f"namespace {space} {{"]
    out += [f"#define {name} {value}" for name, value in kernel.defines]
    out.append(f'#include "{kernel.path}"')
    # Functions that the kernel leaves open, for GPUVerify to think of every value.
    for result, name, args in re.findall(r"^__device__ (\w+) (\w+)\(([^)]*)\);", kernel.code, re.M):
        if not re.search(rf"\b{name}\s*\([^)]*\)\s*{{", kernel.code):
            body = "" if result == "void" else f"return static_cast<{result}>(gpuverify::any_bit(__COUNTER__));"
            out.append(f"__device__ {result} {name}({args}) {{ {body} }}")
    values = []
    for p in kernel.parameters:
        value = "0" if "*" in p else value_of(kernel, p)
        if p.startswith("funcType"):
            if value == "1":
                value = "0"  # no function at all: what GPUVerify warns of
            else:
                out.append(f"__device__ funcType function_{len(values)} = {value};")
                value = f"gpuverify::address(function_{len(values)})"
        values.append(value)
    dims = [f"dim3({','.join(map(str, d))})" for d in (kernel.grid, kernel.block)]
    cooperative = "true" if "this_grid" in kernel.code else "false"
    out.append(f'const gpuverify::Case kCase("{kernel.name}", [] {{ gpuverify::launch({kernel.function}, {dims[0]}, {dims[1]}, '
               f"{cooperative}, {{{', '.join(values)}}}); }});")
    out.append("}")
    macros = {name for name, _ in kernel.defines} | set(re.findall(r"^#define (\w+)", kernel.code, re.M))
    return out + [f"#undef {name}" for name in sorted(macros)]


def build(number, kernels, work, keep):
    """One program of many kernels: its path, its kernels, and for those that nvcc does not accept the first error."""
    source, program, errors = (work / f"batch_{number}{suffix}" for suffix in (".cu", "", ".json"))
    refused = json.loads(errors.read_text()) if keep and errors.exists() else {}
    while True:
        left = [k for k in kernels if k.name not in refused]
        if keep and errors.exists() and program.exists():
            return program, left, refused
        lines = ['#include "gpuverify.h"']
        for index, kernel in enumerate(left):
            lines += around(index, kernel)
        source.write_text("\n".join(lines + ["int main(int argc, char** argv) { return gpuverify::run(argc, argv); }"]) + "\n")
        done = subprocess.run(["nice", "nvcc", "-std=c++17", "-w", "-cudart", "shared", "-lineinfo", "-Xcicc", "-O0", "-gencode",
                               "arch=compute_80,code=compute_80", "-I", str(HERE), str(source), "-o", str(program)],
                              capture_output=True, text=True)
        if done.returncode == 0:
            errors.write_text(json.dumps(refused))
            return program, left, refused
        new = {}
        for line in (done.stderr + done.stdout).splitlines():
            if "error" in line:
                for kernel in left:
                    if str(kernel.path) in line or line.startswith(f"{kernel.name}("):
                        new.setdefault(kernel.name, line.split("error", 1)[1].lstrip(": ")[:120])
        if not new:
            sys.exit(f"{source}: nvcc says\n{done.stderr}{done.stdout}")
        refused.update(new)


def run(kernel, program, emulate, timeout):
    """What the emulator reports: a list of lines, empty when nothing."""
    try:
        done = subprocess.run([*emulate, str(program), kernel.name], capture_output=True, text=True, errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired:
        return ["too slow"]
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said if said or done.returncode == 0 else [f"ended with {done.returncode}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuverify", type=pathlib.Path)
    parser.add_argument("--emulate", default="build/bin/weft-emulate")
    parser.add_argument("--check", default="races")
    parser.add_argument("--only", default="", help="kernels whose path holds this")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("gpuverify-programs"))
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--keep", action="store_true", help="take the programs of an earlier run from --work")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    root = (options.gpuverify / "testsuite/CUDA").resolve()
    kernels = [read_kernel(p, root) for p in sorted(root.rglob("kernel.cu"))]
    kernels = [k for k in kernels if options.only in k.name]
    emulate = [str(pathlib.Path(options.emulate).resolve()), "--check", options.check]

    said, program_of, runnable = {}, {}, []
    for kernel in kernels:
        if kernel.front_end or not kernel.function:
            said[kernel.name] = "GPUVerify's front end refuses it: nothing to run"
        else:
            runnable.append(kernel)
    size = 20
    batches = [runnable[i:i + size] for i in range(0, len(runnable), size)]
    for number, batch in enumerate(batches):
        program, left, refused = build(number, batch, work, options.keep)
        said.update({name: f"nvcc 13 refuses it: {error}" for name, error in refused.items()})
        program_of.update({k.name: program for k in left})
        print(f"{program}: {len(left)} kernels", *(f"\n  {name}: {error}" for name, error in refused.items()), flush=True)
    if options.build_only:
        return 0

    rows, counts, open_ = [], collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        reports = {k.name: pool.submit(run, k, program_of[k.name], emulate, options.timeout) for k in kernels if k.name in program_of}
        for kernel in kernels:
            expected = "fails" if kernel.fails else "passes"
            if kernel.name in said:
                rows.append((kernel.name, expected, "not run", said[kernel.name]))
            else:
                report = reports[kernel.name].result()
                refused = any("unsupported PTX" in line for line in report) or report == ["too slow"]  # no verdict
                agrees = bool(report) == kernel.fails and not refused
                reason = next((text for start, text in REASONS.items() if kernel.name.startswith(start) and not refused), "")
                verdict = "agrees" if agrees else "differs" if reason else "open"
                place = ""
                if agrees and kernel.lines:
                    place = " (at its line)" if any(f"kernel.cu:{n}" in line for n in kernel.lines for line in report) else " (not at its line)"
                open_ += verdict == "open"
                rows.append((kernel.name, expected, verdict + place, reason if not agrees and reason else " ".join(report)[:160]))
            counts[rows[-1][2].split(" (")[0]] += 1
            print("{2:10} {0:58} {1:7} {3}".format(*rows[-1]), flush=True)
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    if options.markdown:
        table = ["| kernel | GPUVerify | emulator | report or reason |", "| --- | --- | --- | --- |"]
        table += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
        options.markdown.write_text("\n".join(table) + "\n")
    return 1 if open_ else 0


if __name__ == "__main__":
    sys.exit(main())
