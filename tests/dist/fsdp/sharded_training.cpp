// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/fsdp/sharded_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp_state.h"
#include "optim/ema.h"
#include "optim/layer_decay.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

constexpr double kMomentum = 0.9, kRate = 0.05;

std::unique_ptr<optim::Optimizer> make_optimizer(const ShardedTraining& t, const std::vector<NamedTensor>& parameters) {
  if (t.layer_decay) {
    auto adam = std::make_unique<optim::AdamW>(
        optim::by_layer(parameters, {.lr = 0.01, .factor = 0.5, .weight_decay = 0.1}), optim::AdamWOptions{});
    for (int group = 0; group < adam->groups(); ++group)
      EXPECT_LE(adam->flat()->ranges(adam->parameters(group)).size(), 1u) << "launches of group " << group;
    return adam;
  }
  if (t.by_norms == "lars")
    return std::make_unique<optim::LARS>(optim::without_decay_on_vectors(parameters),
                                         optim::LarsOptions{.lr = 0.5, .weight_decay = 0.1, .trust = 0.05});
  if (t.by_norms == "lamb")
    return std::make_unique<optim::LAMB>(optim::without_decay_on_vectors(parameters),
                                         optim::LambOptions{.lr = 0.02, .eps = 1e-3, .weight_decay = 0.1});
  if (t.adam)
    return std::make_unique<optim::AdamW>(optim::without_decay_on_vectors(parameters),
                                          optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1});
  return std::make_unique<optim::SGD>(parameters, optim::SgdOptions{.lr = kRate, .momentum = kMomentum});
}

/// Samples before and of this rank.
std::pair<int64_t, int64_t> range_of(const std::vector<int64_t>& parts, int rank) {
  return {std::accumulate(parts.begin(), parts.begin() + rank, int64_t{0}), parts[static_cast<size_t>(rank)]};
}

std::unique_ptr<optim::Ema> make_averages(const ShardedTraining& t, const optim::Optimizer& optimizer,
                                          nn::Module& model) {
  if (!t.averaged) return nullptr;
  return std::make_unique<optim::Ema>(optimizer.flat(), model.buffers(), optim::EmaOptions{.decay = 0.7});
}

}  // namespace

std::shared_ptr<nn::Module> make_model(const ShardedTraining& t) {
  manual_seed(11);
  std::shared_ptr<nn::Module> model = t.make();
  if (t.dtype != DType::f32) model->to(t.dtype);
  model->to(t.device);
  model->train(!t.evaluation);
  return model;
}

Tensor Block::forward(const Tensor& x) const {
  const auto body = [this](const std::vector<Tensor>& in) { return fc2(gelu(fc1(norm(in[0])))); };
  return x + (checkpointed ? checkpoint(body, {x}) : body({x}));
}

void Block::fields(nn::Visitor& v) {
  v("norm", norm);
  v("fc1", fc1);
  v("fc2", fc2);
}

Tower::Tower(int64_t in, int64_t width, int count, int64_t out) : stem(in, width), norm(width), head(width, out) {
  for (int i = 0; i < count; ++i) blocks.push_back(std::make_shared<Block>(width));
}

Tensor Tower::forward(const Tensor& x) const {
  Tensor y = stem(x);
  for (int round = 0; round < (twice ? 2 : 1); ++round)
    for (const auto& block : blocks)
      y = checkpoint_blocks ? checkpoint([&block](const std::vector<Tensor>& in) { return (*block)(in[0]); }, {y})
                            : (*block)(y);
  return head(norm(y));
}

void Tower::fields(nn::Visitor& v) {
  v("stem", stem);
  v("blocks", blocks);
  v("norm", norm);
  v("head", head);
}

std::vector<std::vector<int64_t>> equal_parts(int steps, int ranks, int64_t each) {
  return std::vector<std::vector<int64_t>>(static_cast<size_t>(steps),
                                           std::vector<int64_t>(static_cast<size_t>(ranks), each));
}

std::vector<std::vector<int64_t>> unequal_parts(int steps, int ranks) {
  auto parts = equal_parts(steps, ranks, 0);
  for (size_t step = 0; step < parts.size(); ++step)
    for (size_t rank = 0; rank < parts[step].size(); ++rank)
      parts[step][rank] = 1 + static_cast<int64_t>((2 * rank + 3 * step) % 5);
  return parts;
}

