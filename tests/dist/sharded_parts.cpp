// SPDX-License-Identifier: Apache-2.0
// FSDP over the data ranks of a grid, whose model ranks divide layers, vocabulary and tokens.
#include <gmock/gmock.h>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/tensor/parallel_block.h"
#include "dist/tensor/parallel_embedding.h"
#include "dist/tensor/parallel_region.h"
#include "dist/tensor/tensor_parallel_state.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;
using tests::error_text;

constexpr int64_t kWords = 131, kPlaces = 12;

nn::GptOptions gpt_sizes() { return {.vocabulary = kWords, .positions = kPlaces, .width = 64, .depth = 3, .heads = 4}; }

/// Each call gives the same model; a group of several ranks divides it.
std::shared_ptr<nn::Gpt> make_gpt(const ProcessGroupPtr& group, DType dtype, Tokens tokens = Tokens::all,
                                  const nn::GptOptions& sizes = gpt_sizes()) {
  const auto model = build([&] { return std::make_shared<nn::Gpt>(sizes); }, 17, DeviceKind::cpu);
  model->to(dtype);
  const auto gpt = std::dynamic_pointer_cast<nn::Gpt>(model);
  if (group) divide_blocks(*gpt, group, tokens), divide_vocabulary(*gpt, group);
  return gpt;
}

Tensor tokens_of(int step, int64_t first, int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = first * kPlaces; i < (first + count) * kPlaces; ++i)
    ids.push_back((i * i * 7 + step * 11 + i / 3) % kWords);
  return Tensor::from(ids, {count, kPlaces});
}

struct PartsTrained {
  std::vector<double> losses, norms, weights;
};

constexpr int kRounds = 5;
constexpr int64_t kSequences = 8;

struct Way {
  int data = 1, model = 1;
  DType dtype = DType::f64, low = DType::f32;
  FsdpOptions options = {};
  bool shards = true, recompute = false;
  int accumulate = 1;
  Tokens tokens = Tokens::all;
};

PartsTrained train_one_process(const Way& way) {
  const auto model = make_gpt(nullptr, way.dtype);
  optim::AdamW adam(model->parameters(), {.lr = 1e-2, .eps = 1e-4, .weight_decay = 0.1});
  PartsTrained trained;
  for (int step = 0; step < kRounds; ++step) {
    Tensor y;
    {
      const Autocast low(way.low);
      y = (*model)(tokens_of(step, 0, kSequences));
    }
    const Tensor loss = cross_entropy(y, tokens_of(step + 50, 0, kSequences));
    adam.zero_grad();
    loss.backward();
    trained.norms.push_back(clip_grad_norm(model->parameters(), 0.5).item());
    adam.step();
    trained.losses.push_back(loss.item());
  }
  trained.weights = values_of(model->state_dict());
  return trained;
}

PartsTrained train_grid(const Way& way) {
  PartsTrained result;
  run_ranks(way.data * way.model, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, way.model);
    nn::GptOptions sizes = gpt_sizes();
    sizes.recompute = way.recompute;
    const auto model = make_gpt(grid.model(), way.dtype, way.tokens, sizes);
    TensorParallel parallel =
        way.shards ? TensorParallel(model, grid, way.options) : TensorParallel(model, grid, DdpOptions{});
    optim::AdamW adam(parallel.parameters(), {.lr = 1e-2, .eps = 1e-4, .weight_decay = 0.1});
    const int64_t each = kSequences / way.data / way.accumulate;
    PartsTrained own;
    for (int step = 0; step < kRounds; ++step) {
      adam.zero_grad();
      double sum = 0;
      for (int part = 0; part < way.accumulate; ++part) {
        const auto guard = part + 1 < way.accumulate ? parallel.no_sync() : nullptr;
        const int64_t first = each * (grid.data_rank() * way.accumulate + part);
        Tensor y;
        {
          const Autocast low(way.low);
          y = parallel(tokens_of(step, first, each));
        }
        const Tensor loss =
            parallel_cross_entropy(y, tokens_of(step + 50, first, each), kWords, grid.model()) * (1.0 / way.accumulate);
        loss.backward();
        sum += loss.item();
      }
      own.norms.push_back(parallel.clip_grad_norm(0.5).item());
      adam.step();
      const Tensor mean = Tensor::full({}, sum, DType::f64);
      grid.data()->all_reduce(mean, ReduceOp::avg, {.name = "loss", .scale = {}})->wait();
      own.losses.push_back(mean.item());
    }
    own.weights = values_of(full_state_dict(parallel));
    if (world->rank() == 0) result = own;
  });
  return result;
}

