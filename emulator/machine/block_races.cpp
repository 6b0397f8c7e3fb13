// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/block_races.h"

#include <algorithm>
#include <atomic>

#include "emulator/machine/fault.h"

namespace emulator {

namespace {

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

/// Calls act(page, first cell, cells, address) for the pages of a range.
template <class Act>
void for_each_page(const char* memory, uint64_t bytes, const Act& act) {
  uintptr_t at = number(memory);
  for (const uintptr_t end = at + bytes; at < end;) {
    const size_t here = std::min<uintptr_t>(end, (at | (ShadowPage::kBytes - 1)) + 1) - at;
    ShadowPage& page = Shadow::get().page(at, here);
    act(page, page.cell(at), here >> page.cell_shift, at);
    at += here;
  }
}

}  // namespace

void BlockRaces::begin(LaunchClock& launch, uint64_t cluster, uint32_t blocks, uint32_t rank, uint32_t threads) {
  static std::atomic<uint32_t> generation{0};
  if (const uint32_t now = LaunchClock::generation(); generation.exchange(now) != now) Shadow::get().clear();
  first_block_ = launch.first_block() + static_cast<uint32_t>(cluster) * blocks;
  blocks_ = blocks;
  rank_ = rank;
  threads_ = threads;
  clock_.begin(launch, first_block_ + rank, static_cast<int>(threads), first_block_, blocks);
  if (!views_used_) return;
  views_used_ = false;
  fenced_ = init_fenced_ = {};
  mbarrier_keys_.clear();
  mbarriers_.clear();
  named_.fill({});
  cluster_ = {};
  warpgroups_.fill({});
}

/// Kept from the first instruction on that needs them.
Views& BlockRaces::views() {
  if (views_used_) return views_;
  views_used_ = true;
  views_.rank = static_cast<int>(rank_);
  views_.first_block = first_block_;
  views_.blocks = blocks_;
  views_.of_thread.resize(threads_);
  for (View& view : views_.of_thread) view.reset(blocks_, threads_);
  clock_.use_views(&views_);
  return views_;
}

Handover& BlockRaces::handover(Handover& one) {
  views();
  if (one.ended.empty()) one.reset(blocks_, threads_);
  return one;
}

void BlockRaces::barrier_arrive(int thread, size_t id) { clock_.release(thread, handover(named_[id]).arriving); }
void BlockRaces::barrier_complete(size_t id) {
  Handover& barrier = handover(named_[id]);
  barrier.ended.learn(barrier.arriving);
}
void BlockRaces::barrier_acquire(int thread, size_t id) { clock_.acquire(thread, named_[id].ended); }

void BlockRaces::cluster_arrive(int thread, bool relaxed) {
  views();
  BlockRaces& keeper = peer(0);
  View& arriving = keeper.handover(keeper.cluster_).arriving;
  if (relaxed)
    clock_.release_fenced(thread, arriving);
  else
    clock_.release(thread, arriving);
}
void BlockRaces::cluster_complete() {
  BlockRaces& keeper = peer(0);
  Handover& barrier = keeper.handover(keeper.cluster_);
  barrier.ended.learn(barrier.arriving);
}
void BlockRaces::cluster_acquire(int thread) {
  views();
  BlockRaces& keeper = peer(0);
  clock_.acquire(thread, keeper.handover(keeper.cluster_).ended);
}

/// The number of an mbarrier, in the order in which they are first seen.
int BlockRaces::mbarrier_number(uint32_t key) {
  const auto found = std::ranges::find(mbarrier_keys_, key);
  const auto index = found - mbarrier_keys_.begin();
  if (found == mbarrier_keys_.end()) {
    views();
    mbarrier_keys_.push_back(key);
    mbarriers_.emplace_back();
  }
  return static_cast<int>(index);
}
Handover& BlockRaces::mbarrier(uint32_t key) { return handover(mbarriers_[static_cast<size_t>(mbarrier_number(key))]); }

void BlockRaces::mbarrier_init(const Actor& by, const char* memory) {
  const Run word[] = {{memory, 8}};
  visit_runs<true>(by, stamp_of(by.thread), word, true);
}

void BlockRaces::mbarrier_use(const Actor& by, const char* memory) {
  const Run word[] = {{memory, 8}};
  visit_runs<true>(by, stamp_of(by.thread) | stamp::kStrong, word, false);
}

void BlockRaces::mbarrier_arrive(int thread, BlockRaces& owner, uint32_t key, bool relaxed) {
  views();
  View& arriving = owner.mbarrier(key).arriving;
  if (relaxed)
    clock_.release_fenced(thread, arriving);
  else
    clock_.release(thread, arriving);
}

void BlockRaces::mbarrier_phase(uint32_t key) {
  Handover& barrier = mbarrier(key);
  barrier.ended.learn(barrier.arriving);
}

void BlockRaces::mbarrier_acquire(int thread, uint32_t key) { clock_.acquire(thread, mbarrier(key).ended); }

void BlockRaces::fence(int thread, View& fenced) {
  views();
  if (fenced.empty()) fenced.reset(blocks_, threads_);
  clock_.release(thread, fenced);
}

/// Whether some thread that knew of an access, in this block or in that of the access, has run such a fence since.
bool BlockRaces::is_fenced(uint64_t accessed, View BlockRaces::* fences) {
  const int rank = views_.rank_of(stamp::block(accessed));
  if (rank < 0 || proxy::is_proxy(stamp::who(accessed)) || stamp::under_way(accessed)) return true;
  const auto by = [&](const View& fenced) { return !fenced.empty() && clock_.in_view(fenced, rank, accessed); };
  return by(this->*fences) || (rank != views_.rank && by(peer(static_cast<uint32_t>(rank)).*fences));
}

std::optional<Conflict> BlockRaces::unfenced_init(const char* memory) {
  views();
  constexpr size_t kBytes = 8;
  ShadowPage& page = Shadow::get().page(number(memory), kBytes);
  const Cell cell(page, page.cell(number(memory)));
  const uint64_t made = cell.write();
  if (is_fenced(made) || is_fenced(made, &BlockRaces::init_fenced_)) return std::nullopt;
  return Conflict{made, cell.write_at(), 0};
}

void BlockRaces::copy_issued(int thread, const Copy& copy) {
  const uint64_t mark = under_way(thread);
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given == 0) return;
  const Run from[] = {{copy.from, copy.given}};
  visit_runs<false>({thread, copy.at, "cp.async"}, mark, from, false);
}

