// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rendezvous/crypto.h"

namespace weft::dist {

/// The messages between ranks and rank 0's server. On the wire a message is its length (4 bytes, little endian), one
/// byte for its kind, and its fields: numbers of 8 bytes, strings with their length (4 bytes) first.
enum class MessageKind : uint8_t {
  // Store: the first field is the number of the request, which the answer repeats.
  set = 1,
  get,
  has,
  add,
  remove,
  find_run,  ///< prefix, wait, first; the answer packs the values of `prefix/first` and its successors
  set_all,   ///< prefix, first, packed values
  answer,    ///< request, success (0 or 1), value or reason
  // Membership.
  join,  ///< rank, host, process
  heartbeat,
  announce,
  states,  ///< request, milliseconds: of the ranks that were not heard of for so long
  leave,
  refused,   ///< why this rank may not join
  complete,  ///< all ranks have joined
  failure,
  farewell,  ///< the server ends normally
  claim,     ///< request, milliseconds, topic; the answer: request, 1 or 0
  absent,    ///< request; the answer: request, how many ranks have not joined, their list
};

/// The longest message of an authenticated rank; before authentication it is kMaxUnprovenMessage.
inline constexpr size_t kMaxMessage = (1 << 20) + 4096, kMaxUnprovenMessage = 256;

/// The longest host name, name of a collective, and reason of a failure, in bytes.
inline constexpr size_t kMaxHost = 256, kMaxName = 256, kMaxReason = 4096;

/// Builds a message.
class MessageWriter {
 public:
  explicit MessageWriter(MessageKind kind);
  MessageWriter& number(int64_t value);
  MessageWriter& text(std::string_view value);
  /// The bytes for the wire.
  std::string frame() const;

 private:
  std::string body_;
};

/// Parses a message. Errors: it is shorter or longer than expected.
class MessageReader {
 public:
  explicit MessageReader(std::string_view body);
  MessageKind kind() const { return kind_; }
  int64_t number();
  std::string text(size_t max_size = kMaxMessage);
  /// Error if bytes are left.
  void end() const;
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  MessageKind kind_;
};

/// Texts in one, each with its length first.
std::string packed(const std::vector<std::string>& texts);
std::vector<std::string> unpacked(std::string_view bytes);

/// A body with its length first, as it is sent.
std::string frame(std::string_view body);
/// The frame for a proven connection: tags after length and body, the body encrypted.
std::string sealed(FrameSeal& seal, std::string frame);

/// Splits a stream of bytes into bodies.
class FrameBuffer {
 public:
  explicit FrameBuffer(size_t max_body) : max_body_(max_body) {}
  /// From the next frame on: the connection is proven, frames are sealed and may be longer.
  void set_proven(FrameSeal seal, size_t max_body);
  std::string& bytes() { return bytes_; }
  /// The next complete body. Errors: an announced length is 0 or above the limit; ForgedFrame.
  std::optional<std::string> next();

 private:
  std::string bytes_;
  size_t max_body_;
  FrameSeal seal_;
  size_t checked_ = 0;  // bytes at the front that are a length and its tag
};

}  // namespace weft::dist
