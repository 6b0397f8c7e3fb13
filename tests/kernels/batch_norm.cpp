// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/batch_norm.h"

#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/launches.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

struct BatchNormCase {
  int64_t M, C;
  DType dtype;
  bool affine, relu, residual, running;
};

/// The f64 reference keeps what its backward needs.
struct Reference {
  std::vector<double> mean, invstd, variance, y;

  Reference(const BatchNormCase& c, const std::vector<double>& x, const std::vector<double>& weight,
            const std::vector<double>& bias, const std::vector<double>& residual, double eps)
      : mean(static_cast<size_t>(c.C)), invstd(mean.size()), variance(mean.size()), y(x.size()) {
    for (int64_t j = 0; j < c.C; ++j) {
      for (int64_t m = 0; m < c.M; ++m) mean[j] += x[m * c.C + j] / static_cast<double>(c.M);
      for (int64_t m = 0; m < c.M; ++m)
        variance[j] += (x[m * c.C + j] - mean[j]) * (x[m * c.C + j] - mean[j]) / static_cast<double>(c.M);
      invstd[j] = 1 / std::sqrt(variance[j] + eps);
    }
    for (int64_t i = 0; i < c.M * c.C; ++i) {
      const int64_t j = i % c.C;
      y[i] = (x[i] - mean[j]) * invstd[j];
      if (c.affine) y[i] = y[i] * weight[j] + bias[j];
      if (c.residual) y[i] += residual[i];
      if (c.relu) y[i] = std::max(y[i], 0.0);
    }
  }
};

