// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/multiply.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/cublaslt/number.h"
#include "emulator/machine/options.h"

namespace emulator::lt {
namespace {

// D is computed in tiles that stay in the second cache. Factors are copied into panels in the type of the sums: of A as
// many rows as two vectors hold, of B kWidth columns, for each step of the depth.
constexpr int64_t kRows = 256, kColumns = 192, kDepth = 256, kWidth = 6;
constexpr int64_t kHalfDepth = 16;                    ///< products after which sums of compute type 16F are rounded
constexpr int64_t kAloneProducts = int64_t{1} << 22;  ///< that are not worth more threads

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(32), may_alias));
  static constexpr int64_t kCount = 32 / sizeof(T), kHeight = 2 * kCount;
};

/// sums[j][i] += a[k][i] b[k][j] over k, for kHeight times kWidth of them.
template <class T>
void add_products(const T* a, const T* b, int64_t depth, T* sums) {
  using V = typename Lanes<T>::Vector;
  V s[kWidth][2];
  for (int64_t j = 0; j < kWidth; ++j)
    for (int64_t v = 0; v < 2; ++v) s[j][v] = reinterpret_cast<const V*>(sums + j * kRows)[v];
  for (int64_t k = 0; k < depth; ++k) {
    const V* const x = reinterpret_cast<const V*>(a + k * Lanes<T>::kHeight);
    const V x0 = x[0], x1 = x[1];
    for (int64_t j = 0; j < kWidth; ++j) {
      s[j][0] += x0 * b[k * kWidth + j];
      s[j][1] += x1 * b[k * kWidth + j];
    }
  }
  for (int64_t j = 0; j < kWidth; ++j)
    for (int64_t v = 0; v < 2; ++v) reinterpret_cast<V*>(sums + j * kRows)[v] = s[j][v];
}

/// Panels of `width` lines: element k of line i lies `i * line + k * step` elements from `from`. Missing elements are
/// 0.
template <class T, class Element>
void pack(const std::byte* from, int64_t line, int64_t step, int64_t lines, int64_t depth, int64_t width, T* to) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(Element));
  for (int64_t begin = 0; begin < lines; begin += width) {
    const int64_t count = std::min(width, lines - begin);
    T* const panel = to + begin * depth;
    const std::byte* const at = from + begin * line * kSize;
    if (count < width) std::fill_n(panel, width * depth, T{0});
    const auto copy = [&](int64_t i, int64_t k) {
      panel[k * width + i] = widen<T>(load<Element>(at + (i * line + k * step) * kSize));
    };
    if (step == 1)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < depth; ++k) copy(i, k);
    else
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = 0; i < count; ++i) copy(i, k);
  }
}

/// The fast compute types may round f32 factors so.
void round_factors(cublasComputeType_t compute, float* x, int64_t count) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32)
    for (int64_t i = 0; i < count; ++i) x[i] = round_to_tf32(x[i]);
  if (compute == CUBLAS_COMPUTE_32F_FAST_16F)
    for (int64_t i = 0; i < count; ++i) x[i] = Half::narrow(x[i]).widen();
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF)
    for (int64_t i = 0; i < count; ++i) x[i] = Bfloat16::narrow(x[i]).widen();
}

int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

const std::byte* at(const std::byte* base, const Matrix& x, int64_t batch, int64_t i, int64_t j) {
  return base + (batch * x.batch + i * x.row + j * x.column) * static_cast<int64_t>(size_of(x.type));
}
std::byte* at(std::byte* base, const Matrix& x, int64_t batch, int64_t i, int64_t j) {
  return const_cast<std::byte*>(at(const_cast<const std::byte*>(base), x, batch, i, j));
}

/// A part of D, of one matrix of the batch.
struct Part {
  int64_t batch, i, j, rows, columns;
};

template <class T>
struct Scratch {
  alignas(64) T a[kRows * kDepth], b[kColumns * kDepth], sums[kRows * kColumns];
};

template <class T>
void pack(const Call& call, const Matrix& x, const std::byte* from, int64_t line, int64_t step, int64_t lines,
          int64_t depth, int64_t width, T* to) {
  if constexpr (!std::is_same_v<T, float>) {
    pack<T, std::conditional_t<std::is_same_v<T, double>, double, int8_t>>(from, line, step, lines, depth, width, to);
  } else {
    with_type(x.type, [&]<class E>(E) { pack<T, E>(from, line, step, lines, depth, width, to); });
    round_factors(call.problem.types.compute, to, round_up(lines, width) * depth);
  }
}

