// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/timeline.h"
#include "emulator/nccl/communicator.h"
#include "emulator/nccl/reduction.h"

namespace emulator::nccl {
namespace {

std::string text_of(const Collective& call) { return cat("collective #", call.number, " (", call.what.text(), ')'); }

/// A collective of one rank in a lane: rounds in which each rank writes a chunk for the others to read. The chunks of
/// two rounds exist at a time, so a rank is at most one round ahead of the slowest.
class Exchange {
 public:
  Exchange(Communicator& c, Segment& s, const Collective& call, int lane, bool in_order)
      : c_(c), s_(s), call_(call), lane_(lane), in_order_(in_order), mine_(s.side(lane, c.rank())) {}

  /// Returns when all ranks have begun this very collective: the predicted clock of the last.
  double enter();
  /// Where this rank writes in the round that begins now.
  std::byte* begin() {
    for (int r = 0; r < c_.size(); ++r) wait(r, [this, r] { return s_.side(lane_, r).read.load() + 1 >= round_; });
    return s_.chunk(lane_, c_.rank(), round_);
  }
  /// Where it writes in the round after. Only after reading all others' chunks of this round: a writer of those has
  /// read the round before, which used this chunk.
  std::byte* next() const { return s_.chunk(lane_, c_.rank(), round_ + 1); }
  void publish() {
    mine_.written.store(round_ + 1);
    c_.ring_all(s_);
  }
  /// That rank's chunk.
  const std::byte* of(int rank) {
    wait(rank, [this, rank] { return s_.side(lane_, rank).written.load() > round_; });
    return s_.chunk(lane_, rank, round_);
  }
  void end() {
    mine_.read.store(++round_);
    c_.ring_all(s_);
  }
  /// Reduces elements that lie `offset` bytes into the chunks of all ranks.
  void reduce_chunks(size_t offset, std::byte* out, size_t count);

 private:
  template <class Done>
  void wait(int rank, const Done& done) {
    if (done()) return;
    c_.wait(
        s_, done, [rank] { return rank; }, [this] { return text_of(call_); }, in_order_);
  }

