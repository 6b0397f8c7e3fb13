// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/contracts/attention_shape.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/panel_product.h"
#include "kernels/cpu/row_loops.h"
#include "kernels/cpu/transpose_eight.h"
#include "kernels/cpu/unary_loops.h"

// A task of the forward is a head of a batch entry, or some of its query blocks, if heads are fewer than threads. A
// task of the backward is a group of heads that share keys and values, and adds their gradients. It packs the keys and
// values once into the panels that panel_product.h multiplies by. Then kQueries queries multiply kKeys keys at a time:
// two small products around a softmax whose block of weights stays in the second-level cache. Blocks of keys begin at
// the last multiple of kKeyStart before the first key that a query of the block sees.
// bf16 is multiplied as it is where the processor can; there, and f16 everywhere, sums and softmax are f32. So few
// queries as kFewQueries read keys and values where they lie: packing would take longer than the products.

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kQueries = 64, kKeys = 256, kKeyStart = 64, kFewQueries = 4;
constexpr int64_t kWeightRow = kKeys + 16;  // so that rows of weights do not compete for one set of a cache

/// A left factor of a product: element [i, k] is data[i * row + k * depth].
template <class Factor>
struct Left {
  const Factor* data;
  int64_t row, depth;
};

/// How a product takes its factors: one number each, in the computing type S.
template <class S>
struct Plain {
  using Sum = S;
  using Factor = S;
  static constexpr int64_t kDeep = 1;  ///< elements of the depth in one factor

  static const PanelKernel<S>& kernel() { return panel_kernel<S>(); }
  /// A row of n elements, along the depth: where it lies, or in `buffer`.
  static const Factor* read(const Run& row, int64_t n, Factor* buffer) {
    if (row.dtype == dtype_of<S>) return static_cast<const S*>(row.data);
    load(buffer, row, n);
    return buffer;
  }
  static void write(const Run& row, const S* values, int64_t n) { store(row, values, n); }
  static S dot(const Run& a, const Run& b, int64_t n) {
    S left[kMaxHeadDim], right[kMaxHeadDim], total = 0;
    load(left, a, n);
    load(right, b, n);
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) total += left[i] * right[i];
    return total;
  }
  /// kDeep rows, each of n elements across the depth.
  static const Factor* stack(const Run* rows, int64_t, int64_t n, Factor* buffer) { return read(rows[0], n, buffer); }
  /// A block of weights [rows, n], kWeightRow apart, as left factors whose depth are the keys, or the queries.
  static Left<Factor> along_keys(const S* weights, int64_t, int64_t, std::vector<Factor>&) {
    return {weights, kWeightRow, 1};
  }
  static Left<Factor> along_queries(const S* weights, int64_t, int64_t, std::vector<Factor>&) {
    return {weights, 1, kWeightRow};
  }
};

/// Two bf16 of the depth each, the first in the lower half; a missing second one is 0.
struct Bf16Pairs {
  using Sum = float;
  using Factor = uint32_t;
  static constexpr int64_t kDeep = 2;

  static const PanelKernel<float, uint32_t>& kernel() { return bf16_loops()->panel; }
  static const Factor* read(const Run& row, int64_t n, Factor* buffer) {
    if (n % 2 != 0) buffer[n / 2] = 0;
    std::memcpy(buffer, row.data, static_cast<size_t>(n) * sizeof(uint16_t));
    return buffer;
  }
  static void write(const Run& row, const float* values, int64_t n) { bf16_loops()->round(row.data, values, n); }
  static float dot(const Run& a, const Run& b, int64_t n) { return bf16_loops()->dot(a.data, b.data, n); }
  static const Factor* stack(const Run* rows, int64_t count, int64_t n, Factor* buffer) {
    const auto* low = static_cast<const uint16_t*>(rows[0].data);
    const auto* high = count == 2 ? static_cast<const uint16_t*>(rows[1].data) : nullptr;
    for (int64_t c = 0; c < n; ++c) buffer[c] = low[c] | (high ? static_cast<uint32_t>(high[c]) << 16 : 0);
    return buffer;
  }
  static Left<Factor> along_keys(const float* weights, int64_t rows, int64_t n, std::vector<Factor>& memory) {
    memory.resize(static_cast<size_t>(rows * kWeightRow / 2));
    for (int64_t i = 0; i < rows; ++i) {
      Factor* const to = memory.data() + i * kWeightRow / 2;
      to[n / 2] = 0;  // where n is odd, its last pair has no second one
      bf16_loops()->round(to, weights + i * kWeightRow, n);
    }
    return {memory.data(), kWeightRow / 2, 1};
  }
  static Left<Factor> along_queries(const float* weights, int64_t rows, int64_t n, std::vector<Factor>& memory) {
    memory.resize(static_cast<size_t>((rows + 1) / 2 * kWeightRow));
    for (int64_t i = 0; i < rows; i += 2) {
      const float* const low = weights + i * kWeightRow;
      bf16_loops()->round_pairs(memory.data() + i / 2 * kWeightRow, low, i + 1 < rows ? low + kWeightRow : nullptr, n);
    }
    return {memory.data(), 1, kWeightRow};
  }
};

