// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/autograd.h"
#include "core/random.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/fsdp/fsdp_state.h"
#include "dist/fsdp/sharded_checkpoint.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/train/temporary_folder.h"

namespace weft::dist::testing {
namespace {

// All ranks share one GPU. WEFT_FSDP_STEPS makes the proof longer.

int steps() {
  const char* text = std::getenv("WEFT_FSDP_STEPS");
  return text ? std::atoi(text) : 3;
}

class FsdpOnGpu : public ::testing::TestWithParam<Sharding> {};

TEST_P(FsdpOnGpu, RanksEqualOneOnTheSameGlobalBatch) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const int most = std::getenv("WEFT_FSDP_STEPS") ? 4 : 2;
  for (int ranks = 2; ranks <= most; ++ranks) {
    if (GetParam() == Sharding::hybrid_shard && ranks == 3) continue;
    const ShardedTraining t{.make = [] { return std::make_shared<Tower>(6, 8, 2, 4); },
                            .parts = unequal_parts(steps(), ranks),
                            .options = {.strategy = GetParam(),
                                        .policy = {.kinds = {"Block"}},
                                        .shard_size = GetParam() == Sharding::hybrid_shard ? 2 : 0},
                            .dtype = DType::f32,
                            .device = {DeviceKind::cuda, 0}};
    expect_equal(train_sharded(t, ranks), train_whole(t), t);
    ShardedTraining low = t;
    low.options.precision = {.param = DType::bf16, .reduce = DType::f32};
    low.parts = equal_parts(steps(), ranks, 2);
    const ShardedResult got = train_sharded(low, ranks), want = train_whole(low);
    EXPECT_TRUE(tests::near(got.weights, want.weights, tests::tolerance(DType::bf16)));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, FsdpOnGpu,
                         ::testing::Values(Sharding::full_shard, Sharding::shard_grad_op, Sharding::hybrid_shard,
                                           Sharding::no_shard),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST(FsdpOnGpu, ShardsGoToTheDeviceAndCheckpointsComeFromThere) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const test::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary / "step";
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < 2; ++rank) {
    manual_seed(4);
    models.push_back(std::make_shared<Tower>(6, 8, 2, 4));
  }
  manual_seed(4);
  const StateDict want = std::make_shared<Tower>(6, 8, 2, 4)->state_dict();
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    FSDP fsdp(models[static_cast<size_t>(group->rank())], group,
              {.policy = {.kinds = {"Block"}}, .device = Device{DeviceKind::cuda, 0}});
    EXPECT_EQ(fsdp.parameters()[0].tensor.device().kind, DeviceKind::cuda);
    CheckpointWriter writer(group);
    writer.save(folder, {{"model", sharded_state(fsdp)}});
    writer.wait();
    for (const NamedTensor& shard : fsdp.parameters()) {
      const NoGrad no_grad;
      shard.tensor.zero_();
    }
    ShardedState state = sharded_state(fsdp);
    ShardedCheckpoint(folder).load({{"model", &state}});
    const StateDict got = full_state_dict(fsdp, Receivers::all);
    for (const NamedTensor& entry : want.tensors)
      EXPECT_EQ(got.tensor(entry.name).to_vector<float>(), entry.tensor.to_vector<float>()) << entry.name;
  });
}

}  // namespace
}  // namespace weft::dist::testing
