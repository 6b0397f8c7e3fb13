// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv2d_winograd.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/cpu/processor.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;
using kernels::cpu::kPatch;
using kernels::cpu::kTile;
using kernels::cpu::WinogradKernels;
using Values = std::vector<double>;

/// A matrix of a transform, by rows, and its product with both sides of a square: m x m^T.
struct Matrix {
  int rows, columns;
  Values values;

  Matrix transposed() const {
    Matrix out{columns, rows, Values(values.size())};
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) out.values[static_cast<size_t>(j * rows + i)] = at(i, j);
    return out;
  }
  double at(int i, int j) const { return values[static_cast<size_t>(i * columns + j)]; }
  Values both_sides(const Values& x) const {
    Values out(static_cast<size_t>(rows * rows));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < rows; ++j)
        for (int k = 0; k < columns; ++k)
          for (int l = 0; l < columns; ++l)
            out[static_cast<size_t>(i * rows + j)] += at(i, k) * x[static_cast<size_t>(k * columns + l)] * at(j, l);
    return out;
  }
};

/// The absolute values of B^T, G and A^T for interpolation at the points that winograd_loops.h names and infinity (Toom
/// and Cook's construction): out[i] = sum over k of A^T[i, k] (G g)[k] (B^T d)[k].
struct Transforms {
  Matrix input{kPatch, kPatch, Values(kPatch*kPatch)}, filter{kPatch, 3, Values(kPatch * 3)};
  Matrix output{kTile, kPatch, Values(kTile* kPatch)};

  Transforms() {
    constexpr int kPoints = kPatch - 1;
    constexpr double kPoint[kPoints] = {0, 11. / 16, -11. / 16, 3. / 2, -3. / 2};
    const auto put = [](Matrix& to, int i, int j, double value) {
      to.values[static_cast<size_t>(i * to.columns + j)] = std::abs(value);
    };
    for (int k = 0; k < kPatch; ++k) {
      Values product{1};  // product of x - point over all points but the k-th, by powers of x
      double slope = 1;
      for (int l = 0; l < kPoints; ++l) {
        if (l == k) continue;
        product.insert(product.begin(), 0);
        for (size_t i = 0; i + 1 < product.size(); ++i) product[i] -= kPoint[l] * product[i + 1];
        if (k < kPoints) slope *= kPoint[k] - kPoint[l];
      }
      for (size_t i = 0; i < product.size(); ++i) put(input, k, static_cast<int>(i), product[i]);
      for (int j = 0; j < 3; ++j) put(filter, k, j, k < kPoints ? std::pow(kPoint[k], j) / slope : j == 2);
      for (int i = 0; i < kTile; ++i) put(output, i, k, k < kPoints ? std::pow(kPoint[k], i) : i == kTile - 1);
    }
  }
};
const Transforms kTransforms;
const Matrix &kInput = kTransforms.input, &kFilter = kTransforms.filter, &kOutput = kTransforms.output;

/// Winograd's algorithm over absolute values in f64: each rounding of the real one errs by at most 2^-24 of a part of
/// these sums. The three directions, from the same transforms.
struct Magnitudes {
  const Conv2dCase& c;
  Values y = Values(static_cast<size_t>(count_of(c.y_sizes())));
  Values dx = Values(static_cast<size_t>(count_of(c.x_sizes())));
  Values dw = Values(static_cast<size_t>(count_of(c.w_sizes())));

  /// The edge x edge values of one channel from (top, left) on; 0 outside of the image.
  static Values window(const Values& x, const Sizes& sizes, int64_t n, int64_t top, int64_t left, int64_t channel,
                       int edge) {
    Values out;
    for (int64_t h = top; h < top + edge; ++h)
      for (int64_t w = left; w < left + edge; ++w)
        out.push_back(h < 0 || h >= sizes[1] || w < 0 || w >= sizes[2]
                          ? 0
                          : std::abs(x[static_cast<size_t>(((n * sizes[1] + h) * sizes[2] + w) * sizes[3] + channel)]));
    return out;
  }

