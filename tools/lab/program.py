# SPDX-License-Identifier: Apache-2.0
"""Compiles a .cu file and runs it on the emulated GPU."""
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent  # of the tree, or PREFIX/share/weft
# The prefix of installed programs, None in a tree: a foreign bin may be two folders above a tree.
PREFIX = None if (ROOT / "CMakeLists.txt").exists() else ROOT.parent.parent
ARCHITECTURES = {"h100": "90a", "h200": "90a", "gh200": "90a", "a100": "80", "a6000": "86", "l4": "89", "b200": "100", "t4": "75"}
FINDINGS = 86  # exit code of weft-emulate: the program ended, and a check has found something
CHECKS, ORDERS = ("races", "uninitialised", "streams"), ("inorder", "lazy", "random")


class Problem(Exception):
    """An error that the user can fix: one line, exit code 2."""


class Endless(Problem):
    """A program that was stopped since its time was over."""


def printable(text):
    """For a terminal, which would obey control characters in others' names and words; lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def exit_text(code):
    """`exit code 1`, or `ended by SIGSEGV`: of subprocess's return code."""
    return f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"


def checked(checks):
    """`--check`'s words for weft-emulate: "" for none."""
    if checks == "none":
        return ""
    if wrong := [word for word in checks.split(",") if word not in CHECKS]:
        raise Problem(f"--check: expected {', '.join(CHECKS)} with commas between, or none, got '{wrong[0]}'")
    return checks


def emulator_options(gpus, streams):
    """--gpus and --streams for weft-emulate."""
    if not 0 <= gpus <= 64:
        raise Problem(f"--gpus: expected a number from 0 to 64, got {gpus}")
    if streams not in ORDERS and not re.fullmatch(r"starve:\d+", streams):
        raise Problem(f"--streams: expected {', '.join(ORDERS)} or starve:K, got '{streams}'")
    return ["--gpus", str(gpus), "--streams", streams]


def find_tool(name, variable):
    """The path of a program, or None: named by a variable, in PATH, in CUDA's usual folder, where tools/cuda_wheels has put it, or of a pip package."""
    named = os.environ.get(variable)
    if named:
        if shutil.which(named):
            return shutil.which(named)
        raise Problem(f"{variable}={named}: no such program")
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    wheels = sorted(Path(find_emulator()).resolve().parent.parent.glob(f"cuda-wheels/*/bin/{name}"))
    packages = sorted(Path(sysconfig.get_paths()["purelib"]).glob(f"nvidia/*/bin/{name}"))
    return shutil.which(name) or shutil.which(f"{cuda}/bin/{name}") or next(map(str, wheels + packages), None)


def find_nvcc():
    if found := find_tool("nvcc", "NVCC"):
        return found
    cure = "install the CUDA toolkit's parts nvcc and cudart" if PREFIX else "`tools/install_packages nvcc` gets it"
    raise Problem(f"nvcc was not found. Compiling CUDA needs it, though no GPU and no driver: {cure}, or name it: NVCC=/path/to/nvcc")


def find_emulator():
    named = os.environ.get("WEFT_EMULATE")
    installed = PREFIX and PREFIX / "bin/weft-emulate"
    for path in [named] if named else [ROOT / "build/bin/weft-emulate", ROOT / "bin/weft-emulate", installed, shutil.which("weft-emulate")]:
        if path and os.access(path, os.X_OK):
            return str(path)
    raise Problem("weft-emulate was not found: build it (cmake -S . -B build -G Ninja -DWEFT_CUDA=ON && ninja -C build weft-emulate), or name it: "
                  "WEFT_EMULATE=/path/to/weft-emulate")


def beside(emulator, name):
    """A library that lies with the emulator's others (emulator/weft_emulate.cpp, library_folder), or None."""
    folder = Path(emulator).resolve().parent
    return next((file for libraries in ("../emulator/lib", "../lib/weft-emulate") if (file := folder / libraries / name).exists()), None)