std::pair<Tensor, Tensor> data_of(const ShardedTraining& t, size_t batch) {
  const int64_t samples = std::accumulate(t.parts[batch].begin(), t.parts[batch].end(), int64_t{0});
  Shape sizes{samples};
  for (const int64_t size : t.sample) sizes.push_back(size);
  // A function of the batch alone: ranks are threads, which share the generators.
  const auto wave = [batch](const Shape& of, double step, double phase) {
    std::vector<double> values(static_cast<size_t>(of.numel()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(step * static_cast<double>(i + 1) * static_cast<double>(batch + 1) + phase);
    return Tensor::from(values, of);
  };
  const Tensor x = wave(sizes, 0.737, 0.1), target = wave({samples, t.outputs}, 0.413, 0.7);
  return {x.to(t.dtype).to(t.device), target.to(t.dtype).to(t.device)};
}

Tensor loss_of(const Tensor& y, const Tensor& target) { return mean(square(y.to(target.dtype()) - target)); }

namespace {

/// FSDP or DDP, as the training says.
struct Parallel {
  Parallel(const ShardedTraining& t, const std::shared_ptr<nn::Module>& model, const ProcessGroupPtr& group) {
    if (t.layer_decay && t.replicas)
      flat = FlatParameters::of(optim::in_order(optim::by_layer(model->parameters(), {})));
    if (t.replicas)
      ddp = std::make_unique<DDP>(model, group, DdpOptions{.bucket_mb = 0.002, .first_bucket_mb = 0.0005});
    else
      fsdp = std::make_unique<FSDP>(model, group, t.options);
  }
  std::vector<NamedTensor> parameters() const { return fsdp ? fsdp->parameters() : ddp->parameters(); }
  Tensor operator()(const Tensor& x) const { return fsdp ? (*fsdp)(x) : (*ddp)(x); }
  StateDict state() const { return fsdp ? full_state_dict(*fsdp) : ddp->module().state_dict(); }
  /// While it is held, gradients stay with the rank.
  std::shared_ptr<void> no_sync() const { return fsdp ? fsdp->no_sync() : ddp->no_sync(); }
  std::shared_ptr<FlatParameters> flat;
  std::unique_ptr<FSDP> fsdp;
  std::unique_ptr<DDP> ddp;
};

}  // namespace

ShardedResult train_rank(const ShardedTraining& t, const std::shared_ptr<nn::Module>& model,
                         const ProcessGroupPtr& group) {
  const int rank = group->rank();
  if (t.prepare) t.prepare(*model, group);
  const Parallel parallel(t, model, group);
  const auto optimizer = make_optimizer(t, parallel.parameters());
  const auto averages = make_averages(t, *optimizer, *model);
  ShardedResult result;
  for (size_t batch = 0; batch < t.parts.size();) {
    optimizer->zero_grad();
    for (int micro = 0; micro < t.micro_batches; ++micro, ++batch) {
      const auto [begin, count] = range_of(t.parts[batch], rank);
      const int64_t total = std::accumulate(t.parts[batch].begin(), t.parts[batch].end(), int64_t{0});
      const auto [x, target] = data_of(t, batch);
      std::shared_ptr<void> no_sync;
      if (t.unsharded && micro + 1 < t.micro_batches) no_sync = parallel.no_sync();
      const Tensor loss = loss_of(parallel(x.slice(0, begin, count)), target.slice(0, begin, count));
      loss.backward();
      result.losses.push_back(loss.item() * static_cast<double>(count) / static_cast<double>(total));
    }
    if (t.clip > 0) {
      // The function of one process: it knows that these are shards.
      const double norm = clip_grad_norm(parallel.parameters(), t.clip).item();
      if (rank == 0) result.norms.push_back(norm);
    }
    optimizer->step();
    if (averages) averages->update();
  }
  const Tensor losses = Tensor::from(result.losses).to(t.device);  // where its backend works
  group->all_reduce(losses, ReduceOp::sum, {.name = "losses", .scale = {}})->wait();
  result.losses = losses.to_vector<double>();
  if (averages) averages->adopt();
  const StateDict dict = parallel.state();
  if (rank == 0) result.weights = values_of(dict);
  return result;
}

ShardedResult train_sharded(const ShardedTraining& t, int ranks) {
  std::vector<std::shared_ptr<nn::Module>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(make_model(t));
  ShardedResult result;
  run_on(t.backend, ranks, [&](const ProcessGroupPtr& group) {
    ShardedResult own = train_rank(t, models[static_cast<size_t>(group->rank())], group);
    if (group->rank() == 0) result = std::move(own);
  });
  return result;
}

ShardedResult train_whole(const ShardedTraining& t) {
  const std::shared_ptr<nn::Module> model = make_model(t);
  const auto optimizer = make_optimizer(t, model->parameters());
  const auto averages = make_averages(t, *optimizer, *model);
  const MixedPrecision& precision = t.options.precision;
  ShardedResult result;
  for (size_t batch = 0; batch < t.parts.size();) {
    optimizer->zero_grad();
    for (int micro = 0; micro < t.micro_batches; ++micro, ++batch) {
      const auto [x, target] = data_of(t, batch);
      Tensor y;
      if (precision.param == DType::f32) {
        y = (*model)(x);
      } else {
        const Autocast autocast(precision.param);
        y = (*model)(precision.cast_forward_inputs ? x.to(precision.param) : x);
      }
      const Tensor loss = loss_of(y, target);
      loss.backward();
      result.losses.push_back(loss.item());
    }
    if (t.clip > 0) result.norms.push_back(clip_grad_norm(model->parameters(), t.clip).item());
    optimizer->step();
    if (averages) averages->update();
  }
  if (averages) averages->adopt();
  result.weights = values_of(model->state_dict());
  return result;
}

double allowed_error(const ShardedTraining& t) {
  double additions = 0;
  for (const auto& batch : t.parts)
    for (const int64_t part : batch)
      additions += static_cast<double>(part * (t.sample.rank() > 1 ? t.sample.numel() : 1));
  return tests::tolerance(t.dtype, static_cast<int64_t>(additions)).norm;
}

void expect_equal(const ShardedResult& got, const ShardedResult& want, const ShardedTraining& t) {
  const tests::Tolerance allowed{allowed_error(t), 4 * allowed_error(t)};
  EXPECT_TRUE(tests::near(got.losses, want.losses, allowed)) << "losses";
  EXPECT_TRUE(tests::near(got.norms, want.norms, allowed)) << "norms";
  EXPECT_TRUE(tests::near(got.weights, want.weights, allowed)) << "weights";
}

}  // namespace weft::dist::testing
