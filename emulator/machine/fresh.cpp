// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/fresh.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "emulator/machine/options.h"
#include "emulator/machine/shadow.h"

namespace emulator {

namespace {

constexpr int kPageShift = 16, kAddressBits = 48;
constexpr uintptr_t kPage = uintptr_t{1} << kPageShift;

/// Bits by page; a page without any is not there.
struct Fresh {
  uint8_t** table =
      static_cast<uint8_t**>(reserve_zeroed((size_t{1} << (kAddressBits - kPageShift)) * sizeof(uint8_t*)));
  std::mutex mutex;

  static Fresh& get() {
    static Fresh* const fresh = new Fresh;
    return *fresh;
  }
  uint8_t* page(uintptr_t address) const { return __atomic_load_n(&table[address >> kPageShift], __ATOMIC_ACQUIRE); }
  uint8_t* make(uintptr_t address) {
    const std::lock_guard lock(mutex);
    uint8_t*& known = table[address >> kPageShift];
    if (!known) __atomic_store_n(&known, new uint8_t[kPage / 8](), __ATOMIC_RELEASE);
    return known;
  }
};

/// Calls act(page's bits or nullptr, first bit, bits, address) for each page.
template <class Act>
void for_each_page(const void* memory, size_t bytes, bool makes, const Act& act) {
  if (!options().check_uninitialised) return;
  Fresh& fresh = Fresh::get();
  uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  for (const uintptr_t end = at + bytes; at < end;) {
    const uintptr_t stop = std::min(end, (at | (kPage - 1)) + 1);
    uint8_t* bits = fresh.page(at);
    if (!bits && makes) bits = fresh.make(at);
    if (bits) act(bits, at & (kPage - 1), stop - at, at);
    at = stop;
  }
}

/// Calls act(byte, mask) for the bytes that hold bits [first, first + count).
template <class Act>
void for_each_byte(uint8_t* bits, size_t first, size_t count, const Act& act) {
  const size_t end = first + count;
  for (size_t byte = first / 8; byte * 8 < end; ++byte) {
    uint32_t mask = 0xff;
    if (byte * 8 < first) mask &= 0xffu << (first - byte * 8);
    if (byte * 8 + 8 > end) mask &= 0xffu >> (byte * 8 + 8 - end);
    act(bits[byte], static_cast<uint8_t>(mask));
  }
}

/// For bytes that share a byte of bits: calls act(byte, mask), if there is one. False: they do not.
template <class Act>
bool in_one_byte(const void* memory, size_t bytes, const Act& act) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  if (at % 8 + bytes > 8) return false;
  if (!options().check_uninitialised) return true;
  if (uint8_t* const bits = Fresh::get().page(at))
    act(bits[(at & (kPage - 1)) / 8], static_cast<uint8_t>(((1u << bytes) - 1) << at % 8));
  return true;
}

bool get_bit(const uint8_t* bits, size_t k) { return bits[k / 8] >> (k % 8) & 1; }

}  // namespace

void mark_fresh(const void* memory, size_t bytes) {
  for_each_page(memory, bytes, true, [](uint8_t* bits, size_t first, size_t count, uintptr_t) {
    if (first % 8 == 0 && count % 8 == 0)
      std::memset(bits + first / 8, 0xff, count / 8);
    else
      for_each_byte(bits, first, count, [](uint8_t& byte, uint8_t mask) { byte |= mask; });
  });
}

void mark_written(const void* memory, size_t bytes) {
  if (in_one_byte(memory, bytes, [](uint8_t& byte, uint8_t mask) { byte &= static_cast<uint8_t>(~mask); })) return;
  for_each_page(memory, bytes, false, [](uint8_t* bits, size_t first, size_t count, uintptr_t) {
    if (first % 8 == 0 && count % 8 == 0)
      std::memset(bits + first / 8, 0, count / 8);
    else
      for_each_byte(bits, first, count, [](uint8_t& byte, uint8_t mask) { byte &= static_cast<uint8_t>(~mask); });
  });
}

bool any_fresh(const void* memory, size_t bytes) {
  uint8_t found = 0;
  const auto look = [&found](uint8_t byte, uint8_t mask) { found |= byte & mask; };
  if (!in_one_byte(memory, bytes, look))
    for_each_page(memory, bytes, false, [&](uint8_t* bits, size_t first, size_t count, uintptr_t) {
      if (first % 8 == 0 && count % 8 == 0)
        for (const uint8_t* at = bits + first / 8; at < bits + (first + count) / 8; ++at) found |= *at;
      else
        for_each_byte(bits, first, count, look);
    });
  return found != 0;
}

void mark_copied(const void* to, const void* from, size_t bytes) {
  if (!options().check_uninitialised) return;
  if (!any_fresh(from, bytes)) return mark_written(to, bytes);
  mark_written(to, bytes);
  const char* const target = static_cast<const char*>(to);
  const uintptr_t source = reinterpret_cast<uintptr_t>(from);
  for_each_page(from, bytes, false, [&](uint8_t* bits, size_t first, size_t count, uintptr_t at) {
    for (size_t k = 0; k < count; ++k)
      if (get_bit(bits, first + k)) mark_fresh(target + (at + k - source), 1);
  });
}

}  // namespace emulator
