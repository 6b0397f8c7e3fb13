// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/autograd.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/profile/chrome_trace.h"
#include "core/profile/op_table.h"
#include "core/profile/profiler.h"
#include "core/profile/recorder.h"
#include "core/trace.h"
#include "kernels/runtime/allocator.h"
#include "tests/support/hopper.h"

namespace weft {
namespace {

using profile::Category;
using profile::Profiler;
using profile::Recording;
using profile::Span;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

Device device_of(DeviceKind kind) { return {kind, 0}; }

/// One small step on `device`, under the profiler.
Recording profile_step(Device device) {
  const Tensor x = normal({2, 8, 8, 4}, 0, 1, DType::f32, device);
  const Tensor w = normal({8, 3, 3, 4}, 0, 1, DType::f32, device).requires_grad_();
  Profiler profiler;
  {
    const TraceScope step("step");
    sum(relu(conv2d(x, w, {}, {.padding = {1, 1}}))).backward();
  }
  return profiler.stop();
}

std::vector<std::string> names(const Recording& recording, Category category) {
  std::vector<std::string> found;
  for (const Span& span : recording.spans)
    if (span.category == category) found.push_back(std::string(span.name) + (span.backward ? " backward" : ""));
  return found;
}

/// Per track, spans of one recording must nest or follow each other.
void expect_nested(const Recording& recording) {
  std::map<int, std::vector<Span>> by_track;
  for (const Span& span : recording.spans) {
    EXPECT_LE(0, span.start);
    EXPECT_LE(span.start, span.end);
    EXPECT_LE(span.end, recording.duration);
    by_track[span.track].push_back(span);
  }
  for (auto& [track, spans] : by_track) {
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::vector<Span> open;
    for (const Span& span : spans) {
      while (!open.empty() && open.back().end <= span.start) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(span.end, open.back().end) << span.name << " reaches out of " << open.back().name;
      }
      open.push_back(span);
    }
  }
}

class ProfileOnDevice : public testing::TestWithParam<DeviceKind> {};

TEST_P(ProfileOnDevice, SeesForwardBackwardAndKernels) {
  const Recording seen = profile_step(device_of(GetParam()));
  EXPECT_THAT(names(seen, Category::part), testing::ElementsAre("step"));
  EXPECT_THAT(names(seen, Category::op),
              testing::IsSupersetOf({"conv2d", "relu", "sum", "sum backward", "relu backward", "conv2d backward"}));
  EXPECT_THAT(names(seen, Category::kernel),
              testing::IsSupersetOf({"conv2d_forward", "conv2d_backward_weight backward", "reduce"}));
  expect_nested(seen);
}

TEST_P(ProfileOnDevice, KernelsTakeNoLongerThanTheClock) {
  const Recording seen = profile_step(device_of(GetParam()));
  int64_t sum = 0;
  for (const Span& span : seen.spans)
    if (span.category == Category::kernel) sum += span.end - span.start;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, seen.duration);
}

TEST_P(ProfileOnDevice, MemoryPeakIsTheAllocators) {
  const Device device = device_of(GetParam());
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of(device);
  allocator.reset_peak();
  Profiler profiler;
  {
    const Tensor a = Tensor::ones({1000, 100}, DType::f32, device);
    const Tensor b = Tensor::ones({3000, 100}, DType::f32, device);
  }
  const Tensor c = Tensor::ones({10}, DType::f32, device);
  const Recording seen = profiler.stop();
  int64_t peak = 0;
  for (const profile::MemorySample& sample : seen.memory)
    if (sample.device == device) peak = std::max(peak, sample.live);
  EXPECT_EQ(static_cast<size_t>(peak), allocator.stats().peak_live);
  EXPECT_EQ(static_cast<size_t>(seen.memory.back().live), allocator.stats().live);
}

