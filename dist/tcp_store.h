// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "dist/find_store.h"
#include "dist/store.h"

namespace weft::dist {

/// The store that rank 0's server keeps (dist/store_server.h), from any rank; rank 0 connects to itself too.
class TcpStore : public Store {
 public:
  /// `who` opens the error texts: `rank 2`.
  TcpStore(StoreConnection connection, std::string who);
  ~TcpStore() override;

  /// Where the server was found.
  const Endpoint& endpoint() const;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  bool has(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void remove(const std::string& key) override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

}  // namespace weft::dist
