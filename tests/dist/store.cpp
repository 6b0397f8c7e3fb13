// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "dist/rendezvous/file_store.h"
#include "tests/dist/meeting.h"
#include "tests/train/temporary_folder.h"

namespace weft::dist {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// The promises of every store.
void expect_store(Store& store, Store& other) {
  store.set("a", "1");
  EXPECT_EQ(other.get("a", 1s), "1");
  EXPECT_TRUE(other.has("a"));
  other.set("a", std::string("two\0\n", 5));
  EXPECT_EQ(store.get("a", 0ms), std::string("two\0\n", 5));
  store.remove("a");
  store.remove("a");
  EXPECT_FALSE(other.has("a"));
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(other.add("n", -7), -2);
  EXPECT_EQ(store.get("n", 0ms), "-2");
  store.set("no/number", "x y");
  EXPECT_EQ(error_text([&] { other.add("no/number", 1); }), "store: cannot add to 'no/number': its value is no number");
  EXPECT_EQ(error_text([&] { other.get("never", 50ms); }), "store: no rank has set 'never' within 50 ms");
  EXPECT_EQ(error_text([&] { store.set("", "x"); }), "store: expected a key of 1 to 256 bytes, got 0");
  EXPECT_EQ(error_text([&] { store.has(std::string(257, 'k')); }), "store: expected a key of 1 to 256 bytes, got 257");
  EXPECT_EQ(error_text([&] { store.set("k", std::string(Store::kMaxValue + 1, 'v')); }),
            "store: expected a value of at most 1048576 bytes for 'k', got 1048577");

  const std::string large(Store::kMaxValue, '\xff'), key(Store::kMaxKey, '/');
  store.set(key, large);
  EXPECT_EQ(other.get(key, 0ms), large);
  store.set("empty", "");
  EXPECT_EQ(other.get("empty", 0ms), "");

  // A thread waits for what the same rank sets later.
  std::thread waiting([&] { EXPECT_EQ(store.get("late", 10s), "came"); });
  std::this_thread::sleep_for(30ms);
  store.set("late", "came");
  waiting.join();

  // More than one message holds.
  const std::vector<std::string> run{std::string(Store::kMaxValue - 5, 'a'), "b", "", "d",
                                     std::string(Store::kMaxValue - 5, 'e')};
  other.set_all("run", run);
  EXPECT_EQ(store.find_all("run", 5, 0ms), run);
  EXPECT_EQ(store.get_all("run", 2, 0ms), (std::vector<std::string>{run[0], "b"}));
  store.set("run/5", large);
  EXPECT_EQ(store.find_all("run", 7, 0ms).size(), 6u);
  EXPECT_EQ(error_text([&] { store.get_all("run", 7, 50ms); }), "store: no rank has set 'run/6' within 50 ms");
  std::thread gathers([&] { EXPECT_EQ(store.get_all("slow", 3, 600s), (std::vector<std::string>{"0", "1", "2"})); });
  for (const int i : {1, 0, 2}) other.set(str("slow/", i), std::to_string(i));
  gathers.join();

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) (i % 2 ? store : other).add("count", 1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.get("count", 0ms), "200");

  // The end of the job ends waits long before their deadline. Earlier values are still found.
  std::thread never([&] {
    EXPECT_EQ(error_text([&] { other.get("never", 600s); }),
              "store: no rank has set 'never' before the end: rank 2 has died");
  });
  std::this_thread::sleep_for(30ms);
  other.end_waits("rank 2 has died");
  never.join();
  EXPECT_EQ(error_text([&] { other.get_all("slow", 4, 600s); }),
            "store: no rank has set 'slow/3' before the end: rank 2 has died");
  EXPECT_EQ(other.get_all("run", 5, 600s), run);
}

TEST(TcpStore, KeepsItsPromises) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  TcpStore store = meeting.store(), other = meeting.store();
  expect_store(store, other);
}

TEST(TcpStore, ValuesOfARunHaveALimit) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  EXPECT_EQ(error_text([&] {
              meeting.store().set_all("run", {"", std::string(Store::kMaxValue - 4, 'v')});
            }),
            "store: expected values of at most 1048571 bytes for 'run/…', got 1048572");
}

