// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/time/time_count.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "emulator/machine/options.h"
#include "emulator/ptx/instructions/bulk_copy.h"
#include "emulator/ptx/time/time_notes.h"

namespace emulator::ptx {

bool timed() { return options().time; }
bool sampled() { return options().time && options().time_waves > 0; }

namespace timing {

namespace {

using Kind = TimeNote::Kind;
using time_model::Limit;

constexpr uint32_t kSectorBits = 5, kPageBits = 12, kSectorsOfPage = 1u << (kPageBits - kSectorBits);
constexpr uint32_t kTouchBits = 22, kTouchMask = (1u << kTouchBits) - 1;
/// At least about this number of a launch's pages is noted: traffic from memory is then known to a percent.
constexpr double kNotedPages = 8192;

/// SplitMix64's mixing: neighbours fall anywhere.
uint64_t hash_of(uint64_t page) {
  page = (page ^ (page >> 30)) * 0xbf58476d1ce4e5b9u;
  page = (page ^ (page >> 27)) * 0x94d049bb133111ebu;
  return page ^ (page >> 31);
}

/// How many cycles the banks of shared memory need for the lanes' words: as many as there are different words in one bank.
/// Lanes that read the same word share it.
uint32_t bank_cycles_at_once(const uint32_t* address, uint32_t lanes, uint32_t words) {
  uint32_t seen[32][8], count[32] = {}, most = 1;
  uint32_t last = ~0u;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t first = address[std::countr_zero(left)] / 4;
    if (first == last) continue;
    last = first;
    for (uint32_t k = 0; k < words; ++k) {
      const uint32_t word = first + k, bank = word & 31;
      uint32_t* const of_bank = seen[bank];
      const uint32_t kept = std::min(count[bank], 8u);
      bool known = false;
      for (uint32_t s = 0; s < kept && !known; ++s) known = of_bank[s] == word;
      if (known) continue;
      of_bank[count[bank] & 7] = word;
      most = std::max(most, ++count[bank]);
    }
  }
  return most;
}

/// Lanes with 8 bytes each are served by halves of the warp, with 16 by quarters: 128 bytes return in a cycle, whether
/// or not lanes share them.
uint32_t bank_cycles(const uint32_t* address, uint32_t lanes, uint32_t bytes) {
  const uint32_t words = std::max(1u, bytes / 4), at_once = kLanes / words;
  uint32_t cycles = 0;
  for (uint32_t first = 0; first < kLanes; first += at_once)
    if (const uint32_t these = lanes & static_cast<uint32_t>(((uint64_t{1} << at_once) - 1) << first))
      cycles += bank_cycles_at_once(address, these, words);
  return cycles;
}

bool all_equal(const uint32_t* address, uint32_t lanes) {
  const uint32_t first = address[std::countr_zero(lanes)];
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    if (address[std::countr_zero(left)] != first) return false;
  return true;
}

/// How many cycles the lanes' data take between L1 and registers, at the same rate.
double of_registers(uint32_t lanes, uint32_t bytes) {
  return std::max(1.0, static_cast<double>(bytes) * std::popcount(lanes) / 128);
}

/// Chooses by the lanes' bases in the first iteration of the loop.
TimeJoin join_of(const std::vector<TimeJoin>& joins, const TimeNote& n, uint32_t turn, const uint32_t* address,
                 uint32_t lanes) {
  const uint32_t moved = static_cast<uint32_t>(n.address.offset) + turn * static_cast<uint32_t>(n.stride);
  const uint32_t base = address[std::countr_zero(lanes)] - moved;
  uint32_t differ = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) differ |= (address[std::countr_zero(left)] - moved) ^ base;
  if ((base | differ) & 3) return {};
  const TimeJoin* const of_turn = joins.data() + n.joins + turn * kJoins;
  return (differ & 15) == 0 ? of_turn[base / 4 & 3] : (differ & 7) == 0 ? of_turn[4 + (base / 4 & 1)] : TimeJoin{};
}

/// Which turn each lane has at its address, from 1; returns the last one.
template <class Address>
uint32_t find_turns(const Address* address, uint32_t lanes, uint32_t* turn) {
  uint32_t most = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    turn[lane] = 1;
    for (uint32_t earlier = lanes & ((1u << lane) - 1); earlier != 0; earlier &= earlier - 1)
      turn[lane] += address[std::countr_zero(earlier)] == address[lane];
    most = std::max(most, turn[lane]);
  }
  return most;
}

