// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace weft::data {

/// The tokens of a text as their file has them: unsigned numbers of 2, 4 or 8 bytes, little-endian. Copies and parts
/// share the memory, so a file of 17 GB takes 17 GB.
class TokenNumbers {
 public:
  /// `owner` keeps the bytes from `begin` on alive. `width`: bytes of a token.
  TokenNumbers(std::shared_ptr<const void> owner, const void* begin, int64_t size, int width)
      : owner_(std::move(owner)), begin_(static_cast<const char*>(begin)), size_(size), width_(width) {}
  explicit TokenNumbers(const std::shared_ptr<const std::vector<int64_t>>& tokens)
      : TokenNumbers(tokens, tokens->data(), static_cast<int64_t>(tokens->size()), sizeof(int64_t)) {}

  int64_t size() const { return size_; }
  int64_t operator[](int64_t index) const {
    return width_ == 2 ? at<uint16_t>(index) : width_ == 4 ? at<uint32_t>(index) : at<int64_t>(index);
  }
  TokenNumbers part(int64_t begin, int64_t size) const { return {owner_, begin_ + begin * width_, size, width_}; }
  /// The numbers from `begin` on, i64 [size].
  Tensor tensor(int64_t begin, int64_t size) const {
    std::vector<int64_t> ids(static_cast<size_t>(size));
    for (int64_t& id : ids) id = (*this)[begin++];
    return Tensor::from(ids);
  }

 private:
  template <class Number>
  int64_t at(int64_t index) const {
    Number number{};
    std::memcpy(&number, begin_ + index * static_cast<int64_t>(sizeof(Number)), sizeof(Number));
    return number;
  }

  std::shared_ptr<const void> owner_;
  const char* begin_;
  int64_t size_;
  int width_;
};

}  // namespace weft::data
