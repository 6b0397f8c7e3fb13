// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/profile/profiler.h"
#include "core/trace.h"
#include "nn/linear.h"
#include "tests/dist/replicas.h"
#include "tests/dist/several_gpus.h"

namespace weft::dist::testing {
namespace {

using profile::Category;
using profile::Span;

/// Many layers, so that there is backward left to hide behind.
struct Deep : nn::Module {
  std::vector<std::shared_ptr<nn::Linear>> layers;
  Deep() {
    for (int i = 0; i < 12; ++i) layers.push_back(std::make_shared<nn::Linear>(256, 256));
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const auto& layer : layers) y = relu((*layer)(y));
    return y;
  }
  void fields(nn::Visitor& v) override { v("layers", layers); }
};

int64_t common(const Span& a, const Span& b) {
  return std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.start, b.start));
}

/// Names its layers in one order and calls them in the other.
struct Backwards : Deep {
  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) y = relu((**layer)(y));
    return y;
  }
};

// The first step learns in which order buckets fill. In the order of their names all would wait for the last gradient.
TEST(DdpOverlap, BucketsBeginInTheOrderInWhichTheyFill) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    const auto model = std::make_shared<Backwards>();
    DDP ddp(model, group, {.bucket_mb = 0.25, .first_bucket_mb = 0.25});
    ASSERT_EQ(ddp.buckets().size(), 12u);
    const Tensor x = Tensor::ones({2, 256});
    const auto begun = [&] { return lines_with(group->flight_log(), "'gradients "); };
    size_t before = 0, seen = 0;
    model->layers[10]->weight.register_accumulated_hook(
        [&](const Tensor&) { seen = begun() - before; });  // the last but one
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      before = begun();
      sum(ddp(x)).backward();
      EXPECT_EQ(begun() - before, 12u);
      if (step == 0)
        EXPECT_EQ(seen, 0u) << "it counts";
      else
        EXPECT_GE(seen, 10u);
    }
  });
}

/// The share of five steps' communication that runs while backward computes.
double hidden_share() {
  profile::Recording seen;
  std::unique_ptr<profile::Profiler> profiler;
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    DDP ddp(build([] { return std::make_shared<Deep>(); }, 1, DeviceKind::cpu), group,
            {.bucket_mb = 0.25, .first_bucket_mb = 0.25});
    EXPECT_EQ(ddp.buckets().size(), 12u);
    const Tensor x = Tensor::ones({256, 256});
    for (int step = 0; step < 6; ++step) {
      group->barrier();
      if (step == 1 && group->rank() == 0) profiler = std::make_unique<profile::Profiler>();
      group->barrier();
      ddp.module().zero_grad();
      const Tensor loss = sum(ddp(x));
      const TraceScope scope("backward");
      loss.backward();
    }
    group->barrier();
    if (group->rank() == 0) seen = profiler->stop();
  });

  // The threads that ran backward are the ranks; each rank's collectives have a track of their own.
  std::vector<Span> backward, waits, collectives;
  for (const Span& span : seen.spans) {
    if (span.name == std::string_view("backward") && span.category == Category::part) backward.push_back(span);
    if (span.name == std::string_view("wait for gradients")) waits.push_back(span);
    if (span.category == Category::collective && span.name == std::string_view("all_reduce"))
      collectives.push_back(span);
  }
  EXPECT_EQ(backward.size(), 2u * 5);
  EXPECT_EQ(waits.size(), 2u * 5);
  EXPECT_EQ(collectives.size(), 2u * 5 * 13);  // 12 buckets and the count of samples
  // Hidden is what runs while both ranks are inside backward and not yet waiting at its end.
  int64_t all = 0, hidden = 0;
  for (const Span& collective : collectives) {
    all += collective.end - collective.start;
    int64_t inside = 0, waiting = 0;
    for (const Span& span : backward)
      if (span.track == backward.front().track) inside += common(collective, span);
    for (const Span& span : waits)
      if (span.track == backward.front().track) waiting += common(collective, span);
    hidden += inside - waiting;
  }
  const double share = static_cast<double>(hidden) / static_cast<double>(all);
  std::printf("communication %.2f ms in 5 steps of 2 ranks, %.0f%% of it behind backward\n",
              static_cast<double>(all) * 1e-6, 100 * share);
  return share;
}

// The claim of docs/data_parallel.md on a trace: gradients travel while backward computes. A rank that has to wait for
// a core makes a collective of the other one long; not five times in turn.
TEST(DdpOverlap, CommunicationIsHiddenBehindBackward) {
  double best = 0;
  for (int run = 0; run < 5 && best <= 0.15; ++run) best = std::max(best, hidden_share());
  EXPECT_GT(best, 0.15);
}

}  // namespace
}  // namespace weft::dist::testing
