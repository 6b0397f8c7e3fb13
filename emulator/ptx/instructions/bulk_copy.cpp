// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/bulk_copy.h"

#include <algorithm>

#include "emulator/machine/fresh.h"
#include "emulator/machine/options.h"
#include "emulator/machine/tensor_map.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/mbarrier.h"
#include "emulator/ptx/time/profile.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx {

namespace {

constexpr uint64_t kRun = 16;
constexpr uint32_t kTileAlignment = 128;

/// Between the plain order of a tile and shared memory, 16 bytes at a time: visit(offset in the tile, shared address,
/// bytes).
template <class Visit>
void for_each_run(uint32_t begin, uint64_t bytes, SwizzleMode swizzle, Visit&& visit) {
  if (swizzle == SwizzleMode::none) return visit(uint64_t{0}, uint64_t{begin}, bytes);
  for (uint64_t k = 0; k < bytes; k += kRun) visit(k, swizzled(begin + k, swizzle), kRun);
}

BulkGroups& groups_of(Warp& w) {
  if (!w.bulk) w.bulk = std::make_shared<BulkGroups>();
  return *static_cast<BulkGroups*>(w.bulk.get());
}

}  // namespace

void BulkCopy::fail(FaultCode code, const std::string& what) const {
  warp->fail_later(line, lane, code, cat(form->name, ": ", what));
}

/// The whole tile at this address, for the checks. A swizzle that finds all of its lines there changes only their
/// order.
std::vector<BlockChecks::Run> BulkCopy::runs(const SharedPlace& at) const {
  std::vector<BlockChecks::Run> found;
  const bool whole = (at.at | bytes) % static_cast<uint64_t>(swizzle_bytes(swizzle())) == 0;
  for_each_run(at.at, bytes, whole ? SwizzleMode::none : swizzle(), [&](uint64_t, uint64_t to, uint64_t count) {
    found.push_back({at.block->shared + to, count});
  });
  return found;
}

/// Calls act(memory, bytes) for what is read or written of global memory.
template <class Act>
void BulkCopy::for_each_global(const Act& act) const {
  if (form->way == BulkForm::Way::shared_to_shared) return;
  if (!form->tensor) return act(reinterpret_cast<const char*>(global), bytes);
  const uint64_t element = static_cast<uint64_t>(box.element_bytes());
  for_each_line(box, place, [&](int, const BoxLine& l) {
    if (l.end > l.begin) act(reinterpret_cast<const char*>(l.data), static_cast<uint64_t>(l.end - l.begin) * element);
  });
}

bool BulkCopy::repeats(const BulkCopy& other) const {
  return form == other.form && form->way == BulkForm::Way::shared_to_global && form->op == Reduction::none &&
         bytes == other.bytes && shared.at == other.shared.at && global == other.global && place.at == other.place.at &&
         place.offset == other.place.offset && std::memcmp(&box, &other.box, sizeof(box)) == 0;
}

void BulkCopy::note_issue() {
  const BlockChecks::Issuer by{*warp, lane, site, form->name};
  if (BlockChecks* const checks = race_checks_of(*warp->block)) {
    if (form->way != BulkForm::Way::global_to_shared) moment = checks->store_issued(by, runs(shared));
    if (form->op == Reduction::none)
      for (const Arrival& arrival : arrivals)
        arrival.to.block->checks->load_issued(by, runs(arrival.to), arrival.barrier.at);
    for (const Arrival& arrival : arrivals) checks->mbarrier_by_proxy(by, arrival.barrier);
  }
  if (is_repeated) return;
  for_each_global([&](const char* memory, uint64_t count) {
    warp->block->checks->global_access(by, memory, count, form->way == BulkForm::Way::shared_to_global,
                                       form->op != Reduction::none);
  });
}

void BulkCopy::note_done() const {
  if (is_repeated) return;
  for_each_global([&](const char* memory, uint64_t count) {
    warp->block->checks->global_written({*warp, lane, site, form->name}, memory, count);
  });
}

