# SPDX-License-Identifier: Apache-2.0
"""Kernels of a program timed on this machine's GPU, beside the prediction of weft-emulate's model.

CUDA events time each launch (launch_timer.cpp, preloaded). Nsight Compute adds its own time and counts where `ncu` is installed."""
import csv
import ctypes
import io
import math
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import counts, program

NAMES = {"GH200": "gh200", "H200": "h200", "H100": "h100", "A100": "a100", "A6000": "a6000", "B200": "b200", "L4": "l4", "T4": "t4"}
NCU = {"gpu__time_duration.sum": "ncu µs", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "load",
       "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": "store",
       "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "conflicts"}
SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0, "second": 1.0}


class NoGpu(Exception):
    """This machine has no GPU: one line, exit code 3."""


@dataclass
class Row:
    """A kernel with one shape of launch. Times in seconds; `counted` and `profiled`: by the keys of NCU's values, or empty."""
    name: str
    launch: str
    launches: int
    measured: float     # median of all launches and runs
    predicted: float    # None: the model has no figures of this GPU
    counted: dict
    profiled: dict


def device():
    """The name of the first GPU. Errors: NoGpu."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoGpu("this machine has no NVIDIA driver (libcuda.so.1); `profile` predicts times without a GPU") from None
    count, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        raise NoGpu("the driver finds no GPU on this machine; `profile` predicts times without one")
    driver.cuDeviceGetName(name, len(name), 0)
    return name.value.decode()


def model_of(name):
    """weft-emulate's --gpu for a device's name. Errors: Problem."""
    for words, key in NAMES.items():
        if words in name.replace("-", " ").split():
            return key
    raise program.Problem(f"measure: the emulator has no model of '{name}': name the nearest one by --gpu, {' '.join(program.ARCHITECTURES)}")


def environment(folder):
    """Variables for a run on the GPU with the timer; the toolkit's runtime is found after the system's."""
    home = Path(program.find_nvcc()).resolve().parent.parent
    libraries = [str(path) for path in (home / "lib64", home / "lib", home / "targets/x86_64-linux/lib") if path.is_dir()]
    timer = Path(folder, "launch_timer.so")
    if not timer.exists():
        source = Path(__file__).resolve().parent / "launch_timer.cpp"
        done = subprocess.run([program.find_nvcc(), "-std=c++20", "-O2", "-shared", "-cudart", "none", "-Xcompiler", "-fPIC", str(source), "-o", str(timer),
                               "-ldl"], capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise program.Problem(f"measure: the timer does not compile:\n{done.stderr.rstrip()}")
    before = [os.environ[name] for name in ("LD_LIBRARY_PATH",) if os.environ.get(name)]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(before + libraries), "CUDA_MODULE_LOADING": "EAGER",
            "LD_PRELOAD": ":".join([str(timer), *filter(None, [os.environ.get("LD_PRELOAD")])])}


def times(built, arguments, runs):
    """{(mangled kernel, blocks, warps of a block): [seconds of each launch in each of `runs` runs]}, and the launches of a run by the same key."""
    variables, found, launches = environment(built.folder.name), {}, {}
    for number in range(runs):
        file = Path(built.folder.name, f"times{number}")
        try:
            done = subprocess.run([str(built.path), *arguments], env={**variables, "WEFT_LAB_TIMES": str(file)}, capture_output=True, text=True,
                                  errors="replace", timeout=built.timeout, check=False)
        except subprocess.TimeoutExpired as late:
            raise program.Endless(f"{built.source.name} has not ended after {built.timeout:g} s") from late
        if not file.exists():
            raise program.Problem(f"measure: {built.source.name} has launched no kernel ({program.exit_text(done.returncode)}): {done.stderr.strip()[:300]}")
        if done.returncode != 0:
            raise program.Problem(f"measure: {built.source.name} ended with {program.exit_text(done.returncode)}: {done.stderr.strip()[:300]}")
        for key, seconds in read(file.read_text(encoding="utf-8")):
            found.setdefault(key, []).append(seconds)
            launches[key] = launches.get(key, 0) + (number == 0)
    return found, launches


def read(text):
    """(key, seconds) of each line that the timer has written."""
    for line in text.splitlines():
        name, blocks, threads, milliseconds = line.split("\t")
        yield (name, int(blocks), math.ceil(int(threads) / counts.LANES)), float(milliseconds) / 1e3


def profiled(built, arguments):
    """{mangled kernel: {a value of NCU: mean}} by Nsight Compute, empty without it. Errors: Problem, with its last line."""
    tool = program.find_tool("ncu", "NCU")
    if not tool:
        return {}
    plain = {name: value for name, value in environment(built.folder.name).items() if name != "LD_PRELOAD"}
    done = subprocess.run([tool, "--csv", "--page", "raw", "--print-kernel-base", "mangled", "--metrics", ",".join(NCU), str(built.path), *arguments],
                          env=plain, capture_output=True, text=True, errors="replace", check=False)
    lines = done.stdout.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = (done.stdout + done.stderr).strip().splitlines() or [program.exit_text(done.returncode)]
        raise program.Problem(f"measure: ncu has measured nothing: {said[-1]}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    units, found = rows[0], {}
    for row in rows[1:]:
        values = {short: float(row[metric].replace(",", "")) for metric, short in NCU.items() if row.get(metric)}
        if "ncu µs" in values:
            values["ncu µs"] *= SECONDS[units["gpu__time_duration.sum"]]
        found.setdefault(row["Kernel Name"], []).append(values)
    return {name: {short: statistics.mean(values[short] for values in each) for short in each[0]} for name, each in found.items()}


def rows_of(found, launches, predictions, counted, by_ncu, names):
    """Row by Row, in the order of the first launches. names: {mangled: what a person reads}."""
    for key, seconds in found.items():
        name, blocks, warps = key
        predicted = [prediction[0] for prediction in predictions.get(key, [])]
        yield Row(names.get(name, name), f"{blocks} x {warps * counts.LANES}", launches[key], statistics.median(seconds),
                  statistics.mean(predicted) if predicted else None, counted.get(name, {}), by_ncu.get(name, {}))


def table(rows, gpu):
    """Lines of text. Nsight Compute's figures stand beside the counted ones, as `4.0/4.0`, where there are any."""
    rows = list(rows)
    extra = [short for short in NCU.values() if any(short in row.profiled for row in rows)]
    width = max(24, *(len(row.name) for row in rows))
    head = f"{'kernel':<{width}} {'blocks x threads':>17} {'launches':>9} {'measured µs':>12} {'predicted µs':>13} {'predicted/measured':>19}"
    yield f"on {gpu}: medians by CUDA events; predictions include the launch"
    yield head + "".join(f" {short if short == 'ncu µs' else short + ' ncu/lab':>17}" for short in extra)
    for row in rows:
        text = f"{row.name:<{width}} {row.launch:>17} {row.launches:>9} {row.measured * 1e6:>12.2f}"
        text += f" {row.predicted * 1e6:>13.2f} {row.predicted / row.measured:>19.2f}" if row.predicted and row.measured else f" {'-':>13} {'-':>19}"
        for short in extra:
            value = row.profiled.get(short)
            own = row.counted.get(short)
            cell = "-" if value is None else f"{value * 1e6:.2f}" if short == "ncu µs" else f"{value:,.1f}/{own:,.1f}" if own is not None else f"{value:,.1f}/-"
            text += f" {cell:>17}"
        yield text


def counted_of(kernels):
    """The lab's own counts by mangled kernel, under the keys of NCU's values."""
    return {kernel.raw["mangled"]: {"load": kernel.total.of("load").each, "store": kernel.total.of("store").each,
                                    "conflicts": kernel.total.conflicts / max(1, kernel.raw["launches"])} for kernel in kernels}


def report(built, arguments, gpu, runs):
    """Lines of the table of one program."""
    found, launches = times(built, arguments, runs)
    predictions, _ = built.predict(arguments)
    _, profile = built.profile(arguments, checks="", capture=True)
    kernels = counts.kernels_of(profile, built.source) if profile else []
    yield from table(rows_of(found, launches, predictions, counted_of(kernels), profiled(built, arguments), {k.raw["mangled"]: k.name for k in kernels}), gpu)
