// SPDX-License-Identifier: Apache-2.0
// Unauthenticated peers at the port of a job do not disturb it.
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/dist/meeting.h"

namespace {
std::atomic<bool> no_more_watches{false};  // beyond /proc/sys/fs/epoll/max_user_watches
}

extern "C" int epoll_ctl(int poll, int what, int fd, epoll_event* event) noexcept {
  if (what != EPOLL_CTL_ADD || !no_more_watches)
    return static_cast<int>(::syscall(SYS_epoll_ctl, poll, what, fd, event));
  errno = ENOSPC;
  return -1;
}

namespace weft::dist {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(UnauthenticatedPeers, OtherProtocolIsRefusedInOneLine) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  TcpStore store = meeting.store();
  const Descriptor socket = meeting.unproven();
  send_all(socket.fd(), "GET / HTTP/1.1\r\nHost: gpu1\r\n\r\n", Clock::now() + 1s);
  EXPECT_TRUE(is_closed(socket));
  ASSERT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said(),
              ::testing::ElementsAre(::testing::MatchesRegex(
                  "store: refused 127.0.0.1:[0-9]+, which announces a message of [0-9]+ bytes, 1 to 256 are allowed")));
  const Descriptor second = meeting.unproven();
  send_all(second.fd(), frame("weft store 9\n" + std::string(32, 'n')), Clock::now() + 1s);
  EXPECT_TRUE(is_closed(second));
  EXPECT_TRUE(comes_true([&] { return meeting.said().size() == 2; }));
  EXPECT_THAT(meeting.said().back(),
              HasSubstr("which is of another version of Weft: start all ranks from one installation"));
  store.set("a", "b");
  EXPECT_EQ(store.get("a", 1s), "b");
}

TEST(UnauthenticatedPeers, OneThatCannotBeWatchedIsRefused) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  TcpStore store = meeting.store();
  no_more_watches = true;
  EXPECT_TRUE(is_closed(meeting.unproven()));
  no_more_watches = false;
  ASSERT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said().front(),
              HasSubstr("which could not be heard: store: cannot watch a connection: No space"));
  store.set("a", "b");
  EXPECT_EQ(meeting.store().get("a", 1s), "b");
}

TEST(UnauthenticatedPeers, SilentOnesAreDroppedSoon) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting(1, 200ms);
  const Descriptor silent = meeting.unproven();
  const Descriptor slow = meeting.unproven();
  const TimePoint start = Clock::now();
  std::thread drips([&] {  // a byte now and then does not buy time
    for (int i = 0; i < 250; ++i) {
      if (send_all(slow.fd(), std::string(1, i == 0 ? '\xff' : '\0'), Clock::now() + 1s) != 0) return;
      std::this_thread::sleep_for(100ms);
    }
  });
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
  EXPECT_LT(Clock::now() - start, 20s);
  drips.join();
  EXPECT_THAT(meeting.said(), Contains(HasSubstr("which did not prove in 200 ms that it knows the secret")).Times(2));
}

TEST(UnauthenticatedPeers, OversizeMessagesEndTheirSender) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  TcpStore store = meeting.store();
  StoreConnection rank = meeting.connect();
  const std::string length("\xff\xff\xff\x7f", 4);
  const FrameSeal::Tag tag = rank.out.seal_header(length);
  send_all(rank.socket.fd(), length + std::string(tag.data(), tag.size()), Clock::now() + 1s);
  EXPECT_TRUE(is_closed(rank.socket));
  EXPECT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said().back(),
              HasSubstr("is authenticated, but: announces a message of 2147483647 bytes, 1 to 1052672 are allowed"));

  StoreConnection other = meeting.connect();
  send_all(other.socket.fd(),
           sealed(other.out, MessageWriter(MessageKind::set).number(1).text(std::string(257, 'k')).text("").frame()),
           Clock::now() + 1s);
  EXPECT_TRUE(is_closed(other.socket));
  EXPECT_TRUE(comes_true([&] { return meeting.said().size() == 2; }));
  EXPECT_THAT(meeting.said().back(), HasSubstr("a string in a message has 257 bytes, at most 256 are allowed"));
  store.set("a", "b");
  EXPECT_EQ(store.get("a", 1s), "b");
}

// A thousand connections that say nothing, held open, while a job meets and works.
TEST(UnauthenticatedPeers, FloodDoesNotDisturbTheJob) {
  WEFT_NEEDS_CRYPTO();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr int kRanks = 4, kFlood = 1000;
  Meeting meeting(kRanks, 2000ms, 64);
  std::vector<std::unique_ptr<TcpMembership>> members;
  members.push_back(meeting.member(0, kRanks));

  std::vector<Descriptor> flood;
  std::thread attacker([&] {
    for (int i = 0; i < kFlood; ++i) {
      Descriptor socket;
      if (connect_to(resolve(meeting.server.address()).front(), Clock::now() + 10s, socket) == 0)
        flood.push_back(std::move(socket));
    }
  });
  const TimePoint start = Clock::now();
  for (int rank = 1; rank < kRanks; ++rank) members.push_back(meeting.member(rank, kRanks));
  for (const auto& member : members) member->wait_for_all(10s);
  TcpStore store = meeting.store();
  for (int i = 1; i <= 200; ++i) ASSERT_EQ(store.add("steps", 1), i);
  attacker.join();
  EXPECT_EQ(flood.size(), size_t{kFlood});
  for (int i = 1; i <= 200; ++i) ASSERT_EQ(store.add("steps", 1), 200 + i);
  EXPECT_LT(Clock::now() - start, 20s);

  int failures = 0;
  for (const auto& member : members) member->on_failure([&](const Failure&) { ++failures; });
  for (const Descriptor& socket : flood) EXPECT_TRUE(is_closed(socket));
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(meeting.said().size(), 10u) << "a flood must not flood the log";
  for (const auto& member : members) member->leave();
}

TEST(UnauthenticatedPeers, ServerEndsWhileTheyHoldConnections) {
  WEFT_NEEDS_CRYPTO();
  auto meeting = std::make_unique<Meeting>(1, 60s);
  const Descriptor silent = meeting->unproven();
  const TimePoint start = Clock::now();
  meeting.reset();
  EXPECT_LT(Clock::now() - start, 15s);
  EXPECT_TRUE(is_closed(silent));
}

}  // namespace
}  // namespace weft::dist
