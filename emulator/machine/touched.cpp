// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/touched.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "emulator/machine/per_thread.h"

namespace emulator {
namespace {

constexpr uintptr_t kTouches = 4;  // room for the three in a key

struct Slot {
  uint64_t owner = 0;
  uintptr_t key = 0;
  Touched::Mask* mask = nullptr;
};

}  // namespace

Touched::Touched() {
  static std::atomic<uint64_t> made{0};
  number_ = ++made;
}

Touched::Mask& Touched::mask(uintptr_t key) {
  auto& recent = per_thread<std::array<Slot, 256>>();
  Slot& slot = recent[key % recent.size()];
  if (slot.owner != number_ || slot.key != key) {
    const std::lock_guard lock(mutex_);
    Mask*& found = masks_[key];
    if (!found) found = &storage_.emplace_back();
    slot = {number_, key, found};
  }
  return *slot.mask;
}

void Touched::note(uintptr_t address, size_t bytes, Touch touch) {
  const uintptr_t end = address + bytes;
  while (address < end) {
    const uintptr_t page = address / kPageBytes, stop = std::min(end, (page + 1) * kPageBytes);
    Mask& bits = mask(page * kTouches + static_cast<uintptr_t>(touch));
    while (address < stop) {
      const uintptr_t at = address % 64, count = std::min<uintptr_t>(64 - at, stop - address);
      add(bits[address % kPageBytes / 64], (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << at);
      address += count;
    }
  }
}

void Touched::note(char* const* at, uint32_t lanes, uint32_t bytes, Touch touch) {
  uintptr_t page = ~uintptr_t{0};
  Mask* bits = nullptr;
  const uint64_t ones = bytes >= 64 ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(at[std::countr_zero(lanes)]), offset = address % 64;
    if (offset + bytes > 64) {
      note(address, bytes, touch);
      continue;
    }
    if (address / kPageBytes != page) {
      page = address / kPageBytes;
      bits = &mask(page * kTouches + static_cast<uintptr_t>(touch));
    }
    add((*bits)[address % kPageBytes / 64], ones << offset);
  }
}

std::vector<Touched::Page> Touched::pages() const {
  std::vector<Page> all;
  all.reserve(masks_.size());
  for (const auto& [key, mask] : masks_)
    all.push_back({key / kTouches * kPageBytes, static_cast<Touch>(key % kTouches), mask});
  std::ranges::sort(
      all, [](const Page& a, const Page& b) { return a.begin != b.begin ? a.begin < b.begin : a.touch < b.touch; });
  return all;
}

}  // namespace emulator
