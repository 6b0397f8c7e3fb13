// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/keyed_hash.h"

#include <sodium.h>

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

}  // namespace weft::dist
