// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/race.h"

#include <cstring>

namespace emulator {

namespace {

constexpr size_t kAtOnce = 4;
typedef int64_t Four [[gnu::vector_size(kAtOnce * sizeof(int64_t))]];

Four load(const uint64_t* from) {
  Four row;
  std::memcpy(&row, from, sizeof(row));
  return row;
}
void store(uint64_t* to, Four row) { std::memcpy(to, &row, sizeof(row)); }
Four all(int64_t value) { return Four{} + value; }

/// -1 where a stamp comes before what happens now: BlockClock::Glance for four.
struct Glances {
  Four from, span, own, floor;
  explicit Glances(const BlockClock::Glance& g) : from(all(g.from)), span(all(g.span)), own(all(g.own)), floor(all(g.floor)) {}
  Four operator()(Four s, Four now) const {
    const Four live = s - from, mine = s - own;
    const Four apart = (s ^ now) & static_cast<int64_t>(stamp::kBlockMask | stamp::kWhoMask);
    constexpr int64_t kProxy = stamp::kProxies;
    return (live < 0) | (live >= span) | ((mine >= 0) & (mine < floor) & ((s & kProxy) != kProxy)) | (apart == 0);
  }
};

/// Lane k / 2^shift for cells k, k + 1, …
Four lanes_of(size_t k, int shift) {
  constexpr Four kFirst = {0, 1, 2, 3};
  return (kFirst + static_cast<int64_t>(k)) >> shift;
}

bool any(Four row) { return (row[0] | row[1] | row[2] | row[3]) != 0; }

}  // namespace

bool read_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
              const BlockClock::Glance& glance) {
  if (cells % kAtOnce != 0) return false;
  const Glances before(glance);
  const uint64_t *const write = page.write + cell;
  uint64_t *const first = page.reads[0] + cell, *const second = page.reads[1] + cell;
  Four bad{}, not_first{}, changes{};
  for (size_t k = 0; k < cells; k += kAtOnce) {
    const Four now = all(static_cast<int64_t>(mark)) + lanes_of(k, shift);
    const Four r0 = load(first + k), r1 = load(second + k);
    const Four o0 = before(r0, now), o1 = before(r1, now);
    // Two of different blocks are as far apart as can be.
    const Four far = ((r0 ^ r1) & static_cast<int64_t>(stamp::kBlockMask)) != 0;
    const Four wrote = (((r0 & static_cast<int64_t>(stamp::kWrote)) != 0) & ~o0) |
                       (((r1 & static_cast<int64_t>(stamp::kWrote)) != 0) & ~o1);
    bad |= ~before(load(write + k), now) | ~(o0 | o1 | far) | wrote;
    not_first |= ~o0;
    changes |= o0 | o1;
  }
  if (any(bad)) return false;
  if (!any(changes)) return true;
  Site* const first_at = page.reads_at[0] + cell;
  if (!any(not_first)) {
    for (size_t k = 0; k < cells; k += kAtOnce) store(first + k, all(static_cast<int64_t>(mark)) + lanes_of(k, shift));
    for (size_t k = 0; k < cells; ++k) first_at[k] = at;
    return true;
  }
  for (size_t k = 0; k < cells; ++k) {
    const uint64_t now = mark + (k >> shift);
    const int slot = glance(first[k], now) ? 0 : glance(second[k], now) ? 1 : 2;
    if (slot == 2) continue;
    page.reads[slot][cell + k] = now;
    page.reads_at[slot][cell + k] = at;
  }
  return true;
}

bool write_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
               const BlockClock::Glance& glance) {
  if (cells % kAtOnce != 0) return false;
  const Glances before(glance);
  uint64_t *const write = page.write + cell, *const first = page.reads[0] + cell, *const second = page.reads[1] + cell;
  Four bad{}, live{};
  for (size_t k = 0; k < cells; k += kAtOnce) {
    const Four now = all(static_cast<int64_t>(mark)) + lanes_of(k, shift);
    const Four r0 = load(first + k), r1 = load(second + k);
    bad |= ~(before(load(write + k), now) & before(r0, now) & before(r1, now));
    live |= (r0 >= before.from) | (r1 >= before.from);
  }
  if (any(bad)) return false;
  const uint64_t wrote = mark | stamp::kWrote;
  for (size_t k = 0; k < cells; k += kAtOnce) store(write + k, all(static_cast<int64_t>(wrote)) + lanes_of(k, shift));
  Site* const write_at = page.write_at + cell;
  for (size_t k = 0; k < cells; ++k) write_at[k] = at;
  if (any(live)) {
    std::memset(first, 0, cells * sizeof(*first));
    std::memset(second, 0, cells * sizeof(*second));
  }
  return true;
}

}  // namespace emulator
