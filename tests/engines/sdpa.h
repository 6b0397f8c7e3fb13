// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ostream>

#include "kernels/engines/calls.h"

namespace weft::tests {

/// A call on made-up addresses. N = M: q, k and v are slices of one packed array, and so are their gradients.
struct Sdpa {
  int64_t B, N, M, H, D;
  bool causal = false, lengths = false, backward = false;
  DType dtype = DType::bf16;

  kernels::View q = rows(0x100000, N, 0), k = rows(0x100000, M, 1), v = rows(0x100000, M, 2);
  kernels::View dq = rows(0x200000, N, 0), dk = rows(0x200000, M, 1), dv = rows(0x200000, M, 2);
  kernels::View y = kernels::View::dense(address(0x300000), dtype, {B, N, H, D}),
                dy = kernels::View::dense(address(0x400000), dtype, {B, N, H, D});
  kernels::View lse = kernels::View::dense(address(0x500000), DType::f32, {B, H, N});
  kernels::View key_lengths =
                    lengths ? kernels::View::dense(address(0x600000), DType::i64, {B}) : kernels::View::none(),
                key_mask{};
  kernels::AttentionArguments arguments{0.125, causal, 0, {}};
  kernels::Queue queue{};

  static void* address(uintptr_t at) { return reinterpret_cast<void*>(at); }
  kernels::View rows(uintptr_t at, int64_t count, int64_t which) const {
    if (N != M)
      return kernels::View::dense(address(at + static_cast<uintptr_t>(which) * 0x10000), dtype, {B, count, H, D});
    kernels::View view =
        kernels::View::dense(address(at + static_cast<uintptr_t>(which * H * D * 2)), dtype, {B, count, H, D});
    view.strides = {3 * count * H * D, 3 * H * D, D, 1};
    return view;
  }
  kernels::vendor::AttentionCall call() const {
    const kernels::View none;
    return {queue,
            y,
            lse,
            q,
            k,
            v,
            key_lengths,
            key_mask,
            arguments,
            backward ? dy : none,
            backward ? dq : none,
            backward ? dk : none,
            backward ? dv : none,
            backward};
  }
};

inline std::ostream& operator<<(std::ostream& out, const Sdpa& p) {
  return out << (p.backward ? "backward " : "forward ") << p.dtype << " B " << p.B << " N " << p.N << " M " << p.M
             << " H " << p.H << " D " << p.D << (p.causal ? " causal" : "") << (p.lengths ? " lengths" : "");
}

}  // namespace weft::tests