void expect_near(const PartsTrained& got, const PartsTrained& want, double allowed) {
  const tests::Tolerance tolerance{allowed, allowed};
  EXPECT_TRUE(tests::near(got.losses, want.losses, tolerance)) << "losses";
  EXPECT_TRUE(tests::near(got.norms, want.norms, tolerance)) << "norms";
  EXPECT_TRUE(tests::near(got.weights, want.weights, tolerance)) << "weights";
}

const FsdpOptions kBlocksAreUnits{.policy = {.kinds = {"ParallelGptBlock"}}};

// In f64 nothing but the order of sums differs; Adam's eps is far above the roundings.
TEST(ShardedParts, EveryGridTrainsAsOneProcess) {
  const PartsTrained one = train_one_process({});
  EXPECT_GT(one.norms[0], 0.5);
  for (const auto& [data, model] : {std::pair{2, 2}, {1, 4}, {4, 2}})
    for (const bool shards : {true, false})
      for (const Tokens tokens : {Tokens::all, Tokens::own}) {
        SCOPED_TRACE(str(data, " x ", model, shards ? ", sharded" : "", tokens == Tokens::own ? ", own tokens" : ""));
        const Way way{.data = data, .model = model, .options = kBlocksAreUnits, .shards = shards, .tokens = tokens};
        expect_near(train_grid(way), one, 1e-11);
      }
}

