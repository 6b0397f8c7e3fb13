// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "dist/group/backends.h"
#include "tests/dist/memory_store.h"
#include "tests/dist/ranks.h"

namespace weft::dist::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

#if WEFT_HAVE_GLOO

std::vector<std::unique_ptr<Link>> two_links() {
  const auto store = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<Link>> links(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back(
        [&, rank] { links[static_cast<size_t>(rank)] = make_gloo_link(rank, 2, store, "test", Clock::now() + 20s); });
  for (std::thread& thread : threads) thread.join();
  return links;
}

/// A message of 128 MiB is under way when one side closes: how the other side's wait ends, and after how long. `look`
/// is called from another thread meanwhile, as the watchdog does.
struct End {
  std::string text;
  LinkError::Kind kind;
  double seconds;
};
End break_off(bool sender_waits, bool look) {
  const size_t bytes = size_t{128} << 20;
  for (int trial = 0; trial < 10; ++trial) {
    const auto links = two_links();
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{0});
    const auto received = links[0]->receive(1, {5, 1}, to.data(), bytes);
    const auto sent = links[1]->send(0, {5, 1}, from.data(), bytes);
    const auto arrived = [&](size_t at) { return *const_cast<volatile std::byte*>(&to[at]) != std::byte{0}; };
    while (!arrived(1 << 20)) continue;
    Link& waits = *links[sender_waits ? 1 : 0];
    links[sender_waits ? 0 : 1]->abort("test");
    const auto begin = Clock::now();
    std::atomic<bool> over{false};
    std::thread watchdog([&] {
      while (look && !over) {
        waits.look();
        std::this_thread::sleep_for(20ms);
      }
    });
    End end{"", LinkError::Kind::differs, 0};
    try {
      waits.wait(sender_waits ? *sent : *received, Clock::now() + 3s);
    } catch (const LinkError& error) {
      end = {error.what(), error.kind, std::chrono::duration<double>(Clock::now() - begin).count()};
    }
    over = true;
    watchdog.join();
    waits.abort("test");
    if (!end.text.empty()) return end;  // else it was whole before the other side had closed
  }
  return {"never broke off", LinkError::Kind::differs, 0};
}

TEST(GlooLink, AMessageThatBreaksOffIsNoticed) {
  for (const bool sender_waits : {false, true}) {
    const End end = break_off(sender_waits, /*look=*/true);
    EXPECT_THAT(end.text,
                StartsWith(sender_waits ? "the connection to rank 0 broke: " : "the connection to rank 1 broke"));
    EXPECT_EQ(end.kind, LinkError::Kind::lost);
    EXPECT_LT(end.seconds, 2);
  }
}

TEST(GlooLink, GlooItselfDoesNotNoticeIt) {
  // Once this fails, Gloo has been mended, and the tripwires may go.
  for (const bool sender_waits : {false, true})
    EXPECT_EQ(break_off(sender_waits, /*look=*/false).kind, LinkError::Kind::deadline);
}

TEST(GlooLink, LookingDoesNotDisturbWhatArrives) {
  const auto links = two_links();
  std::vector<std::byte> from(1 << 20, std::byte{1}), to(1 << 20);
  std::atomic<bool> over{false};
  std::thread watchdog([&] {
    while (!over) links[0]->look(), links[1]->look();
  });
  for (int i = 0; i < 200; ++i) {
    const auto received = links[0]->receive(1, {static_cast<uint64_t>(i), 1}, to.data(), to.size());
    const auto sent = links[1]->send(0, {static_cast<uint64_t>(i), 1}, from.data(), from.size());
    links[0]->wait(*received, Clock::now() + 10s);
    links[1]->wait(*sent, Clock::now() + 10s);
  }
  over = true;
  watchdog.join();
  EXPECT_EQ(to, from);
}

TEST(GlooLink, ADeadlineIsNoBrokenConnection) {
  // At a deadline Gloo breaks all connections itself, which look() must not take for the cause.
  for (int trial = 0; trial < 20; ++trial) {
    const auto links = two_links();
    std::byte byte{};
    const auto received = links[0]->receive(1, {5, 1}, &byte, 1);
    std::atomic<bool> over{false};
    std::thread watchdog([&] {
      while (!over) links[0]->look();
    });
    LinkError::Kind kind = LinkError::Kind::differs;
    try {
      links[0]->wait(*received, Clock::now() + 10ms);
    } catch (const LinkError& error) {
      kind = error.kind;
    }
    over = true;
    watchdog.join();
    EXPECT_EQ(kind, LinkError::Kind::deadline);
    for (const auto& link : links) link->abort("test");
  }
}

TEST(GlooLink, WhatHasArrivedCountsThoughItsRankHasGone) {
  // A look may fall between a wait's beginning and its end.
  constexpr size_t kMessages = 3000;
  const auto links = two_links();
  std::vector<std::byte> from(64, std::byte{1}), to(64 * kMessages);
  std::vector<Link::MessagePtr> received, sent;
  for (size_t i = 0; i < kMessages; ++i) {
    received.push_back(links[0]->receive(1, {5, 1}, to.data() + 64 * i, 64));
    sent.push_back(links[1]->send(0, {5, 1}, from.data(), 64));
  }
  for (const auto& message : sent) links[1]->wait(*message, Clock::now() + 10s);
  while (*const_cast<volatile std::byte*>(&to.back()) == std::byte{0}) continue;
  links[1]->abort("test");
  std::this_thread::sleep_for(200ms);
  std::atomic<bool> over{false};
  std::thread watchdog([&] {
    while (!over) links[0]->look();
  });
  size_t lost = 0;
  for (const auto& message : received) {
    try {
      links[0]->wait(*message, Clock::now() + 10s);
    } catch (const LinkError&) {
      ++lost;
    }
  }
  over = true;
  watchdog.join();
  EXPECT_EQ(lost, 0u);
  links[0]->abort("test");
}

TEST(GlooLink, WhoWaitsForAnotherRankHearsOfAnAbortThroughTheStore) {
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

TEST(GlooLink, NeedsGloo) { GTEST_SKIP() << "this build has no libgloo"; }

#endif

}  // namespace
}  // namespace weft::dist::testing
