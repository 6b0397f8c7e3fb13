// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/optimizer.h"

#include <limits>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

struct Types {
  DType weight, gradient;
  bool copy;
};
const Types kTypes[] = {{DType::f32, DType::f32, false},
                        {DType::f32, DType::f32, true},
                        {DType::f32, DType::bf16, true},
                        {DType::f64, DType::f64, false}};

/// Several steps of a rule on a device and in f64: `launch(w, copy, g, scalars)` and `rule(i, w, g, lr, step)`.
template <class Launch, class Rule>
void check(DeviceKind kind, const Types& types, bool maximize, int64_t n, const Launch& launch, const Rule& rule) {
  SCOPED_TRACE(str(types.weight, " gradient ", types.gradient, " n ", n, " on ", name(kind)));
  auto w = uniform(n, types.weight, n == 3 ? 0.5 : -1, 1);  // three numbers must not come near 0 together
  const DeviceArray w_array(kind, types.weight, {n}, w), copy(kind, DType::bf16, {n});
  for (const int step : {1, 2, 3, 17}) {
    const auto g = uniform(n, types.gradient);
    const double lr = rounded(0.1 / step, types.weight), scale = 0.5;
    const DeviceArray scalars(kind, types.weight, {3}, {lr, static_cast<double>(step), scale});
    launch(w_array, types.copy ? copy.view() : View::none(), DeviceArray(kind, types.gradient, {n}, g), scalars);
    for (size_t i = 0; i < w.size(); ++i) w[i] = rule(i, w[i], (maximize ? -scale : scale) * g[i], lr, step);
  }
  EXPECT_TRUE(near(w_array.host(), w, tolerance(types.weight, 30, 8)));
  if (types.copy) {
    auto rounded_weights = w_array.host();
    for (double& v : rounded_weights) v = rounded(v, DType::bf16);
    EXPECT_TRUE(near(copy.host(), rounded_weights, {}));
  }
  // A scale of 0, infinity or NaN skips the step.
  const auto before = w_array.host();
  for (const double scale : {0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    launch(w_array, View::none(), DeviceArray(kind, types.gradient, {n}, uniform(n)),
           DeviceArray(kind, types.weight, {3}, {0.1, 4, scale}));
    EXPECT_TRUE(near(w_array.host(), before, {})) << "scale " << scale;
  }
}

/// Ranges of nothing, of less than a unit of 16 bytes and of more than a block.
template <class Launch, class Rule>
void check(DeviceKind kind, const Types& types, bool maximize, const Launch& launch, const Rule& rule) {
  for (const int64_t n : {int64_t{0}, int64_t{3}, pick(50, 3000)}) check(kind, types, maximize, n, launch, rule);
}

/// A state of n zeros as long as the weights may get.
DeviceArray zeros(DeviceKind kind, DType dtype) { return {kind, dtype, {3000}, std::vector<double>(3000)}; }
View first(const DeviceArray& state, const View& w) {
  View view = state.view();
  view.sizes[0] = w.sizes[0];
  return view;
}

TEST(Optimizer, Sgd) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes)
      for (const double momentum : {0.0, 0.9})
        for (const bool nesterov : {false, true})
          for (const bool maximize : {false, true}) {
            const kernels::SgdArguments a{momentum, nesterov ? 0 : 0.25, 0.01, nesterov, maximize};
            const DeviceArray velocity = zeros(kind, types.weight);
            std::vector<double> v(3000);
            check(
                kind, types, maximize,
                [&](const View& w, const View& copy, const View& g, const View& scalars) {
                  kernels::sgd_step(queue_on(kind), w, momentum != 0 ? first(velocity, w) : View::none(), copy, g,
                                    scalars, a);
                },
                [&](size_t i, double w, double g, double lr, int step) {
                  const double d = g + a.weight_decay * w;
                  if (momentum == 0) return w - lr * d;
                  v[i] = step == 1 ? d : momentum * v[i] + (1 - a.dampening) * d;
                  return w - lr * (nesterov ? d + momentum * v[i] : v[i]);
                });
          }
}

