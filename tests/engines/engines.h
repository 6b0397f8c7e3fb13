// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/matmul.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/engine.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// Problems whose results every engine must give, with their f64 results.

namespace weft::tests {

using kernels::Engine;
using kernels::EngineGuard;
using kernels::Grad;
using kernels::Queue;
using kernels::View;

/// y = f(0.5 a @ b (+ bias)) (+ y), f an activation or none, any layout of a and b; y is added by accumulation or as a
/// residual.
class MatmulProblem {
 public:
  struct Case {
    int64_t B, M, N, K;
    DType in, out;
    bool transpose_a = false, transpose_b = false, bias = false;
    Grad grad = Grad::overwrite;
    kernels::Activation activation = kernels::Activation::none;
    bool residual = false;
  };

  MatmulProblem(DeviceKind kind, const Case& c)
      : case_(c),
        old_(uniform(c.B * c.M * c.N, c.out)),
        a_values_(uniform(c.B * c.M * c.K, c.in)),
        b_values_(uniform(c.B * c.K * c.N, c.in)),
        bias_values_(uniform(c.N, c.out)),
        a_(kind, c.in, {c.B, c.M, c.K}, a_values_),
        b_(kind, c.in, {c.B, c.K, c.N}, b_values_),
        bias_(kind, c.out, {c.N}, bias_values_),
        y_(kind, c.out, {c.B, c.M, c.N}) {
    for (int64_t n = 0; n < c.B; ++n)
      for (int64_t i = 0; i < c.M; ++i)
        for (int64_t j = 0; j < c.N; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < c.K; ++k)
            sum += a_values_[n * c.M * c.K + (c.transpose_a ? k * c.M + i : i * c.K + k)] *
                   b_values_[n * c.K * c.N + (c.transpose_b ? j * c.K + k : k * c.N + j)];
          double value = 0.5 * sum + (c.bias ? bias_values_[j] : 0);
          double one[1] = {value};
          kernels::activate(c.activation, one);
          value = one[0];
          want_.push_back(value + (adds_to_y() ? old_[want_.size()] : 0));
        }
  }

  void enqueue(const Queue& queue) {
    const View a = factor(a_, case_.transpose_a, case_.M, case_.K), b = factor(b_, case_.transpose_b, case_.K, case_.N);
    const View bias = case_.bias ? bias_.view() : View::none();
    if (case_.activation == kernels::Activation::none && !case_.residual)
      return kernels::matmul(queue, y_, a, b, bias, {0.5, case_.grad});
    kernels::matmul_fused(queue, y_, View::none(), a, b, bias, case_.residual ? y_.view() : View::none(),
                          {0.5, case_.activation});
  }
  testing::AssertionResult run(const Queue& queue) {
    reset();
    enqueue(queue);
    return is_right();
  }
  void reset() {
    y_.poison();
    if (adds_to_y()) y_.write(old_);
  }
  testing::AssertionResult is_right() const { return near(y_.host(), want_, tolerance(case_.out, case_.K)); }
  std::string text() const {
    return str("matmul B ", case_.B, " M ", case_.M, " N ", case_.N, " K ", case_.K, ' ', case_.in, "->", case_.out,
               " ta ", case_.transpose_a, " tb ", case_.transpose_b, " bias ", case_.bias, " accumulate ",
               case_.grad == Grad::accumulate, " activation ", static_cast<int>(case_.activation), " residual ",
               case_.residual);
  }

 private:
  bool adds_to_y() const { return case_.grad == Grad::accumulate || case_.residual; }
  View factor(const DeviceArray& array, bool transposed, int64_t rows, int64_t columns) const {
    View view = array.view();
    view.sizes = {case_.B, rows, columns};
    view.strides = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
    return view;
  }

  const Case case_;
  std::vector<double> old_, a_values_, b_values_, bias_values_, want_;
  DeviceArray a_, b_, bias_, y_;
};

/// One direction of a square convolution.
class Conv2dProblem {
 public:
  struct Case {
    const char* name;
    int64_t N, H, C, O, R, stride = 1, padding = 0, dilation = 1, groups = 1;
    int64_t P() const { return (H + 2 * padding - dilation * (R - 1) - 1) / stride + 1; }
  };
  enum class Direction { forward, forward_with_bias, backward_input, backward_weight };

