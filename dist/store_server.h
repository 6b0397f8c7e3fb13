// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "dist/address.h"
#include "dist/store.h"

namespace weft::dist {

/// A server tries this many ports, from the one that it is told on, and so do those who look for it: a launcher may
/// hold the first with a store of its own.
inline constexpr int kStorePorts = 8;

struct StoreServerOptions {
  int size = 1;                                      ///< ranks of the job
  std::string secret;                                ///< what they all know; never sent
  Milliseconds patience{5000};                       ///< for a connection to prove that it knows the secret
  size_t max_strangers = 256;                        ///< connections without a proof; one more ends the oldest
  int ports = kStorePorts;                           ///< from the one that is asked for on
  Milliseconds farewell{10'000};                     ///< how long the destructor waits for ranks that have not left
  std::function<void(const std::string&)> log = {};  ///< takes a line about a stranger; none: stderr
};

/// The store and the membership of a job: a thread in rank 0's process. It listens on the addresses of one host name
/// only, lets those in who prove that they know the secret (dist/handshake.h), and bounds every message and how many
/// strangers it listens to. Nothing that a stranger does ends it.
class StoreServer {
 public:
  /// Port 0: the system picks one. Errors: the host is not this one, all its ports are taken, no secret.
  StoreServer(const Address& address, StoreServerOptions options);
  /// Waits for the others to leave (see `farewell`), tells the rest that it ends in order.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// The host that was asked for, and the port that was free.
  const Address& address() const;
  /// Nobody on another host can connect.
  bool is_loopback() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace weft::dist
