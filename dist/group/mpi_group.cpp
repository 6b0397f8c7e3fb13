// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "dist/group/backends.h"
#include "dist/group/host_math.h"
#include "dist/rendezvous/mpi_library.h"

namespace weft::dist {
namespace {

// MPI promises tags up to 32767: eleven bits of the collective and the code below them; one for the end of a group.
int tag_of(Link::Slot slot) { return static_cast<int>(slot.hash % 2047) * 16 + slot.code; }
constexpr int kAbortTag = 32767;
constexpr size_t kReason = 1024;

// MPI counts by int.
constexpr size_t kMostAtOnce = 1u << 30;

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
int size_of_group(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

/// How MPI reduces a dtype: by its own operation, or by our loop where it knows no such type or says nothing of NaN.
struct MpiReduction {
  MPI_Datatype type;
  MPI_Op op;
};

template <class T>
MPI_Datatype type_of() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, int64_t>) return MPI_INT64_T;
  if constexpr (std::is_same_v<T, int32_t>) return MPI_INT32_T;
  return sizeof(T) == 1 ? MPI_UINT8_T : MPI_UINT16_T;  // bf16 and f16 travel as bits
}

template <class T, ReduceOp op>
void combine(void* in, void* inout, int* count, MPI_Datatype*) {
  const void* const both[] = {in, inout};
  reduce(dtype_of<T>, op, inout, both, static_cast<size_t>(*count));
}

template <class T, ReduceOp op>
MPI_Op our_op() {
  static const MPI_Op made = [] {
    MPI_Op result;
    MPI_Op_create(&combine<T, op>, /*commute=*/1, &result);
    return result;
  }();
  return made;
}

MpiReduction reduction_of(DType dtype, ReduceOp op) {
  MpiReduction result{};
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t>(dtype, "reduce", [&]<class T>() {
    result.type = type_of<T>();
    if (op == ReduceOp::max)
      result.op = is_floating(dtype) ? our_op<T, ReduceOp::max>() : MPI_MAX;
    else if (op == ReduceOp::min)
      result.op = is_floating(dtype) ? our_op<T, ReduceOp::min>() : MPI_MIN;
    else
      result.op = size_of(dtype) == 2 ? our_op<T, ReduceOp::sum>() : MPI_SUM;
  });
  return result;
}

/// The pause between two tests of a wait: MPI moves data only during calls, so the first tests have no pause.
class Patience {
 public:
  void pause() {
    ++questions_;
    if (questions_ < 200) return;
    if (questions_ % 64 == 0) waited_ = Clock::now() - since_;
    if (waited_ < std::chrono::milliseconds(2))
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Worth a look at the clock, and at what others have to say.
  bool is_long() const { return questions_ % 64 == 0; }

 private:
  const Clock::time_point since_ = Clock::now();
  Clock::duration waited_{0};
  uint64_t questions_ = 0;
};

class MpiMessage final : public Link::Message {
 public:
  using Message::Message;
  ~MpiMessage() override {
    if (peer < 0) return;  // a collective can be neither cancelled nor freed: it stays with MPI
    // Left behind by a failure: a receive that has not begun never will.
    for (MPI_Request& request : requests) {
      if (request == MPI_REQUEST_NULL) continue;
      if (!is_send) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  std::vector<MPI_Request> requests;
};

class MpiLink final : public Link {
 public:
  /// Takes the communicator.
  explicit MpiLink(MPI_Comm comm) : Link(rank_in(comm), size_of_group(comm)), comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~MpiLink() override {
    if (!is_aborted()) MPI_Comm_free(&comm_);
  }

  MessagePtr send(int to, Slot slot, const std::byte* data, size_t bytes) override {
    return start(to, /*is_send=*/true, slot, const_cast<std::byte*>(data), bytes);
  }
  MessagePtr receive(int from, Slot slot, std::byte* data, size_t bytes) override {
    return start(from, /*is_send=*/false, slot, data, bytes);
  }

  void wait(Message& message, Deadline deadline) override {
    auto& m = static_cast<MpiMessage&>(message);
    Patience patience;
    while (!has_arrived(m)) {
      patience.pause();
      if (!patience.is_long()) continue;
      listen();
      if (is_over()) throw LinkError(LinkError::Kind::aborted, reason());
      if (Clock::now() >= deadline) throw LinkError(LinkError::Kind::deadline, "deadline");
    }
  }

  void post(int to, Slot slot, std::vector<std::byte> data) override {
    posted_.remove_if([&](const Posted& p) { return has_arrived(static_cast<MpiMessage&>(*p.message)); });
    Posted& posted = posted_.emplace_back(std::move(data), nullptr);
    posted.message = send(to, slot, posted.data.data(), posted.data.size());
  }

  bool run(const HostCollective& c, Deadline deadline) override {
    if (c.kind > CollectiveKind::barrier || !c.parts->empty()) return false;  // later kinds are always ours
    if (c.count * size_of(c.dtype) * static_cast<size_t>(size_) > kMostAtOnce) return false;
    const int count = static_cast<int>(c.count), bytes = static_cast<int>(c.count * size_of(c.dtype));
    const bool reduces = c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter;
    const auto [type, op] = reduces ? reduction_of(c.dtype, c.op) : MpiReduction{};
    MpiMessage call(-1, /*is_send=*/true);
    MPI_Request& request = call.requests.emplace_back(MPI_REQUEST_NULL);
    std::byte* output = c.output;
    switch (c.kind) {
      case CollectiveKind::all_reduce:
        check(MPI_Iallreduce(MPI_IN_PLACE, output, count, type, op, comm_, &request), -1);
        break;
      case CollectiveKind::reduce_scatter:
        if (output == c.input + static_cast<ptrdiff_t>(rank_) * bytes) {
          scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(bytes)));
          output = scratch_.data();
        }
        check(MPI_Ireduce_scatter_block(c.input, output, count, type, op, comm_, &request), -1);
        break;
      case CollectiveKind::all_gather: {
        const bool in_place = c.input == output + static_cast<ptrdiff_t>(rank_) * bytes;
        check(MPI_Iallgather(in_place ? MPI_IN_PLACE : c.input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, comm_,
                             &request),
              -1);
        break;
      }
      case CollectiveKind::broadcast:
        check(MPI_Ibcast(output, bytes, MPI_BYTE, c.peer, comm_, &request), -1);
        break;
      default:
        check(MPI_Ibarrier(comm_, &request), -1);
    }
    try {
      wait_on(call, deadline);
    } catch (...) {
      static_cast<void>(new std::vector<std::byte>(std::move(scratch_)));  // MPI may still write there
      throw;
    }
    if (c.op == ReduceOp::avg && reduces) scale(c.dtype, output, output, 1.0 / size_, c.count);
    if (output != c.output) std::memcpy(c.output, output, static_cast<size_t>(bytes));
    return true;
  }

