// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv2d.h"

#include <limits>

#include "emulator/source/census.h"
#include "emulator/source/simt.h"
#include "tests/simt/close.h"
#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

using kernels::Conv2dArguments;
using kernels::Size2d;
using kernels::View;

struct Case {
  int64_t N, H, W, C, O, R, S;
  Conv2dArguments arguments{};
  int64_t offset = 0;  ///< elements between a 16-byte boundary and the start of every tensor

  int64_t P() const {
    return (H + 2 * arguments.padding.h - arguments.dilation.h * (R - 1) - 1) / arguments.stride.h + 1;
  }
  int64_t Q() const {
    return (W + 2 * arguments.padding.w - arguments.dilation.w * (S - 1) - 1) / arguments.stride.w + 1;
  }
  int64_t group_C() const { return C / arguments.groups; }
  int64_t x_size() const { return N * H * W * C; }
  int64_t w_size() const { return O * R * S * group_C(); }
  int64_t y_size() const { return N * P() * Q() * O; }

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    const Conv2dArguments& a = c.arguments;
    return out << "x [" << c.N << ',' << c.H << ',' << c.W << ',' << c.C << "] w [" << c.O << ',' << c.R << ',' << c.S
               << ',' << c.group_C() << "] stride " << a.stride.h << ',' << a.stride.w << " padding " << a.padding.h
               << ',' << a.padding.w << " dilation " << a.dilation.h << ',' << a.dilation.w << " groups " << a.groups
               << " offset " << c.offset;
  }
};

/// Calls visit(x index, w index, y index) for each product of the convolution.
template <class Visit>
void each_product(const Case& c, Visit&& visit) {
  const Conv2dArguments& a = c.arguments;
  const int64_t P = c.P(), Q = c.Q(), group_C = c.group_C(), group_O = c.O / a.groups;
  for (int64_t n = 0; n < c.N; ++n)
    for (int64_t p = 0; p < P; ++p)
      for (int64_t q = 0; q < Q; ++q)
        for (int64_t r = 0; r < c.R; ++r)
          for (int64_t s = 0; s < c.S; ++s) {
            const int64_t h = p * a.stride.h - a.padding.h + r * a.dilation.h;
            const int64_t w = q * a.stride.w - a.padding.w + s * a.dilation.w;
            if (h < 0 || h >= c.H || w < 0 || w >= c.W) continue;
            for (int64_t o = 0; o < c.O; ++o)
              for (int64_t channel = 0; channel < group_C; ++channel)
                visit(((n * c.H + h) * c.W + w) * c.C + o / group_O * group_C + channel,
                      ((o * c.R + r) * c.S + s) * group_C + channel, ((n * P + p) * Q + q) * c.O + o);
          }
}

/// Memory for `size` results that starts as NaN.
template <class T>
class Poisoned {
 public:
  Poisoned(int64_t size, int64_t offset)
      : array_(std::vector<T>(offset + size, T(std::numeric_limits<float>::quiet_NaN()))), offset_(offset) {}
  T* data() const { return array_.data() + offset_; }
  std::vector<T> host() const {
    const std::vector<T> all = array_.host();
    return {all.begin() + offset_, all.end()};
  }

 private:
  DeviceArray<T> array_;
  int64_t offset_;
};

template <class T>
struct Data {
  std::vector<T> x, w, y, bias;
  DeviceArray<T> device_x, device_w, device_y, device_bias;
  explicit Data(const Case& c)
      : x(random_values<T>(c.offset + c.x_size())),
        w(random_values<T>(c.offset + c.w_size())),
        y(random_values<T>(c.offset + c.y_size())),
        bias(random_values<T>(c.O)),
        device_x(x),
        device_w(w),
        device_y(y),
        device_bias(bias) {}
};

