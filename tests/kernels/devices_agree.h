// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "emulator/source/simt.h"
#include "kernels/kernel.h"
#include "tests/support/compare.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// Every bandwidth-bound kernel of the GPU against the CPU's, which the tests named after each kernel compare with an
// f64 reference: the same call with the same fresh numbers on each device. Sizes are chosen for the GPU's ways: whole
// 16-byte units and remainders, unaligned starts, strided and broadcast operands, long and short sums, several blocks.

namespace weft::tests {

using kernels::Queue;
using kernels::View;

/// One call on one device; remembers its outputs.
class Call {
 public:
  Call(DeviceKind kind, uint64_t seed) : queue{{kind, 0}, nullptr}, numbers_(seed) {}

  const Queue queue;

  View random(DType dtype, const Sizes& sizes, double low = -2, double high = 2) {
    std::uniform_real_distribution<double> distribution(low, high);
    std::vector<double> values(static_cast<size_t>(count_of(sizes)));
    for (double& value : values) value = rounded(distribution(numbers_), dtype);
    return given(dtype, sizes, values);
  }
  View integers(DType dtype, const Sizes& sizes, int64_t low, int64_t high) {
    std::uniform_int_distribution<int64_t> distribution(low, high);
    std::vector<double> values(static_cast<size_t>(count_of(sizes)));
    for (double& value : values) value = static_cast<double>(distribution(numbers_));
    return given(dtype, sizes, values);
  }
  View given(DType dtype, const Sizes& sizes, const std::vector<double>& values) {
    arrays_.emplace_back(queue.device.kind, dtype, sizes, values);
    return arrays_.back();
  }
  /// A poisoned result, compared after the call with sums over K terms.
  View output(DType dtype, const Sizes& sizes, int64_t K = 1) {
    arrays_.emplace_back(queue.device.kind, dtype, sizes);
    return watch(arrays_.back(), K);
  }
  /// An argument that the call changes.
  View inout(const View& view, int64_t K = 1) {
    for (const DeviceArray& array : arrays_)
      if (array.view().data == view.data) watch(array, K);
    return view;
  }

  struct Result {
    std::vector<double> values;
    Tolerance allowed;
  };
  std::vector<Result> results() const {
    std::vector<Result> all;
    for (const auto& [array, K] : watched_) {
      const DType dtype = array->view().dtype;
      all.push_back({array->host(), tolerance(dtype, K, 16).times(2)});
    }
    return all;
  }

 private:
  View watch(const DeviceArray& array, int64_t K) {
    watched_.push_back({&array, K});
    return array;
  }

  std::mt19937_64 numbers_;
  std::deque<DeviceArray> arrays_;
  std::vector<std::pair<const DeviceArray*, int64_t>> watched_;
};

inline std::vector<Call::Result> results_on(DeviceKind kind, uint64_t seed, const std::function<void(Call&)>& body) {
  Call call(kind, seed);
  body(call);
  return call.results();
}

/// Runs `body` on the CPU and on every GPU, real and emulated (once with a random schedule), and compares its outputs.
inline void expect_agreement(const std::string& what, const std::function<void(Call&)>& body) {
  SCOPED_TRACE(what);
  const uint64_t seed = generator()();
  const auto want = results_on(DeviceKind::cpu, seed, body);
  const auto compare = [&](DeviceKind kind, const char* how) {
    const auto got = results_on(kind, seed, body);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(near(got[i].values, want[i].values, want[i].allowed)) << name(kind) << how << ", output " << i;
    return got;
  };
  if (runs_on(DeviceKind::simt)) {
    const auto fixed = compare(DeviceKind::simt, "");
    emulator::source::set_schedule_seed(random_schedule());
    const auto shuffled = compare(DeviceKind::simt, " with a random schedule");
    emulator::source::set_schedule_seed(0);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(near(shuffled[i].values, fixed[i].values, {})) << "depends on the schedule: output " << i;
  }
  if (runs_on(DeviceKind::cuda)) compare(DeviceKind::cuda, "");
}

inline constexpr DType kFloating[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
inline constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                 DType::i64, DType::i32, DType::u8,   DType::boolean};

/// Views of parts of an array.
inline View permuted(View view, std::initializer_list<int> order) {
  const View from = view;
  int d = 0;
  for (const int k : order) {
    view.sizes[d] = from.sizes[k];
    view.strides[d++] = from.strides[k];
  }
  return view;
}
inline View slice(View view, int dim, int64_t begin, int64_t size, int64_t step = 1) {
  view.data = static_cast<char*>(view.data) + begin * view.strides[dim] * static_cast<int64_t>(size_of(view.dtype));
  view.sizes[dim] = size;
  view.strides[dim] *= step;
  return view;
}
inline View broadcast(View view, int dim, int64_t size) {
  view.sizes[dim] = size;
  view.strides[dim] = 0;
  return view;
}

}  // namespace weft::tests
