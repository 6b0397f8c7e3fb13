// SPDX-License-Identifier: Apache-2.0
// Careless calls of grids, pipelines and divided models give the right result or one clear error.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "dist/ddp/distributed_optimizer.h"
#include "dist/ddp/zero_redundancy_optimizer.h"
#include "dist/fsdp/checkpoint_writer.h"
#include "dist/group/world.h"
#include "dist/pipeline/pipeline_state.h"
#include "dist/tensor/parallel_embedding.h"
#include "dist/tensor/parallel_region.h"
#include "nn/models/gpt.h"
#include "optim/layer_decay.h"
#include "optim/lbfgs.h"
#include "optim/optimizers.h"
#include "tests/dist/parallel_tower.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/compare.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace weft::dist::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using tests::error_text;

constexpr int64_t kMisuseWords = 11;
constexpr GroupOptions kSoon{.timeout = Milliseconds{20'000}};  // a hang is an error of another text

std::shared_ptr<nn::Module> four_blocks(int64_t depth = 4) {
  const auto model = build(
      [depth] {
        return std::make_shared<nn::Gpt>(
            nn::GptOptions{.vocabulary = kMisuseWords, .positions = 4, .width = 8, .depth = depth, .heads = 2});
      },
      3, DeviceKind::cpu);
  model->to(DType::f64);
  return model;
}

Tensor ids_of(int64_t number) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 8; ++i) ids.push_back((7 * i + 3 * number + number * number) % kMisuseWords);
  return Tensor::from(ids, {2, 4});
}
Tensor loss_of(const Tensor& y, int64_t number) { return cross_entropy(y, ids_of(number + 50)); }

/// Three micro-batches from `first` on.
MicroBatches batch_from(Pipeline& pipeline, int64_t first) {
  MicroBatches batch{.samples = 6};
  for (int64_t i = 0; i < 3; ++i) batch.inputs.push_back(ids_of(first + i));
  batch.loss = [&pipeline, first, inputs = batch.inputs](size_t i) {
    return loss_of(pipeline(inputs[i]), first + static_cast<int64_t>(i)) * (1.0 / 3);
  };
  return batch;
}

TEST(PipelineMisuse, RunsAddUpUntilZeroGrad) {
  for (const int data : {1, 2})
    for (const bool sharded : {false, true})
      for (const int chunks : {1, 2}) {
        SCOPED_TRACE(str(data, " data ranks, sharded ", sharded, ", chunks ", chunks));
        constexpr int kRuns = 3;
        const auto whole = four_blocks();
        optim::SGD step(whole->parameters(), {.lr = 1});
        for (int64_t i = 0; i < 3 * kRuns * data; ++i) (loss_of((*whole)(ids_of(i)), i) * (1.0 / 3 / data)).backward();
        step.step();
        StateDict got;
        run_ranks(2 * data, [&](const ProcessGroupPtr& world) {
          const Grid grid(world, 1, 2);
          Pipeline pipeline(four_blocks(), grid,
                            {.chunks = chunks, .fsdp = sharded ? std::optional(FsdpOptions{}) : std::nullopt});
          optim::SGD own(pipeline.parameters(), {.lr = 1});
          pipeline.run(batch_from(pipeline, 77));  // forgotten by zero_grad()
          own.zero_grad();
          for (int64_t run = 0; run < kRuns; ++run)
            pipeline.run(batch_from(pipeline, 3 * (run * data + grid.data_rank())));
          own.step();
          const StateDict dict = full_state_dict(pipeline);
          if (world->rank() == 0) got = dict;
        });
        EXPECT_TRUE(tests::near(values_of(got), values_of(whole->state_dict()), tests::Tolerance{1e-11, 1e-11}));
      }
}

/// The error of `call` on each of two stages, whose groups live until both have it.
std::vector<std::string> errors_of_stages(const std::function<void(Pipeline&, int rank)>& call) {
  std::vector<std::string> errors(2);
  run_ranks(
      2,
      [&](const ProcessGroupPtr& world) {
        Pipeline pipeline(four_blocks(), Grid(world, 1, 2));
        errors[static_cast<size_t>(world->rank())] = error_text([&] { call(pipeline, world->rank()); });
        world->barrier();
      },
      kSoon);
  return errors;
}