TEST_P(ProfileOnDevice, CountsTheWorkOfAConvolution) {
  const Recording seen = profile_step(device_of(GetParam()));
  double flop = 0;
  for (const Span& span : seen.spans)
    if (span.name == std::string("conv2d_forward")) {
      flop += span.flop;
      EXPECT_STREQ(span.op, "conv2d");
      EXPECT_EQ(span.bytes, 4 * (2 * 64 * 4 + 8 * 9 * 4 + 2 * 64 * 8));
    }
  EXPECT_EQ(flop, 2.0 * 2 * 64 * 8 * 9 * 4);
}

INSTANTIATE_TEST_SUITE_P(Devices, ProfileOnDevice, testing::ValuesIn(tests::test_devices()),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(Profile, EventsTimeKernelsOnTheirStream) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  const Recording seen = profile_step(device_of(DeviceKind::cuda));
  expect_nested(seen);
  int64_t sum = 0;
  int kernels = 0;
  for (const Span& span : seen.spans) {
    if (span.category != Category::kernel) continue;
    EXPECT_EQ(seen.tracks[static_cast<size_t>(span.track)].process, "cuda:0");
    EXPECT_EQ(seen.tracks[static_cast<size_t>(span.track)].name, "default stream");
    sum += span.end - span.start;
    ++kernels;
  }
  EXPECT_GE(kernels, 5);
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, seen.duration);
}

/// A profile's names of the kernels of products, convolutions and attention in bf16, each name once.
std::vector<std::string> kernels_of_tensor_cores() {
  const auto random = [](Shape sizes) {
    return normal(std::move(sizes), 0, 1, DType::f32, device_of(DeviceKind::cuda)).to(DType::bf16).requires_grad_();
  };
  const Tensor x = random({1, 6, 6, 16}), w = random({16, 3, 3, 16}), q = random({1, 20, 1, 64});
  const Tensor a = random({24, 16}), b = random({16, 24});
  Profiler profiler;
  sum(conv2d(x, w, {}, {.padding = {1, 1}})).backward();
  sum(matmul(a, b)).backward();
  sum(attention(q, q, q)).backward();
  const Recording seen = profiler.stop();
  std::set<std::string> found;
  for (const Span& span : seen.spans) {
    const std::string op = span.op;
    if (span.category == Category::kernel && (op == "conv2d" || op == "matmul" || op == "attention") &&
        !std::string(span.name).starts_with("copy") && span.name != std::string("binary_forward"))
      found.insert(span.kernel());
  }
  const nlohmann::json trace = nlohmann::json::parse(profile::chrome_trace(seen));
  const std::string table = profile::op_table(seen);
  for (const std::string& name : found) {
    EXPECT_THAT(table, HasSubstr(' ' + name + ' '));
    EXPECT_TRUE(std::ranges::any_of(trace.at("traceEvents"), [&](const auto& event) {
      return event.at("name") == name;
    })) << name;
  }
  return {found.begin(), found.end()};
}

TEST(Profile, NamesTellHoppersKernelsFromOthers) {
  if (const std::string why = tests::why_no_wgmma(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<std::string> contracts{"attention_backward",     "attention_forward", "conv2d_backward_input",
                                           "conv2d_backward_weight", "conv2d_forward",    "matmul"};
  std::vector<std::string> hopper;
  for (const std::string& name : contracts) hopper.push_back(name + "_sm90");
  EXPECT_EQ(kernels_of_tensor_cores(), hopper);
  const kernels::CapabilityScope ampere(80);
  EXPECT_EQ(kernels_of_tensor_cores(), contracts);
}

TEST(Profile, ThreadsHaveTracksOfTheirOwn) {
  Profiler profiler;
  const auto work = [](int n) {
    profile::name_thread(str("worker ", n));
    for (int i = 0; i < 200; ++i) {
      const TraceScope outer("outer");
      const TraceScope inner("inner");
      Tensor::ones({16}).add_(Tensor::ones({16}));
    }
  };
  std::thread first(work, 1), second(work, 2);
  work(3);
  first.join();
  second.join();
  profile::name_thread("main");
  const Recording seen = profiler.stop();
  expect_nested(seen);
  std::vector<std::string> threads;
  for (const profile::Track& track : seen.tracks)
    if (track.process == "threads") threads.push_back(track.name);
  EXPECT_THAT(threads, testing::UnorderedElementsAre("worker 1", "worker 2", "worker 3"));
  EXPECT_EQ(std::ranges::count(names(seen, Category::part), "inner"), 600);
}

TEST(Profile, ChromeTraceIsJson) {
  const Recording seen = profile_step({});
  const nlohmann::json trace = nlohmann::json::parse(profile::chrome_trace(seen));
  size_t complete = 0, counters = 0;
  bool convolution = false;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "X") {
      ++complete;
      EXPECT_GE(event.at("ts").get<double>(), 0);
      EXPECT_GE(event.at("dur").get<double>(), 0);
      EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(),
                static_cast<double>(seen.duration) / 1000 + 1e-3);
      convolution |= event.at("name") == "conv2d_forward" && event.at("args").at("flop").get<int64_t>() == 73728;
    } else if (phase == "C") {
      ++counters;
      EXPECT_GE(event.at("args").at("live").get<int64_t>(), 0);
    } else {
      EXPECT_EQ(phase, "M");
    }
  }
  EXPECT_EQ(complete, seen.spans.size());
  EXPECT_EQ(counters, seen.memory.size());
  EXPECT_TRUE(convolution);
}

