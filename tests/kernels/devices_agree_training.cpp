// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/ema.h"
#include "kernels/optimizer.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, Optimizers) {
  struct Types {
    DType w, g;
    bool copy;
  };
  for (const Types& t : {Types{DType::f32, DType::f32, false}, Types{DType::f32, DType::bf16, true},
                         Types{DType::f32, DType::f32, true}, Types{DType::f64, DType::f64, false}})
    for (const int64_t n : {0, 3, 1030})
      for (const double step : {1.0, 17.0})
        for (const double scale : {0.5, 0.0, static_cast<double>(INFINITY)})
          expect_agreement(str("optimizers of ", n, " by ", t.g, " scale ", scale), [&](Call& c) {
            const View scalars = c.given(t.w, {3}, {0.1, step, scale}), g = c.random(t.g, {n});
            const auto w = [&] { return c.inout(c.random(t.w, {n})); };
            const auto state = [&] { return c.inout(c.random(t.w, {n}, 0, 1)); };
            const auto copy = [&] { return t.copy ? c.inout(c.random(DType::bf16, {n})) : View::none(); };
            kernels::sgd_step(c.queue, w(), View::none(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::sgd_step(c.queue, w(), state(), copy(), g, scalars, {.momentum = 0.9, .nesterov = true});
            kernels::sgd_step(c.queue, w(), state(), copy(), g, scalars,
                              {.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01, .maximize = true});
            kernels::adam_step(c.queue, w(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::adam_step(c.queue, w(), state(), state(), copy(), g, scalars,
                               {.weight_decay = 0.01, .decoupled = true, .maximize = true});
            kernels::adadelta_step(c.queue, w(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
          });
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const double norm : {0.5, 40.0})
      expect_agreement("clipping", [&](Call& c) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        kernels::clip_gradient(c.queue, c.inout(c.random(dtype, {101})), c.given(wide, {1}, {norm}), 2);
      });
}

TEST(DevicesAgree, Ema) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {0, 3, 1030})
      for (const bool warmup : {false, true})
        expect_agreement(str("averages of ", n), [&](Call& c) {
          const View average = c.inout(c.random(dtype, {n})), w = c.inout(c.random(dtype, {n}));
          kernels::ema_step(c.queue, average, w, c.given(dtype, {1}, {7}), {.decay = 0.99, .warmup = warmup});
          kernels::exchange(c.queue, average, w);
        });
}

}  // namespace
}  // namespace weft::tests
