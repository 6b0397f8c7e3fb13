// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/attention.h"
#include "kernels/contracts/philox.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {

/// One problem of attention: sizes, and which of the options it uses.
struct AttentionProblem {
  int64_t B, N, M, H, D;
  bool causal = false, lengths = false, mask = false;
  double dropout = 0;
  int64_t G = 0, window = 0;  ///< heads of keys, 0: H; keys that a query sees at most, 0: all

  int64_t key_heads() const { return G > 0 ? G : H; }

  friend std::ostream& operator<<(std::ostream& out, const AttentionProblem& p) {
    return out << "B " << p.B << " N " << p.N << " M " << p.M << " H " << p.H << " D " << p.D
               << (p.causal ? " causal" : "") << (p.lengths ? " lengths" : "") << (p.mask ? " mask" : "") << " dropout "
               << p.dropout << " G " << p.key_heads() << " window " << p.window;
  }
};

/// Inputs of a problem and their results in f64, all row-major. `dq_sizes` and `dk_sizes` say what the errors of dq and
/// dk are relative to: the result, the terms of its sum, and the terms of delta, whose y the kernels have rounded.
/// Roundings are independent, so terms count by the root of their sum of squares.
struct AttentionReference {
  AttentionProblem p;
  double scale;
  int64_t seed, base, offset;
  std::vector<double> q, k, v, dy, lengths, mask, y, lse, dq, dk, dv, dq_sizes, dk_sizes;

  AttentionReference(const AttentionProblem& problem, DType dtype)
      : p(problem),
        scale(uniform(1, DType::f32, 0.5, 2)[0] / std::sqrt(static_cast<double>(p.D))),
        seed(pick(0, 1 << 30)),
        base(pick(0, 99)),
        offset(pick(0, 9)),
        q(uniform(p.B * p.N * p.H * p.D, dtype, -2, 2)),
        k(uniform(p.B * p.M * p.key_heads() * p.D, dtype, -2, 2)),
        v(uniform(k.size(), dtype)),
        dy(uniform(q.size(), dtype)),
        lengths(integers(p.B, 0, p.M + 3)),
        mask(integers(p.B * p.M, 0, 1)) {
    if (!lengths.empty()) lengths.back() = static_cast<double>(p.M / 2 + 1);  // one that hides some keys, but not all
    compute();
  }

  /// Results of the inputs as they are now.
  void compute() {
    for (auto* const result : {&y, &dq, &dq_sizes}) result->assign(q.size(), 0.0);
    for (auto* const result : {&dk, &dv, &dk_sizes}) result->assign(k.size(), 0.0);
    lse.assign(static_cast<size_t>(p.B * p.H * p.N), 0.0);
    for (int64_t b = 0; b < p.B; ++b)
      for (int64_t h = 0; h < p.H; ++h)
        for (int64_t i = 0; i < p.N; ++i) row(b, h, i);
    for (size_t i = 0; i < dq.size(); ++i) dq_sizes[i] = std::sqrt(dq_sizes[i]) + std::abs(dq[i]);
    for (size_t i = 0; i < dk.size(); ++i) dk_sizes[i] = std::sqrt(dk_sizes[i]) + std::abs(dk[i]);
  }

