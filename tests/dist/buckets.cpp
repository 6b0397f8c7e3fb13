// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <mutex>

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "dist/ddp/reducer.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"
#include "tests/dist/replicas.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<FlatParameters> flat_of(const std::vector<int64_t>& sizes) {
  std::vector<NamedTensor> parameters;
  for (const int64_t size : sizes)
    parameters.push_back({"p" + std::to_string(parameters.size()), Tensor::zeros({size}).requires_grad_()});
  return FlatParameters::of(parameters);
}

TEST(Buckets, AreCutAtParametersFromTheEnd) {
  // 64 + 32 + 320 + 32 + 96 elements of four bytes.
  const auto flat = flat_of({64, 32, 320, 32, 96});
  const auto buckets = make_buckets(*flat, {.first_bytes = 256, .bytes = 1000});
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].name, "p4");
  EXPECT_EQ(buckets[1].name, "p2…p3");
  EXPECT_EQ(buckets[2].name, "p0…p1");
  EXPECT_EQ(buckets[0].range.offset, 64 + 32 + 320 + 32);
  EXPECT_EQ(buckets[0].range.numel, 96);
  EXPECT_EQ(buckets[1].range.offset, 96);
  EXPECT_EQ(buckets[1].range.numel, 352);
}

TEST(Buckets, CoverTheFlatGradientOnce) {
  const auto flat = flat_of({5, 70, 1, 300, 33, 8, 1000, 2});
  for (const int64_t bytes : {1L, 100L, 500L, 4000L, 1L << 40}) {
    const auto buckets = make_buckets(*flat, {.first_bytes = bytes, .bytes = bytes});
    int64_t end = flat->numel();
    size_t last = flat->slices().size();
    for (const Bucket& bucket : buckets) {
      EXPECT_EQ(bucket.last, last);
      EXPECT_EQ(bucket.range.offset + bucket.range.numel, end);
      EXPECT_EQ(bucket.range.offset, flat->slices()[bucket.first].offset);
      end = bucket.range.offset;
      last = bucket.first;
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(last, 0u);
    EXPECT_EQ(buckets.size(), bytes == 1 ? 8u : bytes == 1L << 40 ? 1u : buckets.size());
  }
}

std::vector<std::string> names_of(const std::vector<Bucket>& buckets) {
  std::vector<std::string> names;
  for (const Bucket& bucket : buckets) names.push_back(bucket.name);
  return names;
}

TEST(Buckets, FollowAnOrderInRunsOfNeighbours) {
  const auto flat = flat_of({32, 32, 32, 32, 32});
  const auto buckets = make_buckets(*flat, {.first_bytes = 384, .bytes = 1 << 20}, {1, 4, 2, 0, 3});
  EXPECT_THAT(names_of(buckets), ElementsAre("p4", "p1…p2", "p3", "p0"));
  EXPECT_EQ(buckets[1].range.offset, 32);
  EXPECT_EQ(buckets[1].range.numel, 64);
  int64_t covered = 0;
  for (const Bucket& bucket : buckets) covered += bucket.range.numel;
  EXPECT_EQ(covered, flat->numel());
}

TEST(Buckets, AHugeParameterIsReducedAloneAndInOnePiece) {
  constexpr int64_t kHuge = (1 << 20) / 4;  // elements of 1 MiB
  const auto flat = flat_of({40, 2 * kHuge + 32, kHuge, 40});
  const auto buckets = make_buckets(*flat, {.first_bytes = 1 << 30, .bytes = 1 << 10});
  EXPECT_THAT(names_of(buckets), ElementsAre("p2…p3", "p1", "p0"));
  EXPECT_EQ(buckets[1].range.offset, 64);
  EXPECT_EQ(buckets[1].range.numel, 2 * kHuge + 32);
}

/// Layers that are named in another order than they run in.
struct Crossed : nn::Module {
  nn::Linear a{8, 8}, b{8, 8}, c{8, 8};
  bool swapped;
  explicit Crossed(bool swap) : swapped(swap) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor y = c(x);
    return swapped ? b(a(y)) : a(b(y));
  }
  void fields(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
    v("c", c);
  }
};

