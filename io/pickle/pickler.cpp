// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/pickler.h"

#include <bit>
#include <limits>

#include "kernels/error.h"

namespace weft {

Pickler::Pickler() {
  op(PickleOp::proto);
  bytes(2, 1);
}

void Pickler::bytes(uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void Pickler::integer(int64_t value) {
  using Int = std::numeric_limits<int32_t>;
  if (value >= Int::min() && value <= Int::max()) {
    op(PickleOp::bin_int);
    return bytes(static_cast<uint64_t>(value), 4);
  }
  op(PickleOp::long1);
  bytes(8, 1);
  bytes(static_cast<uint64_t>(value), 8);
}

void Pickler::number(double value) {
  op(PickleOp::bin_float);
  bytes(__builtin_bswap64(std::bit_cast<uint64_t>(value)), 8);  // the only opcode whose number is big-endian
}

void Pickler::text(std::string_view text) {
  WEFT_CHECK(text.size() <= std::numeric_limits<uint32_t>::max(), "pytorch: expected strings of less than 4 GiB, got ",
             text.size(), " bytes");
  op(PickleOp::bin_unicode);
  bytes(text.size(), 4);
  bytes_ += text;
}

void Pickler::global(std::string_view module, std::string_view name) {
  op(PickleOp::global);
  bytes_ += str(module, "\n", name, "\n");
}

}  // namespace weft
