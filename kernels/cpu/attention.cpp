// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention_shape.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector_math.h"

// A task is one head of one batch entry (forward: or some of its query blocks, where heads are fewer than threads). It
// takes kQueries queries against kKeys keys at a time: two small products around a softmax whose block of weights stays
// in the second-level cache. Low precision is converted to f32 once per head.

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kQueries = 64, kKeys = 256;

/// c = scale a @ b (+ c), a [m, k], b [k, n], c's rows `row` elements apart.
template <class S>
void product(int64_t m, int64_t n, int64_t k, S scale, const GemmFactor& a, const GemmFactor& b, S* c, int64_t row,
             bool add) {
  gemm<S>({1, m, n, k, a, b, scale}, c, 0, row, add);
}
/// A block of weights with n columns.
template <class S>
GemmFactor block(const S* weights, int64_t n) {
  return {weights, dtype_of<S>, 0, n, 1};
}

/// A head's rows [rows, D] in the computing type: in place, or a copy in `memory`, which serves one head after another.
template <class S>
class Rows {
 public:
  Rows(const View& view, int64_t b, int64_t h, std::vector<S>& memory)
      : view_(view), base_(b * view.strides[0] + h * view.strides[2]) {
    if (is_direct()) {
      data_ = static_cast<S*>(view.data) + base_;
      ld_ = view.sizes[1] == 1 ? view.sizes[3] : view.strides[1];
    } else {
      ld_ = view.sizes[3];
      memory.resize(static_cast<size_t>(view.sizes[1] * view.sizes[3]));
      data_ = memory.data();
    }
  }
  Rows(const Rows&) = delete;

  const Rows& read(int64_t begin, int64_t end) const {
    for (int64_t i = begin; !is_direct() && i < end; ++i) load(data_ + i * ld_, run(i), view_.sizes[3]);
    return *this;
  }
  const Rows& clear() const {
    for (int64_t i = 0; i < view_.sizes[1]; ++i) std::fill_n(row(i), view_.sizes[3], S(0));
    return *this;
  }
  void write(int64_t begin, int64_t end) const {
    for (int64_t i = begin; !is_direct() && i < end; ++i) store(run(i), data_ + i * ld_, view_.sizes[3]);
  }

  S* row(int64_t i) const { return data_ + i * ld_; }
  GemmFactor from(int64_t i) const { return {row(i), dtype_of<S>, 0, ld_, 1}; }
  int64_t ld() const { return ld_; }

 private:
  bool is_direct() const {
    return view_.dtype == dtype_of<S> && (view_.sizes[1] == 1 || view_.strides[1] >= view_.sizes[3]);
  }
  Run run(int64_t i) const { return {element(view_, base_ + i * view_.strides[1]), view_.dtype, 1}; }

  const View& view_;
  int64_t base_, ld_ = 1;
  S* data_ = nullptr;
};

/// Which keys the queries of one batch entry see, and which weights of one head are dropped.
class Sight {
 public:
  Sight(const AttentionShape& s, int64_t b, int64_t h, const View& key_lengths, const View& key_mask, const View& state,
        const AttentionArguments& arguments)
      : keys_(s.M), causal_(arguments.causal), dropout_(static_cast<float>(arguments.dropout)), kept_(0, 0, 0, 0, 0) {
    if (key_lengths) keys_ = std::clamp<int64_t>(key_lengths.as<int64_t>()[b], 0, s.M);
    if (key_mask) mask_ = key_mask.as<bool>() + b * s.M;
    if (dropout_ == 0) return;
    const int64_t* words = state.as<int64_t>();
    kept_ = {static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1]) + arguments.random.offset, b * s.H + h,
             s.N, s.M};
  }

  /// The first key that no query before `query_end` sees.
  int64_t key_end(int64_t query_end) const { return causal_ ? std::min(keys_, query_end) : keys_; }
  bool drops() const { return dropout_ != 0; }

  /// Puts `hidden` where query i does not see keys first … first + n - 1.
  template <class S>
  void hide(S* values, int64_t i, int64_t first, int64_t n, S hidden) const {
    if (mask_ != nullptr)
      for (int64_t j = 0; j < n; ++j) values[j] = mask_[first + j] ? values[j] : hidden;
    if (causal_)
      for (int64_t j = std::max<int64_t>(i + 1 - first, 0); j < n; ++j) values[j] = hidden;
  }

  /// Sets to 0 the weights of query i that are dropped.
  template <class S>
  void drop(S* weights, int64_t i, int64_t first, int64_t n) const {
    for (int64_t j = 0; j < n;) {
      const Philox4 block = kept_.block(i / 2, (first + j) / 2);
      do {
        if (uniform01(block.word[i % 2 * 2 + (first + j) % 2]) < dropout_) weights[j] = 0;
        ++j;
      } while (j < n && (first + j) % 2 != 0);
    }
  }

 private:
  int64_t keys_;
  const bool* mask_ = nullptr;
  bool causal_;
  float dropout_;
  AttentionDropout kept_;
};

