// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace weft::train {

/// Builds a protobuf message field by field (protobuf.dev/programming-guides/encoding), with the types of an event
/// file.
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

/// Walks over the fields of a protobuf message (protobuf.dev/programming-guides/encoding), the reverse of Message:
///   for (MessageReader in(bytes); in.next();) if (in.field() == 2) step = in.varint();
/// A damaged message ends early; nothing is read outside of the bytes.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  bool next() {
    if (rest_.empty() || damaged_) return false;
    const uint64_t key = take_varint();
    field_ = key >> 3;
    type_ = static_cast<int>(key & 7);
    value_ = {};
    varint_ = 0;
    if (type_ == 0)
      varint_ = take_varint();
    else if (type_ == 1)
      value_ = take(8);
    else if (type_ == 5)
      value_ = take(4);
    else if (type_ == 2)
      value_ = take(take_varint());
    else
      damaged_ = true;  // groups, which nobody writes any more
    return !damaged_;
  }

  uint64_t field() const { return field_; }
  /// The value of the present field in its expected type; 0 or empty when the message has another type there.
  uint64_t varint() const { return varint_; }
  std::string_view bytes() const { return type_ == 2 ? value_ : std::string_view(); }
  double fixed64() const { return fixed<double>(); }
  float fixed32() const { return fixed<float>(); }

 private:
  template <class T>
  T fixed() const {
    T value{};
    if (type_ != 2 && value_.size() == sizeof(T)) std::memcpy(&value, value_.data(), sizeof(T));
    return value;
  }
  std::string_view take(uint64_t size) {
    damaged_ = damaged_ || size > rest_.size();
    if (damaged_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  uint64_t take_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      value |= static_cast<uint64_t>(byte[0] & 0x7f) << shift;
      if ((byte[0] & 0x80) == 0) return value;
    }
    damaged_ = true;
    return 0;
  }

  std::string_view rest_, value_;
  uint64_t field_ = 0, varint_ = 0;
  int type_ = 0;
  bool damaged_ = false;
};

}  // namespace weft::train
