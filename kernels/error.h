// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace weft {

/// Every function of Weft throws this error when it cannot satisfy the call.
/// The text reads `op: expected …, got …. hint` and prints values, not expressions.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device ran out of memory; the text lists live and cached bytes and the largest owners.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Joins the parts with `operator<<`: `str("conv2d: got ", n, " channels")`.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  out.precision(9);
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(str(parts...));
}

}  // namespace weft

/// Throws weft::Error with the joined parts unless `condition` holds. The parts are only evaluated on failure.
#define WEFT_CHECK(condition, ...) \
  do {                             \
    if (!(condition)) [[unlikely]] \
      ::weft::fail(__VA_ARGS__);   \
  } while (false)
