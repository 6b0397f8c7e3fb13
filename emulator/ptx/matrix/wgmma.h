// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/machine/matrix_descriptor.h"
#include "emulator/ptx/matrix/matrix_layout.h"
#include "emulator/ptx/matrix/wgmma_multiply.h"

namespace emulator::ptx::matrix {

/// A wgmma.mma_async as written.
struct Wgmma {
  Shape shape;
  Type a_type = Type::none, b_type = Type::none, d_type = Type::none;
  std::vector<Ref> d;
  std::array<Ref, 4> a_registers{};
  bool a_from_registers = false;
  Ref a = kNoRef, b = kNoRef;  ///< descriptors
  Ref accumulate = kNoRef;     ///< a predicate; kNoRef: `always`
  bool accumulate_negated = false, always = true;
  bool negative = false;  ///< one of the scales is -1
  bool a_along_lines = false, b_along_lines = false;
  bool saturate = false;

  int element_bytes() const { return 32 / shape.k; }
  bool integers() const { return d_type == Type::s32; }
};

/// The wgmmas of one warp: the warp computes its 16 rows of the warpgroup's 64 by itself. Issued wgmmas stay here until
/// the wait for their group; the accumulators hold 0xff meanwhile.
class WarpMatrices {
 public:
  void fence() { fenced_ = ever_fenced_ = true; }
  void issue(Warp& w, const Instruction* i, const Wgmma& form);
  void commit() { groups_.push_back(first_ + ops_.size()); }
  void wait(Warp& w, const Instruction* i, size_t pending);
  /// How many it has issued, and of these the first that may be unfinished after wait(pending).
  size_t issued() const { return first_ + ops_.size(); }
  size_t finished() const { return first_; }
  size_t due(size_t pending) const { return groups_.size() > pending ? groups_[groups_.size() - pending - 1] : 0; }
  /// The owner of the OS thread's converted b, while nothing else runs: the four warps of a wgmma share it.
  struct Loaded {
    const Wgmma* form = nullptr;
    uint64_t b = 0;
  };
  /// Computes number `number`, which is delivered at the wait.
  void compute(Warp& w, size_t number, Loaded& loaded);
  /// Whether a register is one of sums that are not delivered yet.
  bool holds(Ref sum) const;
  /// The first that was not waited for, or nullptr.
  const Instruction* unawaited() const { return ops_.empty() ? nullptr : ops_.front().at; }

 private:
  /// Sums that wgmmas add up, as [column][row of the warp]: f32, or s32 by their bits.
  struct Sums {
    const Wgmma* form;   ///< the first that had these registers
    int unfinished = 0;  ///< wgmmas
    bool held = false;   ///< the registers are poison, the values are here
    bool known = false;  ///< the values are those that were delivered last
    std::unique_ptr<float[]> values;
  };
  struct Op {
    const Wgmma* form;
    const Instruction* at;
    uint64_t a, b;
    size_t sums;
    bool accumulate, done = false;
    alignas(32) std::array<std::array<uint32_t, kLanes>, 4> a_registers;
  };

  void tell_checks(Warp& w, const Instruction* i, const Wgmma& form, const Op& op) const;
  size_t find_sums(Warp& w, const Instruction* i, const Wgmma& form);
  void take(Warp& w, const Instruction* i, Sums& sums, bool values);
  void deliver(Warp& w, const Instruction* i, Sums& sums);
  void run(Warp& w, Op& op, Loaded* loaded);
  template <class A, class B>
  void run_as(Warp& w, Op& op, Loaded* loaded);

  std::deque<Op> ops_;
  size_t first_ = 0;           ///< the number of ops_.front()
  std::deque<size_t> groups_;  ///< per group not yet waited for: one past the number of its last op
  std::vector<Sums> sums_;
  bool fenced_ = false, ever_fenced_ = false;
};

/// Whether a register of the warp is an accumulator of a wgmma still in flight.
bool holds_sums(const Warp& w, Ref sum);
/// The check of races: the warp ends.
void report_unawaited(Warp& w);

}  // namespace emulator::ptx::matrix
