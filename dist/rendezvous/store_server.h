// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "dist/rendezvous/address.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

/// Servers and clients try this many ports, from the given one on: a launcher may use the first for its own store.
inline constexpr int kStorePorts = 8;

struct StoreServerOptions {
  int size = 1;                   ///< ranks of the job
  std::string secret;             ///< known to all ranks; never sent
  Milliseconds patience{5000};    ///< time for a connection to authenticate
  size_t max_unproven = 256;      ///< unauthenticated connections, at least two a rank; one more ends the oldest
  int ports = kStorePorts;        ///< from the given one on
  Milliseconds farewell{10'000};  ///< how long the destructor waits for ranks that have not left
  std::function<void(const std::string&)> log = {};  ///< receives lines about refused peers; none: stderr
};

/// The store and the membership of a job: a thread in rank 0's process. The server listens on the addresses of a single
/// host name and accepts peers that prove to know the secret (dist/rendezvous/handshake.h). Every message and the
/// number of unauthenticated peers are limited. Unauthenticated peers cannot stop it.
class StoreServer {
 public:
  /// Port 0: the system picks one. Errors: the host is not this one, all its ports are taken, no secret.
  StoreServer(const Address& address, StoreServerOptions options);
  /// Waits for the other ranks to leave (see `farewell`), then tells the rest that it ends normally.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// The given host, and the port that was free.
  const Address& address() const;
  /// Other hosts cannot connect.
  bool is_loopback() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace weft::dist
