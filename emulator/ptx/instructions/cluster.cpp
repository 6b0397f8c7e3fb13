// SPDX-License-Identifier: Apache-2.0
// The blocks of a cluster: addresses of each other's shared memory, st.async, red.async.
#include <algorithm>
#include <optional>

#include "emulator/machine/fresh.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/mbarrier.h"
#include "emulator/ptx/instructions/reduction.h"
#include "emulator/ptx/matrix/matrix_layout.h"
#include "emulator/ptx/run/register_pool.h"

namespace emulator::ptx {

SharedPlace shared_place(Warp& w, const Instruction* i, int lane, Where where, uint64_t address, uint64_t bytes,
                         uint32_t alignment, const char* what) {
  uint64_t in_cluster = address;
  if (where == Where::generic) {
    if ((address & kWindowMask) != kSharedWindow)
      w.fail(i, lane, FaultCode::invalid_address_space,
             cat(what, ": address 0x", std::hex, address, " is not in shared memory"));
    in_cluster = address & ~kWindowMask;
  }
  const uint64_t rank = in_cluster >> kRankShift, at = in_cluster & ((uint64_t{1} << kRankShift) - 1);
  Block* const block = rank == 0 ? w.block
                       : rank <= w.block->cluster->blocks.size()
                           ? w.block->cluster->block(static_cast<uint32_t>(rank - 1))
                           : nullptr;
  if (!block)
    w.fail(i, lane, FaultCode::illegal_address,
           cat(what, ": shared address 0x", std::hex, in_cluster, " is in no block of the cluster"));
  if (at < kSharedBase || bytes > block->shared_end || at > block->shared_end - bytes)
    w.fail(i, lane, FaultCode::illegal_address,
           cat(what, ": ", bytes, " bytes from shared address ", at, " on are not in the block's shared memory, ",
               kSharedBase, " to ", block->shared_end));
  if (at % alignment)
    w.fail(i, lane, FaultCode::misaligned_address,
           cat(what, ": shared address ", at, " is not a multiple of ", alignment));
  // CUDA leaves accesses to a block that has ended undefined. An H100 keeps a cluster's shared memory until its last
  // block ends, and published kernels arrive at such mbarriers (fast.cu, 8 to 10). So only a check reports such
  // accesses.
  if (block != w.block && block->done())
    if (BlockChecks* const checks = race_checks_of(*w.block)) checks->report_ended(w, i, lane, what, *block);
  return {block, static_cast<uint32_t>(at)};
}

namespace {

constexpr uint64_t kInBlock = (uint64_t{1} << kRankShift) - 1;

/// The block of a shared address, by its rank in the cluster.
template <class T>
uint32_t rank_of(Warp& w, const Instruction* i, int lane, T address, bool generic, const char* what) {
  const uint64_t bits = address;
  if (generic && (bits & kWindowMask) != kSharedWindow)
    w.fail(i, lane, FaultCode::invalid_address_space,
           cat(what, ": address 0x", std::hex, bits, " is not in shared memory"));
  const uint64_t rank = (generic ? bits & ~kWindowMask : bits) >> kRankShift;
  return rank == 0 ? w.block->rank : static_cast<uint32_t>(rank - 1);
}

template <class T, bool kGeneric>
const Instruction* mapa(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  T mapped[kLanes];
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const T address = w.in<T>(i->a)[lane];
    const uint32_t rank = w.in<uint32_t>(i->b)[lane];
    rank_of(w, i, lane, address, kGeneric, "mapa");
    if (rank >= w.block->cluster->blocks.size())
      w.fail(i, lane, FaultCode::launch_failure,
             cat("mapa: block ", rank, " of a cluster of ", w.block->cluster->blocks.size()));
    mapped[lane] = static_cast<T>((kGeneric ? kSharedWindow : 0) | (uint64_t{rank + 1} << kRankShift) |
                                  (static_cast<uint64_t>(address) & kInBlock));
  }
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    w.out<T>(i->d)[lane] = mapped[lane];
  }
  return i + 1;
}

template <class T, bool kGeneric>
const Instruction* getctarank(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  uint32_t ranks[kLanes];
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    ranks[lane] = rank_of(w, i, lane, w.in<T>(i->a)[lane], kGeneric, "getctarank");
  }
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    w.out<uint32_t>(i->d)[lane] = ranks[lane];
  }
  return i + 1;
}

/// mapa and getctarank: .shared::cluster or generic, .u32 or .u64.
bool is_wide(Lowering& l, std::string_view op, bool& generic) {
  generic = !l.has("shared::cluster");
  for (const std::string_view mod : l.mods())
    if (mod != "shared::cluster" && mod != "u32" && mod != "u64") l.unknown(cat('.', mod, " of ", op));
  if (generic && !l.has("u64")) l.unknown("generic addresses have 64 bits");
  return l.has("u64");
}

void lower_mapa(Lowering& l) {
  bool generic;
  const bool wide = is_wide(l, "mapa", generic);
  const Ref a = l.source(l.operand(1), wide ? Type::u64 : Type::u32), b = l.source(l.operand(2), Type::u32);
  const Ref d = l.destination(l.operand(0));
  l.emit(generic ? mapa<uint64_t, true> : wide ? mapa<uint64_t, false> : mapa<uint32_t, false>, d, a, b);
}