void BlockRaces::copy_done(const Copy& copy, uint64_t mark, int thread) {
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given != 0) restamp_range(copy.from, copy.given, under_way(thread), mark);
}

void BlockRaces::copy_done(int thread, const Copy& copy) { copy_done(copy, stamp_of(thread), thread); }

void BlockRaces::copy_done(int thread, const Copy& copy, BlockRaces& owner, uint32_t mbarrier) {
  // Only threads that wait for that barrier know of it, as for a load by TMA.
  copy_done(copy, clock_.now() | static_cast<uint64_t>(proxy::load(owner.mbarrier_number(mbarrier))), thread);
}

void BlockRaces::copies_told(BlockRaces& owner, uint32_t mbarrier) {
  views();
  uint32_t& known = owner.mbarrier(mbarrier).arriving.at(views_.rank, proxy::load(owner.mbarrier_number(mbarrier)));
  known = std::max(known, moment());
}

void BlockRaces::load_issued(const Actor& by, std::span<const Run> runs, BlockRaces& owner, uint32_t mbarrier) {
  owner.views();
  views();
  const uint64_t mark = stamp::make(owner.clock_.block(), stamp::kUnderWay) |
                        static_cast<uint64_t>(proxy::load(owner.mbarrier_number(mbarrier)));
  visit_runs<true>(by, mark, runs, true);
}

void BlockRaces::load_done(Site at, std::span<const Run> runs, uint32_t mbarrier) {
  const int loads = proxy::load(mbarrier_number(mbarrier));
  Handover& barrier = this->mbarrier(mbarrier);
  for (const Run& run : runs) stamp_range(run.memory, run.bytes, clock_.now() | static_cast<uint64_t>(loads), at);
  barrier.arriving.at(views_.rank, loads) = moment();
}

uint32_t BlockRaces::store_issued(const Actor& by, std::span<const Run> runs) {
  views();
  clock_.advance();
  const uint64_t mark = clock_.now() | static_cast<uint64_t>(proxy::store(by.thread / 32));
  visit_runs<true>(by, mark, runs, false);
  return clock_.tick();
}

void BlockRaces::stores_read(int thread, uint32_t before) {
  views();
  uint32_t& known = clock_.view(thread).at(views_.rank, proxy::store(thread / 32));
  known = std::max(known, before);
}

void BlockRaces::global_access(const Actor& by, const char* memory, uint64_t bytes, bool write, bool reduces) {
  const Run run[] = {{memory, bytes}};
  uint64_t mark = stamp_of(by.thread);
  if (reduces)
    mark |= stamp::kStrong;
  else if (write)
    mark = under_way(by.thread);
  visit_runs<false>(by, mark, run, write);
}

