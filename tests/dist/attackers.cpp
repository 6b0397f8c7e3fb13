// SPDX-License-Identifier: Apache-2.0
// Programs without the job's secret, between the ranks, on the job's ports and at the ranks' own listeners; and ranks
// that are killed while they connect.
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "dist/group/backends.h"
#include "dist/rendezvous/socket.h"
#include "tests/dist/child.h"
#include "tests/dist/meeting.h"
#include "tests/dist/memory_store.h"
#include "tests/dist/relay.h"

namespace weft::dist::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Ranks = std::vector<std::unique_ptr<Child>>;

constexpr const char* kForged = "a frame failed its authentication: it was changed, repeated or left out on the way";

Endpoint at(const std::string& host, uint16_t port) { return resolve({host, port}).front(); }

uint16_t free_port() {
  Listeners listeners;
  EXPECT_EQ(try_listen({"127.0.0.1", 0}, resolve({"127.0.0.1", 0}), listeners), 0);
  return listeners.address.port;
}

std::unique_ptr<Child> rank_of(int rank, int size, const std::string& action, const std::string& host, uint16_t port,
                               std::vector<std::string> more = {}) {
  more.insert(more.end(), {str("RANK=", rank), str("WORLD_SIZE=", size), "MASTER_ADDR=" + host,
                           str("MASTER_PORT=", port), "WEFT_JOB_SECRET=0123456789abcdef", "OMP_NUM_THREADS=1"});
  return std::make_unique<Child>(std::vector<std::string>{INIT_PROGRAM, action}, more);
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The relay has another address than rank 0's store and its port; it passes the handshake on, then changes a bit.
TEST(Attackers, ARelayThatChangesTheStoresFramesEndsTheJobWithItsCause) {
  WEFT_NEEDS_CRYPTO();
  for (const int which : {0, 1})  // the connection of the store, of the membership
    for (const bool to_server : {true, false}) {
      const uint16_t port = free_port();
      const Relay relay(at("127.0.0.2", port), at("127.0.0.1", port),
                        [&](int connection, bool towards, size_t where, std::string& bytes) {
                          if (connection == which && towards == to_server) flip(150, where, bytes);
                        });
      const auto zero = rank_of(0, 2, "loop", "127.0.0.1", port);
      EXPECT_TRUE(listens(port));  // the relay does not wait for it
      const auto one = rank_of(1, 2, "loop", "127.0.0.2", port);
      EXPECT_EQ(zero->exit_code(), 1) << zero->output();
      EXPECT_EQ(one->exit_code(), 1) << one->output();
      EXPECT_THAT(zero->output() + one->output(), HasSubstr(kForged)) << "connection " << which;
    }
}

// Another program has MASTER_PORT and passes everything on to rank 0's store, which took the next port.
TEST(Attackers, AProgramOnTheJobsPortIsPassedOver) {
  WEFT_NEEDS_CRYPTO();
  const uint16_t port = free_port();
  std::atomic<size_t> most{0};
  const Relay squatter(at("127.0.0.1", port), at("127.0.0.1", static_cast<uint16_t>(port + 1)),
                       [&](int, bool, size_t where, std::string&) { most = std::max<size_t>(most, where); });
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(rank_of(rank, 2, "sum", "127.0.0.1", port));
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->exit_code(), 0);
    EXPECT_THAT(rank->output(), HasSubstr("sum 3")) << rank->output();
  }
  EXPECT_THAT(ranks[0]->output(), HasSubstr(str("store: port ", port,
                                                " of 127.0.0.1 is taken by another program (a launcher's own store, or "
                                                "another job); rank 0 listens on port ")));
  EXPECT_LT(most, 200u) << "more than handshakes went through the other program";
}

