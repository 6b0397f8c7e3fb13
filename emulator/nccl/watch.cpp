// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/fault.h"

namespace emulator::nccl {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

}  // namespace

Watch::Watch(Communicator& c, Segment& s, const Communicator::Wait& wait) : c_(c), s_(s), wait_(wait) {}

Watch::~Watch() {
  if (!published_) return;
  SharedWait& mine = s_.slot(c_.rank()).wait;
  ++mine.moves;
  mine.peer.store(0);
}

void Watch::look() {
  const int peer = wait_.peer();
  // At every wake-up, since a rank that leaves rings the bell.
  const Presence presence = s_.slot(peer).presence.load();
  if ((presence == Presence::left || presence == Presence::aborted) && !wait_.done()) {
    if (presence == Presence::left)
      c_.fail(ncclInvalidUsage,
              cat(wait_.what(), ": rank ", c_.rank(), " waits for rank ", peer,
                  ", which has left the communicator after ", s_.slot(peer).calls.load(), " collectives"));
    else
      c_.fail(ncclRemoteError, cat(wait_.what(), ": rank ", peer, " has aborted the communicator"));
    throw Stopped{};
  }
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  look_at(peer);
  if (wait_.in_order) look_for_deadlock();
  const double limit = timeout_seconds();
  const std::chrono::duration<double> waited = now - begin_;
  if (limit > 0 && waited.count() > limit) {
    c_.fail(ncclRemoteError,
            cat(wait_.what(), ": rank ", c_.rank(), " has waited ", limit, " s for rank ", peer,
                " (WEFT_EMULATE_NCCL_TIMEOUT), which has called ", s_.slot(peer).calls.load(), " collectives"));
    throw Stopped{};
  }
}

bool Watch::has_died(int rank) const {
  const RankSlot& slot = s_.slot(rank);
  const Presence presence = slot.presence.load();
  return (presence == Presence::joining || presence == Presence::here) && slot.pid != getpid() &&
         start_of_process(slot.pid) != slot.started;
}

void Watch::look_at(int peer) {
  // While a communicator comes about, the missing rank may wait for one that has died.
  const bool coming = s_.slot(peer).presence.load() == Presence::absent;
  for (int r = coming ? 0 : peer; r < (coming ? c_.size() : peer + 1); ++r) {
    if (!has_died(r) || wait_.done()) continue;
    c_.fail(ncclRemoteError, cat(wait_.what(), ": rank ", r, " has died: process ", s_.slot(r).pid,
                                 " has ended, and rank ", c_.rank(), " waits for it"));
    throw Stopped{};
  }
}

std::vector<Watch::Member> Watch::circle() const {
  std::vector<Member> members;
  for (int r = c_.rank();;) {
    const SharedWait& wait = s_.slot(r).wait;
    members.push_back({r, wait.moves.load(), wait.beats.load()});
    r = wait.peer.load() - 1;
    if (r == c_.rank()) return members;
    const auto known = [r](const Member& m) { return m.rank == r; };
    if (r < 0 || std::any_of(members.begin(), members.end(), known)) return {};
  }
}

void Watch::look_for_deadlock() {
  SharedWait& mine = s_.slot(c_.rank()).wait;
  const int peer = wait_.peer();
  if (!published_) {
    char text[sizeof mine.what] = {};
    wait_.what().copy(text, sizeof text - 1);
    for (size_t i = 0; i < mine.what.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, text + i * sizeof word, sizeof word);
      mine.what[i].store(word);
    }
    published_ = true;
  }
  mine.peer.store(peer + 1);
  ++mine.beats;
  if (wait_.done()) return;
  const std::vector<Member> now = circle();
  // Real if each member has completed another look since the last time, and none has moved: two beats have one whole
  // look between them.
  const auto stuck = [](const Member& before, const Member& after) {
    return before.rank == after.rank && before.moves == after.moves && after.beats >= before.beats + 2;
  };
  if (now.empty() || now.size() != circle_.size()) {
    circle_ = now;
    return;
  }
  bool same = true;
  for (size_t i = 0; i < now.size(); ++i)
    same = same && now[i].rank == circle_[i].rank && now[i].moves == circle_[i].moves;
  if (!same) circle_ = now;
  if (!same || !std::equal(now.begin(), now.end(), circle_.begin(),
                           [&](const Member& after, const Member& before) { return stuck(before, after); }))
    return;
  std::string text = "deadlock";
  for (size_t i = 0; i < now.size(); ++i)
    text += cat(i == 0 ? ": " : "; ", "rank ", now[i].rank, " waits in ", text_of(now[i].rank), " for rank ",
                now[(i + 1) % now.size()].rank);
  c_.fail(ncclInvalidUsage, text);
  throw Stopped{};
}

std::string Watch::text_of(int rank) const {
  const auto& what = s_.slot(rank).wait.what;
  std::string text;
  for (const auto& word : what) {
    const uint64_t bits = word.load();
    char bytes[sizeof bits + 1] = {};
    std::memcpy(bytes, &bits, sizeof bits);
    text += bytes;
  }
  return text;
}

}  // namespace emulator::nccl
