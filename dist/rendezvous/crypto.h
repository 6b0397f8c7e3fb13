// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/error.h"

namespace weft::dist {

inline constexpr size_t kHashBytes = 32;

/// Errors: this build has no libcrypto.
void require_keyed_hash();

/// HMAC-SHA256 (RFC 2104, FIPS 180-4): 32 bytes that only a holder of `key` can compute for `message`. Errors: this
/// build has no libcrypto.
std::string keyed_hash(std::string_view key, std::string_view message);

/// Whether two hashes are equal, in constant time.
bool same_hash(std::string_view a, std::string_view b);

/// Unpredictable bytes from the operating system.
std::string random_bytes(size_t count);

/// Bytes as lower-case hexadecimal digits.
std::string hexadecimal(std::string_view bytes);

/// A frame's tag is wrong.
class ForgedFrame : public Error {
 public:
  ForgedFrame();
};

/// One direction of a connection whose handshake (dist/rendezvous/handshake.h) has given both sides a key. A frame is a
/// header of fixed length, a tag, and, unless its body is empty, body and tag. Only a holder of the key can compute a
/// tag, from the bytes before and a number that is never sent and counts from 0. So changed, repeated, missing
/// or moved bytes fail. The header has a tag of its own, since its length says how much to wait for. Tags are
/// Poly1305 under a one-time key that ChaCha20 makes from key and number; with `encrypt` ChaCha20 also hides bodies
/// (the construction of RFC 8439 without its lengths, which the header tells). One thread at a time.
class FrameSeal {
 public:
  static constexpr size_t kTag = 16, kStep = 64;
  using Tag = std::array<char, kTag>;

  /// Seals nothing: frames have no tags.
  FrameSeal();
  /// `key`: 32 bytes, of this direction alone. Errors: this build has no libcrypto.
  FrameSeal(std::string_view key, bool encrypt);
  ~FrameSeal();
  FrameSeal(FrameSeal&& other) noexcept;
  FrameSeal& operator=(FrameSeal&& other) noexcept;

  explicit operator bool() const { return state_ != nullptr; }
  bool encrypts() const;
  /// Bytes after a header, and after a body.
  size_t tag_bytes() const { return state_ ? kTag : 0; }

  /// The tag to send after a header, which is not encrypted.
  Tag seal_header(std::string_view header);
  /// Errors: ForgedFrame.
  void check_header(std::string_view header, std::string_view tag);

  /// Begins a body.
  void begin();
  /// The sender's next bytes of body; all pieces but the last are multiples of kStep long. With `encrypt` what is to be
  /// sent goes to `to`, which may be `from`; else `to` is not used.
  void seal(const std::byte* from, std::byte* to, size_t bytes);
  /// The receiver's next bytes, decrypted where they are; pieces as above.
  void open(std::byte* data, size_t bytes);
  /// Ends the body: the tag to send.
  Tag tag();
  /// Ends the body. Errors: ForgedFrame.
  void check(std::string_view tag);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::dist