/// The whole box, line by line, as it would lie without a swizzle.
void BulkCopy::read() {
  if (was_read || sampled()) return;
  was_read = true;
  content.resize(bytes);
  if (form->way != BulkForm::Way::global_to_shared)
    for_each_run(shared.at, bytes, swizzle(), [&](uint64_t to, uint64_t from, uint64_t count) {
      std::memcpy(content.data() + to, shared.block->shared + from, count);
    });
  else if (form->tensor)
    gather_box(box, place, content.data(), [&](uint64_t from, uint64_t count) {
      return resolve_async(*warp, line, form->name, from, count, false);
    });
  else
    std::memcpy(content.data(), resolve_async(*warp, line, form->name, global, bytes, false), bytes);
}

void BulkCopy::reduce(char* to, const char* with, uint64_t count, TensorType type) const {
  const uint64_t element = static_cast<uint64_t>(bytes_of(type));
  for (uint64_t k = 0; k < count; k += element) reduce_element(to + k, with + k, type, form->op);
}

void BulkCopy::write_tensor() {
  const uint64_t element = static_cast<uint64_t>(box.element_bytes()),
                 line_bytes = static_cast<uint64_t>(box.line_bytes());
  for_each_line(box, place, [&](int number, const BoxLine& l) {
    const uint64_t inside = static_cast<uint64_t>(l.end - l.begin) * element;
    if (inside == 0) return;
    char* const to = resolve_async(*warp, line, form->name, l.data, inside, true, form->op != Reduction::none);
    const char* const from =
        content.data() + static_cast<uint64_t>(number) * line_bytes + static_cast<uint64_t>(l.begin) * element;
    if (form->op == Reduction::none)
      std::memcpy(to, from, inside);
    else
      reduce(to, from, inside, box.type);
  });
}

/// The content into shared memory.
void BulkCopy::bring(const SharedPlace& to) const {
  if (form->op != Reduction::none) return reduce(to.data(), content.data(), bytes, form->type);
  for_each_run(to.at, bytes, swizzle(), [&](uint64_t from, uint64_t at, uint64_t count) {
    std::memcpy(to.block->shared + at, content.data() + from, count);
  });
}

void BulkCopy::arrive(const Arrival& arrival) {
  const Block& block = *arrival.to.block;
  if (block.done() && !warp->block->done() && &block != warp->block && options().check_races)
    fail(FaultCode::launch_failure, cat("it arrives in block ", block.rank, " of the cluster, which has ended"));
  if (!sampled()) bring(arrival.to);
  if (BlockChecks* const checks = race_checks_of(block); checks && form->op == Reduction::none)
    checks->load_done({*warp, lane, site, form->name}, runs(arrival.to), arrival.barrier.at);
  if (form->op == Reduction::none) mark_written(arrival.to.data(), bytes);
  if (timing::ClusterTime* const time = warp->block->cluster->time) time->bytes_came(arrival.barrier, arrives);
  mbarrier_complete(*warp, line, lane, arrival.barrier, bytes, form->name);
}

void BulkCopy::block_ends(const Block& block) {
  const BlockChecks::Issuer by{*warp, lane, site, form->name};
  if (sampled()) return;
  if (std::ranges::any_of(arrivals, [&](const Arrival& arrival) { return arrival.to.block == &block; }))
    warp->block->checks->report_unawaited(
        by, "the block ends before the copy to its shared memory has arrived. Missing: the wait on its mbarrier.");
  else if (form->way == BulkForm::Way::shared_to_global && shared.block == &block && !was_read)
    warp->block->checks->report_unawaited(
        by, "the block ends while the copy may still read its shared memory. Missing: cp.async.bulk.wait_group.read.");
}

void BulkCopy::apply() {
  if (done) return;
  done = true;
  read();
  if (form->way != BulkForm::Way::shared_to_global) {
    for (const Arrival& arrival : arrivals) arrive(arrival);
  } else if (sampled()) {
    return;
  } else if (form->tensor) {
    write_tensor();
  } else {
    char* const to = resolve_async(*warp, line, form->name, global, bytes, true, form->op != Reduction::none);
    if (form->op == Reduction::none)
      std::memcpy(to, content.data(), bytes);
    else
      reduce(to, content.data(), bytes, form->type);
  }
  content = {};
}