/// One block of `rows` queries: y from all keys. maximum, sum: room for kQueries; s: for kQueries x kKeys.
template <class S>
void forward_block(const Rows<S>& y, S* lse, const Rows<S>& q, const Rows<S>& k, const Rows<S>& v, const Sight& sight,
                   const AttentionShape& shape, S scale, S kept_scale, int64_t first, int64_t rows, S* s, S* maximum,
                   S* sum) {
  constexpr S kNone = -std::numeric_limits<S>::infinity();
  const int64_t D = shape.D, key_end = sight.key_end(first + rows);
  std::fill_n(maximum, rows, kNone);
  std::fill_n(sum, rows, S(0));
  for (int64_t i = 0; i < rows; ++i) std::fill_n(y.row(first + i), D, S(0));
  for (int64_t key = 0; key < key_end; key += kKeys) {
    const int64_t n = std::min(kKeys, key_end - key);
    product(rows, n, D, scale, q.from(first), k.from(key).transposed(), s, n, false);
    for (int64_t i = 0; i < rows; ++i) {
      S* const weights = s + i * n;
      sight.hide(weights, first + i, key, n, kNone);
      S largest = maximum[i];
#pragma omp simd reduction(max : largest)
      for (int64_t j = 0; j < n; ++j) largest = largest < weights[j] ? weights[j] : largest;
      const S base = largest == kNone ? S(0) : largest, again = VectorMath::exp(maximum[i] - base);
      S total = 0;
#pragma omp simd reduction(+ : total)
      for (int64_t j = 0; j < n; ++j) {
        weights[j] = VectorMath::exp(weights[j] - base);
        total += weights[j];
      }
      sum[i] = sum[i] * again + total;
      maximum[i] = largest;
      if (sight.drops()) sight.drop(weights, first + i, key, n);
      if (key > 0 && again != S(1))
        for (int64_t d = 0; d < D; ++d) y.row(first + i)[d] *= again;
    }
    product(rows, D, n, S(1), block(s, n), v.from(key), y.row(first), y.ld(), true);
  }
  for (int64_t i = 0; i < rows; ++i) {
    lse[first + i] = sum[i] == S(0) ? kNone : maximum[i] + std::log(sum[i]);
    const S factor = sum[i] == S(0) ? S(0) : kept_scale / sum[i];
    for (int64_t d = 0; d < D; ++d) y.row(first + i)[d] *= factor;
  }
}

template <class S>
S kept_scale_of(const AttentionArguments& arguments) {
  return arguments.dropout < 1 ? static_cast<S>(1 / (1 - arguments.dropout)) : S(0);
}

/// dk, dv (where given) and dq of one head.
template <class S>
void backward_head(const Rows<S>& dq, const Rows<S>* dk, const Rows<S>* dv, const Rows<S>& dy, const Rows<S>& q,
                   const Rows<S>& k, const Rows<S>& v, const Rows<S>& y, const S* lse, const Sight& sight,
                   const AttentionShape& shape, S scale, S kept_scale, bool wants_dq) {
  const int64_t D = shape.D;
  std::vector<S> p(static_cast<size_t>(kQueries * kKeys)), ds(p.size()), delta(static_cast<size_t>(kQueries));
  for (int64_t first = 0; first < shape.N; first += kQueries) {
    const int64_t rows = std::min(kQueries, shape.N - first), key_end = sight.key_end(first + rows);
    for (int64_t i = 0; i < rows; ++i) {
      const S *left = dy.row(first + i), *right = y.row(first + i);
      S total = 0;
#pragma omp simd reduction(+ : total)
      for (int64_t d = 0; d < D; ++d) total += left[d] * right[d];
      delta[static_cast<size_t>(i)] = total;
    }
    for (int64_t key = 0; key < key_end; key += kKeys) {
      const int64_t n = std::min(kKeys, key_end - key);
      product(rows, n, D, scale, q.from(first), k.from(key).transposed(), p.data(), n, false);
      product(rows, n, D, kept_scale, dy.from(first), v.from(key).transposed(), ds.data(), n, false);
      for (int64_t i = 0; i < rows; ++i) {
        S *const weights = p.data() + i * n, *const slopes = ds.data() + i * n;
        const S base = lse[first + i], subtracted = delta[static_cast<size_t>(i)];
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) weights[j] = VectorMath::exp(weights[j] - base);
        sight.hide(weights, first + i, key, n, S(0));
        if (sight.drops()) sight.drop(slopes, first + i, key, n);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) slopes[j] = weights[j] * (slopes[j] - subtracted);
        if (sight.drops() && dv) sight.drop(weights, first + i, key, n);
      }
      if (wants_dq)
        product(rows, D, n, scale, block(ds.data(), n), k.from(key), dq.row(first), dq.ld(), true);
      if (!dk) continue;
      product(n, D, rows, scale, block(ds.data(), n).transposed(), q.from(first), dk->row(key), dk->ld(), true);
      product(n, D, rows, kept_scale, block(p.data(), n).transposed(), dy.from(first), dv->row(key), dv->ld(), true);
    }
  }
}

}  // namespace

