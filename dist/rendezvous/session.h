// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/rendezvous/launch_environment.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_membership.h"
#include "dist/rendezvous/tcp_store.h"

namespace weft::dist {

/// Where this process's job stands. Signal handlers may ask.
enum class JobState : uint8_t {
  none,      ///< it has joined none: it is alone
  meeting,   ///< not all ranks have joined yet
  complete,  ///< all are there, or have ended well
  failed,    ///< one has died or given up
};
JobState job_state();

/// A rank's connections to its job, from when all ranks have joined until this rank leaves. Rank 0's session also owns
/// the server.
class Session {
 public:
  /// Errors: no known address; ranks that do not join within `timeout` (named).
  Session(const LaunchEnvironment& environment, const EnvironmentVariables& variables, Milliseconds timeout);
  /// Leaves, unless end() has. While an exception unwinds the stack it tells the others that this rank gives up.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Store& store() { return *store_; }
  Membership& membership() { return *membership_; }
  void end();
  /// Tells the others that this rank ends with an error, and which one, and leaves.
  void give_up(const std::string& error);

  /// Store::find and find_all. Errors: no rank sets a key in time; a rank died before.
  std::string wait_for(const std::string& key, Milliseconds timeout);
  std::vector<std::string> wait_for_all(const std::string& prefix, int count, Milliseconds timeout);

 private:
  StoreConnection meet_in_folder(const std::string& folder, const LaunchEnvironment& environment, TimePoint deadline);
  StoreConnection meet_at_master(const LaunchEnvironment& environment, TimePoint deadline);
  Address meet_over_mpi(const LaunchEnvironment& environment, TimePoint deadline);
  void wait_for_others(const LaunchEnvironment& environment, Milliseconds timeout, TimePoint deadline);
  [[noreturn]] void fail_waiting(const std::string& key, Milliseconds timeout);
  void serve(const Address& address, const LaunchEnvironment& environment);

  int rank_;
  std::string secret_;
  int exceptions_;
  bool met_over_mpi_ = false;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::string failure_;
  std::unique_ptr<StoreServer> server_;  // destroyed last: it waits for the other ranks
  std::unique_ptr<TcpStore> store_;
  std::unique_ptr<TcpMembership> membership_;
};

}  // namespace weft::dist
