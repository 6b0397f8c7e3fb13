// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "dist/rendezvous/find_store.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

/// A client of the store in rank 0's server (dist/rendezvous/store_server.h); rank 0 connects to itself too.
class TcpStore : public Store {
 public:
  /// `who` begins error messages: `rank 2`. `patience`: how long a request waits for the server besides its own timeout.
  TcpStore(StoreConnection connection, std::string who, Milliseconds patience = Milliseconds(30'000));
  ~TcpStore() override;

  /// Where the server was found.
  const Endpoint& endpoint() const;
  std::string secret() const override;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  bool has(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void remove(const std::string& key) override;
  void hurry() override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

}  // namespace weft::dist