namespace {

/// A tensor copy's operands, checked against its map.
void read_tensor(BulkCopy& copy, Warp& w, const Instruction* i, uint64_t map) {
  const BulkForm& form = *copy.form;
  const auto fail = [&](const std::string& what) {
    w.fail(i, copy.lane, FaultCode::launch_failure, cat(form.name, ": ", what));
  };
  if (map % 64) fail(cat("its tensor map at 0x", std::hex, map, " is not a multiple of 64"));
  std::memcpy(&copy.box, resolve_async(w, i->line, form.name, map, 128, false), sizeof(copy.box));
  if (const char* const why = why_unusable(copy.box)) fail(cat("its tensor map cannot be used: ", why));
  const TensorBox& box = copy.box;
  if (box.rank != form.rank) fail(cat(form.rank, " coordinates for a tensor map of ", int{box.rank}, " dimensions"));
  if (box.im2col != form.im2col) fail(cat("its tensor map is ", box.im2col ? "an im2col" : "a tiled", " one"));
  if (form.op != Reduction::none && !can_reduce(box.type, form.op)) fail("elements of this type cannot be reduced so");
  const auto value = [&](Ref ref) { return w.in<int32_t>(ref)[copy.lane]; };
  for (size_t d = 0; d < static_cast<size_t>(form.rank); ++d) copy.place.at[d] = value(form.at[d]);
  if (const char* const why = why_no_copy(box, copy.place, form.way == BulkForm::Way::shared_to_global))
    w.fail(i, copy.lane, FaultCode::illegal_instruction, cat(form.name, ": ", why));
  for (size_t d = 0; d < 3; ++d) {
    if (form.offset[d] == kNoRef) continue;
    // 16 bits are shared out among the spatial dimensions (CUTLASS, conv: can_implement of the im2col collectives).
    const int offset = value(form.offset[d]) & 0xffff, bits = 16 / std::max(1, box.rank - 2);
    if (bits < 16 && offset >> bits)
      fail(cat("offset ", offset, ", of ", bits, " bits in a map of ", int{box.rank}, " dimensions"));
    copy.place.offset[d] = offset;
  }
  copy.bytes = static_cast<uint64_t>(box.bytes());
}

/// The destinations of a load: one address, or the same offset in several blocks. Its destinations become NaN.
void begin_arrivals(BulkCopy& copy, Warp& w, const Instruction* i, uint32_t alignment) {
  const BulkForm& form = *copy.form;
  const int lane = copy.lane;
  const SharedPlace to = shared_place(w, i, lane, Where::shared, form.to.at(w, lane), copy.bytes, alignment, form.name);
  const SharedPlace barrier = shared_place(w, i, lane, Where::shared, form.barrier.at(w, lane), 8, 8, form.name);
  if (form.blocks == kNoRef) {
    if (to.block != barrier.block)
      w.fail(i, lane, FaultCode::launch_failure,
             cat(form.name, ": its mbarrier is in another block than its destination"));
    copy.arrivals.push_back({to, barrier});
  } else {
    const uint32_t blocks = w.in<uint32_t>(form.blocks)[lane] & 0xffffu;
    const Cluster& cluster = *w.block->cluster;
    if (blocks == 0 || blocks >> cluster.blocks.size())
      w.fail(i, lane, FaultCode::launch_failure,
             cat(form.name, ": blocks 0x", std::hex, blocks, " of a cluster of ", std::dec, cluster.blocks.size()));
    for (uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
      if ((blocks >> rank & 1) == 0) continue;
      Block* const block = cluster.block(rank);
      if (block->done() && block != w.block)
        w.fail(i, lane, FaultCode::launch_failure, cat(form.name, ": block ", rank, " of the cluster has ended"));
      copy.arrivals.push_back({{block, to.at}, {block, barrier.at}});
    }
  }
  for (const BulkCopy::Arrival& arrival : copy.arrivals) {
    mbarrier_at(w, i->line, lane, arrival.barrier, form.name);
    for (const auto& other : w.block->pending) {
      const auto* const load = dynamic_cast<const BulkCopy*>(other.get());
      if (!load || form.op != Reduction::none || load->form->op != Reduction::none) continue;
      for (const BulkCopy::Arrival& its : load->arrivals)
        if (its.to.block == arrival.to.block && its.to.at < arrival.to.at + copy.bytes &&
            arrival.to.at < its.to.at + load->bytes)
          w.fail(i, lane, FaultCode::launch_failure,
                 cat(form.name, ": it overwrites shared address ", std::max(its.to.at, arrival.to.at),
                     ", to which another copy of this block is still under way"));
    }
  }
  if (form.op == Reduction::none && !sampled())
    for (const BulkCopy::Arrival& arrival : copy.arrivals) std::memset(arrival.to.data(), 0xff, copy.bytes);
}

}  // namespace

