# SPDX-License-Identifier: Apache-2.0
"""Compiles a .cu file and runs it on the emulated GPU."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent  # of the tree, or PREFIX/share/weft
ARCHITECTURES = {"h100": "90a", "h200": "90a", "gh200": "90a", "a100": "80", "a6000": "86", "l4": "89", "b200": "100"}
FINDINGS = 86  # exit code of weft-emulate: the program ended, and a check has found something


class Problem(Exception):
    """An error that the user can fix: one line, exit code 2."""


def find_tool(name, variable, hint, required=True):
    """The path of a program: named by a variable, in PATH, or in CUDA's usual folder. None, or Problem, when it is nowhere."""
    named = os.environ.get(variable)
    if named:
        if shutil.which(named):
            return shutil.which(named)
        raise Problem(f"{variable}={named}: no such program")
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = shutil.which(name) or shutil.which(f"{cuda}/bin/{name}")
    if found or not required:
        return found
    raise Problem(f"{name} was not found{hint}")


def find_nvcc():
    return find_tool("nvcc", "NVCC", ": compiling CUDA needs NVIDIA's compiler, though no GPU and no driver. Install the CUDA toolkit "
                     "(its parts nvcc and cudart are enough; docs/install.md), or name it: NVCC=/path/to/nvcc")


def find_emulator():
    named = os.environ.get("WEFT_EMULATE")
    installed = ROOT.parent.parent / "bin/weft-emulate"
    for path in [named] if named else [ROOT / "build/bin/weft-emulate", ROOT / "bin/weft-emulate", installed, shutil.which("weft-emulate")]:
        if path and os.access(path, os.X_OK):
            return str(path)
    raise Problem("weft-emulate was not found: build it (cmake -S . -B build -G Ninja && ninja -C build weft-emulate), or name it: "
                  "WEFT_EMULATE=/path/to/weft-emulate")


def find_nccl(emulator):
    """The emulator's libnccl, or None: it lies with its other libraries (emulator/weft_emulate.cpp, library_folder)."""
    program = Path(emulator).resolve().parent
    return next((file for folder in ("../emulator/lib", "../lib/weft-emulate") if (file := program / folder / "libnccl.so.2").exists()), None)


