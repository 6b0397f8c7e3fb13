// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::dist {

/// What the ranks and rank 0's server say to each other. On the wire a message is its length (4 bytes, little endian),
/// one byte for its kind, and its fields: numbers of 8 bytes, texts with their length (4 bytes) in front.
enum class MessageKind : uint8_t {
  // Store, each with the number of the request first, which the answer repeats.
  set = 1,
  get,
  has,
  add,
  remove,
  answer,  ///< request, worked (0 or 1), value or the reason
  // Membership.
  join,  ///< rank, host, process
  heartbeat,
  announce,
  states,
  leave,
  refused,   ///< why this rank may not join
  complete,  ///< all ranks have joined
  failure,
  farewell,  ///< the server ends in order
};

/// The longest message of a proven rank; before the proof it is kMaxStrangerMessage.
inline constexpr size_t kMaxMessage = (1 << 20) + 4096, kMaxStrangerMessage = 256;

/// Puts a message together.
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

/// Takes a message apart. Errors: it holds less or more than is asked for.
class MessageReader {
 public:
  explicit MessageReader(std::string_view body);
  MessageKind kind() const { return kind_; }
  int64_t number();
  std::string text(size_t max_size = kMaxMessage);
  /// Nothing may be left.
  void end() const;

 private:
  std::string_view rest_;
  MessageKind kind_;
};

/// A body with its length in front, as the wire wants it.
std::string frame(std::string_view body);

/// Cuts a stream of bytes into bodies.
class FrameBuffer {
 public:
  explicit FrameBuffer(size_t max_body) : max_body_(max_body) {}
  void set_max_body(size_t max_body) { max_body_ = max_body; }
  std::string& bytes() { return bytes_; }
  /// The next whole body. Errors: one is announced as empty or longer than allowed.
  std::optional<std::string> next();

 private:
  std::string bytes_;
  size_t max_body_;
};

}  // namespace weft::dist