TEST(ShardedParts, EveryOptionTrainsAsOneProcess) {
  const PartsTrained one = train_one_process({});
  const Way way{.data = 2, .model = 2, .options = kBlocksAreUnits};
  const auto with = [&](const std::function<void(Way&)>& change) {
    Way changed = way;
    change(changed);
    expect_near(train_grid(changed), one, 1e-11);
  };
  with([](Way& w) { w.accumulate = 2; });
  with([](Way& w) { w.accumulate = 2, w.options.sharded_accumulation = true; });
  with([](Way& w) { w.recompute = true; });
  with([](Way& w) { w.options.strategy = Sharding::shard_grad_op; });
  with([](Way& w) { w.options.strategy = Sharding::no_shard; });
  with([](Way& w) { w.data = 4, w.options.strategy = Sharding::hybrid_shard, w.options.shard_size = 2; });
  with([](Way& w) { w.options.policy = {.min_num_params = 1}; });
  with([](Way& w) { w.options.policy = {.min_num_params = 1}, w.tokens = Tokens::own, w.recompute = true; });
  with([](Way& w) { w.options.policy = {.min_num_params = 1'000'000'000}; });
}

// Weights of the products are gathered in bf16, as each product would round them: replicas' steps up to f32 sums.
TEST(ShardedParts, LowPrecisionIsThatOfReplicas) {
  Way way{.data = 2, .model = 2, .dtype = DType::f32, .low = DType::bf16, .options = kBlocksAreUnits};
  way.options.precision = {.param = DType::bf16, .reduce = DType::f32};
  const PartsTrained shards = train_grid(way);
  way.tokens = Tokens::own;
  const PartsTrained own_tokens = train_grid(way);
  way.tokens = Tokens::all;
  way.shards = false;
  const PartsTrained replicas = train_grid(way);
  EXPECT_EQ(shards.losses[0], replicas.losses[0]) << "the same products";
  // A sum of f32 in another order may round to another bf16, and a gradient to bf16 or f32.
  constexpr double kRounding = 1.0 / 256;
  const tests::Tolerance allowed{kRounding, kRounding};
  EXPECT_TRUE(tests::near(shards.losses, replicas.losses, allowed)) << "losses";
  EXPECT_TRUE(tests::near(own_tokens.losses, replicas.losses, allowed)) << "losses of own tokens";
  EXPECT_TRUE(tests::near(shards.losses, train_one_process(way).losses, allowed)) << "losses of one process";
}

TEST(ShardedParts, OfProductsAreGatheredInTheirPrecision) {
  run_ranks(4, [](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    FsdpOptions options = kBlocksAreUnits;
    options.precision.param = DType::bf16;
    TensorParallel parallel(make_gpt(grid.model(), DType::f32), grid, options);
    size_t low = 0;
    for (const auto& unit : parallel.fsdp()->units())
      for (const auto& shard : unit->shards())
        if (shard->dtype() == DType::bf16)
          for (const ShardedParameter& p : shard->parameters()) low += static_cast<size_t>(p.numel);
    const int64_t w = gpt_sizes().width;
    EXPECT_EQ(low, static_cast<size_t>(gpt_sizes().depth * (12 * w * w / 2 + 7 * w / 2 + 2 * w)))
        << "each rank's part of qkv, proj, c_fc and c_proj";
  });
}

// A rank of four has a quarter of weights, gradients and moments. Norms, positions and biases after a sum are halved:
// only the data ranks divide them.
TEST(ShardedParts, HoldAQuarterOfTheState) {
  const auto one = make_gpt(nullptr, DType::f32);
  constexpr size_t kCopies = 4;
  const size_t of_one = kCopies * sizeof(float) * static_cast<size_t>(nn::parameter_count(*one));
  run_ranks(4, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    TensorParallel parallel(make_gpt(grid.model(), DType::f32), grid, kBlocksAreUnits);
    optim::AdamW adam(parallel.parameters(), {.lr = 1e-3});
    sum(parallel(tokens_of(0, 0, 1))).backward();
    adam.step();
    const std::shared_ptr<FlatParameters>& flat = parallel.fsdp()->flat();
    size_t bytes = flat->master().nbytes() + flat->gradient().nbytes();
    for (const NamedTensor& moment : adam.state_dict().tensors) bytes += moment.tensor.nbytes();
    size_t whole = 0;
    for (const NamedTensor& p : parallel.module().parameters())
      if (parallel.partition(p.name).is_whole()) whole += kCopies * p.tensor.nbytes();
    EXPECT_LT(whole, of_one / 20);
    EXPECT_GE(bytes, of_one / 4);
    EXPECT_LE(bytes, of_one / 4 + whole / 4 + of_one / 100);
    EXPECT_EQ(parallel.fsdp()->gathered_bytes(), 0u) << "between steps nothing is gathered";
  });
}

// No process draws a model whole: a part is written when its unit is sent.
TEST(ShardedParts, OfDeferredWeightsAreThoseOfOneDraw) {
  const auto values = [](bool deferred) {
    std::vector<double> result;
    run_ranks(4, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 2);
      nn::DeferredInit later;
      FsdpOptions options = kBlocksAreUnits;
      if (deferred) options.deferred = &later;
      std::shared_ptr<nn::Gpt> model;
      {
        const ThreadGenerators generators;
        manual_seed(5);
        const nn::DeferredInit::Scope scope(deferred ? &later : nullptr);
        model = std::make_shared<nn::Gpt>(gpt_sizes());
        divide_blocks(*model, grid.model());
        divide_vocabulary(*model, grid.model());
      }
      if (deferred) {
        EXPECT_GT(later.pending(), 0u);
      }
      TensorParallel parallel(model, grid, options);
      const StateDict full = full_state_dict(parallel);
      if (world->rank() == 0) result = values_of(full);
    });
    return result;
  };
  EXPECT_EQ(values(true), values(false));
}

