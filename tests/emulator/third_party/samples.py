#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs NVIDIA's cuda-samples on the emulator and prints a table: passed, failed, or what a sample needs.

Usage: samples.py SAMPLES [--emulate build/bin/weft-emulate] [--gpu h100] [--only NAME,…] [--work DIR] [--timeout 120] [--markdown FILE]

SAMPLES is a checkout of https://github.com/NVIDIA/cuda-samples. A sample passes when it ends with 0; one that waives itself (exit
code 2, EXIT_WAIVED) is said so. Exit code: 0 when none failed."""
import argparse
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

# A sample's includes and calls show its needs other than CUDA's runtime and driver.
NEEDS = [
    (r"GL/|GLFW|glut|freeglut|helper_gl\.h", "OpenGL"),
    (r"vulkan|GLFW/glfw3", "Vulkan"),
    (r"EGL/|eglext", "EGL"),
    (r"d3d1[0-2]|dxgi", "Direct3D"),
    (r"nvrtc\.h|nvrtc_helper", "NVRTC"),
    (r"nvJitLink", "nvJitLink"),
    (r"cudla|nvmedia", "Tegra"),
    (r"\bnvml\.h", "NVML"),
    (r"npp[is]?\.h|nppi", "NPP"),
    (r"cufftdx|cublasdx|curanddx", "MathDx"),
    (r"cublasXt", "cuBLASXt"),
    (r"cusparse\w*\.h", "cuSPARSE"),
    (r"cusolver(dx|Mg|Sp|Rf)", "cuSOLVER"),
    (r"(?i)nvjpeg", "nvJPEG"),
    (r"nvscibuf|nvsci", "NvSci"),
    (r"FreeImage", "FreeImage"),
    (r"\bmpi\.h", "MPI"),
]


# The emulator's libraries, by what the sources include.
LIBRARIES = {r"cublas\w*\.h": "libcublas.so.13", r"cufft\w*\.h": "libcufft.so.12", r"curand\.h": "libcurand.so.10", r"cusolverDn\.h": "libcusolver.so.12"}


def libraries_of(sources, emulate):
    """nvcc's flags for the emulator's libraries that the sources include."""
    text = "\n".join(source.read_text(errors="replace") for source in sources)
    used = [f"-l:{library}" for pattern, library in LIBRARIES.items() if re.search(rf'#\s*include\s*[<"]{pattern}', text)]
    home = emulate.resolve().parent.parent
    return [flag for folder in (home / "emulator/lib", home / "lib/weft-emulate") for flag in ("-L", str(folder), "-Xlinker", f"-rpath-link={folder}")] + used if used else []


# Smaller problems, where a sample can be asked for them.
ARGUMENTS = {"matrixMul": "-wA=64 -hA=64 -wB=64 -hB=64"}


def needs_of(folder):
    """What the sources of a sample want that the emulator does not have, or None."""
    if folder.parent.name == "7_libNVVM":
        return "NVVM"
    text = ""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cu", ".cpp", ".cuh", ".h", ".hpp"):
            text += path.read_text(errors="replace")
    includes = "\n".join(re.findall(r'#\s*include\s*[<"][^>"]+[>"]', text))
    for pattern, name in NEEDS:
        if re.search(pattern, includes):
            return name
    return None


def build(folder, samples, work, capability, emulate):
    """The program's path, or the compiler's first error. A program that is there already stays."""
    program = work / folder.name
    cmake = (folder / "CMakeLists.txt").read_text()
    listed = re.findall(r"[\w./]+\.(?:cu|cpp|c)\b", " ".join(re.findall(r"add_executable\(([^)]*)\)", cmake)))
    sources = [folder / name for name in dict.fromkeys(listed) if (folder / name).exists()]
    sources = sources or [p for p in sorted(folder.iterdir()) if p.suffix in (".cu", ".cpp")]
    # Kernels that the sample loads at run time: PTX or a fatbin beside the program.
    named = {folder / name.lstrip("/") for name in re.findall(r"([\w./]+\.cu)\b", cmake)}
    loaded = [p for p in sorted(named) if p.exists() and p not in sources] if re.search(r"fatbin|-ptx", cmake) else []
    includes = [samples / "Common", folder, *(folder / name for name in ("inc", "common", "common/inc") if (folder / name).exists())]
    common = ["-std=c++17", "-w", "-O2", "-lineinfo", *(f"-I{p}" for p in includes), "--extended-lambda",
              f"-gencode=arch=compute_{capability},code=compute_{capability}"]
    for path in loaded:
        if (work / f"{path.stem}.fatbin").exists():
            continue
        for form in ("ptx", "fatbin"):
            done = subprocess.run(["nice", "nvcc", *common, f"--{form}", str(path), "-o", str(work / f"{path.stem}64.{form}")],
                                  capture_output=True, text=True)
            if done.returncode:
                return None, first_error(done.stderr)
            (work / f"{path.stem}.{form}").write_bytes((work / f"{path.stem}64.{form}").read_bytes())
    if program.exists():
        return program, None
    done = subprocess.run(["nice", "nvcc", "-cudart", "shared", "-Xcompiler", "-fopenmp", *common, *map(str, sources), "-o", str(program),
                           "-L/usr/local/cuda/lib64/stubs", "-lcuda", *libraries_of(sources, emulate)], capture_output=True, text=True)
    return (program, None) if done.returncode == 0 else (None, first_error(done.stderr + done.stdout))


def first_error(text):
    lines = [line for line in text.splitlines() if "error" in line or "undefined" in line or "fatal" in line]
    return (lines or text.splitlines() or ["?"])[0][:160]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, work, timeout):
    """The verdict and why. The limit is one of processor time: machines are busy."""
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(timeout), int(timeout) + 1)))
    if done.returncode == -signal.SIGXCPU:
        return "too slow", f"more than {timeout:g} s"
    verdict = "passed" if done.returncode == 0 else "waived" if done.returncode == 2 else "failed"
    if "weft-emulate: " in done.stderr and not command[-1].endswith("simpleAssert"):  # some samples ignore errors
        verdict = "failed"
    said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    chosen = [line for line in said if re.search(r"weft-emulate:|error|fail|FAIL|unsupported", line)] or said[-1:]
    return verdict, "" if verdict == "passed" else (chosen or [""])[0][:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=pathlib.Path)
    parser.add_argument("--emulate", default="build/bin/weft-emulate")
    parser.add_argument("--gpu", default="h100")
    parser.add_argument("--capability", default="80")
    parser.add_argument("--only", default="")
    parser.add_argument("--options", default="", help="more options of weft-emulate, separated by spaces")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("samples"))
    parser.add_argument("--timeout", type=float, default=120, help="seconds of processor time")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    only = set(filter(None, options.only.split(",")))
    emulate = [str(pathlib.Path(options.emulate).resolve()), "--gpu", options.gpu, *options.options.split()]

    rows = []
    folders = sorted(p.parent for p in options.samples.glob("Samples/*/*/CMakeLists.txt"))
    for folder in folders:
        if only and folder.name not in only:
            continue
        started = time.time()
        need = needs_of(folder)
        if need:
            rows.append((folder.name, "needs", need, 0))
        else:
            program, error = build(folder, options.samples, work, options.capability, pathlib.Path(options.emulate))
            if not program:
                rows.append((folder.name, "not built", error, 0))
            elif options.build_only:
                rows.append((folder.name, "built", "", time.time() - started))
            else:
                for data in folder.rglob("data/*"):
                    target = work / "data" / data.name
                    target.parent.mkdir(exist_ok=True)
                    if data.is_file() and not target.exists():
                        target.write_bytes(data.read_bytes())
                began = processor_seconds()
                verdict, detail = run([*emulate, str(program), *ARGUMENTS.get(folder.name, "").split()], work, options.timeout)
                rows.append((folder.name, verdict, detail, processor_seconds() - began))
        name, verdict, detail, seconds = rows[-1]
        print(f"{verdict:10} {name:32} {seconds:6.1f} s  {detail}", flush=True)
    counts = {}
    for _, verdict, _, _ in rows:
        counts[verdict] = counts.get(verdict, 0) + 1
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    if options.markdown:
        lines = ["| sample | result | processor seconds | why |", "| --- | --- | --- | --- |"]
        lines += [f"| {name} | {verdict} | {seconds:.1f} | {detail.replace('|', '/')} |" for name, verdict, detail, seconds in rows]
        options.markdown.write_text("\n".join(lines) + "\n")
    return 1 if counts.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
