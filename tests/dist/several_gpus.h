// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "dist/group/process_group.h"
#include "tests/dist/fake_membership.h"

namespace weft::dist::testing {

/// Ranks as threads, each on a GPU of its own, over nccl: weft-emulate has them (tests/emulator/CMakeLists.txt).
class SeveralGpus : public ::testing::Test {
 protected:
  static void require(int gpus);
};

inline Device gpu(int rank) { return {DeviceKind::cuda, rank}; }

/// The text of the error that each rank's function ends with; one error ends all ranks.
std::vector<std::string> errors_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                                        GroupOptions options, const std::shared_ptr<FakeJob>& job = nullptr);
/// Runs the function as the ranks of one group; an error is a failure of the test.
void run_on_gpus(int size, const std::function<void(const ProcessGroupPtr&)>& function,
                 const std::shared_ptr<FakeJob>& job = nullptr);

/// Lines of the text that contain `part`.
size_t lines_with(const std::string& text, const std::string& part);

}  // namespace weft::dist::testing
