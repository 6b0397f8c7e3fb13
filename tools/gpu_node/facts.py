# SPDX-License-Identifier: Apache-2.0
"""The node's GPU, compilers, and paths of cuDNN, NCCL and compute-sanitizer."""
import glob
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import threading

# `python3 -c` looks for modules in the working folder first, where anybody's may lie.
NOT_HERE = "import sys; sys.path[:] = filter(None, sys.path); "
# Its own note of its versions: to import it takes ten seconds.
TORCH = """import importlib.util, os, runpy
found = importlib.util.find_spec("torch").origin
version = runpy.run_path(os.path.join(os.path.dirname(found), "version.py"))
print(version["__version__"], "CUDA", version.get("cuda"))"""
QUERY = ["name", "driver_version", "compute_cap", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit"]


def output(*words, seconds=20):
    """stdout and stderr of a program, or None when it is missing, fails or hangs."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def first_line(text):
    return text.strip().splitlines()[0] if text and text.strip() else None


def gpus():
    """(list of {field: value}, reason if it is empty)."""
    if not shutil.which("nvidia-smi"):
        return [], "no GPU: nvidia-smi is not on the PATH"
    text = output("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader")
    if text is None:
        return [], "no GPU: nvidia-smi fails or does not answer"
    rows = [dict(zip(QUERY, [cell.strip() for cell in line.split(",")])) for line in text.strip().splitlines() if "," in line]
    return rows, None if rows else "no GPU: nvidia-smi lists none"


def architecture(compute_cap):
    """CMake's name of the GPU's architecture: 8.0 is 80-real; 9.0 is 90a-real, since wgmma needs the `a`."""
    number = compute_cap.replace(".", "")
    return f"{number}a-real" if number == "90" else f"{number}-real"


def site_packages():
    """Folders that python3 searches for packages."""
    text = output("python3", "-c", NOT_HERE + "print('\\n'.join(sys.path))")
    return [line for line in (text or "").splitlines() if line and os.path.isdir(line)]


def first_existing(patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            return path
    return None


def nvcc(sites):
    """The CUDA compiler: CUDACXX, the PATH, /usr/local/cuda*, or a python package."""
    return (os.environ.get("CUDACXX") or shutil.which("nvcc") or
            first_existing(["/usr/local/cuda/bin/nvcc", "/usr/local/cuda-*/bin/nvcc"] +
                           [f"{site}/nvidia/c*/bin/nvcc" for site in sites]))


def sanitizer(compiler):
    beside = [str(pathlib.Path(compiler).resolve().parent / "compute-sanitizer")] if compiler else []
    return shutil.which("compute-sanitizer") or first_existing(
        beside + ["/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
                  "/opt/nvidia/*/compute-sanitizer"])


def library_root(header, library, package, variable, sites):
    """The folder that holds include/HEADER and lib*/LIBRARY.so*: VARIABLE, a python package, or the system; None."""
    roots = [os.environ.get(variable)] + [f"{site}/nvidia/{package}" for site in sites] + ["/usr", "/usr/local", "/usr/local/cuda"]
    for root in roots:
        if root and first_existing([f"{root}/include/{header}", f"{root}/include/*/{header}"]) and first_existing(
                [f"{root}/lib*/{library}.so*", f"{root}/lib/*/{library}.so*"]):
            return root
    return None


def header_version(root, header, names):
    """`9.10.2` from the #defines of a header."""
    path = first_existing([f"{root}/include/{header}", f"{root}/include/*/{header}"])
    text = pathlib.Path(path).read_text(errors="replace") if path else ""
    parts = [re.search(rf"#define\s+{name}\s+(\d+)", text) for name in names]
    return ".".join(part[1] for part in parts) if all(parts) else "unknown version"


def library_folders(sites, compiler):
    """Folders that may hold what programs load, by the libraries that count: python's packages, the toolkit, the driver in a container."""
    packages = {f"{site}/nvidia/{name}/lib": pattern for site in sites
                for name, pattern in (("cu13", "lib*.so.*"), ("cudnn", "libcudnn.so.*"), ("nccl", "libnccl.so.*"))}
    toolkit = pathlib.Path(compiler).resolve().parent.parent if compiler else pathlib.Path("/usr/local/cuda")
    return {**packages, f"{toolkit}/lib64": "lib*.so.*", "/usr/local/nvidia/lib64": "libcuda.so.*"}


NEEDED = re.compile(r"lib(cudart|cublas|cublasLt|cudnn|cufft|cusolver|nccl|nvjpeg|cuda)\.so\.\d+$")


def libraries_not_found(folders):
    """The folders with a library that the loader finds neither by its cache nor on LD_LIBRARY_PATH, nor in a folder before."""
    known = set(re.findall(r"^\s*(\S+) \(", output("/sbin/ldconfig", "-p") or output("ldconfig", "-p") or "", re.M))
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        known.update(os.listdir(folder) if os.path.isdir(folder) else [])
    added = []
    for folder, pattern in folders.items():
        here = {os.path.basename(path) for path in glob.glob(f"{folder}/{pattern}")}
        if any(NEEDED.match(name) and name not in known for name in here):
            added.append(folder)
            known |= here
    return added


class Clocks:
    """nvidia-smi beside the stages, a line a second: clocks sink under load, and no figure says at which one it was taken."""

    def __init__(self):
        self.lines, self.seen = [], 0
        self.output, terminal = os.openpty()  # a program writes whole lines to a terminal, and blocks of many to a file
        self.process = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw,temperature.gpu,utilization.gpu",
                                         "--format=csv,noheader,nounits", "-lms", "1000"], stdout=terminal, stderr=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL)
        os.close(terminal)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        text = ""
        try:
            while data := os.read(self.output, 4096):
                *lines, text = (text + data.decode(errors="replace")).split("\n")
                self.lines += lines
        except OSError:  # how a terminal ends
            pass

    def since_last(self):
        """`SM 1980 to 1455 MHz, median 1700 of 12 samples under load, at most 698 W, 61 C` since the last call; None without load."""
        rows, loaded = [line.split(",") for line in self.lines[self.seen:]], []
        self.seen += len(rows)
        for row in rows:
            try:
                clock, watts, degrees, busy = map(float, row)
            except ValueError:  # `[N/A]`: this GPU does not tell
                continue
            loaded += [(clock, watts, degrees)] if busy >= 50 else []
        if not loaded:
            return None
        clocks, watts, degrees = zip(*loaded)
        return (f"SM {max(clocks):.0f} to {min(clocks):.0f} MHz, median {statistics.median(clocks):.0f} of {len(loaded)} samples under load, "
                f"at most {max(watts):.0f} W, {max(degrees):.0f} C")

    def end(self):
        self.process.terminate()
        self.process.wait()


