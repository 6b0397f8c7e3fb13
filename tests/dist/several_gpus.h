// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/ops/binary.h"
#include "dist/group/process_group.h"
#include "nn/module.h"
#include "tests/dist/fake_membership.h"

namespace weft::dist::testing {

/// Ranks as threads, each on a GPU of its own, over nccl: weft-emulate has them (tests/emulator/CMakeLists.txt).
class SeveralGpus : public ::testing::Test {
 protected:
  static void require(int gpus);
};

/// Far above what a step takes on a busy machine; ranks that wait in a circle end here.
inline constexpr Milliseconds kDeadline{60'000},
    kLongDeadline{600'000};  // the longer: gigabytes are copied on the host

inline Device gpu(int rank) { return {DeviceKind::cuda, rank}; }

/// The text of the error that each rank's function ends with; one error ends all ranks.
std::vector<std::string> errors_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                                        GroupOptions options, const std::shared_ptr<FakeJob>& job = nullptr);
/// Runs the function as the ranks of one group; an error is a failure of the test.
void run_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                 const std::shared_ptr<FakeJob>& job = nullptr);

/// Lines of the text that contain `part`.
size_t lines_with(const std::string& text, const std::string& part);

/// [width] numbers of 1, 1.125 and 1.25, another order for each layer.
inline Tensor row_of_weights(int64_t width, int layer) {
  std::vector<float> values(static_cast<size_t>(width));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + 0.125f * static_cast<float>((i + size_t(layer)) % 3);
  return Tensor::from(values).requires_grad_();
}

/// x times a row of weights, layer by layer.
struct Factor : nn::Module {
  Tensor weight;
  Factor(int64_t width, int layer) : weight(row_of_weights(width, layer)) {}
  Tensor forward(const Tensor& x) const override { return x * weight; }
  void fields(nn::Visitor& v) override { v("weight", weight); }
};

}  // namespace weft::dist::testing
