// SPDX-License-Identifier: Apache-2.0
// Copies by TMA between global and shared memory. A load fills its destination with NaN when it is issued and brings
// its bytes when no thread can run any more (in a random schedule: any time before), so that a missing wait
// computes NaN.
#include "emulator/source/bulk_copy.h"

#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/machine/tensor_map.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/memory.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

/// Ends the kernel unless all of [data, data + bytes) is in one live allocation.
class SourceBounds {
 public:
  SourceBounds(Worker& worker, int thread, const char* what, SourceLine where)
      : worker_(worker), thread_(thread), what_(what), where_(where) {}

  void check(uintptr_t data, size_t bytes) {
    if (data >= begin_ && data + bytes <= end_) return;
    Allocation owner;
    if (find_allocation(data, owner)) {
      begin_ = reinterpret_cast<uintptr_t>(owner.data);
      end_ = begin_ + owner.bytes;
      if (data >= begin_ && data + bytes <= end_) return;
    }
    const bool begins_inside = data >= begin_ && data < end_;
    worker_.report().fail_for(thread_, [&] {
      return cat(what_, " at ", where_,
                 ": its tensor map leads out of bounds: ", describe_address(begins_inside ? end_ : data));
    });
  }

 private:
  Worker& worker_;
  int thread_;
  const char* what_;
  SourceLine where_;
  uintptr_t begin_ = 0, end_ = 0;
};

TensorBox box_of(const void* map, const char* what, SourceLine where) {
  TensorBox box;
  std::memcpy(&box, map, sizeof(box));
  if (box.magic != TensorBox::kMagic)
    Worker::running()->report().fail(
        [&] { return cat(what, " at ", where, ": the tensor map was not made by tiled_map or im2col_map"); });
  return box;
}

void check_request(const TensorBox& box, const BoxRequest& request, const char* what, SourceLine where) {
  Worker& worker = *Worker::running();
  if (request.rank != box.rank)
    worker.report().fail([&] {
      return cat(what, " at ", where, ": ", request.rank, " coordinates for a tensor map of ", int{box.rank},
                 " dimensions");
    });
  if (request.im2col != box.im2col)
    worker.report().fail(
        [&] { return cat(what, " at ", where, ": the tensor map is ", box.im2col ? "an im2col" : "a tiled", " one"); });
  if (!box.im2col) return;
  // 16 bits are shared out among the spatial dimensions (CUTLASS, conv: can_implement of the im2col collectives).
  const int bits = 16 / (box.rank - 2);
  for (const int offset : request.offset)
    if (offset >> bits)
      worker.report().fail([&] {
        return cat(what, " at ", where, ": offset ", offset, ", of ", bits, " bits in a map of ", int{box.rank},
                   " dimensions");
      });
}

/// The swizzle's pattern begins where the tile does, as wgmma wants it.
void check_tile(const void* shared, int bytes, SwizzleMode swizzle, const char* what, SourceLine where) {
  Worker& worker = *Worker::running();
  const uintptr_t address = reinterpret_cast<uintptr_t>(shared);
  const uintptr_t alignment = swizzle == SwizzleMode::none ? 128 : swizzle_pattern(swizzle);
  if (address % alignment)
    worker.report().fail([&] {
      return cat(what, " at ", where, ": ", worker.describe_shared(shared), " is not a multiple of ", alignment,
                 swizzle == SwizzleMode::none
                     ? cat("")
                     : cat(", where the pattern of a ", swizzle_bytes(swizzle), "-byte swizzle begins"));
    });
  if (!worker.is_shared(address, static_cast<size_t>(bytes)))
    worker.report().fail([&] {
      return cat(what, " at ", where, ": ", bytes, " bytes from ", worker.describe_shared(shared),
                 " are not in the shared memory of this block");
    });
}

BoxPlace place_of(const BoxRequest& request) {
  BoxPlace place{};
  for (size_t d = 0; d < 5; ++d) place.at[d] = request.at[d];
  place.offset = {request.offset[0], request.offset[1], 0};
  return place;
}

void check_place(const TensorBox& box, const BoxRequest& request, bool store, const char* what, SourceLine where) {
  if (const char* const why = why_no_copy(box, place_of(request), store))
    Worker::running()->report().fail([&] { return cat(what, " at ", where, ": ", why); });
}

/// Between the plain order of lines and shared memory, 16 bytes at a time.
template <class Copy>
void for_each_run(const char* shared, int bytes, SwizzleMode swizzle, Copy&& copy) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(shared);
  for (int i = 0; i < bytes; i += 16) copy(i, swizzled(begin + static_cast<uintptr_t>(i), swizzle));
}

}  // namespace

void BulkCopies::add(Worker& worker, const BulkLoad& load) {
  const auto overlaps = [&](const BulkLoad& other) {
    const bool meet =
        (load.blocks ? load.blocks : 1u << worker.rank()) & (other.blocks ? other.blocks : 1u << worker.rank());
    return meet && load.shared < other.shared + other.bytes && other.shared < load.shared + load.bytes;
  };
  for (const BulkLoad& other : loads_)
    if (overlaps(other))
      worker.report().fail([&] {
        return cat("the load at ", load.where, " overwrites ", worker.describe_shared(load.shared),
                   " while the load at ", other.where, " is still under way to it");
      });
  loads_.push_back(load);
}

