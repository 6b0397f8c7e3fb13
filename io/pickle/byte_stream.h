// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weft {

/// Reads a file front to back through a small buffer: a stream of a few kilobytes at the start of a file of gigabytes
/// costs a few kilobytes.
class ByteStream {
 public:
  using Read = std::function<void(uint64_t offset, void* to, uint64_t bytes)>;
  using Fail = std::function<void(const std::string& text)>;  ///< must throw

  /// Bytes [begin, end) of `read`'s source.
  ByteStream(Read read, uint64_t begin, uint64_t end, Fail fail);
  /// Bytes in memory, which must outlive the stream.
  ByteStream(std::string_view bytes, Fail fail);

  uint64_t position() const { return buffer_start_ + next_; }
  uint64_t left() const { return end_ - position(); }

  /// Error of all: the stream ends too early; the message names `what`.
  uint8_t byte(const char* what);
  uint64_t number(int bytes, const char* what);  ///< little-endian, at most 8 bytes
  std::string take(uint64_t bytes, const char* what);
  std::string line(size_t longest, const char* what);  ///< up to the line break, without it

 private:
  void need(uint64_t bytes, const char* what) const;

  Read read_;
  Fail fail_;
  uint64_t end_, buffer_start_;
  std::string buffer_;
  size_t next_ = 0;
};

}  // namespace weft