TEST(Buckets, AreMadeAnewInTheOrderOfRank0sGradients) {
  std::mutex mutex;
  std::vector<std::vector<std::string>> names;
  run_ranks(3, [&](const ProcessGroupPtr& group) {
    // Rank 1 runs the layers in an order of its own.
    DDP ddp(build([&] { return std::make_shared<Crossed>(group->rank() == 1); }, 1, DeviceKind::cpu), group,
            {.bucket_mb = 300.0 / (1 << 20), .first_bucket_mb = 300.0 / (1 << 20)});
    const auto pass = [&] { sum(ddp(Tensor::ones({2, 8}))).backward(); };
    EXPECT_THAT(names_of(ddp.buckets()), ElementsAre("c.weight…c.bias", "b.weight…b.bias", "a.weight…a.bias"));
    pass();
    const auto after = names_of(ddp.buckets());
    pass();
    EXPECT_EQ(names_of(ddp.buckets()), after) << "once";
    const std::lock_guard lock(mutex);
    names.push_back(after);
  });
  EXPECT_THAT(names, ::testing::Each(ElementsAre("a.weight…a.bias", "b.weight…b.bias", "c.weight…c.bias")));
}

/// A tied embedding: its last gradient comes at the end of backward, and it is larger than all the rest.
struct TiedTable : nn::Module {
  Tensor table = Tensor::full({600'000}, 0.01).requires_grad_();  // 2.3 MiB
  nn::Linear middle{1000, 1000};
  Tensor forward(const Tensor& x) const override {
    const Tensor rows = table.reshape({600, 1000});
    return matmul(middle(matmul(x, rows)), rows.transpose(0, 1));
  }
  void fields(nn::Visitor& v) override {
    v("table", table);
    v("middle", middle);
  }
};

class OrderOfBuckets : public ::testing::TestWithParam<std::string> {};

// The host backends add each element in the order of the ranks, wherever it lies: buckets change no bit. nccl's order
// of addition depends on an element's place in its buffer, so that there the last bits may differ.
TEST_P(OrderOfBuckets, ChangesNoBit) {
  run_on(GetParam(), 3, [](const ProcessGroupPtr& group) {
    const auto train = [&](DdpOptions options) {
      const auto model = build([] { return std::make_shared<TiedTable>(); }, 5, DeviceKind::cpu);
      DDP ddp(model, group, options);
      optim::SGD sgd(ddp.parameters(), {.lr = 1e-3, .momentum = 0.9});
      for (int step = 0; step < 3; ++step) {
        sgd.zero_grad();
        const Tensor x = samples(step, group->rank(), 1, {600}, DeviceKind::cpu);
        const Tensor y = ddp(x);
        mean(y * y).backward();
        sgd.step();
      }
      return std::pair(weights_of(*model), ddp.buckets().size());
    };
    const auto [many, each] = train({.bucket_mb = 0.001, .first_bucket_mb = 0.001});
    const auto [few, buckets] = train({.bucket_mb = 1000, .first_bucket_mb = 1000});
    EXPECT_EQ(each, 3u) << "the table, the weight, the bias";
    EXPECT_EQ(buckets, 1u);
    EXPECT_EQ(many, few);
  });
}
INSTANTIATE_TEST_SUITE_P(, OrderOfBuckets, ::testing::ValuesIn(backends()), [](const auto& p) { return p.param; });

// GPT-2's embedding, 154 MB, is the last gradient to come.
TEST(Buckets, NothingOfSizeWaitsForALargeParameter) {
  const auto buckets = make_buckets(*flat_of({300, 80, 96}), {.first_bytes = 256, .bytes = 1000});
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[1].name, "p1");
  EXPECT_EQ(buckets[2].name, "p0");
  EXPECT_EQ(make_buckets(*flat_of({300, 32, 96}), {.first_bytes = 256, .bytes = 1000})[1].name, "p0…p1")
      << "too little for a call of its own";
}

TEST(Buckets, SizesMustBePositive) {
  const auto flat = flat_of({5});
  EXPECT_EQ(error_text([&] { make_buckets(*flat, {.first_bytes = 0, .bytes = 1}); }),
            "buckets: expected sizes above 0, got 0 and 1 bytes");
}

}  // namespace
}  // namespace weft::dist::testing
