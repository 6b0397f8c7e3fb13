// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/runtime.h"
#include "tests/support/devices.h"

namespace weft {
namespace {

using kernels::CachingAllocator;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<DeviceKind> devices_with_graphs() {
  std::vector<DeviceKind> kinds = tests::test_devices();
  std::erase(kinds, DeviceKind::cpu);
  return kinds;
}

class GraphOn : public testing::TestWithParam<DeviceKind> {
 protected:
  Device device() const { return {GetParam(), 0}; }
  Tensor filled(double value, int64_t n = 1000) const { return Tensor::full({n}, value, DType::f32, device()); }
  static std::vector<float> values(double value, size_t n = 1000) {
    return std::vector<float>(n, static_cast<float>(value));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GraphOn, testing::ValuesIn(devices_with_graphs()),
                         [](const auto& test) { return std::string(name(test.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GraphOn);  // without CUDA no device has graphs

TEST_P(GraphOn, RepeatsWhatItCaptured) {
  const Tensor x = filled(1), y = filled(7);
  Graph graph;
  EXPECT_FALSE(graph.is_captured());
  graph.capture(device(), [&] { y.copy_(x * 2 + 1); });
  EXPECT_TRUE(graph.is_captured());
  EXPECT_EQ(y.to_vector<float>(), values(7)) << "a capture runs nothing";
  graph.replay();
  EXPECT_EQ(y.to_vector<float>(), values(3));
  for (const double value : {5.0, -2.0}) {
    x.fill_(value);
    graph.replay();
    EXPECT_EQ(y.to_vector<float>(), values(2 * value + 1));
  }
}

TEST_P(GraphOn, RunsABackward) {
  const Tensor x = filled(3).requires_grad_();
  sum(x * x).backward();
  const Tensor gradient = x.grad();
  Graph graph;
  graph.capture(device(), [&] {
    x.zero_grad();
    sum(x * x).backward();
  });
  {
    const NoGrad no_grad;
    x.fill_(4);
  }
  graph.replay();
  EXPECT_EQ(gradient.to_vector<float>(), values(8));
}

TEST_P(GraphOn, RandomNumbersGoOnAsInEagerSteps) {
  const auto step = [&](const Tensor& a, const Tensor& b) {
    uniform_(a, 0, 1);
    b.copy_(dropout(a, 0.3));
    uniform_(a, 0, 1);
  };
  const auto run = [&](bool graphed) {
    manual_seed(11);
    const Tensor a = filled(0, 37), b = filled(0, 37);
    std::vector<std::vector<float>> seen;
    Graph graph;
    if (graphed) graph.capture(device(), [&] { step(a, b); });
    for (int i = 0; i < 4; ++i) {
      if (i == 2) {  // an eager draw in between, and a new seed
        uniform(Shape{5}, 0, 1, DType::f32, device());
        generator(device()).seed = 12;
      }
      graphed ? graph.replay() : step(a, b);
      seen.push_back(a.to_vector<float>());
      seen.push_back(b.to_vector<float>());
    }
    seen.push_back(uniform(Shape{5}, 0, 1, DType::f32, device()).to_vector<float>());
    EXPECT_NE(seen[0], seen[2]) << "each step draws new numbers";
    return seen;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(GraphOn, MemoryIsItsOwn) {
  const CachingAllocator& allocator = CachingAllocator::of(device());
  const size_t live = allocator.stats().live;
  Tensor kept;
  {
    const Tensor x = filled(1, 5000), y = filled(0, 5000);
    Graph graph;
    graph.capture(device(), [&] {
      const Tensor twice = x * 2, thrice = twice + x;  // both are free at the end, for the graph alone
      y.copy_(thrice * twice);
      kept = y + 1;
    });
    EXPECT_GE(allocator.stats().in_graphs, 4u * 5000 * 3);
    EXPECT_THAT(allocator.report(), HasSubstr(", in graphs "));
    std::vector<Tensor> others;
    for (int i = 0; i < 8; ++i) others.push_back(filled(100 + i, 5000));
    graph.replay();
    EXPECT_EQ(y.to_vector<float>(), values(6, 5000));
    EXPECT_EQ(kept.to_vector<float>(), values(7, 5000));
    for (int i = 0; i < 8; ++i) EXPECT_EQ(others[static_cast<size_t>(i)].to_vector<float>(), values(100 + i, 5000));
  }
  EXPECT_EQ(kept.to_vector<float>(), values(7, 5000)) << "a tensor outlives the graph that made it";
  EXPECT_GT(allocator.stats().in_graphs, 0u);
  kept = {};
  EXPECT_EQ(allocator.stats().in_graphs, 0u);
  EXPECT_EQ(allocator.stats().live, live);
}

TEST_P(GraphOn, MemoryFreedInsideIsUsedAgainInside) {
  const Tensor x = filled(1, 1 << 16);
  const auto pool_after = [&](int ops) {
    Graph graph;
    graph.capture(device(), [&] {
      for (int i = 0; i < ops; ++i) x.copy_(x + 1);
    });
    return CachingAllocator::of(device()).stats().in_graphs;
  };
  EXPECT_EQ(pool_after(8), pool_after(1));
}

TEST_P(GraphOn, OtherThreadsGoOnMeanwhile) {
  const Tensor x = filled(1);
  Tensor theirs;
  Graph graph;
  graph.capture(device(), [&] {
    x.copy_(x + 1);
    std::thread([&] {
      const Stream stream(device());
      const StreamGuard guard(stream);
      theirs = filled(5) * 2;
      stream.synchronize();
      EXPECT_FALSE(is_capturing(device()));
    }).join();
  });
  EXPECT_EQ(theirs.to_vector<float>(), values(10));
  graph.replay();
  EXPECT_EQ(x.to_vector<float>(), values(2));
  EXPECT_EQ(theirs.to_vector<float>(), values(10));
}

TEST_P(GraphOn, HostWorkOfEachRun) {
  int runs = 0;
  on_each_run([&] { ++runs; });
  EXPECT_EQ(runs, 1) << "at once, outside a capture";
  Graph graph;
  graph.capture(device(), [&] { on_each_run([&] { ++runs; }); });
  EXPECT_EQ(runs, 1);
  graph.replay();
  graph.replay();
  EXPECT_EQ(runs, 3);
}

TEST_P(GraphOn, WhatNeedsTheHostIsNamed) {
  const Tensor x = filled(1, 1);
  const auto message = [&](const std::function<void()>& call) {
    Graph graph;
    std::string text;
    try {
      graph.capture(device(), [&] {
        x.copy_(x + 1);
        call();
      });
    } catch (const Error& e) {
      text = e.what();
    }
    EXPECT_FALSE(graph.is_captured());
    EXPECT_FALSE(is_capturing(device()));
    return text;
  };
  const std::string rest =
      str(": needs the host, while a graph is captured on ", device(), ". Do it before capture() or after replay()");
  EXPECT_EQ(message([&] { x.item(); }), "item" + rest);
  EXPECT_EQ(message([&] { x.to_vector<float>(); }), "to_vector" + rest);
  EXPECT_EQ(message([&] { x.to(Device{}); }), "copy to the host" + rest);
  EXPECT_EQ(message([&] { x.copy_(Tensor::ones({1})); }), "copy from the host" + rest);
  EXPECT_EQ(message([&] { Tensor::from<float>({1, 2}, device()); }), "tensor from host values" + rest);
  EXPECT_EQ(message([&] { synchronize(device()); }), "synchronize" + rest);
  EXPECT_EQ(message([&] { Event(device()).synchronize(); }), "synchronize" + rest);
  EXPECT_EQ(message([&] { Graph().capture(device(), [] {}); }), "graph: capture inside the capture of another graph");
  // An error that the device finds itself.
  EXPECT_THAT(message([&] { kernels::runtime(GetParam()).synchronize_device(0); }),
              HasSubstr("cudaDeviceSynchronize: operation not permitted when stream is capturing"));
  EXPECT_THAT(message([&] {
                try {
                  kernels::runtime(GetParam()).synchronize_device(0);
                } catch (const Error&) {  // the capture is broken all the same
                }
              }),
              HasSubstr("graph: the step cannot be captured: cudaStreamEndCapture: "));
  // Nothing stays behind.
  EXPECT_EQ(x.item(), 1);
  Graph graph;
  graph.capture(device(), [&] { x.copy_(x + 1); });
  graph.replay();
  EXPECT_EQ(x.item(), 2);
}

TEST_P(GraphOn, WrongUse) {
  Graph graph;
  EXPECT_THAT([&] { graph.replay(); }, ThrowsMessage<Error>("graph: replay before capture"));
  const kernels::KernelChecks before = kernels::kernel_checks();
  kernels::set_kernel_checks({.synchronize = true});
  EXPECT_THAT([&] { graph.capture(device(), [] {}); },
              ThrowsMessage<Error>(HasSubstr("graph: WEFT_SYNC=1 and WEFT_CHECK_NAN=1 look at each kernel")));
  kernels::set_kernel_checks(before);
  graph.capture(device(), [] {});
  graph.replay();
  EXPECT_THAT([&] { graph.capture(device(), [] {}); },
              ThrowsMessage<Error>("graph: it holds a captured step already. Make another Graph"));
}

TEST_P(GraphOn, TellsOfALabelOutOfRangeAtTheNextWait) {
  const Tensor logits = Tensor::zeros({4, 10}, DType::f32, device());
  const Tensor labels = Tensor::zeros({4}, DType::i64, device()), loss = Tensor::zeros({}, DType::f32, device());
  Graph graph;
  graph.capture(device(), [&] { loss.copy_(cross_entropy(logits, labels)); });
  graph.replay();
  EXPECT_GT(loss.item(), 0);
  labels.slice(0, 2, 1).fill_(10);
  graph.replay();
  EXPECT_THAT(
      [&] { loss.item(); },
      ThrowsMessage<Error>(str("cross_entropy: target 10 in row 2 is no class of logits f32[4,10] on ", device(),
                               ": expected 0 to 9. Does the model have the data set's number of classes?")));
  labels.fill_(3);
  graph.replay();
  EXPECT_GT(loss.item(), 0);
}

TEST_P(GraphOn, AFunctionOfItsInputs) {
  const Tensor total = filled(0, 1);
  int calls = 0;
  GraphedFunction add(device(), [&](const std::vector<Tensor>& in) {
    ++calls;
    total.add_(sum(in[0] * in[1]));
  });
  double expected = 0;
  for (int i = 1; i <= 6; ++i) {
    const int64_t n = i == 5 ? 3 : 10;  // a smaller batch
    add({filled(i, n), filled(2, n)});
    expected += 2.0 * i * static_cast<double>(n);
    EXPECT_EQ(add.is_captured(), i > 2);
  }
  EXPECT_EQ(total.item(), expected);
  EXPECT_EQ(calls, 4) << "twice to warm up, once captured, once for the smaller batch";
}

TEST_P(GraphOn, AFunctionOfInputsOfSeveralSizes) {
  const Tensor total = filled(0, 1);
  int calls = 0;
  const auto f = [&](const std::vector<Tensor>& in) {
    ++calls;
    total.add_(sum(in[0] * in[1]));
  };
  GraphedFunction add(device(), f, {.warm_up = 1, .most = 2});
  double expected = 0;
  for (int i = 1; i <= 9; ++i) {
    const int64_t n = 10 * (i % 3 + 1);  // three sizes, of which the third stays without a graph
    add({filled(i, n), filled(2, n)});
    expected += 2.0 * i * static_cast<double>(n);
  }
  EXPECT_EQ(total.item(), expected);
  EXPECT_EQ(add.graphs(), 2);
  EXPECT_EQ(add.replays(), 4);
  EXPECT_EQ(calls, 2 * 2 + 3) << "each of two warms up and is captured";

  GraphedFunction little(device(), f, {.warm_up = 0, .most = 2, .most_bytes = 0});
  const auto memory = [&] { return CachingAllocator::of(device()).stats().in_graphs; };
  little({filled(1, 10), filled(1, 10)});
  const size_t one = memory();
  little({filled(1, 20), filled(1, 20)});
  EXPECT_EQ(total.item(), expected + 30);
  EXPECT_EQ(little.graphs(), 1) << "the first one, and no other beyond the bound";
  EXPECT_EQ(memory(), one);
  EXPECT_THAT(little.failure(), HasSubstr("MiB, at most 0 are for them"));
  little({filled(1, 10), filled(1, 10)});
  EXPECT_EQ(little.replays(), 2) << "which goes on";
}

TEST_P(GraphOn, AFunctionThatCannotBeCaptured) {
  const Tensor total = filled(0, 1);
  const auto needs_host = [&](const std::vector<Tensor>& in) { total.add_(in[0], in[0].item()); };
  GraphedFunction strict(device(), needs_host, {.warm_up = 1});
  strict({filled(2, 1)});
  EXPECT_THAT([&] { strict({filled(3, 1)}); }, ThrowsMessage<Error>(HasSubstr("item: needs the host")));
  GraphedFunction lenient(device(), needs_host, {.warm_up = 0, .may_run_eagerly = true});
  for (int i = 0; i < 3; ++i) lenient({filled(3, 1)});
  EXPECT_THAT(lenient.failure(), HasSubstr("item: needs the host"));
  EXPECT_EQ(total.item(), 4 + 3 * 9);
}

TEST_P(GraphOn, RanksReplayTogetherOrNotAtAll) {
  const Tensor total = filled(0, 1);
  std::vector<bool> asked;
  bool others = true;  // the other ranks' answer
  const GraphedFunctionOptions options{.warm_up = 1, .may_run_eagerly = true, .all_agree = [&](bool own) {
                                         asked.push_back(own);
                                         return own && others;
                                       }};
  int calls = 0;
  const auto f = [&](const std::vector<Tensor>& in) {
    ++calls;
    total.add_(sum(in[0]));
  };
  GraphedFunction add(device(), f, options);
  add({filled(1, 4)});
  EXPECT_TRUE(asked.empty()) << "to warm up";
  add({filled(1, 4)});
  EXPECT_EQ(asked, (std::vector<bool>{true, true})) << "on the capture and on its first replay";
  others = false;  // one of them has a smaller batch
  add({filled(1, 4)});
  EXPECT_EQ(calls, 3) << "run, captured, run";
  others = true;
  add({filled(1, 3)});
  EXPECT_EQ(asked, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(total.item(), 15);

  GraphedFunction alone(device(), f, options);
  alone({filled(1, 4)});
  others = false;
  asked.clear();
  for (int i = 0; i < 3; ++i) alone({filled(1, 4)});
  EXPECT_EQ(alone.failure(), "another rank could not capture the step");
  EXPECT_FALSE(alone.is_captured());
  EXPECT_EQ(asked, std::vector<bool>{true}) << "eager for good: nothing is left to agree on";
  EXPECT_EQ(total.item(), 31);
}

TEST_P(GraphOn, SeveralSizesAreOfOneRank) {
  EXPECT_THAT(([&] {
                GraphedFunction({device()}, [](const auto&) {}, {.most = 2, .all_agree = [](bool own) { return own; }});
              }),
              ThrowsMessage<Error>(HasSubstr("expected one graph, or several on one rank, got 2 on several ranks")));
}

TEST(GraphErrors, TheCpuHasNone) {
  Graph graph;
  const std::string text =
      "graph: expected a cuda device, got cpu, which runs each op at once: there is nothing to capture";
  EXPECT_THAT([&] { graph.capture({}, [] {}); }, ThrowsMessage<Error>(text));
  EXPECT_THAT([&] { GraphedFunction({}, [](const auto&) {}); }, ThrowsMessage<Error>(text));
}

TEST_P(GraphOn, MemoryRunsOut) {
  Graph graph;
  EXPECT_THAT([&] { graph.capture(device(), [&] { Tensor::empty({int64_t{1} << 45}, DType::u8, device()); }); },
              ThrowsMessage<OutOfMemory>(HasSubstr("while a graph is captured; live ")));
}

}  // namespace
}  // namespace weft
