// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "emulator/machine/fault.h"
#include "emulator/source/report.h"
#include "emulator/source/warp.h"
#include "emulator/source/worker.h"

// The last lane to arrive does this for its warp.

namespace emulator::source {

namespace {

template <class Body>
void for_lanes(uint32_t mask, Body&& body) {
  for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

/// `source(lane, operand, first, width)` gives the lane to read, or -1 for the lane's own value.
template <class Source>
void shuffle_lanes(const char* name, void** frames, uint32_t mask, Source&& source) {
  uint64_t values[kLanes];
  for_lanes(mask, [&](int lane) { values[lane] = static_cast<ShuffleFrame*>(frames[lane])->value; });
  for_lanes(mask, [&](int lane) {
    auto& frame = *static_cast<ShuffleFrame*>(frames[lane]);
    const int width = frame.width;
    if (width < 1 || width > kLanes || (width & (width - 1)))
      Worker::running()->report().fail(
          [&] { return cat(name, ": width ", width, " of lane ", lane, " is not a power of two up to 32"); });
    const int from = source(lane, frame.operand, lane & ~(width - 1), width);
    if (from < 0) return;
    if (!((mask >> from) & 1u))
      Worker::running()->report().fail([&] {
        return cat(name, ": lane ", lane, " reads lane ", from, ", which mask ", hex(mask), " does not name");
      });
    frame.value = values[from];
  });
}

void shuffle_index(void** frames, uint32_t mask) {
  shuffle_lanes("__shfl_sync", frames, mask,
                [](int, int operand, int first, int width) { return first + (operand & (width - 1)); });
}
void shuffle_up(void** frames, uint32_t mask) {
  shuffle_lanes("__shfl_up_sync", frames, mask,
                [](int lane, int operand, int first, int) { return lane - operand < first ? -1 : lane - operand; });
}
void shuffle_down(void** frames, uint32_t mask) {
  shuffle_lanes("__shfl_down_sync", frames, mask, [](int lane, int operand, int first, int width) {
    return lane + operand >= first + width ? -1 : lane + operand;
  });
}
void shuffle_xor(void** frames, uint32_t mask) {
  shuffle_lanes("__shfl_xor_sync", frames, mask, [](int lane, int operand, int first, int width) {
    return (lane ^ operand) >= first + width ? -1 : lane ^ operand;
  });
}

VoteFrame& vote_frame(void** frames, int lane) { return *static_cast<VoteFrame*>(frames[lane]); }

uint32_t votes(void** frames, uint32_t mask) {
  uint32_t yes = 0;
  for_lanes(mask, [&](int lane) { yes |= vote_frame(frames, lane).value ? 1u << lane : 0u; });
  return yes;
}

void give_all(void** frames, uint32_t mask, uint64_t value) {
  for_lanes(mask, [&](int lane) { vote_frame(frames, lane).value = value; });
}

template <class T, class Combine>
void reduce(void** frames, uint32_t mask, Combine&& combine) {
  T result = static_cast<T>(vote_frame(frames, std::countr_zero(mask)).value);
  for_lanes(mask & (mask - 1),
            [&](int lane) { result = combine(result, static_cast<T>(vote_frame(frames, lane).value)); });
  give_all(frames, mask, static_cast<uint32_t>(result));
}

void match_any(void** frames, uint32_t mask) {
  uint64_t values[kLanes];
  for_lanes(mask, [&](int lane) { values[lane] = vote_frame(frames, lane).value; });
  for_lanes(mask, [&](int lane) {
    uint32_t equal = 0;
    for_lanes(mask, [&](int other) { equal |= values[other] == values[lane] ? 1u << other : 0u; });
    vote_frame(frames, lane).value = equal;
  });
}

void match_all(void** frames, uint32_t mask) {
  const uint64_t first = vote_frame(frames, std::countr_zero(mask)).value;
  bool equal = true;
  for_lanes(mask, [&](int lane) { equal = equal && vote_frame(frames, lane).value == first; });
  for_lanes(mask, [&](int lane) {
    vote_frame(frames, lane).value = equal ? mask : 0;
    vote_frame(frames, lane).predicate = equal;
  });
}

using Frames = void**;

}  // namespace

const CollectiveOp kShuffle{"__shfl_sync", shuffle_index};
const CollectiveOp kShuffleUp{"__shfl_up_sync", shuffle_up};
const CollectiveOp kShuffleDown{"__shfl_down_sync", shuffle_down};
const CollectiveOp kShuffleXor{"__shfl_xor_sync", shuffle_xor};
const CollectiveOp kSyncWarp{"__syncwarp", [](Frames, uint32_t) {}, true};
const CollectiveOp kBallot{"__ballot_sync", [](Frames f, uint32_t mask) { give_all(f, mask, votes(f, mask)); }};
const CollectiveOp kAny{"__any_sync", [](Frames f, uint32_t mask) { give_all(f, mask, votes(f, mask) != 0); }};
const CollectiveOp kAll{"__all_sync", [](Frames f, uint32_t mask) { give_all(f, mask, votes(f, mask) == mask); }};
const CollectiveOp kMatchAny{"__match_any_sync", match_any};
const CollectiveOp kMatchAll{"__match_all_sync", match_all};
const CollectiveOp kReduceAddSigned{"__reduce_add_sync", [](Frames f, uint32_t mask) {
                                      reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a + b; });
                                    }};
const CollectiveOp kReduceMinSigned{"__reduce_min_sync", [](Frames f, uint32_t mask) {
                                      reduce<int32_t>(f, mask, [](int32_t a, int32_t b) { return a < b ? a : b; });
                                    }};
const CollectiveOp kReduceMaxSigned{"__reduce_max_sync", [](Frames f, uint32_t mask) {
                                      reduce<int32_t>(f, mask, [](int32_t a, int32_t b) { return a < b ? b : a; });
                                    }};
const CollectiveOp kReduceMinUnsigned{"__reduce_min_sync", [](Frames f, uint32_t mask) {
                                        reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
                                      }};
const CollectiveOp kReduceMaxUnsigned{"__reduce_max_sync", [](Frames f, uint32_t mask) {
                                        reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
                                      }};
const CollectiveOp kReduceAnd{"__reduce_and_sync", [](Frames f, uint32_t mask) {
                                reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a & b; });
                              }};
const CollectiveOp kReduceOr{"__reduce_or_sync", [](Frames f, uint32_t mask) {
                               reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a | b; });
                             }};
const CollectiveOp kReduceXor{"__reduce_xor_sync", [](Frames f, uint32_t mask) {
                                reduce<uint32_t>(f, mask, [](uint32_t a, uint32_t b) { return a ^ b; });
                              }};

}  // namespace emulator::source
