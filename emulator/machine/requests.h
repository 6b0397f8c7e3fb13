// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

// The memory cost of a warp's instruction, from its lanes' addresses alone: a property of the program, not of a
// GPU's caches. Source: CUDA C++ Programming Guide, "Global Memory" and "Shared Memory" of compute capability 5.x and
// later.

namespace emulator {

constexpr uintptr_t kSectorBytes = 32, kBankBytes = 4;
constexpr int kBanks = 32;

/// The lanes of `mask`; lane l accesses bytes[l] bytes at address[l].
struct Request {
  uint32_t mask = 0;
  const uintptr_t* address = nullptr;
  const uint32_t* bytes = nullptr;
};

/// The different aligned pieces of `size` bytes that lanes [first, first + count) touch, in order.
inline std::vector<uintptr_t> pieces_of(const Request& r, int first, int count, uintptr_t size) {
  std::vector<uintptr_t> pieces;
  pieces.reserve(64);
  for (int lane = first; lane < first + count; ++lane)
    if ((r.mask >> lane & 1) != 0 && r.bytes[lane] != 0)
      for (uintptr_t p = r.address[lane] / size; p <= (r.address[lane] + r.bytes[lane] - 1) / size; ++p)
        if (pieces.empty() || pieces.back() != p) pieces.push_back(p);
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  return pieces;
}

/// The number of sectors, aligned pieces of 32 bytes, that the request touches.
inline int sectors_of(const Request& r) { return static_cast<int>(pieces_of(r, 0, 32, kSectorBytes).size()); }

/// Passes over the 32 banks of shared memory, a 4-byte word from each; a pass takes one clock.
struct Wavefronts {
  int all = 0;
  int conflicts = 0;  ///< passes caused by bank conflicts, i.e. different words in one bank
};

/// The largest number of different words in one bank over lanes [first, first + count); 0 if no lane is active.
inline int bank_depth(const Request& r, int first, int count) {
  int in_bank[kBanks] = {}, depth = 0;
  for (const uintptr_t word : pieces_of(r, first, count, kBankBytes)) depth = std::max(depth, ++in_bank[word % kBanks]);
  return depth;
}

/// The passes of a request: 4 bytes per lane are one part, 8 bytes are two half-warps, 16 bytes four quarter-warps. Two
/// neighbouring parts without common banks pass together.
inline Wavefronts wavefronts_of(const Request& r) {
  uint32_t widest = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((r.mask >> lane & 1) != 0) widest = std::max(widest, r.bytes[lane]);
  const int part = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
  Wavefronts found;
  for (int first = 0; first < 32; first += 2 * part) {
    if (part < 32)
      if (const int both = bank_depth(r, first, 2 * part); both <= 1) {
        found.all += both;
        continue;
      }
    for (int p = first; p < std::min(first + 2 * part, 32); p += part) {
      const int depth = bank_depth(r, p, part);
      found.all += depth;
      found.conflicts += std::max(depth - 1, 0);
    }
  }
  return found;
}

}  // namespace emulator
