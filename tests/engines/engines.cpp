// SPDX-License-Identifier: Apache-2.0
#include "tests/engines/engines.h"

#include <thread>

#include "kernels/contracts/linear.h"
#include "kernels/engines/cublaslt.h"
#include "kernels/engines/cudnn.h"
#include "tests/kernels/attention_problem.h"

// Every engine on a GPU against f64. The CPU runs the same problems, which holds these tests' own references up; checks
// that need a GPU are skipped without a GPU.

namespace weft::tests {
namespace {

constexpr Engine kEngines[] = {Engine::own, Engine::vendor, Engine::automatic};

/// A test's need of NVIDIA's libraries: cuBLASLt, which a GPU in software has too, or cuDNN as well.
enum class Needs { products, all };

std::string why_no_vendor(Needs needs = Needs::all) {
  if (!runs_on(DeviceKind::cuda)) return "needs a GPU";
  const std::string &lt = kernels::vendor::cublaslt::missing(), &dnn = kernels::vendor::cudnn::missing();
  if (!lt.empty()) return "needs cuBLASLt: " + lt;
  return needs == Needs::all && !dnn.empty() ? "needs cuDNN: " + dnn : "";
}

bool can_run(DeviceKind kind, Engine engine, Needs needs = Needs::all) {
  return kind != DeviceKind::cuda || engine == Engine::own || why_no_vendor(needs).empty();
}

/// Twice: `auto` times the first call and remembers for the second.
template <class Problem>
void check(DeviceKind kind, Engine engine, Problem& problem) {
  SCOPED_TRACE(str(problem.text(), ", engine ", kernels::name(engine), ", on ", name(kind)));
  const EngineGuard guard(engine);
  EXPECT_TRUE(problem.run(queue_on(kind)));
  EXPECT_TRUE(problem.run(queue_on(kind)));
}

TEST(Engines, MatmulInEveryLayout) {
  for (const DeviceKind kind : test_devices())
    for (const auto& [in, out] : {std::pair{DType::f32, DType::f32},
                                  {DType::f64, DType::f64},
                                  {DType::bf16, DType::bf16},
                                  {DType::f16, DType::f16},
                                  {DType::bf16, DType::f32}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const bool bias : {false, true})
            for (const Grad grad : {Grad::overwrite, Grad::accumulate}) {
              MatmulProblem problem(kind, {2, 40, 72, 96, in, out, transpose_a, transpose_b, bias, grad});
              for (const Engine engine : kEngines)
                if (can_run(kind, engine, Needs::products)) check(kind, engine, problem);
            }
}

TEST(Engines, MatmulOfOddAndNarrowSizes) {
  for (const DeviceKind kind : test_devices())
    for (const auto& [B, M, N, K] : {std::array<int64_t, 4>{1, 1, 37, 129},
                                     {1, 129, 1, 37},
                                     {3, 33, 31, 57},
                                     {1, 127, 65, 1},
                                     {1, 197, 192, 64},
                                     {6, 50, 50, 64}})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        MatmulProblem problem(kind, {B, M, N, K, dtype, dtype, false, true, true});
        for (const Engine engine : kEngines)
          if (can_run(kind, engine, Needs::products)) check(kind, engine, problem);
      }
}

TEST(Engines, MatmulWithAnActivation) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const auto activation :
           {kernels::Activation::relu, kernels::Activation::gelu, kernels::Activation::gelu_tanh})
        for (const bool bias : {false, true}) {
          MatmulProblem problem(kind, {1, 40, 72, 96, dtype, dtype, false, true, bias, Grad::overwrite, activation});
          for (const Engine engine : kEngines)
            if (can_run(kind, engine, Needs::products)) check(kind, engine, problem);
        }
}

TEST(Engines, MatmulWithAResidual) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const bool bias : {false, true}) {
        MatmulProblem problem(
            kind, {1, 40, 72, 96, dtype, dtype, false, true, bias, Grad::overwrite, kernels::Activation::none, true});
        for (const Engine engine : kEngines)
          if (can_run(kind, engine, Needs::products)) check(kind, engine, problem);
      }
}

