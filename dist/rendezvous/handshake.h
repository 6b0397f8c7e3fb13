// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/launch_environment.h"

namespace weft::dist {

/// The secret that only the ranks of one job know: WEFT_JOB_SECRET, else derived from the cookie in the home folder
/// (~/.weft_cookie, created if missing) and the name of the job. Errors: WEFT_JOB_SECRET is
/// shorter than 16 characters; the cookie cannot be used.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job);

/// As above, with another cookie file.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job,
                       const std::filesystem::path& cookie);

/// The bytes of a cookie file; a missing file is created with 32 random bytes, readable by its owner only. Errors:
/// another user owns the file or has rights; no regular file, or shorter than 32 bytes.
std::string read_cookie(const std::filesystem::path& file);

/// Two programs prove to each other that they belong to one job, without sending its secret. The client sends first, so
/// that another program on the port refuses it at once:
///   client: greeting, nonce, wish
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
  /// The client's wish; proven once done.
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