void attention_forward(const Queue&, const View& y, const View& lse, const View& q, const View& k, const View& v,
                       const View& key_lengths, const View& key_mask, const View& state, AttentionArguments arguments) {
  const AttentionShape shape =
      attention_shape("attention_forward", q, k, v, lse, key_lengths, key_mask, state, arguments);
  check_attention_like("attention_forward", y, q);
  const int64_t heads = shape.B * shape.H, blocks = (shape.N + kQueries - 1) / kQueries;
  if (heads * blocks == 0) return;
  with_dtype<float, double, bf16, f16>(q.dtype, "attention_forward", [&]<class T>() {
    using S = Accumulate<T>;
    const int64_t work = kQueries * shape.M * shape.D;
    const int64_t parts = std::min(blocks, (threads_for(heads * blocks, work) + heads - 1) / heads);
    parallel_for(heads * parts, work * blocks / parts, [&](int64_t begin, int64_t end) {
      std::vector<S> s(static_cast<size_t>(kQueries * kKeys)), statistics(static_cast<size_t>(2 * kQueries));
      std::array<std::vector<S>, 4> memory;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t head = task / parts, part = task % parts, b = head / shape.H, h = head % shape.H;
        const int64_t from = blocks * part / parts * kQueries;
        const int64_t to = std::min(shape.N, blocks * (part + 1) / parts * kQueries);
        const Sight sight(shape, b, h, key_lengths, key_mask, state, arguments);
        const Rows<S> y_rows(y, b, h, memory[0]), q_rows(q, b, h, memory[1]), k_rows(k, b, h, memory[2]),
            v_rows(v, b, h, memory[3]);
        q_rows.read(from, to);
        k_rows.read(0, sight.key_end(to));
        v_rows.read(0, sight.key_end(to));
        for (int64_t i = from; i < to; i += kQueries)
          forward_block(y_rows, lse.as<S>() + head * shape.N, q_rows, k_rows, v_rows, sight, shape,
                        static_cast<S>(arguments.scale), kept_scale_of<S>(arguments), i, std::min(kQueries, to - i),
                        s.data(), statistics.data(), statistics.data() + kQueries);
        y_rows.write(from, to);
      }
    });
  });
}

void attention_backward(const Queue&, const View& dq, const View& dk, const View& dv, const View& dy, const View& q,
                        const View& k, const View& v, const View& y, const View& lse, const View& key_lengths,
                        const View& key_mask, const View& state, AttentionArguments arguments) {
  const AttentionShape shape =
      attention_shape("attention_backward", q, k, v, lse, key_lengths, key_mask, state, arguments);
  check_attention_backward("attention_backward", dq, dk, dv, dy, q, k, y);
  with_dtype<float, double, bf16, f16>(q.dtype, "attention_backward", [&]<class T>() {
    using S = Accumulate<T>;
    parallel_for(shape.B * shape.H, shape.N * shape.M * shape.D, [&](int64_t begin, int64_t end) {
      std::array<std::vector<S>, 8> memory;
      for (int64_t head = begin; head < end; ++head) {
        const int64_t b = head / shape.H, h = head % shape.H;
        const Sight sight(shape, b, h, key_lengths, key_mask, state, arguments);
        const Rows<S> dq_rows(dq ? dq : q, b, h, memory[0]), dk_rows(dk ? dk : k, b, h, memory[1]),
            dv_rows(dv ? dv : v, b, h, memory[2]), dy_rows(dy, b, h, memory[3]), q_rows(q, b, h, memory[4]),
            k_rows(k, b, h, memory[5]), v_rows(v, b, h, memory[6]), y_rows(y, b, h, memory[7]);
        for (const Rows<S>* rows : {&dy_rows, &q_rows, &y_rows}) rows->read(0, shape.N);
        for (const Rows<S>* rows : {&k_rows, &v_rows}) rows->read(0, shape.M);
        if (dq) dq_rows.clear();
        if (dk) dk_rows.clear();
        if (dk) dv_rows.clear();
        backward_head(dq_rows, dk ? &dk_rows : nullptr, dk ? &dv_rows : nullptr, dy_rows, q_rows, k_rows, v_rows,
                      y_rows, lse.as<S>() + head * shape.N, sight, shape, static_cast<S>(arguments.scale),
                      kept_scale_of<S>(arguments), static_cast<bool>(dq));
        if (dq) dq_rows.write(0, shape.N);
        if (dk) dk_rows.write(0, shape.M);
        if (dk) dv_rows.write(0, shape.M);
      }
    });
  });
}

}  // namespace weft::kernels::cpu
