// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/fresh.h"

#include <algorithm>
#include <bit>

#include "emulator/machine/options.h"
#include "emulator/machine/shadow.h"

namespace emulator {

namespace {

constexpr int kPageShift = 16, kAddressBits = 48;
constexpr uintptr_t kPage = uintptr_t{1} << kPageShift;

/// A bit per byte. Kernels on other OS threads may change neighbouring bits.
struct Page {
  uint32_t fresh;  ///< bits that are set
  uint64_t words[kPage / 64];
};

/// A page without fresh bytes may be absent.
struct Pages {
  Page** table = static_cast<Page**>(reserve_zeroed((size_t{1} << (kAddressBits - kPageShift)) * sizeof(Page*)));

  /// nullptr without the check.
  static Pages* get() {
    static Pages* const pages = options().check_uninitialised ? new Pages : nullptr;
    return pages;
  }
  Page* page(uintptr_t address) const { return __atomic_load_n(&table[address >> kPageShift], __ATOMIC_ACQUIRE); }
  Page* make(uintptr_t address) {
    Page* known = page(address);
    if (known) return known;
    auto* const page = new Page();
    if (__atomic_compare_exchange_n(&table[address >> kPageShift], &known, page, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return page;
    delete page;
    return known;
  }
};

uint32_t fresh_bytes(const Page& page) { return __atomic_load_n(&page.fresh, __ATOMIC_RELAXED); }

/// Calls act(page or nullptr, first byte, bytes) for each page, until it returns true, and returns that.
template <class Act>
[[gnu::always_inline]] inline bool for_each_page(const void* memory, size_t bytes, const Act& act) {
  Pages* const pages = Pages::get();
  if (!pages) return false;
  uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  for (const uintptr_t end = at + bytes; at < end;) {
    const uintptr_t stop = std::min(end, (at | (kPage - 1)) + 1);
    if (act(*pages, at, stop - at)) return true;
    at = stop;
  }
  return false;
}

/// Calls act(word, mask) for the words that hold bits [first, first + count), until it returns true, and returns that.
template <class Act>
[[gnu::always_inline]] inline bool for_each_word(Page& page, size_t first, size_t count, const Act& act) {
  for (const size_t end = first + count; first < end;) {
    const size_t bit = first % 64, here = std::min(64 - bit, end - first);
    if (act(page.words[first / 64], (here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1) << bit)) return true;
    first += here;
  }
  return false;
}

}  // namespace

void mark_fresh(const void* memory, size_t bytes) {
  for_each_page(memory, bytes, [](Pages& pages, uintptr_t at, size_t count) {
    Page& page = *pages.make(at);
    return for_each_word(page, at % kPage, count, [&page](uint64_t& word, uint64_t mask) {
      const uint64_t before = __atomic_fetch_or(&word, mask, __ATOMIC_RELAXED);
      __atomic_fetch_add(&page.fresh, std::popcount(mask & ~before), __ATOMIC_RELAXED);
      return false;
    });
  });
}

void mark_written(const void* memory, size_t bytes) {
  for_each_page(memory, bytes, [](Pages& pages, uintptr_t at, size_t count) {
    Page* const page = pages.page(at);
    if (!page || fresh_bytes(*page) == 0) return false;
    return for_each_word(*page, at % kPage, count, [page](uint64_t& word, uint64_t mask) {
      if ((__atomic_load_n(&word, __ATOMIC_RELAXED) & mask) == 0) return false;
      const uint64_t before = __atomic_fetch_and(&word, ~mask, __ATOMIC_RELAXED);
      __atomic_fetch_sub(&page->fresh, std::popcount(mask & before), __ATOMIC_RELAXED);
      return false;
    });
  });
}

bool any_fresh(const void* memory, size_t bytes) {
  return for_each_page(memory, bytes, [](Pages& pages, uintptr_t at, size_t count) {
    Page* const page = pages.page(at);
    return page && fresh_bytes(*page) != 0 &&
           for_each_word(*page, at % kPage, count, [](uint64_t& word, uint64_t mask) {
             return (__atomic_load_n(&word, __ATOMIC_RELAXED) & mask) != 0;
           });
  });
}

bool any_fresh_near(const void* memory, size_t bytes) {
  return for_each_page(memory, bytes, [](Pages& pages, uintptr_t at, size_t) {
    const Page* const page = pages.page(at);
    return page && fresh_bytes(*page) != 0;
  });
}

void mark_copied(const void* to, const void* from, size_t bytes) {
  const bool any = any_fresh(from, bytes);
  mark_written(to, bytes);
  if (!any) return;
  const char* const target = static_cast<const char*>(to);
  const char* const source = static_cast<const char*>(from);
  for (size_t k = 0; k < bytes; ++k)
    if (any_fresh(source + k, 1)) mark_fresh(target + k, 1);
}

}  // namespace emulator
