// SPDX-License-Identifier: Apache-2.0
// Ops on difficult numbers: large offsets, constant rows, ties, outliers, NaN, zeros, nothing, odd strides. Each result
// and gradient is compared with f64 (long double for f64). Its largest error is relative to the tensor's largest true
// value. The limit is four times the error of a plain formula in f32 or f64 (rounded to the dtype), and at least two
// units.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <limits>
#include <random>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/ops/plain.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::test {
namespace {

constexpr size_t kRows = 6, kColumns = 40;  // size of the first input, which a pattern fills
using Tensors = std::vector<Tensor>;
template <class S>
using Matrices = std::vector<Plains<S>>;  // the inputs of an op

/// Difficult numbers for a row of op_cases(). `others`: sizes of further inputs.
struct Op {
  std::string name;  ///< the row's
  std::vector<Shape> others;
  bool image;  ///< the first input is images of 6 x 10 positions and 4 channels
  bool low;    ///< gradients in bf16 and f16, too: not where backward reads the rounded y
  std::function<Plains<float>(const Matrices<float>&)> plain;
  std::function<Plains<double>(const Matrices<double>&)> precise;
  std::function<Plains<long double>(const Matrices<long double>&)> more_precise;
  const OpCase* row = nullptr;
};

/// Calls f(row, C, y) for each row of x.
template <class S, class F>
Plains<S> by_rows(const Plains<S>& x, const F& f) {
  Plains<S> y;
  for (size_t r = 0; r < x.size(); r += kColumns) f(&x[r], y);
  return y;
}

template <class S>
void log_softmax_row(const Plain<S>* x, Plains<S>& y) {
  const Plain<S> most = largest(x, kColumns);
  Plains<S> terms;
  for (size_t c = 0; c < kColumns; ++c) terms.push_back(exp(x[c] - most));
  const Plain<S> log_sum = log(total(terms));
  for (size_t c = 0; c < kColumns; ++c) y.push_back((x[c] - most) - log_sum);
}

constexpr size_t label_of(size_t row) { return row * 7 % kColumns; }

/// The loss of each row, summed. smoothing: of the labels.
template <class S>
Plains<S> cross_entropy_of(const Plains<S>& x, double smoothing) {
  Plains<S> losses;
  by_rows(x, [&](const Plain<S>* row, Plains<S>&) {
    Plains<S> p, terms;
    log_softmax_row(row, p);
    for (size_t c = 0; c < kColumns; ++c) {
      const double target = (c == label_of(losses.size()) ? 1 - smoothing : 0) + smoothing / kColumns;
      if (target != 0) terms.push_back(p[c] * Plain<S>(static_cast<S>(-target)));
    }
    losses.push_back(total(terms));
  });
  return losses;
}

template <class S>
void norm_row(const Plain<S>* x, size_t step, size_t n, bool centred, double eps, Plains<S>& y) {
  Plains<S> values, squares;
  for (size_t i = 0; i < n; ++i) values.push_back(x[i * step]);
  const Plain<S> count = static_cast<S>(n);
  // The mean of distances from the first value: exact where all are equal.
  if (centred) {
    Plains<S> distances;
    for (const auto& value : values) distances.push_back(value - values[0].value);
    const Plain<S> mean = total(distances) / count;
    for (size_t i = 0; i < n; ++i) values[i] = distances[i] - mean;
  }
  for (const auto& value : values) squares.push_back(value * value);
  const Plain<S> root = sqrt(total(squares) / count + Plain<S>(static_cast<S>(eps)));
  for (const auto& value : values) y.push_back(value / root);
}

/// The variance of a row by Bessel's correction, or its root.
template <class S>
Plain<S> spread_of_row(const Plain<S>* x, bool root) {
  Plains<S> distances, squares;
  for (size_t c = 0; c < kColumns; ++c) distances.push_back(x[c] - x[0].value);
  const Plain<S> mean = total(distances) / static_cast<int>(kColumns);
  for (const auto& distance : distances) squares.push_back((distance - mean) * (distance - mean));
  const Plain<S> variance = total(squares) / static_cast<int>(kColumns - 1);
  return !root ? variance : variance.value == 0 ? Plain<S>(0) : sqrt(variance);
}

template <class S>
Plains<S> normed(const Matrices<S>& in, bool centred, double eps) {
  Plains<S> y =
      by_rows(in[0], [&](const Plain<S>* row, Plains<S>& to) { norm_row(row, 1, kColumns, centred, eps, to); });
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] * in[1][i % kColumns];
    if (in.size() > 2) y[i] = y[i] + in[2][i % kColumns];
  }
  return y;
}

