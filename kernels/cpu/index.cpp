// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/index.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/runtime/wrong_index.h"
#include "kernels/with_bits.h"

namespace weft::kernels::cpu {
namespace {

/// A dense tensor around one dimension: [outer, length, inner].
struct Around {
  int64_t outer = 1, length, inner = 1;
  Around(const View& view, int dim) : length(view.sizes[dim]) {
    for (int d = 0; d < dim; ++d) outer *= view.sizes[d];
    for (int d = dim + 1; d < view.rank; ++d) inner *= view.sizes[d];
  }
};

void check_alike(const char* op, const View& part, const View& whole, const View& index, int dim) {
  WEFT_CHECK(part.rank == whole.rank && dim >= 0 && dim < whole.rank && part.dtype == whole.dtype &&
                 part.is_contiguous() && whole.is_contiguous() && index.is_contiguous(),
             op, ": expected dense tensors of one rank and dtype, got ", part, " and ", whole, " along ", dim);
}

/// Every position is looked at before any is used: an exception must not leave a parallel loop.
void check_positions(const char* op, const View& index, int64_t length,
                     WrongIndex::Text text = WrongIndex::Text::position) {
  const int64_t* positions = index.as<int64_t>();
  const int64_t least = text == WrongIndex::Text::from_either_end ? -length : 0;
  const auto is_wrong = [&](int64_t position) { return (position < least) | (position >= length); };
  std::atomic<bool> any{false};
  parallel_for(index.numel(), 1, [&](int64_t begin, int64_t end) {
    int64_t wrong = 0;  // a number: the loop vectorises
    for (int64_t i = begin; i < end; ++i) wrong |= static_cast<int64_t>(is_wrong(positions[i]));
    if (wrong != 0) any.store(true, std::memory_order_relaxed);
  });
  if (!any.load()) return;
  const int64_t at = std::find_if(positions, positions + index.numel(), is_wrong) - positions;
  throw Error(text_of({.text = text, .op = op, .value = positions[at], .at = at, .limit = length}, {}));
}

}  // namespace

void index_select(const Queue&, const View& y, const View& x, const View& index, int dim) {
  check_alike("index_select", y, x, index, dim);
  const Around from(x, dim), to(y, dim);
  WEFT_CHECK(index.rank == 1 && index.sizes[0] == to.length && from.outer == to.outer && from.inner == to.inner,
             "index_select: expected y like x but for dimension ", dim, ", got ", y, ", ", x, ", index ", index);
  const int64_t* positions = index.as<int64_t>();
  if (to.inner == 1) {  // one pass checks and copies
    std::atomic<bool> any_wrong{false};
    with_bits(x.dtype, [&]<class Bits>() {
      parallel_for(to.outer * to.length, 1, [&](int64_t begin, int64_t end) {
        while (begin < end) {  // row by row
          const int64_t row = begin / to.length, first = begin % to.length;
          const int64_t n = std::min(end - begin, to.length - first);
          const Bits* const in = static_cast<const Bits*>(x.data) + row * from.length;
          Bits* const out = static_cast<Bits*>(y.data) + begin;
#pragma GCC unroll 8
          for (int64_t i = 0; i < n; ++i) {
            const int64_t position = positions[first + i];
            if (position < 0 || position >= from.length) return any_wrong.store(true);
            out[i] = in[position];
          }
          begin += n;
        }
      });
    });
    if (any_wrong.load()) check_positions("index_select", index, from.length);
    return;
  }
  check_positions("index_select", index, from.length);
  const size_t bytes = static_cast<size_t>(from.inner) * size_of(x.dtype);
  parallel_for(to.outer * to.length, to.inner, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t source = row / to.length * from.length + positions[row % to.length];
      std::memcpy(static_cast<char*>(y.data) + static_cast<size_t>(row) * bytes,
                  static_cast<const char*>(x.data) + static_cast<size_t>(source) * bytes, bytes);
    }
  });
}

void index_select_backward(const Queue&, const View& dx, const View& dy, const View& index, int dim) {
  check_alike("index_select_backward", dy, dx, index, dim);
  const Around to(dx, dim), from(dy, dim);
  WEFT_CHECK(index.rank == 1 && index.sizes[0] == from.length && from.outer == to.outer && from.inner == to.inner,
             "index_select_backward: expected dy like dx but for dimension ", dim, ", got ", dy, ", ", dx);
  check_positions("index_select_backward", index, to.length);
  const int64_t* positions = index.as<int64_t>();
  with_dtype<float, double, bf16, f16>(dx.dtype, "index_select_backward", [&]<class T>() {
    using A = Accumulate<T>;
    T* out = dx.as<T>();
    const T* in = dy.as<T>();
    // A thread owns a range of columns (or of outer slices) and goes through the index in order.
    const int64_t slice = to.length * to.inner;
    const bool by_outer = to.outer > 1;
    parallel_for(by_outer ? to.outer : to.inner, by_outer ? slice : to.length, [&](int64_t begin, int64_t end) {
      const int64_t first = by_outer ? 0 : begin, last = by_outer ? to.inner : end, width = last - first;
      std::vector<A> sums(static_cast<size_t>(to.length * width));
      for (int64_t o = by_outer ? begin : 0; o < (by_outer ? end : 1); ++o) {
        std::fill(sums.begin(), sums.end(), A(0));
        for (int64_t i = 0; i < from.length; ++i) {
          const T* source = in + (o * from.length + i) * from.inner + first;
          A* sum = sums.data() + positions[i] * width;
          for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<A>(source[c]);
        }
        for (int64_t r = 0; r < to.length; ++r)
          for (int64_t c = 0; c < width; ++c)
            out[o * slice + r * to.inner + first + c] = static_cast<T>(sums[static_cast<size_t>(r * width + c)]);
      }
    });
  });
}

