// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "core/graph.h"
#include "kernels/runtime/runtime.h"
#include "tests/dist/fake_membership.h"
#include "tests/dist/memory_store.h"
#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"

// A single rank on a GPU: NCCL refuses two on the same.

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WEFT_HAVE_NCCL) GTEST_SKIP() << "built without NCCL";
    if (kernels::runtime(DeviceKind::cuda).device_count() == 0) GTEST_SKIP() << "needs a GPU";
  }
  static ProcessGroupPtr make() {
    return make_process_group("nccl", 0, 1, std::make_shared<MemoryStore>(), nullptr,
                              {.timeout = Milliseconds(30'000)});
  }
  const Device cuda_{DeviceKind::cuda, 0};
};

TEST(NcclStub, SaysHowToBuildItIn) {
  if (WEFT_HAVE_NCCL) GTEST_SKIP() << "this build has NCCL: WEFT_CUDA=OFF has its stub";
  EXPECT_THAT(error_text([] { make_process_group("nccl", 0, 1, std::make_shared<MemoryStore>(), nullptr); }),
              HasSubstr("backend nccl: built without CUDA or without NCCL's header. Configure with -DWEFT_CUDA=ON"));
}

TEST_F(Nccl, EveryCollective) {
  const ProcessGroupPtr group = make();
  EXPECT_EQ(group->backend(), "nccl");
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    const Tensor x = Tensor::full({5}, 3, dtype, cuda_), y = Tensor::empty({5}, dtype, cuda_);
    const std::vector<int> threes(5, 3);
    group->all_reduce(x)->wait();
    group->all_reduce(x, ReduceOp::max)->wait();
    if (is_floating(dtype)) group->all_reduce(x, ReduceOp::avg)->wait();
    group->broadcast(x, 0)->wait();
    EXPECT_EQ(x.to_vector<int>(), threes) << dtype;
    group->all_gather(y, x)->wait();
    EXPECT_EQ(y.to_vector<int>(), threes) << dtype;
    y.zero_();
    group->reduce_scatter(y, x)->wait();
    EXPECT_EQ(y.to_vector<int>(), threes) << dtype;
    group->reduce(x, 0, ReduceOp::min)->wait();
    EXPECT_EQ(x.to_vector<int>(), threes) << dtype;
    for (const auto& call : std::vector<std::function<WorkPtr()>>{[&] { return group->gather(y, x, 0); },
                                                                  [&] { return group->scatter(y, x, 0); },
                                                                  [&] { return group->all_to_all(y, x); }}) {
      y.zero_();
      call()->wait();
      EXPECT_EQ(y.to_vector<int>(), threes) << dtype;
    }
    if (!is_floating(dtype)) continue;
    group->all_reduce(x, ReduceOp::sum, {.name = "x", .scale = Tensor::full({1}, 0.5, DType::f32, cuda_)})->wait();
    EXPECT_EQ(x.to_vector<double>(), std::vector<double>(5, 1.5)) << dtype;
  }
  group->barrier();
  EXPECT_THAT(group->all_gather_text("me"), ::testing::ElementsAre("me"));
  EXPECT_THAT(group->flight_log(), HasSubstr("done     barrier"));
  EXPECT_THAT(error_text([&] { group->all_reduce(Tensor::ones({1})); }), HasSubstr("expected a tensor on cuda:0"));
}

TEST_F(Nccl, SplitsAndEnds) {
  const ProcessGroupPtr group = make();
  EXPECT_EQ(group->split(-1, 0, "nobody"), nullptr);
  const ProcessGroupPtr part = group->split(3, 0, "part");
  const Tensor x = Tensor::ones({4}, DType::f32, cuda_);
  part->all_reduce(x)->wait();
  EXPECT_EQ(x.to_vector<int>(), std::vector<int>(4, 1));
  const WorkPtr work = part->all_reduce(x);
  work->wait();
  part->abort("enough");
  EXPECT_THAT(error_text([&] { part->all_reduce(x); }), HasSubstr("enough"));
  EXPECT_THAT(error_text([&] { work->wait(); }), HasSubstr("enough")) << "x may be anything";
  group->all_reduce(x)->wait();
  EXPECT_EQ(x.to_vector<int>(), std::vector<int>(4, 1));
}

TEST_F(Nccl, ACapturedCollectiveRunsWithEachReplay) {
  const ProcessGroupPtr group = make();
  Tensor x = Tensor::ones({4}, DType::f32, cuda_);
  const Tensor factor = Tensor::full({1}, 2, DType::f32, cuda_);
  const auto step = [&] { group->all_reduce(x, ReduceOp::sum, {.name = "x", .scale = factor})->wait(); };
  step();
  Graph graph;
  graph.capture(cuda_, step);
  graph.replay();
  factor.fill_(3);
  graph.replay();
  EXPECT_EQ(x.to_vector<int>(), std::vector<int>(4, 12));
  EXPECT_THAT(group->flight_log(), HasSubstr("'replay of a graph from all_reduce")) << "each has a deadline";
  x = Tensor();
  EXPECT_TRUE(Tensor::empty({4}, DType::f32, cuda_).defined()) << "the allocator asks after no event of a capture";
}

TEST_F(Nccl, ARankThatDiesWhileTheyConnectEndsTheOthers) {
  const auto job = std::make_shared<FakeJob>(2);
  std::thread death([&job] {
    std::this_thread::sleep_for(Milliseconds(200));
    job->declare({1, "host1", "rank 1 (process 101 on host1) has died"});
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(error_text([&] {
              make_process_group("nccl", 0, 2, std::make_shared<MemoryStore>(),
                                 std::make_shared<FakeMembership>(job, 0), {.timeout = Milliseconds(20'000)});
            }),
            "process group nccl: rank 1 (process 101 on host1) has died");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Milliseconds(10'000)) << "not at the deadline";
  death.join();
}

TEST_F(Nccl, ARankThatDoesNotConnectIsNamed) {
  for (const int ranks_per_root : {1, 2}) {  // rank 0 waits for rank 1's id, or in NCCL
    const auto job = std::make_shared<FakeJob>(2);
    EXPECT_EQ(
        error_text([&] {
          make_process_group("nccl", 0, 2, std::make_shared<MemoryStore>(), std::make_shared<FakeMembership>(job, 0),
                             {.start_timeout = Milliseconds(1000), .nccl_ranks_per_root = ranks_per_root});
        }),
        "process group nccl: barrier #0 'start of NCCL' of group world passed its deadline of 1 s on rank 0: missing "
        "rank 1 (process 101 on host1, last heard of 0 s ago)");
  }
}

TEST_F(Nccl, TheEndOfTheJobEndsTheWaitForIds) {
  const auto store = std::make_shared<MemoryStore>();
  std::thread death([&] {
    std::this_thread::sleep_for(Milliseconds(200));
    store->end_waits("rank 1 has died");
  });
  EXPECT_EQ(error_text([&] {
              make_process_group("nccl", 0, 2, store, nullptr,
                                 {.timeout = Milliseconds(60'000), .nccl_ranks_per_root = 1});
            }),
            "store: no rank has set 'nccl/1/id/1' before the end: rank 1 has died");
  death.join();
}

TEST_F(Nccl, IdsOfAnotherSizeAreRefused) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("nccl/1/id/1", "short");
  EXPECT_EQ(error_text([&] {
              make_process_group("nccl", 0, 2, store, nullptr,
                                 {.timeout = Milliseconds(60'000), .nccl_ranks_per_root = 1});
            }),
            "process group nccl: got an id of 5 bytes");
  EXPECT_EQ(error_text([&] { make_process_group("nccl", 0, 2, store, nullptr, {.nccl_ranks_per_root = 0}); }),
            "process group nccl: expected nccl_ranks_per_root of at least 1, got 0");
}

}  // namespace
}  // namespace weft::dist::testing
