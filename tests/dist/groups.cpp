// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "core/profile/profiler.h"
#include "dist/group/collective.h"
#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Groups : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string backend_ = GetParam();
};

TEST_P(Groups, TextsComeInTheOrderOfTheRanks) {
  run_on(backend_, 3, [](const ProcessGroupPtr& group) {
    const std::vector<std::string> texts = {"", "one", std::string("tw\0", 3)};
    EXPECT_EQ(group->all_gather_text(texts[static_cast<size_t>(group->rank())]), texts);
    EXPECT_THAT(group->all_gather_text(""), ElementsAre("", "", ""));
  });
}

TEST_P(Groups, SplitByColorInTheOrderOfTheKey) {
  run_on(backend_, 4, [this](const ProcessGroupPtr& group) {
    const int r = group->rank();
    const ProcessGroupPtr part = group->split(r == 3 ? -1 : r % 2, -r, "part");
    if (r == 3) {
      EXPECT_EQ(part, nullptr);
    } else {
      EXPECT_EQ(part->size(), r == 1 ? 1 : 2);
      EXPECT_EQ(part->rank(), r == 0 ? 1 : 0);
      EXPECT_EQ(part->name(), "part");
      EXPECT_EQ(part->backend(), backend_);
      const Tensor x = Tensor::full({2}, r + 1);
      part->all_reduce(x)->wait();
      EXPECT_EQ(x.to_vector<int>(), std::vector<int>(2, r == 1 ? 2 : 4));
      const ProcessGroupPtr again = part->split(0, 0, "again");
      EXPECT_EQ(again->size(), part->size());
      again->barrier();
    }
    group->barrier();
  });
}

TEST_P(Groups, CollectivesOfTwoGroupsRunBesideEachOther) {
  run_on(backend_, 4, [](const ProcessGroupPtr& group) {
    const ProcessGroupPtr row = group->split(group->rank() / 2, 0, "row");
    const ProcessGroupPtr column = group->split(group->rank() % 2, 0, "column");
    for (int i = 0; i < 20; ++i) {
      const Tensor x = Tensor::ones({100}), y = Tensor::ones({100});
      const WorkPtr a = row->all_reduce(x), b = column->all_reduce(y);
      b->wait(), a->wait();
      EXPECT_EQ(x.to_vector<int>(), std::vector<int>(100, 2));
      EXPECT_EQ(y.to_vector<int>(), std::vector<int>(100, 2));
    }
  });
}

TEST_P(Groups, CollectivesAtOnceKeepTheOrder) {
  const CollectiveOptions at_once{.name = "at once", .scale = {}, .at_once = true};
  std::mutex mutex;
  std::vector<std::pair<Tensor, WorkPtr>> left;
  run_on(backend_, 3, [&](const ProcessGroupPtr& group) {
    for (int i = 0; i < 50; ++i) {
      const Tensor x = Tensor::ones({1000}), y = Tensor::ones({10}), z = Tensor::ones({10}), all = Tensor::empty({30});
      const WorkPtr a = group->all_reduce(x), b = group->all_gather(all, y, at_once),
                    c = group->all_reduce(z, ReduceOp::sum, at_once);
      c->wait();
      EXPECT_TRUE(a->done() && b->done()) << "those before it";
      EXPECT_EQ(x.to_vector<int>(), std::vector<int>(1000, 3));
      EXPECT_EQ(all.to_vector<int>(), std::vector<int>(30, 1));
      EXPECT_EQ(z.to_vector<int>(), std::vector<int>(10, 3));
      const WorkPtr d = group->all_reduce(z, ReduceOp::sum, at_once), e = group->all_reduce(x);
      e->wait();
      d->wait();
      EXPECT_EQ(z.to_vector<int>(), std::vector<int>(10, 9));
    }
    const Tensor last = Tensor::ones({10});
    const WorkPtr work = group->all_reduce(last, ReduceOp::sum, at_once);
    const std::lock_guard lock(mutex);
    left.emplace_back(last, work);
  });
  for (const auto& [tensor, work] : left) {
    work->wait();  // the group finished the work before its end
    EXPECT_EQ(tensor.to_vector<int>(), std::vector<int>(10, 3));
  }
}