void BlockRaces::global_written(int thread, const char* memory, uint64_t bytes) {
  clock_.global_writes(thread / 32, 1u << thread % 32);
  restamp_range(memory, bytes, under_way(thread), stamp_of(thread));
}

bool BlockRaces::wgmma_issued(int thread, size_t count) {
  Warpgroup& group = warpgroups_[static_cast<size_t>(thread) / 128];
  if (count < group.first + group.wgmmas.size()) return false;
  views();
  clock_.advance();
  clock_.now();
  group.wgmmas.push_back({clock_.tick(), {}});
  constexpr size_t kMost = 4096;  // no reader lags that far
  if (group.wgmmas.size() == 2 * kMost) {
    group.wgmmas.erase(group.wgmmas.begin(), group.wgmmas.begin() + kMost);
    group.first += kMost;
  }
  return true;
}

/// The hardware's order, on which programs rely: each warp of a warpgroup reads its own rows of a when it issues the
/// wgmma, and all of b. The wgmma is a single operation: its reads have the moment of its first issue, and are awaited
/// together.
void BlockRaces::wgmma_read(const Actor& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b) {
  Warpgroup& group = warpgroups_[static_cast<size_t>(by.thread) / 128];
  if (count < group.first) return;
  Wgmma& wgmma = group.wgmmas[count - group.first];
  const uint64_t mark =
      stamp::make(clock_.block(), wgmma.tick) | static_cast<uint64_t>(proxy::warpgroup(by.thread / 128));
  visit_runs<true>(by, mark, rows_of_a, false);
  if (!b.empty()) return visit_runs<true>(by, mark, b, false, &wgmma.b);
  // Later warps read the same b, but each must know by itself that b is there.
  for (const Source& source : wgmma.b)
    if (!clock_.ordered<true>(source.written, by.thread, source.address))
      report(by, {source.written, source.at, by.thread % 32}, true, source.address, source.bytes);
}

void BlockRaces::wgmma_waited(int warp, size_t pending) {
  views();
  const int group = warp / 4;
  Warpgroup& its = warpgroups_[static_cast<size_t>(group)];
  const uint32_t before = pending - its.first < its.wgmmas.size() ? its.wgmmas[pending - its.first].tick : moment();
  const int end = std::min(warp * 32 + 32, static_cast<int>(threads_));
  for (int thread = warp * 32; thread < end; ++thread) {
    uint32_t& known = clock_.view(thread).at(views_.rank, proxy::warpgroup(group));
    known = std::max(known, before);
  }
}

const char* BlockRaces::kind_text(const Conflict& conflict, bool shared, const Words& words) {
  const int who = stamp::who(conflict.stamp);
  const bool wrote = stamp::wrote(conflict.stamp);
  if (proxy::is_load(who)) return words.load;
  if (proxy::is_store(who)) return words.store;
  if (proxy::is_proxy(who)) return "wgmma";
  if (stamp::under_way(conflict.stamp)) return shared || !wrote ? "cp.async" : words.store;
  if (stamp::strong(conflict.stamp)) return wrote ? words.strong_write : words.strong_read;
  return wrote ? "write" : "read";
}

std::string BlockRaces::order_text(const Actor& by, const Conflict& conflict, const Words& words) const {
  const uint64_t s = conflict.stamp;
  const int who = stamp::who(s);
  const char *missing, *not_waited = "";
  if (proxy::is_load(who)) {
    if (stamp::under_way(s)) not_waited = "No thread has waited for the copy. ";
    missing = words.load_wait;
  } else if (proxy::is_store(who)) {
    missing = words.store_wait;
  } else if (proxy::is_proxy(who)) {
    missing = words.wgmma_wait;
  } else if (stamp::under_way(s)) {
    return "No thread has waited for the copy.";
  } else {
    const bool near = stamp::block(s) - first_block_ < blocks_;
    const char* const by_distance[] = {"the wait for the copy", "__syncwarp",
                                       views_used_ ? "__syncthreads or an mbarrier" : "__syncthreads",
                                       near ? words.cluster_barrier : words.between_blocks};
    const uint64_t mine = stamp::make(clock_.block(), 0) | static_cast<uint64_t>(by.thread);
    missing = by_distance[stamp::distance(mine, s)];
  }
  return cat(not_waited, "Nothing orders the two (missing: ", missing, ").");
}

bool BlockRaces::is_own(const Actor& by, const Conflict& conflict) const {
  const int who = stamp::who(conflict.stamp);
  return stamp::block(conflict.stamp) == clock_.block() && !proxy::is_proxy(who) && !stamp::is_warp(who) &&
         who % stamp::kThreads == by.thread;
}

