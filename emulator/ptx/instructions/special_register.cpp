// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>

#include "emulator/machine/options.h"
#include "emulator/ptx/instructions/arithmetic.h"

// Special registers, which mov and cvt read by name (PTX ISA 10).

namespace emulator::ptx {
namespace {

uint32_t part(const Dim3& d, char axis) { return axis == 'x' ? d.x : axis == 'y' ? d.y : d.z; }

uint64_t nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
uint64_t time_of_day() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <char axis>
uint64_t ntid(const Warp& w) {
  return part(w.block->grid->launch->block, axis);
}
/// Threads follow each other along x, then y, then z.
template <char axis>
void tid(const Warp& w, uint32_t* lanes) {
  const Dim3& d = w.block->grid->launch->block;
  uint32_t x = w.first_thread, row = 0;
  if (x >= d.x) {
    row = x / d.x;
    x -= row * d.x;
  }
  uint32_t y = row, z = 0;
  if (y >= d.y) {
    z = y / d.y;
    y -= z * d.y;
  }
  if (x + kLanes <= d.x) {
    EMULATOR_EACH_LANE lanes[l] = axis == 'x' ? x + static_cast<uint32_t>(l) : axis == 'y' ? y : z;
    return;
  }
  for (int l = 0; l < kLanes; ++l) {
    lanes[l] = axis == 'x' ? x : axis == 'y' ? y : z;
    if (++x != d.x) continue;
    x = 0;
    if (++y == d.y) y = 0, ++z;
  }
}
template <class F>
void by_lane(const Warp&, uint32_t* lanes) {
  EMULATOR_EACH_LANE lanes[l] = static_cast<uint32_t>(F()(static_cast<uint32_t>(l)));
}
template <char axis>
uint64_t ctaid(const Warp& w) {
  return part(w.block->index, axis);
}
template <char axis>
uint64_t nctaid(const Warp& w) {
  return part(w.block->grid->launch->grid, axis);
}
template <char axis>
uint64_t cluster_nctaid(const Warp& w) {
  return part(w.block->grid->cluster_dim, axis);
}
template <char axis>
uint64_t cluster_ctaid(const Warp& w) {
  return ctaid<axis>(w) % cluster_nctaid<axis>(w);
}
template <char axis>
uint64_t clusterid(const Warp& w) {
  return ctaid<axis>(w) / cluster_nctaid<axis>(w);
}
template <char axis>
uint64_t nclusterid(const Warp& w) {
  return nctaid<axis>(w) / cluster_nctaid<axis>(w);
}

uint64_t processors() { return static_cast<uint64_t>(options().gpu->processors); }

struct Special {
  std::string_view name;
  uint64_t (*read)(const Warp& w);
  bool is_wide = false;  ///< 64 bits
  void (*read_lanes)(const Warp& w, uint32_t* lanes) = nullptr;  ///< when the lanes' values differ, instead of `read`
};
template <class F>
constexpr Special lanes_of(std::string_view name, F) {
  return {name, nullptr, false, by_lane<F>};
}

constexpr Special kSpecials[] = {
    {"tid.x", nullptr, false, tid<'x'>},
    {"tid.y", nullptr, false, tid<'y'>},
    {"tid.z", nullptr, false, tid<'z'>},
    {"ntid.x", ntid<'x'>},
    {"ntid.y", ntid<'y'>},
    {"ntid.z", ntid<'z'>},
    {"ctaid.x", ctaid<'x'>},
    {"ctaid.y", ctaid<'y'>},
    {"ctaid.z", ctaid<'z'>},
    {"nctaid.x", nctaid<'x'>},
    {"nctaid.y", nctaid<'y'>},
    {"nctaid.z", nctaid<'z'>},
    {"clusterid.x", clusterid<'x'>},
    {"clusterid.y", clusterid<'y'>},
    {"clusterid.z", clusterid<'z'>},
    {"nclusterid.x", nclusterid<'x'>},
    {"nclusterid.y", nclusterid<'y'>},
    {"nclusterid.z", nclusterid<'z'>},
    {"cluster_ctaid.x", cluster_ctaid<'x'>},
    {"cluster_ctaid.y", cluster_ctaid<'y'>},
    {"cluster_ctaid.z", cluster_ctaid<'z'>},
    {"cluster_nctaid.x", cluster_nctaid<'x'>},
    {"cluster_nctaid.y", cluster_nctaid<'y'>},
    {"cluster_nctaid.z", cluster_nctaid<'z'>},
    {"cluster_ctarank", [](const Warp& w) -> uint64_t { return w.block->rank; }},
    {"cluster_nctarank", [](const Warp& w) -> uint64_t { return w.block->grid->cluster_blocks; }},
    lanes_of("laneid", [](uint32_t lane) { return lane; }),
    lanes_of("lanemask_eq", [](uint32_t lane) { return uint64_t{1} << lane; }),
    lanes_of("lanemask_lt", [](uint32_t lane) { return (uint64_t{1} << lane) - 1; }),
    lanes_of("lanemask_le", [](uint32_t lane) { return (uint64_t{2} << lane) - 1; }),
    lanes_of("lanemask_ge", [](uint32_t lane) { return kAllLanes << lane; }),
    lanes_of("lanemask_gt", [](uint32_t lane) { return kAllLanes << lane << 1; }),
    {"warpid", [](const Warp& w) -> uint64_t { return w.index; }},
    {"nwarpid",
     [](const Warp&) -> uint64_t {
       return static_cast<uint64_t>(options().gpu->threads_per_processor / kLanes);
     }},
    {"smid", [](const Warp& w) -> uint64_t { return w.block->number % processors(); }},
    {"nsmid", [](const Warp&) -> uint64_t { return processors(); }},
    {"gridid", [](const Warp& w) -> uint64_t { return w.block->grid->launch->number; }, true},
    {"clock", [](const Warp&) -> uint64_t { return nanoseconds(); }},
    {"clock_hi", [](const Warp&) -> uint64_t { return nanoseconds() >> 32; }},
    {"clock64", [](const Warp&) -> uint64_t { return nanoseconds(); }, true},
    {"globaltimer", [](const Warp&) -> uint64_t { return time_of_day(); }, true},
    {"globaltimer_lo", [](const Warp&) -> uint64_t { return time_of_day(); }},
    {"globaltimer_hi", [](const Warp&) -> uint64_t { return time_of_day() >> 32; }},
    {"dynamic_smem_size", [](const Warp& w) -> uint64_t { return w.block->grid->launch->dynamic_shared; }},
    // aggr_smem_size counts the system's own first KiB, total_smem_size does not.
    {"total_smem_size", [](const Warp& w) -> uint64_t { return w.block->shared_end - kSharedBase; }},
    {"aggr_smem_size", [](const Warp& w) -> uint64_t { return w.block->shared_end; }},
    {"reserved_smem_offset_begin", [](const Warp&) -> uint64_t { return 0; }},
    {"reserved_smem_offset_end", [](const Warp&) -> uint64_t { return kSharedBase; }},
    {"reserved_smem_offset_cap", [](const Warp&) -> uint64_t { return kSharedBase; }},
    {"reserved_smem_offset_1", [](const Warp& w) -> uint64_t { return w.kernel().scratch; }},
    // Where grid.sync() of cooperative launches finds its workspace: the upper and the lower half of an address.
    {"envreg1",
     [](const Warp& w) -> uint64_t {
       return reinterpret_cast<uintptr_t>(w.block->grid->sync_workspace) >> 32;
     }},
    {"envreg2",
     [](const Warp& w) -> uint64_t { return reinterpret_cast<uintptr_t>(w.block->grid->sync_workspace); }},
    // For mutants of kernels: the number in the variable WEFT_MUTANT.
    {"envreg3",
     [](const Warp&) -> uint64_t {
       static const char* const text = std::getenv("WEFT_MUTANT");
       static const uint64_t mutant = text ? std::strtoull(text, nullptr, 10) : 0;
       return mutant;
     }},
    {"current_graph_exec", [](const Warp&) -> uint64_t { return 0; }, true},
};
constexpr Special kZero{"", [](const Warp&) -> uint64_t { return 0; }};
constexpr Special kWideZero{"", [](const Warp&) -> uint64_t { return 0; }, true};

const Special* find(std::string_view name) {
  for (const Special& s : kSpecials)
    if (s.name == name) return &s;
  // Environment registers and performance counters that are never set.
  if (name.substr(0, 6) == "envreg") return &kZero;
  if (name.substr(0, 2) == "pm") return name.size() > 3 && name.substr(name.size() - 3) == "_64" ? &kWideZero : &kZero;
  return nullptr;
}

template <class T>
const Instruction* read_special(Warp& w, const Instruction* i) {
  const Special& s = *static_cast<const Special*>(i->more);
  const uint32_t lanes = w.lanes(i);
  const T kept = static_cast<T>(i->imm);
  alignas(64) T r[kLanes];
  T* const to = lanes == kAllLanes ? w.out<T>(i->d) : r;
  if (s.read_lanes) {
    alignas(64) uint32_t values[kLanes];
    s.read_lanes(w, values);
    EMULATOR_EACH_LANE to[l] = values[l] & kept;
  } else {
    const T v = static_cast<T>(s.read(w)) & kept;
    EMULATOR_EACH_LANE to[l] = v;
  }
  if (lanes != kAllLanes) blend(w.out<T>(i->d), r, lanes);
  return i + 1;
}

const Instruction* read_explicit_cluster(Warp& w, const Instruction* i) {
  const Grid& grid = *w.block->grid;
  w.set_predicate(i->d, w.lanes(i), grid.cluster_blocks > 1 || grid.kernel->cluster[0] != 0 ? kAllLanes : 0);
  return i + 1;
}

}  // namespace

void lower_special_register(Lowering& l) {
  const std::string_view name = l.operand(1).name;
  const Type t = l.type();
  if (t == Type::pred) {
    if (name != "is_explicit_cluster") l.unknown("special register");
    l.emit(read_explicit_cluster, l.predicate(l.operand(0)));
    return;
  }
  // cvt reads by its second type. It may extend, which changes no unsigned value, and do nothing else.
  const bool converts = l.op() == "cvt";
  const Type read = converts ? l.type(1) : t;
  const Special* const s = find(name);
  const int bytes = bytes_of(read), to_bytes = bytes_of(t);
  if (s == nullptr || is_float(t) || is_float(read) || bytes > 8) l.unknown("special register");
  if (converts && (l.mods().size() != 2 || to_bytes < bytes || (is_signed(read) && to_bytes != bytes)))
    l.unknown("special register");
  Instruction& i = l.emit(to_bytes == 8 ? read_special<uint64_t> : read_special<uint32_t>, result(l));
  i.more = s;
  // Mask of the special register's own width, in a register that may be wider.
  i.imm = bytes == 8 ? (s->is_wide ? ~uint64_t{0} : 0xffffffff) : (uint64_t{1} << (8 * bytes)) - 1;
}

}  // namespace emulator::ptx
