// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "dist/rendezvous/message.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

/// A connection to a job's server, after both sides have proven that they know the secret.
struct StoreConnection {
  Descriptor socket;
  Endpoint endpoint;                    ///< where the server listens
  FrameBuffer in{kMaxUnprovenMessage};  ///< received so far
  FrameSeal out;
  std::string secret;  ///< secret of the job
};

/// The wish of a client of the server at this port: a server that was reached through another program's port reports
/// that.
std::string wish_for_store(uint16_t port);

/// Connects to a server and proves that this rank belongs to the job; on failure `why` describes what answered.
bool try_store(const Endpoint& endpoint, const std::string& secret, TimePoint deadline, StoreConnection& connection,
               std::string& why);

/// Searches for the job's server at all addresses of the host, on `ports` ports from its own on. Repeats this until the
/// deadline, since rank 0 may start later. Errors: unknown host; not found in time, with the state of each port. `who`
/// begins the error: `rank 2`.
StoreConnection find_store(const Address& address, const std::string& secret, const std::string& who,
                           Milliseconds timeout, int ports);

/// A client of the store in rank 0's server (dist/rendezvous/store_server.h); rank 0 connects to itself too.
class TcpStore : public Store {
 public:
  /// `who` begins error messages: `rank 2`. `patience`: how long a request waits for the server beyond its own
  /// timeout.
  TcpStore(StoreConnection connection, std::string who, Milliseconds patience = Milliseconds(30'000));
  ~TcpStore() override;

  /// Where the server was found.
  const Endpoint& endpoint() const;
  std::string secret() const override;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key, Milliseconds timeout) override;
  bool has(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void remove(const std::string& key) override;
  void set_all(const std::string& prefix, const std::vector<std::string>& values) override;
  void end_waits(const std::string& why) override;
  void hurry() override;

 protected:
  std::vector<std::string> find_run(const std::string& prefix, int first, Milliseconds timeout) override;
  std::string why_ended() const override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

}  // namespace weft::dist