TEST(Attackers, AServerSaysThatItWasReachedThroughARelay) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  const uint16_t port = free_port();
  const Relay relay(at("127.0.0.1", port), resolve(meeting.server.address()).front(),
                    [](int, bool, size_t, std::string&) {});
  StoreConnection connection;
  std::string why;
  EXPECT_FALSE(try_store(at("127.0.0.1", port), kSecret, Clock::now() + 10s, connection, why));
  EXPECT_EQ(why, str("belongs to another program, which relays to the store at port ", meeting.server.address().port));
  ASSERT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said().front(), HasSubstr("which came by the port of another program, which relays to this one"));
}

/// A rank's entries reach the others changed, or late.
class HookedStore final : public Store {
 public:
  using Hook = std::function<std::string(const std::string& key, const std::string& value)>;
  explicit HookedStore(Hook hook) : hook_(std::move(hook)) {}
  void set(const std::string& key, const std::string& value) override { store_.set(key, hook_(key, value)); }
  std::optional<std::string> find(const std::string& key, Milliseconds timeout) override {
    return store_.find(key, timeout);
  }
  void end_waits(const std::string& why) override { store_.end_waits(why); }
  std::string why_ended() const override { return ""; }
  bool has(const std::string& key) override { return store_.has(key); }
  int64_t add(const std::string& key, int64_t amount) override { return store_.add(key, amount); }
  void remove(const std::string& key) override { store_.remove(key); }
  std::string secret() const override { return store_.secret(); }

 private:
  MemoryStore store_;
  const Hook hook_;
};

// On the way between two ranks one byte of a tensor changes, or a message comes twice.
TEST(Attackers, ARelayOfTensorsIsNoticed) {
  WEFT_NEEDS_CRYPTO();
  constexpr size_t kBytes = 1000, kHandshake = 90;  // the last bytes of one begin before
  for (const Secure secure : {Secure::mac, Secure::encrypt, Secure::off})
    for (const bool repeat : {false, true}) {
      const uint16_t port = free_port();
      Address rank_0;
      const auto store = std::make_shared<HookedStore>([&](const std::string& key, const std::string& value) {
        if (key != "test/address/0") return value;
        rank_0 = parse_address("test", value);
        return str(Address{rank_0.host, port});  // where the relay listens
      });
      std::unique_ptr<Relay> relay;
      std::vector<std::unique_ptr<Link>> links(2);
      std::thread zero([&] {
        links[0] = make_tcp_link({.rank = 0, .size = 2, .store = store, .prefix = "test", .secure = secure},
                                 Clock::now() + 20s);
      });
      std::thread begins([&] {
        store->get("test/address/0", 20s);
        relay = std::make_unique<Relay>(at("127.0.0.1", port), resolve(rank_0).front(),
                                        [repeat](int, bool to_server, size_t where, std::string& bytes) {
                                          if (!to_server || where < kHandshake) return;
                                          if (repeat && bytes.size() > kBytes)
                                            bytes += bytes;
                                          else
                                            flip(where + 500, where, bytes);
                                        });
      });
      links[1] =
          make_tcp_link({.rank = 1, .size = 2, .store = store, .prefix = "test", .secure = secure}, Clock::now() + 20s);
      zero.join();
      begins.join();
      std::vector<std::byte> from(kBytes, std::byte{1}), to(2 * kBytes);
      const auto first = links[0]->receive(1, {5, 1}, to.data(), kBytes);
      const auto second = links[0]->receive(1, {5, 1}, to.data() + kBytes, kBytes);
      const auto sent = links[1]->send(0, {5, 1}, from.data(), kBytes);
      std::string error;
      try {
        links[0]->wait(*first, Clock::now() + 10s);
        if (repeat) links[0]->wait(*second, Clock::now() + 10s);
      } catch (const LinkError& e) {
        EXPECT_EQ(e.kind, LinkError::Kind::forged);
        error = e.what();
      }
      if (secure == Secure::off)  // left to the network by `off`
        EXPECT_EQ(error, "");
      else
        EXPECT_THAT(error, HasSubstr(str("the connection to rank 1 broke: ", kForged)));
      for (const auto& link : links) link->abort("test");
    }
}