void check(DeviceKind kind, const BatchNormCase& c, double offset = 0.5) {
  SCOPED_TRACE(str(c.dtype, " [", c.M, ",", c.C, "] affine ", c.affine, " relu ", c.relu, " residual ", c.residual,
                   " on ", name(kind)));
  const DType wide = c.dtype == DType::f64 ? DType::f64 : DType::f32;
  // With a single row the CPU's x / sqrt(eps) would magnify roundings.
  const kernels::BatchNormArguments arguments{c.M == 1 ? 0.5 : 1e-5, 0.3, c.relu};
  const kernels::Queue queue = queue_on(kind);
  const int64_t n = c.M * c.C;
  const double low = c.C == 1 ? 0.5 : -1;  // so that no sum of a single channel is near 0
  const auto x = uniform(n, c.dtype, offset - 1, offset + 1), residual = uniform(n, c.dtype),
             dy = uniform(n, c.dtype, low, 1);
  const auto weight = uniform(c.C, wide, 0.5, 2), bias = uniform(c.C, wide);
  const auto old_mean = uniform(c.C, wide, low, 1), old_var = uniform(c.C, wide, 0.5, 2);
  const Reference want(c, x, weight, bias, residual, arguments.eps);

  const DeviceArray x_array(kind, c.dtype, {c.M, c.C}, x), residual_array(kind, c.dtype, {c.M, c.C}, residual);
  const DeviceArray dy_array(kind, c.dtype, {c.M, c.C}, dy), y(kind, c.dtype, {c.M, c.C});
  const DeviceArray weight_array(kind, wide, {c.C}, weight), bias_array(kind, wide, {c.C}, bias);
  const DeviceArray mean(kind, wide, {c.C}), invstd(kind, wide, {c.C});
  const DeviceArray running_mean(kind, wide, {c.C}, old_mean), running_var(kind, wide, {c.C}, old_var);
  const auto given = [](bool wanted, const DeviceArray& array) { return wanted ? array.view() : View::none(); };
  kernels::batch_norm_forward(queue, y, mean, invstd, given(c.running, running_mean), given(c.running, running_var),
                              x_array, given(c.affine, weight_array), given(c.affine, bias_array),
                              given(c.residual, residual_array), View::none(), arguments);
  const Tolerance sums = tolerance(wide, c.M, 8);
  EXPECT_TRUE(near(mean.host(), want.mean, sums.times(1 + std::abs(offset))));
  EXPECT_TRUE(near(invstd.host(), want.invstd, sums.times(1 + std::abs(offset))));
  EXPECT_TRUE(near(y.host(), want.y, tolerance(c.dtype, c.M, 8).times(1 + std::abs(offset))));
  if (c.running) {
    auto new_mean = old_mean, new_var = old_var;
    for (size_t j = 0; j < new_mean.size(); ++j) {
      const double unbiased = c.M > 1 ? static_cast<double>(c.M) / static_cast<double>(c.M - 1) : 1;
      new_mean[j] = 0.7 * old_mean[j] + 0.3 * want.mean[j];
      new_var[j] = 0.7 * old_var[j] + 0.3 * want.variance[j] * unbiased;
    }
    EXPECT_TRUE(near(running_mean.host(), new_mean, sums.times(1 + std::abs(offset))));
    EXPECT_TRUE(near(running_var.host(), new_var, sums.times(1 + std::abs(offset))));
  }

  // Backward, from the forward's own rounded output.
  const auto out = y.host();
  std::vector<double> dx(x.size()), dresidual(x.size()), dweight(weight.size()), dbias(weight.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = i % c.C;
    dresidual[i] = c.relu && !(out[i] > 0) ? 0 : dy[i];
    dbias[j] += dresidual[i];
    dweight[j] += dresidual[i] * (x[i] - want.mean[j]) * want.invstd[j];
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = i % c.C;
    const double xhat = (x[i] - want.mean[j]) * want.invstd[j], rows = static_cast<double>(c.M);
    dx[i] = (c.affine ? weight[j] : 1) * want.invstd[j] * (dresidual[i] - dbias[j] / rows - xhat * dweight[j] / rows);
  }
  const DeviceArray mean_given(kind, wide, {c.C}, want.mean), invstd_given(kind, wide, {c.C}, want.invstd);
  const DeviceArray dx_array(kind, c.dtype, {c.M, c.C}), dresidual_array(kind, c.dtype, {c.M, c.C});
  const DeviceArray dweight_array(kind, wide, {c.C}), dbias_array(kind, wide, {c.C});
  kernels::batch_norm_backward(queue, dx_array, given(c.residual, dresidual_array), given(c.affine, dweight_array),
                               given(c.affine, dbias_array), dy_array, x_array, given(c.relu, y),
                               given(c.affine, weight_array), View::none(), mean_given, invstd_given, arguments);
  if (c.residual) {
    EXPECT_TRUE(near(dresidual_array.host(), dresidual, {})) << "dresidual";
  }
  if (c.affine) {
    EXPECT_TRUE(near(dbias_array.host(), dbias, tolerance(wide, c.M, 16))) << "dbias";
  }
  if (c.M == 1) return;  // the other gradients are 0 but for roundings
  EXPECT_TRUE(near(dx_array.host(), dx, tolerance(c.dtype, c.M, 8).times(2))) << "dx";
  if (c.affine) {
    EXPECT_TRUE(near(dweight_array.host(), dweight, tolerance(wide, c.M, 16))) << "dweight";
  }
}

TEST(BatchNorm, EveryVariantEqualsReference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool affine : {false, true})
        for (const bool relu : {false, true})
          for (const bool residual : {false, true})
            check(kind, {pick(8, 300), pick(5, 70), dtype, affine, relu, residual, affine});
}

TEST(BatchNorm, ManyRowsOddChannels) {
  const kernels::MultiprocessorScope few(2);  // each thread has many rows
  for (const DeviceKind kind : test_devices()) {
    for (const int64_t C : {5L, 8L, 64L, 67L, 257L})
      check(kind, {kind == DeviceKind::cpu ? 4097 : 513, C, DType::f32, true, true, true, true});
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      check(kind, {700, 16, dtype, true, true, false, true});
      check(kind, {2100, 4, dtype, true, false, true, true});
      check(kind, {40, 300, dtype, false, false, false, true});
      check(kind, {5000, 1, dtype, true, true, true, true});
      check(kind, {1, 3, dtype, true, false, false, true});
    }
  }
}

