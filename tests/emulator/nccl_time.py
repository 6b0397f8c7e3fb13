#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft-emulate --time of ranks: a collective takes what benchmarks/scaling_model says, begins with the last rank, ends on all at
once, and hides behind kernels of another stream.

    tests/emulator/nccl_time.py WEFT-EMULATE PROGRAM               PROGRAM: nccl_time.cu, built
    tests/emulator/nccl_time.py WEFT-EMULATE WEFT-RUN TRAIN_GPT    steps of DDP and FSDP"""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("scaling_model", str(ROOT / "benchmarks/scaling_model"))
model = importlib.util.module_from_spec(importlib.util.spec_from_loader("scaling_model", LOADER))
LOADER.exec_module(model)
EMULATE, PROGRAM, *TRAIN_GPT = sys.argv[1:]
MIB = 1 << 20
LINE = re.compile(r"^weft-emulate: rank (\d+) of \d+ \(GPU \d+\): ([\d.]+) ms predicted: compute ([\d.]+), communication ([\d.]+), "
                  r"of it exposed ([\d.]+), idle ([\d.]+)", re.M)
NAMES = ("total", "compute", "communication", "exposed", "idle")


def lines_of(text):
    return {int(rank): dict(zip(NAMES, map(float, numbers))) for rank, *numbers in LINE.findall(text)}


def spans_of(trace):
    return [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]


class Run:
    """What a run prints: `ms` of each rank; of each rank's line `total`, `compute`, `communication`, `exposed`, `idle`, in ms;
    `spans` of its trace."""

    def __init__(self, ranks, *words, options=(), cluster="perlmutter", gpu="a100"):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            chosen = ["--cluster", cluster] if cluster else []
            run = subprocess.run([EMULATE, "--gpu", gpu, "--gpus", str(ranks), *chosen, "--time-trace", trace, *options,
                                  PROGRAM, str(ranks), *map(str, words)], capture_output=True, text=True)
            assert run.returncode == 0, run.stdout + run.stderr
            self.spans = spans_of(trace)
        self.said = run.stderr
        self.ms = [float(ms) for _, ms in sorted(re.findall(r"rank (\d+): ([\d.]+) ms", run.stdout))]
        self.lines = lines_of(run.stderr)
        assert len(self.ms) == len(self.lines) == ranks, run.stdout + run.stderr

    def collectives(self, rank):
        return [e for e in self.spans if e["pid"] == rank and e["cat"] == "communication"]


class Collectives(unittest.TestCase):
    def check(self, run, seconds):
        for ms in run.ms:
            self.assertAlmostEqual(ms / (1e3 * seconds), 1, places=4)
        for line in run.lines.values():
            self.assertAlmostEqual(line["communication"], 1e3 * seconds, places=2)

    def test_they_take_what_the_scaling_model_says(self):
        for cluster in ("perlmutter", "vista", "dgx_h100"):
            place = model.CLUSTERS[cluster]
            for ranks, size in ((2, 4 * MIB), (4, 4096), (8, 8 * MIB)):
                with self.subTest(cluster=cluster, ranks=ranks, size=size):
                    self.check(Run(ranks, "all_reduce", size, cluster=cluster), place.all_reduce(size, ranks))
                    self.check(Run(ranks, "all_gather", size, cluster=cluster), place.gather(size, ranks))
        self.check(Run(4, "reduce_scatter", 4 * MIB), model.CLUSTERS["perlmutter"].gather(4 * MIB, 4))

    def test_the_gpu_chooses_a_machine(self):
        self.check(Run(2, "all_reduce", MIB, cluster=None), model.CLUSTERS["dgx_a100"].all_reduce(MIB, 2))
        unknown = Run(2, "all_reduce", MIB, cluster=None, gpu="a6000")
        self.assertEqual(unknown.lines[0]["communication"], 0)
        self.assertIn("no links of this GPU are known", unknown.said)

    def test_a_broadcast_is_a_ring(self):
        size, us = 4 * MIB, min(8.4 + 3 * 3.4 + 4 * MIB / 200e3, 14 + 3 * 1.9 + 4 * MIB / (0.92 * 200e3))
        self.check(Run(4, "broadcast", size), 1e-6 * us)

    def test_transfers_share_a_ranks_links(self):
        block = 2 * MIB
        self.check(Run(4, "exchange", 4 * block), 1e-6 * (8.4 + 3.4 + block / 200e3))
        self.check(Run(4, "all_to_all", 4 * block), 1e-6 * (8.4 + 3.4 + 3 * block / 200e3))
        # Four of the others are in another node: 0.8 of a card of 25 GB/s each.
        self.check(Run(8, "all_to_all", 8 * block), 1e-6 * (8.4 + 14 + 4 * block / 20e3))

    def test_all_begin_with_the_last_and_end_at_once(self):
        run = Run(4, "all_reduce", MIB, "late")
        one = run.lines[1]["compute"]
        cost = 1e3 * model.CLUSTERS["perlmutter"].all_reduce(MIB, 4)
        for rank in range(4):
            self.assertAlmostEqual(run.ms[rank], 3 * one + cost, places=2)
            self.assertAlmostEqual(run.lines[rank]["compute"], rank * one, places=2)
            self.assertAlmostEqual(run.lines[rank]["idle"], (3 - rank) * one, places=2)
            (span,) = run.collectives(rank)
            self.assertAlmostEqual(span["args"]["waited_us"], 1e3 * (3 - rank) * one, delta=2)  # ms have three decimals
        ends = [span["ts"] + span["dur"] for rank in range(4) for span in run.collectives(rank)]
        self.assertAlmostEqual(max(ends) - min(ends), 0, places=6)

    def test_a_graph_takes_its_time_each_time(self):
        self.check(Run(2, "graph", MIB), 2 * model.CLUSTERS["perlmutter"].all_reduce(MIB, 2))

    def test_orders_of_streams_do_not_change_it(self):
        runs = [Run(2, "step", 8 * MIB, 4, options=options) for options in ([], ["--streams", "lazy"], ["--seed", "3", "--streams", "random"])]
        for run in runs[1:]:
            self.assertEqual(run.ms, runs[0].ms)


class Overlap(unittest.TestCase):
    def test_parts_hide_behind_kernels(self):
        one, parts = (Run(2, "step", 8 * MIB, count, cluster="vista") for count in (1, 4))
        place = model.CLUSTERS["vista"]
        whole, part = (1e3 * place.all_reduce(size, 2) for size in (8 * MIB, 2 * MIB))
        for rank in range(2):
            compute = one.lines[rank]["compute"]
            self.assertAlmostEqual(one.lines[rank]["exposed"], whole, places=2)
            self.assertAlmostEqual(one.ms[rank], compute + whole, places=2)
            # A part takes less than two kernels: all but the last are hidden.
            self.assertLess(part, compute / 4)
            self.assertAlmostEqual(parts.lines[rank]["exposed"], part, places=2)
            self.assertAlmostEqual(parts.lines[rank]["communication"], 4 * part, places=2)
            self.assertAlmostEqual(parts.ms[rank], compute + part, places=2)
            self.assertEqual({span["tid"] for span in parts.collectives(rank)} & {
                e["tid"] for e in parts.spans if e["pid"] == rank and e["cat"] == "compute" and "chain" in e["name"]}, set())

    def test_without_time_nothing_is_said(self):
        run = subprocess.run([EMULATE, "--gpus", "2", PROGRAM, "2", "step", str(MIB), "4"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_a_wrong_machine_is_refused(self):
        run = subprocess.run([EMULATE, "--cluster", "moon", PROGRAM, "2", "graph", "8"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--cluster (WEFT_EMULATE_CLUSTER): expected one of dgx_a100, ", run.stderr)


def train(ranks, options, *words, steps=1):
    """Steps of train_gpt: what it said, and the spans of its trace."""
    with tempfile.TemporaryDirectory() as folder:
        trace, data = pathlib.Path(folder) / "trace", pathlib.Path(folder) / "text"
        data.write_text("the cat runs, a dog sits. " * 80)
        run = subprocess.run([EMULATE, "--gpus", str(ranks), "--threads", "1", "--time", *options, "--time-trace", trace,
                              PROGRAM, "--nproc_per_node", str(ranks), *TRAIN_GPT, "--model", "gpt_tiny", "--context", "16",
                              "--batch-size", "1", "--max-steps", str(steps), "--device", "cuda", "--data", data, "--out", f"{folder}/run",
                              *words], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stderr, spans_of(trace)


class Switches(unittest.TestCase):
    def test_what_they_add_has_no_factor(self):
        for gpu, scaled in (("h100", False), ("a100", True)):  # NVIDIA's NVLS has no PreMulSum; A100s have no NVLS
            sums = [span["name"] for span in train(2, ["--gpu", gpu], "--parallel", "ddp")[1] if re.match("all_reduce of .* f32", span["name"])]
            self.assertEqual(any("scaled sum" in name for name in sums), scaled, f"{gpu}: {sums}")
            self.assertTrue(any("(sum)" in name for name in sums) or scaled, f"{gpu}: {sums}")


class Sharded(unittest.TestCase):
    """Each process prints its line and table beside the others'."""

    def test_a_step_takes_what_its_collectives_take(self):
        for ranks in (2, 16):
            with self.subTest(ranks=ranks):
                said, spans = train(ranks, ["--cluster", "perlmutter"], "--parallel", "fsdp")
                lines = lines_of(said)
                self.assertEqual(sorted(lines), list(range(ranks)))
                self.assertEqual(len({line["total"] for line in lines.values()}), 1)
                place, kinds = model.CLUSTERS["perlmutter"], {"all_gather": 0, "reduce_scatter": 0}
                for span in spans:
                    found = re.match(r"(all_gather|reduce_scatter) of (\d+) f32", span["name"])
                    if found:
                        kinds[found[1]] += 1
                        self.assertAlmostEqual(span["dur"], 1e6 * place.gather(4 * int(found[2]) * ranks, ranks), delta=1e-3)
                self.assertEqual(kinds["reduce_scatter"], 5 * ranks)  # four blocks, and all else
                self.assertGreater(kinds["all_gather"], 2 * 4 * ranks)
                # A rank's line has all of its collectives.
                for rank, line in lines.items():
                    sum_us = sum(s["dur"] for s in spans if s["pid"] == rank and s["cat"] == "communication")
                    self.assertAlmostEqual(line["communication"], 1e-3 * sum_us, delta=0.05 * line["communication"])


class Steps(unittest.TestCase):
    """A whole step beside the model's of the same compute, bytes and units, between nodes, where collectives take long. The model
    leaves small collectives out (counts of samples, norms), which are exposed or not; buckets end at parameters."""

    def test_they_take_what_the_scaling_model_says(self):
        for parallel, ranks in (("ddp", 4), ("fsdp", 2)):
            with self.subTest(parallel=parallel):
                step = model.TracedStep(train(ranks, ["--gpu", "gh200", "--cluster", "vista"], "--parallel", parallel, steps=2)[1])
                more = step.step - step.modelled(model.CLUSTERS["vista"], model.EVEN)
                self.assertGreaterEqual(more, -1e-3 * step.step)
                self.assertLessEqual(more, step.small + 1e-3 * step.step)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(["Sharded", "Switches", "Steps"] if TRAIN_GPT else ["Collectives", "Overlap"])])
