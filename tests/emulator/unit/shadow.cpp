// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/shadow.h"

#include <gtest/gtest.h>

#include <memory>

// The record of accesses that the race check keeps.

namespace emulator {
namespace {

/// One page of memory that nothing else is known of.
struct Page {
  Page() : begin((reinterpret_cast<uintptr_t>(memory) + ShadowPage::kBytes - 1) & ~(ShadowPage::kBytes - 1)) {}
  ShadowPage& with_cells_for(size_t bytes) { return Shadow::get().page(begin + bytes, bytes); }
  char memory[2 * ShadowPage::kBytes];
  uintptr_t begin;
};

/// Something different in each cell of 4 bytes.
void fill(ShadowPage& page, uint64_t first) {
  ASSERT_EQ(page.cell_shift, 2);
  for (size_t k = 0; k < ShadowPage::kBytes / 4; ++k) {
    const Cell cell(page, k);
    cell.write() = first + 3 * k;
    cell.write_at() = static_cast<Site>(k);
    for (int slot = 0; slot < 2; ++slot) {
      cell.read(slot) = first + 3 * k + 1 + static_cast<uint64_t>(slot);
      cell.read_at(slot) = static_cast<Site>(k + 1 + static_cast<size_t>(slot));
    }
  }
}

/// The cells of each part of 4 bytes have the content of the part's former cell.
void expect_filled(ShadowPage& page, uint64_t first) {
  for (size_t at = 0; at < ShadowPage::kBytes; at += size_t{1} << page.cell_shift) {
    const Cell cell(page, at >> page.cell_shift);
    const size_t k = at / 4;
    ASSERT_EQ(cell.write(), first + 3 * k) << at;
    ASSERT_EQ(cell.write_at(), k) << at;
    for (int slot = 0; slot < 2; ++slot) {
      ASSERT_EQ(cell.read(slot), first + 3 * k + 1 + static_cast<uint64_t>(slot)) << at;
      ASSERT_EQ(cell.read_at(slot), k + 1 + static_cast<size_t>(slot)) << at;
    }
  }
}

TEST(Shadow, FinerCellsHaveWhatTheCoarseOnesHad) {
  const auto memory = std::make_unique<Page>();
  fill(memory->with_cells_for(4), 1000);
  for (const size_t bytes : {2u, 1u}) {
    ShadowPage& page = memory->with_cells_for(bytes);
    EXPECT_EQ(size_t{1} << page.cell_shift, bytes);
    expect_filled(page, 1000);
  }
  EXPECT_EQ(memory->with_cells_for(4).cell_shift, 0) << "they stay fine";
}

}  // namespace
}  // namespace emulator