/// All three directions.
template <class T>
void check_on(const Case& c) {
  SCOPED_TRACE(str("case ", c, ", ", dtype_of<T>));
  const Data<T> data(c);
  const DType dtype = dtype_of<T>;
  const int64_t o = c.offset;
  const auto x_view = [&](T* x) { return View::dense(x, dtype, {c.N, c.H, c.W, c.C}); };
  const auto y_view = [&](T* y) { return View::dense(y, dtype, {c.N, c.P(), c.Q(), c.O}); };
  const auto w_view = [&](void* w, DType w_dtype) { return View::dense(w, w_dtype, {c.O, c.R, c.S, c.group_C()}); };
  const View x = x_view(data.device_x.data() + o), dy = y_view(data.device_y.data() + o);
  const View w = w_view(data.device_w.data() + o, dtype);

  std::vector<Reference> y_expected(c.y_size()), dx_expected(c.x_size()), dw_expected(c.w_size());
  each_product(c, [&](int64_t i, int64_t j, int64_t k) {
    y_expected[k].add(number(data.x[o + i]) * number(data.w[o + j]));
    dx_expected[i].add(number(data.y[o + k]) * number(data.w[o + j]));
    dw_expected[j].add(number(data.y[o + k]) * number(data.x[o + i]));
  });
  {
    SCOPED_TRACE("forward");
    const Poisoned<T> y(c.y_size(), o);
    kernels::conv2d_forward(kSimt, y_view(y.data()), x, w, View::none(), c.arguments);
    expect_close(y.host(), y_expected, c.R * c.S * c.group_C());
  }
  {
    SCOPED_TRACE("input gradient");
    const Poisoned<T> dx(c.x_size(), o);
    kernels::conv2d_backward_input(kSimt, x_view(dx.data()), dy, w, View::none(), c.arguments);
    expect_close(dx.host(), dx_expected, c.R * c.S * c.O / c.arguments.groups);
  }
  {
    SCOPED_TRACE("weight gradient");
    const Poisoned<T> dw(c.w_size(), o);
    kernels::conv2d_backward_weight(kSimt, w_view(dw.data(), dtype), dy, x, c.arguments);
    expect_close(dw.host(), dw_expected, c.N * c.P() * c.Q());
  }
  if constexpr (sizeof(T) == 2) {
    SCOPED_TRACE("weight gradient in f32");
    const Poisoned<float> dw(c.w_size(), o);
    kernels::conv2d_backward_weight(kSimt, w_view(dw.data(), DType::f32), dy, x, c.arguments);
    expect_close(dw.host(), dw_expected, c.N * c.P() * c.Q());
  }
  {
    SCOPED_TRACE("forward with bias");
    for (int64_t i = 0; i < c.y_size(); ++i) y_expected[i].add(number(data.bias[i % c.O]));
    const Poisoned<T> y(c.y_size(), o);
    kernels::conv2d_forward(kSimt, y_view(y.data()), x, w, data.device_bias.view(), c.arguments);
    expect_close(y.host(), y_expected, c.R * c.S * c.group_C() + 1);
  }
}

/// On the kernels of both generations of GPU, where T has two.
template <class T>
void check(const Case& c) {
  for (const int capability : {80, 90}) {
    if (capability == 90 && sizeof(T) != 2) continue;
    SCOPED_TRACE(str("compute capability ", capability));
    const emulator::source::CapabilityScope scope(capability);
    check_on<T>(c);
  }
}

void check_all_dtypes(const Case& c) {
  check<float>(c);
  check<double>(c);
  check<bf16>(c);
  check<f16>(c);
}

TEST(SimtConv2d, OfResNets) {
  check_all_dtypes({2, 9, 9, 3, 16, 3, 3, {.padding = {1, 1}}});
  check_all_dtypes({1, 17, 15, 3, 8, 7, 7, {.stride = {2, 2}, .padding = {3, 3}}});
  check_all_dtypes({2, 8, 8, 16, 16, 3, 3, {.padding = {1, 1}}});
  check_all_dtypes({2, 8, 8, 16, 40, 3, 3, {.stride = {2, 2}, .padding = {1, 1}}});
  check_all_dtypes({2, 7, 9, 16, 40, 1, 1, {.stride = {2, 2}}});
  check_all_dtypes({2, 5, 5, 24, 33, 1, 1});
  check_all_dtypes({1, 13, 13, 64, 48, 3, 3, {.padding = {1, 1}}});
}

TEST(SimtConv2d, StrideDilationPaddingOfEachAxis) {
  check_all_dtypes({1, 11, 8, 8, 8, 3, 2, {.stride = {2, 3}, .padding = {2, 0}, .dilation = {1, 2}}});
  check_all_dtypes({1, 12, 12, 8, 16, 3, 3, {.stride = {2, 2}, .padding = {2, 2}, .dilation = {2, 2}}});
  check_all_dtypes({1, 13, 10, 5, 7, 2, 4, {.stride = {3, 1}, .padding = {1, 3}, .dilation = {3, 1}}});
  check_all_dtypes({1, 8, 8, 4, 8, 4, 4, {.stride = {4, 4}}});
  check_all_dtypes({1, 9, 9, 8, 8, 2, 2, {.stride = {5, 5}}});
  check_all_dtypes({2, 1, 1, 8, 8, 3, 3, {.padding = {1, 1}}});
  check_all_dtypes({1, 5, 5, 1, 1, 5, 5});
}

TEST(SimtConv2d, Groups) {
  check_all_dtypes({1, 6, 7, 16, 32, 3, 3, {.padding = {1, 1}, .groups = 2}});
  check_all_dtypes({1, 6, 6, 12, 6, 3, 3, {.stride = {2, 2}, .padding = {1, 1}, .groups = 3}});
  check_all_dtypes({1, 5, 5, 8, 16, 1, 1, {.groups = 4}});
  check_all_dtypes({1, 6, 6, 6, 12, 3, 3, {.padding = {1, 1}, .groups = 6}});
}