TEST(Optimizer, Adam) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes)
      for (const bool decoupled : {false, true}) {
        // Where gradient and weight decay cancel, the step is their rounding divided by eps: 1e-6 would show it as
        // 1e-4.
        const kernels::AdamArguments a{0.8, 0.95, 1e-3, 0.02, decoupled, decoupled};
        const DeviceArray m_array = zeros(kind, types.weight), v_array = zeros(kind, types.weight);
        std::vector<double> m(3000), v(3000);
        check(
            kind, types, a.maximize,
            [&](const View& w, const View& copy, const View& g, const View& scalars) {
              kernels::adam_step(queue_on(kind), w, first(m_array, w), first(v_array, w), View::none(), copy, g,
                                 scalars, a);
            },
            [&](size_t i, double w, double g, double lr, int step) {
              if (decoupled) w -= lr * a.weight_decay * w;
              const double d = decoupled ? g : g + a.weight_decay * w;
              m[i] = a.beta1 * m[i] + (1 - a.beta1) * d;
              v[i] = a.beta2 * v[i] + (1 - a.beta2) * d * d;
              const double mhat = m[i] / (1 - std::pow(a.beta1, step)), vhat = v[i] / (1 - std::pow(a.beta2, step));
              return w - lr * mhat / (std::sqrt(vhat) + a.eps);
            });
      }
}

TEST(Optimizer, Adadelta) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes) {
      const kernels::AdadeltaArguments a{0.9, 1e-6, 0.02, false};
      const DeviceArray s_array = zeros(kind, types.weight), u_array = zeros(kind, types.weight);
      std::vector<double> s(3000), u(3000);
      check(
          kind, types, a.maximize,
          [&](const View& w, const View& copy, const View& g, const View& scalars) {
            kernels::adadelta_step(queue_on(kind), w, first(s_array, w), first(u_array, w), copy, g, scalars, a);
          },
          [&](size_t i, double w, double g, double lr, int) {
            const double d = g + a.weight_decay * w;
            s[i] = a.rho * s[i] + (1 - a.rho) * d * d;
            const double move = std::sqrt(u[i] + a.eps) / std::sqrt(s[i] + a.eps) * d;
            u[i] = a.rho * u[i] + (1 - a.rho) * move * move;
            return w - lr * move;
          });
    }
}

TEST(Optimizer, AmsgradKeepsTheLargestAverage) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes) {
      const kernels::AdamArguments a{0.8, 0.3, 1e-3, 0.02, false, false};  // averages that forget, and so fall
      const DeviceArray m_array = zeros(kind, types.weight), v_array = zeros(kind, types.weight),
                        largest_array = zeros(kind, types.weight);
      std::vector<double> m(3000), v(3000), largest(3000);
      check(
          kind, types, a.maximize,
          [&](const View& w, const View& copy, const View& g, const View& scalars) {
            kernels::adam_step(queue_on(kind), w, first(m_array, w), first(v_array, w), first(largest_array, w), copy,
                               g, scalars, a);
          },
          [&](size_t i, double w, double g, double lr, int step) {
            const double d = g + a.weight_decay * w;
            m[i] = a.beta1 * m[i] + (1 - a.beta1) * d;
            v[i] = a.beta2 * v[i] + (1 - a.beta2) * d * d;
            largest[i] = std::max(largest[i], v[i]);
            const double mhat = m[i] / (1 - std::pow(a.beta1, step)), vhat = largest[i] / (1 - std::pow(a.beta2, step));
            return w - lr * mhat / (std::sqrt(vhat) + a.eps);
          });
    }
}

TEST(Optimizer, Rmsprop) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes)
      for (const double momentum : {0.0, 0.7})
        for (const bool centred : {false, true}) {
          const kernels::RmspropArguments a{0.8, 1e-2, 0.02, momentum, centred};
          const DeviceArray s_array = zeros(kind, types.weight), v_array = zeros(kind, types.weight),
                            mean_array = zeros(kind, types.weight);
          std::vector<double> s(3000), v(3000), mean(3000);
          check(
              kind, types, a.maximize,
              [&](const View& w, const View& copy, const View& g, const View& scalars) {
                kernels::rmsprop_step(queue_on(kind), w, first(s_array, w),
                                      momentum > 0 ? first(v_array, w) : View::none(),
                                      centred ? first(mean_array, w) : View::none(), copy, g, scalars, a);
              },
              [&](size_t i, double w, double g, double lr, int) {
                const double d = g + a.weight_decay * w;
                s[i] = a.alpha * s[i] + (1 - a.alpha) * d * d;
                mean[i] = centred ? a.alpha * mean[i] + (1 - a.alpha) * d : 0;
                v[i] = momentum * v[i] + d / (std::sqrt(s[i] - mean[i] * mean[i]) + a.eps);
                return w - lr * v[i];
              });
        }
}