TEST(TcpStore, KeepsItsPromisesOverIpv6) {
  WEFT_NEEDS_CRYPTO();
  Descriptor socket;
  if (listen_on(resolve({"::1", 0}).front(), socket) != 0) GTEST_SKIP() << "this system has no IPv6 loopback";
  Meeting meeting(1, 5000ms, 256, "::1");
  TcpStore store = meeting.store();
  EXPECT_THAT(store.endpoint().text(), ::testing::StartsWith("[::1]:"));
  store.set("a", "b");
  EXPECT_EQ(store.get("a", 1s), "b");
}

TEST(FileStore, KeepsItsPromises) {
  const test::TemporaryFolder folder;
  FileStore store(folder.path()), other(folder.path());
  expect_store(store, other);
}

TEST(FileStore, PipesAndLinksOfOthersAreNotFollowed) {
  const test::TemporaryFolder folder, elsewhere;
  FileStore store(folder.path());
  ASSERT_EQ(::mkfifo((folder / "a=").c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { store.get("a", 10s); }), HasSubstr("a=: expected a file, got something else"));
  std::filesystem::create_symlink(elsewhere / "made", folder / "lock");
  EXPECT_THAT(error_text([&] { store.add("n", 1); }), HasSubstr("store: cannot lock "));
  EXPECT_EQ(elsewhere.files(), 0u) << "made through a link";
}

TEST(FileStore, RefusesAFolderThatIsNotThere) {
  const std::string text = error_text([] { FileStore store("/nowhere/at/all"); });
  EXPECT_EQ(text,
            "store: expected a folder that all ranks can write, got '/nowhere/at/all': No such file or directory");
}

TEST(TcpStore, ServerThatEndsIsAnErrorNotAHang) {
  WEFT_NEEDS_CRYPTO();
  auto meeting = std::make_unique<Meeting>();
  TcpStore store = meeting->store();
  std::thread ends([&] {
    std::this_thread::sleep_for(50ms);
    meeting.reset();
  });
  EXPECT_THAT(error_text([&] { store.get("never", 20s); }),
              HasSubstr("store: rank 1 cannot ask for 'never': the connection to rank 0's store at 127.0.0.1:"));
  ends.join();
  EXPECT_THAT(error_text([&] { store.set("a", "b"); }), HasSubstr("is broken (rank 0 has closed it)"));
}

TEST(TcpStore, OtherSecretIsRefusedWithTheCure) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  const TimePoint start = Clock::now();
  const std::string text = error_text([&] { meeting.connect("some other secret", 3s); });
  EXPECT_LT(Clock::now() - start, 20s);
  EXPECT_THAT(text, HasSubstr("store: rank 1 on "));
  EXPECT_THAT(text, HasSubstr(str("has not found its job at ", meeting.server.address(), " within 3 s (port ",
                                  meeting.server.address().port, " has another secret)")));
  EXPECT_THAT(text, HasSubstr("Do all ranks have the same WEFT_JOB_SECRET"));
  ASSERT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said().front(), HasSubstr("which closed before it had proven anything"));
}

// A client that does not check the server's proof, and makes up its own.
TEST(TcpStore, MadeUpProofIsRefused) {
  WEFT_NEEDS_CRYPTO();
  Meeting meeting;
  const Descriptor socket = meeting.unproven();
  const TimePoint deadline = Clock::now() + 10s;
  send_all(socket.fd(), frame("weft store 5\n" + std::string(32, 'n')), deadline);
  send_all(socket.fd(), frame(std::string(32, 'p')), deadline);
  EXPECT_TRUE(is_closed(socket));
  EXPECT_TRUE(comes_true([&] { return !meeting.said().empty(); }));
  EXPECT_THAT(meeting.said().front(),
              ::testing::MatchesRegex("store: refused 127.0.0.1:[0-9]+, which does not know the secret of this job"));
}

TEST(TcpStore, NobodyThereIsNamedInTime) {
  WEFT_NEEDS_CRYPTO();
  uint16_t port;
  {
    Meeting meeting;
    port = meeting.server.address().port;
  }
  const std::string text = error_text([&] { find_store({"127.0.0.1", port}, kSecret, "rank 3", 200ms, 1); });
  EXPECT_THAT(text, HasSubstr("store: rank 3 on "));
  EXPECT_THAT(text, HasSubstr("cannot be reached: Connection refused). Does rank 0 (or node 0 of weft-run) run there"));
}

