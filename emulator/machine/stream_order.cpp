// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/stream_order.h"

#include <charconv>

namespace emulator {

std::optional<StreamOptions> parse_streams(std::string_view text) {
  constexpr std::string_view kStarve = "starve:";
  if (text == "inorder") return StreamOptions{StreamOrder::inorder};
  if (text == "lazy") return StreamOptions{StreamOrder::lazy};
  if (text == "random") return StreamOptions{StreamOrder::random};
  if (!text.starts_with(kStarve)) return std::nullopt;
  const std::string_view k = text.substr(kStarve.size());
  StreamOptions options{StreamOrder::starve};
  const auto [end, error] = std::from_chars(k.data(), k.data() + k.size(), options.starved);
  if (error != std::errc{} || end != k.data() + k.size() || options.starved < 0) return std::nullopt;
  return options;
}

}  // namespace emulator
