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

    def test_nothing_is_found(self):
        self.assertEqual(self.profile["findings"], [])


if __name__ == "__main__":
    unittest.main()
