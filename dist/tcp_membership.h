// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dist/find_store.h"
#include "dist/membership.h"
#include "dist/store.h"

namespace weft::dist {

struct TcpMembershipOptions {
  int rank = 0, size = 1;
  Milliseconds heartbeat{1000};
  Milliseconds patience{5000};  ///< for rank 0 to answer states()
};

/// Membership through rank 0's server (dist/store_server.h), over a connection of its own. A process that ends in any
/// other way than leave() breaks its connection, which the server sees at once; that of rank 0 ends the server, which
/// all see.
class TcpMembership : public Membership {
 public:
  /// Joins. Errors: this rank has joined already (another process has the same rank).
  TcpMembership(StoreConnection connection, const TcpMembershipOptions& options);
  /// Without leave() before, the others hear that this rank has died.
  ~TcpMembership() override;

  /// Returns when all ranks have joined. Errors: a rank did not within `timeout` (named), or has died.
  void wait_for_all(Milliseconds timeout);

  int on_failure(std::function<void(const Failure&)> callback) override;
  void remove(int number) override;
  void announce(const std::string& reason) override;
  void report(const Progress& progress) override;
  std::vector<MemberState> states() override;
  void leave() override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

/// `2, 5 to 7`: ranks in ascending order, for error texts; at most 20 ranges.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace weft::dist
