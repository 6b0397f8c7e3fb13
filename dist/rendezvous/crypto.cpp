// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/error.h"

namespace weft::dist {
namespace {

const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes(void* data) { return static_cast<unsigned char*>(data); }
const unsigned char* bytes(const void* data) { return static_cast<const unsigned char*>(data); }

void check_crypto(bool fine) { WEFT_CHECK(fine, "store: libcrypto failed: out of memory, or without its algorithms"); }

/// The algorithms of libcrypto itself, whatever the system's configuration file says of them.
struct Library {
  OSSL_LIB_CTX* context = OSSL_LIB_CTX_new();
  OSSL_PROVIDER* algorithms = OSSL_PROVIDER_load(context, "default");
  EVP_MAC* poly1305 = EVP_MAC_fetch(context, OSSL_MAC_NAME_POLY1305, nullptr);
  EVP_CIPHER* chacha20 = EVP_CIPHER_fetch(context, "ChaCha20", nullptr);
};
const Library& library() {
  static const Library& made = *new Library;  // never freed: threads may outlive main's statics
  check_crypto(made.algorithms && made.poly1305 && made.chacha20);
  return made;
}

}  // namespace

void require_keyed_hash() { library(); }

std::string keyed_hash(std::string_view key, std::string_view message) {
  std::string hash(kHashBytes, '\0');
  size_t count = 0;
  check_crypto(EVP_Q_mac(library().context, OSSL_MAC_NAME_HMAC, nullptr, "SHA256", nullptr, key.data(), key.size(),
                         bytes(message), message.size(), bytes(hash.data()), hash.size(), &count) != nullptr &&
               count == kHashBytes);
  return hash;
}

bool same_hash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t count) {
  std::string made(count, '\0');
  WEFT_CHECK(RAND_bytes_ex(library().context, bytes(made.data()), count, 0) == 1,
             "store: libcrypto found no source of random numbers on this system");
  return made;
}

std::string hexadecimal(std::string_view binary) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (const char c : binary) {
    const auto byte = static_cast<unsigned char>(c);
    digits += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return digits;
}

struct FrameSeal::State {
  uint64_t tags = 0;
  bool encrypt;
  std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> stream{EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free};
  std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> mac{EVP_MAC_CTX_new(library().poly1305), EVP_MAC_CTX_free};

  void cipher(const std::byte* from, std::byte* to, size_t count) {
    constexpr size_t kMost = size_t{1} << 30;  // libcrypto counts in an int
    for (size_t at = 0; at < count; at += kMost) {
      int written = 0;
      check_crypto(EVP_EncryptUpdate(stream.get(), bytes(to + at), &written, bytes(from + at),
                                     static_cast<int>(std::min(kMost, count - at))) == 1);
    }
  }
  void add(const void* data, size_t count) { check_crypto(EVP_MAC_update(mac.get(), bytes(data), count) == 1); }
};

FrameSeal::FrameSeal() = default;
FrameSeal::~FrameSeal() = default;
FrameSeal::FrameSeal(FrameSeal&& other) noexcept = default;
FrameSeal& FrameSeal::operator=(FrameSeal&& other) noexcept = default;

FrameSeal::FrameSeal(std::string_view key, bool encrypt) : state_(std::make_unique<State>()) {
  constexpr size_t kKeyBytes = 32;
  WEFT_CHECK(key.size() == kKeyBytes, "frame seal: expected a key of ", kKeyBytes, " bytes, got ", key.size());
  state_->encrypt = encrypt;
  check_crypto(state_->mac &&
               EVP_EncryptInit_ex2(state_->stream.get(), library().chacha20, bytes(key), nullptr, nullptr) == 1);
}

bool FrameSeal::encrypts() const { return state_ && state_->encrypt; }

void FrameSeal::begin() {
  State& s = *state_;
  std::array<unsigned char, 16> start{};  // key stream: four bytes of the block's number, the frame's number
  for (size_t i = 0; i < sizeof s.tags; ++i) start[4 + i] = static_cast<unsigned char>(s.tags >> (8 * i));
  ++s.tags;
  check_crypto(EVP_EncryptInit_ex2(s.stream.get(), nullptr, nullptr, start.data(), nullptr) == 1);
  std::array<std::byte, kStep> block{};  // the first block's half is the one-time key; the body begins with the second
  s.cipher(block.data(), block.data(), block.size());
  check_crypto(EVP_MAC_init(s.mac.get(), bytes(block.data()), block.size() / 2, nullptr) == 1);
  OPENSSL_cleanse(block.data(), block.size());
}

FrameSeal::Tag FrameSeal::seal_header(std::string_view header) {
  begin();
  state_->add(header.data(), header.size());
  return tag();
}

void FrameSeal::check_header(std::string_view header, std::string_view received) {
  const Tag expected = seal_header(header);
  if (!same_hash(received, {expected.data(), expected.size()})) throw ForgedFrame();
}

void FrameSeal::seal(const std::byte* from, std::byte* to, size_t count) {
  if (state_->encrypt) state_->cipher(from, to, count);
  state_->add(state_->encrypt ? to : from, count);
}

void FrameSeal::open(std::byte* data, size_t count) {
  state_->add(data, count);
  if (state_->encrypt) state_->cipher(data, data, count);
}

FrameSeal::Tag FrameSeal::tag() {
  Tag made;
  size_t count = 0;
  check_crypto(EVP_MAC_final(state_->mac.get(), bytes(made.data()), &count, made.size()) == 1 && count == kTag);
  return made;
}

void FrameSeal::check(std::string_view received) {
  const Tag expected = tag();
  if (!same_hash(received, {expected.data(), expected.size()})) throw ForgedFrame();
}

ForgedFrame::ForgedFrame()
    : Error(
          "a frame failed its authentication: it was changed, repeated or left out on the way. Does another program "
          "relay this connection?") {}

}  // namespace weft::dist
