# SPDX-License-Identifier: Apache-2.0
"""benchmarks/scaling_model: its latencies are NCCL's, its limits are right, and its pages say what it says."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("scaling_model", str(ROOT / "benchmarks/scaling_model"))
model = importlib.util.module_from_spec(importlib.util.spec_from_loader("scaling_model", LOADER))
LOADER.exec_module(model)
CLUSTERS = model.CLUSTERS


def microseconds(cluster, n, algorithm, protocol):
    """Latency of half an all_reduce, or of a gather, with its start."""
    ways = [way for way in CLUSTERS[cluster].ways(n) if way[0] == algorithm]
    names = [p for p in model.PROTOCOLS if p != "LL128" or CLUSTERS[cluster].ll128] if algorithm != "PAT" else [protocol]
    _, steps, start, _ = ways[names.index(protocol)]
    return 1e6 * (steps + start)


def rows(text):
    """The cells of a Markdown table's rows, without its rule."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def printed(command):
    out = io.StringIO()
    command(out)
    return out.getvalue()


class Latencies(unittest.TestCase):
    def test_rings_of_1024_ranks_are_those_of_nccls_table(self):
        # 256 nodes of four: 768 steps inside, 255 between nodes; an AMD processor takes 2 us a message, thrice for Simple.
        self.assertAlmostEqual(microseconds("juwels_booster", 1024, "ring", "LL128"), 14 + 768 * 2 + 255 * 4)
        self.assertAlmostEqual(microseconds("juwels_booster", 1024, "ring", "Simple"), 8.4 + 768 * 6 + 255 * 14)
        self.assertAlmostEqual(microseconds("dgx_h100", 1024, "ring", "LL128"), 14 + 896 * 1.9 + 127 * 4)
        # One GPU a node: each step is between nodes, with the latency of a tree's.
        self.assertAlmostEqual(microseconds("vista", 1024, "ring", "LL128"), 14 + 1023 * 8.5)
        self.assertAlmostEqual(microseconds("vista", 1024, "PAT", ""), 8 + 10 * 4 + 1024 * 2.8)

    def test_trees_grow_with_the_logarithm(self):
        self.assertAlmostEqual(microseconds("juwels_booster", 1024, "tree", "LL128"), 14 + 3 * 1.25 + 8 * 8.5)
        self.assertAlmostEqual(microseconds("juwels_booster", 4, "tree", "LL"), 6.8 + 3 * 0.6)

    def test_no_ll128_between_nodes_of_perlmutter(self):
        self.assertEqual(len([w for w in CLUSTERS["perlmutter"].ways(8) if w[0] == "ring"]), 2)
        self.assertEqual(len([w for w in CLUSTERS["perlmutter"].ways(4) if w[0] == "ring"]), 3)

    def test_large_messages_have_the_bandwidth(self):
        size = 1e12
        self.assertAlmostEqual(CLUSTERS["dgx_a100"].gather(size, 8) / (7 / 8 * size / 230e9), 1, places=4)
        self.assertAlmostEqual(CLUSTERS["vista"].all_reduce(size, 64) / (2 * 63 / 64 * size / 40e9), 1, places=4)