TEST(PipelineMisuse, AnErrorOfOneStageReachesTheOthers) {
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int) {
                MicroBatches batch = batch_from(pipeline, 0);
                batch.loss = [](size_t) -> Tensor { throw Error("no label 17"); };
                pipeline.run(batch);
              }),
              Each(HasSubstr("no label 17")));
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int) {
                MicroBatches batch = batch_from(pipeline, 0);
                batch.inputs[1] = Tensor::full({2, 4}, kMisuseWords, DType::i64);
                pipeline.run(batch);
              }),
              Each(HasSubstr("11")));
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int) {
                const NoGrad no_grad;
                pipeline(Tensor::full({2, 4}, kMisuseWords, DType::i64));
              }),
              Each(HasSubstr("11")));
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int) {
                MicroBatches batch = batch_from(pipeline, 0);
                batch.loss = {};
                pipeline.run(batch);
              }),
              Each(HasSubstr("pipeline: MicroBatches::loss: expected a function, got none")));
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int rank) {
                MicroBatches batch = batch_from(pipeline, 0);
                if (rank == 0) batch.inputs.pop_back();
                pipeline.run(batch);
              }),
              Each(AllOf(HasSubstr("micro-batch 0 of 2 into stretch 1"), HasSubstr("micro-batch 0 of 3"))));
  EXPECT_THAT(errors_of_stages([](Pipeline& pipeline, int) {
                MicroBatches batch = batch_from(pipeline, 0);
                batch.loss = [&](size_t i) { return loss_of(pipeline(batch.inputs[(i + 1) % 3]), 0); };
                pipeline.run(batch);
              }),
              Each(HasSubstr("pipeline: inside of loss(i): expected the micro-batch inputs[i], i64[2,4]")));
}

TEST(PipelineMisuse, OneStageGoesOnAfterAnError) {
  Pipeline pipeline(four_blocks(), Grid(make_process_group_alone(), 1));
  MicroBatches batch = batch_from(pipeline, 0);
  batch.loss = [](size_t) -> Tensor { throw Error("no label 17"); };
  EXPECT_EQ(error_text([&] { pipeline.run(batch); }), "no label 17");
  pipeline.run(batch_from(pipeline, 0));
  const NoGrad no_grad;
  EXPECT_EQ(pipeline(ids_of(1)).size(2), kMisuseWords);
}

TEST(PipelineMisuse, ArgumentsThatAllRanksPassLeaveThePipelineAsItIs) {
  run_ranks(
      2,
      [](const ProcessGroupPtr& world) {
        Pipeline pipeline(four_blocks(), Grid(world, 1, 2));
        {
          const NoGrad no_grad;
          EXPECT_THAT(error_text([&] { pipeline.run(batch_from(pipeline, 0)); }),
                      HasSubstr("pipeline: run() trains: expected gradients, got NoGrad"));
          EXPECT_THAT(error_text([&] { pipeline({}); }), HasSubstr("pipeline: expected at least one sample, got "));
        }
        MicroBatches batch = batch_from(pipeline, 0);
        batch.samples = -1;
        EXPECT_THAT(error_text([&] { pipeline.run(batch); }),
                    HasSubstr("pipeline: expected a number of samples, got -1"));
        batch.inputs.clear();
        batch.samples = 6;
        EXPECT_THAT(error_text([&] { pipeline.run(batch); }), HasSubstr("at least one chunk and micro-batch"));
        pipeline.run(batch_from(pipeline, 0));
      },
      kSoon);
}

TEST(PipelineMisuse, OtherModelsOrChunksPerStage) {
  EXPECT_THAT(
      errors_on(
          "threads", 2,
          [](const ProcessGroupPtr& world) { Pipeline(four_blocks(4 + world->rank()), Grid(world, 1, 2)); }, kSoon),
      Each(HasSubstr("pipeline: the model is not the same on all ranks: at entry ")));
  EXPECT_THAT(errors_on(
                  "threads", 2,
                  [](const ProcessGroupPtr& world) {
                    Pipeline(four_blocks(), Grid(world, 1, 2), {.chunks = 1 + world->rank()});
                  },
                  kSoon),
              Each(HasSubstr("pipeline: the options are not the same on all ranks: at entry 1 rank 0 has '1 chunks'")));
}