/// a [m, k] b [n, k]^T.
template <class S>
Plains<S> product(const Plains<S>& a, const Plains<S>& b, size_t k) {
  Plains<S> y;
  for (size_t i = 0; i < a.size(); i += k)
    for (size_t j = 0; j < b.size(); j += k) {
      Plains<S> terms;
      for (size_t l = 0; l < k; ++l) terms.push_back(a[i + l] * b[j + l]);
      y.push_back(in_order(terms));
    }
  return y;
}

/// Calls f(values of the window, y) for windows of `size` x `size` without padding.
template <class S, class F>
Plains<S> windows(const Plains<S>& x, size_t size, size_t step, const F& f) {
  Plains<S> y;
  for (size_t p = 0; !x.empty() && p + size <= 6; p += step)
    for (size_t q = 0; q + size <= 10; q += step)
      for (size_t c = 0; c < 4; ++c) {
        Plains<S> values;
        for (size_t h = p; h < p + size; ++h)
          for (size_t w = q; w < q + size; ++w) values.push_back(x[(h * 10 + w) * 4 + c]);
        y.push_back(f(values));
      }
  return y;
}

template <class S>
Plains<S> convolved(const Matrices<S>& in) {  // 3x3, 4 channels to 2
  Plains<S> y;
  for (size_t p = 0; !in[0].empty() && p + 3 <= 6; ++p)
    for (size_t q = 0; q + 3 <= 10; ++q)
      for (size_t o = 0; o < 2; ++o) {
        Plains<S> terms;
        for (size_t t = 0; t < 36; ++t)
          terms.push_back(in[0][((p + t / 12) * 10 + q + t / 4 % 3) * 4 + t % 4] * in[1][o * 36 + t]);
        y.push_back(in_order(terms));
      }
  return y;
}

std::vector<Op> ops() {
  const auto mean_of = [](const auto& x) {
    return total(x) / typename std::decay_t<decltype(x)>::value_type(int(x.size()));
  };
  std::vector<Op> all;
  const auto add = [&](const std::string& name, std::vector<Shape> others, auto formula, bool image = false,
                       bool low = true) {
    all.push_back({name, std::move(others), image, low, formula, formula, formula});
    const auto found =
        std::find_if(op_cases().begin(), op_cases().end(), [&](const auto& op) { return op.name == name; });
    WEFT_CHECK(found != op_cases().end(), "no row ", name);
    all.back().row = &*found;
  };
  const auto each = [&](const std::string& name, auto f, bool low = true) {
    add(
        name, {},
        [f](const auto& in) {
          auto y = in[0];
          for (auto& value : y) value = f(value);
          return y;
        },
        false, low);
  };
  const auto pairs = [&](const std::string& name, const Shape& other, auto f) {
    add(name, {other}, [f](const auto& in) {
      auto y = in[0];
      for (size_t i = 0; i < y.size(); ++i) y[i] = f(y[i], in[1][i % in[1].size()]);
      return y;
    });
  };
#define WEFT_UNARY(name, formula, ...)      \
  each(#name, [](auto x) {                  \
    using P [[maybe_unused]] = decltype(x); \
    using S = decltype(x.value);            \
    [[maybe_unused]] const S v = x.value;   \
    return formula;                         \
  } __VA_OPT__(, ) __VA_ARGS__)
  WEFT_UNARY(neg, P(0) - x);
  WEFT_UNARY(square, x * x);
  WEFT_UNARY(abs, x.then(std::abs(v), v > 0 ? 1 : v < 0 ? -1 : 0));
  WEFT_UNARY(sign, P(v > 0 ? 1 : v < 0 ? -1 : 0));
  WEFT_UNARY(exp, weft::test::exp(x));
  WEFT_UNARY(log, weft::test::log(x));
  WEFT_UNARY(sqrt, weft::test::sqrt(x));
  WEFT_UNARY(reciprocal, P(1) / x);
  WEFT_UNARY(sin, x.then(std::sin(v), std::cos(v)));
  WEFT_UNARY(cos, x.then(std::cos(v), -std::sin(v)));
  WEFT_UNARY(relu, x.then(v < 0 ? 0 : v, v <= 0 ? 0 : 1));
  WEFT_UNARY(sigmoid, x.then(1 / (1 + std::exp(-v)), (1 / (1 + std::exp(-v))) * (1 - 1 / (1 + std::exp(-v)))), false);
  WEFT_UNARY(tanh, x.then(std::tanh(v), 1 - std::tanh(v) * std::tanh(v)), false);
  WEFT_UNARY(clamp, x.then(v < -0.5 ? -0.5 : v > 0.5 ? 0.5 : v, v > -0.5 && v < 0.5 ? 1 : 0));
  WEFT_UNARY(leaky_relu_slope, x.then(v > 0 ? v : v * S(0.3), v > 0 ? S(1) : S(0.3)));
  WEFT_UNARY(affine, x.then(v * S(-1.5) + S(0.25), S(-1.5)));
  WEFT_UNARY(pow_square_of_negative, x * x);
