// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "dist/rendezvous/store.h"

// The start of a large job on one machine: rank 0 is real, one thread plays all others. Both find each other through
// `folder`.
namespace weft::benchmarks {

struct HerdOptions {
  int ranks = 2;                        ///< in the job
  int roots = 1;                        ///< ranks that set an id for NCCL; all ranks read all ids
  std::filesystem::path folder;         ///< holds rank 0's address and the secret (WEFT_RENDEZVOUS)
  dist::Milliseconds timeout{300'000};  ///< for the whole start
  dist::Milliseconds beats{1000};       ///< between the heartbeats of a rank
  int at_once = 1 << 20;                ///< connections that prove themselves at a time
};

/// Rank 0 as dist::init() starts it, up to the ids of NCCL. Returns when the other ranks have left.
void start_rank_0(const HerdOptions& options);

struct Traffic {
  int64_t messages = 0, bytes = 0;
  Traffic& operator+=(const Traffic& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};

/// Traffic of ranks 1, 2 and so on, without heartbeats.
struct HerdResult {
  std::vector<Traffic> sent, received;              ///< until the last id
  std::vector<Traffic> stall_sent, stall_received;  ///< when all report that a collective waits
  int tellers = 0;                                  ///< ranks that were to tell who is missing
  int lost_handshakes = 0;                          ///< ended by rank 0 before they were proven; in no other figure
  double seconds = 0, stall_seconds = 0;
};

/// Plays the other ranks in this thread; `before_leaving` runs when all is done but their end. Errors: rank 0 ends, or
/// the timeout passes.
HerdResult play_herd(const HerdOptions& options, const std::function<void()>& before_leaving = {});

}  // namespace weft::benchmarks