TEST(ShardedParts, RankZeroOfARowDecidesWhatIsWhole) {
  run_ranks(4, [](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    const auto model = make_gpt(grid.model(), DType::f32);
    const auto fill = [&](const std::vector<NamedTensor>& tensors) {
      const NoGrad no_grad;
      for (const NamedTensor& each : tensors) each.tensor.detach().fill_(world->rank());
    };
    fill(model->parameters());
    TensorParallel parallel(model, grid, kBlocksAreUnits);
    const auto expect = [&](double whole, double part) {
      for (const NamedTensor& shard : parallel.parameters()) {
        const bool is_whole = parallel.partition(shard.name).is_whole();
        EXPECT_THAT(shard.tensor.to_vector<float>(), ::testing::Each(is_whole ? whole : part)) << shard.name;
      }
    };
    expect(0, world->rank() % 2);
    fill(parallel.parameters());
    parallel.synchronise();
    expect(world->rank() / 2 * 2, world->rank());
  });
}

TEST(ShardedParts, SayWhatTheyAre) {
  run_ranks(2, [](const ProcessGroupPtr& world) {
    TensorParallel parallel(make_gpt(Grid(world, 2).model(), DType::f32), Grid(world, 2), kBlocksAreUnits);
    EXPECT_TRUE(parallel.is_sharded());
    EXPECT_TRUE(parallel.has_pieces());
    EXPECT_THAT(parallel.describe(), HasSubstr("tensor, 1 data x 2 model ranks, fsdp full_shard, 4 units"));
    EXPECT_EQ(parallel.ddp(), nullptr);
  });
}

// --- Tokens of the ranks ---

// Norms, dropout and sums of a block see a rank's tokens; as many bytes travel as with whole ones.
TEST(OwnTokens, DivideActivationsAndNotMessages) {
  for (const int ranks : {2, 4})
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto sent = [&](Tokens tokens) {
        const auto model = make_gpt(group, DType::f32, tokens);
        std::vector<int64_t> seen;
        for (const auto& [path, module] : model->modules())
          if (path.ends_with("ln_1") || path.ends_with("ln_2"))
            module->register_hooks([&](const nn::Module&, const Tensor& x) { seen.push_back(x.size(1)); }, {});
        const uint64_t before = group->bytes_sent();
        const Tensor y = (*model)(tokens_of(0, 0, 2));
        EXPECT_THAT(seen, ::testing::Each(tokens == Tokens::own ? kPlaces / ranks : kPlaces));
        EXPECT_EQ(seen.size(), 2u * static_cast<size_t>(gpt_sizes().depth));
        return group->bytes_sent() - before;
      };
      const auto n = static_cast<uint64_t>(ranks);
      const uint64_t joined = (n - 1) * 2 * kPlaces * 64 * sizeof(float) / n;  // once, behind the last block
      EXPECT_EQ(sent(Tokens::own), sent(Tokens::all) + joined);
    });
}

// With a single sample the ranks drop the elements of a single process. With several they draw equally many numbers.
TEST(OwnTokens, DropWhatOneProcessDrops) {
  nn::GptOptions sizes = gpt_sizes();
  sizes.dropout = 0.3;
  const auto loss_of = [&](const ProcessGroupPtr& group, int64_t batch) {
    const auto model = make_gpt(group, DType::f64, Tokens::own, sizes);
    const ThreadGenerators generators;
    set_dropout_rank(0);
    manual_seed(9);
    const Tensor loss = model->loss(tokens_of(0, 0, batch), tokens_of(1, 0, batch));
    return std::pair(loss.item(), generator({}).offset);
  };
  const auto one = loss_of(nullptr, 1), three = loss_of(nullptr, 3);
  for (const int ranks : {2, 4})
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto [loss, drawn] = loss_of(group, 1);
      EXPECT_NEAR(loss, one.first, 1e-12);
      EXPECT_EQ(drawn, one.second);
      EXPECT_EQ(loss_of(group, 3).second, three.second);
    });
}

