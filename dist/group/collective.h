// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dist/group/process_group.h"

namespace weft::dist {

enum class CollectiveKind : uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  barrier,
  send,
  receive,
  reduce,
  gather,
  scatter,
  all_to_all,
  monitored_barrier
};

/// `all_reduce`, … A string literal: profiles keep it.
const char* name(CollectiveKind kind);

/// One call of a group on this rank, checked and numbered.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  /// Index among the group's collectives, from 1. A send or receive counts the messages between its two ranks.
  uint64_t number = 0;
  std::string name{};
  Tensor output{};  ///< the tensor of an all_reduce, broadcast, reduce, send or receive; else the result
  Tensor input{};   ///< all other kinds have one
  Tensor scale{};
  ReduceOp op = ReduceOp::sum;
  bool at_once = false;
  WorkPtr after{};
  int peer = -1;       ///< root; the other side of a send or receive
  uint64_t entry = 0;  ///< index in the flight log
  /// Elements of each rank's part where they differ; an all_to_all has sizes of the output's parts, and of the input's.
  std::vector<int64_t> parts{}, input_parts{};
  std::optional<Milliseconds> timeout{};  ///< replaces the group's

  bool is_message() const { return kind == CollectiveKind::send || kind == CollectiveKind::receive; }
  bool is_barrier() const { return kind == CollectiveKind::barrier || kind == CollectiveKind::monitored_barrier; }
  /// One rank has another role than the others.
  bool has_root() const { return peer >= 0 && !is_message(); }
  /// This rank's input (for a broadcast, a scatter and a receive: its output); undefined for a barrier.
  const Tensor& tensor() const { return input.defined() && kind != CollectiveKind::scatter ? input : output; }
};
using CollectivePtr = std::shared_ptr<const Collective>;

/// `all_reduce #412 'gradients fc.bias' f32[1000]`.
std::string describe(const Collective& collective);

/// Where rank `rank`'s part lies, in elements: [begin, end). `parts`: their sizes; empty: each has `count`.
struct PartRange {
  size_t begin, end;
};
PartRange part_range(const std::vector<int64_t>& parts, size_t count, int rank);

/// Bytes that one rank of `size` sends for the collective, by the theory of the algorithms (docs/process_groups.md). A
/// broadcast counts what a binomial tree sends.
uint64_t bytes_to_send(const Collective& collective, int rank, int size);

/// The facts that ranks exchange before a collective, and that must agree. Plain bytes, sent as they are.
struct Signature {
  uint64_t number = 0;
  uint64_t name_hash = 0;
  int64_t count = 0;  ///< elements that a rank puts in, all parts where they differ; -1: each rank's own
  int32_t rank = 0;   ///< who says so; not compared
  int32_t root = -1;
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  bool library = false;          ///< Algorithms::library
  std::array<char, 156> name{};  ///< shortened; ends with 0

  /// Equal but for the rank and the end of a long name; a send agrees with its receive.
  bool agrees(const Signature& other) const;
  /// Equal on all ranks that agree.
  uint64_t hash() const;
};
static_assert(sizeof(Signature) == 192);

Signature signature_of(const Collective& collective, int rank);

/// `rank 1 called all_reduce 'a' f32[4], rank 2 called broadcast 'b' f32[4] from rank 0 as collective 17 of group
/// world`.
std::string describe_difference(const Signature& a, const Signature& b, const std::string& group);

}  // namespace weft::dist
