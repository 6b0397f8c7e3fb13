# SPDX-License-Identifier: Apache-2.0
"""Exercises that check themselves.

exercises/NN_name has README.md (the task), start.cu (what the student edits), check.cu (a main that calls the exercise's function on many
sizes) and check.json:

  title    in words
  unit     U.K: the course's unit, and the place among its exercises
  difficulty  a key of MINUTES
  goals    [{"what": a key of MEASURES, "most" or "least": a number, "says": the goal in words, "hint": what to try when it is missed}]
  hints    by goal that every exercise has: results, race, uninitialised, bounds, misaligned, deadlock, collectives, error; streams, where
           it is checked
  streams  true: the order between streams is checked, too, and work runs as late as CUDA allows
  gpus     how many, if not one

A goal on counts is met only by a program whose results are right. A check.cu counts what no profile shows itself: `count NAME: NUMBER` in
the measured run (Check::count)."""
import difflib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import counts, program
from . import text as lab_text

FOLDER = program.ROOT / "exercises"
STREAMS = ("no order between streams", "the host wrote the source", "use after free in stream order")
MOST_SHOWN = 4  # lines of a solution, in a hint
MINUTES = {1: 15, 2: 30, 3: 60}  # that an exercise takes, by its difficulty: an estimate
TIME_LIMIT = 120  # seconds of one run
CASE = re.compile(r"^case (.*?): (right|wrong: .*)$", re.MULTILINE)
COUNT = re.compile(r"^count (\w+): (\S+)$", re.MULTILINE)
ERRORS = [("collectives", "^NCCL"), ("endless", "^no end after"), ("deadlock", "deadlock"), ("misaligned", "misaligned|not a multiple of"), ("bounds", "illegal|past the end|beyond|no memory that")]
USUAL_HINTS = {
    "results": "Compute one small case by hand, and print what the thread of the first wrong element sees.",
    "race": "Two threads touch the same bytes, and no barrier or atomic operation orders them.",
    "uninitialised": "Something is read before anything has been written there.",
    "bounds": "A thread computes an address outside of its array: which threads have nothing to do?",
    "misaligned": "An access of 8 or 16 bytes needs an address that is a multiple of its size.",
    "deadlock": "Some threads wait for others that never come: a barrier, or a shuffle of the whole warp, inside of a branch.",
    "endless": "A loop, in a kernel or on the host, whose end is never reached: what changes its condition?",
    "streams": "Two pieces of work on the same memory, in two streams: one must wait for an event that the other stream has recorded after its work.",
    "collectives": "All ranks must call the same collectives, with the same sizes, in the same order.",
    "error": "The kernel was stopped: read the message.",
}

# The first of three hints: a question that fits any exercise. The second is the exercise's own, the third says what its solution changes.
QUESTIONS = {
    "results": "Which element, or which launch, is wrong first, and which thread should write there?",
    "race": "Which two threads touch these bytes, and what makes the first one finish before the second one begins?",
    "uninitialised": "Who should have written these bytes, and is that certain to happen before?",
    "streams": "In which stream does each of the two run, and what does the second one wait for?",
    "error": "Which threads does the message name, and with which index, or at which line, does each of them stand?",
    "load_sectors": "Which addresses do lanes 0 and 1 load? How many sectors of 32 bytes do the 32 lanes touch?",
    "store_sectors": "Which addresses do lanes 0 and 1 store to? How many sectors of 32 bytes do the 32 lanes touch?",
    "load_requests": "Which values does a thread load more than once, or a warp in several small pieces?",
    "store_requests": "Which values are stored more than once, or in several small pieces?",
    "conflicts": "Word w is in bank w % 32: in which banks are the words of lanes 0 to 31?",
    "shared_requests": "Which values in shared memory could stay in a register?",
    "atomics": "Which updates could be added up first, within a thread, a warp or a block?",
    "collisions": "How many lanes of a warp update one address at once?",
    "barriers": "Which threads really exchange data at each barrier?",
    "splits": "On which condition do lanes of one warp disagree?",
    "lanes": "Which lanes of a warp have nothing to do?",
    "instructions": "Which instructions are repeated for each element, and could be executed once?",
    "occupancy": "Which resource limits the warps of an SM: registers, shared memory, or blocks?",
    "shared_bytes": "Which part of the shared memory is in use at the same time?",
    "time": "Which line costs most (`check -o page.html` shows), and does the SM wait there for memory, for arithmetic, or for nothing?",
}
OTHER_QUESTION = "What does the task ask for here, and which line of yours decides it?"


