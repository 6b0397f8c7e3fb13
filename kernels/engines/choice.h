// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace weft::kernels::vendor {

/// The owner of the kernel that computes a problem.
enum class Maker : uint8_t { own, cublaslt, cudnn };

/// One way to compute a problem. A library offers several, best by its heuristic first.
struct Choice {
  Maker maker = Maker::own;
  int variant = 0;
  bool operator==(const Choice&) const = default;
};

/// `own`, `cublaslt`, `cudnn#2`.
std::string text_of(Choice choice);
/// None where the text is not what text_of writes.
std::optional<Choice> parse_choice(const std::string& text);

}  // namespace weft::kernels::vendor