  bool may_overlap() const override { return false; }
  size_t segment_bytes() const override { return 512 << 10; }
  void flush(Deadline deadline) override {
    for (const Posted& p : posted_) wait(*p.message, deadline);
    posted_.clear();
  }

  void abort(const std::string& why) override {
    {
      const std::lock_guard lock(mutex_);
      end_ = {};
      if (aborted_) return;
      aborted_ = true;
      reason_ = why;
    }
    abandon_mpi();
    // Small enough to go without the receiver; the text lives as long as the process, for nobody waits for these.
    auto* const text = new std::array<char, kReason>{};
    std::copy_n(why.begin(), std::min(why.size(), kReason - 1), text->begin());
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      MPI_Request request;
      if (MPI_Isend(text->data(), static_cast<int>(kReason), MPI_CHAR, r, kAbortTag, comm_, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
  }

  std::unique_ptr<Link> split(uint64_t, int color, const std::vector<int>& members, const std::string&,
                              Deadline) override {
    const auto place = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
    MPI_Comm part;
    check(MPI_Comm_split(comm_, color, place, &part), -1);
    return std::make_unique<MpiLink>(part);
  }
  void split_nothing(uint64_t) override {
    MPI_Comm none;
    check(MPI_Comm_split(comm_, MPI_UNDEFINED, 0, &none), -1);
  }

 private:
  struct Posted {
    Posted(std::vector<std::byte> data_, MessagePtr message_) : data(std::move(data_)), message(std::move(message_)) {}
    std::vector<std::byte> data;
    MessagePtr message;
  };

  void check(int code, int peer) const {
    if (code == MPI_SUCCESS) return;
    throw LinkError(LinkError::Kind::lost,
                    str(peer < 0 ? "" : str("the connection to rank ", peer, " broke: "), mpi_error(code)));
  }

  MessagePtr start(int peer, bool is_send, Slot slot, std::byte* data, size_t bytes) {
    auto message = std::make_unique<MpiMessage>(peer, is_send);
    for (size_t begin = 0; begin < bytes; begin += kMostAtOnce) {
      const int count = static_cast<int>(std::min(kMostAtOnce, bytes - begin));
      MPI_Request& request = message->requests.emplace_back(MPI_REQUEST_NULL);
      check(is_send ? MPI_Isend(data + begin, count, MPI_BYTE, peer, tag_of(slot), comm_, &request)
                    : MPI_Irecv(data + begin, count, MPI_BYTE, peer, tag_of(slot), comm_, &request),
            peer);
    }
    return message;
  }

  bool has_arrived(MpiMessage& m) const {
    int all = 0;
    check(MPI_Testall(static_cast<int>(m.requests.size()), m.requests.data(), &all, MPI_STATUSES_IGNORE), m.peer);
    return all != 0;
  }

  /// Has another rank ended the group?
  void listen() {
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, comm_, &found, &status) != MPI_SUCCESS || !found) return;
    std::array<char, kReason> text{};
    MPI_Recv(text.data(), static_cast<int>(kReason), MPI_CHAR, status.MPI_SOURCE, kAbortTag, comm_, MPI_STATUS_IGNORE);
    text.back() = 0;
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    aborted_ = true;
    end_ = Clock::now() + kLastMessages;  // messages under way may still complete
    reason_ = text.data();
    abandon_mpi();
  }

