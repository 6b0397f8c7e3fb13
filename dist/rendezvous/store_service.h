// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/message.h"
#include "dist/rendezvous/socket.h"

namespace weft::dist {

using ConnectionId = uint64_t;

/// Bytes that a service sends.
struct Outgoing {
  ConnectionId to = 0;
  std::string frame;
};

/// The keys and values of a store, and the waiting requests; no sockets, no threads. Rank 0's server runs it.
class StoreService {
 public:
  /// Handles a message of an authenticated rank. Errors: it is malformed.
  void handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out);
  void closed(ConnectionId connection);
  /// Answers requests whose time has passed: their key was not set.
  void expire(TimePoint now, std::vector<Outgoing>& out);
  /// When expire() is due next.
  std::optional<TimePoint> next_deadline() const;

 private:
  struct Waiting {
    ConnectionId connection;
    int64_t request;
    TimePoint deadline;
  };

  void set(const std::string& key, const std::string& value, std::vector<Outgoing>& out);

  std::map<std::string, std::string> values_;
  std::multimap<std::string, Waiting> waiting_;
};

}  // namespace weft::dist