template <class F>
int64_t words(int64_t depth) {
  return (depth + F::kDeep - 1) / F::kDeep;
}
/// Columns in whole panels.
template <class F>
int64_t padded(int64_t columns) {
  const int64_t width = F::kernel().panel;
  return (columns + width - 1) / width * width;
}

/// A matrix [rows, D] of a head.
struct HeadRows {
  const View& view;
  int64_t base;

  HeadRows(const View& matrix, int64_t b, int64_t h)
      : view(matrix), base(b * matrix.strides[0] + h * matrix.strides[2]) {}
  int64_t count() const { return view.sizes[1]; }
  int64_t channels() const { return view.sizes[3]; }
  Run operator[](int64_t i) const { return {element(view, base + i * view.strides[1]), view.dtype, 1}; }
  /// Row i, if there is one, will be read soon. Rows lie on pages of their own, so the hardware does not see them
  /// coming.
  void fetch(int64_t i) const {
    if (i >= count()) return;
    const char* const row = static_cast<const char*>((*this)[i].data);
    for (size_t at = 0; at < static_cast<size_t>(channels()) * size_of(view.dtype); at += 64)
      __builtin_prefetch(row + at);
  }
};

/// A right factor, packed: [panel][depth][column], zeros beyond the last column.
template <class F>
class Panels {
 public:
  using Factor = typename F::Factor;

  /// `rows` transposed: their channels are the depth, the first `count` rows the columns.
  void pack_columns(const HeadRows& rows, int64_t count) {
    start(words<F>(rows.channels()), count);
    for (int64_t first = 0; first < count; first += kEight) {
      const Factor* from[kEight];
      const int64_t some = std::min<int64_t>(kEight, count - first);
      for (int64_t i = 0; i < some; ++i) {
        rows.fetch(first + i + kEight);
        from[i] = F::read(rows[first + i], rows.channels(), buffer_.data() + i * kMaxHeadDim);
      }
      Factor* const to = at(first / width_, 0) + first % width_;
      int64_t d = 0;
      for (; some == kEight && d + kEight <= depth_; d += kEight) transpose_eight(from, d, to + d * width_, width_);
      for (; d < depth_; ++d)
        for (int64_t i = 0; i < some; ++i) to[d * width_ + i] = from[i][d];
    }
  }
  /// The first `count` rows as they are: they are the depth, their channels the columns.
  void pack_rows(const HeadRows& rows, int64_t count) {
    start(words<F>(count), rows.channels());
    for (int64_t k = 0; k < depth_; ++k) {
      const int64_t first = k * F::kDeep, some = std::min(F::kDeep, count - first);
      const Run runs[] = {rows[first], rows[first + some - 1]};
      for (int64_t i = 0; i < some; ++i) rows.fetch(first + i + kEight);
      const Factor* const from = F::stack(runs, some, rows.channels(), buffer_.data());
      for (int64_t c = 0; c < rows.channels(); c += width_)
        std::copy_n(from + c, std::min(width_, rows.channels() - c), at(c / width_, k));
    }
  }

  /// c (+)= alpha a b, c's rows `row` apart with room for whole panels. b has `columns` columns from `column` on, a
  /// multiple of the panel, and `depth` rows from `first` on, a multiple of kDeep.
  void multiply(typename F::Sum alpha, const Left<Factor>& a, int64_t rows, int64_t first, int64_t depth,
                int64_t column, int64_t columns, typename F::Sum* c, int64_t row, bool add) const {
    PanelProduct<typename F::Sum, Factor> p{};
    p.rows = rows;
    p.depth = words<F>(depth);
    p.a = a.data;
    p.a_row = a.row;
    p.a_depth = a.depth;
    p.b_depth = width_;
    p.c_row = row;
    p.alpha = alpha;
    p.add = add;
    for (int64_t j = 0; j < columns; j += width_) {
      p.b = memory_.data() + ((column + j) / width_ * depth_ + first / F::kDeep) * width_;
      p.c = c + j;
      p.only_half = columns - j <= width_ / 2;
      F::kernel().product(p);
    }
  }

