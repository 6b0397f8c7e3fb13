// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/allocator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <sstream>
#include <vector>

#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/runtime/pinned_memory.h"
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

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kOwnSegment = 12 * kMiB;  // shares its memory with nobody

/// The allocator's calls on a device that does nothing before the host waits.
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
  kernels::Block *const on_side = take(side), *const on_main = take(main);
  EXPECT_NE(on_side->data, first) << "nothing orders the two streams";
  EXPECT_EQ(on_main->data, first);
  allocator().record_stream(b, main);
  allocator().free(b);
  EXPECT_EQ(gpu_.count("record"), 0);
  allocator().close_pool(pool);
  const size_t in_graphs = allocator().stats().in_graphs;
  take(main);
  EXPECT_EQ(allocator().stats().in_graphs, in_graphs) << "later blocks are nobody's";
  EXPECT_EQ(gpu_.count("record"), 2);
  allocator().release_pool(pool);
  allocator().free(on_side);
  allocator().free(on_main);
  EXPECT_EQ(allocator().stats().in_graphs, 0u);
}

TEST_F(AllocatorOnAStillGpu, FreesWithoutAnErrorWhenTheDeviceHasFailed) {
  kernels::Block *const used = take(nullptr, kOwnSegment), *const unused = take(nullptr, kOwnSegment);
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
    was_free_to_go = freed.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  };
  gpu_.memory = 1 << 20;
  EXPECT_THROW(take(nullptr, 4 * kMiB), OutOfMemory);
  freed.wait();
  EXPECT_TRUE(was_free_to_go) << "the watchdog frees tensors of what it aborts";
}

TEST_F(AllocatorOnAStillGpu, ASmallBlockIsAPieceOfALargeSegmentWhereMemoryRunsOut) {
  gpu_.memory = 20 * kMiB;
  kernels::Block* const large = take(nullptr, 5 * kMiB);
  kernels::Block* const small = take(nullptr, 1000);
  EXPECT_EQ(gpu_.count("release"), 0);
  EXPECT_EQ(static_cast<char*>(small->data), static_cast<char*>(large->data) + 5 * kMiB);
  EXPECT_THROW(take(some_stream(), 1000), OutOfMemory) << "nothing orders the two streams";
  allocator().free(large);
  allocator().free(small);
  allocator().free(take(nullptr, 20 * kMiB));
  EXPECT_EQ(gpu_.count("release"), 0) << "the pieces are one again";
}

TEST_F(AllocatorOnAStillGpu, GivesBackItsCacheWhereMemoryRunsOut) {
  gpu_.memory = 1 << 20;
  allocator().free(take(nullptr, 700 << 10));
  kernels::Block* const block = take(nullptr, 800 << 10);
  EXPECT_EQ(gpu_.count("release"), 1);
  allocator().free(block);
}

TEST_F(AllocatorOnAStillGpu, ABatchOfAnotherSizeUsesTheSameMemory) {
  kernels::Block* const batch = take(nullptr, 96 * kMiB);
  void* const memory = batch->data;
  allocator().free(batch);
  kernels::Block *const a = take(nullptr, 30 * kMiB), *const b = take(nullptr, 40 * kMiB),
                        *const c = take(nullptr, 26 * kMiB);
  EXPECT_EQ(a->data, memory) << "cut from it";
  EXPECT_EQ(allocator().stats().raw_allocations, 1u);
  EXPECT_EQ(allocator().stats().live, 96 * kMiB);
  EXPECT_EQ(allocator().stats().cached, 0u);
  allocator().free(a);
  allocator().free(c);
  kernels::Block* const other = take(nullptr, 31 * kMiB);
  EXPECT_EQ(allocator().stats().raw_allocations, 2u) << "30 and 26 MiB do not lie side by side";
  allocator().free(b);  // joins both
  EXPECT_EQ(take(nullptr, 96 * kMiB)->data, memory);
  EXPECT_EQ(allocator().stats().raw_allocations, 2u);
  allocator().free(other);
}