 private:
  bool sees(int64_t b, int64_t i, int64_t j) const {
    return !(p.causal && j > i) && !(p.window > 0 && i - j >= p.window) &&
           !(p.lengths && static_cast<double>(j) >= lengths[static_cast<size_t>(b)]) &&
           !(p.mask && mask[static_cast<size_t>(b * p.M + j)] == 0);
  }
  double kept(int64_t head, int64_t i, int64_t j) const {
    if (p.dropout == 0) return 1;
    const int64_t block = (head * ((p.N + 1) / 2) + i / 2) * ((p.M + 1) / 2) + j / 2;
    const Philox4 words = philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(base + offset + block));
    const bool drop = uniform01(words.word[i % 2 * 2 + j % 2]) < static_cast<float>(p.dropout);
    return drop ? 0 : 1 / (1 - p.dropout);
  }

  void row(int64_t b, int64_t h, int64_t i) {
    const int64_t G = p.key_heads(), g = h / (p.H / G);
    const auto key_at = [&](int64_t j) { return static_cast<size_t>(((b * p.M + j) * G + g) * p.D); };
    const auto dot = [&](const double* a, const double* c) {
      double sum = 0;
      for (int64_t d = 0; d < p.D; ++d) sum += a[d] * c[d];
      return sum;
    };
    const size_t place = static_cast<size_t>(((b * p.N + i) * p.H + h) * p.D);
    std::vector<double> weight(static_cast<size_t>(p.M));
    double total = 0;
    for (int64_t j = 0; j < p.M; ++j)
      if (sees(b, i, j)) total += weight[static_cast<size_t>(j)] = std::exp(scale * dot(&q[place], &k[key_at(j)]));
    lse[static_cast<size_t>((b * p.H + h) * p.N + i)] = std::log(total);
    if (total == 0) return;
    for (int64_t j = 0; j < p.M; ++j) {
      double& w = weight[static_cast<size_t>(j)];
      w /= total;
      const double factor = kept(b * p.H + h, i, j);
      for (int64_t d = 0; d < p.D; ++d) {
        y[place + static_cast<size_t>(d)] += w * factor * v[key_at(j) + static_cast<size_t>(d)];
        dv[key_at(j) + static_cast<size_t>(d)] += w * factor * dy[place + static_cast<size_t>(d)];
      }
    }
    double delta = 0, delta_squares = 0;
    for (size_t d = place; d < place + static_cast<size_t>(p.D); ++d) {
      delta += dy[d] * y[d];
      delta_squares += dy[d] * dy[d] * y[d] * y[d];
    }
    std::vector<double> slope(static_cast<size_t>(p.D));  // slope of dq by delta
    for (int64_t j = 0; j < p.M; ++j) {
      const double w = scale * weight[static_cast<size_t>(j)];
      const double ds = w * (kept(b * p.H + h, i, j) * dot(&dy[place], &v[key_at(j)]) - delta);
      for (size_t d = 0; d < slope.size(); ++d) {
        const size_t query = place + d, key = key_at(j) + d;
        dq[query] += ds * k[key];
        dk[key] += ds * q[query];
        slope[d] += w * k[key];
        dq_sizes[query] += ds * ds * k[key] * k[key];
        dk_sizes[key] += (ds * ds + w * w * delta_squares) * q[query] * q[query];
      }
    }
    for (size_t d = 0; d < slope.size(); ++d) dq_sizes[place + d] += slope[d] * slope[d] * delta_squares;
  }
};

/// The arrays of one run. q, k, v and their gradients are slices of one packed [B, N, H + 2 G, D] where M = N.
class AttentionCall {
 public:
  AttentionCall(DeviceKind kind, DType dtype, const AttentionReference& want)
      : p_(want.p),
        kind_(kind),
        packed_(p_.N == p_.M),
        wide_(dtype == DType::f64 ? DType::f64 : DType::f32),
        in_(kind, dtype, {packed_size()}, packed(want.q, want.k, want.v)),
        gradients_(kind, dtype, {packed_size()}),
        y_(kind, dtype, {p_.B, p_.N, p_.H, p_.D}),
        dy_(kind, dtype, {p_.B, p_.N, p_.H, p_.D}, want.dy),
        lse_(kind, wide_, {p_.B, p_.H, p_.N}),
        lengths_(kind, DType::i64, {p_.B}, want.lengths),
        mask_(kind, DType::boolean, {p_.B, p_.M}, want.mask),
        state_(kind, DType::i64, {2}, {static_cast<double>(want.seed), static_cast<double>(want.base)}) {
    arguments_ = {want.scale, p_.causal, p_.dropout, {static_cast<uint64_t>(want.offset)}, p_.window};
  }