def ratio(value, by):
    return value / by if by else 0.0


def shared_requests(t):
    return sum(t.of(kind).requests for kind in ("shared_load", "shared_store", "shared_atomic"))


# The measures for goals, summed over all kernels of the measured run.
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
    "tensor": lambda t: t.tensor,
    "bulk_bytes": lambda t: t.bulk_bytes,
}
# Goals on the least occupied kernel, on the most shared memory, and on the predicted time of all
# relative to the solution's.
OTHERS = {"occupancy", "shared_bytes", "time"}


@dataclass
class Goal:
    key: str
    says: str
    met: bool
    detail: str = ""
    hint: str = ""


def find(number):
    """The folder of exercise NN, which may be named in full, or Problem."""
    found = [path for path in all_exercises() if path.name == number or number.isdigit() and int(path.name[:2]) == int(number)]
    if len(found) != 1:
        names = ", ".join(path.name for path in all_exercises())
        raise program.Problem(f"there is no exercise {number}: {names}")
    return found[0]


def all_exercises():
    return sorted(path for path in FOLDER.glob("[0-9][0-9]_*") if (path / "check.json").exists())


def specs():
    """{folder: its check.json}, in the course's order."""
    found = {folder: json.loads((folder / "check.json").read_text(encoding="utf-8")) for folder in all_exercises()}
    return dict(sorted(found.items(), key=lambda item: [int(part) for part in item[1]["unit"].split(".")]))


def listing():
    """Lines of a table of all exercises."""
    yield f"{'unit':>5} {'check':>6} {'difficulty':>11}  task"
    for folder, spec in specs().items():
        yield f"{spec['unit']:>5} {int(folder.name[:2]):>6} {spec['difficulty']:>11}  {spec['title']}"
    yield ("difficulty: 1 a few lines, 2 a new idea, 3 a kernel of your own; some " + ", ".join(map(str, MINUTES.values()))
           + " minutes. The capstone: weft-lab score")


class Result:
    def __init__(self, title, goals, folder=None):
        self.title, self.goals, self.folder = title, goals, folder

    @property
    def passed(self):
        return all(goal.met for goal in self.goals)

    def lines(self, level=1):
        """The goals, with the hint of a level at each missed goal: 1 a question, 2 the exercise's hint, 3 also what the solution changes."""
        yield self.title
        for goal in self.goals:
            yield f"  {'ok  ' if goal.met else 'FAIL'}  {goal.says}{': ' + goal.detail if goal.detail else ''}"
            if not goal.met and goal.hint:
                general = level == 1 and goal.key != "compiles"
                yield f"        hint: {QUESTIONS.get(goal.key, OTHER_QUESTION) if general else goal.hint}"
        if level == 3 and self.folder and not self.passed:
            yield from (f"  solution, {line}" for line in changed(self.folder))
        met = sum(goal.met for goal in self.goals)
        more = {1: " (more: --hint 2)", 2: " (more: --hint 3)", 3: " (all of it: --explain)"}[level]
        yield f"score: {met} of {len(self.goals)}" + (" - done" if self.passed else more)


def code_of(file):
    """(line number, code) of each line of a file that is more than a comment."""
    lines = ((number, re.sub(r"\s*//.*", "", line).strip()) for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1))
    return [(number, line) for number, line in lines if re.search(r"\w", line)]


