// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

namespace weft {

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const int offset = longer.rank() - shorter.rank();
  for (int d = 0; d < shorter.rank(); ++d) {
    int64_t& size = result[d + offset];
    if (size == shorter[d] || shorter[d] == 1) continue;
    WEFT_CHECK(size == 1, op, ": cannot broadcast ", a, " with ", b, ": sizes ", size, " and ", shorter[d],
               " differ in dimension ", d + offset);
    size = shorter[d];
  }
  return result;
}

int wrap_dim(const char* op, int64_t dim, int rank) {
  WEFT_CHECK(dim >= -rank && dim < rank, op, ": dimension ", dim, " is out of range for ", rank, " dimensions");
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

}  // namespace weft