#undef WEFT_UNARY
  for (const bool broadcast : {false, true}) {
    const std::string tail = broadcast ? "_row" : "";
    const Shape other = broadcast ? Shape{kColumns} : Shape{kRows, kColumns};
    pairs("add" + tail, other, [](auto a, auto b) { return a + b; });
    pairs("sub" + tail, other, [](auto a, auto b) { return a - b; });
    pairs("mul" + tail, other, [](auto a, auto b) { return a * b; });
    pairs("div" + tail, other, [](auto a, auto b) { return a / b; });
    for (const bool more : {true, false})
      pairs(more ? "maximum_ties" : "minimum_ties", other, [more](auto a, auto b) {
        const auto x = a.value, z = b.value;
        const bool nan = std::isnan(x) || std::isnan(z), wins = more ? x > z : x < z;
        const float mine = nan || wins ? 1.0f : x == z ? 0.5f : 0, its = nan ? 1.0f : 1 - mine;
        auto y = a.then(x, mine) + b.then(z, its);
        y.value = nan ? std::numeric_limits<decltype(a.value)>::quiet_NaN() : wins ? x : z;
        return y;
      });
  }
  add("sum_all", {}, [](const auto& in) { return std::decay_t<decltype(in[0])>{total(in[0])}; });
  add("mean_all", {}, [=](const auto& in) { return std::decay_t<decltype(in[0])>{mean_of(in[0])}; });
  add("sum_rows", {}, [](const auto& in) {
    std::decay_t<decltype(in[0])> y;
    for (size_t c = 0; c < kColumns; ++c) {
      std::decay_t<decltype(in[0])> column;
      for (size_t i = c; i < in[0].size(); i += kColumns) column.push_back(in[0][i]);
      y.push_back(total(column));
    }
    return y;
  });
  add("mean_columns", {}, [=](const auto& in) {
    using P = std::decay_t<decltype(in[0])>;
    return by_rows(in[0], [&](const auto* row, P& y) { y.push_back(mean_of(P(row, row + kColumns))); });
  });
  for (const bool root : {false, true})
    add(root ? "std" : "var_columns", {}, [root](const auto& in) {
      using P = std::decay_t<decltype(in[0])>;
      return by_rows(in[0], [root](const auto* row, P& y) { y.push_back(spread_of_row(row, root)); });
    });
  add("cumsum", {}, [](const auto& in) {
    using P = std::decay_t<decltype(in[0])>;
    return by_rows(in[0], [](const auto* row, P& y) {
      typename P::value_type sum = 0;
      for (size_t c = 0; c < kColumns; ++c) y.push_back(sum = sum + row[c]);
    });
  });
  for (const size_t k : {kColumns, size_t{7}})
    add(k == kColumns ? "sort" : "topk", {}, [k](const auto& in) {
      using P = std::decay_t<decltype(in[0])>;
      return by_rows(in[0], [k](const auto* row, P& y) {
        P sorted(row, row + kColumns);
        const auto less = [](const auto& a, const auto& b) {
          return !std::isnan(a.value) && (std::isnan(b.value) || a.value < b.value);
        };
        if (k == kColumns)
          std::stable_sort(sorted.begin(), sorted.end(), less);
        else
          std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return less(b, a); });
        y.insert(y.end(), sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k));
      });
    });
  add(
      "softmax", {},
      [](const auto& in) {
        using P = std::decay_t<decltype(in[0])>;
        return by_rows(in[0], [](const auto* row, P& y) {
          const auto most = largest(row, kColumns);
          P terms;
          for (size_t c = 0; c < kColumns; ++c) terms.push_back(exp(row[c] - typename P::value_type(most)));
          const auto sum = total(terms);
          for (const auto& term : terms) y.push_back(term / sum);
        });
      },
      false, false);
  add(
      "log_softmax", {},
      [](const auto& in) {
        using P = std::decay_t<decltype(in[0])>;
        return by_rows(in[0], [](const auto* row, P& y) { log_softmax_row(row, y); });
      },
      false, false);
  for (const double smoothing : {0.0, 0.125})
    add(smoothing > 0 ? "cross_entropy_rows_smoothed" : "cross_entropy_rows", {{kRows}},
        [smoothing](const auto& in) { return cross_entropy_of(in[0], smoothing); });
  add("layer_norm", {{kColumns}, {kColumns}}, [](const auto& in) { return normed(in, true, 1e-5); });
  add("rms_norm", {{kColumns}}, [](const auto& in) { return normed(in, false, 1e-6); });
  add(
      "batch_norm_plain", {},
      [](const auto& in) {
        using P = std::decay_t<decltype(in[0])>;
        P y(in[0].size());
        for (size_t c = 0; c < 4 && !y.empty(); ++c) {
          P column;
          norm_row(&in[0][c], 4, in[0].size() / 4, true, 1e-5, column);
          for (size_t i = 0; i < column.size(); ++i) y[i * 4 + c] = column[i];
        }
        return y;
      },
      true);
  add("linear_no_bias", {{3, kColumns}}, [](const auto& in) { return product(in[0], in[1], kColumns); });
  add("matmul", {{kColumns, 3}}, [](const auto& in) {
    auto turned = in[1];
    for (size_t i = 0; i < turned.size(); ++i) turned[i % 3 * kColumns + i / 3] = in[1][i];
    return product(in[0], turned, kColumns);
  });
  add("mse_loss", {{kRows, kColumns}}, [=](const auto& in) {
    auto squares = in[0];
    for (size_t i = 0; i < squares.size(); ++i) squares[i] = (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
    return decltype(squares){mean_of(squares)};
  });
  add(
      "max_pool2d", {},
      [](const auto& in) {
        return windows(in[0], 2, 2, [](const auto& values) {
          auto best = values[0];
          for (const auto& value : values)
            if (value.value > best.value || (std::isnan(value.value) && !std::isnan(best.value))) best = value;
          return best;
        });
      },
      true);
  add(
      "avg_pool2d_overlapping", {}, [=](const auto& in) { return windows(in[0], 3, 1, mean_of); }, true);
  add(
      "adaptive_avg_pool2d_global", {},
      [=](const auto& in) {
        using P = std::decay_t<decltype(in[0])>;
        P y;
        for (size_t c = 0; c < 4 && !in[0].empty(); ++c) {
          P values;
          for (size_t i = c; i < in[0].size(); i += 4) values.push_back(in[0][i]);
          y.push_back(mean_of(values));
        }
        return y;
      },
      true);
  add(
      "conv2d_no_bias", {{2, 3, 3, 4}}, [](const auto& in) { return convolved(in); }, true);
  return all;
}

