// SPDX-License-Identifier: Apache-2.0
#include "dist/thread_board.h"

#include <algorithm>

namespace weft::dist {

ThreadBoard::ThreadBoard(int size, std::string group)
    : size_(size),
      group_(std::move(group)),
      offers_(static_cast<size_t>(size)),
      here_(static_cast<size_t>(size)),
      busy_(static_cast<size_t>(size)),
      expects_(static_cast<size_t>(size), -1) {}

void ThreadBoard::leave_by_force(Lock& lock) {
  // Who leaves may free its memory, so the others must be out of it.
  changed_.wait(lock, [&] { return std::ranges::count(busy_, 1) == 0; });
  throw TransportError(failure_kind_, failure_);
}

void ThreadBoard::compare_offers() {
  for (int r = 1; r < size_; ++r) {
    const Signature& before = offers_[static_cast<size_t>(r) - 1].signature;
    const Signature& here = offers_[static_cast<size_t>(r)].signature;
    if (before.agrees(here)) continue;
    failure_ = describe_difference(before, here, group_);
    failure_kind_ = TransportError::Kind::differs;
    return;
  }
}

void ThreadBoard::wait_for_all(Lock& lock, int rank, Transport::Deadline deadline, bool done, bool compare) {
  const auto me = static_cast<size_t>(rank);
  busy_[me] = 0;
  if (!failure_.empty()) {
    changed_.notify_all();
    leave_by_force(lock);
  }
  here_[me] = 1;
  const uint64_t meeting = meetings_;
  if (++arrived_ == size_) {
    if (compare) compare_offers();
    arrived_ = 0;
    std::ranges::fill(here_, 0);
    if (failure_.empty()) {
      ++meetings_;
      if (!done) std::ranges::fill(busy_, 1);
    }
    changed_.notify_all();
    if (failure_.empty()) return;
    leave_by_force(lock);
  }
  const bool in_time = changed_.wait_until(lock, deadline, [&] { return meetings_ != meeting || !failure_.empty(); });
  if (meetings_ != meeting) return;
  if (!in_time) {
    here_[me] = 0;
    --arrived_;
    throw TransportError(TransportError::Kind::deadline, "deadline");
  }
  leave_by_force(lock);
}

void ThreadBoard::open(int rank, const Offer& offer, Transport::Deadline deadline, bool done) {
  Lock lock(mutex_);
  offers_[static_cast<size_t>(rank)] = offer;
  wait_for_all(lock, rank, deadline, done, /*compare=*/true);
}

void ThreadBoard::meet(int rank, Transport::Deadline deadline, bool done) {
  Lock lock(mutex_);
  wait_for_all(lock, rank, deadline, done, /*compare=*/false);
}

void ThreadBoard::post(int from, int to, const Signature& signature, std::vector<std::byte> data) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw TransportError(failure_kind_, failure_);
  messages_[{from, to}].emplace_back(signature, std::move(data));
  changed_.notify_all();
}

std::pair<Signature, std::vector<std::byte>> ThreadBoard::take(int from, int to, Transport::Deadline deadline) {
  Lock lock(mutex_);
  auto& queue = messages_[{from, to}];
  expects_[static_cast<size_t>(to)] = from;
  const bool in_time = changed_.wait_until(lock, deadline, [&] { return !queue.empty() || !failure_.empty(); });
  if (!in_time) throw TransportError(TransportError::Kind::deadline, "deadline");
  expects_[static_cast<size_t>(to)] = -1;
  if (!failure_.empty()) throw TransportError(failure_kind_, failure_);
  auto message = std::move(queue.front());
  queue.pop_front();
  return message;
}

void ThreadBoard::abort(const std::string& reason) {
  std::vector<std::shared_ptr<ThreadBoard>> parts;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
    for (const auto& [key, part] : parts_) parts.push_back(part);
  }
  changed_.notify_all();
  for (const auto& part : parts) part->abort(reason);
}

std::vector<int> ThreadBoard::absent(int rank) {
  const std::lock_guard lock(mutex_);
  if (const int from = expects_[static_cast<size_t>(rank)]; from >= 0) return {from};
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (r != rank && !here_[static_cast<size_t>(r)]) ranks.push_back(r);
  return ranks;
}

std::shared_ptr<ThreadBoard> ThreadBoard::part(uint64_t number, int color, int size, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ThreadBoard>& part = parts_[{number, color}];
  if (!part) part = std::make_shared<ThreadBoard>(size, name);
  return part;
}

}  // namespace weft::dist
