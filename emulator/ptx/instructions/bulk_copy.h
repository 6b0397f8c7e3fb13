// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/machine/tensor_box.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/addresses.h"
#include "emulator/ptx/instructions/reduction.h"

// Copies by TMA. A copy that signals an mbarrier fills its destination with 0xff at its issue, so a missing wait
// computes NaN. Its bytes are copied when no thread of the cluster can run, or at random before. A store to global
// memory reads its source at the last moment that the waits allow. Its bytes are written at wait_group or at the
// cluster's end.

namespace emulator::ptx {

/// A form of cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk or cp.reduce.async.bulk.tensor as written.
struct BulkForm {
  enum class Way : uint8_t { global_to_shared, shared_to_global, shared_to_shared } way{};
  bool tensor = false, im2col = false;
  Addresses to, from;  ///< on the side that is a tensor: the map's addresses
  Addresses barrier;
  Ref size = kNoRef;
  Ref blocks = kNoRef;  ///< targets of a multicast
  int rank = 0;
  std::array<Ref, 5> at{};
  std::array<Ref, 3> offset{};  ///< kNoRef: 0
  Reduction op = Reduction::none;
  TensorType type = TensorType::u8;  ///< type of a reduction without a tensor
  const char* name = "";
};

/// A lane's copy, after its issue.
struct BulkCopy : Pending {
  const BulkForm* form = nullptr;
  Warp* warp = nullptr;
  int lane = 0;
  uint32_t line = 0;
  uint32_t site = 0;    ///< for the checks: of the instruction
  uint32_t moment = 0;  ///< for the checks: of the issue
  double arrives = 0;   ///< for --time: the cycle in which its bytes are there
  TensorBox box{};
  BoxPlace place{};
  uint64_t bytes = 0;
  uint64_t global = 0;  ///< global address of a copy without a tensor
  SharedPlace shared;   ///< the source of a store and of a copy between blocks, the destination of a load
  struct Arrival {
    SharedPlace to, barrier;
  };
  std::vector<Arrival> arrivals;  ///< from loads, and copies between blocks
  bool was_read = false, done = false;
  bool is_repeated = false;  ///< another lane of the same instruction stores the same bytes to the same address
  std::vector<char> content;

  void apply() override;
  void block_ends(const Block& block) override;
  /// Reads the source; later calls do nothing.
  void read();
  /// Whether both store the same bytes to the same address.
  bool repeats(const BulkCopy& other) const;
  /// Informs the checks of the issue: the memory read or written from now on.
  void note_issue();
  /// Informs the checks that the thread has waited for the copy's completion.
  void note_done() const;

 private:
  [[noreturn]] void fail(FaultCode code, const std::string& what) const;
  std::vector<BlockChecks::Run> runs(const SharedPlace& at) const;
  template <class Act>
  void for_each_global(const Act& act) const;
  SwizzleMode swizzle() const { return form->tensor ? box.swizzle : SwizzleMode::none; }
  void write_tensor();
  void reduce(char* to, const char* with, uint64_t count, TensorType type) const;
  void bring(const SharedPlace& to) const;
  void arrive(const Arrival& arrival);
};

/// The bulk groups of the lanes of one warp.
struct BulkGroups {
  struct Lane {
    std::vector<std::shared_ptr<BulkCopy>> open;                ///< not committed
    std::deque<std::vector<std::shared_ptr<BulkCopy>>> groups;  ///< nobody has waited for
  };
  std::array<Lane, kLanes> lanes;
};

const Instruction* issue_bulk(Warp& w, const Instruction* i);
const Instruction* commit_bulk(Warp& w, const Instruction* i);
/// imm: groups that may be pending; aux: 1 when only the sources must have been read.
const Instruction* wait_bulk(Warp& w, const Instruction* i);

// tensormap.cpp
void lower_tensormap_replace(Lowering& l);
void lower_tensormap_copy(Lowering& l);
void lower_tensormap_fence(Lowering& l);

}  // namespace emulator::ptx
