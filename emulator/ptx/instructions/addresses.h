// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/run/warp.h"

// Address operands of the instructions of matrices and of Hopper.

namespace emulator::ptx {

/// The address operand of an instruction, lane by lane.
struct Addresses {
  Ref base = kNoRef;
  bool wide = true;
  int64_t offset = 0;

  uint64_t at(const Warp& w, int lane) const {
    const uint64_t from = wide ? w.in<uint64_t>(base)[lane] : w.in<uint32_t>(base)[lane];
    return from + static_cast<uint64_t>(offset);
  }
};
inline Addresses read_addresses(Lowering& l, const Operand& operand) {
  if (operand.kind != Operand::Kind::address) l.unknown("no address where one is expected");
  const Lowering::Address a = l.address(operand);
  return {a.base, a.base_bytes == 8, a.offset};
}

/// The `.shared` or `.global` of an instruction, or generic.
enum class Where : uint8_t { generic, shared, global };
inline Where read_where(const Lowering& l) {
  if (l.has("shared") || l.has("shared::cta") || l.has("shared::cluster")) return Where::shared;
  return l.has("global") ? Where::global : Where::generic;
}
inline char* resolve(Warp& w, const Instruction* i, int lane, Where where, uint64_t address, uint32_t bytes,
                     bool write) {
  if (where == Where::shared) return resolve_shared(w, i, lane, static_cast<uint32_t>(address), bytes, write);
  return where == Where::global ? resolve_global(w, i, lane, address, bytes, write)
                                : resolve_generic(w, i, lane, address, bytes, write);
}

/// A location in the shared memory of a block of the cluster.
struct SharedPlace {
  Block* block = nullptr;
  uint32_t at = 0;
  char* data() const { return block->shared + at; }
};
/// The location of a shared::cta, shared::cluster or generic address. Errors: an address that is none of shared
/// memory, `bytes` beyond its end, one that is not a multiple of `alignment`, a block that has ended.
SharedPlace shared_place(Warp& w, const Instruction* i, int lane, Where where, uint64_t address, uint64_t bytes,
                         uint32_t alignment, const char* what);

}  // namespace emulator::ptx