def changed(folder):
    """Where the solution of an exercise differs from start.cu, comments aside, and the lines there that matter most: up to MOST_SHOWN in all,
    those with names that start.cu lacks first."""
    start, end = code_of(folder / "start.cu"), code_of(FOLDER / "solutions" / folder.name / "solution.cu")
    known = set(re.findall(r"[A-Za-z_]\w*", " ".join(line for _, line in start)))
    steps = difflib.SequenceMatcher(None, [line for _, line in start], [line for _, line in end], autojunk=False).get_opcodes()
    hunks = [(i, j, [line for _, line in end[k:m]]) for kind, i, j, k, m in steps if kind != "equal"]

    def worth(line):
        """Synchronisation and shared memory first, then other new names, by their number."""
        new = set(re.findall(r"[A-Za-z_]\w*", line)) - known
        return 10 * bool(re.search(r"__shared__|__sync|__shfl|barrier|Event|wait|ptx::|atomic|__ballot", line)) + len(new)

    best = sorted((line for _, _, lines in hunks for line in lines), key=worth, reverse=True)[:max(MOST_SHOWN, len(hunks))]
    for i, j, lines in hunks:
        at = f"line {start[i][0]}" if j == i + 1 else f"lines {start[i][0]} to {start[j - 1][0]}" if j > i else f"after line {start[i - 1][0] if i else 1}"
        shown = list(dict.fromkeys(line for line in lines if line in best))[:MOST_SHOWN] or lines[:1]
        yield f"{at}: " + (" … ".join(shown) if lines else "goes away")


def grades(folder, gpu="h100"):
    """Lines of a table: of each student (a folder of `folder`) the goals met in each exercise, and how many exercises are done. A file
    belongs to the exercise with whose number its name begins."""
    files = {}
    for file in sorted(folder.glob("*/*.cu")):
        if not (number := re.match(r"0*(\d+)", file.name)):
            raise program.Problem(f"{file}: expected a name that begins with an exercise's number, as 02_transpose.cu")
        files[file.parent.name, find(number[1]).name[:2]] = file
    if not files:
        raise program.Problem(f"{folder}: expected a folder for each student, with files such as 02_transpose.cu")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(files, pool.map(lambda key: check(find(key[1]), files[key], gpu), files)))
    numbers, students = sorted({number for _, number in files}), sorted({student for student, _ in files})
    width = max(len("student"), *map(len, students))
    yield f"{'student':<{width}}" + "".join(f"{number:>7}" for number in numbers) + f"{'done':>7}"
    for student in students:
        own = [results.get((student, number)) for number in numbers]
        yield (f"{student:<{width}}" + "".join(f"{f'{sum(goal.met for goal in r.goals)}/{len(r.goals)}' if r else '-':>7}" for r in own)
               + f"{sum(bool(r and r.passed) for r in own):>7}")


def check(folder, file, gpu="h100", page_of=None):
    """Compiles `file` into the exercise's check, runs it twice and judges it. page_of(profile, kernels): is given the measured run, too."""
    spec = json.loads((folder / "check.json").read_text(encoding="utf-8"))
    hints = {**USUAL_HINTS, **spec.get("hints", {})}
    title = f"{folder.name}: {spec['title']}"

    def build(exercise):
        return program.Program(folder / "check.cu", gpu, [f'-DEXERCISE="{exercise.resolve()}"', f"-I{FOLDER}"], ["--gpus", str(spec.get("gpus", 1))],
                               TIME_LIMIT)

    try:
        built = build(file)
    except program.Problem as problem:
        if "does not compile" not in str(problem):
            raise
        return Result(title, [Goal("compiles", "compiles", False, str(problem), "Read the first error; those after it may follow from it.")], folder)
    with built:
        goals = judge_run(built, hints, spec.get("streams", False))
        right = all(goal.met for goal in goals if goal.key in ("results", "error"))
        goals += judge_counts(built, spec["goals"], right, lambda: build(FOLDER / "solutions" / folder.name / "solution.cu"))
        if page_of:
            _, profile = built.profile(["measure"], capture=True)
            if not profile:
                raise program.Problem(f"no page: {file} has launched no kernel")
            page_of(profile, counts.kernels_of(profile, file.resolve()))
    return Result(title, goals, folder)


