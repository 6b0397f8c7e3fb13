// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dist/transport.h"

namespace weft::dist {

/// Carries bytes between the ranks of a group: what a library of messages has to offer.
class Link {
 public:
  using Deadline = Transport::Deadline;

  /// A message under way. Dropping one that was not waited for is allowed once the link was aborted.
  class Message {
   public:
    Message(int peer_, bool is_send_) : peer(peer_), is_send(is_send_) {}
    virtual ~Message() = default;
    const int peer;
    const bool is_send;
  };
  using MessagePtr = std::unique_ptr<Message>;

  /// Messages with one slot from one rank to another arrive in their order; the receiver names the exact size.
  struct Slot {
    uint64_t hash;  ///< of the collective; a link may use fewer bits
    uint8_t code;   ///< below 15
  };

  virtual ~Link() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The memory must stay until the message was waited for.
  virtual MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) = 0;
  virtual MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) = 0;
  /// Errors: TransportError deadline, lost, aborted.
  virtual void wait(Message& message, Deadline deadline) = 0;
  /// Sends data that the link keeps until it has gone.
  virtual void post(int to, Slot slot, std::vector<std::byte> data) = 0;
  /// May a receive be under way into memory that a send under way reads, when the data to come depends on what is sent?
  virtual bool may_overlap() const = 0;
  /// Large tensors are cut into segments of so many bytes, a multiple of 8.
  virtual size_t segment_bytes() const = 0;
  /// Waits until what was posted has gone, at most to the deadline.
  virtual void flush(Deadline deadline) = 0;
  /// As Transport's.
  virtual void abort(const std::string& reason) = 0;
  virtual std::string failure_elsewhere() { return {}; }
  virtual void look() {}
  virtual std::unique_ptr<Link> split(uint64_t number, int color, const std::vector<int>& members,
                                      const std::string& name, Deadline deadline) = 0;
  virtual void split_nothing(uint64_t /*number*/) {}
};

}  // namespace weft::dist
