#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples of CUTLASS as PTX and runs them on the emulator at small sizes, with their own verification.

Usage: cutlass.py CUTLASS [--emulate build/bin/weft-emulate] [--only NAME,…] [--work DIR] [--timeout 300] [--markdown FILE]

CUTLASS is a checkout of https://github.com/NVIDIA/cutlass. One example at a time; a program that --work has already is not built
again (one takes minutes). Exit code: 0 when all passed."""
import argparse
import collections
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

GPU = {"80": "a100", "90a": "h100"}
SIZE = "--m=256 --n=256 --k=256 --iterations=1"
CONVOLUTION = "--n=1 --h=16 --w=16 --c=64 --k=64 --r=3 --s=3 --iterations=1 --ref-check"

# Source, compute capability, arguments, special property. Sizes are small: the references run on
# the emulator too.
EXAMPLES = [
    ("00_basic_gemm/basic_gemm.cu", "80", "128 128 64", "SIMT f32"),
    ("05_batched_gemm/batched_gemm.cu", "80", "", "SIMT, strided and array"),
    ("14_ampere_tf32_tensorop_gemm/ampere_tf32_tensorop_gemm.cu", "80", SIZE, "mma tf32, cp.async"),
    ("15_ampere_sparse_tensorop_gemm/ampere_sparse_tensorop_gemm.cu", "80", "", "mma.sp of 4-bit integers"),
    ("15_ampere_sparse_tensorop_gemm/ampere_sparse_tensorop_gemm_with_visitor.cu", "80", "", "mma.sp of 8-bit integers"),
    ("16_ampere_tensorop_conv2dfprop/ampere_tensorop_conv2dfprop.cu", "80", CONVOLUTION, "mma f16, implicit-GEMM convolution"),
    ("23_ampere_gemm_operand_reduction_fusion/ampere_gemm_operand_reduction_fusion.cu", "80", SIZE + " --ref-check",
     "mma bf16, reduction of an operand"),
    ("24_gemm_grouped/gemm_grouped.cu", "80", "--groups=3 --m=128 --n=128 --k=64 --iterations=1", "grouped, persistent"),
    ("25_ampere_fprop_mainloop_fusion/ampere_fprop_mainloop_fusion.cu", "80", CONVOLUTION, "scale and bias in the convolution's main loop"),
    ("26_ampere_wgrad_mainloop_fusion/ampere_wgrad_mainloop_fusion.cu", "80", CONVOLUTION, "weight gradients"),
    ("27_ampere_3xtf32_fast_accurate_tensorop_gemm/27_ampere_3xtf32_fast_accurate_tensorop_gemm.cu", "80", SIZE, "mma tf32, three products"),
    ("35_gemm_softmax/gemm_softmax.cu", "80", "--m=128 --n=128 --k=64 --batch_count=2 --iterations=1", "softmax in the epilogue"),
    ("41_fused_multi_head_attention/fused_multihead_attention_fixed_seqlen.cu", "80",
     "--head_number=2 --batch_size=1 --head_size=64 --head_size_v=64 --seq_length=128 --seq_length_kv=128 --iterations=1 --reference-check=true",
     "attention"),
    ("42_ampere_tensorop_group_conv/ampere_tensorop_group_conv.cu", "80", CONVOLUTION.replace("--c=64 --k=64", "--c=64 --k=64 --g=2"),
     "grouped convolution"),
    ("47_ampere_gemm_universal_streamk/ampere_gemm_universal_streamk.cu", "80", SIZE, "stream-K"),
    ("48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu", "90a", SIZE, "TMA, wgmma, warp-specialised"),
    ("49_hopper_gemm_with_collective_builder/49_collective_builder.cu", "90a", "--m=256 --n=256 --k=128 --l=1",
     "ping-pong, cooperative, stream-K schedules"),
    ("50_hopper_gemm_with_epilogue_swizzle/50_hopper_gemm_with_epilogue_swizzle.cu", "90a", "--m=256 --n=256 --k=128 --l=1", "epilogue's swizzle"),
    ("52_hopper_gather_scatter_fusion/52_hopper_gather_scatter_fusion.cu", "90a",
     "--m=256 --n=128 --k=128 --batch_size=1 --index_size=128 --iterations=1 --check", "gather and scatter"),
    ("54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu", "90a", SIZE, "FP8 wgmma"),
    ("55_hopper_mixed_dtype_gemm/55_hopper_mixed_dtype_gemm.cu", "90a", SIZE + " --g=128 --mode=1 --warmup=0", "mixed types, A from registers"),
    ("56_hopper_ptr_array_batched_gemm/56_hopper_ptr_array_batched_gemm.cu", "90a", "--m=256 --n=256 --k=128 --l=2 --iterations=1",
     "tensormap.replace"),
    ("57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu", "90a", "--groups=2 --m=256 --n=256 --k=128 --iterations=1", "grouped"),
    ("63_hopper_gemm_with_weight_prefetch/63_hopper_gemm_with_weight_prefetch.cu", "90a", SIZE, "prefetch"),
    ("67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling/67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling.cu", "90a",
     SIZE, "FP8, blocks' scales"),
    ("88_hopper_fmha/88_hopper_fmha.cu", "90a", "--b=1 --h=2 --q=256 --k=256 --d=64 --iterations=1 --verify", "attention"),
]


def build(cutlass, source, capability, program):
    """None, or the compiler's first error."""
    folder = (cutlass / "examples" / source).parent
    done = subprocess.run(["nice", "nvcc", "-std=c++17", "-w", "-O2", "-lineinfo", "-cudart", "shared", "--expt-relaxed-constexpr",
                           "--expt-extended-lambda", "-gencode", f"arch=compute_{capability},code=compute_{capability}",
                           "-DCUTLASS_ENABLE_TENSOR_CORE_MMA=1", "-I", str(cutlass / "include"), "-I", str(cutlass / "tools/util/include"),
                           "-I", str(cutlass / "examples/common"), "-I", str(folder), str(cutlass / "examples" / source), "-o", str(program),
                           "-L/usr/local/cuda/lib64/stubs", "-lcuda"], capture_output=True, text=True)
    lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line or "undefined" in line]
    return None if done.returncode == 0 else (lines or ["nvcc failed"])[0][:160]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(emulate, program, arguments, timeout):
    """The verdict and what was said about it."""
    # The limit is one of processor time: machines are busy.
    done = subprocess.run([*emulate, str(program), *arguments], capture_output=True, text=True, errors="replace",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(timeout), int(timeout) + 1)))
    if done.returncode == -signal.SIGXCPU:
        return "too slow", f"more than {timeout:g} s"
    text = done.stderr + "\n" + done.stdout
    said = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in said if re.search(r"weft-emulate: |Error|CUDA error|FAIL|[Ff]ailed|ncorrect", line)]
    if done.returncode == 0 and not wrong:
        good = [line for line in said if re.search(r"pass|Pass|OK|success|Disposition", line)]
        return ("passed", f"{len(good)} checks of its own") if good else ("ran", "it did not say that it verified")
    return "failed", (wrong or said or [f"ended with {done.returncode}"])[0][:240]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cutlass", type=pathlib.Path)
    parser.add_argument("--emulate", default="build/bin/weft-emulate")
    parser.add_argument("--options", default="", help="more options of weft-emulate, separated by spaces")
    parser.add_argument("--only", default="", help="beginnings of names, with commas between")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("cutlass-programs"))
    parser.add_argument("--timeout", type=float, default=300, help="seconds of processor time")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    emulate = [str(pathlib.Path(options.emulate).resolve()), *options.options.split()]
    rows, counts = [], collections.Counter()
    for source, capability, arguments, about in EXAMPLES:
        name = pathlib.Path(source).stem
        folder = source.split("/")[0]
        if options.only and not any(folder.startswith(start) for start in options.only.split(",")):
            continue
        program = work / name
        began = time.time()
        error = None if program.exists() else build(options.cutlass.resolve(), source, capability, program)
        if options.build_only:
            print(f"{name}: {error or 'built'} in {time.time() - began:.0f} s", flush=True)
            continue
        began = processor_seconds()
        verdict, detail = ("not built", error) if error else run([*emulate, "--gpu", GPU[capability]], program, arguments.split(), options.timeout)
        rows.append((folder, about, verdict, processor_seconds() - began, detail))
        counts[verdict] += 1
        print("{2:9} {0:52} {3:6.1f} s  {4}".format(*rows[-1]), flush=True)
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    if options.markdown:
        table = ["| example | what it has | result | processor seconds | why |", "| --- | --- | --- | --- | --- |"]
        table += [f"| {folder} | {about} | {verdict} | {seconds:.1f} | {detail.replace('|', '/')} |" for folder, about, verdict, seconds, detail in rows]
        options.markdown.write_text("\n".join(table) + "\n")
    return 0 if set(counts) <= {"passed"} else 1


if __name__ == "__main__":
    sys.exit(main())
