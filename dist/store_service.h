// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/message.h"
#include "dist/socket.h"

namespace weft::dist {

using ConnectionId = uint64_t;

/// Bytes that a service wants to have sent.
struct Outgoing {
  ConnectionId to = 0;
  std::string frame;
};

/// The keys and values of a store, and who waits for which; no sockets, no threads. Rank 0's server runs it.
class StoreService {
 public:
  /// Takes a message of a proven rank. Errors: it is malformed.
  void handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out);
  void closed(ConnectionId connection);
  /// Tells those whose time has passed that their key did not come.
  void expire(TimePoint now, std::vector<Outgoing>& out);
  /// When expire() has something to do next.
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