TEST(OwnTokens, HaveSecondDerivatives) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const double own = group->rank() + 1;
    const Tensor x = Tensor::full({1, 2, 3}, 2, DType::f64).requires_grad_(), mine = own_tokens(x, group);
    EXPECT_EQ(mine.sizes(), (Shape{1, 1, 3}));
    const Tensor inside = gather_into_region(mine, group) * own;
    const Tensor y = all_tokens(scatter_from_region(inside * inside * inside, group), group);  // (1 + 8) x^3
    EXPECT_EQ(y.to_vector<double>(), std::vector<double>(6, 9 * 8));
    const Tensor slope = autograd::grad({sum(y)}, {x}, {.create_graph = true})[0];
    EXPECT_EQ(slope.to_vector<double>(), std::vector<double>(6, 9 * 3 * 4));
    sum(slope).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), std::vector<double>(6, 9 * 6 * 2));
  });
}

/// Loss and gradients, of `length` tokens a row; with `packed` two documents share a row.
std::pair<double, StateDict> gradients_of_gpt(const ProcessGroupPtr& group, Tokens tokens, int64_t length,
                                              bool packed) {
  const auto model = make_gpt(group, DType::f64, tokens);
  const Tensor ids = tokens_of(0, 0, 2).slice(1, 0, length).contiguous();
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < 2 * length; ++i) starts.push_back(i % length < 2 + i / length ? 0 : 2 + i / length);
  const Tensor sample = packed ? stack({ids, Tensor::from(starts, {2, length})}, 1) : ids;
  const Tensor next = tokens_of(1, 0, 2).slice(1, 0, length).contiguous();
  const Tensor loss =
      group ? parallel_cross_entropy((*model)(sample), next, kWords, group) : cross_entropy((*model)(sample), next);
  loss.backward();
  StateDict gradients;
  for (const NamedTensor& p : model->parameters()) gradients.tensors.push_back({p.name, p.tensor.grad()});
  return {loss.item(), gradients};
}

// Any number of tokens, also fewer than ranks, and rows of several documents.
TEST(OwnTokens, HaveTheGradientsOfOneProcess) {
  for (const int64_t length : {12, 11, 9, 5, 3})
    for (const bool packed : {false, true}) {
      const auto [loss, whole] = gradients_of_gpt(nullptr, Tokens::all, length, packed);
      for (const int ranks : {2, 4})
        run_ranks(ranks, [&, loss = loss, &whole = whole](const ProcessGroupPtr& group) {
          for (const Tokens tokens : {Tokens::all, Tokens::own}) {
            SCOPED_TRACE(str(length, " tokens", packed ? ", packed" : "", ", ", ranks, " ranks"));
            const auto [own_loss, own] = gradients_of_gpt(group, tokens, length, packed);
            EXPECT_NEAR(own_loss, loss, 1e-12);
            for (size_t i = 0; i < whole.tensors.size(); ++i) {
              const auto& [name, want] = whole.tensors[i];
              const Tensor got = own.tensors[i].tensor;
              if (got.sizes() != want.sizes()) continue;  // a part: see the grids
              EXPECT_TRUE(tests::near(got.to_vector<double>(), want.to_vector<double>(), {1e-11, 1e-11})) << name;
            }
          }
        });
    }
}

// --- A divided vocabulary ---

/// This rank's share of the columns.
Tensor share_of(const Tensor& logits, const ProcessGroup& group) {
  const auto [first, count] = Partition::share(logits.size(-1), group.rank(), group.size());
  return logits.slice(-1, first, count);
}

class DividedLoss : public ::testing::TestWithParam<std::tuple<DeviceKind, DType, int>> {};