  bool is_aborted() const {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }
  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return aborted_ && Clock::now() >= end_;
  }
  std::string reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  MPI_Comm comm_;
  std::vector<std::byte> scratch_;  // MPI's output where input and output overlap
  std::list<Posted> posted_;

  mutable std::mutex mutex_;
  bool aborted_ = false;
  Clock::time_point end_{};  // end of waiting, once aborted
  std::string reason_;
};

/// A communicator of its own among all ranks of MPI's world.
std::unique_ptr<Link> make_mpi_link(Link::Deadline deadline) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  Patience patience;
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    patience.pause();
    if (patience.is_long() && Clock::now() >= deadline) {
      abandon_mpi();
      fail("process group mpi: the other ranks did not come in time");
    }
  }
  return std::make_unique<MpiLink>(comm);
}

}  // namespace

ProcessGroupPtr make_mpi_group(GroupRecordPtr record, std::shared_ptr<Store>) {
  const Link::Deadline deadline = Clock::now() + record->options.timeout;
  const MpiWorld world = begin_mpi(deadline, record->membership.get());
  WEFT_CHECK(world.rank == record->rank && world.size == record->size, "process group mpi: this process is rank ",
             world.rank, " of ", world.size, " in MPI's world, but rank ", record->rank, " of ", record->size,
             " in the job. Start it with mpirun or srun --mpi=pmix, one process per rank, or use gloo");
  auto link = make_mpi_link(deadline);
  return make_host_group(std::move(record), std::move(link), "mpi");
}

}  // namespace weft::dist
