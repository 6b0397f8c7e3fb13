// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"
#include "kernels/layer_norm.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

struct Norm {
  int64_t M, C;
  bool relu, residual, affine;
};

TEST(DevicesAgree, BatchNorm) {
  const Norm cases[] = {{1, 3, false, false, true},   {37, 5, true, true, true},   {700, 16, true, false, true},
                        {2100, 4, false, true, true}, {300, 64, true, true, true}, {40, 300, false, false, false},
                        {5000, 1, true, true, true}};
  for (const DType dtype : kFloating)
    for (const Norm& n : cases)
      expect_agreement(str("batch norm ", dtype, " ", n.M, "x", n.C), [&](Call& c) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        const Sizes sizes{n.M, n.C};
        kernels::BatchNormArguments arguments;
        arguments.relu = n.relu;
        if (n.M == 1) arguments.eps = 0.5;  // else x / sqrt(eps) magnifies roundings
        const View x = c.random(dtype, sizes, 3, 5);
        const View weight = n.affine ? c.random(wide, {n.C}, 0.5, 2) : View::none();
        const View bias = n.affine ? c.random(wide, {n.C}) : View::none();
        const View residual = n.residual ? c.random(dtype, sizes) : View::none();
        const View mean = c.output(wide, {n.C}, n.M), invstd = c.output(wide, {n.C}, n.M);
        const View running_mean = c.inout(c.random(wide, {n.C}, 0.5, 2), n.M);  // nothing cancels: C may be 1
        const View running_var = c.inout(c.random(wide, {n.C}, 0.5, 2), n.M);
        const View y = c.output(dtype, sizes, n.M);
        kernels::batch_norm_forward(c.queue, y, mean, invstd, running_mean, running_var, x, weight, bias, residual,
                                    arguments);
        kernels::batch_norm_inference(c.queue, c.output(dtype, sizes, n.M), x, running_mean, running_var, weight, bias,
                                      residual, arguments);
        kernels::batch_norm_of_parts(c.queue, c.output(dtype, sizes, 16), c.output(wide, {n.C}, 16),
                                     c.output(wide, {n.C}, 16), c.output(wide, {1}), View::none(), View::none(), x,
                                     weight, bias, residual, c.random(wide, {2, 2 * n.C + 1}, 3, 5), arguments);
        // Backward from given statistics and a given mask, so that roundings of the forward do not flip the mask.
        const View save_mean = c.random(wide, {n.C}, 3.9, 4.1), save_invstd = c.random(wide, {n.C}, 1, 2);
        const View mask = n.relu ? c.random(dtype, sizes) : View::none(),
                   dy = c.random(dtype, sizes, n.C == 1 ? 0.5 : -2);
        const View dx = c.output(dtype, sizes, n.M);
        const View dresidual = n.residual ? c.output(dtype, sizes) : View::none();
        const View dweight = n.affine ? c.output(wide, {n.C}, n.M * 16) : View::none();
        const View dbias = n.affine ? c.output(wide, {n.C}, n.M * 16) : View::none();
        kernels::batch_norm_backward(c.queue, dx, dresidual, dweight, dbias, dy, x, mask, weight, View::none(),
                                     save_mean, save_invstd, arguments);
      });
}

TEST(DevicesAgree, BatchNormKeepsSmallDeviationsFarFromZero) {
  expect_agreement("mean 4096, deviation 1", [&](Call& c) {
    const View x = c.random(DType::f32, {900, 8}, 4094.3, 4097.7);
    kernels::batch_norm_forward(c.queue, c.output(DType::f32, {900, 8}, 4096 * 4096), c.output(DType::f32, {8}),
                                c.output(DType::f32, {8}, 900), View::none(), View::none(), x, View::none(),
                                View::none(), View::none(), {});
  });
}

TEST(DevicesAgree, LayerNorm) {
  for (const DType dtype : kFloating)
    for (const Sizes& sizes : {Sizes{5, 7}, Sizes{300, 48}, Sizes{9, 768}, Sizes{3, 2048}, Sizes{2, 5000}})
      for (const bool affine : {true, false})
        expect_agreement(str("layer norm ", dtype, " of ", sizes[1]), [&](Call& c) {
          const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
          const int64_t M = sizes[0], C = sizes[1];
          const View x = c.random(dtype, sizes, 1, 4), dy = c.random(dtype, sizes);
          const View weight = affine ? c.random(wide, {C}, 0.5, 2) : View::none();
          const View bias = affine ? c.random(wide, {C}) : View::none();
          const View residual = affine ? View::none() : c.random(dtype, sizes);
          const View sum = affine ? View::none() : c.output(dtype, sizes);
          kernels::layer_norm_forward(c.queue, c.output(dtype, sizes, C), c.output(wide, {M}, C),
                                      c.output(wide, {M}, C), sum, x, residual, weight, bias, 1e-5);
          const View mean = c.random(wide, {M}, 2, 3), invstd = c.random(wide, {M}, 1, 2);
          const View dweight = affine ? c.output(wide, {C}, M * 16) : View::none();
          const View dbias = affine ? c.output(wide, {C}, M * 16) : View::none();
          kernels::layer_norm_backward(c.queue, c.output(dtype, sizes, C), dweight, dbias, dy, x, weight, mean, invstd,
                                       residual);
          kernels::rms_norm_forward(c.queue, c.output(dtype, sizes, C), c.output(wide, {M}, C), sum, x, residual,
                                    weight, 1e-5);
          kernels::rms_norm_backward(c.queue, c.output(dtype, sizes, C), dweight, dy, x, weight, invstd, residual);
        });
}

}  // namespace
}  // namespace weft::tests
