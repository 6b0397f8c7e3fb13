// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/group/collective.h"

namespace weft::dist {

/// Why a collective on host memory gave up. `text` says it for everybody in the group.
class LinkError : public Error {
 public:
  enum class Kind {
    differs,   ///< ranks called different collectives; all of the group end with this text
    deadline,  ///< the group says which, and who is missing
    lost,      ///< a connection broke: its rank may have died, of which the membership knows more
    forged,    ///< a message is not what a rank has sent
    aborted,   ///< abort() was called
  };
  LinkError(Kind kind_, const std::string& text, std::vector<int> missing_ = {})
      : Error(text), kind(kind_), missing(std::move(missing_)) {}
  const Kind kind;
  const std::vector<int> missing;  ///< at a deadline, where all that are missing are known
};

/// A collective on host memory. Counts are elements.
///   all_reduce: output [count], in place; broadcast, reduce, send, receive: output [count]; all_gather, gather: output
///   [size * count], input [count]; reduce_scatter, scatter: output [count], input [size * count]; all_to_all: output
///   and input [size * count]. Input may be this rank's part of output, or output this rank's part of input.
struct HostCollective {
  CollectiveKind kind;
  DType dtype;
  ReduceOp op;
  int peer;
  std::byte* output;
  const std::byte* input;
  size_t count;
  const std::vector<int64_t>*parts, *input_parts;  ///< Collective's: the sizes of parts that differ
};

/// Carries bytes between the ranks of a group: the interface to a message library. Only one thread at a time uses a
/// link, but for abort() and failure_elsewhere().
class Link {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// A message under way. Dropping one that was not waited for is allowed when the group ends.
  class Message {
   public:
    Message(int peer_, bool is_send_) : peer(peer_), is_send(is_send_) {}
    virtual ~Message() = default;
    const int peer;
    const bool is_send;
  };
  using MessagePtr = std::unique_ptr<Message>;

  /// Messages with equal slots between two ranks arrive in order; the receiver names the exact size.
  struct Slot {
    uint64_t hash;  ///< hash of the collective; a link may use fewer bits
    uint8_t code;   ///< below 15
    auto operator<=>(const Slot&) const = default;
  };

  Link(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Link() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The memory must stay until the message was waited for.
  virtual MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) = 0;
  virtual MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) = 0;
  /// Errors: LinkError deadline, lost, aborted.
  virtual void wait(Message& message, Deadline deadline) = 0;
  /// As wait(), but a later deadline from next_deadline() replaces the message's.
  void wait_on(Message& message, Deadline& deadline);
  /// Returns another deadline after one has passed; this may have passed, too. None: there is no other.
  std::function<Deadline()> next_deadline;
  /// Sends data that the link keeps until it has gone.
  virtual void post(int to, Slot slot, std::vector<std::byte> data) = 0;
  /// Runs the collective as the library does, on ranks that are known to agree; false: the library has no such one, on
  /// no rank. After an error the library may still use the memory. Errors: as wait().
  virtual bool run(const HostCollective& /*collective*/, Deadline /*deadline*/) { return false; }

  /// May a receive be under way into memory that a send under way reads, when the data to come depends on what is sent?
  virtual bool may_overlap() const = 0;
  /// Large tensors are cut into segments of this size, a multiple of 8.
  virtual size_t segment_bytes() const = 0;
  /// Waits until what was posted has gone, at most to the deadline.
  virtual void flush(Deadline deadline) = 0;
  /// Whether sent messages arrive even when this rank's link has gone.
  virtual bool keeps_messages() const { return false; }

  /// From any thread, any number of times: what runs now and later ends with LinkError::aborted, here and, as far as
  /// that is possible, on the other ranks.
  virtual void abort(const std::string& reason) = 0;
  /// From any thread: why another rank has aborted the group, where that can be told without the connections; else
  /// empty.
  virtual std::string failure_elsewhere() { return {}; }
  /// A link among `members` (ranks of this one, in their new order, this rank among them). Every rank of this link
  /// calls it or, without being a member of any group, split_nothing(), at the same place in its program; `number`
  /// counts these places, `color` is the same for the members and for nobody else.
  virtual std::unique_ptr<Link> split(uint64_t number, int color, const std::vector<int>& members,
                                      const std::string& name, Deadline deadline) = 0;
  virtual void split_nothing(uint64_t /*number*/) {}

 protected:
  const int rank_, size_;
};

}  // namespace weft::dist