/// The sums over [begin, end) of the depth, column by column.
template <class T>
void sum(const Call& call, const Part& part, int64_t begin, int64_t end, Scratch<T>& scratch) {
  constexpr int64_t kHeight = Lanes<T>::kHeight;
  const Problem& p = call.problem;
  const bool half_sums = p.types.scale == CUDA_R_16F;
  std::fill_n(scratch.sums, kRows * kColumns, T{0});
  for (int64_t k = begin; k < end;) {
    const int64_t depth = std::min(half_sums ? kHalfDepth : kDepth, end - k);
    pack(call, p.a, at(call.a, p.a, part.batch, part.i, k), p.a.row, p.a.column, part.rows, depth, kHeight, scratch.a);
    pack(call, p.b, at(call.b, p.b, part.batch, k, part.j), p.b.column, p.b.row, part.columns, depth, kWidth,
         scratch.b);
    for (int64_t j = 0; j < part.columns; j += kWidth)
      for (int64_t i = 0; i < part.rows; i += kHeight)
        add_products(scratch.a + i * depth, scratch.b + j * depth, depth, scratch.sums + j * kRows + i);
    if constexpr (std::is_same_v<T, float>)
      if (half_sums)
        for (int64_t i = 0; i < kRows * kColumns; ++i) scratch.sums[i] = Half::narrow(scratch.sums[i]).widen();
    k += depth;
  }
}

template <class S>
S gelu(S x) {
  const S u = S(0.7978845608028654) * (x + S(0.044715) * x * x * x);
  return S(0.5) * x * (1 + std::tanh(u));
}
template <class S>
S gelu_slope(S x) {
  const S c = S(0.7978845608028654), t = std::tanh(c * (x + S(0.044715) * x * x * x));
  return S(0.5) * (1 + t) + S(0.5) * x * (1 - t * t) * c * (1 + S(3 * 0.044715) * x * x);
}

/// The sums as numbers of the scale type: those of integers have wrapped around as unsigned ones do.
template <class S, class T>
S scaled(T sum) {
  if constexpr (std::is_same_v<T, uint32_t> && !std::is_same_v<S, uint32_t>)
    return static_cast<S>(static_cast<int32_t>(sum));
  else
    return static_cast<S>(sum);
}

float factor(const void* scale) { return scale ? load<float>(static_cast<const std::byte*>(scale)) : 1.0f; }

template <class S>
S maximum(S most, const S* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) most = std::max(most, static_cast<S>(std::abs(x[i])));
  return most;
}

/// T: of sums; S: of alpha and beta, and of all that is computed from sums.
template <class T, class S>
class Matmul {
 public:
  explicit Matmul(const Call& call) : call_(call), p_(call.problem), e_(p_.epilogue), what_(p_.what) {
    tiles_m_ = (p_.m + kRows - 1) / kRows, tiles_n_ = (p_.n + kColumns - 1) / kColumns;
    if (!p_.alpha_is_vector()) alpha_ = scalar(value_of(call.alpha, p_.types.scale));
    beta_ = scalar(value_of(call.beta, p_.types.scale));
    if constexpr (std::is_floating_point_v<S>)
      product_scale_ = static_cast<S>(factor(what_.a_scale)) * factor(what_.b_scale);
    if (e_.sums_d) column_sums_.resize(static_cast<size_t>(p_.batches * tiles_n_ * p_.m));
  }

  void run() {
    const int64_t tiles = p_.batches * tiles_m_ * tiles_n_;
    if (call_.splits > 1)
      each(tiles * call_.splits,
           [&](int64_t i, Scratch<T>& scratch) { sum_share(i / tiles, part(i % tiles), scratch); });
    each(tiles, [&](int64_t i, Scratch<T>& scratch) {
      if (call_.splits > 1)
        add_shares(part(i), scratch);
      else
        sum(call_, part(i), 0, p_.k, scratch);
      finish(part(i), scratch.sums);
    });
    if constexpr (std::is_floating_point_v<S>) {
      if (e_.sums_d) store_column_sums();
      if (e_.sums_a) store_line_sums(p_.a, call_.a, p_.m, p_.a.row, p_.a.column);
      if (e_.sums_b) store_line_sums(p_.b, call_.b, p_.n, p_.b.column, p_.b.row);
      if (what_.d_amax) store(static_cast<std::byte*>(what_.d_amax), static_cast<float>(d_amax_));
      if (what_.aux_amax) store(static_cast<std::byte*>(what_.aux_amax), static_cast<float>(aux_amax_));
    }
  }