TEST_P(DividedLoss, IsCrossEntropy) {
  const auto [kind, dtype, ranks] = GetParam();
  const Device device{kind, 0};
  constexpr int64_t kRows = 6, kAllClasses = 11;
  std::vector<double> values;
  for (int64_t i = 0; i < kRows * kAllClasses; ++i) values.push_back(40 * std::sin(static_cast<double>(3 * i + 1)));
  const Tensor logits = Tensor::from(values, {2, kRows / 2, kAllClasses}).to(dtype).to(device);
  const Tensor target = Tensor::from(std::vector<int64_t>{0, 10, -100, 5, 6, 3}, {2, kRows / 2}).to(device);
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const Tensor x = logits.clone().requires_grad_();
    const Tensor want = cross_entropy(x, target, {.reduction = reduction});
    const Tensor dy = Tensor::full(want.sizes(), 0.75, want.dtype(), device);
    want.backward(dy);
    run_ranks(ranks, [&, dtype = dtype](const ProcessGroupPtr& group) {
      const Tensor own = share_of(logits, *group).clone().requires_grad_();
      const Tensor got = parallel_cross_entropy(own, target, kAllClasses, group, {.reduction = reduction});
      got.backward(dy);
      const tests::Tolerance allowed = tests::tolerance(dtype, kAllClasses);
      EXPECT_TRUE(tests::near(got.to_vector<double>(), want.to_vector<double>(), allowed));
      EXPECT_TRUE(tests::near(own.grad().to_vector<double>(),
                              share_of(x.grad(), *group).contiguous().to_vector<double>(), allowed));
    });
  }
}

std::vector<std::tuple<DeviceKind, DType, int>> divided_cases() {
  std::vector<std::tuple<DeviceKind, DType, int>> cases;
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
      for (const int ranks : {2, 4}) cases.emplace_back(kind, dtype, ranks);
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, DividedLoss, ::testing::ValuesIn(divided_cases()), [](const auto& one) {
  return str(name(std::get<0>(one.param)), '_', std::get<1>(one.param), '_', std::get<2>(one.param));
});

TEST(DividedVocabulary, HasSecondDerivatives) {
  constexpr int64_t kAllClasses = 5;
  const Tensor logits = Tensor::from(std::vector<double>{0.3, -1, 2, 0.1, 0.7}, {1, kAllClasses});
  const Tensor target = Tensor::from(std::vector<int64_t>{3}, {1});
  const auto of_slope = [](const Tensor& loss, const Tensor& x) {
    const Tensor slope = autograd::grad({loss}, {x}, {.create_graph = true})[0];
    return sum(slope * slope);
  };
  const Tensor x = logits.clone().requires_grad_();
  of_slope(cross_entropy(x, target), x).backward();
  const std::vector<double> want = x.grad().to_vector<double>();
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const Tensor own = share_of(logits, *group).clone().requires_grad_();
    // The sum over all classes is that of the ranks' parts.
    const Tensor slope =
        autograd::grad({parallel_cross_entropy(own, target, kAllClasses, group)}, {own}, {.create_graph = true})[0];
    sum(slope * slope).backward();
    const auto [first, count] = Partition::share(kAllClasses, group->rank(), group->size());
    const auto begin = want.begin() + first;
    EXPECT_TRUE(tests::near(own.grad().to_vector<double>(), std::vector<double>(begin, begin + count),
                            tests::Tolerance{1e-12, 1e-12}));
  });
}

TEST(DividedVocabulary, GradientsOfATiedTableAreThoseOfOneProcess) {
  const auto one = make_gpt(nullptr, DType::f64);
  const Tensor ids = tokens_of(0, 0, 2), next = tokens_of(1, 0, 2);
  const Tensor loss = one->loss(ids, next);
  loss.backward();
  for (const int ranks : {2, 4})
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const auto model = make_gpt(group, DType::f64);
      const Tensor own = model->loss(ids, next);
      own.backward();
      const auto& table = dynamic_cast<const ParallelEmbedding&>(*model->wte);
      EXPECT_NEAR(own.item(), loss.item(), 1e-12);
      const Tensor want = table.partition("weight").part(one->wte->weight.grad(), group->rank(), ranks);
      EXPECT_TRUE(tests::near(table.weight.grad().to_vector<double>(), want.to_vector<double>(),
                              tests::Tolerance{1e-11, 1e-11}));
      EXPECT_TRUE(tests::near(model->wpe.weight.grad().to_vector<double>(), one->wpe.weight.grad().to_vector<double>(),
                              tests::Tolerance{1e-11, 1e-11}));
    });
}

