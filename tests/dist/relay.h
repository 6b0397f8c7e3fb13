// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dist/rendezvous/socket.h"

namespace weft::dist::testing {

/// A program between two others: takes connections at an address and passes on all bytes, both ways.
class Relay {
 public:
  /// May change what passes. `connection` counts from 0, `at` is where the bytes lie in their direction's stream.
  using Change = std::function<void(int connection, bool to_server, size_t at, std::string& bytes)>;

  Relay(const Endpoint& own, const Endpoint& server, Change change) : server_(server), change_(std::move(change)) {
    if (listen_on(own, listener_) != 0) fail("test: the relay's address is taken");
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
    for (std::thread& thread : connections_) thread.join();
  }

 private:
  void run() {
    while (!stop_) {
      if (!wait_readable(listener_.fd(), soon())) continue;
      Descriptor client(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)), server;
      if (!client || connect_to(server_, soon(), server) != 0) continue;
      const auto number = static_cast<int>(connections_.size());
      connections_.emplace_back([this, number, c = std::move(client), s = std::move(server)] { pass(number, c, s); });
    }
  }

  void pass(int number, const Descriptor& client, const Descriptor& server) const {
    const Descriptor* const ends[] = {&client, &server};
    size_t at[2] = {};
    while (!stop_)
      for (const int from : {0, 1}) {
        if (!wait_readable(ends[from]->fd(), Clock::now() + std::chrono::milliseconds(1))) continue;
        std::string bytes;
        const int status = receive_some(ends[from]->fd(), bytes);
        if (status != 0 && status != EAGAIN) return;
        const size_t count = bytes.size();
        change_(number, from == 0, at[from], bytes);
        at[from] += count;
        if (send_all(ends[1 - from]->fd(), bytes, Clock::now() + std::chrono::seconds(20)) != 0) return;
      }
  }

  static TimePoint soon() { return Clock::now() + std::chrono::milliseconds(100); }

  const Endpoint server_;
  const Change change_;
  Descriptor listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  std::vector<std::thread> connections_;
};

/// A bit of the byte at `where` of the stream is changed.
inline void flip(size_t where, size_t at, std::string& bytes) {
  if (where >= at && where < at + bytes.size()) bytes[where - at] ^= 4;
}

}  // namespace weft::dist::testing
