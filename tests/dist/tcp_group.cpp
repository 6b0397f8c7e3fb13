// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "dist/group/backends.h"
#include "tests/dist/memory_store.h"
#include "tests/dist/ranks.h"
#include "tests/support/error_text.h"

namespace weft::dist::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

#if WEFT_HAVE_GLOO

std::vector<std::unique_ptr<Link>> two_links(Secure secure = Secure::automatic) {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<Link>> links(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      links[static_cast<size_t>(rank)] = make_tcp_link(
          {.rank = rank, .size = 2, .store = store, .prefix = "test", .secure = secure}, Clock::now() + 20s);
    });
  for (std::thread& thread : threads) thread.join();
  return links;
}

/// Looks at memory into which a link may be writing right now, which no program but a test does.
[[gnu::noinline, gnu::no_sanitize("thread")]] bool has_come(const std::byte& byte) {
  return *const_cast<const volatile std::byte*>(&byte) != std::byte{0};
}

/// How a wait ends that is no success.
std::optional<LinkError> error_of(Link& link, Link::Message& message, Milliseconds time) {
  try {
    link.wait(message, Clock::now() + time);
  } catch (const LinkError& error) {
    return error;
  }
  return std::nullopt;
}

std::vector<std::byte> random_bytes_of(size_t count) {
  std::vector<std::byte> bytes(count);
  std::mt19937 random(static_cast<unsigned>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(TcpLink, ASilentRankIsNamedWhereTheRanksMeet) {
  const auto job = std::make_shared<FakeJob>(2);
  const auto meet = [&] {
    return error_text([&] {
      make_tcp_link({.rank = 1,
                     .size = 2,
                     .store = std::make_shared<MemoryStore>(),
                     .prefix = "test",
                     .membership = std::make_shared<FakeMembership>(job, 1)},
                    Clock::now() + 300ms);
    });
  };
  EXPECT_EQ(meet(), "process group gloo: rank 0 of 2 did not come");
  job->set_silent(0, 6);
  EXPECT_EQ(meet(), "process group gloo: silent rank 0 (process 100 on host0, last heard of 6 s ago: is it stopped?)");
  job->silence();
  EXPECT_EQ(meet(), "process group gloo: silent rank 0 (process 100 on host0, last heard of 7 s ago: is it stopped?)");
}

/// Two ranks; when rank 0 waits for rank 1 in its first collective it hears that rank 1 has ended with an error, which
/// then does `end`. How the collective ends on rank 0: an error, or none.
std::string when_rank_1_has_ended(const std::function<void(const ProcessGroupPtr&)>& end) {
  const auto store = std::make_shared<MemoryStore>();
  const auto job = std::make_shared<FakeJob>(2);
  std::thread other([&] {
    const ProcessGroupPtr group = make_process_group("gloo", 1, 2, store, nullptr, {});
    while (job->states()[0].progress.begun < 1) std::this_thread::yield();
    std::thread failure([&] {  // a machine may be slow
      job->declare({1, "host1", "rank 1 has ended", /*announced=*/true, Clock::now() + 60s});
    });
    std::this_thread::sleep_for(50ms);
    end(group);
    failure.join();
  });
  const ProcessGroupPtr group = make_process_group("gloo", 0, 2, store, std::make_shared<FakeMembership>(job, 0), {});
  std::string error;
  try {
    group->all_reduce(Tensor::ones({8}))->wait();
  } catch (const Error& e) {
    error = e.what();
  }
  other.join();
  EXPECT_THAT(error_text([&] { group->barrier(); }), HasSubstr("rank 1 has ended"));
  return error;
}

// All ranks find out together why they cannot go on, and one of them is the first to end.
TEST(TcpGroup, WhatRunsIsFinishedWhenAnotherRankHasEnded) {
  EXPECT_EQ(when_rank_1_has_ended([](const ProcessGroupPtr& group) { group->all_reduce(Tensor::ones({8}))->wait(); }),
            "");
}

TEST(TcpGroup, WhatCanNoLongerBeFinishedEndsAtOnce) {
  const TimePoint begin = Clock::now();
  EXPECT_THAT(when_rank_1_has_ended([](const ProcessGroupPtr& group) { group->abort("test"); }),
              HasSubstr("rank 1 has ended"));
  EXPECT_LT(Clock::now() - begin, 30s);
}

TEST(TcpLink, MessagesArriveWholeByTheirSlots) {
  for (const Secure secure : {Secure::off, Secure::mac, Secure::encrypt}) {
    const auto links = two_links(secure);
    // Short and long ones, and around the limits of a block, of what is sent at once, and of a chunk.
    const std::vector<size_t> sizes{0, 1, 63, 64, 65, 1000, 65536, 65537, 65536 + 63, 131072, 131073, 1 << 20, 3000001};
    std::vector<std::vector<std::byte>> from, to;
    for (const size_t size : sizes) {
      from.push_back(random_bytes_of(size));
      to.emplace_back(size);
    }
    for (const bool receive_first : {true, false}) {
      std::vector<Link::MessagePtr> sent, received;
      const auto send_all = [&] {
        for (size_t i = 0; i < sizes.size(); ++i)
          sent.push_back(links[1]->send(0, {i % 4, 1}, from[i].data(), sizes[i]));
      };
      if (!receive_first) send_all();
      for (size_t i = 0; i < sizes.size(); ++i)
        received.push_back(links[0]->receive(1, {i % 4, 1}, to[i].data(), sizes[i]));
      if (receive_first) send_all();
      for (auto i = sizes.size(); i-- > 0;) links[0]->wait(*received[i], Clock::now() + 20s);
      for (const auto& message : sent) links[1]->wait(*message, Clock::now() + 20s);
      EXPECT_EQ(to, from) << name(secure);
      for (auto& bytes : to) std::ranges::fill(bytes, std::byte{0});
    }
  }
}

TEST(TcpLink, AMessageThatBreaksOffIsNoticed) {
  // 128 MiB are under way when one side closes.
  const size_t bytes = size_t{128} << 20;
  for (const bool sender_waits : {false, true}) {
    const auto links = two_links();
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{0});
    const auto received = links[0]->receive(1, {5, 1}, to.data(), bytes);
    const auto sent = links[1]->send(0, {5, 1}, from.data(), bytes);
    while (!has_come(to[1 << 20])) continue;
    links[sender_waits ? 0 : 1]->abort("test");
    const auto error = error_of(*links[sender_waits ? 1 : 0], sender_waits ? *sent : *received, 30s);
    if (!error && has_come(to.back())) continue;  // it was whole before
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(),
                StartsWith(sender_waits ? "the connection to rank 0 broke: " : "the connection to rank 1 broke: "));
    EXPECT_EQ(error->kind, LinkError::Kind::lost);
    for (const auto& link : links) link->abort("test");
  }
}

