// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/pipeline.h"

#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <set>

#include "core/autocast.h"
#include "tests/dist/pipeline_training.h"
#include "tests/support/devices.h"

namespace weft::dist::testing::pipelines {
namespace {

using ::testing::HasSubstr;

class PipelineRanks : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelineRanks, TrainWhatOneProcessTrainsOnEveryGrid) {
  for (const Task& task : {tower_task(), gpt_task()}) {
    const Result one = train_whole(task);
    EXPECT_GT(one.norms[0], kClip);
    for (const GridSizes& sizes : {GridSizes{1, 1},
                                   {2, 1},
                                   {4, 1},
                                   {2, 2},
                                   {2, 4},
                                   {3, 2},
                                   {2, 1, 2},
                                   {2, 2, 2},
                                   {4, 1, 2},
                                   {1, 1, 1, 3},
                                   {2, 1, 1, 2},
                                   {1, 1, 3, 4},
                                   {3, 1, 2, 3},
                                   {2, 2, 2, 2},
                                   {4, 2, 1, 2},
                                   {2, 1, 2, 1, true},
                                   {3, 2, 2, 1, true},
                                   {1, 1, 2, 2, true},
                                   {2, 2, 2, 2, true},
                                   {3, 1, 2, 1, true, Offload::parameters},
                                   {2, 2, 2, 1, true, Offload::optimizer}}) {
      for (const int64_t micro_batches : {1, 5, 8}) {
        // The groups of other backends take longer to make: one number of micro-batches each.
        if (GetParam() != "threads" && micro_batches != 5) continue;
        SCOPED_TRACE(str(task.name, ", ", sizes.text(), ", ", micro_batches, " micro-batches over ", GetParam()));
        expect_same(train_in_stages(GetParam(), task, sizes, micro_batches), one);
      }
    }
  }
}

// Neither the ranks of a stage nor the micro-batches divide the tokens; each stage knows its rows' documents.
TEST_P(PipelineRanks, OwnTokensAndDocumentsTrainAsOneProcess) {
  struct Case {
    Task own, whole;
  };
  for (const auto& [own, whole] : {Case{gpt_task(Tokens::own), gpt_task()},
                                   {tower_task(Tokens::own), tower_task()},
                                   {gpt_task(Tokens::own, true), gpt_task(Tokens::all, true)},
                                   {gpt_task(Tokens::all, true), gpt_task(Tokens::all, true)}}) {
    const Result one = train_whole(whole);
    for (const GridSizes& sizes : {GridSizes{3, 1, 1, 3}, {2, 2, 1, 2}, {2, 1, 2, 2, true}}) {
      SCOPED_TRACE(str(own.name, ", ", sizes.text(), " over ", GetParam()));
      expect_same(train_in_stages(GetParam(), own, sizes, 5), one);
    }
  }
}

// A rank sends its own tokens alone over the cut, forward and backward.
TEST(Pipeline, OwnTokensCrossTheCut) {
  constexpr int64_t kRows = 2;
  constexpr int kMicroBatches = 3;
  for (const Tokens tokens : {Tokens::all, Tokens::own})
    for (const int ranks : {2, 4}) {
      const Task task = gpt_task(tokens);
      run_ranks(2 * ranks, [&](const ProcessGroupPtr& world) {
        const Grid grid(world, ranks, 2);
        Pipeline pipeline(task.make(grid.model()), grid);
        MicroBatches batch{.samples = kRows * kMicroBatches};
        for (int i = 0; i < kMicroBatches; ++i) batch.inputs.push_back(task.inputs(0, i * kRows, kRows));
        batch.loss = [&](size_t i) { return task.loss(pipeline(batch.inputs[i]), 0, 0, kRows); };
        pipeline.run(batch);  // forms are known then
        const uint64_t before = pipeline.bytes_sent();
        pipeline.run(batch);
        const int64_t each = tokens == Tokens::all ? kTokens : (kTokens + ranks - 1) / ranks;
        EXPECT_EQ(pipeline.bytes_sent() - before,
                  static_cast<uint64_t>(kMicroBatches * kRows * each * 24) * sizeof(double))
            << ranks << " ranks of stage " << grid.pipe()->rank();
      });
    }
}

// Stages that left their channels in different orders would wait for each other until a goodbye's time is over, 5 s.
TEST_P(PipelineRanks, ItsGroupsEndAtOnce) {
  const Task task = gpt_task();
  for (const GridSizes& sizes : {GridSizes{2, 2}, {3, 2}, {4, 1}}) {
    std::mutex mutex;
    double longest = 0;
    run_on(GetParam(), sizes.ranks(), [&](const ProcessGroupPtr& world) {
      auto pipeline = std::make_unique<Pipeline>(task.make(nullptr), Grid(world, sizes.model, sizes.stages),
                                                 PipelineOptions{.chunks = sizes.chunks});
      world->barrier("all are there");
      const auto begin = std::chrono::steady_clock::now();
      pipeline.reset();
      const std::lock_guard lock(mutex);
      longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    });
    EXPECT_LT(longest, 4) << sizes.text();
  }
}

std::vector<std::string> thread_backends() {
  std::vector<std::string> all = backends();
  std::erase(all, "mpi");  // as many processes as there are: not for each grid
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PipelineRanks, ::testing::ValuesIn(thread_backends()),
                         [](const auto& one) { return one.param; });

// When the last micro-batch comes to the first layer of a stage, the gradients of later layers are on their way; the
// mean of two data ranks has the bits of their sum after all backwards.
TEST(Pipeline, GradientsAreAveragedBesideTheLastBackward) {
  constexpr int kMicroBatches = 3, kRuns = 2;  // the first run counts gradients
  const Task task = tower_task();              // without tied parameters, which are summed over the stages, too
  const auto train = [&](Pipeline& pipeline, int64_t first) {
    MicroBatches batch{.samples = kMicroBatches};
    for (int i = 0; i < kMicroBatches; ++i) batch.inputs.push_back(task.inputs(0, first + i, 1));
    batch.loss = [&](size_t i) {
      return task.loss(pipeline(batch.inputs[i]), 0, first + static_cast<int64_t>(i), 1) * (1.0 / kMicroBatches);
    };
    pipeline.tensor().module().zero_grad();
    pipeline.run(batch);
  };
  std::vector<std::vector<double>> own[2];  // a row's, per stage: gradients
  for (const int row : {0, 1}) {
    own[row].resize(2);
    run_ranks(2, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid);
      train(pipeline, row * kMicroBatches);
      own[row][static_cast<size_t>(world->rank())] = gradients_of(pipeline.tensor().module());
    });
  }
  run_ranks(4, [&](const ProcessGroupPtr& world) {
    const Grid grid(world, 1, 2);
    Pipeline pipeline(task.make(grid.model()), grid, {.ddp = {.bucket_mb = 0.01, .first_bucket_mb = 0.001}});
    const auto all = gradient_bytes(*pipeline.tensor().ddp());
    const std::string layer = str("blocks.", 4 * grid.pipe()->rank(), ".norm1.weight");
    uint64_t before = 0, during = 0;
    int backwards = 0;
    for (const NamedTensor& parameter : pipeline.parameters())
      if (parameter.name == layer)
        parameter.tensor.register_accumulated_hook([&](const Tensor&) {
          if (++backwards < kRuns * kMicroBatches) return;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
          do {
            std::this_thread::yield();
            during = grid.data()->bytes_sent() - before;
          } while (during < all / 2 && std::chrono::steady_clock::now() < deadline);
        });
    for (int run = 0; run < kRuns; ++run) {
      before = grid.data()->bytes_sent();
      train(pipeline, grid.data_rank() * kMicroBatches);
    }
    EXPECT_EQ(backwards, kRuns * kMicroBatches);
    EXPECT_GE(during, all / 2) << "of " << all << " bytes, stage " << grid.pipe()->rank();
    const std::vector<double> got = gradients_of(pipeline.tensor().module());
    std::vector<double> want(got.size());
    const auto stage = static_cast<size_t>(grid.pipe()->rank());
    ASSERT_EQ(own[0][stage].size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) want[i] = 0.5 * own[0][stage][i] + 0.5 * own[1][stage][i];
    EXPECT_EQ(got, want);
  });
}