TEST_F(AllocatorOnAStillGpu, PiecesHoldWhatIsWrittenThere) {
  std::mt19937 random(7);
  std::vector<std::pair<kernels::Block*, int>> blocks;
  void* const streams[] = {nullptr, some_stream()};
  for (int step = 0; step < 1000; ++step) {
    if (blocks.empty() || random() % 5 < 3) {
      const size_t bytes = random() % 3 ? random() % (6 * kMiB) : random() % 5000 + 1;
      blocks.emplace_back(take(streams[random() % 2], bytes), static_cast<int>(random() % 256));
      std::memset(blocks.back().first->data, blocks.back().second, bytes);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto [block, byte] = blocks.back();
      const auto* const data = static_cast<const unsigned char*>(block->data);
      ASSERT_TRUE(std::all_of(data, data + block->bytes, [byte = byte](unsigned char c) { return c == byte; }))
          << "nobody else has written there";
      allocator().free(block);
      blocks.pop_back();
    }
    if (blocks.size() > 60 || step == 999)
      for (; !blocks.empty(); blocks.pop_back()) allocator().free(blocks.back().first);
  }
  EXPECT_EQ(allocator().stats().live, 0u);
  allocator().empty_cache();
  EXPECT_EQ(allocator().stats().cached, 0u);
  EXPECT_EQ(gpu_.count("release"), gpu_.count("allocate")) << "all joined again";
}

TEST_F(AllocatorOnAStillGpu, SmallBlocksComeTogether) {
  std::vector<kernels::Block*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(take(nullptr));
  EXPECT_EQ(gpu_.count("allocate"), 1);
  allocator().empty_cache();
  EXPECT_EQ(gpu_.count("release"), 0) << "they are in use";
  for (kernels::Block* const block : blocks) allocator().free(block);
  allocator().empty_cache();
  EXPECT_EQ(gpu_.count("release"), 1);
}

TEST_F(AllocatorOnAStillGpu, TheSnapshotShowsEveryBlock) {
  void* const user = some_stream();
  kernels::Block *const a = take(nullptr, 2 * kMiB), *const b = take(nullptr, 3 * kMiB),
                        *const c = take(nullptr, 4 * kMiB);
  allocator().free(a);
  allocator().record_stream(b, user);
  gpu_.fill_bytes(0, b->data, 0, 8, user);
  allocator().free(b);
  EXPECT_THAT(allocator().snapshot(),
              HasSubstr(R"("blocks": [{"offset": 0, "bytes": 2097152, "state": "free", "owner": ""}, )"
                        R"({"offset": 2097152, "bytes": 3145728, "state": "waiting", "owner": "test"}, )"
                        R"({"offset": 5242880, "bytes": 4194304, "state": "live", "owner": "test"}, )"
                        R"({"offset": 9437184, "bytes": 11534336, "state": "free", "owner": ""}]})"));
  allocator().free(c);
}

TEST_F(AllocatorOnAStillGpu, RunningOutLeavesASnapshot) {
  const std::string path = testing::TempDir() + "weft_snapshot.json";
  kernels::Block* const block = take(nullptr, kOwnSegment);
  gpu_.memory = kMiB;
  ::setenv("WEFT_MEMORY_SNAPSHOT", path.c_str(), 1);
  EXPECT_THAT([&] { take(nullptr, 5 * kMiB); }, ThrowsMessage<OutOfMemory>(HasSubstr("Snapshot in " + path)));
  ::setenv("WEFT_MEMORY_SNAPSHOT", "/nowhere/at/all", 1);
  EXPECT_THAT([&] { take(nullptr, 5 * kMiB); }, ThrowsMessage<OutOfMemory>(HasSubstr("could not be written")));
  ::unsetenv("WEFT_MEMORY_SNAPSHOT");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), allocator().snapshot());
  std::filesystem::remove(path);
  allocator().free(block);
}

TEST_F(AllocatorOnAStillGpu, AsksForLessWhereMemoryIsShort) {
  gpu_.memory = 5 * kMiB;
  kernels::Block *const large = take(nullptr, 4 * kMiB), *const small = take(nullptr, kMiB);
  EXPECT_EQ(gpu_.memory, 0u);
  allocator().free(large);
  allocator().free(small);
}

TEST(PinnedMemory, IsKeptForWhoComesNext) {
  tests::StillGpu still;
  void* first = nullptr;
  {
    const kernels::PinnedMemory memory(DeviceKind::cuda, 100'000, "test");
    first = memory.as<void>();
  }
  kernels::PinnedMemory again(DeviceKind::cuda, 90'000, "test");
  EXPECT_EQ(again.as<void>(), first);
  const kernels::PinnedMemory little(DeviceKind::cuda, 100, "test");
  again.at_least(80'000, "test");
  EXPECT_EQ(again.as<void>(), first) << "large enough";
  EXPECT_EQ(still.gpu.count("allocate_pinned"), 2);
  again.at_least(200'000, "test");
  EXPECT_NE(again.as<void>(), first);
  EXPECT_EQ(kernels::release_kept_pinned_memory(), 102'400u) << "pages";
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
