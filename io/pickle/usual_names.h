// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/pickle/pickle_value.h"
#include "kernels/error.h"

namespace weft {

/// A NumPy array, or a scalar that is no number or text.
struct NumpyArray final : PickleObject {
  const char* kind() const override { return "an array"; }
  void build(const PickleValue& state, const ByteStream::Fail& fail) override;

  /// The element at `index`. Errors: no whole numbers of at most 64 bits.
  int64_t integer(size_t index, const ByteStream::Fail& fail) const;

  std::vector<int64_t> sizes;
  std::string type;                                ///< NumPy's: `u1`, `i8`, `f4`
  bool is_big_endian = false, is_fortran = false;  ///< the latter: columns come first
  const std::string* bytes = nullptr;              ///< all elements' bytes, a value of the pickle
};

/// A name that pickles of any kind may use: containers of Python's collections, sets (as lists), namespaces (as dicts),
/// bytes and paths (as texts), complex numbers (as pairs), and NumPy's arrays and numbers. Null: another name.
const PickleObject* find_usual(const std::string& module, const std::string& name);

/// The only argument of a converting function.
template <class T>
const T& only_argument(const PickleList& arguments, const char* function, const char* expected,
                       const ByteStream::Fail& fail) {
  const T* value = arguments.items.size() != 1 ? nullptr : arguments.items[0]->as<T>();
  if (value == nullptr) fail(str(function, ": expected ", expected));
  return *value;
}

}  // namespace weft
