// SPDX-License-Identifier: Apache-2.0
#include "kernels/allocator.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <future>

#include "core/tensor.h"
#include "core/trace.h"
#include "tests/support/still_device.h"

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

/// What the allocator asks of a device on which nothing is done before the host waits for it.
class AllocatorOnAStillGpu : public testing::Test {
 protected:
  void* some_stream() { return still_.gpu.create_stream(0); }
  kernels::Block* take(void* stream, size_t bytes = 1000) { return allocator().allocate(bytes, stream, "test"); }
  CachingAllocator& allocator() const { return CachingAllocator::of(still_.device); }

  tests::StillGpu still_;
  tests::StillDevice& gpu_ = still_.gpu;
};

TEST_F(AllocatorOnAStillGpu, ABlockIsUsedAgainWhenAllItsStreamsHaveDoneTheirWork) {
  void *const own = some_stream(), *const user = some_stream();
  kernels::Block* const block = take(own);
  void* const memory = block->data;
  allocator().record_stream(block, user);  // as a loader does, before the step that uses the batch
  gpu_.fill_bytes(0, memory, 1, 8, user);
  allocator().free(block);
  kernels::Block* const other = take(own);
  EXPECT_NE(other->data, memory) << "the user's work is still to be done";
  gpu_.synchronize_stream(0, user);
  kernels::Block* const again = take(own);
  EXPECT_EQ(again->data, memory);
  allocator().free(other);
  allocator().free(again);
  EXPECT_EQ(take(own)->data, memory) << "a block forgets its users";
}

TEST_F(AllocatorOnAStillGpu, AUserTakesOneEventHoweverOften) {
  void *const one = some_stream(), *const two = some_stream();
  for (int step = 0; step < 3; ++step) {
    kernels::Block* const bucket = take(nullptr);
    for (int use = 0; use < 50; ++use) allocator().record_stream(bucket, one);
    allocator().record_stream(bucket, two);
    allocator().record_stream(bucket, nullptr);  // its own
    allocator().free(bucket);
    EXPECT_EQ(gpu_.count("record"), 2 * (step + 1));
    gpu_.synchronize_device(0);
    allocator().free(take(nullptr));  // asks whether the uses are over
  }
  EXPECT_EQ(gpu_.events(), 2) << "events are used again";
}

TEST_F(AllocatorOnAStillGpu, ACaptureRecordsNoEventsAndTakesAllOfItsThread) {
  void *const main = some_stream(), *const side = some_stream();
  kernels::Block* const before = take(side);
  allocator().record_stream(before, main);
  kernels::MemoryPool* const pool = allocator().open_pool();
  allocator().free(before);
  kernels::Block *const a = take(main), *const b = take(side);
  EXPECT_GE(allocator().stats().in_graphs, 2000u) << "side streams, too";
  void* const first = a->data;
  allocator().free(a);
  EXPECT_NE(take(side)->data, first) << "nothing orders the two streams";
  EXPECT_EQ(take(main)->data, first);
  allocator().record_stream(b, main);
  allocator().free(b);
  EXPECT_EQ(gpu_.count("record"), 0);
  allocator().close_pool(pool);
  kernels::Block* const after = take(main);
  EXPECT_EQ(after->pool, nullptr);
  EXPECT_EQ(gpu_.count("record"), 2);
}

TEST_F(AllocatorOnAStillGpu, FreesWithoutAnErrorWhenTheDeviceHasFailed) {
  kernels::Block *const used = take(nullptr), *const unused = take(nullptr);
  void* const user = some_stream();
  allocator().record_stream(used, user);
  gpu_.fill_bytes(0, used->data, 0, 8, user);
  gpu_.failure = "an illegal memory access was encountered";
  allocator().free(used);  // noexcept: an error would end the process
  allocator().free(unused);
  EXPECT_EQ(allocator().stats().live, 0u);
  EXPECT_NO_THROW(allocator().empty_cache());
  EXPECT_EQ(gpu_.count("release"), 1);
  gpu_.failure.clear();
  gpu_.synchronize_device(0);
  allocator().empty_cache();
  EXPECT_EQ(gpu_.count("release"), 2);
}

TEST_F(AllocatorOnAStillGpu, OthersGoOnWhileItWaitsForTheDevice) {
  kernels::Block* const theirs = take(nullptr);
  std::future<void> freed;
  bool was_free_to_go = false;
  gpu_.while_waiting = [&] {
    freed = std::async(std::launch::async, [&] { allocator().free(theirs); });
    was_free_to_go = freed.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  };
  gpu_.memory = 1 << 20;
  EXPECT_THROW(take(nullptr, 1 << 21), OutOfMemory);
  freed.wait();
  EXPECT_TRUE(was_free_to_go) << "the watchdog frees tensors of what it aborts";
}

TEST_F(AllocatorOnAStillGpu, GivesBackItsCacheWhereMemoryRunsOut) {
  gpu_.memory = 1 << 20;
  allocator().free(take(nullptr, 700 << 10));
  kernels::Block* const block = take(nullptr, 800 << 10);
  EXPECT_EQ(gpu_.count("release"), 1);
  allocator().free(block);
}

TEST_F(AllocatorOnAStillGpu, CachesNothingWhereItIsToldSo) {
  ::setenv("WEFT_NO_CACHE", "1", 1);
  kernels::Block* const block = take(nullptr, 1001);
  ::unsetenv("WEFT_NO_CACHE");
  EXPECT_EQ(block->capacity, 1001u) << "an overrun must not land in the rest of a size class";
  allocator().free(block);
  EXPECT_EQ(gpu_.count("release"), 1);
  EXPECT_EQ(allocator().stats().cached, 0u);
}

}  // namespace
}  // namespace weft