TEST_P(Groups, BytesAreThoseOfTheTheory) {
  for (const int n : {1, 2, 3, 4})
    run_on(backend_, n, [n](const ProcessGroupPtr& group) {
      const auto sent_by = [&](auto call) {
        const uint64_t before = group->bytes_sent();
        call();
        return group->bytes_sent() - before;
      };
      const auto others = static_cast<uint64_t>(n - 1);
      const int64_t count = 12 * 1000;  // f32
      const Tensor whole = Tensor::ones({count}), part = Tensor::ones({count / n});
      EXPECT_EQ(group->bytes_sent(), 0u);
      EXPECT_EQ(sent_by([&] { group->all_reduce(whole)->wait(); }), 2 * others * 48000 / static_cast<uint64_t>(n));
      EXPECT_EQ(sent_by([&] { group->all_gather(whole, part)->wait(); }), others * 48000 / static_cast<uint64_t>(n));
      EXPECT_EQ(sent_by([&] { group->reduce_scatter(part, whole)->wait(); }),
                others * 48000 / static_cast<uint64_t>(n));
      EXPECT_EQ(sent_by([&] { group->barrier(); }), 0u);
      const Tensor other = Tensor::empty({count});
      EXPECT_EQ(sent_by([&] { group->all_to_all(other, whole)->wait(); }), others * 48000 / static_cast<uint64_t>(n));
      const bool first = group->rank() == 0;
      EXPECT_EQ(sent_by([&] { group->reduce(whole, 0)->wait(); }), first ? 0 : 48000u);
      EXPECT_EQ(sent_by([&] { group->gather(first ? whole : Tensor(), part, 0)->wait(); }),
                first ? 0 : 48000u / static_cast<unsigned>(n));
      EXPECT_EQ(sent_by([&] { group->scatter(part, first ? whole : Tensor(), 0)->wait(); }),
                first ? others * 48000 / static_cast<uint64_t>(n) : 0);
      if (n == 1) return;
      if (group->rank() == 0) {
        EXPECT_EQ(sent_by([&] { group->send(whole, 1)->wait(); }), 48000u);
      }
      if (group->rank() == 1) {
        EXPECT_EQ(sent_by([&] { group->receive(whole, 0)->wait(); }), 0u);
      }
      // A tree has n - 1 edges, wherever its root is.
      for (int root = 0; root < n; ++root) {
        const Tensor sum =
            Tensor::from<int64_t>({static_cast<int64_t>(sent_by([&] { group->broadcast(whole, root)->wait(); }))});
        group->all_reduce(sum)->wait();
        EXPECT_EQ(sum.item(), static_cast<double>(others) * 48000);
      }
    });
}

TEST_P(Groups, AProfileHasARowOfCollectives) {
  profile::Profiler profiler;
  run_on(backend_, 2, [](const ProcessGroupPtr& group) { group->all_reduce(Tensor::ones({1000}))->wait(); });
  const profile::Recording seen = profiler.stop();
  std::vector<std::string> rows;
  for (const profile::Span& span : seen.spans)
    if (span.category == profile::Category::collective)
      rows.push_back(str(span.name, " on ", seen.tracks[static_cast<size_t>(span.track)].name));
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre("all_reduce on collectives of world on rank 0",
                                                    "all_reduce on collectives of world on rank 1"));
}

TEST_P(Groups, ADroppedGroupFinishesWhatOthersWaitFor) {
  run_on(backend_, 2, [](const ProcessGroupPtr& group) {
    const ProcessGroupPtr pair = group->split(0, 0, "pair");
    const Tensor x = Tensor::full({1 << 20}, group->rank() == 0 ? 7 : 0);
    const WorkPtr work = pair->broadcast(x, 0);
    if (group->rank() == 0) return;
    work->wait();
    EXPECT_EQ(x.slice(0, (1 << 20) - 1, 1).item(), 7);
  });
}

INSTANTIATE_TEST_SUITE_P(, Groups, ::testing::ValuesIn(backends()), [](const auto& param) { return param.param; });

TEST(Alone, DoesWithoutOthers) {
  const ProcessGroupPtr group = make_process_group_alone();
  EXPECT_EQ(group->backend(), "alone");
  EXPECT_EQ(group->size(), 1);
  const Tensor x = Tensor::from<float>({1, 2}), y = Tensor::empty({2, 1});
  group->all_reduce(x, ReduceOp::avg)->wait();
  group->all_gather(y, x)->wait();
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{1, 2}));
  group->all_reduce(x, ReduceOp::sum, {.name = "x", .scale = Tensor::from<float>({3})})->wait();
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{3, 6}));
  group->reduce_scatter(y, x)->wait();
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{3, 6}));
  group->broadcast(x, 0)->wait();
  group->reduce(x, 0)->wait();
  group->barrier();
  group->monitored_barrier(Milliseconds(1000));
  y.zero_();
  group->gather(y, x, 0)->wait();
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{3, 6}));
  y.zero_();
  group->scatter(y, x, 0, {.rows = {2}})->wait();
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{3, 6}));
  y.zero_();
  group->all_to_all(y, x)->wait();
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{3, 6}));
  EXPECT_THAT(group->all_gather_text("me"), ElementsAre("me"));
  EXPECT_EQ(group->split(0, 0, "part")->name(), "part");
  EXPECT_EQ(group->split(-1, 0, "part"), nullptr);
  EXPECT_EQ(group->bytes_sent(), 0u);
  EXPECT_THAT(error_text([&] { group->send(x, 0); }),
              HasSubstr("send on rank 0: expected another rank of 0 to 0, got 0"));
  group->abort("enough");
  EXPECT_THAT(error_text([&] { group->all_reduce(x); }), HasSubstr("enough"));
}

