// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/choice.h"

#include <string_view>

namespace weft::kernels::vendor {
namespace {
constexpr std::string_view kMakers[] = {"own", "cublaslt", "cudnn"};
constexpr int kVariantsTried = 64;
}  // namespace

std::string text_of(Choice choice) {
  std::string text(kMakers[static_cast<int>(choice.maker)]);
  return choice.variant ? text + '#' + std::to_string(choice.variant) : text;
}

std::optional<Choice> parse_choice(const std::string& text) {
  for (int maker = 0; maker < 3; ++maker)
    for (int variant = 0; variant < (maker ? kVariantsTried : 1); ++variant)
      if (const Choice choice{static_cast<Maker>(maker), variant}; text_of(choice) == text) return choice;
  return std::nullopt;
}

}  // namespace weft::kernels::vendor