TEST(Engines, LinearBackwardWeight) {
  for (const DeviceKind kind : test_devices())
    for (const auto& [in, out] : {std::pair{DType::f32, DType::f32},
                                  {DType::bf16, DType::bf16},
                                  {DType::f16, DType::f16},
                                  {DType::bf16, DType::f32}})
      for (const auto& [M, I, O] : {std::array<int64_t, 3>{96, 40, 72}, {57, 33, 31}, {1300, 64, 24}}) {
        const auto dy = uniform(M * O, in), x = uniform(M * I, in);
        const DeviceArray dy_array(kind, in, {M, O}, dy), x_array(kind, in, {M, I}, x);
        std::vector<double> want(static_cast<size_t>(O * I)), sums(static_cast<size_t>(O));
        for (int64_t m = 0; m < M; ++m)
          for (int64_t o = 0; o < O; ++o) {
            sums[o] += dy[m * O + o];
            for (int64_t i = 0; i < I; ++i) want[o * I + i] += dy[m * O + o] * x[m * I + i];
          }
        for (const Engine engine : kEngines) {
          if (!can_run(kind, engine, Needs::products)) continue;
          SCOPED_TRACE(str("M ", M, " I ", I, " O ", O, ' ', in, "->", out, ", engine ", kernels::name(engine), ", on ",
                           name(kind)));
          const EngineGuard guard(engine);
          for (int run = 0; run < 2; ++run) {  // `auto` times the first call and remembers for the second
            const DeviceArray dw(kind, out, {O, I}), db(kind, out, {O});
            kernels::linear_backward_weight(queue_on(kind), dw, db, dy_array, x_array);
            EXPECT_TRUE(near(dw.host(), want, tolerance(out, M)));
            EXPECT_TRUE(near(db.host(), sums, tolerance(out, M)));
          }
        }
      }
}

/// Each kind of convolution in ResNet-50 and ViT with small sizes, and what no model here has.
constexpr Conv2dProblem::Case kConvolutions[] = {
    {"stem", 2, 21, 3, 16, 7, 2, 3},          {"3x3", 2, 9, 16, 24, 3, 1, 1},
    {"3x3 strided", 2, 9, 16, 16, 3, 2, 1},   {"1x1", 2, 7, 32, 16, 1},
    {"1x1 strided", 2, 8, 16, 32, 1, 2},      {"patches", 2, 16, 3, 24, 8, 8},
    {"grouped", 2, 7, 16, 32, 3, 1, 1, 1, 2}, {"depthwise", 2, 7, 16, 16, 3, 1, 1, 1, 16},
    {"dilated", 2, 9, 8, 8, 3, 1, 2, 2},      {"odd channels", 2, 6, 5, 7, 3, 1, 1}};

TEST(Engines, Conv2dInEveryDirection) {
  using Direction = Conv2dProblem::Direction;
  for (const DeviceKind kind : test_devices())
    for (const auto& c : kConvolutions)
      for (const Direction direction :
           {Direction::forward, Direction::forward_with_bias, Direction::backward_input, Direction::backward_weight})
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          Conv2dProblem problem(kind, c, direction, dtype);
          for (const Engine engine : kEngines)
            if (can_run(kind, engine)) check(kind, engine, problem);
        }
}

struct AttentionCase {
  const char* name;
  DType dtype;
  AttentionProblem problem;
  bool automatic = false;  ///< too, which makes up to four plans of each direction
  friend void PrintTo(const AttentionCase& one, std::ostream* out) { *out << one.name; }
};

class EnginesOfAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(EnginesOfAttention, BothDirections) {
  const auto& [name, dtype, problem, automatic] = GetParam();
  for (const DeviceKind kind : test_devices())
    for (const Engine engine : kEngines) {
      if (!can_run(kind, engine) || (engine == Engine::automatic && !automatic)) continue;
      SCOPED_TRACE(str("engine ", kernels::name(engine)));
      const EngineGuard guard(engine);
      check_attention(kind, dtype, problem);
    }
}

