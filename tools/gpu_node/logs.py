# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of the stages: CTest, GoogleTest under compute-sanitizer, benchmarks."""
import json
import re

from gpu_node.stages import FAIL, PASS, STOPPED, TIMEOUT, first_lines

# The name may contain blanks: CTest adds the parameter's value to it.
TEST = re.compile(r"^ *\d+/(\d+) Test +#\d+: (\S+)[^\n]*? \.{2,} *(Passed|\*\*\*[A-Za-z ]+?)(?:: \S+)? +([\d.]+) sec", re.M)
LISTED = re.compile(r"^ *Test +#\d+: (\S+)", re.M)
STARTED = re.compile(r"^ *Start +\d+: (\S+)", re.M)
SUMMARIES = re.compile(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: .*)$", re.M)


def read_twins(run, outcome):
    """`ctest -N`: each test on the emulated GPU has its twin on the GPU. Tests are listed when they are built: where that was on a
    machine without a GPU, the twins are missing, and nobody would notice that they do not run."""
    names = set(LISTED.findall(run.all_logs()))
    twins = {name: re.sub(r"([/_])simt(?=$|_\d+$)", r"\1cuda", name) for name in names if not name.startswith("simt.")}
    missing = sorted(twin for name, twin in twins.items() if twin not in names)
    outcome.facts = {"tests": len(names), "on the GPU": len([name for name in names if "/cuda" in name or "_cuda_" in name]), "missing": missing}
    outcome.what = f"{len(names)} tests listed, {outcome.facts['on the GPU']} of them for cuda by name"
    if outcome.status == PASS and (missing or not outcome.facts["on the GPU"]):
        outcome.status = FAIL
        outcome.lines = [f"{len(missing)} tests have no twin on cuda: build on a node with a GPU, where they are listed"] + missing[:20]


def read_ctest(run, outcome):
    """Counts passed, failed and skipped tests; a run without tests fails. Of tests that ran again: the first lines."""
    text = run.all_logs()
    found = list(TEST.finditer(text))
    by_state = {}
    for test in found:
        by_state.setdefault(test[3].strip("*"), []).append(test[2])
    bad = {state: names for state, names in by_state.items() if state not in ("Passed", "Skipped")}
    total = int(found[0][1]) if found else 0
    parts = [f"{len(by_state.get('Passed', []))} of {total} tests passed"]
    parts += [f"{len(names)} {state.lower()}" for state, names in by_state.items() if state != "Passed"]
    outcome.what = ", ".join(parts + ([outcome.what] if outcome.what else []))
    outcome.facts = {"total": total, "passed": len(by_state.get("Passed", [])), **by_state}
    outcome.facts.pop("Passed", None)
    ended = {test[2] for test in found}
    running = [name for name in STARTED.findall(text) if name not in ended]
    if outcome.status in (TIMEOUT, STOPPED) and running:
        outcome.lines = [f"still running: {name}" for name in running[:40]]
    if not found and outcome.status == PASS:
        outcome.status, outcome.what = FAIL, "no test ran"
    if bad:
        if outcome.status == PASS:
            outcome.status = FAIL
        outcome.lines += [f"{state}: {name}" for state, names in bad.items() for name in names][:40]
        for test in found:
            if test[2] in [name for names in bad.values() for name in names][:6]:
                after = text[test.end():].split("\n      Start ", 1)[0]
                outcome.lines += ["", f"-- {test[2]}"] + first_lines(TEST.split(after)[0], 8)
    for name in run.exit_codes:
        if again := run.log(f"{name}_again"):
            outcome.lines += ["", "-- those that failed, again with WEFT_SYNC=1"] + first_lines(again, 16)


def read_sanitizer(run, outcome):
    """Adds up the shards: tests done, the tool's summaries, and the first report."""
    text = run.all_logs()
    done = len(re.findall(r"^\[ +OK \]", text, re.M))
    total = sum(int(count) for count in re.findall(r"^\[=+\] Running (\d+) tests?", text, re.M))
    failed = sorted(set(re.findall(r"^\[ +FAILED +\] (\S+?),? ", text, re.M)))
    reports = [summary for summary in SUMMARIES.findall(text)]
    wrong = [summary for summary in reports if not re.search(r": 0 (errors|hazards)", summary)]
    silent = len([name for name in run.exit_codes if not SUMMARIES.search(run.log(name))])
    parts = [f"{done} of {total} tests done in {len(run.exit_codes)} shards, {len(wrong)} shards with reports"]
    parts += [f"{silent} with no summary"] if silent else []
    outcome.what = ", ".join(parts + ([outcome.what] if outcome.what else []))
    outcome.facts = {"tests": total, "done": done, "summaries": reports, "failed": failed}
    if (wrong or failed or silent or total == 0) and outcome.status == PASS:
        outcome.status = FAIL
    if wrong or failed:
        report = re.search(r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY).*(?:\n=+ .*){0,14}", text, re.M)
        outcome.lines = wrong[:8] + failed[:8] + (report[0].splitlines() if report else [])


def read_bench(run, outcome):
    """Lines `case TAB value TAB unit`."""
    cases = {}
    for line in run.all_logs().splitlines():
        cells = line.split("\t")
        if len(cells) >= 3:
            try:
                cases[cells[0]] = (float(cells[1]), cells[2])
            except ValueError:
                continue
    outcome.facts = {"cases": cases}
    outcome.what = ", ".join([f"{len(cases)} cases"] + ([outcome.what] if outcome.what else []))
    if not cases and outcome.status == PASS:
        outcome.status = FAIL


def read_program(summary, batch, cases):
    """A training program's summary.json as the cases of its peer; cases: name -> (key of the rate, its unit, key of the peak memory)."""
    def read(_run, outcome):
        try:
            values = json.loads(summary.read_text())
            found = {}
            for name, (rate, unit, memory) in cases.items():
                found[name] = (float(values[rate]), unit)
                found[f"{name}_step"] = (1000 * batch / float(values[rate]), "ms")
                found[f"{name}_memory"] = (float(values[memory]) / 2**20, "MiB")
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            if outcome.status == PASS:
                outcome.status, outcome.what = FAIL, f"no figures in {summary.name}: {type(error).__name__}: {error}"
            return
        outcome.facts = {"cases": found}
        steps = [f"{name} {value:.4g} ms a step" for name, (value, unit) in found.items() if unit == "ms"]
        outcome.what = ", ".join(steps + ([outcome.what] if outcome.what else []))
    return read


def read_ladders(run, outcome):
    """The tables as printed, each below a line `ladder NAME`."""
    text = run.log("ladders").strip()
    count = sum(line.startswith("ladder ") for line in text.splitlines())
    outcome.facts = {"tables": text}
    outcome.what = ", ".join([f"{count} ladders"] + ([outcome.what] if outcome.what else []))
