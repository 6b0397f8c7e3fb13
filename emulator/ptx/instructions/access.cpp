// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/access.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "emulator/machine/options.h"

namespace emulator::ptx {

namespace {

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

const char* verb(bool write) { return write ? "write" : "read"; }

/// Whether this process can read pageable memory, for GPUs that use the host's page tables.
bool is_pageable(uint64_t address, uint64_t bytes) {
  if (!options().gpu->coherent_host() || address == 0 || (address & kWindowMask) != 0) return false;
  const uint64_t ends[2] = {address, address + bytes - 1};
  for (const uint64_t end : ends) {
    char byte;
    const iovec here{&byte, 1}, there{reinterpret_cast<void*>(end), 1};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1) return false;
  }
  return true;
}

bool is_aligned(uint64_t address, uint64_t bytes) {
  return !std::has_single_bit(bytes) || (address & (bytes - 1)) == 0;
}

std::string misaligned(uint64_t address, uint64_t bytes, bool write, const char* space) {
  return cat("misaligned ", verb(write), " of ", bytes, " bytes at ", space, " address ", hex(address));
}

/// The reason why an address is not in global memory; empty if it is valid.
std::string wrong_global(uint64_t address, uint64_t bytes, bool write) {
  Allocation owner;
  if (find_allocation(address, owner)) {
    if (write && owner.read_only)
      return cat("illegal write of ", bytes, " bytes that begin at ", describe_address(address), ": __constant__ memory is read-only");
    if (owner.holds(address, bytes)) return {};
    return cat("illegal ", verb(write), " of ", bytes, " bytes that begin at ", describe_address(address),
               " and go beyond its end");
  }
  if (is_pageable(address, bytes)) return {};
  const uint64_t window = address & kWindowMask;
  if (window == kSharedWindow || window == kLocalWindow)
    return cat("illegal global ", verb(write), " of ", bytes, " bytes: the address ", hex(address), " is one of ",
               window == kSharedWindow ? "shared" : "local", " memory");
  return cat("illegal ", verb(write), " of ", bytes, " bytes at ", describe_address(address));
}

std::string wrong_shared(const Block& block, uint64_t address, uint64_t bytes, bool write) {
  const uint64_t offset = address & ((uint64_t{1} << kRankShift) - 1);
  std::string where;
  if (offset < kSharedBase)
    where = "before its beginning";
  else if (offset >= block.shared_end)
    where = cat(offset - block.shared_end, " bytes past its end");
  else
    where = "across its end";
  std::string text = cat("illegal ", verb(write), " of ", bytes, " bytes of shared memory, ", where, " (address ",
                         hex(address), "; the block has ", block.shared_end - kSharedBase, " bytes");
  const Kernel& kernel = *block.grid->kernel;
  for (size_t k = 0; k < kernel.shared_variables.size() && k < kernel.shared_offsets.size(); ++k)
    if (kernel.shared_offsets[k] + kernel.shared_variables[k].bytes == offset)
      text += cat("; `", demangled(std::string(kernel.shared_variables[k].name)), "` ends here");
  return text + ')';
}

struct Located {
  char* at;
  Space space;
};

/// Resolves a generic address for one lane.
Located resolve_any(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write) {
  switch (address & kWindowMask) {
    case kSharedWindow:
      if ((address & ~kWindowMask) <= std::numeric_limits<uint32_t>::max())
        return {resolve_shared(w, i, lane, static_cast<uint32_t>(address), bytes, write), Space::shared};
      break;
    case kLocalWindow:
      if ((address & ~kWindowMask) <= std::numeric_limits<uint32_t>::max())
        return {resolve_local(w, i, lane, static_cast<uint32_t>(address), bytes, write), Space::local};
      break;
    default:
      break;
  }
  return {resolve_global(w, i, lane, address, bytes, write), Space::global};
}

uint32_t narrow(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write) {
  if (address > std::numeric_limits<uint32_t>::max())
    w.fail(i, lane, FaultCode::illegal_address,
           cat("illegal ", verb(write), " of ", bytes, " bytes: ", hex(address),
               " is no address of shared or local memory"));
  return static_cast<uint32_t>(address);
}

}  // namespace

const Block::Known* find_range(Block::Known& known, uint64_t address, bool write) {
  // The generation is read first: a range found afterwards is at least as new.
  const uint64_t generation = memory_generation();
  Allocation found;
  if (!find_allocation(address, found) || address >= found.end || (write && found.read_only)) return nullptr;
  known = {found.begin, found.end - found.begin, generation};
  return &known;
}

char* resolve_global(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write) {
  const Block::Known* const known = known_range(w, i, address, write);
  if (!known || known->bytes < bytes || address - known->begin > known->bytes - bytes) {
    const std::string why = wrong_global(address, bytes, write);
    if (!why.empty()) w.fail(i, lane, FaultCode::illegal_address, why);
  }
  if (!is_aligned(address, bytes))
    w.fail(i, lane, FaultCode::misaligned_address, misaligned(address, bytes, write, "global"));
  return reinterpret_cast<char*>(address);
}

