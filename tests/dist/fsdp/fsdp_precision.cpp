// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/fsdp/fsdp_state.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/embedding.h"
#include "nn/sequential.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/compare.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

/// Without biases: their gradients are bf16 sums over the rank's samples, which are rounded in other places then.
std::shared_ptr<nn::Module> net() {
  const auto linear = [](int64_t in, int64_t out) {
    return std::make_shared<nn::Linear>(in, out, nn::LinearOptions{.bias = false});
  };
  return nn::sequential(linear(6, 16), std::make_shared<nn::LayerNorm>(16), std::make_shared<nn::GELU>(),
                        linear(16, 16), std::make_shared<nn::GELU>(), linear(16, 4));
}

class FsdpPrecision : public ::testing::TestWithParam<Sharding> {
 protected:
  ShardedTraining training(int ranks, MixedPrecision precision) const {
    return {.make = net,
            .parts = equal_parts(10, ranks, 8 / ranks),
            .options = {.strategy = GetParam(),
                        .policy = {.kinds = {"Linear"}},
                        .precision = std::move(precision),
                        .shard_size = GetParam() == Sharding::hybrid_shard ? 2 : 0},
            .dtype = DType::f32};
  }
};

// One process has the same casts (Autocast). Parts are powers of two, so bf16 gradients are the same up to their scale.
// Sums in another order differ by roundings of f32.
TEST_P(FsdpPrecision, EqualsOneProcessUnderAutocast) {
  for (const int ranks : {1, 2, 4}) {
    if (GetParam() == Sharding::hybrid_shard && ranks == 1) continue;
    const ShardedTraining t = training(ranks, {.param = DType::bf16, .reduce = DType::f32});
    const ShardedResult want = train_whole(t);
    expect_equal(train_sharded(t, ranks), want, t);
    ShardedTraining full = t;
    full.options.precision = {};
    EXPECT_FALSE(tests::near(train_whole(full).weights, want.weights, {20 * allowed_error(t), 1})) << "bf16 must show";
  }
}

// Products in 8 bits of the gathered weights. In the first step each rank rounds its samples by its own scale; the next
// steps have all ranks' scale, equal to one process's.
TEST_P(FsdpPrecision, EightBits) {
  ShardedTraining t = training(2, {.param = DType::bf16, .reduce = DType::f32});
  const ShardedResult sixteen = train_whole(t);
  t.make = [] {
    auto model = net();
    nn::use_fp8(*model);
    return model;
  };
  const ShardedResult got = train_sharded(t, 2), want = train_whole(t);
  EXPECT_TRUE(tests::near(got.losses, want.losses, {0x1p-6, 0x1p-5}));
  EXPECT_TRUE(tests::near(want.losses, sixteen.losses, {0x1p-4, 0x1p-3}));
  EXPECT_NE(want.losses, sixteen.losses);
}

// Gradients rounded to bf16 on their way: an error of at most 2^-8 of each step's change.
TEST_P(FsdpPrecision, GradientsMayTravelInLowPrecision) {
  const ShardedTraining t = training(2, {.param = DType::bf16});
  const ShardedResult got = train_sharded(t, 2), want = train_whole(t);
  EXPECT_TRUE(tests::near(got.losses, want.losses, {0x1p-7, 0x1p-5}));
  EXPECT_TRUE(tests::near(got.weights, want.weights, {0x1p-8, 0x1p-6}));
  if (GetParam() != Sharding::no_shard) {
    ShardedTraining wide = t;
    wide.options.precision.reduce = DType::f32;
    EXPECT_NE(train_sharded(wide, 2).weights, got.weights) << "the rounding must show";
  }
}

/// Rows of a table, by the signs of the input.
struct SignRows : nn::Module {
  nn::Embedding table{2, 8};
  Tensor forward(const Tensor& x) const override { return table(ge(x, 0.0).to(DType::i64)).flatten(1); }
  void fields(nn::Visitor& v) override { v("table", table); }
};

