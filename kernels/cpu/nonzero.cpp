// SPDX-License-Identifier: Apache-2.0
#include "kernels/nonzero.h"

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {

void nonzero(const Queue&, const View& y, const View& x, const View& ends) {
  WEFT_CHECK(y.rank == 2 && y.sizes[1] == x.rank && ends.numel() == x.numel() && y.is_contiguous() &&
                 x.is_contiguous() && ends.is_contiguous(),
             "nonzero: expected dense tensors y [count, ", x.rank, "] and ends [", x.numel(), "], got ", y, " and ",
             ends);
  const bool* in = x.as<bool>();
  const int64_t* rows = ends.as<int64_t>();
  int64_t* out = y.as<int64_t>();
  parallel_for(x.numel(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!in[i]) continue;
      int64_t rest = i;
      for (int d = x.rank - 1; d >= 0; --d) {
        out[(rows[i] - 1) * x.rank + d] = rest % x.sizes[d];
        rest /= x.sizes[d];
      }
    }
  });
}

}  // namespace weft::kernels::cpu
