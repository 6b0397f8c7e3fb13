// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/copy.h"

#include "kernels/contracts/fill.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/strided.h"

namespace weft::tests {
namespace {

const DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                      DType::i64, DType::i32, DType::u8,   DType::boolean};

TEST(Copy, EveryDtypeToEveryDtype) {
  for (const DeviceKind kind : test_devices())
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
        const DeviceArray part(kind, from, {5, 37}, {x.begin(), x.begin() + 185}), turned(kind, to, {37, 5});
        kernels::View columns = part.view();
        columns.sizes = {37, 5}, columns.strides = {1, 37};
        kernels::copy(queue_on(kind), turned, columns);
        std::vector<double> want_turned;
        for (size_t i = 0; i < 185; ++i) want_turned.push_back(want[i % 5 * 37 + i / 5]);
        EXPECT_TRUE(near(turned.host(), want_turned, {})) << from << " to " << to << ", transposed";
      }
}

TEST(Copy, EveryLayoutToEveryLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
      for (const Layout from :
           {Layout::dense, Layout::permuted, Layout::gaps, Layout::broadcast, Layout::columns, Layout::stretched})
        for (const Layout to : {Layout::dense, Layout::permuted, Layout::gaps, Layout::columns})
          for (const Sizes& sizes : {Sizes{pick(1, 9), pick(1, 80), pick(1, 80)}, Sizes{1, pick(1, 50), 1, pick(1, 9)},
                                     Sizes{3, 5, 4, 70}, Sizes{12, 16}, Sizes{}, Sizes{2, 0, 3}}) {
            const int64_t memory = memory_for(sizes);
            const auto x = integers(memory, 0, 200);
            const DeviceArray source(kind, dtype, {memory}, x);
            const DeviceArray target(kind, dtype, {memory}, std::vector<double>(static_cast<size_t>(memory), 9));
            const Strided in = strided(source, sizes, from), out = strided(target, sizes, to);
            kernels::copy(queue_on(kind), out.view, in.view);
            std::vector<double> want(static_cast<size_t>(memory), 9);
            for (size_t i = 0; i < in.places.size(); ++i) want[static_cast<size_t>(out.places[i])] = in.at(x, i);
            EXPECT_TRUE(near(target.host(), want, {})) << dtype << " from layout " << static_cast<int>(from) << " to "
                                                       << static_cast<int>(to) << " " << in.view;
          }
}

TEST(Copy, DimensionsInAnotherOrder) {
  const struct {
    Sizes sizes;
    std::vector<size_t> order;
  } cases[] = {{{65, 3, 3, 70}, {0, 3, 1, 2}},  // state_dict's permutation of convolution weights
               {{3, 70, 45, 4}, {0, 3, 1, 2}},
               {{3, 70, 45, 4}, {2, 1, 3, 0}}};
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::i64})
      for (const auto& [sizes, order] : cases) {
        const auto x = integers(count_of(sizes), 0, 100);
        const DeviceArray from(kind, dtype, sizes, x);
        const int64_t strides[] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
        kernels::View view = from.view();
        Sizes turned;
        for (size_t d = 0; d < 4; ++d) {
          turned.push_back(view.sizes[d] = sizes[order[d]]);
          view.strides[d] = strides[order[d]];
        }
        const DeviceArray to(kind, dtype, turned);
        kernels::copy(queue_on(kind), to, view);
        std::vector<double> want;
        for (int64_t i = 0; i < turned[0]; ++i)
          for (int64_t j = 0; j < turned[1]; ++j)
            for (int64_t k = 0; k < turned[2]; ++k)
              for (int64_t l = 0; l < turned[3]; ++l)
                want.push_back(x[static_cast<size_t>(i * view.strides[0] + j * view.strides[1] + k * view.strides[2] +
                                                     l * view.strides[3])]);
        EXPECT_TRUE(near(to.host(), want, {})) << dtype << ' ' << view;
      }
}

TEST(Fill, EveryDtypeAndLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kAll)
      for (const Layout layout : {Layout::dense, Layout::permuted, Layout::gaps, Layout::columns})
        for (const Sizes& sizes : {Sizes{3, 70, 5}, Sizes{0}, Sizes{1}, Sizes{7}, Sizes{1025}, Sizes{9, 6}}) {
          const int64_t memory = memory_for(sizes);
          const DeviceArray array(kind, dtype, {memory}, std::vector<double>(static_cast<size_t>(memory), 0));
          const Strided out = strided(array, sizes, layout);
          kernels::fill(queue_on(kind), out.view, 2.5);
          std::vector<double> want(static_cast<size_t>(memory), 0);
          for (const int64_t place : out.places) want[static_cast<size_t>(place)] = rounded(2.5, dtype);
          EXPECT_TRUE(near(array.host(), want, {})) << dtype << ' ' << out.view;
        }
}

TEST(Fill, Arange) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
      const bool fractions = is_floating(dtype);
      const double step = fractions ? -1.5 : dtype == DType::u8 ? 0 : -3;
      const DeviceArray y(kind, dtype, {40}), halves(kind, dtype, {300});  // more than one block
      kernels::arange(queue_on(kind), y, 3, 2);
      kernels::arange(queue_on(kind), halves, 3, fractions ? Number(step) : Number(static_cast<int64_t>(step)));
      std::vector<double> want, want_halves;
      for (int i = 0; i < 40; ++i) want.push_back(3 + 2 * i);
      for (int i = 0; i < 300; ++i) want_halves.push_back(rounded(3 + step * i, dtype));
      EXPECT_TRUE(near(y.host(), want, {})) << dtype;
      EXPECT_TRUE(near(halves.host(), want_halves, {})) << dtype;
    }
}

}  // namespace
}  // namespace weft::tests
