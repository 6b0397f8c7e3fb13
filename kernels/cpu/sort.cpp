// SPDX-License-Identifier: Apache-2.0
#include "kernels/sort.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/sort_order.h"
#include "kernels/with_bits.h"

namespace weft::kernels::cpu {

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
      std::vector<std::pair<Bits, int32_t>> entries(static_cast<size_t>(n));
      for (int64_t row = begin; row < end; ++row) {
        const Bits* in = static_cast<const Bits*>(x.data) + row * n;
        for (int64_t i = 0; i < n; ++i) entries[static_cast<size_t>(i)] = {order.key(in[i]), static_cast<int32_t>(i)};
        if (k < n) std::nth_element(entries.begin(), entries.begin() + k, entries.end());
        std::sort(entries.begin(), entries.begin() + k);
        for (int64_t i = 0; i < k; ++i) {
          const int32_t from = entries[static_cast<size_t>(i)].second;
          indices.as<int64_t>()[row * k + i] = from;
          static_cast<Bits*>(values.data)[row * k + i] = in[from];
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
