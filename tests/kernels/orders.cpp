// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/cross_entropy.h"
#include "kernels/contracts/cumsum.h"
#include "kernels/contracts/index.h"
#include "kernels/contracts/layer_norm.h"
#include "kernels/contracts/matmul.h"
#include "kernels/contracts/reduce.h"
#include "kernels/contracts/softmax.h"
#include "kernels/contracts/sort.h"
#include "tests/support/compare.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/hopper.h"

// Sums in an order of their own: a result has the same bits whatever the order of blocks and warps. Attention, split
// products and convolutions with statistics have such tests beside their others.

namespace weft::tests {
namespace {

using kernels::Queue;
using kernels::View;

constexpr DeviceKind kCuda = DeviceKind::cuda;

DeviceArray drawn(DType dtype, const Sizes& sizes) { return {kCuda, dtype, sizes, uniform(count_of(sizes), dtype)}; }

/// `call` writes the outputs, which begin poisoned.
void expect_same_bits(const char* what, const std::vector<DeviceArray*>& outputs,
                      const std::function<void(const Queue&)>& call) {
  std::vector<std::vector<double>> first;
  in_orders(3, [&] {
    std::vector<std::vector<double>> got;
    for (DeviceArray* const output : outputs) output->poison();
    call(queue_on(kCuda));
    for (const DeviceArray* const output : outputs) got.push_back(output->host());
    if (first.empty()) first = got;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(near(got[i], first[i], {})) << what << ", output " << i;
  });
}

TEST(Orders, SumsHaveTheSameBits) {
  if (!runs_on(kCuda)) GTEST_SKIP() << "needs the device cuda";
  const View none = View::none();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const DeviceArray x = drawn(dtype, {700, 40}), dy = drawn(dtype, {700, 40}), weight = drawn(DType::f32, {40});
    DeviceArray y(kCuda, dtype, {700, 40}), dx(kCuda, dtype, {700, 40}), row(kCuda, DType::f32, {1, 40}),
        one(kCuda, DType::f32, {1, 1}), mean(kCuda, DType::f32, {40}), invstd(kCuda, DType::f32, {40}),
        means(kCuda, DType::f32, {700}), invstds(kCuda, DType::f32, {700}), dweight(kCuda, DType::f32, {40}),
        dbias(kCuda, DType::f32, {40});
    expect_same_bits("reduce", {&row, &one}, [&](const Queue& queue) {
      kernels::reduce(queue, kernels::Reduce::sum, row, x);
      kernels::reduce(queue, kernels::Reduce::norm, one, x);
    });
    expect_same_bits("batch norm", {&y, &mean, &invstd, &dx, &dweight, &dbias}, [&](const Queue& queue) {
      kernels::batch_norm_forward(queue, y, mean, invstd, none, none, x, weight, weight, none, none, {});
      kernels::batch_norm_backward(queue, dx, none, dweight, dbias, dy, x, none, weight, none, mean, invstd, {});
    });
    expect_same_bits("layer norm", {&y, &means, &invstds, &dx, &dweight, &dbias}, [&](const Queue& queue) {
      kernels::layer_norm_forward(queue, y, means, invstds, none, x, none, weight, weight, 1e-5);
      kernels::layer_norm_backward(queue, dx, dweight, dbias, dy, x, weight, means, invstds, none);
    });
    const DeviceArray logits = drawn(dtype, {2, 5000}), target(kCuda, DType::i64, {2}, {7, 4999});
    DeviceArray p(kCuda, dtype, {2, 5000}), dlogits(kCuda, dtype, {2, 5000}), loss(kCuda, DType::f32, {2}),
        lse(kCuda, DType::f32, {2, 2});
    expect_same_bits("softmax, cross entropy", {&p, &dlogits, &loss, &lse}, [&](const Queue& queue) {
      kernels::softmax_forward(queue, p, logits, false);
      kernels::softmax_backward(queue, dlogits, logits, p, false);
      kernels::cross_entropy_forward(queue, loss, lse, none, logits, target, {});
    });
    const DeviceArray index(kCuda, DType::i64, {2300}, integers(2300, 0, 8)), rows = drawn(dtype, {2300, 2});
    DeviceArray of_rows(kCuda, dtype, {9, 2}), put(kCuda, dtype, {9, 2});
    expect_same_bits("index", {&of_rows, &put}, [&](const Queue& queue) {
      kernels::index_select_backward(queue, of_rows, rows, index, 0);
      kernels::index_put(queue, put, rows, index);
    });
    const DeviceArray line = drawn(dtype, {2, 9001});
    DeviceArray sums(kCuda, dtype, {2, 9001}), sorted(kCuda, dtype, {2, 9001}), places(kCuda, DType::i64, {2, 9001});
    expect_same_bits("cumsum, sort", {&sums, &sorted, &places}, [&](const Queue& queue) {
      kernels::cumsum(queue, sums, line, false);
      kernels::sort(queue, sorted, places, line, true);
    });
  }
}

TEST(Orders, ProductsAndConvolutionsHaveTheSameBits) {
  if (!runs_on(kCuda)) GTEST_SKIP() << "needs the device cuda";
  const DeviceArray a = drawn(DType::bf16, {1, 70, 96}), b = drawn(DType::bf16, {1, 96, 66});
  const DeviceArray x = drawn(DType::bf16, {2, 16, 16, 8}), w = drawn(DType::bf16, {24, 3, 3, 8}),
                    dy = drawn(DType::bf16, {2, 8, 8, 24});
  DeviceArray product(kCuda, DType::f32, {1, 70, 66}), y(kCuda, DType::bf16, {2, 8, 8, 24}),
      dx(kCuda, DType::bf16, {2, 16, 16, 8}), dw(kCuda, DType::bf16, {24, 3, 3, 8});
  const kernels::Conv2dArguments halved{.stride = {2, 2}, .padding = {1, 1}};
  on_both_generations([&](DeviceKind kind) {
    if (kind == DeviceKind::cpu) return;
    expect_same_bits("product, convolution", {&product, &y, &dx, &dw}, [&](const Queue& queue) {
      kernels::matmul(queue, product, a, b, View::none(), {});
      kernels::conv2d_forward(queue, y, x, w, View::none(), halved);
      kernels::conv2d_backward_input(queue, dx, dy, w, View::none(), halved);
      kernels::conv2d_backward_weight(queue, dw, dy, x, halved);
    });
  });
}

}  // namespace
}  // namespace weft::tests
