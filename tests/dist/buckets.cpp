// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "dist/ddp/reducer.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

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

TEST(Buckets, SizesMustBePositive) {
  const auto flat = flat_of({5});
  EXPECT_EQ(error_text([&] { make_buckets(*flat, {.first_bytes = 0, .bytes = 1}); }),
            "buckets: expected sizes above 0, got 0 and 1 bytes");
}

}  // namespace
}  // namespace weft::dist::testing
