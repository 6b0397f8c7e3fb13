// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/sort.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/contracts/sort_order.h"
#include "kernels/cpu/parallel.h"
#include "kernels/with_bits.h"

namespace weft::kernels::cpu {
namespace {

template <class Bits>
using Entries = std::vector<std::pair<Bits, int32_t>>;

/// Keeps the first k of the entries, k at least 1; the k-th comes last.
template <class Bits>
void keep_first(Entries<Bits>& entries, int64_t k) {
  if (k > static_cast<int64_t>(entries.size())) return;
  std::nth_element(entries.begin(), entries.begin() + (k - 1), entries.end());
  entries.resize(static_cast<size_t>(k));
}

/// The first k of n keys, in any order, for a k far below n. The k-th of the minima of many columns bounds the k-th key
/// from above, and few keys pass. A later key does not come before an equal one.
template <class Bits>
void find_first(const Bits* keys, int64_t n, int64_t k, std::vector<Bits>& minima, Entries<Bits>& entries) {
  constexpr int64_t kBlock = 32;
  const int64_t columns = std::min(n, (4 * k + 63) / 64 * 64);
  minima.assign(keys, keys + columns);
  for (int64_t begin = columns; begin < n; begin += columns) {
    const int64_t count = std::min(columns, n - begin);
    for (int64_t i = 0; i < count; ++i)
      minima[static_cast<size_t>(i)] = std::min(minima[static_cast<size_t>(i)], keys[begin + i]);
  }
  std::nth_element(minima.begin(), minima.begin() + (k - 1), minima.end());
  Bits last = minima[static_cast<size_t>(k - 1)];
  entries.clear();
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    Bits any = 0;
    for (int64_t i = begin; i < end; ++i) any |= static_cast<Bits>(keys[i] <= last);
    if (any == 0) continue;
    for (int64_t i = begin; i < end; ++i)
      if (keys[i] <= last) entries.emplace_back(keys[i], static_cast<int32_t>(i));
    if (static_cast<int64_t>(entries.size()) < 2 * k + kBlock) continue;
    keep_first(entries, k);
    if (entries.back().first == 0) return;
    last = static_cast<Bits>(entries.back().first - 1);
  }
  keep_first(entries, k);
}

}  // namespace

void sort(const Queue&, const View& values, const View& indices, const View& x, bool descending) {
  WEFT_CHECK(x.rank >= 1 && values.rank == x.rank && indices.same_sizes(values) && values.dtype == x.dtype &&
                 indices.dtype == DType::i64 && x.is_contiguous() && values.is_contiguous() && indices.is_contiguous(),
             "sort: expected dense values like x and i64 indices, got ", values, ", ", indices, " and ", x);
  const int64_t n = x.sizes[x.rank - 1], k = values.sizes[x.rank - 1];
  WEFT_CHECK(k <= n && n < (int64_t{1} << 31), "sort: expected at most ", n, " (and 2^31) elements of a row, got ", k);
  if (k == 0 || x.numel() == 0) return;
  const SortOrder order(x.dtype, descending);
  with_bits(x.dtype, [&]<class Bits>() {
    parallel_for(x.numel() / n, 8 * n, [&](int64_t begin, int64_t end) {
      // No two entries are equal, so that any sort of them is stable.
      Entries<Bits> entries;
      std::vector<Bits> keys(static_cast<size_t>(n)), minima;
      for (int64_t row = begin; row < end; ++row) {
        const Bits* in = static_cast<const Bits*>(x.data) + row * n;
        for (int64_t i = 0; i < n; ++i) keys[static_cast<size_t>(i)] = order.key(in[i]);
        if (k <= n / 8) {
          find_first(keys.data(), n, k, minima, entries);
        } else {
          entries.resize(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i)
            entries[static_cast<size_t>(i)] = {keys[static_cast<size_t>(i)], static_cast<int32_t>(i)};
          keep_first(entries, k);
        }
        std::sort(entries.begin(), entries.end());
        for (int64_t i = 0; i < k; ++i) {
          const int32_t from = entries[static_cast<size_t>(i)].second;
          indices.as<int64_t>()[row * k + i] = from;
          static_cast<Bits*>(values.data)[row * k + i] = in[from];
        }
      }
    });
  });
}

void search_sorted(const Queue&, const View& y, const View& sorted, const View& values, bool right) {
  check_search_sorted(y, sorted, values);
  const int64_t n = sorted.sizes[1], m = values.sizes[1], apart = sorted.sizes[0] == 1 ? 0 : n;
  const SortOrder order(values.dtype, false);
  with_bits(values.dtype, [&]<class Bits>() {
    const auto before = [&order](Bits a, Bits b) { return order.key(a) < order.key(b); };
    parallel_for(values.numel(), std::bit_width(static_cast<uint64_t>(n)) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Bits* const row = static_cast<const Bits*>(sorted.data) + i / m * apart;
        const Bits value = static_cast<const Bits*>(values.data)[i];
        y.as<int64_t>()[i] =
            (right ? std::upper_bound(row, row + n, value, before) : std::lower_bound(row, row + n, value, before)) -
            row;
      }
    });
  });
}

}  // namespace weft::kernels::cpu
