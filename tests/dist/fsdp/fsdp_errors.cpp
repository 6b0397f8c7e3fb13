// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_state.h"
#include "nn/activation.h"
#include "nn/sequential.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::error_text;

std::string made(const std::shared_ptr<nn::Module>& model, const FsdpOptions& options) {
  return error_text([&] { const FSDP fsdp(model, make_process_group_alone(), options); });
}

std::shared_ptr<nn::Module> linear() { return std::make_shared<nn::Linear>(3, 2); }

TEST(FsdpErrors, OptionsThatContradict) {
  EXPECT_EQ(made(nullptr, {}), "fsdp: expected a model and a group");
  EXPECT_EQ(made(std::make_shared<nn::ReLU>(), {}), "fsdp: the model has no parameters");
  EXPECT_EQ(made(linear(), {.max_gathered = 0}), "fsdp: expected max_gathered of at least 1, got 0");
  EXPECT_EQ(made(linear(), {.shard_size = 2}), "fsdp: shard_size belongs to hybrid_shard, the strategy is full_shard");
  EXPECT_EQ(made(linear(), {.strategy = Sharding::hybrid_shard, .shard_size = 2}),
            "fsdp: hybrid_shard: a shard_size of 2 does not divide 1 ranks");
  EXPECT_EQ(made(linear(), {.precision = {.param = DType::i64}}),
            "fsdp: mixed precision: expected f32, bf16 or f16, got i64");
  const auto wide = linear();
  wide->to(DType::f64);
  EXPECT_EQ(made(wide, {.precision = {.param = DType::bf16}}), "fsdp: parameters of f64 cannot be gathered in bf16");
  const auto low = linear();
  low->to(DType::bf16);
  EXPECT_EQ(made(low, {}),
            "fsdp: parameter 'weight': expected f32 or f64, got bf16[2,3] on cpu. Use MixedPrecision for a lower "
            "precision");
  const auto mixed = std::make_shared<nn::Linear>(3, 2);
  mixed->bias.set_data(Tensor::zeros({2}, DType::f64));
  EXPECT_EQ(made(mixed, {}),
            "fsdp: expected one dtype and one device, got 'weight' f32[2,3] on cpu and 'bias' f64[2] on cpu");
}

TEST(FsdpErrors, PoliciesThatFitNothing) {
  EXPECT_EQ(made(nn::sequential(linear()), {.policy = {.kinds = {"Linaer"}}}),
            "wrap policy: the model has no module of kind 'Linaer'. Did you mean 'Linear'?");
  EXPECT_EQ(made(linear(), {.policy = {.min_num_params = -1}}), "wrap policy: expected a size of at least 0, got -1");
}

TEST(FsdpErrors, AModelThatIsShardedAlready) {
  const auto model = nn::sequential(linear());
  std::vector<std::shared_ptr<nn::Module>> models{nn::sequential(linear()), nn::sequential(linear())};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& own = models[static_cast<size_t>(group->rank())];
    const FSDP first(own, group);
    EXPECT_EQ(error_text([&] { const FSDP second(own, group); }),
              "fsdp: parameter '0.weight' has no memory. Is the model sharded already?");
  });
}

TEST(FsdpErrors, ModelsThatDifferBetweenRanks) {
  const auto text = [](std::vector<std::shared_ptr<nn::Module>> models) {
    std::vector<std::string> texts(models.size());
    run_ranks(static_cast<int>(models.size()), [&](const ProcessGroupPtr& group) {
      const auto rank = static_cast<size_t>(group->rank());
      texts[rank] = error_text([&] { const FSDP fsdp(models[rank], group); });
    });
    EXPECT_EQ(texts[0], texts[1]);
    return texts[0];
  };
  EXPECT_THAT(text({linear(), std::make_shared<nn::Linear>(4, 2)}),
              AllOf(HasSubstr("fsdp: the model is not the same on all ranks"), HasSubstr("f32[2,3]"),
                    HasSubstr("rank 1 has 'parameter weight f32[2,4]")));
  const auto frozen = std::make_shared<nn::Linear>(3, 2);
  frozen->bias.requires_grad_(false);
  EXPECT_THAT(text({linear(), frozen}), HasSubstr("frozen"));
}

TEST(FsdpErrors, UseAtTheWrongTime) {
  std::vector<std::shared_ptr<nn::Linear>> models{std::make_shared<nn::Linear>(3, 2),
                                                  std::make_shared<nn::Linear>(3, 2)};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& model = models[static_cast<size_t>(group->rank())];
    FSDP fsdp(model, group);
    EXPECT_EQ(error_text([&] { model->weight * model->weight; }),
              "mul: f32[2,3] on cpu has no memory now. A sharded parameter has it only while its unit runs");
    EXPECT_THAT(error_text([&] { model->state_dict(); }), HasSubstr("has no memory now"));
    EXPECT_THAT(error_text([&] { model->forward(Tensor::ones({1, 3})); }), HasSubstr("has no memory now"));
    EXPECT_EQ(error_text([&] {
                fsdp(Tensor::zeros({0, 3}));
              }),
              str("fsdp: expected at least one sample on rank ", group->rank(), ", got 0"));
    EXPECT_EQ(error_text([&] { fsdp.clip_grad_norm(0); }), "fsdp: clip_grad_norm: expected a positive norm, got 0");
    EXPECT_THAT(error_text([&] { optim::Adafactor(fsdp.parameters(), {}); }),
                AllOf(HasSubstr("Adafactor: 'weight' f32["), HasSubstr("is one rank's part")));
    // Weights that change between forward and backward.
    optim::SGD sgd(fsdp.parameters(), {.lr = 0.1});
    const Tensor x = Tensor::ones({2, 3}).requires_grad_();
    const Tensor loss = loss_of(fsdp(x), Tensor::zeros({2, 2}));
    sgd.step();
    EXPECT_THAT(error_text([&] { loss.backward(); }), HasSubstr("which was changed in place after the forward"));
  });
}

}  // namespace
}  // namespace weft::dist::testing