/// This number of neighbouring sectors lies in a slice of L2, which serves one a cycle: a lane at an address (NVIDIA's
/// white paper of GK110), or all lanes with words of their own in the sector. Two histograms on GitHub (an Ada GPU of
/// 40 SMs and a Jetson Thor, some 2 and 1.5 GHz; read in copies that do not name them): one word 1 lane a cycle, 128
/// bytes 0.8 sectors, 1 KiB 1.5, 4 KiB 6.
constexpr uint32_t kSliceSectors = 16;

struct Distinct {
  uint64_t sector[kLanes * 2];
  uint32_t count = 0;
  uint32_t lines = 0;  ///< lines of 128 bytes
};

/// The sectors that the lanes' accesses touch.
void find_sectors(const uint64_t* address, uint32_t lanes, uint32_t bytes, Distinct& found) {
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint64_t at = address[std::countr_zero(left)];
    for (uint64_t sector = at >> kSectorBits; sector <= (at + bytes - 1) >> kSectorBits; ++sector) {
      bool known = false, known_line = false;
      for (uint32_t k = found.count; k-- > 0;) {
        known_line = known_line || found.sector[k] >> 2 == sector >> 2;
        if (found.sector[k] != sector) continue;
        known = true;
        break;
      }
      if (known) continue;
      found.lines += !known_line;
      found.sector[found.count++] = sector;
      if (found.count == kLanes * 2) return;
    }
  }
}

}  // namespace

ClusterTime::ClusterTime(const Cluster& cluster, LaunchTime& launch) : launch_(launch) {
  const Kernel& kernel = *launch.launch_.kernel;
  blocks_.resize(cluster.blocks.size());
  for (size_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].warps.resize(cluster.blocks[b]->warps.size());
    for (WarpClock& w : blocks_[b].warps) {
      w.ready.assign(kernel.register_bytes / 128 + 8, 0);
      w.predicates.assign(kernel.predicates + 1, 0);
    }
  }
  wave_ = static_cast<uint32_t>((cluster.number - launch.first_) / launch.per_wave_);
}

WarpClock& ClusterTime::clock(const Warp& w) { return blocks_[w.block->rank].warps[w.index]; }

void ClusterTime::to_l2(uint64_t sector, uint64_t count, bool write) {
  constexpr uint64_t kShift = kPageBits - kSectorBits;
  while (count > 0) {
    if (const uint32_t now = static_cast<uint32_t>(asked_ / launch_.epoch_bytes_); now != epoch_) {
      epoch_ = now;
      last_page_[0] = last_page_[1] = ~uint64_t{0};
    }
    const uint64_t page = sector >> kShift, here = std::min(count, kSectorsOfPage - sector % kSectorsOfPage);
    if (last_page_[write] != page) {
      last_page_[write] = page;
      last_[write] = nullptr;
      if ((hash_of(page) & (launch_.page_step_ - 1)) == 0) {
        Epoch& epoch = epochs_[epoch_];
        last_[write] = &(write ? epoch.written : epoch.read)[page];
      }
    }
    for (uint64_t k = 0; k < here && last_[write]; ++k)
      last_[write]->add(static_cast<uint32_t>((sector + k) % kSectorsOfPage));
    asked_ += 32 * static_cast<double>(here);
    work_.l2_bytes += 32 * static_cast<double>(here);
    sector += here;
    count -= here;
  }
}

/// 1 when the sector has to come from L2. L1 holds the reads of the block's other warps, which run at the same pace. It
/// also holds the warp's own reads while its block's fit.
uint32_t ClusterTime::read_global(BlockClock& block, uint32_t warp, WarpClock& clock, uint64_t sector) {
  constexpr uint64_t kShift = kPageBits - kSectorBits;
  if (block.last_page != sector >> kShift) {
    block.last_page = sector >> kShift;
    block.last = &block.l1.try_emplace(sector >> kShift).first->second;
  }
  uint32_t& last = (*block.last)[sector & (kSectorsOfPage - 1)];
  const uint32_t toucher = last >> kTouchBits;
  const uint32_t since = (clock.first_touches - last) & kTouchMask;
  const bool hit = toucher != 0 && (toucher != warp + 1 || since * 32.0 * static_cast<double>(block.warps.size()) < launch_.l1_bytes_);
  if (!hit) ++clock.first_touches;
  last = (warp + 1) << kTouchBits | (clock.first_touches & kTouchMask);
  return !hit;
}

