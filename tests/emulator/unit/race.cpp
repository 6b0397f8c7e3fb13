// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/race.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

// Rows are checked many cells at once. Each cell must have the record that visits of single cells leave.

namespace emulator {
namespace {

using Line = ShadowPage::Line;
constexpr size_t kLines = 4, kCells = kLines * Line::kCells;
constexpr int kWarps = 3, kBlocks = 3;

/// A page of the process's shadow memory.
struct Page {
  Page() : begin((reinterpret_cast<uintptr_t>(memory) + ShadowPage::kBytes - 1) & ~(ShadowPage::kBytes - 1)) {
    page().four(0);
    for (size_t n = 0; n < kLines; ++n) page().lines[n] = {};
  }
  ShadowPage& page() const { return Shadow::get().page(begin, 4); }
  void part() const {
    for (size_t cell = 0; cell < kCells; cell += Line::kCells) page().four(cell);
  }
  char memory[2 * ShadowPage::kBytes];
  uintptr_t begin;
};

struct Record {
  uint64_t stamps[3];
  Site at[3];  ///< 0 where the stamp is 0
  bool operator==(const Record&) const = default;
};
/// The record of a cell, which may be its line's.
Record record(const ShadowPage& page, size_t cell) {
  const Line& line = page.lines[cell / Line::kCells];
  const ShadowPage::Cells* const four = line.apart ? page.cells + cell / ShadowPage::Cells::kCount : nullptr;
  const size_t k = cell % ShadowPage::Cells::kCount;
  Record r{};
  for (int which = 0; which < 3; ++which) {
    if (four)
      r.stamps[which] = which == 0 ? four->write[k] : four->reads[which - 1][k];
    else
      r.stamps[which] = line.stamp(which, cell % Line::kCells);
    if (r.stamps[which] == 0) continue;
    r.at[which] = !four ? line.at[which] : which == 0 ? four->write_at[k] : four->reads_at[which - 1][k];
  }
  return r;
}

struct Blocks {
  LaunchClock launch{kBlocks, 1};
  BlockClock clocks[kBlocks];
  Blocks() {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const uint32_t number = launch.first_block() + i;
      clocks[i].begin(launch, number, 32 * kWarps, number, 1);
    }
  }
};

/// Accesses one row as the checks do. `by_cells`: each cell by itself. Returns the races.
int access(const CellRow& row, BlockClock& clock, int warp, bool write, bool joins, bool by_cells) {
  const uint32_t all = row.shift == kOneStamp ? ~0u : 0;
  Visitor<false> visitor{clock, clock.glance<false>(static_cast<uint32_t>(warp)), 0, 0, row.at, 32 * warp, all};
  int races = 0;
  for (size_t k = 0; k < row.cells;) {
    if (!by_cells) {
      k = write ? write_row(row, k, visitor.glance).done : read_row(row, k, visitor.glance, joins).done;
      if (k == row.cells) break;
      if (!joins && !write) {
        joins = true;
        continue;
      }
    }
    for (size_t left = cells_to_visit(row, k); left != 0; --left, ++k) {
      visitor.now = visitor.mark = row.mark + (k >> row.shift);
      if (all == 0) visitor.lanes = 1u << (visitor.now & 31);
      const Cell cell(row.page, row.cell + k);
      races += !(write ? visitor.write(cell, 4 * k) : visitor.read(cell, 4 * k));
    }
  }
  return races;
}

/// `joins`: of reads. If not, rows of cells are compared to rows of lines.
void compare(unsigned seed, bool joins) {
  const auto rows = std::make_unique<Page>(), cells = std::make_unique<Page>();
  Blocks blocks;
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % n; };
  for (Site step = 1; step <= 120; ++step) {
    const size_t b = below(kBlocks), warp = below(kWarps);
    BlockClock& clock = blocks.clocks[b];
    if (const size_t event = below(12); event == 0)
      clock.barrier();
    else if (event == 1)
      clock.sync_warp(static_cast<int>(warp), below(2) != 0 ? ~0u : 0xffffu, ~0u);
    const bool write = below(4) == 0, one = joins && !write && below(3) == 0;
    const int shift = one ? kOneStamp : static_cast<int>(below(3));
    const size_t lane_cells = one ? 1 : size_t{1} << shift;
    size_t lanes = 32, first = 0, lane = 0;
    if (joins) {
      lane = below(31);
      lanes = 1 + below(std::min<size_t>(32 - lane, kCells / lane_cells));
      first = below(2) != 0 ? below((kCells - lanes * lane_cells) / lane_cells + 1) * lane_cells : 0;
      if (below(2) != 0) lane = 0, lanes = 16;
    } else if (shift == 0) {
      first = below(9) * 4;
    }
    if (first + lanes * lane_cells > kCells) continue;
    uint64_t mark = clock.now();
    mark |= one ? static_cast<uint64_t>(stamp::warp_some(static_cast<int>(warp))) : 32 * warp + lane;
    const CellRow row{rows->page(), first, lanes * lane_cells, shift, mark, step};
    const CellRow other{cells->page(), first, lanes * lane_cells, shift, mark, step};
    if (!joins) cells->part();
    const int races = access(row, clock, static_cast<int>(warp), write, joins, false);
    EXPECT_EQ(races, access(other, clock, static_cast<int>(warp), write, joins, joins)) << "step " << step;
    for (size_t k = 0; k < kCells; ++k)
      ASSERT_EQ(record(rows->page(), k), record(cells->page(), k))
          << "seed " << seed << " step " << step << " cell " << k;
  }
}

TEST(Race, RowsLeaveWhatVisitsOfTheirCellsDo) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    compare(seed, true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Race, LinesAreWhatTheirCellsWouldBe) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    compare(seed, false);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace emulator