template <bool kShared>
void BlockRaces::visit_runs(const Actor& by, uint64_t mark, std::span<const Run> runs, bool write,
                            std::vector<Source>* sources) {
  const uint64_t now = stamp_of(by.thread);
  const bool by_proxy = proxy::is_proxy(stamp::who(mark));
  const int warp = by.thread / 32;
  Visitor<kShared> visitor{
      clock_, clock_.glance<kShared>(static_cast<uint32_t>(warp)), now, mark, by.at, warp * 32, 1u << by.thread % 32};
  // A tile has a single writer and a single reader: the answer for a cell holds for the next.
  uint64_t known_write = 0, known_read = 0, last_read = 0, last_other = 0;
  const bool fences_count = kShared && by_proxy;
  const auto is_known = [&](uint64_t s) {
    return s == known_read || ((visitor.glance(s, now) || ((s ^ mark) & (stamp::kBlockMask | stamp::kWhoMask)) == 0) &&
                               !(fences_count && write && !is_fenced(s)));
  };
  for (const Run& run : runs)
    for_each_page(run.memory, run.bytes, [&](ShadowPage& page, size_t first, size_t cells, uintptr_t at) {
      const CellRow row{page, first, cells, kOneStamp, mark, by.at};
      size_t k = 0;
      if (mark == now) k = write ? write_row(row, 0, visitor.glance).done : read_row(row, 0, visitor.glance, true).done;
      for (; k < cells; ++k) {
        constexpr size_t kFour = ShadowPage::Cells::kCount;
        if ((first + k) % kFour == 0 && cells - k >= kFour &&
            replace_four(page.four(first + k), known_write, last_read, last_other, mark, by.at, write)) {
          k += kFour - 1;
          continue;
        }
        const Cell cell(page, first + k);
        const uint64_t written = cell.write(), read = cell.read(0), other = cell.read(1);
        if (written == known_write && ((read | other) & stamp::kWrote) == 0 && is_known(read) &&
            (!write || is_known(other))) {
          last_read = read;
          last_other = other;
          if (write) {
            cell.write() = mark | stamp::kWrote;
            cell.write_at() = by.at;
            cell.read(0) = cell.read(1) = 0;
          } else {
            cell.read(0) = mark;
            cell.read_at(0) = by.at;
          }
          continue;
        }
        const uintptr_t address = at + (k << page.cell_shift);
        const Conflict before[] = {
            {written, cell.write_at(), 0}, {read, cell.read_at(0), 0}, {other, cell.read_at(1), 0}};
        // The proxy must be fenced from threads' writes, and before its writes from threads' reads.
        const auto unfenced = std::find_if(before, before + (write ? 3 : 1), [&](const Conflict& access) {
          return fences_count && !is_fenced(access.stamp);
        });
        if (!(write ? visitor.write(cell, address) : visitor.read(cell, address))) {
          report(by, visitor.conflict, kShared, address, run.bytes);
        } else if (unfenced != before + (write ? 3 : 1)) {
          report_unfenced(by, write, *unfenced, address);
        } else {
          if (sources && written != known_write) sources->push_back({written, cell.write_at(), address, run.bytes});
          known_write = written;
          if (write) known_read = read;
        }
      }
    });
}

template void BlockRaces::visit_runs<true>(const Actor&, uint64_t, std::span<const Run>, bool, std::vector<Source>*);
template void BlockRaces::visit_runs<false>(const Actor&, uint64_t, std::span<const Run>, bool, std::vector<Source>*);

void BlockRaces::stamp_range(const char* memory, uint64_t bytes, uint64_t mark, Site site) {
  for_each_page(memory, bytes, [&](ShadowPage& page, size_t first, size_t cells, uintptr_t) {
    for (size_t k = first; k < first + cells; ++k) {
      const Cell cell(page, k);
      cell.write() = mark | stamp::kWrote;
      cell.write_at() = site;
      cell.read(0) = cell.read(1) = 0;
    }
  });
}

/// Changes the stamps of begun writes, to done, say.
void BlockRaces::restamp_range(const char* memory, uint64_t bytes, uint64_t from, uint64_t to) {
  for_each_page(memory, bytes, [&](ShadowPage& page, size_t first, size_t cells, uintptr_t) {
    for (size_t k = first; k < first + cells; ++k) {
      const Cell cell(page, k);
      if (cell.write() == (from | stamp::kWrote)) cell.write() = to | stamp::kWrote;
      for (int slot = 0; slot < 2; ++slot)
        if (cell.read(slot) == from) cell.read(slot) = to;
    }
  });
}

}  // namespace emulator