/// Counts an access to memory and returns its latency. `joined`: it is part of a wider access that is counted already.
Cycle ClusterTime::access(Warp& w, const TimeNote& n, uint32_t lanes, WarpClock& clock, bool& joined) {
  const time_model::Chip& chip = *launch_.chip_;
  uint64_t address[kLanes];
  uint32_t shared[kLanes], in_shared = 0, in_local = 0, global = 0;
  const Addresses& from = n.kind == Kind::copy ? n.second : n.address;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint64_t at = from.base == kNoRef ? 0 : from.at(w, lane);
    address[lane] = at;
    const bool windowed = n.space == Space::generic;
    if (n.space == Space::shared || (windowed && (at & kWindowMask) == kSharedWindow)) {
      in_shared |= 1u << lane;
      shared[lane] = static_cast<uint32_t>(at & 0xffffff);
    } else if (n.space == Space::local || (windowed && (at & kWindowMask) == kLocalWindow)) {
      in_local |= 1u << lane;
    } else {
      global |= 1u << lane;
    }
  }
  Cycle latency = chip.alu;
  uint32_t bytes = n.bytes;
  if (in_shared && n.joins != TimeNote::kNoJoins) {
    const TimeJoin join = join_of(w.kernel().time->joins, n, clock.turn, shared, in_shared);
    joined = join.role == TimeJoin::other;
    if (joined) return chip.shared_latency;
    if (join.role == TimeJoin::first) {
      for (uint32_t left = in_shared; left != 0; left &= left - 1)
        shared[std::countr_zero(left)] += static_cast<uint32_t>(join.offset);
      bytes = join.bytes;
    }
  }
  if (in_shared && n.atomic) {
    latency = shared_atomic(n, shared, in_shared, clock);
  } else if (in_shared) {
    double cycles = bank_cycles(shared, in_shared, bytes);
    if (!n.write && all_equal(shared, in_shared)) cycles = std::min(cycles, chip.broadcast);
    work_.wavefronts += cycles;
    latency = chip.shared_latency + cycles - 1;
  }
  if (in_local) {  // spilled: lanes lie side by side, in L1
    work_.wavefronts += std::max(1.0, n.bytes / 4.0);
    latency = std::max(latency, chip.l1_latency);
  }
  if (global) {
    Distinct found;
    find_sectors(address, global, n.bytes, found);
    // Data of cp.async goes into shared memory (below), not into registers.
    if (n.kind != Kind::copy) work_.wavefronts += std::max<double>(found.lines, of_registers(global, n.bytes));
    uint32_t misses = 0;
    if (n.space == Space::constant) {
      misses = 0;
    } else if (n.write || n.bypasses_l1) {
      for (uint32_t k = 0; k < found.count; ++k) to_l2(found.sector[k], 1, n.write);
      if (n.atomic)
        for (uint32_t k = 0; k < found.count; ++k) to_l2(found.sector[k], 1, false);
      misses = found.count;
    } else {
      BlockClock& block = blocks_[w.block->rank];
      for (uint32_t k = 0; k < found.count; ++k)
        if (read_global(block, w.index, clock, found.sector[k])) {
          ++misses;
          to_l2(found.sector[k], 1, false);
        }
    }
    // If two blocks load the same data, the second finds it in L2.
    latency = misses ? (chip.l2_latency + chip.dram_latency) / 2 : chip.l1_latency;
    latency += found.lines - 1;
    if (n.atomic) {
      uint32_t turn[kLanes];
      const uint32_t turns = n.joined ? 1 : find_turns(address, global, turn);
      for (uint32_t k = 0; k < found.count; ++k) {
        uint32_t of_sector = 1;
        for (uint32_t left = n.joined ? 0 : global; left != 0; left &= left - 1)
          if (const int lane = std::countr_zero(left); address[lane] >> kSectorBits == found.sector[k])
            of_sector = std::max(of_sector, turn[lane]);
        atomics_[found.sector[k] / kSliceSectors] += of_sector;
      }
      latency += turns - 1;
    }
  }
  if (n.kind == Kind::copy) {
    for (uint32_t left = lanes; left != 0; left &= left - 1)
      shared[std::countr_zero(left)] = static_cast<uint32_t>(n.address.at(w, std::countr_zero(left)) & 0xffffff);
    if (lanes) work_.wavefronts += bank_cycles(shared, lanes, n.bytes);
  }
  return latency;
}