class Steps(unittest.TestCase):
    def test_one_gpu_waits_for_nobody(self):
        for strategy, shape in (("ddp", model.EVEN), ("fsdp", 12), ("hsdp", 12)):
            self.assertAlmostEqual(model.step_of(strategy, CLUSTERS["vista"], 1, 0.1, 1e8, shape), 0.1)

    def test_hsdp_of_one_replica_is_fsdp(self):
        for place in CLUSTERS.values():
            self.assertEqual(model.fsdp_step(place, 64, 0.05, 1e9, 12, shard=64), model.fsdp_step(place, 64, 0.05, 1e9, 12))

    def test_hsdp_beats_fsdp_where_rings_are_long(self):
        arguments = CLUSTERS["vista"], 1024, 0.07, 124e6, 13
        self.assertLess(model.fsdp_step(*arguments, shard=8), 0.6 * model.fsdp_step(*arguments))

    def test_a_tied_tail_waits_whole(self):
        # Compute hides all buckets but those of the tail, which come when backward ends.
        place, n, parameters, share = CLUSTERS["perlmutter"], 64, 124e6, 38.6 / 124
        even = model.ddp_step(place, n, 10, parameters) / model.jitter(n) - 10
        tail = model.ddp_step(place, n, 10, parameters, model.tied(share)) / model.jitter(n) - 10
        self.assertLess(even, 1.5 * place.all_reduce(model.BUCKET, n))
        self.assertGreater(tail, 0.9 * 2 * share * parameters * 4 / place.bandwidth(n) * (n - 1) / n)

    def test_what_waits_in_line_costs_its_time(self):
        arguments, shard = (CLUSTERS["perlmutter"], 64, 0.16, 124e6, 13), 8
        place, n, units = arguments[0], arguments[1], arguments[4]
        replicas = place.across().all_reduce(124e6 * 2 / units / shard, n // shard)
        behind, in_line = (model.fsdp_step(*arguments, shard=shard, in_line=each) for each in (False, True))
        self.assertAlmostEqual(in_line - behind, (units - 1) * replicas * model.jitter(n))

    def test_norms_without_a_group_wait_for_buckets(self):
        for own_group in (False, True):  # nothing to wait for: DDP's step and the norms' calls
            alone = model.synced_norms_step(CLUSTERS["vista"], 1, 0.1, 25.6e6, model.RESNET, 53, own_group)
            self.assertAlmostEqual(alone, 0.1)
        place, compute = CLUSTERS["vista"], 0.1
        shared, own = (model.synced_norms_step(place, 64, compute, 25.6e6, model.RESNET, 53, each) for each in (False, True))
        calls = 2 * 53 * place.all_reduce(8000, 64)
        plain = model.ddp_step(place, 64, compute, 25.6e6, model.RESNET)
        self.assertGreater(shared, own)
        self.assertLess(own, 1.001 * (plain + calls * model.jitter(64)))

    def test_a_tied_weight_is_the_last_bucket_alone(self):
        place, n = CLUSTERS["vista"], 8
        one, several = (model.ddp_step(place, n, 0.0, 1e8, model.tied(0.999), cut=cut) for cut in (False, True))
        sent = place.all_reduce(399.6e6, n) + place.all_reduce(0.4e6, n)
        self.assertAlmostEqual(one, sent * model.jitter(n))
        self.assertGreater(several, one)

    def test_the_root_is_gathered_first_and_scattered_last(self):
        place, n = CLUSTERS["vista"], 8
        for size in (2, 4):
            whole = model.fsdp_step(place, n, 0.1, 1e8, 12, root=2e7, root_element=size)
            units = model.fsdp_step(place, n, 0.1, 8e7, 12)
            self.assertAlmostEqual(whole - units, 2 * place.gather(size * 2e7, n) * model.jitter(n))

    def test_bars_hold_the_step(self):
        for strategy, shape in (("ddp", model.RESNET), ("fsdp", 12), ("hsdp", 12)):
            for n in (2, 64, 1024):
                step, least, most = model.with_bar(
                    lambda: model.step_of(strategy, CLUSTERS["vista"], n, 0.1, 1e8, shape))  # noqa: B023
                self.assertLessEqual(least, step)
                self.assertLess(1.05 * step, most)
        self.assertEqual((model.LATENCIES, model.NETWORK_SHARE), (1.0, 0.8), "what with_bar() tried is undone")


class Pages(unittest.TestCase):
    def page(self, name):
        return (ROOT / "benchmarks/results" / name).read_text(encoding="utf-8")

    def test_tables_are_what_the_model_says(self):
        for name, command in (("check", model.check), ("predictions", model.table), ("steps", model.steps),
                              ("changes", model.changes)):
            lines = [line.split("\t") for line in self.page(f"scaling_model-{name}.tsv").splitlines()[1:]]
            text = printed(command)
            if name == "check":
                text = text.split("\n\n")[0]
            if name == "predictions":
                text = text.split("\n\n")[1]
            self.assertEqual(lines, rows(text), name)

    def test_the_page_repeats_the_steps(self):
        told = {(row[0], row[1]): row for row in rows(self.page("scaling_model.md")) if len(row) == 7}
        del told["network", "strategy, machine, what travels"]
        for line in self.page("scaling_model-steps.tsv").splitlines()[2:]:
            cells = line.split("\t")
            row = told.pop((cells[0], cells[1]), None)
            if row:
                steps = [f"{cell.split()[0]} ({cell.rstrip(']').split(', ')[-1]})" for cell in cells[3:7]]
                self.assertEqual(row, cells[:3] + steps)
        self.assertEqual(told, {})

    def test_the_page_gives_the_errors(self):
        summary = printed(model.check)
        for line in summary.splitlines():
            if line.startswith("| ") and "%" in line and " to " not in line.split(" | ")[1]:
                self.assertIn(line, self.page("scaling_model.md"))
        mean, largest = summary.split("Mean over the curves ")[1].split("%, largest error ")
        self.assertIn(f"mean error of {mean}%; the largest is {largest.split('%')[0]}%", self.page("scaling_model.md"))


if __name__ == "__main__":
    unittest.main()
