// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/exported_counts.h"
#include "emulator/machine/touched.h"
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/run/warp.h"

// `weft-emulate --profile FILE`: what each instruction of each kernel cost, as facts of the program: warp instructions,
// active lanes, divergent branches, sectors, bank conflicts. Written as JSON at the program's end (the members are named
// where they are written, profile.cpp); tools/weft-lab shows it beside the source.

namespace emulator::ptx {

struct Function;

/// The statements of a kernel's PTX, which are what is counted: an instruction of the bytecode is a statement or a part of one.
struct ProfileTable {
  struct Row {
    std::string op;           ///< `ld.global.f32`
    std::string text;         ///< as in the module
    uint32_t ptx_line, line;  ///< in the module; index in Kernel::lines
    size_t first, last;       ///< range of its bytecode
  };
  std::vector<Row> rows;
};

bool profiles();
/// `start` is the first instruction of each statement of the body.
void keep_profile_table(Kernel& kernel, const Function& body, const std::vector<size_t>& start);

/// The accesses of an instruction to a space.
struct AccessCount {
  uint64_t requests = 0;    ///< warp instructions with at least one lane
  uint64_t sectors = 0;     ///< in global and local memory
  uint64_t wavefronts = 0;  ///< in shared memory
  uint64_t conflicts = 0;   ///< among wavefronts, see Wavefronts
  uint64_t bytes = 0;       ///< that the lanes asked for
  uint64_t collisions = 0;  ///< atomic operations: lanes that came to an address after another lane of the warp
  bool write = false, atomic = false;
  // The most expensive request.
  uint32_t worst = 0, worst_mask = 0, worst_bytes = 0;  ///< sectors or wavefronts; lanes; bytes a lane
  std::array<int64_t, kLanes> worst_at{};               ///< per lane, from the beginning of shared memory or of a line of 128 bytes
  void add(const AccessCount& other);
};

/// The cost of a launch so far. One OS thread runs all of its blocks.
class LaunchProfile {
 public:
  explicit LaunchProfile(const Kernel& kernel);
  /// Executes and counts the instruction, unless it only waits and will be executed again.
  const Instruction* step(Warp& w, const Instruction* i);
  void access(Warp& w, const Instruction* i, const AccessNote& note);
  /// A copy by TMA.
  void bulk(const Instruction* i, uint64_t bytes) { site(i).bulk_bytes += bytes; }

  enum Where : uint8_t { global, shared, local };
  struct Site {
    uint64_t executed = 0, active = 0, lanes = 0;  ///< warp instructions; their lanes before and after the guard
    uint64_t splits = 0;                           ///< times that the lanes went apart here
    uint64_t bulk_bytes = 0;
    std::array<std::unique_ptr<AccessCount>, 3> access;  ///< indexed by Where
    void add(const Site& other);
  };
  const std::vector<Site>& sites() const { return sites_; }
  void add(const LaunchProfile& other);

  Touched touched;        ///< its global memory, where nobody else notes it
  uint64_t barriers = 0;  ///< that blocks have completed

 private:
  Site& site(const Instruction* i) { return sites_[static_cast<size_t>(i - code_)]; }

  const Instruction* code_;
  std::vector<Site> sites_;
};

/// Launches that begin from now on add what they cost to *counts; nullptr: no longer.
void count_launches(weft_emulator_counts* counts);

/// At the beginning and the end of a grid; nullptr where nobody counts.
std::unique_ptr<LaunchProfile> begin_profile(Grid& grid);
void end_profile(const Grid& grid, std::unique_ptr<LaunchProfile> profile);

}  // namespace emulator::ptx
