// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace emulator {

/// The order of streams' work, among those that CUDA allows.
enum class StreamOrder {
  inorder,  ///< work runs as soon as it may, stream by stream in the order of the calls
  lazy,     ///< nothing runs until it is waited for: the host is as far ahead as it can get
  random,   ///< seeded: any work whose dependencies are done, at any moment
  starve,   ///< as inorder, but for stream number K (in order of creation; 0: the legacy default stream): as lazy
  queues,   ///< as inorder, and stream number K shares hardware queue K % N: work in a queue runs in the order of the
            ///< calls
};

struct StreamOptions {
  StreamOrder order = StreamOrder::inorder;
  int starved = 0;
  int queues = 0;     ///< per device; 0: every stream has its own
  uint64_t seed = 1;  ///< for the random order
};

/// Reads `inorder`, `lazy`, `random`, `starve:K` or `queues:N`; nullopt for any other text.
std::optional<StreamOptions> parse_streams(std::string_view text);

}  // namespace emulator