  /// out = |A|^T [sum over channels of u v] |A| with u[o][c] of 36 values.
  void correlate(Values& out, const Sizes& out_sizes, const Values& in, const Sizes& in_sizes, int64_t near_h,
                 int64_t near_w, const std::vector<std::vector<Values>>& u) const {
    for (int64_t n = 0; n < out_sizes[0]; ++n)
      for (int64_t p = 0; p < out_sizes[1]; p += kTile)
        for (int64_t q = 0; q < out_sizes[2]; q += kTile) {
          std::vector<Values> v;
          for (int64_t i = 0; i < in_sizes[3]; ++i)
            v.push_back(kInput.both_sides(window(in, in_sizes, n, p - near_h, q - near_w, i, kPatch)));
          for (int64_t o = 0; o < out_sizes[3]; ++o) {
            Values m(36);
            for (size_t i = 0; i < v.size(); ++i)
              for (size_t k = 0; k < 36; ++k) m[k] += u[static_cast<size_t>(o)][i][k] * v[i][k];
            const Values tile = kOutput.both_sides(m);
            for (int64_t i = p; i < std::min(p + kTile, out_sizes[1]); ++i)
              for (int64_t j = q; j < std::min(q + kTile, out_sizes[2]); ++j)
                out[static_cast<size_t>(((n * out_sizes[1] + i) * out_sizes[2] + j) * out_sizes[3] + o)] =
                    tile[static_cast<size_t>((i - p) * kTile + j - q)];
          }
        }
  }

  Magnitudes(const Conv2dCase& conv, const Values& x, const Values& w, const Values& dy) : c(conv) {
    const auto filter = [&](int64_t o, int64_t i, bool turned) {
      Values g;
      for (int64_t tap = 0; tap < 9; ++tap)
        g.push_back(std::abs(w[static_cast<size_t>((o * 9 + (turned ? 8 - tap : tap)) * c.C + i)]));
      return kFilter.both_sides(g);
    };
    std::vector<std::vector<Values>> u(static_cast<size_t>(c.O)), turned(static_cast<size_t>(c.C));
    for (int64_t o = 0; o < c.O; ++o)
      for (int64_t i = 0; i < c.C; ++i) {
        u[static_cast<size_t>(o)].push_back(filter(o, i, false));
        turned[static_cast<size_t>(i)].push_back(filter(o, i, true));
      }
    const auto [h, v] = c.arguments.padding;
    correlate(y, c.y_sizes(), x, c.x_sizes(), h, v, u);
    correlate(dx, c.x_sizes(), dy, c.y_sizes(), 2 - h, 2 - v, turned);

    std::vector<Values> sums(static_cast<size_t>(c.O * c.C), Values(36));
    const Matrix output = kOutput.transposed();
    for (int64_t n = 0; n < c.N; ++n)
      for (int64_t p = 0; p < c.P(); p += kTile)
        for (int64_t q = 0; q < c.Q(); q += kTile) {
          std::vector<Values> from;
          for (int64_t i = 0; i < c.C; ++i)
            from.push_back(kInput.both_sides(window(x, c.x_sizes(), n, p - h, q - v, i, kPatch)));
          for (int64_t o = 0; o < c.O; ++o) {
            const Values m = output.both_sides(window(dy, c.y_sizes(), n, p, q, o, kTile));
            for (int64_t i = 0; i < c.C; ++i)
              for (size_t k = 0; k < 36; ++k)
                sums[static_cast<size_t>(o * c.C + i)][k] += m[k] * from[static_cast<size_t>(i)][k];
          }
        }
    const Matrix back = kFilter.transposed();
    for (int64_t o = 0; o < c.O; ++o)
      for (int64_t i = 0; i < c.C; ++i) {
        const Values g = back.both_sides(sums[static_cast<size_t>(o * c.C + i)]);
        for (int64_t tap = 0; tap < 9; ++tap)
          dw[static_cast<size_t>((o * 9 + tap) * c.C + i)] = g[static_cast<size_t>(tap)];
      }
  }
};

