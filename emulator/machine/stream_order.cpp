// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/stream_order.h"

#include <charconv>

namespace emulator {

std::optional<StreamOptions> parse_streams(std::string_view text) {
  constexpr std::string_view kStarve = "starve:", kQueues = "queues:";
  const auto number = [](std::string_view digits, int least) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < least) return std::nullopt;
    return value;
  };
  if (text == "inorder") return StreamOptions{StreamOrder::inorder};
  if (text == "lazy") return StreamOptions{StreamOrder::lazy};
  if (text == "random") return StreamOptions{StreamOrder::random};
  if (text.starts_with(kStarve)) {
    if (const auto k = number(text.substr(kStarve.size()), 0))
      return StreamOptions{.order = StreamOrder::starve, .starved = *k};
  } else if (text.starts_with(kQueues)) {
    if (const auto n = number(text.substr(kQueues.size()), 1))
      return StreamOptions{.order = StreamOrder::queues, .queues = *n};
  }
  return std::nullopt;
}

}  // namespace emulator
