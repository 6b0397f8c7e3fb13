// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "dist/collective.h"
#include "kernels/error.h"

namespace weft::dist {

/// Why a transport gave up. `text` says it for everybody in the group.
class TransportError : public Error {
 public:
  enum class Kind {
    differs,   ///< ranks called different collectives; all of the group end with this text
    deadline,  ///< the engine says which, and who is missing
    lost,      ///< a connection broke: its rank may have died, of which the membership knows more
    aborted,   ///< somebody called abort()
  };
  TransportError(Kind kind_, const std::string& text) : Error(text), kind(kind_) {}
  const Kind kind;
};

/// A collective on host memory. Counts are elements.
///   all_reduce: output [count], in place; broadcast, send, receive: output [count]; all_gather: output [size * count],
///   input [count]; reduce_scatter: output [count], input [size * count]. Input may be this rank's part of output, or
///   output this rank's part of input.
struct HostCollective {
  CollectiveKind kind;
  DType dtype;
  ReduceOp op;
  int peer;
  std::byte* output;
  const std::byte* input;
  size_t count;
};

/// Moves the data of one group in host memory. One thread runs its collectives in order.
class Transport {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Transport() = default;
  /// Errors: TransportError. A send returns when its data has been copied.
  virtual void run(const HostCollective& collective, const Signature& signature, Deadline deadline) = 0;
  /// From any thread, any number of times: what runs now and later ends with TransportError::aborted, here and, as far
  /// as that is possible, on the other ranks.
  virtual void abort(const std::string& reason) = 0;
  /// From any thread: why another rank has aborted the group, where that can be told without the connections; else
  /// empty.
  virtual std::string failure_elsewhere() { return {}; }
  /// From one other thread, about once a second: looks for a broken connection that the library does not report, and
  /// ends the wait for it with TransportError::lost.
  virtual void look() {}
  /// From any thread: the ranks that the collective under way waits for.
  virtual std::vector<int> waits_for() = 0;
  /// A transport among `members` (ranks of this one, in their new order, this rank among them). Every rank of this
  /// transport calls it or, without being a member of any group, split_nothing(), at the same place in its program;
  /// `number` counts these places, `color` is the same for the members and for nobody else.
  virtual std::unique_ptr<Transport> split(uint64_t number, int color, const std::vector<int>& members,
                                           const std::string& name, Deadline deadline) = 0;
  virtual void split_nothing(uint64_t /*number*/) {}
};

}  // namespace weft::dist
