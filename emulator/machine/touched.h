// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace emulator {

enum class Touch : uint8_t { read, write, atomic };

/// The bytes of global memory that one operation touches: a bit for each byte, in pages. Any thread may note; reading
/// begins when all have ended.
class Touched {
 public:
  static constexpr uintptr_t kPageBytes = 4096;
  using Mask = std::array<uint64_t, kPageBytes / 64>;
  struct Page {
    uintptr_t begin;
    Touch touch;
    const Mask* mask;
  };

  Touched();
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;

  void note(uintptr_t address, size_t bytes, Touch touch);
  /// As above, for some lanes' accesses of `bytes` each, which is at most 128.
  void note(char* const* at, uint32_t lanes, uint32_t bytes, Touch touch);
  /// Pages by address; within a page, by Touch.
  std::vector<Page> pages() const;
  bool empty() const { return masks_.empty(); }

 private:
  Mask& mask(uintptr_t key);
  static void add(uint64_t& word, uint64_t bits) {
    // Most bytes are touched more than once: then a look is enough.
    if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & bits) != bits) __atomic_fetch_or(&word, bits, __ATOMIC_RELAXED);
  }

  uint64_t number_;  ///< unique, for what threads keep of their last pages
  std::mutex mutex_;
  std::unordered_map<uintptr_t, Mask*> masks_;  ///< keyed by page number and Touch
  std::deque<Mask> storage_;
};

}  // namespace emulator