TEST(Optimizer, Adagrad) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes) {
      const kernels::AdagradArguments a{0.3, 1e-3, 0.02, true};
      const DeviceArray s_array = zeros(kind, types.weight);
      std::vector<double> s(3000);
      check(
          kind, types, a.maximize,
          [&](const View& w, const View& copy, const View& g, const View& scalars) {
            kernels::adagrad_step(queue_on(kind), w, first(s_array, w), copy, g, scalars, a);
          },
          [&](size_t i, double w, double g, double lr, int step) {
            const double d = g + a.weight_decay * w;
            s[i] += d * d;
            return w - lr / (1 + (step - 1) * a.lr_decay) * d / (std::sqrt(s[i]) + a.eps);
          });
    }
}

TEST(Optimizer, Lion) {
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes) {
      const kernels::LionArguments a{0.5, 0.875, 0.02, false};
      const DeviceArray m_array = zeros(kind, types.weight);
      std::vector<double> m(3000);
      check(
          kind, types, a.maximize,
          [&](const View& w, const View& copy, const View& g, const View& scalars) {
            kernels::lion_step(queue_on(kind), w, first(m_array, w), copy, g, scalars, a);
          },
          [&](size_t i, double w, double g, double lr, int) {
            const double along = a.beta1 * m[i] + (1 - a.beta1) * g;
            m[i] = a.beta2 * m[i] + (1 - a.beta2) * g;
            return w - lr * ((along > 0) - (along < 0) + a.weight_decay * w);
          });
    }
}

/// Three parameters in a flat buffer with padding between, in chunks of few elements.
struct Parts {
  static constexpr int64_t kCount = 700;
  std::vector<double> chunks{0, 128, 0, 128, 259, 0, 288, 291, 1, 320, 480, 2, 480, 608, 2, 608, 650, 2};
  std::vector<double> firsts{0, 2, 3, 6};
  static int owner(size_t i) { return i < 259 ? 0 : i >= 288 && i < 291 ? 1 : i >= 320 && i < 650 ? 2 : -1; }
  DeviceArray chunk_table(DeviceKind kind) const { return {kind, DType::i64, {6, 3}, chunks}; }

  std::vector<double> squares(const std::vector<double>& x) const {
    std::vector<double> sums(3);
    for (size_t i = 0; i < x.size(); ++i)
      if (owner(i) >= 0) sums[static_cast<size_t>(owner(i))] += x[i] * x[i];
    return sums;
  }
};

TEST(Optimizer, ParameterSquares) {
  const Parts parts;
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const auto x = uniform(Parts::kCount, dtype);
      const DeviceArray squares(kind, wide, {3}), partial(kind, wide, {6});
      kernels::parameter_squares(queue_on(kind), squares, partial, DeviceArray(kind, dtype, {Parts::kCount}, x),
                                 parts.chunk_table(kind), DeviceArray(kind, DType::i64, {4}, parts.firsts));
      EXPECT_TRUE(near(squares.host(), parts.squares(x), tolerance(wide, 330)));
    }
}

/// Three steps of `launch(w, copy, g, scalars, chunks, values of g)` on a device and of `rule(w, scaled g, lr, step)`.
template <class Launch, class Rule>
void check_parts(DeviceKind kind, const Types& types, const Launch& launch, const Rule& rule) {
  const Parts parts;
  SCOPED_TRACE(str(types.weight, " gradient ", types.gradient, " on ", name(kind)));
  auto w = uniform(Parts::kCount, types.weight);
  for (size_t i = 288; i < 291; ++i) w[i] = 0;  // a parameter of norm 0
  const DeviceArray w_array(kind, types.weight, {Parts::kCount}, w), copy(kind, DType::bf16, {Parts::kCount});
  for (int step = 1; step <= 3; ++step) {
    auto g = uniform(Parts::kCount, types.gradient);
    const double lr = rounded(0.1 / step, types.weight), scale = 0.5;
    const DeviceArray scalars(kind, types.weight, {3}, {lr, static_cast<double>(step), scale});
    launch(w_array, types.copy ? copy.view() : View::none(), DeviceArray(kind, types.gradient, {Parts::kCount}, g),
           scalars, parts.chunk_table(kind), g);
    for (double& value : g) value *= scale;
    rule(w, g, lr, step);
  }
  EXPECT_TRUE(near(w_array.host(), w, tolerance(types.weight, 100, 8)));
}