TEST(BatchNorm, AFarMeanDoesNotCancel) {
  for (const DeviceKind kind : test_devices()) {
    check(kind, {1000, 33, DType::f32, true, false, false, true}, 100);
    const int64_t M = 900, C = 8;  // deviations of 2^-12 of the mean
    const auto x = uniform(M * C, DType::f32, 4094.3, 4097.7);
    const Reference want({M, C, DType::f32, false, false, false, false}, x, {}, {}, {}, 1e-5);
    const DeviceArray y(kind, DType::f32, {M, C}), mean(kind, DType::f32, {C}), invstd(kind, DType::f32, {C});
    const View none = View::none();
    kernels::batch_norm_forward(queue_on(kind), y, mean, invstd, none, none, DeviceArray(kind, DType::f32, {M, C}, x),
                                none, none, none, none, {});
    EXPECT_TRUE(near(invstd.host(), want.invstd, tolerance(DType::f32, M, 16).times(2))) << name(kind);
  }
}

/// A backward that finds the ReLU's mask from x (the forward's bias is given) has the bits of one that reads y.
TEST(BatchNorm, TheMaskFollowsFromTheInput) {
  const kernels::MultiprocessorScope few(2);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const int64_t C : {5L, 64L}) {
        SCOPED_TRACE(str(dtype, " of ", C, " on ", name(kind)));
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        const int64_t M = 700;
        const kernels::Queue queue = queue_on(kind);
        const kernels::BatchNormArguments arguments{1e-5, 0.1, true};
        auto values = uniform(M * C, dtype);
        for (int64_t i = 0; i < C; ++i) values[i] = values[C + i] = 0;  // some lie where the ReLU bends
        std::vector<double> zero(static_cast<size_t>(C), 0.0);
        const DeviceArray x(kind, dtype, {M, C}, values), dy(kind, dtype, {M, C}, uniform(M * C, dtype));
        const DeviceArray weight(kind, wide, {C}, uniform(C, wide, 0.5, 2)), bias(kind, wide, {C}, uniform(C, wide));
        const DeviceArray y(kind, dtype, {M, C}), mean(kind, wide, {C}), invstd(kind, wide, {C});
        const View none = View::none();
        kernels::batch_norm_forward(queue, y, mean, invstd, none, none, x, weight, bias, none, none, arguments);
        const auto gradients = [&](const View& given) {
          const DeviceArray dx(kind, dtype, {M, C}), dweight(kind, wide, {C}), dbias(kind, wide, {C});
          kernels::batch_norm_backward(queue, dx, none, dweight, dbias, dy, x, y, weight, given, mean, invstd,
                                       arguments);
          auto all = dx.host();
          for (const DeviceArray* part : {&dweight, &dbias}) {
            const auto more = part->host();
            all.insert(all.end(), more.begin(), more.end());
          }
          const DeviceArray dx_again(kind, dtype, {M, C});
          kernels::batch_norm_backward_input(queue, dx_again, none, dbias, dweight, dy, x, y, weight, given, mean,
                                             invstd, arguments);
          const auto more = dx_again.host();
          all.insert(all.end(), more.begin(), more.end());
          return all;
        };
        EXPECT_TRUE(near(gradients(bias), gradients(none), {}));
      }
}

