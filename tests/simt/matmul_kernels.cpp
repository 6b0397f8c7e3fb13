// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <limits>

#include "emulator/source/simt.h"
#include "tests/simt/close.h"
#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

using kernels::View;

struct Case {
  int64_t batch, m, n, k;
  bool a_transposed = false, b_transposed = false, bias = false, accumulate = false, b_shared = false;
  int64_t offset = 0;  ///< elements between a 16-byte boundary and the start of a and b

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.batch << " x " << c.m << "x" << c.n << "x" << c.k << (c.a_transposed ? " a^T" : "")
               << (c.b_transposed ? " b^T" : "") << (c.bias ? " bias" : "") << (c.accumulate ? " accumulate" : "")
               << (c.b_shared ? " broadcast" : "") << " offset " << c.offset;
  }
};

View matrix(void* data, DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  View view = View::dense(data, dtype, {batch, transposed ? columns : rows, transposed ? rows : columns});
  if (transposed) {
    std::swap(view.sizes[1], view.sizes[2]);
    std::swap(view.strides[1], view.strides[2]);
  }
  return view;
}

/// In: dtype of a and b; Out: of y and bias.
template <class In, class Out>
void check_on(const Case& c) {
  SCOPED_TRACE(str("case ", c, ", ", dtype_of<In>, " to ", dtype_of<Out>));
  const int64_t b_batch = c.b_shared ? 1 : c.batch;
  const auto a = random_values<In>(c.offset + c.batch * c.m * c.k),
             b = random_values<In>(c.offset + b_batch * c.k * c.n);
  const auto bias = random_values<Out>(c.n);
  // Without accumulate the result starts as NaN: what is not written is seen.
  auto before = random_values<Out>(c.batch * c.m * c.n);
  if (!c.accumulate) before.assign(before.size(), Out(std::numeric_limits<float>::quiet_NaN()));
  const DeviceArray<In> device_a(a), device_b(b);
  const DeviceArray<Out> device_bias(bias), y(before);

  View b_view = matrix(device_b.data() + c.offset, dtype_of<In>, b_batch, c.k, c.n, c.b_transposed);
  if (c.b_shared) {
    b_view.sizes[0] = c.batch;
    b_view.strides[0] = 0;
  }
  const double alpha = 0.5;
  kernels::matmul(kSimt, View::dense(y.data(), dtype_of<Out>, {c.batch, c.m, c.n}),
                  matrix(device_a.data() + c.offset, dtype_of<In>, c.batch, c.m, c.k, c.a_transposed), b_view,
                  c.bias ? device_bias.view() : View::none(),
                  {.alpha = alpha, .grad = c.accumulate ? kernels::Grad::accumulate : kernels::Grad::overwrite});

  std::vector<Reference> expected(before.size());
  for (int64_t batch = 0; batch < c.batch; ++batch) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        Reference& y_ij = expected[(batch * c.m + i) * c.n + j];
        for (int64_t l = 0; l < c.k; ++l) {
          const In x = a[c.offset + batch * c.m * c.k + (c.a_transposed ? l * c.m + i : i * c.k + l)];
          const In w =
              b[c.offset + (c.b_shared ? 0 : batch * c.k * c.n) + (c.b_transposed ? j * c.k + l : l * c.n + j)];
          y_ij.add(alpha * number(x) * number(w));
        }
        if (c.bias) y_ij.add(number(bias[j]));
        if (c.accumulate) y_ij.add(number(before[(batch * c.m + i) * c.n + j]));
      }
    }
  }
  expect_close(y.host(), expected, c.k + 2);
}

/// On the kernels of both generations of GPU, where In has two.
template <class In, class Out>
void check(const Case& c) {
  for (const int capability : {80, 90}) {
    if (capability == 90 && sizeof(In) != 2) continue;
    SCOPED_TRACE(str("compute capability ", capability));
    const emulator::source::CapabilityScope scope(capability);
    check_on<In, Out>(c);
  }
}