TEST(PipelineMisuse, RatesByLayerCountTheWholeModelsBlocks) {
  const auto rates = [](const std::vector<NamedTensor>& parameters) {
    std::map<std::string, double> result;
    for (const optim::ParameterGroup& group : optim::by_layer(parameters, {.lr = 1, .factor = 0.5}))
      for (const NamedTensor& parameter : group.parameters) result[parameter.name] = *group.lr;
    return result;
  };
  const auto whole = rates(four_blocks()->parameters());
  EXPECT_EQ(whole.at("wte.weight"), 1.0 / 32);
  for (const bool sharded : {false, true})
    run_ranks(2, [&](const ProcessGroupPtr& world) {
      Pipeline pipeline(four_blocks(), Grid(world, 1, 2),
                        {.fsdp = sharded ? std::optional(FsdpOptions{}) : std::nullopt});
      for (const auto& [name, rate] : rates(pipeline.parameters())) EXPECT_EQ(rate, whole.at(name)) << name;
      EXPECT_THAT(error_text([&] {
                    rates({{"h.9.bias", pipeline.parameters().front().tensor}});
                  }),
                  HasSubstr("layer decay: expected the names of Pipeline::parameters(), got 'h.9.bias'"));
    });
}

TEST(GroupMisuse, GridsOfGroupsThatDoNotFit) {
  run_ranks(4, [](const ProcessGroupPtr& world) {
    const auto pair = world->split(world->rank() / 2, 0, "pair"), same = world->split(world->rank() / 2, 0, "same"),
               across = world->split(world->rank() % 2, 0, "across"), alone = make_process_group_alone();
    EXPECT_THAT(error_text([&] { Grid(world, world, world); }),
                HasSubstr("grid: 4 data x 4 model ranks x 1 stages do not fit 4 ranks"));
    EXPECT_THAT(error_text([&] { Grid(world, pair, same); }),
                HasSubstr(str("grid: expected groups that share this rank alone, got rank ", world->rank() ^ 1)));
    EXPECT_THAT(error_text([&] { Grid(world, pair, alone, same); }), HasSubstr("in two of model, data and pipe"));
    EXPECT_THAT(error_text([&] { Grid(nullptr, pair, across); }), HasSubstr("grid: expected a group of all ranks"));
    EXPECT_THAT(error_text([&] { Grid(world, nullptr, across); }), HasSubstr("grid: expected a group of model ranks"));
    EXPECT_THAT(error_text([&] { Grid(world, pair, nullptr); }), HasSubstr("grid: expected a group of data ranks"));
    EXPECT_EQ(Grid(world, pair, across).row_size(), 2);
    EXPECT_EQ(Grid(world, pair, alone, across).row_size(), 4);
  });
}

TEST(GroupMisuse, NoGroupIsAnError) {
  const ProcessGroupPtr none;
  const Tensor x = Tensor::ones({1, 2, 8});
  const nn::Embedding table(4, 2);
  const auto gpt = std::dynamic_pointer_cast<nn::Gpt>(four_blocks());
  for (const auto& [who, call] : std::initializer_list<std::pair<const char*, std::function<void()>>>{
           {"World::around", [&] { World::around(none); }},
           {"ParallelEmbedding", [&] { ParallelEmbedding(table, none); }},
           {"ParallelAttention", [&] { ParallelBlock({.width = 8, .heads = 2, .hidden = 8}, none); }},
           {"divide_vocabulary", [&] { divide_vocabulary(*gpt, none); }},
           {"divide_blocks", [&] { divide_blocks(*gpt, none); }},
           {"copy_to_region", [&] { copy_to_region(x, none); }},
           {"reduce_from_region", [&] { reduce_from_region(x, none); }},
           {"gather_into_region", [&] { gather_into_region(x, none); }},
           {"scatter_from_region", [&] { scatter_from_region(x, none); }},
           {"own_tokens", [&] { own_tokens(x, none); }},
           {"all_tokens", [&] { all_tokens(x, none); }},
           {"sharded checkpoint", [&] { CheckpointWriter writer(none); }}})
    EXPECT_THAT(error_text(call), HasSubstr(str(who, ": expected a group, got none")));
  EXPECT_THAT(error_text([] { copy_to_region({}, make_process_group_alone()); }),
              HasSubstr("copy_to_region: expected a tensor, got none"));
}

