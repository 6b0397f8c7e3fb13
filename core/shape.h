// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <vector>

#include "kernels/view.h"

namespace weft {

using kernels::kMaxRank;

/// The sizes of a tensor: at most eight numbers, stored inline. `Shape{8, 3}`, `Shape(vector)`, `x.sizes()`.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(const std::vector<int64_t>& sizes) : Shape(std::span<const int64_t>(sizes)) {}
  Shape(std::span<const int64_t> sizes) {  // NOLINT(google-explicit-constructor)
    WEFT_CHECK(sizes.size() <= kMaxRank, "shape: at most ", kMaxRank, " dimensions, got ", sizes.size());
    for (const int64_t size : sizes) sizes_[rank_++] = size;
  }

  int rank() const { return rank_; }
  int64_t operator[](int d) const& { return sizes_[d]; }
  int64_t& operator[](int d) & { return sizes_[d]; }
  const int64_t* begin() const { return sizes_; }
  const int64_t* end() const { return sizes_ + rank_; }
  void push_back(int64_t size) {
    WEFT_CHECK(rank_ < kMaxRank, "shape: at most ", kMaxRank, " dimensions");
    sizes_[rank_++] = size;
  }
  /// Errors: the product does not fit into 64 bits.
  int64_t numel() const {
    int64_t n = 1;
    bool fits = true, any = true;
    for (const int64_t size : *this) {
      fits &= !__builtin_mul_overflow(n, size, &n);
      any &= size != 0;
    }
    WEFT_CHECK(fits || !any, "shape: ", *this, " has more elements than 64 bits count");
    return any ? n : 0;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int d = 0; d < rank_; ++d)  // memcmp would stall on numbers written just before
      if (sizes_[d] != other.sizes_[d]) return false;
    return true;
  }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int d = 0; d < shape.rank_; ++d) out << (d ? "," : "") << shape[d];
    return out << ']';
  }

 private:
  int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

/// The shape that a and b broadcast to (aligned at the last dimension; 1 stretches). Errors: `op: …` on a mismatch.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

/// `dim` counted from the front; negative counts from the back. Errors: out of range.
int wrap_dim(const char* op, int64_t dim, int rank);

}  // namespace weft