/// Lanes with the same bank are serialised at two cycles each, at equal addresses or not: 70 cycles for 32 lanes at an
/// address, 8 for one (Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking", arXiv 1903.07486; V100:
/// 66 and 6; quoted from notes). Adding 1 for nobody's use is another instruction (ATOMS.POPC.INC), which takes lanes
/// of an address together (ademeure/QuickRunCUDA on a B300, 22_atomic_smem: 24 cycles with all lanes at one address, 61
/// where they add different numbers).
Cycle ClusterTime::shared_atomic(const TimeNote& n, const uint32_t* address, uint32_t lanes, WarpClock& clock) {
  const time_model::Chip& chip = *launch_.chip_;
  const uint32_t words = bank_cycles(address, lanes, n.bytes);
  if (n.joined) {
    work_.wavefronts += 2 * words;
    return chip.shared_latency + 2 * (words - 1);
  }
  uint32_t of_bank[32] = {}, bank = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    bank = std::max(bank, ++of_bank[address[std::countr_zero(left)] / 4 & 31]);
  if (!n.retried) {
    work_.wavefronts += 2 * bank;
    return chip.shared_latency + 2 * (bank - 1);
  }
  // In each turn one lane of an address succeeds; the loop is a load, an addition, a compare and swap and a branch.
  uint32_t turn[kLanes];
  const uint32_t turns = find_turns(address, lanes, turn);
  work_.wavefronts += turns * words + bank * (turns + 1);
  work_.issued += 4 * turns - 1;
  clock.issued += 4 * turns - 1;
  work_.lsu += 2 * turns - 1;
  work_.fp32 += turns;
  return turns * (2 * chip.shared_latency + chip.alu);
}