void BulkCopies::deliver(Worker& worker, size_t i) {
  const BulkLoad load = loads_[i];
  loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(i));
  static thread_local std::vector<char> lines;
  lines.resize(static_cast<size_t>(load.bytes));
  SourceBounds bounds(worker, load.thread, load.plain ? "bulk_load" : "tma_load", load.where);
  if (load.plain) {
    bounds.check(reinterpret_cast<uintptr_t>(load.plain), lines.size());
    std::memcpy(lines.data(), load.plain, lines.size());
  } else {
    gather_box(load.box, load.place, lines.data(), [&](uintptr_t data, size_t bytes) {
      bounds.check(data, bytes);
      return reinterpret_cast<const void*>(data);
    });
  }
  const SwizzleMode swizzle = load.plain ? SwizzleMode::none : load.box.swizzle;
  const auto arrive = [&](Worker& owner) {
    char* const shared = static_cast<char*>(worker.map_to(owner, load.shared));
    void* const barrier = worker.map_to(owner, load.barrier);
    for_each_run(shared, load.bytes, swizzle,
                 [&](int from, uintptr_t to) { std::memcpy(reinterpret_cast<void*>(to), lines.data() + from, 16); });
    const Mbarrier* const counted = owner.hopper().barriers.find(barrier);
    if (counted) check_load_done(owner, shared, load.bytes, counted->number, load.where);
    mbarrier_complete_bytes(owner, barrier, load.bytes, load.thread, load.where);
  };
  if (load.blocks == 0) return arrive(worker);
  for (int rank = 0; rank < worker.cluster_size(); ++rank)
    if ((load.blocks >> rank) & 1) arrive(worker.peer_of_load(rank, load.thread, load.where));
}

void BulkCopies::deliver_by_chance(Worker& worker, uint64_t random, bool last) {
  const size_t count = loads_.size();
  size_t i = random % count;
  if (late_ == kNone && (random >> 32) % 16 == 0) late_ = i;
  if (i == late_) {
    if (count == 1 && !last) return;
    if (count > 1) i = (i + 1) % count;
  }
  if (i == late_)
    late_ = kNone;
  else if (late_ != kNone && i < late_)
    --late_;
  deliver(worker, i);
}

void BulkCopies::commit(int thread) {
  int& groups = groups_[thread];
  for (BulkStore& store : stores_)
    if (store.thread == thread && store.group < 0) store.group = groups;
  ++groups;
}

void BulkCopies::read(BulkStore& store) {
  if (store.was_read) return;
  store.was_read = true;
  store.content.resize(static_cast<size_t>(store.bytes));
  for_each_run(store.shared, store.bytes, store.box.swizzle, [&](int to, uintptr_t from) {
    std::memcpy(store.content.data() + to, reinterpret_cast<const void*>(from), 16);
  });
}

void BulkCopies::write(Worker& worker, BulkStore& store) {
  read(store);
  const size_t bytes = static_cast<size_t>(store.box.element_bytes()),
               line_bytes = static_cast<size_t>(store.box.line_bytes());
  SourceBounds bounds(worker, store.thread, "tma_store", store.where);
  for_each_line(store.box, store.place, [&](int number, const BoxLine& line) {
    const size_t inside = static_cast<size_t>(line.end - line.begin) * bytes;
    if (!inside) return;
    bounds.check(line.data, inside);
    check_store_written(reinterpret_cast<const void*>(line.data), inside, store.thread, store.where);
    std::memcpy(
        reinterpret_cast<void*>(line.data),
        store.content.data() + static_cast<size_t>(number) * line_bytes + static_cast<size_t>(line.begin) * bytes,
        inside);
  });
}