TEST(GroupMisuse, NoFunctionIsAnError) {
  const auto alone = make_process_group_alone();
  EXPECT_THAT(error_text([] { run_ranks(2, {}); }), HasSubstr("run_ranks: expected a function, got none"));
  EXPECT_THAT(error_text([&] { alone->together({}); }), HasSubstr("together: expected a function, got none"));
  EXPECT_THAT(error_text([&] { ZeroRedundancyOptimizer(nn::Linear(2, 2).parameters(), alone, {}); }),
              HasSubstr("zero redundancy optimizer: expected a function that makes the optimizer, got none"));
  EXPECT_THAT(error_text([] { optim::Lbfgs(nn::Linear(2, 2).parameters()).minimize({}); }),
              HasSubstr("Lbfgs: expected a loss function, got none"));
}

TEST(GroupMisuse, ARankThatReturnsEndsTheWaitsForIt) {
  for (const bool split : {false, true})
    EXPECT_THAT(
        error_text([&] {
          run_ranks(4, [&](const ProcessGroupPtr& group) {
            const ProcessGroupPtr asked = split ? group->split(group->rank() / 2, 0, "pair") : group;
            if (group->rank() == 3) return;
            Tensor x = Tensor::ones({3});
            asked->all_reduce(x, ReduceOp::sum)->wait();
          });
        }),
        HasSubstr(split ? "rank 1 has returned, and so never calls it" : "has returned, and so never calls it"));
}

std::shared_ptr<ParallelBlock> divided_block(const ProcessGroupPtr& group) {
  return std::dynamic_pointer_cast<ParallelBlock>(tower(1, group, DType::f32)->blocks[0]);
}

TEST(DividedMisuse, PartsOfOneModelAreNotMixed) {
  run_ranks(4, [](const ProcessGroupPtr& world) {
    const Grid grid(world, 2);
    const std::string mixed = "holds another part of ";
    for (const ProcessGroupPtr& group : {world, grid.model()}) {
      const auto block = divided_block(grid.model());
      const auto before = block->attn.qkv.weight.to_vector<float>();
      EXPECT_THAT(error_text([&] { DDP(block, group); }), AllOf(HasSubstr("ddp: rank "), HasSubstr(mixed)));
      EXPECT_THAT(error_text([&] { FSDP(block, group); }), AllOf(HasSubstr("fsdp: rank "), HasSubstr(mixed)));
      EXPECT_THAT(error_text([&] { broadcast_parameters(*group, *block); }),
                  AllOf(HasSubstr("broadcast_parameters: rank "), HasSubstr(mixed + "'attn.qkv'"),
                        HasSubstr("Pass the group of ranks with the same part: grid.data()")));
      EXPECT_EQ(block->attn.qkv.weight.to_vector<float>(), before);
    }
    const auto block = divided_block(grid.model());
    TensorParallel parallel(block, grid);
    optim::SGD sgd(parallel.parameters(), {.lr = 0.1, .momentum = 0.9});
    const auto make = [](const optim::ParameterGroups& parts) {
      return std::make_unique<optim::SGD>(parts, optim::SgdOptions{.lr = 0.1});
    };
    for (const ProcessGroupPtr& group : {world, grid.model()}) {
      EXPECT_THAT(error_text([&] { ZeroRedundancyOptimizer(parallel.parameters(), group, make); }),
                  AllOf(HasSubstr("zero redundancy optimizer: rank "), HasSubstr(mixed)));
      EXPECT_THAT(error_text([&] { DistributedOptimizer(sgd, group); }),
                  AllOf(HasSubstr("distributed optimizer: rank "), HasSubstr(mixed)));
      EXPECT_THAT(error_text([&] { broadcast_optimizer_state(*group, sgd); }), HasSubstr(mixed));
    }
    ZeroRedundancyOptimizer(parallel.parameters(), grid.data(), make);  // as it should be
    broadcast_parameters(*grid.data(), *block);
    broadcast_optimizer_state(*grid.data(), sgd);
  });
  run_ranks(2, [](const ProcessGroupPtr& world) {
    Pipeline pipeline(four_blocks(), Grid(world, 1, 2));
    EXPECT_THAT(error_text([&] {
                  ZeroRedundancyOptimizer(pipeline.parameters(), world, [](const optim::ParameterGroups& parts) {
                    return std::make_unique<optim::SGD>(parts, optim::SgdOptions{.lr = 0.1});
                  });
                }),
                HasSubstr("holds another part of the model"));
  });
}