TEST(TcpStore, WrongAddressIsNamed) {
  WEFT_NEEDS_CRYPTO();
  const auto text = [](const std::string& host) {
    return error_text([&] { StoreServer server({host, 0}, {.secret = kSecret}); });
  };
  EXPECT_THAT(text("192.0.2.77"), HasSubstr("and 192.0.2.77 is no address of this host. Set MASTER_ADDR to"));
  EXPECT_THAT(text("no-such-host.invalid"),
              HasSubstr("store: expected a host that this one can find, got 'no-such-host.invalid': "));
  EXPECT_THAT(error_text([] {
                find_store({"no-such-host.invalid", 1}, kSecret, "rank 1", 1s, 1);
              }),
              HasSubstr("got 'no-such-host.invalid'"));
  EXPECT_THAT(error_text([] {
                StoreServer server({"127.0.0.1", 0}, {});
              }),
              HasSubstr("store: expected a secret, got none"));
}

// torchrun's own store holds the first port; a program that says nothing holds the second.
TEST(TcpStore, TakenPortsArePassedOverByBothSides) {
  WEFT_NEEDS_CRYPTO();
  Endpoint endpoint = resolve({"127.0.0.1", 0}).front();
  Descriptor first, second;
  uint16_t port = 0;
  for (int attempt = 0; attempt < 50 && !second; ++attempt) {
    endpoint.set_port(static_cast<uint16_t>(21000 + (::getpid() * 31 + attempt * 17) % 9000));
    if (listen_on(endpoint, first) != 0) continue;
    port = endpoint.port();
    endpoint.set_port(static_cast<uint16_t>(port + 1));
    if (listen_on(endpoint, second) != 0) first.close();
  }
  ASSERT_TRUE(second);
  std::thread talker([&] {  // answers as another protocol would
    while (wait_readable(first.fd(), Clock::now() + 10s)) {
      Descriptor visitor(::accept(first.fd(), nullptr, nullptr));
      if (!visitor) return;
      send_all(visitor.fd(), "HTTP/1.1 400 Bad Request\r\n\r\n", Clock::now() + 1s);
      return;
    }
  });
  StoreServer server({"127.0.0.1", port}, {.secret = kSecret});
  EXPECT_GT(server.address().port, port + 1);
  second.close();  // else five seconds of patience with it
  const StoreConnection connection = find_store({"127.0.0.1", port}, kSecret, "rank 1", 20s, kStorePorts);
  EXPECT_EQ(connection.endpoint.port(), server.address().port);
  talker.join();
}

TEST(TcpStore, AllPortsTakenIsAnError) {
  WEFT_NEEDS_CRYPTO();
  std::vector<Descriptor> taken;
  Endpoint endpoint = resolve({"127.0.0.1", 0}).front();
  for (int attempt = 0; attempt < 50 && taken.size() < kStorePorts; ++attempt) {
    taken.clear();
    for (int i = 0; i < kStorePorts; ++i) {
      endpoint.set_port(static_cast<uint16_t>(21000 + (::getpid() * 31 + attempt * 57) % 9000 + i));
      Descriptor socket;
      if (listen_on(endpoint, socket) == 0) taken.push_back(std::move(socket));
    }
  }
  ASSERT_EQ(taken.size(), size_t{kStorePorts});
  const int first = endpoint.port() - kStorePorts + 1;
  EXPECT_EQ(error_text([&] {
              StoreServer server({"127.0.0.1", static_cast<uint16_t>(first)}, {.secret = kSecret});
            }),
            str("store: the ports ", first, " to ", first + kStorePorts - 1,
                " of 127.0.0.1 are all taken by other programs. Set MASTER_PORT to another one"));
}

#if !WEFT_HAVE_CRYPTO
TEST(TcpStore, StubSaysHowToBuildItIn) {
  const std::string text = error_text([] { StoreServer server({"127.0.0.1", 0}, {.secret = kSecret}); });
  EXPECT_THAT(text, HasSubstr("store: this build has no libcrypto"));
  EXPECT_THAT(text, HasSubstr("apt-get install libssl-dev"));
  EXPECT_EQ(error_text([] { find_store({"127.0.0.1", 1}, kSecret, "rank 1", 1s, 1); }), text);
}
#endif

}  // namespace
}  // namespace weft::dist
