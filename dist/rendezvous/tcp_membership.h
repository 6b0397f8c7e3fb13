// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/store.h"
#include "dist/rendezvous/tcp_store.h"

namespace weft::dist {

struct TcpMembershipOptions {
  int rank = 0, size = 1;
  Milliseconds heartbeat{1000};
  Milliseconds patience{5000};   ///< for rank 0 to answer states(); no question if silent for longer
  Milliseconds joining{30'000};  ///< for rank 0 to accept this rank
};

/// Membership through rank 0's server (dist/rendezvous/store_server.h), over its own connection. If a process
/// ends without leave(), its connection breaks, and the server notices at once. If rank 0's ends, so does the server,
/// which all ranks notice.
class TcpMembership : public Membership {
 public:
  /// Joins. Errors: another process has joined with the same rank.
  TcpMembership(StoreConnection connection, const TcpMembershipOptions& options);
  /// Without leave() before, the others are told that this rank has died.
  ~TcpMembership() override;

  /// Returns when all ranks have joined. Errors: a rank (named) did not within `timeout`, or has died.
  void wait_for_all(Milliseconds timeout);

  int on_failure(std::function<void(const Failure&)> callback) override;
  void remove(int number) override;
  void announce(const std::string& reason) override;
  void report(const Progress& progress) override;
  std::vector<MemberState> states(double quiet = 0) override;
  bool claim(const std::string& topic, std::chrono::milliseconds time) override;
  void leave() override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

}  // namespace weft::dist