const Instruction* ClusterTime::step(Warp& w, const Instruction* i) {
  const TimeTable& table = *w.kernel().time;
  const size_t number = static_cast<size_t>(i - w.kernel().code.data());
  const TimeNote& n = table.notes[number];
  WarpClock& c = clock(w);
  const time_model::Chip& chip = *launch_.chip_;
  // Its wait is over: it runs.
  if (c.barrier >= 0) [[unlikely]] {
    c.horizon = std::max(c.horizon, blocks_[w.block->rank].barriers[static_cast<size_t>(c.barrier)][c.phase & 1] + chip.barrier_latency);
    c.entry = c.horizon;
    c.issued = 0;
    c.barrier = -1;
  }
  if (c.waits_for_cluster) [[unlikely]] {
    c.horizon = std::max(c.horizon, cluster_phases_[c.cluster_phase - 1] + chip.barrier_latency);
    c.entry = c.horizon;
    c.issued = 0;
    c.waits_for_cluster = false;
  }
  if (i->flags & kLeader) {
    c.turn = c.begin == i && c.turn + 1 < n.turns ? c.turn + 1 : 0;
    c.begin = i;
    if (c.turn == 0) {  // unrolled turns are one basic block
      c.entry = std::max(c.horizon, c.entry + c.issued);
      c.horizon = c.entry;
      c.issued = 0;
    }
  }
  if (n.kind == Kind::none) return i->run(w, i);

  const uint32_t lanes = w.lanes(i);
  const uint32_t* const refs = table.refs.data() + n.first_ref;
  const auto when = [&](uint32_t ref) -> Cycle& {
    return ref & TimeTable::kPredicate ? c.predicates[std::min<size_t>(ref & ~TimeTable::kPredicate, c.predicates.size() - 1)]
                                       : c.ready[std::min<size_t>(ref, c.ready.size() - 1)];
  };
  Cycle begin = c.entry;
  for (uint32_t k = 0; k < n.reads; ++k) begin = std::max(begin, when(refs[k]));
  Cycle latency = chip.alu;
  bool joined = false;

  const auto new_block = [&](Cycle at) {
    c.entry = c.horizon = std::max({c.horizon, c.entry + c.issued, at});
    c.issued = 0;
  };
  switch (n.kind) {
    case Kind::access: {
      const bool shared = n.space == Space::shared;
      begin = std::max(begin, c.stored[shared]);
      latency = access(w, n, lanes, c, joined);
      if (n.write && !n.atomic) c.stored[shared] = begin;
      if (n.retried && n.space != Space::global && lanes) new_block(begin + latency);
      break;
    }
    case Kind::matrix_access:
      begin = std::max(begin, c.stored[1]);
      latency = access(w, n, n.imm == 4 ? ~0u : (1u << (8 * n.imm)) - 1, c, joined);
      break;
    case Kind::copy:
      c.copies = std::max(c.copies, begin + access(w, n, lanes, c, joined));
      break;
    case Kind::copy_commit:
      c.copy_groups.push_back(c.copies);
      break;
    case Kind::copy_wait:
      new_block(0);
      while (c.copy_groups.size() > n.imm) {
        new_block(c.copy_groups.front());
        c.copy_groups.pop_front();
      }
      begin = c.entry;
      break;
    case Kind::bulk_commit:
      c.bulk_groups.push_back(c.bulk);
      break;
    case Kind::bulk_wait:
      new_block(0);
      while (c.bulk_groups.size() > n.imm) {
        new_block(c.bulk_groups.front());
        c.bulk_groups.pop_front();
      }
      begin = c.entry;
      break;
    case Kind::wgmma:
    case Kind::mma: {
      const double share = n.kind == Kind::mma ? chip.mma_share : 1;
      const Cycle cycles = n.flop / (chip.tensor_bf16 * share / 4) + n.flop_f64 / (chip.tensor_f64 / 4);
      c.tensor_free = std::max(begin, c.tensor_free) + cycles;
      latency = c.tensor_free - begin + chip.mma_latency;
      break;
    }
    case Kind::wgmma_commit:
      c.matrix_groups.push_back(c.tensor_free + chip.mma_latency);
      break;
    case Kind::wgmma_wait:
      new_block(0);
      while (c.matrix_groups.size() > n.imm) {
        new_block(c.matrix_groups.front());
        c.matrix_groups.pop_front();
      }
      begin = c.entry;
      break;
    case Kind::barrier: {
      new_block(0);
      BlockClock& block = blocks_[w.block->rank];
      const size_t id = lanes ? w.in<uint32_t>(n.id)[std::countr_zero(lanes)] & 15 : 0;
      const Block::Barrier& state = w.block->barriers[id];
      Cycle& time = block.barriers[id][state.phase & 1];
      time = state.arrived == 0 ? c.entry : std::max(time, c.entry);
      if (n.waits && lanes) {
        c.barrier = static_cast<int32_t>(id);
        c.phase = state.phase;
      }
      break;
    }
    case Kind::cluster_arrive:
      new_block(0);
      if (++c.cluster_phase > cluster_phases_.size()) cluster_phases_.push_back(0);
      cluster_phases_[c.cluster_phase - 1] = std::max(cluster_phases_[c.cluster_phase - 1], c.entry);
      break;
    case Kind::cluster_wait:
      c.waits_for_cluster = c.cluster_phase > 0;
      break;
    default:
      latency = n.unit == Limit::lsu    ? chip.shared_latency
                : n.mufu > 0            ? chip.mufu_latency
                : n.unit == Limit::fp64 ? 2 * chip.alu
                                        : chip.alu;
  }
  c.horizon = std::max(c.horizon, begin);
  const Instruction* const next = i->run(w, i);
  // It will be tried again: it has not been executed.
  if (!next && w.current < w.groups.size() && w.groups[w.current].pc == i && n.kind == Kind::mbarrier_wait) return next;
  const bool folded = n.folded && c.turn > 0;
  for (uint32_t k = 0; k < n.writes; ++k) when(refs[n.reads + k]) = folded ? c.entry : begin + latency;
  if (joined || folded) return next;
  c.issued += n.issue;
  work_.issued += n.issue;
  work_.mufu += n.mufu;
  const double count = n.on_unit;
  switch (n.unit) {
    case Limit::fp32:
      work_.fp32 += count;
      break;
    case Limit::integer:
      work_.integer += count;
      break;
    case Limit::half:
      work_.half += count;
      break;
    case Limit::fp64:
      work_.fp64 += count;
      break;
    case Limit::mufu:
      work_.mufu += count;
      break;
    case Limit::lsu:
      work_.lsu += count;
      break;
    case Limit::tensor:
      (n.kind == Kind::mma ? work_.tensor_mma : work_.tensor_wgmma) += n.flop;
      work_.tensor_f64 += n.flop_f64;
      break;
    default:
      break;
  }
  return next;
}

