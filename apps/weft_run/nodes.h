// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/weft_run/options.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_membership.h"
#include "dist/rendezvous/tcp_store.h"

namespace weft::weft_run {

/// Why a round of ranks ended.
struct RoundFailure {
  int code = 1;
  bool may_restart = true;
  std::string text;  ///< `rank 3 ended with exit code 1`
};

/// The launchers' communication; each launcher is one node. A single node needs no network.
class Nodes {
 public:
  /// Connects to the others. Errors: nodes (named by number) are late, or expect another number of nodes.
  Nodes(const Options& options, int local_ranks, const std::string& secret);

  int node() const { return node_; }
  /// The first rank of this node, and all ranks of the job.
  int first_rank() const { return first_rank_; }
  int ranks() const { return ranks_; }

  /// The address for the ranks of this round: the same on all nodes.
  dist::Address master_of(int round);
  /// Tells the others that a rank of this node failed; the first failure counts.
  void fail(int round, const RoundFailure& failure);
  /// The failure of this round, or of a launcher.
  std::optional<RoundFailure> failure(int round);
  /// All ranks of this node have succeeded; true if those of all nodes have.
  bool finished(int round);
  /// All ranks of a node have succeeded.
  bool some_finished(int round);
  /// This node's ranks have stopped. Returns when those of all nodes have, or a node has left: true if all nodes may
  /// restart. `interrupted`: this node was asked to end, and leaves the others unless all have stopped.
  bool wait_until_stopped(int round, bool may_restart, const std::function<bool()>& interrupted);
  void leave();

 private:
  void meet(const std::string& secret);
  int claim_number();

  const Options options_;
  int node_ = 0, first_rank_ = 0, ranks_ = 0;
  bool done_ = false;
  std::optional<RoundFailure> alone_;  // with one node
  std::mutex mutex_;
  std::string lost_;  // why a launcher has ended
  std::unique_ptr<dist::StoreServer> server_;
  std::unique_ptr<dist::TcpStore> store_;
  std::unique_ptr<dist::TcpMembership> membership_;
};

/// A port that was free a moment ago.
uint16_t free_port(const std::string& host);

}  // namespace weft::weft_run
