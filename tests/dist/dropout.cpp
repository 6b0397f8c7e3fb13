// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/graph.h"
#include "core/ops/layers/losses.h"
#include "core/random.h"
#include "dist/ddp/ddp.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/fsdp/fsdp.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/tensor_parallel.h"
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

/// The elements that a single process drops after manual_seed(kSeed).
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

/// Losses of a GPT whose dropout acts, on one batch; each step moves the weights.
std::vector<double> losses_with_dropout(const Grid& grid, int64_t batch) {
  manual_seed(kSeed);
  const auto model = std::make_shared<nn::Gpt>(
      nn::GptOptions{.vocabulary = 11, .positions = 7, .width = 24, .depth = 2, .heads = 12, .dropout = 0.3});
  model->to(DType::f64);
  divide_blocks(*model, grid.model());
  TensorParallel parallel(model, grid);
  optim::SGD sgd(parallel.parameters(), {.lr = 0.5});
  std::vector<int64_t> words;
  for (int64_t i = 0; i < batch * 7; ++i) words.push_back(i * i % 11);
  const Tensor ids = Tensor::from(words, {batch, 7});
  manual_seed(kSeed);
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    const Tensor loss = cross_entropy(parallel(ids), ids);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.item());
  }
  return losses;
}

// Each model rank drops its heads' part of a single process' attention weights (for one sample; for several, equally
// many numbers), and all drop the same of whole activations; another row of the grid drops others.
TEST(DropoutOfRanks, ModelRanksDropWhatOneProcessDrops) {
  const ThreadGenerators own;
  const auto alone = make_process_group_alone();
  const std::vector<double> one = losses_with_dropout(Grid(alone, 1), 1);
  losses_with_dropout(Grid(alone, 1), 3);
  const uint64_t drawn = generator({}).offset;
  for (const int ranks : {2, 3, 4}) {
    std::vector<std::vector<double>> several(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const Grid grid(group, ranks);
      const std::vector<double> losses = losses_with_dropout(grid, 1);
      ASSERT_EQ(losses.size(), one.size());
      for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(losses[i], one[i], 1e-12) << ranks << " ranks, step " << i;
      several[static_cast<size_t>(group->rank())] = losses_with_dropout(grid, 3);
      EXPECT_EQ(generator({}).offset, drawn);
    });
    for (const auto& losses : several) EXPECT_EQ(losses, several[0]);
  }
  run_ranks(4, [&](const ProcessGroupPtr& group) {
    const Grid grid(group, 2);
    const double first = losses_with_dropout(grid, 1).front();
    if (grid.data_rank() == 0) {
      EXPECT_NEAR(first, one[0], 1e-12);
    } else {
      EXPECT_GT(std::abs(first - one[0]), 1e-4);
    }
  });
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