 private:
  void start(int64_t depth, int64_t columns) {
    width_ = F::kernel().panel;
    depth_ = depth;
    memory_.resize(static_cast<size_t>(depth * padded<F>(columns)));
    if (columns % width_ != 0) std::fill_n(at(columns / width_, 0), depth * width_, Factor(0));
    buffer_.resize(static_cast<size_t>(kEight * kMaxHeadDim));
  }
  Factor* at(int64_t panel, int64_t depth) { return memory_.data() + (panel * depth_ + depth) * width_; }

  int64_t width_ = 0, depth_ = 0;
  std::vector<Factor> memory_, buffer_;
};

/// `rows` rows from `first` on as left factors whose depth are the channels: copies, on few pages.
template <class F>
Left<typename F::Factor> along_channels(const HeadRows& from, int64_t first, int64_t rows,
                                        std::vector<typename F::Factor>& memory) {
  const int64_t depth = words<F>(from.channels()), row = depth + 16;
  memory.resize(static_cast<size_t>(rows * row));
  for (int64_t i = 0; i < rows; ++i) {
    auto* const to = memory.data() + i * row;
    from.fetch(first + i + kEight);
    if (const auto* read = F::read(from[first + i], from.channels(), to); read != to) std::copy_n(read, depth, to);
  }
  return {memory.data(), row, 1};
}

/// The keys that the queries of a batch entry see, and the dropped weights of a head.
class Sight {
 public:
  Sight(const AttentionShape& s, int64_t b, int64_t h, const View& key_lengths, const View& key_mask, const View& state,
        const AttentionArguments& arguments)
      : keys_(s.M),
        causal_(arguments.causal),
        window_(arguments.window > 0 ? arguments.window : s.N),
        dropout_(static_cast<float>(arguments.dropout)),
        kept_(0, 0, 0, 0, 0) {
    if (key_lengths) keys_ = std::clamp<int64_t>(key_lengths.as<int64_t>()[b], 0, s.M);
    if (key_mask) mask_ = key_mask.as<bool>() + b * s.M;
    if (dropout_ == 0) return;
    const int64_t* words = state.as<int64_t>();
    kept_ = {static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1]) + arguments.random.offset, b * s.H + h,
             s.N, s.M};
  }

  /// The first key that no query before `query_end` sees.
  int64_t key_end(int64_t query_end) const { return causal_ ? std::min(keys_, query_end) : keys_; }
  /// Where the keys of queries from `query` on begin: none before it is seen.
  int64_t key_begin(int64_t query) const {
    return causal_ ? std::max<int64_t>(query - window_ + 1, 0) / kKeyStart * kKeyStart : 0;
  }
  bool drops() const { return dropout_ != 0; }

  /// Puts `hidden` where query i does not see keys first … first + n - 1.
  template <class S>
  void hide(S* values, int64_t i, int64_t first, int64_t n, S hidden) const {
    if (mask_ != nullptr)
      for (int64_t j = 0; j < n; ++j) values[j] = mask_[first + j] ? values[j] : hidden;
    if (!causal_) return;
    std::fill_n(values, std::clamp<int64_t>(i + 1 - window_ - first, 0, n), hidden);
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
  int64_t window_;  ///< keys that a query of a causal problem sees at most
  float dropout_;
  AttentionDropout kept_;
};

/// weights = e^(weights - base); returns their sum.
template <class S>
S exponentials(S* weights, int64_t n, S base) {
  if constexpr (std::is_same_v<S, float>)
    return math_loops().exponentials(weights, n, base);
  else
    return exponentials_loop(weights, n, base);
}

/// A thread's buffers, reused from head to head.
template <class F>
struct Workspace {
  using Sum = typename F::Sum;
  using Factors = std::vector<typename F::Factor>;

  std::vector<Sum> weights, slopes, y, maximum, sum, delta, dk, dv;
  Factors left, left_dy, copy;
  Panels<F> keys, values, key_rows, query_rows, dy_rows;