/// Every element within the bound that the header states; where there are enough for their signs to average out, the
/// whole within the tolerance of a direct sum.
void expect_within(const Values& got, const Values& want, const Values& magnitude, int64_t terms, const char* what) {
  const double bound = static_cast<double>(terms + 40) * 0x1p-24;
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double part = std::isfinite(got[i]) ? std::abs(got[i] - want[i]) / std::max(magnitude[i], 1e-30) / bound
                                              : std::numeric_limits<double>::infinity();
    if (part > worst) worst = part, where = i;
  }
  EXPECT_LE(worst, 1) << what << ": element " << where << ", expected " << want[where] << ", got " << got[where];
  if (want.size() < 500) return;
  EXPECT_TRUE(near(got, want, tolerance(DType::f32, 9 * terms))) << what;
}

struct Arrays {
  DeviceArray x, w, dy, y, dx, dw;

  explicit Arrays(const Conv2dCase& c, const Values& xs, const Values& ws, const Values& dys)
      : x(DeviceKind::cpu, DType::f32, c.x_sizes(), xs),
        w(DeviceKind::cpu, DType::f32, c.w_sizes(), ws),
        dy(DeviceKind::cpu, DType::f32, c.y_sizes(), dys),
        y(DeviceKind::cpu, DType::f32, c.y_sizes()),
        dx(DeviceKind::cpu, DType::f32, c.x_sizes()),
        dw(DeviceKind::cpu, DType::f32, c.w_sizes()) {}

  void run(const Conv2dCase& c, const WinogradKernels& kernels, const View& bias = View::none()) {
    for (DeviceArray* result : {&y, &dx, &dw}) result->poison();
    kernels::cpu::winograd_conv2d_forward(y, x, w, bias, c.arguments.padding, kernels);
    kernels::cpu::winograd_conv2d_backward_input(dx, dy, w, c.arguments.padding, kernels);
    kernels::cpu::winograd_conv2d_backward_weight(dw, dy, x, c.arguments.padding, kernels);
  }
};

std::vector<const WinogradKernels*> every_instruction_set() {
  std::vector<const WinogradKernels*> all{&kernels::cpu::winograd_avx2()};
  if (kernels::cpu::has_avx512()) all.push_back(&kernels::cpu::winograd_avx512());
  return all;
}

Conv2dCase same_size(int64_t N, int64_t H, int64_t W, int64_t C, int64_t O) {
  return {N, H, W, C, O, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}};
}

// Ragged tiles and channels; few tiles and many; more tiles, input and output channels than each block has.
const Conv2dCase kCases[] = {
    same_size(1, 1, 1, 1, 1),
    same_size(2, 5, 7, 3, 5),
    same_size(1, 4, 4, 16, 32),
    {3, 9, 6, 20, 70, 3, 3, {{1, 1}, {0, 2}, {1, 1}, 1}},
    {2, 8, 8, 33, 17, 3, 3, {{1, 1}, {2, 0}, {1, 1}, 1}},
    same_size(6, 15, 18, 16, 24),
    {1, 3, 3, 8, 8, 3, 3, {{1, 1}, {0, 0}, {1, 1}, 1}},
    same_size(2, 4, 5, 135, 70),
    same_size(129, 2, 3, 260, 18),
    same_size(35, 13, 16, 8, 6),
    same_size(20, 24, 24, 5, 130),
};

