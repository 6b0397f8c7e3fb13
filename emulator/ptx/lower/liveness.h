// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/parse/ast.h"

namespace emulator::ptx {

/// Time in a body: statement i reads at 2 i and writes at 2 i + 1.
using Point = uint32_t;
struct Segment {
  Point begin, end;  ///< [begin, end)
};

/// A register in a statement.
struct Access {
  int reg;
  bool read, written;
  bool held;  ///< must outlive the statement's writes: a guard, or a source that its destination must not overwrite
};

/// The accesses to registers, by statement.
class Accesses {
 public:
  Accesses(const Function& function, const std::vector<const Opcode*>& opcodes);
  const Access* begin(size_t statement) const { return all_.data() + first_[statement]; }
  const Access* end(size_t statement) const { return all_.data() + first_[statement + 1]; }
  size_t statements() const { return first_.size() - 1; }

 private:
  void add(const Operand& operand, bool written, bool read, bool held);
  std::vector<Access> all_;
  std::vector<size_t> first_;
};

/// When each register holds a value of a thread that it will read again. Lanes have registers of their own, so that
/// an answer for one thread holds for a warp, whose lanes may be at different instructions.
///
/// A guarded write leaves the old value in other lanes and so does not end it. A register counts only where some write
/// can have come before: a register that is read uninitialised takes no space elsewhere.
class Liveness {
 public:
  Liveness(const Function& function, const Accesses& accesses);
  /// Ascending, apart from each other.
  const Segment* begin(int reg) const { return segments_.data() + first_[static_cast<size_t>(reg)]; }
  const Segment* end(int reg) const { return segments_.data() + first_[static_cast<size_t>(reg) + 1]; }
  bool live_at(int reg, Point point) const;

 private:
  std::vector<Segment> segments_;
  std::vector<size_t> first_;
};

/// Whether a statement ends a basic block.
bool ends_block(const Statement& statement);
/// Whether no statement follows it: it is a jump or an end without a guard.
bool never_falls_through(const Statement& statement);
/// Calls f(target) for each target of a statement's jump.
template <class F>
void for_each_target(const Function& function, const Statement& s, F f) {
  if (s.target < 0) return;
  if (s.op == "brx")
    for (const int target : function.tables[static_cast<size_t>(s.target)]) f(target);
  else
    f(s.target);
}

}  // namespace emulator::ptx