  Workspace(int64_t D, int64_t queries, bool with_slopes)
      : weights(static_cast<size_t>(std::min(queries, kQueries) * kWeightRow)),
        slopes(with_slopes ? weights.size() : 0),
        y(static_cast<size_t>(kQueries * padded<F>(D))),
        maximum(static_cast<size_t>(kQueries)),
        sum(maximum.size()),
        delta(maximum.size()) {}
};

/// The keys and values of a head, packed.
template <class F>
struct PackedKeys {
  using S = typename F::Sum;
  Workspace<F>& w;
  Left<typename F::Factor> queries{};

  PackedKeys(Workspace<F>& workspace, const HeadRows& k, const HeadRows& v, int64_t count) : w(workspace) {
    w.keys.pack_columns(k, count);
    w.values.pack_rows(v, count);
  }
  void take(const HeadRows& q, int64_t first, int64_t rows) { queries = along_channels<F>(q, first, rows, w.left); }
  /// The weights of `rows` queries for n keys: scale q k.
  void score(S scale, int64_t rows, int64_t D, int64_t key, int64_t n) {
    w.keys.multiply(scale, queries, rows, 0, D, key, n, w.weights.data(), kWeightRow, false);
  }
  /// Adds the weighted values to w.y.
  void mix(int64_t rows, int64_t D, int64_t key, int64_t n) {
    w.values.multiply(S(1), F::along_keys(w.weights.data(), rows, n, w.copy), rows, key, n, 0, D, w.y.data(),
                      padded<F>(D), true);
  }
};

/// The keys and values of a head in the caller's tensors.
template <class F>
struct KeysInPlace {
  using S = typename F::Sum;
  static constexpr int kRows = 8;  ///< the most that a call of a loop reads
  const RowLoops<S>& loops = row_loops<S>();
  Workspace<F>& w;
  const HeadRows &k, &v;
  S queries[kFewQueries][kMaxHeadDim], buffer[kRows][kMaxHeadDim];

  KeysInPlace(Workspace<F>& workspace, const HeadRows& keys, const HeadRows& values)
      : w(workspace), k(keys), v(values) {}
  void take(const HeadRows& q, int64_t first, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) load(queries[i], q[first + i], q.channels());
  }
  void score(S scale, int64_t rows, int64_t D, int64_t key, int64_t n) {
    const S* from_queries[kFewQueries];
    for (int64_t i = 0; i < rows; ++i) from_queries[i] = queries[i];
    each_few(k, key, n, [&](const S* const* from, int64_t at, int few) {
      loops.dots(w.weights.data() + at, kWeightRow, from, few, from_queries, static_cast<int>(rows), D);
    });
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) w.weights[static_cast<size_t>(i * kWeightRow + j)] *= scale;
  }
  void mix(int64_t rows, int64_t D, int64_t key, int64_t n) {
    each_few(v, key, n, [&](const S* const* from, int64_t at, int few) {
      for (int64_t i = 0; i < rows; ++i)
        loops.add_rows(w.y.data() + i * padded<F>(D), from, few, w.weights.data() + i * kWeightRow + at, D);
    });
  }

 private:
  /// Calls body(rows, index of the first one, how many) for the n rows from `first` on.
  template <class Body>
  void each_few(const HeadRows& matrix, int64_t first, int64_t n, const Body& body) {
    for (int64_t at = 0; at < n; at += kRows) {
      const S* rows[kRows];
      const int few = static_cast<int>(std::min<int64_t>(kRows, n - at));
      for (int i = 0; i < few; ++i) {
        matrix.fetch(first + at + i + kRows);
        rows[i] = elements(matrix[first + at + i], matrix.channels(), buffer[i]);
      }
      body(rows, at, few);
    }
  }
};

