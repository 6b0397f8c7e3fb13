// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/message.h"

#include <utility>

#include "kernels/error.h"

namespace weft::dist {
namespace {

void append_little_endian(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

}  // namespace

std::string frame(std::string_view body) {
  std::string bytes;
  bytes.reserve(4 + body.size());
  append_little_endian(bytes, body.size(), 4);
  return bytes += body;
}

MessageWriter::MessageWriter(MessageKind kind) : body_(1, static_cast<char>(kind)) {}

MessageWriter& MessageWriter::number(int64_t value) {
  append_little_endian(body_, static_cast<uint64_t>(value), 8);
  return *this;
}

MessageWriter& MessageWriter::text(std::string_view value) {
  append_little_endian(body_, value.size(), 4);
  body_ += value;
  return *this;
}

std::string MessageWriter::frame() const { return dist::frame(body_); }

MessageReader::MessageReader(std::string_view body) : rest_(body) {
  WEFT_CHECK(!body.empty(), "store: got an empty message");
  kind_ = static_cast<MessageKind>(rest_.front());
  rest_.remove_prefix(1);
}

int64_t MessageReader::number() {
  WEFT_CHECK(rest_.size() >= 8, "store: a message ends inside a number");
  const uint64_t value = little_endian(rest_.substr(0, 8));
  rest_.remove_prefix(8);
  return static_cast<int64_t>(value);
}

std::string MessageReader::text(size_t max_size) {
  WEFT_CHECK(rest_.size() >= 4, "store: a message ends inside a string");
  const uint64_t size = little_endian(rest_.substr(0, 4));
  rest_.remove_prefix(4);
  WEFT_CHECK(size <= rest_.size(), "store: a message ends inside a string");
  WEFT_CHECK(size <= max_size, "store: a string in a message has ", size, " bytes, at most ", max_size, " are allowed");
  std::string value(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return value;
}

void MessageReader::end() const {
  WEFT_CHECK(rest_.empty(), "store: a message has ", rest_.size(), " bytes more than it should");
}

std::string packed(const std::vector<std::string>& texts) {
  MessageWriter writer(MessageKind::answer);  // the store keeps bytes, whatever their kind
  for (const std::string& text : texts) writer.text(text);
  return writer.frame().substr(4);
}

std::vector<std::string> unpacked(std::string_view bytes) {
  std::vector<std::string> texts;
  for (MessageReader reader(bytes); !reader.at_end();) texts.push_back(reader.text());
  return texts;
}

std::string sealed(FrameSeal& seal, std::string frame) {
  const FrameSeal::Tag header = seal.seal_header(std::string_view(frame).substr(0, 4));
  auto* const body = reinterpret_cast<std::byte*>(frame.data() + 4);
  seal.begin();
  seal.seal(body, body, frame.size() - 4);
  const FrameSeal::Tag tag = seal.tag();
  frame.insert(4, header.data(), header.size());
  return frame.append(tag.data(), tag.size());
}

void FrameBuffer::set_proven(FrameSeal seal, size_t max_body) {
  seal_ = std::move(seal);
  max_body_ = max_body;
  checked_ = 0;
}

std::optional<std::string> FrameBuffer::next() {
  const size_t tag = seal_.tag_bytes(), front = 4 + tag;
  if (bytes_.size() < front) return std::nullopt;
  const std::string_view all = bytes_;
  if (seal_ && checked_ == 0) seal_.check_header(all.substr(0, 4), all.substr(4, tag));
  checked_ = front;
  const uint64_t size = little_endian(all.substr(0, 4));
  WEFT_CHECK(size >= 1 && size <= max_body_, "announces a message of ", size, " bytes, 1 to ", max_body_,
             " are allowed");
  if (bytes_.size() < front + size + tag) return std::nullopt;
  std::string body = bytes_.substr(front, size);
  if (seal_) {
    seal_.begin();
    seal_.open(reinterpret_cast<std::byte*>(body.data()), size);
    seal_.check(all.substr(front + size, tag));
  }
  bytes_.erase(0, front + size + tag);
  checked_ = 0;
  return body;
}

}  // namespace weft::dist
