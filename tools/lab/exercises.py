# SPDX-License-Identifier: Apache-2.0
"""Exercises that check themselves.

exercises/NN_name has README.md (the task), start.cu (what the student edits), check.cu (a main that calls the exercise's function on many
sizes) and check.json:

  title    in words
  goals    [{"what": a key of MEASURES, "most" or "least": a number, "says": the goal in words, "hint": what to try when it is missed}]
  hints    by goal that every exercise has: results, race, uninitialised, bounds, misaligned, deadlock, error; streams, where it is checked
  streams  true: the order between streams is checked, too, and work runs as late as CUDA allows

A goal on counts is met only by a program whose results are right."""
import json
import re
import subprocess
from dataclasses import dataclass

from . import counts, program

FOLDER = program.ROOT / "exercises"
STREAMS = ("no order between streams", "the host wrote the source", "use after free in stream order")
TIME_LIMIT = 120  # seconds of one run
CASE = re.compile(r"^case (.*?): (right|wrong: .*)$", re.MULTILINE)
ERRORS = [("deadlock", "deadlock"), ("misaligned", "misaligned|not a multiple of"), ("bounds", "illegal|past the end|beyond|no memory that")]
USUAL_HINTS = {
    "results": "Compute one small case by hand, and print what the thread of the first wrong element sees.",
    "race": "Two threads touch the same bytes, and no barrier or atomic operation orders them.",
    "uninitialised": "Something is read before anything has been written there.",
    "bounds": "A thread computes an address outside of its array: which threads have nothing to do?",
    "misaligned": "An access of 8 or 16 bytes needs an address that is a multiple of its size.",
    "deadlock": "Some threads wait for others that never come: a barrier, or a shuffle of the whole warp, inside of a branch.",
    "streams": "Two pieces of work on the same memory, in two streams: one must wait for an event that the other stream has recorded after its work.",
    "error": "The kernel was stopped: read the message.",
}


def ratio(value, by):
    return value / by if by else 0.0


def shared_requests(t):
    return sum(t.of(kind).requests for kind in ("shared_load", "shared_store", "shared_atomic"))


# What a goal can ask for, of the sum of all kernels of the measured run.
MEASURES = {
    "load_sectors": lambda t: t.of("load").each,
    "store_sectors": lambda t: t.of("store").each,
    "load_requests": lambda t: t.of("load").requests,
    "store_requests": lambda t: t.of("store").requests,
    "conflicts": lambda t: ratio(t.conflicts, shared_requests(t)),
    "shared_requests": shared_requests,
    "atomics": lambda t: t.of("atomic").requests,
    "collisions": lambda t: ratio(t.of("atomic").collisions, t.of("atomic").requests),
    "barriers": lambda t: t.barriers,
    "splits": lambda t: t.splits,
    "lanes": lambda t: t.lanes,
    "instructions": lambda t: t.executed,
    "shuffles": lambda t: t.operations["shfl"] + t.operations["redux"],
    "async_copies": lambda t: t.operations["cp.async.ca"] + t.operations["cp.async.cg"],
    "open_waits": lambda t: t.open_waits,
}


@dataclass
class Goal:
    key: str
    says: str
    met: bool
    detail: str = ""
    hint: str = ""


def find(number):
    """The folder of exercise NN, or Problem."""
    found = sorted(FOLDER.glob(f"{int(number):02}_*")) if number.isdigit() else []
    if len(found) != 1:
        names = ", ".join(path.name for path in all_exercises())
        raise program.Problem(f"there is no exercise {number}: {names}")
    return found[0]


def all_exercises():
    return sorted(path for path in FOLDER.glob("[0-9][0-9]_*") if (path / "check.json").exists())


class Result:
    def __init__(self, title, goals):
        self.title, self.goals = title, goals

    @property
    def passed(self):
        return all(goal.met for goal in self.goals)

    def lines(self):
        yield self.title
        for goal in self.goals:
            yield f"  {'ok  ' if goal.met else 'FAIL'}  {goal.says}{': ' + goal.detail if goal.detail else ''}"
            if not goal.met and goal.hint:
                yield f"        hint: {goal.hint}"
        met = sum(goal.met for goal in self.goals)
        yield f"score: {met} of {len(self.goals)}" + (" - done" if self.passed else "")