TEST(DividedMisuse, LbfgsRefusesParts) {
  run_ranks(2, [](const ProcessGroupPtr& world) {
    const auto refused = [](const std::vector<NamedTensor>& parameters) {
      EXPECT_THAT(error_text([&] { optim::Lbfgs lbfgs(parameters); }),
                  AllOf(HasSubstr("Lbfgs: '"), HasSubstr("is one rank's part of the model")));
    };
    {
      FSDP fsdp(four_blocks(), world);
      refused(fsdp.parameters());
    }
    {
      Pipeline pipeline(four_blocks(), Grid(world, 1, 2));
      refused(pipeline.parameters());
    }
    const Grid grid(world, 2);
    TensorParallel parallel(divided_block(grid.model()), grid);
    refused(parallel.parameters());
    const auto own = world->split(world->rank(), 0, "own");
    TensorParallel whole(divided_block(own), Grid(own, 1));  // alone
    optim::Lbfgs lbfgs(whole.parameters());
    DDP ddp(four_blocks(), world);
    optim::Lbfgs of_copies(ddp.parameters());
  });
}

TEST(DividedMisuse, BlocksOfAnotherGroupThanTheGrids) {
  run_ranks(2, [](const ProcessGroupPtr& world) {
    const auto own = world->split(world->rank(), 0, "own"), turned = world->split(0, -world->rank(), "turned");
    for (const ProcessGroupPtr& other : {own, turned})
      EXPECT_THAT(error_text([&] { TensorParallel(divided_block(other), Grid(world, 2)); }),
                  AllOf(HasSubstr("tensor_parallel: 'attn.qkv' is divided among another group's "),
                        HasSubstr("than those of grid.model(), 2. Build it over grid.model()")));
    TensorParallel(divided_block(world), Grid(world, 2));  // another object, of the same ranks
  });
}

TEST(DividedMisuse, StretchesRowsAndTablesOutsideOfTheWhole) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    EXPECT_THAT(error_text([&] { ColumnParallelLinear(4, 8, group, {.stretches = 0}); }),
                HasSubstr("ColumnParallelLinear: expected at least one stretch, got 0"));
    EXPECT_THAT(error_text([&] { (Partition{.dim = 0, .stretches = 0}.part(Tensor::ones({4}), 0, 2)); }),
                HasSubstr("does not divide into 0 x 2 parts"));
    EXPECT_THAT(error_text([&] { (Partition{.dim = 0, .stretches = 0}.whole({Tensor::ones({4})})); }),
                HasSubstr("does not divide into 0 stretches"));
    const ParallelEmbedding table(nn::Embedding(5, 4), group);
    EXPECT_THAT(error_text([&] { ParallelEmbedding(table, group); }),
                HasSubstr("ParallelEmbedding: expected a whole table, got one that is divided already"));
    for (const int64_t row : {-1, 5})
      EXPECT_THAT(error_text([&] { table(Tensor::full({2}, row, DType::i64)); }),
                  HasSubstr(str("Embedding: expected rows of [0, 5), got ", row, " to ", row)));
  });
}

TEST(CheckpointMisuse, AnotherFolderPerRank) {
  const tests::TemporaryFolder folder;
  run_ranks(
      2,
      [&](const ProcessGroupPtr& world) {
        FSDP fsdp(four_blocks(), world);
        CheckpointWriter writer(world);
        const std::string own = world->rank() == 0 ? "a" : "b";
        EXPECT_THAT(error_text([&] {
                      writer.save(folder / own, {{"model", sharded_state(fsdp)}});
                    }),
                    HasSubstr(str("sharded checkpoint: expected one folder on all ranks, got ", folder / "a",
                                  " on rank 0 and ", folder / "b", " on rank 1")));
        writer.save(world->rank() == 0 ? folder / "a" : folder / "./a/", {{"model", sharded_state(fsdp)}});
        writer.wait();
        EXPECT_THAT(error_text([&] {
                      ShardedCheckpoint(folder / "a").load({{"model", nullptr}});
                    }),
                    HasSubstr("part 'model': expected a state to load into, got none"));
      },
      kSoon);
}

}  // namespace
}  // namespace weft::dist::testing
