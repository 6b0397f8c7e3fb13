// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/graph.h"
#include "core/random.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/fsdp/fsdp.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/support/devices.h"

namespace weft::dist::testing {
namespace {

constexpr int kRanks = 3;
constexpr uint64_t kSeed = 17;

using Mask = std::vector<float>;

Mask mask(Device device) { return dropout(Tensor::ones({200}, DType::f32, device)).to_vector<float>(); }

/// What one process drops after manual_seed(kSeed).
Mask mask_of_one_process(Device device) {
  const ThreadGenerators own;
  manual_seed(kSeed);
  return mask(device);
}

/// The masks of all ranks after `make(model, group)` and one manual_seed; what they draw by name is the same.
std::vector<Mask> masks_of_ranks(
    Device device,
    const std::function<std::shared_ptr<void>(const std::shared_ptr<nn::Linear>&, const ProcessGroupPtr&)>& make) {
  std::vector<Mask> masks(kRanks), drawn(kRanks);
  run_ranks(kRanks, [&](const ProcessGroupPtr& group) {
    manual_seed(kSeed);
    const auto model = std::make_shared<nn::Linear>(3, 2);
    const std::shared_ptr<void> made = make(model, group);
    manual_seed(kSeed);
    masks[static_cast<size_t>(group->rank())] = mask(device);
    drawn[static_cast<size_t>(group->rank())] = normal({5}, 0, 1, DType::f32, device).to_vector<float>();
  });
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(drawn[static_cast<size_t>(rank)], drawn[0]);
  return masks;
}

void expect_different(const std::vector<Mask>& masks, Device device) {
  EXPECT_EQ(masks[0], mask_of_one_process(device)) << "rank 0 drops what one process would";
  for (int rank = 0; rank < kRanks; ++rank)
    for (int other = 0; other < rank; ++other)
      EXPECT_NE(masks[static_cast<size_t>(rank)], masks[static_cast<size_t>(other)]);
}

TEST(DropoutOfRanks, DiffersAfterACommonSeed) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    expect_different(masks_of_ranks(device, [](const auto& model,
                                               const auto& group) { return std::make_shared<DDP>(model, group); }),
                     device);
    expect_different(masks_of_ranks(device, [](const auto& model,
                                               const auto& group) { return std::make_shared<FSDP>(model, group); }),
                     device);
    struct Made {
      optim::SGD sgd;
      DistributedOptimizer optimizer;
      Made(const std::shared_ptr<nn::Linear>& model, const ProcessGroupPtr& group)
          : sgd(model->parameters(), {.lr = 0.1}), optimizer(sgd, group) {}
    };
    expect_different(masks_of_ranks(device, [](const auto& model,
                                               const auto& group) { return std::make_shared<Made>(model, group); }),
                     device);
  }
}

TEST(DropoutOfRanks, IsTheSameByChoice) {
  const Mask one = mask_of_one_process({});
  for (const Mask& of_rank : masks_of_ranks({}, [](const auto&model, const auto&group) {
         return std::make_shared<DDP>(model, group, DdpOptions{.same_dropout = true});
       }))
    EXPECT_EQ(of_rank, one);
  for (const Mask& of_rank : masks_of_ranks({}, [](const auto&model, const auto&group) {
         FsdpOptions options;
         options.same_dropout = true;
         return std::make_shared<FSDP>(model, group, options);
       }))
    EXPECT_EQ(of_rank, one);
}

TEST(DropoutOfRanks, AGraphDropsWhatARankDrops) {
  for (const DeviceKind kind : tests::test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    const Device device{kind, 0};
    const ThreadGenerators own;
    set_dropout_rank(2);
    manual_seed(kSeed);
    const std::vector<Mask> eager{mask(device), mask(device)};
    manual_seed(kSeed);
    const Tensor ones = Tensor::ones({200}, DType::f32, device), y = empty_like(ones);
    Graph graph;
    graph.capture(device, [&] { y.copy_(dropout(ones)); });
    for (const Mask& want : eager) {
      graph.replay();
      EXPECT_EQ(y.to_vector<float>(), want);
    }
  }
}

}  // namespace
}  // namespace weft::dist::testing