def gather():
    """All facts as an ordered dict of strings (None: missing), and the paths that the stages use."""
    rows, no_gpu = gpus()
    sites = site_packages()
    compiler = nvcc(sites)
    cublaslt = library_root("cublasLt.h", "libcublasLt", "cu13", "CUBLAS_ROOT", sites)
    cudnn = library_root("cudnn.h", "libcudnn", "cudnn", "CUDNN_ROOT", sites)
    nccl = library_root("nccl.h", "libnccl", "nccl", "NCCL_ROOT", sites)
    torch = output("python3", "-c", NOT_HERE + TORCH)
    release = re.search(r"release (\S+), (\S+)", output(compiler, "--version") or "") if compiler else None
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()) if os.path.exists("/proc/cpuinfo") else None
    facts = {
        "GPU": "; ".join(f"{row['name']}, {row['memory.total']}, compute capability {row['compute_cap']}" for row in rows) or no_gpu,
        "driver": rows[0]["driver_version"] if rows else None,
        "clocks": f"SM {rows[0]['clocks.sm']} of {rows[0]['clocks.max.sm']}, memory {rows[0]['clocks.mem']}, power limit {rows[0]['power.limit']}"
                  if rows else None,
        "CPU": f"{model[1] if model else 'unknown'}, {os.cpu_count()} threads",
        "kernel": first_line(output("uname", "-sr")),
        "glibc": first_line(output("getconf", "GNU_LIBC_VERSION")),
        "nvcc": f"{release[2]} ({compiler})" if release else compiler,
        "g++": first_line(output("g++", "--version")),
        "cmake": first_line(output("cmake", "--version")),
        "ninja": first_line(output("ninja", "--version")),
        "python3": first_line(output("python3", "--version")),
        "PyTorch": first_line(torch),
        "compute-sanitizer": sanitizer(compiler),
        "cuDNN": f"{header_version(cudnn, 'cudnn_version.h', ['CUDNN_MAJOR', 'CUDNN_MINOR', 'CUDNN_PATCHLEVEL'])} ({cudnn})" if cudnn else None,
        "NCCL": f"{header_version(nccl, 'nccl.h', ['NCCL_MAJOR', 'NCCL_MINOR', 'NCCL_PATCH'])} ({nccl})" if nccl else None,
    }
    paths = {"nvcc": compiler, "compute-sanitizer": facts["compute-sanitizer"], "cublaslt": cublaslt, "cudnn": cudnn, "nccl": nccl,
             "libraries": libraries_not_found(library_folders(sites, compiler)), "architecture": architecture(rows[0]["compute_cap"]) if rows else None, "no_gpu": no_gpu, "gpus": len(rows)}
    return facts, paths