namespace {

/// body(i, source) for each element i of the index: source is where gather reads. `begin` and `end` are outer slices,
/// so that two threads never share a source.
template <class Body>
void for_gathered(const Around& picked, const int64_t* positions, int64_t source_length, int64_t begin, int64_t end,
                  const Body& body) {
  for (int64_t o = begin; o < end; ++o)
    for (int64_t i = 0; i < picked.length; ++i)
      for (int64_t c = 0; c < picked.inner; ++c) {
        const int64_t at = (o * picked.length + i) * picked.inner + c;
        body(at, (o * source_length + positions[at]) * picked.inner + c);
      }
}

void check_gather(const char* op, const View& picked, const View& whole, const View& index, int dim) {
  check_alike(op, picked, whole, index, dim);
  const Around a(picked, dim), b(whole, dim);
  WEFT_CHECK(index.same_sizes(picked) && a.outer == b.outer && a.inner == b.inner, op,
             ": expected sizes that differ along ", dim, " only, got ", picked, " and ", whole, ", index ", index);
  check_positions(op, index, b.length);
}

}  // namespace

void gather(const Queue&, const View& y, const View& x, const View& index, int dim) {
  check_gather("gather", y, x, index, dim);
  const Around picked(y, dim);
  const int64_t* positions = index.as<int64_t>();
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(x.dtype, "gather", [&]<class T>() {
    T* out = y.as<T>();
    const T* in = x.as<T>();
    parallel_for(picked.outer, picked.length * picked.inner, [&](int64_t begin, int64_t end) {
      for_gathered(picked, positions, x.sizes[dim], begin, end,
                   [&](int64_t at, int64_t source) { out[at] = in[source]; });
    });
  });
}

void gather_backward(const Queue&, const View& dx, const View& dy, const View& index, int dim) {
  check_gather("gather_backward", dy, dx, index, dim);
  const Around picked(dy, dim);
  const int64_t* positions = index.as<int64_t>();
  const int64_t slice = dx.sizes[dim] * picked.inner;
  with_dtype<float, double, bf16, f16>(dx.dtype, "gather_backward", [&]<class T>() {
    using A = Accumulate<T>;
    T* out = dx.as<T>();
    const T* in = dy.as<T>();
    parallel_for(picked.outer, slice + picked.length * picked.inner, [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<size_t>(slice));
      for (int64_t o = begin; o < end; ++o) {
        std::fill(sums.begin(), sums.end(), A(0));
        for_gathered(picked, positions, dx.sizes[dim], o, o + 1, [&](int64_t at, int64_t source) {
          sums[static_cast<size_t>(source - o * slice)] += static_cast<A>(in[at]);
        });
        std::copy(sums.begin(), sums.end(), out + o * slice);
      }
    });
  });
}

void index_put(const Queue&, const View& y, const View& values, const View& index) {
  check_alike("index_put", values, y, index, 0);
  const Around to(y, 0), from(values, 0);
  WEFT_CHECK(index.rank == 1 && index.sizes[0] == from.length && from.inner == to.inner,
             "index_put: expected values like y but for dimension 0, got ", values, ", ", y, ", index ", index);
  check_positions("index_put", index, to.length);
  const int64_t* positions = index.as<int64_t>();
  const size_t bytes = static_cast<size_t>(to.inner) * size_of(y.dtype);
  // In order: the last of equal positions wins.
  for (int64_t i = 0; i < from.length; ++i)
    std::memcpy(static_cast<char*>(y.data) + static_cast<size_t>(positions[i]) * bytes,
                static_cast<const char*>(values.data) + static_cast<size_t>(i) * bytes, bytes);
}

void ravel_index(const Queue&, const View& y, const View& index, int64_t size) {
  WEFT_CHECK(y.same_sizes(index) && y.is_contiguous() && index.is_contiguous(),
             "ravel_index: expected dense tensors of equal sizes, got ", y, " and ", index);
  check_positions("index", index, size, WrongIndex::Text::from_either_end);
  int64_t* out = y.as<int64_t>();
  const int64_t* in = index.as<int64_t>();
  parallel_for(y.numel(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = out[i] * size + (in[i] < 0 ? in[i] + size : in[i]);
  });
}

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