// Autocast reads rows in f32, and so do n ranks; a table that is named as a kind has rounded rows.
TEST_P(FsdpPrecision, EmbeddingsAreGatheredInF32UnlessTheyAreNamed) {
  ShardedTraining t = training(2, {.param = DType::bf16, .reduce = DType::f32});
  t.make = [] { return nn::sequential(std::make_shared<SignRows>(), std::make_shared<nn::Linear>(48, 4)); };
  const ShardedResult want = train_whole(t), wide = train_sharded(t, 2);
  expect_equal(wide, want, t);
  t.options.precision.kinds.emplace_back("Embedding");
  const ShardedResult low = train_sharded(t, 2);
  EXPECT_TRUE(tests::near(low.losses, want.losses, {0x1p-6, 0x1p-5}));
  EXPECT_NE(low.losses, wide.losses) << "rounded";
}

INSTANTIATE_TEST_SUITE_P(Strategies, FsdpPrecision,
                         ::testing::Values(Sharding::full_shard, Sharding::shard_grad_op, Sharding::hybrid_shard,
                                           Sharding::no_shard),
                         [](const auto& tested) { return std::string(name(tested.param)); });

/// Keeps its view of its parameters and input.
struct Witness : nn::Module {
  nn::Linear linear{4, 4};
  nn::LayerNorm norm{4};
  Tensor scale = Tensor::ones({4}).requires_grad_();
  mutable std::vector<std::string> seen;
  Tensor forward(const Tensor& x) const override {
    const Tensor y = linear(x), z = norm(y);
    seen = {str(x.dtype()), str(y.dtype()), str(z.dtype()), str((z * scale).dtype())};
    return z;
  }
  void fields(nn::Visitor& v) override {
    v("linear", linear);
    v("norm", norm);
    v("scale", scale);
  }
};

TEST(FsdpPrecision, KindsDecideWhatIsGatheredLow) {
  std::vector<std::shared_ptr<Witness>> models{std::make_shared<Witness>(), std::make_shared<Witness>()};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& model = models[static_cast<size_t>(group->rank())];
    {
      FSDP fsdp(model, group, {.precision = {.param = DType::bf16}});
      fsdp(Tensor::ones({2, 4}));
      EXPECT_EQ(model->seen, (std::vector<std::string>{"bf16", "bf16", "bf16", "f32"}));
      ASSERT_EQ(fsdp.units()[0]->shards().size(), 2u);
      for (const auto& shard : fsdp.units()[0]->shards())
        for (const ShardedParameter& p : shard->parameters())
          EXPECT_EQ(shard->dtype(), p.name.starts_with("linear") ? DType::bf16 : DType::f32) << p.name;
      for (const NamedTensor& p : fsdp.parameters()) EXPECT_EQ(p.tensor.dtype(), DType::f32) << p.name;
      for (const NamedTensor& p : full_state_dict(fsdp).tensors) EXPECT_EQ(p.tensor.dtype(), DType::f32) << p.name;
    }
  });
  std::vector<std::shared_ptr<Witness>> others{std::make_shared<Witness>(), std::make_shared<Witness>()};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& model = others[static_cast<size_t>(group->rank())];
    FSDP fsdp(model, group, {.precision = {.param = DType::bf16, .cast_forward_inputs = false}});
    fsdp(Tensor::ones({2, 4}));
    EXPECT_EQ(model->seen[0], "f32");
    EXPECT_EQ(model->seen[1], "bf16") << "autocast casts where it matters";
    // Without the wrapper nothing says in which precision to run.
    EXPECT_THAT(tests::error_text([&] {
                  (*model)(Tensor::ones({2, 4}));
                }),
                HasSubstr("f32[4,4] on cpu is gathered in bf16 alone, which this op does not read"));
  });
}

TEST(FsdpPrecision, BuffersOfTheNamedKinds) {
  struct Shift : nn::Module {
    Tensor by = Tensor::ones({4});
    void fields(nn::Visitor& v) override { v.buffer("by", by); }
  };
  struct SmallNet : nn::Module {
    nn::Linear linear{4, 4};
    nn::BatchNorm2d norm{4};
    Shift shift;
    void fields(nn::Visitor& v) override {
      v("linear", linear);
      v("norm", norm);
      v("shift", shift);
    }
  };
  const auto net = std::make_shared<SmallNet>();
  const FSDP fsdp(net, make_process_group_alone(),
                  {.precision = {.param = DType::bf16, .buffer = DType::bf16, .kinds = {"Linear", "Shift"}}});
  EXPECT_EQ(net->shift.by.dtype(), DType::bf16);
  EXPECT_EQ(net->norm.running_mean.dtype(), DType::f32);
}

}  // namespace
}  // namespace weft::dist::testing