// cuDNN compiles each plan, which takes half a second. Every two of dtype, sizes, width, causal and lengths meet in
// each of their four ways.
INSTANTIATE_TEST_SUITE_P(
    Pairs, EnginesOfAttention,
    testing::Values(AttentionCase{"bf16_64", DType::bf16, {3, 70, 70, 2, 64}},
                    AttentionCase{"bf16_128_causal_lengths", DType::bf16, {3, 70, 70, 2, 128, true, true}, true},
                    AttentionCase{"bf16_64_causal_lengths_more_keys", DType::bf16, {2, 40, 133, 1, 64, true, true}},
                    AttentionCase{"f16_64_lengths_more_keys", DType::f16, {2, 40, 133, 1, 64, false, true}},
                    AttentionCase{"f16_128_more_keys", DType::f16, {2, 40, 133, 1, 128}},
                    AttentionCase{"f16_128_causal", DType::f16, {3, 70, 70, 2, 128, true}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Engines, TheVendorsResultsAreTheSameBitsInEveryRun) {
  if (const std::string why = why_no_vendor(); !why.empty()) GTEST_SKIP() << why;
  const EngineGuard guard(Engine::vendor);
  const Queue queue = queue_on(DeviceKind::cuda);
  const DType dtype = DType::bf16;
  const DeviceArray x(DeviceKind::cuda, dtype, {8, 14, 14, 64}, uniform(8 * 14 * 14 * 64, dtype)),
      dy(DeviceKind::cuda, dtype, {8, 14, 14, 64}, uniform(8 * 14 * 14 * 64, dtype));
  std::vector<double> first;
  for (int run = 0; run < 5; ++run) {
    const DeviceArray dw(DeviceKind::cuda, dtype, {64, 3, 3, 64});
    kernels::conv2d_backward_weight(queue, dw, dy, x, {.padding = {1, 1}});
    if (run == 0) first = dw.host();
    EXPECT_EQ(dw.host(), first);
  }
}

/// Records `work` on a stream of its own and replays it once.
template <class Work>
void capture_and_replay(Work&& work) {
  const Device device{DeviceKind::cuda, 0};
  kernels::Runtime& gpu = kernels::runtime(DeviceKind::cuda);
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of(device);
  void* const stream = gpu.create_stream(0);
  kernels::MemoryPool* const pool = allocator.open_pool();
  gpu.begin_capture(0, stream);
  std::string broken = error_text([&] { work(Queue{device, stream}); });
  allocator.close_pool(pool);
  if (broken.empty()) {
    void* const graph = gpu.end_capture(0, stream);
    gpu.launch_graph(0, graph, stream);
    gpu.synchronize_stream(0, stream);
    gpu.destroy_graph(graph);
  } else {
    gpu.abandon_capture(0, stream);
  }
  allocator.release_pool(pool);
  gpu.destroy_stream(0, stream);
  EXPECT_EQ(broken, "");
}

TEST(Engines, ACapturedCallRepeatsItselfColdAndWarm) {
  if (const std::string why = why_no_vendor(Needs::products); !why.empty()) GTEST_SKIP() << why;
  const bool convolves = why_no_vendor().empty();
  for (const Engine engine : kEngines)
    for (const bool warm : {false, true}) {
      SCOPED_TRACE(str(kernels::name(engine), warm ? " warm" : " cold"));
      const EngineGuard guard(engine);
      // sizes of their own, so that no other test has made the plans
      const int64_t size = 48 + 8 * static_cast<int64_t>(engine) + (warm ? 64 : 0);
      MatmulProblem product(DeviceKind::cuda, {1, size, 56, 80, DType::bf16, DType::bf16, false, true, true});
      Conv2dProblem convolution(DeviceKind::cuda, {"3x3", 1, 6, size, 16, 3, 1, 1}, Conv2dProblem::Direction::forward,
                                DType::bf16);
      if (warm) {
        EXPECT_TRUE(product.run(queue_on(DeviceKind::cuda)));
        if (convolves) {
          EXPECT_TRUE(convolution.run(queue_on(DeviceKind::cuda)));
        }
      }
      product.reset();
      convolution.reset();
      capture_and_replay([&](const Queue& queue) {
        product.enqueue(queue);
        if (convolves) convolution.enqueue(queue);
      });
      EXPECT_TRUE(product.is_right());
      if (convolves) {
        EXPECT_TRUE(convolution.is_right());
      }
    }
}

TEST(Engines, ThreadsAndStreams) {
  if (const std::string why = why_no_vendor(Needs::products); !why.empty()) GTEST_SKIP() << why;
  const bool convolves = why_no_vendor().empty();
  kernels::Runtime& gpu = kernels::runtime(DeviceKind::cuda);
  for (const Engine engine : {Engine::vendor, Engine::automatic}) {
    std::vector<std::unique_ptr<MatmulProblem>> products;
    std::vector<std::unique_ptr<Conv2dProblem>> convolutions;
    for (int i = 0; i < 4; ++i) {  // repeated problems: plans, descriptors and handles are shared
      products.push_back(std::make_unique<MatmulProblem>(
          DeviceKind::cuda, MatmulProblem::Case{1, 64, 88, 96, DType::bf16, DType::bf16, false, false, true}));
      convolutions.push_back(std::make_unique<Conv2dProblem>(DeviceKind::cuda, kConvolutions[1],
                                                             Conv2dProblem::Direction::forward_with_bias, DType::bf16));
      products.back()->reset();
      convolutions.back()->reset();
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        const EngineGuard guard(engine);
        void* const stream = gpu.create_stream(0);
        for (int repeat = 0; repeat < 20; ++repeat) {
          products[i]->enqueue({{DeviceKind::cuda, 0}, stream});
          if (convolves) convolutions[i]->enqueue({{DeviceKind::cuda, 0}, stream});
        }
        gpu.synchronize_stream(0, stream);
        gpu.destroy_stream(0, stream);
      });
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(products[i]->is_right());
      if (convolves) {
        EXPECT_TRUE(convolutions[i]->is_right());
      }
    }
  }
}

TEST(Engines, WhatAGpuMustShow) {  // says in every run without one that the tests above have shown the CPU alone
  if (const std::string why = why_no_vendor(); !why.empty())
    GTEST_SKIP() << "cuBLASLt and cuDNN were not both run against own kernels and f64: " << why;
}

}  // namespace
}  // namespace weft::tests
