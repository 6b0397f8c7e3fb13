// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace weft::dist {

/// Two programs prove to each other that they belong to one job, without sending its secret. The client sends first, so
/// that another program on the port refuses it at once:
///   client: greeting, client nonce
///   server: greeting, server nonce, HMAC(secret, "server" nonces)
///   client: HMAC(secret, "client" nonces)
///   server: "welcome"
/// A nonce is 32 random bytes, so a recorded exchange cannot be replayed. Later messages are not encrypted.

/// The server's side of one connection.
class ServerHandshake {
 public:
  explicit ServerHandshake(const std::string& secret) : secret_(secret) {}
  /// Takes the client's next body and returns the body to send. Errors: the client is no rank of this job; the message
  /// says why, as in `speaks another protocol`.
  std::string answer(std::string_view body);
  bool done() const { return done_; }

 private:
  const std::string& secret_;
  std::string nonces_;
  bool done_ = false;
};

/// The client's side.
class ClientHandshake {
 public:
  explicit ClientHandshake(const std::string& secret);
  /// The body to send first.
  std::string greeting() const;
  /// Takes the server's next body and returns the body to send; nothing once the server has accepted. Errors: it is no
  /// store, or another job's.
  std::optional<std::string> answer(std::string_view body);

 private:
  const std::string& secret_;
  std::string nonce_;
  bool proven_ = false;
};

}  // namespace weft::dist