def walk(folder, gpu="h100"):
    """Lines that explain the solution of an exercise: its difference from start.cu, the reason of each goal, and what its lines cost."""
    spec = json.loads((folder / "check.json").read_text(encoding="utf-8"))
    solution = FOLDER / "solutions" / folder.name / "solution.cu"
    start, end = ((file.read_text(encoding="utf-8").splitlines()) for file in (folder / "start.cu", solution))
    yield f"{folder.name}: {spec['title']}"
    yield ""
    yield from difflib.unified_diff(start, end, "start.cu", "solution.cu", lineterm="", n=3)
    yield ""
    for hint in spec.get("hints", {}).values():
        yield f"- {hint}"
    for goal in spec["goals"]:
        yield f"- {goal['says']}, {'at most' if 'most' in goal else 'at least'} {goal.get('most', goal.get('least')):g}: {goal['hint']}"
    with program.Program(folder / "check.cu", gpu, [f'-DEXERCISE="{solution.resolve()}"', f"-I{FOLDER}"], ["--gpus", str(spec.get("gpus", 1))],
                         TIME_LIMIT) as built:
        _, profile = built.profile(["measure"], checks="", capture=True)
        for kernel in counts.kernels_of(profile, solution.resolve()) if profile else []:
            yield ""
            yield f"{kernel.raw['name']} {kernel.launch}"
            yield from lab_text.table(kernel, ())


def judge_run(built, hints, streams):
    """Right results on all sizes, and nothing that the checks find."""
    options = ["--check", "races,uninitialised,streams", "--streams", "lazy"] if streams else ["--check", "races,uninitialised"]
    try:
        done = program.run(built, options, capture=True)
        output, errors = done.stdout, done.stderr
    except program.Endless:
        output, errors = "", f"weft-emulate: no end after {TIME_LIMIT} s"
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
    # A single hint, for the cause of the others: wrong results follow from a race, and not the
    # other way round.
    missed = [goal for key in ("error", "race", "streams", "uninitialised", "results") for goal in goals if goal.key == key and not goal.met]
    for goal in missed[1:]:
        goal.hint = ""
    return goals


def short(told):
    """The first text, without what names the launch and the callers of who issued it."""
    if not told:
        return ""
    text = re.sub(r"(issued at [^\n]*?\)) < [^\n]*", r"\1", told[0])
    text = re.sub(r"^(?:race: |uninitialised: )?.*?>>>(?: on [^:]*stream[^:]*)?: ", "", text)
    # Inlined code gets the line of the outermost call, which is the student's; files get their
    # names.
    text = re.sub(r"[^\s:]+:\d+, inlined at (?:[^\s:]+:\d+, inlined at )*([^\s:]+:\d+)", r"\1", text)
    return re.sub(r"/\S*/(\w+\()", r"\1", counts.without_folders(text))


def predicted(built):
    """Seconds of the measured run without one launch; 0 where the model of time has no figures of this GPU."""
    launches = [launch for found in built.predict(["measure"])[0].values() for launch in found]
    return sum(launch[0] for launch in launches) - launches[0][1]["launch"] if launches else 0.0


def judge_counts(built, wanted, right, build_solution):
    """What the goals ask for, of the measured run."""
    total, values, kernels, why = counts.Line(), {}, [], "the results are not right"
    if wanted and right:
        try:
            done, profile = built.profile(["measure"], checks="", capture=True)
            values.update((name, float(value)) for name, value in COUNT.findall(done.stdout))
            kernels, why = counts.kernels_of(profile, built.source) if profile else [], "no kernel was launched"
        except program.Endless:
            why = f"the measured run has not ended after {TIME_LIMIT} s"
    if kernels:
        for kernel in kernels:
            total.join(kernel.total)
        values.update((name, measure(total)) for name, measure in MEASURES.items())
        values["occupancy"] = min(kernel.occupancy.share for kernel in kernels)
        values["shared_bytes"] = max(kernel.raw["static_shared"] + kernel.raw["dynamic_shared"] for kernel in kernels)
    goals = []
    for goal in wanted:
        what, says = goal["what"], f"{goal['says']}: {'at most' if 'most' in goal else 'at least'} {goal.get('most', goal.get('least')):g}"
        if what == "time" and kernels:
            with build_solution() as solution:
                values["time"] = ratio(predicted(built), predicted(solution))
            if not values["time"]:
                goals.append(Goal(what, says, True, f"not judged: the model of time has no figures of {built.gpu}"))
                continue
        if what not in values:
            goals.append(Goal(what, says, False, f"not measured: {why}"))
            continue
        met = values[what] <= goal["most"] if "most" in goal else values[what] >= goal["least"]
        goals.append(Goal(what, says, met, f"{values[what]:,.2f}".rstrip("0").rstrip("."), goal["hint"]))
    return goals
