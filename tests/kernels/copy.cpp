// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include "kernels/fill.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/strided.h"

namespace weft::tests {
namespace {

const DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                      DType::i64, DType::i32, DType::u8,   DType::boolean};

TEST(Copy, EveryDtypeToEveryDtype) {
  for (const DeviceKind kind : device_runs())
    for (const DType from : kAll)
      for (const DType to : kAll) {
        // Numbers that every dtype but bool holds exactly, with a fraction where the source has one.
        auto x = integers(600, 0, from == DType::boolean ? 1 : 120);
        if (is_floating(from))
          for (size_t i = 0; i < x.size(); i += 3) x[i] += 0.5;
        const DeviceArray y(kind, to, {20, 30});
        kernels::copy(queue_on(kind), y, DeviceArray(kind, from, {20, 30}, x));
        std::vector<double> want;
        for (const double v : x) want.push_back(rounded(rounded(v, from), to));
        EXPECT_TRUE(near(y.host(), want, {})) << from << " to " << to;
      }
}

TEST(Copy, EveryLayoutToEveryLayout) {
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
      for (const Layout from : {Layout::dense, Layout::permuted, Layout::gaps, Layout::broadcast})
        for (const Layout to : {Layout::dense, Layout::permuted, Layout::gaps})
          for (const Sizes& sizes : {Sizes{pick(1, 9), pick(1, 80), pick(1, 80)}, Sizes{1, pick(1, 50), 1, pick(1, 9)},
                                     Sizes{3, 5, 4, 70}, Sizes{}, Sizes{2, 0, 3}}) {
            const int64_t memory = memory_for(sizes);
            const auto x = integers(memory, 0, 200);
            const DeviceArray source(kind, dtype, {memory}, x);
            const DeviceArray target(kind, dtype, {memory}, std::vector<double>(static_cast<size_t>(memory), 9));
            if (sizes.empty() && from == Layout::broadcast) continue;
            const Strided in = strided(source, sizes, from), out = strided(target, sizes, to);
            kernels::copy(queue_on(kind), out.view, in.view);
            std::vector<double> want(static_cast<size_t>(memory), 9);
            for (size_t i = 0; i < in.places.size(); ++i) want[static_cast<size_t>(out.places[i])] = in.at(x, i);
            EXPECT_TRUE(near(target.host(), want, {})) << dtype << " from layout " << static_cast<int>(from) << " to "
                                                       << static_cast<int>(to) << " " << in.view;
          }
}

TEST(Copy, OihwFromOhwi) {  // what state_dict does with convolution weights
  for (const DeviceKind kind : device_runs()) {
    const int64_t O = 65, R = 3, S = 3, I = 70;
    const auto w = uniform(O * R * S * I, DType::f32);
    const DeviceArray ohwi(kind, DType::f32, {O, R, S, I}, w), oihw(kind, DType::f32, {O, I, R, S});
    kernels::View permuted = ohwi.view();
    permuted.sizes = {O, I, R, S}, permuted.strides = {R * S * I, 1, S * I, I};
    kernels::copy(queue_on(kind), oihw, permuted);
    std::vector<double> want;
    for (int64_t o = 0; o < O; ++o)
      for (int64_t i = 0; i < I; ++i)
        for (int64_t rs = 0; rs < R * S; ++rs) want.push_back(w[static_cast<size_t>((o * R * S + rs) * I + i)]);
    EXPECT_TRUE(near(oihw.host(), want, {}));
  }
}

TEST(Fill, EveryDtypeAndLayout) {
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : kAll)
      for (const Layout layout : {Layout::dense, Layout::permuted, Layout::gaps}) {
        const Sizes sizes{3, 70, 5};
        const int64_t memory = memory_for(sizes);
        const DeviceArray array(kind, dtype, {memory}, std::vector<double>(static_cast<size_t>(memory), 0));
        const Strided out = strided(array, sizes, layout);
        kernels::fill(queue_on(kind), out.view, 2.5);
        std::vector<double> want(static_cast<size_t>(memory), 0);
        for (const int64_t place : out.places) want[static_cast<size_t>(place)] = rounded(2.5, dtype);
        EXPECT_TRUE(near(array.host(), want, {})) << dtype;
      }
}

TEST(Fill, Arange) {
  for (const DeviceKind kind : device_runs())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
      const DeviceArray y(kind, dtype, {40});
      kernels::arange(queue_on(kind), y, 3, 2);
      std::vector<double> want;
      for (int i = 0; i < 40; ++i) want.push_back(3 + 2 * i);
      EXPECT_TRUE(near(y.host(), want, {})) << dtype;
    }
}

}  // namespace
}  // namespace weft::tests