class Program:
    """A compiled .cu file, in a folder that goes away with it. Options of weft-emulate go with each of its runs; a run that takes longer than
    `timeout` seconds (None: any time) ends in Endless."""

    def __init__(self, source, gpu="h100", flags=(), options=(), timeout=None):
        if gpu not in ARCHITECTURES:
            raise Problem(f"--gpu: expected one of {' '.join(ARCHITECTURES)}, got '{gpu}'")
        self.source, self.gpu = Path(source).resolve(), gpu
        if not self.source.is_file():
            raise Problem(f"there is no file {source}")
        self.emulator, self.options, self.timeout = find_emulator(), options, timeout
        self.folder = tempfile.TemporaryDirectory(prefix="weft-lab-")
        self.path = Path(self.folder.name) / self.source.stem
        arch = ARCHITECTURES[gpu]
        # PTX alone: ptxas has nothing to do. The runtime is shared, so that the emulator's can replace it. Weft's own wrappers of PTX
        # (kernels/cuda/ptx) are there for who includes them.
        nvcc = [find_nvcc(), "-std=c++20", "-O3", "-lineinfo", "-cudart", "shared", "--no-compress", "-gencode",
                f"arch=compute_{arch},code=compute_{arch}", f"-I{ROOT}", *flags]
        link = [f"{self.path}.o", "-o", str(self.path)]
        if nccl := beside(self.emulator, "libnccl.so.2"):
            link += ["-Xlinker", f"-rpath-link={nccl.parent}", "-Xlinker", "--as-needed", f"-L{nccl.parent}", f"-l:{nccl.name}"]
        cache = [ccache] if (ccache := shutil.which("ccache")) else []
        self.warnings = ""
        for command in ([*cache, *nvcc, "-c", str(self.source), "-o", f"{self.path}.o"], [*nvcc, *link]):
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            self.warnings += done.stderr
            if done.returncode != 0:
                self.folder.cleanup()
                said = (done.stderr or done.stdout).rstrip()
                if "undefined reference to `main'" in said:
                    said += "\nIt has no main(): is it an exercise? tools/weft-lab check NN FILE.cu adds one."
                raise Problem(f"{source} does not compile:\n{said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def command(self, options=(), arguments=()):
        return [self.emulator, "--gpu", self.gpu, *self.options, *options, str(self.path), *arguments]

    def profile(self, arguments=(), checks="races,uninitialised", capture=False):
        """Runs once. Returns (the finished process, the profile or None where the program launched nothing)."""
        file = Path(self.folder.name) / "profile.json"
        file.unlink(missing_ok=True)
        done = run(self, ["--profile", str(file)] + (["--check", checks] if checks else []), arguments, capture)
        profile = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if profile:
            profile["registers"], profile["sass"] = self.assemble()
        return done, profile

    def predict(self, arguments=(), options=()):
        """Runs once more, for weft-emulate's model of time. Returns {(mangled kernel, blocks, warps of a block): [(seconds, {what: seconds that it
        alone would take}, its line of --time-table)]} and the model's error in words; ({}, "") where it has no figures of this GPU. `options`:
        more of weft-emulate's, as --time-waves."""
        table = Path(self.folder.name) / "times"
        table.unlink(missing_ok=True)
        timed = run(self, [*options, "--time-table", str(table)], arguments, capture=True)
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
        error = re.search(r"predicted times on [^\n]*?, not measured\. ([^\n]*) \(docs/", timed.stderr)
        return found, error[1] if error else ""

    def assemble(self):
        """({mangled kernel: (registers, bytes of spill loads and stores)}, {(mangled kernel, file, line): [machine instructions]}): what
        ptxas makes of the PTX, where it and nvdisasm are there."""
        ptxas = find_tool("ptxas", "PTXAS")
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
        nvdisasm = find_tool("nvdisasm", "NVDISASM")
        if not nvdisasm:
            return {}
        done = subprocess.run([nvdisasm, "-c", "-gi", str(cubin)], capture_output=True, text=True, check=False)
        return machine_code_of(done.stdout) if done.returncode == 0 else {}


def run(program, options=(), arguments=(), capture=False):
    """The finished process of one run. Errors: Endless."""
    try:
        return subprocess.run(program.command(options, arguments), capture_output=capture, text=True, errors="replace", timeout=program.timeout, check=False)
    except subprocess.TimeoutExpired as late:
        raise Endless(f"{program.source.name} has not ended after {program.timeout:g} s: a loop, in a kernel or on the host, whose end is never "
                      "reached? (--timeout 0 lets it run)") from late


@functools.cache
def gpu_facts(gpu):
    """The data sheet of an emulated GPU, as a profile has it; a program with one empty kernel tells it."""
    with tempfile.TemporaryDirectory(prefix="weft-lab-") as folder:
        source = Path(folder, "facts.cu")
        source.write_text("__global__ void nothing() {}\nint main() { nothing<<<1, 1>>>(); return cudaDeviceSynchronize(); }\n", encoding="utf-8")
        with Program(source, gpu) as built:
            return built.profile(checks="")[1]["gpu"]


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