TEST(TcpLink, ManyRanksMayOpenMoreFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{48, before.rlim_max};  // less than eight ranks need in one process
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<Link>> links(8);
  std::vector<std::string> errors(links.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < links.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        links[rank] = make_tcp_link({.rank = static_cast<int>(rank), .size = 8, .store = store, .prefix = "test"},
                                    Clock::now() + 30s);
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors, ::testing::Each(""));
  links.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(TcpLink, ARankThatSaysNothingSensibleOfItsSafetyIsNamed) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("test/host/1", "\xff\nhost");
  EXPECT_EQ(
      error_text([&] { make_tcp_link({.rank = 0, .size = 2, .store = store, .prefix = "test"}, Clock::now() + 5s); }),
      "process group gloo: rank 1 did not say how it is secured");
}

TEST(TcpLink, ADeadlineIsNoBrokenConnection) {
  const auto links = two_links();
  std::byte byte{}, other{7};
  const auto received = links[0]->receive(1, {5, 1}, &byte, 1);
  const auto error = error_of(*links[0], *received, 10ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, LinkError::Kind::deadline);
  const auto sent = links[1]->send(0, {5, 1}, &other, 1);  // it still can come
  links[0]->wait(*received, Clock::now() + 10s);
  EXPECT_EQ(byte, other);
}

TEST(TcpLink, WhatHasArrivedCountsThoughItsRankHasGone) {
  constexpr size_t kMessages = 3000;
  const auto links = two_links();
  std::vector<std::byte> from(64, std::byte{1}), to(64 * kMessages);
  std::vector<Link::MessagePtr> received, sent;
  for (size_t i = 0; i < kMessages; ++i) {
    received.push_back(links[0]->receive(1, {5, 1}, to.data() + 64 * i, 64));
    sent.push_back(links[1]->send(0, {5, 1}, from.data(), 64));
  }
  for (const auto& message : sent) links[1]->wait(*message, Clock::now() + 10s);
  links[1]->abort("test");
  size_t lost = 0;
  for (const auto& message : received)
    if (error_of(*links[0], *message, 10s)) ++lost;
  EXPECT_EQ(lost, 0u);
  links[0]->abort("test");
}

TEST(TcpLink, MemoryOfAMessageThatIsDroppedIsLeftAlone) {
  const size_t bytes = size_t{64} << 20;
  const auto links = two_links(Secure::mac);
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{0});
  auto received = links[0]->receive(1, {5, 1}, to.data(), bytes);
  auto sent = links[1]->send(0, {5, 1}, from.data(), bytes);
  while (!has_come(to[1 << 20])) continue;
  received.reset();
  std::ranges::fill(to, std::byte{2});
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(std::ranges::all_of(to, [](std::byte byte) { return byte == std::byte{2}; }));
  sent.reset();
  for (const auto& link : links) link->abort("test");
}

TEST(TcpLink, WhoWaitsForAnotherRankHearsOfAnAbortThroughTheStore) {
  // Rank 2 waits for rank 0, rank 1 aborts: no connection that rank 2 waits on breaks, and there is no membership.
  std::atomic<bool> heard{false};
  const auto begin = Clock::now();
  const std::vector<std::string> errors = errors_on("gloo", 3, [&](const ProcessGroupPtr& group) {
    group->barrier();
    if (group->rank() == 0) {
      while (!heard && Clock::now() - begin < 30s) std::this_thread::sleep_for(10ms);
    } else if (group->rank() == 1) {
      std::this_thread::sleep_for(100ms);
      group->abort("the disk is full");
    } else {
      try {
        group->receive(Tensor::ones({4}), 0)->wait();
      } catch (...) {
        heard = true;
        throw;
      }
    }
  });
  EXPECT_THAT(errors[2], HasSubstr("the disk is full"));
  EXPECT_LT(Clock::now() - begin, 15s);
}

#else

TEST(TcpLink, NeedsLibcrypto) { GTEST_SKIP() << "this build has no libcrypto"; }

#endif

}  // namespace
}  // namespace weft::dist::testing
