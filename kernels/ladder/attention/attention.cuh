// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "kernels/cuda/convert.cuh"
#include "kernels/ladder/ladder.cuh"

namespace weft::kernels::cuda::inline rungs {

inline constexpr int kHeadDim = 64;

/// y[g] = softmax(q[g] k[g]^T / sqrt(D)) v[g] for G heads (all batch entries' together) of L queries and L keys; bf16
/// [G,L,64], without a mask.
struct Attention {
  bf16* y;
  const bf16 *q, *k, *v;
  int G, L;
  float scale = 1 / std::sqrt(static_cast<float>(kHeadDim));

  /// Errors: shapes that differ, D other than 64.
  Attention(const char* name, const View& y_, const View& q_, const View& k_, const View& v_)
      : y(y_.as<bf16>()),
        q(q_.as<bf16>()),
        k(k_.as<bf16>()),
        v(v_.as<bf16>()),
        G(static_cast<int>(q_.sizes[0])),
        L(static_cast<int>(q_.sizes[1])) {
    WEFT_CHECK(q_.rank == 3 && y_.same_sizes(q_) && k_.same_sizes(q_) && v_.same_sizes(q_) && q_.sizes[2] == kHeadDim,
               name, ": expected q, k, v and y [G,L,64], got ", q_, ", ", k_, ", ", v_, " and ", y_);
    for (const View* view : {&y_, &q_, &k_, &v_})
      WEFT_CHECK(view->is_contiguous() && view->numel() < (int64_t{1} << 31), name,
                 ": expected contiguous arrays of less than 2^31 elements, got ", *view);
  }
};

}  // namespace weft::kernels::cuda::inline rungs