/// Multiplications and additions of the model's products in a forward.
int64_t forward_flops(nn::Gpt& model, const Tensor& ids) {
  int64_t sum = 0;
  std::vector<std::pair<nn::Module*, int>> hooks;
  for (const auto& [path, module] : model.modules())
    hooks.emplace_back(module,
                       module->register_hooks({}, [&sum](const nn::Module& each, const Tensor& x, const Tensor& y) {
                         sum += each.flops(x.sizes(), y.sizes());
                         return Tensor();
                       }));
  const NoGrad no_grad;
  model(ids);
  for (const auto& [module, number] : hooks) module->remove_hooks(number);
  return sum;
}

// With GPT-2's share of the output layer the ranks did 1.3 times their half before.
TEST(DividedVocabulary, EachRankDoesItsShareOfTheWork) {
  const Tensor ids = tokens_of(0, 0, 1);
  const auto one = make_gpt(nullptr, DType::f32);
  const int64_t whole = forward_flops(*one, ids), head = 2 * kPlaces * gpt_sizes().width * kWords;
  for (const int ranks : {2, 4})
    run_ranks(ranks, [&](const ProcessGroupPtr& group) {
      const int64_t columns = Partition::share(kWords, group->rank(), ranks).count;
      for (const Tokens tokens : {Tokens::all, Tokens::own})
        EXPECT_EQ(forward_flops(*make_gpt(group, DType::f32, tokens), ids),
                  (whole - head) / ranks + head / kWords * columns);
    });
}

// Two small all_reduce of the loss, in f32, whatever the number of classes.
TEST(DividedVocabulary, SendsThreeNumbersARow) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor logits = Tensor::zeros({10, 500}).requires_grad_();
    const uint64_t before = group->bytes_sent();
    parallel_cross_entropy(logits, Tensor::zeros({10}, DType::i64), 1000, group).backward();
    EXPECT_EQ(group->bytes_sent() - before, 3u * 10 * sizeof(float));
  });
}

TEST(DividedVocabulary, SaysWhatIsWrong) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor logits = Tensor::zeros({3, 3}), target = Tensor::zeros({3}, DType::i64);
    EXPECT_THAT(error_text([&] { parallel_cross_entropy(logits, target, 9, group); }),
                HasSubstr(str("expected logits of ", group->rank() == 0 ? 5 : 4, " of 9 classes, got f32[3,3]")));
  });
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor logits = Tensor::zeros({3, 4});
    EXPECT_THAT(error_text([&] { parallel_cross_entropy(logits, Tensor::full({3}, 8, DType::i64), 8, group); }),
                HasSubstr("parallel_cross_entropy: expected classes below 8, got others"));
    EXPECT_THAT(error_text([&] { parallel_cross_entropy(logits, Tensor::zeros({2}, DType::i64), 8, group); }),
                HasSubstr("expected one class per row, i64[3], got i64[2]"));
    EXPECT_THAT(error_text([&] {
                  parallel_cross_entropy(logits, Tensor::zeros({3}, DType::i64), 8, group, {.label_smoothing = 0.1});
                }),
                HasSubstr("expected no label smoothing and no weights of classes"));
    EXPECT_THAT(error_text([&] { ParallelEmbedding(nn::Embedding(1, 4), group); }),
                HasSubstr("partition: 1 rows are too few for 2 model ranks"));
    EXPECT_THAT(error_text([&] { ParallelEmbedding(nn::Embedding(4, 4, {.padding = 0}), group); }),
                HasSubstr("ParallelEmbedding: expected no padding row, got 0"));
  });
}

}  // namespace
}  // namespace weft::dist::testing
