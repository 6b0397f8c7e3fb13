// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dist/transport.h"

namespace weft::dist {

/// Where the ranks of a group of threads meet: a barrier that can be left by force, what each rank brings to a
/// collective, and the messages on their way.
class ThreadBoard {
 public:
  /// What a rank brings to a collective.
  struct Offer {
    Signature signature;
    HostCollective collective{};
  };

  ThreadBoard(int size, std::string group);

  /// Brings an offer and waits for everybody's, which must agree. Unless `done`, the rank may then use the others'
  /// memory until it meets them again: nobody leaves by force before that. Errors: TransportError.
  void open(int rank, const Offer& offer, Transport::Deadline deadline, bool done);
  /// Waits until all ranks are here; `done` as in open().
  void meet(int rank, Transport::Deadline deadline, bool done);
  /// What a rank brought; valid while this rank may use others' memory.
  const HostCollective& of(int rank) const { return offers_[static_cast<size_t>(rank)].collective; }

  /// A message with its data, from `from` to `to`.
  void post(int from, int to, const Signature& signature, std::vector<std::byte> data);
  std::pair<Signature, std::vector<std::byte>> take(int from, int to, Transport::Deadline deadline);

  void abort(const std::string& reason);
  /// Those whom `rank` waits for.
  std::vector<int> absent(int rank);

  /// The board of one part of a split: made by the first rank that asks.
  std::shared_ptr<ThreadBoard> part(uint64_t number, int color, int size, const std::string& name);

  int size() const { return size_; }
  const std::string& group() const { return group_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void wait_for_all(Lock& lock, int rank, Transport::Deadline deadline, bool done, bool compare);
  void compare_offers();
  [[noreturn]] void leave_by_force(Lock& lock);

  const int size_;
  const std::string group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Offer> offers_;
  std::vector<char> here_;    // in the meeting that is under way
  std::vector<char> busy_;    // may be using others' memory
  std::vector<int> expects_;  // of each rank: whose message it waits for; -1: nobody's
  int arrived_ = 0;
  uint64_t meetings_ = 0;
  std::string failure_;
  TransportError::Kind failure_kind_ = TransportError::Kind::aborted;
  std::map<std::pair<int, int>, std::deque<std::pair<Signature, std::vector<std::byte>>>> messages_;
  std::map<std::pair<uint64_t, int>, std::shared_ptr<ThreadBoard>> parts_;
};

}  // namespace weft::dist