class Program:
    """A compiled .cu file, in a folder that goes away with it. Options of weft-emulate go with each of its runs."""

    def __init__(self, source, gpu="h100", flags=(), options=()):
        if gpu not in ARCHITECTURES:
            raise Problem(f"--gpu: expected one of {' '.join(ARCHITECTURES)}, got '{gpu}'")
        self.source, self.gpu = Path(source).resolve(), gpu
        if not self.source.is_file():
            raise Problem(f"there is no file {source}")
        self.emulator, self.options = find_emulator(), options
        self.folder = tempfile.TemporaryDirectory(prefix="weft-lab-")
        self.path = Path(self.folder.name) / self.source.stem
        arch = ARCHITECTURES[gpu]
        # PTX alone: ptxas has nothing to do. The runtime is shared, so that the emulator's can replace it. Weft's own wrappers of PTX
        # (kernels/cuda/ptx*.cuh) are there for who includes them.
        command = [find_nvcc(), "-std=c++20", "-O3", "-lineinfo", "-cudart", "shared", "-gencode", f"arch=compute_{arch},code=compute_{arch}",
                   f"-I{ROOT}", "-DWEFT_DEVICE=cuda", *flags, str(self.source), "-o", str(self.path)]
        if nccl := find_nccl(self.emulator):
            command += ["-Xlinker", f"-rpath-link={nccl.parent}", "-Xlinker", "--as-needed", f"-L{nccl.parent}", f"-l:{nccl.name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.warnings = done.stderr
        if done.returncode != 0:
            self.folder.cleanup()
            raise Problem(f"{source} does not compile:\n{(done.stderr or done.stdout).rstrip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def command(self, options=(), arguments=()):
        return [self.emulator, "--gpu", self.gpu, *self.options, *options, str(self.path), *arguments]

    def profile(self, arguments=(), checks="races,uninitialised", timeout=None, capture=False):
        """Runs once. Returns (the finished process, the profile or None where the program launched nothing)."""
        file = Path(self.folder.name) / "profile.json"
        file.unlink(missing_ok=True)
        options = ["--profile", str(file)] + (["--check", checks] if checks else [])
        done = subprocess.run(self.command(options, arguments), capture_output=capture, text=True, timeout=timeout, check=False)
        profile = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if profile:
            profile["registers"], profile["sass"] = self.assemble()
        return done, profile

    def predict(self, arguments=(), timeout=None):
        """Runs once more, for weft-emulate's model of time. Returns {(mangled kernel, blocks, warps of a block): [(seconds, {what: seconds that it
        alone would take}, its line of --time-table)]} and the model's error in words; ({}, "") where it has no figures of this GPU."""
        table = Path(self.folder.name) / "times"
        table.unlink(missing_ok=True)
        run = subprocess.run(self.command(["--time-table", str(table)], arguments), capture_output=True, text=True, timeout=timeout, check=False)
        if not table.exists():
            return {}, ""
        done = subprocess.run([self.emulator, "--gpu", self.gpu, "--time-of", str(table)], capture_output=True, text=True, check=False)
        found = {}
        for launch, prediction in zip(table.read_text(encoding="utf-8").splitlines(), done.stdout.splitlines()):
            work = dict(field.split("=", 1) for field in launch.split("\t"))
            _, seconds, _, *parts = prediction.split("\t")
            limits = {name: float(value) for name, value in (part.split("=") for part in parts)}
            key = (work["kernel"], int(float(work["blocks"])), int(float(work["warps_per_block"])))
            found.setdefault(key, []).append((float(seconds), limits, work))
        error = re.search(r"[Oo]f others' matrix products[^;]*", run.stderr)
        return found, error[0].strip() if error else ""

    def assemble(self):
        """({mangled kernel: (registers, bytes of spill loads and stores)}, {(mangled kernel, file, line): [machine instructions]}): what
        ptxas makes of the PTX, where it and nvdisasm are there."""
        ptxas = find_tool("ptxas", "PTXAS", "", required=False)
        text = subprocess.run([self.emulator, "--gpu", self.gpu, "--ptx", str(self.path)], capture_output=True, text=True, check=False).stdout
        if not ptxas or not text:
            return {}, {}
        ptx, cubin = Path(self.folder.name) / "kernels.ptx", Path(self.folder.name) / "kernels.cubin"
        ptx.write_text(text, encoding="utf-8")
        done = subprocess.run([ptxas, "-v", "--generate-line-info", f"-arch=sm_{ARCHITECTURES[self.gpu]}", str(ptx), "-o", str(cubin)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {}, {}
        return registers_of(done.stderr + done.stdout), self.disassemble(cubin)

    @staticmethod
    def disassemble(cubin):
        nvdisasm = find_tool("nvdisasm", "NVDISASM", "", required=False)
        if not nvdisasm:
            return {}
        done = subprocess.run([nvdisasm, "-c", "-gi", str(cubin)], capture_output=True, text=True, check=False)
        return machine_code_of(done.stdout) if done.returncode == 0 else {}


def registers_of(text):
    """From the output of ptxas -v."""
    found, kernel, spills = {}, None, 0
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            kernel = match[1]
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills = int(match[1]) + int(match[2])
        elif (match := re.search(r"Used (\d+) registers", line)) and kernel:
            found[kernel] = (int(match[1]), spills)
    return found


def machine_code_of(text):
    """From nvdisasm -c -gi: instructions by kernel, file and line; of inlined code those of the outermost call."""
    found, kernel, place = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            kernel, place = match[1], None
        elif match := re.match(r'\s*//## File .*?"([^"]+)", line (\d+)$', line):
            place = (match[1], int(match[2]))
        elif (match := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?;)", line)) and kernel and place:
            found.setdefault((kernel, *place), []).append(" ".join(match[1].split()))
    return found
