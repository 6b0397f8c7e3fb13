#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""known.py ROOT: what tools/weft-lab counts of known.cu equals what is published of these kernels, exactly."""
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
sys.path.insert(0, str(ROOT / "tools"))
from lab import counts, program  # noqa: E402


def line_with(kernel, text):
    """The counts of the one source line that holds the text."""
    source = (ROOT / "tests/lab/known.cu").read_text(encoding="utf-8").splitlines()
    found = [line for (_, number), line in kernel.lines.items() if number and text in source[number - 1]]
    assert len(found) == 1, f"{len(found)} executed lines hold {text!r}"
    return found[0]


class Known(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with program.Program(ROOT / "tests/lab/known.cu") as built:
            done, cls.profile = built.profile(capture=True)
            assert done.returncode == 0, done.stderr
            cls.kernels = {(k.name, k.raw["grid"][0]): k for k in counts.kernels_of(cls.profile, built.source)}

    def test_transpose(self):
        """M. Harris, "An Efficient Matrix Transpose in CUDA C/C++" (NVIDIA, 2013): naive writes have the stride of a row; reading a column of
        the tile is a 32-way conflict; a tile one word wider has none."""
        naive = line_with(self.kernels["transpose_naive", 2], "out[x * n + row] = in[row * n + x];")
        self.assertEqual((naive.of("load").each, naive.of("store").each), (4, 32))
        self.assertEqual((naive.of("load").efficiency, naive.of("store").efficiency), (1, 0.125))
        for padding, ways in ((0, 32), (1, 1)):
            kernel = self.kernels[f"transpose_tile<{padding}>", 2]
            into, out = line_with(kernel, "= in[(y + row) * n"), line_with(kernel, "= tile[threadIdx.x][row]")
            self.assertEqual((into.of("load").each, out.of("store").each), (4, 4))
            self.assertEqual((into.of("shared_store").each, out.of("shared_load").each), (1, ways))
            # 64 x 64 elements are 128 warps of requests.
            self.assertEqual((into.conflicts, out.conflicts), (0, 128 * (ways - 1)))
        worst = line_with(self.kernels["transpose_tile<0>", 2], "= tile[threadIdx.x][row]").of("shared_load").worst
        self.assertEqual([at - worst["at"][0] for at in worst["at"]], [128 * lane for lane in range(32)])

    def test_nsight_compute(self):
        """Nsight Compute's counters of homework 8 of the CUDA Training Series (NVIDIA and OLCF): transposes of 4096 x 4096 doubles by blocks of
        32 x 32. Published by github.com/eduardo4jesus/cuda-training-series, exercises/hw8 (2022): task1, task1b, task2, task3. Here 64 x 64 have
        a 4096th of the requests. The counters of wavefronts hold others' turns, too (task3: 0 and 23% more than here); the share of wavefronts'
        bytes that are used does not."""
        scale = (4096 // 64) ** 2
        for name, loads, stores, load_used, store_used, shared_used in (
                ("transpose_doubles<true>", 16777216, 4194304, 0.25, 1, None), ("transpose_doubles<false>", 4194304, 16777216, 1, 0.25, None),
                ("transpose_doubles_tile<0>", 4194304, 4194304, 1, 1, 0.1176), ("transpose_doubles_tile<1>", 4194304, 4194304, 1, 1, 1)):
            with self.subTest(name):
                total = self.kernels[name, 2].total
                load, store, to, of = (total.of(kind) for kind in ("load", "store", "shared_store", "shared_load"))
                self.assertEqual((load.requests * scale, store.requests * scale), (524288, 524288))
                self.assertEqual((load.cost * scale, store.cost * scale), (loads, stores))
                self.assertEqual((load.efficiency, store.efficiency), (load_used, store_used))
                if shared_used:
                    self.assertEqual(of.cost * scale, 1048576)
                    self.assertEqual(round((to.bytes + of.bytes) / (128 * (to.cost + of.cost)), 4), shared_used)
                    self.assertEqual(total.conflicts == 0, shared_used == 1)

    def test_offsets(self):
        """CUDA C++ Best Practices Guide, "Effects of Misaligned Accesses": a warp fetches four sectors, and five at offsets that are no multiple of
        eight elements."""
        self.assertEqual(self.kernels["copy_offset", 1].total.of("load").each, 4)
        self.assertEqual(self.kernels["copy_offset", 2].total.of("load").each, 5)

    def test_strides(self):
        """The same, "Strided Accesses": a stride of two uses half of what is fetched. Larger ones end at a sector for each lane."""
        for grid, efficiency in ((1, 1), (2, 0.5), (3, 0.125)):
            total = self.kernels["copy_stride", grid].total
            self.assertEqual((total.of("load").efficiency, total.of("store").efficiency), (efficiency, efficiency))
        self.assertEqual(self.kernels["copy_stride", 3].total.of("load").each, 32)

    def test_banks(self):
        """CUDA C++ Programming Guide, compute capability 5.x, "Shared Memory", the figure of strided accesses: a stride of one word has no conflict,
        of two words a two-way one, of three words none."""
        for stride, ways in ((1, 1), (2, 2), (3, 1), (32, 32)):
            kernel = self.kernels[f"shared_stride<{stride}>", 1]
            self.assertEqual(line_with(kernel, "= words[threadIdx.x * Stride]").of("shared_load").each, ways)

    def test_reductions(self):
        """M. Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007): the first diverges, the second has no divergence while whole warps work
        but bank conflicts, the third neither. Of 128 threads: steps 1 to 64."""
        first, second, third = (self.kernels[f"reduce<{v}>", 1] for v in (1, 2, 3))
        branch = line_with(first, "if (t % (2 * s) == 0)")
        self.assertEqual(branch.splits, 4 + 4 + 4 + 4 + 4 + 2 + 1)  # warps with a thread that adds, in each step
        self.assertEqual(line_with(second, "if (i < kBlock)").splits, 5)  # whole warps up to 32 active threads, then parts of one
        self.assertEqual(line_with(third, "if (t < s)").splits, 5)
        self.assertEqual((first.total.conflicts, third.total.conflicts), (0, 0))
        # Two loads and a store of each warp that adds, whose lanes lie 2, 4, 8, … words apart.
        expected = 0
        for step, (warps, active) in enumerate([(2, 32), (1, 32), (1, 16), (1, 8), (1, 4), (1, 2), (1, 1)]):
            banks = [lane * 2 ** (step + 1) % 32 for lane in range(active)]
            expected += 3 * warps * (max(banks.count(bank) for bank in banks) - 1)
        self.assertEqual(second.total.conflicts, expected)

    def test_occupancy(self):
        """S. Boehm, "How to Optimize a CUDA Matmul Kernel" (2022), kernel 3 on an RTX A6000: 37 registers, 1024 threads, 8 KiB of shared memory:
        one block by registers, one by threads, eleven by shared memory, 32 of 48 warps: 66%."""
        gpu = {"threads_per_processor": 1536, "blocks_per_processor": 16, "shared_per_processor": 100 << 10, "processors": 84}
        room = counts.occupancy(gpu, 1024, 37, 8192, 84)
        self.assertEqual((room.limits["registers"], room.limits["warps"], room.limits["shared memory"]), (1, 1, 11))
        self.assertEqual((room.blocks, room.warps, room.most_warps, int(room.share * 100), room.waves), (1, 32, 48, 66, 1))

    def test_occupancy_of_the_guides(self):
        """CUDA C++ Best Practices Guide, "Calculating Occupancy", compute capability 7.0: of 37 registers a thread, blocks of 128 threads have 12
        on a multiprocessor and 75%, blocks of 320 have 4 and 63%. CUDA C++ Programming Guide, "Multiprocessor Level", 6.x: of 64 registers, two
        blocks of 512 threads; of 65, one."""
        gpu = {"threads_per_processor": 2048, "blocks_per_processor": 32, "shared_per_processor": 96 << 10, "processors": 80}
        for threads, registers, blocks, warps in ((128, 37, 12, 48), (320, 37, 4, 40), (512, 64, 2, 32), (512, 65, 1, 16)):
            room = counts.occupancy(gpu, threads, registers, 0, 80)
            self.assertEqual((room.blocks, room.warps, room.by), (blocks, warps, "registers"))

    def test_occupancy_of_nsight_compute(self):
        """Its section "Occupancy" of sums over rows and columns by blocks of 256 threads, on an A100 and an RTX 3090, as
        github.com/SeungjaeLim/cuda-training-series published them (exercises/hw4/profile1, hw5/msum_profile_after)."""
        a100 = {"threads_per_processor": 2048, "blocks_per_processor": 32, "shared_per_processor": 164 << 10, "processors": 108}
        rtx3090 = {"threads_per_processor": 1536, "blocks_per_processor": 16, "shared_per_processor": 100 << 10, "processors": 82}
        for gpu, registers, grid, limits, warps, waves in ((a100, 20, 64, (8, 32, 10), 64, 0.07), (rtx3090, 16, 16384, (6, 16, 16), 48, 33.30),
                                                           (rtx3090, 22, 64, (6, 16, 10), 48, 0.13)):
            room = counts.occupancy(gpu, 256, registers, 0, grid)
            self.assertEqual(tuple(room.limits[of] for of in ("warps", "blocks", "registers")), limits)
            self.assertEqual((room.warps, room.share, round(room.waves, 2)), (warps, 1, waves))

    def test_nothing_is_found(self):
        self.assertEqual(self.profile["findings"], [])


if __name__ == "__main__":
    unittest.main()
