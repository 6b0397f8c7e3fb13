// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_link.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "dist/mpi_library.h"

namespace weft::dist {
namespace {

using Clock = std::chrono::steady_clock;

// MPI promises tags up to 32767: eleven bits of the collective and the code below them; one for the end of a group.
int tag_of(Link::Slot slot) { return static_cast<int>(slot.hash % 2047) * 16 + slot.code; }
constexpr int kAbortTag = 32767;
constexpr size_t kReason = 1024;

// MPI counts by int.
constexpr size_t kMostAtOnce = 1u << 30;

/// Between two questions of a wait: MPI moves data while it is asked, so at first it is asked without a pause.
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
  explicit MpiLink(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiLink() override {
    if (!is_aborted()) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

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
      if (is_aborted()) throw TransportError(TransportError::Kind::aborted, reason());
      if (Clock::now() >= deadline) throw TransportError(TransportError::Kind::deadline, "deadline");
    }
  }

  void post(int to, Slot slot, std::vector<std::byte> data) override {
    posted_.remove_if([&](const Posted& p) { return has_arrived(static_cast<MpiMessage&>(*p.message)); });
    Posted& posted = posted_.emplace_back(std::move(data), nullptr);
    posted.message = send(to, slot, posted.data.data(), posted.data.size());
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
    throw TransportError(TransportError::Kind::lost,
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
    reason_ = text.data();
    abandon_mpi();
  }

  bool is_aborted() const {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }
  std::string reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  std::list<Posted> posted_;

  mutable std::mutex mutex_;
  bool aborted_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Link> make_mpi_link(Transport::Deadline deadline) {
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

}  // namespace weft::dist
