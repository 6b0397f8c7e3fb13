// SPDX-License-Identifier: Apache-2.0
// Meetings of the hosts, in which new communicators are made from old ones.
#include <algorithm>

#include "emulator/machine/fault.h"
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

uint64_t Communicator::next_mark(const std::vector<int>& members) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const int member : members) hash = (hash ^ static_cast<uint64_t>(member)) * 0x100000001b3;
  const std::lock_guard lock(mutex_);
  return (hash + ++meetings_[hash] * 0x9e3779b97f4a7c15) | 1;
}

std::optional<Communicator::Place> Communicator::meet(const std::vector<int>& members, uint64_t mark, int color,
                                                      int key, bool despite_errors) {
  const auto s = segment();
  if (!s) throw Stopped{};
  SharedMeeting& mine = s->slot(rank_).meeting;
  const auto all = [&](const auto& word_of) {
    int missing = rank_;
    const auto done = [&] {
      for (const int r : members)
        if (word_of(r).load() != mark) {
          missing = r;
          return false;
        }
      return true;
    };
    Wait w{done, [&missing] { return missing; }, [] { return std::string("ncclCommSplit or ncclCommShrink"); }};
    w.despite_errors = despite_errors;
    wait(*s, w);
  };
  mine.color.store(color);
  mine.key.store(key);
  mine.here.store(mark);
  ring_all(*s);
  all([&s](int r) -> auto& { return s->slot(r).meeting.here; });

  std::optional<Place> place;
  std::vector<int> part;
  for (const int r : members)
    if (s->slot(r).meeting.color.load() == color) part.push_back(r);
  std::stable_sort(part.begin(), part.end(),
                   [&s](int a, int b) { return s->slot(a).meeting.key.load() < s->slot(b).meeting.key.load(); });
  if (color >= 0) {
    if (part.front() == rank_) {
      const auto id = Segment::make();
      if (!id) {
        fail(ncclSystemError, "no shared memory for a new communicator");
        throw Stopped{};
      }
      mine.id = *id;
      mine.id_of.store(mark);
      ring_all(*s);
    }
    SharedMeeting& first = s->slot(part.front()).meeting;
    Wait w{[&] { return first.id_of.load() == mark; }, [&] { return part.front(); },
           [] { return std::string("ncclCommSplit or ncclCommShrink"); }};
    w.despite_errors = despite_errors;
    wait(*s, w);
    place = Place{static_cast<int>(std::find(part.begin(), part.end(), rank_) - part.begin()),
                  static_cast<int>(part.size()), first.id};
  }
  // No rank writes for the next meeting before all have read this one's.
  for (const int r : members) s->met(rank_, r).store(mark);
  ring_all(*s);
  all([&](int r) -> auto& { return s->met(r, rank_); });
  return place;
}

}  // namespace emulator::nccl