TEST(Conv2dWinograd, StaysWithinItsBound) {
  for (const Conv2dCase& c : kCases) {
    SCOPED_TRACE(str(c));
    const Values x = uniform(count_of(c.x_sizes()), DType::f32), w = uniform(count_of(c.w_sizes()), DType::f32);
    const Values dy = uniform(count_of(c.y_sizes()), DType::f32), bias = uniform(c.O, DType::f32);
    Values y(dy.size()), dx(x.size()), dw(w.size());
    c.for_each_product([&](int64_t i, int64_t j, int64_t k) {
      y[k] += x[i] * w[j];
      dx[i] += dy[k] * w[j];
      dw[j] += dy[k] * x[i];
    });
    Magnitudes magnitudes(c, x, w, dy);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += bias[i % bias.size()];
      magnitudes.y[i] += std::abs(bias[i % bias.size()]);
    }
    Arrays arrays(c, x, w, dy);
    const DeviceArray bias_array(DeviceKind::cpu, DType::f32, {c.O}, bias);
    for (const WinogradKernels* kernels : every_instruction_set()) {
      SCOPED_TRACE(kernels->panel);
      arrays.run(c, *kernels, bias_array);
      expect_within(arrays.y.host(), y, magnitudes.y, c.C, "forward");
      expect_within(arrays.dx.host(), dx, magnitudes.dx, c.O, "backward_input");
      const int64_t tiles = c.N * ((c.P() + 3) / 4) * ((c.Q() + 3) / 4);
      expect_within(arrays.dw.host(), dw, magnitudes.dw, tiles, "backward_weight");
    }
  }
}

TEST(Conv2dWinograd, SameBitsWithAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const Conv2dCase& c : {same_size(5, 13, 10, 40, 72), same_size(40, 15, 16, 24, 40)})
    for (const WinogradKernels* kernels : every_instruction_set()) {
      SCOPED_TRACE(str(c, ", panel ", kernels->panel));
      Arrays arrays(c, uniform(count_of(c.x_sizes()), DType::f32), uniform(count_of(c.w_sizes()), DType::f32),
                    uniform(count_of(c.y_sizes()), DType::f32));
      omp_set_num_threads(1);
      arrays.run(c, *kernels);
      const Values y = arrays.y.host(), dx = arrays.dx.host(), dw = arrays.dw.host();
      for (const int threads : {2, 3, 7}) {
        omp_set_num_threads(threads);
        arrays.run(c, *kernels);
        EXPECT_EQ(arrays.y.host(), y) << threads;
        EXPECT_EQ(arrays.dx.host(), dx) << threads;
        EXPECT_EQ(arrays.dw.host(), dw) << threads;
      }
    }
  omp_set_num_threads(before);
}

TEST(Conv2dWinograd, SuitsFullTilesOfPlain3x3Filters) {
  const auto suits = [](Conv2dCase c, DType dtype = DType::f32) {
    const auto view = [&](const Sizes& s) { return View::dense(nullptr, dtype, {s[0], s[1], s[2], s[3]}); };
    return kernels::cpu::suits_winograd(view(c.y_sizes()), view(c.x_sizes()), view(c.w_sizes()), c.arguments);
  };
  const Conv2dCase plain = same_size(4, 7, 7, 64, 64);
  EXPECT_TRUE(suits(plain));
  EXPECT_FALSE(suits(plain, DType::bf16));
  EXPECT_FALSE(suits(plain, DType::f64));
  EXPECT_FALSE(suits(same_size(3, 7, 7, 64, 64)));    // few positions
  EXPECT_FALSE(suits(same_size(64, 5, 5, 64, 64)));   // tiles that are mostly empty
  EXPECT_FALSE(suits(same_size(16, 32, 32, 3, 64)));  // a stem
  EXPECT_FALSE(suits(same_size(0, 32, 32, 64, 64)));
  for (const auto& change :
       std::initializer_list<void (*)(Conv2dCase&)>{[](Conv2dCase& c) { c.R = 1; }, [](Conv2dCase& c) { c.S = 5; },
                                                    [](Conv2dCase& c) { c.arguments.groups = 2; },
                                                    [](Conv2dCase& c) {
                                                      c.arguments.stride = {2, 2};
                                                    },
                                                    [](Conv2dCase& c) {
                                                      c.arguments.dilation = {2, 2};
                                                    },
                                                    [](Conv2dCase& c) {
                                                      c.arguments.padding = {3, 1};
                                                    }}) {
    Conv2dCase other = same_size(16, 32, 32, 64, 64);
    change(other);
    EXPECT_FALSE(suits(other)) << other;
  }
}

}  // namespace
}  // namespace weft::tests