void check_all_dtypes(const Case& c) {
  check<float, float>(c);
  check<double, double>(c);
  check<bf16, bf16>(c);
  check<bf16, float>(c);
  check<f16, f16>(c);
}

TEST(SimtMatmul, LayoutsAndOddSizes) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      check_all_dtypes({1, 1, 1, 1, a_transposed, b_transposed});
      check_all_dtypes({2, 17, 33, 5, a_transposed, b_transposed, true});
      check_all_dtypes({1, 40, 24, 72, a_transposed, b_transposed, false, true});
      check_all_dtypes({1, 72, 80, 48, a_transposed, b_transposed, true, true});
      check_all_dtypes({1, 64, 32, 64, a_transposed, b_transposed, false, false, false, 1});
    }
  }
}

TEST(SimtMatmul, MediumTilesAndBroadcastBatches) {
  for (const bool transposed : {false, true}) {
    check_all_dtypes({16, 48, 56, 40, transposed, !transposed, true, false, true});
    check_all_dtypes({4, 97, 65, 33, transposed, transposed});
  }
}

TEST(SimtMatmul, LargeTiles) {
  for (const bool transposed : {false, true}) {
    check<float, float>({24, 129, 136, 24, transposed, !transposed});
    check<bf16, bf16>({24, 136, 130, 40, transposed, transposed});
  }
}

TEST(SimtMatmul, LongSumsAreSharedOutAndAddedInAFixedOrder) {
  check_all_dtypes({1, 10, 12, 2000, true, false, true});
  check_all_dtypes({1, 9, 35, 1500, false, false, false, true});
}

TEST(SimtMatmul, NoDepthGivesTheBias) {
  check_all_dtypes({2, 5, 6, 0});
  check_all_dtypes({1, 5, 6, 0, false, false, true, true});
}

TEST(SimtMatmul, NothingToDo) {
  for (const Case& c : {Case{0, 3, 4, 5}, Case{2, 0, 4, 5}, Case{2, 3, 0, 5}}) check_all_dtypes(c);
}

TEST(SimtMatmul, AnyScheduleGivesTheSameBits) {
  const auto a = random_values<bf16>(70 * 96), b = random_values<bf16>(96 * 66);
  const DeviceArray<bf16> device_a(a), device_b(b);
  std::vector<float> first;
  for_each_schedule([&] {
    const DeviceArray<float> y(70 * 66);
    kernels::matmul(kSimt, View::dense(y.data(), DType::f32, {1, 70, 66}),
                    View::dense(device_a.data(), DType::bf16, {1, 70, 96}),
                    View::dense(device_b.data(), DType::bf16, {1, 96, 66}), View::none(), {});
    if (first.empty()) first = y.host();
    EXPECT_EQ(first, y.host());
  });
}

TEST(SimtMatmul, RefusesWhatDoesNotFit) {
  const DeviceArray<float> x(64);
  const auto view = [&](std::initializer_list<int64_t> sizes) { return View::dense(x.data(), DType::f32, sizes); };
  EXPECT_NE(error_of([&] {
              kernels::matmul(kSimt, view({1, 2, 3}), view({1, 2, 4}), view({1, 5, 3}), View::none(), {});
            }).find("matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got f32[1,2,3] = f32[1,2,4] @ f32[1,5,3]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              kernels::matmul(kSimt, view({1, 2, 3}), view({1, 2, 4}), view({1, 4, 3}), view({2}), {});
            }).find("expected a dense bias [3] of the operands' dtype, got f32[2]"),
            std::string::npos);
  View strided = view({1, 2, 4});
  strided.strides = {16, 8, 2};
  EXPECT_NE(error_of([&] {
              kernels::matmul(kSimt, view({1, 2, 3}), strided, view({1, 4, 3}), View::none(), {});
            }).find("matmul: a f32[1,2,4] has strides 8, 2"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::tests
