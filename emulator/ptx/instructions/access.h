// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/machine/touched.h"
#include "emulator/ptx/instructions/lanes.h"
#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/run/warp.h"

// Memory accesses of instructions. Every access is checked against its range: 32 addresses at once if they are in one
// range, else lane by lane. OS threads share global memory; each block's shared and local memory belongs to one OS
// thread.

namespace emulator::ptx {

/// PTX ISA 8.8 "Memory Consistency Model": the order of an operation or a fence.
enum class Order : uint8_t { weak, volatile_, relaxed, acquire, release, acq_rel, sc, mmio };
enum class Scope : uint8_t { none, cta, cluster, gpu, sys };

struct AccessForm;

/// One access of some lanes of a warp, as reported to the checks.
struct AccessNote {
  Space space;  ///< the addresses' space; never generic
  Order order;
  Scope scope;
  bool write, atomic;  ///< an atomic operation reads and writes
  uint32_t lanes, bytes;
  char* const* addresses;  ///< addresses of the process, by lane; nullptr: lane l's is at first + l * stride
  char* first = nullptr;
  uint32_t stride = 0;
  const AccessForm* stored = nullptr;  ///< for a store: the registers of its values
  const AccessForm* loaded = nullptr;  ///< for a load: the registers of its values
  bool replaces = false;               ///< for an atomic operation: whether the result is independent of the old value
  char* at(int lane) const { return addresses ? addresses[lane] : first + static_cast<uint32_t>(lane) * stride; }
};
/// A fence; `what` is its spelling.
struct FenceNote {
  Order order;
  Scope scope;
  uint32_t lanes;
  const char* what;
};

// Defined in checker.cpp; call only if checked().
void note_access(Warp& w, const Instruction* i, const AccessNote& note);
void note_fence(Warp& w, const FenceNote& note);
/// __syncwarp of `lanes`.
void note_sync_warp(Warp& w, uint32_t lanes);

inline bool checked(const Warp& w) { return w.block->grid->checked; }
/// The record of global-memory accesses, or nullptr. Accesses that are not weak count as atomic: they communicate with
/// concurrent threads.
inline Touched* touched(const Warp& w) { return w.block->cluster->touched; }
inline Touch touch_of(Order order, bool write, bool atomic) {
  return atomic || order != Order::weak ? Touch::atomic : write ? Touch::write : Touch::read;
}

/// Records accesses at base[lane] + offset.
void note_lanes(Touched& touched, const uint64_t* base, uint64_t offset, uint32_t lanes, uint32_t bytes, Touch touch);

/// The modifiers of a memory instruction.
struct AccessForm {
  Space space = Space::generic;
  Order order = Order::weak;
  Scope scope = Scope::none;
  Type type = Type::none;          ///< element type
  uint8_t bytes = 0;               ///< bytes per element
  uint8_t count = 1;               ///< elements per lane
  uint8_t base_bytes = 8;          ///< bytes of a lane's address
  bool replaces = false;           ///< whether the instruction is an exchange
  uint8_t register_bytes[8] = {};  ///< declared widths
  Ref base = kNoRef;
  Ref registers[8] = {};  ///< registers of the elements
  int64_t offset = 0;