TEST(BatchNorm, AMaskServesInPlaceOfY) {
  constexpr DeviceKind kind = DeviceKind::cuda;
  if (!runs_on(kind)) GTEST_SKIP() << "the CPU makes no mask";
  const kernels::Queue queue = queue_on(kind);
  const kernels::BatchNormArguments arguments{1e-5, 0.1, true};
  const View none = View::none();
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const int64_t C : {8L, 72L, 2048L}) {
      SCOPED_TRACE(str(dtype, " C ", C));
      const int64_t M = 90;
      auto values = uniform(M * C, dtype), more = uniform(M * C, dtype);
      for (int64_t i = 0; i < C; ++i) more[i] = i % 2 == 0 ? 1e-9 : NAN;  // 1e-9 is 0 in f16
      const DeviceArray x(kind, dtype, {M, C}, values), residual(kind, dtype, {M, C}, more), y(kind, dtype, {M, C});
      const DeviceArray weight(kind, DType::f32, {C}, uniform(C, DType::f32, 0.5, 2)),
          mask(kind, DType::u8, {M, C / 8});
      const DeviceArray mean(kind, DType::f32, {C}), invstd(kind, DType::f32, {C});
      kernels::batch_norm_forward(queue, y, mean, invstd, none, none, x, weight, none, residual, mask, arguments);
      const auto out = y.host(), bytes = mask.host();
      for (int64_t i = 0; i < M * C; ++i)
        ASSERT_EQ(static_cast<int>(bytes[i / 8]) >> (i % 8) & 1, out[i] > 0) << i << ": " << out[i];

      const DeviceArray part(kind, DType::f32, {1, 2 * C + 1}), again(kind, DType::u8, {M, C / 8});
      kernels::batch_norm_statistics(queue, part, x);
      kernels::batch_norm_of_parts(queue, y, mean, invstd, none, none, none, x, weight, none, residual, part, again,
                                   arguments);
      EXPECT_EQ(again.host(), bytes);

      const DeviceArray memory(kind, dtype, {M * C + 1}, uniform(M * C + 1, dtype));
      for (const int shift : {0, 1}) {  // dy by 16 bytes, and by single numbers
        const View dy = View::dense(static_cast<char*>(memory.view().data) + 2 * shift, dtype, {M, C});
        const auto gradients = [&](const View& sign) {
          const DeviceArray dx(kind, dtype, {M, C}), dresidual(kind, dtype, {M, C}), dx_of_means(kind, dtype, {M, C});
          const DeviceArray dweight(kind, DType::f32, {C}), dbias(kind, DType::f32, {C});
          kernels::batch_norm_backward(queue, dx, dresidual, dweight, dbias, dy, x, sign, weight, none, mean, invstd,
                                       arguments);
          kernels::batch_norm_backward_input(queue, dx_of_means, none, dbias, dweight, dy, x, sign, weight, none, mean,
                                             invstd, arguments);
          std::vector<double> all;
          for (const DeviceArray* array : {&dx, &dresidual, &dweight, &dbias, &dx_of_means}) {
            const auto host = array->host();
            all.insert(all.end(), host.begin(), host.end());
          }
          return all;
        };
        EXPECT_EQ(gradients(mask), gradients(y)) << "shift " << shift;
      }
    }
  const auto refused = [&](DType dtype, int64_t C, int bytes) {
    const DeviceArray memory(kind, dtype, {9 * C}), y(kind, dtype, {8, C}), mask(kind, DType::u8, {8 * C});
    const DeviceArray mean(kind, DType::f32, {C}), invstd(kind, DType::f32, {C});
    const View x = View::dense(static_cast<char*>(memory.view().data) + bytes, dtype, {8, C});
    EXPECT_THROW(kernels::batch_norm_forward(queue, y, mean, invstd, none, none, x, none, none, x, mask, arguments),
                 Error)
        << dtype << " " << C << " " << bytes;
  };
  refused(DType::f32, 16, 0);
  refused(DType::bf16, 12, 0);
  refused(DType::bf16, 16, 2);
}

TEST(BatchNorm, Inference) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const int64_t M = 37, C = 19;
      const auto x = uniform(M * C, dtype), residual = uniform(M * C, dtype);
      const auto mean = uniform(C, wide), variance = uniform(C, wide, 0.5, 2), weight = uniform(C, wide),
                 bias = uniform(C, wide);
      const DeviceArray y(kind, dtype, {M, C});
      kernels::batch_norm_inference(queue_on(kind), y, DeviceArray(kind, dtype, {M, C}, x),
                                    DeviceArray(kind, wide, {C}, mean), DeviceArray(kind, wide, {C}, variance),
                                    DeviceArray(kind, wide, {C}, weight), DeviceArray(kind, wide, {C}, bias),
                                    DeviceArray(kind, dtype, {M, C}, residual), {1e-3, 0.1, true});
      std::vector<double> want(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t j = i % static_cast<size_t>(C);
        want[i] = std::max(0.0, (x[i] - mean[j]) / std::sqrt(variance[j] + 1e-3) * weight[j] + bias[j] + residual[i]);
      }
      EXPECT_TRUE(near(y.host(), want, tolerance(dtype, 4, 8)));
    }
}

