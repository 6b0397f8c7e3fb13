// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace emulator {

/// A source location, as the checker numbers them. All accesses that can race are of one launch.
using Site = uint32_t;

/// The race check's record of 16 KiB of memory: for each cell of 4, 2 or 1 bytes the last write, and
/// two reads since then that nothing orders (of different blocks if there are such, else of different warps, else of
/// different lanes: then a write that races with any of them races with one of these two). See stamp.h. The cells are
/// as fine as the finest access so far.
struct ShadowPage {
  static constexpr int kShift = 14;
  static constexpr size_t kBytes = size_t{1} << kShift;

  /// Four cells: what vector instructions look at together, and what lies together.
  struct Cells {
    static constexpr size_t kCount = 4;
    uint64_t write[kCount], reads[2][kCount];
    Site write_at[kCount], reads_at[2][kCount];
  };

  int cell_shift = 2;
  int room_shift = 2;  ///< the finest cells that there is room for
  Cells* cells = nullptr;

  size_t cell(uintptr_t address) const { return (address & (kBytes - 1)) >> cell_shift; }
};

/// One cell.
struct Cell {
  ShadowPage::Cells& four;
  size_t k;
  Cell(ShadowPage& page, size_t cell)
      : four(page.cells[cell / ShadowPage::Cells::kCount]), k(cell % ShadowPage::Cells::kCount) {}
  uint64_t& write() const { return four.write[k]; }
  Site& write_at() const { return four.write_at[k]; }
  uint64_t& read(int slot) const { return four.reads[slot][k]; }
  Site& read_at(int slot) const { return four.reads_at[slot][k]; }
};

/// The pages of this process's whole memory. They are never cleared but by clear(): the stamps of earlier launches mean
/// nothing to later ones.
class Shadow {
 public:
  static Shadow& get() {
    static Shadow* const shadow = new Shadow;
    return *shadow;
  }

  /// The page of an address, with cells that are fine enough for accesses of `bytes` bytes at it.
  ShadowPage& page(uintptr_t address, size_t bytes) {
    ShadowPage* const found = __atomic_load_n(&table_[address >> ShadowPage::kShift], __ATOMIC_ACQUIRE);
    if (found && ((address | bytes) & ((size_t{1} << found->cell_shift) - 1)) == 0) [[likely]]
      return *found;
    return make(address, bytes);
  }
  /// The pages that lie wholly in [begin, begin + bytes) get coarse cells again: no launch that may still access this memory
  /// has done so yet.
  void coarsen(uintptr_t begin, size_t bytes);
  /// Forgets everything.
  void clear();

 private:
  Shadow();
  ShadowPage& make(uintptr_t address, size_t bytes);
  void give_cells(ShadowPage& page, int cell_shift);
  char* take(size_t bytes);

  ShadowPage** table_;
  std::mutex mutex_;  // of what follows
  std::vector<ShadowPage*> pages_;
  char* slab_ = nullptr;
  size_t slab_left_ = 0;
};

/// Zeroed memory that costs nothing until it is touched.
void* reserve_zeroed(size_t bytes);

}  // namespace emulator
