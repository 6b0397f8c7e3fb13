// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/optimizer.h"
#include "kernels/recurrent.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

struct Types {
  DType w, g;
  bool copy;
};

TEST(DevicesAgree, Optimizers) {
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
            kernels::adam_step(c.queue, w(), state(), state(), View::none(), copy(), g, scalars,
                               {.weight_decay = 0.01});
            kernels::adam_step(c.queue, w(), state(), state(), View::none(), copy(), g, scalars,
                               {.weight_decay = 0.01, .decoupled = true, .maximize = true});
            kernels::adam_step(c.queue, w(), state(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::adadelta_step(c.queue, w(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::rmsprop_step(c.queue, w(), state(), View::none(), View::none(), copy(), g, scalars,
                                  {.eps = 1e-3, .weight_decay = 0.01});
            kernels::rmsprop_step(c.queue, w(), state(), state(), View::none(), copy(), g, scalars,
                                  {.eps = 1e-3, .momentum = 0.9, .maximize = true});
            kernels::adagrad_step(c.queue, w(), state(), copy(), g, scalars, {.lr_decay = 0.1, .eps = 1e-3});
            kernels::lion_step(c.queue, w(), state(), copy(), g, scalars, {.weight_decay = 0.01});
          });
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const double norm : {0.5, 40.0})
      expect_agreement("clipping", [&](Call& c) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        kernels::clip_gradient(c.queue, c.inout(c.random(dtype, {101})), c.given(wide, {1}, {norm}), 2);
      });
}

TEST(DevicesAgree, OptimizersByParameter) {
  const std::vector<double> chunks{0, 96, 0, 96, 250, 0, 256, 259, 1}, firsts{0, 2, 3};
  for (const Types& t : {Types{DType::f32, DType::f32, false}, Types{DType::f32, DType::bf16, true},
                         Types{DType::f64, DType::f64, false}})
    expect_agreement(str("optimizers by parameter ", t.g), [&](Call& c) {
      const View table = c.given(DType::i64, {3, 3}, chunks), scalars = c.given(t.w, {3}, {0.1, 17, 0.5}),
                 g = c.random(t.g, {300});
      const auto w = [&] { return c.inout(c.random(t.w, {300})); };
      const auto state = [&] { return c.inout(c.random(t.w, {300}, 0, 1)); };
      const View copy = t.copy ? c.inout(c.random(DType::bf16, {300})) : View::none();
      const View squares = c.given(t.w, {2}, {4, 0}), others = c.given(t.w, {2}, {1, 9});
      kernels::lars_step(c.queue, w(), state(), copy, g, scalars, table, squares, others, {.weight_decay = 0.1});
      kernels::lars_step(c.queue, w(), state(), copy, g, scalars, table, View::none(), View::none(), {});
      kernels::lamb_direction(c.queue, state(), state(), state(), c.random(t.w, {300}), g, scalars, table, {});
      kernels::lamb_step(c.queue, w(), copy, c.random(t.w, {300}), scalars, table, squares, others, {});
      const DType wide = t.g == DType::f64 ? DType::f64 : DType::f32;
      kernels::parameter_squares(c.queue, c.output(wide, {2}, 250), c.output(wide, {3}, 150), g, table,
                                 c.given(DType::i64, {3}, firsts));
    });
}

TEST(DevicesAgree, Recurrent) {
  for (const DType dtype : kFloating)
    for (const int64_t H : {1, 70})
      expect_agreement(str("recurrent ", dtype, " ", H), [&](Call& c) {
        const auto random = [&](int64_t parts) { return c.random(dtype, {3, parts * H}); };
        const auto output = [&](int64_t parts) { return c.output(dtype, {3, parts * H}, 4); };
        kernels::lstm_cell_forward(c.queue, output(1), output(1), c.inout(random(4)), random(1));
        kernels::lstm_cell_backward(c.queue, output(4), c.inout(random(1)), random(1), random(1), random(4), random(1),
                                    random(1));
        kernels::gru_cell_forward(c.queue, output(1), output(4), random(3), random(3), random(1));
        kernels::gru_cell_backward(c.queue, output(3), output(3), output(1), random(1), random(1), random(4),
                                   random(1));
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