TEST(Pipeline, EachRankHoldsItsPartAlone) {
  const Task task = gpt_task();
  run_ranks(2, [&](const ProcessGroupPtr& world) {
    const auto model = task.make(nullptr);
    Pipeline pipeline(model, Grid(world, 1, 2), {.chunks = 2});
    std::set<std::string> layers;
    for (const NamedTensor& parameter : pipeline.parameters())
      layers.insert(parameter.name.substr(0, parameter.name.starts_with("h.") ? 3 : parameter.name.find('.')));
    EXPECT_EQ(layers, world->rank() == 0 ? (std::set<std::string>{"wte", "wpe", "h.0", "h.1", "h.4", "h.5"})
                                         : (std::set<std::string>{"wte", "h.2", "h.3", "h.6", "h.7", "ln_f"}));
    EXPECT_EQ(pipeline.names().size(), 2u + 8 * 12 + 2);
  });
}

TEST(Pipeline, AStandInCountsNothing) {
  const Task task = tower_task();
  std::vector<double> alone, both;
  for (const int data : {1, 2})
    run_ranks(2 * data, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid);
      const bool stands_in = grid.data_rank() == 1;
      MicroBatches batch{.inputs = {task.inputs(0, stands_in ? 5 : 0, 3)}, .samples = stands_in ? 0 : 3};
      batch.loss = [&](size_t i) {
        return task.loss(pipeline(batch.inputs[i]), 0, stands_in ? 5 : 0, 3) * (stands_in ? 0 : 1);
      };
      pipeline.run(batch);
      if (world->rank() == 0) (data == 1 ? alone : both) = gradients_of(pipeline.tensor().module());
    });
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(both, alone);
}

