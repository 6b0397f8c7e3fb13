// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/handshake.h"

#include "dist/rendezvous/keyed_hash.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

// The digit is the version of the whole protocol.
constexpr std::string_view kGreeting = "weft store 1\n", kWelcome = "welcome";

std::string proof(const std::string& secret, std::string_view side, const std::string& nonces) {
  return keyed_hash(secret, std::string(side) + nonces);
}

}  // namespace

std::string ServerHandshake::answer(std::string_view body) {
  if (nonces_.empty()) {
    WEFT_CHECK(body.size() == kGreeting.size() + kHashBytes && body.starts_with(kGreeting), "speaks another protocol");
    const std::string nonce = random_bytes(kHashBytes);
    nonces_ = std::string(body.substr(kGreeting.size())) + nonce;
    return std::string(kGreeting) + nonce + proof(secret_, "server", nonces_);
  }
  WEFT_CHECK(!done_ && same_hash(body, proof(secret_, "client", nonces_)), "does not know the secret of this job");
  done_ = true;
  return std::string(kWelcome);
}

ClientHandshake::ClientHandshake(const std::string& secret) : secret_(secret), nonce_(random_bytes(kHashBytes)) {}

std::string ClientHandshake::greeting() const { return std::string(kGreeting) + nonce_; }

std::optional<std::string> ClientHandshake::answer(std::string_view body) {
  if (proven_) {
    WEFT_CHECK(body == kWelcome, "speaks another protocol");
    return std::nullopt;
  }
  WEFT_CHECK(body.size() == kGreeting.size() + 2 * kHashBytes && body.starts_with(kGreeting),
             "speaks another protocol");
  const std::string nonces = nonce_ + std::string(body.substr(kGreeting.size(), kHashBytes));
  WEFT_CHECK(same_hash(body.substr(kGreeting.size() + kHashBytes), proof(secret_, "server", nonces)),
             "has another secret");
  proven_ = true;
  return proof(secret_, "client", nonces);
}

}  // namespace weft::dist