/// Patterns of the first input. Dense, but for those named after a layout.
const std::vector<std::string> kPatterns{"normal",  "mean 1e4",  "mean -300",     "all 3.3",      "all 12345.678",
                                         "zeros",   "ties",      "outlier first", "outlier last", "tiny",
                                         "large",   "ramp",      "NaN",           "two heaps",    "transposed",
                                         "strided", "stretched", "nothing"};

std::vector<double> numbers(const std::string& pattern, DType dtype, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> x(pattern == "nothing" ? 0 : kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = normal(random);
    x[i] = pattern == "mean 1e4"        ? 1e4 + value
           : pattern == "mean -300"     ? -300 + value
           : pattern == "all 3.3"       ? 3.3
           : pattern == "all 12345.678" ? 12345.678
           : pattern == "zeros"         ? (i % 2 ? -0.0 : 0.0)
           : pattern == "ties"          ? std::round(value)
           : pattern == "tiny"          ? value * 1e-6
           : pattern == "large"         ? value * 1e3
           : pattern == "ramp"          ? static_cast<double>(i) / 7
           : pattern == "two heaps"     ? (random() % 2 ? 100 + value : -100 - value)
                                        : value;
  }
  const double outlier = dtype == DType::f16 ? 3e4 : 1e5;
  if (pattern == "outlier first") x.front() = outlier;
  if (pattern == "outlier last") x.back() = outlier;
  if (pattern == "NaN") x[kColumns + 3] = std::numeric_limits<double>::quiet_NaN();
  return x;
}

