# SPDX-License-Identifier: Apache-2.0
"""The result file: Markdown to read, with the same as one JSON block at the end."""
import dataclasses
import json
import math
import os
import pathlib
import re

from gpu_node.stages import PASS, SKIPPED

PREDICTED = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/time_model/predicted.tsv"
RATE = "/s"  # suffix of rates' units; for all others (ms, us, ns, MiB) smaller is better


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]


def ratio(ours, theirs, unit):
    """How many times as fast as the peer: above 1 is faster, whether the unit is a rate or a time."""
    if not ours or not theirs:
        return None
    return ours / theirs if unit.endswith(RATE) else theirs / ours


def best_variants(cases):
    """`NAME@channels_last` is a variant of the same case: the better figure of each case counts."""
    best = {}
    for name, (value, unit) in cases.items():
        case = name.partition("@")[0]
        if case not in best or ratio(value, best[case][0], unit) > 1:
            best[case] = (value, unit)
    return best


def bench_table(ours, theirs):
    """Rows of two {case: (value, unit)}, side by side."""
    theirs = best_variants(theirs)
    rows = []
    for case in list(ours) + [case for case in theirs if case not in ours]:
        mine, peer = ours.get(case), theirs.get(case)
        unit = (mine or peer)[1]
        times = ratio(mine[0], peer[0], unit) if mine and peer and mine[1] == peer[1] else None
        rows.append([case, f"{mine[0]:.6g}" if mine else "", f"{peer[0]:.6g}" if peer else "", unit, f"{times:.2f}" if times else ""])
    return rows


VENDOR = "@vendor"
# Kinds of the suite gpu, by the names of its cases; the first that matches counts.
KINDS = [("memory of training", r"_memory_"), ("networks", r"_(train|infer)_"), ("products", r"^matmul"),
         ("the image's gradient, which no training computes", r"^conv7x7_3_.*_backward"), ("convolutions", r"^conv"),
         ("norms, softmax, cross entropy", r"norm|softmax|cross_entropy"), ("attention, MLP", r"^vit_"), ("optimizers", r"_step$"),
         ("elements, copies", r"_64m|memcpy|^cast"), ("host: small ops, allocations", r"")]


def split_vendor(cases):
    """`NAME` is Weft's kernel, `NAME@vendor` the same call by NVIDIA's library."""
    return ({name: value for name, value in cases.items() if not name.endswith(VENDOR)},
            {name[:-len(VENDOR)]: value for name, value in cases.items() if name.endswith(VENDOR)})


def means(title, ours, theirs, kinds):
    """A line for each kind: the geometric mean of its ratios, and the least one."""
    by_kind = {kind: {} for kind, _ in kinds}
    for case in ours:
        peer = theirs.get(case)
        times = ratio(ours[case][0], peer[0], peer[1]) if peer and peer[1] == ours[case][1] else None
        kind = next((kind for kind, pattern in kinds if re.search(pattern, case)), None)
        if times and kind:
            by_kind[kind][case] = times
    lines = []
    for kind, ratios in by_kind.items():
        if ratios:
            least, mean = min(ratios, key=ratios.get), math.exp(sum(map(math.log, ratios.values())) / len(ratios))
            lines.append(f"- {title}, {kind}: geometric mean {mean:.2f} of {len(ratios)} cases, least {ratios[least]:.2f} ({least})")
    return lines


def summary(results):
    """What most readers look for; above 1, Weft is faster (or takes less memory)."""
    lines = []
    counts = [outcome.facts for name, outcome in results.items() if name.startswith("tests_") and outcome.facts.get("total")]
    if counts:
        total, passed = (sum(facts[key] for facts in counts) for key in ("total", "passed"))
        skipped, late = (sum(len(facts.get(key, [])) for facts in counts) for key in ("skipped", "late"))
        lines.append(f"- tests: {passed} of {total} passed, {skipped} skipped, {total - passed - skipped - late} failed, {late} not run in time")
    lines += means("beside PyTorch", found_cases(results, "bench"), best_variants(found_cases(results, "bench_pytorch")), KINDS)
    own, vendor = split_vendor(found_cases(results, "bench_engines"))
    lines += means("own kernels beside cuBLASLt and cuDNN", own, vendor, [(kind, f"^{kind}") for kind in ("matmul", "linear", "conv", "attention")])
    return ["", "Ratios: how many times as fast as the other; above 1, Weft is faster, or takes less memory.", ""] + lines if lines else []


def found_cases(results, stage):
    return results[stage].facts.get("cases", {}) if stage in results else {}


