// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace emulator {

/// The checker's number of a source location. Only accesses of one launch can race.
using Site = uint32_t;

/// The race check's record of 16 KiB of memory: each cell of 4, 2 or 1 bytes holds the last write and two later
/// unordered reads. The reads are from different blocks if possible, else from different warps, else from different
/// lanes: a write that races with any read then races with one of the two. See stamp.h. Cells are as small as the
/// smallest access so far.
struct ShadowPage {
  static constexpr int kShift = 14;
  static constexpr size_t kBytes = size_t{1} << kShift;

  /// Four cells that are contiguous and are compared together by vector instructions.
  struct Cells {
    static constexpr size_t kCount = 4;
    uint64_t write[kCount], reads[2][kCount];
    Site write_at[kCount], reads_at[2][kCount];
  };

  /// Sixteen cells. Most kernels access them in rows: then the record of all of them is that of the first, and stamps of
  /// later cells are as much larger as their lanes are. `apart`: each cell has its own record in `cells`.
  struct Line {
    static constexpr size_t kCells = 16;
    static constexpr int kShift = 4;
    static constexpr int kStamps = 3;  ///< the write, two reads
    uint64_t stamps[kStamps];          ///< the first cell's
    Site at[kStamps];
    uint8_t spread[kStamps];  ///< 2^spread adjacent lanes made the stamps; 0: all cells have the same
    bool apart;
    uint64_t stamp(int which, size_t cell) const { return stamps[which] + (cell >> (kShift - spread[which])); }
  };

  int cell_shift = 2;
  Line* lines = nullptr;
  Cells* cells = nullptr;

  size_t cell(uintptr_t address) const { return (address & (kBytes - 1)) >> cell_shift; }
  bool is_apart(size_t cell) const { return lines[cell / Line::kCells].apart; }
  Cells& four(size_t cell) {
    if (!is_apart(cell)) [[unlikely]]
      part(cell / Line::kCells);
    return cells[cell / Cells::kCount];
  }

 private:
  /// Gives each cell of a line its own record.
  void part(size_t line);
};

/// One cell.
struct Cell {
  ShadowPage::Cells& four;
  size_t k;
  Cell(ShadowPage& page, size_t cell) : four(page.four(cell)), k(cell % ShadowPage::Cells::kCount) {}
  uint64_t& write() const { return four.write[k]; }
  Site& write_at() const { return four.write_at[k]; }
  uint64_t& read(int slot) const { return four.reads[slot][k]; }
  Site& read_at(int slot) const { return four.reads_at[slot][k]; }
};

/// The pages of this process's whole memory. Only clear() clears them: stamps of earlier launches are ignored by later
/// launches.
class Shadow {
 public:
  static Shadow& get() {
    static Shadow* const shadow = new Shadow;
    return *shadow;
  }

  /// The page of an address, with cells small enough for accesses of `bytes` bytes at the address.
  ShadowPage& page(uintptr_t address, size_t bytes) {
    ShadowPage* const found = __atomic_load_n(&table_[address >> ShadowPage::kShift], __ATOMIC_ACQUIRE);
    if (found && ((address | bytes) & ((size_t{1} << found->cell_shift) - 1)) == 0) [[likely]]
      return *found;
    return make(address, bytes);
  }
  /// Forgets everything.
  void clear();

 private:
  friend struct ShadowPage;
  Shadow();
  ShadowPage& make(uintptr_t address, size_t bytes);
  void give_lines(ShadowPage& page, int cell_shift);
  void give_cells(ShadowPage& page);
  char* take(size_t bytes);

  ShadowPage** table_;
  std::mutex mutex_;  // protects the following members
  std::vector<ShadowPage*> pages_;
  char* slab_ = nullptr;
  size_t slab_left_ = 0;
};

/// Reserves zeroed memory that uses no physical pages until it is accessed.
void* reserve_zeroed(size_t bytes);

}  // namespace emulator