// While ranks connect, other programs come to their ports: they say nothing, nonsense, a greeting, or break off at
// once.
TEST(Attackers, ForeignConnectionsNeitherBreakTheStartNorTakeAPlace) {
  WEFT_NEEDS_CRYPTO();
  std::atomic<bool> over{false};
  std::atomic<int> came{0};
  const auto store = std::make_shared<HookedStore>([&](const std::string& key, const std::string& value) {
    if (key == "foreign/address/2") comes_true([&] { return came > 10; });  // the others listen and wait
    return value;
  });
  std::thread attacker([&] {
    std::vector<Descriptor> silent;
    for (int i = 0; !over; ++i) {
      const std::string key = str("foreign/address/", i % 3);
      if (!store->has(key)) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      Descriptor socket;
      if (connect_to(resolve(parse_address("test", store->get(key, 1s))).front(), Clock::now() + 1s, socket) != 0)
        continue;
      ++came;
      if (i / 3 % 4 == 0) send_all(socket.fd(), std::string(100, '\0'), Clock::now() + 1s);
      if (i / 3 % 4 == 1)
        send_all(socket.fd(), frame("weft store 5\n" + std::string(32, 'n') + "rank 2 to 0"), Clock::now() + 1s);
      if (i / 3 % 4 == 2) {
        const linger reset{1, 0};
        ::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        continue;
      }
      silent.push_back(std::move(socket));
      if (silent.size() > 300) silent.erase(silent.begin());
    }
  });
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      std::string& error = errors[static_cast<size_t>(rank)];
      try {
        const auto link =
            make_tcp_link({.rank = rank, .size = 3, .store = store, .prefix = "foreign"}, Clock::now() + 30s);
        const int next = (rank + 1) % 3, before = (rank + 2) % 3;
        int mine = rank, theirs = -1;
        const auto sent = link->send(next, {1, 1}, reinterpret_cast<std::byte*>(&mine), sizeof mine);
        const auto received = link->receive(before, {1, 1}, reinterpret_cast<std::byte*>(&theirs), sizeof theirs);
        link->wait(*received, Clock::now() + 20s);
        link->wait(*sent, Clock::now() + 20s);
        EXPECT_EQ(theirs, before);
        store->add("done", 1);
        while (store->add("done", 0) < 3) std::this_thread::sleep_for(1ms);
      } catch (const std::exception& e) {
        error = e.what();
        store->add("done", 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  attacker.join();
  EXPECT_THAT(errors, ::testing::Each(""));
  EXPECT_GT(came, 10);
}

// The connects of a rank: to the store, to the membership, to the ranks before it.
TEST(Attackers, ARankThatIsKilledWhileItConnectsEndsTheOthersInTime) {
  WEFT_NEEDS_CRYPTO();
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's library wants to be loaded before the one that kills or stops a rank";
#endif
  const TimePoint begin = Clock::now();
  std::vector<Ranks> jobs;
  for (int n = 1; n <= 4; ++n) {
    const uint16_t port = free_port();
    Ranks& ranks = jobs.emplace_back();
    for (int rank = 0; rank < 3; ++rank) {
      ranks.push_back(rank_of(rank, 3, "loop", "127.0.0.1", port,
                              rank == 2 ? std::vector<std::string>{"LD_PRELOAD=" KILL_AT_CONNECT_LIBRARY,
                                                                   str("KILL_AT_CONNECT=", n), "WEFT_TIMEOUT=10"}
                                        : std::vector<std::string>{"WEFT_TIMEOUT=10"}));
      EXPECT_TRUE(listens(port));
    }
  }
  for (size_t n = 1; n <= jobs.size(); ++n) {
    Ranks& ranks = jobs[n - 1];
    EXPECT_EQ(ranks[2]->exit_code(40), 128 + SIGKILL) << "connect " << n << ": " << ranks[2]->output();
    for (const size_t rank : {size_t{0}, size_t{1}}) {
      EXPECT_EQ(ranks[rank]->exit_code(40), 1) << "connect " << n << ": " << ranks[rank]->output();
      if (n > 2) {
        EXPECT_THAT(ranks[rank]->output(), HasSubstr("rank 2 (process"));
      }
    }
    // The first to see it ends, which the other may report instead.
    if (n <= 2) {
      EXPECT_THAT(ranks[0]->output() + ranks[1]->output(), HasSubstr("missing rank 2"));
    }
  }
  EXPECT_LT(Clock::now() - begin, 60s);
}

// Rank 0, in whose process the store is, or another one; while it connects or while all train.
TEST(Attackers, AStoppedRankEndsTheOthersInTime) {
  WEFT_NEEDS_CRYPTO();
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's library wants to be loaded before the one that kills or stops a rank";
#endif
  struct Case {
    size_t stopped;
    int connect;          // 0: later
    bool uneven = false;  // rank 1 gives up sooner, and the others see its end before their own deadline
  };
  const std::vector<Case> cases{{0, 1}, {0, 2}, {0, 0}, {0, 0, true}, {2, 3}, {2, 4}, {2, 0}};
  std::vector<Ranks> jobs;
  for (const Case& c : cases) {
    const uint16_t port = free_port();
    Ranks& ranks = jobs.emplace_back();
    for (size_t rank = 0; rank < 3; ++rank) {
      std::vector<std::string> more{c.connect > 0 || (c.uneven && rank != 1) ? "WEFT_TIMEOUT=10" : "WEFT_TIMEOUT=5"};
      if (c.connect == 0) more.push_back("WEFT_START_TIMEOUT=30");
      if (rank == c.stopped && c.connect > 0)
        more.insert(more.end(), {"LD_PRELOAD=" KILL_AT_CONNECT_LIBRARY, str("KILL_AT_CONNECT=", c.connect),
                                 str("KILL_WITH=", SIGSTOP)});
      ranks.push_back(rank_of(static_cast<int>(rank), 3, "loop", "127.0.0.1", port, more));
      EXPECT_TRUE(listens(port));
    }
    if (c.connect > 0) continue;
    for (const auto& rank : ranks) EXPECT_TRUE(rank->prints("sum 6")) << rank->output();
    ranks[c.stopped]->signal(SIGSTOP);
  }
  const std::string heard = "last heard of [0-9]+ s ago: is it stopped";
  // Another job's store may be found on one of the next ports, and a quick rank may join before rank 0 stops.
  const std::string not_found =
      "has not found its job .*\\(port [0-9]+ holds a program that does not answer|silent rank 0 \\(";
  const std::vector<std::string> names_of_rank_0{
      not_found, not_found, str("silent rank 0 \\(process ", jobs[2][0]->process(), " on ", host_name(), ", ", heard),
      str("silent rank 0 \\(process ", jobs[3][0]->process(), " on ", host_name(), ", ", heard)};
  const TimePoint begin = Clock::now();
  for (size_t i = 0; i < cases.size(); ++i)
    for (size_t rank = 0; rank < 3; ++rank) {
      if (rank == cases[i].stopped) continue;
      EXPECT_EQ(jobs[i][rank]->exit_code(28), 1) << "rank " << cases[i].stopped << " stopped at connect "
                                                 << cases[i].connect << ": " << jobs[i][rank]->output();
      EXPECT_THAT(jobs[i][rank]->output(), HasSubstr("error: "));
      // Rank 0 is the one through which the others would hear who is missing.
      if (cases[i].stopped == 0) {
        EXPECT_THAT(last_line(jobs[i][rank]->output()), ::testing::ContainsRegex(names_of_rank_0[i]));
      }
    }
  EXPECT_LT(Clock::now() - begin, 28s) << "the deadline, and some seconds to say why";
}

}  // namespace
}  // namespace weft::dist::testing