  bool strong() const { return order != Order::weak; }
};

/// Parses a modifier that is a space, an order, a scope, a cache operation, an eviction priority or a prefetch size.
/// Returns false for other modifiers.
bool take_modifier(std::string_view mod, AccessForm& form);
/// Fills in base, base_bytes and offset. A constant base of shared or local memory has lanes of 4 bytes.
void take_address(Lowering& l, const Operand& operand, AccessForm& form);
/// Requires that the operands from `n` are a cache policy or absent; throws otherwise.
void expect_policy(Lowering& l, size_t n);

/// The lanes' addresses, offset included.
uint64_t address_of(const Warp& w, const AccessForm& form, int lane);
/// Sets `at` to the addresses of the lanes' accesses of form.bytes * form.count bytes, and reports them to the checks.
/// Errors: Fault.
void locate(Warp& w, const Instruction* i, const AccessForm& form, uint32_t lanes, bool write, bool atomic, char** at);

/// The range that contains an address of global memory, from a slot or looked up; valid until memory is freed. Returns
/// nullptr if there is none, or for a write to constant memory. A slot is used for reads only or for writes only.
const Block::Known* find_range(Block::Known& known, uint64_t address, bool write);
inline const Block::Known* known_range(Block::Known& known, uint64_t address, bool write) {
  if (known.generation == memory_generation() && address - known.begin < known.bytes) [[likely]]
    return &known;
  return find_range(known, address, write);
}
/// find_range() with the slot of this instruction.
inline const Block::Known* known_range(const Warp& w, const Instruction* i, uint64_t address, bool write) {
  const size_t slot = reinterpret_cast<uintptr_t>(i) / sizeof(Instruction) * 2 + write;
  return known_range(w.block->known[slot % Block::kKnown], address, write);
}

/// Addresses of a warp that all lie in one range: lane l's bytes are at origin + Base(base[l] + offset).
template <class Base>
struct Span {
  const Base* base;
  Base offset;
  uintptr_t origin;  ///< 0 for global memory; an integer, since arithmetic on a null pointer is undefined
  char* at(int lane) const { return reinterpret_cast<char*>(origin + static_cast<Base>(base[lane] + offset)); }
};

/// 32 bytes of lanes as one vector. memcpy would store two halves, which stalls the next load of the whole.
template <class Word>
struct Row {
  typedef Word Vector [[gnu::vector_size(32)]];
  typedef Word Anywhere [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]];
  static Vector load(const Word* from) { return *reinterpret_cast<const Anywhere*>(from); }
  static void store(Word* to, Vector value) { *reinterpret_cast<Anywhere*>(to) = value; }
};
/// Copies 32 lanes from memory to registers or back.
template <class Word>
[[gnu::always_inline]] inline void copy_row(void* to, const void* from) {
  constexpr int kRows = kLanes * sizeof(Word) / 32;
  typename Row<Word>::Vector rows[kRows];
  for (int k = 0; k < kRows; ++k) rows[k] = Row<Word>::load(static_cast<const Word*>(from) + k * (kLanes / kRows));
  for (int k = 0; k < kRows; ++k) Row<Word>::store(static_cast<Word*>(to) + k * (kLanes / kRows), rows[k]);
}

enum class Pattern : uint8_t { outside, scattered, dense, same };

/// Checks 32 addresses against [begin, begin + size): `outside` also if an address is not aligned to Bytes. Dense: lane
/// l's bytes follow those of lane l - 1.
template <uint32_t Bytes, class Base>
[[gnu::always_inline]] inline Pattern scan(const Base* base, Base offset, Base begin, uint64_t size) {
  if (size < Bytes) return Pattern::outside;
  constexpr int kWide = 32 / sizeof(Base);
  using Signed = std::conditional_t<sizeof(Base) == 8, int64_t, int32_t>;
  using Vector = typename Row<Signed>::Vector;
  using Unsigned = typename Row<Base>::Vector;
  const Base limit = static_cast<Base>(size - Bytes), first = base[0];
  Unsigned expected, outside{}, low{}, apart{};
  for (int k = 0; k < kWide; ++k) expected[k] = first + static_cast<Base>(k) * Bytes;
  for (int k = 0; k < kLanes; k += kWide) {
    const Unsigned address = Row<Base>::load(base + k);
    apart |= address ^ expected;
    expected += static_cast<Base>(kWide * Bytes);
    const Unsigned there = address + offset, distance = there - begin;
    low |= there;
    outside |= distance | (limit - distance);  // negative if outside: ranges are shorter than half the address space
  }
  const Vector sign = reinterpret_cast<Vector&>(outside) < 0;
  Base any_outside = 0, any_low = 0, any_apart = 0;
  for (int k = 0; k < kWide; ++k) {
    any_outside |= static_cast<Base>(sign[k]);
    any_low |= low[k];
    any_apart |= apart[k];
  }
  if (any_outside != 0 || (any_low & (Bytes - 1)) != 0) [[unlikely]]
    return Pattern::outside;
  if (any_apart == 0) return Pattern::dense;
  if (base[1] == first && base[kLanes - 1] == first) {
    Base differs = 0;
    for (int k = 0; k < kLanes; ++k) differs |= base[k] ^ first;
    if (differs == 0) return Pattern::same;
  }
  return Pattern::scattered;
}

/// As above, for some lanes: true if all are inside and aligned.
template <uint32_t Bytes, class Base>
[[gnu::always_inline]] inline bool inside(const Base* base, Base offset, Base begin, uint64_t size, uint32_t lanes) {
  if (size < Bytes) return false;
  const Base limit = static_cast<Base>(size - Bytes);
  bool good = true;
  for (; lanes != 0; lanes &= lanes - 1) {
    const Base there = base[std::countr_zero(lanes)] + offset;
    good &= static_cast<Base>(there - begin) <= limit && (there & (Bytes - 1)) == 0;
  }
  return good;
}

}  // namespace emulator::ptx
