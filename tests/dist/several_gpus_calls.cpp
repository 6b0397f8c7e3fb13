// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "core/graph.h"
#include "core/ops/binary.h"
#include "core/stream.h"
#include "dist/group/watchdog.h"
#include "tests/dist/several_gpus.h"
#include "tests/support/error_text.h"

namespace {
std::atomic<bool> driver_hangs{false};
}

/// The program's own comes before the CUDA runtime's: it answers when the driver no longer hangs.
extern "C" int cudaEventQuery(void* event) {
  static const auto runtimes = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_NEXT, "cudaEventQuery"));
  driver_hangs.wait(true);
  return runtimes(event);
}

namespace weft::dist::testing {
namespace {

using ::testing::HasSubstr;

// NCCL's thread enqueues a call on its stream some time after the call has returned: at least 200 us in the emulator.
// The caller computes meanwhile.
TEST_F(SeveralGpus, ACallDoesNotWaitForNcclsThread) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& group) {
    using std::chrono::microseconds;
    const Tensor x = Tensor::ones({4}, DType::f32, gpu(group->rank()));
    microseconds call = microseconds::max(), whole = call;  // the shortest of many: the machine may be busy
    for (int i = 0; i < 100; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const WorkPtr work = group->all_reduce(x, ReduceOp::max);
      const auto called = std::chrono::steady_clock::now();
      work->wait();
      const auto end = std::chrono::steady_clock::now();
      call = std::min(call, std::chrono::duration_cast<microseconds>(called - begin));
      whole = std::min(whole, std::chrono::duration_cast<microseconds>(end - begin));
    }
    EXPECT_GE(whole.count(), 200);
    EXPECT_LE(call.count() + 100, whole.count());
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, 1));
  });
}

// A work that is dropped at once: its tensors' memory serves nobody before NCCL's thread has come.
TEST_F(SeveralGpus, ADroppedWorkKeepsItsMemory) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& group) {
    const Device device = gpu(group->rank());
    for (int i = 0; i < 20; ++i) {
      const Tensor sum = Tensor::empty({1 << 16}, DType::f32, device);
      {
        const Tensor part = Tensor::full({1 << 15}, group->rank() + i, DType::f32, device);
        group->all_gather(sum, part);
      }
      const Tensor other = Tensor::full({1 << 15}, -1, DType::f32, device);
      group->barrier("gathered");
      const auto got = sum.to_vector<float>();
      ASSERT_EQ(got.front(), static_cast<float>(i));
      ASSERT_EQ(got.back(), static_cast<float>(i + 1));
    }
  });
}

TEST_F(SeveralGpus, CallsTogetherAreOneLaunch) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& group) {
    const int rank = group->rank();
    const Device device = gpu(rank);
    const Tensor mine = Tensor::full({3}, rank + 1, DType::f32, device),
                 theirs = Tensor::zeros({3}, DType::f32, device);
    const Tensor sum = Tensor::full({5}, 2, DType::f64, device), most = Tensor::full({1}, rank, DType::i64, device);
    const Tensor factor = Tensor::full({1}, 0.5, DType::f32, device);
    const uint64_t before = group->launches();
    WorkPtr sent, received, summed, compared;
    group->together([&] {
      sent = group->send(mine, 1 - rank, {.name = "mine"});
      received = group->receive(theirs, 1 - rank, {.name = "theirs"});
      summed = group->all_reduce(sum, ReduceOp::sum, {.name = "sum", .scale = factor});
      compared = group->all_reduce(most, ReduceOp::max);
      EXPECT_THAT(error_text([&] { summed->wait(); }),
                  HasSubstr(str("send #1 'mine' f32[3] to rank ", 1 - rank, " of group world on rank ", rank,
                                ": waited for before together() has ended")));
    });
    EXPECT_EQ(group->launches(), before + 1);
    for (const WorkPtr& work : {sent, received, summed, compared}) work->wait();
    EXPECT_EQ(theirs.to_vector<float>(), std::vector<float>(3, static_cast<float>(2 - rank)));
    EXPECT_EQ(sum.to_vector<double>(), std::vector<double>(5, 2)) << "half of each";
    EXPECT_EQ(most.to_vector<int64_t>(), std::vector<int64_t>(1, 1));
    EXPECT_EQ(lines_with(group->flight_log(), "all_reduce #"), 2u) << "by their names, as ever";
    group->together([] {});
    EXPECT_EQ(group->launches(), before + 1) << "nothing to begin";
    EXPECT_THAT(error_text([&] {
                  group->together([&] {
                    summed = group->all_reduce(sum);
                    fail("no more");
                  });
                }),
                HasSubstr("no more"));
    summed->wait();
    EXPECT_EQ(sum.to_vector<double>(), std::vector<double>(5, 4)) << "what it had called, all ranks have";
  });
}