TEST(Arguments, WhatCannotBeSentIsAnError) {
  const ProcessGroupPtr group = make_process_group_alone();
  const Tensor x = Tensor::ones({4, 2});
  const auto error = [&](auto call) { return error_text(call); };
  EXPECT_EQ(error([&] { group->all_reduce({}, ReduceOp::sum, {.name = "x"}); }),
            "all_reduce 'x' on rank 0: expected a tensor as tensor, got none");
  EXPECT_EQ(
      error([&] { group->all_reduce(x.transpose(0, 1)); }),
      "all_reduce on rank 0: expected a contiguous tensor, got f32[2,4] on cpu with other strides. Call contiguous()");
  EXPECT_EQ(error([&] { group->all_reduce(Tensor::ones({2}, DType::boolean)); }),
            "all_reduce on rank 0: cannot send bool, got bool[2] on cpu. Convert to u8");
  EXPECT_EQ(error([&] { group->all_reduce(Tensor::ones({2}, DType::i64), ReduceOp::avg); }),
            "all_reduce on rank 0: avg: expected a floating tensor, got i64[2] on cpu. Use sum");
  EXPECT_EQ(error([&] { group->broadcast(x, 1); }), "broadcast on rank 0: root: expected 0 to 0, got 1");
  EXPECT_EQ(error([&] { group->all_gather(Tensor::ones({3}), x); }),
            "all_gather on rank 0: output f32[3] on cpu: expected 1 times the elements of input f32[4,2] on cpu");
  EXPECT_EQ(error([&] { group->reduce_scatter(x, Tensor::ones({3})); }),
            "reduce_scatter on rank 0: input f32[3] on cpu: expected 1 times the elements of output f32[4,2] on cpu");
  EXPECT_EQ(error([&] { group->all_gather(Tensor::ones({8}, DType::f64), x); }),
            "all_gather on rank 0: output f64[8] on cpu and input f32[4,2] on cpu: expected one dtype and one device");
  const Tensor two = Tensor::ones({2}), factor = Tensor::ones({1});
  EXPECT_EQ(error([&] { group->all_reduce(x, ReduceOp::sum, {.name = "", .scale = two}); }),
            "all_reduce on rank 0: scale: expected f32[1] on cpu, got f32[2] on cpu");
  EXPECT_EQ(error([&] { group->all_reduce(x, ReduceOp::max, {.name = "", .scale = factor}); }),
            "all_reduce on rank 0: scale goes with sum, got max");
  EXPECT_EQ(
      error([&] { group->all_reduce(Tensor::ones({2}, DType::i32), ReduceOp::sum, {.name = "", .scale = factor}); }),
      "all_reduce on rank 0: scale: expected a floating tensor, got i32[2] on cpu");
  EXPECT_EQ(error([&] { group->broadcast(x, 0, {.name = "", .scale = factor}); }),
            "broadcast on rank 0: scale belongs to all_reduce and reduce_scatter");
}

