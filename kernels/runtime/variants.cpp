// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/variants.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "kernels/error.h"

namespace weft::kernels {
namespace {

constexpr std::string_view kVariantNames[] = {"dense_logits", "chunked_loss", "looped_moments",      "scaled_branches",
                                              "whole_masks",  "pdl",          "two_backward_kernels"};
constexpr unsigned kNoVariants = ~0U;
std::atomic<unsigned> variant_bits{kNoVariants};  // a bit for each variant

unsigned bits_of(std::string_view what, std::string_view names) {
  unsigned bits = 0;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    const auto* const found = std::find(std::begin(kVariantNames), std::end(kVariantNames), name);
    if (found == std::end(kVariantNames)) {
      std::string all;
      for (const std::string_view known : kVariantNames) all += str(all.empty() ? "" : ", ", known);
      fail(what, ": expected names among ", all, ", separated by commas, got '", name, "'");
    }
    bits |= 1U << (found - std::begin(kVariantNames));
  }
  return bits;
}

unsigned variants_of_the_environment() {
  const char* const text = std::getenv("WEFT_VARIANT");
  return bits_of("WEFT_VARIANT", text ? text : "");
}

}  // namespace

bool takes(Variant variant) {
  unsigned bits = variant_bits.load(std::memory_order_relaxed);
  if (bits == kNoVariants) {
    static const unsigned said = variants_of_the_environment();  // an error is thrown by every call until it is mended
    bits = said;
  }
  return (bits >> static_cast<unsigned>(variant) & 1U) != 0;
}

void choose_variants(std::string_view names) {
  variant_bits.store(bits_of("variants", names), std::memory_order_relaxed);
}

}  // namespace weft::kernels