Tensor laid_out(const Tensor& x, const std::string& pattern) {
  if (pattern == "transposed") return x.transpose(0, 1).clone().transpose(0, 1);
  if (pattern == "stretched") return x.slice(0, 0, 1).clone().expand(x.sizes());
  if (pattern != "strided") return x;
  const Tensor buffer = Tensor::full({x.size(0), 3 * x.size(1)}, 77, x.dtype(), x.device());
  const Tensor view = buffer.slice(1, 0, x.size(1), 3);
  view.copy_(x);
  return view;
}

/// y, then the gradients of the inputs.
using Results = std::vector<std::vector<double>>;

template <class S>
Results results_of(const std::function<Plains<S>(const Matrices<S>&)>& formula, const Results& inputs,
                   const std::vector<double>& dy) {
  Plain<S>::clear();
  Matrices<S> leaves;
  for (const auto& input : inputs) {
    leaves.emplace_back();
    for (const double value : input) leaves.back().push_back(Plain<S>::leaf(static_cast<S>(value)));
  }
  const Plains<S> y = formula(leaves);
  Plain<S>::backward(y, dy);
  Results results(1);
  for (const auto& value : y) results[0].push_back(static_cast<double>(value.value));
  for (const auto& leaf : leaves) {
    results.emplace_back();
    for (const auto& value : leaf) results.back().push_back(static_cast<double>(value.gradient()));
  }
  return results;
}

/// The largest distance from the truth, relative to the largest finite truth (or to the dtype's smallest normal
/// number); infinite where one is finite and the other is not. A truth beyond the dtype's range is infinite.
double error_of(const std::vector<double>& got, const std::vector<double>& truth, DType dtype) {
  if (got.size() != truth.size()) return INFINITY;
  const double largest_number = dtype == DType::f64   ? std::numeric_limits<double>::max()
                                : dtype == DType::f16 ? 65504
                                                      : std::numeric_limits<float>::max();
  const double least = dtype == DType::f64   ? std::numeric_limits<double>::min()
                       : dtype == DType::f16 ? 0x1p-14
                                             : std::numeric_limits<float>::min();
  double scale = 0, most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = std::abs(truth[i]) > largest_number ? std::copysign(INFINITY, truth[i]) : truth[i];
    if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) {
      if (std::isfinite(want)) scale = std::max(scale, std::abs(want));
      continue;
    }
    if (!std::isfinite(got[i]) || !std::isfinite(want)) return INFINITY;
    scale = std::max(scale, std::abs(want));
    most = std::max(most, std::abs(got[i] - want));
  }
  return most == 0 ? 0 : most / std::max(scale, least);
}

std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  return Tensor::from(values).to(dtype).to_vector<double>();
}

/// Appends a case to the file WEFT_SWEEP_OUT, for beside_torch.py: a line of JSON.
void write_down(const Op& op, const std::string& pattern, DType dtype, Device device, const Tensors& inputs,
                const std::vector<double>& dy, const Results& got, const Results& truth) {
  const char* const path = std::getenv("WEFT_SWEEP_OUT");
  if (path == nullptr) return;
  std::ofstream out(path, std::ios::app);
  const auto write_all = [&](const Results& all) {
    for (size_t i = 0; i < all.size(); ++i) out << (i ? "," : "[") << json_list(all[i]);
    out << ']';
  };
  out << R"({"op":")" << op.name << R"(","torch":)" << std::quoted(op.row->torch) << R"(,"pattern":")" << pattern
      << R"(","dtype":")" << dtype << R"(","device":")" << name(device.kind) << R"(","inputs":[)";
  for (size_t i = 0; i < inputs.size(); ++i)
    out << (i ? "," : "") << R"({"dtype":")" << inputs[i].dtype() << R"(","sizes":)" << inputs[i].sizes()
        << R"(,"values":)" << json_list(inputs[i].to_vector<double>()) << '}';
  out << R"(],"dy":)" << json_list(dy) << R"(,"got":)";
  write_all(got);
  if (dtype == DType::f64) out << R"(,"truth":)", write_all(truth);
  out << "}\n";
}

