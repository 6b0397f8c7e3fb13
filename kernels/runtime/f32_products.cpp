// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/f32_products.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>

#include "kernels/error.h"

namespace weft::kernels {
namespace {

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

F32Products set_in_the_environment() {
  WEFT_CHECK(std::getenv("WEFT_ALLOW_TF32") == nullptr, "WEFT_ALLOW_TF32 is WEFT_F32=tf32 now");
  const char* const text = std::getenv("WEFT_F32");
  if (!text || !*text) return F32Products::exact;
  const auto* const found = std::ranges::find(kF32ProductsNames, text);
  WEFT_CHECK(found != std::end(kF32ProductsNames), "WEFT_F32: expected exact, tf32, split3 or split6, got '", text,
             "'");
  return static_cast<F32Products>(found - std::begin(kF32ProductsNames));
}

}  // namespace

F32Products f32_products() {
  if (const int value = chosen.load(std::memory_order_relaxed); value != kUnset) return static_cast<F32Products>(value);
  static const F32Products said = set_in_the_environment();  // an error is thrown by every call until it is mended
  return said;
}

void set_f32_products(F32Products how) { chosen.store(static_cast<int>(how), std::memory_order_relaxed); }

}  // namespace weft::kernels
