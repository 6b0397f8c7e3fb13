// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.h"

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
void check(DeviceKind kind, const Types& types, bool maximize, const Launch& launch, const Rule& rule) {
  const int64_t n = pick(50, 3000);
  SCOPED_TRACE(str(types.weight, " gradient ", types.gradient, " n ", n, " on ", name(kind)));
  auto w = uniform(n, types.weight);
  const DeviceArray w_array(kind, types.weight, {n}, w), copy(kind, DType::bf16, {n});
  for (int step = 1; step <= 3; ++step) {
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

/// A state of n zeros as long as the weights may get.
DeviceArray zeros(DeviceKind kind, DType dtype) { return {kind, dtype, {3000}, std::vector<double>(3000)}; }
View first(const DeviceArray& state, const View& w) {
  View view = state.view();
  view.sizes[0] = w.sizes[0];
  return view;
}

TEST(Optimizer, Sgd) {
  for (const DeviceKind kind : device_runs())
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
  for (const DeviceKind kind : device_runs())
    for (const Types& types : kTypes)
      for (const bool decoupled : {false, true}) {
        const kernels::AdamArguments a{0.8, 0.95, 1e-6, 0.02, decoupled, decoupled};
        const DeviceArray m_array = zeros(kind, types.weight), v_array = zeros(kind, types.weight);
        std::vector<double> m(3000), v(3000);
        check(
            kind, types, a.maximize,
            [&](const View& w, const View& copy, const View& g, const View& scalars) {
              kernels::adam_step(queue_on(kind), w, first(m_array, w), first(v_array, w), copy, g, scalars, a);
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
  for (const DeviceKind kind : device_runs())
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

TEST(Optimizer, ClipGradient) {
  for (const DeviceKind kind : device_runs())
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
