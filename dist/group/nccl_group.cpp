// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "dist/group/backends.h"
#include "dist/group/nccl_communicator.h"
#include "dist/group/watchdog.h"

namespace weft::dist {
namespace {

using Deadline = NcclCommunicator::Deadline;

/// A collective on the group's stream, until the host sees that the device has done it.
struct Flight {
  CollectivePtr collective;
  std::shared_ptr<Event> done;
  bool begun = false;
};

/// The collective as texts name it: forms of tensors, and none of their memory.
CollectivePtr without_memory(Collective c) {
  for (Tensor* tensor : {&c.output, &c.input})
    if (tensor->defined()) *tensor = Tensor::wrap(nullptr, tensor->sizes(), tensor->dtype(), tensor->device());
  c.scale = {};
  c.after = {};
  return std::make_shared<const Collective>(std::move(c));
}

// NCCL knows that a connection broke; of the rank that has gone or given up the membership tells soon.
constexpr Milliseconds kNcclExplained{3000};

/// It holds the collective's tensors until wait() has ordered a stream after it. Only then may their memory serve
/// again, and it may at once: record_stream() would keep it until the host sees the event, and the host is far ahead.
class NcclWork final : public Work {
 public:
  NcclWork(GroupRecordPtr record, std::shared_ptr<NcclCommunicator> communicator, const Flight& flight,
           std::array<Tensor, 3> tensors, void* stream, Device device, bool captured)
      : record_(std::move(record)),
        communicator_(std::move(communicator)),
        collective_(flight.collective),
        tensors_(std::move(tensors)),
        event_(flight.done),
        stream_(stream),
        device_(device),
        captured_(captured) {}
  ~NcclWork() override { let_go(stream_); }
  NcclWork(const NcclWork&) = delete;
  NcclWork& operator=(const NcclWork&) = delete;

  /// Again after the host has read the result: a collective that a failure ends leaves anything in its tensors.
  void wait() override {
    check(std::exchange(waited_, true));
    event_->block(current_stream(device_));
    let_go(current_stream(device_));  // another one than that of a tensor's memory counts as its user
    if (!collective_->is_barrier() || captured_) return;
    while (!event_->done()) {
      record_->check_alive(*collective_);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    check(/*has_ended=*/true);  // a failure ends a barrier's kernel too
  }
  bool done() override { return true; }  // wait() never waits on the host but for a barrier
  bool has_ended() override { return !captured_ && event_->done(); }
  void block(void* stream) const { event_->block(stream); }

 private:
  void check(bool has_ended) const {
    const std::string error = has_ended ? communicator_->asynchronous_error() : std::string();
    if (!error.empty()) record_->wait_for_explanation(kNcclExplained);
    record_->check_alive(*collective_);
    WEFT_CHECK(error.empty(), record_->describe(*collective_), " on rank ", record_->rank, ": ", error);
  }
  void let_go(void* user) {
    for (Tensor& tensor : tensors_) {
      if (tensor.defined() && !captured_) tensor.storage()->record_stream(user);
      tensor = {};
    }
  }

  const GroupRecordPtr record_;
  const std::shared_ptr<NcclCommunicator> communicator_;
  const CollectivePtr collective_;
  std::array<Tensor, 3> tensors_;
  const std::shared_ptr<Event> event_;
  void* const stream_;  // of the group
  const Device device_;
  const bool captured_;
  bool waited_ = false;
};

/// Collectives start before the kernels of the backward pass that wait as they do: other ranks wait for them too.
constexpr int kFirst = -5;

class NcclGroup final : public ProcessGroup, private Watched {
 public:
  NcclGroup(GroupRecordPtr record, std::shared_ptr<NcclCommunicator> communicator, Device device)
      : ProcessGroup(std::move(record)),
        communicator_(std::move(communicator)),
        device_(device),
        stream_(device, kFirst),
        word_(Tensor::zeros({1}, DType::u8, device)) {
    weft::synchronize(device);
    if (record_->membership)
      callback_ = record_->membership->on_failure(
          [alive = std::weak_ptr(record_), comm = std::weak_ptr(communicator_)](const Failure& failure) {
            if (const auto r = alive.lock()) r->fail(failure.reason, GroupRecord::Cause::here);
            if (const auto c = comm.lock()) c->abort();
          });
    watch(*this);
  }