void ClusterTime::bulk_issued(BulkCopy& copy) {
  WarpClock& c = clock(*copy.warp);
  const time_model::Chip& chip = *launch_.chip_;
  const bool stores = copy.form->way == BulkForm::Way::shared_to_global;
  const bool reduces = copy.form->op != Reduction::none;
  const auto note = [&](uint64_t at, uint64_t bytes) {
    const uint64_t first = at >> kSectorBits, count = ((at + bytes - 1) >> kSectorBits) - first + 1;
    to_l2(first, count, stores);
    if (stores && reduces) to_l2(first, count, false);
  };
  if (copy.form->way != BulkForm::Way::shared_to_shared) {
    if (!copy.form->tensor) {
      if (copy.bytes) note(copy.global, copy.bytes);
    } else {
      const uint64_t element = static_cast<uint64_t>(copy.box.element_bytes());
      for_each_line(copy.box, copy.place, [&](int, const BoxLine& line) {
        if (line.end > line.begin) note(line.data, static_cast<uint64_t>(line.end - line.begin) * element);
      });
    }
  }
  const double targets = std::max<double>(1, static_cast<double>(copy.arrivals.size()));
  work_.wavefronts += static_cast<double>(copy.bytes) / 128 * targets;
  // The bytes come at the rate of the SM's port.
  const Cycle done = std::max(c.horizon, c.entry) + chip.tma_latency + static_cast<double>(copy.bytes) / chip.sm_l2_bytes;
  copy.arrives = done;
  if (stores) c.bulk = std::max(c.bulk, done);
}

void ClusterTime::mbarrier_arrived(const Warp& w, const SharedPlace& place) {
  const WarpClock& c = clock(w);
  bytes_came(place, std::max(c.horizon, c.entry));
}

void ClusterTime::bytes_came(const SharedPlace& place, Cycle when) {
  BlockClock::Phases& phases = blocks_[place.block->rank].mbarriers[place.at];
  phases.pending = std::max(phases.pending, when);
}

void ClusterTime::mbarrier_phase_ended(const SharedPlace& place, bool odd) {
  BlockClock::Phases& phases = blocks_[place.block->rank].mbarriers[place.at];
  phases.done[odd] = phases.pending;
  phases.pending = 0;
}

void ClusterTime::mbarrier_waited(const Warp& w, const SharedPlace& place, bool odd) {
  WarpClock& c = clock(w);
  const Cycle done = blocks_[place.block->rank].mbarriers[place.at].done[odd] + launch_.chip_->barrier_latency;
  c.entry = c.horizon = std::max({c.horizon, c.entry + c.issued, done});
  c.issued = 0;
}

LaunchTime::LaunchTime(const Launch& launch) : launch_(launch), chip_(time_model::find_chip(options().gpu->key)) {
  if (!chip_) throw Fault(FaultCode::unsupported, cat("--time: the model of time has no figures of a ", options().gpu->key));
  const double cluster = static_cast<double>(launch.cluster.count());
  const double resident = std::max(1, launch.resident_blocks);
  clusters_ = launch.grid.count() / launch.cluster.count();
  per_wave_ = std::max<uint64_t>(1, static_cast<uint64_t>(resident * chip_->processors / cluster));
  const uint64_t waves = (clusters_ + per_wave_ - 1) / per_wave_;
  const uint64_t wanted = options().time_waves > 0 ? static_cast<uint64_t>(options().time_waves) : waves;
  first_ = wanted < waves ? (waves - 1 - wanted) / 2 * per_wave_ : 0;
  count_ = std::min(clusters_ - first_, wanted < waves ? wanted * per_wave_ : clusters_);
  const double resident_clusters = static_cast<double>(std::min(clusters_, per_wave_));
  epoch_bytes_ = std::max(4096.0, chip_->l2_capacity / 2 / resident_clusters);
  double pages = 0;  // pages of the given allocations, as far as it runs
  std::set<uint64_t> known;
  for_each_address(launch, [&](size_t, uint64_t, const Allocation& owner) {
    if (known.insert(owner.number).second) pages += static_cast<double>((owner.end - owner.begin) >> kPageBits);
  });
  page_step_ = std::bit_floor(static_cast<uint64_t>(
      std::max(1.0, pages * static_cast<double>(count_) / static_cast<double>(clusters_) / kNotedPages)));
  // A small grid leaves its blocks more of L1.
  const double on_one = std::clamp(std::ceil(static_cast<double>(launch.grid.count()) / chip_->processors), 1.0, resident);
  const double shared = on_one * (launch.kernel->static_shared + launch.dynamic_shared);
  l1_bytes_ = std::max(8192.0, (chip_->l1_bytes - shared)) / on_one;
  work_.blocks = static_cast<double>(launch.grid.count());
  work_.counted_blocks = static_cast<double>(count_) * cluster;
  work_.warps_per_block = static_cast<double>((launch.block.count() + kLanes - 1) / kLanes);
  work_.cluster_blocks = cluster;
  work_.resident_blocks = resident;
}

