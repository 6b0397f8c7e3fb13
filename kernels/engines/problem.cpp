// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/problem.h"

#include <algorithm>
#include <cstring>

namespace weft::kernels::vendor {

Problem& Problem::add(Field field) {
  WEFT_CHECK(count_ < fields_.size(), "problem: ", op_, " has more than ", fields_.size(), " fields");
  fields_[count_++] = field;
  return *this;
}

std::string Problem::text() const {
  std::string text = op_;
  for (size_t i = 0; i < count_; ++i) {
    const Field& field = fields_[i];
    text += ' ';
    text += field.name;
    text += '=';
    text += field.is_dtype ? str(static_cast<DType>(field.value)) : std::to_string(field.value);
  }
  return text;
}

size_t Problem::hash() const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over words, with a shift that brings high bits down
  for (size_t i = 0; i < count_; ++i) {
    hash = (hash ^ static_cast<uint64_t>(fields_[i].value)) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool Problem::operator==(const Problem& other) const {
  return count_ == other.count_ && std::strcmp(op_, other.op_) == 0 &&
         std::equal(fields_.begin(), fields_.begin() + static_cast<std::ptrdiff_t>(count_), other.fields_.begin(),
                    [](const Field& a, const Field& b) {
                      return a.value == b.value && a.is_dtype == b.is_dtype && std::strcmp(a.name, b.name) == 0;
                    });
}

}  // namespace weft::kernels::vendor