/// A batch whose rows are cut into parts of the given sizes: the norm by these parts is that of the whole.
void check_parts(DeviceKind kind, DType dtype, const std::vector<int64_t>& rows, int64_t C, double offset) {
  int64_t M = 0;
  for (const int64_t part : rows) M += part;
  SCOPED_TRACE(str(dtype, " [", M, ",", C, "] in ", rows.size(), " parts on ", name(kind)));
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const kernels::BatchNormArguments arguments{1e-5, 0.3, false};
  const kernels::Queue queue = queue_on(kind);
  const auto x = uniform(M * C, dtype, offset - 1, offset + 1);
  const auto old_mean = uniform(C, wide), old_var = uniform(C, wide, 0.5, 2);
  const Reference want({M, C, dtype, false, false, false, true}, x, {}, {}, {}, arguments.eps);

  std::vector<double> parts;
  int64_t first = 0;
  for (const int64_t count : rows) {
    if (count == 0) {
      parts.insert(parts.end(), static_cast<size_t>(2 * C + 1), 0);
      continue;
    }
    const std::vector<double> slice(x.begin() + first * C, x.begin() + (first + count) * C);
    const DeviceArray part(kind, wide, {2 * C + 1});
    kernels::batch_norm_statistics(queue, part, DeviceArray(kind, dtype, {count, C}, slice));
    const auto values = part.host();
    EXPECT_EQ(values.back(), static_cast<double>(count));
    parts.insert(parts.end(), values.begin(), values.end());
    first += count;
  }
  const DeviceArray whole(kind, dtype, {M, C}, x), y(kind, dtype, {M, C});
  const DeviceArray mean(kind, wide, {C}), invstd(kind, wide, {C}), total(kind, wide, {1});
  const DeviceArray running_mean(kind, wide, {C}, old_mean), running_var(kind, wide, {C}, old_var);
  const DeviceArray given(kind, wide, {static_cast<int64_t>(rows.size()), 2 * C + 1}, parts);
  const auto none = View::none();
  kernels::batch_norm_of_parts(queue, y, mean, invstd, total, running_mean, running_var, whole, none, none, none, given,
                               none, arguments);
  const Tolerance sums = tolerance(wide, M, 8).times(1 + std::abs(offset));
  EXPECT_EQ(total.host()[0], static_cast<double>(M));
  EXPECT_TRUE(near(mean.host(), want.mean, sums));
  EXPECT_TRUE(near(y.host(), want.y, tolerance(dtype, M, 8).times(1 + std::abs(offset))));
  EXPECT_TRUE(near(invstd.host(), want.invstd, sums));
  auto new_mean = old_mean, new_var = old_var;
  for (size_t j = 0; j < new_mean.size(); ++j) {
    const double unbiased = M > 1 ? static_cast<double>(M) / static_cast<double>(M - 1) : 1;
    new_mean[j] = 0.7 * old_mean[j] + 0.3 * want.mean[j];
    new_var[j] = 0.7 * old_var[j] + 0.3 * want.variance[j] * unbiased;
  }
  EXPECT_TRUE(near(running_mean.host(), new_mean, sums));
  EXPECT_TRUE(near(running_var.host(), new_var, sums));
  kernels::batch_norm_of_parts(queue, y, mean, invstd, none, none, none, whole, none, none, none, given, none,
                               arguments);
  EXPECT_TRUE(near(running_mean.host(), new_mean, sums)) << "moved without having been given";
}

TEST(BatchNorm, PartsJoinToTheWhole) {
  for (const DeviceKind kind : test_devices()) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      check_parts(kind, dtype, {pick(2, 200), 1, pick(2, 50)}, pick(5, 70), 0.5);
    check_parts(kind, DType::f32, {300, 700}, 33, 100);        // a far mean does not cancel
    check_parts(kind, DType::f32, {1}, 300, 0.5);              // a single value has variance 0
    check_parts(kind, DType::f32, {0, 0, 7, 0, 30}, 33, 100);  // parts without rows
  }
}