void LaunchTime::add(ClusterTime& cluster) {
  const std::lock_guard lock(mutex_);
  const time_model::Work& more = cluster.work_;
  work_.issued += more.issued;
  work_.fp32 += more.fp32;
  work_.integer += more.integer;
  work_.half += more.half;
  work_.fp64 += more.fp64;
  work_.mufu += more.mufu;
  work_.lsu += more.lsu;
  work_.tensor_wgmma += more.tensor_wgmma;
  work_.tensor_mma += more.tensor_mma;
  work_.tensor_f64 += more.tensor_f64;
  work_.wavefronts += more.wavefronts;
  work_.l2_bytes += more.l2_bytes;
  for (const auto& [part, cycles] : cluster.atomics_) atomics_[part] += cycles;
  for (const BlockClock& block : cluster.blocks_) {
    Cycle path = 0;
    for (const WarpClock& w : block.warps) path = std::max({path, w.horizon, w.entry + w.issued, w.bulk});
    work_.path += path;
  }
  for (const auto& [number, epoch] : cluster.epochs_) {
    Epoch& all = epochs_[uint64_t{cluster.wave_} << 32 | number];
    for (const auto& [page, sectors] : epoch.read)
      for (int k = 0; k < 2; ++k) all.read[page].bits[k] |= sectors.bits[k];
    for (const auto& [page, sectors] : epoch.written)
      for (int k = 0; k < 2; ++k) all.written[page].bits[k] |= sectors.bits[k];
  }
}

time_model::Work LaunchTime::work() {
  // A sector comes from memory unless an earlier epoch has touched it and L2 holds all sectors touched since. Written
  // sectors go there once an epoch.
  std::vector<uint64_t> order;
  for (const auto& [number, epoch] : epochs_) order.push_back(number);
  std::ranges::sort(order);
  std::vector<double> touched(order.size() + 1, 0);  // bytes up to an epoch
  std::unordered_map<uint64_t, std::array<uint32_t, kSectorsOfPage>> last;
  double from_memory = 0;
  const double sector = 32 * static_cast<double>(page_step_);  // bytes that a noted one stands for
  for (size_t e = 0; e < order.size(); ++e) {
    const Epoch& epoch = epochs_[order[e]];
    double distinct = 0;
    const auto look = [&](const Pages& all, bool write) {
      for (const auto& [page, sectors] : all) {
        std::array<uint32_t, kSectorsOfPage>& before = last[page];
        for (int k = 0; k < 2; ++k)
          for (uint64_t left = sectors.bits[k]; left != 0; left &= left - 1) {
            uint32_t& when = before[static_cast<size_t>(k * 64 + std::countr_zero(left))];
            const bool now = when == e + 1;
            const bool held = when != 0 && touched[e] - touched[when - 1] <= chip_->l2_capacity;
            if (write) work_.dram_written += sector;
            if (!write && !held) from_memory += sector;
            if (!now) distinct += sector;
            when = static_cast<uint32_t>(e + 1);
          }
      }
    };
    look(epoch.read, false);
    look(epoch.written, true);
    touched[e + 1] = touched[e] + distinct;
  }
  work_.dram_bytes = from_memory + work_.dram_written;
  for (const auto& [part, cycles] : atomics_) work_.atomics = std::max(work_.atomics, cycles);
  return work_;
}

}  // namespace timing
}  // namespace emulator::ptx
