// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/handshake.h"

#include "dist/rendezvous/crypto.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

// The digit is the version of the whole protocol.
constexpr std::string_view kGreeting = "weft store 2\n";
constexpr size_t kOpening = kGreeting.size() + kHashBytes;

}  // namespace

std::string ServerHandshake::answer(std::string_view body) {
  if (transcript_.empty()) {
    WEFT_CHECK(body.size() >= kOpening && body.starts_with(kGreeting), "speaks another protocol");
    wish_ = body.substr(kOpening);
    const std::string opening = std::string(kGreeting) + random_bytes(kHashBytes);
    transcript_ = std::string(body) + opening;
    return opening + key("server");
  }
  WEFT_CHECK(!done_ && same_hash(body, key("client")), "does not know the secret of this job");
  done_ = true;
  return {};
}

std::string ServerHandshake::key(std::string_view use) const { return keyed_hash(secret_, str(use, '\n', transcript_)); }

ClientHandshake::ClientHandshake(const std::string& secret, const std::string& wish)
    : secret_(secret), transcript_(std::string(kGreeting) + random_bytes(kHashBytes) + wish) {}

std::string ClientHandshake::answer(std::string_view body) {
  WEFT_CHECK(body.size() == kOpening + kHashBytes && body.starts_with(kGreeting), "speaks another protocol");
  transcript_ += body.substr(0, kOpening);
  WEFT_CHECK(same_hash(body.substr(kOpening), key("server")), "has another secret");
  return key("client");
}

std::string ClientHandshake::key(std::string_view use) const { return keyed_hash(secret_, str(use, '\n', transcript_)); }

}  // namespace weft::dist