void lower_getctarank(Lowering& l) {
  bool generic;
  const bool wide = is_wide(l, "getctarank", generic);
  const Ref a = l.source(l.operand(1), wide ? Type::u64 : Type::u32), d = l.destination(l.operand(0));
  l.emit(generic ? getctarank<uint64_t, true> : wide ? getctarank<uint64_t, false> : getctarank<uint32_t, false>, d, a);
}

struct AsyncStore {
  Addresses address, barrier;
  matrix::Registers values{};
  int count = 1;
  uint32_t bytes = 4;  ///< per element
  TensorType type = TensorType::u32;
  Reduction op = Reduction::none;
};

struct StoreArrives : Pending {
  const AsyncStore* store = nullptr;
  Warp* warp = nullptr;
  int lane = 0;
  uint32_t line = 0, site = 0;
  SharedPlace place, barrier;
  char values[16];

  const char* what() const { return store->op == Reduction::none ? "st.async" : "red.async"; }
  void block_ends(const Block& block) override {
    if (place.block == &block)
      warp->block->checks->report_unawaited(
          {*warp, lane, site, what()}, "the block ends before the store to its shared memory has arrived. Missing: the wait on its mbarrier.");
  }
  void apply() override {
    const uint32_t bytes = store->bytes * static_cast<uint32_t>(store->count);
    if (store->op == Reduction::none)
      std::memcpy(place.data(), values, bytes);
    else
      reduce_element(place.data(), values, store->type, store->op);
    if (BlockChecks* const checks = race_checks_of(*place.block); checks && store->op == Reduction::none)
      checks->load_done({*warp, lane, site, what()}, {{{place.data(), bytes}}}, barrier.at);
    mark_written(place.data(), bytes);
    mbarrier_complete(*warp, line, lane, barrier, bytes, what());
  }
};

const Instruction* store_async(Warp& w, const Instruction* i) {
  const auto& s = *static_cast<const AsyncStore*>(i->more);
  const uint32_t bytes = s.bytes * static_cast<uint32_t>(s.count);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    auto arrival = std::make_shared<StoreArrives>();
    arrival->store = &s;
    arrival->warp = &w;
    arrival->lane = lane;
    arrival->line = i->line;
    const char* const what = arrival->what();
    arrival->place = shared_place(w, i, lane, Where::shared, s.address.at(w, lane), bytes, bytes, what);
    arrival->barrier = shared_place(w, i, lane, Where::shared, s.barrier.at(w, lane), 8, 8, what);
    if (arrival->place.block != arrival->barrier.block)
      w.fail(i, lane, FaultCode::launch_failure, cat(what, ": its mbarrier is in another block than what it writes"));
    mbarrier_at(w, i->line, lane, arrival->barrier, what);
    for (int k = 0; k < s.count; ++k)
      std::memcpy(arrival->values + static_cast<uint32_t>(k) * s.bytes,
                  w.in<char>(s.values[static_cast<size_t>(k)]) + static_cast<uint32_t>(lane) * s.bytes, s.bytes);
    arrival->site = static_cast<uint32_t>(i - w.kernel().code.data());
    if (BlockChecks* const checks = race_checks_of(*arrival->place.block); checks && s.op == Reduction::none)
      checks->load_issued({w, lane, arrival->site, what}, {{{arrival->place.data(), bytes}}}, arrival->barrier.at);
    if (s.op == Reduction::none) std::memset(arrival->place.data(), 0xff, bytes);
    w.block->pending.push_back(std::move(arrival));
  }
  return i + 1;
}

void lower_store_async(Lowering& l) {
  AsyncStore s;
  const bool reduces = l.op() == "red";
  bool completes = false;
  Type type = Type::none;
  int count = 1;
  for (const std::string_view mod : l.mods()) {
    if (mod == "mbarrier::complete_tx::bytes")
      completes = true;
    else if (mod == "v2" || mod == "v4")
      count = mod[1] - '0';
    else if (type_of(mod) != Type::none)
      type = type_of(mod);
    else if (reduces && reduction_of(mod) != Reduction::none)
      s.op = reduction_of(mod);
    else if (mod != "async" && mod != "weak" && mod != "relaxed" && mod != "cluster" && mod != "shared::cluster")
      l.unknown(cat('.', mod));
  }
  s.bytes = static_cast<uint32_t>(bytes_of(type));
  if (!completes || (s.bytes != 4 && s.bytes != 8) || (s.bytes == 8 && count == 4) ||
      reduces != (s.op != Reduction::none))
    l.unknown();
  if (reduces) {
    const bool is_signed_type = type == Type::s32 || type == Type::s64;
    s.type = s.bytes == 8 ? (is_signed_type ? TensorType::s64 : TensorType::u64)
                          : (is_signed_type ? TensorType::s32 : TensorType::u32);
    if (is_float(type) || count != 1 || !can_reduce(s.type, s.op)) l.unknown();
  }
  s.address = read_addresses(l, l.operand(0));
  s.count = matrix::read_registers(l, l.operand(1), type, false, s.values);
  if (s.count != count) l.unknown("the number of registers");
  s.barrier = read_addresses(l, l.operand(2));
  l.emit(store_async).more = l.keep(s);
}

}  // namespace

Family cluster_family() {
  static constexpr Opcode kOpcodes[] = {
      {"mapa", lower_mapa},
      {"getctarank", lower_getctarank},
      {"st.async", lower_store_async, Roles::all_read},
      {"red.async", lower_store_async, Roles::all_read},
      {"setmaxnreg", lower_setmaxnreg, Roles::all_read},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
