// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/copy.h"

#include <cstring>

#include "kernels/cpu/elements.h"
#include "kernels/with_bits.h"

namespace weft::kernels::cpu {
namespace {

// A square tile of both sides of a transposition stays in the first-level cache.
constexpr int64_t kTile = 32;

template <class Bits>
void copy_tile(Bits* y, int64_t sy, const Bits* x, int64_t sx, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[r * sy + c] = x[r + c * sx];
}

/// The transposed copy: y runs densely along the innermost dimension, x along `dense`. All other dimensions are
/// walked outside; the two are cut into tiles.
template <class Bits>
void copy_transposed(const View& y, const View& x, const Nest<2>& nest, int dense) {
  const int last = nest.rank - 1;
  const int64_t rows = nest.sizes[dense], columns = nest.sizes[last];
  Nest<2> outer = nest;
  outer.sizes[dense] = (rows + kTile - 1) / kTile;  // a step of the outer walk is a band of rows
  outer.strides[dense] = {nest.strides[dense][0] * kTile, nest.strides[dense][1] * kTile};
  outer.sizes[last] = 1;
  const int64_t bands = nest.total / (rows * columns) * outer.sizes[dense];
  parallel_for(bands, kTile * columns, [&](int64_t begin, int64_t end) {
    int64_t band = begin;
    outer.walk(begin, end, [&](const auto& offset, int64_t) {
      // The band's position along `dense` follows from its number: dimensions inside `dense` vary faster.
      int64_t inside = 1;
      for (int d = dense + 1; d < last; ++d) inside *= outer.sizes[d];
      const int64_t row = band++ / inside % outer.sizes[dense] * kTile;
      const int64_t height = std::min(kTile, rows - row);
      for (int64_t c = 0; c < columns; c += kTile)
        copy_tile(static_cast<Bits*>(y.data) + offset[0] + c, nest.strides[dense][0],
                  static_cast<const Bits*>(x.data) + offset[1] + c * nest.strides[last][1], nest.strides[last][1],
                  height, std::min(kTile, columns - c));
    });
  });
}

template <class Bits>
void copy_bits(const View& y, const View& x) {
  const Nest<2> nest({&y, &x});
  if (nest.total == 0) return;
  const auto [sy, sx] = nest.inner_strides();
  if (sy == 1 && sx > 1 && nest.rank > 1)
    for (int d = nest.rank - 2; d >= 0; --d)
      if (nest.strides[d][1] == 1 && nest.sizes[d] >= 4) return copy_transposed<Bits>(y, x, nest, d);
  parallel_for(nest.total, 1, [&, sy = sy, sx = sx](int64_t begin, int64_t end) {
    nest.walk(begin, end, [&](const auto& offset, int64_t n) {
      Bits* out = static_cast<Bits*>(y.data) + offset[0];
      const Bits* in = static_cast<const Bits*>(x.data) + offset[1];
      if (sy == 1 && sx == 1) {
        std::memcpy(out, in, static_cast<size_t>(n) * sizeof(Bits));
      } else if (sy == 1 && sx == 0) {
        std::fill_n(out, n, *in);
      } else {
        for (int64_t i = 0; i < n; ++i) out[i * sy] = in[i * sx];
      }
    });
  });
}

/// Through C, which is wide enough for the source.
template <class C>
void copy_converted(const View& y, const View& x) {
  const Nest<2> nest({&y, &x});
  const auto [sy, sx] = nest.inner_strides();
  parallel_for(nest.total, 1, [&, sy = sy, sx = sx](int64_t begin, int64_t end) {
    constexpr int64_t kBuffer = 512;
    alignas(64) C buffer[kBuffer];
    nest.walk(begin, end, [&](const auto& offset, int64_t length) {
      for (int64_t at = 0; at < length; at += kBuffer) {
        const int64_t n = std::min(kBuffer, length - at);
        const Run to{element(y, offset[0] + at * sy), y.dtype, sy}, from{element(x, offset[1] + at * sx), x.dtype, sx};
        if (to.dtype == dtype_of<C> && to.stride == 1)
          load(static_cast<C*>(to.data), from, n);
        else
          store(to, elements(from, n, buffer), n);
      }
    });
  });
}

}  // namespace

void copy(const Queue&, const View& y, const View& x) {
  WEFT_CHECK(y.same_sizes(x), "copy: expected equal sizes, got ", y, " and ", x);
  if (y.dtype != x.dtype) {
    with_compute_type(x.dtype, [&]<class C>() { copy_converted<C>(y, x); });
    return;
  }
  with_bits(y.dtype, [&]<class Bits>() { copy_bits<Bits>(y, x); });
}

}  // namespace weft::kernels::cpu
