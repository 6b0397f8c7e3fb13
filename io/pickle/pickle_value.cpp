// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/pickle_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/pickle/pickle_opcodes.h"
#include "kernels/error.h"

namespace weft {
namespace {

constexpr uint64_t kBuffer = 16384;

}  // namespace

ByteStream::ByteStream(Read read, uint64_t begin, uint64_t end, Fail fail)
    : read_(std::move(read)), fail_(std::move(fail)), end_(end), buffer_start_(begin) {}

ByteStream::ByteStream(std::string_view bytes, Fail fail)
    : ByteStream([bytes](uint64_t offset, void* to, uint64_t count) { std::memcpy(to, bytes.data() + offset, count); },
                 0, bytes.size(), std::move(fail)) {}

void ByteStream::need(uint64_t bytes, const char* what) const {
  if (bytes > left())
    fail_(str("expected ", bytes, bytes == 1 ? " byte" : " bytes", " of ", what, " at byte ", position(), ", got ",
              left(), ". Is the file cut short?"));
}

uint8_t ByteStream::byte(const char* what) {
  need(1, what);
  if (next_ == buffer_.size()) {
    buffer_start_ += next_;
    next_ = 0;
    buffer_.resize(std::min(kBuffer, end_ - buffer_start_));
    read_(buffer_start_, buffer_.data(), buffer_.size());
  }
  return static_cast<uint8_t>(buffer_[next_++]);
}

uint64_t ByteStream::number(int bytes, const char* what) {
  need(static_cast<uint64_t>(bytes), what);
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(byte(what)) << (8 * i);
  return value;
}

std::string ByteStream::take(uint64_t bytes, const char* what) {
  need(bytes, what);
  std::string result(bytes, '\0');
  const size_t buffered = std::min<uint64_t>(bytes, buffer_.size() - next_);
  std::memcpy(result.data(), buffer_.data() + next_, buffered);
  next_ += buffered;
  if (buffered == bytes) return result;
  const uint64_t start = position();
  read_(start, result.data() + buffered, bytes - buffered);
  buffer_start_ = start + (bytes - buffered);
  buffer_.clear();
  next_ = 0;
  return result;
}

std::string ByteStream::line(size_t longest, const char* what) {
  std::string result;
  while (true) {
    const auto next = static_cast<char>(byte(what));
    if (next == '\n') return result;
    if (result.size() == longest) fail_(str("expected ", what, " of at most ", longest, " bytes, got more"));
    result += next;
  }
}

void PickleObject::build(const PickleValue&, const ByteStream::Fail& fail) {
  fail(str("expected a dict to give attributes to, got ", kind()));
}

const char* PickleValue::kind() const {
  if (const auto* list = as<PickleList>()) return list->is_tuple ? "a tuple" : "a list";
  if (const auto* object = as<PickleObject>()) return object->kind();
  static constexpr const char* kinds[] = {"None",   "a bool",        "a whole number", "a number",
                                          "a text", "a long number", "a list",         "a dict"};
  return kinds[is.index()];
}

std::string PickleValue::begun() const {
  const auto* list = as<PickleList>();
  const auto* dict = as<PickleDict>();
  const uint64_t byte = list != nullptr ? list->begun_at : dict != nullptr ? dict->begun_at : 0;
  if (byte == 0) return kind();
  const PickleOp opcode = list != nullptr ? PickleOp::empty_list : PickleOp::empty_dict;
  return str(pickle_opcode_name(static_cast<uint8_t>(opcode)), " at byte ", byte);
}

}  // namespace weft