/// `rows` queries from `first` on: y and lse from all keys.
template <class F, class Keys>
void forward_block(const HeadRows& y, typename F::Sum* lse, const HeadRows& q, Keys&& keys, const Sight& sight,
                   typename F::Sum scale, typename F::Sum kept_scale, int64_t first, int64_t rows, Workspace<F>& w) {
  using S = typename F::Sum;
  constexpr S kNone = -std::numeric_limits<S>::infinity();
  const int64_t D = q.channels(), row = padded<F>(D);
  const int64_t key_begin = sight.key_begin(first), key_end = sight.key_end(first + rows);
  keys.take(q, first, rows);
  S *const maximum = w.maximum.data(), *const sum = w.sum.data(), *const sums = w.y.data();
  std::fill_n(maximum, rows, kNone);
  std::fill_n(sum, rows, S(0));
  std::fill_n(sums, rows * row, S(0));
  for (int64_t key = key_begin; key < key_end; key += kKeys) {
    const int64_t n = std::min(kKeys, key_end - key);
    keys.score(scale, rows, D, key, n);
    for (int64_t i = 0; i < rows; ++i) {
      S* const weights = w.weights.data() + i * kWeightRow;
      sight.hide(weights, first + i, key, n, kNone);
      S largest = maximum[i];
#pragma omp simd reduction(max : largest)
      for (int64_t j = 0; j < n; ++j) largest = largest < weights[j] ? weights[j] : largest;
      const S base = largest == kNone ? S(0) : largest, again = VectorMath::exp(maximum[i] - base);
      sum[i] = sum[i] * again + exponentials(weights, n, base);
      maximum[i] = largest;
      if (sight.drops()) sight.drop(weights, first + i, key, n);
      if (key > key_begin && again != S(1))
        for (int64_t d = 0; d < D; ++d) sums[i * row + d] *= again;
    }
    keys.mix(rows, D, key, n);
  }
  for (int64_t i = 0; i < rows; ++i) {
    lse[first + i] = sum[i] == S(0) ? kNone : maximum[i] + std::log(sum[i]);
    const S factor = sum[i] == S(0) ? S(0) : kept_scale / sum[i];
    for (int64_t d = 0; d < D; ++d) sums[i * row + d] *= factor;
    F::write(y[first + i], sums + i * row, D);
  }
}

/// Stores dq of a head, if requested, and adds the head's part to w.dk and w.dv. w holds the keys and values.
template <class F>
void backward_head(const View& dq, bool keys_wanted, const HeadRows& dy, const HeadRows& q, const HeadRows& y,
                   int64_t b, int64_t h, const typename F::Sum* lse, const Sight& sight, typename F::Sum scale,
                   typename F::Sum kept_scale, Workspace<F>& w) {
  using S = typename F::Sum;
  const int64_t N = q.count(), D = q.channels(), row = padded<F>(D);
  if (keys_wanted) {
    w.query_rows.pack_rows(q, N);
    w.dy_rows.pack_rows(dy, N);
  }
  for (int64_t first = 0; first < N; first += kQueries) {
    const int64_t rows = std::min(kQueries, N - first);
    const int64_t key_begin = sight.key_begin(first), key_end = sight.key_end(first + rows);
    for (int64_t i = 0; i < rows; ++i) w.delta[static_cast<size_t>(i)] = F::dot(dy[first + i], y[first + i], D);
    const auto queries = along_channels<F>(q, first, rows, w.left),
               slopes_y = along_channels<F>(dy, first, rows, w.left_dy);
    std::fill_n(w.y.data(), rows * row, S(0));  // dq of the block
    for (int64_t key = key_begin; key < key_end; key += kKeys) {
      const int64_t n = std::min(kKeys, key_end - key);
      S *const p = w.weights.data(), *const ds = w.slopes.data();
      w.keys.multiply(scale, queries, rows, 0, D, key, n, p, kWeightRow, false);
      w.values.multiply(kept_scale, slopes_y, rows, 0, D, key, n, ds, kWeightRow, false);
      for (int64_t i = 0; i < rows; ++i) {
        S *const weights = p + i * kWeightRow, *const slopes = ds + i * kWeightRow;
        const S base = lse[first + i], subtracted = w.delta[static_cast<size_t>(i)];
        exponentials(weights, n, base);
        sight.hide(weights, first + i, key, n, S(0));
        if (sight.drops()) sight.drop(slopes, first + i, key, n);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) slopes[j] = weights[j] * (slopes[j] - subtracted);
        if (sight.drops() && keys_wanted) sight.drop(weights, first + i, key, n);
      }
      if (dq) w.key_rows.multiply(scale, F::along_keys(ds, rows, n, w.copy), rows, key, n, 0, D, w.y.data(), row, true);
      if (!keys_wanted) continue;
      w.query_rows.multiply(scale, F::along_queries(ds, rows, n, w.copy), n, first, rows, 0, D, w.dk.data() + key * row,
                            row, true);
      w.dy_rows.multiply(kept_scale, F::along_queries(p, rows, n, w.copy), n, first, rows, 0, D,
                         w.dv.data() + key * row, row, true);
    }
    for (int64_t i = 0; dq && i < rows; ++i) F::write(HeadRows(dq, b, h)[first + i], w.y.data() + i * row, D);
  }
}

