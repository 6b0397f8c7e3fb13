# SPDX-License-Identifier: Apache-2.0
"""The capstone: programs ranked by their share of the roofline.

exercises/capstone has start.cu, check.cu and score.json (title, n, hints). A product of n x n matrices, bf16 to f32, needs at least
max(2 n^3 flops at the tensor cores' rate, 8 n^2 bytes at the memory's) on a GPU: this time by a program's time is its score. The emulator's
model predicts the time of n from a wave of blocks; on a machine with a GPU CUDA events measure it."""
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

from . import counts, exercises, measure, program

CAPSTONE = exercises.FOLDER / "capstone"
REFERENCES = {"naive": CAPSTONE / "start.cu", **{name: exercises.FOLDER / f"solutions/capstone/{name}.cu" for name in ("tiled", "tensor_cores", "pipelined")}}


@dataclass
class Score:
    name: str
    goals: list           # those of exercises.judge_run
    predicted: float      # seconds of all launches without one launch's cost; 0: results are wrong, or no figures of the GPU
    bound: str            # what the model says limits the slowest launch
    measured: float       # seconds on this machine's GPU; 0: not measured
    roofline: float       # seconds

    @property
    def right(self):
        return all(goal.met for goal in self.goals)

    @property
    def share(self):
        """Of the roofline, by the measured time where there is one."""
        return self.roofline / (self.measured or self.predicted) if self.right and (self.measured or self.predicted) else 0.0


def least(gpu, n):
    """Seconds that n needs on a GPU, an entry `gpu` of a profile: counts.bounds' data sheet."""
    _, _, tensor = counts.UNITS.get(gpu["capability"], (128, 2, 1024))
    flops = tensor * gpu["processors"] * gpu["clock_khz"] * 1e3
    return max(2 * n**3 / flops, 8 * n**2 / (gpu["memory_clock_khz"] * 1e3 * 2 * gpu["memory_bus_bits"] / 8))


def build(file, gpu):
    return program.Program(CAPSTONE / "check.cu", gpu, [f'-DEXERCISE="{Path(file).resolve()}"', f"-I{exercises.FOLDER}"], (), exercises.TIME_LIMIT)


def scored(name, file, gpu, on_gpu):
    """Checks and times one file. `on_gpu`: time it on this machine's GPU, too. Errors: Problem, where it does not compile."""
    spec = json.loads((CAPSTONE / "score.json").read_text(encoding="utf-8"))
    with build(file, gpu) as built:
        goals = exercises.judge_run(built, {**exercises.USUAL_HINTS, **spec["hints"]}, False)
        score = Score(name, goals, 0.0, "", 0.0, 0.0)
        if not score.right:
            return score
        launches = [launch for found in built.predict(["measure"], ["--time-waves", "1"])[0].values() for launch in found]
        if launches:
            score.predicted = sum(launch[0] for launch in launches) - launches[0][1]["launch"]
            limits = max(launches, key=lambda launch: launch[0])[1]
            score.bound = max((limit for limit in limits if limit != "launch"), key=limits.get)
        score.roofline = least(program.gpu_facts(gpu), spec["n"])
        if on_gpu:
            found, count = measure.times(built, ["measure"], 3)
            score.measured = sum(statistics.median(seconds) * count[key] for key, seconds in found.items())
        return score


def table(scores):
    """Lines of the ranking, the best first; programs with wrong results or findings stand last, with the first hint."""
    width = max(12, *(len(score.name) for score in scores))
    yield f"{'rank':>4}  {'program':<{width}} {'of the roofline':>15} {'predicted µs':>13} {'measured µs':>12}  limited by"
    for rank, score in enumerate(sorted(scores, key=lambda score: (-score.share, score.name)), start=1):
        if score.right:
            measured = f"{score.measured * 1e6:.1f}" if score.measured else "-"
            predicted = f"{score.predicted * 1e6:.1f}" if score.predicted else "-"
            yield f"{rank:>4}  {score.name:<{width}} {score.share:>14.1%} {predicted:>14} {measured:>12}  {score.bound or '-'}"
        else:
            missed = next(goal for goal in score.goals if not goal.met)
            yield f"   -  {score.name:<{width}} {'no score':>15}: {missed.says}: {missed.detail}"