void BulkCopies::wait(Worker& worker, int thread, int pending, bool only_reads) {
  const auto found = groups_.find(thread);
  if (found == groups_.end()) return;
  const int end = found->second - pending;
  std::optional<uint32_t> not_due;
  for (size_t i = 0; i < stores_.size();) {
    BulkStore& store = stores_[i];
    const bool due = store.thread == thread && store.group >= 0 && store.group < end;
    if (store.thread == thread && !due && !not_due) not_due = store.issued;
    if (due && only_reads) read(store);
    if (due && !only_reads) {
      write(worker, store);
      stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ++i;
  }
  check_stores_read(thread, not_due);
}

void BulkCopies::read_a_store(uint64_t random) {
  if (!stores_.empty()) read(stores_[random % stores_.size()]);
}

const BulkStore* BulkCopies::unread_of(int thread) const {
  for (const BulkStore& store : stores_)
    if (store.thread == thread && !store.was_read) return &store;
  return nullptr;
}

void BulkCopies::finish(Worker& worker) {
  for (BulkStore& store : stores_) write(worker, store);
  stores_.clear();
}

void check_tensor_map(const void* map, SourceLine where) { box_of(map, "prefetch_tensor_map", where); }

namespace {

/// Checks what the load names in every block that gets it, and makes its destination NaN.
void issue(BulkLoad& load, SwizzleMode swizzle, const char* what) {
  Worker& worker = *Worker::running();
  check_tile(load.shared, load.bytes, swizzle, what, load.where);
  worker.check_shared(what, load.barrier, 8, load.where);
  if (load.blocks >> worker.cluster_size())
    worker.report().fail([&] {
      return cat(what, " at ", load.where, ": blocks ", hex(load.blocks), " of a cluster of ", worker.cluster_size());
    });
  const auto begin_at = [&](Worker& owner) {
    char* const shared = static_cast<char*>(worker.map_to(owner, load.shared));
    const Mbarrier& barrier = mbarrier_for_load(owner, worker.map_to(owner, load.barrier), what, load.where);
    check_mbarrier_access(worker.map_to(owner, load.barrier), load.where);
    check_load_issued(owner, shared, load.bytes, barrier.number, load.where);
    std::memset(shared, 0xff, static_cast<size_t>(load.bytes));
  };
  if (load.blocks == 0) begin_at(worker);
  for (int rank = 0; rank < worker.cluster_size(); ++rank)
    if ((load.blocks >> rank) & 1) begin_at(worker.peer(rank, what, load.where));
  worker.hopper().copies.add(worker, load);
  worker.yield_sometimes();
}

}  // namespace

void tma_load(void* shared, const void* map, void* barrier, uint16_t blocks, const BoxRequest& request,
              SourceLine where) {
  const char* const what = request.im2col ? "tma_load_im2col" : blocks ? "tma_load_multicast" : "tma_load";
  const TensorBox box = box_of(map, what, where);
  check_request(box, request, what, where);
  check_place(box, request, false, what, where);
  BulkLoad load{box,         place_of(request),
                nullptr,     static_cast<char*>(shared),
                box.bytes(), blocks,
                barrier,     Worker::running()->current(),
                where};
  if (access_checked())
    for_each_line(box, load.place, [&](int, const BoxLine& line) {
      if (line.end > line.begin)
        check_read(reinterpret_cast<const void*>(line.data),
                   static_cast<size_t>(line.end - line.begin) * static_cast<size_t>(box.element_bytes()), where);
    });
  issue(load, box.swizzle, what);
}

void bulk_load(void* shared, const void* global, int bytes, void* barrier, SourceLine where) {
  Worker& worker = *Worker::running();
  const uintptr_t from = reinterpret_cast<uintptr_t>(global), to = reinterpret_cast<uintptr_t>(shared);
  if (bytes <= 0 || bytes % 16 || from % 16 || to % 16)
    worker.report().fail([&] {
      return cat("bulk_load at ", where, ": ", bytes, " bytes from ", hex(from), " to ", worker.describe_shared(shared),
                 ": all three are multiples of 16");
    });
  if (!worker.is_shared(to, static_cast<size_t>(bytes)))
    worker.report().fail([&] {
      return cat("bulk_load at ", where, ": ", bytes, " bytes from ", worker.describe_shared(shared),
                 " are not in the shared memory of this block");
    });
  check_read(global, static_cast<size_t>(bytes), where);
  BulkLoad load{{}, {}, global, static_cast<char*>(shared), bytes, 0, barrier, worker.current(), where};
  worker.check_shared("bulk_load", barrier, 8, where);
  const Mbarrier& counted = mbarrier_for_load(worker, barrier, "bulk_load", where);
  check_mbarrier_access(barrier, where);
  check_load_issued(worker, load.shared, bytes, counted.number, where);
  std::memset(shared, 0xff, static_cast<size_t>(bytes));
  worker.hopper().copies.add(worker, load);
  worker.yield_sometimes();
}

void tma_store(const void* map, const void* shared, const BoxRequest& request, SourceLine where) {
  Worker& worker = *Worker::running();
  const TensorBox box = box_of(map, "tma_store", where);
  check_request(box, request, "tma_store", where);
  check_place(box, request, true, "tma_store", where);
  check_tile(shared, box.bytes(), box.swizzle, "tma_store", where);
  const uint32_t issued = check_store_issued(shared, box.bytes(), where);
  worker.hopper().copies.add(BulkStore{box,
                                       place_of(request),
                                       static_cast<const char*>(shared),
                                       box.bytes(),
                                       worker.current(),
                                       -1,
                                       where,
                                       issued,
                                       false,
                                       {}});
  worker.yield_sometimes();
}

void tma_store_commit(SourceLine) { Worker::running()->hopper().copies.commit(Worker::running()->current()); }

void tma_store_wait(int pending, bool only_reads, SourceLine) {
  Worker& worker = *Worker::running();
  worker.hopper().copies.wait(worker, worker.current(), pending, only_reads);
}

}  // namespace emulator::source
