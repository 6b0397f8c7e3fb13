// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_membership.h"
#include "dist/rendezvous/tcp_store.h"
#include "tests/dist/secret.h"
#include "tests/support/error_text.h"

#if WEFT_HAVE_CRYPTO
#define WEFT_NEEDS_CRYPTO() static_cast<void>(0)
#else
#define WEFT_NEEDS_CRYPTO() GTEST_SKIP() << "needs libcrypto"
#endif

namespace weft::dist {

/// A job's server on a port that the system has picked, and its lines about refused peers.
struct Meeting {
  explicit Meeting(int size = 1, Milliseconds patience = Milliseconds(5000), size_t max_unproven = 256,
                   const std::string& host = "127.0.0.1")
      : server({host, 0}, {.size = size,
                           .secret = kSecret,
                           .patience = patience,
                           .max_unproven = max_unproven,
                           .farewell = Milliseconds(500),
                           .log = [this](const std::string& line) {
                             const std::lock_guard lock(mutex);
                             lines.push_back(line);
                           }}) {}

  StoreConnection connect(const std::string& secret = kSecret, Milliseconds timeout = Milliseconds(10'000)) const {
    return find_store(server.address(), secret, "rank 1", timeout, 1);
  }
  TcpStore store() const { return TcpStore(connect(), "rank 1"); }
  std::unique_ptr<TcpMembership> member(int rank, int size) const {
    return std::make_unique<TcpMembership>(
        connect(), TcpMembershipOptions{
                       .rank = rank, .size = size, .heartbeat = Milliseconds(50), .patience = Milliseconds(10'000)});
  }
  /// A connection that has said nothing yet.
  Descriptor unproven() const {
    Descriptor socket;
    const Endpoint endpoint = resolve(server.address()).front();
    EXPECT_EQ(connect_to(endpoint, Clock::now() + std::chrono::seconds(10), socket), 0);
    return socket;
  }
  /// The server's lines so far about refused peers.
  std::vector<std::string> said() {
    const std::lock_guard lock(mutex);
    return lines;
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  StoreServer server;  // the last: its thread writes into the others
};

/// Waits until the other side has closed the connection; false: not within a minute.
inline bool is_closed(const Descriptor& socket) {
  const TimePoint deadline = Clock::now() + std::chrono::seconds(60);
  std::string bytes;
  while (wait_readable(socket.fd(), deadline)) {
    const int status = receive_some(socket.fd(), bytes);
    if (status != 0 && status != EAGAIN) return true;
  }
  return false;
}

/// Waits until `condition` holds; false: not within a minute.
template <class Condition>
bool comes_true(Condition&& condition) {
  for (int i = 0; i < 12000; ++i) {
    if (condition()) return true;
    ::usleep(5000);
  }
  return false;
}

}  // namespace weft::dist