// The last batches of a validation: ranks that gather a stage together have other numbers of rows.
TEST(Pipeline, ShardedStagesEvaluateUnevenRows) {
  for (const Task& task : {tower_task(), gpt_task()})
    run_ranks(4, [&](const ProcessGroupPtr& world) {
      const Grid grid(world, 1, 2);
      Pipeline pipeline(task.make(grid.model()), grid, {.fsdp = FsdpOptions{.policy = {.min_num_params = 500}}});
      const auto whole = task.make(make_process_group_alone());
      const NoGrad no_grad;
      for (int64_t most = 1; most < 4; ++most) {
        const Tensor x = task.inputs(99, 0, std::max<int64_t>(most - grid.data_rank(), 1)), y = pipeline(x);
        EXPECT_TRUE(
            tests::near(y.to_vector<double>(), (*whole)(x).to_vector<double>(), tests::Tolerance{1e-11, 1e-11}));
      }
    });
}

TEST(Pipeline, HalfPrecisionTravelsAsItIs) {
  const Task task = gpt_task();
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    const auto whole = task.make(nullptr);
    whole->to(DType::f32);
    whole->to(device);
    const auto loss_of = [&](const Tensor& y) { return cross_entropy(y, words(50, 0, 4).to(device)); };
    Tensor loss;
    {
      const Autocast low(DType::bf16);
      loss = (*whole)(task.inputs(0, 0, 4).to(device));
    }
    loss = loss_of(loss);
    loss.backward();
    std::map<std::string, Tensor> want;
    for (const NamedTensor& parameter : whole->parameters()) want[parameter.name] = parameter.tensor.grad();
    run_ranks(2, [&](const ProcessGroupPtr& world) {
      const auto model = task.make(nullptr);
      model->to(DType::f32);
      Pipeline pipeline(model, Grid(world, 1, 2), {.device = device});
      MicroBatches batch{.inputs = {task.inputs(0, 0, 4).to(device)}, .samples = 4, .precision = DType::bf16};
      batch.loss = [&](size_t i) {
        Tensor y;
        {
          const Autocast low(DType::bf16);
          y = pipeline(batch.inputs[i]);
        }
        const Tensor own = loss_of(y);
        EXPECT_EQ(own.item(), loss.item()) << "one micro-batch: the same bits";
        return own;
      };
      pipeline.run(batch);
      for (const NamedTensor& parameter : pipeline.parameters())
        if (parameter.name.starts_with("h.")) {
          EXPECT_EQ(parameter.tensor.grad().to_vector<float>(), want.at(parameter.name).to_vector<float>())
              << parameter.name;
        }
    });
  }
}

TEST(Pipeline, ErrorsSayWhatIsWrong) {
  const Task task = gpt_task();
  const auto alone = make_process_group_alone();
  EXPECT_THAT(tests::error_text([&] { Pipeline(normed_net(), Grid(alone, 1)); }),
              HasSubstr("pipeline: expected a model that is an nn::Staged, got "));
  EXPECT_THAT(tests::error_text([&] { Pipeline(task.make(nullptr), Grid(alone, 1), {.chunks = 2}); }),
              HasSubstr("pipeline: 2 chunks need at least two stages, got one"));
  EXPECT_THAT(
      tests::error_text([&] {
        pipeline_schedule({2, 1, 0}, 0);
      }),
      HasSubstr("expected a stage of 2 and at least one chunk and micro-batch, got stage 0, 1 chunks, 0 micro"));
  run_ranks(2, [&](const ProcessGroupPtr& world) {
    EXPECT_THAT(tests::error_text([&] { Grid(world, 1, 3); }), HasSubstr("grid: 3 stages do not divide 2 ranks"));
    EXPECT_THAT(tests::error_text([&] { Grid(world, 2, 2); }),
                HasSubstr("grid: 2 model ranks do not divide 1 ranks of each stage"));
    EXPECT_THAT(tests::error_text([&] { Pipeline(task.make(nullptr), Grid(world, 1, 2), {.chunks = 5}); }),
                HasSubstr("pipeline: 8 layers are too few for 2 stages x 5 chunks"));
    Pipeline pipeline(task.make(nullptr), Grid(world, 1, 2));
    EXPECT_THAT(tests::error_text([&] { pipeline(task.inputs(0, 0, 1)); }), HasSubstr("Pipeline::run() trains"));
    StateDict state;
    state.tensors.push_back({"h.9.ln_1.weight", Tensor::ones({3})});
    EXPECT_THAT(tests::error_text([&] { load_full_state_dict(pipeline, state); }), HasSubstr("h.9.ln_1.weight"));
  });
}

}  // namespace
}  // namespace weft::dist::testing::pipelines