TEST(SimtConv2d, Depthwise) {
  check_all_dtypes({2, 7, 6, 16, 16, 3, 3, {.padding = {1, 1}, .groups = 16}});
  check_all_dtypes({1, 9, 9, 5, 5, 3, 3, {.stride = {2, 2}, .padding = {1, 1}, .groups = 5}});
  check_all_dtypes({1, 10, 10, 72, 72, 7, 7, {.padding = {3, 3}, .groups = 72}});
  check_all_dtypes({1, 9, 11, 8, 8, 3, 2, {.stride = {2, 3}, .padding = {2, 1}, .dilation = {2, 1}, .groups = 8}});
  check_all_dtypes({3, 4, 4, 1, 1, 3, 3, {.padding = {1, 1}}});
}

TEST(SimtConv2d, UnalignedTensors) {
  check_all_dtypes({1, 6, 6, 16, 16, 3, 3, {.padding = {1, 1}}, 1});
  check_all_dtypes({1, 6, 6, 16, 16, 3, 3, {.padding = {1, 1}, .groups = 16}, 1});
}

TEST(SimtConv2d, ManyPixelsAreSharedOutInTheWeightGradient) {
  check<float>({3, 20, 20, 8, 8, 3, 3, {.padding = {1, 1}}});
  check<bf16>({3, 20, 20, 8, 8, 3, 3, {.padding = {1, 1}}});
  check<bf16>({3, 20, 20, 8, 8, 3, 3, {.padding = {1, 1}, .groups = 8}});
}

TEST(SimtConv2d, LargeTiles) {
  check<float>({8, 32, 32, 4, 72, 3, 3, {.padding = {1, 1}}});
  check<bf16>({8, 32, 32, 8, 72, 1, 2});
}

TEST(SimtConv2d, NothingToDo) {
  check<float>({0, 4, 4, 8, 8, 3, 3, {.padding = {1, 1}}});
  check<bf16>({1, 4, 4, 0, 8, 3, 3, {.padding = {1, 1}}});
  check<bf16>({1, 4, 4, 8, 0, 3, 3, {.padding = {1, 1}}});
}

TEST(SimtConv2d, AnyScheduleGivesTheSameBits) {
  const Case c{2, 16, 16, 8, 24, 3, 3, {.stride = {2, 2}, .padding = {1, 1}}};
  const Data<bf16> data(c);
  const View x = View::dense(data.device_x.data(), DType::bf16, {c.N, c.H, c.W, c.C});
  const View w = View::dense(data.device_w.data(), DType::bf16, {c.O, c.R, c.S, c.C});
  const View dy = View::dense(data.device_y.data(), DType::bf16, {c.N, c.P(), c.Q(), c.O});
  std::vector<std::vector<uint16_t>> first;
  for_each_schedule([&] {
    const DeviceArray<bf16> y(c.y_size()), dx(c.x_size()), dw(c.w_size());
    kernels::conv2d_forward(kSimt, View::dense(y.data(), DType::bf16, {c.N, c.P(), c.Q(), c.O}), x, w, View::none(),
                            c.arguments);
    kernels::conv2d_backward_input(kSimt, View::dense(dx.data(), DType::bf16, {c.N, c.H, c.W, c.C}), dy, w,
                                   View::none(), c.arguments);
    kernels::conv2d_backward_weight(kSimt, View::dense(dw.data(), DType::bf16, {c.O, c.R, c.S, c.C}), dy, x,
                                    c.arguments);
    std::vector<std::vector<uint16_t>> bits;
    for (const auto* array : {&y, &dx, &dw}) {
      bits.emplace_back();
      for (const bf16 value : array->host()) bits.back().push_back(value.bits);
    }
    if (first.empty()) first = bits;
    EXPECT_EQ(first, bits);
  });
}

TEST(SimtConv2d, RefusesWhatDoesNotFit) {
  const DeviceArray<float> memory(4096);
  const auto view = [&](std::initializer_list<int64_t> sizes) { return View::dense(memory.data(), DType::f32, sizes); };
  EXPECT_NE(
      error_of([&] {
        kernels::conv2d_forward(kSimt, view({1, 4, 4, 8}), view({1, 6, 6, 4}), view({8, 3, 3, 3}), View::none(), {});
      }).find("conv2d_forward: weight f32[8,3,3,3] does not fit input f32[1,6,6,4] with groups=1"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              kernels::conv2d_backward_input(kSimt, view({1, 6, 6, 4}), view({1, 5, 4, 8}), view({8, 3, 3, 4}),
                                             View::none(), {});
            }).find("conv2d_backward_input: input f32[1,6,6,4] and weight f32[8,3,3,4] do not give f32[1,5,4,8]"),
            std::string::npos);
}

TEST(SimtConv2d, TheStemDoesWithoutMapsThatADriverRefuses) {
  emulator::source::set_overlapping_maps(false);
  check_all_dtypes({2, 15, 13, 3, 16, 7, 7, {.stride = {2, 2}, .padding = {3, 3}}});
  emulator::source::set_overlapping_maps(true);
}

}  // namespace
}  // namespace weft::tests