 private:
  static S scalar(double value) {
    if constexpr (std::is_floating_point_v<S>)
      return static_cast<S>(value);
    else
      return static_cast<S>(static_cast<int64_t>(value));
  }

  /// Calls f(i, scratch) for every i below count.
  template <class F>
  void each(int64_t count, F&& f) {
    const bool alone = p_.m * p_.n * p_.batches <= kAloneProducts / p_.k;
    const int64_t processors = options().threads ? options().threads : std::thread::hardware_concurrency();
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      const auto scratch = std::make_unique_for_overwrite<Scratch<T>>();
      for (int64_t i; (i = next++) < count;) f(i, *scratch);
    };
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < std::min(processors, count) && !alone; ++i) helpers.emplace_back(work);
    work();
  }

  Part part(int64_t i) const {
    const int64_t row = i % tiles_m_ * kRows, column = i / tiles_m_ % tiles_n_ * kColumns;
    return {i / (tiles_m_ * tiles_n_), row, column, std::min(kRows, p_.m - row), std::min(kColumns, p_.n - column)};
  }

  /// Column j of a part, of one slice of the depth.
  T* share(int64_t split, const Part& part, int64_t j) const {
    return reinterpret_cast<T*>(call_.workspace) + ((split * p_.batches + part.batch) * p_.n + part.j + j) * p_.m +
           part.i;
  }
  void sum_share(int64_t split, const Part& part, Scratch<T>& scratch) {
    const int64_t length = (p_.k + call_.splits - 1) / call_.splits, begin = split * length;
    sum(call_, part, begin, std::min(begin + length, p_.k), scratch);
    for (int64_t j = 0; j < part.columns; ++j) std::copy_n(scratch.sums + j * kRows, part.rows, share(split, part, j));
  }
  void add_shares(const Part& part, Scratch<T>& scratch) {
    for (int64_t j = 0; j < part.columns; ++j) {
      T* const sums = scratch.sums + j * kRows;
      std::copy_n(share(0, part, j), part.rows, sums);
      for (int64_t split = 1; split < call_.splits; ++split) {
        const T* const more = share(split, part, j);
        for (int64_t i = 0; i < part.rows; ++i) sums[i] += more[i];
      }
    }
  }

  void finish(const Part& part, const T* sums) {
    S x[kRows], other[kRows], d_most = 0, aux_most = 0;
    for (int64_t j = 0; j < part.columns; ++j) {
      for (int64_t i = 0; i < part.rows; ++i) x[i] = scaled<S>(sums[j * kRows + i]);
      scale(part, x);
      if (beta_ != 0) {
        load_line(p_.c.type, at(call_.c, p_.c, part.batch, part.i, part.j + j), p_.c.row, part.rows, other);
        for (int64_t i = 0; i < part.rows; ++i) x[i] += beta_ * other[i];
      }
      if constexpr (std::is_floating_point_v<S>) {
        if (e_.bias) {
          load_line(p_.vector_type, vector_at(part.batch, part.i), 1, part.rows, other);
          for (int64_t i = 0; i < part.rows; ++i) x[i] += other[i];
        }
        if (e_.aux_is_bits())
          mask(part, j, x);
        else if (e_.aux)
          aux(part, j, x, aux_most);
        if (e_.relu)  // for NaN as well
          for (int64_t i = 0; i < part.rows; ++i) x[i] = x[i] > 0 ? x[i] : 0;
        if (e_.gelu)
          for (int64_t i = 0; i < part.rows; ++i) x[i] = gelu(x[i]);
        if (e_.sums_d) {
          S* const to = column_sums_.data() + (part.batch * tiles_n_ + part.j / kColumns) * p_.m + part.i;
          for (int64_t i = 0; i < part.rows; ++i) to[i] += x[i];
        }
        if (what_.d_amax) d_most = maximum(d_most, x, part.rows);
        if (what_.d_scale)
          for (int64_t i = 0; i < part.rows; ++i) x[i] *= factor(what_.d_scale);
      }
      store_line(p_.d.type, at(call_.d, p_.d, part.batch, part.i, part.j + j), p_.d.row, part.rows, x);
    }
    const std::lock_guard lock(mutex_);
    d_amax_ = std::max(d_amax_, d_most);
    aux_amax_ = std::max(aux_amax_, aux_most);
  }

  void scale(const Part& part, S* x) const {
    if (p_.alpha_is_vector())
      for (int64_t i = 0; i < part.rows; ++i)
        x[i] *= scalar(value_of(call_.alpha, p_.types.scale, part.batch * what_.alpha_stride + part.i + i));
    else
      for (int64_t i = 0; i < part.rows; ++i) x[i] *= alpha_ * product_scale_;
  }

  std::byte* vector_at(int64_t batch, int64_t i) const {
    return static_cast<std::byte*>(what_.bias) +
           (batch * what_.bias_stride + i) * static_cast<int64_t>(size_of(p_.vector_type));
  }

  /// A bit for each element, set where it is positive: written forward, read backward.
  void mask(const Part& part, int64_t j, S* x) const {
    auto* const bits =
        static_cast<uint8_t*>(what_.aux) + (part.batch * what_.aux_stride + (part.j + j) * what_.aux_ld + part.i) / 8;
    for (int64_t i = 0; i < part.rows; i += 8)
      if (const int64_t count = std::min<int64_t>(8, part.rows - i); e_.relu_slope) {
        for (int64_t bit = 0; bit < count; ++bit)
          if (!(bits[i / 8] >> bit & 1)) x[i + bit] = 0;
      } else {
        uint8_t byte = 0;
        for (int64_t bit = 0; bit < count; ++bit) byte |= static_cast<uint8_t>((x[i + bit] > 0) << bit);
        bits[i / 8] = byte;
      }
  }

  /// The input of GELU: written forward, read backward.
  void aux(const Part& part, int64_t j, S* x, S& most) const {
    std::byte* const line =
        static_cast<std::byte*>(what_.aux) + (part.batch * what_.aux_stride + (part.j + j) * what_.aux_ld + part.i) *
                                                 static_cast<int64_t>(size_of(p_.aux_type));
    S other[kRows];
    if (e_.gelu_slope) {
      load_line(p_.aux_type, line, 1, part.rows, other);
      for (int64_t i = 0; i < part.rows; ++i) x[i] *= gelu_slope(other[i]);
      return;
    }
    if (what_.aux_amax) most = maximum(most, x, part.rows);
    for (int64_t i = 0; i < part.rows; ++i) other[i] = x[i] * factor(what_.aux_scale);
    store_line(p_.aux_type, line, 1, part.rows, other);
  }

  void store_column_sums() {
    for (int64_t b = 0; b < p_.batches; ++b) {
      S* const first = column_sums_.data() + b * tiles_n_ * p_.m;
      for (int64_t t = 1; t < tiles_n_; ++t)
        for (int64_t i = 0; i < p_.m; ++i) first[i] += first[t * p_.m + i];
      store_line(p_.vector_type, vector_at(b, 0), 1, p_.m, first);
    }
  }
  /// For each of `lines` the sum along the depth.
  void store_line_sums(const Matrix& x, const std::byte* from, int64_t lines, int64_t line, int64_t step) {
    const auto size = static_cast<int64_t>(size_of(x.type));
    std::vector<S> sums(static_cast<size_t>(lines)), row(sums.size());
    for (int64_t b = 0; b < p_.batches; ++b) {
      std::fill(sums.begin(), sums.end(), S{0});
      for (int64_t k = 0; k < p_.k; ++k) {
        load_line(x.type, from + (b * x.batch + k * step) * size, line, lines, row.data());
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
      }
      store_line(p_.vector_type, vector_at(b, 0), 1, lines, sums.data());
    }
  }

  const Call& call_;
  const Problem& p_;
  const Epilogue& e_;
  const MatmulDescriptor& what_;
  int64_t tiles_m_ = 0, tiles_n_ = 0;
  S alpha_ = 0, beta_ = 0, product_scale_ = 1;
  std::vector<S> column_sums_;  ///< sums by batch, tile of columns and row: added in a fixed order
  std::mutex mutex_;
  S d_amax_ = 0, aux_amax_ = 0;
};

}  // namespace

double value_of(const Scalar& scalar, cudaDataType_t type, int64_t i) {
  if (!scalar.device) return scalar.value;
  double value = 0;
  load_line(type, scalar.device + i * static_cast<int64_t>(size_of(type)), 1, 1, &value);
  return value;
}

void multiply(const Call& call) {
  const Types& t = call.problem.types;
  if (t.a == CUDA_R_64F)
    Matmul<double, double>(call).run();
  else if (t.a == CUDA_R_8I && t.scale == CUDA_R_32I)
    Matmul<uint32_t, uint32_t>(call).run();
  else if (t.a == CUDA_R_8I && t.d == CUDA_R_8I)
    Matmul<uint32_t, float>(call).run();
  else
    Matmul<float, float>(call).run();
}

}  // namespace emulator::lt
