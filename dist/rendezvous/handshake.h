// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "dist/rendezvous/crypto.h"

namespace weft::dist {

/// Two programs prove to each other that they belong to one job, without sending its secret. The client sends first, so
/// that another program on the port refuses it at once:
///   client: greeting, nonce, what it wants
///   server: greeting, nonce, HMAC(secret, "server" transcript)
///   client: HMAC(secret, "client" transcript)
///   server: "welcome", or why not, as the first sealed frame
/// A nonce is 32 random bytes, so a recorded exchange cannot be replayed; the transcript is all that was sent in clear.
/// The frames that follow are sealed (dist/rendezvous/crypto.h) under keys that come from secret and transcript: a
/// relay between the two can pass on the handshake, but change nothing that comes after it.

/// The server's side of one connection.
class ServerHandshake {
 public:
  explicit ServerHandshake(const std::string& secret) : secret_(secret) {}
  /// Takes the client's next body and returns the body to send; empty once done. Errors: the client is no rank of this
  /// job; the message says why, as in `speaks another protocol`.
  std::string answer(std::string_view body);
  bool done() const { return done_; }
  /// What the client wants; proven once done.
  const std::string& wish() const { return wish_; }
  /// 32 bytes for `use`, such as a direction; the client's are the same. After done().
  std::string key(std::string_view use) const;

 private:
  const std::string& secret_;
  std::string wish_, transcript_;
  bool done_ = false;
};

/// The client's side.
class ClientHandshake {
 public:
  /// `wish`: at most 128 bytes.
  ClientHandshake(const std::string& secret, const std::string& wish);
  /// The body to send first.
  const std::string& greeting() const { return transcript_; }
  /// Takes the server's body and returns the proof to send. Errors: it is no store, or another job's.
  std::string answer(std::string_view body);
  /// After answer().
  std::string key(std::string_view use) const;

 private:
  const std::string& secret_;
  std::string transcript_;
};

inline constexpr std::string_view kWelcome = "welcome";

}  // namespace weft::dist
