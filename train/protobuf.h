// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace weft::train {

/// Builds a protobuf message field by field (protobuf.dev/programming-guides/encoding): what an event file needs of it.
///   Message().varint(2, step).bytes(5, summary)
class Message {
 public:
  Message varint(int field, uint64_t value) && {
    raw_varint(static_cast<uint64_t>(field) << 3 | 0);
    raw_varint(value);
    return std::move(*this);
  }
  Message fixed64(int field, double value) && { return std::move(*this).fixed(field, 1, &value, sizeof value); }
  Message fixed32(int field, float value) && { return std::move(*this).fixed(field, 5, &value, sizeof value); }
  /// A text, bytes, or a message inside this one.
  Message bytes(int field, std::string_view value) && {
    raw_varint(static_cast<uint64_t>(field) << 3 | 2);
    raw_varint(value.size());
    out_ += value;
    return std::move(*this);
  }
  Message message(int field, const Message& value) && { return std::move(*this).bytes(field, value.out_); }
  const std::string& text() const { return out_; }

 private:
  /// Seven bits a byte, the lowest first; the eighth bit says that more follow.
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  Message fixed(int field, int wire_type, const void* value, size_t size) && {
    raw_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
    out_.append(static_cast<const char*>(value), size);
    return std::move(*this);
  }

  std::string out_;
};

}  // namespace weft::train
