// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/stream_check_history.h"

#include <algorithm>
#include <bit>

namespace emulator::cuda::stream_check {
namespace {

constexpr uintptr_t kPageBytes = Touched::kPageBytes;

bool conflict(Use a, Use b) {
  if (a == Use::write || b == Use::write || a == Use::free || b == Use::free) return true;
  return a != b;  // a read and an atomic operation
}
/// Every access that conflicts with the old access conflicts with the new, later access.
bool replaces(Use now, Use old) { return now == Use::write || now == Use::free || (now == old && old != Use::write); }

bool is_empty(const Touched::Mask& mask) {
  uint64_t any = 0;
  for (const uint64_t word : mask) any |= word;
  return any == 0;
}
bool is_full(const Touched::Mask& mask) {
  uint64_t all = ~uint64_t{0};
  for (const uint64_t word : mask) all &= word;
  return all == ~uint64_t{0};
}

/// The bits of [begin, end) in the page at `page`.
Touched::Mask mask_of(uintptr_t page, uintptr_t begin, uintptr_t end) {
  Touched::Mask mask{};
  const uintptr_t first = std::max(begin, page) - page, last = std::min(end, page + kPageBytes) - page;
  for (uintptr_t k = 0; k < mask.size(); ++k) {
    const uintptr_t low = std::max(first, k * 64), high = std::min(last, (k + 1) * 64);
    if (low >= high) continue;
    mask[k] = (high - low == 64 ? ~uint64_t{0} : (uint64_t{1} << (high - low)) - 1) << (low % 64);
  }
  return mask;
}

}  // namespace

/// The conflicts of one operation, joined over pages.
class History::Found {
 public:
  void add(const TracePtr& earlier, Use earlier_use, const TracePtr& later, Use later_use, uintptr_t page,
           const Mask& common, bool after_free) {
    uintptr_t first = 0, last = common.size() - 1;
    while (common[first] == 0) ++first;
    while (common[last] == 0) --last;
    const uintptr_t begin = page + first * 64 + static_cast<uintptr_t>(std::countr_zero(common[first]));
    const uintptr_t end = page + last * 64 + 64 - static_cast<uintptr_t>(std::countl_zero(common[last]));
    for (Conflict& c : all)
      if (c.earlier == earlier && c.earlier_use == earlier_use && c.later_use == later_use) {
        // Conflicts on two tensors are reported once, for the first.
        if (begin <= c.end + kPageBytes) c.end = end;
        return;
      }
    all.push_back({earlier, later, earlier_use, later_use, begin, end, after_free});
  }
  std::vector<Conflict> all;
};

History& History::get() {
  static History* const history = [] {
    memory_released = [](uintptr_t begin, uintptr_t end) { History::get().forget(begin, end); };
    return new History;
  }();
  return *history;
}

History::Page& History::page(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  std::unique_ptr<Region>& region = regions_[number / kRegionPages];
  if (!region) region = std::make_unique<Region>();
  return (*region)[number % kRegionPages];
}

History::Page* History::find(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  const auto found = regions_.find(number / kRegionPages);
  return found == regions_.end() ? nullptr : &(*found->second)[number % kRegionPages];
}

void History::add(Page& page, uintptr_t address, const TracePtr& trace, Use use, const Mask& mask, Found& found) {
  const bool full = is_full(mask);
  Mask common;
  for (size_t k = 0; k < page.size();) {
    Mark& mark = page[k];
    const bool own = mark.trace == trace;
    const bool ordered = own || mark.trace->before(trace->clock);
    const bool wrong = !own && conflict(mark.use, use) &&
                       (ordered ? mark.use == Use::free && !trace->allocates : !trace->before(mark.trace->clock));
    const bool gone = !own && replaces(use, mark.use) && (ordered || wrong);  // one report is enough
    if (!wrong && !gone) {
      ++k;
      continue;
    }
    uint64_t any = 0;
    for (size_t i = 0; i < mask.size(); ++i) any |= common[i] = mark.mask ? mask[i] & (*mark.mask)[i] : mask[i];
    if (any != 0 && wrong) found.add(mark.trace, mark.use, trace, use, address, common, ordered);
    if (any != 0 && gone) {
      bool left = !full;
      if (left) {
        if (!mark.mask) {
          mark.mask = std::make_unique<Mask>();
          mark.mask->fill(~uint64_t{0});
        }
        for (size_t i = 0; i < mask.size(); ++i) (*mark.mask)[i] &= ~mask[i];
        left = !is_empty(*mark.mask);
      }
      if (!left) {
        page.erase(page.begin() + static_cast<std::ptrdiff_t>(k));
        continue;
      }
    }
    ++k;
  }
  page.push_back({trace, use, full ? nullptr : std::make_unique<Mask>(mask)});
}

std::vector<Conflict> History::merge(const TracePtr& trace, const Touched& touched) {
  Found found;
  const std::vector<Touched::Page> pages = touched.pages();
  const std::lock_guard lock(mutex_);
  Allocation owner;
  for (size_t k = 0; k < pages.size(); ++k) {
    const uintptr_t begin = pages[k].begin;
    // A page with bytes of an allocation has no others': allocations have pages of their own, but for registered
    // memory, of which nothing else is known.
    Mask masks[3] = {};
    for (; k < pages.size() && pages[k].begin == begin; ++k)
      masks[static_cast<size_t>(pages[k].touch)] = *pages[k].mask;
    --k;
    uintptr_t first = begin;
    for (const Mask& mask : masks) {
      size_t word = 0;
      while (word < mask.size() && mask[word] == 0) ++word;
      if (word == mask.size()) continue;
      first = begin + word * 64 + static_cast<uintptr_t>(std::countr_zero(mask[word]));
      break;
    }
    if (!owner.holds(first, 1) && !find_allocation(first, owner)) continue;
    if (owner.kind == MemoryKind::parameters) continue;
    Mask &reads = masks[0], &writes = masks[1], &atomics = masks[2];
    for (size_t i = 0; i < writes.size(); ++i) {
      reads[i] &= ~writes[i];
      atomics[i] &= ~writes[i];
    }
    Page& marks = page(begin);
    if (!is_empty(writes)) add(marks, begin, trace, Use::write, writes, found);
    if (!is_empty(reads)) add(marks, begin, trace, Use::read, reads, found);
    if (!is_empty(atomics)) add(marks, begin, trace, Use::atomic, atomics, found);
  }
  return std::move(found.all);
}

template <class Visit>
void History::visit(uintptr_t begin, uintptr_t end, Visit&& visit) {
  for (uintptr_t at = begin / kPageBytes * kPageBytes; at < end; at += kPageBytes) {
    if (Page* const marks = find(at)) {
      visit(at, *marks);
    } else {
      at = (at / (kPageBytes * kRegionPages) + 1) * kPageBytes * kRegionPages - kPageBytes;
    }
  }
}

std::vector<Conflict> History::use(const TracePtr& trace, uintptr_t begin, uintptr_t end, Use use) {
  Found found;
  const std::lock_guard lock(mutex_);
  for (uintptr_t at = begin / kPageBytes * kPageBytes; at < end; at += kPageBytes)
    add(page(at), at, trace, use, mask_of(at, begin, end), found);
  return std::move(found.all);
}

bool History::written_since(uint64_t number, uintptr_t begin, uintptr_t end) {
  bool written = false;
  const std::lock_guard lock(mutex_);
  visit(begin, end, [&](uintptr_t at, const Page& marks) {
    const Mask range = mask_of(at, begin, end);
    for (const Mark& mark : marks) {
      if (mark.use == Use::read || mark.trace->number <= number) continue;
      for (size_t i = 0; i < range.size(); ++i)
        written = written || (range[i] & (mark.mask ? (*mark.mask)[i] : ~uint64_t{0}));
    }
  });
  return written;
}

void History::forget(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(mutex_);
  visit(begin, end, [&](uintptr_t at, Page& marks) {
    const Mask range = mask_of(at, begin, end);
    std::erase_if(marks, [&](Mark& mark) {
      if (!mark.mask) {
        if (is_full(range)) return true;
        mark.mask = std::make_unique<Mask>();
        mark.mask->fill(~uint64_t{0});
      }
      for (size_t i = 0; i < range.size(); ++i) (*mark.mask)[i] &= ~range[i];
      return is_empty(*mark.mask);
    });
    if (marks.empty()) marks.shrink_to_fit();
  });
}

}  // namespace emulator::cuda::stream_check
