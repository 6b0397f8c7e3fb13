// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp.h"
#include "dist/fsdp/fsdp_state.h"
#include "nn/linear.h"
#include "nn/module_of.h"
#include "optim/optimizers.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/dist/replicas.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

/// Two inputs of a sample go through layers of their own, one of them a module of several inputs itself.
struct Join : nn::ModuleOf<Tensor> {
  nn::Linear a{3, 5}, b{2, 5};
  Tensor forward_many(const Tensor& x, const Tensor& other) const override { return concat({a(x), b(other)}, 1); }
  void fields(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
  }
};
struct TwoTowers : nn::ModuleOf<Tensor> {
  Join join;
  nn::Linear head{10, 4};
  Tensor forward_many(const Tensor& x, const Tensor& other) const override { return head(tanh(join(x, other))); }
  void fields(nn::Visitor& v) override {
    v("join", join);
    v("head", head);
  }
};

std::shared_ptr<TwoTowers> make() {
  manual_seed(3);
  auto model = std::make_shared<TwoTowers>();
  model->to(DType::f64);
  return model;
}

/// Samples of the whole batch: another function of the place for each column.
Tensor wave(int64_t columns, double step) {
  std::vector<double> values(static_cast<size_t>(6 * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * static_cast<double>(i + 1));
  return Tensor::from(values, {6, columns});
}

/// Four steps on samples `first` … `first + count - 1`, of which `forward` makes the outputs.
template <class Forward>
void train(const std::vector<NamedTensor>& parameters, const Forward& forward, int64_t first, int64_t count) {
  optim::SGD sgd(parameters, {.lr = 0.2, .momentum = 0.9});
  const auto mine = [&](int64_t columns, double step) { return wave(columns, step).slice(0, first, count); };
  for (int step = 0; step < 4; ++step) {
    sgd.zero_grad();
    loss_of(forward(mine(3, 0.7 + step), mine(2, 0.3 + step)), mine(4, 0.9)).backward();
    sgd.step();
  }
}

/// Ranks with 2 and 4 samples, by `Parallel`, equal one process with all 6.
template <class Parallel, class State>
void expect_ranks_equal_one(const typename Parallel::Options& options, const State& state) {
  const auto whole = make();
  train(
      whole->parameters(), [&](const Tensor& x, const Tensor& other) { return (*whole)(x, other); }, 0, 6);
  const std::vector<double> want = values_of(whole->state_dict());
  std::vector<std::shared_ptr<TwoTowers>> models{make(), make()};
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const int rank = group->rank();
    typename Parallel::Type parallel(models[static_cast<size_t>(rank)], group, options);
    train(
        parallel.parameters(), [&](const Tensor& x, const Tensor& other) { return parallel(x, other); },
        rank == 0 ? 0 : 2, rank == 0 ? 2 : 4);
    const std::vector<double> got = values_of(state(parallel));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
    EXPECT_EQ(weft::error_text([&] { parallel(wave(3, 1), 1.5); }), "TwoTowers: expected a ModuleOf for these 2 inputs");
  });
}

struct Replicas {
  using Type = DDP;
  using Options = DdpOptions;
};
struct Shards {
  using Type = FSDP;
  using Options = FsdpOptions;
};

TEST(SeveralInputs, UnderDdpRanksEqualOne) {
  expect_ranks_equal_one<Replicas>({.bucket_mb = 0.0002, .first_bucket_mb = 0.0001},
                                   [](DDP& ddp) { return ddp.module().state_dict(); });
}

TEST(SeveralInputs, UnderFsdpRanksEqualOne) {  // units around a module of several inputs, too
  for (const std::vector<std::string>& kinds : {std::vector<std::string>{"Join"}, {"Linear"}})
    expect_ranks_equal_one<Shards>({.policy = {.kinds = kinds}},
                                   [](FSDP& fsdp) { return full_state_dict(fsdp, Receivers::all); });
}

TEST(SeveralInputs, UnderFsdpTakeThePrecisionOfTheForward) {
  run_ranks(1, [&](const ProcessGroupPtr& group) {
    struct Kinds : nn::ModuleOf<Tensor, Tensor> {
      nn::Linear layer{3, 3};
      mutable std::vector<DType> seen;
      Tensor forward_many(const Tensor& x, const Tensor& y, const Tensor& index) const override {
        seen = {x.dtype(), y.dtype(), index.dtype()};
        return layer(x) + y;
      }
      void fields(nn::Visitor& v) override { v("layer", layer); }
    };
    const auto model = std::make_shared<Kinds>();
    FSDP fsdp(model, group, {.precision = {.param = DType::bf16}});
    fsdp(Tensor::ones({2, 3}), Tensor::ones({2, 3}), Tensor::zeros({2}, DType::i64));
    EXPECT_EQ(model->seen, (std::vector<DType>{DType::bf16, DType::bf16, DType::i64}));
  });
}

}  // namespace
}  // namespace weft::dist::testing
