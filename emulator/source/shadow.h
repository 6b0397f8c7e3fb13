// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "emulator/source/site.h"

namespace emulator::source {

/// The checked build's record of 4 bytes of memory, or of 1 byte: the last write, and two reads since then
/// that no barrier separates (of different blocks if there are such, else of different warps, else of different lanes:
/// then a write that races with any of them races with one of these two). See stamp.h.
struct Cell {
  uint64_t write, reads[2];
  Site write_at, reads_at[2];
  /// The block that last accessed less than the whole word: the accesses of its launch are in the cells of the bytes.
  uint32_t split;
};
static_assert(sizeof(Cell) == 40);

/// The cells of a range of memory: flat arrays, reserved as addresses and made real by the system where they are
/// touched. They are never cleared, because the stamps of earlier launches mean nothing to later ones.
class Shadow {
 public:
  explicit Shadow(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  Cell& word(size_t offset) { return words_[offset / 4]; }
  Cell& byte(size_t offset) { return bytes_[offset]; }
  /// Forgets everything; the system gets the memory back.
  void clear();

 private:
  Cell* words_;
  Cell* bytes_;
  size_t size_;
};

/// Zeroed memory that costs nothing until it is touched.
void* reserve_zeroed(size_t bytes);

}  // namespace emulator::source
