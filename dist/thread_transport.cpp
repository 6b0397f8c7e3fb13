// SPDX-License-Identifier: Apache-2.0
#include "dist/thread_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dist/host_math.h"

namespace weft::dist {
namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<ThreadBoard> board, int rank) : board_(std::move(board)), rank_(rank) {}

  void run(const HostCollective& c, const Signature& signature, Deadline deadline) override {
    if (c.kind == CollectiveKind::send) {
      return board_->post(rank_, c.peer, signature, {c.output, c.output + c.count * size_of(c.dtype)});
    }
    if (c.kind == CollectiveKind::receive) return receive(c, signature, deadline);
    board_->open(rank_, {signature, c}, deadline, c.kind == CollectiveKind::barrier);
    if (c.kind == CollectiveKind::barrier) return;
    const size_t bytes = c.count * size_of(c.dtype);
    switch (c.kind) {
      case CollectiveKind::all_reduce:
        reduce_part(c, begin_of(c.count, rank_), begin_of(c.count, rank_ + 1), c.output);
        board_->meet(rank_, deadline, false);
        copy_reduced_parts(c);
        break;
      case CollectiveKind::broadcast:
        copy(c.output, board_->of(c.peer).output, bytes);
        break;
      case CollectiveKind::all_gather:
        for (int r = 0; r < board_->size(); ++r)
          copy(c.output + static_cast<size_t>(r) * bytes, board_->of(r).input, bytes);
        break;
      default:
        reduce_part(c, static_cast<size_t>(rank_) * c.count, static_cast<size_t>(rank_ + 1) * c.count, c.output);
    }
    board_->meet(rank_, deadline, true);
  }

  void abort(const std::string& reason) override { board_->abort(reason); }
  std::vector<int> waits_for() override { return board_->absent(rank_); }

  std::unique_ptr<Transport> split(uint64_t number, int color, const std::vector<int>& members, const std::string& name,
                                   Deadline) override {
    const auto me = std::ranges::find(members, rank_);
    return make_thread_transport(board_->part(number, color, static_cast<int>(members.size()), name),
                                 static_cast<int>(me - members.begin()));
  }

 private:
  size_t begin_of(size_t count, int part) const {
    return count * static_cast<size_t>(part) / static_cast<size_t>(board_->size());
  }

  static void copy(std::byte* to, const std::byte* from, size_t bytes) {
    if (to != from && bytes > 0) std::memcpy(to, from, bytes);
  }

  void reduce_part(const HostCollective& c, size_t begin, size_t end, std::byte* output) const {
    const size_t size = size_of(c.dtype);
    std::vector<const void*> inputs;
    for (int r = 0; r < board_->size(); ++r) {
      const HostCollective& other = board_->of(r);
      inputs.push_back((c.kind == CollectiveKind::all_reduce ? other.output : other.input) + begin * size);
    }
    reduce(c.dtype, c.op, c.kind == CollectiveKind::all_reduce ? output + begin * size : output, inputs, end - begin);
  }

  void copy_reduced_parts(const HostCollective& c) const {
    const size_t size = size_of(c.dtype);
    for (int r = 0; r < board_->size(); ++r) {
      const size_t begin = begin_of(c.count, r), end = begin_of(c.count, r + 1);
      copy(c.output + begin * size, board_->of(r).output + begin * size, (end - begin) * size);
    }
  }

  void receive(const HostCollective& c, const Signature& signature, Deadline deadline) const {
    const auto [sent, data] = board_->take(c.peer, rank_, deadline);
    if (!signature.agrees(sent)) {
      const std::string text = describe_difference(sent, signature, board_->group());
      board_->abort(text);
      throw TransportError(TransportError::Kind::differs, text);
    }
    copy(c.output, data.data(), data.size());
  }

  const std::shared_ptr<ThreadBoard> board_;
  const int rank_;
};

}  // namespace

std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<ThreadBoard> board, int rank) {
  return std::make_unique<ThreadTransport>(std::move(board), rank);
}

}  // namespace weft::dist
