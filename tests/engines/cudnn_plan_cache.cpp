// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan_cache.h"

#include <gmock/gmock.h>

#include "tests/support/compare.h"

// How plans are kept, whatever they compute: by a library and plans that only take notes.

namespace weft::tests {
namespace {

using namespace kernels;          // NOLINT
using namespace kernels::vendor;  // NOLINT

struct NotedCall {
  int64_t size = 0, bytes = 0;
  Queue queue{};
};
Problem problem_of(const NotedCall& call) {
  Problem problem("noted");
  return problem.add("size", call.size);
}

struct Notes {
  int handles = 0, plans = 0;
  std::vector<std::pair<int64_t, int>> runs;  ///< size and variant
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
} notes;

/// Any problem has three plans; problem 13 cannot be computed and 14 has no memory.
class NotedPlan {
 public:
  NotedPlan(const CudnnTarget& target, const NotedCall& call) : bytes_(call.bytes) {
    EXPECT_EQ(target.handle, reinterpret_cast<cudnnHandle_t>(8));
    if (call.size == 13) fail("nothing computes it");
    ++notes.plans;
  }
  int make(int most) { return made_ = std::max(made_, std::min(most, 3)); }
  int64_t workspace(int variant) const { return bytes_ * (variant + 1); }
  void run(const NotedCall& call, int variant, void* workspace) const {
    if (call.size == 14) throw OutOfMemory("out of memory");
    EXPECT_LT(variant, made_);
    notes.runs.emplace_back(call.size, variant);
    notes.workspace = workspace;
  }

 private:
  int64_t bytes_;
  int made_ = 1;
};

class CudnnPlanCaches : public testing::Test {
 protected:
  CudnnPlanCaches() {
    notes = {};
    library.Create = [](cudnnHandle_t* handle) {
      ++notes.handles;
      *handle = reinterpret_cast<cudnnHandle_t>(8);
      return CUDNN_STATUS_SUCCESS;
    };
    library.SetStream = [](cudnnHandle_t, cudaStream_t stream) {
      notes.stream = stream;
      return CUDNN_STATUS_SUCCESS;
    };
  }
  CudnnLibrary library{};
  CudnnPlanCache<NotedPlan, NotedCall> plans{library};
};

TEST_F(CudnnPlanCaches, AHandleForAllAndAPlanForEachProblem) {
  EXPECT_EQ(notes.handles, 0);
  for (const int64_t size : {1, 2, 1, 2}) plans.run({size}, 0);
  EXPECT_EQ(plans.variants({2}), 3);
  EXPECT_EQ(notes.handles, 1);
  EXPECT_EQ(notes.plans, 2);
  plans.run({3}, 2);  // as a tuning cache of another process may ask
  EXPECT_THAT(notes.runs, testing::ElementsAre(testing::Pair(1, 0), testing::Pair(2, 0), testing::Pair(1, 0),
                                               testing::Pair(2, 0), testing::Pair(3, 2)));
}

TEST_F(CudnnPlanCaches, StreamAndWorkspaceAreThoseOfTheCall) {
  NotedCall call{1, 64};
  call.queue.stream = reinterpret_cast<void*>(0x5);
  plans.run(call, 1);
  EXPECT_EQ(notes.stream, reinterpret_cast<cudaStream_t>(0x5));
  EXPECT_NE(notes.workspace, nullptr);
  call = {2, 0};
  plans.run(call, 0);
  EXPECT_EQ(notes.stream, nullptr);
  EXPECT_EQ(notes.workspace, nullptr);
}

TEST_F(CudnnPlanCaches, ErrorsNameTheProblemButForMemorys) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(error_text([&] { plans.variants({13}); }), "noted: nothing computes it; noted size=13");
  EXPECT_EQ(error_text([&] { plans.run({1}, 3); }), "noted: cuDNN offers no plan number 3; noted size=1");
  EXPECT_THROW(plans.run({14}, 0), OutOfMemory);
  EXPECT_EQ(error_text([&] { plans.run({14}, 0); }), "out of memory");
  plans.run({1}, 0);  // and nothing is locked
  EXPECT_EQ(notes.runs.size(), 1u);
}

}  // namespace
}  // namespace weft::tests