TEST(BatchNorm, AnOpIsTwoLaunchesEachWay) {
  constexpr DeviceKind kind = DeviceKind::cuda;
  if (!runs_on(kind) || !counts_launches()) GTEST_SKIP() << "the emulated GPU counts launches";
  const int64_t M = 2000, C = 64;  // several chunks, whose sums must be joined
  const kernels::Queue queue = queue_on(kind);
  const View none = View::none();
  const DeviceArray x(kind, DType::f32, {M, C}, uniform(M * C, DType::f32)), y(kind, DType::f32, {M, C});
  const DeviceArray mean(kind, DType::f32, {C}), invstd(kind, DType::f32, {C}), part(kind, DType::f32, {1, 2 * C + 1});
  const int64_t forward = launches_of(
      [&] { kernels::batch_norm_forward(queue, y, mean, invstd, none, none, x, none, none, none, none, {}); });
  EXPECT_EQ(forward, 2);
  kernels::batch_norm_statistics(queue, part, x);
  const int64_t by_parts = launches_of([&] {
    kernels::batch_norm_of_parts(queue, y, mean, invstd, none, none, none, x, none, none, none, part, none, {});
  });
  EXPECT_EQ(by_parts, 1);
  const DeviceArray dx(kind, DType::f32, {M, C}), dweight(kind, DType::f32, {C});
  for (const View& wanted : {dx.view(), none}) {
    const int64_t backward = launches_of([&] {
      kernels::batch_norm_backward(queue, wanted, none, dweight, none, x, x, none, none, none, mean, invstd, {});
    });
    EXPECT_EQ(backward, 2);
  }
}

// L2 holds the data accessed last, so a GPU goes over x from its end. Two rows for each thread of one block: only in
// this order may the results of the first half of x replace its second half.
TEST(BatchNorm, ASecondPassBeginsAtTheEnd) {
  for (const DeviceKind kind : test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    const int64_t M = 64, C = 64;
    const auto values = uniform((M + M / 2) * C, DType::f32);
    const DeviceArray memory(kind, DType::f32, {M + M / 2, C}, values);
    const DeviceArray zero(kind, DType::f32, {C}, std::vector<double>(C, 0.0)),
        one(kind, DType::f32, {C}, std::vector<double>(C, 1.0));
    View x = memory, y = memory;
    x.sizes[0] = y.sizes[0] = M;
    y.data = static_cast<float*>(y.data) + M / 2 * C;
    const View none = View::none();
    kernels::batch_norm_inference(queue_on(kind), y, x, zero, one, none, none, none, {.eps = 0});
    const auto got = memory.host();
    EXPECT_EQ(std::vector<double>(got.begin() + M / 2 * C, got.end()),
              std::vector<double>(values.begin(), values.begin() + M * C));
  }
}

TEST(BatchNorm, InputGradientFromGivenMeans) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool relu : {false, true})
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(str(dtype, " relu ", relu, " residual ", residual, " on ", name(kind)));
          const int64_t M = pick(8, 300), C = pick(5, 70);
          const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
          const auto x = uniform(M * C, dtype), dy = uniform(M * C, dtype), y = uniform(M * C, dtype);
          const auto mean = uniform(C, wide), invstd = uniform(C, wide, 0.5, 2), weight = uniform(C, wide, 0.5, 2);
          const auto mean_dy = uniform(C, wide), mean_dyx = uniform(C, wide);
          std::vector<double> dx(x.size()), dresidual(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            const size_t j = i % static_cast<size_t>(C);
            dresidual[i] = relu && !(y[i] > 0) ? 0 : dy[i];
            dx[i] = (residual ? 1 : weight[j]) * invstd[j] *
                    (dresidual[i] - mean_dy[j] - (x[i] - mean[j]) * invstd[j] * mean_dyx[j]);
          }
          const DeviceArray dx_array(kind, dtype, {M, C}), dresidual_array(kind, dtype, {M, C});
          const DeviceArray y_array(kind, dtype, {M, C}, y), weight_array(kind, wide, {C}, weight);
          kernels::batch_norm_backward_input(
              queue_on(kind), dx_array, residual ? dresidual_array.view() : View::none(),
              DeviceArray(kind, wide, {C}, mean_dy), DeviceArray(kind, wide, {C}, mean_dyx),
              DeviceArray(kind, dtype, {M, C}, dy), DeviceArray(kind, dtype, {M, C}, x),
              relu ? y_array.view() : View::none(), residual ? View::none() : weight_array.view(), View::none(),
              DeviceArray(kind, wide, {C}, mean), DeviceArray(kind, wide, {C}, invstd), {1e-5, 0.1, relu});
          EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, 4, 8).times(2))) << "dx";
          if (residual) {
            EXPECT_TRUE(near(dresidual_array.host(), dresidual, {})) << "dresidual";
          }
        }
}

}  // namespace
}  // namespace weft::tests
