// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/crypto.h"

#include <sodium.h>

#include <cstdint>

#include "kernels/error.h"

namespace weft::dist {
namespace {

const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

void start_sodium() {
  static const int status = sodium_init();  // -1: no source of random numbers; may be called more than once
  WEFT_CHECK(status >= 0, "store: libsodium found no source of random numbers on this system");
}

}  // namespace

void require_keyed_hash() { start_sodium(); }

std::string keyed_hash(std::string_view key, std::string_view message) {
  static_assert(kHashBytes == crypto_auth_hmacsha256_BYTES);
  start_sodium();
  crypto_auth_hmacsha256_state state;
  std::string hash(kHashBytes, '\0');
  crypto_auth_hmacsha256_init(&state, bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, bytes(message), message.size());
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(hash.data()));
  sodium_memzero(&state, sizeof state);
  return hash;
}

bool same_hash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t count) {
  start_sodium();
  std::string made(count, '\0');
  randombytes_buf(made.data(), count);
  return made;
}

std::string hexadecimal(std::string_view binary) {
  std::string digits(2 * binary.size() + 1, '\0');
  sodium_bin2hex(digits.data(), digits.size(), bytes(binary), binary.size());
  digits.pop_back();
  return digits;
}

namespace {

unsigned char* bytes(void* data) { return static_cast<unsigned char*>(data); }
const unsigned char* bytes(const void* data) { return static_cast<const unsigned char*>(data); }

}  // namespace

struct FrameSeal::State {
  unsigned char key[crypto_stream_chacha20_ietf_KEYBYTES];
  unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
  uint64_t tags = 0;
  uint32_t block = 0;  // of the key stream; the first makes the one-time key
  bool encrypt = false;
  crypto_onetimeauth_state mac;

  ~State() { sodium_memzero(this, sizeof *this); }

  void cipher(const std::byte* from, std::byte* to, size_t count) {
    crypto_stream_chacha20_ietf_xor_ic(bytes(to), bytes(from), count, nonce, block, key);
    block += static_cast<uint32_t>(count / kStep);
  }
};

FrameSeal::FrameSeal() = default;
FrameSeal::~FrameSeal() = default;
FrameSeal::FrameSeal(FrameSeal&& other) noexcept = default;
FrameSeal& FrameSeal::operator=(FrameSeal&& other) noexcept = default;

FrameSeal::FrameSeal(std::string_view key, bool encrypt) : state_(std::make_unique<State>()) {
  require_keyed_hash();
  WEFT_CHECK(key.size() == sizeof state_->key, "frame seal: expected a key of ", sizeof state_->key, " bytes, got ",
             key.size());
  key.copy(reinterpret_cast<char*>(state_->key), key.size());
  state_->encrypt = encrypt;
}

bool FrameSeal::encrypts() const { return state_ && state_->encrypt; }

void FrameSeal::begin() {
  State& s = *state_;
  for (size_t i = 0; i < sizeof s.nonce; ++i) s.nonce[i] = i < 8 ? static_cast<unsigned char>(s.tags >> (8 * i)) : 0;
  ++s.tags;
  unsigned char once[crypto_onetimeauth_KEYBYTES];
  crypto_stream_chacha20_ietf(once, sizeof once, s.nonce, s.key);
  s.block = 1;
  crypto_onetimeauth_init(&s.mac, once);
  sodium_memzero(once, sizeof once);
}

FrameSeal::Tag FrameSeal::seal_header(std::string_view header) {
  begin();
  crypto_onetimeauth_update(&state_->mac, bytes(header.data()), header.size());
  return tag();
}

void FrameSeal::check_header(std::string_view header, std::string_view received) {
  const Tag expected = seal_header(header);
  if (!same_hash(received, {expected.data(), expected.size()})) throw ForgedFrame();
}

void FrameSeal::seal(const std::byte* from, std::byte* to, size_t count) {
  if (state_->encrypt) state_->cipher(from, to, count);
  crypto_onetimeauth_update(&state_->mac, bytes(state_->encrypt ? to : from), count);
}

void FrameSeal::open(std::byte* data, size_t count) {
  crypto_onetimeauth_update(&state_->mac, bytes(data), count);
  if (state_->encrypt) state_->cipher(data, data, count);
}

FrameSeal::Tag FrameSeal::tag() {
  static_assert(kTag == crypto_onetimeauth_BYTES);
  Tag made;
  crypto_onetimeauth_final(&state_->mac, bytes(made.data()));
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
