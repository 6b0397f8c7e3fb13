// SPDX-License-Identifier: Apache-2.0
// Grids of GPUs: FSDP over the data ranks, layers and vocabulary over the model ranks, or layers in stages.
#include <gmock/gmock.h>

#include <cmath>
#include <mutex>

#include "core/ops/binary.h"
#include "core/random.h"
#include "dist/pipeline/pipeline.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "optim/optimizers.h"
#include "tests/dist/several_gpus.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

constexpr int kGridSteps = 2;
constexpr int64_t kGridRows = 4, kGridTokens = 8, kGridWords = 21;

std::shared_ptr<nn::Gpt> grid_gpt() {
  manual_seed(23);
  return std::make_shared<nn::Gpt>(
      nn::GptOptions{.vocabulary = kGridWords, .positions = kGridTokens, .width = 32, .depth = 2, .heads = 2});
}

Tensor grid_tokens(int64_t step, int64_t first, int64_t count, Device device) {
  std::vector<int64_t> ids;
  for (int64_t i = first * kGridTokens; i < (first + count) * kGridTokens; ++i)
    ids.push_back((i * i + 5 * step + i / 3) % kGridWords);
  return Tensor::from(ids, {count, kGridTokens}).to(device);
}

std::unique_ptr<optim::Adam> grid_adam(const std::vector<NamedTensor>& parameters) {
  return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-2, .eps = 1e-3});
}

/// Losses and norms of steps on four GPUs.
struct GridResult {
  std::vector<double> losses, norms;
};

GridResult train_on_four(int model_ranks, int stages, Tokens tokens, Offload offload) {
  GridResult result;
  std::mutex mutex;
  run_on_gpus(4, [&](const ProcessGroupPtr& world) {
    const Device device = gpu(world->rank());
    const Grid grid(world, model_ranks, stages);
    const auto model = grid_gpt();
    divide_blocks(*model, grid.model(), tokens);
    divide_vocabulary(*model, grid.model());
    const FsdpOptions shards{.policy = {.min_num_params = 1000}, .offload = offload, .device = device};
    std::unique_ptr<Pipeline> pipeline;
    std::unique_ptr<TensorParallel> parallel;
    if (stages > 1)
      pipeline = std::make_unique<Pipeline>(model, grid, PipelineOptions{.fsdp = shards, .device = device});
    else
      parallel = std::make_unique<TensorParallel>(model, grid, shards);
    const std::vector<NamedTensor> parameters = pipeline ? pipeline->parameters() : parallel->parameters();
    const auto adam = grid_adam(parameters);
    const int64_t each = kGridRows / grid.data()->size(), first = each * grid.data_rank();
    GridResult own;
    for (int step = 0; step < kGridSteps; ++step) {
      const auto loss_of = [&](const Tensor& y, int64_t at, int64_t count) {
        return parallel_cross_entropy(y, grid_tokens(step + 50, at, count, device), kGridWords, grid.model());
      };
      adam->zero_grad();
      Tensor loss = Tensor::zeros({}, DType::f32, device);
      if (pipeline) {
        std::vector<Tensor> inputs;
        for (int64_t i = 0; i < each; ++i) inputs.push_back(grid_tokens(step, first + i, 1, device));
        pipeline->run({inputs, each, DType::f32, [&](size_t i) {
                         const Tensor part = loss_of((*pipeline)(inputs[i]), first + static_cast<int64_t>(i), 1) *
                                             (1.0 / static_cast<double>(each));
                         loss.add_(part.detach());
                         return part;
                       }});
        pipeline->broadcast_from_last(loss, "loss");
      } else {
        const Tensor mean = loss_of((*parallel)(grid_tokens(step, first, each, device)), first, each);
        mean.backward();
        loss = mean.detach().clone();
      }
      own.norms.push_back(clip_grad_norm(parameters, 0.5).item());
      adam->step();
      grid.data()->all_reduce(loss, ReduceOp::avg, {.name = "loss", .scale = {}})->wait();
      own.losses.push_back(loss.item());
    }
    const std::lock_guard lock(mutex);
    if (world->rank() == 0) result = own;
  });
  return result;
}

TEST_F(SeveralGpus, ShardedPartsAndAShardedPipelineEqualOneProcess) {
  require(4);
  if (IsSkipped()) return;
  const auto model = grid_gpt();
  const auto adam = grid_adam(model->parameters());
  GridResult one;
  for (int step = 0; step < kGridSteps; ++step) {
    adam->zero_grad();
    const Tensor loss =
        cross_entropy((*model)(grid_tokens(step, 0, kGridRows, {})), grid_tokens(step + 50, 0, kGridRows, {}));
    loss.backward();
    one.norms.push_back(clip_grad_norm(model->parameters(), 0.5).item());
    adam->step();
    one.losses.push_back(loss.item());
  }
  // Sums of up to 32 rows, 128 hidden units and two devices' roundings, in f32, over two layers and two steps.
  const tests::Tolerance allowed{1.2e-7 * std::sqrt(32.0 * 128) * 8, 1.2e-7 * std::sqrt(32.0 * 128) * 8};
  for (const auto& [model_ranks, stages, tokens, offload] : {std::tuple{2, 1, Tokens::all, Offload::none},
                                                             {2, 1, Tokens::own, Offload::none},
                                                             {1, 2, Tokens::all, Offload::none},
                                                             {2, 2, Tokens::own, Offload::none},
                                                             {1, 2, Tokens::all, Offload::optimizer},
                                                             {1, 2, Tokens::all, Offload::parameters}}) {
    SCOPED_TRACE(str(model_ranks, " x ", stages, ", offload ", name(offload)));
    const GridResult got = train_on_four(model_ranks, stages, tokens, offload);
    EXPECT_TRUE(tests::near(got.losses, one.losses, allowed));
    EXPECT_TRUE(tests::near(got.norms, one.norms, allowed));
  }
}

}  // namespace
}  // namespace weft::dist::testing