  Conv2dProblem(DeviceKind kind, const Case& c, Direction direction, DType dtype)
      : case_(c),
        direction_(direction),
        dtype_(dtype),
        x_values_(uniform(c.N * c.H * c.H * c.C, dtype)),
        w_values_(uniform(c.O * c.R * c.R * c.C / c.groups, dtype)),
        y_values_(uniform(c.N * c.P() * c.P() * c.O, dtype)),
        bias_values_(uniform(c.O, dtype)),
        x_(kind, dtype, {c.N, c.H, c.H, c.C}, x_values_),
        w_(kind, dtype, {c.O, c.R, c.R, c.C / c.groups}, w_values_),
        y_(kind, dtype, {c.N, c.P(), c.P(), c.O}, y_values_),
        bias_(kind, dtype, {c.O}, bias_values_) {
    compute();
  }

  void enqueue(const Queue& queue) {
    const kernels::Conv2dArguments arguments{
        {case_.stride, case_.stride}, {case_.padding, case_.padding}, {case_.dilation, case_.dilation}, case_.groups};
    if (direction_ == Direction::backward_input)
      kernels::conv2d_backward_input(queue, x_, y_, w_, View::none(), arguments);
    else if (direction_ == Direction::backward_weight)
      kernels::conv2d_backward_weight(queue, w_, y_, x_, arguments);
    else
      kernels::conv2d_forward(queue, y_, x_, w_, direction_ == Direction::forward ? View::none() : bias_.view(),
                              arguments);
  }
  testing::AssertionResult run(const Queue& queue) {
    reset();
    enqueue(queue);
    return is_right();
  }
  void reset() { result().poison(); }
  testing::AssertionResult is_right() { return near(result().host(), want_, tolerance(dtype_, depth_)); }
  std::string text() const {
    constexpr const char* kDirections[] = {"forward", "forward with bias", "backward input", "backward weight"};
    return str("conv2d ", case_.name, ' ', kDirections[static_cast<int>(direction_)], ' ', dtype_);
  }

 private:
  DeviceArray& result() {
    return direction_ == Direction::backward_input ? x_ : direction_ == Direction::backward_weight ? w_ : y_;
  }

  /// Every product of the convolution goes to where the direction sums it up.
  void compute() {
    const auto& [name, N, H, C, O, R, stride, padding, dilation, groups] = case_;
    const int64_t P = case_.P(), group_C = C / groups, group_O = O / groups;
    const bool to_x = direction_ == Direction::backward_input, to_w = direction_ == Direction::backward_weight;
    want_.assign(to_x ? x_values_.size() : to_w ? w_values_.size() : y_values_.size(), 0);
    depth_ = to_x ? R * R * group_O : to_w ? N * P * P : R * R * group_C;
    if (direction_ == Direction::forward_with_bias)
      for (size_t i = 0; i < want_.size(); ++i) want_[i] = bias_values_[i % static_cast<size_t>(O)];
    for (int64_t n = 0; n < N; ++n)
      for (int64_t p = 0; p < P; ++p)
        for (int64_t q = 0; q < P; ++q)
          for (int64_t r = 0; r < R; ++r)
            for (int64_t s = 0; s < R; ++s) {
              const int64_t h = p * stride - padding + r * dilation, v = q * stride - padding + s * dilation;
              if (h < 0 || h >= H || v < 0 || v >= H) continue;
              for (int64_t o = 0; o < O; ++o)
                for (int64_t c = 0; c < group_C; ++c) {
                  const int64_t x = ((n * H + h) * H + v) * C + o / group_O * group_C + c;
                  const int64_t w = ((o * R + r) * R + s) * group_C + c, y = ((n * P + p) * P + q) * O + o;
                  if (to_x)
                    want_[x] += y_values_[y] * w_values_[w];
                  else if (to_w)
                    want_[w] += y_values_[y] * x_values_[x];
                  else
                    want_[y] += x_values_[x] * w_values_[w];
                }
            }
  }

  const Case case_;
  const Direction direction_;
  const DType dtype_;
  int64_t depth_ = 1;
  std::vector<double> x_values_, w_values_, y_values_, bias_values_, want_;
  DeviceArray x_, w_, y_, bias_;
};

}  // namespace weft::tests
