// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/ptx/instructions/addresses.h"

namespace emulator::ptx {

/// An mbarrier object (PTX ISA 9.0, "mbarrier"). Its whole state is in 64 bits of shared memory, so that copying the
/// bits copies the mbarrier. From bit 0: the phase parity; from 1 the pending arrivals; from 21 the expected arrivals
/// per phase; from 41 the pending bytes (negative if bytes arrive before they are expected); then 1, 0 as a mark:
/// neither 0 nor the 0xff of fresh memory is an mbarrier.
struct Mbarrier {
  static constexpr int kMostArrivals = (1 << 20) - 1;
  static constexpr int kMostBytes = (1 << 20) - 1;

  uint32_t pending = 0, expected = 0;
  int32_t bytes = 0;
  bool odd = false;

  static std::optional<Mbarrier> decode(uint64_t word);
  uint64_t word() const;
  /// `1 of 2 arrivals and 4096 bytes are missing`
  std::string text() const;
};

/// The mbarrier at an address. `what` names the caller: an asynchronous copy has only its line, no instruction.
Mbarrier mbarrier_at(Warp& w, uint32_t line, int lane, const SharedPlace& place, const char* what);
/// Report text: the pending arrivals and bytes of the mbarrier for which a group waits. Empty if the group waits for
/// something else.
std::string missing_text(Warp& w, const Group& group);
/// Lanes with a cp.async.mbarrier.arrive that has not arrived yet.
uint32_t lanes_told_by_mbarriers(const Warp& w);
/// Counts `bytes` arrived bytes, which may end the phase.
void mbarrier_complete(Warp& w, uint32_t line, int lane, const SharedPlace& place, uint64_t bytes, const char* what);

}  // namespace emulator::ptx
