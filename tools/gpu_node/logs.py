# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of the stages: tests, compute-sanitizer, benchmarks."""
import json
import re

from gpu_node.stages import FAIL, PASS, STOPPED, TIMEOUT, first_lines

# The name may contain blanks: CTest adds the parameter's value to it.
TEST = re.compile(r"^ *\d+/(\d+) Test +#\d+: (\S+)[^\n]*? \.{2,} *(Passed|\*\*\*[A-Za-z ]+?)(?:: \S+)? +([\d.]+) sec", re.M)
STARTED = re.compile(r"^ *Start +\d+: (\S+)", re.M)
SUMMARIES = re.compile(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: .*)$", re.M)


WORDS = {"FAIL": "failed", "CRASH": "crashed", "HANG": "hung", "LATE": "late", "SKIP": "skipped"}
BLOCK = re.compile(r"^==== ", re.M)


def read_tests(folder, missing=lambda: []):
    """tests.tsv and failures.txt of run_tests.py; `missing()`: programs that are not there, and are not expected to be."""
    def read(_run, outcome):
        table, failures = folder / "tests.tsv", folder / "failures.txt"
        unlisted, *blocks = BLOCK.split(failures.read_text(errors="replace") if failures.exists() else "")
        rows = [line.split("\t") for line in table.read_text().splitlines()] if table.exists() else []
        found = {word: [f"{program} {test}" for program, test, is_word, _ in rows if is_word == key] for key, word in WORDS.items()}
        found = {word: sorted(names) for word, names in found.items() if names}
        passed = sum(row[2] == "PASS" for row in rows)
        parts = [f"{passed} of {len(rows)} tests passed" if rows else "no test ran"]
        parts += [f"{len(names)} {word}" for word, names in found.items()]
        parts += [f"not there: {', '.join(missing())}"] if missing() else []
        outcome.facts = {"total": len(rows), "passed": passed, **found}
        bad = [f"{word}: {name}" for word, names in found.items() if word not in ("skipped", "late") for name in names]
        bad += [f"late: {len(found['late'])} tests, {found['late'][0]} among them"] if "late" in found else []
        if outcome.status in (PASS, FAIL):  # the parts say more than the exit code
            outcome.status = FAIL if bad or unlisted or not rows else outcome.status
        else:
            parts += [outcome.what]
        outcome.what = ", ".join(parts)
        outcome.lines = unlisted.splitlines() + bad[:40]
        plain, again = ([block for block in blocks if block.startswith("again ") == flag][:8] for flag in (False, True))
        for block in plain + again:
            title, *lines = [line for line in block.splitlines() if line.strip()]
            outcome.lines += ["", f"-- {title}"] + first_lines("\n".join(lines), 8)
    return read


def read_ctest(run, outcome):
    """Counts passed, failed and skipped tests; a run without tests fails."""
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
    outcome.facts = {"total": total, **{state.lower(): names for state, names in by_state.items()}, "passed": len(by_state.get("Passed", []))}
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


def read_sanitizers(run, outcome):
    """Commands TOOL_…: adds up each tool's shards, tests done, summaries, and the first report."""
    parts, outcome.facts = [], {}
    for tool in dict.fromkeys(name.split("_")[0] for name in run.exit_codes):
        shards = [run.log(name) for name in run.exit_codes if name.startswith(f"{tool}_")]
        text = "".join(shards)
        done = len(re.findall(r"^\[ +(?:OK|SKIPPED) \] \S+ \(", text, re.M))
        total = sum(int(count) for count in re.findall(r"^\[=+\] Running (\d+) tests?", text, re.M))
        failed = sorted(set(re.findall(r"^\[ +FAILED +\] (\S+?),? ", text, re.M)))
        reports = SUMMARIES.findall(text)
        wrong = [summary for summary in reports if not re.search(r": 0 (errors|hazards)", summary)]
        silent = len([log for log in shards if not SUMMARIES.search(log)])
        parts += [f"{tool} {done} of {total} tests in {len(shards)} shards, {len(wrong)} with reports" + (f", {silent} with no summary" if silent else "")]
        outcome.facts[tool] = {"tests": total, "done": done, "summaries": reports, "failed": failed}
        if (wrong or failed or silent or total == 0) and outcome.status == PASS:
            outcome.status = FAIL
        if wrong or failed:
            report = re.search(r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY).*(?:\n=+ .*){0,14}", text, re.M)
            outcome.lines += [f"-- {tool}"] + wrong[:8] + failed[:8] + (report[0].splitlines() if report else [])
    outcome.what = "; ".join(parts + ([outcome.what] if outcome.what else []))


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