/// Backward reads the norm's mean as one f32 number (f64 for f64), which rounds where the mean is large beside the
/// deviation; so does batch_norm's forward on GPUs and in f64. PyTorch does the same: nothing is expected of these
/// results but that they are finite.
bool reads_rounded_mean(const Op& op, const std::string& pattern, Device device, DType dtype, size_t result) {
  if (pattern != "mean 1e4" && pattern != "mean -300" && pattern != "ramp") return false;
  return (op.name == "layer_norm" && result > 0) ||
         (op.name == "batch_norm_plain" && (result > 0 || device.kind != DeviceKind::cpu || dtype == DType::f64));
}

/// Where f16 ends PyTorch's results do, too: backward reads a y that is infinite there, or sums products that were
/// rounded to f16, to infinity or below its smallest normal number.
bool leaves_f16(const Op& op, const std::string& pattern, const Results& got, size_t result) {
  const auto ends = [](const std::vector<double>& values) {
    return !std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  if (op.name == "exp" && result == 1) return ends(got[0]);
  if (op.name.starts_with("div") && result == 2) return ends(got[0]) || ends(got[2]);
  return op.name == "mul_row" && pattern == "tiny" && result == 2;
}

/// 240 numbers of which little is left, whose sum in pairs happens to be exact: a rounding in another order is several
/// units of the rest.
bool nearly_cancels(const Op& op, const std::string& pattern, Device device, DType dtype) {
  return op.name == "mean_all" && (pattern == "tiny" || pattern == "large") && dtype == DType::f64 &&
         device.kind != DeviceKind::cpu;
}

/// The fault of a case; empty: none.
std::string fault(const Op& op, const std::string& pattern, DType dtype, Device device, std::mt19937_64& random) {
  const auto input_of = [&](size_t i) { return i < op.row->inputs.size() ? op.row->inputs[i] : OpInput{}; };
  const auto dtype_of_input = [&](size_t i) { return input_of(i).wide && size_of(dtype) == 2 ? DType::f32 : dtype; };
  std::vector<double> first = rounded(numbers(pattern, dtype, random), dtype);
  if (pattern == "stretched")
    for (size_t i = 0; i < first.size(); ++i) first[i] = first[i % kColumns];
  Results inputs{first};
  const int64_t rows = static_cast<int64_t>(first.size() / kColumns);
  const Tensor whole =
      laid_out(Tensor::from(first, {rows, static_cast<int64_t>(kColumns)}).to(dtype).to(device), pattern);
  Tensors leaves{whole.detach().requires_grad_()};
  std::normal_distribution<double> normal;
  for (Shape other : op.others) {
    if (other[0] == static_cast<int64_t>(kRows) && rows == 0) other[0] = 0;
    const bool labels = input_of(leaves.size()).values == Values::classes;
    std::vector<double> values(static_cast<size_t>(other.numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = labels ? static_cast<double>(label_of(i)) : normal(random);
    const DType kept = labels ? DType::i64 : dtype_of_input(leaves.size());
    inputs.push_back(rounded(values, kept));
    leaves.push_back(Tensor::from(inputs.back(), other).to(kept).to(device).detach());
    if (!labels) leaves.back().requires_grad_();
  }
  Tensors given = leaves;
  if (op.image) given[0] = given[0].reshape({rows / 6, 6, 10, 4});
  const Tensor y = op.row->function(given);
  std::vector<double> dy(static_cast<size_t>(y.numel()));
  for (double& value : dy) value = normal(random);
  dy = rounded(dy, y.dtype());
  if (y.requires_grad()) y.backward(Tensor::from(dy, y.sizes()).to(y.dtype()).to(device));
  Results got{y.to_vector<double>()};
  for (const Tensor& leaf : leaves)
    got.push_back(leaf.grad().defined() ? leaf.grad().to_vector<double>()
                                        : std::vector<double>(static_cast<size_t>(leaf.numel())));
  const bool precise = dtype == DType::f64;
  const Results plain = precise ? results_of(op.precise, inputs, dy) : results_of(op.plain, inputs, dy);
  const Results truth = precise ? results_of(op.more_precise, inputs, dy) : results_of(op.precise, inputs, dy);
  write_down(op, pattern, dtype, device, given, dy, got, truth);
  for (size_t i = 0; i < got.size(); ++i) {
    if (i > 0 && size_of(dtype) == 2 && !op.low) continue;
    if (dtype == DType::f16 && leaves_f16(op, pattern, got, i)) continue;
    const DType kept = i == 0 ? y.dtype() : dtype_of_input(i - 1);
    const double eps = tests::epsilon_of(kept);
    const double of_plain = error_of(rounded(plain[i], kept), truth[i], kept), error = error_of(got[i], truth[i], kept);
    if (!std::isfinite(of_plain)) continue;  // beyond the range of f32 on the way
    if (nearly_cancels(op, pattern, device, dtype) && error < 16 * eps) continue;
    if (std::isfinite(error) && reads_rounded_mean(op, pattern, device, dtype, i)) continue;
    if (!(error <= 4 * std::max(of_plain, 0.5 * eps)))
      return str(op.name, ", ", pattern, ", ", i == 0 ? str("y") : str("gradient ", i - 1), ": error ", error / eps,
                 " eps, plain ", of_plain / eps);
  }
  return {};
}

void sweep(DType dtype, DeviceKind kind) {
  if (!tests::runs_on(kind)) GTEST_SKIP() << "needs the device " << name(kind);
  std::mt19937_64 random(20);
  const Device device{kind, 0};
  int cases = 0, failed = 0;
  for (const Op& op : ops())
    for (const std::string& pattern : kPatterns) {
      const bool is_mean = op.name == "batch_norm_plain" || op.name == "mean_all" || op.name == "mse_loss";
      if (is_mean && pattern == "nothing") continue;
      ++cases;
      const std::string what = fault(op, pattern, dtype, device, random);
      failed += !what.empty();
      EXPECT_TRUE(what.empty()) << what;
    }
  std::cout << cases - failed << " of " << cases << " cases pass\n";
  EXPECT_GE(cases, 650);
}

/// How far y (0) or a gradient (1, …) of an op in f32 on the CPU is from the same op in f64, in eps.
double distance_in_eps(const std::function<Tensor(const Tensors&)>& op, const Tensors& inputs, size_t result) {
  const auto results = [&](DType dtype) {
    Tensors leaves;
    for (const Tensor& input : inputs) leaves.push_back(input.to(dtype).clone().detach().requires_grad_());
    const Tensor y = op(leaves);
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> dy(static_cast<size_t>(y.numel()));
    for (double& value : dy) value = normal(random);
    y.backward(Tensor::from(rounded(dy, DType::f32), y.sizes()).to(dtype));
    return result == 0 ? y.to_vector<double>() : leaves[result - 1].grad().to_vector<double>();
  };
  return error_of(results(DType::f32), results(DType::f64), DType::f32) / tests::epsilon_of(DType::f32);
}

Tensor drawn(const Shape& sizes, double mean = 0) {
  static std::mt19937_64 random(3);
  std::normal_distribution<double> normal(mean, 1);
  std::vector<double> values(static_cast<size_t>(sizes.numel()));
  for (double& value : values) value = normal(random);
  return Tensor::from(values, sizes).to(DType::f32);
}

TEST(LongSums, KeepTheirDigitsOnTheCpu) {
  const auto add_all = [](const Tensors& x) { return add(x[0], x[1]); };
  EXPECT_LE(distance_in_eps(add_all, {drawn({200000, 3}), drawn({3})}, 2), 2) << "gradient of a broadcast";
  const auto product = [](const Tensors& x) { return linear(x[0], x[1], x[2]); };
  EXPECT_LE(distance_in_eps(product, {drawn({100000, 2}), drawn({5, 2}), drawn({5})}, 3), 2) << "gradient of a bias";
  const auto pooled = [](const Tensors& x) { return adaptive_avg_pool2d(x[0], {2, 1}); };
  EXPECT_LE(distance_in_eps(pooled, {drawn({1, 200, 200, 3}, 1e4)}, 0), 2) << "adaptive average";
  for (size_t result = 0; result < 4; ++result) {
    const auto rows = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); };
    EXPECT_LE(distance_in_eps(rows, {drawn({3, 100000}), drawn({100000}), drawn({100000})}, result), 2) << result;
    const auto columns = [](const Tensors& x) { return batch_norm(x[0], x[1], x[2], {}, {}, {.training = true}); };
    EXPECT_LE(distance_in_eps(columns, {drawn({100000, 3}, 3), drawn({3}), drawn({3})}, result), 2) << result;
  }
}

TEST(LongSums, OfRowsOfOneNumberLeaveNothing) {
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
      for (const auto& [sizes, value] : {std::pair{Shape{3, 1000}, 3.3}, {{3, 100000}, 3.3}, {{6, 300}, 12345.678}}) {
        const Tensor y = layer_norm(Tensor::full(sizes, value, dtype, {kind, 0}), {}, {});
        EXPECT_EQ(max(abs(y)).item(), 0) << dtype << " on " << name(kind) << ", " << sizes;
      }
}

TEST(LargeLogits, LoseNothing) {
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
      for (const double c : {1e4, 1e6, 1e7}) {
        if (dtype == DType::f16 && c > 65504) continue;
        SCOPED_TRACE(str(c, ", ", dtype, " on ", name(kind)));
        const Tensor x = Tensor::full({1, 2}, c, dtype, {kind, 0}).requires_grad_();
        const Tensor loss = cross_entropy(x, Tensor::from<int64_t>({0}).to(x.device()));
        loss.backward();
        const double eps = tests::epsilon_of(dtype);
        EXPECT_NEAR(loss.item(), std::log(2), eps);
        EXPECT_NEAR(x.grad().to_vector<double>()[0], -0.5, eps);
        EXPECT_NEAR(log_softmax(x).to_vector<double>()[0], -std::log(2), eps);
      }
}

TEST(LongSums, OfConvolutionsOnTheCpu) {
  const auto one = [](const Tensors& x) { return conv2d(x[0], x[1]); };
  const auto same = [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = {1, 1}}); };
  EXPECT_LE(distance_in_eps(one, {drawn({4, 128, 128, 16}), drawn({16, 1, 1, 16})}, 2), 12) << "1x1 filters";
  // Winograd's: 42 at Lavin and Gray's points.
  EXPECT_LE(distance_in_eps(same, {drawn({4, 128, 128, 16}), drawn({16, 3, 3, 16})}, 2), 16) << "3x3 filters";
}