def check(folder, file, gpu="h100", page_of=None):
    """Compiles `file` into the exercise's check, runs it twice and judges it. page_of(profile, kernels): is given the measured run, too."""
    spec = json.loads((folder / "check.json").read_text(encoding="utf-8"))
    hints = {**USUAL_HINTS, **spec.get("hints", {})}
    title = f"{folder.name}: {spec['title']}"
    flags = [f'-DEXERCISE="{file.resolve()}"', f"-I{FOLDER}"]
    try:
        built = program.Program(folder / "check.cu", gpu, flags)
    except program.Problem as problem:
        if "does not compile" not in str(problem):
            raise
        return Result(title, [Goal("compiles", "compiles", False, str(problem), "Read the first error; those after it may follow from it.")])
    with built:
        goals = judge_run(built, hints, spec.get("streams", False))
        goals += judge_counts(built, spec["goals"], all(goal.met for goal in goals if goal.key in ("results", "error")))
        if page_of:
            _, profile = built.profile(["measure"], timeout=TIME_LIMIT, capture=True)
            page_of(profile, counts.kernels_of(profile, file.resolve()))
    return Result(title, goals)


def judge_run(built, hints, streams):
    """Right results on all sizes, and nothing that the checks find."""
    options = ["--check", "races,uninitialised,streams", "--streams", "lazy"] if streams else ["--check", "races,uninitialised"]
    try:
        done = subprocess.run(built.command(options), capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = (late.stdout or b"").decode(), f"weft-emulate: no end after {TIME_LIMIT} s: deadlock"
    told = re.findall(r"^weft-emulate: ((?:.|\n  )*)", errors, re.MULTILINE)
    told = [text for text in told if not re.fullmatch(r"\d+ findings?", text)]
    races, unwritten, unordered = ([text for text in told if text.startswith(kind)] for kind in ("race: ", "uninitialised: ", STREAMS))
    faults = [text for text in told if text not in races + unwritten + unordered and "there is more of this kind" not in text]
    cases = CASE.findall(output)
    wrong = [(name, said.removeprefix("wrong: ")) for name, said in cases if said != "right"]
    kind = next((key for key, pattern in ERRORS if faults and re.search(pattern, faults[0])), "error")
    right = bool(cases) and not wrong
    goals = [
        Goal("results", "right results", right, f"{len(cases) - len(wrong)} of {len(cases)} sizes"
             + (f"; {wrong[0][0]}: {wrong[0][1]}" if wrong else ""), hints["results"]),
        Goal("error", "no error on the device", not faults, short(faults), hints[kind]),
        Goal("race", "no data race", not races, short(races), hints["race"]),
        Goal("uninitialised", "reads only what was written", not unwritten, short(unwritten), hints["uninitialised"]),
    ]
    if streams:
        goals.append(Goal("streams", "an order between streams", not unordered, short(unordered), hints["streams"]))
    # One hint, for what explains the others: wrong results follow from a race, and not the other way round.
    missed = [goal for key in ("error", "race", "streams", "uninitialised", "results") for goal in goals if goal.key == key and not goal.met]
    for goal in missed[1:]:
        goal.hint = ""
    return goals


def short(told):
    """The first text, without what names the launch."""
    if not told:
        return ""
    text = re.sub(r"^(?:race: |uninitialised: )?.*?>>>(?: on the default stream)?: ", "", told[0])
    # Of inlined code the line of the outermost call, which is the student's; of files their names.
    text = re.sub(r"[^\s:]+:\d+, inlined at (?:[^\s:]+:\d+, inlined at )*([^\s:]+:\d+)", r"\1", text)
    return re.sub(r"/\S*/(\w+\()", r"\1", counts.without_folders(text))


def judge_counts(built, wanted, right):
    if not wanted:
        return []
    profile = None
    if right:
        _, profile = built.profile(["measure"], checks="", timeout=TIME_LIMIT, capture=True)
    total = counts.Line()
    for kernel in counts.kernels_of(profile, built.source) if profile else []:
        total.join(kernel.total)
    goals = []
    for goal in wanted:
        says = f"{goal['says']}: {'at most' if 'most' in goal else 'at least'} {goal.get('most', goal.get('least')):g}"
        if not right or not profile:
            goals.append(Goal(goal["what"], says, False, "not measured: the results are not right"))
            continue
        value = MEASURES[goal["what"]](total)
        met = value <= goal["most"] if "most" in goal else value >= goal["least"]
        goals.append(Goal(goal["what"], says, met, f"{value:,.2f}".rstrip("0").rstrip("."), goal["hint"]))
    return goals
