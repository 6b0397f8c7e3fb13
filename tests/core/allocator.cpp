// SPDX-License-Identifier: Apache-2.0
#include "kernels/allocator.h"

#include <gmock/gmock.h>

#include "core/tensor.h"
#include "core/trace.h"

namespace weft {
namespace {

using kernels::CachingAllocator;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Allocator, ReusesBlocksOfAClass) {
  CachingAllocator& allocator = CachingAllocator::of({});
  const void* first = nullptr;
  {
    const Tensor x = Tensor::empty({1000});
    first = x.raw_data();
  }
  const uint64_t raw = allocator.stats().raw_allocations;
  const Tensor y = Tensor::empty({1001});
  EXPECT_EQ(y.raw_data(), first);
  EXPECT_EQ(allocator.stats().raw_allocations, raw);
}

TEST(Allocator, CountsLiveAndPeak) {
  CachingAllocator& allocator = CachingAllocator::of({});
  const size_t before = allocator.stats().live;
  allocator.reset_peak();
  {
    const Tensor x = Tensor::empty({1 << 20});
    EXPECT_GE(allocator.stats().live, before + (4u << 20));
    EXPECT_LE(allocator.stats().live, before + (9u << 19)) << "at most an eighth is lost";
  }
  EXPECT_EQ(allocator.stats().live, before);
  EXPECT_GE(allocator.stats().peak_live, before + (4u << 20));
  EXPECT_GE(allocator.stats().cached, 4u << 20);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().cached, 0u);
}

TEST(Allocator, EverySizeFits) {
  for (size_t bytes = 0; bytes < 70'000; bytes += 97) {
    const Tensor x = Tensor::empty({static_cast<int64_t>(bytes)}, DType::u8);
    ASSERT_NE(x.raw_data(), nullptr);
    x.fill_(7);
  }
}

TEST(Allocator, ReportNamesOwners) {
  const OpScope scope("a_large_op");
  const Tensor x = Tensor::empty({3 << 20});
  EXPECT_THAT(CachingAllocator::of({}).report(), HasSubstr("a_large_op 12.0 MiB in 1 tensor"));
}

TEST(Allocator, OutOfMemoryIsAnError) {
  EXPECT_THAT([] { Tensor::empty({int64_t{1} << 50}, DType::u8); }, ThrowsMessage<Error>(HasSubstr("cannot allocate")));
}

}  // namespace
}  // namespace weft