template <class S>
S kept_scale_of(const AttentionArguments& arguments) {
  return arguments.dropout < 1 ? static_cast<S>(1 / (1 - arguments.dropout)) : S(0);
}

/// Calls body with the way in which products take this dtype.
template <class Body>
void with_factors(DType dtype, const char* op, Body&& body) {
  if (dtype == DType::bf16 && bf16_loops()) return body.template operator()<Bf16Pairs>();
  with_dtype<float, double, bf16, f16>(dtype, op, [&]<class T>() { body.template operator()<Plain<Accumulate<T>>>(); });
}

}  // namespace

void attention_forward(const Queue&, const View& y, const View& lse, const View& q, const View& k, const View& v,
                       const View& key_lengths, const View& key_mask, const View& state, AttentionArguments arguments) {
  const AttentionShape shape =
      attention_shape("attention_forward", q, k, v, lse, key_lengths, key_mask, state, arguments);
  check_attention_like("attention_forward", y, q);
  const int64_t heads = shape.B * shape.H, blocks = (shape.N + kQueries - 1) / kQueries;
  if (heads * blocks == 0) return;
  with_factors(q.dtype, "attention_forward", [&]<class F>() {
    using S = typename F::Sum;
    const int64_t work = kQueries * shape.M * shape.D;
    const int64_t parts = std::min(blocks, (threads_for(heads * blocks, work) + heads - 1) / heads);
    parallel_for(heads * parts, work * blocks / parts, [&](int64_t begin, int64_t end) {
      Workspace<F> workspace(shape.D, shape.N, false);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t head = task / parts, part = task % parts, b = head / shape.H, h = head % shape.H;
        const int64_t from = blocks * part / parts * kQueries;
        const int64_t to = std::min(shape.N, blocks * (part + 1) / parts * kQueries);
        const Sight sight(shape, b, h, key_lengths, key_mask, state, arguments);
        const HeadRows keys(k, b, h / shape.group()), values(v, b, h / shape.group());
        const auto compute = [&](auto&& at_hand) {
          for (int64_t i = from; i < to; i += kQueries)
            forward_block<F>(HeadRows(y, b, h), lse.as<S>() + head * shape.N, HeadRows(q, b, h), at_hand, sight,
                             static_cast<S>(arguments.scale), kept_scale_of<S>(arguments), i,
                             std::min(kQueries, to - i), workspace);
        };
        if (shape.N <= kFewQueries)
          compute(KeysInPlace<F>(workspace, keys, values));
        else
          compute(PackedKeys<F>(workspace, keys, values, sight.key_end(to)));
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
  with_factors(q.dtype, "attention_backward", [&]<class F>() {
    using S = typename F::Sum;
    const int64_t group = shape.group(), row = padded<F>(shape.D);
    parallel_for(shape.B * shape.G, group * shape.N * shape.M * shape.D, [&](int64_t begin, int64_t end) {
      Workspace<F> w(shape.D, shape.N, true);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t b = task / shape.G, g = task % shape.G;
        const HeadRows keys(k, b, g), values(v, b, g);
        const auto sight_of = [&](int64_t h) { return Sight(shape, b, h, key_lengths, key_mask, state, arguments); };
        const int64_t last_key = sight_of(g * group).key_end(shape.N);
        w.keys.pack_columns(keys, last_key);
        w.values.pack_columns(values, last_key);
        if (dq) w.key_rows.pack_rows(keys, last_key);
        if (dk) {
          w.dk.assign(static_cast<size_t>(shape.M * row), S(0));
          w.dv.assign(w.dk.size(), S(0));
        }
        for (int64_t h = g * group; h < (g + 1) * group; ++h)
          backward_head<F>(dq, static_cast<bool>(dk), HeadRows(dy, b, h), HeadRows(q, b, h), HeadRows(y, b, h), b, h,
                           lse.as<S>() + (b * shape.H + h) * shape.N, sight_of(h), static_cast<S>(arguments.scale),
                           kept_scale_of<S>(arguments), w);
        for (int64_t j = 0; dk && j < shape.M; ++j) {
          F::write(HeadRows(dk, b, g)[j], w.dk.data() + j * row, shape.D);
          F::write(HeadRows(dv, b, g)[j], w.dv.data() + j * row, shape.D);
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