  Communicator& c_;
  Segment& s_;
  const Collective& call_;
  const int lane_;
  const bool in_order_;
  LaneSide& mine_;
  uint64_t round_ = mine_.read.load();
  std::vector<Part> parts_;
};

double Exchange::enter() {
  uint64_t factor = call_.factor;
  if (call_.device_factor) std::memcpy(&factor, call_.device_factor, size_of(call_.what.dtype()));
  const uint64_t turn = mine_.entered.load() + 1;
  LaneSide::Entry& entry = mine_.entries[turn % 2];
  entry.number.store(call_.number);
  entry.word.store(call_.what.word());
  entry.count.store(call_.what.count);
  entry.factor.store(factor);
  entry.arrived.store(timeline::now());
  mine_.entered.store(turn);
  c_.ring_all(s_);
  parts_.resize(static_cast<size_t>(c_.size()));
  double last = 0;
  for (int r = 0; r < c_.size(); ++r) {
    wait(r, [this, r, turn] { return s_.side(lane_, r).entered.load() >= turn; });
    const LaneSide::Entry& theirs = s_.side(lane_, r).entries[turn % 2];
    const Descriptor what = Descriptor::of(theirs.word.load(), theirs.count.load());
    if (theirs.number.load() != call_.number || what != call_.what) {
      c_.fail(ncclInvalidUsage, cat("rank ", c_.rank(), " runs ", text_of(call_), ", rank ", r, " collective #",
                                    theirs.number.load(), " (", what.text(), ')'));
      throw Stopped{};
    }
    parts_[static_cast<size_t>(r)].factor = theirs.factor.load();
    last = std::max(last, theirs.arrived.load());
  }
  return last;
}

void Exchange::reduce_chunks(size_t offset, std::byte* out, size_t count) {
  for (int r = 0; r < c_.size(); ++r) parts_[static_cast<size_t>(r)].data = of(r) + offset;
  reduce(call_.what, parts_, out, count);
}

/// Received bytes count as written.
void receive(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  mark_written(to, bytes);
}

/// Each rank reduces a slice of every chunk; then `root`, or all without one, gather the slices.
void reduce_all(Exchange& x, const Collective& call, int rank, int ranks) {
  const size_t width = size_of(call.what.dtype()), per_round = Segment::kChunk / width;
  for (size_t done = 0; done < call.what.count; done += per_round) {
    const size_t count = std::min(per_round, call.what.count - done);
    const auto slice = [&](int r) { return count * static_cast<size_t>(r) / static_cast<size_t>(ranks) * width; };
    std::memcpy(x.begin(), call.send + done * width, count * width);
    x.publish();
    x.reduce_chunks(slice(rank), x.next() + slice(rank), (slice(rank + 1) - slice(rank)) / width);
    x.end();
    x.publish();
    if (call.what.root < 0 || call.what.root == rank)
      for (int r = 0; r < ranks; ++r)
        receive(call.recv + done * width + slice(r), x.of(r) + slice(r), slice(r + 1) - slice(r));
    x.end();
  }
}

/// The others: a chunk is whole, or has a piece for each rank.
void exchange(Exchange& x, const Collective& call, int rank, int ranks) {
  const Kind kind = call.what.kind;
  const bool pieces = kind == Kind::reduce_scatter || kind == Kind::all_to_all || kind == Kind::scatter;
  const bool from_root = kind == Kind::broadcast || kind == Kind::scatter, is_root = call.what.root == rank;
  const size_t width = size_of(call.what.dtype()), block = call.what.bytes();
  const size_t per_round = Segment::kChunk / width / static_cast<size_t>(pieces ? ranks : 1);
  const auto times = [](int r, size_t bytes) { return static_cast<size_t>(r) * bytes; };
  for (size_t done = 0; done < call.what.count; done += per_round) {
    const size_t count = std::min(per_round, call.what.count - done), bytes = count * width, offset = done * width;
    if (!from_root || is_root) {
      std::byte* const chunk = x.begin();
      for (int r = 0; r < (pieces ? ranks : 1); ++r)
        std::memcpy(chunk + times(r, bytes), call.send + times(r, block) + offset, bytes);
    }
    x.publish();
    if (kind == Kind::reduce_scatter) {
      x.reduce_chunks(times(rank, bytes), call.recv + offset, count);
      mark_written(call.recv + offset, bytes);
    } else if (from_root) {
      receive(call.recv + offset, x.of(call.what.root) + (pieces ? times(rank, bytes) : 0), bytes);
    } else if (kind != Kind::gather || is_root) {
      for (int r = 0; r < ranks; ++r)
        receive(call.recv + times(r, block) + offset, x.of(r) + (pieces ? times(rank, bytes) : 0), bytes);
    }
    x.end();
  }
}

/// As NCCL would run it, on the links of timeline::cluster().
collective_time::Cost predict(const Descriptor& what, const collective_time::Places& places) {
  if (!timeline::cluster()) return {};
  const auto bytes = static_cast<double>(what.bytes());
  const collective_time::Cluster& cluster = *timeline::cluster();
  switch (what.kind) {
    case Kind::all_reduce:
      return collective_time::all_reduce(cluster, places, bytes);
    case Kind::all_gather:
    case Kind::reduce_scatter:
      return collective_time::gather(cluster, places, bytes * places.ranks);
    case Kind::broadcast:
    case Kind::reduce:
      return collective_time::pass(cluster, places, bytes);
    default:  // a rank, or the root, sends or receives a block of each other rank
      return collective_time::transfers(cluster, bytes * (places.local - 1), bytes * (places.ranks - places.local));
  }
}

/// Holds the lock of the lanes, which survives a process that dies with it.
class LaneLock {
 public:
  explicit LaneLock(Segment& s) : mutex_(s.header().lanes) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~LaneLock() { pthread_mutex_unlock(&mutex_); }
  LaneLock(const LaneLock&) = delete;
  LaneLock& operator=(const LaneLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

void run_collective(Communicator& c, Segment& s, const Collective& call, int lane, bool in_order) {
  Exchange x(c, s, call, lane, in_order);
  const double begin = x.enter();
  if (call.what.kind == Kind::all_reduce || call.what.kind == Kind::reduce)
    reduce_all(x, call, c.rank(), c.size());
  else
    exchange(x, call, c.rank(), c.size());
  if (!timeline::on()) return;
  const collective_time::Cost cost = predict(call.what, c.places());
  timeline::communicate(call.what.text(), begin, begin + cost.seconds, cat(cost.algorithm, ' ', cost.protocol));
}

int claim_lane(Communicator& c, Segment& s, uint64_t key, const Collective& call) {
  int found = 0;
  const auto claim = [&] {
    const LaneLock lock(s);
    for (int lane = 1; lane < Segment::kLanes && found == 0; ++lane)
      if (s.lane(lane).key == key) found = lane;
    for (int lane = 1; lane < Segment::kLanes && found == 0; ++lane)
      if (s.lane(lane).key == 0) s.lane(found = lane).key = key;
    return found != 0;
  };
  c.wait(
      s, claim, [&c] { return c.rank(); }, [&call] { return text_of(call); }, /*in_order=*/false);
  return found;
}

void leave_lane(Communicator& c, Segment& s, int lane) {
  {
    const LaneLock lock(s);
    if (++s.lane(lane).departed < static_cast<uint32_t>(c.size())) return;
    s.lane(lane) = Lane{};
  }
  c.ring_all(s);
}

}  // namespace emulator::nccl