  void forward() {
    kernels::attention_forward(queue_on(kind_), y_, lse_, part(in_, 0), part(in_, 1), part(in_, 2), lengths(), mask(),
                               state(), arguments_);
  }
  void backward(bool dq = true, bool dkv = true) {
    kernels::attention_backward(queue_on(kind_), dq ? part(gradients_, 0) : kernels::View::none(),
                                dkv ? part(gradients_, 1) : kernels::View::none(),
                                dkv ? part(gradients_, 2) : kernels::View::none(), dy_, part(in_, 0), part(in_, 1),
                                part(in_, 2), y_, lse_, lengths(), mask(), state(), arguments_);
  }
  std::vector<double> y() const { return y_.host(); }
  std::vector<double> lse() const { return lse_.host(); }
  /// dq, dk or dv.
  std::vector<double> gradient(int which) const {
    const std::vector<double> all = gradients_.host();
    const kernels::View view = part(gradients_, which);
    std::vector<double> values;
    for (int64_t b = 0; b < view.sizes[0]; ++b)
      for (int64_t i = 0; i < view.sizes[1]; ++i)
        for (int64_t c = 0; c < width(which); ++c)
          values.push_back(all[static_cast<size_t>(start(which) + b * view.strides[0] + i * view.strides[1] + c)]);
    return values;
  }
  void poison() { gradients_.poison(); }

 private:
  int64_t width(int which) const { return (which == 0 ? p_.H : p_.key_heads()) * p_.D; }
  int64_t size(int which) const { return (which == 0 ? p_.N : p_.M) * width(which); }
  int64_t packed_size() const { return p_.B * (size(0) + 2 * size(1)); }
  /// Where q, k or v begins: a slice of each row, or an array of its own.
  int64_t start(int which) const {
    return which == 0 ? 0 : packed_ ? width(0) + (which - 1) * width(1) : p_.B * (size(0) + (which - 1) * size(1));
  }
  kernels::View part(const DeviceArray& array, int which) const {
    const int64_t rows = which == 0 ? p_.N : p_.M, row = packed_ ? width(0) + 2 * width(1) : width(which);
    kernels::View view = array.view();
    view.rank = 4;
    view.sizes = {p_.B, rows, which == 0 ? p_.H : p_.key_heads(), p_.D};
    view.strides = {rows * row, row, p_.D, 1};
    view.data = static_cast<char*>(view.data) + start(which) * static_cast<int64_t>(size_of(view.dtype));
    return view;
  }
  std::vector<double> packed(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v) {
    std::vector<double> all;
    if (!packed_) {
      for (const auto* one : {&q, &k, &v}) all.insert(all.end(), one->begin(), one->end());
      return all;
    }
    for (int64_t row = 0; row < p_.B * p_.N; ++row)
      for (const auto* one : {&q, &k, &v}) {
        const int64_t count = width(one == &q ? 0 : 1);
        all.insert(all.end(), &(*one)[0] + row * count, &(*one)[0] + (row + 1) * count);
      }
    return all;
  }
  kernels::View lengths() const { return p_.lengths ? lengths_.view() : kernels::View::none(); }
  kernels::View mask() const { return p_.mask ? mask_.view() : kernels::View::none(); }
  kernels::View state() const { return p_.dropout > 0 ? state_.view() : kernels::View::none(); }

  AttentionProblem p_;
  DeviceKind kind_;
  bool packed_;
  DType wide_;
  DeviceArray in_, gradients_, y_, dy_, lse_, lengths_, mask_, state_;
  kernels::AttentionArguments arguments_;
};

/// Each result has a rounding of its own, and another from the weights (or their slopes) in its sum. dq and dk
/// have a third, of the y in delta, and may cancel.
inline void check_attention(DeviceKind kind, DType dtype, const AttentionProblem& problem) {
  SCOPED_TRACE(str(dtype, ", ", problem, " on ", name(kind)));
  const AttentionReference want(problem, dtype);
  AttentionCall run(kind, dtype, want);
  run.forward();
  const int64_t K = std::max(problem.M, problem.D);
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  EXPECT_TRUE(near(run.y(), want.y, tolerance(dtype, K, 8).times(2))) << "y";
  EXPECT_TRUE(near(run.lse(), want.lse, tolerance(wide, K, 8))) << "lse";
  run.backward();
  const int64_t group = problem.H / problem.key_heads();
  const Tolerance rounding = tolerance(dtype, K + group * problem.N, 16);
  EXPECT_TRUE(near(run.gradient(0), want.dq, rounding.times(1.5), want.dq_sizes)) << "dq";
  EXPECT_TRUE(near(run.gradient(1), want.dk, rounding.times(1.5), want.dk_sizes)) << "dk";
  EXPECT_TRUE(near(run.gradient(2), want.dv, rounding.times(3))) << "dv";
}

}  // namespace weft::tests