TEST(Optimizer, LarsMovesAParameterByItsNorms) {
  const Parts parts;
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes)
      for (const bool adapts : {false, true})
        for (const bool nesterov : {false, true}) {
          const kernels::LarsArguments a{0.8, 0, 0.125, nesterov, false, 0.5, 0.25};
          const DeviceArray velocity = zeros(kind, types.weight);
          std::vector<double> v(3000);
          check_parts(
              kind, types,
              [&](const DeviceArray& w, const View& copy, const DeviceArray& g, const DeviceArray& scalars,
                  const DeviceArray& chunks, const std::vector<double>& g_host) {
                const DeviceArray w_squares(kind, types.weight, {3}, parts.squares(w.host())),
                    g_squares(kind, types.weight, {3}, parts.squares(g_host));
                kernels::lars_step(queue_on(kind), w, first(velocity, w), copy, g, scalars, chunks,
                                   adapts ? w_squares.view() : View::none(), adapts ? g_squares.view() : View::none(),
                                   a);
              },
              [&](std::vector<double>& w, const std::vector<double>& g, double lr, int step) {
                const auto w_squares = parts.squares(w), g_squares = parts.squares(g);
                for (size_t i = 0; i < w.size(); ++i) {
                  const int p = Parts::owner(i);
                  if (p < 0) continue;
                  const double w_norm = std::sqrt(w_squares[static_cast<size_t>(p)]),
                               g_norm = std::sqrt(g_squares[static_cast<size_t>(p)]);
                  const double trust =
                      adapts && w_norm > 0 ? a.trust * w_norm / (g_norm + a.weight_decay * w_norm + a.eps) : 1;
                  const double d = trust * (g[i] + a.weight_decay * w[i]);
                  v[i] = step == 1 ? d : a.momentum * v[i] + d;
                  w[i] -= lr * (nesterov ? d + a.momentum * v[i] : v[i]);
                }
              });
        }
}

TEST(Optimizer, LambMovesAParameterByItsNorms) {
  const Parts parts;
  for (const DeviceKind kind : test_devices())
    for (const Types& types : kTypes)
      for (const bool adapts : {false, true})
        for (const bool clips : {false, true}) {
          const kernels::LambArguments a{0.8, 0.9, 1e-2, 0.125, clips, true};
          const DeviceArray m_array = zeros(kind, types.weight), v_array = zeros(kind, types.weight);
          const DeviceArray u_array(kind, types.weight, {Parts::kCount}, std::vector<double>(Parts::kCount));
          std::vector<double> m(Parts::kCount), v(Parts::kCount);
          check_parts(
              kind, types,
              [&](const DeviceArray& w, const View& copy, const DeviceArray& g, const DeviceArray& scalars,
                  const DeviceArray& chunks, const std::vector<double>&) {
                kernels::lamb_direction(queue_on(kind), u_array, first(m_array, w), first(v_array, w), w, g, scalars,
                                        chunks, a);
                const DeviceArray w_squares(kind, types.weight, {3}, parts.squares(w.host())),
                    u_squares(kind, types.weight, {3}, parts.squares(u_array.host()));
                kernels::lamb_step(queue_on(kind), w, copy, u_array, scalars, chunks,
                                   adapts ? w_squares.view() : View::none(), adapts ? u_squares.view() : View::none(),
                                   a);
              },
              [&](std::vector<double>& w, const std::vector<double>& g, double lr, int step) {
                std::vector<double> u(w.size());
                for (size_t i = 0; i < w.size(); ++i) {
                  m[i] = a.beta1 * m[i] - (1 - a.beta1) * g[i];
                  v[i] = a.beta2 * v[i] + (1 - a.beta2) * g[i] * g[i];
                  const double mhat = m[i] / (1 - std::pow(a.beta1, step)), vhat = v[i] / (1 - std::pow(a.beta2, step));
                  u[i] = mhat / (std::sqrt(vhat) + a.eps) + a.weight_decay * w[i];
                }
                const auto w_squares = parts.squares(w), u_squares = parts.squares(u);
                for (size_t i = 0; i < w.size(); ++i) {
                  const int p = Parts::owner(i);
                  if (p < 0) continue;
                  const double w_norm = std::sqrt(w_squares[static_cast<size_t>(p)]),
                               u_norm = std::sqrt(u_squares[static_cast<size_t>(p)]);
                  const double trust = adapts && w_norm > 0 ? w_norm / u_norm : 1;
                  w[i] -= lr * (clips ? std::min(trust, 1.0) : trust) * u[i];
                }
              });
        }
}

TEST(Optimizer, ClipGradient) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const double norm : {0.5, 4.0}) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        auto g = uniform(501, dtype);
        const DeviceArray array(kind, dtype, {501}, g);
        kernels::clip_gradient(queue_on(kind), array, DeviceArray(kind, wide, {1}, {norm}), 1);
        for (double& v : g) v *= std::min(1.0, 1 / (norm + 1e-6));
        EXPECT_TRUE(near(array.host(), g, tolerance(dtype)));
      }
}

}  // namespace
}  // namespace weft::tests