TEST(LongSums, TheRunningMeanIsThatOfAllRows) {
  const Tensor x = drawn({200000, 2}, 1e4), mean = Tensor::zeros({2}), var = Tensor::ones({2});
  batch_norm(x, {}, {}, mean, var, {.training = true, .momentum = 1});
  const std::vector<double> want = weft::mean(x.to(DType::f64), {0}).to_vector<double>();
  EXPECT_LE(error_of(mean.to_vector<double>(), want, DType::f32), tests::epsilon_of(DType::f32));
}

TEST(LongSums, ABiasThatTheNormTakesAwayCostsNoDigits) {
  const Tensor x = drawn({1, 8, 8, 16}), w = drawn({16, 3, 3, 16}), large = Tensor::full({16}, 1e4),
               var = Tensor::ones({16});
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const auto at = [&](const Tensor& t) { return t.to(device); };
    const Tensor y = conv2d_norm(at(x), at(w), at(large), {}, {}, {}, at(large), at(var), {.eps = 0});
    const Tensor want = conv2d(x.to(DType::f64), w.to(DType::f64));
    EXPECT_LE(error_of(y.to_vector<double>(), want.to_vector<double>(), DType::f32), 8 * tests::epsilon_of(DType::f32))
        << name(kind);
  }
}

TEST(Sweep, CpuF32) { sweep(DType::f32, DeviceKind::cpu); }
TEST(Sweep, CpuF64) { sweep(DType::f64, DeviceKind::cpu); }
TEST(Sweep, CpuBf16) { sweep(DType::bf16, DeviceKind::cpu); }
TEST(Sweep, CpuF16) { sweep(DType::f16, DeviceKind::cpu); }
TEST(Sweep, CudaF32) { sweep(DType::f32, DeviceKind::cuda); }
TEST(Sweep, CudaF64) { sweep(DType::f64, DeviceKind::cuda); }
TEST(Sweep, CudaBf16) { sweep(DType::bf16, DeviceKind::cuda); }
TEST(Sweep, CudaF16) { sweep(DType::f16, DeviceKind::cuda); }

}  // namespace
}  // namespace weft::test
