// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dist/group/link.h"

namespace weft::dist {

/// The collectives of one group on host memory, by messages. Every rank owns one part of a tensor that is reduced: all
/// send their values of that part to the owner, which adds them in the order of the ranks and returns the sums. So each
/// element has one order of addition, and bf16 and f16 are rounded once. Each rank sends 2 (n-1)/n of the tensor, as a
/// ring does. Large tensors travel in segments: one is reduced while the next is on its way. With Algorithms::library
/// the link's library runs its own collectives instead.
///
/// Before a collective each rank sends its call's signature to its right neighbour; the data's slots depend on it, so
/// ranks that differ never take each other's data for their own. A library's collective has no slots and waits for that
/// comparison.
///
/// One thread at a time runs them, in order.
class HostCollectives {
 public:
  HostCollectives(std::unique_ptr<Link> link, std::string group, Algorithms algorithms);
  /// Stays until the others have read what this rank has sent them, some seconds at most.
  ~HostCollectives();

  /// Errors: LinkError. A send returns when its data has been copied.
  void run(const HostCollective& collective, const Signature& signature, Link::Deadline deadline);
  /// From any thread: Link::abort().
  void abort(const std::string& reason);
  /// From any thread: the rank that the collective under way waits for; none where that cannot be told.
  std::vector<int> waits_for() const;
  Link& link() { return *link_; }

 private:
  class Landing;
  struct Range;
  using MessagePtr = Link::MessagePtr;
  enum Code : uint8_t;

  MessagePtr send(int to, Code code, const std::byte* data, size_t bytes);
  MessagePtr receive(int from, Code code, std::byte* data, size_t bytes);
  void wait(const MessagePtr& message);
  void wait(const std::vector<MessagePtr>& messages);

  void begin_comparison(const Signature& mine);
  void end_comparison();
  void check(const Signature& mine, Signature theirs) const;

  Range segment(Range range, size_t index) const;
  size_t segments(Range range) const;
  Range part(const HostCollective& c, int rank) const;
  Range output_part(const HostCollective& c, int rank) const;
  Range input_part(const HostCollective& c, int rank) const;
  template <class RangeOf>
  std::vector<std::vector<MessagePtr>> scatter(const std::byte* data, RangeOf range_of);
  void add(const HostCollective& c, const Landing& landing, size_t s, std::byte* output, const std::byte* input,
           size_t bytes);

  void all_reduce(const HostCollective& c);
  template <class RangeOf>
  void reduce_to(const HostCollective& c, const std::byte* input, RangeOf range_of);
  template <class RangeTo, class RangeFrom>
  void exchange(const HostCollective& c, RangeTo range_to, RangeFrom range_from);
  void compare_parts(const HostCollective& c);
  void broadcast(const HostCollective& c);
  void barrier();
  void monitored_barrier(const Signature& signature);
  void send_message(const HostCollective& c, const Signature& signature);
  void receive_message(const HostCollective& c, const Signature& signature);
  void say_goodbye();

  int right(int steps = 1) const { return (rank_ + steps) % size_; }
  int left(int steps = 1) const { return (rank_ - steps + size_) % size_; }

  const std::unique_ptr<Link> link_;
  const std::string group_;
  const int rank_, size_;
  const size_t segment_;
  const bool library_;
  std::atomic<int> waits_for_{-1};
  std::atomic<bool> aborted_{false};

  Link::Deadline deadline_;
  uint64_t hash_ = 0;
  Signature mine_, theirs_;
  MessagePtr header_from_left_, header_to_right_;
  std::vector<std::byte> landing_;
  std::vector<const void*> inputs_;
};

}  // namespace weft::dist
