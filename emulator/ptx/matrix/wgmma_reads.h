// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unordered_map>
#include <vector>

#include "emulator/ptx/lower/register_places.h"

namespace emulator::ptx {

/// Finds reads of a wgmma's sums by a warp that has not waited for it. Once for each basic block and set of sums an
/// instruction looks before their first read, so that a kernel pays for its epilogues only.
class WgmmaReads {
 public:
  WgmmaReads(const Function& function, const Accesses& accesses, const RegisterPlaces& places);
  /// Before `statement` is lowered. A mov that has vanished reads nothing.
  void guard(Lowering& l, size_t statement);

 private:
  const Function& function_;
  const Accesses& accesses_;
  const RegisterPlaces& places_;
  std::unordered_map<Ref, int> sums_;  ///< their number, by place
  std::vector<bool> begins_block_;
  std::vector<int> looked_at_;  ///< since the block began or the last wgmma
};

}  // namespace emulator::ptx