TEST(Profile, ChromeTraceEscapesNames) {
  Recording recording;
  recording.tracks = {{"threads", "a \"name\"\\\n\xff"}};
  recording.spans = {{.name = "line\nbreak", .start = 1234567, .end = 2000000}};
  const nlohmann::json trace = nlohmann::json::parse(profile::chrome_trace(recording));
  EXPECT_EQ(trace.at("traceEvents").back().at("name"), "line\nbreak");
  EXPECT_EQ(trace.at("traceEvents").back().at("ts").get<double>(), 1234.567);
}

TEST(Profile, TableAddsUpByOp) {
  Recording recording;
  recording.tracks = {{"threads", "main"}, {"cpu", "kernels of main"}};
  const auto kernel = [](const char* op, bool backward, int64_t start, int64_t end, double flop) {
    return Span{.category = Category::kernel,
                .backward = backward,
                .track = 1,
                .name = "matmul",
                .op = op,
                .start = start,
                .end = end,
                .bytes = 4'000'000,
                .flop = flop};
  };
  recording.spans = {kernel("linear", false, 0, 1'000'000, 5e9),
                     kernel("linear", true, 1'000'000, 4'000'000, 9e9),
                     kernel("linear", false, 5'000'000, 6'000'000, 5e9),
                     {.name = "step", .start = 0, .end = 8'000'000}};
  recording.duration = 10'000'000;
  const auto rows = profile::op_rows(recording);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].op, "linear backward");
  EXPECT_EQ(rows[1].calls, 2);
  EXPECT_EQ(rows[1].time, 2'000'000);
  EXPECT_EQ(rows[1].flop, 1e10);
  const std::string table = profile::op_table(recording);
  EXPECT_THAT(table, ContainsRegex("linear +matmul +2 +2.000 +20.0% +8.0 +10.0 +4.0 +5000\n"));
  EXPECT_THAT(table, ContainsRegex("all kernels +3 +5.000 +50.0%"));
  EXPECT_THAT(table, ContainsRegex("main: step +1 +8.000 +80.0%"));
}

TEST(Profile, NothingIsRecordedOutside) {
  { const TraceScope before("before"); }
  auto scope = std::make_unique<TraceScope>("began before");
  Profiler profiler;
  scope.reset();
  auto open = std::make_unique<TraceScope>("ends after");
  const Recording seen = profiler.stop();
  open.reset();
  EXPECT_THAT(seen.spans, testing::IsEmpty());
  EXPECT_FALSE(profile::is_recording());
}

TEST(Profile, OneAtATime) {
  Profiler profiler;
  EXPECT_THAT([] { Profiler second; }, ThrowsMessage<Error>(HasSubstr("profiler: another one records; stop it first")));
  profiler.stop();
  EXPECT_THAT([&] { profiler.stop(); }, ThrowsMessage<Error>(HasSubstr("profiler: it has been stopped already")));
  Profiler third;
}

}  // namespace
}  // namespace weft