const Instruction* issue_bulk(Warp& w, const Instruction* i) {
  const auto& form = *static_cast<const BulkForm*>(i->more);
  std::shared_ptr<BulkCopy> first;
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    auto copy = std::make_shared<BulkCopy>();
    copy->form = &form;
    copy->warp = &w;
    copy->lane = lane;
    copy->line = i->line;
    copy->site = static_cast<uint32_t>(i - w.kernel().code.data());
    const bool stores = form.way == BulkForm::Way::shared_to_global;
    const uint64_t to = form.to.at(w, lane), from = form.from.at(w, lane);
    uint32_t alignment = kRun;
    if (form.tensor) {
      read_tensor(*copy, w, i, stores ? to : from);
      alignment = kTileAlignment;
    } else {
      copy->bytes = w.in<uint32_t>(form.size)[lane];
      copy->global = stores ? to : from;
      if (copy->bytes % kRun)
        w.fail(i, lane, FaultCode::misaligned_address,
               cat(form.name, ": ", copy->bytes, " bytes are not a multiple of 16"));
      if (form.way != BulkForm::Way::shared_to_shared && copy->global % kRun)
        w.fail(i, lane, FaultCode::misaligned_address,
               cat(form.name, ": global address 0x", std::hex, copy->global, " is not a multiple of 16"));
    }
    if (form.way != BulkForm::Way::global_to_shared) {
      copy->shared = shared_place(w, i, lane, Where::shared, from, copy->bytes, alignment, form.name);
      if (copy->shared.block != w.block)
        w.fail(i, lane, FaultCode::launch_failure, cat(form.name, ": its source is another block's shared memory"));
    }
    if (stores)
      groups_of(w).lanes[static_cast<size_t>(lane)].open.push_back(copy);
    else
      begin_arrivals(*copy, w, i, alignment);
    // CUTLASS's epilogues let a whole warp issue a store of one tile: the order of equal stores is invisible.
    if (first)
      copy->is_repeated = copy->repeats(*first);
    else
      first = copy;
    if (LaunchProfile* const profile = w.block->grid->profile) profile->bulk(i, copy->bytes);
    if (w.block->checks) copy->note_issue();
    if (timing::ClusterTime* const time = w.block->cluster->time) time->bulk_issued(*copy);
    w.block->pending.push_back(std::move(copy));
  }
  return i + 1;
}

const Instruction* commit_bulk(Warp& w, const Instruction* i) {
  BulkGroups& groups = groups_of(w);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    BulkGroups::Lane& lane = groups.lanes[static_cast<size_t>(std::countr_zero(left))];
    lane.groups.push_back(std::move(lane.open));
    lane.open.clear();
  }
  return i + 1;
}

const Instruction* wait_bulk(Warp& w, const Instruction* i) {
  if (!w.bulk) return i + 1;
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    BulkGroups::Lane& lane = groups_of(w).lanes[static_cast<size_t>(std::countr_zero(left))];
    if (lane.groups.size() <= i->imm) continue;
    const size_t due = lane.groups.size() - i->imm;
    for (size_t g = 0; g < due; ++g)
      for (const auto& copy : lane.groups[g]) {
        if (i->aux) {
          copy->read();
          continue;
        }
        copy->apply();
        if (race_checks_of(*w.block)) copy->note_done();
        std::erase(w.block->pending, std::static_pointer_cast<Pending>(copy));
      }
    if (BlockChecks* const checks = race_checks_of(*w.block)) {
      uint32_t before = checks->moment();
      for (size_t g = due; g < lane.groups.size(); ++g)
        for (const auto& copy : lane.groups[g]) before = std::min(before, copy->moment);
      for (const auto& copy : lane.open) before = std::min(before, copy->moment);
      checks->stores_read(w, std::countr_zero(left), before);
    }
    if (!i->aux) lane.groups.erase(lane.groups.begin(), lane.groups.begin() + static_cast<std::ptrdiff_t>(due));
  }
  return i + 1;
}

}  // namespace emulator::ptx