TEST(Arguments, RootsAndPartsThatDoNotFitAreErrors) {
  run_ranks(2, [](const ProcessGroupPtr& group) {
    if (group->rank() > 0) return;
    const auto error = [&](auto call) { return error_text(call); };
    const Tensor x = Tensor::ones({4, 2}), y = Tensor::ones({2, 2}), none;
    EXPECT_EQ(error([&] { group->reduce(x, 2, ReduceOp::sum, {.name = "x"}); }),
              "reduce 'x' on rank 0: root: expected 0 to 1, got 2");
    EXPECT_EQ(error([&] { group->reduce(Tensor::ones({2}, DType::i64), 0, ReduceOp::avg); }),
              "reduce on rank 0: avg: expected a floating tensor, got i64[2] on cpu. Use sum");
    EXPECT_EQ(error([&] { group->gather(x, y, -1); }), "gather on rank 0: root: expected 0 to 1, got -1");
    EXPECT_EQ(error([&] { group->gather(none, y, 0); }), "gather on rank 0: expected a tensor as output, got none");
    EXPECT_EQ(error([&] { group->gather(x, y, 1); }),
              "gather on rank 0: expected output on the root 1 alone, got f32[4,2] on cpu");
    EXPECT_EQ(error([&] { group->gather(y, y, 0); }),
              "gather on rank 0: output f32[2,2] on cpu: expected 2 times the elements of input f32[2,2] on cpu");
    EXPECT_EQ(error([&] { group->scatter(y, x, 7); }), "scatter on rank 0: root: expected 0 to 1, got 7");
    EXPECT_EQ(error([&] { group->scatter(y, none, 0); }), "scatter on rank 0: expected a tensor as input, got none");
    EXPECT_EQ(error([&] { group->scatter(y, x, 1); }),
              "scatter on rank 0: expected input on the root 1 alone, got f32[4,2] on cpu");
    EXPECT_EQ(error([&] {
                group->scatter(y, Tensor::ones({4, 2}, DType::f64), 0);
              }),
              "scatter on rank 0: output f32[2,2] on cpu and input f64[4,2] on cpu: expected one dtype and one device");
    EXPECT_EQ(error([&] { group->scatter(y, Tensor::ones({3}), 0); }),
              "scatter on rank 0: input f32[3] on cpu: expected 2 times the elements of output f32[2,2] on cpu");

    EXPECT_EQ(error([&] { group->all_gather(x, y, {.rows = {2}}); }),
              "all_gather on rank 0: rows: expected 2 numbers of at least 0, got {2}");
    EXPECT_EQ(error([&] {
                group->all_gather(x, y, {.rows = {2, -1}});
              }),
              "all_gather on rank 0: rows: expected 2 numbers of at least 0, got {2, -1}");
    EXPECT_EQ(error([&] {
                group->all_gather(x, y, {.rows = {3, 1}});
              }),
              "all_gather on rank 0: input f32[2,2] on cpu: expected 3 rows, as {3, 1} says");
    EXPECT_EQ(error([&] {
                group->all_gather(x, y, {.rows = {2, 1}});
              }),
              "all_gather on rank 0: output f32[4,2] on cpu: expected as many rows as {2, 1} together");
    EXPECT_EQ(error([&] {
                group->all_gather(Tensor::ones({4, 3}), y, {.rows = {2, 2}});
              }),
              "all_gather on rank 0: output f32[4,3] on cpu and input f32[2,2] on cpu: expected rows of one size");
    EXPECT_EQ(error([&] {
                group->reduce_scatter(y, x, ReduceOp::sum, {.rows = {1, 3}});
              }),
              "reduce_scatter on rank 0: output f32[2,2] on cpu: expected 1 rows, as {1, 3} says");
    EXPECT_EQ(error([&] {
                group->all_gather(x, Tensor::ones({}), {.rows = {1, 3}});
              }),
              "all_gather on rank 0: rows: expected a dimension, got input f32[] on cpu");
    EXPECT_EQ(error([&] {
                group->all_reduce(x, ReduceOp::sum, {.rows = {1, 3}});
              }),
              "all_reduce: rows belong to all_gather, reduce_scatter, gather and scatter");

    const Tensor z = Tensor::ones({4, 2});
    EXPECT_EQ(error([&] { group->all_to_all(y, x); }),
              "all_to_all on rank 0: output f32[2,2] on cpu and input f32[4,2] on cpu: expected the same number of "
              "elements, divisible by 2");
    EXPECT_EQ(error([&] { group->all_to_all(x, x); }),
              "all_to_all on rank 0: output and input: expected memory of their own, got some that they share");
    EXPECT_EQ(error([&] {
                group->all_to_all(x, z, {2, 2}, {2, 1});
              }),
              "all_to_all on rank 0: input f32[4,2] on cpu: expected as many rows as {2, 1} together");
    EXPECT_EQ(error([&] {
                group->all_to_all(x, z, {1, 3}, {2, 2});
              }),
              "all_to_all on rank 0: output f32[4,2] on cpu and input f32[4,2] on cpu: expected rows of one size, and "
              "as many for this rank as from it");
    EXPECT_EQ(error([&] { group->monitored_barrier(Milliseconds(0), "x"); }),
              "monitored_barrier 'x' on rank 0: expected a timeout above 0, got 0 ms");
  });
}

TEST(MakeProcessGroup, UnknownBackendsAreErrors) {
  EXPECT_EQ(error_text([] { make_process_group("pigeon", 0, 1, nullptr, nullptr); }),
            "process group: backend: expected gloo, mpi or nccl, got 'pigeon'");
  EXPECT_EQ(error_text([] { make_process_group("threads", 0, 1, nullptr, nullptr); }),
            "process group: the ranks of backend threads are made by run_ranks()");
  EXPECT_EQ(error_text([] { make_process_group("gloo", 2, 2, nullptr, nullptr); }),
            "process group: rank 2 of 2 ranks cannot be");
  EXPECT_THAT(error_text([] { make_process_group("gloo", 0, 2, nullptr, nullptr); }),
              HasSubstr(WEFT_HAVE_GLOO ? "expected a store" : "apt-get install libgloo-dev"));
}

}  // namespace
}  // namespace weft::dist::testing
