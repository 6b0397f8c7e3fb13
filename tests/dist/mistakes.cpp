// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/ddp/sync_batch_norm.h"
#include "dist/ddp/zero_redundancy_optimizer.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_state.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "optim/ema.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/error_text.h"

// A user's mistake ends in the right result or in one error, never in other weights.

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

Tensor input() { return samples(0, 0, 2, {6}, DeviceKind::cpu); }
std::shared_ptr<nn::Module> linear_net(uint64_t seed = 1) {
  return build([] { return std::make_shared<nn::Linear>(6, 4); }, seed, DeviceKind::cpu);
}
std::vector<double> gradients(const std::vector<NamedTensor>& parameters) {
  std::vector<double> all;
  for (const NamedTensor& parameter : parameters)
    for (const double number : parameter.tensor.grad().to_vector<double>()) all.push_back(number);
  return all;
}
ZeroRedundancyOptimizer::Maker sgd() {
  return [](const optim::ParameterGroups& parts) {
    return std::make_unique<optim::SGD>(parts, optim::SgdOptions{.lr = 0.1});
  };
}

TEST(Mistakes, ShardedParametersAreNotTheModelsOwn) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    FSDP fsdp(linear_net(), group);
    EXPECT_THAT(error_text([&] { fsdp.module().zero_grad(); }),
                HasSubstr("is sharded by FSDP, and so is its gradient. Call the optimizer's zero_grad()"));
    EXPECT_THAT(error_text([&] { clip_grad_norm(fsdp.module().parameters(), 1); }),
                HasSubstr("is sharded by FSDP. Give fsdp.parameters() instead of model->parameters()"));
    optim::SGD of_shards(fsdp.parameters(), {.lr = 0.1});
    const std::string parts = ": expected whole parameters, got 'weight' and others of which each rank has a part";
    EXPECT_THAT(error_text([&] { DistributedOptimizer(of_shards, group); }),
                HasSubstr("distributed optimizer" + parts));
    EXPECT_THAT(error_text([&] { ZeroRedundancyOptimizer({{.parameters = fsdp.parameters()}}, group, sgd()); }),
                HasSubstr("zero redundancy optimizer" + parts));
    EXPECT_THAT(error_text([&] { group->all_reduce(fsdp.module().parameters()[0].tensor, ReduceOp::sum); }),
                HasSubstr(" has no memory now. A sharded parameter has it only while its unit runs"));
  });
}

TEST(Mistakes, ZeroedGradientsDoNotComeBack) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    FSDP fsdp(linear_net(), group);
    optim::SGD optimizer(fsdp.parameters(), {.lr = 0.1});
    const auto accumulate = [&] {
      const auto kept = fsdp.no_sync();
      sum(fsdp(input())).backward();
    };
    optimizer.zero_grad();
    sum(fsdp(input())).backward();
    const std::vector<double> once = gradients(fsdp.parameters());
    optimizer.zero_grad();
    accumulate();
    sum(fsdp(input())).backward();
    std::vector<double> twice = once;
    for (double& number : twice) number *= 2;
    EXPECT_EQ(gradients(fsdp.parameters()), twice);

    for (int kept = 1; kept < 3; ++kept) {
      optimizer.zero_grad();
      for (int i = 0; i < kept; ++i) accumulate();
      optimizer.zero_grad();
      sum(fsdp(input())).backward();
      EXPECT_EQ(gradients(fsdp.parameters()), once) << kept;
    }
    optimizer.zero_grad();
    accumulate();
    fsdp.parameters()[0].tensor.zero_grad();  // one of the two
    sum(fsdp(input())).backward();
    const std::vector<NamedTensor> all = fsdp.parameters();
    std::vector<double> mixed = gradients({all[0]}), other = gradients({all[1]});
    mixed.insert(mixed.end(), other.begin(), other.end());
    const size_t first = all[0].tensor.grad().to_vector<double>().size();
    for (size_t i = 0; i < mixed.size(); ++i) EXPECT_EQ(mixed[i], i < first ? once[i] : twice[i]) << i;
  });
}

TEST(Mistakes, BackwardBelongsToAForwardOfALivingDdp) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto model = linear_net();
    Tensor loss;
    {
      DDP ddp(model, group);
      loss = sum(ddp(input()));
    }
    EXPECT_EQ(error_text([&] { loss.backward(); }),
              "ddp: backward of a forward whose DDP has gone. Keep it until after backward");
    DDP ddp(linear_net(), group);
    sum(ddp(input())).backward();
    EXPECT_EQ(error_text([&] { sum(ddp.module()(input())).backward(); }),
              "ddp: backward without a forward through this DDP. Call the model by it: ddp(x)");
    sum(ddp(input())).backward();
  });
}

TEST(Mistakes, SamplesAreThoseOfTheNextForward) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto check = [&](auto& parallel, const std::function<void()>& zero) {
      const auto run = [&](bool evaluates) {
        zero();
        if (evaluates) {
          parallel.set_samples(group->rank() == 0 ? 9 : 1);
          const NoGrad no_grad;
          parallel(input());
        }
        sum(parallel(samples(group->rank(), 0, 2, {6}, DeviceKind::cpu))).backward();
        return gradients(parallel.parameters());
      };
      EXPECT_EQ(run(true), run(false));
      zero();
      parallel.set_samples(0);  // on all ranks
      sum(parallel(input())).backward();
      for (const double number : gradients(parallel.parameters())) EXPECT_EQ(number, 0);
      EXPECT_THAT(error_text([&] { parallel.set_samples(-2); }), HasSubstr("dp: expected a number of samples, got -2"));
    };
    DDP ddp(linear_net(), group);
    check(ddp, [&] { ddp.module().zero_grad(); });
    FSDP fsdp(linear_net(), group);
    fsdp.module().eval();  // a forward without gradients is no training then
    optim::SGD optimizer(fsdp.parameters(), {.lr = 0.1});
    check(fsdp, [&] { optimizer.zero_grad(); });
  });
}