// Parts are messages and sums of NCCL's. With WEFT_CHECK=1 ranks compare their calls, whose parts may differ.
TEST_F(SeveralGpus, PartsTogetherAreOneLaunch) {
  require(2);
  if (IsSkipped()) return;
  const auto parts = [](const ProcessGroupPtr& group) {
    const int rank = group->rank();
    const Device device = gpu(rank);
    const auto full = [&](int64_t rows, double value) { return Tensor::full({rows}, value, DType::f32, device); };
    const int64_t own = rank == 0 ? 3 : 1;
    const Tensor gathered = full(4, -1), mine = full(own, rank), reduced = full(own, -1), all = full(4, rank + 1);
    const Tensor exchanged = full(own + 1, -1), sent = full(own + 1, 10 + rank), sum = full(2, 1);
    const CollectiveOptions rows{.rows = {3, 1}};
    const uint64_t before = group->launches();
    std::vector<WorkPtr> works;
    group->together([&] {
      works.push_back(group->all_gather(gathered, mine, rows));
      works.push_back(group->reduce_scatter(reduced, all, ReduceOp::sum, rows));
      works.push_back(group->all_to_all(exchanged, sent, {own, 1}, {own, 1}));
      works.push_back(group->all_reduce(sum));
    });
    EXPECT_EQ(group->launches(), before + 1);
    for (const WorkPtr& work : works) work->wait();
    EXPECT_EQ(gathered.to_vector<float>(), (std::vector<float>{0, 0, 0, 1}));
    EXPECT_EQ(reduced.to_vector<float>(), std::vector<float>(static_cast<size_t>(own), 3));
    EXPECT_EQ(exchanged.to_vector<float>(),
              (rank == 0 ? std::vector<float>{10, 10, 10, 11} : std::vector<float>{10, 11}));
    EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(2, 2));
    group->barrier();
  };
  for (const bool check : {false, true})
    EXPECT_THAT(errors_on_gpus(2, parts, {.timeout = Milliseconds(60'000), .check = check}), ::testing::Each(""));
}

// NCCL would wait for ever. With WEFT_CHECK=1 the ranks compare before they call it.
TEST_F(SeveralGpus, CallsThatDifferAreNamed) {
  require(2);
  if (IsSkipped()) return;
  const auto tensor = [](const ProcessGroupPtr& group, int64_t numel = 4, DType dtype = DType::f32) {
    return Tensor::ones({numel}, dtype, gpu(group->rank()));
  };
  using Call = std::function<void(const ProcessGroupPtr&, bool)>;
  const std::vector<std::pair<Call, std::string>> wrong = {
      {[&](const auto& g, bool odd) {
         odd ? g->broadcast(tensor(g), 0, {.name = "a"}) : g->all_reduce(tensor(g), ReduceOp::sum, {.name = "a"});
       },
       "rank 0 called all_reduce 'a' f32[4], rank 1 called broadcast 'a' f32[4] from rank 0 as collective 2 of group "
       "world"},
      {[&](const auto& g, bool odd) { g->all_reduce(tensor(g, odd ? 5 : 4)); },
       "rank 0 called all_reduce '' f32[4], rank 1 called all_reduce '' f32[5] as collective 2"},
      {[&](const auto& g, bool odd) { g->all_reduce(tensor(g, 4, odd ? DType::f64 : DType::f32)); },
       "rank 0 called all_reduce '' f32[4], rank 1 called all_reduce '' f64[4] as collective 2"},
      {[&](const auto& g, bool odd) { g->broadcast(tensor(g), odd ? 1 : 0); },
       "rank 0 called broadcast '' f32[4] from rank 0, rank 1 called broadcast '' f32[4] from rank 1 as collective 2"},
      {[&](const auto& g, bool odd) { odd ? g->receive(tensor(g, 3), 0) : g->send(tensor(g), 1); },
       "rank 0 called send '' f32[4], rank 1 called receive '' f32[3] as message 1 of group world"}};
  for (const auto& [call, text] : wrong) {
    const std::vector<std::string> errors = errors_on_gpus(2,
                                                           [&](const ProcessGroupPtr& group) {
                                                             group->all_reduce(tensor(group))->wait();
                                                             call(group, group->rank() == 1);
                                                             for (int i = 0; i < 1000; ++i)
                                                               group->barrier();  // rank 0 hears of it
                                                           },
                                                           {.timeout = Milliseconds(60'000), .check = true});
    EXPECT_THAT(errors[1], HasSubstr(text));
    EXPECT_THAT(errors[0], HasSubstr(text)) << "through the store";
  }
  EXPECT_THAT(errors_on_gpus(2,
                             [&](const ProcessGroupPtr& group) {
                               const ProcessGroupPtr part = group->split(0, -group->rank(), "part");
                               for (int i = 0; i < 3; ++i) part->all_reduce(tensor(group))->wait();
                               group->together([&] {
                                 group->send(tensor(group), 1 - group->rank());
                                 group->receive(tensor(group), 1 - group->rank());
                               });
                               group->barrier();
                             },
                             {.timeout = Milliseconds(60'000), .check = true}),
              ::testing::Each(""))
      << "equal calls pass";
}

// Where switches add (NVLink SHARP), a factor that NCCL multiplies by would take the sum from them.
TEST_F(SeveralGpus, WeighedSumsAreTheSameBits) {
  require(2);
  if (IsSkipped()) return;
  run_on_gpus(2, [](const ProcessGroupPtr& group) {
    const Device device = gpu(group->rank());
    for (const DType dtype : {DType::f32, DType::f64}) {
      std::vector<double> values, mine;
      for (int i = 0; i < 100; ++i) values.push_back(0.37 * i + group->rank());
      const Tensor x = Tensor::from(values).to(dtype).to(device);
      const Tensor factor = Tensor::full({1}, group->rank() == 0 ? 0.3 : 0.7, DType::f32, device);
      const Tensor part = x.clone() * factor.to(dtype), other = Tensor::empty({100}, dtype, device);
      group->together([&] {
        group->send(part, 1 - group->rank());
        group->receive(other, 1 - group->rank());
      });
      group->barrier();
      group->all_reduce(x, ReduceOp::sum, {.name = "x", .scale = factor})->wait();
      EXPECT_EQ(x.to_vector<double>(), (part + other).to_vector<double>()) << dtype;
    }
  });
}

// A capture ends only after NCCL's thread has enqueued all calls on it.
TEST_F(SeveralGpus, CapturedCallsOfSeveralRanksReplay) {
  require(4);
  if (IsSkipped()) return;
  run_on_gpus(4, [](const ProcessGroupPtr& group) {
    const Device device = gpu(group->rank());
    const Tensor x = Tensor::ones({1 << 16}, DType::f32, device), whole = Tensor::empty({8}, DType::f32, device);
    const Tensor factor = Tensor::full({1}, 0.5, DType::f32, device);
    const Tensor mine = Tensor::full({2}, group->rank(), DType::f32, device);
    const auto step = [&] {
      std::vector<WorkPtr> works = {group->all_reduce(x, ReduceOp::sum, {.name = "x", .scale = factor})};
      group->together([&] {
        works.push_back(group->all_reduce(x, ReduceOp::max));
        works.push_back(group->all_gather(whole, mine));
      });
      for (const WorkPtr& work : works) work->wait();
    };
    step();  // 2 of each element
    Graph graph;
    graph.capture(device, step);
    for (int run = 0; run < 3; ++run) graph.replay();
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(1 << 16, 16));
    EXPECT_EQ(whole.to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(lines_with(group->flight_log(), "replay of a graph from all_reduce"), 3u) << "each has a deadline";
    group->barrier();
  });
}

TEST_F(SeveralGpus, OneLineSaysHowNcclConnects) {
  require(2);
  if (IsSkipped()) return;
  ::testing::internal::CaptureStderr();
  run_on_gpus(2, [](const ProcessGroupPtr& group) { group->split(0, 0, "part")->barrier(); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex(
                  "weft: NCCL [0-9.]+ connects 2 ranks on 1 host: P2P/IPC over NVLink(, with NVLink SHARP)?\n"));
}

// A hung kernel may block the driver's calls: the thread that asks the driver is not the one that ends the group.
TEST_F(SeveralGpus, ADriverThatDoesNotAnswerHoldsUpNoDeadline) {
  require(2);
  if (IsSkipped()) return;
  const auto job = std::make_shared<FakeJob>(2);
  run_on_gpus(
      2,
      [&](const ProcessGroupPtr& group) {
        group->barrier("all here");
        if (group->rank() == 0) {
          std::thread driver([] {
            std::this_thread::sleep_for(Milliseconds(500));  // the barrier is under way
            driver_hangs = true;
          });
          EXPECT_THAT(error_text([&] { group->monitored_barrier(Milliseconds(3000), "step 7"); }),
                      HasSubstr("deadline"));
          return driver.join();
        }
        std::promise<std::string> failure;
        const int listener = job->add([&](const Failure& told) { failure.set_value(told.reason); });
        EXPECT_THAT(failure.get_future().get(),
                    HasSubstr("'step 7' of group world passed its deadline of 3 s on rank 0"));
        job->remove(listener);
        driver_hangs = false;
        driver_hangs.notify_all();
      },
      job);
}

TEST(Watchdog, ADriverThatDoesNotAnswerHoldsUpNoDeadline) {
  struct Driver final : Watched {
    std::atomic<bool> asked{false}, answers{false};
    void look() override {
      asked = true;
      asked.notify_all();
      answers.wait(false);
    }
  } driver;
  struct Deadline final : Watched {
    std::atomic<int> looks{0};
    void look() override {
      ++looks;
      looks.notify_all();
    }
  } deadline;
  watch(driver, WatchThread::devices);
  watch(deadline);
  driver.asked.wait(false);
  for (const int seen = deadline.looks; deadline.looks < seen + 2;) std::this_thread::yield();  // else for ever
  driver.answers = true;
  driver.answers.notify_all();
  unwatch(deadline);
  unwatch(driver, WatchThread::devices);
}

}  // namespace
}  // namespace weft::dist::testing