char* resolve_shared(Warp& w, const Instruction* i, int lane, uint32_t address, uint32_t bytes, bool write) {
  Block* block = w.block;
  const uint32_t rank = address >> kRankShift, offset = address & ((1u << kRankShift) - 1);
  if (rank != 0) {
    block = w.block->cluster->block(rank - 1);
    if (!block)
      w.fail(i, lane, FaultCode::illegal_address,
             cat("illegal ", verb(write), " of shared memory of rank ", rank - 1, " in a cluster of ",
                 w.block->cluster->blocks.size(), " blocks (address ", hex(address), ")"));
    if (block->done())
      w.fail(i, lane, FaultCode::illegal_address,
             cat("illegal ", verb(write), " of shared memory of rank ", rank - 1, ", whose block has ended"));
  }
  if (offset < kSharedBase || offset >= block->shared_end || bytes > block->shared_end - offset)
    w.fail(i, lane, FaultCode::illegal_address, wrong_shared(*block, address, bytes, write));
  if (!is_aligned(offset, bytes))
    w.fail(i, lane, FaultCode::misaligned_address, misaligned(address, bytes, write, "shared"));
  return block->shared + offset;
}

char* resolve_local(Warp& w, const Instruction* i, int lane, uint32_t address, uint32_t bytes, bool write) {
  const uint32_t size = w.local_bytes;
  if (address >= size || bytes > size - address)
    w.fail(i, lane, FaultCode::illegal_address,
           cat("illegal ", verb(write), " of ", bytes, " bytes of local memory at ", address, "; a thread has ", size,
               " bytes"));
  if (!is_aligned(address, bytes))
    w.fail(i, lane, FaultCode::misaligned_address, misaligned(address, bytes, write, "local"));
  return w.local + static_cast<size_t>(lane) * size + address;
}

char* resolve_generic(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write) {
  return resolve_any(w, i, lane, address, bytes, write).at;
}

char* resolve_async(Warp& w, uint32_t line, const char* what, uint64_t address, uint64_t bytes, bool write,
                    bool atomic) {
  if ((address & kWindowMask) == kSharedWindow) {
    const uint64_t at = address & ~kWindowMask, offset = at & ((uint64_t{1} << kRankShift) - 1),
                   rank = at >> kRankShift;
    Block* const block = rank == 0 ? w.block : w.block->cluster->block(static_cast<uint32_t>(rank - 1));
    if (!block)
      w.fail_later(line, -1, FaultCode::illegal_address, cat(what, ": no block of rank ", rank - 1, " in the cluster"));
    if (offset < kSharedBase || offset > block->shared_end || bytes > block->shared_end - offset)
      w.fail_later(line, -1, FaultCode::illegal_address, cat(what, ": ", wrong_shared(*block, at, bytes, write)));
    return block->shared + offset;
  }
  const Block::Known* const known = known_range(w.block->known[(size_t{line} * 2 + write) % Block::kKnown], address, write);
  if (!known || known->bytes < bytes || address - known->begin > known->bytes - bytes) {
    const std::string why = wrong_global(address, bytes, write);
    if (!why.empty()) w.fail_later(line, -1, FaultCode::illegal_address, cat(what, ": ", why));
  }
  if (Touched* const all = touched(w)) all->note(address, bytes, touch_of(Order::weak, write, atomic));
  return reinterpret_cast<char*>(address);
}

void note_lanes(Touched& touched, const uint64_t* base, uint64_t offset, uint32_t lanes, uint32_t bytes, Touch touch) {
  char* at[kLanes];
  uint64_t apart = lanes ^ kAllLanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t address = base[lane] + offset;
    apart |= address ^ (base[0] + offset + static_cast<uint64_t>(lane) * bytes);
    at[lane] = reinterpret_cast<char*>(address);
  }
  if (apart == 0)
    touched.note(reinterpret_cast<uintptr_t>(at[0]), size_t{bytes} * kLanes, touch);
  else
    touched.note(at, lanes, bytes, touch);
}

