// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/membership.h"
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
  std::optional<TimePoint> next_deadline() const { return next_deadline_; }

 private:
  struct Waiting {
    ConnectionId connection;
    int64_t request;
    TimePoint deadline;
    std::string prefix;  ///< its run begins with the key; empty: the value alone
    int64_t first = 0;
  };

  void set(const std::string& key, const std::string& value, std::vector<Outgoing>& out);
  void wait(const std::string& key, Waiting waiting, std::vector<Outgoing>& out);
  std::string value_for(const Waiting& waiting, const std::string& value) const;

  std::map<std::string, std::string> values_;
  std::multimap<std::string, Waiting> waiting_;
  std::optional<TimePoint> next_deadline_;  // or earlier: requests that ended do not move it
};

/// The ranks of the job, their last heartbeats, and the first failure; no sockets, no threads. Rank 0's server runs it.
class MemberService {
 public:
  explicit MemberService(int size) : size_(size) {}
  /// Handles a message of an authenticated rank. Errors: it is malformed, or the rank has not joined.
  void handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out);
  /// A connection has closed; `lost`: because its host does not answer. A rank that had not left is dead, and all
  /// others are told.
  void closed(ConnectionId connection, bool lost, std::vector<Outgoing>& out);
  /// The job cannot continue: tells all ranks. Later failures follow from the first one and are not told.
  void fail_all(Failure failure, std::vector<Outgoing>& out);
  /// Tells all ranks that the server ends normally.
  void say_farewell(std::vector<Outgoing>& out) const;
  /// Every rank that joined has left or is dead.
  bool all_gone() const;
  bool has_failed() const { return failure_.has_value(); }

 private:
  struct Member {
    ConnectionId connection = 0;  ///< 0: closed
    MemberState state;
    TimePoint heard;
  };

  Member& member_of(ConnectionId connection);
  void join(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out);
  void answer_states(ConnectionId to, int64_t request, std::chrono::milliseconds quiet, TimePoint now,
                     std::vector<Outgoing>& out) const;
  int size_;
  std::map<int, Member> members_;
  std::map<ConnectionId, int> ranks_;
  std::map<std::string, TimePoint> claims_;  ///< topics and their ends
  std::optional<Failure> failure_;
};

/// `rank 2 (process 4711 on jwb0021)`.
std::string describe(const MemberState& state);

/// Writes the progress in a heartbeat, and in a state.
void write_progress(MessageWriter& writer, const MemberState& state);
MemberState read_state(MessageReader& message);
Failure read_failure(MessageReader& message);

}  // namespace weft::dist