  ~NcclGroup() override {
    unwatch(*this);
    if (record_->membership) record_->membership->remove(callback_);
    const Clock::time_point end = Clock::now() + record_->options.timeout;
    while (!record_->has_failed() && !flights_.empty() && Clock::now() < end) {
      look();
      std::this_thread::sleep_for(Milliseconds(1));
    }
    if (!flights_.empty()) communicator_->abort();
  }

  /// Collective, before all others: makes the communicator. It has a deadline and reports of who is missing, as a
  /// collective has.
  void connect(Store& store, const std::string& key) {
    const auto start = std::make_shared<Collective>();
    start->name = "start of NCCL";
    start->entry = record_->log.add(dist::describe(*start));
    record_->begin(start);
    const Deadline end = deadline();
    try {
      communicator_->connect(rank(), size(), store, key, end);
    } catch (const Error&) {
      if (Clock::now() >= end) fail_with(record_->past_deadline(*start, {}));
      throw;
    }
    record_->finish(*start, true);
  }

  std::string_view backend() const override { return "nccl"; }

  void abort(const std::string& reason) override {
    if (record_->fail(reason, GroupRecord::Cause::abort)) record_->publish(record_->failure(), /*announce=*/false);
    communicator_->abort();
  }

  ProcessGroupPtr split(int color, int key, const std::string& group) override {
    const std::vector<int> members = members_of_split(color, key, group);
    std::vector<int> job_ranks;
    int place = 0;
    for (const int r : members) {
      if (r == rank()) place = static_cast<int>(job_ranks.size());
      job_ranks.push_back(record_->members[static_cast<size_t>(r)]);
    }
    std::shared_ptr<NcclCommunicator> part = communicator_->split(color, place, deadline());
    if (!part) return nullptr;
    auto record = std::make_shared<GroupRecord>(group, place, static_cast<int>(members.size()), record_->options,
                                                record_->membership, std::move(job_ranks));
    return std::make_shared<NcclGroup>(std::move(record), std::move(part), device_);
  }

 protected:
  Device text_device() const override { return device_; }

  WorkPtr enqueue(CollectivePtr c) override {
    const bool barrier = c->is_barrier();
    WEFT_CHECK(barrier || c->tensor().device() == device_, record_->describe(*c), " on rank ", rank(),
               ": backend nccl: expected a tensor on ", device_, ", got ", c->tensor());
    const bool captured = is_capturing(device_);
    const Flight flight{without_memory(*c), std::make_shared<Event>(device_)};
    Tensor factor;
    if (c->scale.defined()) {
      const NoGrad guard;
      factor = c->scale.to(c->output.dtype());
    }
    Event ready(device_);
    ready.record(current_stream(device_));
    ready.block(stream_.handle());
    if (const auto after = std::dynamic_pointer_cast<NcclWork>(c->after))
      after->block(stream_.handle());
    else if (c->after)
      c->after->wait();
    Collective call = *c;
    if (barrier) {
      call.kind = CollectiveKind::all_reduce;
      call.output = word_;
    }
    try {
      communicator_->run(call, factor, stream_.handle(), deadline());
    } catch (const Error& error) {
      if (!fail_by_nccl()) fail_with(str(record_->describe(*c), " on rank ", rank(), ": ", error.what()));
      record_->check_alive(*c);
    }
    flight.done->record(stream_.handle());
    auto work = std::make_shared<NcclWork>(record_, communicator_, flight, std::array{c->output, c->input, factor},
                                           stream_.handle(), device_, captured);
    if (captured) {
      record_->log.change(c->entry, FlightLog::State::done);
      on_each_run([record = record_, bytes = bytes_to_send(*c, rank(), size())] { record->bytes_sent += bytes; });
      if (watched_capture_ != capture_number())
        on_each_run([group = weak_from_this(), first = dist::describe(*c)] {
          if (const auto alive = group.lock()) static_cast<NcclGroup&>(*alive).watch_replay(first);
        });
      watched_capture_ = capture_number();
    } else {
      const std::lock_guard lock(mutex_);
      flights_.push_back(flight);
      reap();
    }
    return work;
  }

