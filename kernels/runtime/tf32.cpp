// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/tf32.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "kernels/error.h"

namespace weft::kernels {
namespace {

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

bool set_in_the_environment() {
  const char* const text = std::getenv("WEFT_ALLOW_TF32");
  const std::string value = text ? text : "";
  WEFT_CHECK(value.empty() || value == "0" || value == "1", "WEFT_ALLOW_TF32: expected 0 or 1, got '", value, "'");
  return value == "1";
}

}  // namespace

bool allow_tf32() {
  if (const int value = chosen.load(std::memory_order_relaxed); value != kUnset) return value != 0;
  static const bool said = set_in_the_environment();  // an error is thrown by every call until it is mended
  return said;
}

void set_allow_tf32(bool allowed) { chosen.store(allowed ? 1 : 0, std::memory_order_relaxed); }

}  // namespace weft::kernels