def engines_section(cases):
    if not cases:
        return []
    lines = ["", "## Own kernels beside cuBLASLt and cuDNN", "", "Ratio: how many times as fast as the vendor's; above 1, Weft's own kernel is faster.", ""]
    return lines + table(["case", "own", "vendor", "unit", "ratio"], bench_table(*split_vendor(cases)))


def predictions(gpu):
    """{case: (value, unit, what limits it, error bar)} of weft-emulate --time for this GPU."""
    lines = PREDICTED.read_text().splitlines() if PREDICTED.exists() else []
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    key = next((key for key in ("gh200", "h200", "h100", "a100", "a6000") if key in gpu.lower().replace(" ", "")), None)
    return {row[0]: (float(row[2]), row[3], row[5], row[9] or "unknown") for row in rows if row[1] == key}


def predicted_section(cases, gpu):
    """What the model of time said before, beside what was measured now."""
    rows = [[case, f"{cases[case][0]:.6g}", f"{value:.6g}", unit, f"{ratio(cases[case][0], value, unit):.2f}", error, limit]
            for case, (value, unit, limit, error) in predictions(gpu).items() if case in cases and cases[case][1] == unit and cases[case][0]]
    if not rows:
        return []
    return ["", "## Predictions beside measurements", "",
            "Predicted by `weft-emulate --time` (benchmarks/time_model). Ratio: how many times as fast as predicted. Error: what nine of ten cases of its kind "
            "stayed within on an H200.", ""] + table(["case", "measured", "predicted", "unit", "ratio", "error", "limit"], rows)


PROGRAMS = ("linear_probe", "finetune")  # stages; the stage NAME_pytorch is its peer


def programs_section(results):
    """Training programs as their users start them: rate, time of a step, peak memory of the device."""
    ours, theirs = ({case: value for name in PROGRAMS for case, value in found_cases(results, name + suffix).items()} for suffix in ("", "_pytorch"))
    if not ours and not theirs:
        return []
    lines = ["", "## Training programs beside PyTorch", "",
             "Ratio: how many times as fast as PyTorch, or how many times less memory; above 1, Weft is better.", ""]
    return lines + table(["case", "Weft", "PyTorch", "unit", "ratio"], bench_table(ours, theirs))


def markdown(title, device, facts, results, planned):
    passed = sum(outcome.status == PASS for outcome in results.values())
    skipped = sum(outcome.status == SKIPPED for outcome in results.values())
    whole = len(results) == planned
    verdict = "UNFINISHED" if not whole else "PASS" if all(outcome.good() for outcome in results.values()) else "FAIL"
    lines = [f"# {title}", "",
             f"**{verdict}** on device `{device}`: {passed} of {planned} stages passed, {skipped} skipped, "
             f"in {sum(outcome.seconds for outcome in results.values()):.0f} s. Written by `tools/gpu_check`."]
    lines += summary(results) + ["", "## Machine", ""]
    lines += table(["part", "found"], [[name, value or "MISSING"] for name, value in facts.items()])
    lines += ["", "## Stages", ""]
    lines += table(["stage", "status", "seconds", "what"],
                   [[name, outcome.status, f"{outcome.seconds:.1f}", outcome.what] for name, outcome in results.items()])
    bad = {name: outcome for name, outcome in results.items() if outcome.lines}
    if bad:
        lines += ["", "## What went wrong"]
        for name, outcome in bad.items():
            lines += ["", f"### {name}: {outcome.status}", "", "```"] + [line[:300] for line in outcome.lines] + ["```"]
    ours, theirs = found_cases(results, "bench"), found_cases(results, "bench_pytorch")
    if ours or theirs:
        lines += ["", "## Benchmarks", "", "Ratio: how many times as fast as PyTorch; above 1, Weft is faster.", ""]
        lines += table(["case", "Weft", "PyTorch", "unit", "ratio"], bench_table(ours, theirs))
    engines = found_cases(results, "bench_engines")
    lines += predicted_section({**ours, **engines}, facts.get("GPU") or "")
    lines += programs_section(results)
    lines += engines_section(engines)
    ladders = results["ladders"].facts.get("tables", "") if "ladders" in results else ""
    lines += ["", "## Ladders", "", "Each step of kernels/ladder, from the naive kernel to Weft's own.", "", "```", ladders, "```"] if ladders else []
    machine_readable = {"title": title, "verdict": verdict, "device": device, "facts": facts,
                        "stages": {name: dataclasses.asdict(outcome) for name, outcome in results.items()}}
    lines += ["", "## The same as JSON", "", "```json", json.dumps(machine_readable, indent=1, ensure_ascii=False), "```", ""]
    return "\n".join(lines)


def write(path, text):
    """Writes atomically: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text)
    os.replace(beside, path)