 private:
  Deadline deadline() const { return Clock::now() + record_->options.timeout; }

  void fail_with(const std::string& reason) {
    if (record_->fail(reason, GroupRecord::Cause::here)) record_->publish(reason, /*announce=*/true);
    communicator_->abort();
  }

  bool fail_by_nccl() {
    const std::string error = communicator_->asynchronous_error();
    if (error.empty()) return false;
    record_->wait_for_explanation(kNcclExplained);
    fail_with(str("NCCL on rank ", rank(), ": ", error));
    return true;
  }

  /// A captured event can never be asked (cudaErrorCapturedEvent). So each replay of a graph with collectives of this
  /// group counts as one more of them, with an event after it: if it hangs, it passes its deadline as any other.
  void watch_replay(const std::string& first) {
    Collective replay{
        .kind = CollectiveKind::barrier, .number = next_number(), .name = "replay of a graph from " + first};
    record_->check_alive(replay);
    replay.entry = record_->log.add(dist::describe(replay));
    Flight flight{std::make_shared<const Collective>(std::move(replay)), std::make_shared<Event>(device_)};
    flight.done->record(current_stream(device_));
    const std::lock_guard lock(mutex_);
    flights_.push_back(std::move(flight));
    reap();
  }

  /// Takes note of what the device has done; the first that is left is the one under way. Under the lock.
  void reap() {
    while (!flights_.empty()) {
      Flight& first = flights_.front();
      if (!first.begun) record_->begin(first.collective);
      first.begun = true;
      if (!first.done->done()) return;
      record_->finish(*first.collective, true);
      flights_.pop_front();
    }
  }

  void look() override {
    if (record_->has_failed()) return;
    try {
      if (fail_by_nccl()) return;
      {
        const std::lock_guard lock(mutex_);
        reap();
      }
      if (const CollectivePtr stalled = record_->take_stalled())
        std::fputs(str("weft: ", record_->describe(*stalled), " waits ", seconds(record_->options.stall_report),
                       " on rank ", rank(), ": ", record_->missing(*stalled, {}), '\n')
                       .c_str(),
                   stderr);
      if (const CollectivePtr late = record_->overdue(); late && record_->extended_deadline() < Clock::now())
        fail_with(record_->past_deadline(*late, {}));
    } catch (const std::exception& error) {  // the device has failed
      fail_with(str("rank ", rank(), ": ", error.what()));
    }
  }
  void print() override { std::fputs(record_->report().c_str(), stderr); }

  const std::shared_ptr<NcclCommunicator> communicator_;
  const Device device_;
  const Stream stream_;
  const Tensor word_;  // what a barrier reduces
  int callback_ = 0;
  uint64_t watched_capture_ = 0;

  std::mutex mutex_;
  std::deque<Flight> flights_;
};

}  // namespace

ProcessGroupPtr make_nccl_group(GroupRecordPtr record, std::shared_ptr<Store> store) {
  WEFT_CHECK(store, "process group nccl: expected a store, got none");
  const Device device{DeviceKind::cuda, record->options.gpu};
  const int64_t number = store->add(str("nccl/made/", record->rank), 1);
  record->explain_in(store, str("nccl/", number, "/failure"));
  const auto communicator = std::make_shared<NcclCommunicator>(device);
  // First, so that a rank that dies while they connect ends the others' wait for it.
  auto group = std::make_shared<NcclGroup>(record, communicator, device);
  try {
    group->connect(*store, str("nccl/", number, "/id"));
  } catch (const Error&) {
    WEFT_CHECK(!record->has_failed(), "process group nccl: ", record->failure());
    throw;
  }
  return group;
}

}  // namespace weft::dist