TEST(Mistakes, NormsOfEmptyBatchesKeepTheirStatistics) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    nn::BatchNorm2d norm(6);
    const Tensor x = input().requires_grad_();
    const Tensor y = sync_batch_norm(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, {.training = true},
                                     group, /*stand_in=*/true);
    sum(y * 0).backward();
    EXPECT_EQ(norm.running_mean.to_vector<double>(), std::vector<double>(6, 0));
    EXPECT_EQ(norm.running_var.to_vector<double>(), std::vector<double>(6, 1));
    for (const Tensor& tensor : {y, x.grad(), norm.weight.grad()})
      for (const double number : tensor.to_vector<double>()) EXPECT_TRUE(std::isfinite(number));
  });
}

TEST(Mistakes, TwoModelsOfAGroupDoNotMeet) {
  const std::string text = error_text([] {
    run_ranks(2, [](const ProcessGroupPtr& group) {
      DDP first(linear_net(1), group), second(linear_net(2), group);
      const Tensor of_first = sum(first(input())), of_second = sum(second(input()));
      (group->rank() == 0 ? of_first : of_second).backward();
      (group->rank() == 0 ? of_second : of_first).backward();
    });
  });
  EXPECT_THAT(text, HasSubstr("'gradients weight…bias'"));
  EXPECT_THAT(text, HasSubstr("'gradients of model 2: weight…bias'"));
}

TEST(Mistakes, AveragesAndPartsHaveOwners) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    DDP ddp(linear_net(), group);
    ZeroRedundancyOptimizer zero({{.parameters = ddp.parameters()}}, group, sgd());
    const std::string copies =
        "these parameters are a zero redundancy optimizer's copies of its part. Call its own step()";
    EXPECT_THAT(error_text([&] { zero.optimizer().step(); }), HasSubstr(copies));
    EXPECT_THAT(error_text([&] { zero.optimizer().zero_grad(); }), HasSubstr(copies));
    EXPECT_THAT(error_text([&] { clip_grad_norm(zero.optimizer().parameters(0), 1); }), HasSubstr(copies));
    EXPECT_THAT(error_text([&] { optim::Ema(zero.optimizer().flat(), {}, {}); }), HasSubstr(copies));

    optim::Ema ema(zero.flat(), {}, {.decay = 0.5, .warmup = false});
    const auto step = [&] {
      zero.zero_grad();
      sum(ddp(input())).backward();
      zero.step();
    };
    const std::vector<float> before = ddp.parameters()[1].tensor.to_vector<float>();
    step();
    const std::vector<float> after = ddp.parameters()[1].tensor.to_vector<float>();
    ema.update();
    {
      const auto averaged = ema.swapped();
      const std::vector<float> average = ddp.parameters()[1].tensor.to_vector<float>();
      for (size_t i = 0; i < average.size(); ++i) EXPECT_FLOAT_EQ(average[i], (before[i] + after[i]) / 2);
      EXPECT_EQ(error_text([&] { const auto again = ema.swapped(); }), "Ema: swapped: the model has the averages now");
      EXPECT_THAT(error_text(step), HasSubstr("the model has an Ema's averages now. End swapped() first"));
    }
    step();
  });
}

TEST(Mistakes, AnInputInTheOutputIsThisRanksPart) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor all = Tensor::full({4}, group->rank(), DType::f32);
    EXPECT_THAT(error_text([&] { group->all_gather(all, all.slice(0, 2 - 2 * group->rank(), 2)); }),
                HasSubstr("lies in output's memory: expected this rank's part there, or memory of its own"));
    group->all_gather(all, all.slice(0, 2 * group->rank(), 2))->wait();
    EXPECT_EQ(all.to_vector<float>(), (std::vector<float>{0, 0, 1, 1}));
    const Tensor uneven = Tensor::full({3}, group->rank(), DType::f32);
    group
        ->all_gather(uneven, uneven.slice(0, group->rank(), 1 + group->rank()),
                     {.name = "", .scale = {}, .rows = {1, 2}})
        ->wait();
    EXPECT_EQ(uneven.to_vector<float>(), (std::vector<float>{0, 1, 1}));
  });
}

TEST(Mistakes, RanksLoadTheSameWeights) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    FSDP fsdp(linear_net(), group);
    const StateDict before = full_state_dict(fsdp, Receivers::all);
    const StateDict other = linear_net(5 + static_cast<uint64_t>(group->rank()))->state_dict();
    EXPECT_THAT(
        error_text([&] { load_full_state_dict(fsdp, other); }),
        HasSubstr("load_state_dict: the weights are not the same on all ranks: at entry 1 rank 0 has 'weight "));
    EXPECT_EQ(full_state_dict(fsdp, Receivers::all).tensor("weight").to_vector<float>(),
              before.tensor("weight").to_vector<float>());
    load_full_state_dict(fsdp, linear_net(7)->state_dict());
  });
}

}  // namespace
}  // namespace weft::dist::testing
