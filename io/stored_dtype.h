// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/tensor.h"

namespace weft {

/// An element type of files, and the dtype that holds all its values: types that Weft lacks are widened when they are
/// read (I8, U8 of other signs, 16 bits to i32; U32 to i64; 8-bit floats to f16). All little-endian.
struct StoredDType {
  std::string_view name;  ///< safetensors' name: `F32`, `BF16`, `I8`
  DType dtype;            ///< after reading
  size_t bytes;           ///< bytes of an element in the file

  bool is_widened() const { return bytes != size_of(dtype); }
};

/// The row of this name; nullptr for unknown names and for types without a lossless dtype here (U64).
const StoredDType* find_stored_dtype(std::string_view name);

/// The name under which a dtype is stored unchanged.
std::string_view stored_name(DType dtype);

/// Whether sizes from a file can be counted with: the product of those that are not 0 is below 2^60. An empty tensor
/// may else have strides that overflow.
bool is_countable(const Shape& sizes);

/// A dense tensor on the CPU, filled by `read(to, bytes)` with the stored elements, widened in place where needed: no
/// second copy. `complain` is called with a message (and must throw) if a BOOL is neither 0 nor 1.
Tensor read_stored(const StoredDType& stored, const Shape& sizes, const std::function<void(void*, uint64_t)>& read,
                   const std::function<void(std::string_view)>& complain);

}  // namespace weft