bool take_modifier(std::string_view mod, AccessForm& form) {
  struct Place {
    std::string_view name;
    Space space;
  };
  static constexpr Place kSpaces[] = {
      {"global", Space::global},          {"shared", Space::shared},     {"shared::cta", Space::shared},
      {"shared::cluster", Space::shared}, {"local", Space::local},       {"param", Space::param},
      {"param::entry", Space::param},     {"param::func", Space::param}, {"const", Space::constant}};
  for (const Place& place : kSpaces)
    if (place.name == mod) return form.space = place.space, true;
  struct Promise {
    std::string_view name;
    Order order;
  };
  static constexpr Promise kOrders[] = {{"weak", Order::weak},       {"volatile", Order::volatile_},
                                        {"relaxed", Order::relaxed}, {"acquire", Order::acquire},
                                        {"release", Order::release}, {"acq_rel", Order::acq_rel},
                                        {"sc", Order::sc},           {"mmio", Order::mmio}};
  for (const Promise& promise : kOrders)
    if (promise.name == mod) {
      if (form.order != Order::mmio) form.order = promise.order;  // .mmio.relaxed
      return true;
    }
  struct Reach {
    std::string_view name;
    Scope scope;
  };
  static constexpr Reach kScopes[] = {
      {"cta", Scope::cta}, {"cluster", Scope::cluster}, {"gpu", Scope::gpu}, {"sys", Scope::sys}, {"gl", Scope::gpu}};
  for (const Reach& reach : kScopes)
    if (reach.name == mod) return form.scope = reach.scope, true;
  // Cache operations only change speed, and caches are not modelled.
  static constexpr std::string_view kCaches[] = {"ca",
                                                 "cg",
                                                 "cs",
                                                 "lu",
                                                 "cv",
                                                 "wb",
                                                 "wt",
                                                 "nc",
                                                 "L2::cache_hint",
                                                 "L2::64B",
                                                 "L2::128B",
                                                 "L2::256B",
                                                 "L1::evict_normal",
                                                 "L1::evict_unchanged",
                                                 "L1::evict_first",
                                                 "L1::evict_last",
                                                 "L1::no_allocate",
                                                 "L2::evict_normal",
                                                 "L2::evict_first",
                                                 "L2::evict_last"};
  return std::ranges::find(kCaches, mod) != std::end(kCaches);
}

void take_address(Lowering& l, const Operand& operand, AccessForm& form) {
  if (operand.kind != Operand::Kind::address) l.unknown("an address is expected");
  if (operand.parts.size() > 1) l.unknown("the address has too many parts");
  const Lowering::Address address = l.address(operand);
  form.base = address.base;
  form.base_bytes = static_cast<uint8_t>(address.base_bytes);
  form.offset = address.offset;
  const bool is_narrow = form.space == Space::shared || form.space == Space::local || form.space == Space::param;
  if (address.is_constant && is_narrow) {
    form.base = l.constant(address.base_value, 4);
    form.base_bytes = 4;
  }
  if (!is_narrow && form.base_bytes != 8) l.unknown("an address of this space has 64 bits");
}

void expect_policy(Lowering& l, size_t n) {
  if (l.operands() <= n) return;
  if (!l.has("L2::cache_hint") || l.operands() > n + 1) l.unknown("too many operands");
}

uint64_t address_of(const Warp& w, const AccessForm& form, int lane) {
  if (form.base_bytes == 4)
    return static_cast<uint32_t>(w.in<uint32_t>(form.base)[lane] + static_cast<uint32_t>(form.offset));
  return w.in<uint64_t>(form.base)[lane] + static_cast<uint64_t>(form.offset);
}

void locate(Warp& w, const Instruction* i, const AccessForm& form, uint32_t lanes, bool write, bool atomic, char** at) {
  const uint32_t bytes = uint32_t{form.bytes} * form.count;
  std::array<uint32_t, 6> where{};  // lanes per space
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint64_t address = address_of(w, form, lane);
    Space space = form.space;
    switch (form.space) {
      case Space::generic: {
        const Located found = resolve_any(w, i, lane, address, bytes, write);
        at[lane] = found.at;
        space = found.space;
        break;
      }
      case Space::shared:
        at[lane] = resolve_shared(w, i, lane, narrow(w, i, lane, address, bytes, write), bytes, write);
        break;
      case Space::local:
        at[lane] = resolve_local(w, i, lane, narrow(w, i, lane, address, bytes, write), bytes, write);
        break;
      case Space::param: {
        const uint32_t size = w.kernel().parameter_bytes;
        if (address > size || bytes > size - address)
          w.fail(i, lane, FaultCode::illegal_address,
                 cat("illegal ", verb(write), " of ", bytes, " bytes of parameters at ", address, "; there are ", size,
                     " bytes"));
        at[lane] = w.block->grid->parameters + address;
        break;
      }
      case Space::global:
      case Space::constant:
        at[lane] = resolve_global(w, i, lane, address, bytes, write);
        break;
    }
    where[static_cast<size_t>(space)] |= 1u << lane;
  }
  if (Touched* const all = touched(w)) {
    const uint32_t global = where[static_cast<size_t>(Space::global)] | where[static_cast<size_t>(Space::constant)];
    all->note(at, global, bytes, touch_of(form.order, write, atomic));
  }
  if (!checked(w)) return;
  for (size_t space = 0; space < where.size(); ++space)
    if (where[space] != 0)
      note_access(w, i,
                  {static_cast<Space>(space), form.order, form.scope, write, atomic, where[space], bytes, at, nullptr,
                   0, write && !atomic && form.type != Type::none ? &form : nullptr,
                   !write && form.type != Type::none ? &form : nullptr, form.replaces});
}

}  // namespace emulator::ptx
